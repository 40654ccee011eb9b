/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_NETSIM_TORUS_H
#define OCS_NETSIM_TORUS_H

#include "src/fold/shape.h"
#include "src/netsim/fabric.h"

/* The ranks of a job on a torus fabric, whose servers are XPUs. */
struct ocs_netsim_torus {
	struct ocs_shape shape;
	int *servers; /* of each rank, row-major */
};

/* The links of a torus fabric: with spec->shared a torus of all cubes in order, else the placements of
 * the jobs (src/place), each on cubes and circuits of its own.  0, or -1 with ERR. */
int ocs_netsim_torus_make(struct ocs_netsim_fabric *fabric,
			  const struct ocs_netsim_graph *const *graphs, int *const *places, int n,
			  struct ocs_error *err);

/* XPUs for so many: whole cubes. */
int ocs_netsim_torus_servers(const struct ocs_netsim_spec *spec, int servers);

/* The job that has the COUNT servers MEMBERS, in order; NULL: they are no whole job. */
const struct ocs_netsim_torus *ocs_netsim_torus_of(const struct ocs_netsim_fabric *fabric,
						   const int *members, int count);

#endif
