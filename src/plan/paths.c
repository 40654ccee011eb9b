/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Several paths for pairs with traffic of their own: the k shortest without loops
 * (Yen's method, igraph's), with equal shares. */

#include <math.h>
#include <stdlib.h>

#include "src/plan/graph_library.h"
#include "src/plan/internal.h"
#include "src/util/error.h"
#include "src/util/log.h"
#include "src/util/text.h"

static bool path_equal(const int *path, int length, const igraph_vector_int_t *other,
		       int other_length)
{
	if (other_length != length)
		return false;
	for (int i = 0; i < length; i++)
		if (VECTOR(*other)[i] != path[i])
			return false;
	return true;
}

/* The route's own path stays the first; K in all at most. */
static void route_extend(const struct ocs_graph_library *library, struct ocs_plan_route *route,
			 const igraph_vector_int_list_t *found, int k)
{
	igraph_integer_t count = library->vector_int_list_size(found);

	route->paths = ocs_realloc(route->paths, k * sizeof(*route->paths));
	route->lengths = ocs_realloc(route->lengths, k * sizeof(*route->lengths));
	route->weights = ocs_realloc(route->weights, k * sizeof(*route->weights));
	for (igraph_integer_t i = 0; i < count && route->npaths < k; i++) {
		const igraph_vector_int_t *path = library->vector_int_list_get_ptr(found, i);
		int length = (int)library->vector_int_size(path), *copy;

		if (path_equal(route->paths[0], route->lengths[0], path, length))
			continue;
		copy = ocs_calloc(length, sizeof(int));
		for (int v = 0; v < length; v++)
			copy[v] = (int)VECTOR(*path)[v];
		route->paths[route->npaths] = copy;
		route->lengths[route->npaths++] = length;
	}
	for (int p = 0; p < route->npaths; p++)
		route->weights[p] = 1.0 / route->npaths;
}

static void routes_extend(const struct ocs_graph_library *library, struct ocs_plan *plan,
			  const igraph_t *graph, int k)
{
	igraph_vector_int_list_t found;

	if (library->vector_int_list_init(&found, 0) != IGRAPH_SUCCESS)
		return;
	for (int i = 0; i < plan->nroutes; i++) {
		struct ocs_plan_route *route = &plan->routes[i];

		if (plan->mp[(size_t)route->src * plan->servers + route->dst] > 0 &&
		    library->get_k_shortest_paths(graph, NULL, &found, NULL, k, route->src,
						  route->dst, IGRAPH_OUT) == IGRAPH_SUCCESS)
			route_extend(library, route, &found, k);
	}
	library->vector_int_list_destroy(&found);
}

/* Circuits and load from each server to each. */
struct link {
	int circuits;
	double load;
};

/* The busiest direction of a circuit; circuits side by side share evenly. */
static double load_busiest(const struct ocs_plan *plan)
{
	size_t n = plan->servers;
	struct link *links = ocs_calloc(n * n, sizeof(*links));
	double most = 0;

	for (int c = 0; c < plan->ncircuits; c++) {
		links[plan->circuits[c].a * n + plan->circuits[c].b].circuits++;
		if (!plan->directed)
			links[plan->circuits[c].b * n + plan->circuits[c].a].circuits++;
	}
	for (int i = 0; i < plan->nroutes; i++) {
		const struct ocs_plan_route *route = &plan->routes[i];

		for (int p = 0; p < route->npaths; p++)
			for (int v = 0; v + 1 < route->lengths[p]; v++)
				links[route->paths[p][v] * n + route->paths[p][v + 1]].load +=
					route->weights[p];
	}
	for (size_t i = 0; i < n * n; i++)
		if (links[i].circuits)
			most = fmax(most, links[i].load / links[i].circuits);
	free(links);
	return most;
}

/* What the longer paths add to the tax. */
static double tax_added(const struct ocs_plan *plan)
{
	double bytes = 0, added = 0;

	for (int g = 0; g < plan->ngroups; g++)
		bytes += 2.0 * (double)plan->groups[g].bytes * (plan->groups[g].nmembers - 1);
	for (int i = 0; i < plan->nroutes; i++) {
		const struct ocs_plan_route *route = &plan->routes[i];
		double part = plan->mp[(size_t)route->src * plan->servers + route->dst];

		bytes += part;
		for (int p = 1; p < route->npaths; p++)
			added += part * route->weights[p] * (route->lengths[p] - route->lengths[0]);
	}
	return bytes > 0 ? added / bytes : 0;
}

static void paths_add(const struct ocs_graph_library *library, struct ocs_plan *plan, int k)
{
	igraph_error_handler_t *before = library->set_error_handler(library->error_handler_ignore);
	igraph_vector_int_t edges;
	igraph_t graph;

	if (library->vector_int_init(&edges, 2 * (igraph_integer_t)plan->ncircuits) !=
	    IGRAPH_SUCCESS)
		goto out;
	for (int i = 0; i < plan->ncircuits; i++) {
		VECTOR(edges)[2 * i] = plan->circuits[i].a;
		VECTOR(edges)[2 * i + 1] = plan->circuits[i].b;
	}
	if (library->create(&graph, &edges, plan->servers, plan->directed) == IGRAPH_SUCCESS) {
		/* circuits side by side are one way */
		if (library->simplify(&graph, true, true, NULL) == IGRAPH_SUCCESS)
			routes_extend(library, plan, &graph, k);
		library->destroy(&graph);
	}
	library->vector_int_destroy(&edges);
out:
	library->set_error_handler(before);
}

void ocs_plan_paths(struct ocs_plan *plan, int k)
{
	struct ocs_graph_library library;
	struct ocs_error err;

	if (k < 2 || !plan->routes || !plan->mp)
		return;
	if (ocs_graph_library_load(&library, &err)) {
		ocs_log(OCS_LOG_WARNING, "a plan has one path for each pair: %s", err.text);
		return;
	}
	paths_add(&library, plan, k);
	plan->max_link_load = load_busiest(plan);
	plan->bandwidth_tax += tax_added(plan);
}
