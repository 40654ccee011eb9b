/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* A step by dimensions: micro-batches in a pipeline, one forward, one backward. */

#include <stdlib.h>

#include "src/model/strategy.h"
#include "src/netsim/graph.h"
#include "src/netsim/model_internal.h"
#include "src/util/text.h"

/* Tasks of one micro-batch in one pass of one server of a stage. */
struct pass {
	int first, last; /* computation before and after what is exchanged */
};

struct builder {
	struct ocs_netsim_graph *graph;
	const struct ocs_model *model;
	const struct ocs_model_machine *machine;
	const struct ocs_model_strategy *s;
	struct ocs_model_traffic *traffic;
	int ranks;	     /* of a stage */
	int width;	     /* servers of a stage */
	int micro;	     /* micro-batches */
	double *ms;	     /* per stage: forward pass of a micro-batch */
	double *sent;	     /* per stage: bytes of a server for the next stage */
	int *groups;	     /* per flow of the traffic: its group in the graph */
	struct pass *passes; /* [stage][server of the stage][micro-batch][direction] */
	int labels[OCS_MODEL_DIMENSIONS], forward, backward;
};

static struct pass *pass_at(const struct builder *b, int stage, int server, int micro, int back)
{
	return &b->passes[((((size_t)stage * b->width + server) * b->micro) + micro) * 2 + back];
}

static int server_of(const struct builder *b, int stage, int k)
{
	return stage * b->ranks / b->machine->gpus + k;
}

/* Stages that share a server have devices of their own. */
static int device_of(const struct builder *b, int stage)
{
	return b->ranks < b->machine->gpus ? stage * b->ranks % b->machine->gpus / b->ranks : 0;
}

/* What a micro-batch computes in a stage, and what its GPUs exchange inside a server. */
static void stages_measure(struct builder *b)
{
	const struct ocs_model_strategy *s = b->s;
	double inside = b->traffic->inside[OCS_MODEL_TP] + b->traffic->inside[OCS_MODEL_CP] +
			b->traffic->inside[OCS_MODEL_EP];
	int gpus = b->machine->servers * b->machine->gpus;

	inside = inside / gpus / b->micro / 2;
	for (int stage = 0; stage < s->pp; stage++) {
		int end = ocs_model_stage_first(b->model, s->pp, stage + 1);
		double samples = (double)s->microbatch / s->cp / s->tp;

		for (int i = ocs_model_stage_first(b->model, s->pp, stage); i < end; i++) {
			b->ms[stage] +=
				ocs_model_operator_ms(b->model, b->machine, i, samples, true);
			b->sent[stage] = b->model->operators[i].outputs;
		}
		b->ms[stage] += inside / b->machine->scale_up * 1e3;
		b->sent[stage] *= samples * b->model->precision *
				  (b->ranks < b->machine->gpus ? b->ranks : b->machine->gpus);
	}
}

static bool flow_inside(const struct ocs_model_flow *flow)
{
	return flow->dimension == OCS_MODEL_TP || flow->dimension == OCS_MODEL_CP ||
	       flow->dimension == OCS_MODEL_EP;
}

static enum ocs_netsim_kind flow_kind(const struct ocs_model_flow *flow)
{
	return flow->kind == OCS_MODEL_ALLREDUCE ? OCS_NETSIM_ALLREDUCE :
	       flow->kind == OCS_MODEL_ALLGATHER ? OCS_NETSIM_ALLGATHER :
						   OCS_NETSIM_ALLTOALL;
}

static int flow_group(struct builder *b, int index)
{
	const struct ocs_model_flow *flow = &b->traffic->flows[index];

	if (b->groups[index] < 0)
		b->groups[index] = ocs_netsim_group_add(b->graph, flow->members, flow->count);
	return b->groups[index];
}

/* The two halves of every pass, and between them what the layers of the stage exchange. */
static void passes_add(struct builder *b, int stage, int micro, int back)
{
	bool exchanges = false;

	for (int f = 0; f < b->traffic->nflows; f++)
		exchanges |=
			flow_inside(&b->traffic->flows[f]) && b->traffic->flows[f].stage == stage;
	for (int k = 0; k < b->width; k++) {
		struct pass *pass = pass_at(b, stage, k, micro, back);
		double ms = b->ms[stage] * (back ? 2 : 1) / (exchanges ? 2 : 1);
		int server = server_of(b, stage, k), device = device_of(b, stage);

		pass->first = pass->last = ocs_netsim_compute_add(b->graph, server, device, ms);
		b->graph->tasks[pass->first].label = (short)(back ? b->backward : b->forward);
		if (!exchanges)
			continue;
		pass->last = ocs_netsim_compute_add(b->graph, server, device, ms);
		b->graph->tasks[pass->last].label = (short)(back ? b->backward : b->forward);
		ocs_netsim_depend(b->graph, pass->first, pass->last);
	}
	for (int f = 0; f < b->traffic->nflows && exchanges; f++) {
		const struct ocs_model_flow *flow = &b->traffic->flows[f];
		double times = flow->times / b->micro;
		int task;

		if (!flow_inside(flow) || flow->stage != stage)
			continue;
		/* of three gathers two are in the backward pass; of others one half */
		times = flow->dimension == OCS_MODEL_CP ? (back ? 2 : 1) : times / 2;
		task = ocs_netsim_collective_add(b->graph, flow_kind(flow), flow_group(b, f),
						 flow->bytes * times);
		b->graph->tasks[task].label = (short)b->labels[flow->dimension];
		for (int m = 0; m < flow->count; m++) {
			int k = flow->members[m] - server_of(b, stage, 0);
			const struct pass *pass = pass_at(b, stage, k, micro, back);

			ocs_netsim_depend(b->graph, pass->first, task);
			ocs_netsim_depend(b->graph, task, pass->last);
		}
	}
}

/* Data of micro-batch MICRO from stage FROM to stage TO. */
static void stage_send(struct builder *b, int from, int to, int micro, int back)
{
	for (int k = 0; k < b->width; k++) {
		int before = pass_at(b, from, k, micro, back)->last;
		int after = pass_at(b, to, k, micro, back)->first;
		int src = server_of(b, from, k), dst = server_of(b, to, k);

		if (src != dst) {
			int task = ocs_netsim_transfer_add(b->graph, src, dst,
							   b->sent[from < to ? from : to]);

			b->graph->tasks[task].label = (short)b->labels[OCS_MODEL_PP];
			ocs_netsim_depend(b->graph, before, task);
			before = task;
		}
		ocs_netsim_depend(b->graph, before, after);
	}
}

/* One forward, one backward, after as many forward passes as stages follow. */
static void stage_order(struct builder *b, int stage)
{
	int warm = b->s->pp - stage - 1 < b->micro ? b->s->pp - stage - 1 : b->micro;

	for (int k = 0; k < b->width; k++) {
		int forward = 0, back = 0, before = -1;

		while (back < b->micro) {
			bool ahead = forward < b->micro && forward - back <= warm;
			const struct pass *pass =
				pass_at(b, stage, k, ahead ? forward++ : back++, !ahead);

			if (before >= 0)
				ocs_netsim_depend(b->graph, before, pass->first);
			before = pass->last;
		}
	}
}

static void gradients_add(struct builder *b)
{
	for (int f = 0; f < b->traffic->nflows; f++) {
		const struct ocs_model_flow *flow = &b->traffic->flows[f];
		int task;

		if (flow->dimension != OCS_MODEL_DP)
			continue;
		task = ocs_netsim_collective_add(b->graph, flow_kind(flow), flow_group(b, f),
						 flow->bytes * flow->times);
		b->graph->tasks[task].label = (short)b->labels[OCS_MODEL_DP];
		for (int m = 0; m < flow->count; m++) {
			int k = flow->members[m] - server_of(b, flow->stage, 0);

			ocs_netsim_depend(b->graph,
					  pass_at(b, flow->stage, k, b->micro - 1, 1)->last, task);
		}
	}
}

static void tasks_add(struct builder *b)
{
	int pp = b->s->pp;

	for (int stage = 0; stage < pp; stage++)
		for (int m = 0; m < b->micro; m++) {
			passes_add(b, stage, m, 0);
			passes_add(b, stage, m, 1);
		}
	for (int m = 0; m < b->micro; m++)
		for (int stage = 0; stage < pp; stage++) {
			if (stage + 1 < pp) {
				stage_send(b, stage, stage + 1, m, 0);
				stage_send(b, stage + 1, stage, m, 1);
			}
		}
	for (int k = 0; k < b->width; k++)
		for (int m = 0; m < b->micro; m++)
			ocs_netsim_depend(b->graph, pass_at(b, pp - 1, k, m, 0)->last,
					  pass_at(b, pp - 1, k, m, 1)->first);
	for (int stage = 0; stage < pp; stage++)
		stage_order(b, stage);
	gradients_add(b);
}

void ocs_netsim_model_stages(struct ocs_netsim_graph *graph, const struct ocs_model *model,
			     const struct ocs_model_machine *machine,
			     const struct ocs_model_strategy *strategy)
{
	struct builder b = { .graph = graph, .model = model, .machine = machine, .s = strategy };

	b.ranks = strategy->dp * strategy->cp * strategy->tp;
	b.width = b.ranks > machine->gpus ? b.ranks / machine->gpus : 1;
	b.micro = ocs_model_microbatches(model, machine, strategy);
	b.traffic = ocs_model_traffic_create(model, machine, strategy);
	b.ms = ocs_calloc((size_t)strategy->pp, sizeof(double));
	b.sent = ocs_calloc((size_t)strategy->pp, sizeof(double));
	b.groups = ocs_calloc((size_t)b.traffic->nflows + 1, sizeof(int));
	b.passes = ocs_calloc((size_t)strategy->pp * b.width * b.micro * 2, sizeof(struct pass));
	for (int f = 0; f < b.traffic->nflows; f++)
		b.groups[f] = -1;
	for (int d = 0; d < OCS_MODEL_DIMENSIONS; d++)
		b.labels[d] = ocs_netsim_label(graph, ocs_model_dimension_name(d));
	b.forward = ocs_netsim_label(graph, "forward");
	b.backward = ocs_netsim_label(graph, "backward");
	stages_measure(&b);
	tasks_add(&b);
	free(b.passes);
	free(b.groups);
	free(b.sent);
	free(b.ms);
	ocs_model_traffic_destroy(b.traffic);
}
