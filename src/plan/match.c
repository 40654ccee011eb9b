/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Maximum-weight matching on a general graph: Edmonds' primal-dual method.  Trees
 * of alternating paths grow from every single vertex; an odd cycle shrinks into a
 * blossom and may open again when its dual value falls to zero.  Dense, O(n^3).
 * Vertices are 1..n, blossoms above; 0 is nobody. */

#include <stdlib.h>
#include <string.h>

#include "src/plan/internal.h"
#include "src/util/text.h"

#define FAR INT64_MAX
#define ROUNDS 20 /* of exchanges, where the exact method is too slow */

enum { FREE = -1, EVEN, ODD };

struct link {
	int from, to; /* real vertices */
	int64_t weight;
};

struct blossoms {
	int n, top, size;   /* vertices, highest number in use, of the arrays */
	struct link *links; /* size x size: the tightest between two of them */
	int *holder;	    /* size x (n + 1): which petal of a blossom has a vertex */
	int64_t *dual;
	int *mate, *near, *outer, *parent, *label, *stamp, now;
	int **petals, *npetals;
	int *queue, head, tail;
};

static struct link *link_at(struct blossoms *s, int a, int b)
{
	return &s->links[(size_t)a * s->size + b];
}

static int *holder_at(struct blossoms *s, int b, int v)
{
	return &s->holder[(size_t)b * (s->n + 1) + v];
}

static int64_t link_slack(struct blossoms *s, const struct link *link)
{
	return s->dual[link->from] + s->dual[link->to] -
	       2 * link_at(s, link->from, link->to)->weight;
}

static void near_offer(struct blossoms *s, int v, int x)
{
	if (!s->near[x] ||
	    link_slack(s, link_at(s, v, x)) < link_slack(s, link_at(s, s->near[x], x)))
		s->near[x] = v;
}

/* The even vertex that is nearest to X. */
static void near_find(struct blossoms *s, int x)
{
	s->near[x] = 0;
	for (int v = 1; v <= s->n; v++)
		if (link_at(s, v, x)->weight > 0 && s->outer[v] != x &&
		    s->label[s->outer[v]] == EVEN)
			near_offer(s, v, x);
}

static void vertex_enqueue(struct blossoms *s, int x)
{
	if (x <= s->n)
		s->queue[s->tail++] = x;
	else
		for (int i = 0; i < s->npetals[x]; i++)
			vertex_enqueue(s, s->petals[x][i]);
}

static void outer_set(struct blossoms *s, int x, int b)
{
	s->outer[x] = b;
	for (int i = 0; x > s->n && i < s->npetals[x]; i++)
		outer_set(s, s->petals[x][i], b);
}

static void list_turn(int *list, int from, int to)
{
	for (to--; from < to; from++, to--) {
		int keep = list[from];

		list[from] = list[to];
		list[to] = keep;
	}
}

/* The even position of PETAL in blossom B, which is turned round if need be. */
static int petal_position(struct blossoms *s, int b, int petal)
{
	int at = 0;

	while (s->petals[b][at] != petal)
		at++;
	if (at % 2 == 0)
		return at;
	list_turn(s->petals[b], 1, s->npetals[b]);
	return s->npetals[b] - at;
}

/* Joins A to B, and re-matches what is inside of A. */
static void blossom_join(struct blossoms *s, int a, int b)
{
	struct link link = *link_at(s, a, b);
	int petal, at;

	s->mate[a] = link.to;
	if (a <= s->n)
		return;
	petal = *holder_at(s, a, link.from);
	at = petal_position(s, a, petal);
	for (int i = 0; i < at; i++)
		blossom_join(s, s->petals[a][i], s->petals[a][i ^ 1]);
	blossom_join(s, petal, b);
	/* the petal comes first: it is the base now */
	list_turn(s->petals[a], 0, at);
	list_turn(s->petals[a], at, s->npetals[a]);
	list_turn(s->petals[a], 0, s->npetals[a]);
}

static void matching_augment(struct blossoms *s, int a, int b)
{
	for (;;) {
		int next = s->outer[s->mate[a]];

		blossom_join(s, a, b);
		if (!next)
			return;
		blossom_join(s, next, s->outer[s->parent[next]]);
		a = s->outer[s->parent[next]];
		b = next;
	}
}

/* Where the ways from A and B to their roots meet, or 0. */
static int ways_meet(struct blossoms *s, int a, int b)
{
	s->now++;
	while (a || b) {
		int keep;

		if (a) {
			if (s->stamp[a] == s->now)
				return a;
			s->stamp[a] = s->now;
			a = s->outer[s->mate[a]];
			if (a)
				a = s->outer[s->parent[a]];
		}
		keep = a;
		a = b;
		b = keep;
	}
	return 0;
}

static void petals_collect(struct blossoms *s, int b, int from, int base)
{
	for (int x = from; x != base;) {
		int y = s->outer[s->mate[x]];

		s->petals[b][s->npetals[b]++] = x;
		s->petals[b][s->npetals[b]++] = y;
		vertex_enqueue(s, y);
		x = s->outer[s->parent[y]];
	}
}

static void blossom_shrink(struct blossoms *s, int a, int base, int c)
{
	int b = s->n + 1;

	while (b <= s->top && s->outer[b])
		b++;
	if (b > s->top)
		s->top++;
	s->dual[b] = 0;
	s->label[b] = EVEN;
	s->mate[b] = s->mate[base];
	s->petals[b][0] = base;
	s->npetals[b] = 1;
	petals_collect(s, b, a, base);
	list_turn(s->petals[b], 1, s->npetals[b]);
	petals_collect(s, b, c, base);
	outer_set(s, b, b);
	for (int x = 1; x <= s->top; x++)
		link_at(s, b, x)->weight = link_at(s, x, b)->weight = 0;
	memset(holder_at(s, b, 0), 0, (s->n + 1) * sizeof(int));
	for (int i = 0; i < s->npetals[b]; i++) {
		int petal = s->petals[b][i];

		for (int x = 1; x <= s->top; x++)
			if (link_at(s, petal, x)->weight > 0 &&
			    (link_at(s, b, x)->weight == 0 ||
			     link_slack(s, link_at(s, petal, x)) <
				     link_slack(s, link_at(s, b, x)))) {
				*link_at(s, b, x) = *link_at(s, petal, x);
				*link_at(s, x, b) = *link_at(s, x, petal);
			}
		for (int v = 1; v <= s->n; v++)
			if (*holder_at(s, petal, v))
				*holder_at(s, b, v) = petal;
	}
	near_find(s, b);
}

static void open_blossom(struct blossoms *s, int b)
{
	int petal, at;

	for (int i = 0; i < s->npetals[b]; i++)
		outer_set(s, s->petals[b][i], s->petals[b][i]);
	petal = *holder_at(s, b, link_at(s, b, s->parent[b])->from);
	at = petal_position(s, b, petal);
	for (int i = 0; i < at; i += 2) {
		int odd = s->petals[b][i], even = s->petals[b][i + 1];

		s->parent[odd] = link_at(s, even, odd)->from;
		s->label[odd] = ODD;
		s->label[even] = EVEN;
		s->near[odd] = 0;
		near_find(s, even);
		vertex_enqueue(s, even);
	}
	s->label[petal] = ODD;
	s->parent[petal] = s->parent[b];
	for (int i = at + 1; i < s->npetals[b]; i++) {
		s->label[s->petals[b][i]] = FREE;
		near_find(s, s->petals[b][i]);
	}
	s->outer[b] = 0;
}

/* A tight link from an even vertex: true if the matching grew. */
static bool link_tight(struct blossoms *s, const struct link *link)
{
	int a = s->outer[link->from], b = s->outer[link->to];

	if (s->label[b] == FREE) {
		int next = s->outer[s->mate[b]];

		s->parent[b] = link->from;
		s->label[b] = ODD;
		s->near[b] = s->near[next] = 0;
		s->label[next] = EVEN;
		vertex_enqueue(s, next);
	} else if (s->label[b] == EVEN) {
		int base = ways_meet(s, a, b);

		if (!base) {
			matching_augment(s, a, b);
			matching_augment(s, b, a);
			return true;
		}
		blossom_shrink(s, a, base, b);
	}
	return false;
}

static bool queue_scan(struct blossoms *s)
{
	while (s->head < s->tail) {
		int v = s->queue[s->head++];

		if (s->label[s->outer[v]] == ODD)
			continue;
		for (int w = 1; w <= s->n; w++) {
			struct link *link = link_at(s, v, w);

			if (link->weight <= 0 || s->outer[v] == s->outer[w])
				continue;
			if (link_slack(s, link) > 0)
				near_offer(s, v, s->outer[w]);
			else if (link_tight(s, link))
				return true;
		}
	}
	return false;
}

static int64_t change_find(struct blossoms *s)
{
	int64_t change = FAR;

	for (int x = 1; x <= s->top; x++) {
		int64_t here = FAR;

		if (s->outer[x] != x)
			continue;
		if (x > s->n && s->label[x] == ODD)
			here = s->dual[x] / 2;
		else if (s->near[x] && s->label[x] != ODD)
			here = link_slack(s, link_at(s, s->near[x], x)) /
			       (s->label[x] == EVEN ? 2 : 1);
		if (here < change)
			change = here;
	}
	return change;
}

/* False when a single vertex's dual reaches zero: it is best left alone. */
static bool change_apply(struct blossoms *s, int64_t change)
{
	for (int v = 1; v <= s->n; v++)
		if (s->label[s->outer[v]] == EVEN && s->dual[v] <= change)
			return false;
	for (int v = 1; v <= s->n; v++) {
		if (s->label[s->outer[v]] == EVEN)
			s->dual[v] -= change;
		else if (s->label[s->outer[v]] == ODD)
			s->dual[v] += change;
	}
	for (int b = s->n + 1; b <= s->top; b++) {
		if (s->outer[b] != b)
			continue;
		if (s->label[b] == EVEN)
			s->dual[b] += 2 * change;
		else if (s->label[b] == ODD)
			s->dual[b] -= 2 * change;
	}
	return true;
}

/* Finds one more pair; false when no heavier matching is left. */
static bool matching_grow(struct blossoms *s)
{
	s->head = s->tail = 0;
	for (int x = 1; x <= s->top; x++) {
		s->label[x] = FREE;
		s->near[x] = 0;
	}
	for (int x = 1; x <= s->top; x++)
		if (s->outer[x] == x && !s->mate[x]) {
			s->parent[x] = 0;
			s->label[x] = EVEN;
			vertex_enqueue(s, x);
		}
	if (s->head == s->tail)
		return false;
	for (;;) {
		if (queue_scan(s))
			return true;
		if (!change_apply(s, change_find(s)))
			return false;
		s->head = s->tail = 0;
		for (int x = 1; x <= s->top; x++)
			if (s->outer[x] == x && s->near[x] && s->outer[s->near[x]] != x &&
			    link_slack(s, link_at(s, s->near[x], x)) == 0 &&
			    link_tight(s, link_at(s, s->near[x], x)))
				return true;
		for (int b = s->n + 1; b <= s->top; b++)
			if (s->outer[b] == b && s->label[b] == ODD && s->dual[b] == 0)
				open_blossom(s, b);
	}
}

static void match_exactly(int n, const int64_t *weight, int *mate)
{
	struct blossoms s = { .n = n, .top = n, .size = n + n / 2 + 2 };
	int64_t most = 0;

	s.links = ocs_calloc((size_t)s.size * s.size, sizeof(*s.links));
	s.holder = ocs_calloc((size_t)s.size * (n + 1), sizeof(int));
	s.dual = ocs_calloc(s.size, sizeof(*s.dual));
	s.mate = ocs_calloc(7 * (size_t)s.size, sizeof(int));
	s.near = s.mate + s.size;
	s.outer = s.near + s.size;
	s.parent = s.outer + s.size;
	s.label = s.parent + s.size;
	s.stamp = s.label + s.size;
	s.npetals = s.stamp + s.size;
	s.petals = ocs_calloc(s.size, sizeof(*s.petals));
	/* a vertex enters once when its tree reaches it and once per blossom opened */
	s.queue = ocs_calloc((size_t)s.size * 8, sizeof(int));
	for (int b = n + 1; b < s.size; b++)
		s.petals[b] = ocs_calloc(n + 2, sizeof(int));
	for (int a = 1; a <= n; a++)
		for (int b = 1; b <= n; b++) {
			int64_t w = a == b ? 0 : weight[(size_t)(a - 1) * n + b - 1];

			*link_at(&s, a, b) = (struct link){ a, b, w };
			most = w > most ? w : most;
		}
	for (int v = 1; v <= n; v++) {
		s.outer[v] = v;
		*holder_at(&s, v, v) = v;
		s.dual[v] = most;
	}
	while (most > 0 && matching_grow(&s))
		;
	for (int v = 1; v <= n; v++)
		mate[v - 1] = s.mate[v] - 1;
	for (int b = n + 1; b < s.size; b++)
		free(s.petals[b]);
	free(s.petals);
	free(s.queue);
	free(s.dual);
	free(s.holder);
	free(s.links);
	free(s.mate);
}

struct pair {
	int a, b;
	int64_t weight;
};

static int link_compare(const void *a, const void *b)
{
	const struct pair *x = a, *y = b;

	if (x->weight != y->weight)
		return x->weight > y->weight ? -1 : 1;
	return x->a != y->a ? x->a - y->a : x->b - y->b;
}

/* Two pairs exchange partners, or one is given up for a single vertex's sake. */
static bool pairs_exchange(int n, const int64_t *weight, int *mate, int a, int c)
{
	int b = mate[a], d = mate[c];
	int64_t now = weight[(size_t)a * n + b] + (d < 0 ? 0 : weight[(size_t)c * n + d]);
	int64_t straight = weight[(size_t)a * n + c] + (d < 0 ? 0 : weight[(size_t)b * n + d]);

	if (straight <= now)
		return false;
	mate[a] = c;
	mate[c] = a;
	mate[b] = d;
	if (d >= 0)
		mate[d] = b;
	return true;
}

/* Heaviest first, then exchanges: at least half of the best, in O(n^2 log n). */
static void match_greedily(int n, const int64_t *weight, int *mate)
{
	struct pair *pairs;
	size_t count = 0;
	bool better = true;

	for (int a = 0; a < n; a++)
		for (int b = 0; b < a; b++)
			count += weight[(size_t)a * n + b] > 0;
	pairs = ocs_calloc(count + 1, sizeof(*pairs));
	count = 0;
	for (int a = 0; a < n; a++)
		for (int b = 0; b < a; b++)
			if (weight[(size_t)a * n + b] > 0)
				pairs[count++] = (struct pair){ a, b, weight[(size_t)a * n + b] };
	qsort(pairs, count, sizeof(*pairs), link_compare);
	for (int a = 0; a < n; a++)
		mate[a] = -1;
	for (size_t i = 0; i < count; i++)
		if (mate[pairs[i].a] < 0 && mate[pairs[i].b] < 0) {
			mate[pairs[i].a] = pairs[i].b;
			mate[pairs[i].b] = pairs[i].a;
		}
	free(pairs);
	for (int round = 0; better && round < ROUNDS; round++) {
		better = false;
		for (int a = 0; a < n; a++)
			for (int c = 0; mate[a] >= 0 && c < n; c++)
				if (c != a && c != mate[a])
					better |= pairs_exchange(n, weight, mate, a, c);
	}
	/* a pair that an exchange left without demand is no pair */
	for (int a = 0; a < n; a++)
		if (mate[a] >= 0 && weight[(size_t)a * n + mate[a]] <= 0) {
			mate[mate[a]] = -1;
			mate[a] = -1;
		}
}

void ocs_plan_match(int n, const int64_t *weight, int *mate)
{
	int *number = ocs_calloc(n + 1, sizeof(int)), *part = ocs_calloc(n + 1, sizeof(int));
	int count = 0;
	int64_t *small;

	/* vertices with an edge, so that sparse demands are fast */
	for (int a = 0; a < n; a++) {
		bool any = false;

		for (int b = 0; b < n && !any; b++)
			any = a != b && weight[(size_t)a * n + b] > 0;
		if (any)
			number[count++] = a;
		mate[a] = -1;
	}
	small = ocs_calloc((size_t)count * count + 1, sizeof(*small));
	for (int i = 0; i < count; i++)
		for (int j = 0; j < count; j++)
			if (i != j)
				small[(size_t)i * count + j] =
					weight[(size_t)number[i] * n + number[j]];
	if (count > OCS_PLAN_MATCH_EXACT)
		match_greedily(count, small, part);
	else if (count > 1)
		match_exactly(count, small, part);
	for (int i = 0; i < count; i++)
		mate[number[i]] = part[i] < 0 ? -1 : number[part[i]];
	free(small);
	free(part);
	free(number);
}
