/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* The foldings of the published policies (RFold, section 3): a ring around two or
 * three axes; one dimension of two folded once, or both or one twice where a cube of
 * edge 4 closes an axis on itself; with a dimension of 2, half of another onto it. */

#include <stdlib.h>
#include <string.h>

#include "src/place/box_layout.h"
#include "src/policy/internal.h"
#include "src/util/text.h"

#define N_BITS 4 /* the edge where a closed axis is two bits */

struct build {
	struct ocs_policy *policy;
	struct ocs_policy_shape *entry;
	struct ocs_lattice host;
	struct ocs_folding folding; /* being put together */
	int axes;		    /* given out so far */
	int dims[OCS_SHAPE_DIMS];   /* longer than 1: an extent of 1 that somebody wrote is */
	int ndims;		    /* no dimension to the rules */
};

static void factor_add(struct build *b, int dim, int axis, enum ocs_factor_kind kind, int length)
{
	struct ocs_folding *f = &b->folding;

	/* a factor of one is none */
	if (length < 2)
		return;
	f->dim[dim].factor[f->dim[dim].n++] = (struct ocs_factor){ axis, kind, length };
	f->box[axis] = kind >= OCS_FACTOR_BIT0 ? N_BITS : length;
	f->closed[axis] |= kind != OCS_FACTOR_PATH;
}

static void folding_begin(struct build *b)
{
	int a;

	memset(&b->folding, 0, sizeof(b->folding));
	b->folding.ndim = b->entry->shape.ndim;
	b->folding.filled = true;
	for (a = 0; a < OCS_FOLD_AXES; a++)
		b->folding.box[a] = 1;
	b->axes = 0;
}

static void dimension_straight(struct build *b, int dim)
{
	factor_add(b, dim, b->axes++, OCS_FACTOR_PATH, b->entry->shape.extent[dim]);
}

/* Whether an axis of LENGTH can close. */
static bool axis_closes(const struct build *b, int axis, int length)
{
	int edge = b->host.edge[axis];

	return length > 2 && (b->host.fixed ? length == edge : length % edge == 0);
}

/* Keeps the folding in one rotation, if it is one. */
static void folding_keep(struct build *b, const int *to)
{
	struct ocs_folding turned = b->folding;
	struct ocs_policy_shape *e = b->entry;
	struct ocs_policy_box box = { .shape = e->shape, .cubes = 1 };
	int d, j, a, at;

	for (a = 0; a < OCS_FOLD_AXES; a++) {
		turned.box[to[a]] = b->folding.box[a];
		turned.closed[to[a]] = b->folding.closed[a];
	}
	for (d = 0; d < turned.ndim; d++) {
		struct ocs_factor *f = turned.dim[d].factor;

		for (j = 0; j < turned.dim[d].n; j++)
			f[j].axis = to[f[j].axis];
		if (turned.dim[d].n != 1 || f->kind != OCS_FACTOR_PATH || f->length < 3 ||
		    box.shape.mesh[d])
			continue;
		if (axis_closes(b, f->axis, f->length)) {
			f->kind = OCS_FACTOR_RING;
			turned.closed[f->axis] = true;
		} else if (b->policy->lenient) {
			box.shape.mesh[d] = true;
		}
	}
	for (a = 0; a < OCS_FOLD_AXES && !b->host.fixed; a++)
		box.cubes *= (turned.box[a] + b->host.edge[a] - 1) / b->host.edge[a];
	if (box.cubes > b->policy->section->ncubes ||
	    ocs_fold_table_make(&turned, &box.shape, &b->host, &box.table, NULL))
		return;
	/* fewest cubes first, then the order of the rules */
	e->boxes = ocs_realloc(e->boxes, (size_t)(e->nboxes + 1) * sizeof(*e->boxes));
	for (at = e->nboxes++; at && e->boxes[at - 1].cubes > box.cubes; at--)
		e->boxes[at] = e->boxes[at - 1];
	e->boxes[at] = box;
}

static void rotations_keep(struct build *b)
{
	static const int order[6][OCS_FOLD_AXES] = {
		{ 0, 1, 2 }, { 0, 2, 1 }, { 1, 0, 2 }, { 1, 2, 0 }, { 2, 0, 1 }, { 2, 1, 0 },
	};
	int i;

	for (i = 0; i < (b->entry->shape.no_rotate ? 1 : 6); i++)
		folding_keep(b, order[i]);
}

/* Every dimension straight.  Without rotation dimension D belongs on axis D. */
static void fold_none(struct build *b)
{
	int i;

	folding_begin(b);
	for (i = 0; i < b->ndims; i++) {
		if (b->entry->shape.no_rotate)
			b->axes = b->dims[i];
		if (b->axes >= OCS_FOLD_AXES)
			return;
		dimension_straight(b, b->dims[i]);
	}
	rotations_keep(b);
}

/* A ring of one dimension around all boxes of two or three axes that it fills. */
static void fold_one(struct build *b)
{
	int dim = b->dims[0], n = b->entry->shape.extent[dim], i, j;

	for (i = 2; i * i <= n; i++) {
		if (n % i || (i % 2 && n / i % 2))
			continue;
		folding_begin(b);
		factor_add(b, dim, 0, OCS_FACTOR_PATH, n / i);
		factor_add(b, dim, 1, OCS_FACTOR_PATH, i);
		rotations_keep(b);
	}
	for (i = 2; i * i * i <= n; i++) {
		for (j = i; n % i == 0 && i * j * j <= n; j++) {
			int k = n / i / j, first = k % 2 == 0 ? k : j % 2 == 0 ? j : i;

			if (n / i % j || first % 2)
				continue;
			folding_begin(b);
			/* the walk wants an even axis first */
			factor_add(b, dim, 0, OCS_FACTOR_PATH, first);
			factor_add(b, dim, 1, OCS_FACTOR_PATH, first == k ? j : k);
			factor_add(b, dim, 2, OCS_FACTOR_PATH, first == i ? j : i);
			rotations_keep(b);
		}
	}
}

/* Dimension DIM around two axes of which one is BY long, dimension OTHER straight. */
static void fold_dim(struct build *b, int dim, int other, int by)
{
	int extent = b->entry->shape.extent[dim];

	if (extent % by || extent / by < 2)
		return;
	folding_begin(b);
	factor_add(b, dim, b->axes++, OCS_FACTOR_PATH, extent / by);
	factor_add(b, dim, b->axes++, OCS_FACTOR_PATH, by);
	dimension_straight(b, other);
	rotations_keep(b);
}

/* Dimensions P and Q, half of each on a path and one bit each of a closed axis of four;
 * the others straight. */
static void fold_bits(struct build *b, int p, int q)
{
	const int *extent = b->entry->shape.extent;
	int d;

	if (extent[p] % 2 || extent[q] % 2)
		return;
	folding_begin(b);
	factor_add(b, p, b->axes++, OCS_FACTOR_PATH, extent[p] / 2);
	b->axes -= extent[p] == 2;
	factor_add(b, q, b->axes++, OCS_FACTOR_PATH, extent[q] / 2);
	b->axes -= extent[q] == 2;
	for (d = 0; d < b->folding.ndim; d++) {
		if (d != p && d != q && extent[d] > 1) {
			if (b->axes == OCS_FOLD_AXES)
				return;
			dimension_straight(b, d);
		}
	}
	if (b->axes == OCS_FOLD_AXES)
		return;
	factor_add(b, p, b->axes, OCS_FACTOR_BIT0, 2);
	factor_add(b, q, b->axes, OCS_FACTOR_BIT1, 2);
	rotations_keep(b);
}

static void fold_two(struct build *b, bool bits)
{
	int p = b->dims[0], q = b->dims[1];

	fold_dim(b, p, q, 2);
	fold_dim(b, q, p, 2);
	if (!bits)
		return;
	fold_dim(b, p, q, N_BITS);
	fold_dim(b, q, p, N_BITS);
	fold_bits(b, p, q);
}

static void fold_three(struct build *b)
{
	const struct ocs_shape *shape = &b->entry->shape;
	int p, q;

	for (p = 0; p < shape->ndim; p++) {
		for (q = 0; q < shape->ndim; q++) {
			if (p != q && shape->extent[p] == 2)
				fold_bits(b, p, q);
		}
	}
}

void ocs_policy_boxes(struct ocs_policy *policy, struct ocs_policy_shape *entry)
{
	const struct ocs_shape *shape = &entry->shape;
	struct build b = { .policy = policy, .entry = entry };
	bool bits = policy->kind == OCS_POLICY_RFOLD && policy->section->edge[0] == N_BITS;

	entry->use = *shape;
	b.ndims = ocs_policy_dims(shape, b.dims);
	/* the published rules know neither more dimensions nor twists */
	if (b.ndims > OCS_FOLD_AXES || shape->twisted)
		return;
	ocs_lattice_of(policy->section, &b.host);
	fold_none(&b);
	if (policy->kind == OCS_POLICY_FIRSTFIT || policy->kind == OCS_POLICY_RECONFIG ||
	    shape->no_fold)
		return;
	if (b.ndims == 1)
		fold_one(&b);
	else if (b.ndims == 2)
		fold_two(&b, bits);
	else if (bits && b.ndims > 2)
		fold_three(&b);
}

void ocs_policy_boxes_free(struct ocs_policy_shape *entry)
{
	int i;

	for (i = 0; i < entry->nboxes; i++)
		ocs_fold_table_free(&entry->boxes[i].table);
	free(entry->boxes);
	entry->boxes = NULL;
	entry->nboxes = 0;
}
