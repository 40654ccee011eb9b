/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* The judge of routes: walks each of them over the fabric, link by link. */

#include <stdlib.h>

#include "src/policy/routes.h"
#include "src/util/error.h"
#include "src/util/text.h"

struct judge {
	const struct ocs_section *s;
	const struct ocs_placement *p;
	const struct ocs_routes *routes;
	const struct ocs_occupancy *occupancy;
	struct ocs_error *err;
	long *owner;	    /* per XPU of the section: rank + 1 */
	long *plus, *minus; /* per XPU and axis: circuit + 1 of its face port */
	long *carried;	    /* per XPU and axis: edges on the link towards + */
};

static long index_of(const struct ocs_section *s, int cube, const int *at)
{
	return (((long)cube * s->edge[0] + at[0]) * s->edge[1] + at[1]) * s->edge[2] + at[2];
}

static int xpus_check(struct judge *j)
{
	const struct ocs_section *s = j->s;
	long r;
	int a;

	for (r = 0; r < j->p->shape.xpus; r++) {
		const struct ocs_xpu *x = &j->p->xpus[r];
		bool inside = x->cube >= 0 && x->cube < s->ncubes;

		for (a = 0; a < OCS_AXES && inside; a++)
			inside = x->at[a] >= 0 && x->at[a] < s->edge[a];
		if (!inside)
			return ocs_error_set(j->err, OCS_ERROR, "XPU %ld is outside the machine",
					     r);
		if (j->occupancy && !ocs_occupancy_xpu_free(j->occupancy, x->cube, x->at))
			return ocs_error_set(j->err, OCS_ERROR, "XPU %ld is not free and healthy",
					     r);
		if (j->owner[index_of(s, x->cube, x->at)])
			return ocs_error_set(j->err, OCS_ERROR, "XPU %ld is used twice", r);
		j->owner[index_of(s, x->cube, x->at)] = r + 1;
	}
	return 0;
}

/* The XPU at one end of circuit C; -1: it is not the job's, or the port is blocked. */
static long end_of(const struct judge *j, const struct ocs_circuit *c, int sign)
{
	static const int other[OCS_AXES][2] = { { 1, 2 }, { 0, 2 }, { 0, 1 } };
	int cube = sign == OCS_PLUS ? c->from : c->to, at[OCS_AXES], k;
	long index;

	if (c->dim < 0 || c->dim >= OCS_AXES || cube < 0 || cube >= j->s->ncubes)
		return -1;
	at[c->dim] = sign == OCS_PLUS ? j->s->edge[c->dim] - 1 : 0;
	for (k = 0; k < 2; k++) {
		at[other[c->dim][k]] = c->pos[k];
		if (c->pos[k] < 0 || c->pos[k] >= j->s->edge[other[c->dim][k]])
			return -1;
	}
	if (j->occupancy && j->occupancy->any_blocked &&
	    ocs_occupancy_port_blocked(j->occupancy, cube, c->dim, c->pos[0], c->pos[1], sign))
		return -1;
	index = index_of(j->s, cube, at);
	return j->owner[index] ? index : -1;
}

static int circuits_check(struct judge *j)
{
	int i;

	if (j->p->ncircuits && j->s->kind != OCS_TORUS)
		return ocs_error_set(j->err, OCS_ERROR, "a static torus has no circuits");
	for (i = 0; i < j->p->ncircuits; i++) {
		const struct ocs_circuit *c = &j->p->circuits[i];
		long from = end_of(j, c, OCS_PLUS), to = end_of(j, c, OCS_MINUS);

		if (from < 0 || to < 0)
			return ocs_error_set(j->err, OCS_ERROR,
					     "circuit %d: a port is not the job's, or "
					     "failed or drained",
					     i);
		if (j->plus[OCS_AXES * from + c->dim] || j->minus[OCS_AXES * to + c->dim])
			return ocs_error_set(j->err, OCS_ERROR, "circuit %d: a port is used twice",
					     i);
		j->plus[OCS_AXES * from + c->dim] = j->minus[OCS_AXES * to + c->dim] = i + 1;
	}
	return 0;
}

/* The rank that hop H reaches, counting it on its link; -1: there is no such link. */
static long hop_walk(struct judge *j, const struct ocs_hop *h)
{
	const struct ocs_section *s = j->s;
	int axis = h->dir / 2, at[OCS_AXES], cube, a;
	bool up = h->dir % 2 == OCS_PLUS;
	long here, there, circuit = 0;

	if (h->dir < 0 || axis >= OCS_AXES || h->rank < 0 || h->rank >= j->p->shape.xpus)
		return -1;
	cube = j->p->xpus[h->rank].cube;
	for (a = 0; a < OCS_AXES; a++)
		at[a] = j->p->xpus[h->rank].at[a];
	here = index_of(s, cube, at);
	if (at[axis] == (up ? s->edge[axis] - 1 : 0)) {
		at[axis] = up ? 0 : s->edge[axis] - 1;
		if (s->kind == OCS_TORUS) {
			circuit = (up ? j->plus : j->minus)[OCS_AXES * here + axis];
			if (!circuit)
				return -1;
			cube = up ? j->p->circuits[circuit - 1].to :
				    j->p->circuits[circuit - 1].from;
		}
	} else {
		at[axis] += up ? 1 : -1;
	}
	there = index_of(s, cube, at);
	j->carried[OCS_AXES * (up ? here : there) + axis]++;
	return there == here ? -1 : j->owner[there] - 1;
}

static int route_check(struct judge *j, const struct ocs_route *route, long from, long to)
{
	long at = from;
	int k;

	if (route->from != from || route->to != to)
		return ocs_error_set(j->err, OCS_ERROR, "the edge %ld-%ld has no route", from, to);
	if (route->first < 0 || route->nhops < 1 || route->first + route->nhops > j->routes->nhops)
		return ocs_error_set(j->err, OCS_ERROR, "the route %ld-%ld is not there", from, to);
	for (k = 0; k < route->nhops; k++) {
		const struct ocs_hop *h = &j->routes->hops[route->first + k];

		if (h->rank != at)
			return ocs_error_set(j->err, OCS_ERROR,
					     "the route %ld-%ld is broken at hop %d", from, to, k);
		at = hop_walk(j, h);
		if (at < 0)
			return ocs_error_set(j->err, OCS_ERROR,
					     "the route %ld-%ld: no link of the job "
					     "for hop %d",
					     from, to, k);
	}
	return at == to ? 0 :
			  ocs_error_set(j->err, OCS_ERROR, "the route %ld-%ld ends at %ld", from,
					to, at);
}

/* Every edge of the shape, in the order of ranks and dimensions. */
static int edges_check(struct judge *j)
{
	const struct ocs_shape *shape = &j->p->shape;
	long stride[OCS_SHAPE_DIMS] = { 0 }, rank, n = 0;
	int d;

	for (d = shape->ndim - 1; d >= 0; d--)
		stride[d] = d == shape->ndim - 1 ? 1 : stride[d + 1] * shape->extent[d + 1];
	for (rank = 0; rank < shape->xpus; rank++) {
		for (d = 0; d < shape->ndim; d++) {
			long at = rank / stride[d] % shape->extent[d], to = rank + stride[d];

			if (at + 1 == shape->extent[d]) {
				if (shape->extent[d] < 3 || shape->mesh[d])
					continue;
				to = rank - at * stride[d];
			}
			if (n == j->routes->nroutes)
				return ocs_error_set(j->err, OCS_ERROR,
						     "the edge %ld-%ld has no route", rank, to);
			if (route_check(j, &j->routes->routes[n++], rank, to))
				return -1;
		}
	}
	return n == j->routes->nroutes ? 0 :
					 ocs_error_set(j->err, OCS_ERROR, "a route serves no edge");
}

static int loads_check(struct judge *j)
{
	long n = (long)j->s->ncubes * j->s->cube_xpus * OCS_AXES, i;

	for (i = 0; i < n; i++) {
		if (j->carried[i] > j->routes->load)
			return ocs_error_set(j->err, OCS_ERROR, "a link carries %ld edges, not %d",
					     j->carried[i], j->routes->load);
		if (j->plus[i] && !j->carried[i])
			return ocs_error_set(j->err, OCS_ERROR, "circuit %ld carries nothing",
					     j->plus[i] - 1);
	}
	return 0;
}

/* Whether LIST, of N of COUNT things, names each thing that SEEN counts, once. */
static bool list_complete(const int *list, int n, const bool *seen, int count)
{
	int i, all = 0;

	for (i = 0; i < count; i++)
		all += seen[i];
	for (i = 0; i < n && all == n; i++) {
		if (list[i] < 0 || list[i] >= count || !seen[list[i]] ||
		    (i && list[i] <= list[i - 1]))
			return false;
	}
	return all == n;
}

static int lists_check(struct judge *j, const struct ocs_fabric *fabric)
{
	const struct ocs_placement *p = j->p;
	bool *node = ocs_calloc((size_t)fabric->nnodes, sizeof(bool));
	bool *cube = ocs_calloc((size_t)j->s->ncubes, sizeof(bool));
	bool good;
	long r;

	for (r = 0; r < p->shape.xpus; r++) {
		node[ocs_section_node_at(j->s, p->xpus[r].cube, p->xpus[r].at)] = true;
		cube[p->xpus[r].cube] = true;
	}
	good = list_complete(p->nodes, p->nnodes, node, fabric->nnodes) &&
	       list_complete(p->cubes, p->ncubes, cube, j->s->ncubes);
	free(node);
	free(cube);
	return good ? 0 :
		      ocs_error_set(j->err, OCS_ERROR,
				    "the lists of nodes and cubes do not match "
				    "the XPUs");
}

int ocs_routes_verify(const struct ocs_fabric *fabric, const struct ocs_occupancy *occupancy,
		      const struct ocs_placement *p, const struct ocs_routes *routes,
		      struct ocs_error *err)
{
	struct judge j = {
		.s = p->section, .p = p, .routes = routes, .occupancy = occupancy, .err = err
	};
	size_t xpus = (size_t)j.s->ncubes * (size_t)j.s->cube_xpus;
	long product = 1;
	int d, result;

	for (d = 0; d < p->shape.ndim; d++)
		product *= p->shape.extent[d];
	if (p->shape.twisted || product != p->shape.xpus || (size_t)product > xpus)
		return ocs_error_set(err, OCS_ERROR, "the shape is twisted, wrong or too large");
	j.owner = ocs_calloc(xpus, sizeof(long));
	j.plus = ocs_calloc(xpus * OCS_AXES, sizeof(long));
	j.minus = ocs_calloc(xpus * OCS_AXES, sizeof(long));
	j.carried = ocs_calloc(xpus * OCS_AXES, sizeof(long));
	result = xpus_check(&j) || circuits_check(&j) || edges_check(&j) || loads_check(&j) ||
				 lists_check(&j, fabric) ?
			 -1 :
			 0;
	free(j.owner);
	free(j.plus);
	free(j.minus);
	free(j.carried);
	return result;
}
