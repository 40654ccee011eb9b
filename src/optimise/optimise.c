/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/optimise/internal.h"
#include "src/plan/plan.h"
#include "src/util/error.h"
#include "src/util/text.h"

#define ROUNDS_MAX 6
#define DESCENT_BUDGET 400
#define WALK_BUDGET 4000
#define DIMENSIONS_BUDGET 100000

unsigned ocs_optimise_random(unsigned *seed, unsigned below)
{
	/* xorshift: the same on every machine */
	*seed ^= *seed << 13;
	*seed ^= *seed >> 17;
	*seed ^= *seed << 5;
	return *seed % below;
}

struct ocs_model_strategy *ocs_optimise_start(const struct ocs_optimise_request *request,
					      bool tables_placed)
{
	const struct ocs_model *model = request->model;
	struct ocs_model_strategy *s = ocs_model_strategy_create(model, true);
	int tables = 0, k = 0;

	for (int i = 0; i < model->noperators; i++)
		tables += model->operators[i].kind == OCS_MODEL_EMBEDDING;
	for (int i = 0; i < model->noperators && tables_placed; i++) {
		if (model->operators[i].kind != OCS_MODEL_EMBEDDING)
			continue;
		s->layout[i] = OCS_MODEL_PLACED;
		s->server[i] = (int)((long)k++ * request->machine.servers / tables) %
			       request->machine.servers;
	}
	return s;
}

double ocs_optimise_cost(struct ocs_optimise_search *search,
			 const struct ocs_model_strategy *strategy)
{
	const struct ocs_optimise_request *request = search->request;
	double memory = ocs_model_memory(request->model, &request->machine, strategy);
	struct ocs_optimise_time time;

	search->evaluations++;
	if (memory > request->machine.memory)
		return OCS_OPTIMISE_OVERFULL * (memory / request->machine.memory);
	ocs_optimise_network_estimate(search->network, strategy, &time);
	return time.total;
}

bool ocs_optimise_keep(struct ocs_optimise_search *search,
		       const struct ocs_model_strategy *strategy, double cost)
{
	if (search->best && cost >= search->best_cost)
		return false;
	ocs_model_strategy_destroy(search->best);
	search->best = ocs_model_strategy_copy(search->request->model, strategy);
	search->best_cost = cost;
	return true;
}

struct ocs_plan *ocs_optimise_plan(const struct ocs_optimise_request *request,
				   const struct ocs_model_strategy *strategy, struct ocs_error *err)
{
	struct ocs_model_traffic *traffic =
		ocs_model_traffic_create(request->model, &request->machine, strategy);
	struct ocs_plan_request plan = { .servers = request->machine.servers,
					 .degree = request->degree,
					 .best = true,
					 .routes = true };
	struct ocs_text demand = { 0 };
	struct ocs_plan *made;

	ocs_model_demand_write(traffic, &demand);
	plan.demand = demand.data;
	made = ocs_plan_make(&plan, err);
	ocs_text_free(&demand);
	ocs_model_traffic_destroy(traffic);
	return made;
}

int ocs_optimise_topology(struct ocs_optimise_search *search,
			  const struct ocs_model_strategy *strategy, struct ocs_error *err)
{
	struct ocs_plan *plan = ocs_optimise_plan(search->request, strategy, err);

	if (!plan)
		return -1;
	ocs_optimise_network_destroy(search->network);
	ocs_plan_destroy(search->plan);
	search->plan = plan;
	search->network = ocs_optimise_network_create(search->request, plan);
	return 0;
}

static int method_run(struct ocs_optimise_search *search, bool by_operators, struct ocs_error *err)
{
	if (!by_operators) {
		ocs_optimise_dimensions(search);
		return 0;
	}
	switch (search->request->method) {
	case OCS_OPTIMISE_MCMC:
		return ocs_optimise_walk(search, err);
	case OCS_OPTIMISE_EXHAUSTIVE:
		return ocs_optimise_enumerate(search, err);
	default:
		ocs_optimise_descend(search);
		return 0;
	}
}

static void search_close(struct ocs_optimise_search *search)
{
	ocs_optimise_network_destroy(search->network);
	ocs_plan_destroy(search->plan);
	ocs_model_strategy_destroy(search->best);
}

/* Whether the file of the model divides it by dimensions, or operator by operator. */
static bool model_by_operators(const struct ocs_model *model)
{
	return model->step_batch == 0;
}

static long budget_default(const struct ocs_optimise_request *request)
{
	if (request->budget)
		return request->budget;
	if (!model_by_operators(request->model) || request->method == OCS_OPTIMISE_EXHAUSTIVE)
		return DIMENSIONS_BUDGET;
	return request->method == OCS_OPTIMISE_MCMC ? WALK_BUDGET : DESCENT_BUDGET;
}

static int memory_fail(const struct ocs_optimise_request *request, struct ocs_error *err)
{
	return ocs_error_set(err, OCS_NEVER,
			     "optimise: %s does not fit %g GB per GPU on %d servers of %d "
			     "GPUs in any way that was tried; give more servers or memory",
			     request->model->name, request->machine.memory / 1e9,
			     request->machine.servers, request->machine.gpus);
}

/* The best strategy on an ideal switch. */
static int switch_search(const struct ocs_optimise_request *request, long budget,
			 struct ocs_optimise_search *search, struct ocs_error *err)
{
	bool by_operators = model_by_operators(request->model);

	memset(search, 0, sizeof(*search));
	search->request = request;
	search->seed = request->seed ? request->seed : 1;
	search->budget = budget;
	search->network = ocs_optimise_network_create(request, NULL);
	if (method_run(search, by_operators, err))
		return -1;
	if (!search->best && !search->evaluations)
		return ocs_error_set(
			err, OCS_NEVER,
			"optimise: the batch of %s does not divide over %d servers of %d GPUs in any way; give fewer servers or a larger batch",
			request->model->name, request->machine.servers, request->machine.gpus);
	if (!search->best || search->best_cost >= OCS_OPTIMISE_OVERFULL)
		return memory_fail(request, err);
	return 0;
}

static void result_keep(const struct ocs_optimise_request *request,
			const struct ocs_model_strategy *strategy, struct ocs_plan *plan,
			struct ocs_optimise_result *result)
{
	ocs_model_strategy_destroy(result->strategy);
	ocs_plan_destroy(result->plan);
	result->strategy = ocs_model_strategy_copy(request->model, strategy);
	result->plan = plan;
	ocs_optimise_estimate(request, strategy, plan, &result->time);
	result->memory = ocs_model_memory(request->model, &request->machine, strategy);
}

/* Strategy for the topology, topology for the strategy, until neither helps. */
static int alternate_search(const struct ocs_optimise_request *request,
			    struct ocs_optimise_search *search, struct ocs_optimise_result *result,
			    long budget, struct ocs_error *err)
{
	bool by_operators = model_by_operators(request->model);

	for (int round = 0; round < ROUNDS_MAX; round++) {
		struct ocs_model_strategy *base = ocs_model_strategy_copy(
			request->model, round ? search->best : result->strategy);
		struct ocs_plan *plan;
		struct ocs_optimise_time time;

		plan = ocs_optimise_plan(request, base, err);
		if (!plan) {
			ocs_model_strategy_destroy(base);
			return -1;
		}
		ocs_optimise_estimate(request, base, plan, &time);
		result->evaluations++;
		if (round == 0)
			result->sequential_ms = time.total;
		if (round > 0 && time.total >= result->time.total * (1 - 1e-9)) {
			ocs_plan_destroy(plan);
			ocs_model_strategy_destroy(base);
			return 0;
		}
		result_keep(request, base, plan, result);
		result->rounds = round + 1;
		ocs_optimise_network_destroy(search->network);
		search->network = ocs_optimise_network_create(request, plan);
		ocs_model_strategy_destroy(search->best);
		search->best = base;
		search->best_cost = time.total;
		search->evaluations = 0;
		/* half of what is left, but for the estimate of the round after */
		search->budget = budget;
		if (by_operators && request->method == OCS_OPTIMISE_DESCENT)
			search->budget = (budget - result->evaluations) / 2;
		if (method_run(search, by_operators, err))
			return -1;
		result->evaluations += search->evaluations;
	}
	return 0;
}

/* Data parallelism alone, on an ideal switch. */
static void start_measure(const struct ocs_optimise_request *request,
			  struct ocs_optimise_result *result)
{
	struct ocs_model_strategy *start = ocs_optimise_start(request, false);
	struct ocs_optimise_time time;

	ocs_optimise_estimate(request, start, NULL, &time);
	result->start_ms = time.total;
	result->start_fits = ocs_model_memory(request->model, &request->machine, start) <=
			     request->machine.memory;
	ocs_model_strategy_destroy(start);
}

/* The published search: from data parallelism on a topology for it, once. */
static int walk_search(const struct ocs_optimise_request *request,
		       struct ocs_optimise_search *search, struct ocs_optimise_result *result,
		       long budget, struct ocs_error *err)
{
	struct ocs_model_strategy *start = ocs_optimise_start(request, false);
	struct ocs_plan *plan;
	int rc;

	memset(search, 0, sizeof(*search));
	search->request = request;
	search->seed = request->seed ? request->seed : 1;
	search->budget = budget;
	rc = ocs_optimise_topology(search, start, err);
	ocs_model_strategy_destroy(start);
	if (rc || ocs_optimise_walk(search, err))
		return -1;
	result->evaluations = search->evaluations;
	result->rounds = 1;
	if (search->best_cost >= OCS_OPTIMISE_OVERFULL)
		return memory_fail(request, err);
	plan = ocs_optimise_plan(request, search->best, err);
	if (!plan)
		return -1;
	result_keep(request, search->best, plan, result);
	result->sequential_ms = result->time.total;
	return 0;
}

int ocs_optimise(const struct ocs_optimise_request *request, struct ocs_optimise_result *result,
		 struct ocs_error *err)
{
	struct ocs_optimise_search search;
	bool by_operators = model_by_operators(request->model);
	bool walks = by_operators && request->method == OCS_OPTIMISE_MCMC && !request->switched;
	long budget = budget_default(request), first = budget;
	struct ocs_optimise_request alone = *request;
	int rc;

	memset(result, 0, sizeof(*result));
	/* one server has no circuits */
	alone.switched |= request->machine.servers == 1;
	request = &alone;
	walks = walks && !request->switched;
	/* a third of the evaluations finds the start of the alternation */
	if (by_operators && request->method == OCS_OPTIMISE_DESCENT && !request->switched)
		first = budget / 3 + 1;
	if (walks) {
		rc = walk_search(request, &search, result, budget, err);
	} else {
		rc = switch_search(request, first, &search, err);
		result->evaluations = search.evaluations;
		if (!rc) {
			result_keep(request, search.best, NULL, result);
			result->sequential_ms = result->time.total;
		}
		if (!rc && !request->switched)
			rc = alternate_search(request, &search, result, budget, err);
	}
	if (!rc && by_operators)
		start_measure(request, result);
	search_close(&search);
	if (rc)
		ocs_optimise_result_free(result);
	return rc;
}

void ocs_optimise_result_free(struct ocs_optimise_result *result)
{
	ocs_model_strategy_destroy(result->strategy);
	ocs_plan_destroy(result->plan);
	memset(result, 0, sizeof(*result));
}

char *ocs_optimise_shape(const struct ocs_optimise_request *request,
			 const struct ocs_model_strategy *strategy)
{
	const char *names[] = { "pp", "dp", "cp", "tp" };
	int extents[] = { strategy->pp, strategy->dp, strategy->cp, strategy->tp };
	struct ocs_text text = { 0 };

	if (strategy->layout)
		return ocs_asprintf("dp:%d", request->machine.servers);
	for (int i = 0; i < 4; i++)
		if (extents[i] > 1)
			ocs_text_add(&text, "%s%s:%d", text.length ? "," : "", names[i],
				     extents[i]);
	if (!text.length)
		ocs_text_add(&text, "dp:1");
	return ocs_text_take(&text);
}
