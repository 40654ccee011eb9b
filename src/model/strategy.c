/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/model/strategy.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/util/error.h"
#include "src/util/text.h"

/* By bytes of an element: an A100 whose dense layers of 16384 x 16384 take 7.79 ms in FP32; what
 * trainings in BF16 commonly reach. */
static const struct {
	int bytes, gpus;
	double tflops, memory, memory_rate, scale_up;
} machines[] = {
	{ 4, 4, 17.6, 40e9, 1.5e12, 50e9 },
	{ 2, 8, 200, 80e9, 2e12, 450e9 },
	{ 1, 8, 400, 80e9, 3.3e12, 450e9 },
};

void ocs_model_machine_default(const struct ocs_model *model, int servers,
			       struct ocs_model_machine *machine)
{
	int i = 0;

	while (machines[i].bytes != model->precision)
		i++;
	*machine = (struct ocs_model_machine){ .servers = servers,
					       .gpus = machines[i].gpus,
					       .tflops = machines[i].tflops,
					       .memory = machines[i].memory,
					       .memory_rate = machines[i].memory_rate,
					       .scale_up = machines[i].scale_up };
}

struct ocs_model_strategy *ocs_model_strategy_create(const struct ocs_model *model, bool placed)
{
	struct ocs_model_strategy *strategy = ocs_calloc(1, sizeof(*strategy));

	strategy->dp = strategy->pp = strategy->tp = strategy->cp = strategy->ep = 1;
	strategy->microbatch = 1;
	if (placed) {
		strategy->layout = ocs_calloc((size_t)model->noperators, 1);
		strategy->server = ocs_calloc((size_t)model->noperators, sizeof(int));
	}
	return strategy;
}

struct ocs_model_strategy *ocs_model_strategy_copy(const struct ocs_model *model,
						   const struct ocs_model_strategy *strategy)
{
	struct ocs_model_strategy *copy = ocs_model_strategy_create(model, strategy->layout);
	unsigned char *layout = copy->layout;
	int *server = copy->server;

	*copy = *strategy;
	copy->layout = layout;
	copy->server = server;
	if (layout) {
		memcpy(layout, strategy->layout, (size_t)model->noperators);
		memcpy(server, strategy->server, (size_t)model->noperators * sizeof(int));
	}
	return copy;
}

void ocs_model_strategy_destroy(struct ocs_model_strategy *strategy)
{
	if (!strategy)
		return;
	free(strategy->layout);
	free(strategy->server);
	free(strategy);
}

static int layers_count(const struct ocs_model *model)
{
	int layers = 0;

	for (int i = 0; i < model->noperators; i++)
		if (model->operators[i].layer > layers)
			layers = model->operators[i].layer;
	return layers;
}

/* Embeddings on servers of their own, then weights of all others spread, if need be. */
static void operators_fit(const struct ocs_model *model, const struct ocs_model_machine *machine,
			  struct ocs_model_strategy *strategy)
{
	int k = 0;

	for (int i = 0; i < model->noperators; i++) {
		if (model->operators[i].kind != OCS_MODEL_EMBEDDING ||
		    (!k && ocs_model_memory(model, machine, strategy) <= machine->memory))
			continue;
		strategy->layout[i] = OCS_MODEL_PLACED;
		strategy->server[i] = k++ % machine->servers;
	}
	if (ocs_model_memory(model, machine, strategy) <= machine->memory)
		return;
	for (int i = 0; i < model->noperators; i++)
		if (strategy->layout[i] == OCS_MODEL_REPLICATED)
			strategy->layout[i] = OCS_MODEL_SHARDED;
}

struct ocs_model_strategy *ocs_model_strategy_default(const struct ocs_model *model,
						      const struct ocs_model_machine *machine,
						      struct ocs_error *err)
{
	int gpus = machine->servers * machine->gpus;
	int rest = model->pp * model->tp * model->cp;
	bool placed = rest == 1 && model->ep == 1 && model->dp == 1;
	struct ocs_model_strategy *strategy = ocs_model_strategy_create(model, placed);

	if (placed) {
		operators_fit(model, machine, strategy);
		return strategy;
	}
	strategy->pp = model->pp;
	strategy->tp = model->tp;
	strategy->cp = model->cp;
	strategy->ep = model->ep;
	strategy->dp = model->dp > 1 ? model->dp : gpus / rest > 0 ? gpus / rest : 1;
	strategy->microbatch = model->microbatch;
	if (!ocs_model_strategy_check(model, machine, strategy, err))
		return strategy;
	ocs_model_strategy_destroy(strategy);
	return NULL;
}

int ocs_model_strategy_check(const struct ocs_model *model, const struct ocs_model_machine *machine,
			     const struct ocs_model_strategy *strategy, struct ocs_error *err)
{
	int gpus = machine->servers * machine->gpus, layers = layers_count(model);
	double samples = ocs_model_samples(model, gpus);

	if (strategy->layout)
		return 0;
	if ((long)strategy->dp * strategy->pp * strategy->tp * strategy->cp != gpus)
		return ocs_error_set(
			err, OCS_NEVER,
			"%s: dp %d x pp %d x tp %d x cp %d is not %d servers x %d GPUs",
			model->name, strategy->dp, strategy->pp, strategy->tp, strategy->cp,
			machine->servers, machine->gpus);
	if (strategy->pp > 1 && strategy->pp > layers)
		return ocs_error_set(err, OCS_NEVER, "%s: pp %d is more than its %d layers",
				     model->name, strategy->pp, layers);
	if (strategy->dp * strategy->cp % strategy->ep)
		return ocs_error_set(err, OCS_NEVER, "%s: ep %d does not divide dp %d x cp %d",
				     model->name, strategy->ep, strategy->dp, strategy->cp);
	if (model->sequence % strategy->cp)
		return ocs_error_set(err, OCS_NEVER, "%s: cp %d does not divide %d tokens",
				     model->name, strategy->cp, model->sequence);
	if (fmod(samples, (double)strategy->dp * strategy->microbatch) != 0)
		return ocs_error_set(err, OCS_NEVER,
				     "%s: %.0f samples of a step are not a multiple of dp %d x "
				     "micro-batch %d",
				     model->name, samples, strategy->dp, strategy->microbatch);
	return 0;
}

int ocs_model_microbatches(const struct ocs_model *model, const struct ocs_model_machine *machine,
			   const struct ocs_model_strategy *strategy)
{
	if (strategy->layout)
		return 1;
	return (int)(ocs_model_samples(model, machine->servers * machine->gpus) / strategy->dp /
		     strategy->microbatch);
}

int ocs_model_stage_first(const struct ocs_model *model, int pp, int stage)
{
	int layers = layers_count(model), first;

	if (stage <= 0)
		return 0;
	if (stage >= pp)
		return model->noperators;
	/* the first layer of the stage: earlier stages have one more where it does not divide */
	first = stage * (layers / pp) + (stage < layers % pp ? stage : layers % pp) + 1;
	for (int i = 0; i < model->noperators; i++)
		if (model->operators[i].layer == first)
			return i;
	return model->noperators;
}

/* By dimensions: the fullest stage; as many micro-batches are in flight as stages follow. */
static double stages_memory(const struct ocs_model *model, const struct ocs_model_strategy *s)
{
	double most = 0;

	for (int stage = 0; stage < s->pp; stage++) {
		int end = ocs_model_stage_first(model, s->pp, stage + 1);
		double weights = 0, kept = 0;

		for (int i = ocs_model_stage_first(model, s->pp, stage); i < end; i++) {
			const struct ocs_model_operator *op = &model->operators[i];

			weights += (op->parameters - op->expert_parameters) / s->tp;
			weights += op->expert_parameters / s->tp / s->ep;
			kept += op->kept * s->microbatch * model->precision / s->tp / s->cp;
		}
		kept = ocs_model_state_bytes(model, weights) + kept * (s->pp - stage);
		most = kept > most ? kept : most;
	}
	return most;
}

double ocs_model_memory(const struct ocs_model *model, const struct ocs_model_machine *machine,
			const struct ocs_model_strategy *strategy)
{
	double samples = ocs_model_samples(model, machine->servers * machine->gpus);
	double share = samples / machine->servers / machine->gpus, every = 0, most = 0;
	double *placed;

	if (!strategy->layout)
		return stages_memory(model, strategy);
	placed = ocs_calloc((size_t)machine->servers, sizeof(double));
	for (int i = 0; i < model->noperators; i++) {
		const struct ocs_model_operator *op = &model->operators[i];
		double state = ocs_model_state_bytes(model, op->parameters);
		double kept = op->kept * model->precision;

		switch (strategy->layout[i]) {
		case OCS_MODEL_REPLICATED:
			every += state + kept * share;
			break;
		case OCS_MODEL_SHARDED:
			every += state / machine->servers + kept * share;
			break;
		case OCS_MODEL_SPLIT:
			every += (state / machine->servers + kept * share) / machine->gpus;
			break;
		default:
			/* on one of the GPUs; they are taken in turn */
			placed[strategy->server[i]] += (state + kept * samples) / machine->gpus;
		}
	}
	for (int s = 0; s < machine->servers; s++)
		most = placed[s] > most ? placed[s] : most;
	free(placed);
	return every + most;
}

double ocs_model_operator_ms(const struct ocs_model *model, const struct ocs_model_machine *machine,
			     int operator_index, double samples, bool forward)
{
	const struct ocs_model_operator *op = &model->operators[operator_index];
	const double *measured = forward ? machine->forward_ms : machine->backward_ms;
	double compute, memory;

	/* A table of measured times is for the batch of one GPU, an embedding for the whole. */
	if (measured && measured[operator_index] > 0) {
		double batch = op->kind == OCS_MODEL_EMBEDDING ?
				       ocs_model_samples(model, machine->servers * machine->gpus) :
				       model->batch;

		return batch > 0 ? measured[operator_index] * samples / batch : 0;
	}
	compute = op->flops * samples / (machine->tflops * 1e9);
	memory = 2 * op->outputs * samples * model->precision / machine->memory_rate * 1e3;
	return (compute > memory ? compute : memory) * (forward ? 1 : 2);
}

double *ocs_model_server_ms(const struct ocs_model *model, const struct ocs_model_machine *machine,
			    const struct ocs_model_strategy *strategy)
{
	double samples = ocs_model_samples(model, machine->servers * machine->gpus), every = 0;
	double *ms = ocs_calloc((size_t)machine->servers, sizeof(double));

	for (int i = 0; i < model->noperators; i++) {
		/* each GPU has its share of the batch, of the outputs, or of what is placed there */
		bool placed = strategy->layout[i] == OCS_MODEL_PLACED;
		double share = samples / machine->gpus / (placed ? 1 : machine->servers);
		double both = ocs_model_operator_ms(model, machine, i, share, true) +
			      ocs_model_operator_ms(model, machine, i, share, false);

		if (placed)
			ms[strategy->server[i]] += both;
		else
			every += both;
	}
	for (int s = 0; s < machine->servers; s++)
		ms[s] += every;
	return ms;
}
