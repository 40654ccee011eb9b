/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Shortest routes: one tree of next hops per destination, so that two routes to
 * the same server never disagree about the rest of the way.  Among shortest ways
 * a tree takes the one whose links carry least so far; with BALANCE the trees are
 * taken out and grown again a few times, now that the others are known. */

#include <stdlib.h>
#include <string.h>

#include "src/plan/internal.h"
#include "src/util/text.h"

#define PASSES 3
#define PASSES_SERVERS_MAX 1024	/* n * n next hops are kept for it */

/* A direction of a circuit. */
struct arc {
	int from, to;
};

struct graph {
	int n, narcs;
	struct arc *arcs;
	int *in_first, *in_list;	/* arcs into each vertex */
	long *load;			/* per arc: pairs that cross it */
	int *dist, *order, *next;	/* of the destination at hand */
	long *cost;			/* load of the way to it */
	int *subtree;
};

static void index_build(struct graph *graph)
{
	int *fill;

	graph->in_first = ocs_calloc(graph->n + 1, sizeof(int));
	graph->in_list = ocs_calloc(graph->narcs ? graph->narcs : 1, sizeof(int));
	for (int e = 0; e < graph->narcs; e++)
		graph->in_first[graph->arcs[e].to + 1]++;
	for (int v = 0; v < graph->n; v++)
		graph->in_first[v + 1] += graph->in_first[v];
	fill = ocs_calloc(graph->n + 1, sizeof(int));
	memcpy(fill, graph->in_first, graph->n * sizeof(int));
	for (int e = 0; e < graph->narcs; e++)
		graph->in_list[fill[graph->arcs[e].to]++] = e;
	free(fill);
}

static void graph_build(const struct ocs_plan *plan, struct graph *graph)
{
	memset(graph, 0, sizeof(*graph));
	graph->n = plan->servers;
	graph->arcs = ocs_calloc(2 * (size_t)plan->ncircuits + 1, sizeof(*graph->arcs));
	for (int c = 0; c < plan->ncircuits; c++) {
		int a = plan->circuits[c].a, b = plan->circuits[c].b;

		graph->arcs[graph->narcs++] = (struct arc){ a, b };
		if (!plan->directed)
			graph->arcs[graph->narcs++] = (struct arc){ b, a };
	}
	index_build(graph);
	graph->load = ocs_calloc(graph->narcs + 1, sizeof(*graph->load));
	graph->dist = ocs_calloc(graph->n, sizeof(int));
	graph->order = ocs_calloc(graph->n, sizeof(int));
	graph->next = ocs_calloc(graph->n, sizeof(int));
	graph->cost = ocs_calloc(graph->n, sizeof(*graph->cost));
	graph->subtree = ocs_calloc(graph->n, sizeof(int));
}

static void graph_free(struct graph *graph)
{
	free(graph->arcs);
	free(graph->in_first);
	free(graph->in_list);
	free(graph->load);
	free(graph->dist);
	free(graph->order);
	free(graph->next);
	free(graph->cost);
	free(graph->subtree);
}

/* The tree of next hops (arcs) to TARGET; vertices in the order they were reached.
 * A vertex is final when its turn comes: all nearer ones went before it.  Returns
 * how many were reached. */
static int tree_grow(struct graph *graph, int target)
{
	int head = 0, tail = 0, *dist = graph->dist;

	for (int v = 0; v < graph->n; v++)
		dist[v] = -1;
	dist[target] = 0;
	graph->cost[target] = 0;
	graph->order[tail++] = target;
	while (head < tail) {
		int at = graph->order[head++];

		for (int i = graph->in_first[at]; i < graph->in_first[at + 1]; i++) {
			int arc = graph->in_list[i], from = graph->arcs[arc].from;
			long cost = graph->cost[at] + graph->load[arc];

			if (dist[from] < 0) {
				dist[from] = dist[at] + 1;
				graph->order[tail++] = from;
			} else if (dist[from] <= dist[at] || cost >= graph->cost[from]) {
				continue;
			}
			graph->next[from] = arc;
			graph->cost[from] = cost;
		}
	}
	return tail;
}

/* Adds the tree NEXT, which reaches vertices in the present order, to the loads,
 * or with SIGN -1 takes it out. */
static void tree_load(struct graph *graph, const int *next, int sign)
{
	for (int v = 0; v < graph->n; v++)
		graph->subtree[v] = 1;
	for (int i = graph->n - 1; i > 0; i--) {
		int v = graph->order[i], arc = next[v];

		graph->load[arc] += sign * graph->subtree[v];
		graph->subtree[graph->arcs[arc].to] += graph->subtree[v];
	}
}

static void routes_add(struct ocs_plan *plan, const struct graph *graph, int target)
{
	for (int s = 0; s < graph->n; s++) {
		struct ocs_plan_route *route;
		int *path, length = graph->dist[s] + 1, v = s;

		if (s == target)
			continue;
		/* by source, then destination */
		route = &plan->routes[(size_t)s * (graph->n - 1) + target - (target > s)];
		path = ocs_calloc(length, sizeof(int));
		for (int i = 0; i < length; i++) {
			path[i] = v;
			if (v != target)
				v = graph->arcs[graph->next[v]].to;
		}
		route->src = s;
		route->dst = target;
		route->npaths = 1;
		route->paths = ocs_calloc(1, sizeof(*route->paths));
		route->lengths = ocs_calloc(1, sizeof(*route->lengths));
		route->weights = ocs_calloc(1, sizeof(*route->weights));
		route->paths[0] = path;
		route->lengths[0] = length;
		route->weights[0] = 1;
	}
}

/* One pass over all destinations.  TREES: the next hops of each, kept for the pass
 * to come, or NULL; AGAIN: they are there from the one before. */
static int pass(struct ocs_plan *plan, struct graph *graph, int *trees, bool again, bool last)
{
	long hops = 0;
	int n = plan->servers;

	plan->diameter = 0;
	for (int target = 0; target < n; target++) {
		int *tree = trees ? trees + (size_t)target * n : NULL;

		if (tree_grow(graph, target) < n)
			return -1;
		if (again) {
			tree_load(graph, tree, -1);
			tree_grow(graph, target);
		}
		tree_load(graph, graph->next, 1);
		if (tree)
			memcpy(tree, graph->next, n * sizeof(int));
		for (int v = 0; v < n; v++) {
			hops += graph->dist[v];
			if (graph->dist[v] > plan->diameter)
				plan->diameter = graph->dist[v];
		}
		if (last && plan->routes)
			routes_add(plan, graph, target);
	}
	plan->average_hops = n > 1 ? (double)hops / n / (n - 1) : 0;
	return 0;
}

int ocs_plan_measure(struct ocs_plan *plan, bool routes, bool balance)
{
	struct graph graph;
	int n = plan->servers, passes = balance && n <= PASSES_SERVERS_MAX ? PASSES : 1, rc = 0;
	int *trees = NULL;
	long load = 0;

	graph_build(plan, &graph);
	if (routes && n > 1) {
		plan->nroutes = n * (n - 1);
		plan->routes = ocs_calloc(plan->nroutes, sizeof(*plan->routes));
	}
	if (passes > 1)
		trees = ocs_calloc((size_t)n * n, sizeof(*trees));
	for (int i = 0; i < passes && rc == 0; i++)
		rc = pass(plan, &graph, trees, i > 0, i == passes - 1);
	for (int e = 0; e < graph.narcs; e++)
		if (graph.load[e] > load)
			load = graph.load[e];
	plan->max_link_load = load;
	free(trees);
	graph_free(&graph);
	return rc;
}
