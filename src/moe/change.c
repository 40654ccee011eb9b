/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/moe/change.h"

/* Until all is sent with CIRCUITS in place of KEEP. */
static double change_time(const struct ocs_moe_request *request,
			  const struct ocs_moe_change *change,
			  const struct ocs_moe_circuits *circuits)
{
	double sending =
		change->remaining * ocs_moe_finish_time(request->demand, request->region, circuits);
	int cut = ocs_moe_circuits_cut(request->keep, circuits);
	int made = ocs_moe_circuits_cut(circuits, request->keep);
	int most = cut > made ? cut : made;
	double switching = most ? change->first + (most - 1) * change->each - change->window : 0;

	return sending + (switching > 0 ? switching : 0);
}

struct ocs_moe_circuits *ocs_moe_change_choose(const struct ocs_moe_request *request,
					       const struct ocs_moe_change *change)
{
	struct ocs_moe_circuits *best = ocs_moe_circuits_copy(request->keep);
	double least = change_time(request, change, best);
	int all = 0;

	for (int i = 0; i < request->region->n; i++)
		all += ocs_moe_circuits_degree(request->keep, i);
	all /= 2;
	for (int most = 0;; most = most ? 2 * most : 1) {
		struct ocs_moe_request trial = *request;
		struct ocs_moe_circuits *circuits;
		double time;

		trial.policy = OCS_MOE_BEST;
		trial.change = most < all ? most : all;
		circuits = ocs_moe_allocate(&trial);
		time = change_time(request, change, circuits);
		if (time < least) {
			ocs_moe_circuits_destroy(best);
			best = circuits;
			least = time;
		} else {
			ocs_moe_circuits_destroy(circuits);
		}
		if (most >= all)
			return best;
	}
}
