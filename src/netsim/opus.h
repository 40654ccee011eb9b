/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_NETSIM_OPUS_H
#define OCS_NETSIM_OPUS_H

/* Rails of circuits below one job: which topologies they have (src/rails/menu.h). */

#include "src/netsim/fabric.h"
#include "src/rails/menu.h"

/* How a job lies on rails, and what its dimensions send. */
struct ocs_netsim_opus {
	struct ocs_rails_layout layout;
	double bytes[OCS_RAILS_DIMS]; /* by dimension: of all servers in a step, over the rails */
};

/* The hubs of an opus fabric: the rails, or one for each dimension where they are shared out for
 * good, and after them the front-end network.  A server has two links with each: out and in. */
#define OCS_NETSIM_OPUS_OUT(fabric, hub, server) (2 * ((hub) * (fabric)->servers + (server)))
#define OCS_NETSIM_OPUS_IN(fabric, hub, server) (OCS_NETSIM_OPUS_OUT(fabric, hub, server) + 1)

/* The layout of GRAPH: spec->shape, or what its transfers and groups say: transfers lead from one
 * pipeline stage to the next, groups of servers in equal steps are dimensions, the ones that move
 * most first.  0, or -1 with ERR (OCS_USAGE, OCS_NEVER). */
int ocs_netsim_opus_layout(const struct ocs_netsim_graph *graph, const struct ocs_netsim_spec *spec,
			   struct ocs_netsim_opus *opus, struct ocs_error *err);

/* What the servers of TASK, which sends, need of the rails, and in *MEMBERS, which the caller frees,
 * *COUNT of them. */
struct ocs_rails_need ocs_netsim_opus_need(const struct ocs_netsim_graph *graph,
					   const struct ocs_netsim_task *task,
					   const struct ocs_netsim_opus *opus, int **members,
					   int *count);

/* The links.  0, or -1 with ERR. */
int ocs_netsim_opus_make(struct ocs_netsim_fabric *fabric,
			 const struct ocs_netsim_graph *const *graphs, int *const *places, int n,
			 struct ocs_error *err);
/* How many hubs there are before the front-end network. */
int ocs_netsim_opus_hubs(const struct ocs_netsim_spec *spec);

#endif
