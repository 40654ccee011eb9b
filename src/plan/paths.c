/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Several paths for pairs with traffic of their own: the k shortest without loops
 * (Yen's method), with equal shares. */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/plan/internal.h"
#include "src/util/text.h"

/* The servers that one circuit leads to from server i: heads[first[i]] to heads[first[i + 1] - 1],
 * each once. */
struct graph {
	int n, *first, *heads;
};

struct path {
	int length, *servers;
};

/* Yen's method for one pair. */
struct search {
	const struct graph *graph;
	int from, to;
	struct path *found, *candidates;
	int nfound, ncandidates, capacity;
	/* of each server, for one spur: not to be entered, not to be the next one, where it
	 * was reached from */
	bool *closed, *barred;
	int *parent, *queue;
};

static void graph_make(struct graph *graph, const struct ocs_plan *plan)
{
	int n = plan->servers, *at, kept = 0;

	graph->n = n;
	graph->first = ocs_calloc((size_t)n + 1, sizeof(int));
	graph->heads = ocs_calloc(2 * (size_t)plan->ncircuits + 1, sizeof(int));
	at = ocs_calloc((size_t)n + 1, sizeof(int));
	for (int c = 0; c < plan->ncircuits; c++) {
		graph->first[plan->circuits[c].a + 1]++;
		if (!plan->directed)
			graph->first[plan->circuits[c].b + 1]++;
	}
	for (int i = 0; i < n; i++) {
		graph->first[i + 1] += graph->first[i];
		at[i] = graph->first[i];
	}
	for (int c = 0; c < plan->ncircuits; c++) {
		graph->heads[at[plan->circuits[c].a]++] = plan->circuits[c].b;
		if (!plan->directed)
			graph->heads[at[plan->circuits[c].b]++] = plan->circuits[c].a;
	}
	/* circuits side by side are one way: at[i] is who saw server i last */
	memset(at, -1, ((size_t)n + 1) * sizeof(int));
	for (int i = 0, next = 0; i < n; i++) {
		int begin = next;

		next = graph->first[i + 1];
		graph->first[i] = kept;
		for (int h = begin; h < next; h++)
			if (at[graph->heads[h]] != i && graph->heads[h] != i) {
				at[graph->heads[h]] = i;
				graph->heads[kept++] = graph->heads[h];
			}
	}
	graph->first[n] = kept;
	free(at);
}

/* Reaches SEARCH->to from SPUR with the fewest circuits; false if nothing leads there. */
static bool spur_reach(struct search *search, int spur)
{
	const struct graph *graph = search->graph;
	int head = 0, tail = 0;

	for (int i = 0; i < graph->n; i++)
		search->parent[i] = -1;
	search->queue[tail++] = spur;
	search->parent[spur] = spur;
	while (head < tail) {
		int server = search->queue[head++];

		for (int h = graph->first[server]; h < graph->first[server + 1]; h++) {
			int next = graph->heads[h];

			if (search->parent[next] >= 0 || search->closed[next] ||
			    (server == spur && search->barred[next]))
				continue;
			search->parent[next] = server;
			if (next == search->to)
				return true;
			search->queue[tail++] = next;
		}
	}
	return false;
}

static bool path_equal(const struct path *path, const int *servers, int length)
{
	return path->length == length &&
	       memcmp(path->servers, servers, (size_t)length * sizeof(int)) == 0;
}

/* ROOT's first ROOTED servers and the way on that spur_reach has found; nothing if it is a
 * candidate already. */
static void candidate_add(struct search *search, const int *root, int rooted)
{
	int length = rooted, *servers = ocs_calloc((size_t)search->graph->n, sizeof(int));

	for (int i = search->to; i != root[rooted - 1]; i = search->parent[i])
		length++;
	memcpy(servers, root, (size_t)rooted * sizeof(int));
	for (int i = search->to, at = length; at > rooted; i = search->parent[i])
		servers[--at] = i;
	for (int c = 0; c < search->ncandidates; c++)
		if (path_equal(&search->candidates[c], servers, length)) {
			free(servers);
			return;
		}
	if (search->ncandidates == search->capacity) {
		search->capacity = 2 * search->capacity + 8;
		search->candidates = ocs_realloc(
			search->candidates, (size_t)search->capacity * sizeof(*search->candidates));
	}
	search->candidates[search->ncandidates++] =
		(struct path){ length, ocs_realloc(servers, (size_t)length * sizeof(int)) };
}

/* The ways that leave the last path found after ROOTED of its servers, and no path found
 * before with the same beginning. */
static void candidates_branch(struct search *search, int rooted)
{
	const int *root = search->found[search->nfound - 1].servers;
	const struct graph *graph = search->graph;

	memset(search->closed, 0, (size_t)graph->n);
	memset(search->barred, 0, (size_t)graph->n);
	for (int i = 0; i < rooted; i++)
		search->closed[root[i]] = true;
	for (int p = 0; p < search->nfound; p++) {
		const struct path *path = &search->found[p];

		if (path->length > rooted &&
		    memcmp(path->servers, root, (size_t)rooted * sizeof(int)) == 0)
			search->barred[path->servers[rooted]] = true;
	}
	if (spur_reach(search, root[rooted - 1]))
		candidate_add(search, root, rooted);
}

/* Takes the shortest candidate, of several the oldest; false if there is none. */
static bool candidate_take(struct search *search)
{
	int best = 0;

	if (search->ncandidates == 0)
		return false;
	for (int c = 1; c < search->ncandidates; c++)
		if (search->candidates[c].length < search->candidates[best].length)
			best = c;
	search->found[search->nfound++] = search->candidates[best];
	search->ncandidates--;
	memmove(&search->candidates[best], &search->candidates[best + 1],
		(size_t)(search->ncandidates - best) * sizeof(*search->candidates));
	return true;
}

/* The K shortest paths without loops into SEARCH->found. */
static void paths_find(struct search *search, int k)
{
	memset(search->closed, 0, (size_t)search->graph->n);
	memset(search->barred, 0, (size_t)search->graph->n);
	if (spur_reach(search, search->from))
		candidate_add(search, &search->from, 1);
	while (candidate_take(search) && search->nfound < k)
		for (int i = 1; i < search->found[search->nfound - 1].length; i++)
			candidates_branch(search, i);
}

static void paths_clear(struct search *search)
{
	for (int i = 0; i < search->nfound; i++)
		free(search->found[i].servers);
	for (int i = 0; i < search->ncandidates; i++)
		free(search->candidates[i].servers);
	search->nfound = search->ncandidates = 0;
}

/* The route's own path stays the first; K in all at most. */
static void route_extend(struct ocs_plan_route *route, struct search *search, int k)
{
	route->paths = ocs_realloc(route->paths, k * sizeof(*route->paths));
	route->lengths = ocs_realloc(route->lengths, k * sizeof(*route->lengths));
	route->weights = ocs_realloc(route->weights, k * sizeof(*route->weights));
	for (int i = 0; i < search->nfound && route->npaths < k; i++) {
		struct path *path = &search->found[i];

		if (path_equal(path, route->paths[0], route->lengths[0]))
			continue;
		route->paths[route->npaths] = path->servers;
		route->lengths[route->npaths++] = path->length;
		path->servers = NULL;
	}
	for (int p = 0; p < route->npaths; p++)
		route->weights[p] = 1.0 / route->npaths;
}

static void routes_extend(struct ocs_plan *plan, const struct graph *graph, int k)
{
	size_t n = (size_t)graph->n;
	struct search search = { .graph = graph };

	search.found = ocs_calloc((size_t)k, sizeof(*search.found));
	search.closed = ocs_calloc(n, sizeof(bool));
	search.barred = ocs_calloc(n, sizeof(bool));
	search.parent = ocs_calloc(n, sizeof(int));
	search.queue = ocs_calloc(n, sizeof(int));
	for (int i = 0; i < plan->nroutes; i++) {
		struct ocs_plan_route *route = &plan->routes[i];

		if (plan->mp[(size_t)route->src * n + route->dst] <= 0)
			continue;
		search.from = route->src;
		search.to = route->dst;
		paths_find(&search, k);
		route_extend(route, &search, k);
		paths_clear(&search);
	}
	free(search.queue);
	free(search.parent);
	free(search.barred);
	free(search.closed);
	free(search.candidates);
	free(search.found);
}

/* Circuits and load from each server to each. */
struct link {
	int circuits;
	double load;
};

/* The busiest direction of a circuit; circuits side by side share evenly. */
static double busiest(const struct ocs_plan *plan)
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

void ocs_plan_paths(struct ocs_plan *plan, int k)
{
	struct graph graph;

	if (k < 2 || !plan->routes || !plan->mp)
		return;
	graph_make(&graph, plan);
	routes_extend(plan, &graph, k);
	free(graph.heads);
	free(graph.first);
	plan->max_link_load = busiest(plan);
	plan->bandwidth_tax += tax_added(plan);
}
