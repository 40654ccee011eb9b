/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Routes: one tree of next hops per destination, so that two routes to the same
 * server never disagree about the rest of the way.  Among shortest ways a tree takes
 * the one whose links carry least so far; with BALANCE the trees are taken out and
 * grown again a few times, now that the others are known.  The paper's plans reach
 * members of a group over its rings alone (CoinChangeMod: the fewest steps that add
 * up to the distance on the ring). */

#include <stdlib.h>
#include <string.h>

#include "src/plan/internal.h"
#include "src/util/text.h"

#define PASSES 16
#define PASSES_WORK 60000000L	/* arcs looked at, in all */
#define PASSES_SERVERS_MAX 1024 /* n * n next hops are kept for it */

/* A direction of a circuit. */
struct arc {
	int from, to;
	int group; /* whose ring it belongs to, or -1 */
};

struct graph {
	int n, narcs;
	struct arc *arcs;
	int *in_first, *in_list;   /* arcs into each vertex */
	int *out_first, *out_list; /* arcs out of each vertex */
	long *load;		   /* per arc: pairs that cross it */
	double *bytes;		   /* per arc: of the demand */
	double *flow;		   /* per vertex: bytes to the destination at hand */
	int *dist, *order, *next;  /* of the destination at hand */
	double *cost;		   /* price of the way to it */
	bool steep;		   /* BALANCE: see price() below */
	int *hops;		   /* along the tree */
	int *subtree;
};

/* Arcs by the vertex they lead to, or from if OUT. */
static void index_build(struct graph *graph, bool out, int **first, int **list)
{
	int *fill = ocs_calloc(graph->n + 1, sizeof(int));

	*first = ocs_calloc(graph->n + 1, sizeof(int));
	*list = ocs_calloc(graph->narcs ? graph->narcs : 1, sizeof(int));
	for (int e = 0; e < graph->narcs; e++)
		(*first)[(out ? graph->arcs[e].from : graph->arcs[e].to) + 1]++;
	for (int v = 0; v < graph->n; v++)
		(*first)[v + 1] += (*first)[v];
	memcpy(fill, *first, graph->n * sizeof(int));
	for (int e = 0; e < graph->narcs; e++)
		(*list)[fill[out ? graph->arcs[e].from : graph->arcs[e].to]++] = e;
	free(fill);
}

static void graph_build(const struct ocs_plan *plan, struct graph *graph)
{
	memset(graph, 0, sizeof(*graph));
	graph->n = plan->servers;
	graph->arcs = ocs_calloc(2 * (size_t)plan->ncircuits + 1, sizeof(*graph->arcs));
	for (int c = 0; c < plan->ncircuits; c++) {
		int a = plan->circuits[c].a, b = plan->circuits[c].b;

		graph->arcs[graph->narcs++] = (struct arc){ a, b, plan->circuits[c].group };
		if (!plan->directed)
			graph->arcs[graph->narcs++] = (struct arc){ b, a, plan->circuits[c].group };
	}
	index_build(graph, false, &graph->in_first, &graph->in_list);
	index_build(graph, true, &graph->out_first, &graph->out_list);
	graph->load = ocs_calloc(graph->narcs + 1, sizeof(*graph->load));
	graph->bytes = ocs_calloc(graph->narcs + 1, sizeof(*graph->bytes));
	graph->flow = ocs_calloc(graph->n, sizeof(*graph->flow));
	graph->dist = ocs_calloc(graph->n, sizeof(int));
	graph->order = ocs_calloc(graph->n, sizeof(int));
	graph->next = ocs_calloc(graph->n, sizeof(int));
	graph->cost = ocs_calloc(graph->n, sizeof(*graph->cost));
	graph->subtree = ocs_calloc(graph->n, sizeof(int));
	graph->hops = ocs_calloc(graph->n, sizeof(int));
}

static void graph_free(struct graph *graph)
{
	free(graph->arcs);
	free(graph->in_first);
	free(graph->in_list);
	free(graph->out_first);
	free(graph->out_list);
	free(graph->load);
	free(graph->bytes);
	free(graph->flow);
	free(graph->dist);
	free(graph->order);
	free(graph->next);
	free(graph->cost);
	free(graph->subtree);
	free(graph->hops);
}

/* What one more route costs on an arc: steep, so that the busiest links matter. */
static double arc_price(const struct graph *graph, double load)
{
	return graph->steep ? 1 + load * load * load : load;
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
			double cost = graph->cost[at] + arc_price(graph, (double)graph->load[arc]);

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

/* Members of GROUP go to TARGET over the group's rings. */
static void tree_rings(struct graph *graph, int group, int target, const char *fixed, int *reached,
		       int *queue)
{
	int head = 0, tail = 0;

	memset(reached, 0, graph->n * sizeof(int));
	reached[target] = 1;
	queue[tail++] = target;
	while (head < tail) {
		int at = queue[head++];

		for (int i = graph->in_first[at]; i < graph->in_first[at + 1]; i++) {
			int arc = graph->in_list[i], from = graph->arcs[arc].from;

			if (graph->arcs[arc].group != group || reached[from])
				continue;
			reached[from] = 1;
			queue[tail++] = from;
			if (!fixed[from])
				graph->next[from] = arc;
		}
	}
}

static bool group_member(const struct ocs_plan_group *group, int server)
{
	for (int i = 0; i < group->nmembers; i++)
		if (group->members[i] == server)
			return true;
	return false;
}

/* The way of each vertex along the tree, and the order by it.  There are no loops:
 * a fixed vertex leads to a fixed one that is nearer; another never to one that
 * routes within a group of a higher number, and within one it comes nearer. */
static void tree_order(struct graph *graph, int target)
{
	int *count = ocs_calloc(graph->n + 1, sizeof(int));

	for (int v = 0; v < graph->n; v++)
		graph->hops[v] = v == target ? 0 : -1;
	for (int v = 0; v < graph->n; v++) {
		int length = 0, at = v;

		for (; graph->hops[at] < 0; at = graph->arcs[graph->next[at]].to)
			length++;
		length += graph->hops[at];
		for (at = v; graph->hops[at] < 0; at = graph->arcs[graph->next[at]].to)
			graph->hops[at] = length--;
	}
	for (int v = 0; v < graph->n; v++)
		count[graph->hops[v] + 1]++;
	for (int h = 0; h < graph->n; h++)
		count[h + 1] += count[h];
	for (int v = 0; v < graph->n; v++)
		graph->order[count[graph->hops[v]]++] = v;
	free(count);
}

/* As the paper routes: pairs with traffic of their own take the shortest way over
 * everything; others that share a group its rings, those of the first such. */
static void tree_paper(struct graph *graph, const struct ocs_plan *plan, int target)
{
	int n = graph->n, *reached = ocs_calloc(2 * (size_t)n, sizeof(int));
	char *fixed = ocs_calloc(n, 1);

	for (int v = 0; plan->mp && v < n; v++)
		if (plan->mp[(size_t)v * n + target] > 0)
			for (int at = v; at != target && !fixed[at];
			     at = graph->arcs[graph->next[at]].to)
				fixed[at] = 1;
	for (int g = plan->ngroups - 1; g >= 0; g--)
		if (plan->groups[g].nrings && group_member(&plan->groups[g], target))
			tree_rings(graph, g, target, fixed, reached, reached + n);
	free(fixed);
	free(reached);
	tree_order(graph, target);
}

/* Vertices from afar choose again, now that they know whom they carry. */
static void tree_refine(struct graph *graph, int target)
{
	for (int v = 0; v < graph->n; v++)
		graph->subtree[v] = 1;
	for (int i = graph->n - 1; i > 0; i--) {
		int v = graph->order[i], best = -1;
		double least = 0;

		if (v == target)
			continue;
		for (int o = graph->out_first[v]; o < graph->out_first[v + 1]; o++) {
			int arc = graph->out_list[o], to = graph->arcs[arc].to;
			double cost;

			if (graph->dist[to] != graph->dist[v] - 1)
				continue;
			cost = graph->cost[to] +
			       arc_price(graph, (double)graph->load[arc] + graph->subtree[v]);
			if (best < 0 || cost < least) {
				best = arc;
				least = cost;
			}
		}
		graph->next[v] = best;
		graph->subtree[graph->arcs[best].to] += graph->subtree[v];
	}
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
		int *path, length = graph->hops[s] + 1, v = s;

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

/* Traffic of the demand and what it becomes on the way. */
struct traffic {
	double bytes, carried;
};

/* Adds what goes to TARGET.  A ring AllReduce of b bytes sends 2 b (k - 1) / k to
 * the next member; with a ring of its own that is one hop. */
static void traffic_add(const struct ocs_plan *plan, struct graph *graph, int target,
			struct traffic *traffic)
{
	for (int v = 0; v < plan->servers; v++) {
		double bytes = plan->mp ? plan->mp[(size_t)v * plan->servers + target] : 0;

		graph->flow[v] = v == target ? 0 : bytes;
		traffic->bytes += bytes;
		traffic->carried += bytes * graph->hops[v];
	}
	for (int g = 0; g < plan->ngroups; g++) {
		const struct ocs_plan_group *group = &plan->groups[g];
		int k = group->nmembers;

		for (int i = 0; k > 1 && group->bytes && i < k; i++) {
			double bytes = 2.0 * (double)group->bytes * (k - 1) / k;
			int before = group->members[(i + k - 1) % k];

			if (group->members[i] != target)
				continue;
			traffic->bytes += bytes;
			traffic->carried += bytes * (group->nrings ? 1 : graph->hops[before]);
			graph->flow[before] += group->nrings ? 0 : bytes;
		}
	}
	for (int i = graph->n - 1; i > 0; i--) {
		int v = graph->order[i], arc = graph->next[v];

		graph->bytes[arc] += graph->flow[v];
		graph->flow[graph->arcs[arc].to] += graph->flow[v];
	}
}

/* What the rings of a group send over each of their circuits in one direction. */
static double ring_bytes(const struct ocs_plan *plan, int g)
{
	const struct ocs_plan_group *group = &plan->groups[g];
	int k = group->nmembers, ways = group->nrings * (plan->directed || k == 2 ? 1 : 2);

	return ways ? 2.0 * (double)group->bytes * (k - 1) / k / ways : 0;
}

/* Bytes on the busiest circuit; circuits between the same servers share what goes between them. */
static double busiest_find(const struct ocs_plan *plan, const struct graph *graph)
{
	double most = 0;

	for (int e = 0; e < graph->narcs; e++) {
		const struct arc *arc = &graph->arcs[e];
		double bytes = 0;
		int count = 0;

		for (int o = graph->out_first[arc->from]; o < graph->out_first[arc->from + 1];
		     o++) {
			int other = graph->out_list[o];

			if (graph->arcs[other].to != arc->to)
				continue;
			bytes += graph->bytes[other];
			count++;
		}
		bytes = bytes / count + (arc->group < 0 ? 0 : ring_bytes(plan, arc->group));
		most = bytes > most ? bytes : most;
	}
	return most;
}

struct passes {
	int *trees; /* next hops per destination, kept for the pass to come; or NULL */
	bool again; /* they are there from the one before */
	bool last;
	bool rings; /* route as the paper does */
};

/* One pass over all destinations. */
static int pass_run(struct ocs_plan *plan, struct graph *graph, const struct passes *how)
{
	struct traffic traffic = { 0 };
	long hops = 0;
	int n = plan->servers;

	plan->diameter = 0;
	for (int target = 0; target < n; target++) {
		int *tree = how->trees ? how->trees + (size_t)target * n : NULL;

		if (tree_grow(graph, target) < n)
			return -1;
		if (how->again) {
			tree_load(graph, tree, -1);
			tree_grow(graph, target);
		}
		memcpy(graph->hops, graph->dist, n * sizeof(int));
		if (how->rings)
			tree_paper(graph, plan, target);
		if (tree)
			tree_refine(graph, target);
		tree_load(graph, graph->next, 1);
		if (tree)
			memcpy(tree, graph->next, n * sizeof(int));
		for (int v = 0; v < n; v++) {
			hops += graph->dist[v];
			if (graph->dist[v] > plan->diameter)
				plan->diameter = graph->dist[v];
		}
		if (!how->last)
			continue;
		traffic_add(plan, graph, target, &traffic);
		if (plan->routes)
			routes_add(plan, graph, target);
	}
	plan->average_hops = n > 1 ? (double)hops / n / (n - 1) : 0;
	plan->bandwidth_tax = traffic.bytes > 0 ? traffic.carried / traffic.bytes : 1;
	return 0;
}

int ocs_plan_measure(struct ocs_plan *plan, bool routes, bool balance)
{
	struct passes how = { .rings = !balance && (plan->mp || plan->ngroups > 1) };
	struct graph graph;
	int n = plan->servers, passes = 1, rc = 0;
	long load = 0;

	graph_build(plan, &graph);
	graph.steep = balance;
	if (routes && n > 1) {
		plan->nroutes = n * (n - 1);
		plan->routes = ocs_calloc(plan->nroutes, sizeof(*plan->routes));
	}
	if (balance && n > 1 && n <= PASSES_SERVERS_MAX) {
		long most = PASSES_WORK / ((long)n * (graph.narcs + 1)) / 3;

		passes = most < 2 ? 2 : most > PASSES ? PASSES : (int)most;
		how.trees = ocs_calloc((size_t)n * n, sizeof(*how.trees));
	}
	for (int i = 0; i < passes && rc == 0; i++) {
		how.again = i > 0;
		how.last = i == passes - 1;
		rc = pass_run(plan, &graph, &how);
	}
	for (int e = 0; e < graph.narcs; e++)
		if (graph.load[e] > load)
			load = graph.load[e];
	plan->max_link_load = load;
	plan->busiest_bytes = busiest_find(plan, &graph);
	free(how.trees);
	graph_free(&graph);
	return rc;
}
