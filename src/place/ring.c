/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/place/bits.h"
#include "src/place/ring_draft.h"

#include <stdlib.h>
#include <string.h>

#include "src/util/text.h"

#define SHEETS_MAX (64 * OCS_SHEET_WORDS) /* fullest cubes first; more would not change much */

int ocs_ring_near(const struct ocs_section *s, int unit, int d)
{
	int c = ocs_ring_coord(s, unit, d / 2), by = ocs_ring_stride(s, d / 2),
	    edge = s->edge[d / 2];

	if (d % 2)
		return c ? 2 * (unit - by) : 2 * (unit + (edge - 1) * by) + 1;
	return c + 1 < edge ? 2 * (unit + by) : 2 * (unit - (edge - 1) * by) + 1;
}

static void tables_make(struct ocs_ring_builder *t)
{
	const struct ocs_section *s = t->section;
	int unit, other, d, a;

	for (unit = 0; unit < t->units; unit++) {
		int cell = 0;

		for (d = 0; d < DIRS; d++)
			t->near[unit * DIRS + d] = ocs_ring_near(s, unit, d);
		for (a = 0; a < OCS_AXES; a++)
			cell = cell * (s->edge[a] / s->tile[a]) +
			       ocs_ring_coord(s, unit, a) / s->tile[a];
		t->cell_of[unit] = cell;
	}
	for (unit = 0; unit < t->units; unit++) {
		ocs_bits_add(t->units_all, unit);
		if ((ocs_ring_coord(s, unit, 0) + ocs_ring_coord(s, unit, 1) +
		     ocs_ring_coord(s, unit, 2)) %
			    2 &&
		    unit < 64)
			t->dark |= 1ULL << unit;
		for (a = 0; a < OCS_AXES; a++)
			t->layer[(a * OCS_EDGE_MAX + ocs_ring_coord(s, unit, a)) * s->words +
				 unit / 64] |= 1ULL << unit % 64;
		for (other = t->units - 1; other >= 0; other--) {
			if (t->cell_of[unit] != t->cell_of[other])
				continue;
			t->tile[unit * s->words + other / 64] |= 1ULL << other % 64;
			t->first_of[unit] = other;
		}
	}
}

struct ocs_ring_builder *ocs_ring_create(const struct ocs_section *section)
{
	struct ocs_ring_builder *t = ocs_calloc(1, sizeof(*t));
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
	t->mask = ocs_calloc((size_t)t->sheets_max * (size_t)section->words, sizeof(uint64_t));
	t->stacks = ocs_calloc((size_t)t->sheets_max, sizeof(int));
	t->next = ocs_calloc(places, sizeof(int));
	t->scratch = ocs_calloc(places, sizeof(int));
	t->dir = ocs_calloc(places, 1);
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

void ocs_ring_destroy(struct ocs_ring_builder *t)
{
	if (!t)
		return;
	free(t->near);
	free(t->cell_of);
	free(t->tile);
	free(t->layer);
	free(t->mask);
	free(t->stacks);
	free(t->next);
	free(t->scratch);
	free(t->dir);
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

bool ocs_ring_sound(const struct ocs_ring_draft *g, int sheet, int unit, int dir)
{
	const struct ocs_section *s = g->t->section;
	int layer, i, a;

	if (!g->fit->blocked)
		return true;
	for (layer = 0; layer < g->way->layers; layer++) {
		int at = unit + (g->way->axis < 0 ? 0 : layer * ocs_ring_stride(s, g->way->axis)),
		    pos[2];

		for (a = 0, i = 0; a < OCS_AXES; a++) {
			if (a != dir / 2)
				pos[i++] = ocs_ring_coord(s, at, a);
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

void ocs_ring_units(const struct ocs_ring_draft *g, int cube, uint64_t *mask)
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
						 layer * ocs_ring_stride(s, axis));
	}
}

static int places_alike(const struct ocs_ring_builder *t, const uint64_t *a, const uint64_t *b)
{
	int w, n = 0;

	for (w = 0; w < t->section->words; w++)
		n += ocs_bits_count(a[w] & b[w]);
	return n;
}

void ocs_ring_stacks(struct ocs_ring_draft *g, int from, int n)
{
	struct ocs_ring_builder *t = g->t;
	int words = t->section->words, stack = g->way->stack, i, j, k, w;
	uint64_t swap;

	/* each stack begins with the fullest cube left and takes those that have most in common
	 * with it */
	for (i = 0; i < n; i++) {
		t->stacks[i] = from + i;
		ocs_ring_units(g, from + i, t->mask + i * words);
	}
	for (i = 0; stack > 1 && i + stack <= n; i += stack) {
		uint64_t *first = t->mask + i * words;

		for (k = 1; k < stack; k++) {
			int best = i + k, most = -1;

			for (j = i + k; j < n; j++) {
				int common = places_alike(t, first, t->mask + j * words);

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

void ocs_ring_answer(struct ocs_ring_draft *g)
{
	struct ocs_ring_builder *t = g->t;
	int *number = t->scratch, at = g->head, i, k, stack = g->way->stack;
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

int ocs_ring_cell_nodes(const struct ocs_section *s, const struct ocs_ring_way *way)
{
	int tile = way->axis < 0 ? 1 : s->tile[way->axis];

	return way->axis < 0 ? 1 :
			       way->stack * ((way->offset + way->layers - 1) / tile -
					     way->offset / tile + 1);
}

void ocs_ring_narrow(const struct ocs_ring_builder *t, struct ocs_box_search *fit)
{
	const struct ocs_section *s = t->section;
	int by = t->way.axis < 0 ? 0 : ocs_ring_stride(s, t->way.axis), stack = t->way.stack, i, k,
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
	ocs_cube_sets_load_cubes(fit, fit->narrowed, fit->seated, n);
}
