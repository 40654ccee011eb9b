/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/sim/slowdown.h"

#include <stdlib.h>
#include <string.h>

#include "src/netsim/collective.h"
#include "src/netsim/flow.h"
#include "src/netsim/torus.h"
#include "src/util/text.h"

#define BYTES 1e9 /* of the AllReduce; the ratio is the same for all */
#define DIRS OCS_LINKS

/* One AllReduce.  Links: each rank's own ones, two a dimension, and with routes those of its XPU. */
struct reduction {
	const struct ocs_shape *shape; /* rings where not mesh */
	const struct ocs_route **by_pair;
	const struct ocs_routes *routes;
	struct ocs_flownet *net;
	int stride[OCS_SHAPE_DIMS];
	int left; /* flows under way */
};

static int pair_compare(const struct ocs_route *a, int from, int to)
{
	return a->from != from ? (a->from < from ? -1 : 1) : a->to < to ? -1 : a->to > to;
}

static int route_compare(const void *left, const void *right)
{
	const struct ocs_route *b = *(const struct ocs_route *const *)right;

	return pair_compare(*(const struct ocs_route *const *)left, b->from, b->to);
}

static const struct ocs_route *route_find(const struct reduction *r, int from, int to)
{
	long low = 0, high = r->routes->nroutes - 1;

	while (low <= high) {
		long at = (low + high) / 2;
		int order = pair_compare(r->by_pair[at], from, to);

		if (!order)
			return r->by_pair[at];
		if (order < 0)
			low = at + 1;
		else
			high = at - 1;
	}
	return NULL;
}

/* The links of the edge from SRC to DST, which are neighbours, or -1: a line ends between them. */
static int edge_links(const struct reduction *r, int src, int dst, int dim, int sign, int *links)
{
	const struct ocs_route *route;
	int n = 0;

	if (!r->routes) {
		links[0] = (src * r->shape->ndim + dim) * 2 + sign;
		return 1;
	}
	route = route_find(r, src, dst);
	if (route) {
		for (; n < route->nhops && n < OCS_FLOW_LINKS_MAX; n++) {
			const struct ocs_hop *hop = &r->routes->hops[route->first + n];

			links[n] = hop->rank * DIRS + hop->dir;
		}
		return n;
	}
	route = route_find(r, dst, src);
	if (!route)
		return -1;
	/* the same way back: each link in its other direction */
	for (; n < route->nhops && n < OCS_FLOW_LINKS_MAX; n++) {
		const struct ocs_hop *hop = &r->routes->hops[route->first + n];
		int peer = n + 1 < route->nhops ? hop[1].rank : route->to;

		links[n] = peer * DIRS + (hop->dir ^ 1);
	}
	return n;
}

/* The other way along the line.  Its links carry the same, so that those beyond the most that a flow
 * may have change nothing. */
static int line_links(const struct reduction *r, int src, int dim, int sign, int *links)
{
	int step = sign ? r->stride[dim] : -r->stride[dim], n = 0, part[OCS_FLOW_LINKS_MAX];

	for (int k = 1; k < r->shape->extent[dim]; k++, src += step) {
		int count = edge_links(r, src, src + step, dim, !sign, part);

		for (int i = 0; i < count && n < OCS_FLOW_LINKS_MAX; i++)
			links[n++] = part[i];
	}
	return n;
}

static void transfer_send(void *context, int src, int dst, double bytes, bool direct)
{
	struct reduction *r = context;
	int links[OCS_FLOW_LINKS_MAX], dim = 0, extent, from, to, sign, n;

	(void)direct;
	while (src / r->stride[dim] % r->shape->extent[dim] ==
	       dst / r->stride[dim] % r->shape->extent[dim])
		dim++;
	extent = r->shape->extent[dim];
	from = src / r->stride[dim] % extent;
	to = dst / r->stride[dim] % extent;
	sign = to != (from + 1) % extent;
	/* between two there is one edge, which leads up from the first */
	if (extent == 2)
		sign = from;
	if (r->shape->mesh[dim] && extent > 2 && from + to == extent - 1 &&
	    (from == 0 || to == 0) && abs(from - to) == extent - 1)
		n = line_links(r, src, dim, sign, links);
	else
		n = edge_links(r, src, dst, dim, sign, links);
	if (n < 1 || bytes <= 0)
		return;
	ocs_flownet_start(r->net, links, n, bytes, 1, 0);
	r->left++;
}

/* Until all of a phase have ended. */
static void phase_finish(struct reduction *r)
{
	while (r->left) {
		int count;

		ocs_flownet_advance(r->net, ocs_flownet_next(r->net));
		ocs_flownet_ended(r->net, &count);
		r->left -= count;
	}
}

/* A reduce-scatter, half of an AllReduce; the other half is the same backwards. */
static double reduction_time(const struct ocs_shape *shape, const struct ocs_routes *routes)
{
	struct reduction r = { .shape = shape, .routes = routes };
	struct ocs_netsim_graph *graph = ocs_netsim_graph_create((int)shape->xpus, 1);
	int *ranks = ocs_calloc((size_t)shape->xpus, sizeof(int)), stride = 1, hops;
	struct ocs_netsim_torus torus = { .shape = *shape, .servers = ranks };
	struct ocs_netsim_fabric fabric = { .servers = (int)shape->xpus,
					    .torus = &torus,
					    .ntorus = 1 };
	long links = shape->xpus * (routes ? DIRS : 2 * shape->ndim);
	double time;
	int task;

	fabric.spec.kind = OCS_NETSIM_TORUS;
	for (int d = shape->ndim - 1; d >= 0; stride *= shape->extent[d--])
		r.stride[d] = stride;
	for (long k = 0; k < shape->xpus; k++)
		ranks[k] = (int)k;
	if (routes) {
		r.by_pair = ocs_calloc((size_t)routes->nroutes + 1, sizeof(*r.by_pair));
		for (long k = 0; k < routes->nroutes; k++)
			r.by_pair[k] = &routes->routes[k];
		qsort(r.by_pair, (size_t)routes->nroutes, sizeof(*r.by_pair), route_compare);
	}
	task = ocs_netsim_collective_add(graph, OCS_NETSIM_REDUCE_SCATTER,
					 ocs_netsim_group_add(graph, ranks, (int)shape->xpus),
					 BYTES);
	r.net = ocs_flownet_create(0);
	for (long k = 0; k < links; k++)
		ocs_flownet_link_add(r.net, BYTES);
	for (int phase = 0;
	     ocs_netsim_collective_phase(graph, &graph->tasks[task], NULL, &fabric, OCS_NETSIM_AUTO,
					 phase, transfer_send, &r, &hops);
	     phase++)
		phase_finish(&r);
	time = ocs_flownet_now(r.net);
	ocs_flownet_destroy(r.net);
	ocs_netsim_graph_destroy(graph);
	free(r.by_pair);
	free(ranks);
	return time;
}

double ocs_sim_allreduce_ratio(const struct ocs_shape *asked, const struct ocs_shape *placed,
			       const struct ocs_routes *routes)
{
	bool same = !memcmp(asked->mesh, placed->mesh, sizeof(asked->mesh));
	double before, now;

	/* a twist shifts which rings there are; its edges have links of their own */
	if (asked->xpus < 2 || asked->twisted || (same && (!routes || routes->load <= 1)))
		return 1;
	before = reduction_time(asked, NULL);
	now = reduction_time(placed, routes);
	return now > before && before > 0 ? now / before : 1;
}

double ocs_sim_ratio_find(struct ocs_sim_ratios *ratios, const struct ocs_shape *asked,
			  const struct ocs_shape *placed, const struct ocs_routes *routes)
{
	double ratio;

	for (int k = 0; k < ratios->count && !routes; k++)
		if (ocs_shape_same(&ratios->known[k].asked, asked) &&
		    ocs_shape_same(&ratios->known[k].placed, placed))
			return ratios->known[k].ratio;
	ratio = ocs_sim_allreduce_ratio(asked, placed, routes);
	if (routes)
		return ratio;
	if (ratios->count == ratios->room) {
		ratios->room = ratios->room ? 2 * ratios->room : 64;
		ratios->known =
			ocs_realloc(ratios->known, (size_t)ratios->room * sizeof(*ratios->known));
	}
	ratios->known[ratios->count++] =
		(struct ocs_sim_known_ratio){ .asked = *asked, .placed = *placed, .ratio = ratio };
	return ratio;
}

void ocs_sim_ratios_free(struct ocs_sim_ratios *ratios)
{
	free(ratios->known);
	memset(ratios, 0, sizeof(*ratios));
}
