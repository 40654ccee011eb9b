/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Best effort: where no placement with links of its own is to be had, one whose edges
 * share links.  First as a box with lines for rings, whose closing edges go back along
 * the lines; then XPUs wherever they are free, as long as links and circuits join them. */

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "src/policy/internal.h"
#include "src/util/text.h"

#define DIRS (2 * OCS_AXES)

/* Free XPUs being gathered. */
struct gather {
	const struct ocs_section *s;
	const struct ocs_occupancy *occupancy;
	int *taken; /* per XPU of the section: its number + 1 among those taken; below
				 * 0: met, or of a group that was too small */
	int *met;   /* XPUs that a link leads to, to be taken in this order */
	int nmet, head;
	struct ocs_xpu *xpus;
	int n, wanted;
	int *free_of; /* per cube: XPUs free and not met */
	struct ocs_circuit *circuits;
	int ncircuits, room;
	bool *port; /* per cube, dim, sign and face position: has a circuit */
	int face;
};

static int xpu_of(const struct ocs_section *s, int cube, const int *at)
{
	return cube * s->cube_xpus + ocs_section_bit(s, at);
}

static void xpu_at(const struct ocs_section *s, int index, struct ocs_xpu *x)
{
	int bit = index % s->cube_xpus;

	x->cube = index / s->cube_xpus;
	x->at[0] = bit / (s->edge[1] * s->edge[2]);
	x->at[1] = bit / s->edge[2] % s->edge[1];
	x->at[2] = bit % s->edge[2];
}

static bool free_at(const struct gather *g, int cube, const int *at)
{
	return !g->taken[xpu_of(g->s, cube, at)] && ocs_occupancy_xpu_free(g->occupancy, cube, at);
}

static void xpu_meet(struct gather *g, int cube, const int *at)
{
	g->taken[xpu_of(g->s, cube, at)] = -1;
	g->met[g->nmet++] = xpu_of(g->s, cube, at);
	g->free_of[cube]--;
}

/* The XPUs that a fixed link joins to X; those of its node first, so that few nodes are
 * begun. */
static void meet_neighbours(struct gather *g, const struct ocs_xpu *x, bool same_node)
{
	int node = ocs_section_node_at(g->s, x->cube, x->at), dir;

	for (dir = 0; dir < DIRS; dir++) {
		int to[OCS_AXES] = { x->at[0], x->at[1], x->at[2] }, axis = dir / 2;

		to[axis] += dir % 2 ? -1 : 1;
		if (to[axis] < 0 || to[axis] == g->s->edge[axis]) {
			if (g->s->kind != OCS_STATIC)
				continue;
			to[axis] = to[axis] < 0 ? g->s->edge[axis] - 1 : 0;
		}
		if (free_at(g, x->cube, to) &&
		    same_node == (ocs_section_node_at(g->s, x->cube, to) == node))
			xpu_meet(g, x->cube, to);
	}
}

static void xpu_take(struct gather *g)
{
	struct ocs_xpu x;

	while (g->head < g->nmet && g->n < g->wanted) {
		xpu_at(g->s, g->met[g->head], &x);
		g->taken[g->met[g->head++]] = g->n + 1;
		g->xpus[g->n++] = x;
		meet_neighbours(g, &x, true);
		meet_neighbours(g, &x, false);
	}
}

static bool *port_of(const struct gather *g, int cube, int dim, const int *pos, int sign)
{
	return &g->port[(((size_t)(cube * OCS_AXES + dim) * 2 + (size_t)sign) * (size_t)g->face +
			 (size_t)pos[0]) *
				(size_t)g->face +
			(size_t)pos[1]];
}

static bool port_free(const struct gather *g, int cube, int dim, const int *pos, int sign)
{
	return !*port_of(g, cube, dim, pos, sign) &&
	       !(g->occupancy->any_blocked &&
		 ocs_occupancy_port_blocked(g->occupancy, cube, dim, pos[0], pos[1], sign));
}

static void circuit_add(struct gather *g, int dim, const int *pos, int from, int to)
{
	if (g->ncircuits == g->room) {
		g->room = g->room ? 2 * g->room : 64;
		g->circuits = ocs_realloc(g->circuits, (size_t)g->room * sizeof(*g->circuits));
	}
	g->circuits[g->ncircuits++] = (struct ocs_circuit){ dim, { pos[0], pos[1] }, from, to };
	*port_of(g, from, dim, pos, OCS_PLUS) = *port_of(g, to, dim, pos, OCS_MINUS) = true;
}

/* How much rather XPUs of CUBE are taken: broken cubes, the emptiest first, then whole
 * ones. */
static int cube_worth(const struct gather *g, int cube)
{
	int n = g->free_of[cube];

	return n == g->s->cube_xpus ? 0 : n;
}

/* Where XPU X lies on a face in direction DIR: the position, and the XPU a circuit from
 * there leads to, in whichever cube. */
static bool face_of(const struct ocs_section *s, const struct ocs_xpu *x, int dir, int *pos,
		    int *to)
{
	int axis = dir / 2, a, n = 0;

	if (x->at[axis] != (dir % 2 ? 0 : s->edge[axis] - 1))
		return false;
	for (a = 0; a < OCS_AXES; a++) {
		to[a] = x->at[a];
		if (a != axis)
			pos[n++] = x->at[a];
	}
	to[axis] = dir % 2 ? s->edge[axis] - 1 : 0;
	return true;
}

/* Goes on in another cube, through a circuit from a port of an XPU that was taken. */
static bool circuit_cross(struct gather *g)
{
	int best = -1, from = 0, by = 0, best_pos[2] = { 0, 0 }, best_to[OCS_AXES] = { 0, 0, 0 };
	int i, dir, cube, pos[2], to[OCS_AXES];

	for (cube = 0; cube < g->s->ncubes && g->s->kind == OCS_TORUS; cube++) {
		if (!g->free_of[cube] || (best >= 0 && cube_worth(g, cube) <= cube_worth(g, best)))
			continue;
		for (i = 0; i < g->n * DIRS; i++) {
			const struct ocs_xpu *x = &g->xpus[i / DIRS];

			dir = i % DIRS;
			if (!face_of(g->s, x, dir, pos, to) || !free_at(g, cube, to) ||
			    !port_free(g, x->cube, dir / 2, pos, dir % 2) ||
			    !port_free(g, cube, dir / 2, pos, 1 - dir % 2))
				continue;
			best = cube;
			from = x->cube;
			by = dir;
			memcpy(best_pos, pos, sizeof(pos));
			memcpy(best_to, to, sizeof(to));
			break;
		}
	}
	if (best < 0)
		return false;
	circuit_add(g, by / 2, best_pos, by % 2 ? best : from, by % 2 ? from : best);
	xpu_meet(g, best, best_to);
	return true;
}

static int seed_find(const struct gather *g, int *at)
{
	struct ocs_xpu x;
	int cube, best = -1, i;

	for (cube = 0; cube < g->s->ncubes; cube++) {
		if (g->free_of[cube] && (best < 0 || cube_worth(g, cube) > cube_worth(g, best)))
			best = cube;
	}
	for (i = 0; best >= 0 && i < g->s->cube_xpus; i++) {
		xpu_at(g->s, best * g->s->cube_xpus + i, &x);
		memcpy(at, x.at, sizeof(x.at));
		if (free_at(g, best, x.at))
			return best;
	}
	return -1;
}

/* Circuits between all face ports of the XPUs that have none yet: those of one position
 * in the order of their cubes, the last to the first.  Routes will tell which are used. */
static void circuits_more(struct gather *g)
{
	int *plus = ocs_calloc((size_t)g->s->ncubes, sizeof(int));
	int *minus = ocs_calloc((size_t)g->s->ncubes, sizeof(int));
	int dim, pos[2], cube, sign, at[OCS_AXES], a, k, n[2], i;

	for (dim = 0; dim < OCS_AXES; dim++) {
		for (i = 0; i < g->face * g->face; i++) {
			n[0] = n[1] = 0;
			pos[0] = i / g->face;
			pos[1] = i % g->face;
			for (cube = 0; cube < g->s->ncubes; cube++) {
				for (sign = 0; sign < 2; sign++) {
					for (a = k = 0; a < OCS_AXES; a++)
						at[a] = a == dim ? sign ? 0 : g->s->edge[dim] - 1 :
								   pos[k++];
					if (g->taken[xpu_of(g->s, cube, at)] > 0 &&
					    port_free(g, cube, dim, pos, sign))
						(sign ? minus : plus)[n[sign]++] = cube;
				}
			}
			for (k = 0; k < n[0] && k < n[1]; k++)
				circuit_add(g, dim, pos, plus[k], minus[(k + 1) % n[1]]);
		}
	}
	free(plus);
	free(minus);
}

/* Leaves what was gathered: too few XPUs, which nothing joins to others. */
static void gathered_drop(struct gather *g)
{
	while (g->n)
		g->taken[g->met[--g->n]] = -1;
	g->nmet = g->head = 0;
	while (g->ncircuits) {
		const struct ocs_circuit *c = &g->circuits[--g->ncircuits];

		*port_of(g, c->from, c->dim, c->pos, OCS_PLUS) = false;
		*port_of(g, c->to, c->dim, c->pos, OCS_MINUS) = false;
	}
}

static bool xpus_gather(struct gather *g)
{
	int at[OCS_AXES], cube;

	while (g->n < g->wanted) {
		gathered_drop(g);
		cube = seed_find(g, at);
		if (cube < 0)
			return false;
		xpu_meet(g, cube, at);
		do
			xpu_take(g);
		while (g->n < g->wanted && circuit_cross(g));
	}
	while (g->head < g->nmet)
		g->taken[g->met[g->head++]] = 0;
	if (g->s->kind == OCS_TORUS)
		circuits_more(g);
	return true;
}

/* Numbers among the XPUs taken that links join to number I; -1: none there. */
static void near_of(const struct gather *g, int *near)
{
	int i, dir, c;

	for (i = 0; i < g->n; i++) {
		const struct ocs_xpu *x = &g->xpus[i];

		for (dir = 0; dir < DIRS; dir++) {
			int to[OCS_AXES] = { x->at[0], x->at[1], x->at[2] }, axis = dir / 2;
			bool face = x->at[axis] == (dir % 2 ? 0 : g->s->edge[axis] - 1);

			to[axis] = !face   ? to[axis] + (dir % 2 ? -1 : 1) :
				   dir % 2 ? g->s->edge[axis] - 1 :
					     0;
			near[i * DIRS + dir] = face && g->s->kind != OCS_STATIC ?
						       -1 :
						       g->taken[xpu_of(g->s, x->cube, to)] - 1;
		}
	}
	for (c = 0; c < g->ncircuits; c++) {
		const struct ocs_circuit *k = &g->circuits[c];
		int from[OCS_AXES], to[OCS_AXES], a, n, low, high;

		for (a = n = 0; a < OCS_AXES; a++)
			from[a] = to[a] = a == k->dim ? 0 : k->pos[n++];
		from[k->dim] = g->s->edge[k->dim] - 1;
		low = g->taken[xpu_of(g->s, k->from, from)] - 1;
		high = g->taken[xpu_of(g->s, k->to, to)] - 1;
		near[low * DIRS + 2 * k->dim] = high;
		near[high * DIRS + 2 * k->dim + 1] = low;
	}
}

static int left_of(const int *near, const bool *done, int i)
{
	int dir, n = 0;

	for (dir = 0; dir < DIRS; dir++)
		n += near[i * DIRS + dir] >= 0 && !done[near[i * DIRS + dir]];
	return n;
}

/* A walk over all XPUs along links, back where it must: from each the neighbour with the
 * fewest ways on.  Along it, neighbours in the walk are mostly neighbours. */
static void walk_make(const struct gather *g, int *order)
{
	int *near = ocs_calloc((size_t)g->n * DIRS, sizeof(int));
	int *path = ocs_calloc((size_t)g->n + 1, sizeof(int)), depth = 0, n = 0, dir;
	bool *done = ocs_calloc((size_t)g->n, sizeof(bool));

	near_of(g, near);
	path[depth++] = 0;
	done[0] = true;
	order[n++] = 0;
	while (depth && n < g->n) {
		int best = -1, few = INT_MAX, i = path[depth - 1];

		for (dir = 0; dir < DIRS; dir++) {
			int to = near[i * DIRS + dir];

			if (to < 0 || done[to] || left_of(near, done, to) >= few)
				continue;
			best = to;
			few = left_of(near, done, to);
		}
		if (best < 0) {
			depth--;
			continue;
		}
		done[best] = true;
		order[n++] = path[depth++] = best;
	}
	free(near);
	free(path);
	free(done);
}

/* Lays the shape along the walk, its longest dimension slowest: then the short ones stay
 * close. */
static void shape_lay(const struct gather *g, struct ocs_placement *p)
{
	const struct ocs_shape *shape = &p->shape;
	int *order = ocs_calloc((size_t)g->n, sizeof(int));
	int dims[OCS_SHAPE_DIMS], coord[OCS_SHAPE_DIMS], d, e, k, rest;

	for (d = 0; d < shape->ndim; d++) {
		for (e = d; e && shape->extent[dims[e - 1]] < shape->extent[d]; e--)
			dims[e] = dims[e - 1];
		dims[e] = d;
	}
	walk_make(g, order);
	for (k = 0; k < g->n; k++) {
		for (d = shape->ndim - 1, rest = k; d >= 0; d--) {
			coord[dims[d]] = rest % shape->extent[dims[d]];
			rest /= shape->extent[dims[d]];
		}
		p->xpus[ocs_shape_rank(shape, coord)] = g->xpus[order[k]];
	}
	free(order);
}

/* XPUs from anywhere. */
static struct ocs_placement *scattered_place(struct ocs_policy *policy,
					     const struct ocs_shape *shape,
					     const struct ocs_occupancy *occupancy)
{
	const struct ocs_section *s = policy->section;
	size_t xpus = (size_t)s->ncubes * (size_t)s->cube_xpus;
	struct gather g = { .s = s, .occupancy = occupancy, .wanted = (int)shape->xpus };
	struct ocs_placement *p = NULL;
	long all = 0;
	int cube, a;

	g.free_of = ocs_calloc((size_t)s->ncubes, sizeof(int));
	for (cube = 0; cube < s->ncubes; cube++)
		all += g.free_of[cube] = ocs_occupancy_cube_free(occupancy, cube);
	for (a = 0; a < OCS_AXES; a++)
		g.face = s->edge[a] > g.face ? s->edge[a] : g.face;
	if (all >= shape->xpus) {
		g.taken = ocs_calloc(xpus, sizeof(int));
		g.met = ocs_calloc(xpus, sizeof(int));
		g.xpus = ocs_calloc((size_t)shape->xpus, sizeof(*g.xpus));
		g.port = ocs_calloc((size_t)s->ncubes * OCS_AXES * 2 * (size_t)(g.face * g.face),
				    sizeof(bool));
		if (xpus_gather(&g)) {
			p = ocs_policy_start(policy, shape);
			shape_lay(&g, p);
			ocs_policy_finish(policy, p, false);
			p->circuits = g.circuits;
			p->ncircuits = g.ncircuits;
			g.circuits = NULL;
		}
	}
	free(g.free_of);
	free(g.taken);
	free(g.met);
	free(g.xpus);
	free(g.port);
	free(g.circuits);
	return p;
}

/* Keeps P if its edges have routes. */
static struct ocs_placement *routes_keep(struct ocs_policy *policy, struct ocs_placement *p,
					 const struct ocs_shape *shape)
{
	if (!p)
		return NULL;
	p->shape = *shape;
	ocs_routes_destroy(policy->routes);
	policy->routes = ocs_routes_find(p, policy->load);
	if (policy->routes)
		return p;
	ocs_placement_destroy(p);
	return NULL;
}

struct ocs_placement *ocs_policy_effort_place(struct ocs_policy *policy,
					      const struct ocs_policy_shape *entry,
					      const struct ocs_occupancy *occupancy)
{
	struct ocs_placement *p = NULL;
	struct ocs_error why;
	int i, d;

	if (entry->closes)
		p = ocs_place(policy->placer, occupancy, &entry->shape, 0, &why);
	for (i = 0; i < entry->nlines && !p && policy->load > 1; i++) {
		struct ocs_shape use = entry->shape;

		for (d = 0; d < use.ndim; d++)
			use.mesh[d] |= entry->lines[i] >> d & 1;
		p = routes_keep(policy, ocs_place(policy->placer, occupancy, &use, 0, &why),
				&entry->shape);
	}
	if (!p && !entry->shape.twisted && policy->load > 1)
		p = routes_keep(policy, scattered_place(policy, &entry->shape, occupancy),
				&entry->shape);
	return p;
}

void ocs_policy_effort_learn(struct ocs_policy *policy, struct ocs_policy_shape *entry)
{
	const struct ocs_shape *shape = &entry->shape;
	unsigned int all = (1u << shape->ndim) - 1, mask;
	struct ocs_placement *p;
	int lines, d;

	entry->closes = ocs_catalogue_possible(policy->section, shape);
	for (lines = 1; lines <= shape->ndim && !shape->twisted; lines++) {
		for (mask = 1; mask <= all; mask++) {
			struct ocs_shape use = *shape;
			bool sensible = __builtin_popcount(mask) == lines;

			for (d = 0; d < use.ndim && sensible; d++) {
				if (!(mask >> d & 1))
					continue;
				sensible = use.extent[d] > 2 && !use.mesh[d];
				use.mesh[d] = true;
			}
			if (sensible && ocs_catalogue_possible(policy->section, &use))
				entry->lines[entry->nlines++] = (unsigned char)mask;
		}
	}
	ocs_occupancy_reset(policy->scratch);
	p = ocs_policy_effort_place(policy, entry, policy->scratch);
	entry->possible = p != NULL;
	ocs_routes_destroy(ocs_policy_routes_take(policy));
	ocs_placement_destroy(p);
}
