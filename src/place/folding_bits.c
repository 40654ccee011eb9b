/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/place/folding_bits.h"

#include <stdlib.h>
#include <string.h>

#include "src/place/bits.h"
#include "src/util/text.h"

static const int row_axis[OCS_FOLD_AXES] = { 1, 0, 0 }, bit_axis[OCS_FOLD_AXES] = { 2, 2, 1 };

void ocs_folding_bits_create(struct ocs_folding_bits *b, const struct ocs_shape *shape, int layers)
{
	int a;

	memset(b, 0, sizeof(*b));
	b->shape = shape;
	b->layers = layers;
	b->box = ocs_calloc((size_t)shape->xpus, sizeof(*b->box));
	for (a = 0; a < OCS_FOLD_AXES; a++) {
		b->first[a] = ocs_calloc((size_t)layers, sizeof(int));
		b->made[a] = ocs_calloc((size_t)layers, sizeof(long));
	}
}

void ocs_folding_bits_free(struct ocs_folding_bits *b)
{
	int a;

	for (a = 0; a < OCS_FOLD_AXES; a++) {
		free(b->first[a]);
		free(b->made[a]);
	}
	free(b->box);
	free(b->steps);
	free(b->pool);
}

/* Where an entry of a dimension that alone owns AXIS is on it. */
static int entry_layer(const struct ocs_fold_table *table, const struct ocs_fold_entry *entry,
		       int axis)
{
	return table->flip & 1u << axis ? table->box[axis] - 1 - entry->at[axis] : entry->at[axis];
}

/* Whether a step from layer FROM to TO of an axis leads upwards: a wrap does, from the last layer
 * to the first. */
static bool step_upwards(int from, int to)
{
	return to == from + 1 || (to != from - 1 && to == 0);
}

static void step_add(struct ocs_folding_bits *b, int d, int c)
{
	const struct ocs_fold_table *table = b->table;
	const struct ocs_fold_entry *from = &table->dim[d][c];
	const struct ocs_fold_entry *to = &table->dim[d][c + 1 == table->extent[d] ? 0 : c + 1];
	int axis = 0, *first;

	while (axis < OCS_FOLD_AXES - 1 && from->at[axis] == to->at[axis] &&
	       from->bits[axis] == to->bits[axis])
		axis++;
	if (table->bits[axis]) {
		first = &b->bit_steps[axis];
	} else {
		int low = entry_layer(table, from, axis), high = entry_layer(table, to, axis);

		first = &b->first[axis][step_upwards(low, high) ? low : high];
	}
	if (b->nsteps == b->step_room) {
		b->step_room = b->step_room ? 2 * b->step_room : 64;
		b->steps = ocs_realloc(b->steps, (size_t)b->step_room * sizeof(*b->steps));
	}
	b->steps[b->nsteps] = (struct ocs_folding_step){ d, c, *first };
	*first = b->nsteps++;
}

static void steps_make(struct ocs_folding_bits *b)
{
	int d, c;

	b->nsteps = 0;
	/* twisted shapes are laid out edge by edge */
	for (d = 0; d < b->shape->ndim && !b->shape->twisted; d++) {
		int extent = b->shape->extent[d];
		int steps = extent < 3 || b->shape->mesh[d] ? extent - 1 : extent;

		for (c = 0; c < steps; c++)
			step_add(b, d, c);
	}
}

void ocs_folding_bits_load(struct ocs_folding_bits *b, const struct ocs_fold_table *table)
{
	int a, i;

	b->table = table;
	b->boxed = false;
	b->used = 0;
	b->cells = -1;
	for (a = 0; a < OCS_FOLD_AXES; a++) {
		b->row_words[a] = (table->box[bit_axis[a]] + 63) / 64;
		b->set_words[a] = (size_t)(table->box[row_axis[a]] * b->row_words[a]);
		b->bit_steps[a] = -1;
		for (i = 0; i < table->box[a]; i++) {
			b->first[a][i] = -1;
			b->made[a][i] = -1;
		}
	}
	steps_make(b);
}

/* Where the vertices of the last dimension are that have BASE, the sum of the others, axis by axis: a
 * sum, a difference on a mirrored axis, or two bits. */
static void column_make(const struct ocs_fold_table *table, const struct ocs_fold_entry *base,
			int (*to)[OCS_FOLD_AXES])
{
	static const int bits_place[] = { 0, 1, 3, 2 };
	const struct ocs_fold_entry *entry = table->dim[table->ndim - 1];
	int count = table->extent[table->ndim - 1], a, c;

	for (a = 0; a < OCS_FOLD_AXES; a++) {
		bool flip = table->flip & 1u << a;
		int from = flip ? table->box[a] - 1 - base->at[a] : base->at[a];
		int sign = flip ? -1 : 1;

		for (c = 0; c < count && table->bits[a]; c++)
			to[c][a] = bits_place[base->bits[a] | entry[c].bits[a]];
		for (c = 0; c < count && !table->bits[a]; c++)
			to[c][a] = from + sign * entry[c].at[a];
	}
}

static void box_make(struct ocs_folding_bits *b)
{
	const struct ocs_fold_table *table = b->table;
	int coord[OCS_SHAPE_DIMS] = { 0 }, last = table->ndim - 1, d;
	int(*to)[OCS_FOLD_AXES] = b->box;

	b->boxed = true;
	while (true) {
		struct ocs_fold_entry base = { { 0 }, { 0 } };

		for (d = 0; d < last; d++)
			ocs_fold_add(&base, &table->dim[d][coord[d]]);
		column_make(table, &base, to);
		to += table->extent[last];
		for (d = last - 1; d >= 0 && ++coord[d] == table->extent[d]; d--)
			coord[d] = 0;
		if (d < 0)
			return;
	}
}

/* WORDS empty words of the pool: where they begin. */
static long pool_take(struct ocs_folding_bits *b, size_t words)
{
	size_t at = b->used;

	b->used += words;
	if (b->used > b->room) {
		b->room = 2 * b->used;
		b->pool = ocs_realloc(b->pool, b->room * sizeof(*b->pool));
	}
	memset(b->pool + at, 0, words * sizeof(*b->pool));
	return (long)at;
}

const uint64_t *ocs_folding_bits_cells(struct ocs_folding_bits *b)
{
	uint64_t *cells;
	long i;

	if (b->cells >= 0)
		return b->pool + b->cells;
	if (!b->boxed)
		box_make(b);
	b->cells = pool_take(b, (size_t)b->table->box[0] * b->set_words[0]);
	cells = b->pool + b->cells;
	for (i = 0; i < b->shape->xpus; i++) {
		const int *at = b->box[i];

		ocs_bits_add(cells + (at[0] * b->table->box[1] + at[1]) * b->row_words[0], at[2]);
	}
	return cells;
}

/* The edges of a step: runs of STRIDE vertices from U to as many from V on, the next run OUTER further. */
struct step_runs {
	long stride, outer, u, v;
};

static struct step_runs runs_begin(const struct ocs_folding_bits *b,
				   const struct ocs_folding_step *step)
{
	struct step_runs runs = { .stride = 1 };
	int extent = b->shape->extent[step->dim], d;

	for (d = b->shape->ndim - 1; d > step->dim; d--)
		runs.stride *= b->shape->extent[d];
	runs.outer = runs.stride * extent;
	runs.u = step->from * runs.stride;
	runs.v = (step->from + 1 == extent ? 0 : step->from + 1) * runs.stride;
	return runs;
}

/* All edges of a step cross where its first one does. */
static void step_mark(struct ocs_folding_bits *b, const struct ocs_folding_step *step, int axis,
		      uint64_t *set)
{
	struct step_runs runs = runs_begin(b, step);
	int row = row_axis[axis], bit = bit_axis[axis], words = b->row_words[axis];

	for (; runs.u < b->shape->xpus; runs.u += runs.outer) {
		for (long i = 0; i < runs.stride; i++) {
			const int *at = b->box[runs.u + i];

			ocs_bits_add(set + at[row] * words, at[bit]);
		}
	}
}

/* The edges of a step along an axis of bits, each to its layer. */
static void bit_step_mark(struct ocs_folding_bits *b, const struct ocs_folding_step *step, int axis)
{
	struct step_runs runs = runs_begin(b, step);
	int row = row_axis[axis], bit = bit_axis[axis], words = b->row_words[axis];

	for (; runs.u < b->shape->xpus; runs.u += runs.outer, runs.v += runs.outer) {
		for (long i = 0; i < runs.stride; i++) {
			const int *at = b->box[runs.u + i], *to = b->box[runs.v + i];
			int low = step_upwards(at[axis], to[axis]) ? at[axis] : to[axis];

			ocs_bits_add(b->pool + b->made[axis][low] + at[row] * words, at[bit]);
		}
	}
}

const uint64_t *ocs_folding_bits_edges(struct ocs_folding_bits *b, int axis, int layer)
{
	bool bits = b->table->bits[axis];
	int first = bits ? b->bit_steps[axis] : b->first[axis][layer], i;

	if (first < 0)
		return NULL;
	if (b->made[axis][layer] >= 0)
		return b->pool + b->made[axis][layer];
	if (!b->boxed)
		box_make(b);
	for (i = bits ? 0 : layer; i < (bits ? b->table->box[axis] : layer + 1); i++)
		b->made[axis][i] = pool_take(b, b->set_words[axis]);
	for (i = first; i >= 0; i = b->steps[i].next) {
		if (bits)
			bit_step_mark(b, &b->steps[i], axis);
		else
			step_mark(b, &b->steps[i], axis, b->pool + b->made[axis][layer]);
	}
	return b->pool + b->made[axis][layer];
}
