/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Rings made without a search.  The spine is one column of a cube, from face to face, in as
 * many cubes as it takes: circuits close it to a ring whatever cubes these are.  In each cube
 * the ring then takes what is free beside it, two neighbours at a time, in an order that is
 * fixed.  So a ring that was made once is made again where nothing but its own places is free. */

#include "src/place/ring_spine.h"

#include <limits.h>
#include <string.h>

#define WORK_MAX 2000L /* edges looked at in one decision: these, and more for a long ring */
#define WORK_EACH 8
#define TRIES_MAX 4  /* columns that are built for one way, twice each */
#define CUBE_WORDS 8 /* of a cube: edges are 8 at most */

/* A column with as many sheets as would do if all their places were in reach. */
struct column {
	struct ocs_ring_column at;
	int sheets;
};

/* Word W of the places of the cross-section of the way. */
static uint64_t section_places(const struct ocs_ring_spine *s, int w)
{
	const struct ocs_section *section = s->g.t->section;
	const struct ocs_ring_way *way = s->g.way;

	return way->axis < 0 ?
		       s->g.t->units_all[w] :
		       s->g.t->layer[(way->axis * OCS_EDGE_MAX + way->offset) * section->words + w];
}

/* Words of a set of the cubes that may be taken. */
static int cube_words(const struct ocs_ring_spine *s)
{
	return (s->end + 63) / 64 - s->first / 64;
}

/* In which of these cubes the place UNIT of the way is free, with its layers: word W of the
 * set, which is of all loaded cubes. */
static uint64_t place_free(const struct ocs_ring_spine *s, const uint64_t *free_in, int unit, int w)
{
	const struct ocs_ring_builder *t = s->g.t;
	int by = s->g.way->axis < 0 ? 0 : ocs_ring_stride(t->section, s->g.way->axis), layer;
	uint64_t set = ~0ULL;

	for (layer = 0; layer < s->g.way->layers; layer++)
		set &= free_in[t->first_of[unit + layer * by] * s->g.fit->set_words + w];
	if (w == s->first / 64)
		set &= ~0ULL << s->first % 64;
	if (w == s->end / 64)
		set &= (1ULL << s->end % 64) - 1;
	return set;
}

/* Notes for each place of the way where it is free (t->free_at); returns whether that are
 * places enough. */
static bool places_find(struct ocs_ring_spine *s)
{
	const uint64_t *free_in = ocs_cube_sets_free_in(s->g.fit);
	int n = cube_words(s), i, w;
	struct ocs_ring_builder *t = s->g.t;
	long places = 0;

	for (i = 0; i < t->section->words; i++) {
		uint64_t left = section_places(s, i);

		for (; left; left &= left - 1) {
			int unit = i * 64 + __builtin_ctzll(left), first = t->first_of[unit],
			    cubes = 0;
			uint64_t *at = t->free_at + unit * t->free_words;

			/* the whole node is free or in use: its first place came before */
			if (first != unit && s->g.way->axis < 0) {
				memcpy(at, t->free_at + first * t->free_words,
				       (size_t)n * sizeof(*at));
				continue;
			}
			for (w = 0; w < n; w++) {
				at[w] = place_free(s, free_in, unit, s->first / 64 + w);
				cubes += at[w] ? ocs_bits_count(at[w]) : 0;
			}
			places +=
				cubes / s->g.way->stack * (s->g.way->axis < 0 ? s->cell_places : 1);
		}
	}
	return places >= s->g.target;
}

static void column_take(struct ocs_ring_spine *s, const struct ocs_ring_column *column)
{
	const struct ocs_section *section = s->g.t->section;

	s->axis = column->axis;
	s->base = column->base;
	s->by = ocs_ring_stride(section, s->axis);
	s->edge = section->edge[s->axis];
	s->cells = s->edge / section->tile[s->axis];
}

/* Adds the cubes where the column is free to t->all, unless these are too few: false. */
static bool column_cubes(const struct ocs_ring_spine *s)
{
	const struct ocs_ring_builder *t = s->g.t;
	const uint64_t *at = t->free_at + s->base * t->free_words;
	int cubes = 0, n = cube_words(s), by = s->by * t->free_words, i, w;
	uint64_t set[OCS_SHEET_WORDS + 1];

	for (w = 0; w < n; w++) {
		set[w] = at[w];
		for (i = 1; i < s->edge && set[w]; i++)
			set[w] &= at[i * by + w];
		cubes += set[w] ? ocs_bits_count(set[w]) : 0;
	}
	if (cubes < s->least)
		return false;
	for (w = 0; w < n; w++)
		t->all[w] |= set[w];
	return true;
}

/* Lists the columns along AXIS that some cubes have (t->columns, of which there are N), and
 * these cubes (t->all); returns how many columns there are then. */
static int axis_columns(struct ocs_ring_spine *s, int axis, int n)
{
	struct ocs_ring_builder *t = s->g.t;
	const struct ocs_section *section = t->section;
	int w;

	for (w = 0; w < section->words; w++) {
		uint64_t left =
			section_places(s, w) & t->layer[axis * OCS_EDGE_MAX * section->words + w];

		for (; left; left &= left - 1) {
			int unit = w * 64 + __builtin_ctzll(left), first = t->first_of[unit];

			/* columns through the same nodes are alike */
			if (first != unit && s->g.way->axis < 0) {
				t->seen[unit] = t->seen[first];
			} else {
				column_take(s, &(struct ocs_ring_column){ axis, unit });
				t->seen[unit] = column_cubes(s);
			}
			if (t->seen[unit])
				t->columns[n++] = (struct ocs_ring_column){ axis, unit };
		}
	}
	return n;
}

static int columns_list(struct ocs_ring_spine *s)
{
	struct ocs_ring_builder *t = s->g.t;
	int axis, n = 0;

	memset(t->all, 0, (size_t)t->free_words * sizeof(*t->all));
	for (axis = 0; axis < OCS_AXES; axis++) {
		if (axis != s->g.way->axis && t->section->edge[axis] > 1)
			n = axis_columns(s, axis, n);
	}
	return n;
}

/* The sheets of the way, as cubes and masks, in which the columns may be. */
static int sheets_collect(struct ocs_ring_spine *s)
{
	int words = s->g.t->section->words, stack = s->g.way->stack, most, n = 0, i, k, w;
	struct ocs_ring_builder *t = s->g.t;

	for (w = 0; stack == 1 && w < cube_words(s); w++) {
		uint64_t left = t->all[w];

		for (; left; left &= left - 1, n++) {
			t->stacks[n] = (s->first / 64 + w) * 64 + __builtin_ctzll(left);
			ocs_ring_units(&s->g, t->stacks[n], t->mask + n * words);
		}
	}
	if (stack == 1)
		return n;
	most = s->g.fit->n - s->first;
	ocs_ring_stacks(&s->g, s->first, most);
	for (i = 0; i < most / stack; i++) {
		for (k = 0; k < stack && t->stacks[i * stack + k] < s->end; k++)
			;
		if (k < stack)
			continue; /* wholly free cubes are left alone */
		memmove(t->stacks + n * stack, t->stacks + i * stack, (size_t)stack * sizeof(int));
		memmove(t->mask + n++ * words, t->mask + i * stack * words,
			(size_t)words * sizeof(*t->mask));
	}
	return n;
}

/* Drops the places of SHEET that circuits along the straight dimension cannot leave. */
static void places_sound(struct ocs_ring_spine *s, int sheet)
{
	uint64_t *mask = s->g.t->mask + sheet * s->g.t->section->words;
	int unit, dir = 2 * s->g.way->axis;

	for (unit = 0; unit < s->g.t->units; unit++) {
		if (ocs_bits_has(mask, unit) && (!ocs_ring_sound(&s->g, sheet, unit, dir) ||
						 !ocs_ring_sound(&s->g, sheet, unit, dir + 1)))
			ocs_bits_drop(mask, unit);
	}
}

/* Makes the sheets: those with the most places first, like ones as they come. */
static void sheets_make(struct ocs_ring_spine *s)
{
	struct ocs_ring_builder *t = s->g.t;
	int words = t->section->words, stack = s->g.way->stack, *start = t->tally,
	    *places = t->order;
	int *stacks = t->scratch, i, w, n = sheets_collect(s);

	memset(start, 0, ((size_t)t->units + 2) * sizeof(*start));
	for (i = 0; i < n; i++) {
		if (s->g.way->closed && s->g.fit->blocked)
			places_sound(s, i);
		for (places[i] = 0, w = 0; w < words; w++)
			places[i] += ocs_bits_count(t->mask[i * words + w]);
		start[t->units - places[i] + 1]++;
	}
	for (i = 1; i <= t->units; i++)
		start[i + 1] += start[i];
	memcpy(stacks, t->stacks, (size_t)(n * stack) * sizeof(int));
	for (i = 0; i < n; i++) {
		int at = start[t->units - places[i]]++;

		t->places[at] = places[i];
		memcpy(t->stacks + at * stack, stacks + i * stack, (size_t)stack * sizeof(int));
		memcpy(t->sound + at * words, t->mask + i * words,
		       (size_t)words * sizeof(*t->sound));
	}
	t->nsheets = n;
}

/* Whether the column of SHEET can be closed at both ends. */
static bool column_closes(const struct ocs_ring_spine *s, int sheet)
{
	return !s->g.fit->blocked ||
	       (ocs_ring_sound(&s->g, sheet, s->base, 2 * s->axis + 1) &&
		ocs_ring_sound(&s->g, sheet, s->base + (s->edge - 1) * s->by, 2 * s->axis));
}

/* Adds the sheets where the column is free and can be closed to t->column, which is empty,
 * until they have places enough; returns how many that takes, 0: more than are allowed.  ALL:
 * goes on, however many that are. */
static int column_sheets(const struct ocs_ring_spine *s, bool all)
{
	struct ocs_ring_builder *t = s->g.t;
	int words = t->section->words, left = s->g.target, n = 0, i, w;
	uint64_t mask[CUBE_WORDS] = { 0 };

	for (i = 0; i < s->edge; i++)
		ocs_bits_add(mask, s->base + i * s->by);
	for (w = 0; w < t->set_words; w++)
		t->column[w] = 0;
	for (i = 0; i < t->nsheets && (all || (n < s->most && left > 0)); i++) {
		const uint64_t *sound = t->sound + i * words;

		for (w = 0; w < words && !(mask[w] & ~sound[w]); w++)
			;
		if (w < words || !column_closes(s, i))
			continue;
		ocs_bits_add(t->column, i);
		left -= t->places[i];
		n++;
	}
	return left > 0 ? 0 : n;
}

/* How many places of SHEET a ring through the column can take at most: those that hang
 * together with it, as many of one colour of the chessboard as of the other. */
static int places_near(const struct ocs_ring_spine *s, int sheet)
{
	const struct ocs_ring_builder *t = s->g.t;
	uint64_t mask = t->sound[sheet], near = 0, next;
	int i, axis, dark;

	if (t->section->words > 1)
		return t->places[sheet];
	for (i = 0; i < s->edge; i++)
		near |= 1ULL << (s->base + i * s->by);
	for (next = near;; near = next) {
		for (axis = 0; axis < OCS_AXES; axis++) {
			const uint64_t *layer = t->layer + axis * OCS_EDGE_MAX;
			int by = ocs_ring_stride(t->section, axis);

			next |= (next & ~layer[t->section->edge[axis] - 1]) << by |
				(next & ~layer[0]) >> by;
		}
		next &= mask;
		if (next == near)
			break;
	}
	dark = ocs_bits_count(near & t->dark);
	i = ocs_bits_count(near) - dark;
	return s->edge % 2 ? dark + i : 2 * (dark < i ? dark : i);
}

/* Whether the column's sheets can give enough, as far as a count tells: of each, in t->reach;
 * of all that may be in the ring, in s->reach. */
static bool column_promising(struct ocs_ring_spine *s)
{
	struct ocs_ring_builder *t = s->g.t;
	int n = 0, i;

	s->reach = 0;
	for (i = 0; i < t->nsheets && n < s->most; i++) {
		if (!ocs_bits_has(t->column, i))
			continue;
		t->reach[i] = s->reach < s->g.target ? places_near(s, i) : t->places[i];
		s->reach += t->reach[i];
		n++;
	}
	return s->reach >= s->g.target;
}

/* The column in one more sheet, before the ring closes.  What was taken before is given back
 * as far as it has to. */
static bool sheet_add(struct ocs_ring_spine *s, int sheet)
{
	struct ocs_ring_builder *t = s->g.t;
	int i, id;

	while (s->g.length + s->edge > s->g.target || s->g.cells + s->cells > s->g.cells_max) {
		if (!s->ears)
			return false;
		ocs_ring_ear_drop(s);
		s->dropped = true;
	}
	for (i = 0; i < s->edge; i++) {
		id = ocs_ring_spine_append(s, s->tail, 2 * s->axis, sheet, s->base + i * s->by);
		t->dir[id] = (unsigned char)(2 * s->axis);
		s->tail = id;
	}
	s->sheets++;
	return true;
}

/* Makes the ring on the column; false: it does not get as long as it should. */
static bool ring_build(struct ocs_ring_spine *s, int order)
{
	struct ocs_ring_builder *t = s->g.t;
	int i, sheet, pair = -1, reach = s->reach;

	for (i = 0; i < DIRS; i++)
		s->direction[i] = order ? DIRS - 1 - i : i;
	s->sheets = s->ears = 0;
	s->dropped = false;
	s->tail = -1;
	s->g.length = s->g.cells = 0;
	memcpy(t->avail, t->sound, (size_t)(t->nsheets * t->section->words) * sizeof(*t->avail));
	memset(t->begun, 0, (size_t)(t->nsheets * t->section->words) * sizeof(*t->begun));
	for (sheet = 0; sheet < t->nsheets && s->sheets < s->most; sheet++) {
		if (!ocs_bits_has(t->column, sheet))
			continue;
		reach -= t->reach[sheet];
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
			ocs_ring_ears_take(s, pair);
		pair = -1;
		ocs_ring_ears_take(s, sheet);
		if (s->g.length == s->g.target)
			return s->g.cells == s->g.cells_max;
		/* what a sheet did not give, later ones cannot */
		if (s->g.length + reach < s->g.target)
			return false;
	}
	return false;
}

/* The most promising of COUNT columns, best first; returns how many. */
static int columns_best(struct ocs_ring_spine *s, int count, struct column *best)
{
	int n = 0, c, i;

	for (c = 0; c < count; c++) {
		struct column now = { s->g.t->columns[c], 0 };

		column_take(s, &now.at);
		now.sheets = column_sheets(s, false);
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
	return n;
}

/* The way with the fewest sheets that its columns give; returns them, 0: none. */
static int way_lay(struct ocs_ring_spine *s)
{
	struct column column[TRIES_MAX];
	int n, i, order, found = 0;

	n = places_find(s) ? columns_list(s) : 0;
	if (!n)
		return 0;
	sheets_make(s);
	n = columns_best(s, n, column);
	for (i = 0; i < n; i++) {
		if (found && column[i].sheets >= found)
			break;
		column_take(s, &column[i].at);
		column_sheets(s, true);
		if (!column_promising(s))
			continue;
		for (order = 0; order < 2; order++) {
			if (!ring_build(s, order))
				continue;
			found = s->sheets;
			ocs_ring_answer(&s->g);
			s->g.t->spine = column[i].at;
			s->g.t->direct = !order && !s->dropped && s->g.t->work < s->work_max;
			s->most = found - 1;
			if (found == column[i].sheets)
				break;
		}
	}
	return found;
}

/* How many cubes, the last of those from FIRST to END, have XPUS free ones; INT_MAX: not even
 * all. */
static int cubes_holding(const struct ocs_box_search *fit, int first, int end, long xpus)
{
	int n = 0;

	for (; end - n > first && xpus > 0; n++)
		xpus -= fit->count[end - n - 1];
	return xpus > 0 ? INT_MAX : n;
}

bool ocs_ring_lay(struct ocs_ring_builder *t, const struct ocs_shape *shape, int nodes,
		  struct ocs_box_search *fit, int most)
{
	int end = t->section->threading ? fit->n : ocs_cube_sets_first_with(fit, t->units);
	int first = fit->n > t->sheets_max ? fit->n - t->sheets_max : 0, n, cubes;
	int least = cubes_holding(fit, first, end, shape->xpus);
	const int *tile = t->section->tile;
	struct ocs_ring_way way;
	bool found = false;

	t->work = 0;
	t->spent = t->direct = false;
	for (n = 0; least <= most && ocs_ring_way_get(t->section, shape, n, &way); n++) {
		int cell_nodes = ocs_ring_cell_nodes(t->section, &way);
		struct ocs_ring_spine s = { .g = { .t = t,
						   .way = &way,
						   .fit = fit,
						   .target = shape->extent[way.ring],
						   .cells_max = nodes / cell_nodes },
					    .most = most / way.stack,
					    .least = least > way.stack ? least : way.stack,
					    .first = first,
					    .end = end,
					    .work_max = WORK_MAX +
							WORK_EACH * (long)shape->extent[way.ring] };

		s.cell_places = tile[0] * tile[1] * tile[2] / (way.axis < 0 ? 1 : tile[way.axis]);
		if (nodes % cell_nodes || s.most < 1)
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

/* The nodes of the answer in each of its cubes, as masks (t->begun), and what all have in
 * common; false: the cubes are not in the order in which sheets of just these would be. */
static bool answer_masks(const struct ocs_ring_builder *t, uint64_t *common)
{
	int words = t->section->words, last = INT_MAX, total = 0, i, w;

	memset(t->begun, 0, (size_t)(t->nused * words) * sizeof(*t->begun));
	for (i = 0; i < t->extent; i++) {
		const uint64_t *tile = t->tile + t->ring[i].unit * words;

		for (w = 0; w < words; w++)
			t->begun[t->ring[i].sheet * words + w] |= tile[w];
	}
	memset(common, 0xff, (size_t)words * sizeof(*common));
	for (i = 0; i < t->nused; i++) {
		int places = 0;

		for (w = 0; w < words; w++) {
			common[w] &= t->begun[i * words + w];
			places += ocs_bits_count(t->begun[i * words + w]);
		}
		if (places > last || (places == last && t->cubes[i] < t->cubes[i - 1]))
			return false;
		last = places;
		total += places;
	}
	return total - last < t->extent; /* none can be left out */
}

/* Only the nodes of the answer free, sheets are its cubes, and a column counts if all of them
 * have it.  If that of the answer is the first of these, it is the first that is tried, and
 * what was free beside it and not taken cannot have led to another ring. */
bool ocs_ring_settled(const struct ocs_ring_builder *t)
{
	const struct ocs_section *s = t->section;
	uint64_t common[CUBE_WORDS];
	int axis, i, w;

	if (!t->direct || t->way.axis >= 0 || !answer_masks(t, common))
		return false;
	for (axis = 0; axis <= t->spine.axis; axis++) {
		const uint64_t *low = t->layer + axis * OCS_EDGE_MAX * s->words;

		for (w = 0; s->edge[axis] > 1 && w < s->words; w++) {
			uint64_t columns = common[w] & low[w];

			for (i = 1; i < s->edge[axis]; i++)
				columns &= ocs_bits_down(common, s->words, w,
							 i * ocs_ring_stride(s, axis));
			if (columns)
				return axis == t->spine.axis &&
				       t->spine.base == w * 64 + __builtin_ctzll(columns);
		}
	}
	return false;
}
