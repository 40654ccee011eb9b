/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Models: parameters as published or counted by hand, FLOPs and bytes by hand, and what
 * is refused with which line. */

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "src/model/model.h"
#include "src/util/error.h"

static struct ocs_model *model_of(const char *name)
{
	struct ocs_error err = { 0 };
	struct ocs_model *model;

	setenv("OCS_DATADIR", TEST_SOURCE_DIR "/share", 1);
	model = ocs_model_open(name, &err);
	if (!model)
		fail_msg("%s: %s", name, err.text);
	return model;
}

/* To the last parameter where a count is published, else within what is. */
static const struct {
	const char *name;
	double parameters, dense, tolerance;
} published[] = {
	{ "llama-3-8b", 8030261248.0, 8030261248.0 - 525336576, 0 },
	{ "llama-3-70b", 70553706496.0, 70553706496.0 - 1050673152, 0 },
	{ "llama-3-405b", 405853388800.0, 405853388800.0 - 2101346304, 0 },
	{ "mixtral-8x7b", 46702792704.0, 46702792704.0 - 131072000, 0 },
	{ "mixtral-8x22b", 140620634112.0, 140620634112.0 - 196608000, 0 },
	{ "qwen-moe", 14315784192.0, 14315784192.0 - 311164928, 0 },
	/* Llama 2 7B, 6738415616, and 32 gates of 4096 x 16 */
	{ "llama-moe", 6738415616.0 + 32 * 65536, 6738415616.0 + 32 * 65536 - 131072000, 0 },
	{ "candle", 23.6e9, 23.6e9, 0.002 },
	{ "vgg16", 289e6, 289e6, 0.002 },
	{ "dlrm", 64 * 1.28e9 + 323e6, 323e6, 0.001 },
	{ "bert", 75.5e6, 75.5e6, 0.001 },
	/* 64 x 10^6 x (64 + 128) in tables; 8192 x 4096 + 7 x 4096^2 + 2048 + 4097 */
	{ "ncf", 12288e6 + 151001089.0, 151001089.0, 0 },
	/* 23454912 weights of convolutions, 8192 x 10 + 10 */
	{ "resnet50", 23454912.0 + 81930, 23454912.0 + 81930, 0 },
};

static void test_parameters(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(published) / sizeof(published[0]); i++) {
		struct ocs_model *model = model_of(published[i].name);
		double all = ocs_model_parameters(model);
		double dense = ocs_model_dense_parameters(model);

		if (fabs(all / published[i].parameters - 1) > published[i].tolerance ||
		    fabs(dense / published[i].dense - 1) > published[i].tolerance)
			fail_msg("%s: %.0f parameters, %.0f dense", published[i].name, all, dense);
		ocs_model_destroy(model);
	}
}

/* What the mFabric paper's models compute per layer, micro-batch and GPU: tokens of a rank,
 * GPUs of a rank, TFLOP in experts and in attention. */
static const struct {
	const char *name;
	double tokens, gpus, experts, attention, dispatch_mb;
} regions[] = {
	{ "mixtral-8x7b", 32768, 4, 5.77, 1.24, 537 },
	{ "mixtral-8x22b", 65536, 8, 9.90, 2.27, 1611 },
	{ "llama-moe", 32768, 1, 2.22, 6.60, 1074 },
	{ "qwen-moe", 32768, 1, 2.27, 2.20, 537 },
};

static void test_experts(void **state)
{
	(void)state;
	for (size_t i = 0; i < 4; i++) {
		struct ocs_model *model = model_of(regions[i].name);
		double samples = regions[i].tokens / model->sequence;
		double expert = 0, attention = 0, dispatched = 0;

		for (int o = 0; o < model->noperators; o++) {
			const struct ocs_model_operator *op = &model->operators[o];

			if (op->layer != 1)
				continue;
			expert += op->expert_flops * samples / regions[i].gpus / 1e12;
			if (op->kind == OCS_MODEL_ATTENTION)
				attention += op->flops * samples / regions[i].gpus / 1e12;
			dispatched += op->dispatched * samples * model->precision / 1e6;
		}
		assert_float_equal(expert, regions[i].experts, 0.006);
		assert_float_equal(attention, regions[i].attention, 0.006);
		assert_float_equal(dispatched, regions[i].dispatch_mb, 0.5);
		assert_int_equal(model->ep * model->tp / 8, i == 0 ? 4 :
							    i == 1 ? 8 :
								     2); /* servers of a region */
		ocs_model_destroy(model);
	}
}

/* 2 FLOPs per weight and token and 4 s^2 h per layer; 6 N is the rule of thumb per token. */
static void test_flops(void **state)
{
	struct ocs_model *model = model_of("llama-3-8b");
	double s = 8192, weights = 8030261248.0 - 525336576 - 65 * 4096;

	(void)state;
	assert_true(ocs_model_flops(model) == 2 * s * weights + 32 * 4 * s * s * 4096);
	assert_true(ocs_model_samples(model, 64) == 512);
	/* weights and gradients in BF16, copy and two moments in FP32: 16 bytes */
	assert_true(ocs_model_state_bytes(model, 10) == 160);
	ocs_model_destroy(model);
	model = model_of("mixtral-8x7b");
	/* published: 12.9e9 active; the embeddings are counted whole */
	assert_float_equal(ocs_model_active_parameters(model) / 1e9, 12.88, 0.01);
	ocs_model_destroy(model);
	model = model_of("dlrm");
	assert_true(ocs_model_samples(model, 512) == 65536);
	/* gradients that an AllReduce of the dense part carries */
	assert_float_equal(ocs_model_dense_parameters(model) * model->precision / 1e9, 1.292, 1e-3);
	ocs_model_destroy(model);
	model = model_of("vgg16");
	assert_float_equal(ocs_model_parameters(model) * model->precision / 1e6, 1157.4, 0.3);
	ocs_model_destroy(model);
}

static void test_branches(void **state)
{
	struct ocs_model *model = model_of("ncf");
	int ends = 0, read[300] = { 0 };

	(void)state;
	for (int i = 0; i < model->noperators; i++) {
		int consumer = model->operators[i].consumer;

		ends += consumer < 0;
		assert_true(consumer < 0 || consumer > i);
		if (consumer >= 0)
			read[consumer]++;
	}
	for (int i = 0; i < model->noperators; i++)
		assert_int_equal(read[i], model->operators[i].joins);
	assert_int_equal(ends, 1);
	assert_int_equal(model->operators[model->noperators - 1].consumer, -1);
	ocs_model_destroy(model);
}

#define TOP "model: m\nprecision: bf16\nbatch: {gpu: 4}\nlayers:\n"

static const struct {
	const char *text, *wanted;
} bad[] = {
	{ "", "f:1: the file is empty" },
	{ "model: m\nprecision: bf16\nbatch: {gpu: 4}\n", "f:1: a model needs the key \"layers\"" },
	{ TOP "- {kind: dense, inputs: 1}\n",
	  "f:5: an operator of kind dense needs the key \"outputs\"" },
	{ TOP "- {kind: dense, inputs: 1, outputs: 2, heads: 3}\n",
	  "f:5: an operator of kind dense has no key \"heads\"" },
	{ TOP "- {kind: dense, inputs: -1, outputs: 2}\n",
	  "f:5: inputs must be a number of 1 to 1000000000, not \"-1\"" },
	{ TOP "- {kind: dnse, inputs: 1, outputs: 2}\n", "f:5: kind must be dense, " },
	{ TOP "- {kind: attention, hidden: 10, heads: 3}\n",
	  "f:5: 3 heads do not divide 10; give the size of a \"head\"" },
	{ TOP "- {kind: experts, hidden: 8, inner: 8, experts: 2, chosen: 3}\n",
	  "f:5: a token cannot choose 3 of 2 experts" },
	{ TOP "- {kind: other, outputs: 1, gflops: nan}\n", "f:5: gflops must be a number" },
	{ TOP "- {kind: norm, size: 8, input: some}\n", "f:5: input must be previous" },
	{ TOP "- {kind: norm, size: 8, input: 2}\n", "f:5: there are 0 branches" },
	{ TOP "- {kind: norm, size: 8, input: data}\n- {kind: norm, size: 8, input: data}\n",
	  "f:5: 2 branches are never joined" },
	{ "model: m\nprecision: bf16\nbatch: {gpu: 4}\nlayers: []\n",
	  "f:4: layers is an empty list" },
	{ TOP "- repeat: 30000\n  layers: [{kind: norm, size: 8}]\n", "f:5: repeat must be" },
	{ TOP "- repeat: 20000\n  layers: [{kind: norm, size: 8}, {kind: norm, size: 8}]\n",
	  "f:6: the model has more than 20000 operators" },
	{ "model: m\nprecision: int3\nbatch: {gpu: 4}\nlayers: [{kind: norm, size: 8}]\n",
	  "f:2: precision must be fp32" },
	{ "model: m\nprecision: bf16\nbatch: {gpu: 4, step: 4}\nlayers: [{kind: norm, size: 8}]\n",
	  "f:3: batch needs one of" },
	{ "model: m\nprecision: bf16\nbatch: {gpu: 4}\nparallel: {pp: 0}\nlayers: [{kind: norm, size: 8}]\n",
	  "f:4: pp must be" },
};

static void test_refused(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct ocs_error err = { 0 };

		if (ocs_model_parse(bad[i].text, strlen(bad[i].text), "f", &err))
			fail_msg("taken: %s", bad[i].text);
		assert_int_equal(err.code, OCS_USAGE);
		if (strncmp(err.text, bad[i].wanted, strlen(bad[i].wanted)) != 0 ||
		    strchr(err.text, '\n'))
			fail_msg("wanted %s, is %s", bad[i].wanted, err.text);
	}
}

static void test_unknown(void **state)
{
	struct ocs_error err = { 0 };

	(void)state;
	setenv("OCS_DATADIR", TEST_SOURCE_DIR "/share", 1);
	assert_null(ocs_model_open("lama", &err));
	assert_int_equal(err.code, OCS_USAGE);
	assert_non_null(strstr(err.text, "llama-3-8b, llama-moe"));
	assert_null(ocs_model_open("./none.yaml", &err));
	assert_int_equal(err.code, OCS_ERROR);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parameters), cmocka_unit_test(test_experts),
		cmocka_unit_test(test_flops),	   cmocka_unit_test(test_branches),
		cmocka_unit_test(test_refused),	   cmocka_unit_test(test_unknown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
