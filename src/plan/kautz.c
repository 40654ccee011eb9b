/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* The generalized Kautz digraph of degree d over n vertices: i -> -d i - a (mod n),
 * a = 1..d.  No digraph of that degree has a diameter less by more than one, and its
 * average distance is near the least there can be.  Its arcs are taken apart into
 * d permutations, since that is what a switch makes, and the first one is a cycle
 * through all vertices, since that is what AllReduce wants. */

#include <stdlib.h>

#include "src/plan/internal.h"
#include "src/util/text.h"

#define TRIALS 100 /* to join the cycles of a permutation */

struct kautz {
	int n, degree;
	int *arcs;	     /* [i * degree + a]: heads; -1 once taken */
	int *next, *before;  /* the permutation being made: head of i, tail of i */
	int *parent, *queue; /* of a search: tail by which a head was reached */
	int *part;	     /* cycles, joined */
	bool loops;	     /* arcs from a vertex to itself may be taken */
	uint64_t random;
};

static void arcs_make(struct kautz *k)
{
	for (int i = 0; i < k->n; i++)
		for (int a = 0; a < k->degree; a++) {
			long head = ((long)k->degree * i + a + 1) % k->n;

			k->arcs[(long)i * k->degree + a] = (int)((k->n - head) % k->n);
		}
}

/* An arc from a vertex to itself is no circuit: those vertices form a ring. */
static void loops_join(struct kautz *k)
{
	int first = -1, *last = NULL;

	for (int i = 0; i < k->n; i++)
		for (int a = 0; a < k->degree; a++) {
			int *arc = &k->arcs[(long)i * k->degree + a];

			if (*arc != i || first == i)
				continue;
			if (last)
				*last = i;
			else
				first = i;
			last = arc;
			break;
		}
	if (last)
		*last = first;
}

/* One more tail gets a head; others may change theirs for it. */
static bool factor_augment(struct kautz *k, int tail)
{
	int head = 0, count = 0;

	for (int i = 0; i < k->n; i++)
		k->parent[i] = -1;
	k->queue[count++] = tail;
	while (head < count) {
		int at = k->queue[head++];

		for (int a = 0; a < k->degree; a++) {
			/* The arcs in the middle first: a permutation of the first ones
			 * alone has no two tails that could exchange their heads. */
			int arc = (a + k->degree / 2) % k->degree;
			int to = k->arcs[(long)at * k->degree + arc];

			if (to < 0 || (to == at && !k->loops) || k->parent[to] >= 0)
				continue;
			k->parent[to] = at;
			if (k->before[to] >= 0) {
				k->queue[count++] = k->before[to];
				continue;
			}
			while (to >= 0) {
				int from = k->parent[to], keep = k->next[from];

				k->next[from] = to;
				k->before[to] = from;
				to = from == tail ? -1 : keep;
			}
			return true;
		}
	}
	return false;
}

/* A permutation out of the arcs that are left. */
static bool factor_split(struct kautz *k)
{
	for (int i = 0; i < k->n; i++)
		k->next[i] = k->before[i] = -1;
	for (int i = 0; i < k->n; i++)
		if (!factor_augment(k, i))
			return false;
	return true;
}

static int part_of(struct kautz *k, int i)
{
	while (k->part[i] != i)
		i = k->part[i] = k->part[k->part[i]];
	return i;
}

static bool has_arc(const struct kautz *k, int tail, int head)
{
	for (int a = 0; a < k->degree; a++)
		if (k->arcs[(long)tail * k->degree + a] == head)
			return true;
	return false;
}

/* Tail I takes its A-th head from another tail, which takes I's for it; false if
 * that has no such arc. */
static bool heads_exchange(struct kautz *k, int i, int a, bool within)
{
	int mine = k->next[i], head = k->arcs[(long)i * k->degree + a];
	int other = k->before[head];

	if (other == i || head == i || other == mine || !has_arc(k, other, mine) ||
	    (!within && part_of(k, i) == part_of(k, other)))
		return false;
	k->next[i] = head;
	k->before[head] = i;
	k->next[other] = mine;
	k->before[mine] = other;
	k->part[part_of(k, i)] = part_of(k, other);
	return true;
}

static int cycles_count(struct kautz *k)
{
	int cycles = k->n;

	for (int i = 0; i < k->n; i++)
		k->part[i] = i;
	for (int i = 0; i < k->n; i++)
		if (part_of(k, i) != part_of(k, k->next[i])) {
			k->part[part_of(k, i)] = part_of(k, k->next[i]);
			cycles--;
		}
	return cycles;
}

static uint32_t number_draw(struct kautz *k, int below)
{
	k->random ^= k->random << 13;
	k->random ^= k->random >> 7;
	k->random ^= k->random << 17;
	return (uint32_t)((k->random >> 32) % (uint32_t)below);
}

/* Joins the cycles of the permutation: tails on different cycles exchange their
 * heads.  Where that ends too early a few do so within a cycle, which parts it, and
 * it begins anew.  True when one cycle is left. */
static bool cycles_join(struct kautz *k)
{
	for (int trial = 0; trial < TRIALS; trial++) {
		int cycles = cycles_count(k);
		bool again = true;

		while (again && cycles > 1) {
			again = false;
			for (int i = 0; i < k->n; i++)
				for (int a = 0; a < k->degree; a++)
					if (heads_exchange(k, i, a, false)) {
						cycles--;
						again = true;
					}
		}
		if (cycles == 1)
			return true;
		for (int i = 0; i < k->n / 4 + 1; i++)
			heads_exchange(k, (int)number_draw(k, k->n), (int)number_draw(k, k->degree),
				       true);
	}
	return false;
}

static void factor_take(struct kautz *k)
{
	for (int i = 0; i < k->n; i++)
		for (int a = 0; a < k->degree; a++)
			if (k->arcs[(long)i * k->degree + a] == k->next[i]) {
				k->arcs[(long)i * k->degree + a] = -1;
				break;
			}
}

/* PLACE: where a vertex comes on the first cycle. */
static int *permutations_make(struct kautz *k)
{
	int *place = ocs_calloc(k->n, sizeof(int));
	int *heads = ocs_calloc((long)(k->degree - 1) * k->n, sizeof(int));
	bool found = true;

	for (int i = 0, at = 0; i < k->n; i++, at = k->next[at])
		place[at] = i;
	factor_take(k);
	loops_join(k);
	k->loops = true;
	for (int c = 0; c < k->degree - 1 && found; c++) {
		found = factor_split(k);
		for (int i = 0; i < k->n && found; i++)
			heads[(long)c * k->n + place[i]] = k->next[i] == i ? -1 : place[k->next[i]];
		if (found)
			factor_take(k);
	}
	free(place);
	if (found)
		return heads;
	free(heads);
	return NULL;
}

int *ocs_plan_kautz(int n, int degree)
{
	struct kautz k = { .n = n, .degree = degree, .random = 88172645463325252u };
	int *heads = NULL;

	if (degree < 2 || n <= degree)
		return NULL;
	k.arcs = ocs_calloc((long)n * degree, sizeof(int));
	k.next = ocs_calloc(5 * (long)n, sizeof(int));
	k.before = k.next + n;
	k.parent = k.before + n;
	k.queue = k.parent + n;
	k.part = k.queue + n;
	arcs_make(&k);
	if (factor_split(&k) && cycles_join(&k))
		heads = permutations_make(&k);
	free(k.next);
	free(k.arcs);
	return heads;
}
