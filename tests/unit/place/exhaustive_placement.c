/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* What follows from an arrangement of XPUs: its placement. */

#include <stdlib.h>
#include <string.h>

#include "src/place/placement_encoding.h"
#include "tests/unit/place/exhaustive_search.h"
#include "src/util/text.h"

int exhaustive_neighbours(const struct ocs_shape *shape, int vertex, int list[2 * OCS_SHAPE_DIMS])
{
	int stride = 1, n = 0, d;

	for (d = shape->ndim - 1; d >= 0; stride *= shape->extent[d--]) {
		int extent = shape->extent[d], c = vertex / stride % extent;
		bool ring = extent > 2 && !shape->mesh[d];

		if (c + 1 < extent || ring)
			list[n++] = c + 1 < extent ? vertex + stride : vertex - c * stride;
		if (c || ring)
			list[n++] = c ? vertex - stride : vertex + (extent - 1) * stride;
	}
	return n;
}

/* The circuit that joins U and V, if they are no neighbours in a cube.  Sides have two
 * XPUs at least, so there is one way at most. */
static bool circuit_joins(const struct ocs_section *s, const struct ocs_xpu *u,
			  const struct ocs_xpu *v, struct ocs_circuit *c)
{
	int axis = -1, a;

	for (a = 0; a < OCS_AXES; a++) {
		if (u->at[a] == v->at[a])
			continue;
		if (axis >= 0)
			return false;
		axis = a;
	}
	if (axis < 0)
		return false;
	if (u->cube == v->cube && abs(u->at[axis] - v->at[axis]) == 1)
		return false;
	if (u->at[axis] == 0 && v->at[axis] == s->edge[axis] - 1) {
		const struct ocs_xpu *swap = u;

		u = v;
		v = swap;
	}
	if (u->at[axis] != s->edge[axis] - 1 || v->at[axis])
		return false;
	c->dim = axis;
	c->pos[0] = u->at[axis ? 0 : 1];
	c->pos[1] = u->at[axis == 2 ? 1 : 2];
	c->from = u->cube;
	c->to = v->cube;
	return true;
}

struct ocs_placement *exhaustive_placement(const struct ocs_section *s,
					   const struct ocs_shape *shape,
					   const struct ocs_xpu *xpus, unsigned char *mark,
					   char *compact)
{
	struct ocs_placement *p = ocs_calloc(1, sizeof(*p));
	int list[2 * OCS_SHAPE_DIMS], v, n, i;

	p->section = s;
	p->shape = *shape;
	p->compact = compact;
	p->xpus = ocs_calloc((size_t)shape->xpus, sizeof(*p->xpus));
	memcpy(p->xpus, xpus, (size_t)shape->xpus * sizeof(*xpus));
	p->circuits = ocs_calloc((size_t)shape->xpus * OCS_SHAPE_DIMS + 1, sizeof(*p->circuits));
	for (v = 0; v < shape->xpus && s->kind == OCS_TORUS; v++) {
		n = exhaustive_neighbours(shape, v, list);
		for (i = 0; i < n; i++) {
			if (list[i] > v &&
			    circuit_joins(s, &xpus[v], &xpus[list[i]], &p->circuits[p->ncircuits]))
				p->ncircuits++;
		}
	}
	ocs_placement_lists(p, mark);
	return p;
}
