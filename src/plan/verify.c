/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Judges a plan from its definition alone; nothing of the maker is used here, and
 * the distances come from igraph. */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/plan/graph_library.h"
#include "src/plan/plan.h"
#include "src/util/error.h"
#include "src/util/text.h"

/* A link as a sortable number; duplex links have no direction. */
static uint64_t link_key(const struct ocs_plan *plan, int a, int b)
{
	if (!plan->directed && a > b)
		return (uint64_t)b << 32 | (uint32_t)a;
	return (uint64_t)a << 32 | (uint32_t)b;
}

static int key_compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static int ports_check(const struct ocs_plan *plan, struct ocs_error *err)
{
	size_t count = (size_t)plan->servers * plan->degree;
	char *tx = ocs_calloc(count, 1), *rx = plan->directed ? ocs_calloc(count, 1) : tx;
	int rc = 0;

	for (int i = 0; i < plan->ncircuits && rc == 0; i++) {
		const struct ocs_plan_circuit *c = &plan->circuits[i];

		if (c->a < 0 || c->a >= plan->servers || c->b < 0 || c->b >= plan->servers ||
		    c->a_port < 0 || c->a_port >= plan->degree || c->b_port < 0 ||
		    c->b_port >= plan->degree)
			rc = ocs_error_set(
				err, OCS_ERROR,
				"circuit %d names a server or interface that does not exist", i);
		else if (c->a == c->b)
			rc = ocs_error_set(err, OCS_ERROR, "circuit %d joins server %d to itself",
					   i, c->a);
		else if (plan->any_port ? c->ocs != 0 :
					  c->a_port != c->b_port || c->ocs != c->a_port)
			rc = ocs_error_set(
				err, OCS_ERROR,
				"circuit %d joins interface %d of server %d and interface "
				"%d of server %d on switch %d, which does not reach them",
				i, c->a_port, c->a, c->b_port, c->b, c->ocs);
		else if (tx[(size_t)c->a * plan->degree + c->a_port]++)
			rc = ocs_error_set(err, OCS_ERROR,
					   "interface %d of server %d is used twice", c->a_port,
					   c->a);
		else if (rx[(size_t)c->b * plan->degree + c->b_port]++)
			rc = ocs_error_set(err, OCS_ERROR,
					   "interface %d of server %d is used twice", c->b_port,
					   c->b);
	}
	if (rx != tx)
		free(rx);
	free(tx);
	return rc;
}

static int common_divisor(int a, int b)
{
	return b ? common_divisor(b, a % b) : a;
}

static int group_check(const struct ocs_plan *plan, int g, char *seen, struct ocs_error *err)
{
	const struct ocs_plan_group *group = &plan->groups[g];

	if (group->nmembers < 1 || group->nmembers > plan->servers || group->nrings < 0 ||
	    group->nrings > plan->degree)
		return ocs_error_set(err, OCS_ERROR, "group %d has an impossible size", g);
	memset(seen, 0, plan->servers);
	for (int i = 0; i < group->nmembers; i++) {
		int member = group->members[i];

		if (member < 0 || member >= plan->servers || seen[member]++)
			return ocs_error_set(err, OCS_ERROR,
					     "member %d of group %d is no server or occurs twice",
					     i, g);
	}
	for (int r = 0; r < group->nrings; r++)
		if (group->nmembers < 2 || group->steps[r] < 1 ||
		    group->steps[r] >= group->nmembers ||
		    common_divisor(group->nmembers, group->steps[r]) != 1)
			return ocs_error_set(
				err, OCS_ERROR,
				"ring %d of group %d: step %d does not pass all %d members", r, g,
				group->steps[r], group->nmembers);
	return 0;
}

/* PARENTS hold the members of GROUP together as a binary tree; counts the children of
 * each in CHILDREN.  PLACE: per server its place among the members, or -1. */
static bool tree_sound(const struct ocs_plan_group *group, const int *parents, const int *place,
		       int *children)
{
	int roots = 0;

	memset(children, 0, group->nmembers * sizeof(int));
	for (int i = 0; i < group->nmembers; i++) {
		int at = i;

		roots += parents[i] < 0;
		if (parents[i] >= 0 && (place[parents[i]] < 0 || ++children[place[parents[i]]] > 2))
			return false;
		for (int up = 0; parents[at] >= 0; up++) {
			at = place[parents[at]];
			if (at < 0 || up == group->nmembers)
				return false;
		}
	}
	return roots == 1;
}

/* Double binary trees: whoever is a leaf of one passes data on in the other. */
static int trees_check(const struct ocs_plan *plan, int g, struct ocs_error *err)
{
	const struct ocs_plan_group *group = &plan->groups[g];
	int *place = ocs_calloc(plan->servers, sizeof(int)), rc = 0;
	int *children = ocs_calloc(2 * (size_t)group->nmembers, sizeof(int));

	for (int i = 0; i < plan->servers; i++)
		place[i] = -1;
	for (int i = 0; i < group->nmembers; i++)
		place[group->members[i]] = i;
	for (int t = 0; t < group->ntrees && !rc; t++) {
		int *const *parents = group->trees[t].parents;

		if (!tree_sound(group, parents[0], place, children) ||
		    !tree_sound(group, parents[1], place, children + group->nmembers))
			rc = ocs_error_set(err, OCS_ERROR,
					   "trees %d of group %d are not two binary "
					   "trees over its members",
					   t, g);
		for (int i = 0; i < group->nmembers && !rc; i++)
			if (!children[i] == !children[group->nmembers + i])
				rc = ocs_error_set(err, OCS_ERROR,
						   "trees %d of group %d: member %d is "
						   "a leaf of both or of none",
						   t, g, i);
	}
	free(place);
	free(children);
	return rc;
}

/* Adds the circuits that the trees of GROUP need. */
static size_t trees_need(const struct ocs_plan *plan, const struct ocs_plan_group *group,
			 uint64_t *need, size_t count)
{
	for (int t = 0; t < 2 * group->ntrees; t++)
		for (int i = 0; i < group->nmembers; i++) {
			int child = group->members[i],
			    parent = group->trees[t / 2].parents[t % 2][i];

			if (parent < 0)
				continue;
			need[count++] = link_key(plan, child, parent);
			if (plan->directed)
				need[count++] = link_key(plan, parent, child);
		}
	return count;
}

/* Every edge of every ring and tree has a circuit of its own. */
static int rings_check(const struct ocs_plan *plan, struct ocs_error *err)
{
	uint64_t *have = ocs_calloc(plan->ncircuits + 1, sizeof(*have)), *need;
	size_t nneed = 0, at = 0;
	int rc = 0;

	for (int g = 0; g < plan->ngroups; g++)
		nneed += (size_t)(plan->groups[g].nrings + 4 * plan->groups[g].ntrees) *
			 plan->groups[g].nmembers;
	need = ocs_calloc(nneed + 1, sizeof(*need));
	nneed = 0;
	for (int g = 0; g < plan->ngroups; g++) {
		const struct ocs_plan_group *group = &plan->groups[g];
		/* a duplex ring of two is one link */
		int edges = group->nmembers == 2 && !plan->directed ? 1 : group->nmembers;

		for (int r = 0; r < group->nrings; r++)
			for (int i = 0, v = 0; i < edges; i++) {
				int w = (v + group->steps[r]) % group->nmembers;

				need[nneed++] =
					link_key(plan, group->members[v], group->members[w]);
				v = w;
			}
		nneed = trees_need(plan, group, need, nneed);
	}
	for (int i = 0; i < plan->ncircuits; i++)
		have[i] = link_key(plan, plan->circuits[i].a, plan->circuits[i].b);
	qsort(have, plan->ncircuits, sizeof(*have), key_compare);
	qsort(need, nneed, sizeof(*need), key_compare);
	for (size_t i = 0; i < nneed && rc == 0; i++) {
		while (at < (size_t)plan->ncircuits && have[at] < need[i])
			at++;
		if (at == (size_t)plan->ncircuits || have[at] != need[i])
			rc = ocs_error_set(err, OCS_ERROR,
					   "a ring or tree needs a circuit between servers "
					   "%d and %d that the plan does not make",
					   (int)(need[i] >> 32), (int)(uint32_t)need[i]);
		at++;
	}
	free(need);
	free(have);
	return rc;
}

static int path_check(const struct ocs_plan *plan, const struct ocs_plan_route *route, int p,
		      const uint64_t *links, struct ocs_error *err)
{
	const int *path = route->paths[p];
	int length = route->lengths[p];

	if (length < 2 || length > plan->servers || path[0] != route->src ||
	    path[length - 1] != route->dst)
		return ocs_error_set(err, OCS_ERROR, "a route from %d to %d has other ends",
				     route->src, route->dst);
	for (int i = 0; i + 1 < length; i++) {
		uint64_t key = link_key(plan, path[i], path[i + 1]);

		if (!bsearch(&key, links, plan->ncircuits, sizeof(key), key_compare))
			return ocs_error_set(err, OCS_ERROR,
					     "the route from %d to %d goes from %d "
					     "to %d, which no circuit joins",
					     route->src, route->dst, path[i], path[i + 1]);
		for (int j = 0; j <= i; j++)
			if (path[j] == path[i + 1])
				return ocs_error_set(err, OCS_ERROR,
						     "the route from %d to %d passes %d twice",
						     route->src, route->dst, path[j]);
	}
	return 0;
}

static int routes_check(const struct ocs_plan *plan, struct ocs_error *err)
{
	size_t pairs = (size_t)plan->servers * plan->servers;
	uint64_t *links;
	char *seen;
	int rc = 0;

	if (!plan->routes)
		return 0;
	if (plan->nroutes != plan->servers * (plan->servers - 1))
		return ocs_error_set(err, OCS_ERROR, "%d routes for %d servers, want %d",
				     plan->nroutes, plan->servers,
				     plan->servers * (plan->servers - 1));
	seen = ocs_calloc(pairs, 1);
	links = ocs_calloc(plan->ncircuits + 1, sizeof(*links));
	for (int i = 0; i < plan->ncircuits; i++)
		links[i] = link_key(plan, plan->circuits[i].a, plan->circuits[i].b);
	qsort(links, plan->ncircuits, sizeof(*links), key_compare);
	for (int i = 0; i < plan->nroutes && rc == 0; i++) {
		const struct ocs_plan_route *route = &plan->routes[i];
		double weight = 0;

		if (route->src < 0 || route->src >= plan->servers || route->dst < 0 ||
		    route->dst >= plan->servers || route->src == route->dst ||
		    seen[(size_t)route->src * plan->servers + route->dst]++) {
			rc = ocs_error_set(err, OCS_ERROR,
					   "route %d (%d to %d) is impossible or listed twice", i,
					   route->src, route->dst);
			break;
		}
		for (int p = 0; p < route->npaths && rc == 0; p++) {
			rc = path_check(plan, route, p, links, err);
			weight += route->weights[p] > 0 ? route->weights[p] : -1e9;
		}
		if (rc == 0 && fabs(weight - 1) > 1e-6)
			rc = ocs_error_set(
				err, OCS_ERROR,
				"the weights of the routes from %d to %d are not shares of 1",
				route->src, route->dst);
	}
	free(links);
	free(seen);
	return rc;
}

/* What one direction of a link carries, and how many circuits share it. */
struct use {
	uint64_t key; /* from << 32 | to */
	double load;
	int circuits;
};

static int use_compare(const void *a, const void *b)
{
	return key_compare(&((const struct use *)a)->key, &((const struct use *)b)->key);
}

/* The links of the plan, each direction once, by key. */
static struct use *uses_make(const struct ocs_plan *plan, size_t *count)
{
	struct use *uses = ocs_calloc(2 * (size_t)plan->ncircuits + 1, sizeof(*uses));
	size_t n = 0, kept = 0;

	for (int i = 0; i < plan->ncircuits; i++) {
		uint64_t a = (uint64_t)plan->circuits[i].a, b = (uint64_t)plan->circuits[i].b;

		uses[n++] = (struct use){ a << 32 | b, 0, 1 };
		if (!plan->directed)
			uses[n++] = (struct use){ b << 32 | a, 0, 1 };
	}
	qsort(uses, n, sizeof(*uses), use_compare);
	for (size_t i = 0; i < n; i++) {
		if (kept && uses[kept - 1].key == uses[i].key)
			uses[kept - 1].circuits++;
		else
			uses[kept++] = uses[i];
	}
	*count = kept;
	return uses;
}

/* The load and the tax that the listed routes make.  Which of several circuits
 * between two servers a route takes is not said: their load is between even
 * shares and all on one. */
static int loads_check(const struct ocs_plan *plan, struct ocs_error *err)
{
	double least = 0, most = 0;
	struct use *uses;
	size_t count;

	if (!plan->routes)
		return 0;
	uses = uses_make(plan, &count);
	for (int i = 0; i < plan->nroutes; i++) {
		const struct ocs_plan_route *route = &plan->routes[i];

		for (int p = 0; p < route->npaths; p++)
			for (int j = 0; j + 1 < route->lengths[p]; j++) {
				struct use key = { .key = (uint64_t)route->paths[p][j] << 32 |
							  (uint32_t)route->paths[p][j + 1] };
				struct use *use =
					bsearch(&key, uses, count, sizeof(*uses), use_compare);

				use->load += route->weights[p];
			}
	}
	for (size_t i = 0; i < count; i++) {
		least = fmax(least, uses[i].load / uses[i].circuits);
		most = fmax(most, uses[i].load);
	}
	free(uses);
	if (plan->max_link_load < least - 1e-6 || plan->max_link_load > most + 1e-6)
		return ocs_error_set(err, OCS_ERROR,
				     "a maximum link load of %.1f is claimed, the "
				     "routes make %.1f to %.1f",
				     plan->max_link_load, least, most);
	return 0;
}

/* Diameter and average hops of a strongly connected graph. */
static int graph_measure(const struct ocs_graph_library *library, const igraph_t *graph,
			 bool directed, double *diameter, double *average)
{
#if IGRAPH_VERSION_MAJOR >= 1
	if (library->diameter(graph, NULL, diameter, NULL, NULL, NULL, NULL, directed, true) !=
	    IGRAPH_SUCCESS)
		return -1;
	return library->average_path_length(graph, NULL, average, NULL, directed, true) ==
			       IGRAPH_SUCCESS ?
		       0 :
		       -1;
#else
	if (library->diameter(graph, diameter, NULL, NULL, NULL, NULL, directed, true) !=
	    IGRAPH_SUCCESS)
		return -1;
	return library->average_path_length(graph, average, NULL, directed, true) ==
			       IGRAPH_SUCCESS ?
		       0 :
		       -1;
#endif
}

/* Diameter and average hops of the circuits' graph. */
static int plan_measure(const struct ocs_graph_library *library, const struct ocs_plan *plan,
			double *diameter, double *average)
{
	igraph_error_handler_t *before = library->set_error_handler(library->error_handler_ignore);
	igraph_vector_int_t edges;
	igraph_t graph;
	igraph_bool_t whole = false;
	int rc = -1;

	if (library->vector_int_init(&edges, 2 * (igraph_integer_t)plan->ncircuits) !=
	    IGRAPH_SUCCESS)
		goto out;
	for (int i = 0; i < plan->ncircuits; i++) {
		VECTOR(edges)[2 * i] = plan->circuits[i].a;
		VECTOR(edges)[2 * i + 1] = plan->circuits[i].b;
	}
	if (library->create(&graph, &edges, plan->servers, plan->directed) == IGRAPH_SUCCESS) {
		if (library->is_connected(&graph, &whole, IGRAPH_STRONG) == IGRAPH_SUCCESS && whole)
			rc = graph_measure(library, &graph, plan->directed, diameter, average);
		library->destroy(&graph);
	}
	library->vector_int_destroy(&edges);
out:
	library->set_error_handler(before);
	return rc;
}

static int numbers_check(const struct ocs_plan *plan, struct ocs_error *err)
{
	double diameter = 0, average = 0, n = plan->servers, least;
	struct ocs_graph_library library;

	if (plan->servers == 1)
		return plan->ncircuits == 0 && plan->diameter == 0 ?
			       0 :
			       ocs_error_set(err, OCS_ERROR, "one server needs no circuit");
	if (ocs_graph_library_load(&library, err))
		return -1;
	if (plan_measure(&library, plan, &diameter, &average) < 0)
		return ocs_error_set(err, OCS_ERROR,
				     "the circuits do not lead from every server to every other");
	if (plan->diameter != (int)diameter || fabs(plan->average_hops - average) > 1e-6)
		return ocs_error_set(
			err, OCS_ERROR,
			"diameter %d and %.4f average hops are claimed, %d and %.4f found",
			plan->diameter, plan->average_hops, (int)diameter, average);
	/* all pairs' hops, spread evenly, are the least any routing can reach */
	least = n * (n - 1) * average / plan->ncircuits / (plan->directed ? 1 : 2);
	if (!(plan->max_link_load >= least - 1e-6) || plan->max_link_load > n * n)
		return ocs_error_set(
			err, OCS_ERROR,
			"a maximum link load of %.1f is claimed, %.1f is the least possible",
			plan->max_link_load, least);
	return 0;
}

int ocs_plan_verify(const struct ocs_plan *plan, struct ocs_error *err)
{
	char *seen;
	int rc = 0;

	if (plan->servers < 1 || plan->servers > OCS_PLAN_SERVERS_MAX || plan->degree < 1 ||
	    plan->degree > OCS_PLAN_DEGREE_MAX || plan->ncircuits < 0)
		return ocs_error_set(err, OCS_ERROR, "a plan for %d servers of degree %d",
				     plan->servers, plan->degree);
	seen = ocs_calloc(plan->servers, 1);
	for (int g = 0; g < plan->ngroups && rc == 0; g++)
		rc = group_check(plan, g, seen, err) || trees_check(plan, g, err) ? -1 : 0;
	free(seen);
	if (rc < 0 || ports_check(plan, err) < 0 || rings_check(plan, err) < 0 ||
	    routes_check(plan, err) < 0 || loads_check(plan, err) < 0)
		return -1;
	return numbers_check(plan, err);
}
