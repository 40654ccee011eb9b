/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* The optimiser against all strategies of small models, chains against all layouts, and the
 * published random walk with ten times the evaluations on the six published models. */

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "src/optimise/internal.h"
#include "src/plan/plan.h"
#include "src/util/error.h"
#include "src/util/text.h"

static struct ocs_optimise_request request_of(struct ocs_model *model, int servers, int gpus)
{
	return (struct ocs_optimise_request){
		.model = model,
		.machine = { .servers = servers,
			     .gpus = gpus,
			     .tflops = 17.6,
			     .memory = 40e9,
			     .memory_rate = 1.5e12,
			     .scale_up = 50e9 },
		.degree = 4,
		.rate = 12.5e9,
		.seed = 1,
	};
}

/* A random model of 2 to 4 operators: tables that join, or a chain. */
static struct ocs_model *model_random(unsigned *seed)
{
	struct ocs_error err = { 0 };
	struct ocs_text text = { 0 };
	int tables = (int)ocs_optimise_random(seed, 3);
	int dense = 1 + (int)ocs_optimise_random(seed, 2);
	struct ocs_model *model;

	ocs_text_add(&text, "model: m\nprecision: fp32\nstate: 0\nbatch: {gpu: %u}\nlayers:\n",
		     1 + ocs_optimise_random(seed, 256));
	for (int i = 0; i < tables; i++)
		ocs_text_add(
			&text,
			"- {kind: embedding, rows: %u, columns: 128, lookups: %u, input: data}\n",
			1 + ocs_optimise_random(seed, 40000000), 1 + ocs_optimise_random(seed, 8));
	for (int i = 0; i < dense; i++)
		ocs_text_add(&text, "- {kind: dense, inputs: %u, outputs: %u, input: %s}\n",
			     1 + ocs_optimise_random(seed, 30000),
			     1 + ocs_optimise_random(seed, 30000),
			     i	    ? "previous" :
			     tables ? "all" :
				      "data");
	model = ocs_model_parse(text.data, text.length, "m", &err);
	if (!model)
		fail_msg("%s", err.text);
	ocs_text_free(&text);
	return model;
}

static double result_total(const struct ocs_optimise_request *request)
{
	struct ocs_optimise_result result;
	struct ocs_error err = { 0 };
	double total;

	if (ocs_optimise(request, &result, &err)) {
		if (err.code != OCS_NEVER)
			fail_msg("%s", err.text);
		return -1;
	}
	total = result.time.total;
	assert_true(result.memory <= request->machine.memory);
	ocs_optimise_result_free(&result);
	return total;
}

static void test_exhaustive(void **state)
{
	unsigned seed = 11;
	int found = 0, never = 0;

	(void)state;
	for (int i = 0; i < 60; i++) {
		struct ocs_model *model = model_random(&seed);
		struct ocs_optimise_request request = request_of(model, 3, 1 + i % 2 * 3);
		double best, descent;

		request.switched = i % 3 != 0;
		request.machine.memory = i % 4 ? 40e9 : 8e9;
		request.method = OCS_OPTIMISE_EXHAUSTIVE;
		best = result_total(&request);
		request.method = OCS_OPTIMISE_DESCENT;
		descent = result_total(&request);
		if (best < 0 ? descent >= 0 : fabs(descent / best - 1) > 1e-9)
			fail_msg("case %d: all strategies %.9g ms, descent %.9g ms", i, best,
				 descent);
		found += best >= 0;
		never += best < 0;
		ocs_model_destroy(model);
	}
	assert_true(found > 40 && never > 0);
}

/* Layouts that are the same everywhere, all of them, against dynamic programming. */
static void test_chain(void **state)
{
	unsigned seed = 5;

	(void)state;
	for (int i = 0; i < 100; i++) {
		struct ocs_model *model = model_random(&seed);
		struct ocs_optimise_request request = request_of(model, 5, 4);
		struct ocs_optimise_search search = { .request = &request, .seed = 1 };
		struct ocs_model_strategy *s = ocs_model_strategy_create(model, true);
		double best = INFINITY, cost;
		int count = (int)pow(3, model->noperators);

		request.machine.memory = i % 2 ? 40e9 : 3e9;
		search.network = ocs_optimise_network_create(&request, NULL);
		for (int k = 0; k < count; k++) {
			int code = k;

			for (int o = 0; o < model->noperators; o++, code /= 3)
				s->layout[o] = (unsigned char)(code % 3);
			cost = ocs_optimise_cost(&search, s);
			best = cost < best ? cost : best;
		}
		memset(s->layout, 0, (size_t)model->noperators);
		ocs_optimise_chain(&search, s);
		cost = ocs_optimise_cost(&search, s);
		if (best < OCS_OPTIMISE_OVERFULL && fabs(cost / best - 1) > 1e-9)
			fail_msg("case %d: all layouts %.9g ms, chain %.9g ms", i, best, cost);
		ocs_optimise_network_destroy(search.network);
		ocs_model_strategy_destroy(s);
		ocs_model_destroy(model);
	}
}

/* A tenth of the evaluations of the published search, and a result that is not worse. */
static void test_published(void **state)
{
	const char *names[] = { "candle", "vgg16", "resnet50", "bert", "dlrm", "ncf" };

	(void)state;
	setenv("OCS_DATADIR", TEST_SOURCE_DIR "/share", 1);
	for (int i = 0; i < 6; i++) {
		struct ocs_error err = { 0 };
		struct ocs_model *model = ocs_model_open(names[i], &err);
		struct ocs_optimise_request request = request_of(model, 16, 4);
		struct ocs_optimise_result descent, walk;
		int rc;

		assert_int_equal(ocs_optimise(&request, &descent, &err), 0);
		assert_true(descent.evaluations <= 400);
		assert_int_equal(ocs_plan_verify(descent.plan, &err), 0);
		request.method = OCS_OPTIMISE_MCMC;
		rc = ocs_optimise(&request, &walk, &err);
		print_message(
			"%s: data parallel %.3f ms%s, descent %.3f ms after %ld, walk %.3f ms "
			"after %ld, sequential %.3f ms\n",
			names[i], descent.start_ms, descent.start_fits ? "" : " (does not fit)",
			descent.time.total, descent.evaluations, rc ? -1 : walk.time.total,
			rc ? 4000 : walk.evaluations, descent.sequential_ms);
		if (!rc)
			assert_true(walk.evaluations > 3990 && walk.evaluations < 4010);
		if (!rc && descent.time.total > walk.time.total * (1 + 1e-9))
			fail_msg("%s: %.6f ms, the walk has %.6f ms", names[i], descent.time.total,
				 walk.time.total);
		assert_true(descent.time.total <= descent.sequential_ms * (1 + 1e-9));
		if (!strcmp(names[i], "candle"))
			assert_false(descent.start_fits);
		ocs_optimise_result_free(&descent);
		if (!rc)
			ocs_optimise_result_free(&walk);
		ocs_model_destroy(model);
	}
}

/* VGG16 replicated on an ideal switch and on rings, by hand. */
static void test_estimate(void **state)
{
	struct ocs_error err = { 0 };
	struct ocs_model *model = ocs_model_open("vgg16", &err);
	struct ocs_optimise_request request = request_of(model, 16, 4);
	struct ocs_model_strategy *s = ocs_model_strategy_create(model, true);
	struct ocs_plan *plan = ocs_optimise_plan(&request, s, &err);
	double bytes = ocs_model_parameters(model) * 4;
	double ring = 2 * bytes * 15 / 16 / (4 * 12.5e9) * 1e3;
	struct ocs_optimise_time time;

	(void)state;
	ocs_optimise_estimate(&request, s, NULL, &time);
	assert_true(fabs(time.network / ring - 1) < 1e-9);
	/* 2 FLOPs forward and 4 backward per weight, 64 samples; and the GPUs of a server */
	assert_true(time.compute >=
		    3 * ocs_model_flops(model) * 64 / 17.6e9 + 2 * bytes * 3 / 4 / 50e9 * 1e3);
	/* four interfaces make two rings in both directions: the same */
	ocs_optimise_estimate(&request, s, plan, &time);
	assert_true(fabs(time.network / ring - 1) < 1e-9);
	ocs_plan_destroy(plan);
	ocs_model_strategy_destroy(s);
	ocs_model_destroy(model);
}

/* Dimensions: what fits, and not what does not. */
static void test_dimensions(void **state)
{
	struct ocs_error err = { 0 };
	struct ocs_model *model = ocs_model_open("llama-3-70b", &err);
	struct ocs_optimise_request request = request_of(model, 16, 8);
	struct ocs_optimise_result result;
	char *shape;

	(void)state;
	request.machine.tflops = 400;
	request.machine.memory = 80e9;
	request.rate = 50e9;
	request.machine.scale_up = 450e9;
	if (ocs_optimise(&request, &result, &err))
		fail_msg("%s", err.text);
	assert_true(result.memory <= 80e9);
	/* 16 bytes per parameter need at least 15 GPUs */
	assert_true(result.strategy->tp * result.strategy->pp >= 15);
	assert_int_equal(result.strategy->tp * result.strategy->pp * result.strategy->dp *
				 result.strategy->cp,
			 128);
	shape = ocs_optimise_shape(&request, result.strategy);
	print_message("llama-3-70b on 128 GPUs: %s, %.1f ms\n", shape, result.time.total);
	free(shape);
	ocs_optimise_result_free(&result);
	request.machine.memory = 4e9;
	assert_int_equal(ocs_optimise(&request, &result, &err), -1);
	assert_int_equal(err.code, OCS_NEVER);
	ocs_model_destroy(model);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_exhaustive), cmocka_unit_test(test_chain),
		cmocka_unit_test(test_published),  cmocka_unit_test(test_estimate),
		cmocka_unit_test(test_dimensions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
