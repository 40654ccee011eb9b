/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/place/candidate_masks.h"

#include <stdlib.h>
#include <string.h>

#include "src/util/text.h"

#define CUBE_BITS 4096

/* Box coordinates of all vertices, in rank order. */
static void vertices_make(struct ocs_candidate_masks *p)
{
	const struct ocs_fold_table *table = p->table;
	int coord[OCS_SHAPE_DIMS] = { 0 }, at[OCS_AXES], last = table->ndim - 1, d, c, a;
	int(*to)[OCS_AXES] = p->box;

	while (true) {
		struct ocs_fold_entry base = { { 0 }, { 0 } }, sum;

		for (d = 0; d < last; d++)
			ocs_fold_add(&base, &table->dim[d][coord[d]]);
		for (c = 0; c < table->extent[last]; c++, to++) {
			sum = base;
			ocs_fold_add(&sum, &table->dim[last][c]);
			ocs_fold_at(table, &sum, at);
			for (a = 0; a < OCS_AXES; a++)
				(*to)[a] = at[a];
		}
		for (d = last - 1; d >= 0 && ++coord[d] == table->extent[d]; d--)
			coord[d] = 0;
		if (d < 0)
			return;
	}
}

static void folding_load(struct ocs_candidate_masks *p, int folding)
{
	if (p->table_of == folding)
		return;
	p->table_of = folding;
	p->table = ocs_catalogue_table(p->cat, folding);
	vertices_make(p);
}

/* What each layer of the box adds to the place of a vertex. */
static void axes_make(struct ocs_candidate_masks *p)
{
	int a, i, piece_stride = CUBE_BITS, bit_stride = 1;

	for (a = OCS_AXES - 1; a >= 0; a--) {
		int edge = p->host.edge[a], count = p->lay.count[a];
		int layer = p->lay.offset[a], piece = 0;

		for (i = 0; i < p->table->box[a]; i++) {
			p->axis_place[a][i] = piece * piece_stride + layer * bit_stride;
			p->axis_last[a][i] = layer == edge - 1;
			if (++layer < edge)
				continue;
			layer = 0;
			piece = piece + 1 < count ? piece + 1 : 0;
		}
		piece_stride *= count;
		bit_stride *= edge;
	}
}

static void places_make(struct ocs_candidate_masks *p)
{
	const int *x = p->axis_place[0], *y = p->axis_place[1], *z = p->axis_place[2];
	long i;

	for (i = 0; i < p->cat->shape.xpus; i++)
		p->place[i] = x[p->box[i][0]] + y[p->box[i][1]] + z[p->box[i][2]];
}

static void masks_reset(struct ocs_candidate_masks *p)
{
	int pieces = p->lay.count[0] * p->lay.count[1] * p->lay.count[2];
	size_t size = (size_t)pieces * (size_t)p->piece_words * sizeof(*p->masks);

	if (pieces > p->room) {
		p->room = pieces;
		p->masks = ocs_realloc(p->masks, size);
	}
	memset(p->masks, 0, size);
}

/* The XPUs of all nodes that a box touches: what its layers along all axes have in
 * common. */
static void box_fill(struct ocs_candidate_masks *p)
{
	const struct ocs_section *s = p->section;
	const struct ocs_box_layout *lay = &p->lay;
	int words = s->words, a, i, w, j, k,
	    stride[OCS_AXES] = { lay->count[1] * lay->count[2], lay->count[2], 1 };
	uint64_t *set[OCS_AXES];

	for (a = 0; a < OCS_AXES; a++) {
		set[a] = p->slabs[a];
		memset(set[a], 0, (size_t)lay->count[a] * (size_t)words * sizeof(uint64_t));
		for (i = 0; i < p->table->box[a]; i++) {
			int piece = p->axis_place[a][i] / CUBE_BITS / stride[a];
			int layer = (lay->offset[a] + i) % s->edge[a];

			for (w = 0; w < words; w++)
				set[a][piece * words + w] |= p->layer[a][layer * words + w];
		}
	}
	for (i = 0; i < lay->count[0]; i++) {
		for (j = 0; j < lay->count[1]; j++) {
			for (k = 0; k < lay->count[2]; k++) {
				int piece = (i * lay->count[1] + j) * lay->count[2] + k;
				uint64_t *mask = ocs_candidate_masks_piece(p, piece);

				for (w = 0; w < words; w++)
					mask[w] = set[0][i * words + w] & set[1][j * words + w] &
						  set[2][k * words + w];
			}
		}
	}
}

/* The XPUs of all nodes that vertices touch, one by one; returns the nodes. */
static int vertices_fill(struct ocs_candidate_masks *p)
{
	const struct ocs_section *s = p->section;
	int tile = s->tile[0] * s->tile[1] * s->tile[2];
	long xpus = 0, i;
	int w;

	for (i = 0; i < p->cat->shape.xpus; i++) {
		unsigned int place = (unsigned int)p->place[i], bit = place % CUBE_BITS;
		uint64_t *mask = ocs_candidate_masks_piece(p, (int)(place / CUBE_BITS));

		if (mask[bit / 64] >> bit % 64 & 1)
			continue;
		for (w = 0; w < s->words; w++)
			mask[w] |= p->tile_mask[bit * (unsigned int)s->words + (unsigned int)w];
		xpus += tile;
	}
	return (int)(xpus / tile);
}

int ocs_candidate_masks_fill(struct ocs_candidate_masks *p, int folding,
			     const struct ocs_box_layout *lay)
{
	folding_load(p, folding);
	p->lay = *lay;
	p->work += p->cat->shape.xpus;
	axes_make(p);
	places_make(p);
	masks_reset(p);
	if (!p->cat->foldings[folding].filled)
		return vertices_fill(p);
	box_fill(p);
	return 0;
}

static void port_add(struct ocs_candidate_masks *p, int where, int axis, int sign)
{
	unsigned int place = (unsigned int)where;
	unsigned int at = (unsigned int)p->port_bit[axis][place % CUBE_BITS];

	ocs_candidate_masks_piece(
		p, (int)(place /
			 CUBE_BITS))[p->section->words + (axis * 2 + sign) * p->cat->face_words +
				     (int)(at / 64)] |= 1ULL << at % 64;
}

static int twisted_ports(struct ocs_candidate_masks *p)
{
	const int *edge = p->host.edge;
	int i, n;

	ocs_box_layout_xpus(p->section, p->table, &p->lay, p->xpus);
	n = ocs_box_layout_circuits(p->section, &p->cat->shape, p->table, &p->lay, p->xpus,
				    p->circuits);
	for (i = 0; i < n; i++) {
		const struct ocs_circuit *c = &p->circuits[i];
		int at[OCS_AXES] = { 0 }, bit;

		at[c->dim ? 0 : 1] = c->pos[0];
		at[c->dim == 2 ? 1 : 2] = c->pos[1];
		bit = (at[0] * edge[1] + at[1]) * edge[2] + at[2];
		port_add(p, c->from * CUBE_BITS + bit, c->dim, OCS_PLUS);
		port_add(p, c->to * CUBE_BITS + bit, c->dim, OCS_MINUS);
	}
	return n;
}

/* Which way the edge from vertex U to V leads if a circuit joins them: 1 upwards, -1
 * downwards; 0: none does. */
static int edge_crosses(const struct ocs_candidate_masks *p, long u, long v, int axis)
{
	int from = p->box[u][axis], to = p->box[v][axis];
	/* a wrap leads upwards from the last layer to the first */
	bool up = to == from + 1 || (to != from - 1 && to == 0);

	return !p->axis_last[axis][up ? from : to] ? 0 : up ? 1 : -1;
}

/* The ports of the edges between COUNT vertices from U and as many from V on.  CROSSES: how
 * all of them do, 0: each as it does.  Returns how many cross. */
static int edges_ports(struct ocs_candidate_masks *p, long u, long v, long count, int axis,
		       int crosses)
{
	int way, n = 0;

	for (; count; count--, u++, v++) {
		way = crosses ? crosses : edge_crosses(p, u, v, axis);
		if (!way)
			continue;
		port_add(p, p->place[way > 0 ? u : v], axis, OCS_PLUS);
		port_add(p, p->place[way > 0 ? v : u], axis, OCS_MINUS);
		n++;
	}
	return n;
}

int ocs_candidate_masks_ports(struct ocs_candidate_masks *p)
{
	const struct ocs_shape *shape = &p->cat->shape;
	long stride = 1, outer, u, v;
	int d, c, axis, crosses, n = 0;

	if (shape->twisted)
		return twisted_ports(p);
	for (d = shape->ndim - 1; d >= 0; stride *= shape->extent[d], d--) {
		int extent = shape->extent[d];
		int steps = extent < 3 || shape->mesh[d] ? extent - 1 : extent;

		for (c = 0; c < steps; c++) {
			u = c * stride;
			v = (c + 1 == extent ? 0 : c + 1) * stride;
			for (axis = 0; p->box[u][axis] == p->box[v][axis]; axis++)
				;
			/* all edges of a step cross, or none does, unless bits share the axis */
			crosses = p->table->bits[axis] ? 0 : edge_crosses(p, u, v, axis);
			if (!crosses && !p->table->bits[axis])
				continue;
			for (outer = 0; outer < shape->xpus; outer += stride * extent)
				n += edges_ports(p, outer + u, outer + v, stride, axis, crosses);
		}
	}
	return n;
}

/* What the machine is like. */
static void tables_make(struct ocs_candidate_masks *p)
{
	const struct ocs_section *s = p->section;
	int at[OCS_AXES], in[OCS_AXES], bit, a;

	for (bit = 0; bit < s->cube_xpus; bit++) {
		int tile = s->tile[0] * s->tile[1] * s->tile[2], i;

		at[2] = bit % s->edge[2];
		at[1] = bit / s->edge[2] % s->edge[1];
		at[0] = bit / s->edge[2] / s->edge[1];
		for (i = 0; i < tile; i++) {
			int one;

			in[2] = i % s->tile[2];
			in[1] = i / s->tile[2] % s->tile[1];
			in[0] = i / s->tile[2] / s->tile[1];
			for (a = 0; a < OCS_AXES; a++)
				in[a] += at[a] - at[a] % s->tile[a];
			one = ocs_section_bit(s, in);
			p->tile_mask[bit * s->words + one / 64] |= 1ULL << one % 64;
		}
		p->port_bit[0][bit] = at[1] * s->edge[2] + at[2];
		p->port_bit[1][bit] = at[0] * s->edge[2] + at[2];
		p->port_bit[2][bit] = at[0] * s->edge[1] + at[1];
		for (a = 0; a < OCS_AXES && !p->host.fixed; a++) {
			for (i = 0; i < s->words; i++)
				p->layer[a][at[a] * s->words + i] |=
					p->tile_mask[bit * s->words + i];
		}
	}
}

void ocs_candidate_masks_create(struct ocs_candidate_masks *p, const struct ocs_section *s,
				struct ocs_catalogue *cat)
{
	size_t xpus = (size_t)cat->shape.xpus, words = (size_t)s->words;
	int a;

	memset(p, 0, sizeof(*p));
	p->section = s;
	ocs_lattice_of(s, &p->host);
	p->cat = cat;
	p->table_of = -1;
	p->piece_words = s->words + 6 * cat->face_words;
	p->box = ocs_calloc(xpus, sizeof(*p->box));
	p->place = ocs_calloc(xpus, sizeof(*p->place));
	p->tile_mask = ocs_calloc((size_t)s->cube_xpus * words, sizeof(uint64_t));
	for (a = 0; a < OCS_AXES; a++) {
		p->axis_place[a] = ocs_calloc((size_t)(s->edge[a] * s->ncubes), sizeof(int));
		p->axis_last[a] = ocs_calloc((size_t)(s->edge[a] * s->ncubes), sizeof(bool));
		p->port_bit[a] = ocs_calloc((size_t)s->cube_xpus, sizeof(int));
		p->layer[a] = ocs_calloc((size_t)s->edge[a] * words, sizeof(uint64_t));
		p->slabs[a] = ocs_calloc((size_t)s->ncubes * words, sizeof(uint64_t));
	}
	if (cat->shape.twisted) {
		p->xpus = ocs_calloc(xpus, sizeof(*p->xpus));
		p->circuits = ocs_calloc(xpus * OCS_AXES, sizeof(*p->circuits));
	}
	/* in a static torus only the nodes of several XPUs are asked for */
	if (!p->host.fixed || s->tile[0] * s->tile[1] * s->tile[2] > 1)
		tables_make(p);
}

void ocs_candidate_masks_free(struct ocs_candidate_masks *p)
{
	int a;

	for (a = 0; a < OCS_AXES; a++) {
		free(p->axis_place[a]);
		free(p->axis_last[a]);
		free(p->port_bit[a]);
		free(p->layer[a]);
		free(p->slabs[a]);
	}
	free(p->box);
	free(p->place);
	free(p->tile_mask);
	free(p->xpus);
	free(p->circuits);
	free(p->masks);
}
