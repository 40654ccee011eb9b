/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Generalized Kautz graphs with a ring in them, and directed plans made of them. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "src/plan/internal.h"
#include "tests/unit/plan/plan_check.h"

/* Sum of the distances from vertex 0 .. N-1, and the largest. */
static long distances(const int *heads, int n, int degree, int *diameter)
{
	int *dist = calloc((size_t)n, sizeof(int)), *queue = calloc((size_t)n, sizeof(int));
	long sum = 0;

	*diameter = 0;
	for (int s = 0; s < n; s++) {
		int head = 0, tail = 0;

		memset(dist, -1, (size_t)n * sizeof(int));
		dist[s] = 0;
		queue[tail++] = s;
		while (head < tail) {
			int at = queue[head++];

			sum += dist[at];
			*diameter = dist[at] > *diameter ? dist[at] : *diameter;
			for (int c = -1; c < degree - 1; c++) {
				int to = c < 0 ? (at + 1) % n : heads[(long)c * n + at];

				if (to >= 0 && dist[to] < 0) {
					dist[to] = dist[at] + 1;
					queue[tail++] = to;
				}
			}
		}
		assert_int_equal(tail, n);
	}
	free(dist);
	free(queue);
	return sum;
}

/* Permutations without a circuit from a server to itself, and short ways: no more
 * than the least power of the degree that reaches N. */
static void test_graph(void **state)
{
	static const int sizes[] = { 5, 6, 7, 12, 13, 16, 31, 64, 100, 128, 243, 432, 1000, 1024 };

	(void)state;
	for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++)
		for (int degree = 3; degree <= 8 && degree < sizes[s]; degree++) {
			int n = sizes[s], diameter, bound = 0, missing = 0;
			int *heads = ocs_plan_kautz(n, degree);
			char *taken = calloc((size_t)n, 1);

			assert_non_null(heads);
			for (int c = 0; c < degree - 1; c++) {
				memset(taken, 0, (size_t)n);
				for (int i = 0; i < n; i++) {
					int to = heads[(long)c * n + i];

					missing += to < 0;
					if (to < 0)
						continue;
					assert_true(to < n && to != i && !taken[to]);
					taken[to] = 1;
				}
			}
			/* a vertex that leads to itself, where there is but one */
			assert_true(missing <= 1);
			for (long reach = 1; reach < n; reach *= degree)
				bound++;
			distances(heads, n, degree, &diameter);
			assert_true(diameter <= bound + 1);
			free(taken);
			free(heads);
		}
	assert_null(ocs_plan_kautz(4, 4));
	assert_null(ocs_plan_kautz(9, 1));
}

static struct ocs_plan *make(int servers, int degree, bool any_port)
{
	struct ocs_plan_request request = { .servers = servers,
					    .degree = degree,
					    .best = true,
					    .directed = true,
					    .any_port = any_port };

	return plan_make(&request);
}

/* Where a Kautz graph has the shorter ways and no busier links it is taken: hops
 * that random circuits do not reach (they were 1.78, 1.91, 2.06 and 2.70). */
static void test_plans(void **state)
{
	static const struct {
		int servers, degree;
		double hops;
		int diameter;
	} cases[] = {
		{ 16, 4, 1.74, 2 }, { 20, 4, 1.80, 2 }, { 64, 8, 1.88, 2 }, { 128, 6, 2.64, 4 }
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		for (int any_port = 0; any_port < 2; any_port++) {
			struct ocs_plan *plan = make(cases[i].servers, cases[i].degree, any_port);

			assert_int_equal(plan->groups[0].nrings, 1);
			assert_int_equal(plan->groups[0].steps[0], 1);
			assert_int_equal(plan->ncircuits, cases[i].servers * cases[i].degree);
			/* one switch for all: either kind may have the more even loads */
			if (!any_port) {
				assert_true(plan->average_hops <= cases[i].hops);
				assert_int_equal(plan->diameter, cases[i].diameter);
				assert_non_null(strstr(plan->assignment, "Kautz"));
			}
			ocs_plan_destroy(plan);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_graph),
		cmocka_unit_test(test_plans),
	};

	return cmocka_run_group_tests_name("plan: Kautz graphs", tests, NULL, NULL);
}
