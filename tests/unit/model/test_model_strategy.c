/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Memory, traffic and task graphs of strategies, against counts by hand; and the bytes of a
 * graph against those of the traffic. */

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "src/model/strategy.h"
#include "src/netsim/graph.h"
#include "src/netsim/model_graph.h"
#include "src/plan/plan.h"
#include "src/util/error.h"
#include "src/util/text.h"

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

static struct ocs_model_machine machine_of(int servers, int gpus)
{
	return (struct ocs_model_machine){ .servers = servers,
					   .gpus = gpus,
					   .tflops = 17.6,
					   .memory = 40e9,
					   .memory_rate = 1.5e12,
					   .scale_up = 50e9 };
}

static double traffic_of(const struct ocs_model *model, const struct ocs_model_machine *machine,
			 const struct ocs_model_strategy *s, enum ocs_model_dimension dimension)
{
	struct ocs_model_traffic *traffic = ocs_model_traffic_create(model, machine, s);
	double bytes = ocs_model_traffic_bytes(traffic, dimension);

	ocs_model_traffic_destroy(traffic);
	return bytes;
}

static void near(double value, double wanted)
{
	if (fabs(value / wanted - 1) > 1e-9)
		fail_msg("%.17g, wanted %.17g", value, wanted);
}

/* A replicated CANDLE does not fit 40 GB: 23.6e9 x 8 bytes; sharded over 128 servers it does. */
static void test_candle(void **state)
{
	struct ocs_model *model = model_of("candle");
	struct ocs_model_machine machine = machine_of(128, 4);
	struct ocs_model_strategy *s = ocs_model_strategy_create(model, true);
	double n = ocs_model_parameters(model);

	(void)state;
	assert_true(ocs_model_memory(model, &machine, s) > 188e9);
	near(traffic_of(model, &machine, s, OCS_MODEL_DP), 2 * 127 * n * 4);
	assert_true(traffic_of(model, &machine, s, OCS_MODEL_MP) == 0);
	memset(s->layout, OCS_MODEL_SHARDED, (size_t)model->noperators);
	assert_true(ocs_model_memory(model, &machine, s) < 4e9);
	near(traffic_of(model, &machine, s, OCS_MODEL_DP), 3 * 127 * n * 4);
	ocs_model_strategy_destroy(s);
	ocs_model_destroy(model);
}

/* Tables on servers of their own: each sends its rows for 127/128 of 65536 samples, and gets
 * the gradients back. */
static struct ocs_model_strategy *tables_place(const struct ocs_model *model, int servers)
{
	struct ocs_model_strategy *s = ocs_model_strategy_create(model, true);

	for (int i = 0; i < model->noperators; i++) {
		if (model->operators[i].kind != OCS_MODEL_EMBEDDING)
			continue;
		s->layout[i] = OCS_MODEL_PLACED;
		s->server[i] = i % servers;
	}
	return s;
}

static void test_dlrm(void **state)
{
	struct ocs_model *model = model_of("dlrm");
	struct ocs_model_machine machine = machine_of(128, 4);
	struct ocs_model_strategy *s = tables_place(model, 128);
	double dense = ocs_model_dense_parameters(model);

	(void)state;
	near(traffic_of(model, &machine, s, OCS_MODEL_DP), 2 * 127 * dense * 4);
	near(traffic_of(model, &machine, s, OCS_MODEL_MP),
	     2 * 64 * (65536.0 * 128 * 4) * 127 / 128);
	/* each table 5.12 GB and its gradient on one of four GPUs, in turn */
	assert_true(ocs_model_memory(model, &machine, s) < 8e9);
	ocs_model_strategy_destroy(s);
	s = ocs_model_strategy_create(model, true);
	assert_true(ocs_model_memory(model, &machine, s) > 650e9);
	ocs_model_strategy_destroy(s);
	ocs_model_destroy(model);
}

/* Llama-3 405B on 2048 GPUs, tp 8 pp 16 dp 16: a layer reduces twice in each pass. */
static void test_llama(void **state)
{
	struct ocs_model *model = model_of("llama-3-405b");
	struct ocs_model_machine machine = machine_of(256, 8);
	struct ocs_error err = { 0 };
	struct ocs_model_strategy *s = ocs_model_strategy_default(model, &machine, &err);
	struct ocs_model_traffic *traffic;
	double activation = 8192.0 * 16384 * 2, micro = 128;

	(void)state;
	assert_non_null(s);
	assert_int_equal(s->dp, 16);
	assert_int_equal(ocs_model_microbatches(model, &machine, s), 128);
	assert_int_equal(ocs_model_stage_first(model, 16, 0), 0);
	/* 126 layers: 14 stages of 8, two of 7 */
	assert_int_equal(model->operators[ocs_model_stage_first(model, 16, 15)].layer, 120);
	traffic = ocs_model_traffic_create(model, &machine, s);
	/* 15 boundaries, 16 replicas, there and back */
	near(ocs_model_traffic_bytes(traffic, OCS_MODEL_PP), activation * micro * 15 * 16 * 2);
	near(ocs_model_traffic_bytes(traffic, OCS_MODEL_DP), 2 * 15 * 405853388800.0 * 2);
	assert_true(ocs_model_traffic_bytes(traffic, OCS_MODEL_TP) == 0);
	/* attention and feed-forward of 126 layers, both passes, 16 replicas, 2 (k - 1) */
	near(traffic->inside[OCS_MODEL_TP], activation * 2 * 126 * 2 * micro * 16 * 2 * 7);
	assert_true(traffic->inside[OCS_MODEL_DP] == 0);
	ocs_model_traffic_destroy(traffic);
	s->dp = 15;
	assert_int_equal(ocs_model_strategy_check(model, &machine, s, &err), -1);
	assert_int_equal(err.code, OCS_NEVER);
	ocs_model_strategy_destroy(s);
	ocs_model_destroy(model);
}

/* Experts of Mixtral 8x7B: a region of ep 8 x tp 4 is four servers; a rank dispatches 537 MB. */
static void test_mixtral(void **state)
{
	struct ocs_model *model = model_of("mixtral-8x7b");
	struct ocs_model_machine machine = machine_of(16, 8);
	struct ocs_error err = { 0 };
	struct ocs_model_strategy *s = ocs_model_strategy_default(model, &machine, &err);
	struct ocs_model_traffic *traffic = ocs_model_traffic_create(model, &machine, s);
	int groups = 0;

	(void)state;
	for (int i = 0; i < traffic->nflows; i++) {
		const struct ocs_model_flow *flow = &traffic->flows[i];

		if (flow->dimension != OCS_MODEL_EP)
			continue;
		groups++;
		assert_int_equal(flow->count, 4);
		assert_int_equal(flow->kind, OCS_MODEL_ALLTOALL);
		/* two ranks of a server, 8 layers of a stage */
		near(flow->bytes, 2 * 8 * (8 * 4096.0 * 2 * 4096 * 2));
		near(flow->times, 4 * 16);
	}
	assert_int_equal(groups, 4);
	ocs_model_traffic_destroy(traffic);
	ocs_model_strategy_destroy(s);
	ocs_model_destroy(model);
}

/* Bytes that a graph's tasks of one label send between servers. */
static double graph_bytes(const struct ocs_netsim_graph *graph, const char *label)
{
	double sum = 0;

	for (int i = 0; i < graph->ntasks; i++) {
		const struct ocs_netsim_task *task = &graph->tasks[i];
		double k;

		if (task->label < 0 || strcmp(graph->labels[task->label], label) != 0)
			continue;
		if (task->kind == OCS_NETSIM_TRANSFER) {
			sum += task->server == task->peer ? 0 : task->bytes;
		} else if (ocs_netsim_kind_collective(task->kind)) {
			k = graph->groups[task->group].count;
			sum += (task->kind == OCS_NETSIM_ALLREDUCE ? 2 : 1) * (k - 1) * task->bytes;
		}
	}
	return sum;
}

static void graph_compare(const struct ocs_model *model, const struct ocs_model_machine *machine,
			  const struct ocs_model_strategy *s)
{
	struct ocs_error err = { 0 };
	struct ocs_netsim_graph *graph = ocs_netsim_model_graph(model, machine, s, &err);
	struct ocs_model_traffic *traffic = ocs_model_traffic_create(model, machine, s);

	if (!graph)
		fail_msg("%s: %s", model->name, err.text);
	for (int d = 0; d < OCS_MODEL_DIMENSIONS; d++) {
		double bytes = graph_bytes(graph, ocs_model_dimension_name(d));
		double wanted = ocs_model_traffic_bytes(traffic, d);

		if (fabs(bytes - wanted) > 1e-9 * wanted)
			fail_msg("%s, %s: %.6g bytes in the graph, %.6g in the traffic",
				 model->name, ocs_model_dimension_name(d), bytes, wanted);
	}
	ocs_model_traffic_destroy(traffic);
	ocs_netsim_graph_destroy(graph);
}

static const struct {
	const char *name;
	int servers, gpus;
} graphs[] = {
	{ "vgg16", 16, 4 },	    { "bert", 8, 4 },	       { "llama-3-8b", 8, 8 },
	{ "llama-3-405b", 128, 8 }, { "mixtral-8x7b", 16, 8 }, { "mixtral-8x22b", 64, 8 },
	{ "llama-moe", 8, 8 },	    { "qwen-moe", 8, 8 },
};

static void test_graphs(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(graphs) / sizeof(graphs[0]); i++) {
		struct ocs_model *model = model_of(graphs[i].name);
		struct ocs_model_machine machine = machine_of(graphs[i].servers, graphs[i].gpus);
		struct ocs_error err = { 0 };
		struct ocs_model_strategy *s = ocs_model_strategy_default(model, &machine, &err);

		if (!s)
			fail_msg("%s: %s", graphs[i].name, err.text);
		graph_compare(model, &machine, s);
		ocs_model_strategy_destroy(s);
		ocs_model_destroy(model);
	}
}

/* Every pair of layouts follows every other one somewhere. */
static void test_layouts(void **state)
{
	const char *names[] = { "dlrm", "ncf", "candle" };
	unsigned int seed = 7;

	(void)state;
	for (int round = 0; round < 30; round++) {
		struct ocs_model *model = model_of(names[round % 3]);
		struct ocs_model_machine machine = machine_of(5, 4);
		struct ocs_model_strategy *s = ocs_model_strategy_create(model, true);

		for (int i = 0; i < model->noperators; i++) {
			s->layout[i] = (unsigned char)(rand_r(&seed) % 4);
			s->server[i] = rand_r(&seed) % 5;
		}
		graph_compare(model, &machine, s);
		ocs_model_strategy_destroy(s);
		ocs_model_destroy(model);
	}
}

/* Computation of a graph: what the operators take, on each server and device. */
static void test_computation(void **state)
{
	struct ocs_model *model = model_of("dlrm");
	struct ocs_model_machine machine = machine_of(16, 4);
	struct ocs_model_strategy *s = tables_place(model, 7);
	struct ocs_error err = { 0 };
	struct ocs_netsim_graph *graph = ocs_netsim_model_graph(model, &machine, s, &err);
	double *wanted = ocs_model_server_ms(model, &machine, s), sums[16] = { 0 };

	(void)state;
	for (int i = 0; i < graph->ntasks; i++)
		if (graph->tasks[i].kind == OCS_NETSIM_COMPUTE)
			sums[graph->tasks[i].server] += graph->tasks[i].ms;
	for (int i = 0; i < 16; i++)
		near(sums[i], wanted[i]);
	free(wanted);
	ocs_netsim_graph_destroy(graph);
	ocs_model_strategy_destroy(s);
	ocs_model_destroy(model);
	/* three times the FLOPs of the forward pass, over all GPUs */
	model = model_of("llama-3-8b");
	machine = machine_of(8, 8);
	machine.scale_up = 1e30;
	s = ocs_model_strategy_default(model, &machine, &err);
	graph = ocs_netsim_model_graph(model, &machine, s, &err);
	memset(sums, 0, sizeof(sums));
	for (int i = 0; i < graph->ntasks; i++)
		if (graph->tasks[i].kind == OCS_NETSIM_COMPUTE)
			sums[0] += graph->tasks[i].ms * 8;
	assert_true(sums[0] >= 3 * ocs_model_flops(model) * 512 / 17.6e9);
	assert_true(sums[0] < 1.02 * 3 * ocs_model_flops(model) * 512 / 17.6e9);
	ocs_netsim_graph_destroy(graph);
	ocs_model_strategy_destroy(s);
	ocs_model_destroy(model);
}

/* The planner takes every demand. */
static void test_demand(void **state)
{
	const char *names[] = { "vgg16", "dlrm", "mixtral-8x7b", "llama-3-70b" };

	(void)state;
	for (int i = 0; i < 4; i++) {
		struct ocs_model *model = model_of(names[i]);
		struct ocs_model_machine machine = machine_of(16, 8);
		struct ocs_error err = { 0 };
		struct ocs_model_strategy *s =
			i == 1 ? tables_place(model, 16) :
				 ocs_model_strategy_default(model, &machine, &err);
		struct ocs_model_traffic *traffic = ocs_model_traffic_create(model, &machine, s);
		struct ocs_text text = { 0 };

		ocs_model_demand_write(traffic, &text);
		if (ocs_plan_demand_check(text.data, 16, &err))
			fail_msg("%s: %s", names[i], err.text);
		assert_int_equal(!strstr(text.data, "\"mp\""), i == 0);
		ocs_text_free(&text);
		ocs_model_traffic_destroy(traffic);
		ocs_model_strategy_destroy(s);
		ocs_model_destroy(model);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_candle),	    cmocka_unit_test(test_dlrm),
		cmocka_unit_test(test_llama),	    cmocka_unit_test(test_mixtral),
		cmocka_unit_test(test_graphs),	    cmocka_unit_test(test_layouts),
		cmocka_unit_test(test_computation), cmocka_unit_test(test_demand),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
