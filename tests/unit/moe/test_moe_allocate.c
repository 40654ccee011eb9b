/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Circuits for an all-to-all: reference values, the optimum of small regions by trying every set
 * of circuits, bounds, and how much of what exists is kept. */

#include <json-c/json.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "src/moe/bound.h"
#include "src/moe/change.h"
#include "src/util/error.h"
#include "tests/unit/moe/gates.h"
#include "tests/unit/sanitizer.h"

#define BETA 2

static struct ocs_moe_circuits *allocate(const struct ocs_moe_demand *demand,
					 const struct ocs_moe_region *region,
					 enum ocs_moe_policy policy)
{
	return ocs_moe_allocate(
		&(struct ocs_moe_request){ .demand = demand, .region = region, .policy = policy });
}

static double allocated_time(const struct ocs_moe_demand *demand,
			     const struct ocs_moe_region *region, enum ocs_moe_policy policy)
{
	struct ocs_moe_circuits *circuits = allocate(demand, region, policy);
	double time = ocs_moe_finish_time(demand, region, circuits);

	ocs_moe_circuits_destroy(circuits);
	return time;
}

/* The definition of the finish time, by halving. */
static double time_by_definition(const struct ocs_moe_demand *demand, double packets,
				 const int *count)
{
	double low = 0, high = 1e12;
	int n = demand->n;

	for (int step = 0; step < 100; step++) {
		double t = (low + high) / 2;
		int done = 1;

		for (int i = 0; i < n; i++) {
			double sent = 0, received = 0;

			for (int j = 0; j < n; j++) {
				sent += fmax(0, demand->tokens[i * n + j] - t * count[i * n + j]);
				received +=
					fmax(0, demand->tokens[j * n + i] - t * count[i * n + j]);
			}
			done &= sent <= packets * t && received <= packets * t;
		}
		*(done ? &high : &low) = t;
	}
	return high;
}

static void finish_time_is_what_it_says(void **state)
{
	(void)state;
	for (int seed = 0; seed < cases_here(300); seed++) {
		struct ocs_moe_demand *demand = gate_demand(seed % GATES, 2 + seed % 9, seed);
		struct ocs_moe_region *region =
			ocs_moe_region_create(demand->n, 1 + seed % 6, 1 + seed % 3);
		struct ocs_moe_circuits *circuits = allocate(demand, region, seed / 3 % 3);
		double time = ocs_moe_finish_time(demand, region, circuits);

		assert_float_equal(
			time / time_by_definition(demand, region->packets, circuits->count), 1,
			1e-9);
		ocs_moe_circuits_destroy(circuits);
		ocs_moe_region_destroy(region);
		ocs_moe_demand_destroy(demand);
	}
}

static void finish_time_of_nothing(void **state)
{
	struct ocs_moe_demand *demand = ocs_moe_demand_create(4);
	struct ocs_moe_region *region = ocs_moe_region_create(4, 6, BETA);

	(void)state;
	for (int policy = OCS_MOE_PAPER; policy <= OCS_MOE_BEST; policy++)
		assert_true(allocated_time(demand, region, policy) == 0);
	assert_true(ocs_moe_bound_server(demand, region) == 0);
	assert_true(ocs_moe_bound_linear(demand, region) == 0);
	ocs_moe_region_destroy(region);
	ocs_moe_demand_destroy(demand);
}

/* Gates of doc/benchmarks.md: what an integer program proved of them (no circuits are faster than
 * PROVEN), and what each policy takes. */
struct reference {
	const char *file;
	int servers, alpha;
	double ports, linear, proven, paper, greedy, best; /* 0: not known */
};

static void reference_check(const struct ocs_moe_demand *demand,
			    const struct ocs_moe_region *region, const struct reference *wanted)
{
	double best = allocated_time(demand, region, OCS_MOE_BEST);

	print_message("# %s, alpha %d: %.1f\n", wanted->file, wanted->alpha, best);
	assert_float_equal(ocs_moe_bound_ports(demand, region), wanted->ports, 0.51);
	if (wanted->linear > 0)
		assert_float_equal(ocs_moe_bound_linear(demand, region), wanted->linear, 0.51);
	if (wanted->paper > 0)
		assert_float_equal(allocated_time(demand, region, OCS_MOE_PAPER), wanted->paper,
				   0.51);
	if (wanted->greedy > 0)
		assert_float_equal(allocated_time(demand, region, OCS_MOE_GREEDY), wanted->greedy,
				   0.51);
	assert_true(best <= wanted->best + 0.51);
	assert_true(best >= wanted->proven - 0.51);
	assert_true(best >= ocs_moe_bound_server(demand, region) * (1 - 1e-9));
}

static void reference_values_are_met(void **state)
{
	static const struct reference references[] = {
		{ "mixtral-8x7b-ep8.txt", 0, 2, 16973, 0, 23139, 24417, 24417, 23156 },
		{ "mixtral-8x7b-ep8.txt", 0, 4, 11316, 0, 13150, 16543, 14627, 13162 },
		{ "mixtral-8x7b-ep8.txt", 0, 6, 8487, 0, 8487, 16543, 8487, 8487 },
		{ "synthetic-ep16.txt", 0, 4, 13146, 0, 15123, 15762, 15522, 15144 },
		{ "synthetic-ep16.txt", 0, 6, 9859, 10423, 12011, 12023, 12023, 12023 },
		/* two experts on each of four servers: the linear bound is met */
		{ "mixtral-8x7b-ep8.txt", 4, 2, 22925, 22925, 22925, 0, 0, 22925 },
		{ "mixtral-8x7b-ep8.txt", 4, 4, 15284, 15284, 15284, 0, 0, 15284 },
		{ "mixtral-8x7b-ep8.txt", 4, 6, 11463, 11463, 11463, 0, 0, 11463 },
	};

	(void)state;
	for (size_t k = 0; k < sizeof(references) / sizeof(*references); k++) {
		const struct reference *wanted = &references[k];
		char *path = NULL;
		struct json_object *json;
		struct ocs_moe_demand *demand;
		struct ocs_moe_region *region;
		struct ocs_error err;

		assert_true(asprintf(&path, "%s/../shared/data/moe/%s", TEST_SOURCE_DIR,
				     wanted->file) > 0);
		json = json_object_from_file(path);
		free(path);
		if (!json)
			skip();
		demand = ocs_moe_demand_from_json(json, wanted->servers, &err);
		json_object_put(json);
		assert_non_null(demand);
		region = ocs_moe_region_create(demand->n, wanted->alpha, BETA);
		reference_check(demand, region, wanted);
		ocs_moe_region_destroy(region);
		ocs_moe_demand_destroy(demand);
	}
}

/* Nine servers of seven ports: one port is left, and where it is left decides.  6820 is the optimum. */
static void odd_port_moves(void **state)
{
	static const double tokens[9][9] = {
		{ 0, 1319, 1587, 2581, 3646, 975, 1975, 5931, 13627 },
		{ 3646, 0, 2581, 13627, 1975, 5931, 1587, 1123, 975 },
		{ 13627, 5931, 0, 1123, 975, 2581, 3646, 1319, 1975 },
		{ 1587, 1319, 5931, 0, 1975, 2581, 3646, 13627, 975 },
		{ 2581, 1975, 1587, 975, 0, 3646, 1319, 5931, 13627 },
		{ 1587, 1975, 2581, 1319, 3646, 0, 13627, 1123, 5931 },
		{ 1587, 5931, 1319, 975, 13627, 3646, 0, 2581, 1123 },
		{ 975, 13627, 5931, 3646, 1975, 1587, 2581, 0, 1319 },
		{ 975, 1319, 3646, 1123, 1975, 5931, 1587, 2581, 0 },
	};
	struct ocs_moe_demand *demand = ocs_moe_demand_create(9);
	struct ocs_moe_region *region = ocs_moe_region_create(9, 7, 1);

	(void)state;
	memcpy(demand->tokens, tokens, sizeof(tokens));
	assert_true(allocated_time(demand, region, OCS_MOE_BEST) <= 6820 * 1.001);
	ocs_moe_region_destroy(region);
	ocs_moe_demand_destroy(demand);
}

/* Every set of circuits of four servers: the counts of the six pairs, one digit each. */
static double time_of_the_best(const struct ocs_moe_demand *demand, int alpha)
{
	static const int from[] = { 0, 0, 0, 1, 1, 2 }, to[] = { 1, 2, 3, 2, 3, 3 };
	double best = INFINITY;
	long all = 1;

	for (int pair = 0; pair < 6; pair++)
		all *= alpha + 1;
	for (long set = 0; set < all; set++) {
		int count[16] = { 0 }, degree[4] = { 0 }, fits = 1;
		long digits = set;

		for (int pair = 0; pair < 6; pair++, digits /= alpha + 1) {
			int c = (int)(digits % (alpha + 1));

			count[from[pair] * 4 + to[pair]] = count[to[pair] * 4 + from[pair]] = c;
			degree[from[pair]] += c;
			degree[to[pair]] += c;
		}
		for (int i = 0; i < 4; i++)
			fits &= degree[i] <= alpha;
		if (fits)
			best = fmin(best, time_by_definition(demand, BETA, count));
	}
	return best;
}

static void small_regions_are_optimal(void **state)
{
	(void)state;
	for (int seed = 0; seed < cases_here(40); seed++) {
		int alpha = 1 + seed % 4;
		struct ocs_moe_demand *demand = gate_demand(seed % GATES, 4, 1000 + seed);
		struct ocs_moe_region *region = ocs_moe_region_create(4, alpha, BETA);
		double best = time_of_the_best(demand, alpha);

		assert_true(allocated_time(demand, region, OCS_MOE_BEST) <= best * 1.001);
		assert_true(ocs_moe_bound_ports(demand, region) <= best * (1 + 1e-9));
		assert_true(ocs_moe_bound_server(demand, region) <= best * (1 + 1e-9));
		assert_true(ocs_moe_bound_linear(demand, region) <= best * (1 + 1e-6));
		ocs_moe_region_destroy(region);
		ocs_moe_demand_destroy(demand);
	}
}

static void circuits_fit(const struct ocs_moe_circuits *circuits,
			 const struct ocs_moe_region *region)
{
	for (int i = 0; i < circuits->n; i++) {
		assert_true(ocs_moe_circuits_degree(circuits, i) <= region->ports[i]);
		for (int j = 0; j < circuits->n; j++) {
			int count = circuits->count[i * circuits->n + j];

			assert_true(count >= 0 && (i != j || !count));
			assert_int_equal(count, circuits->count[j * circuits->n + i]);
		}
	}
}

static void best_is_never_worse_than_greedy(void **state)
{
	(void)state;
	for (int seed = 0; seed < cases_here(200); seed++) {
		int n = 2 + seed % 40;
		struct ocs_moe_demand *demand = gate_demand(seed % GATES, n, 2000 + seed);
		struct ocs_moe_region *region = ocs_moe_region_create(n, seed / 7 % 9, BETA);
		struct ocs_moe_circuits *best;

		/* Some ports are broken. */
		for (int i = 0; i < n; i += 3)
			region->ports[i] -= region->ports[i] > seed % 3 ? seed % 3 : 0;
		best = allocate(demand, region, OCS_MOE_BEST);
		circuits_fit(best, region);
		assert_true(ocs_moe_finish_time(demand, region, best) <=
			    allocated_time(demand, region, OCS_MOE_GREEDY));
		assert_true(ocs_moe_finish_time(demand, region, best) >=
			    ocs_moe_bound_server(demand, region) * (1 - 1e-9));
		ocs_moe_circuits_destroy(best);
		ocs_moe_region_destroy(region);
		ocs_moe_demand_destroy(demand);
	}
}

static void answers_repeat(void **state)
{
	struct ocs_moe_demand *demand = gate_demand(GATE_ZIPF, 24, 5);
	struct ocs_moe_region *region = ocs_moe_region_create(24, 6, BETA);
	struct ocs_moe_circuits *one = allocate(demand, region, OCS_MOE_BEST);
	struct ocs_moe_circuits *two = allocate(demand, region, OCS_MOE_BEST);

	(void)state;
	assert_memory_equal(one->count, two->count, 24 * 24 * sizeof(int));
	ocs_moe_circuits_destroy(one);
	ocs_moe_circuits_destroy(two);
	ocs_moe_region_destroy(region);
	ocs_moe_demand_destroy(demand);
}

static void no_more_is_cut_than_allowed(void **state)
{
	(void)state;
	for (int seed = 0; seed < cases_here(60); seed++) {
		int n = 3 + seed % 20, change = seed % 7;
		struct ocs_moe_demand *before = gate_demand(seed % GATES, n, 3000 + seed);
		struct ocs_moe_demand *after = gate_demand(seed % GATES, n, 4000 + seed);
		struct ocs_moe_region *region = ocs_moe_region_create(n, 6, BETA);
		struct ocs_moe_circuits *keep = allocate(before, region, OCS_MOE_BEST), *circuits;

		circuits = ocs_moe_allocate(&(struct ocs_moe_request){ .demand = after,
								       .region = region,
								       .policy = OCS_MOE_BEST,
								       .keep = keep,
								       .change = change });
		circuits_fit(circuits, region);
		assert_true(ocs_moe_circuits_cut(keep, circuits) <= change);
		assert_true(ocs_moe_finish_time(after, region, circuits) <=
			    ocs_moe_finish_time(after, region, keep));
		ocs_moe_circuits_destroy(circuits);
		ocs_moe_circuits_destroy(keep);
		ocs_moe_region_destroy(region);
		ocs_moe_demand_destroy(before);
		ocs_moe_demand_destroy(after);
	}
}

/* More remaining all-to-alls pay for more exchanges; a switch that is too slow for any for none. */
static void changes_pay(void **state)
{
	struct ocs_moe_demand *before = gate_demand(GATE_ZIPF, 16, 1);
	struct ocs_moe_demand *after = gate_demand(GATE_ZIPF, 16, 2);
	struct ocs_moe_region *region = ocs_moe_region_create(16, 6, BETA);
	struct ocs_moe_circuits *keep = allocate(before, region, OCS_MOE_BEST);
	struct ocs_moe_request request = { .demand = after, .region = region, .keep = keep };
	int last = 0;

	(void)state;
	for (double remaining = 0; remaining < 1e5; remaining = remaining * 10 + 1) {
		struct ocs_moe_change change = {
			.remaining = remaining, .first = 50000, .each = 5000, .window = 20000
		};
		struct ocs_moe_circuits *chosen = ocs_moe_change_choose(&request, &change);
		int cut = ocs_moe_circuits_cut(keep, chosen);
		double now = ocs_moe_finish_time(after, region, keep);
		double then = ocs_moe_finish_time(after, region, chosen);

		if (cut)
			assert_true(remaining * (now - then) > 50000 + (cut - 1) * 5000 - 20000);
		assert_true(cut >= last);
		last = cut;
		ocs_moe_circuits_destroy(chosen);
	}
	assert_true(last > 4);
	ocs_moe_circuits_destroy(keep);
	ocs_moe_region_destroy(region);
	ocs_moe_demand_destroy(before);
	ocs_moe_demand_destroy(after);
}

static void hidden_changes_are_free(void **state)
{
	struct ocs_moe_demand *before = gate_demand(GATE_ZIPF, 8, 1);
	struct ocs_moe_demand *after = gate_demand(GATE_ZIPF, 8, 2);
	struct ocs_moe_region *region = ocs_moe_region_create(8, 6, BETA);
	struct ocs_moe_circuits *keep = allocate(before, region, OCS_MOE_BEST), *chosen;
	struct ocs_moe_request request = { .demand = after, .region = region, .keep = keep };
	struct ocs_moe_change change = { .remaining = 1, .first = 100, .each = 1, .window = 1e6 };

	(void)state;
	chosen = ocs_moe_change_choose(&request, &change);
	assert_true(ocs_moe_finish_time(after, region, chosen) <
		    ocs_moe_finish_time(after, region, keep));
	ocs_moe_circuits_destroy(chosen);
	ocs_moe_circuits_destroy(keep);
	ocs_moe_region_destroy(region);
	ocs_moe_demand_destroy(before);
	ocs_moe_demand_destroy(after);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finish_time_is_what_it_says),
		cmocka_unit_test(finish_time_of_nothing),
		cmocka_unit_test(reference_values_are_met),
		cmocka_unit_test(odd_port_moves),
		cmocka_unit_test(small_regions_are_optimal),
		cmocka_unit_test(best_is_never_worse_than_greedy),
		cmocka_unit_test(answers_repeat),
		cmocka_unit_test(no_more_is_cut_than_allowed),
		cmocka_unit_test(changes_pay),
		cmocka_unit_test(hidden_changes_are_free),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
