/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_POLICY_ROUTES_H
#define OCS_POLICY_ROUTES_H

/* How the edges of a job travel where they have no links of their own: over the links
 * and circuits that join the job's own XPUs, several edges sharing some.  Links of
 * other jobs are never used, so nobody else is slowed down. */

#include "src/place/place.h"

/* One link on the way: it leaves XPU RANK in direction DIR, 2 * axis + sign. */
struct ocs_hop {
	int rank;
	int dir;
};

/* The way of the edge between two ranks. */
struct ocs_route {
	int from, to;
	long first; /* of its hops */
	int nhops;
};

struct ocs_routes {
	struct ocs_route *routes; /* one per edge of the shape */
	long nroutes;
	struct ocs_hop *hops;
	long nhops;
	int load; /* edges on the busiest link; 0: there are no edges */
};

/* Finds a way for each edge of P->shape such that no link carries more than MOST edges,
 * with as small a load as a bounded search finds; edges that have a link of their own
 * use it.  Circuits of P that carry nothing are taken out of it.  Plain shapes only.
 * NULL: none was found.  Free with ocs_routes_destroy. */
struct ocs_routes *ocs_routes_find(struct ocs_placement *p, int most);
void ocs_routes_destroy(struct ocs_routes *routes);

/* What ocs_placement_verify is for placements whose edges have links of their own:
 * that the XPUs are free and used once, that circuits join free ports of the job's own
 * XPUs, each carrying something, and that each edge of the shape has a way over links
 * between XPUs of the job, none of which carries more than ROUTES->load edges.  Shares
 * no code with ocs_routes_find.  OCCUPANCY may be NULL.  Returns 0, or -1 with ERR. */
int ocs_routes_verify(const struct ocs_fabric *fabric, const struct ocs_occupancy *occupancy,
		      const struct ocs_placement *p, const struct ocs_routes *routes,
		      struct ocs_error *err);

/* How much longer a job runs whose busiest link carries LOAD edges, if it would spend the
 * share COMMUNICATION (0..1) of its time sending: every ring waits for that link. */
double ocs_routes_slowdown(int load, double communication);

#endif
