/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* A step by operators: each one forward and backward on its servers, transfers where the next
 * one runs elsewhere, and gradients reduced as soon as they are there. */

#include <stdlib.h>

#include "src/model/strategy.h"
#include "src/netsim/graph.h"
#include "src/netsim/model_internal.h"
#include "src/util/text.h"

struct builder {
	struct ocs_netsim_graph *graph;
	const struct ocs_model *model;
	const struct ocs_model_machine *machine;
	const struct ocs_model_strategy *s;
	double samples;
	int n;	       /* servers */
	int *tasks[2]; /* forward, backward: [operator][server], -1: not there */
	int everyone;  /* the group of all servers */
	int labels[2], dp, mp;
};

static int task_of(const struct builder *b, int back, int op, int server)
{
	return b->tasks[back][(size_t)op * b->n + server];
}

static bool op_placed(const struct builder *b, int op)
{
	return b->s->layout[op] == OCS_MODEL_PLACED;
}

static void computes_add(struct builder *b)
{
	for (int back = 0; back < 2; back++) {
		b->tasks[back] = ocs_calloc((size_t)b->model->noperators * b->n, sizeof(int));
		for (int i = 0; i < b->model->noperators; i++) {
			double share = b->samples / b->machine->gpus / (op_placed(b, i) ? 1 : b->n);
			double ms = ocs_model_operator_ms(b->model, b->machine, i, share, !back);

			for (int s = 0; s < b->n; s++) {
				int *task = &b->tasks[back][(size_t)i * b->n + s];

				*task = -1;
				if (op_placed(b, i) && b->s->server[i] != s)
					continue;
				*task = ocs_netsim_compute_add(b->graph, s, 0, ms);
				b->graph->tasks[*task].label = (short)b->labels[back];
			}
		}
	}
}

/* BACK: data goes from the consumer to the operator. */
static void pair_depend(struct builder *b, int back, int op, int consumer, int from, int to)
{
	if (back)
		ocs_netsim_depend(b->graph, task_of(b, 1, consumer, to), task_of(b, 1, op, from));
	else
		ocs_netsim_depend(b->graph, task_of(b, 0, op, from), task_of(b, 0, consumer, to));
}

/* A collective of all servers between an operator and its consumer, neither of them placed. */
static void edge_gather(struct builder *b, int back, int op, int consumer,
			enum ocs_netsim_kind kind, double bytes)
{
	int task = ocs_netsim_collective_add(b->graph, kind, b->everyone, bytes);
	int before = back ? consumer : op, after = back ? op : consumer;

	b->graph->tasks[task].label = (short)b->mp;
	for (int s = 0; s < b->n; s++) {
		ocs_netsim_depend(b->graph, task_of(b, back, before, s), task);
		ocs_netsim_depend(b->graph, task, task_of(b, back, after, s));
	}
}

/* From the servers of an operator that is not placed, or to those of such a consumer. */
static void edge_uniform(struct builder *b, int back, int op, int consumer, double bytes)
{
	int from = b->s->layout[op], to = b->s->layout[consumer];

	if (to == OCS_MODEL_SPLIT)
		edge_gather(b, back, op, consumer,
			    back ? OCS_NETSIM_REDUCE_SCATTER : OCS_NETSIM_ALLGATHER, bytes);
	else if (from == OCS_MODEL_SPLIT)
		edge_gather(b, back, op, consumer, OCS_NETSIM_ALLTOALL, bytes / b->n);
	else
		for (int s = 0; s < b->n; s++)
			pair_depend(b, back, op, consumer, s, s);
}

/* One transfer for all operators on server FROM that CONSUMER reads on server TO. */
static void placed_transfer(struct builder *b, int back, const int *ops, int nops, int consumer,
			    int from, int to, double bytes)
{
	int task;

	if (from == to) {
		for (int i = 0; i < nops; i++)
			pair_depend(b, back, ops[i], consumer, from, to);
		return;
	}
	task = back ? ocs_netsim_transfer_add(b->graph, to, from, bytes) :
		      ocs_netsim_transfer_add(b->graph, from, to, bytes);
	b->graph->tasks[task].label = (short)b->mp;
	for (int i = 0; i < nops; i++) {
		int own = task_of(b, back, ops[i], from);

		ocs_netsim_depend(b->graph, back ? task : own, back ? own : task);
	}
	ocs_netsim_depend(b->graph, back ? task_of(b, 1, consumer, to) : task,
			  back ? task : task_of(b, 0, consumer, to));
}

/* Everything that CONSUMER reads from placed operators, server by server. */
static void consumer_placed(struct builder *b, int back, int consumer)
{
	int *ops = ocs_calloc((size_t)b->model->noperators, sizeof(int));

	for (int from = 0; from < b->n; from++) {
		double bytes = 0;
		int nops = 0;

		for (int i = 0; i < consumer; i++) {
			if (b->model->operators[i].consumer != consumer || !op_placed(b, i) ||
			    b->s->server[i] != from)
				continue;
			ops[nops++] = i;
			bytes += b->model->operators[i].outputs * b->samples * b->model->precision;
		}
		if (!nops)
			continue;
		if (op_placed(b, consumer)) {
			placed_transfer(b, back, ops, nops, consumer, from, b->s->server[consumer],
					bytes);
			continue;
		}
		if (b->s->layout[consumer] != OCS_MODEL_SPLIT)
			bytes /= b->n;
		for (int to = 0; to < b->n; to++)
			placed_transfer(b, back, ops, nops, consumer, from, to, bytes);
	}
	free(ops);
}

/* To a placed consumer from all servers of OP. */
static void consumer_collect(struct builder *b, int back, int op, int consumer, double bytes)
{
	for (int s = 0; s < b->n; s++)
		placed_transfer(b, back, &op, 1, consumer, s, b->s->server[consumer], bytes / b->n);
}

static void edges_add(struct builder *b, int back)
{
	int last = b->model->noperators - 1;

	for (int i = 0; i <= last; i++) {
		int consumer = b->model->operators[i].consumer;
		double bytes = b->model->operators[i].outputs * b->samples * b->model->precision;

		consumer_placed(b, back, i);
		if (consumer < 0 || op_placed(b, i))
			continue;
		if (op_placed(b, consumer))
			consumer_collect(b, back, i, consumer, bytes);
		else
			edge_uniform(b, back, i, consumer, bytes);
	}
	for (int s = 0; s < b->n && !back; s++)
		if (task_of(b, 0, last, s) >= 0)
			ocs_netsim_depend(b->graph, task_of(b, 0, last, s), task_of(b, 1, last, s));
}

/* The weights of a sharded operator, gathered while the operator before the last one runs. */
static void weights_gather(struct builder *b, int back, int op, int ahead, double bytes)
{
	int task = ocs_netsim_collective_add(b->graph, OCS_NETSIM_ALLGATHER, b->everyone, bytes);

	b->graph->tasks[task].label = (short)b->dp;
	for (int s = 0; s < b->n; s++) {
		if (ahead >= 0 && ahead < b->model->noperators && !op_placed(b, ahead))
			ocs_netsim_depend(b->graph, task_of(b, back, ahead, s), task);
		ocs_netsim_depend(b->graph, task, task_of(b, back, op, s));
	}
}

static void gradients_add(struct builder *b)
{
	for (int i = 0; i < b->model->noperators; i++) {
		double bytes = b->model->operators[i].parameters * b->model->precision;
		bool sharded = b->s->layout[i] == OCS_MODEL_SHARDED;
		int task;

		if (bytes <= 0 || (!sharded && b->s->layout[i] != OCS_MODEL_REPLICATED))
			continue;
		if (sharded) {
			weights_gather(b, 0, i, i - 2, bytes);
			weights_gather(b, 1, i, i + 2, bytes);
		}
		task = ocs_netsim_collective_add(
			b->graph, sharded ? OCS_NETSIM_REDUCE_SCATTER : OCS_NETSIM_ALLREDUCE,
			b->everyone, bytes);
		b->graph->tasks[task].label = (short)b->dp;
		/* the GPUs of a server reduce first */
		if (b->machine->gpus > 1)
			b->graph->tasks[task].ms = bytes * (b->machine->gpus - 1) /
						   b->machine->gpus / b->machine->scale_up * 1e3;
		for (int s = 0; s < b->n; s++)
			ocs_netsim_depend(b->graph, task_of(b, 1, i, s), task);
	}
}

void ocs_netsim_model_operators(struct ocs_netsim_graph *graph, const struct ocs_model *model,
				const struct ocs_model_machine *machine,
				const struct ocs_model_strategy *strategy)
{
	struct builder b = { .graph = graph, .model = model, .machine = machine, .s = strategy };
	int *all = ocs_calloc((size_t)machine->servers, sizeof(int));

	for (int s = 0; s < machine->servers; s++)
		all[s] = s;
	b.n = machine->servers;
	b.samples = ocs_model_samples(model, machine->servers * machine->gpus);
	b.everyone = ocs_netsim_group_add(graph, all, b.n);
	b.labels[0] = ocs_netsim_label(graph, "forward");
	b.labels[1] = ocs_netsim_label(graph, "backward");
	b.dp = ocs_netsim_label(graph, ocs_model_dimension_name(OCS_MODEL_DP));
	b.mp = ocs_netsim_label(graph, ocs_model_dimension_name(OCS_MODEL_MP));
	computes_add(&b);
	edges_add(&b, 0);
	edges_add(&b, 1);
	gradients_add(&b);
	free(b.tasks[0]);
	free(b.tasks[1]);
	free(all);
}
