/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "src/moe/exchange.h"
#include "src/util/text.h"

#define HEAT_FIRST 0.2 /* of T: what an exchange may cost at first */
#define HEAT_LAST 1e-4
#define PORT_EVERY 8 /* one exchange in so many moves a circuit to a port that is left */

struct anneal {
	struct ocs_moe_search *search;
	uint64_t random;
	int *end; /* [2 x circuits] the two servers of each circuit, in turn */
	int ends;
};

/* A number in [0, BELOW); the same ones in every run. */
static double random_below(struct anneal *a, double below)
{
	a->random = a->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (double)(a->random >> 33) / 2147483648.0 * below;
}

static void ends_list(struct anneal *a)
{
	const struct ocs_moe_circuits *circuits = a->search->circuits;
	int n = circuits->n, all = 0;

	for (int k = 0; k < n * n; k++)
		all += circuits->count[k];
	a->end = ocs_calloc((size_t)all + 1, sizeof(*a->end));
	for (int i = 0; i < n; i++) {
		for (int j = i + 1; j < n; j++) {
			for (int c = 0; c < circuits->count[i * n + j]; c++) {
				a->end[a->ends++] = i;
				a->end[a->ends++] = j;
			}
		}
	}
}

/* A server at random among those with a port left, or OCS_MOE_NOBODY. */
static int port_draw(struct anneal *a)
{
	const struct ocs_moe_search *s = a->search;
	int first = (int)random_below(a, s->n);

	for (int k = 0; k < s->n; k++)
		if (s->ports[(first + k) % s->n] > 0)
			return (first + k) % s->n;
	return OCS_MOE_NOBODY;
}

/* An exchange at random of the circuits whose ends stand at *X and *Y; *Y is -1 where only one
 * circuit moves.  False: those drawn do not fit together. */
static bool exchange_draw(struct anneal *a, long number, struct ocs_moe_exchange *e, int *x, int *y)
{
	int server = number % PORT_EVERY ? OCS_MOE_NOBODY : port_draw(a);

	*x = (int)random_below(a, a->ends);
	*y = (int)random_below(a, a->ends);
	e->i = a->end[*x];
	e->k = a->end[*x ^ 1];
	if (server != OCS_MOE_NOBODY) {
		e->j = server;
		e->l = OCS_MOE_NOBODY;
		*y = -1;
		return server != e->i && server != e->k;
	}
	e->j = a->end[*y];
	e->l = a->end[*y ^ 1];
	return e->i != e->j && e->i != e->l && e->k != e->j && e->k != e->l;
}

static void exchange_take(struct anneal *a, const struct ocs_moe_exchange *e, int x, int y)
{
	ocs_moe_exchange_make(a->search, e);
	a->end[x] = e->i;
	a->end[x ^ 1] = e->j;
	if (y >= 0) {
		a->end[y] = e->k;
		a->end[y ^ 1] = e->l;
	}
}

static double lack_sum(const struct ocs_moe_search *s)
{
	double sum = 0;

	for (int side = 0; side < 2 * s->n; side++)
		sum += ocs_moe_side_lack(s, side, s->carry[side]);
	return sum;
}

bool ocs_moe_time_anneal(struct ocs_moe_search *s, double t, long until)
{
	struct anneal a = { .search = s, .random = ++s->tries };
	long tries = s->effort - until;
	double lack;

	ocs_moe_search_time(s, t);
	ends_list(&a);
	lack = lack_sum(s);
	for (long k = 0; a.ends && k < tries && lack > t * OCS_MOE_LACK; k++) {
		double cool = 1 - (double)k / tries;
		double heat = t * (HEAT_FIRST * cool * cool + HEAT_LAST);
		struct ocs_moe_exchange e;
		int x, y;

		if (!exchange_draw(&a, k, &e, &x, &y) || !ocs_moe_exchange_allowed(s, &e))
			continue;
		ocs_moe_exchange_judge(s, &e);
		if (e.gain < 0 && random_below(&a, 1) >= exp(e.gain / heat))
			continue;
		exchange_take(&a, &e, x, y);
		lack -= e.gain;
	}
	free(a.end);
	s->effort = until;
	/* Sums of many differences are not exact: what was found is counted anew. */
	ocs_moe_search_time(s, t);
	return ocs_moe_side_worst(s) < 0;
}
