/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Double binary trees: their shape for every number of members and step, and their
 * circuits. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <json-c/json.h>

#include "src/plan/internal.h"
#include "src/util/error.h"
#include "tests/unit/plan/plan_check.h"

static int gcd(int a, int b)
{
	return b ? gcd(b, a % b) : a;
}

static int place_of(const struct ocs_plan_group *group, int server)
{
	for (int i = 0; i < group->nmembers; i++)
		if (group->members[i] == server)
			return i;
	return -1;
}

/* Every rank is once a leaf and once an inner node, no node has more than two
 * children, and the trees are about as high as binary trees must be. */
static void shape(const struct ocs_plan_group *group, const struct ocs_plan_tree *tree)
{
	int n = group->nmembers, bound = 3;
	int leaves[2] = { 0, 0 };
	int *children = calloc(2 * (size_t)n, sizeof(int));

	for (int reach = 1; reach < n; reach *= 2)
		bound++;
	for (int t = 0; t < 2; t++) {
		int roots = 0;

		for (int i = 0; i < n; i++) {
			int height = 0, at = i;

			roots += tree->parents[t][i] < 0;
			while (tree->parents[t][at] >= 0) {
				at = place_of(group, tree->parents[t][at]);
				assert_true(at >= 0);
				assert_true(++height <= bound);
			}
			if (tree->parents[t][i] >= 0)
				children[t * n + place_of(group, tree->parents[t][i])]++;
		}
		assert_int_equal(roots, 1);
	}
	for (int i = 0; i < n; i++) {
		assert_true(children[i] <= 2 && children[n + i] <= 2);
		assert_int_equal((children[i] == 0) + (children[n + i] == 0), 1);
		leaves[0] += children[i] == 0;
		leaves[1] += children[n + i] == 0;
	}
	assert_int_equal(leaves[0] + leaves[1], n);
	assert_true(abs(leaves[0] - leaves[1]) <= 1);
	free(children);
}

static void test_shapes(void **state)
{
	(void)state;
	for (int n = 3; n <= 70; n++)
		for (int step = 1; step < n; step += n < 20 ? 1 : 7) {
			struct ocs_plan_group group = { .nmembers = n };
			struct ocs_plan_tree tree;

			if (gcd(n, step) != 1)
				continue;
			/* members that are no neighbours */
			group.members = calloc((size_t)n, sizeof(int));
			for (int i = 0; i < n; i++)
				group.members[i] = 5 * n - 3 * i;
			ocs_plan_tree_make(&group, step, &tree);
			shape(&group, &tree);
			free(tree.parents[0]);
			free(tree.parents[1]);
			free(group.members);
		}
}

/* Plans with trees verify: a ring, the trees, and all else on what is left. */
static void test_plans(void **state)
{
	(void)state;
	for (int n = 3; n <= 40; n += n < 12 ? 1 : 5)
		for (int way = 0; way < 8; way++)
			for (int trees = 1; trees <= 2; trees++) {
				struct ocs_plan_request request = {
					.servers = n,
					.degree = 4 * trees + 4,
					.trees = trees,
					.directed = way & 1,
					.any_port = way & 2,
					.best = way & 4,
					.routes = true,
				};
				struct ocs_plan *plan = plan_make(&request);
				const struct ocs_plan_group *group = &plan->groups[0];

				assert_true(group->nrings >= 1);
				assert_int_equal(group->steps[0], 1);
				for (int t = 0; t < group->ntrees; t++)
					shape(group, &group->trees[t]);
				if (group->ntrees) {
					assert_int_equal(group->trees[0].step, 1);
					assert_non_null(strstr(plan->assignment, "binary trees"));
				}
				/* Odd rings leave interfaces that are not alike. */
				if (group->ntrees < trees && (n % 2 == 0 || way & 3))
					fail_msg("%d servers, way %d: %d of %d trees", n, way,
						 group->ntrees, trees);
				if (group->ntrees < trees)
					assert_non_null(
						strstr(plan->assignment, "found no interfaces"));
				ocs_plan_destroy(plan);
			}
}

static void test_refused(void **state)
{
	struct ocs_plan_request request = { .servers = 8, .degree = 5, .trees = 1 };
	struct ocs_error err;

	(void)state;
	assert_null(ocs_plan_make(&request, &err));
	assert_int_equal(err.code, OCS_NEVER);
	assert_non_null(strstr(err.text, "take 6 interfaces, servers have 5"));
	request.trees = 16;
	assert_null(ocs_plan_make(&request, &err));
	assert_int_equal(err.code, OCS_USAGE);
	request.trees = 0;
	request.demand = "{\"allreduce\":[{\"members\":[0,1,2,3],\"bytes\":5}],\"trees\":\"x\"}";
	assert_null(ocs_plan_make(&request, &err));
	assert_non_null(strstr(err.text, "trees is not a whole number"));
}

/* A demand asks for them too, group by group; the JSON brings them back. */
static void test_demand(void **state)
{
	struct ocs_plan_request request = {
		.servers = 12,
		.degree = 8,
		.best = true,
		.routes = true,
		.demand = "{\"allreduce\":[{\"members\":[0,2,4,6,8,10],\"bytes\":5},"
			  "{\"members\":[1,3,5,7,9,11],\"bytes\":5}],\"trees\":1}",
	};
	struct ocs_plan *plan = plan_make(&request), *again;
	struct json_object *json = ocs_plan_to_json(plan);
	struct ocs_error err;
	int trees = 0;

	(void)state;
	for (int g = 0; g < plan->ngroups; g++)
		for (int t = 0; t < plan->groups[g].ntrees; t++) {
			shape(&plan->groups[g], &plan->groups[g].trees[t]);
			trees++;
		}
	assert_true(trees >= 2);
	again = ocs_plan_from_json(json, &err);
	assert_non_null(again);
	assert_int_equal(ocs_plan_verify(again, &err), 0);
	assert_int_equal(again->groups[0].ntrees, plan->groups[0].ntrees);
	/* a tree that is none is found out */
	for (int g = 0; g < again->ngroups; g++)
		if (again->groups[g].ntrees)
			again->groups[g].trees[0].parents[0][1] = again->groups[g].members[1];
	assert_int_equal(ocs_plan_verify(again, &err), -1);
	json_object_put(json);
	ocs_plan_destroy(again);
	ocs_plan_destroy(plan);
}

/* Without one of its interfaces a tree may be given up, but nothing false remains. */
static void test_repair(void **state)
{
	(void)state;
	for (int way = 0; way < 4; way++)
		for (int port = 0; port < 8; port++) {
			struct ocs_plan_request request = {
				.servers = 16,
				.degree = 8,
				.trees = 1,
				.best = true,
				.directed = way & 1,
				.any_port = way & 2,
				.routes = true,
			};
			struct ocs_plan_fault fault = { 3, port };
			struct ocs_plan *plan = plan_make(&request), *repaired;
			struct ocs_error err = { 0 };

			repaired = ocs_plan_repair(plan, &fault, 1, &err);
			if (!repaired || ocs_plan_verify(repaired, &err))
				fail_msg("%s", err.text);
			assert_int_equal(repaired->groups[0].nrings >= 1, 1);
			ocs_plan_destroy(repaired);
			ocs_plan_destroy(plan);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_shapes),	cmocka_unit_test(test_plans),
		cmocka_unit_test(test_refused), cmocka_unit_test(test_demand),
		cmocka_unit_test(test_repair),
	};

	return cmocka_run_group_tests_name("plan: double binary trees", tests, NULL, NULL);
}
