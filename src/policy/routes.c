/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/policy/routes.h"

#include <stdlib.h>
#include <string.h>

#include "src/util/text.h"

#define DIRS (2 * OCS_AXES)
#define WORK_MAX 4000000 /* links looked at in one search, whatever the job */

struct search {
	const struct ocs_placement *p;
	int n;			  /* XPUs */
	int *near;		  /* per rank and direction: the rank there, or -1 */
	int *circuit;		  /* per rank and axis: of its + port, or -1 */
	int *load;		  /* per rank and axis: edges on the link towards + */
	int *queue, *seen, *back; /* of a breadth-first search */
	int mark;
	long work;
	long hop_room;
	struct ocs_routes *routes;
};

/* Rank of the XPU in the order of the section, for all ranks: an index plus one. */
static int *rank_places(const struct ocs_placement *p)
{
	const struct ocs_section *s = p->section;
	int *at = ocs_calloc((size_t)s->ncubes * (size_t)s->cube_xpus, sizeof(int));
	int r;

	for (r = 0; r < p->shape.xpus; r++)
		at[(size_t)p->xpus[r].cube * (size_t)s->cube_xpus +
		   (size_t)ocs_section_bit(s, p->xpus[r].at)] = r + 1;
	return at;
}

static int place_of(const struct ocs_section *s, const int *at, int cube, const int *xyz)
{
	return at[(size_t)cube * (size_t)s->cube_xpus + (size_t)ocs_section_bit(s, xyz)] - 1;
}

static void xpus_join(struct search *b, int low, int high, int axis, int circuit)
{
	if (low < 0 || high < 0)
		return;
	b->near[low * DIRS + 2 * axis + OCS_PLUS] = high;
	b->near[high * DIRS + 2 * axis + OCS_MINUS] = low;
	b->circuit[low * OCS_AXES + axis] = circuit;
}

static void links_find(struct search *b)
{
	const struct ocs_placement *p = b->p;
	const struct ocs_section *s = p->section;
	int *at = rank_places(p), r, a, i, j;

	for (i = 0; i < b->n * DIRS; i++)
		b->near[i] = -1;
	for (i = 0; i < b->n * OCS_AXES; i++)
		b->circuit[i] = -1;
	for (r = 0; r < b->n; r++) {
		for (a = 0; a < OCS_AXES; a++) {
			int to[OCS_AXES] = { p->xpus[r].at[0], p->xpus[r].at[1], p->xpus[r].at[2] };

			if (++to[a] == s->edge[a]) {
				if (s->kind != OCS_STATIC || s->edge[a] < 2)
					continue;
				to[a] = 0;
			}
			xpus_join(b, r, place_of(s, at, p->xpus[r].cube, to), a, -1);
		}
	}
	for (i = 0; i < p->ncircuits; i++) {
		const struct ocs_circuit *c = &p->circuits[i];
		int from[OCS_AXES], to[OCS_AXES];

		for (a = j = 0; a < OCS_AXES; a++)
			from[a] = to[a] = a == c->dim ? 0 : c->pos[j++];
		from[c->dim] = s->edge[c->dim] - 1;
		xpus_join(b, place_of(s, at, c->from, from), place_of(s, at, c->to, to), c->dim, i);
	}
	free(at);
}

/* The link that leaves RANK in DIR, by its + end. */
static int *load_of(struct search *b, int rank, int dir)
{
	int low = dir % 2 == OCS_PLUS ? rank : b->near[rank * DIRS + dir];

	return &b->load[low * OCS_AXES + dir / 2];
}

static void hop_add(struct search *b, int rank, int dir)
{
	struct ocs_routes *r = b->routes;
	int load = ++*load_of(b, rank, dir);

	if (load > r->load)
		r->load = load;
	if (r->nhops == b->hop_room) {
		b->hop_room = b->hop_room ? 2 * b->hop_room : 256;
		r->hops = ocs_realloc(r->hops, (size_t)b->hop_room * sizeof(*r->hops));
	}
	r->hops[r->nhops++] = (struct ocs_hop){ rank, dir };
}

/* A link of its own for ROUTE, if there is one. */
static bool route_direct(struct search *b, struct ocs_route *route)
{
	int dir;

	for (dir = 0; dir < DIRS; dir++) {
		if (b->near[route->from * DIRS + dir] != route->to || *load_of(b, route->from, dir))
			continue;
		route->first = b->routes->nhops;
		route->nhops = 1;
		hop_add(b, route->from, dir);
		return true;
	}
	return false;
}

/* The shortest way of ROUTE over links that carry fewer than MOST edges, from its end
 * to its start, so that the hops come out in order. */
static bool route_detour(struct search *b, struct ocs_route *route, int most)
{
	int head = 0, tail = 0, rank, dir;

	b->mark++;
	b->queue[tail++] = route->to;
	b->seen[route->to] = b->mark;
	while (head < tail && b->seen[route->from] != b->mark) {
		rank = b->queue[head++];
		for (dir = 0; dir < DIRS; dir++) {
			int to = b->near[rank * DIRS + dir];

			b->work++;
			if (to < 0 || b->seen[to] == b->mark || *load_of(b, rank, dir) >= most)
				continue;
			b->seen[to] = b->mark;
			b->back[to] = dir ^ 1;
			b->queue[tail++] = to;
		}
	}
	if (b->seen[route->from] != b->mark)
		return false;
	route->first = b->routes->nhops;
	for (rank = route->from; rank != route->to; rank = b->near[rank * DIRS + dir]) {
		dir = b->back[rank];
		hop_add(b, rank, dir);
	}
	route->nhops = (int)(b->routes->nhops - route->first);
	return true;
}

static void edges_list(struct search *b)
{
	const struct ocs_shape *shape = &b->p->shape;
	struct ocs_routes *r = b->routes;
	int coord[OCS_SHAPE_DIMS], d, rank, extent;

	r->routes = ocs_calloc((size_t)b->n * (size_t)shape->ndim + 1, sizeof(*r->routes));
	for (rank = 0; rank < b->n; rank++) {
		for (d = 0; d < shape->ndim; d++) {
			ocs_shape_coord(shape, rank, coord);
			extent = shape->extent[d];
			if (++coord[d] == extent) {
				if (shape->mesh[d] || extent < 3)
					continue;
				coord[d] = 0;
			}
			r->routes[r->nroutes].from = rank;
			r->routes[r->nroutes++].to = (int)ocs_shape_rank(shape, coord);
		}
	}
}

static bool route_all(struct search *b, int most)
{
	struct ocs_routes *r = b->routes;
	long i;

	memset(b->load, 0, (size_t)(b->n * OCS_AXES) * sizeof(int));
	r->nhops = 0;
	r->load = 0;
	for (i = 0; i < r->nroutes; i++) {
		r->routes[i].nhops = 0;
		route_direct(b, &r->routes[i]);
	}
	for (i = 0; i < r->nroutes; i++) {
		if (!r->routes[i].nhops &&
		    (b->work > WORK_MAX || !route_detour(b, &r->routes[i], most)))
			return false;
	}
	return true;
}

static void circuits_keep(struct search *b, struct ocs_placement *p)
{
	bool *used = ocs_calloc((size_t)p->ncircuits + 1, sizeof(bool));
	int i, kept = 0;

	for (i = 0; i < b->n * OCS_AXES; i++) {
		if (b->circuit[i] >= 0 && b->load[i])
			used[b->circuit[i]] = true;
	}
	for (i = 0; i < p->ncircuits; i++) {
		if (used[i])
			p->circuits[kept++] = p->circuits[i];
	}
	p->ncircuits = kept;
	free(used);
}

struct ocs_routes *ocs_routes_find(struct ocs_placement *p, int most)
{
	size_t n = (size_t)p->shape.xpus;
	struct search b = { .p = p, .n = (int)n, .routes = ocs_calloc(1, sizeof(*b.routes)) };
	bool found = false;
	int limit;

	b.near = ocs_calloc(n * DIRS, sizeof(int));
	b.circuit = ocs_calloc(n * OCS_AXES, sizeof(int));
	b.load = ocs_calloc(n * OCS_AXES, sizeof(int));
	b.queue = ocs_calloc(n, sizeof(int));
	b.seen = ocs_calloc(n, sizeof(int));
	b.back = ocs_calloc(n, sizeof(int));
	links_find(&b);
	edges_list(&b);
	for (limit = 1; limit <= most && !found; limit++)
		found = route_all(&b, limit);
	if (found)
		circuits_keep(&b, p);
	free(b.near);
	free(b.circuit);
	free(b.load);
	free(b.queue);
	free(b.seen);
	free(b.back);
	if (found)
		return b.routes;
	ocs_routes_destroy(b.routes);
	return NULL;
}

void ocs_routes_destroy(struct ocs_routes *routes)
{
	if (!routes)
		return;
	free(routes->routes);
	free(routes->hops);
	free(routes);
}

double ocs_routes_slowdown(int load, double communication)
{
	return load > 1 ? 1 + communication * (load - 1) : 1;
}
