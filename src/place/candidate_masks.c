/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/place/candidate_masks.h"

#include <stdlib.h>
#include <string.h>

#include "src/place/bits.h"
#include "src/place/lights.h"
#include "src/util/text.h"

#define CUBE_BITS 4096

/* Frees the table that was loaded, and that of which it is a mirror, unless FOLDING is another mirror
 * of it: these follow each other, and the next table can have the memory. */
static void folding_leave(struct ocs_candidate_masks *p, int folding)
{
	const int *mirror_of = p->cat->rest->mirror_of;

	if (p->table_of < 0 || mirror_of[p->table_of] == mirror_of[folding])
		return;
	ocs_fold_table_free(&p->cat->tables[p->table_of]);
	ocs_fold_table_free(&p->cat->tables[mirror_of[p->table_of]]);
}

static void folding_load(struct ocs_candidate_masks *p, int folding)
{
	if (p->table_of == folding)
		return;
	folding_leave(p, folding);
	p->table_of = folding;
	p->table = ocs_catalogue_table(p->cat, folding);
	ocs_folding_bits_load(&p->bits, p->table);
}

/* What each layer of the box adds to the place of a vertex, and which are in one cube. */
static void axes_make(struct ocs_candidate_masks *p)
{
	int a, i, piece_stride = CUBE_BITS, bit_stride = 1;

	for (a = OCS_AXES - 1; a >= 0; a--) {
		int edge = p->host.edge[a], count = p->lay.count[a];
		int layer = p->lay.offset[a], piece = 0, n = 0;

		for (i = 0; i < p->table->box[a]; i++) {
			if (!i || !layer)
				p->runs[a][n++] = (struct ocs_masks_run){ i, 0 };
			p->runs[a][n - 1].count++;
			p->axis_place[a][i] = piece * piece_stride + layer * bit_stride;
			p->axis_last[a][i] = layer == edge - 1;
			if (++layer < edge)
				continue;
			layer = 0;
			piece = piece + 1 < count ? piece + 1 : 0;
		}
		p->nruns[a] = n;
		piece_stride *= count;
		bit_stride *= edge;
	}
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

static void cells_fill(struct ocs_candidate_masks *p)
{
	const uint64_t *row = ocs_folding_bits_cells(&p->bits);
	int x, y, r;

	for (x = 0; x < p->table->box[0]; x++) {
		for (y = 0; y < p->table->box[1]; y++, row += p->bits.row_words[0]) {
			for (r = 0; r < p->nruns[2]; r++) {
				const struct ocs_masks_run *run = &p->runs[2][r];
				uint64_t bits = ocs_bits_cut(row, run->from, run->count);
				unsigned int place;

				if (!bits)
					continue;
				place = (unsigned int)(p->axis_place[0][x] + p->axis_place[1][y] +
						       p->axis_place[2][run->from]);
				ocs_bits_join(
					ocs_candidate_masks_piece(p, (int)(place / CUBE_BITS)),
					(int)(place % CUBE_BITS), bits);
			}
		}
	}
}

/* Makes of the XPUs in MASK those of all their nodes. */
static void nodes_fill(const struct ocs_candidate_masks *p, uint64_t *mask)
{
	uint64_t all[CUBE_BITS / 64] = { 0 };
	int words = p->section->words, w, v;

	for (w = 0; w < words; w++) {
		uint64_t left = mask[w] & ~all[w];

		for (; left; left &= ~all[w]) {
			int bit = w * 64 + __builtin_ctzll(left);

			for (v = 0; v < words; v++)
				all[v] |= p->tile_mask[bit * words + v];
		}
	}
	memcpy(mask, all, (size_t)words * sizeof(*mask));
}

/* The XPUs of all nodes that vertices touch. */
static void vertices_fill(struct ocs_candidate_masks *p)
{
	int pieces = p->lay.count[0] * p->lay.count[1] * p->lay.count[2], i;
	const int *tile = p->section->tile;

	cells_fill(p);
	for (i = 0; i < pieces && tile[0] * tile[1] * tile[2] > 1; i++)
		nodes_fill(p, ocs_candidate_masks_piece(p, i));
}

void ocs_candidate_masks_fill(struct ocs_candidate_masks *p, int folding,
			      const struct ocs_box_layout *lay)
{
	folding_load(p, folding);
	p->lay = *lay;
	axes_make(p);
	masks_reset(p);
	if (p->cat->foldings[folding].filled)
		box_fill(p);
	else
		vertices_fill(p);
}

/* Adds BITS to the ports of AXIS and SIGN, the first of which is that of the XPU at WHERE. */
static void ports_add(struct ocs_candidate_masks *p, int where, int axis, int sign, uint64_t bits)
{
	unsigned int place = (unsigned int)where;
	uint64_t *piece = ocs_candidate_masks_piece(p, (int)(place / CUBE_BITS));

	ocs_bits_join(piece + p->section->words + (axis * 2 + sign) * p->cat->face_words,
		      p->port_bit[axis][place % CUBE_BITS], bits);
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
		ports_add(p, c->from * CUBE_BITS + bit, c->dim, OCS_PLUS, 1);
		ports_add(p, c->to * CUBE_BITS + bit, c->dim, OCS_MINUS, 1);
	}
	return n;
}

/* Adds the ports of EDGES, which leave the cubes of LAYER along AXIS; returns how many. */
static int edges_ports(struct ocs_candidate_masks *p, int axis, int layer, const uint64_t *edges)
{
	int rows = axis ? 0 : 1, bits = axis == 2 ? 1 : 2, i, r, n = 0;
	int next = layer + 1 < p->table->box[axis] ? layer + 1 : 0;

	for (i = 0; i < p->table->box[rows]; i++, edges += p->bits.row_words[axis]) {
		for (r = 0; r < p->nruns[bits]; r++) {
			const struct ocs_masks_run *run = &p->runs[bits][r];
			uint64_t ports = ocs_bits_cut(edges, run->from, run->count);
			int place;

			if (!ports)
				continue;
			place = p->axis_place[rows][i] + p->axis_place[bits][run->from];
			ports_add(p, place + p->axis_place[axis][layer], axis, OCS_PLUS, ports);
			ports_add(p, place + p->axis_place[axis][next], axis, OCS_MINUS, ports);
			n += ocs_bits_count(ports);
		}
	}
	return n;
}

int ocs_candidate_masks_ports(struct ocs_candidate_masks *p)
{
	int axis, layer, n = 0;

	if (p->cat->shape.twisted)
		return twisted_ports(p);
	for (axis = 0; axis < OCS_AXES; axis++) {
		for (layer = 0; layer < p->table->box[axis]; layer++) {
			const uint64_t *edges = NULL;

			if (p->axis_last[axis][layer])
				edges = ocs_folding_bits_edges(&p->bits, axis, layer);
			if (edges)
				n += edges_ports(p, axis, layer, edges);
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
		for (a = 0; a < OCS_AXES; a++) {
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
	int layers = 0, a;

	memset(p, 0, sizeof(*p));
	p->section = s;
	ocs_lattice_of(s, &p->host);
	p->cat = cat;
	p->table_of = -1;
	p->piece_words = s->words + 6 * cat->face_words;
	p->tile_mask = ocs_calloc((size_t)s->cube_xpus * words, sizeof(uint64_t));
	for (a = 0; a < OCS_AXES; a++) {
		layers = s->edge[a] * s->ncubes > layers ? s->edge[a] * s->ncubes : layers;
		p->runs[a] = ocs_calloc((size_t)s->ncubes + 1, sizeof(*p->runs[a]));
		p->axis_place[a] = ocs_calloc((size_t)(s->edge[a] * s->ncubes), sizeof(int));
		p->axis_last[a] = ocs_calloc((size_t)(s->edge[a] * s->ncubes), sizeof(bool));
		p->port_bit[a] = ocs_calloc((size_t)s->cube_xpus, sizeof(int));
		p->layer[a] = ocs_calloc((size_t)s->edge[a] * words, sizeof(uint64_t));
		p->slabs[a] = ocs_calloc((size_t)s->ncubes * words, sizeof(uint64_t));
	}
	ocs_folding_bits_create(&p->bits, &cat->shape, layers);
	if (cat->shape.twisted) {
		p->xpus = ocs_calloc(xpus, sizeof(*p->xpus));
		p->circuits = ocs_calloc(xpus * OCS_AXES, sizeof(*p->circuits));
	}
	tables_make(p);
}

void ocs_candidate_masks_free(struct ocs_candidate_masks *p)
{
	int a;

	for (a = 0; a < OCS_AXES; a++) {
		free(p->runs[a]);
		free(p->axis_place[a]);
		free(p->axis_last[a]);
		free(p->port_bit[a]);
		free(p->layer[a]);
		free(p->slabs[a]);
	}
	ocs_folding_bits_free(&p->bits);
	free(p->tile_mask);
	free(p->xpus);
	free(p->circuits);
	free(p->masks);
}
