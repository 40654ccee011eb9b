/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_SIM_SLOWDOWN_H
#define OCS_SIM_SLOWDOWN_H

/* What a placement does to an AllReduce of all of a job, simulated flow by flow (src/netsim): along all
 * dimensions at once, both ways around each ring, as on a torus. */

#include "src/policy/routes.h"

/* How many times as long an AllReduce takes on a placement of PLACED as on links of its own for each edge of ASKED, the shape
 * that was asked for; 1 where it makes no difference.  Edges take ROUTES, those of PLACED, or, with NULL,
 * links of their own; the two ends of a line send each other along the line.  Extents of ASKED and
 * PLACED are the same.  Latency is left out. */
double ocs_sim_allreduce_ratio(const struct ocs_shape *asked, const struct ocs_shape *placed,
			       const struct ocs_routes *routes);

/* What was simulated before, of placements without routes. */
struct ocs_sim_known_ratio {
	struct ocs_shape asked, placed;
	double ratio;
};
struct ocs_sim_ratios {
	struct ocs_sim_known_ratio *known;
	int count, room;
};
/* The same, kept in RATIOS (zero-initialised; ocs_sim_ratios_free frees what it holds). */
double ocs_sim_ratio_find(struct ocs_sim_ratios *ratios, const struct ocs_shape *asked,
			  const struct ocs_shape *placed, const struct ocs_routes *routes);
void ocs_sim_ratios_free(struct ocs_sim_ratios *ratios);

#endif
