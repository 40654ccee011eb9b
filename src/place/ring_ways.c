/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* How a shape can be a ring, and the placement of one. */

#include "src/place/placement_encoding.h"
#include "src/place/ring.h"
#include "src/util/text.h"

/* The straight dimension on one axis of a cube, in the N-th part of it. */
static bool dimension_straight(const struct ocs_section *s, const struct ocs_shape *shape, int dim,
			       int axis, int n, struct ocs_ring_way *way)
{
	int extent = shape->extent[dim], edge = s->edge[axis];

	way->axis = axis;
	way->closed = extent > 2 && !shape->mesh[dim];
	way->layers = way->closed ? edge : extent;
	way->stack = way->closed ? extent / edge : 1;
	way->offset = n * extent;
	if (way->closed)
		return !n && extent % edge == 0 && way->stack <= s->ncubes;
	return way->offset + extent <= edge;
}

bool ocs_ring_way_get(const struct ocs_section *s, const struct ocs_shape *shape, int n,
		      struct ocs_ring_way *way)
{
	int dim[2], dims = 0, d, ring, axis, part;

	if (s->kind != OCS_TORUS || shape->no_fold || shape->no_rotate || shape->twisted)
		return false;
	for (d = 0; d < shape->ndim; d++) {
		if (shape->extent[d] == 1)
			continue;
		if (dims == 2)
			return false;
		dim[dims++] = d;
	}
	for (ring = 0; ring < dims; ring++) {
		int extent = shape->extent[dim[ring]];

		if (extent < 4 || extent % 2)
			continue;
		way->ring = dim[ring];
		if (dims == 1) {
			way->axis = -1;
			way->layers = way->stack = 1;
			way->offset = 0;
			way->closed = false;
			return !n;
		}
		for (axis = 0; axis < OCS_AXES; axis++) {
			for (part = 0; dimension_straight(s, shape, dim[1 - ring], axis, part, way);
			     part++) {
				if (!n--)
					return true;
			}
		}
	}
	return false;
}

/* The first of a step's XPUs; the others are further along the straight dimension. */
static void step_at(const struct ocs_section *s, int unit, int at[OCS_AXES])
{
	at[2] = unit % s->edge[2];
	unit /= s->edge[2];
	at[1] = unit % s->edge[1];
	at[0] = unit / s->edge[1];
}

/* Moves AT where a step in direction DIR leads, through a face or not. */
static void step_follow(const struct ocs_section *s, int dir, int at[OCS_AXES])
{
	int *c = &at[dir / 2], edge = s->edge[dir / 2];

	if (dir % 2)
		*c = *c ? *c - 1 : edge - 1;
	else
		*c = *c + 1 < edge ? *c + 1 : 0;
}

/* The LENGTH XPUs of STEP, which is at AT: the first one is FIRST, each next one BY further
 * on. */
static void xpus_fill(const struct ocs_ring_way *way, const struct ocs_ring_step *step,
		      const int at[OCS_AXES], const int *cubes, struct ocs_xpu *first, int length,
		      long by)
{
	const int *cube = cubes + step->sheet * way->stack;
	int j, layer = 0;

	for (j = 0; j < length; j++, first += by) {
		first->at[0] = at[0];
		first->at[1] = at[1];
		first->at[2] = at[2];
		first->cube = *cube;
		if (way->axis < 0)
			continue;
		first->at[way->axis] += layer;
		if (++layer == way->layers) {
			layer = 0;
			cube++;
		}
	}
}

static void circuit_add(struct ocs_placement *p, int axis, const struct ocs_xpu *low,
			const struct ocs_xpu *high)
{
	struct ocs_circuit *c = &p->circuits[p->ncircuits++];

	c->dim = axis;
	c->pos[0] = low->at[axis ? 0 : 1];
	c->pos[1] = low->at[axis == 2 ? 1 : 2];
	c->from = low->cube;
	c->to = high->cube;
}

struct ocs_placement *ocs_ring_placement(const struct ocs_section *s, const struct ocs_shape *shape,
					 const struct ocs_ring_way *way,
					 const struct ocs_ring_step *ring, const int *cubes,
					 unsigned char *mark, char *compact)
{
	int extent = shape->extent[way->ring], length = (int)(shape->xpus / extent), i, j, d;
	struct ocs_placement *p = ocs_calloc(1, sizeof(*p));
	long along = 1, across;
	int at[OCS_AXES];

	p->section = s;
	p->shape = *shape;
	p->compact = compact;
	p->xpus = ocs_calloc((size_t)shape->xpus, sizeof(*p->xpus));
	/* a place has two ends in the ring and, at most, a circuit per stacked cube */
	p->circuits = ocs_calloc((size_t)shape->xpus * 2 + 1, sizeof(*p->circuits));
	for (d = shape->ndim - 1; d > way->ring; d--)
		along *= shape->extent[d];
	/* two dimensions at most: the other one is either faster or slower */
	across = along > 1 ? 1 : extent;
	step_at(s, ring[0].unit, at);
	for (i = 0; i < extent; i++) {
		xpus_fill(way, &ring[i], at, cubes, &p->xpus[i * along], length, across);
		step_follow(s, ring[i].dir, at);
	}
	for (i = 0; i < extent; i++) {
		int to = i + 1 < extent ? i + 1 : 0, dir = ring[i].dir;

		if ((!to && shape->mesh[way->ring]) ||
		    p->xpus[i * along].at[dir / 2] != (dir % 2 ? 0 : s->edge[dir / 2] - 1))
			continue;
		for (j = 0; j < length; j++) {
			const struct ocs_xpu *u = &p->xpus[i * along + j * across];
			const struct ocs_xpu *v = &p->xpus[to * along + j * across];

			circuit_add(p, dir / 2, dir % 2 ? v : u, dir % 2 ? u : v);
		}
	}
	for (i = 0; i < extent && way->closed; i++) {
		for (j = way->layers - 1; j < length; j += way->layers)
			circuit_add(p, way->axis, &p->xpus[i * along + j * across],
				    &p->xpus[i * along + (j + 1) % length * across]);
	}
	ocs_placement_lists(p, mark);
	return p;
}
