/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Which cubes the unlike pieces of a candidate get.  Taking cubes in order, fullest first, and
 * keeping those that can be seated gives the cheapest set (a transversal matroid), however the
 * seats are changed on the way. */

#include "src/place/bits.h"
#include "src/place/box_search.h"

#include <limits.h>
#include <string.h>

enum { UNSEEN = -2, FIRST = -1 };

/* The uses of a candidate while cubes are seated: arrays in fit->tally. */
struct seats {
	struct ocs_box_search *fit;
	const struct ocs_class_use *uses;
	int nuses;
	int *need, *have;  /* pieces; cubes that have one */
	int *from, *queue; /* of a search */
	int *closed;	   /* 1: it will not have another seat */
	uint64_t *own;	   /* per use: its cubes, fit->live words each */
};

static const uint64_t *use_set(const struct seats *s, int use)
{
	return ocs_cube_sets_class(s->fit, s->uses[use].class);
}

static void seats_begin(struct seats *s, struct ocs_box_search *fit, const struct ocs_candidate *c,
			const struct ocs_class_use *uses)
{
	int *tally = fit->tally, u;

	*s = (struct seats){ .fit = fit,
			     .uses = uses,
			     .nuses = c->nuses,
			     .need = tally,
			     .have = tally + c->nuses,
			     .from = tally + 2 * c->nuses,
			     .queue = tally + 3 * c->nuses,
			     .closed = tally + 4 * c->nuses,
			     .own = fit->own };
	for (u = 0; u < c->nuses; u++) {
		s->need[u] = uses[u].count;
		s->have[u] = s->closed[u] = 0;
	}
	memset(s->own, 0, (size_t)(c->nuses * fit->live) * sizeof(*s->own));
	fit->nseated = 0;
}

/* The cubes that may be seated: the first of each class, as more than there are pieces never
 * help it. */
static void members_collect(struct ocs_box_search *fit, const struct ocs_candidate *c,
			    const struct ocs_class_use *uses)
{
	uint64_t any = 0;
	int u, w, left;

	if (fit->live == 1) {
		for (u = 0; u < c->nuses; u++)
			any |= *ocs_cube_sets_class(fit, uses[u].class);
		fit->members[0] = any;
		return;
	}
	memset(fit->members, 0, (size_t)fit->live * sizeof(*fit->members));
	for (u = 0; u < c->nuses; u++) {
		const uint64_t *set = ocs_cube_sets_class(fit, uses[u].class);

		for (w = 0, left = c->cubes; w < fit->live && left > 0; w++) {
			fit->members[w] |= set[w];
			left -= ocs_bits_count(set[w]);
		}
	}
}

/* Whether the fullest COUNT of the members have fewer free XPUs than LIMIT; false, too, if
 * there are not so many. */
static bool members_below(const struct ocs_box_search *fit, int count, long limit)
{
	int w;

	for (w = 0; w < fit->live && count; w++) {
		uint64_t bits = fit->members[w];

		for (; bits && count; bits &= bits - 1, count--)
			limit -= fit->count[w * 64 + __builtin_ctzll(bits)];
	}
	return !count && limit > 0;
}

/* A cube of use U that use V could have, too; -1: there is none. */
static int cube_between(const struct seats *s, int u, int v)
{
	const uint64_t *own = s->own + u * s->fit->live, *set = use_set(s, v);
	int w;

	for (w = 0; w < s->fit->live; w++) {
		if (own[w] & set[w])
			return w * 64 + __builtin_ctzll(own[w] & set[w]);
	}
	return -1;
}

/* Use LAST has a seat left: it takes a cube of the one before, which does the same, and so
 * on; the first takes cube I. */
static void seats_move(struct seats *s, int last, int i)
{
	int u = last, cube;

	for (; s->from[u] != FIRST; u = s->from[u]) {
		cube = cube_between(s, s->from[u], u);
		ocs_bits_drop(s->own + s->from[u] * s->fit->live, cube);
		ocs_bits_add(s->own + u * s->fit->live, cube);
	}
	ocs_bits_add(s->own + u * s->fit->live, i);
	s->have[last]++;
}

/* Seats loaded cube I, moving others if it must.  If it cannot, FROM is UNSEEN for the uses
 * that were not reached. */
static bool cube_seat(struct seats *s, int i)
{
	int head = 0, tail = 0, u, v;

	for (u = 0; u < s->nuses; u++) {
		s->from[u] = UNSEEN;
		if (s->closed[u] || !ocs_bits_has(use_set(s, u), i))
			continue;
		s->from[u] = FIRST;
		if (s->have[u] < s->need[u]) {
			seats_move(s, u, i);
			return true;
		}
		s->queue[tail++] = u;
	}
	while (head < tail) {
		u = s->queue[head++];
		for (v = 0; v < s->nuses; v++) {
			if (s->closed[v] || s->from[v] != UNSEEN || cube_between(s, u, v) < 0)
				continue;
			s->from[v] = u;
			if (s->have[v] < s->need[v]) {
				seats_move(s, v, i);
				return true;
			}
			s->queue[tail++] = v;
		}
	}
	return false;
}

/* After a search without a seat: its uses will never have one again, so cubes of no other use
 * need not be asked. */
static void uses_close(struct seats *s)
{
	struct ocs_box_search *fit = s->fit;
	int u, w;

	for (u = 0; u < s->nuses; u++)
		s->closed[u] |= s->from[u] != UNSEEN;
	for (w = 0; w < fit->live; w++) {
		uint64_t open = 0;

		for (u = 0; u < s->nuses; u++)
			open |= s->closed[u] ? 0 : use_set(s, u)[w];
		fit->members[w] &= open;
	}
}

long ocs_seats_cost(struct ocs_box_search *fit, const struct ocs_candidate *c,
		    const struct ocs_class_use *uses, long limit)
{
	struct seats s;
	long cost = 0;
	int w;

	members_collect(fit, c, uses);
	if (limit < LONG_MAX && !members_below(fit, c->cubes, limit))
		return -1;
	seats_begin(&s, fit, c, uses);
	for (w = 0; w < fit->live; w++) {
		uint64_t left = fit->members[w];

		while (left && fit->nseated < c->cubes) {
			int i = w * 64 + __builtin_ctzll(left);

			left &= left - 1;
			if (cube_seat(&s, i)) {
				fit->seated[fit->nseated++] = i;
				cost += fit->count[i];
			} else {
				uses_close(&s);
				left &= fit->members[w];
			}
		}
	}
	return fit->nseated == c->cubes ? cost : -1;
}

/* Gives loaded cube I to one of the uses, moving others of the N first that are seated if it
 * must (augmenting paths).  Each cube that can be seated is, so that the order of the uses
 * alone says who gets which. */
static bool cube_own(struct seats *s, int i, int n)
{
	struct ocs_box_search *fit = s->fit;
	int u, j;

	for (u = 0; u < s->nuses; u++) {
		if (s->closed[u] || !ocs_bits_has(use_set(s, u), i))
			continue;
		s->closed[u] = 1;
		if (s->have[u] < s->need[u]) {
			s->have[u]++;
			fit->owner[i] = u;
			return true;
		}
		for (j = 0; j < n; j++) {
			int other = fit->seated[j];

			if (fit->owner[other] == u && cube_own(s, other, n)) {
				fit->owner[i] = u;
				return true;
			}
		}
	}
	return false;
}

void ocs_seats_assign(struct ocs_box_search *fit, const struct ocs_candidate *c,
		      const struct ocs_class_use *uses)
{
	struct seats s;
	int n, i;

	ocs_seats_cost(fit, c, uses, LONG_MAX);
	n = fit->nseated;
	seats_begin(&s, fit, c, uses);
	for (i = 0; i < n; i++) {
		memset(s.closed, 0, (size_t)s.nuses * sizeof(int));
		cube_own(&s, fit->seated[i], i);
	}
	fit->nseated = n;
}
