/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/place/bits.h"
#include "src/place/ring_grow.h"

#include <stdlib.h>
#include <string.h>

#include "src/util/text.h"

#define SHEETS_MAX (64 * OCS_SHEET_WORDS) /* fullest cubes first; more would not change much */
#define WORK_MAX 1000			  /* edges looked at in one search */
#define SEEDS_MAX 6			  /* rings begun for one way */
#define WINDOW 6			  /* edges that an insertion makes or changes, and a few */
enum { LEVEL_TOUCHED, LEVEL_INSIDE, LEVEL_USED, LEVEL_BROKEN, LEVEL_ALL, LEVELS };

int ocs_thread_near(const struct ocs_section *s, int unit, int d)
{
	int c = ocs_grow_coord(s, unit, d / 2), by = ocs_grow_stride(s, d / 2),
	    edge = s->edge[d / 2];

	if (d % 2)
		return c ? 2 * (unit - by) : 2 * (unit + (edge - 1) * by) + 1;
	return c + 1 < edge ? 2 * (unit + by) : 2 * (unit - (edge - 1) * by) + 1;
}

static void tables_make(struct ocs_thread *t)
{
	const struct ocs_section *s = t->section;
	int unit, other, d, a;

	for (unit = 0; unit < t->units; unit++) {
		int cell = 0;

		for (d = 0; d < DIRS; d++)
			t->near[unit * DIRS + d] = ocs_thread_near(s, unit, d);
		for (a = 0; a < OCS_AXES; a++)
			cell = cell * (s->edge[a] / s->tile[a]) +
			       ocs_grow_coord(s, unit, a) / s->tile[a];
		t->cell_of[unit] = cell;
	}
	for (unit = 0; unit < t->units; unit++) {
		ocs_bits_add(t->units_all, unit);
		if ((ocs_grow_coord(s, unit, 0) + ocs_grow_coord(s, unit, 1) +
		     ocs_grow_coord(s, unit, 2)) %
			    2 &&
		    unit < 64)
			t->dark |= 1ULL << unit;
		for (a = 0; a < OCS_AXES; a++)
			t->layer[(a * OCS_EDGE_MAX + ocs_grow_coord(s, unit, a)) * s->words +
				 unit / 64] |= 1ULL << unit % 64;
		for (other = t->units - 1; other >= 0; other--) {
			if (t->cell_of[unit] != t->cell_of[other])
				continue;
			t->tile[unit * s->words + other / 64] |= 1ULL << other % 64;
			t->first_of[unit] = other;
		}
	}
}

struct ocs_thread *ocs_thread_create(const struct ocs_section *section)
{
	struct ocs_thread *t = ocs_calloc(1, sizeof(*t));
	size_t units = (size_t)section->cube_xpus, places;

	t->section = section;
	t->units = section->cube_xpus;
	t->sheets_max = section->ncubes < SHEETS_MAX ? section->ncubes : SHEETS_MAX;
	t->set_words = (t->sheets_max + 63) / 64;
	places = units * (size_t)t->sheets_max;
	t->near = ocs_calloc(units * DIRS, sizeof(int));
	t->cell_of = ocs_calloc(units, sizeof(int));
	t->tile = ocs_calloc(units * (size_t)section->words, sizeof(uint64_t));
	t->layer = ocs_calloc((size_t)(OCS_AXES * OCS_EDGE_MAX * section->words), sizeof(uint64_t));
	t->has = ocs_calloc(units * (size_t)t->set_words, sizeof(uint64_t));
	t->base = ocs_calloc(units * (size_t)t->set_words, sizeof(uint64_t));
	t->used = ocs_calloc(3 * (size_t)t->set_words, sizeof(uint64_t));
	t->mask = ocs_calloc((size_t)t->sheets_max * (size_t)section->words, sizeof(uint64_t));
	t->stacks = ocs_calloc((size_t)t->sheets_max, sizeof(int));
	t->whole = ocs_calloc((size_t)t->sheets_max, sizeof(bool));
	t->next = ocs_calloc(places, sizeof(int));
	t->prev = ocs_calloc(places, sizeof(int));
	t->dir = ocs_calloc(places, 1);
	t->touched = ocs_calloc(places, 1);
	t->ring = ocs_calloc(places, sizeof(*t->ring));
	t->cubes = ocs_calloc((size_t)t->sheets_max, sizeof(int));
	t->order = ocs_calloc((size_t)t->sheets_max, sizeof(int));
	t->places = ocs_calloc((size_t)t->set_words * 64, sizeof(int));
	t->tally = ocs_calloc(units + 2, sizeof(int));
	t->reach = ocs_calloc((size_t)t->sheets_max, sizeof(int));
	t->column = ocs_calloc((size_t)t->set_words, sizeof(uint64_t));
	t->ears = ocs_calloc(places / 2 + 1, sizeof(*t->ears));
	t->first_of = ocs_calloc(units, sizeof(int));
	t->units_all = ocs_calloc((size_t)section->words, sizeof(uint64_t));
	t->seen = ocs_calloc(units, sizeof(bool));
	t->free_words = t->set_words + 1;
	t->free_at = ocs_calloc(units * (size_t)t->free_words, sizeof(uint64_t));
	t->all = ocs_calloc((size_t)t->free_words, sizeof(uint64_t));
	t->columns = ocs_calloc(OCS_AXES * units, sizeof(*t->columns));
	t->sound = ocs_calloc((size_t)t->sheets_max * (size_t)section->words, sizeof(uint64_t));
	t->avail = ocs_calloc((size_t)t->sheets_max * (size_t)section->words, sizeof(uint64_t));
	t->begun = ocs_calloc((size_t)t->sheets_max * (size_t)section->words, sizeof(uint64_t));
	tables_make(t);
	return t;
}

void ocs_thread_destroy(struct ocs_thread *t)
{
	if (!t)
		return;
	free(t->near);
	free(t->cell_of);
	free(t->tile);
	free(t->layer);
	free(t->has);
	free(t->base);
	free(t->used);
	free(t->mask);
	free(t->stacks);
	free(t->whole);
	free(t->next);
	free(t->prev);
	free(t->dir);
	free(t->touched);
	free(t->ring);
	free(t->cubes);
	free(t->order);
	free(t->places);
	free(t->tally);
	free(t->reach);
	free(t->column);
	free(t->ears);
	free(t->first_of);
	free(t->units_all);
	free(t->seen);
	free(t->free_at);
	free(t->all);
	free(t->columns);
	free(t->sound);
	free(t->avail);
	free(t->begun);
	free(t);
}

bool ocs_grow_sound(const struct ocs_grow *g, int sheet, int unit, int dir)
{
	const struct ocs_section *s = g->t->section;
	int layer, i, a;

	if (!g->fit->blocked)
		return true;
	for (layer = 0; layer < g->way->layers; layer++) {
		int at = unit + (g->way->axis < 0 ? 0 : layer * ocs_grow_stride(s, g->way->axis)),
		    pos[2];

		for (a = 0, i = 0; a < OCS_AXES; a++) {
			if (a != dir / 2)
				pos[i++] = ocs_grow_coord(s, at, a);
		}
		for (i = 0; i < g->way->stack; i++) {
			int cube = g->fit->cube[g->t->stacks[sheet * g->way->stack + i]];

			if (ocs_occupancy_port_blocked(g->fit->blocked, cube, dir / 2, pos[0],
						       pos[1], dir % 2 ? OCS_MINUS : OCS_PLUS))
				return false;
		}
	}
	return true;
}

/* First sheet among those that LEVEL allows where both units are free. */
static int sheet_with(const struct ocs_thread *t, int a, int b, int level)
{
	const uint64_t *allowed = t->used + (level - LEVEL_USED) * t->set_words;
	int w;

	for (w = 0; w < t->set_words; w++) {
		uint64_t both =
			t->has[a * t->set_words + w] & t->has[b * t->set_words + w] & allowed[w];

		if (both)
			return w * 64 + __builtin_ctzll(both);
	}
	return -1;
}

/* Whether two more places stay within the nodes, and within those begun at the
 * lowest level. */
static bool nodes_allow(const struct ocs_grow *g, int sa, int a, int sb, int b, int level)
{
	int more = ocs_grow_fresh(g, sa, a);

	if (ocs_grow_fresh(g, sb, b) && (sa != sb || g->t->cell_of[a] != g->t->cell_of[b] || !more))
		more++;
	return g->cells + more <= (level == LEVEL_TOUCHED ? g->cells : g->cells_max);
}

/* Appends UNIT of SHEET after place AFTER (-1: it is the first), reached by DIR; returns its
 * place. */
static int place_append(struct ocs_grow *g, int after, int dir, int sheet, int unit)
{
	struct ocs_thread *t = g->t;
	int id = ocs_grow_id_of(t, sheet, unit);

	t->has[unit * t->set_words + sheet / 64] &= ~(1ULL << sheet % 64);
	t->used[sheet / 64] |= 1ULL << sheet % 64;
	g->cells += ocs_grow_fresh(g, sheet, unit);
	t->touched[ocs_grow_id_of(t, sheet, t->cell_of[unit])] = 1;
	g->length++;
	if (after < 0) {
		t->next[id] = t->prev[id] = g->head = id;
		return id;
	}
	t->next[id] = t->next[after];
	t->prev[id] = after;
	t->prev[t->next[id]] = id;
	t->next[after] = id;
	t->dir[id] = t->dir[after];
	t->dir[after] = (unsigned char)dir;
	return id;
}

/* Replaces a circuit of the ring by a walk through a whole line of another sheet. */
static bool line_insert(struct ocs_grow *g, int at, int level)
{
	struct ocs_thread *t = g->t;
	int d = t->dir[at], edge = t->section->edge[d / 2], by = ocs_grow_stride(t->section, d / 2),
	    w, i;
	int unit = t->near[at % t->units * DIRS + d] / 2, sheet = -1, more = 0;
	const uint64_t *allowed;

	if (level < LEVEL_USED || g->length + edge > g->target)
		return false;
	allowed = t->used + (level - LEVEL_USED) * t->set_words;
	by = d % 2 ? -by : by;
	for (w = 0; w < t->set_words && sheet < 0; w++) {
		uint64_t all = allowed[w];

		for (i = 0; i < edge; i++)
			all &= t->has[(unit + i * by) * t->set_words + w];
		if (all)
			sheet = w * 64 + __builtin_ctzll(all);
	}
	for (i = 0; i < edge && sheet >= 0; i++)
		more += ocs_grow_fresh(g, sheet, unit + i * by) &&
			(!i || t->cell_of[unit + i * by] != t->cell_of[unit + (i - 1) * by]);
	if (sheet < 0 || g->cells + more > g->cells_max || !ocs_grow_sound(g, sheet, unit, d ^ 1) ||
	    !ocs_grow_sound(g, sheet, unit + (edge - 1) * by, d))
		return false;
	for (i = 0; i < edge; i++)
		at = place_append(g, at, d, sheet, unit + i * by);
	return true;
}

/* Makes the ring longer at the edge that leaves AT, if that can be done. */
static bool extend(struct ocs_grow *g, int at, int level)
{
	struct ocs_thread *t = g->t;
	int to = t->next[at], d = t->dir[at], before = t->dir[t->prev[at]] ^ 1, after = t->dir[to],
	    p;
	bool crossing = t->near[at % t->units * DIRS + d] & 1;

	for (p = 0; p < DIRS && g->length + 2 <= g->target; p++) {
		int a = t->near[at % t->units * DIRS + p], b = t->near[to % t->units * DIRS + p];
		int sa = at / t->units, sb = to / t->units, id;

		/* a detour in a direction whose link is in use would take it twice */
		if (p / 2 == d / 2 || p / 2 == g->way->axis || p == before || p == after)
			continue;
		if (a & 1) {
			if (crossing || level < LEVEL_USED)
				continue;
			sa = sb = sheet_with(t, a / 2, b / 2, level);
			if (sa < 0 || !ocs_grow_sound(g, at / t->units, at % t->units, p) ||
			    !ocs_grow_sound(g, at / t->units, to % t->units, p) ||
			    !ocs_grow_sound(g, sa, a / 2, p ^ 1) ||
			    !ocs_grow_sound(g, sa, b / 2, p ^ 1))
				continue;
		} else {
			if (!ocs_grow_has(t, a / 2, sa) || !ocs_grow_has(t, b / 2, sb))
				continue;
			if (crossing && (!ocs_grow_sound(g, sa, a / 2, d) ||
					 !ocs_grow_sound(g, sb, b / 2, d ^ 1)))
				continue;
		}
		if (!nodes_allow(g, sa, a / 2, sb, b / 2, level))
			continue;
		id = place_append(g, at, p, sa, a / 2);
		id = place_append(g, id, d, sb, b / 2);
		t->dir[id] = (unsigned char)(p ^ 1);
		return true;
	}
	return crossing && line_insert(g, at, level);
}

/* Grows the ring to its length: nodes begun first, then places of the same cube, of
 * cubes in use, of broken cubes, of whole ones. */
static bool grow(struct ocs_grow *g)
{
	int lowest = g->t->section->cube_nodes == g->t->units ? LEVEL_INSIDE : LEVEL_TOUCHED;
	int level = lowest, top = lowest, left = g->length, at = g->head;

	while (g->length < g->target) {
		if (!left) {
			if (++level == LEVELS)
				return false;
			if (level > top)
				top = level;
			left = level == top ? g->length : WINDOW;
		}
		if (++g->t->work > WORK_MAX)
			return false;
		if (extend(g, at, level)) {
			/* only the new edges can do what failed before */
			level = lowest;
			left = level == top ? g->length : WINDOW;
			continue;
		}
		at = g->t->next[at];
		left--;
	}
	return g->cells == g->cells_max;
}

/* Back to no ring, all places of the sheets free. */
static void ring_reset(struct ocs_grow *g)
{
	struct ocs_thread *t = g->t;
	size_t words = (size_t)t->set_words;

	memcpy(t->has, t->base, (size_t)t->units * words * sizeof(*t->has));
	memset(t->used, 0, words * sizeof(*t->used));
	memset(t->touched, 0, (size_t)(t->nsheets * t->units));
	g->length = g->cells = 0;
}

/* A ring of four around UNIT of SHEET, by steps P and Q. */
static bool square(struct ocs_grow *g, int sheet, int unit, int p, int q)
{
	struct ocs_thread *t = g->t;
	int to = t->near[unit * DIRS + p], a = t->near[unit * DIRS + q], b, other = sheet, at;

	if ((to & 1) || !ocs_grow_has(t, to / 2, sheet))
		return false;
	b = t->near[to / 2 * DIRS + q];
	if (a & 1) {
		other = sheet_with(t, a / 2, b / 2, LEVEL_ALL);
		/* a side of two is crossed and walked: one sheet would be used twice */
		if (other < 0 || (other == sheet && t->section->edge[q / 2] < 3) ||
		    !ocs_grow_sound(g, sheet, unit, q) || !ocs_grow_sound(g, sheet, to / 2, q) ||
		    !ocs_grow_sound(g, other, a / 2, q ^ 1) ||
		    !ocs_grow_sound(g, other, b / 2, q ^ 1))
			return false;
	} else if (!ocs_grow_has(t, a / 2, sheet) || !ocs_grow_has(t, b / 2, sheet)) {
		return false;
	}
	at = place_append(g, -1, 0, sheet, unit);
	at = place_append(g, at, p, sheet, to / 2);
	at = place_append(g, at, q, other, b / 2);
	at = place_append(g, at, p ^ 1, other, a / 2);
	t->dir[at] = (unsigned char)(q ^ 1);
	return true;
}

/* The first ring of four that begins in SHEET. */
static bool seed(struct ocs_grow *g, int sheet)
{
	const struct ocs_section *s = g->t->section;
	int unit, p, q;

	for (unit = 0; unit < g->t->units; unit++) {
		if (!ocs_grow_has(g->t, unit, sheet))
			continue;
		for (p = 0; p < DIRS; p += 2) {
			for (q = 0; q < DIRS; q++) {
				if (p / 2 == q / 2 || p / 2 == g->way->axis ||
				    q / 2 == g->way->axis || s->edge[q / 2] < 2)
					continue;
				if (square(g, sheet, unit, p, q))
					return true;
			}
		}
	}
	return false;
}

void ocs_grow_units(const struct ocs_grow *g, int cube, uint64_t *mask)
{
	const struct ocs_section *s = g->t->section;
	const uint64_t *free_words = g->fit->words + cube * s->words;
	int axis = g->way->axis, layer, w;

	memcpy(mask, free_words, (size_t)s->words * sizeof(*mask));
	if (axis < 0)
		return;
	for (w = 0; w < s->words; w++)
		mask[w] &= g->t->layer[(axis * OCS_EDGE_MAX + g->way->offset) * s->words + w];
	for (layer = 1; layer < g->way->layers; layer++) {
		for (w = 0; w < s->words; w++)
			mask[w] &= ocs_bits_down(free_words, s->words, w,
						 layer * ocs_grow_stride(s, axis));
	}
}

static int alike(const struct ocs_thread *t, const uint64_t *a, const uint64_t *b)
{
	int w, n = 0;

	for (w = 0; w < t->section->words; w++)
		n += ocs_bits_count(a[w] & b[w]);
	return n;
}

void ocs_grow_stacks(struct ocs_grow *g, int from, int n)
{
	struct ocs_thread *t = g->t;
	int words = t->section->words, stack = g->way->stack, i, j, k, w;
	uint64_t swap;

	/* each stack begins with the fullest cube left and takes those that have most in common
	 * with it */
	for (i = 0; i < n; i++) {
		t->stacks[i] = from + i;
		ocs_grow_units(g, from + i, t->mask + i * words);
	}
	for (i = 0; stack > 1 && i + stack <= n; i += stack) {
		uint64_t *first = t->mask + i * words;

		for (k = 1; k < stack; k++) {
			int best = i + k, most = -1;

			for (j = i + k; j < n; j++) {
				int common = alike(t, first, t->mask + j * words);

				if (common > most) {
					most = common;
					best = j;
				}
			}
			j = t->stacks[best];
			t->stacks[best] = t->stacks[i + k];
			t->stacks[i + k] = j;
			for (w = 0; w < words; w++) {
				swap = t->mask[best * words + w];
				t->mask[best * words + w] = t->mask[(i + k) * words + w];
				t->mask[(i + k) * words + w] = swap;
				first[w] &= swap;
			}
		}
	}
}

/* Makes the sheets of the way; returns the places they have. */
static int sheets_make(struct ocs_grow *g)
{
	struct ocs_thread *t = g->t;
	int words = t->section->words, stack = g->way->stack, total = 0, n, i, k, w;

	n = g->fit->n < t->sheets_max ? g->fit->n : t->sheets_max;
	ocs_grow_stacks(g, 0, n);
	t->nsheets = n / stack;
	memset(t->base, 0, (size_t)(t->units * t->set_words) * sizeof(*t->base));
	memset(t->used, 0, 3 * (size_t)t->set_words * sizeof(*t->used));
	for (i = 0; i < t->nsheets; i++) {
		bool whole = false;

		for (k = 0; k < stack; k++)
			whole |= g->fit->count[t->stacks[i * stack + k]] == t->units;
		t->whole[i] = whole;
		t->used[(whole ? 2 : 1) * t->set_words + i / 64] |= 1ULL << i % 64;
		t->used[2 * t->set_words + i / 64] |= 1ULL << i % 64;
		for (w = 0; w < words; w++) {
			uint64_t left = t->mask[i * stack * words + w];

			for (; left; left &= left - 1) {
				int unit = w * 64 + __builtin_ctzll(left);

				if (g->way->closed &&
				    (!ocs_grow_sound(g, i, unit, 2 * g->way->axis) ||
				     !ocs_grow_sound(g, i, unit, 2 * g->way->axis + 1)))
					continue;
				t->base[unit * t->set_words + i / 64] |= 1ULL << i % 64;
				total++;
			}
		}
	}
	return total;
}

void ocs_grow_answer(struct ocs_grow *g)
{
	struct ocs_thread *t = g->t;
	int *number = t->prev, at = g->head, i, k, stack = g->way->stack;
	int first = -t->units, sheet = 0; /* of the sheet at hand */

	t->way = *g->way;
	t->extent = g->target;
	for (i = 0; i < g->target; i++, at = t->next[at]) {
		if (at < first || at >= first + t->units) {
			sheet = at / t->units;
			first = sheet * t->units;
		}
		t->ring[i].sheet = sheet;
		t->ring[i].unit = at - first;
		t->ring[i].dir = t->dir[at];
	}
	for (i = 0; i < t->nsheets; i++)
		number[i] = -1;
	for (i = t->nused = 0; i < g->target; i++) {
		sheet = t->ring[i].sheet;
		if (number[sheet] < 0) {
			number[sheet] = t->nused++;
			for (k = 0; k < stack; k++) {
				int cube = t->stacks[sheet * stack + k];

				t->cubes[number[sheet] * stack + k] = g->fit->cube[cube];
			}
		}
		t->ring[i].sheet = number[sheet];
	}
}

int ocs_grow_cell_nodes(const struct ocs_section *s, const struct ocs_way *way)
{
	int tile = way->axis < 0 ? 1 : s->tile[way->axis];

	return way->axis < 0 ? 1 :
			       way->stack * ((way->offset + way->layers - 1) / tile -
					     way->offset / tile + 1);
}

bool ocs_thread_search(struct ocs_thread *t, const struct ocs_shape *shape, int nodes,
		       struct ocs_fit *fit)
{
	struct ocs_way way;
	int n, sheet, seeds;

	t->work = 0;
	t->spent = false;
	for (n = 0; ocs_way_get(t->section, shape, n, &way); n++) {
		struct ocs_grow g = { .t = t,
				      .way = &way,
				      .fit = fit,
				      .target = shape->extent[way.ring],
				      .cells_max = nodes / ocs_grow_cell_nodes(t->section, &way) };

		if (nodes % ocs_grow_cell_nodes(t->section, &way) || sheets_make(&g) < g.target)
			continue;
		for (sheet = 0, seeds = 0; sheet < t->nsheets && seeds < SEEDS_MAX; sheet++) {
			ring_reset(&g);
			if (!seed(&g, sheet))
				continue;
			seeds++;
			if (g.cells <= g.cells_max && grow(&g)) {
				ocs_grow_answer(&g);
				return true;
			}
			if (t->work > WORK_MAX) {
				t->spent = true;
				return false;
			}
		}
	}
	return false;
}

void ocs_thread_narrow(const struct ocs_thread *t, struct ocs_fit *fit)
{
	const struct ocs_section *s = t->section;
	int by = t->way.axis < 0 ? 0 : ocs_grow_stride(s, t->way.axis), stack = t->way.stack, i, k,
	    w, n = 0;
	int total = t->nused * stack, layer;

	memset(fit->members, 0, (size_t)fit->set_words * sizeof(*fit->members));
	for (i = 0; i < total; i++)
		ocs_bits_add(fit->members, t->cubes[i]);
	for (w = 0; w < fit->set_words; w++) {
		uint64_t left = fit->members[w];

		for (; left; left &= left - 1) {
			fit->seated[n] = w * 64 + __builtin_ctzll(left);
			fit->by_cube[fit->seated[n]] = n;
			n++;
		}
	}
	memset(fit->narrowed, 0, (size_t)n * (size_t)s->words * sizeof(uint64_t));
	for (i = 0; i < t->extent; i++) {
		const int *cube = t->cubes + t->ring[i].sheet * stack;

		for (k = 0; k < stack; k++) {
			uint64_t *words = fit->narrowed + fit->by_cube[cube[k]] * s->words;

			for (layer = 0; layer < t->way.layers; layer++) {
				const uint64_t *tile =
					t->tile + (t->ring[i].unit + layer * by) * s->words;

				for (w = 0; w < s->words; w++)
					words[w] |= tile[w];
			}
		}
	}
	ocs_fit_load_cubes(fit, fit->narrowed, fit->seated, n);
}
