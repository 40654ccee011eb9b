/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Layouts that are the same on every server: the time of a step is a sum over operators and
 * over pairs of an operator and the one that reads it, and these pairs form a tree.  Labels
 * (time, memory) that no other one beats in both are kept at each operator. */

#include <stdlib.h>
#include <string.h>

#include "src/optimise/internal.h"
#include "src/util/text.h"

#define LAYOUTS 3 /* replicated, sharded, split */
#define OPERATORS_MAX 512
#define LABELS_MAX 128 /* of an operator and a layout; then memory is rounded */

struct label {
	double ms, memory;
	unsigned char *layouts; /* of all operators decided so far */
};

struct front {
	struct label *labels;
	int count;
};

struct chain {
	const struct ocs_optimise_request *request;
	const struct ocs_model_strategy *strategy;
	struct ocs_optimise_rates rates;
	double samples;
	bool free_memory; /* everything fits: the fastest label is enough */
	struct front (*fronts)[LAYOUTS];
};

static int label_compare(const void *a, const void *b)
{
	const struct label *x = a, *y = b;

	if (x->memory != y->memory)
		return x->memory < y->memory ? -1 : 1;
	return x->ms < y->ms ? -1 : x->ms > y->ms;
}

/* Drops what another label beats; of too many every so many stay. */
static void front_prune(struct front *front, bool free_memory, double limit)
{
	int kept = 0, step;
	double best = 1e300;

	qsort(front->labels, (size_t)front->count, sizeof(struct label), label_compare);
	for (int i = 0; i < front->count; i++) {
		struct label *label = &front->labels[i];

		if (label->ms >= best || (label->memory > limit && kept)) {
			free(label->layouts);
			continue;
		}
		best = label->ms;
		if (free_memory && kept) {
			free(front->labels[0].layouts);
			kept = 0;
		}
		front->labels[kept++] = *label;
	}
	front->count = kept;
	step = kept / LABELS_MAX + 1;
	for (int i = kept = 0; i < front->count; i++) {
		if (i % step == 0 || i == front->count - 1)
			front->labels[kept++] = front->labels[i];
		else
			free(front->labels[i].layouts);
	}
	front->count = kept;
}

static void front_free(struct front *front)
{
	for (int i = 0; i < front->count; i++)
		free(front->labels[i].layouts);
	free(front->labels);
	memset(front, 0, sizeof(*front));
}

/* Of one operator alone. */
static struct label operator_label(const struct chain *chain, int op, int layout)
{
	const struct ocs_optimise_request *request = chain->request;
	const struct ocs_model_operator *operator= & request->model->operators[op];
	const struct ocs_model_machine *machine = &request->machine;
	double bytes = operator->parameters * request->model->precision;
	double share = chain->samples / machine->servers / machine->gpus;
	double kept = operator->kept * share * request->model->precision;
	double state = ocs_model_state_bytes(request->model, operator->parameters);
	struct label label = { 0 };

	label.ms = ocs_model_operator_ms(request->model, machine, op, share, true) +
		   ocs_model_operator_ms(request->model, machine, op, share, false);
	if (layout == OCS_MODEL_REPLICATED) {
		label.ms += bytes * chain->rates.allreduce;
		label.memory = state + kept;
	} else if (layout == OCS_MODEL_SHARDED) {
		label.ms += 3 * bytes * chain->rates.allgather;
		label.memory = state / machine->servers + kept;
	} else {
		label.memory = (state / machine->servers + kept) / machine->gpus;
	}
	if (layout != OCS_MODEL_SPLIT && machine->gpus > 1)
		label.ms +=
			2 * bytes * (machine->gpus - 1) / machine->gpus / machine->scale_up * 1e3;
	return label;
}

/* What the output of OP costs on its way. */
static double edge_ms(const struct chain *chain, int op, int from, int to)
{
	const struct ocs_model *model = chain->request->model;
	double bytes = model->operators[op].outputs * chain->samples * model->precision;

	if (to == OCS_MODEL_SPLIT)
		return 2 * bytes * chain->rates.allgather;
	return from == OCS_MODEL_SPLIT ? bytes * chain->rates.alltoall : 0;
}

/* FRONT, and all ways to get what CHILD makes. */
static void front_join(const struct chain *chain, struct front *front, int child, int layout,
		       double limit)
{
	struct front made = { 0 };
	int size = 0;

	for (int from = 0; from < LAYOUTS; from++)
		size += chain->fronts[child][from].count * front->count;
	made.labels = ocs_calloc((size_t)size, sizeof(struct label));
	for (int from = 0; from < LAYOUTS; from++) {
		double edge = edge_ms(chain, child, from, layout);

		for (int i = 0; i < chain->fronts[child][from].count; i++)
			for (int k = 0; k < front->count; k++) {
				const struct label *below = &chain->fronts[child][from].labels[i];
				const struct label *here = &front->labels[k];
				struct label *label = &made.labels[made.count++];
				int n = chain->request->model->noperators;

				label->ms = here->ms + below->ms + edge;
				label->memory = here->memory + below->memory;
				label->layouts = ocs_calloc((size_t)n, 1);
				for (int o = 0; o < n; o++)
					label->layouts[o] = here->layouts[o] | below->layouts[o];
			}
	}
	front_free(front);
	*front = made;
	front_prune(front, chain->free_memory, limit);
}

static void operator_solve(struct chain *chain, int op, double limit)
{
	const struct ocs_model *model = chain->request->model;

	for (int layout = 0; layout < LAYOUTS; layout++) {
		struct front *front = &chain->fronts[op][layout];

		front->labels = ocs_calloc(1, sizeof(struct label));
		front->labels[0] = operator_label(chain, op, layout);
		front->labels[0].layouts = ocs_calloc((size_t)model->noperators, 1);
		front->labels[0].layouts[op] = (unsigned char)layout;
		front->count = 1;
		for (int child = 0; child < op; child++)
			if (model->operators[child].consumer == op &&
			    chain->strategy->layout[child] != OCS_MODEL_PLACED)
				front_join(chain, front, child, layout, limit);
	}
	for (int child = 0; child < op; child++)
		for (int l = 0; l < LAYOUTS && model->operators[child].consumer == op; l++)
			front_free(&chain->fronts[child][l]);
}

/* Whether what is not placed is one tree: no placed operator reads from it. */
static bool chain_whole(const struct ocs_model *model, const struct ocs_model_strategy *strategy)
{
	for (int o = 0; o < model->noperators; o++) {
		int consumer = model->operators[o].consumer;
		bool placed = strategy->layout[o] == OCS_MODEL_PLACED;

		if (!placed && consumer >= 0 && strategy->layout[consumer] == OCS_MODEL_PLACED)
			return false;
		if (placed && consumer < 0)
			return false;
	}
	return true;
}

/* Takes the best label of the last operator OP. */
static void label_take(struct chain *chain, int op, double limit,
		       struct ocs_model_strategy *strategy)
{
	const struct label *best = NULL;

	for (int layout = 0; layout < LAYOUTS; layout++)
		for (int i = 0; i < chain->fronts[op][layout].count; i++) {
			const struct label *label = &chain->fronts[op][layout].labels[i];

			if (label->memory <= limit && (!best || label->ms < best->ms))
				best = label;
		}
	for (int o = 0; best && o < chain->request->model->noperators; o++)
		if (strategy->layout[o] != OCS_MODEL_PLACED)
			strategy->layout[o] = best->layouts[o];
	for (int layout = 0; layout < LAYOUTS; layout++)
		front_free(&chain->fronts[op][layout]);
}

void ocs_optimise_chain(struct ocs_optimise_search *search, struct ocs_model_strategy *strategy)
{
	const struct ocs_optimise_request *request = search->request;
	const struct ocs_model *model = request->model;
	struct chain chain = { .request = request, .strategy = strategy };
	struct ocs_model_strategy *probe;
	double limit = request->machine.memory, placed;

	if (model->noperators > OPERATORS_MAX || !chain_whole(model, strategy))
		return;
	chain.samples = ocs_model_samples(model, request->machine.servers * request->machine.gpus);
	ocs_optimise_network_rates(search->network, &chain.rates);
	/* what is placed takes its memory whatever the others do */
	probe = ocs_model_strategy_copy(model, strategy);
	for (int o = 0; o < model->noperators; o++)
		if (probe->layout[o] != OCS_MODEL_PLACED)
			probe->layout[o] = OCS_MODEL_REPLICATED;
	placed = ocs_model_memory(model, &request->machine, probe);
	chain.free_memory = placed <= limit;
	for (int o = 0; o < model->noperators; o++)
		if (probe->layout[o] != OCS_MODEL_PLACED)
			placed -= operator_label(&chain, o, OCS_MODEL_REPLICATED).memory;
	ocs_model_strategy_destroy(probe);
	limit -= placed > 0 ? placed : 0;
	chain.fronts = ocs_calloc((size_t)model->noperators, sizeof(*chain.fronts));
	for (int op = 0; op < model->noperators; op++) {
		if (strategy->layout[op] != OCS_MODEL_PLACED)
			operator_solve(&chain, op, limit);
	}
	label_take(&chain, model->noperators - 1, limit, strategy);
	free(chain.fronts);
}
