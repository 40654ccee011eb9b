/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Maximum-weight matching against all matchings of small graphs. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "src/plan/internal.h"

#define SMALL 14

static uint64_t seed = 1;

static uint32_t draw(uint32_t below)
{
	seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)(seed >> 33) % below;
}

/* The weight of the heaviest matching: a table over sets of vertices. */
static int64_t brute(int n, const int64_t *weight, int64_t *table)
{
	table[0] = 0;
	for (uint32_t set = 1; set < UINT32_C(1) << n; set++) {
		int a = __builtin_ctz(set);
		uint32_t rest = set & (set - 1);
		int64_t best = table[rest];

		for (uint32_t left = rest; left; left &= left - 1) {
			int b = __builtin_ctz(left);
			int64_t w = weight[a * n + b];

			if (w > 0 && w + table[rest & ~(UINT32_C(1) << b)] > best)
				best = w + table[rest & ~(UINT32_C(1) << b)];
		}
		table[set] = best;
	}
	return table[(UINT32_C(1) << n) - 1];
}

static int64_t value(int n, const int64_t *weight, const int *mate)
{
	int64_t sum = 0;

	for (int a = 0; a < n; a++) {
		assert_in_range(mate[a] + 1, 0, n);
		if (mate[a] < 0)
			continue;
		assert_int_not_equal(mate[a], a);
		assert_int_equal(mate[mate[a]], a);
		assert_true(weight[a * n + mate[a]] > 0);
		if (mate[a] > a)
			sum += weight[a * n + mate[a]];
	}
	return sum;
}

static void fill(int n, int64_t *weight, uint32_t density, uint32_t heaviest)
{
	memset(weight, 0, (size_t)n * n * sizeof(*weight));
	for (int a = 0; a < n; a++)
		for (int b = 0; b < a; b++)
			if (draw(100) < density)
				weight[a * n + b] = weight[b * n + a] = 1 + draw(heaviest);
}

static void test_small(void **state)
{
	static const uint32_t heaviest[] = { 1, 2, 3, 10, 1000, 1000000000 };
	int64_t weight[SMALL * SMALL], *table = malloc(sizeof(*table) << SMALL);
	int mate[SMALL];

	(void)state;
	assert_non_null(table);
	for (int round = 0; round < 6000; round++) {
		int n = 1 + (int)draw(round % 100 ? 9 : SMALL);

		fill(n, weight, 15 + draw(86), heaviest[round % 6]);
		ocs_plan_match(n, weight, mate);
		if (value(n, weight, mate) != brute(n, weight, table))
			fail_msg("round %d: %d vertices: %lld, want %lld", round, n,
				 (long long)value(n, weight, mate),
				 (long long)brute(n, weight, table));
	}
	free(table);
}

/* Odd cycles joined by single edges: what a greedy choice gets wrong. */
static void test_blossoms(void **state)
{
	enum { TRIANGLES = 20, N = 3 * TRIANGLES };
	int64_t weight[N * N];
	int mate[N];

	(void)state;
	memset(weight, 0, sizeof(weight));
	for (int t = 0; t < TRIANGLES; t++)
		for (int i = 0; i < 3; i++) {
			int a = 3 * t + i, b = 3 * t + (i + 1) % 3;

			weight[a * N + b] = weight[b * N + a] = 10;
		}
	for (int t = 0; t + 1 < TRIANGLES; t += 2) {
		int a = 3 * t, b = 3 * t + 3;

		weight[a * N + b] = weight[b * N + a] = 1;
	}
	/* every triangle's far edge and the bridges: a perfect matching */
	ocs_plan_match(N, weight, mate);
	assert_int_equal(value(N, weight, mate), TRIANGLES * 10 + TRIANGLES / 2);
}

/* Too large for the exact method: at least half of the sum of the heaviest edge
 * at each vertex, halved. */
static void test_large(void **state)
{
	int n = OCS_PLAN_MATCH_EXACT + 80;
	int64_t *weight = calloc((size_t)n * n, sizeof(*weight)), bound = 0, sum;
	int *mate = calloc(n, sizeof(int));

	(void)state;
	fill(n, weight, 20, 1000);
	for (int a = 0; a < n; a++) {
		int64_t most = 0;

		for (int b = 0; b < n; b++)
			most = weight[a * n + b] > most ? weight[a * n + b] : most;
		bound += most;
	}
	ocs_plan_match(n, weight, mate);
	sum = value(n, weight, mate);
	assert_true(sum * 4 >= bound);
	assert_true(sum * 2 <= bound);
	/* no exchange of two pairs' partners may gain in an exact one */
	n = 200;
	fill(n, weight, 50, 1000);
	ocs_plan_match(n, weight, mate);
	for (int a = 0; a < n; a++)
		for (int c = 0; c < n; c++) {
			int b = mate[a], d = mate[c];

			if (b < 0 || d < 0 || c == a || c == b)
				continue;
			assert_true(weight[a * n + b] + weight[c * n + d] >=
				    weight[a * n + c] + weight[b * n + d]);
		}
	assert_true(value(n, weight, mate) >= 970 * n / 2);
	free(mate);
	free(weight);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_small),
		cmocka_unit_test(test_blossoms),
		cmocka_unit_test(test_large),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
