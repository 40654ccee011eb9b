/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Steps of a training by the counts of its calls. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "src/moe/job/steps.h"

#define RANKS 3

/* The call of LAYER in a pass, which has other counts than all others. */
static void call_check(struct ocs_moe_steps *steps, int pass, int layer, int second, int backward,
		       int as_layer, int microbatch)
{
	size_t there[RANKS] = { 0, (size_t)(100 * pass + layer + 7), 11 };
	size_t back[RANKS] = { 0, 5, (size_t)(300 * pass + 2 * layer + 1) };
	struct ocs_moe_job_step step = second ? ocs_moe_steps_next(steps, back, there, RANKS) :
						ocs_moe_steps_next(steps, there, back, RANKS);

	assert_int_equal(step.layer, as_layer);
	assert_int_equal(step.second, second);
	assert_int_equal(step.backward, backward);
	assert_int_equal(step.microbatch, microbatch);
}

static void pair_check(struct ocs_moe_steps *steps, int pass, int layer, int backward, int as_layer,
		       int microbatch)
{
	for (int second = 0; second < 2; second++)
		call_check(steps, pass, layer, second, backward, as_layer, microbatch);
}

static void training_check(int said)
{
	struct ocs_moe_steps steps;

	ocs_moe_steps_init(&steps, said);
	for (int pass = 0; pass < 3; pass++) {
		for (int layer = 0; layer < 4; layer++)
			pair_check(&steps, pass, layer, 0, layer, pass);
		for (int layer = 3; layer >= 0; layer--)
			pair_check(&steps, pass, layer, 1, layer, pass);
	}
}

static void trainings(void **state)
{
	(void)state;
	training_check(0);
	training_check(4);
}

/* Layers are computed a second time before their gradients. */
static void recomputed(void **state)
{
	struct ocs_moe_steps steps;

	(void)state;
	ocs_moe_steps_init(&steps, 0);
	for (int pass = 0; pass < 2; pass++) {
		for (int layer = 0; layer < 3; layer++)
			pair_check(&steps, pass, layer, 0, layer, pass);
		for (int layer = 2; layer >= 0; layer--) {
			pair_check(&steps, pass, layer, 1, layer, pass);
			pair_check(&steps, pass, layer, 1, layer, pass);
		}
	}
}

/* Without gradients layers are counted on, up to the most that there may be. */
static void forward_only(void **state)
{
	struct ocs_moe_steps steps;

	(void)state;
	ocs_moe_steps_init(&steps, 0);
	for (int call = 0; call < 3 * OCS_MOE_STEPS_LAYERS; call++)
		pair_check(&steps, 0, call, 0, call % (OCS_MOE_STEPS_LAYERS - 1),
			   call / (OCS_MOE_STEPS_LAYERS - 1));
}

/* Results of the first calls do not come back, those of a later one do. */
static void one_way(void **state)
{
	struct ocs_moe_steps steps;

	(void)state;
	ocs_moe_steps_init(&steps, 0);
	call_check(&steps, 0, 0, 0, 0, 0, 0);
	call_check(&steps, 0, 1, 0, 0, 1, 0);
	pair_check(&steps, 0, 2, 0, 2, 0);
	pair_check(&steps, 0, 2, 1, 2, 0);
	call_check(&steps, 0, 1, 0, 1, 1, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(trainings),
		cmocka_unit_test(recomputed),
		cmocka_unit_test(forward_only),
		cmocka_unit_test(one_way),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
