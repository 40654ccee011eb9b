/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/moe/internal.h"
#include "src/util/text.h"

struct greedy {
	const struct ocs_moe_request *request;
	enum ocs_moe_weight weight;
	bool stop;
	struct ocs_moe_circuits *circuits;
	int n;
	int *ports; /* [n] left */
	int *next;  /* [n] the partner with whom server i takes longest, among those after i; -1 */
};

/* How long the pair takes: pairs without a circuit are negative, the larger the demand the
 * longer.  0: nothing to send. */
static double pair_time(const struct greedy *g, int i, int j)
{
	const double *tokens = g->request->demand->tokens;
	double there = tokens[i * g->n + j], back = tokens[j * g->n + i];
	double d = g->weight == OCS_MOE_BOTH_WAYS ? there + back : there > back ? there : back;
	int count = g->circuits->count[i * g->n + j];

	return count ? d / count : -d;
}

/* Whether A lasts longer than B. */
static bool time_exceeds(double a, double b)
{
	return (a < 0) == (b < 0) ? fabs(a) > fabs(b) : a < 0;
}

static void partner_find(struct greedy *g, int i)
{
	double longest = 0;

	g->next[i] = -1;
	if (!g->stop && !g->ports[i])
		return;
	for (int j = i + 1; j < g->n; j++) {
		double t = pair_time(g, i, j);

		if ((g->stop || g->ports[j]) && t != 0 && time_exceeds(t, longest)) {
			longest = t;
			g->next[i] = j;
		}
	}
}

/* The pair that takes longest; false if there is none. */
static bool bottleneck_find(const struct greedy *g, int *a, int *b)
{
	double longest = 0;

	*a = -1;
	for (int i = 0; i < g->n; i++) {
		double t = g->next[i] < 0 ? 0 : pair_time(g, i, g->next[i]);

		if (t != 0 && time_exceeds(t, longest)) {
			longest = t;
			*a = i;
			*b = g->next[i];
		}
	}
	return *a >= 0;
}

void ocs_moe_greedy(const struct ocs_moe_request *request, enum ocs_moe_weight weight, bool stop,
		    struct ocs_moe_circuits *circuits)
{
	int n = circuits->n, a, b;
	struct greedy g = {
		.request = request,
		.weight = weight,
		.stop = stop,
		.circuits = circuits,
		.n = n,
		.ports = ocs_calloc((size_t)n, sizeof(int)),
		.next = ocs_calloc((size_t)n, sizeof(int)),
	};

	for (int i = 0; i < n; i++)
		g.ports[i] = request->region->ports[i] - ocs_moe_circuits_degree(circuits, i);
	for (int i = 0; i < n; i++)
		partner_find(&g, i);
	while (bottleneck_find(&g, &a, &b) && g.ports[a] && g.ports[b]) {
		ocs_moe_circuits_add(circuits, a, b, 1);
		g.ports[a]--;
		g.ports[b]--;
		partner_find(&g, a);
		/* A server without a port left is no partner any more. */
		for (int i = 0; i < n && !stop && !(g.ports[a] && g.ports[b]); i++)
			if (g.next[i] >= 0 && !(g.ports[i] && g.ports[g.next[i]]))
				partner_find(&g, i);
	}
	free(g.ports);
	free(g.next);
}
