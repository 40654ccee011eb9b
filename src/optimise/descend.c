/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Coordinate descent: all operators of one kind together, then single ones, embeddings to
 * the server that has least; starts anew from other places while evaluations are left. */

#include <stdlib.h>
#include <string.h>

#include "src/optimise/internal.h"
#include "src/util/text.h"

static bool budget_left(const struct ocs_optimise_search *search)
{
	return search->evaluations < search->budget;
}

static bool same_kind(const struct ocs_model_operator *a, const struct ocs_model_operator *b)
{
	return a->kind == b->kind && a->parameters == b->parameters && a->flops == b->flops &&
	       a->outputs == b->outputs;
}

/* The class of each operator: the index of the first of its kind.  The caller frees. */
static int *classes_find(const struct ocs_model *model)
{
	int *classes = ocs_calloc((size_t)model->noperators, sizeof(int));

	for (int i = 0; i < model->noperators; i++)
		while (!same_kind(&model->operators[classes[i]], &model->operators[i]))
			classes[i]++;
	return classes;
}

/* Takes CANDIDATE for STRATEGY if it is faster. */
static bool candidate_try(struct ocs_optimise_search *search, struct ocs_model_strategy *strategy,
			  const struct ocs_model_strategy *candidate, double *cost)
{
	size_t n = (size_t)search->request->model->noperators;
	double other;

	if (!memcmp(strategy->layout, candidate->layout, n) &&
	    !memcmp(strategy->server, candidate->server, n * sizeof(int)))
		return false;
	if (!budget_left(search))
		return false;
	other = ocs_optimise_cost(search, candidate);
	if (other >= *cost * (1 - 1e-9))
		return false;
	*cost = other;
	memcpy(strategy->layout, candidate->layout, n);
	memcpy(strategy->server, candidate->server, n * sizeof(int));
	return true;
}

static void candidate_reset(const struct ocs_model *model, struct ocs_model_strategy *candidate,
			    const struct ocs_model_strategy *strategy)
{
	memcpy(candidate->layout, strategy->layout, (size_t)model->noperators);
	memcpy(candidate->server, strategy->server, (size_t)model->noperators * sizeof(int));
}

/* All operators of a class in the same way, placed ones dealt out over the servers. */
static bool classes_pass(struct ocs_optimise_search *search, struct ocs_model_strategy *strategy,
			 const int *classes, double *cost)
{
	const struct ocs_model *model = search->request->model;
	struct ocs_model_strategy *candidate = ocs_model_strategy_copy(model, strategy);
	int servers = search->request->machine.servers;
	bool better = false;

	for (int c = 0; c < model->noperators; c++) {
		int count = 0;

		for (int i = c; i < model->noperators; i++)
			count += classes[i] == c;
		if (classes[c] != c)
			continue;
		for (int layout = 0; layout <= OCS_MODEL_PLACED; layout++) {
			int k = 0;

			candidate_reset(model, candidate, strategy);
			for (int i = c; i < model->noperators; i++) {
				if (classes[i] != c)
					continue;
				candidate->layout[i] = (unsigned char)layout;
				candidate->server[i] = (int)((long)k++ * servers / count);
			}
			better |= candidate_try(search, strategy, candidate, cost);
		}
	}
	ocs_model_strategy_destroy(candidate);
	return better;
}

/* The server with the least to compute and to send of what is placed. */
static int server_idle(struct ocs_optimise_search *search,
		       const struct ocs_model_strategy *strategy, int except)
{
	const struct ocs_model *model = search->request->model;
	int servers = search->request->machine.servers, idle = 0;
	double *load = ocs_calloc((size_t)servers, sizeof(double));
	int turn = (int)ocs_optimise_random(&search->seed, (unsigned)servers);

	for (int i = 0; i < model->noperators; i++)
		if (strategy->layout[i] == OCS_MODEL_PLACED && i != except)
			load[strategy->server[i]] +=
				model->operators[i].outputs + model->operators[i].flops;
	for (int k = 0; k < servers; k++) {
		int s = (turn + k) % servers;

		if (k == 0 || load[s] < load[idle])
			idle = s;
	}
	free(load);
	return idle;
}

/* One operator after the other, in a random order. */
static bool single_pass(struct ocs_optimise_search *search, struct ocs_model_strategy *strategy,
			double *cost)
{
	const struct ocs_model *model = search->request->model;
	struct ocs_model_strategy *candidate = ocs_model_strategy_copy(model, strategy);
	int n = model->noperators, *order = ocs_calloc((size_t)n, sizeof(int));
	bool better = false;

	for (int i = 0; i < n; i++) {
		int k = (int)ocs_optimise_random(&search->seed, (unsigned)i + 1);

		order[i] = order[k];
		order[k] = i;
	}
	for (int i = 0; i < n && budget_left(search); i++) {
		int op = order[i], other = order[ocs_optimise_random(&search->seed, (unsigned)n)];

		for (int layout = 0; layout <= OCS_MODEL_PLACED; layout++) {
			candidate_reset(model, candidate, strategy);
			candidate->layout[op] = (unsigned char)layout;
			if (layout == OCS_MODEL_PLACED)
				candidate->server[op] = server_idle(search, strategy, op);
			better |= candidate_try(search, strategy, candidate, cost);
		}
		/* two that are placed change places */
		if (strategy->layout[op] != OCS_MODEL_PLACED ||
		    strategy->layout[other] != OCS_MODEL_PLACED)
			continue;
		candidate_reset(model, candidate, strategy);
		candidate->server[op] = strategy->server[other];
		candidate->server[other] = strategy->server[op];
		better |= candidate_try(search, strategy, candidate, cost);
	}
	free(order);
	ocs_model_strategy_destroy(candidate);
	return better;
}

/* Down from STRATEGY until nothing helps or the budget is spent. */
static void start_descend(struct ocs_optimise_search *search, struct ocs_model_strategy *strategy,
			  const int *classes)
{
	const struct ocs_model *model = search->request->model;
	struct ocs_model_strategy *solved = ocs_model_strategy_copy(model, strategy);
	double cost = ocs_optimise_cost(search, strategy); /* one is left at least */
	bool better = true;

	ocs_optimise_chain(search, solved);
	candidate_try(search, strategy, solved, &cost);
	while (better && budget_left(search)) {
		better = classes_pass(search, strategy, classes, &cost);
		better |= single_pass(search, strategy, &cost);
	}
	candidate_reset(model, solved, strategy);
	ocs_optimise_chain(search, solved);
	candidate_try(search, strategy, solved, &cost);
	ocs_optimise_keep(search, strategy, cost);
	ocs_model_strategy_destroy(solved);
}

void ocs_optimise_descend(struct ocs_optimise_search *search)
{
	const struct ocs_model *model = search->request->model;
	int servers = search->request->machine.servers, *classes = classes_find(model);
	long limit = search->budget;

	for (int start = 0; budget_left(search); start++) {
		bool known = start == 0 && search->best;
		struct ocs_model_strategy *strategy =
			known ? ocs_model_strategy_copy(model, search->best) :
				ocs_optimise_start(search->request, start != 2 && start % 2 == 0);

		/* the first starts leave something for the others */
		if (start < 3)
			search->budget = search->evaluations + (limit - search->evaluations) / 2;
		/* all on one server: nothing is sent */
		if (start == 2 && !known)
			memset(strategy->layout, OCS_MODEL_PLACED, (size_t)model->noperators);
		for (int i = 0; start >= 3 && i < model->noperators; i++)
			if (ocs_optimise_random(&search->seed, 3) == 0) {
				strategy->layout[i] =
					(unsigned char)ocs_optimise_random(&search->seed, 4);
				strategy->server[i] =
					(int)ocs_optimise_random(&search->seed, (unsigned)servers);
			}
		start_descend(search, strategy, classes);
		ocs_model_strategy_destroy(strategy);
		search->budget = limit;
		if (start > 64)
			break;
	}
	free(classes);
}
