/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Shortest routes: one tree of next hops per destination, so that two routes to
 * the same server never disagree about the rest of the way. */

#include <stdlib.h>
#include <string.h>

#include "src/plan/internal.h"
#include "src/util/text.h"

/* A direction of a circuit. */
struct arc {
	int from, to;
};

struct graph {
	int n, narcs;
	struct arc *arcs;
	int *in_first, *in_list;	/* arcs into each vertex */
	int *out_first, *out_list;
	long *load;			/* per arc: pairs that cross it */
	int *dist, *order, *next;	/* of the destination at hand */
	int *subtree;
	uint64_t random;
};

static void index_build(const struct graph *graph, bool in, int **first, int **list)
{
	int *fill;

	*first = ocs_calloc(graph->n + 1, sizeof(int));
	*list = ocs_calloc(graph->narcs ? graph->narcs : 1, sizeof(int));
	for (int e = 0; e < graph->narcs; e++)
		(*first)[(in ? graph->arcs[e].to : graph->arcs[e].from) + 1]++;
	for (int v = 0; v < graph->n; v++)
		(*first)[v + 1] += (*first)[v];
	fill = ocs_calloc(graph->n + 1, sizeof(int));
	memcpy(fill, *first, graph->n * sizeof(int));
	for (int e = 0; e < graph->narcs; e++)
		(*list)[fill[in ? graph->arcs[e].to : graph->arcs[e].from]++] = e;
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
	index_build(graph, true, &graph->in_first, &graph->in_list);
	index_build(graph, false, &graph->out_first, &graph->out_list);
	graph->load = ocs_calloc(graph->narcs + 1, sizeof(*graph->load));
	graph->dist = ocs_calloc(graph->n, sizeof(int));
	graph->order = ocs_calloc(graph->n, sizeof(int));
	graph->next = ocs_calloc(graph->n, sizeof(int));
	graph->subtree = ocs_calloc(graph->n, sizeof(int));
	graph->random = UINT64_C(0x9e3779b97f4a7c15);
}

static void graph_free(struct graph *graph)
{
	free(graph->arcs);
	free(graph->in_first);
	free(graph->in_list);
	free(graph->out_first);
	free(graph->out_list);
	free(graph->load);
	free(graph->dist);
	free(graph->order);
	free(graph->next);
	free(graph->subtree);
}

static uint32_t draw(struct graph *graph, uint32_t below)
{
	graph->random ^= graph->random << 13;
	graph->random ^= graph->random >> 7;
	graph->random ^= graph->random << 17;
	return (uint32_t)(((graph->random >> 32) * below) >> 32);
}

/* Distances to TARGET; vertices in the order they were reached.  Also leaves a
 * random shortest next hop (an arc) at each vertex: the k-th candidate replaces
 * the one before with probability 1/k.  Returns how many were reached. */
static int tree_grow(struct graph *graph, int target)
{
	int head = 0, tail = 0, *dist = graph->dist, *seen = graph->subtree;

	for (int v = 0; v < graph->n; v++)
		dist[v] = -1;
	dist[target] = 0;
	graph->order[tail++] = target;
	while (head < tail) {
		int at = graph->order[head++];

		for (int i = graph->in_first[at]; i < graph->in_first[at + 1]; i++) {
			int arc = graph->in_list[i], from = graph->arcs[arc].from;

			if (dist[from] < 0) {
				dist[from] = dist[at] + 1;
				graph->order[tail++] = from;
				graph->next[from] = arc;
				seen[from] = 1;
			} else if (dist[from] == dist[at] + 1 &&
				   draw(graph, ++seen[from]) == 0) {
				graph->next[from] = arc;
			}
		}
	}
	return tail;
}

/* Adds the routes of the tree to the loads; with BALANCE, farthest first, each
 * vertex takes the least loaded of its shortest next hops. */
static void tree_load(struct graph *graph, bool balance)
{
	for (int v = 0; v < graph->n; v++)
		graph->subtree[v] = 1;
	for (int i = graph->n - 1; i > 0; i--) {
		int v = graph->order[i], arc = graph->next[v];

		if (balance) {
			for (int j = graph->out_first[v]; j < graph->out_first[v + 1]; j++) {
				int other = graph->out_list[j];

				if (graph->dist[graph->arcs[other].to] == graph->dist[v] - 1 &&
				    graph->load[other] < graph->load[arc])
					arc = other;
			}
			graph->next[v] = arc;
		}
		graph->load[arc] += graph->subtree[v];
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

int ocs_plan_measure(struct ocs_plan *plan, bool routes, bool balance)
{
	struct graph graph;
	long hops = 0, load = 0;
	int diameter = 0, rc = 0, n = plan->servers;

	graph_build(plan, &graph);
	if (routes && n > 1) {
		plan->nroutes = n * (n - 1);
		plan->routes = ocs_calloc(plan->nroutes, sizeof(*plan->routes));
	}
	for (int target = 0; target < n && rc == 0; target++) {
		if (tree_grow(&graph, target) < n) {
			rc = -1;
			break;
		}
		tree_load(&graph, balance);
		for (int v = 0; v < n; v++) {
			hops += graph.dist[v];
			if (graph.dist[v] > diameter)
				diameter = graph.dist[v];
		}
		if (plan->routes)
			routes_add(plan, &graph, target);
	}
	for (int e = 0; e < graph.narcs; e++)
		if (graph.load[e] > load)
			load = graph.load[e];
	plan->diameter = diameter;
	plan->average_hops = n > 1 ? (double)hops / n / (n - 1) : 0;
	plan->max_link_load = load;
	graph_free(&graph);
	return rc;
}
