/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Policies that look at counts of XPUs only, and what all policies share to make a
 * placement out of XPUs. */

#include <stdlib.h>
#include <string.h>

#include "src/policy/internal.h"
#include "src/util/text.h"

int ocs_policy_dims(const struct ocs_shape *shape, int dims[OCS_SHAPE_DIMS])
{
	int n = 0, d;

	for (d = 0; d < shape->ndim; d++) {
		if (shape->extent[d] > 1)
			dims[n++] = d;
	}
	return n;
}

struct ocs_placement *ocs_policy_start(const struct ocs_policy *policy,
				       const struct ocs_shape *shape)
{
	struct ocs_placement *p = ocs_calloc(1, sizeof(*p));

	p->section = policy->section;
	p->shape = *shape;
	p->xpus = ocs_calloc((size_t)shape->xpus, sizeof(*p->xpus));
	p->compact = ocs_strdup("");
	return p;
}

static int int_ascending(const void *a, const void *b)
{
	int p = *(const int *)a, q = *(const int *)b;

	return (p > q) - (p < q);
}

/* Sorts VALUES and drops repetitions.  Returns how many are left. */
static int values_unique(int *values, int n)
{
	int i, kept = 0;

	qsort(values, (size_t)n, sizeof(*values), int_ascending);
	for (i = 0; i < n; i++) {
		if (!kept || values[kept - 1] != values[i])
			values[kept++] = values[i];
	}
	return kept;
}

/* Whether the link U-V is a circuit from U's + port (or the wrap of a static torus, for
 * which there is nothing to switch). */
static bool circuit_between(const struct ocs_section *s, const struct ocs_xpu *u,
			    const struct ocs_xpu *v, struct ocs_circuit *c)
{
	int a, b, n;

	for (a = 0; a < OCS_AXES; a++) {
		if (u->at[a] != s->edge[a] - 1 || v->at[a])
			continue;
		for (b = n = 0; b < OCS_AXES; b++) {
			if (b == a)
				continue;
			if (u->at[b] != v->at[b])
				break;
			c->pos[n++] = u->at[b];
		}
		if (n < 2)
			continue;
		c->dim = a;
		c->from = u->cube;
		c->to = v->cube;
		return true;
	}
	return false;
}

static bool xpus_adjacent(const struct ocs_xpu *u, const struct ocs_xpu *v)
{
	int a, d = 0;

	for (a = 0; a < OCS_AXES; a++)
		d += abs(u->at[a] - v->at[a]);
	return u->cube == v->cube && d == 1;
}

static void circuits_find(struct ocs_placement *p)
{
	const struct ocs_shape *shape = &p->shape;
	int coord[OCS_SHAPE_DIMS], d, room = 0;
	long r;

	for (r = 0; r < shape->xpus; r++) {
		for (d = 0; d < shape->ndim; d++) {
			const struct ocs_xpu *u = &p->xpus[r], *v;
			struct ocs_circuit c = { 0 };

			ocs_shape_coord(shape, r, coord);
			if (++coord[d] == shape->extent[d]) {
				if (shape->mesh[d] || shape->extent[d] < 3)
					continue;
				coord[d] = 0;
			}
			v = &p->xpus[ocs_shape_rank(shape, coord)];
			if (xpus_adjacent(u, v) || (!circuit_between(p->section, u, v, &c) &&
						    !circuit_between(p->section, v, u, &c)))
				continue;
			if (p->ncircuits == room) {
				room = room ? 2 * room : 64;
				p->circuits = ocs_realloc(p->circuits,
							  (size_t)room * sizeof(*p->circuits));
			}
			p->circuits[p->ncircuits++] = c;
		}
	}
}

void ocs_policy_finish(const struct ocs_policy *policy, struct ocs_placement *p, bool circuits)
{
	int n = (int)p->shape.xpus, i;

	p->nodes = ocs_calloc((size_t)n, sizeof(int));
	p->cubes = ocs_calloc((size_t)n, sizeof(int));
	for (i = 0; i < n; i++) {
		p->nodes[i] = ocs_section_node_at(policy->section, p->xpus[i].cube, p->xpus[i].at);
		p->cubes[i] = p->xpus[i].cube;
	}
	p->nnodes = values_unique(p->nodes, n);
	p->ncubes = values_unique(p->cubes, n);
	if (circuits && policy->section->kind == OCS_TORUS)
		circuits_find(p);
}

struct ocs_placement *ocs_policy_any_place(struct ocs_policy *policy, const struct ocs_shape *shape,
					   const struct ocs_occupancy *occupancy)
{
	const struct ocs_section *s = policy->section;
	struct ocs_placement *p;
	long free_xpus = 0, n = 0;
	struct ocs_xpu x;

	for (x.cube = 0; x.cube < s->ncubes; x.cube++)
		free_xpus += ocs_occupancy_cube_free(occupancy, x.cube);
	if (free_xpus < shape->xpus)
		return NULL;
	p = ocs_policy_start(policy, shape);
	for (x.cube = 0; x.cube < s->ncubes && n < shape->xpus; x.cube++) {
		for (x.at[0] = 0; x.at[0] < s->edge[0]; x.at[0]++)
			for (x.at[1] = 0; x.at[1] < s->edge[1]; x.at[1]++)
				for (x.at[2] = 0; x.at[2] < s->edge[2]; x.at[2]++)
					if (n < shape->xpus &&
					    ocs_occupancy_xpu_free(occupancy, x.cube, x.at))
						p->xpus[n++] = x;
	}
	ocs_policy_finish(policy, p, false);
	return p;
}

/* Takes the sub-box SIZE at LOC of CUBE out of OCCUPANCY. */
static bool sub_box(const struct ocs_occupancy *occupancy, int cube, const int *loc,
		    const int *size, struct ocs_placement *p, long *n)
{
	struct ocs_xpu x = { .cube = cube };
	int i, total = size[0] * size[1] * size[2];

	for (i = 0; i < total; i++) {
		x.at[0] = loc[0] + i / (size[1] * size[2]);
		x.at[1] = loc[1] + i / size[2] % size[1];
		x.at[2] = loc[2] + i % size[2];
		if (!ocs_occupancy_xpu_free(occupancy, cube, x.at))
			return false;
		if (p)
			p->xpus[(*n)++] = x;
	}
	return true;
}

/* NEEDED sub-boxes of SIZE, each in a cube that CHOSEN does not name yet, all at LOC. */
static bool pieces_at(struct ocs_policy *policy, const struct ocs_occupancy *occupancy,
		      const int *loc, const int *size, int needed, bool *chosen,
		      struct ocs_placement *p, long *n)
{
	int cube, found = 0, pass;

	for (pass = 0; pass < 2; pass++) {
		for (cube = 0; cube < policy->section->ncubes && found < needed; cube++) {
			if (chosen[cube] || !sub_box(occupancy, cube, loc, size, NULL, NULL))
				continue;
			found++;
			if (pass) {
				sub_box(occupancy, cube, loc, size, p, n);
				chosen[cube] = true;
			}
		}
		if (found < needed)
			return false;
		if (!pass)
			found = 0;
	}
	return true;
}

/* The pieces of one kind: full along the axes of MASK.  They lie in a corner, or
 * anywhere if the job has no full cube. */
static bool kind_place(struct ocs_policy *policy, const struct ocs_occupancy *occupancy,
		       const int *extent, int mask, bool *chosen, struct ocs_placement *p, long *n)
{
	const int *edge = policy->section->edge;
	int size[OCS_AXES], room[OCS_AXES], loc[OCS_AXES], needed = 1, a, i;
	bool anywhere = false;

	for (a = 0; a < OCS_AXES; a++) {
		anywhere |= extent[a] < edge[a];
		size[a] = mask & 1 << a ? edge[a] : extent[a] % edge[a];
		needed *= mask & 1 << a ? extent[a] / edge[a] : size[a] > 0;
		room[a] = edge[a] - size[a] + 1;
	}
	if (!needed)
		return true;
	for (i = 0; i < room[0] * room[1] * room[2]; i++) {
		bool corner = true;

		loc[0] = i / (room[1] * room[2]);
		loc[1] = i / room[2] % room[1];
		loc[2] = i % room[2];
		for (a = 0; a < OCS_AXES; a++)
			corner &= !loc[a] || loc[a] == room[a] - 1;
		if ((anywhere || corner) &&
		    pieces_at(policy, occupancy, loc, size, needed, chosen, p, n))
			return true;
	}
	return false;
}

struct ocs_placement *ocs_policy_loose_place(struct ocs_policy *policy,
					     const struct ocs_shape *shape,
					     const struct ocs_occupancy *occupancy)
{
	static const int order[6][3] = {
		{ 0, 1, 2 }, { 0, 2, 1 }, { 1, 0, 2 }, { 1, 2, 0 }, { 2, 0, 1 }, { 2, 1, 0 },
	};
	bool *chosen = ocs_calloc((size_t)policy->section->ncubes, sizeof(bool));
	int dims[OCS_SHAPE_DIMS], ndims = ocs_policy_dims(shape, dims);
	struct ocs_placement *p = NULL;
	int i, a, mask;

	for (i = 0; i < 6 && ndims <= OCS_AXES; i++) {
		int extent[OCS_AXES];
		bool all = true;
		long n = 0;

		for (a = 0; a < OCS_AXES; a++)
			extent[a] = order[i][a] < ndims ? shape->extent[dims[order[i][a]]] : 1;
		memset(chosen, 0, (size_t)policy->section->ncubes * sizeof(bool));
		p = ocs_policy_start(policy, shape);
		for (mask = 7; mask >= 0 && all; mask--)
			all = kind_place(policy, occupancy, extent, mask, chosen, p, &n);
		if (all && n == shape->xpus)
			break;
		ocs_placement_destroy(p);
		p = NULL;
	}
	free(chosen);
	if (p)
		ocs_policy_finish(policy, p, false);
	return p;
}
