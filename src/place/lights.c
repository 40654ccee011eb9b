/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/place/lights.h"

#include <stdlib.h>
#include <string.h>

#include "src/util/text.h"

/* Bounds on the work for one shape. */
#define FOLDINGS_MAX 20000
#define LIGHTS_MAX 200000

static bool folding_add(const struct ocs_folding *folding, void *arg)
{
	struct ocs_catalogue_rest *b = arg;
	int cubes = 1, a;

	for (a = 0; a < OCS_AXES && !b->host.fixed; a++)
		cubes *= (folding->box[a] + b->host.edge[a] - 1) / b->host.edge[a];
	if (!b->least_cubes || cubes < b->least_cubes)
		b->least_cubes = cubes;
	OCS_GROW(b->cat->foldings, b->cat->nfoldings, b->folding_room);
	b->cat->foldings[b->cat->nfoldings++] = *folding;
	return b->cat->nfoldings < FOLDINGS_MAX;
}

/* Tile layers that LENGTH layers from OFFSET touch on a ring of TOTAL. */
static int tile_layers(int offset, int length, int total, int tile)
{
	int layers = (offset + length - 1) / tile - offset / tile + 1;

	return layers < total / tile ? layers : total / tile;
}

void ocs_lights_note(struct ocs_catalogue_rest *b, const struct ocs_light *light)
{
	struct ocs_catalogue *cat = b->cat;

	if (!cat->min_nodes || light->nodes < cat->min_nodes ||
	    (light->nodes == cat->min_nodes && light->cubes < b->best_cubes)) {
		cat->min_nodes = light->nodes;
		b->best_cubes = light->cubes;
	}
}

static void light_add(struct ocs_catalogue_rest *b, int folding, const struct ocs_box_layout *lay)
{
	const struct ocs_folding *f = &b->cat->foldings[folding];
	struct ocs_light light = { .folding = folding, .lay = *lay, .cubes = 1 };
	int nodes = 1, a;

	for (a = 0; a < OCS_AXES; a++) {
		light.cubes *= lay->count[a];
		nodes *= tile_layers(lay->offset[a], f->box[a], lay->count[a] * b->host.edge[a],
				     b->host.tile[a]);
	}
	if (light.cubes > b->cubes_limit || b->nlights == LIGHTS_MAX)
		return;
	light.nodes = f->filled ? nodes : 0;
	if (light.nodes) {
		ocs_lights_note(b, &light);
		if (light.nodes != (b->want ? b->want : b->cat->min_nodes))
			return;
	}
	light.seq = b->nlights;
	OCS_GROW(b->lights, b->nlights, b->light_room);
	b->lights[b->nlights++] = light;
}

/* Boxes with gaps are many: only offsets where their tiles are the fabric's, and
 * none that goes round. */
static bool gaps_aligned(const struct ocs_catalogue_rest *b, const struct ocs_folding *f, int axis,
			 int offset, int cubes)
{
	int tile = b->host.tile[axis], box = f->box[axis];
	int border = f->flip & 1u << axis ? offset + box : offset;

	if (border % tile)
		return false;
	return b->host.fixed || offset + box <= cubes * b->host.edge[axis];
}

/* The places on one axis: offsets in as few cubes as possible, going round where
 * the box runs over the end, and those that simply run into one cube more. */
static int axis_places(const struct ocs_catalogue_rest *b, const struct ocs_folding *f, int axis,
		       int offset[2 * OCS_EDGE_MAX], int count[2 * OCS_EDGE_MAX])
{
	int edge = b->host.edge[axis], box = f->box[axis], least = (box + edge - 1) / edge;
	int n = 0, o;

	if (b->host.fixed)
		edge = b->host.tile[axis]; /* further ones are tried by moving tiles */
	for (o = 0; o < edge; o++) {
		if (o && (f->closed[axis] || box == least * b->host.edge[axis]))
			break;
		if (!f->filled && !gaps_aligned(b, f, axis, o, least))
			continue;
		offset[n] = o;
		count[n++] = least;
	}
	for (o = 1; !b->host.fixed && !f->closed[axis] && o < edge; o++) {
		if (!f->filled || o + box <= least * edge)
			continue;
		offset[n] = o;
		count[n++] = least + 1;
	}
	return n;
}

static void lights_make(struct ocs_catalogue_rest *b, int folding)
{
	int offset[OCS_AXES][2 * OCS_EDGE_MAX], count[OCS_AXES][2 * OCS_EDGE_MAX], n[OCS_AXES];
	const struct ocs_folding *f = &b->cat->foldings[folding];
	struct ocs_box_layout lay;
	int a, i, j, k;

	for (a = 0; a < OCS_AXES; a++)
		n[a] = axis_places(b, f, a, offset[a], count[a]);
	for (i = 0; i < n[0]; i++) {
		for (j = 0; j < n[1]; j++) {
			for (k = 0; k < n[2]; k++) {
				int at[OCS_AXES] = { i, j, k };

				for (a = 0; a < OCS_AXES; a++) {
					lay.offset[a] = offset[a][at[a]];
					lay.count[a] = count[a][at[a]];
				}
				light_add(b, folding, &lay);
			}
		}
	}
}

static int light_compare(const void *a, const void *b)
{
	const struct ocs_light *p = a, *q = b;

	return p->cubes != q->cubes ? p->cubes - q->cubes : p->seq - q->seq;
}

void ocs_lights_sort(struct ocs_catalogue_rest *b)
{
	if (b->nlights > b->next)
		qsort(b->lights + b->next, (size_t)(b->nlights - b->next), sizeof(*b->lights),
		      light_compare);
}

bool ocs_lone_ring(const struct ocs_shape *shape)
{
	int d, n = 0;

	for (d = 0; d < shape->ndim; d++)
		n += shape->extent[d] > 2;
	return n < 2;
}

void ocs_lights_all(struct ocs_catalogue_rest *b, bool gaps)
{
	struct ocs_catalogue *cat = b->cat;
	int from = cat->nfoldings, f;

	ocs_fold_family(&cat->shape, &b->host, gaps, folding_add, b);
	cat->tables = ocs_realloc(cat->tables, ((size_t)cat->nfoldings + 1) * sizeof(*cat->tables));
	memset(cat->tables + from, 0, ((size_t)(cat->nfoldings - from) + 1) * sizeof(*cat->tables));
	b->pieces.table_of = -1;
	b->cubes_limit = b->section->ncubes;
	if (ocs_lone_ring(&cat->shape) && 2 * b->least_cubes + 2 < b->cubes_limit)
		b->cubes_limit = 2 * b->least_cubes + 2;
	for (f = from; f < cat->nfoldings; f++)
		lights_make(b, f);
	b->gaps |= gaps;
}
