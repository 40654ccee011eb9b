/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/place/lights.h"

#include <stdlib.h>
#include <string.h>

#include "src/util/text.h"

/* Bounds on the work for one shape. */
#define FOLDINGS_MAX 20000
#define LIGHTS_MAX 200000

/* The cubes that the box of FOLDING takes at the least. */
static int box_cubes(const struct ocs_catalogue_rest *b, const struct ocs_folding *folding)
{
	int cubes = 1, a;

	for (a = 0; a < OCS_AXES && !b->host.fixed; a++)
		cubes *= (folding->box[a] + b->host.edge[a] - 1) / b->host.edge[a];
	return cubes;
}

static bool folding_add(const struct ocs_folding *folding, void *arg)
{
	struct ocs_catalogue_rest *b = arg;
	struct ocs_catalogue *cat = b->cat;
	int cubes = box_cubes(b, folding), n;

	if (!b->least_cubes || cubes < b->least_cubes)
		b->least_cubes = cubes;
	if (cat->nfoldings == b->folding_room) {
		size_t room;

		OCS_GROW(cat->foldings, cat->nfoldings, b->folding_room);
		room = (size_t)b->folding_room;
		cat->tables = ocs_realloc(cat->tables, room * sizeof(*cat->tables));
		b->mirror_of = ocs_realloc(b->mirror_of, room * sizeof(*b->mirror_of));
		b->gap_nodes = ocs_realloc(b->gap_nodes, room * sizeof(*b->gap_nodes));
	}
	n = cat->nfoldings++;
	cat->foldings[n] = *folding;
	memset(&cat->tables[n], 0, sizeof(*cat->tables));
	/* mirrored ones follow the one that they are made of */
	b->mirror_of[n] = folding->flip ? b->mirror_of[n - 1] : n;
	b->gap_nodes[n] = 0;
	return cat->nfoldings < FOLDINGS_MAX;
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

int ocs_lights_nodes(struct ocs_catalogue_rest *b, const struct ocs_light *light)
{
	int *nodes = &b->gap_nodes[b->mirror_of[light->folding]];

	b->work += b->cat->shape.xpus; /* as if it were laid here */
	if (!*nodes)
		*nodes = (int)ocs_fold_table_nodes(ocs_catalogue_table(b->cat, light->folding),
						   &b->host);
	return *nodes;
}

/* Whether boxes with gaps on CUBES are left out later anyway, for there are others on many fewer
 * that take as few nodes as can be. */
static bool gaps_sprawl(const struct ocs_catalogue_rest *b, int cubes)
{
	const int *tile = b->host.tile;
	bool all_least = tile[0] * tile[1] * tile[2] == 1; /* a node is an XPU */

	return (all_least && b->gap_cubes && cubes > b->gap_cubes + OCS_GAPS_MORE) ||
	       (b->cat->min_nodes == b->least_nodes && cubes > b->best_cubes + OCS_GAPS_MORE);
}

/* NODES: of a filled box, 0: of one with gaps. */
static void light_add(struct ocs_catalogue_rest *b, int folding, const struct ocs_box_layout *lay,
		      int cubes, int nodes)
{
	struct ocs_light light = {
		.folding = folding, .lay = *lay, .cubes = cubes, .nodes = nodes
	};

	if (cubes > b->cubes_limit || b->nlights == LIGHTS_MAX)
		return;
	if (nodes) {
		ocs_lights_note(b, &light);
		if (nodes != (b->want ? b->want : b->cat->min_nodes))
			return;
	} else if (!b->gap_cubes || cubes < b->gap_cubes) {
		b->gap_cubes = cubes;
	}
	OCS_GROW(b->lights, b->nlights, b->light_room);
	b->lights[b->nlights++] = light;
}

struct axis_places {
	int n;
	int offset[2 * OCS_EDGE_MAX], count[2 * OCS_EDGE_MAX];
	int layers[2 * OCS_EDGE_MAX]; /* of tiles that a filled box touches */
};

static void axis_place_add(const struct ocs_catalogue_rest *b, const struct ocs_folding *f,
			   int axis, int offset, int count, struct axis_places *places)
{
	int n = places->n++;

	places->offset[n] = offset;
	places->count[n] = count;
	if (f->filled)
		places->layers[n] = tile_layers(offset, f->box[axis], count * b->host.edge[axis],
						b->host.tile[axis]);
}

/* Boxes with gaps are many: only offsets where their tiles are the fabric's, and none that goes round.
 * ENDS: before which offset. */
static void gap_places(const struct ocs_catalogue_rest *b, const struct ocs_folding *f, int axis,
		       int ends, int count, struct axis_places *places)
{
	int tile = b->host.tile[axis], box = f->box[axis], o = 0;

	if (tile > 1 && f->flip & 1u << axis)
		o = (tile - box % tile) % tile;
	for (; o < ends && (b->host.fixed || o + box <= count * b->host.edge[axis]); o += tile)
		axis_place_add(b, f, axis, o, count, places);
}

/* The places on one axis: offsets in as few cubes as possible, going round where
 * the box runs over the end, and those that simply run into one cube more. */
static void axis_places(const struct ocs_catalogue_rest *b, const struct ocs_folding *f, int axis,
			struct axis_places *places)
{
	int edge = b->host.edge[axis], box = f->box[axis], least = (box + edge - 1) / edge, o;
	bool whole = f->closed[axis] || box == least * edge;

	places->n = 0;
	if (b->host.fixed)
		edge = b->host.tile[axis]; /* further ones are tried by moving tiles */
	if (!f->filled) {
		gap_places(b, f, axis, whole ? 1 : edge, least, places);
		return;
	}
	for (o = 0; o < (whole ? 1 : edge); o++)
		axis_place_add(b, f, axis, o, least, places);
	for (o = 1; !b->host.fixed && !f->closed[axis] && o < edge; o++) {
		if (o + box > least * edge)
			axis_place_add(b, f, axis, o, least + 1, places);
	}
}

static void lights_make(struct ocs_catalogue_rest *b, int folding)
{
	const struct ocs_folding *f = &b->cat->foldings[folding];
	struct axis_places p[OCS_AXES];
	int cubes = box_cubes(b, f), a, i, j, k;

	if (cubes > b->cubes_limit || (!f->filled && gaps_sprawl(b, cubes)))
		return;
	for (a = 0; a < OCS_AXES; a++)
		axis_places(b, f, a, &p[a]);
	for (i = 0; i < p[0].n; i++) {
		for (j = 0; j < p[1].n; j++) {
			for (k = 0; k < p[2].n; k++) {
				struct ocs_box_layout lay = {
					{ p[0].offset[i], p[1].offset[j], p[2].offset[k] },
					{ p[0].count[i], p[1].count[j], p[2].count[k] }
				};
				int nodes = 0;

				if (f->filled)
					nodes = p[0].layers[i] * p[1].layers[j] * p[2].layers[k];
				light_add(b, folding, &lay,
					  lay.count[0] * lay.count[1] * lay.count[2], nodes);
			}
		}
	}
}

/* Moves each of N lights to its place. */
static void lights_move(struct ocs_light *lights, int *place, int n)
{
	int i;

	for (i = 0; i < n; i++) {
		while (place[i] != i) {
			int to = place[i];
			struct ocs_light light = lights[to];

			lights[to] = lights[i];
			lights[i] = light;
			place[i] = place[to];
			place[to] = to;
		}
	}
}

void ocs_lights_sort(struct ocs_catalogue_rest *b)
{
	int n = b->nlights - b->next, most = 0, i;
	struct ocs_light *lights;
	int *start, *place;

	if (n < 1)
		return;
	lights = b->lights + b->next;
	for (i = 0; i < n; i++)
		most = lights[i].cubes > most ? lights[i].cubes : most;
	/* by counting: those of as many cubes stay in the order in which they were added */
	start = ocs_calloc((size_t)most + 2, sizeof(int));
	place = ocs_calloc((size_t)n, sizeof(int));
	for (i = 0; i < n; i++)
		start[lights[i].cubes + 1]++;
	for (i = 1; i <= most; i++)
		start[i] += start[i - 1];
	for (i = 0; i < n; i++)
		place[i] = start[lights[i].cubes]++;
	lights_move(lights, place, n);
	free(place);
	free(start);
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
	b->cubes_limit = b->section->ncubes;
	if (ocs_lone_ring(&cat->shape) && 2 * b->least_cubes + 2 < b->cubes_limit)
		b->cubes_limit = 2 * b->least_cubes + 2;
	for (f = from; f < cat->nfoldings; f++)
		lights_make(b, f);
	b->gaps |= gaps;
}
