/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* A ring takes what is free beside it in a sheet, two neighbours at a time: an ear.  Which of
 * its edges have room for one is known for all of them at once, as a set of the lower places
 * of these edges. */

#include "src/place/ring_spine.h"

#include <string.h>

#define WORDS_MAX 8 /* of a cube: edges are 8 at most */

/* The edges of the ring in one sheet, by axis: which there are, and which may have room for an
 * ear.  Ears take room away; the edges that they add may have some. */
struct edges {
	uint64_t all[OCS_AXES][WORDS_MAX], room[OCS_AXES][WORDS_MAX];
	const uint64_t *avail, *begun; /* of the sheet */
};

static void edge_add(struct edges *e, int axis, int at)
{
	ocs_bits_add(e->all[axis], at);
	ocs_bits_add(e->room[axis], at);
}

static int lower_place(int at, int to)
{
	return at < to ? at : to;
}

static bool cell_begun(const struct ocs_ring_builder *t, int sheet, int unit)
{
	return ocs_bits_has(t->begun + sheet * t->section->words, unit);
}

int ocs_ring_spine_append(struct ocs_ring_spine *s, int after, int dir, int sheet, int unit)
{
	struct ocs_ring_builder *t = s->g.t;
	int id = ocs_ring_place_id(t, sheet, unit), words = t->section->words, w;

	ocs_bits_drop(t->avail + sheet * words, unit);
	if (!cell_begun(t, sheet, unit)) {
		for (w = 0; w < words; w++)
			t->begun[sheet * words + w] |= t->tile[unit * words + w];
		s->g.cells++;
	}
	s->g.length++;
	if (after < 0) {
		t->next[id] = s->g.head = id;
		return id;
	}
	t->next[id] = t->next[after];
	t->next[after] = id;
	t->dir[id] = t->dir[after];
	t->dir[after] = (unsigned char)dir;
	return id;
}

static void place_drop(struct ocs_ring_spine *s, int id, bool fresh)
{
	struct ocs_ring_builder *t = s->g.t;
	int sheet = id / t->units, unit = id - sheet * t->units, words = t->section->words, w;

	ocs_bits_add(t->avail + sheet * words, unit);
	for (w = 0; w < words && fresh; w++)
		t->begun[sheet * words + w] &= ~t->tile[unit * words + w];
	s->g.cells -= fresh;
	s->g.length--;
}

void ocs_ring_ear_drop(struct ocs_ring_spine *s)
{
	struct ocs_ring_builder *t = s->g.t;
	const struct ocs_ring_ear *ear = &t->ears[--s->ears];
	int a = t->next[ear->at], b = t->next[a];

	t->dir[ear->at] = t->dir[a];
	t->next[ear->at] = t->next[b];
	place_drop(s, b, ear->two);
	place_drop(s, a, ear->one);
}

/* Places that nodes begun have left. */
static int places_open(const struct ocs_ring_spine *s)
{
	return s->g.cells * s->cell_places - s->g.length;
}

/* Puts two places of SHEET between AT and the next one; BEGIN: nodes may be begun. */
static bool ear_add(struct ocs_ring_spine *s, struct edges *e, int sheet, int at, bool begin)
{
	struct ocs_ring_builder *t = s->g.t;
	int first = sheet * t->units, d = t->dir[at], i, id, u = at - first,
	    v = t->next[at] - first;
	const int *from = t->near + u * DIRS, *to = t->near + v * DIRS;

	for (i = 0; i < DIRS; i++) {
		int p = s->direction[i], a = from[p] / 2, b = to[p] / 2;
		bool one, two;

		if (p / 2 == d / 2 || from[p] & 1 || p / 2 == s->g.way->axis ||
		    !ocs_bits_has(e->avail, a) || !ocs_bits_has(e->avail, b))
			continue;
		one = !ocs_bits_has(e->begun, a);
		two = !ocs_bits_has(e->begun, b) && !(one && t->cell_of[a] == t->cell_of[b]);
		if ((one || two) && (!begin || s->g.cells + one + two > s->g.cells_max))
			continue;
		t->ears[s->ears++] = (struct ocs_ring_ear){ at, one, two };
		id = ocs_ring_spine_append(s, at, p, sheet, a);
		id = ocs_ring_spine_append(s, id, d, sheet, b);
		t->dir[id] = (unsigned char)(p ^ 1);
		ocs_bits_drop(e->all[d / 2], lower_place(u, v));
		ocs_bits_drop(e->room[d / 2], lower_place(u, v));
		edge_add(e, d / 2, lower_place(a, b));
		edge_add(e, p / 2, lower_place(u, a));
		edge_add(e, p / 2, lower_place(v, b));
		return true;
	}
	ocs_bits_drop(e->room[d / 2], lower_place(u, v));
	return false;
}

/* Word W of the places beside which those of PAIR (the lower ones of two free neighbours along
 * AXIS) lie: of edges along AXIS these have room. */
static inline uint64_t places_beside(const struct ocs_ring_spine *s, const uint64_t *pair, int axis,
				     int words, int w)
{
	const struct ocs_section *section = s->g.t->section;
	uint64_t room = 0;
	int b;

	for (b = 0; b < OCS_AXES; b++) {
		const uint64_t *layer = s->g.t->layer + b * OCS_EDGE_MAX * words;
		int by = ocs_ring_stride(section, b);

		if (b == axis || b == s->g.way->axis)
			continue;
		room |= ocs_bits_down(pair, words, w, by) &
			~layer[(section->edge[b] - 1) * words + w];
		room |= ocs_bits_up(pair, words, w, by) & ~layer[w];
	}
	return room;
}

/* Which edges have room for an ear, in nodes begun or (BEGIN) in any; false: none has.  ALONG:
 * of those along the spine. */
static inline bool room_look(const struct ocs_ring_spine *s, struct edges *e, bool along,
			     bool begin, int words)
{
	const struct ocs_ring_builder *t = s->g.t;
	const struct ocs_section *section = t->section;
	uint64_t open[WORDS_MAX], pair[WORDS_MAX], any = 0;
	int a, w;

	for (w = 0; w < words; w++)
		open[w] = e->avail[w] & (begin ? ~0ULL : e->begun[w]);
	for (a = 0; a < OCS_AXES; a++) {
		const uint64_t *last = t->layer + (a * OCS_EDGE_MAX + section->edge[a] - 1) * words;
		int by = ocs_ring_stride(section, a);

		if (a == s->g.way->axis || (along && a != s->axis))
			continue;
		for (w = 0; w < words; w++)
			pair[w] = open[w] & ocs_bits_down(open, words, w, by) & ~last[w];
		for (w = 0; w < words; w++) {
			e->room[a][w] = places_beside(s, pair, a, words, w) & e->all[a][w];
			any |= e->room[a][w];
		}
	}
	return any;
}

static bool room_find(const struct ocs_ring_spine *s, struct edges *e, bool along, bool begin)
{
	int words = s->g.t->section->words;

	return words == 1 ? room_look(s, e, along, begin, 1) : room_look(s, e, along, begin, words);
}

/* Goes over the ring in SHEET once and makes it longer, within begun nodes while these have
 * room; BEGIN: or not, once.  ALONG: only where it lies along the spine.  Returns whether it
 * did. */
static bool ears_pass(struct ocs_ring_spine *s, struct edges *e, int sheet, bool along, bool begin)
{
	struct ocs_ring_builder *t = s->g.t;
	int first = sheet * t->units, at = first + s->base, before = s->ears;
	int end = at + (s->edge - 1) * s->by;
	bool any = begin || !places_open(s);

	if (s->g.length >= s->g.target || !room_find(s, e, along, any))
		return false;
	while (at != end && s->g.length < s->g.target && t->work < s->work_max) {
		int axis = t->dir[at] / 2;

		t->work++;
		if ((!along || axis == s->axis) &&
		    ocs_bits_has(e->room[axis], lower_place(at, t->next[at]) - first) &&
		    ear_add(s, e, sheet, at, any)) {
			s->left -= 2;
			if (s->left < 2)
				return false; /* nothing is free any more */
			begin = !places_open(s);
			if (begin && !any && !room_find(s, e, along, true))
				return true;
			any = begin;
		}
		/* the edge between the new places comes next: what was begun goes on */
		at = t->next[at];
	}
	return s->ears > before;
}

void ocs_ring_ears_take(struct ocs_ring_spine *s, int sheet)
{
	struct ocs_ring_builder *t = s->g.t;
	int along, i, a, words = t->section->words;
	struct edges e;

	e.avail = t->avail + sheet * words;
	e.begun = t->begun + sheet * words;
	s->left = t->places[sheet] - s->edge;
	for (a = 0; a < OCS_AXES; a++)
		/* cppcheck-suppress uninitvar ; it is filled here */
		memset(e.all[a], 0, (size_t)words * sizeof(uint64_t));
	for (i = 0; i + 1 < s->edge; i++)
		ocs_bits_add(e.all[s->axis], s->base + i * s->by);
	for (along = 1; along >= 0 && s->left > 1; along--) {
		do {
			while (ears_pass(s, &e, sheet, along, false))
				;
		} while (s->left > 1 && places_open(s) && ears_pass(s, &e, sheet, along, true));
	}
}
