/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* An expander on the interfaces that are left: random circuits, then exchanges
 * of two circuits' ends as long as the average hops do not grow.  All distances
 * of a trial come from sets of servers: within h + 1 hops is what the neighbours
 * reach within h. */

#include <stdlib.h>
#include <string.h>

#include "src/plan/internal.h"
#include "src/util/text.h"

#define WORK 120000000L /* words of sets to join, in all */
#define TRIALS 20000
#define TRIALS_CIRCUIT 200 /* of which at most, for each circuit */
#define TRIES 32	   /* for a circuit between servers that have none yet */

struct end {
	int server, port;
};

struct expander {
	struct ocs_plan_ports *ports;
	struct ocs_plan *plan;
	int first; /* circuits from here on are ours */
	int words; /* of a set of servers */
	uint64_t *sets[2];
	int *degree, *neighbours; /* per server; at most plan->degree each */
	uint64_t random;
	long work;
};

static uint32_t number_draw(struct expander *x, uint32_t below)
{
	x->random ^= x->random << 13;
	x->random ^= x->random >> 7;
	x->random ^= x->random << 17;
	return (uint32_t)((x->random >> 32) % below);
}

static void ends_shuffle(struct expander *x, struct end *ends, int count)
{
	for (int i = count - 1; i > 0; i--) {
		int j = (int)number_draw(x, (uint32_t)i + 1);
		struct end keep = ends[i];

		ends[i] = ends[j];
		ends[j] = keep;
	}
}

static bool servers_joined(const struct expander *x, int a, int b)
{
	const int *list = x->neighbours + (size_t)a * x->plan->degree;

	for (int i = 0; i < x->degree[a]; i++)
		if (list[i] == b)
			return true;
	return false;
}

static void neighbour_add(struct expander *x, int a, int b)
{
	x->neighbours[(size_t)a * x->plan->degree + x->degree[a]++] = b;
}

static void neighbour_change(struct expander *x, int a, int from, int to)
{
	int *list = x->neighbours + (size_t)a * x->plan->degree;

	while (*list != from)
		list++;
	*list = to;
}

static void link_add(struct expander *x, struct end a, struct end b)
{
	ocs_plan_circuit_add(x->ports, a.server, a.port, b.server, b.port, -1);
	x->ports->expander++;
	neighbour_add(x, a.server, b.server);
	if (!x->plan->directed)
		neighbour_add(x, b.server, a.server);
}

/* Ends of MASK (planes) free in FREE. */
static int ends_collect(const struct expander *x, const uint64_t *free_ports, uint64_t mask,
			struct end *ends)
{
	int count = 0;

	for (int i = 0; i < x->plan->servers; i++)
		for (uint64_t left = free_ports[i] & mask; left; left &= left - 1)
			ends[count++] = (struct end){ i, __builtin_ctzll(left) };
	return count;
}

/* Joins A to some end of LIST that suits it, and takes that out. */
static void end_join(struct expander *x, struct end a, struct end *list, int *count)
{
	int other = -1;

	for (int i = 0; i < TRIES && *count; i++) {
		int at = (int)number_draw(x, (uint32_t)*count);

		if (list[at].server == a.server)
			continue;
		other = at;
		if (!servers_joined(x, a.server, list[at].server))
			break;
	}
	for (int i = 0; other < 0 && i < *count; i++)
		if (list[i].server != a.server)
			other = i;
	if (other < 0)
		return;
	link_add(x, a, list[other]);
	list[other] = list[--*count];
}

static void plane_fill(struct expander *x, uint64_t mask, struct end *out, struct end *in)
{
	int nout = ends_collect(x, x->ports->tx, mask, out);

	ends_shuffle(x, out, nout);
	if (x->plan->directed) {
		int nin = ends_collect(x, x->ports->rx, mask, in);

		for (int i = 0; i < nout; i++)
			end_join(x, out[i], in, &nin);
		return;
	}
	while (nout > 1) {
		struct end a = out[--nout];

		end_join(x, a, out, &nout);
	}
}

/* The same interfaces free everywhere: their mask, else 0. */
static uint64_t common_free(const struct expander *x)
{
	for (int i = 0; i < x->plan->servers; i++)
		if (x->ports->tx[i] != x->ports->tx[0] || x->ports->rx[i] != x->ports->tx[0])
			return 0;
	return x->ports->tx[0];
}

/* The servers in the order of a ring over all of them, or NULL. */
static const int *ring_order(const struct ocs_plan *plan)
{
	for (int g = 0; g < plan->ngroups; g++)
		if (plan->groups[g].nmembers == plan->servers && plan->groups[g].nrings)
			return plan->groups[g].members;
	return NULL;
}

/* Kautz graph over the ring's servers; false if there is none for this case. */
static bool kautz_fill(struct expander *x)
{
	const int *order = ring_order(x->plan);
	uint64_t planes = common_free(x);
	int n = x->plan->servers, *heads;

	if (!x->plan->directed || !order || !planes)
		return false;
	heads = ocs_plan_kautz(n, __builtin_popcountll(planes) + 1);
	if (!heads)
		return false;
	for (int c = 0; planes; planes &= planes - 1, c++) {
		int plane = __builtin_ctzll(planes);

		for (int i = 0; i < n; i++)
			if (heads[(size_t)c * n + i] >= 0)
				link_add(x, (struct end){ order[i], plane },
					 (struct end){ order[heads[(size_t)c * n + i]], plane });
	}
	free(heads);
	x->ports->kautz = true;
	return true;
}

/* Sum of all distances; a pair out of reach counts n. */
static int64_t distances_sum(struct expander *x)
{
	int n = x->plan->servers, words = x->words, hops = 0;
	int64_t sum = 0, reached = n, before = 0;
	uint64_t *now = x->sets[0], *next = x->sets[1];

	memset(now, 0, (size_t)n * words * sizeof(*now));
	for (int i = 0; i < n; i++)
		now[(size_t)i * words + i / 64] |= UINT64_C(1) << i % 64;
	while (reached < (int64_t)n * n && reached > before) {
		uint64_t *keep;

		before = reached;
		reached = 0;
		sum += (int64_t)n * n - before;
		for (int i = 0; i < n; i++) {
			uint64_t *set = next + (size_t)i * words;
			const int *list = x->neighbours + (size_t)i * x->plan->degree;

			memcpy(set, now + (size_t)i * words, words * sizeof(*set));
			for (int e = 0; e < x->degree[i]; e++) {
				const uint64_t *from = now + (size_t)list[e] * words;

				for (int w = 0; w < words; w++)
					set[w] |= from[w];
			}
			for (int w = 0; w < words; w++)
				reached += __builtin_popcountll(set[w]);
		}
		keep = now;
		now = next;
		next = keep;
		hops++;
	}
	x->work -= (long)n * words * (x->plan->degree + 1) * hops;
	return sum + ((int64_t)n * n - reached) * n;
}

/* Circuits a-b and c-d become a-d and c-b (directed: the receivers change places).
 * Doing it again undoes it. */
static void circuits_cross(struct expander *x, int i, int j)
{
	struct ocs_plan_circuit *p = &x->plan->circuits[i], *q = &x->plan->circuits[j];
	int server = p->b, port = p->b_port;

	neighbour_change(x, p->a, p->b, q->b);
	neighbour_change(x, q->a, q->b, p->b);
	if (!x->plan->directed) {
		neighbour_change(x, p->b, p->a, q->a);
		neighbour_change(x, q->b, q->a, p->a);
	}
	p->b = q->b;
	p->b_port = q->b_port;
	q->b = server;
	q->b_port = port;
}

static void circuit_flip(struct ocs_plan_circuit *c)
{
	*c = (struct ocs_plan_circuit){ c->b, c->b_port, c->a, c->a_port, c->ocs, c->group };
}

static bool circuits_crossable(const struct expander *x, int i, int j)
{
	const struct ocs_plan_circuit *p = &x->plan->circuits[i], *q = &x->plan->circuits[j];

	return i != j && p->ocs == q->ocs && p->a != q->b && q->a != p->b && p->a != q->a &&
	       p->b != q->b && !servers_joined(x, p->a, q->b) && !servers_joined(x, q->a, p->b);
}

static void expander_improve(struct expander *x)
{
	uint32_t ours = (uint32_t)(x->plan->ncircuits - x->first);
	uint32_t trials = ours < TRIALS / TRIALS_CIRCUIT ? ours * TRIALS_CIRCUIT : TRIALS;
	int64_t best;

	if (ours < 2)
		return;
	best = distances_sum(x);
	for (uint32_t trial = 0; trial < trials && x->work > 0; trial++) {
		int i = x->first + (int)number_draw(x, ours),
		    j = x->first + (int)number_draw(x, ours);
		int64_t sum;

		if (!x->plan->directed && number_draw(x, 2))
			circuit_flip(&x->plan->circuits[j]);
		if (!circuits_crossable(x, i, j))
			continue;
		circuits_cross(x, i, j);
		sum = distances_sum(x);
		if (sum <= best)
			best = sum;
		else
			circuits_cross(x, i, j);
	}
}

void ocs_plan_expand(struct ocs_plan_ports *ports, enum ocs_plan_rest rest)
{
	struct ocs_plan *plan = ports->plan;
	int n = plan->servers;
	struct expander x = { .ports = ports,
			      .plan = plan,
			      .first = plan->ncircuits,
			      .words = (n + 63) / 64,
			      .random = 88172645463325252u,
			      .work = WORK };
	struct end *ends;

	if (n < 3)
		return;
	x.degree = ocs_calloc(n, sizeof(int));
	x.neighbours = ocs_calloc((size_t)n * plan->degree, sizeof(int));
	for (int c = 0; c < plan->ncircuits; c++) {
		neighbour_add(&x, plan->circuits[c].a, plan->circuits[c].b);
		if (!plan->directed)
			neighbour_add(&x, plan->circuits[c].b, plan->circuits[c].a);
	}
	ends = ocs_calloc(2 * (size_t)n * plan->degree, sizeof(*ends));
	if (rest == OCS_PLAN_KAUTZ && n <= OCS_PLAN_EXPAND_MAX)
		kautz_fill(&x);
	/* all there is, or what a vertex of the Kautz graph has no use for */
	for (int i = 0; i < (plan->any_port ? 1 : plan->degree); i++)
		plane_fill(&x, plan->any_port ? ~UINT64_C(0) : UINT64_C(1) << i, ends,
			   ends + (size_t)n * plan->degree);
	free(ends);
	/* the sets of 16384 servers take 64 MiB: random circuits are good by then */
	if (n <= OCS_PLAN_EXPAND_MAX) {
		x.sets[0] = ocs_calloc((size_t)n * x.words, sizeof(uint64_t));
		x.sets[1] = ocs_calloc((size_t)n * x.words, sizeof(uint64_t));
		expander_improve(&x);
		free(x.sets[0]);
		free(x.sets[1]);
	}
	free(x.neighbours);
	free(x.degree);
}
