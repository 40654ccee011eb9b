/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Rings made without a search.  The spine is one column of a cube, from face to face, in as
 * many cubes as it takes: circuits close it to a ring whatever cubes these are.  In each cube
 * the ring then takes what is free beside it, two neighbours at a time, in an order that is
 * fixed.  So a ring that was made once is made again where nothing but its own places is free. */

#include "src/place/grow.h"

#include <string.h>

#define WORK_MAX 2000L		/* edges looked at in one decision: these, and more for a long ring */
#define WORK_EACH 8
#define TRIES_MAX 4		/* columns that are built for one way, twice each */

struct spine {
	struct ocs_grow g;
	int axis, by, edge;	/* of the column */
	int base;		/* its first unit */
	int cells;		/* nodes that it touches in a sheet */
	int direction[DIRS];	/* in which it is made longer, in this order */
	int most;		/* sheets */
	bool whole;		/* wholly free cubes, too */
	long work_max;
	int sheets;		/* in the ring */
	int left;		/* places free in the sheet at hand */
	int cell_places;	/* of a node's cross-section */
	int tail;		/* last place of the spine */
	int ears;		/* taken: g.t->ears */
};

/* A column with as many sheets as would do if all their places were in reach. */
struct column {
	int axis, base, sheets;
};

/* The sheets where the column is free and can be closed, as a set in t->column. */
static void column_sheets(struct spine *s)
{
	struct ocs_thread *t = s->g.t;
	int i, w;

	for (w = 0; w < t->set_words; w++)
		t->column[w] = t->base[s->base * t->set_words + w] &
			       t->used[(s->whole ? 2 : 1) * t->set_words + w];
	for (i = 1; i < s->edge; i++) {
		for (w = 0; w < t->set_words; w++)
			t->column[w] &= t->base[(s->base + i * s->by) * t->set_words + w];
	}
	for (w = 0; w < t->set_words && s->g.fit->blocked; w++) {
		uint64_t left = t->column[w];

		for (; left; left &= left - 1) {
			int sheet = w * 64 + __builtin_ctzll(left);

			if (!ocs_grow_sound(&s->g, sheet, s->base, 2 * s->axis + 1) ||
			    !ocs_grow_sound(&s->g, sheet, s->base + (s->edge - 1) * s->by, 2 * s->axis))
				t->column[w] &= ~(1ULL << sheet % 64);
		}
	}
}

static bool in_column(const struct ocs_thread *t, int sheet)
{
	return t->column[sheet / 64] >> sheet % 64 & 1;
}

/* Fewest sheets of the column that have places enough; 0: more than are allowed. */
static int sheets_least(struct spine *s)
{
	struct ocs_thread *t = s->g.t;
	int left = s->g.target, n = 0, i;

	column_sheets(s);
	for (i = 0; i < t->nsheets && n < s->most && left > 0; i++) {
		if (!in_column(t, t->order[i]))
			continue;
		left -= t->places[t->order[i]];
		n++;
	}
	return left > 0 ? 0 : n;
}

/* Sheets with the most places first, like ones as they come. */
static void sheets_sort(struct ocs_thread *t)
{
	int *start = t->tally, i;

	memset(start, 0, ((size_t)t->units + 2) * sizeof(*start));
	for (i = 0; i < t->nsheets; i++)
		start[t->units - t->places[i] + 1]++;
	for (i = 1; i <= t->units; i++)
		start[i + 1] += start[i];
	for (i = 0; i < t->nsheets; i++)
		t->order[start[t->units - t->places[i]]++] = i;
}

/* How many places of SHEET a ring through the column can take at most: those that hang
 * together with it, as many of one colour of the chessboard as of the other. */
static int places_near(const struct spine *s, int sheet)
{
	const struct ocs_thread *t = s->g.t;
	uint64_t mask = t->mask[sheet * s->g.way->stack], near = 0, next;
	int i, axis, dark;

	if (t->section->words > 1)
		return t->places[sheet];
	for (i = 0; i < s->edge; i++)
		near |= 1ULL << (s->base + i * s->by);
	for (next = near;; near = next) {
		for (axis = 0; axis < OCS_AXES; axis++) {
			const uint64_t *layer = t->layer + axis * OCS_EDGE_MAX;
			int by = ocs_grow_stride(t->section, axis);

			next |= (next & ~layer[t->section->edge[axis] - 1]) << by |
				(next & ~layer[0]) >> by;
		}
		next &= mask;
		if (next == near)
			break;
	}
	dark = __builtin_popcountll(near & t->dark);
	i = __builtin_popcountll(near) - dark;
	return s->edge % 2 ? dark + i : 2 * (dark < i ? dark : i);
}

/* Whether the column's sheets can give enough, as far as a count tells. */
static bool promising(const struct spine *s)
{
	const struct ocs_thread *t = s->g.t;
	int left = s->g.target, n = 0, i;

	for (i = 0; i < t->nsheets && n < s->most && left > 0; i++) {
		if (!in_column(t, t->order[i]))
			continue;
		left -= places_near(s, t->order[i]);
		n++;
	}
	return left <= 0;
}

/* Puts two places of SHEET between AT and the next one; BEGIN: nodes may be begun. */
static bool ear_add(struct spine *s, int sheet, int at, bool begin)
{
	struct ocs_thread *t = s->g.t;
	int first = sheet * t->units, d = t->dir[at], i, p, id;
	const int *from = t->near + (at - first) * DIRS, *to = t->near + (t->next[at] - first) * DIRS;

	t->work++;
	for (i = 0; i < DIRS; i++) {
		int a, b;
		bool one, two;

		p = s->direction[i];
		a = from[p] / 2;
		b = to[p] / 2;
		if (p / 2 == d / 2 || from[p] & 1 || !ocs_grow_has(t, a, sheet) ||
		    !ocs_grow_has(t, b, sheet) || p / 2 == s->g.way->axis)
			continue;
		one = ocs_grow_fresh(&s->g, sheet, a);
		two = ocs_grow_fresh(&s->g, sheet, b) && !(one && t->cell_of[a] == t->cell_of[b]);
		if ((one || two) && (!begin || s->g.cells + one + two > s->g.cells_max))
			continue;
		t->ears[s->ears++] = (struct ocs_ear){ at, one, two };
		id = ocs_grow_append(&s->g, at, p, sheet, a);
		id = ocs_grow_append(&s->g, id, d, sheet, b);
		t->dir[id] = (unsigned char)(p ^ 1);
		return true;
	}
	return false;
}

static void place_drop(struct spine *s, int id, bool fresh)
{
	struct ocs_thread *t = s->g.t;
	int unit = id % t->units, sheet = id / t->units;

	t->has[unit * t->set_words + sheet / 64] |= 1ULL << sheet % 64;
	if (fresh)
		t->touched[ocs_grow_id_of(t, sheet, t->cell_of[unit])] = 0;
	s->g.cells -= fresh;
	s->g.length--;
}

/* Takes the last ear back. */
static void ear_drop(struct spine *s)
{
	struct ocs_thread *t = s->g.t;
	const struct ocs_ear *ear = &t->ears[--s->ears];
	int a = t->next[ear->at], b = t->next[a];

	t->dir[ear->at] = t->dir[a];
	t->next[ear->at] = t->next[b];
	t->prev[t->next[b]] = ear->at;
	place_drop(s, a, ear->one);
	place_drop(s, b, ear->two);
}

/* Places that nodes begun have left. */
static int places_open(const struct spine *s)
{
	return s->g.cells * s->cell_places - s->g.length;
}

/* Goes over the ring in SHEET once and makes it longer, within begun nodes while these have
 * room; BEGIN: or not, once.  ALONG: only where it lies along the spine.  Returns whether it
 * did. */
static bool ears_pass(struct spine *s, int sheet, bool along, bool begin)
{
	struct ocs_thread *t = s->g.t;
	int at = ocs_grow_id_of(t, sheet, s->base), before = s->ears;
	int end = ocs_grow_id_of(t, sheet, s->base + (s->edge - 1) * s->by);

	while (at != end && s->g.length < s->g.target && t->work < s->work_max) {
		if ((!along || t->dir[at] / 2 == s->axis) &&
		    ear_add(s, sheet, at, begin || !places_open(s))) {
			s->left -= 2;
			if (s->left < 2)
				return false;	/* nothing is free any more */
			begin = false;
		}
		/* the edge between the new places comes next: what was begun goes on */
		at = t->next[at];
	}
	return s->ears > before;
}

/* Takes what is free beside the spine in SHEET. */
static void ears_take(struct spine *s, int sheet)
{
	int along;

	s->left = s->g.t->places[sheet] - s->edge;
	for (along = 1; along >= 0 && s->left > 1; along--) {
		do {
			while (ears_pass(s, sheet, along, false))
				;
		} while (s->left > 1 && places_open(s) && ears_pass(s, sheet, along, true));
	}
}

/* The column in one more sheet, before the ring closes.  What was taken before is given back
 * as far as it has to. */
static bool sheet_add(struct spine *s, int sheet)
{
	struct ocs_thread *t = s->g.t;
	int i, id;

	while (s->g.length + s->edge > s->g.target || s->g.cells + s->cells > s->g.cells_max) {
		if (!s->ears)
			return false;
		ear_drop(s);
	}
	for (i = 0; i < s->edge; i++) {
		id = ocs_grow_append(&s->g, s->tail, 2 * s->axis, sheet, s->base + i * s->by);
		t->dir[id] = (unsigned char)(2 * s->axis);
		s->tail = id;
	}
	s->sheets++;
	return true;
}

static void column_take(struct spine *s, const struct column *column)
{
	const struct ocs_section *section = s->g.t->section;

	s->axis = column->axis;
	s->base = column->base;
	s->by = ocs_grow_stride(section, s->axis);
	s->edge = section->edge[s->axis];
	s->cells = s->edge / section->tile[s->axis];
	column_sheets(s);
}

/* Makes the ring on the column; false: it does not get as long as it should. */
static bool build(struct spine *s, int order)
{
	struct ocs_thread *t = s->g.t;
	int i, pair = -1;

	for (i = 0; i < DIRS; i++)
		s->direction[i] = order ? DIRS - 1 - i : i;
	s->sheets = s->ears = 0;
	s->tail = -1;
	ocs_grow_reset(&s->g);
	for (i = 0; i < t->nsheets && s->sheets < s->most; i++) {
		int sheet = t->order[i];

		if (!in_column(t, sheet))
			continue;
		/* an odd column and one more make an even ring; a column of two would close to
		 * itself beside its own link */
		if ((s->edge % 2 || (s->edge == 2 && !s->sheets)) && pair < 0) {
			pair = sheet;
			continue;
		}
		if ((pair >= 0 && (s->sheets + 2 > s->most || !sheet_add(s, pair))) ||
		    !sheet_add(s, sheet))
			return false;
		if (pair >= 0)
			ears_take(s, pair);
		pair = -1;
		ears_take(s, sheet);
		if (s->g.length == s->g.target)
			return s->g.cells == s->g.cells_max;
	}
	return false;
}

/* The most promising columns, best first; returns how many. */
static int columns_find(struct spine *s, struct column *best)
{
	const struct ocs_section *section = s->g.t->section;
	int n = 0, unit, i;

	for (s->axis = 0; s->axis < OCS_AXES; s->axis++) {
		s->edge = section->edge[s->axis];
		s->by = ocs_grow_stride(section, s->axis);
		if (s->axis == s->g.way->axis || s->edge < 2)
			continue;
		for (unit = 0; unit < s->g.t->units; unit++) {
			struct column now = { s->axis, unit, 0 };

			if (ocs_grow_coord(section, unit, s->axis) ||
			    (s->g.way->axis >= 0 && ocs_grow_coord(section, unit, s->g.way->axis) !=
			     s->g.way->offset))
				continue;
			s->base = unit;
			now.sheets = sheets_least(s);
			if (!now.sheets)
				continue;
			for (i = n; i > 0 && now.sheets < best[i - 1].sheets; i--) {
				if (i < TRIES_MAX)
					best[i] = best[i - 1];
			}
			if (i < TRIES_MAX)
				best[i] = now;
			n += n < TRIES_MAX;
		}
	}
	return n;
}

/* The way with the fewest sheets that its columns give; returns them, 0: none. */
static int way_lay(struct spine *s)
{
	struct column column[TRIES_MAX];
	int n, i, order, found = 0;

	sheets_sort(s->g.t);
	n = columns_find(s, column);
	for (i = 0; i < n; i++) {
		if (found && column[i].sheets >= found)
			break;
		column_take(s, &column[i]);
		if (!promising(s))
			continue;
		for (order = 0; order < 2; order++) {
			if (!build(s, order))
				continue;
			found = s->sheets;
			ocs_grow_answer(&s->g);
			s->most = found - 1;
			if (found == column[i].sheets)
				break;
		}
	}
	return found;
}

/* Whether MOST cubes, of those that may be taken, have XPUS free ones. */
static bool cubes_hold(const struct ocs_thread *t, const struct ocs_fit *fit, int most, long xpus)
{
	int i = fit->n;

	while (!t->section->threading && i > 0 && fit->count[i - 1] == t->units)
		i--;
	for (; i > 0 && most > 0 && xpus > 0; i--, most--)
		xpus -= fit->count[i - 1];
	return xpus <= 0;
}

bool ocs_thread_lay(struct ocs_thread *t, const struct ocs_shape *shape, int nodes,
		    const struct ocs_fit *fit, int most)
{
	const int *tile = t->section->tile;
	struct ocs_way way;
	bool found = false;
	int n, cubes;

	t->work = 0;
	t->spent = false;
	for (n = 0; ocs_way_get(t->section, shape, n, &way); n++) {
		int cell_nodes = ocs_grow_cell_nodes(t->section, &way);
		struct spine s = { .g = { .t = t, .way = &way, .fit = fit, .emptiest = true,
					  .target = shape->extent[way.ring],
					  .cells_max = nodes / cell_nodes },
				   .most = most / way.stack, .whole = t->section->threading,
				   .work_max = WORK_MAX + WORK_EACH * (long)shape->extent[way.ring] };

		s.cell_places = tile[0] * tile[1] * tile[2] / (way.axis < 0 ? 1 : tile[way.axis]);
		if (nodes % cell_nodes || s.most < 1 || !cubes_hold(t, fit, most, shape->xpus) ||
		    ocs_grow_sheets(&s.g) < s.g.target)
			continue;
		cubes = way_lay(&s) * way.stack;
		if (cubes) {
			found = true;
			most = cubes - 1;
		}
		t->spent |= t->work >= s.work_max;
	}
	return found;
}
