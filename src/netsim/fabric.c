/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/netsim/fabric.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/netsim/fabric_make.h"
#include "src/netsim/opus.h"
#include "src/netsim/region.h"
#include "src/netsim/torus.h"
#include "src/plan/plan.h"
#include "src/util/error.h"
#include "src/util/text.h"

/* Servers up to which the ways of all to one are found at once. */
#define ROUTES_ALL_MAX 512

int ocs_netsim_fabric_link(struct ocs_netsim_fabric *fabric, int from, int to, double rate)
{
	if (fabric->nlinks == fabric->links_size) {
		fabric->links_size = fabric->links_size ? 2 * fabric->links_size : 64;
		fabric->links = ocs_realloc(fabric->links,
					    (size_t)fabric->links_size * sizeof(*fabric->links));
	}
	fabric->links[fabric->nlinks] =
		(struct ocs_netsim_link){ .from = from, .to = to, .rate = rate };
	return fabric->nlinks++;
}

/* Each server has a link to and from switch HUB. */
static void star_make(struct ocs_netsim_fabric *fabric, double rate)
{
	int hub = fabric->vertices++;

	for (int k = 0; k < fabric->servers; k++) {
		ocs_netsim_fabric_link(fabric, k, hub, rate);
		ocs_netsim_fabric_link(fabric, hub, k, rate);
	}
}

/* Leaves of spec.leaf servers below one spine. */
static void leaves_make(struct ocs_netsim_fabric *fabric, double rate)
{
	const struct ocs_netsim_spec *spec = &fabric->spec;
	int leaves = (fabric->servers + spec->leaf - 1) / spec->leaf;
	int spine = fabric->vertices + leaves;

	for (int k = 0; k < fabric->servers; k++) {
		int leaf = fabric->vertices + k / spec->leaf;

		ocs_netsim_fabric_link(fabric, k, leaf, rate);
		ocs_netsim_fabric_link(fabric, leaf, k, rate);
	}
	for (int k = 0; k < leaves; k++) {
		double up = rate * spec->leaf / spec->oversub;

		ocs_netsim_fabric_link(fabric, fabric->vertices + k, spine, up);
		ocs_netsim_fabric_link(fabric, spine, fabric->vertices + k, up);
	}
	fabric->vertices = spine + 1;
}

static int links_make(struct ocs_netsim_fabric *fabric,
		      const struct ocs_netsim_graph *const *graphs, int *const *places, int n,
		      uint64_t seed, struct ocs_error *err)
{
	double all = fabric->spec.rate * fabric->spec.degree;

	switch (fabric->spec.kind) {
	case OCS_NETSIM_FAT_TREE:
	case OCS_NETSIM_OVERSUBSCRIBED:
		leaves_make(fabric, all);
		return 0;
	case OCS_NETSIM_EXPANDER:
		return ocs_netsim_expander_make(fabric, seed, err);
	case OCS_NETSIM_TOPOOPT:
		return ocs_netsim_topoopt_make(fabric, graphs, places, n, err);
	case OCS_NETSIM_RECONFIG:
	case OCS_NETSIM_SIPML:
		return ocs_netsim_circuits_make(fabric, err);
	case OCS_NETSIM_OPUS:
		return ocs_netsim_opus_make(fabric, graphs, places, n, err);
	case OCS_NETSIM_REGION:
		return ocs_netsim_region_make(fabric, graphs, n, err);
	case OCS_NETSIM_TORUS:
		return ocs_netsim_torus_make(fabric, graphs, places, n, err);
	default:
		/* A transfer takes all rails at once: at the server they are one link. */
		star_make(fabric, all);
		return 0;
	}
}

struct ocs_netsim_fabric *ocs_netsim_fabric_create(const struct ocs_netsim_spec *spec,
						   const struct ocs_netsim_graph *const *graphs,
						   int *const *places, int n, uint64_t seed,
						   struct ocs_error *err)
{
	struct ocs_netsim_fabric *fabric;
	int servers = spec->servers, most = 0;

	for (int k = 0; k < n; k++) {
		for (int s = 0; s < graphs[k]->servers; s++) {
			int at = places && places[k] ? places[k][s] : s;

			most = at >= most ? at + 1 : most;
		}
	}
	if (!servers)
		servers = spec->kind == OCS_NETSIM_TORUS ? ocs_netsim_torus_servers(spec, most) :
							   most;
	if (servers < most) {
		ocs_error_set(err, OCS_USAGE,
			      "the fabric has %d servers, the graph needs %d; write servers:%d",
			      servers, most, most);
		return NULL;
	}
	if (servers > OCS_NETSIM_FABRIC_MAX) {
		ocs_error_set(err, OCS_USAGE, "%d servers, a fabric has at most %d", servers,
			      OCS_NETSIM_FABRIC_MAX);
		return NULL;
	}
	fabric = ocs_calloc(1, sizeof(*fabric));
	fabric->spec = *spec;
	fabric->servers = fabric->vertices = servers;
	fabric->routes = ocs_calloc((size_t)servers * servers, sizeof(*fabric->routes));
	fabric->paths_max = spec->paths;
	if (links_make(fabric, graphs, places, n, seed, err)) {
		ocs_netsim_fabric_destroy(fabric);
		return NULL;
	}
	return fabric;
}

void ocs_netsim_fabric_changed(struct ocs_netsim_fabric *fabric)
{
	for (size_t k = 0; k < (size_t)fabric->servers * fabric->servers; k++)
		free(fabric->routes[k].paths);
	memset(fabric->routes, 0,
	       (size_t)fabric->servers * fabric->servers * sizeof(*fabric->routes));
	free(fabric->first);
	free(fabric->out);
	fabric->first = fabric->out = NULL;
}

void ocs_netsim_fabric_destroy(struct ocs_netsim_fabric *fabric)
{
	if (!fabric)
		return;
	ocs_netsim_fabric_changed(fabric);
	for (int k = 0; k < fabric->nshards; k++) {
		ocs_plan_destroy(fabric->shards[k].plan);
		free(fabric->shards[k].servers);
	}
	free(fabric->shards);
	free(fabric->routes);
	free(fabric->links);
	free(fabric->direct);
	for (int k = 0; k < fabric->ntorus; k++)
		free(fabric->torus[k].servers);
	free(fabric->torus);
	free(fabric);
}

static void out_make(struct ocs_netsim_fabric *fabric)
{
	int *at;

	fabric->first = ocs_calloc((size_t)fabric->vertices + 1, sizeof(int));
	fabric->out = ocs_calloc((size_t)fabric->nlinks + 1, sizeof(int));
	at = ocs_calloc((size_t)fabric->vertices + 1, sizeof(int));
	for (int k = 0; k < fabric->nlinks; k++)
		fabric->first[fabric->links[k].from + 1]++;
	for (int k = 0; k < fabric->vertices; k++)
		fabric->first[k + 1] += fabric->first[k];
	memcpy(at, fabric->first, (size_t)fabric->vertices * sizeof(int));
	for (int k = 0; k < fabric->nlinks; k++)
		fabric->out[at[fabric->links[k].from]++] = k;
	free(at);
}

/* Hops from each vertex to DST; -1: no way.  Links of no rate are none. */
static int *hops_to(const struct ocs_netsim_fabric *fabric, int dst)
{
	int *hops = ocs_calloc((size_t)fabric->vertices, sizeof(int));
	bool more = true;

	for (int k = 0; k < fabric->vertices; k++)
		hops[k] = -1;
	hops[dst] = 0;
	for (int level = 1; more; level++) {
		more = false;
		for (int k = 0; k < fabric->nlinks; k++) {
			const struct ocs_netsim_link *link = &fabric->links[k];

			if (link->rate > 0 && hops[link->to] == level - 1 && hops[link->from] < 0) {
				hops[link->from] = level;
				more = true;
			}
		}
	}
	return hops;
}

/* All shortest ways from AT on, at most paths_max of them. */
static void paths_walk(const struct ocs_netsim_fabric *fabric, const int *hops, int at,
		       struct ocs_netsim_path *path, struct ocs_netsim_routes *routes)
{
	if (!hops[at]) {
		routes->paths = ocs_realloc(routes->paths,
					    (size_t)(routes->count + 1) * sizeof(*routes->paths));
		routes->paths[routes->count++] = *path;
		return;
	}
	for (int k = fabric->first[at]; k < fabric->first[at + 1]; k++) {
		const struct ocs_netsim_link *link = &fabric->links[fabric->out[k]];

		if (routes->count >= fabric->paths_max)
			return;
		if (!(link->rate > 0) || hops[link->to] != hops[at] - 1)
			continue;
		path->links[path->n++] = fabric->out[k];
		paths_walk(fabric, hops, link->to, path, routes);
		path->n--;
	}
}

/* The way from SRC to DST where a link joins them; returns whether one does. */
static bool route_neighbour(struct ocs_netsim_fabric *fabric, int src, int dst)
{
	struct ocs_netsim_routes *routes = &fabric->routes[(size_t)src * fabric->servers + dst];

	for (int k = fabric->first[src]; k < fabric->first[src + 1]; k++) {
		const struct ocs_netsim_link *link = &fabric->links[fabric->out[k]];

		if (link->to != dst || !(link->rate > 0))
			continue;
		*routes = (struct ocs_netsim_routes){ ocs_calloc(1, sizeof(*routes->paths)), 1,
						      true };
		*routes->paths = (struct ocs_netsim_path){ .n = 1, .weight = 1 };
		routes->paths->links[0] = fabric->out[k];
		return true;
	}
	return false;
}

/* The circuit from SRC to DST, if only now and then there is one. */
static void route_direct(struct ocs_netsim_fabric *fabric, int src, int dst)
{
	struct ocs_netsim_routes *routes = &fabric->routes[src * fabric->servers + dst];

	routes->known = true;
	routes->count = 1;
	routes->paths = ocs_calloc(1, sizeof(*routes->paths));
	routes->paths->n = 1;
	routes->paths->links[0] = src * fabric->servers + dst;
	routes->paths->weight = 1;
}

/* The ways to DST of all servers, or of SRC where they are many. */
static void routes_make(struct ocs_netsim_fabric *fabric, int only, int dst)
{
	bool many = fabric->servers > ROUTES_ALL_MAX;
	int *hops = hops_to(fabric, dst);

	for (int src = many ? only : 0; src < (many ? only + 1 : fabric->servers); src++) {
		struct ocs_netsim_routes *routes = &fabric->routes[src * fabric->servers + dst];
		struct ocs_netsim_path path = { 0 };

		if (routes->known)
			continue;
		routes->known = true;
		if (src != dst && hops[src] > 0 && hops[src] <= OCS_FLOW_LINKS_MAX)
			paths_walk(fabric, hops, src, &path, routes);
		for (int k = 0; k < routes->count; k++)
			routes->paths[k].weight = 1.0 / routes->count;
	}
	free(hops);
}

const struct ocs_netsim_routes *ocs_netsim_fabric_routes(struct ocs_netsim_fabric *fabric, int src,
							 int dst, struct ocs_error *err)
{
	struct ocs_netsim_routes *routes = &fabric->routes[src * fabric->servers + dst];

	bool follows =
		fabric->spec.kind == OCS_NETSIM_RECONFIG || fabric->spec.kind == OCS_NETSIM_SIPML;

	if (!routes->known && follows && !fabric->spec.forward) {
		route_direct(fabric, src, dst);
	} else if (!routes->known) {
		if (!fabric->first)
			out_make(fabric);
		if (!route_neighbour(fabric, src, dst))
			routes_make(fabric, src, dst);
	}
	if (!routes->count) {
		ocs_error_set(err, OCS_NEVER,
			      "there is no way of at most %d links from server %d to server %d",
			      OCS_FLOW_LINKS_MAX, src, dst);
		return NULL;
	}
	return routes;
}
