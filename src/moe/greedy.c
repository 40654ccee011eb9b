/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include <stdint.h>
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
	uint64_t *rank; /* [n x n] of each pair, I before J */
	int *ports;	/* [n] left */
	int *next; /* [n] the partner with whom server i takes longest, among those after i; -1 */
	uint64_t *longest; /* [n] the rank of that pair; 0: there is none */
};

/* How long a pair takes, as a number that is the larger the longer: pairs without a circuit come
 * before all that have one, the larger the demand the longer.  0: nothing to send.  The bits of a
 * positive double rank like it, and those of negative ones above them all. */
static void pair_rank(struct greedy *g, int i, int j)
{
	const double *tokens = g->request->demand->tokens;
	double there = tokens[i * g->n + j], back = tokens[j * g->n + i];
	double d = g->weight == OCS_MOE_BOTH_WAYS ? there + back : there > back ? there : back;
	int count = g->circuits->count[i * g->n + j];
	double time = count ? d / count : -d;
	uint64_t *rank = &g->rank[i * g->n + j];

	memcpy(rank, &time, sizeof(*rank));
	if (d == 0)
		*rank = 0;
}

static void partner_find(struct greedy *g, int i)
{
	uint64_t longest = 0;

	g->next[i] = -1;
	g->longest[i] = 0;
	if (!g->stop && !g->ports[i])
		return;
	for (int j = i + 1; j < g->n; j++) {
		uint64_t rank = g->rank[i * g->n + j];

		if (rank > longest && (g->stop || g->ports[j])) {
			longest = rank;
			g->next[i] = j;
		}
	}
	g->longest[i] = longest;
}

/* The pair that takes longest; false if there is none. */
static bool bottleneck_find(const struct greedy *g, int *a, int *b)
{
	uint64_t longest = 0;

	*a = -1;
	for (int i = 0; i < g->n; i++) {
		if (g->longest[i] > longest) {
			longest = g->longest[i];
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
		.rank = ocs_calloc((size_t)n * n, sizeof(uint64_t)),
		.ports = ocs_calloc((size_t)n, sizeof(int)),
		.next = ocs_calloc((size_t)n, sizeof(int)),
		.longest = ocs_calloc((size_t)n, sizeof(uint64_t)),
	};

	for (int i = 0; i < n; i++)
		g.ports[i] = request->region->ports[i] - ocs_moe_circuits_degree(circuits, i);
	for (int i = 0; i < n; i++)
		for (int j = i + 1; j < n; j++)
			pair_rank(&g, i, j);
	for (int i = 0; i < n; i++)
		partner_find(&g, i);
	while (bottleneck_find(&g, &a, &b) && g.ports[a] && g.ports[b]) {
		ocs_moe_circuits_add(circuits, a, b, 1);
		pair_rank(&g, a, b);
		g.ports[a]--;
		g.ports[b]--;
		partner_find(&g, a);
		/* A server without a port left is no partner any more. */
		for (int i = 0; i < n && !stop && !(g.ports[a] && g.ports[b]); i++)
			if (g.next[i] >= 0 && !(g.ports[i] && g.ports[g.next[i]]))
				partner_find(&g, i);
	}
	free(g.rank);
	free(g.ports);
	free(g.next);
	free(g.longest);
}
