/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* The judge: knows nothing of foldings, only of XPUs, links and circuits. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/place/place.h"
#include "src/util/error.h"
#include "src/util/text.h"

struct judge {
	const struct ocs_section *s;
	const struct ocs_occupancy *occupancy;
	const struct ocs_placement *p;
	struct ocs_error *err;
	unsigned char *taken; /* per XPU of the section */
	int *plus, *minus;    /* per cube, dim and position: circuit + 1 */
	unsigned char *fixed; /* per XPU and axis: its link towards + is used */
	unsigned char *used;  /* per circuit */
	int face;	      /* positions of the largest face */
};

static int judge_refuse(struct judge *j, const char *text)
{
	return ocs_error_set(j->err, OCS_ERROR, "%s", text);
}

static long xpu_index(const struct ocs_section *s, const struct ocs_xpu *x)
{
	return (long)x->cube * s->cube_xpus + (x->at[0] * s->edge[1] + x->at[1]) * s->edge[2] +
	       x->at[2];
}

static const char *xpu_name(const struct ocs_section *s, const struct ocs_xpu *x, char text[128])
{
	snprintf(text, 128, "%.80s %d,%d,%d", s->cube_names[x->cube], x->at[0], x->at[1], x->at[2]);
	return text;
}

static void other_dims(int dim, int other[2])
{
	other[0] = dim == 0 ? 1 : 0;
	other[1] = dim == 2 ? 1 : 2;
}

static long port_index(const struct judge *j, int cube, int dim, const int pos[2])
{
	int other[2];

	other_dims(dim, other);
	return ((long)cube * OCS_AXES + dim) * j->face + pos[0] * j->s->edge[other[1]] + pos[1];
}

static int shape_check(struct judge *j)
{
	const struct ocs_shape *shape = &j->p->shape;
	long xpus = 1;
	int d;

	if (shape->ndim < 1 || shape->ndim > OCS_SHAPE_DIMS)
		return judge_refuse(j, "the shape has no dimensions or too many");
	for (d = 0; d < shape->ndim; d++) {
		if (shape->extent[d] < 1 || shape->extent[d] > OCS_SHAPE_EXTENT_MAX)
			return judge_refuse(j, "an extent of the shape is out of range");
		xpus *= shape->extent[d];
		if (xpus > (long)j->s->ncubes * j->s->cube_xpus)
			return judge_refuse(j, "the shape is larger than the machine");
	}
	return xpus == shape->xpus ? 0 :
				     judge_refuse(j, "the shape's XPUs are not the product of its "
						     "extents");
}

static int xpus_check(struct judge *j)
{
	char name[128];
	long r;
	int a;

	for (r = 0; r < j->p->shape.xpus; r++) {
		const struct ocs_xpu *x = &j->p->xpus[r];

		if (x->cube < 0 || x->cube >= j->s->ncubes)
			return ocs_error_set(j->err, OCS_ERROR, "XPU %ld: cube %d does not exist",
					     r, x->cube);
		for (a = 0; a < OCS_AXES; a++) {
			if (x->at[a] < 0 || x->at[a] >= j->s->edge[a])
				return ocs_error_set(j->err, OCS_ERROR,
						     "XPU %ld: %d,%d,%d is "
						     "outside its cube",
						     r, x->at[0], x->at[1], x->at[2]);
		}
		if (j->taken[xpu_index(j->s, x)]++)
			return ocs_error_set(j->err, OCS_ERROR, "XPU %ld: %s is used twice", r,
					     xpu_name(j->s, x, name));
		if (j->occupancy && !ocs_occupancy_xpu_free(j->occupancy, x->cube, x->at))
			return ocs_error_set(j->err, OCS_ERROR,
					     "XPU %ld: %s is not free and healthy", r,
					     xpu_name(j->s, x, name));
	}
	return 0;
}

static int circuit_check(struct judge *j, int i)
{
	const struct ocs_circuit *c = &j->p->circuits[i];
	int other[2], *plus, *minus;

	if (j->s->kind == OCS_STATIC)
		return ocs_error_set(j->err, OCS_ERROR,
				     "circuit %d: a static torus has no circuits", i);
	if (c->dim < 0 || c->dim >= OCS_AXES)
		return ocs_error_set(j->err, OCS_ERROR, "circuit %d: dimension %d does not exist",
				     i, c->dim);
	if (c->from < 0 || c->from >= j->s->ncubes || c->to < 0 || c->to >= j->s->ncubes)
		return ocs_error_set(j->err, OCS_ERROR,
				     "circuit %d: joins a cube that does not exist", i);
	other_dims(c->dim, other);
	if (c->pos[0] < 0 || c->pos[0] >= j->s->edge[other[0]] || c->pos[1] < 0 ||
	    c->pos[1] >= j->s->edge[other[1]])
		return ocs_error_set(j->err, OCS_ERROR,
				     "circuit %d: position %d,%d is outside the "
				     "face",
				     i, c->pos[0], c->pos[1]);
	plus = &j->plus[port_index(j, c->from, c->dim, c->pos)];
	minus = &j->minus[port_index(j, c->to, c->dim, c->pos)];
	if (*plus || *minus)
		return ocs_error_set(j->err, OCS_ERROR,
				     "circuit %d: port %s %c%c %d,%d is used twice", i,
				     j->s->cube_names[*plus ? c->from : c->to], *plus ? '+' : '-',
				     "xyz"[c->dim], c -> pos[0], c -> pos[1]);
	*plus = *minus = i + 1;
	if (!j->occupancy || !j->occupancy->any_blocked)
		return 0;
	if (ocs_occupancy_port_blocked(j->occupancy, c->from, c->dim, c->pos[0], c->pos[1],
				       OCS_PLUS) ||
	    ocs_occupancy_port_blocked(j->occupancy, c->to, c->dim, c->pos[0], c->pos[1],
				       OCS_MINUS))
		return ocs_error_set(j->err, OCS_ERROR,
				     "circuit %d: a port of %s-%s %c %d,%d is failed "
				     "or drained",
				     i, j->s->cube_names[c->from], j->s->cube_names[c->to],
				     "xyz"[c->dim], c -> pos[0], c -> pos[1]);
	return 0;
}

/* Uses the link that leaves U towards + on AXIS, if it leads to V and is not used
 * yet. */
static bool link_use(struct judge *j, const struct ocs_xpu *u, const struct ocs_xpu *v, int axis,
		     bool through_circuit)
{
	bool last = u->at[axis] == j->s->edge[axis] - 1;
	unsigned char *mark;
	int other[2], pos[2];

	other_dims(axis, other);
	pos[0] = u->at[other[0]];
	pos[1] = u->at[other[1]];
	if (pos[0] != v->at[other[0]] || pos[1] != v->at[other[1]])
		return false;
	if (last ? v->at[axis] != 0 : v->at[axis] != u->at[axis] + 1)
		return false;
	if (last && j->s->kind != OCS_STATIC) {
		int circuit = j->plus[port_index(j, u->cube, axis, pos)];

		if (!through_circuit || !circuit ||
		    j->minus[port_index(j, v->cube, axis, pos)] != circuit)
			return false;
		mark = &j->used[circuit - 1];
	} else {
		if (through_circuit || u->cube != v->cube)
			return false;
		mark = &j->fixed[xpu_index(j->s, u) * OCS_AXES + axis];
	}
	return !*mark ? *mark = 1 : false;
}

static int edge_check(struct judge *j, const int *from, const int *to)
{
	const struct ocs_shape *shape = &j->p->shape;
	const struct ocs_xpu *u = &j->p->xpus[ocs_shape_rank(shape, from)];
	const struct ocs_xpu *v = &j->p->xpus[ocs_shape_rank(shape, to)];
	struct ocs_text text = { 0 };
	char a[128], b[128];
	int axis, way, d;

	/* fixed links first: a circuit beside one would be needless */
	for (way = 0; way < 2; way++) {
		for (axis = 0; axis < OCS_AXES; axis++) {
			if (link_use(j, u, v, axis, way) || link_use(j, v, u, axis, way))
				return 0;
		}
	}
	ocs_text_add(&text, "edge (");
	for (d = 0; d < shape->ndim; d++)
		ocs_text_add(&text, "%s%d", d ? "," : "", from[d]);
	ocs_text_add(&text, ")-(");
	for (d = 0; d < shape->ndim; d++)
		ocs_text_add(&text, "%s%d", d ? "," : "", to[d]);
	ocs_error_set(j->err, OCS_ERROR, "%s): no link of its own joins %s and %s", text.data,
		      xpu_name(j->s, u, a), xpu_name(j->s, v, b));
	ocs_text_free(&text);
	return -1;
}

/* The edges that leave COORD upwards in each dimension. */
static int vertex_check(struct judge *j, const int *coord)
{
	const struct ocs_shape *shape = &j->p->shape;
	int low = shape->extent[0], d, e;

	for (d = 1; d < shape->ndim; d++)
		low = shape->extent[d] < low ? shape->extent[d] : low;
	for (d = 0; d < shape->ndim; d++) {
		bool shifts = shape->twisted && shape->extent[d] == low;
		int to[OCS_SHAPE_DIMS];

		memcpy(to, coord, sizeof(to));
		if (++to[d] == shape->extent[d]) {
			if (shape->mesh[d] || (shape->extent[d] < 3 && !shifts))
				continue;
			to[d] = 0;
			for (e = 0; shifts && e < shape->ndim; e++) {
				if (shape->extent[e] != low)
					to[e] = (to[e] + low) % shape->extent[e];
			}
		}
		if (edge_check(j, coord, to))
			return -1;
	}
	return 0;
}

/* The lists of cubes and nodes say what the XPUs say. */
static int lists_check(struct judge *j, const struct ocs_fabric *fabric)
{
	const struct ocs_placement *p = j->p;
	unsigned char *node = ocs_calloc((size_t)fabric->nnodes, 1);
	unsigned char *cube = ocs_calloc((size_t)j->s->ncubes, 1);
	int nodes = 0, cubes = 0, i, result = 0;
	long r;

	for (r = 0; r < p->shape.xpus; r++) {
		const struct ocs_xpu *x = &p->xpus[r];
		int n = ocs_section_node_at(j->s, x->cube, x->at);

		nodes += !node[n];
		cubes += !cube[x->cube];
		node[n] = cube[x->cube] = 1;
	}
	for (i = 0; i < p->nnodes && !result; i++) {
		if (p->nodes[i] < 0 || p->nodes[i] >= fabric->nnodes || !node[p->nodes[i]] ||
		    (i && p->nodes[i] <= p->nodes[i - 1]))
			result = judge_refuse(j, "the list of nodes does not match the XPUs");
	}
	for (i = 0; i < p->ncubes && !result; i++) {
		if (p->cubes[i] < 0 || p->cubes[i] >= j->s->ncubes || !cube[p->cubes[i]] ||
		    (i && p->cubes[i] <= p->cubes[i - 1]))
			result = judge_refuse(j, "the list of cubes does not match the XPUs");
	}
	if (!result && nodes != p->nnodes)
		result = judge_refuse(j, "the list of nodes does not match the XPUs");
	if (!result && cubes != p->ncubes)
		result = judge_refuse(j, "the list of cubes does not match the XPUs");
	free(node);
	free(cube);
	return result;
}

static int judge_run(struct judge *j, const struct ocs_fabric *fabric)
{
	int coord[OCS_SHAPE_DIMS] = { 0 }, i;
	long r;

	if (xpus_check(j))
		return -1;
	for (i = 0; i < j->p->ncircuits; i++) {
		if (circuit_check(j, i))
			return -1;
	}
	for (r = 0; r < j->p->shape.xpus; r++) {
		ocs_shape_coord(&j->p->shape, r, coord);
		if (vertex_check(j, coord))
			return -1;
	}
	for (i = 0; i < j->p->ncircuits; i++) {
		const struct ocs_circuit *c = &j->p->circuits[i];

		if (!j->used[i])
			return ocs_error_set(j->err, OCS_ERROR,
					     "circuit %d: %s-%s %c %d,%d serves no "
					     "edge of the job",
					     i, j->s->cube_names[c->from], j->s->cube_names[c->to],
					     "xyz"[c->dim], c -> pos[0], c -> pos[1]);
	}
	return lists_check(j, fabric);
}

int ocs_placement_verify(const struct ocs_fabric *fabric, const struct ocs_occupancy *occupancy,
			 const struct ocs_placement *placement, struct ocs_error *err)
{
	const struct ocs_section *s = placement->section;
	struct judge j = { .s = s, .occupancy = occupancy, .p = placement, .err = err };
	size_t xpus, ports;
	int dim, other[2], result;

	if (s->kind != OCS_TORUS && s->kind != OCS_STATIC)
		return judge_refuse(&j, "the section has no cubes");
	if (placement->ncircuits < 0)
		return judge_refuse(&j, "the number of circuits is negative");
	if (shape_check(&j))
		return -1;
	for (dim = 0; dim < OCS_AXES; dim++) {
		other_dims(dim, other);
		if (s->edge[other[0]] * s->edge[other[1]] > j.face)
			j.face = s->edge[other[0]] * s->edge[other[1]];
	}
	xpus = (size_t)s->ncubes * (size_t)s->cube_xpus;
	ports = (size_t)s->ncubes * OCS_AXES * (size_t)j.face;
	j.taken = ocs_calloc(xpus, 1);
	j.fixed = ocs_calloc(xpus * OCS_AXES, 1);
	j.plus = ocs_calloc(ports, sizeof(int));
	j.minus = ocs_calloc(ports, sizeof(int));
	j.used = ocs_calloc((size_t)placement->ncircuits + 1, 1);
	result = judge_run(&j, fabric);
	free(j.taken);
	free(j.fixed);
	free(j.plus);
	free(j.minus);
	free(j.used);
	return result;
}
