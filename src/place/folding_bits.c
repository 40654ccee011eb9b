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
		b->mirror_made[a] = ocs_calloc((size_t)layers, sizeof(long));
	}
}

void ocs_folding_bits_free(struct ocs_folding_bits *b)
{
	int a;

	for (a = 0; a < OCS_FOLD_AXES; a++) {
		free(b->first[a]);
		free(b->made[a]);
		free(b->mirror_made[a]);
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
	ocs_folding_bits_mirror(b, 0);
}

void ocs_folding_bits_mirror(struct ocs_folding_bits *b, unsigned int axes)
{
	int a, i;

	b->mirrored = axes;
	b->mirror_cells = -1;
	for (a = 0; a < OCS_FOLD_AXES && axes; a++) {
		for (i = 0; i < b->table->box[a]; i++)
			b->mirror_made[a][i] = -1;
	}
}

/* Where the vertices of the last dimension are that have BASE, the sum of the others. */
static void column_make(const struct ocs_fold_table *table, const struct ocs_fold_entry *base,
			int (*to)[OCS_FOLD_AXES])
{
	int last = table->ndim - 1, c;
	struct ocs_fold_entry sum;

	for (c = 0; c < table->extent[last]; c++) {
		sum = *base;
		ocs_fold_add(&sum, &table->dim[last][c]);
		ocs_fold_at(table, &sum, to[c]);
	}
}

/* The same where no axis is bits: then it is a sum, or a difference on a mirrored axis. */
static void column_add(const struct ocs_fold_table *table, const struct ocs_fold_entry *base,
		       int (*to)[OCS_FOLD_AXES])
{
	const struct ocs_fold_entry *entry = table->dim[table->ndim - 1];
	int count = table->extent[table->ndim - 1], from[OCS_FOLD_AXES], sign[OCS_FOLD_AXES], a, c;

	for (a = 0; a < OCS_FOLD_AXES; a++) {
		bool flip = table->flip & 1u << a;

		sign[a] = flip ? -1 : 1;
		from[a] = flip ? table->box[a] - 1 - base->at[a] : base->at[a];
	}
	for (c = 0; c < count; c++) {
		to[c][0] = from[0] + sign[0] * entry[c].at[0];
		to[c][1] = from[1] + sign[1] * entry[c].at[1];
		to[c][2] = from[2] + sign[2] * entry[c].at[2];
	}
}

static void box_make(struct ocs_folding_bits *b)
{
	const struct ocs_fold_table *table = b->table;
	bool plain = !table->bits[0] && !table->bits[1] && !table->bits[2];
	int coord[OCS_SHAPE_DIMS] = { 0 }, last = table->ndim - 1, d;
	int(*to)[OCS_FOLD_AXES] = b->box;

	b->boxed = true;
	while (true) {
		struct ocs_fold_entry base = { { 0 }, { 0 } };

		for (d = 0; d < last; d++)
			ocs_fold_add(&base, &table->dim[d][coord[d]]);
		if (plain)
			column_add(table, &base, to);
		else
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

/* The COUNT bits of FROM, WORDS words long, in opposite order. */
static void bits_turn(const uint64_t *from, int words, int count, uint64_t *to)
{
	int shift = words * 64 - count, w;

	for (w = 0; w < words; w++)
		to[w] = ocs_bits_turn(from[words - 1 - w]);
	for (w = 0; w < words && shift; w++) {
		to[w] >>= shift;
		if (w + 1 < words)
			to[w] |= to[w + 1] << (64 - shift);
	}
}

/* The set across AXIS at FROM of the pool as its mirror has it, at TO. */
static void set_turn(struct ocs_folding_bits *b, int axis, long from, long to)
{
	int rows = b->table->box[row_axis[axis]], words = b->row_words[axis], i;
	bool rows_turn = b->mirrored & 1u << row_axis[axis];
	bool bits_too = b->mirrored & 1u << bit_axis[axis];

	for (i = 0; i < rows; i++) {
		const uint64_t *row = b->pool + from + (rows_turn ? rows - 1 - i : i) * words;

		if (bits_too)
			bits_turn(row, words, b->table->box[bit_axis[axis]],
				  b->pool + to + i * words);
		else
			memcpy(b->pool + to + i * words, row, (size_t)words * sizeof(*row));
	}
}

static long cells_make(struct ocs_folding_bits *b)
{
	uint64_t *cells;
	long i;

	if (b->cells >= 0)
		return b->cells;
	if (!b->boxed)
		box_make(b);
	b->cells = pool_take(b, (size_t)b->table->box[0] * b->set_words[0]);
	cells = b->pool + b->cells;
	for (i = 0; i < b->shape->xpus; i++) {
		const int *at = b->box[i];

		ocs_bits_add(cells + (at[0] * b->table->box[1] + at[1]) * b->row_words[0], at[2]);
	}
	return b->cells;
}

const uint64_t *ocs_folding_bits_cells(struct ocs_folding_bits *b)
{
	long from = cells_make(b), set = (long)b->set_words[0];
	int layers = b->table->box[0], i;

	if (!b->mirrored)
		return b->pool + from;
	if (b->mirror_cells < 0) {
		b->mirror_cells = pool_take(b, (size_t)(layers * set));
		for (i = 0; i < layers; i++)
			set_turn(b, 0, from + (b->mirrored & 1 ? layers - 1 - i : i) * set,
				 b->mirror_cells + i * set);
	}
	return b->pool + b->mirror_cells;
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

/* Where in the pool the edges of LAYER are, mirrored ones aside; -1: there are none. */
static long edges_make(struct ocs_folding_bits *b, int axis, int layer)
{
	bool bits = b->table->bits[axis];
	int first = bits ? b->bit_steps[axis] : b->first[axis][layer], i;

	if (first < 0)
		return -1;
	if (b->made[axis][layer] >= 0)
		return b->made[axis][layer];
	if (!b->boxed)
		box_make(b);
	for (i = 0; i < b->table->box[axis]; i++) {
		if (bits || i == layer)
			b->made[axis][i] = pool_take(b, b->set_words[axis]);
	}
	for (i = first; i >= 0; i = b->steps[i].next) {
		if (bits)
			bit_step_mark(b, &b->steps[i], axis);
		else
			step_mark(b, &b->steps[i], axis, b->pool + b->made[axis][layer]);
	}
	return b->made[axis][layer];
}

const uint64_t *ocs_folding_bits_edges(struct ocs_folding_bits *b, int axis, int layer)
{
	int layers = b->table->box[axis], from = layer;
	long set, *turned;

	/* what leads from a layer to the next leads to it in the mirror; round the box it stays */
	if (b->mirrored & 1u << axis && layer + 1 < layers)
		from = layers - 2 - layer;
	set = edges_make(b, axis, from);
	if (set < 0)
		return NULL;
	if (!(b->mirrored & ~(1u << axis)))
		return b->pool + set;
	turned = &b->mirror_made[axis][layer];
	if (*turned < 0) {
		*turned = pool_take(b, b->set_words[axis]);
		set_turn(b, axis, set, *turned);
	}
	return b->pool + *turned;
}
