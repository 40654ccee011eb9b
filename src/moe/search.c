/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Local search.  First the side that lacks most is helped by the exchange that helps most; where
 * none does, the sides that lack something weigh more from then on.  T is found by bisection
 * between what no circuits can reach and what was reached.  Up to SMALL servers, where single
 * circuits decide, annealing goes on from there. */

#include <string.h>

#include "src/moe/bound.h"
#include "src/moe/exchange.h"
#include "src/moe/internal.h"

#define GUIDED_EFFORT 6000 /* and twice that in a small region */
#define GUIDED_TRIES 8	   /* of the effort, one try for one T may use this share */
#define SMALL 24	   /* servers */
#define ANNEAL_EFFORT 120000
#define ANNEAL_TRIES 8
#define STEP_MOST 0.08	 /* of T */
#define PARTNERS 8	 /* new partners that are tried for the server that lacks most */
#define PRECISION 0.0005 /* of T, where the search ends */

/* The partners with whom SIDE would carry most more, the best first; returns how many. */
static int partners_find(const struct ocs_moe_search *s, int side, int *partners)
{
	int i = side / 2, found = 0;
	const double *tokens = (side % 2 ? s->received : s->sent) + (size_t)i * s->n;
	double value[PARTNERS];

	for (int j = 0; j < s->n; j++) {
		double v = ocs_moe_circuit_value(tokens[j], s->circuits->count[i * s->n + j] + 1,
						 s->t);
		int at;

		if (v <= 0 || !s->request->region->ports[j] ||
		    (found == PARTNERS && v <= value[PARTNERS - 1]))
			continue;
		at = found < PARTNERS ? found++ : PARTNERS - 1;
		for (; at && value[at - 1] < v; at--) {
			value[at] = value[at - 1];
			partners[at] = partners[at - 1];
		}
		value[at] = v;
		partners[at] = j;
	}
	return found;
}

/* Sides that lack something weigh more. */
static void weights_raise(struct ocs_moe_search *s)
{
	for (int side = 0; side < 2 * s->n; side++)
		if (s->need[side] - s->carry[side] > s->t * OCS_MOE_LACK)
			s->weight[side] *= 1.25;
}

bool ocs_moe_time_reach(struct ocs_moe_search *s, double t, long until)
{
	int partners[PARTNERS], side;

	ocs_moe_search_time(s, t);
	while ((side = ocs_moe_side_worst(s)) >= 0) {
		int found = partners_find(s, side, partners);
		struct ocs_moe_exchange best = { .i = OCS_MOE_NOBODY, .gain = s->t * OCS_MOE_LACK };

		if (!found || s->effort <= until)
			return false;
		s->effort--; /* what looks at no exchange comes to an end as well */
		for (int k = 0; k < found; k++)
			ocs_moe_exchange_best(s, side / 2, partners[k], &best);
		if (best.i != OCS_MOE_NOBODY)
			ocs_moe_exchange_make(s, &best);
		else
			weights_raise(s);
	}
	return true;
}

/* What was reached becomes the best, and HIGH its time. */
static void best_take(const struct ocs_moe_search *s, struct ocs_moe_circuits *best, double *high)
{
	memcpy(best->count, s->circuits->count, (size_t)s->n * s->n * sizeof(*best->count));
	*high = ocs_moe_finish_time(s->request->demand, s->request->region, best);
}

/* Bisection between LOW, what no circuits can reach, and what BEST reaches. */
static double guided_run(struct ocs_moe_search *s, struct ocs_moe_circuits *best, double low)
{
	double high = ocs_moe_finish_time(s->request->demand, s->request->region, best);
	long share = s->effort / GUIDED_TRIES;

	while (s->effort > 0 && high > low * (1 + PRECISION)) {
		double t = low + (high - low) / 2;

		ocs_moe_search_restore(s, best);
		if (ocs_moe_time_reach(s, t, s->effort > share ? s->effort - share : 0))
			best_take(s, best, &high);
		else
			low = t;
	}
	return high;
}

/* Steps below HIGH, what BEST reaches: as large as they succeed. */
static void anneal_run(struct ocs_moe_search *s, struct ocs_moe_circuits *best, double low,
		       double high)
{
	double step = (high - low) / 2;
	long share = s->effort / ANNEAL_TRIES;

	if (step > high * STEP_MOST)
		step = high * STEP_MOST;
	while (s->effort > 0 && high > low * (1 + PRECISION)) {
		double t = high - step > low ? high - step : low;

		ocs_moe_search_restore(s, best);
		if (ocs_moe_time_anneal(s, t, s->effort > share ? s->effort - share : 0))
			best_take(s, best, &high);
		else
			step /= 2;
	}
}

void ocs_moe_search(const struct ocs_moe_request *request, struct ocs_moe_circuits *circuits)
{
	bool small = circuits->n <= SMALL;
	long guided = request->effort ? request->effort / (small ? 3 : 1) :
		      small	      ? 2 * GUIDED_EFFORT :
					GUIDED_EFFORT;
	double low = ocs_moe_bound_server(request->demand, request->region), high;
	struct ocs_moe_search s;

	ocs_moe_search_init(&s, request, circuits);
	s.effort = guided;
	high = guided_run(&s, circuits, low);
	if (small) {
		s.effort = request->effort ? request->effort - guided : ANNEAL_EFFORT;
		anneal_run(&s, circuits, low, high);
	}
	ocs_moe_search_free(&s);
}
