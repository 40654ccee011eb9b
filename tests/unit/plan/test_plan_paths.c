/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* The paths of a pair and the numbers of a plan, compared with what igraph finds. */

#include <igraph/igraph.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "src/plan/plan.h"
#include "src/util/error.h"
#include "src/util/text.h"
#include "tests/unit/plan/plan_check.h"

#define PATHS 4

static void graph_make(igraph_t *graph, const struct ocs_plan *plan)
{
	igraph_vector_int_t edges;

	igraph_vector_int_init(&edges, 2 * (igraph_integer_t)plan->ncircuits);
	for (int i = 0; i < plan->ncircuits; i++) {
		VECTOR(edges)[2 * i] = plan->circuits[i].a;
		VECTOR(edges)[2 * i + 1] = plan->circuits[i].b;
	}
	assert_int_equal(igraph_create(graph, &edges, plan->servers, plan->directed),
			 IGRAPH_SUCCESS);
	igraph_vector_int_destroy(&edges);
	assert_int_equal(igraph_simplify(graph, true, true, NULL), IGRAPH_SUCCESS);
}

static bool joined(const struct ocs_plan *plan, int a, int b)
{
	for (int i = 0; i < plan->ncircuits; i++)
		if ((plan->circuits[i].a == a && plan->circuits[i].b == b) ||
		    (!plan->directed && plan->circuits[i].a == b && plan->circuits[i].b == a))
			return true;
	return false;
}

/* Along circuits, from end to end, past no server twice. */
static void assert_path(const struct ocs_plan *plan, const struct ocs_plan_route *route, int p)
{
	const int *path = route->paths[p];

	assert_int_equal(path[0], route->src);
	assert_int_equal(path[route->lengths[p] - 1], route->dst);
	for (int i = 0; i + 1 < route->lengths[p]; i++) {
		assert_true(joined(plan, path[i], path[i + 1]));
		for (int k = i + 1; k < route->lengths[p]; k++)
			assert_int_not_equal(path[i], path[k]);
	}
	for (int q = 0; q < p; q++)
		assert_true(route->lengths[q] != route->lengths[p] ||
			    memcmp(route->paths[q], path,
				   (size_t)route->lengths[p] * sizeof(int)) != 0);
}

/* Behind the route's own path are those of igraph, in order of length: all but one of the
 * length of its own if that is among them, else all but the longest. */
static void assert_shortest(const struct ocs_plan_route *route,
			    const igraph_vector_int_list_t *found)
{
	int count = (int)igraph_vector_int_list_size(found), own = -1, at = 1;

	for (int i = 0; i < count; i++)
		if (igraph_vector_int_size(igraph_vector_int_list_get_ptr(found, i)) ==
		    route->lengths[0])
			own = i;
	assert_in_range(route->npaths, count, PATHS);
	for (int i = 0; i < count && at < route->npaths; i++)
		if (i != own)
			assert_int_equal(
				igraph_vector_int_size(igraph_vector_int_list_get_ptr(found, i)),
				route->lengths[at++]);
}

static void test_shortest(void **state)
{
	int several = 0;

	(void)state;
	for (int round = 0; round < 24; round++) {
		int n = 6 + 2 * round;
		struct ocs_plan_request request = {
			.servers = n,
			.degree = 2 + round % 4,
			.routes = true,
			.paths = PATHS,
			.directed = round & 1,
			.best = round & 2,
		};
		struct ocs_text text = { 0 };
		igraph_vector_int_list_t found;
		struct ocs_plan *plan;
		igraph_t graph;

		ocs_text_add(&text, "{\"mp\":[");
		for (int i = 0; i < n; i++) {
			ocs_text_add(&text, "%s", i ? ",[" : "[");
			for (int j = 0; j < n; j++)
				ocs_text_add(&text, "%s%d", j ? "," : "",
					     i != j && (i * 7 + j * 5 + round) % 4 == 0);
			ocs_text_add(&text, "]");
		}
		ocs_text_add(&text, "]}");
		request.demand = text.data;
		plan = plan_make(&request);
		graph_make(&graph, plan);
		igraph_vector_int_list_init(&found, 0);
		for (int i = 0; i < plan->nroutes; i++) {
			struct ocs_plan_route *route = &plan->routes[i];

			if (plan->mp[(size_t)route->src * n + route->dst] <= 0)
				continue;
			igraph_get_k_shortest_paths(&graph, NULL, &found, NULL, PATHS, route->src,
						    route->dst, IGRAPH_OUT);
			for (int p = 0; p < route->npaths; p++)
				assert_path(plan, route, p);
			assert_shortest(route, &found);
			several += route->npaths > 1;
		}
		igraph_vector_int_list_destroy(&found);
		igraph_destroy(&graph);
		ocs_plan_destroy(plan);
		ocs_text_free(&text);
	}
	assert_true(several > 1000);
}

/* Diameter and hops of a plan are those of its graph, and a verifier that is told others
 * notices. */
static void test_distances(void **state)
{
	(void)state;
	for (int n = 2; n < 40; n += 2) {
		struct ocs_plan_request request = { .servers = n,
						    .degree = 2 + n % 5,
						    .directed = n % 3 == 0 };
		struct ocs_plan *plan = plan_make(&request);
		igraph_matrix_t hops;
		double sum = 0, most = 0;
		struct ocs_error err;
		igraph_t graph;

		graph_make(&graph, plan);
		igraph_matrix_init(&hops, 0, 0);
		igraph_distances(&graph, &hops, igraph_vss_all(), igraph_vss_all(), IGRAPH_OUT);
		for (int i = 0; i < n; i++)
			for (int k = 0; k < n; k++) {
				sum += MATRIX(hops, i, k);
				most = fmax(most, MATRIX(hops, i, k));
			}
		assert_int_equal(plan->diameter, (int)most);
		assert_true(fabs(plan->average_hops - sum / n / (n - 1)) < 1e-9);
		assert_int_equal(ocs_plan_verify(plan, &err), 0);
		plan->diameter++;
		assert_int_equal(ocs_plan_verify(plan, &err), -1);
		assert_non_null(strstr(err.text, "diameter"));
		igraph_matrix_destroy(&hops);
		igraph_destroy(&graph);
		ocs_plan_destroy(plan);
	}
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(test_shortest),
	cmocka_unit_test(test_distances),
};

int main(void)
{
	return cmocka_run_group_tests(tests, NULL, NULL);
}
