/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Predictions of loads on gates whose law is known. */

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "src/moe/predict.h"
#include "tests/unit/moe/gates.h"

#define EXPERTS 16
#define LAYERS 6
#define PASSES 300

static double normal_random(uint64_t *state)
{
	double sum = -6;

	for (int k = 0; k < 12; k++)
		sum += gate_random(state);
	return sum;
}

/* Logits that drift, and news of each pass of strength NEWS that go from layer to layer through a
 * matrix: what a layer chooses tells of the next one. */
static struct ocs_moe_predictor *gate_replay(double news, uint64_t seed)
{
	static double base[LAYERS][EXPERTS], through[LAYERS][EXPERTS][EXPERTS];
	struct ocs_moe_predictor *predictor = ocs_moe_predictor_create(EXPERTS, LAYERS);
	uint64_t state = seed;

	for (int l = 0; l < LAYERS; l++) {
		for (int e = 0; e < EXPERTS; e++) {
			base[l][e] = 0.8 * normal_random(&state);
			for (int f = 0; f < EXPERTS; f++)
				through[l][e][f] = normal_random(&state) / sqrt(EXPERTS);
		}
	}
	for (int pass = 0; pass < PASSES; pass++) {
		double now[EXPERTS], next[EXPERTS], loads[EXPERTS];

		for (int e = 0; e < EXPERTS; e++)
			now[e] = news * normal_random(&state);
		for (int l = 0; l < LAYERS; l++) {
			for (int e = 0; e < EXPERTS; e++) {
				next[e] = 0.3 * news * normal_random(&state);
				for (int f = 0; f < EXPERTS; f++)
					next[e] += 0.8 * through[l][e][f] * now[f];
				base[l][e] += 0.01 * normal_random(&state);
			}
			for (int e = 0; e < EXPERTS; e++) {
				now[e] = next[e];
				loads[e] = 1000 * exp(base[l][e] + now[e]);
			}
			ocs_moe_observe(predictor, l, loads);
		}
	}
	return predictor;
}

/* Of all layers that have one before them. */
static double difference_mean(const struct ocs_moe_predictor *predictor, enum ocs_moe_method method)
{
	struct ocs_moe_error error;
	double sum = 0;

	for (int l = 1; l < LAYERS; l++) {
		assert_int_equal(ocs_moe_predict_error(predictor, l, method, &error),
				 PASSES - OCS_MOE_WARM);
		assert_true(error.difference >= 0 && error.difference <= 2);
		for (int k = 0; k < OCS_MOE_TOP; k++)
			assert_true(error.top[k] >= 0 && error.top[k] <= 1);
		sum += error.difference;
	}
	return sum / (LAYERS - 1);
}

/* The order of the methods, as gates of training have it. */
static void methods_are_in_order(void **state)
{
	(void)state;
	for (int seed = 1; seed <= 3; seed++) {
		struct ocs_moe_predictor *predictor = gate_replay(0.06, seed);
		double error[OCS_MOE_CHOSEN + 1];

		for (int m = 0; m <= OCS_MOE_CHOSEN; m++)
			error[m] = difference_mean(predictor, m);
		assert_true(error[OCS_MOE_PREVIOUS] > 5 * error[OCS_MOE_LAST]);
		assert_true(error[OCS_MOE_UNIFORM] > 5 * error[OCS_MOE_LAST]);
		assert_true(error[OCS_MOE_AVERAGE] < error[OCS_MOE_LAST]);
		assert_true(error[OCS_MOE_COPILOT] < error[OCS_MOE_LAST]);
		assert_true(error[OCS_MOE_INNOVATION] < error[OCS_MOE_AVERAGE]);
		assert_true(error[OCS_MOE_CHOSEN] < 1.05 * error[OCS_MOE_INNOVATION]);
		ocs_moe_predictor_destroy(predictor);
	}
}

/* What never changes is known after one pass; what is observed once is known to those that repeat. */
static void constant_loads_are_known(void **state)
{
	struct ocs_moe_predictor *predictor = ocs_moe_predictor_create(4, 2);
	const double loads[2][4] = { { 1, 2, 3, 4 }, { 4, 0, 0, 4 } };
	double said[4];

	(void)state;
	ocs_moe_predict(predictor, 1, OCS_MOE_CHOSEN, said);
	for (int e = 0; e < 4; e++)
		assert_float_equal(said[e], 0.25, 1e-12);
	for (int pass = 0; pass < 200; pass++)
		for (int l = 0; l < 2; l++)
			ocs_moe_observe(predictor, l, loads[l]);
	for (int m = OCS_MOE_LAST; m <= OCS_MOE_CHOSEN; m++) {
		ocs_moe_predict(predictor, 1, m, said);
		assert_float_equal(said[0], 0.5, 0.02);
		assert_float_equal(said[1], 0, 0.02);
	}
	ocs_moe_predictor_destroy(predictor);
}

/* Experts 0 and 1 take turns as the largest, 2 is always third: the last pass has one of one wrong, two of
 * two right, three of three, and of four the fourth of those that are alike by their order. */
static void largest_experts_are_counted(void **state)
{
	const double loads[2][6] = { { 9, 8, 5, 1, 0, 0 }, { 8, 9, 5, 0, 0, 1 } };
	struct ocs_moe_predictor *predictor = ocs_moe_predictor_create(6, 1);
	struct ocs_moe_error error;

	(void)state;
	assert_int_equal(ocs_moe_predict_error(predictor, 0, OCS_MOE_LAST, &error), 0);
	assert_true(error.difference == 0 && error.top[0] == 0);
	for (int pass = 0; pass < 100; pass++)
		ocs_moe_observe(predictor, 0, loads[pass % 2]);
	assert_int_equal(ocs_moe_predict_error(predictor, 0, OCS_MOE_LAST, &error),
			 100 - OCS_MOE_WARM);
	assert_float_equal(error.difference, 4.0 / 23, 1e-9);
	assert_float_equal(error.top[0], 0, 0);
	assert_float_equal(error.top[1], 1, 1e-9);
	assert_float_equal(error.top[2], 1, 1e-9);
	assert_float_equal(error.top[3], 0.75, 1e-9);
	/* the average has both alike or nearly so: never worse than the last pass */
	assert_int_not_equal(ocs_moe_predict_method(predictor, 0), OCS_MOE_LAST);
	ocs_moe_predictor_destroy(predictor);
}

/* Layers in which nothing is chosen, and numbers that are none, leave shares behind. */
static void odd_loads_leave_shares(void **state)
{
	const double odd[][3] = { { 0, 0, 0 }, { NAN, 1, -3 }, { 1e300, 1e-300, 0 }, { 0, 0, 7 } };
	struct ocs_moe_predictor *predictor = ocs_moe_predictor_create(3, 3);

	(void)state;
	for (int pass = 0; pass < 400; pass++) {
		for (int l = 0; l < 3; l++) {
			for (int m = 0; m <= OCS_MOE_CHOSEN; m++) {
				double said[3], sum = 0;

				ocs_moe_predict(predictor, l, m, said);
				for (int e = 0; e < 3; e++) {
					assert_true(said[e] >= 0);
					sum += said[e];
				}
				assert_float_equal(sum, 1, 1e-9);
			}
			ocs_moe_observe(predictor, l, odd[(pass * 3 + l * pass) % 4]);
		}
	}
	ocs_moe_predictor_destroy(predictor);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(methods_are_in_order),
		cmocka_unit_test(constant_loads_are_known),
		cmocka_unit_test(largest_experts_are_counted),
		cmocka_unit_test(odd_loads_leave_shares),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
