/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include <json-c/json.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "src/plan/plan.h"
#include "src/util/error.h"
#include "tests/unit/plan/plan_check.h"
#include "tests/unit/sanitizer.h"

/* Diameter and average hops of duplex (U) and directed (P) plans at degree 2, 4,
 * 6, 8, and the digits the average is known to. */
struct reference {
	int n;
	struct {
		int diameter;
		double hops, slack;
	} of[8];
};

static const struct reference references[] = {
	{ 12,
	  { { 6, 3.27, .005 },
	    { 3, 1.82, .005 },
	    { 3, 1.82, .005 },
	    { 3, 1.82, .005 },
	    { 5, 2.73, .005 },
	    { 3, 1.82, .005 },
	    { 3, 1.82, .005 },
	    { 3, 1.82, .005 } } },
	{ 16,
	  { { 8, 4.27, .005 },
	    { 4, 2.13, .005 },
	    { 3, 1.73, .005 },
	    { 2, 1.47, .005 },
	    { 6, 3.33, .005 },
	    { 3, 2.00, .005 },
	    { 3, 1.73, .005 },
	    { 2, 1.47, .005 } } },
	{ 32,
	  { { 16, 8.26, .005 },
	    { 4, 2.71, .005 },
	    { 4, 2.39, .005 },
	    { 3, 2.00, .005 },
	    { 9, 4.77, .005 },
	    { 5, 2.71, .005 },
	    { 4, 2.26, .005 },
	    { 3, 2.00, .005 } } },
	{ 64,
	  { { 32, 16.3, .05 },
	    { 8, 4.06, .005 },
	    { 4, 2.73, .005 },
	    { 4, 2.44, .005 },
	    { 14, 7.14, .005 },
	    { 6, 3.52, .005 },
	    { 5, 2.92, .005 },
	    { 4, 2.44, .005 } } },
	{ 128,
	  { { 64, 32.3, .05 },
	    { 10, 5.62, .005 },
	    { 6, 3.67, .005 },
	    { 5, 2.96, .005 },
	    { 20, 10.3, .05 },
	    { 8, 4.52, .005 },
	    { 5, 3.37, .005 },
	    { 5, 3.06, .005 } } },
	{ 432,
	  { { 216, 108, .5 },
	    { 18, 10.19, .005 },
	    { 9, 5.33, .005 },
	    { 7, 4.09, .005 },
	    { 39, 19.8, .05 },
	    { 12, 6.80, .005 },
	    { 8, 4.93, .005 },
	    { 7, 4.18, .005 } } },
	{ 1024,
	  { { 512, 256, .5 },
	    { 32, 16.02, .005 },
	    { 12, 7.13, .005 },
	    { 8, 5.12, .005 },
	    { 62, 31.0, .05 },
	    { 17, 9.15, .005 },
	    { 10, 6.01, .005 },
	    { 8, 4.88, .005 } } },
};

static void test_reference(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(references) / sizeof(references[0]); i++)
		for (int j = 0; j < 8; j++) {
			struct ocs_plan_request request = {
				.servers = references[i].n,
				.degree = 2 * (j % 4) + 2,
				.directed = j >= 4,
			};
			struct ocs_plan *plan = plan_make(&request);

			if (plan->diameter != references[i].of[j].diameter ||
			    fabs(plan->average_hops - references[i].of[j].hops) >
				    references[i].of[j].slack + 1e-9)
				fail_msg("%d servers, degree %d%s: %d/%.4f, want %d/%.2f",
					 request.servers, request.degree,
					 request.directed ? " directed" : "", plan->diameter,
					 plan->average_hops, references[i].of[j].diameter,
					 references[i].of[j].hops);
			assert_int_equal(plan->groups[0].nrings,
					 request.directed ? request.degree : request.degree / 2);
			assert_int_equal(plan->groups[0].steps[0], 1);
			ocs_plan_destroy(plan);
		}
}

/* The best plan beats the paper's where better steps are known, and never loses. */
static void test_best(void **state)
{
	static const struct {
		int n, d;
		double hops; /* facts: the best co-prime steps, or 0 */
	} cases[] = {
		{ 64, 4, 3.84 },  { 128, 4, 5.35 }, { 432, 4, 9.84 }, { 1024, 4, 15.11 },
		{ 32, 6, 2.19 },  { 128, 6, 3.43 }, { 432, 6, 5.17 }, { 64, 8, 2.35 },
		{ 128, 8, 2.87 }, { 12, 4, 0 },	    { 16, 3, 0 },     { 9, 4, 0 },
		{ 15, 6, 0 },	  { 8, 5, 0 },	    { 5, 8, 0 },      { 3, 4, 0 },
		{ 2, 3, 0 },	  { 1, 2, 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		/* What 1024 servers do to memory 432 do as well, in a fifth of the time. */
		for (int directed = 0; directed < 2 && !(SANITIZED && cases[i].n > 432);
		     directed++) {
			struct ocs_plan_request request = {
				.servers = cases[i].n,
				.degree = cases[i].d,
				.directed = directed,
			};
			struct ocs_plan *paper = plan_make(&request), *best;

			request.best = true;
			best = plan_make(&request);
			assert_true(best->average_hops <= paper->average_hops);
			if (cases[i].hops && !directed)
				assert_true(best->average_hops < cases[i].hops + .005);
			ocs_plan_destroy(best);
			ocs_plan_destroy(paper);
		}
}

/* Load of the busiest link for uniform all-to-all, times degree over n - 1: equal
 * cost multipath on the paper's steps gives 6.21; single routes do no worse here. */
static void test_load(void **state)
{
	struct ocs_plan_request request = { .servers = 128, .degree = 4, .best = true };
	struct ocs_plan *plan = plan_make(&request);

	(void)state;
	assert_true(plan->max_link_load * 4 / 127 < 6.21);
	ocs_plan_destroy(plan);
}

/* With one ring and an expander the best plan comes near to random regular graphs
 * and below, and its routes near to even loads. */
static void test_expander(void **state)
{
	static const struct {
		int n, d;
		bool directed;
		double hops, alpha; /* facts: a random regular graph; ours was lower */
	} cases[] = {
		{ 128, 4, false, 3.79, 4.2 },  { 128, 8, false, 2.53, 3.3 },
		{ 1024, 4, false, 5.65, 6.5 }, { 1024, 8, false, 3.61, 4.4 },
		{ 128, 4, true, 3.30, 3.9 },   { 64, 3, false, 4.0, 4.5 },
		{ 65, 4, false, 3.1, 4.2 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct ocs_plan_request request = {
			.servers = cases[i].n,
			.degree = cases[i].d,
			.directed = cases[i].directed,
			.best = true,
		};
		struct ocs_plan *plan = plan_make(&request);
		double alpha = plan->max_link_load * cases[i].d / (cases[i].n - 1);

		if (plan->average_hops > cases[i].hops || alpha > cases[i].alpha)
			fail_msg("%d servers, degree %d: %.3f hops, load %.3f", cases[i].n,
				 cases[i].d, plan->average_hops, alpha);
		assert_int_equal(plan->groups[0].nrings, 1);
		assert_non_null(strstr(plan->assignment, "expander"));
		ocs_plan_destroy(plan);
	}
}

static int circuits_on(const struct ocs_plan *plan, int ocs)
{
	int count = 0;

	for (int i = 0; i < plan->ncircuits; i++)
		count += plan->circuits[i].ocs == ocs;
	return count;
}

/* Every size and degree, with and without planes: a verified plan, or a refusal
 * exactly where no ring can close. */
static void test_sweep(void **state)
{
	(void)state;
	for (int n = 1; n <= 26; n++)
		for (int d = 1; d <= 9; d++)
			for (int way = 0; way < 4; way++) {
				struct ocs_plan_request request = {
					.servers = n,
					.degree = d,
					.directed = way & 1,
					.any_port = way & 2,
					.routes = n < 12,
				};
				struct ocs_error err = { 0 };
				struct ocs_plan *plan = ocs_plan_make(&request, &err);
				bool hopeless = n > 2 && !request.directed &&
						(d < 2 || (n % 2 && d < 3 && !request.any_port));

				if (hopeless) {
					assert_null(plan);
					assert_int_equal(err.code, OCS_NEVER);
					assert_true(strlen(err.text) > 20);
					continue;
				}
				if (!plan)
					fail_msg("%d servers degree %d way %d: %s", n, d, way,
						 err.text);
				if (ocs_plan_verify(plan, &err) < 0)
					fail_msg("%d servers degree %d way %d: %s", n, d, way,
						 err.text);
				assert_int_equal(plan->ngroups, 1);
				if (n > 1)
					assert_true(plan->groups[0].nrings >= 1);
				if (n > 1 && request.directed)
					assert_int_equal(plan->ncircuits, n * d);
				if (n > 2 && n % 2 == 0 && !request.directed)
					assert_int_equal(plan->ncircuits, n * (d / 2));
				assert_non_null(plan->assignment);
				ocs_plan_destroy(plan);
			}
}

/* Odd rings: closed on a third plane, the ports that remain are not wasted. */
static void test_odd(void **state)
{
	struct ocs_plan_request request = { .servers = 9, .degree = 3 };
	struct ocs_plan *plan = plan_make(&request);

	(void)state;
	assert_int_equal(plan->groups[0].nrings, 1);
	assert_int_equal(plan->ncircuits, 9);
	assert_int_equal(circuits_on(plan, 0), 4);
	assert_int_equal(circuits_on(plan, 1), 4);
	assert_int_equal(circuits_on(plan, 2), 1);
	assert_non_null(strstr(plan->assignment, "closes on a third"));
	ocs_plan_destroy(plan);

	/* four planes can hold 4 * 4 circuits of 9 servers: a ring and most of another */
	request.degree = 4;
	plan = plan_make(&request);
	assert_int_equal(plan->groups[0].nrings, 1);
	assert_true(plan->ncircuits >= 15);
	assert_non_null(strstr(plan->assignment, "cannot close"));
	ocs_plan_destroy(plan);

	request.any_port = true;
	plan = plan_make(&request);
	assert_int_equal(plan->groups[0].nrings, 2);
	assert_int_equal(plan->ncircuits, 18);
	assert_non_null(strstr(plan->assignment, "different interfaces"));
	ocs_plan_destroy(plan);
}

static void test_routes(void **state)
{
	struct ocs_plan_request request = { .servers = 12, .degree = 4, .routes = true };
	struct ocs_plan *plan = plan_make(&request);
	struct ocs_error err = { 0 };
	double load;
	long hops = 0;
	int keep;

	(void)state;
	assert_int_equal(plan->nroutes, 132);
	for (int i = 0; i < plan->nroutes; i++) {
		assert_int_equal(plan->routes[i].src, i / 11);
		hops += plan->routes[i].lengths[0] - 1;
	}
	assert_true(fabs(hops / 132.0 - plan->average_hops) < 1e-9);

	/* the verifier notices damage of every kind */
	keep = plan->routes[5].paths[0][0];
	plan->routes[5].paths[0][0] = keep + 1;
	assert_int_equal(ocs_plan_verify(plan, &err), -1);
	plan->routes[5].paths[0][0] = keep;
	plan->routes[5].weights[0] = 0.5;
	assert_int_equal(ocs_plan_verify(plan, &err), -1);
	plan->routes[5].weights[0] = 1;
	plan->circuits[3].a_port ^= 1;
	assert_int_equal(ocs_plan_verify(plan, &err), -1);
	plan->circuits[3].a_port ^= 1;
	keep = plan->circuits[3].b;
	plan->circuits[3].b = plan->circuits[3].a;
	assert_int_equal(ocs_plan_verify(plan, &err), -1);
	plan->circuits[3].b = keep;
	plan->groups[0].steps[1] = 3;
	assert_int_equal(ocs_plan_verify(plan, &err), -1);
	assert_non_null(strstr(err.text, "step 3"));
	plan->groups[0].steps[1] = 5;
	plan->diameter++;
	assert_int_equal(ocs_plan_verify(plan, &err), -1);
	plan->diameter--;
	load = plan->max_link_load;
	plan->max_link_load = 1;
	assert_int_equal(ocs_plan_verify(plan, &err), -1);
	plan->max_link_load = load + 1;
	assert_int_equal(ocs_plan_verify(plan, &err), -1);
	plan->max_link_load = load;
	plan->ncircuits--;
	assert_int_equal(ocs_plan_verify(plan, &err), -1);
	plan->ncircuits++;
	assert_int_equal(ocs_plan_verify(plan, &err), 0);
	ocs_plan_destroy(plan);
}

static void test_json(void **state)
{
	char *const names[] = { "a", "b", "c", "d", "e", "f" };
	struct ocs_plan_request request = {
		.servers = 6,
		.degree = 4,
		.routes = true,
		.nodes = names,
	};
	struct ocs_error err = { 0 };
	struct ocs_plan *plan = plan_make(&request), *back;
	struct json_object *json = ocs_plan_to_json(plan), *other, *value;
	static const char *const keys[] = { "servers",	     "degree",	  "directed",
					    "groups",	     "circuits",  "nodes",
					    "routes",	     "diameter",  "average_hops",
					    "max_link_load", "assignment" };

	(void)state;
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		assert_true(json_object_object_get_ex(json, keys[i], NULL));
	value = json_object_array_get_idx(json_object_object_get(json, "circuits"), 0);
	assert_int_equal(json_object_array_length(json_object_object_get(value, "a")), 2);
	back = ocs_plan_from_json(json, &err);
	assert_non_null(back);
	assert_int_equal(ocs_plan_verify(back, &err), 0);
	assert_string_equal(back->nodes[5], "f");
	other = ocs_plan_to_json(back);
	assert_string_equal(json_object_to_json_string(json), json_object_to_json_string(other));
	json_object_put(other);
	ocs_plan_destroy(back);

	/* a ring that is not that of its step */
	value = json_object_array_get_idx(json_object_object_get(json, "groups"), 0);
	value = json_object_array_get_idx(json_object_object_get(value, "rings"), 0);
	json_object_array_put_idx(value, 0, json_object_new_int(3));
	assert_null(ocs_plan_from_json(json, &err));
	json_object_put(json);

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]) - 1; i++) {
		json = ocs_plan_to_json(plan);
		json_object_object_add(json, keys[i], json_object_new_string("x"));
		if (strcmp(keys[i], "average_hops") != 0 && strcmp(keys[i], "max_link_load") != 0)
			assert_null(ocs_plan_from_json(json, &err));
		json_object_put(json);
	}
	ocs_plan_destroy(plan);
}

static int64_t now_us(void)
{
	struct timespec at;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &at);
	return at.tv_sec * INT64_C(1000000) + at.tv_nsec / 1000;
}

/* Wanted: under 100 ms of processor time (a loose bound here: sanitizers and
 * slow machines run this too; the benchmark prints the exact value). */
static void test_speed(void **state)
{
	struct ocs_plan_request request = { .servers = 1024, .degree = 8 };
	int64_t start = now_us();
	struct ocs_plan *plan = ocs_plan_make(&request, NULL);
	int64_t took = now_us() - start;

	(void)state;
	assert_non_null(plan);
	print_message("# paper plan for 1024 servers, degree 8: %.1f ms\n", took / 1000.0);
	assert_true(took < 1000000);
	ocs_plan_destroy(plan);
}

/* Parallel rings +1: as many circuits of every hop as there are rings. */
static void test_stock(void **state)
{
	static const char stock[] = "{\"allreduce\":[{\"members\":[0,1,2,3],\"bytes\":9},"
				    "{\"members\":[4,5,6,7],\"bytes\":9}],\"rings\":\"stock\"}";
	static const char permuted[] =
		"{\"allreduce\":[{\"members\":[0,1,2,3,4,5,6,7],\"bytes\":9}],"
		"\"rings\":\"permuted\"}";
	struct ocs_error err = { 0 };

	(void)state;
	for (int directed = 0; directed < 2; directed++)
		for (int degree = 2; degree <= 8; degree += 2)
			for (int servers = 2; servers <= 32; servers += 6) {
				struct ocs_plan_request request = { .servers = servers,
								    .degree = degree,
								    .directed = directed,
								    .best = true,
								    .stock = true };
				struct ocs_plan *plan = plan_make(&request);
				const struct ocs_plan_group *group = &plan->groups[0];

				assert_int_equal(group->nrings,
						 directed || servers == 2 ? degree : degree / 2);
				for (int r = 0; r < group->nrings; r++)
					assert_int_equal(group->steps[r], 1);
				for (int i = 0; i < plan->ncircuits; i++)
					assert_int_equal(plan->circuits[i].group, 0);
				ocs_plan_destroy(plan);
			}
	/* the demand wins, and a bad word in it is refused */
	for (int says = 0; says < 2; says++) {
		struct ocs_plan_request request = {
			.servers = 8, .degree = 6, .stock = !says, .demand = says ? stock : permuted
		};
		struct ocs_plan *plan = plan_make(&request);

		assert_true(plan->groups[0].nrings > 1);
		assert_int_equal(plan->groups[0].steps[1] == 1, says);
		ocs_plan_destroy(plan);
	}
	assert_int_equal(ocs_plan_demand_check("{\"allreduce\":[],\"rings\":1}", 0, &err), -1);
	assert_non_null(strstr(err.text, "rings is"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reference), cmocka_unit_test(test_best),
		cmocka_unit_test(test_load),	  cmocka_unit_test(test_expander),
		cmocka_unit_test(test_sweep),	  cmocka_unit_test(test_odd),
		cmocka_unit_test(test_routes),	  cmocka_unit_test(test_json),
		cmocka_unit_test(test_speed),	  cmocka_unit_test(test_stock),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
