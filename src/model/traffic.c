/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* What servers send each other in a step.  GPUs of one server that are members of one group
 * reduce among themselves first, so a group of GPUs becomes a group of servers. */

#include <stdlib.h>
#include <string.h>

#include "src/model/strategy.h"
#include "src/util/text.h"

static const char *const dimension_names[OCS_MODEL_DIMENSIONS] = { "dp", "tp", "cp",
								   "ep", "pp", "mp" };

const char *ocs_model_dimension_name(enum ocs_model_dimension dimension)
{
	return dimension_names[dimension];
}

/* Adds a flow, or its bytes to one with the same members and times. */
static void flow_add(struct ocs_model_traffic *traffic, enum ocs_model_dimension dimension,
		     enum ocs_model_collective kind, int stage, const int *members, int count,
		     double bytes, double times)
{
	struct ocs_model_flow *flow;

	if (bytes <= 0 || times <= 0 || count < 2)
		return;
	/* groups of neighbouring ranks come one after another */
	for (int i = traffic->nflows - 1; i >= 0 && i >= traffic->nflows - 64; i--) {
		flow = &traffic->flows[i];
		if (flow->dimension == dimension && flow->kind == kind && flow->count == count &&
		    flow->times == times && flow->stage == stage &&
		    !memcmp(flow->members, members, (size_t)count * sizeof(int))) {
			flow->bytes += bytes;
			return;
		}
	}
	if (traffic->nflows == traffic->size) {
		traffic->size = traffic->size ? 2 * traffic->size : 16;
		traffic->flows = ocs_realloc(traffic->flows, (size_t)traffic->size * sizeof(*flow));
	}
	flow = &traffic->flows[traffic->nflows++];
	*flow = (struct ocs_model_flow){ dimension, kind, NULL, count, stage, bytes, times };
	flow->members = ocs_calloc((size_t)count, sizeof(int));
	memcpy(flow->members, members, (size_t)count * sizeof(int));
}

/* Ranks FIRST, FIRST + STRIDE ... (COUNT of them) do something with BYTES each, TIMES a step. */
static void ranks_flow(struct ocs_model_traffic *traffic, const struct ocs_model_machine *machine,
		       enum ocs_model_dimension dimension, enum ocs_model_collective kind,
		       int stage, const int *ranks, int count, double bytes, double times)
{
	int *members = ocs_calloc((size_t)count, sizeof(int)), n = 0;

	for (int i = 0; i < count; i++) {
		int server = ranks[i] / machine->gpus, k = 0;

		while (k < n && members[k] != server)
			k++;
		if (k == n)
			members[n++] = server;
	}
	if (n < count) {
		double factor = kind == OCS_MODEL_ALLREDUCE ? 2 : 1;

		traffic->inside[dimension] += factor * bytes * times * (count - n);
	}
	/* in an all-to-all each rank has data of its own for every other one */
	if (kind == OCS_MODEL_ALLTOALL)
		bytes *= (double)count / n;
	flow_add(traffic, dimension, kind, stage, members, n, bytes, times);
	free(members);
}

/* Numbers of the ranks, see struct ocs_model_strategy. */
static int rank_of(const struct ocs_model_strategy *s, int pp, int dp, int cp, int tp)
{
	return ((pp * s->dp + dp) * s->cp + cp) * s->tp + tp;
}

/* Sums over a stage that decide what is sent. */
struct stage {
	double dense, experts; /* parameters */
	double reduced;	       /* elements per sample that tp reduces in the forward pass */
	double exchanged;      /* elements per sample of keys and values that cp exchanges */
	double dispatched;     /* elements per sample that go to experts, each way */
	double outputs;	       /* elements per sample for the next stage */
	int attentions, moes;
};

static struct stage stage_sum(const struct ocs_model *model, int pp, int number)
{
	int end = ocs_model_stage_first(model, pp, number + 1);
	struct stage stage = { 0 };

	for (int i = ocs_model_stage_first(model, pp, number); i < end; i++) {
		const struct ocs_model_operator *op = &model->operators[i];

		stage.dense += op->parameters - op->expert_parameters;
		stage.experts += op->expert_parameters;
		stage.outputs = op->outputs;
		stage.dispatched += op->dispatched;
		stage.moes += op->kind == OCS_MODEL_EXPERTS;
		if (op->kind == OCS_MODEL_ATTENTION) {
			stage.attentions++;
			stage.exchanged += op->exchanged;
		}
		if (op->kind == OCS_MODEL_ATTENTION || op->kind == OCS_MODEL_GATED ||
		    op->kind == OCS_MODEL_EXPERTS)
			stage.reduced += op->outputs;
	}
	return stage;
}

/* What happens inside a replica's stage: tensor, context and expert parallelism. */
static void stage_flows(struct ocs_model_traffic *traffic, const struct ocs_model *model,
			const struct ocs_model_machine *machine, const struct ocs_model_strategy *s,
			const struct stage *stage, int pp, int *ranks)
{
	double micro = ocs_model_microbatches(model, machine, s);
	double bytes = (double)s->microbatch * model->precision / s->cp;
	int replicas = s->dp * s->cp;

	for (int dp = 0; dp < s->dp; dp++) {
		for (int cp = 0; cp < s->cp && s->tp > 1; cp++) {
			for (int tp = 0; tp < s->tp; tp++)
				ranks[tp] = rank_of(s, pp, dp, cp, tp);
			ranks_flow(traffic, machine, OCS_MODEL_TP, OCS_MODEL_ALLREDUCE, pp, ranks,
				   s->tp, stage->reduced * bytes, 2 * micro);
		}
		for (int tp = 0; tp < s->tp && s->cp > 1; tp++) {
			for (int cp = 0; cp < s->cp; cp++)
				ranks[cp] = rank_of(s, pp, dp, cp, tp);
			/* gathered in both passes, gradients scattered in the backward pass */
			ranks_flow(traffic, machine, OCS_MODEL_CP, OCS_MODEL_ALLGATHER, pp, ranks,
				   s->cp, stage->exchanged * bytes * s->cp / s->tp, 3 * micro);
		}
	}
	for (int group = 0; group < replicas / s->ep && s->ep > 1; group++) {
		for (int tp = 0; tp < s->tp; tp++) {
			for (int e = 0; e < s->ep; e++)
				ranks[e] = (pp * replicas + group * s->ep + e) * s->tp + tp;
			/* dispatch and combine, in both passes */
			ranks_flow(traffic, machine, OCS_MODEL_EP, OCS_MODEL_ALLTOALL, pp, ranks,
				   s->ep, stage->dispatched * bytes / s->tp, 4 * micro);
		}
	}
}

/* Gradients: of dense weights among all replicas, of experts among those that have them too. */
static void gradient_flows(struct ocs_model_traffic *traffic, const struct ocs_model *model,
			   const struct ocs_model_machine *machine,
			   const struct ocs_model_strategy *s, const struct stage *stage, int pp,
			   int *ranks)
{
	int replicas = s->dp * s->cp;

	for (int tp = 0; tp < s->tp; tp++) {
		for (int r = 0; r < replicas; r++)
			ranks[r] = (pp * replicas + r) * s->tp + tp;
		ranks_flow(traffic, machine, OCS_MODEL_DP, OCS_MODEL_ALLREDUCE, pp, ranks, replicas,
			   stage->dense / s->tp * model->precision, 1);
		for (int e = 0; e < s->ep && stage->experts > 0; e++) {
			for (int r = e; r < replicas; r += s->ep)
				ranks[r / s->ep] = (pp * replicas + r) * s->tp + tp;
			ranks_flow(traffic, machine, OCS_MODEL_DP, OCS_MODEL_ALLREDUCE, pp, ranks,
				   replicas / s->ep,
				   stage->experts / s->tp / s->ep * model->precision, 1);
		}
	}
}

static void dimensions_traffic(struct ocs_model_traffic *traffic, const struct ocs_model *model,
			       const struct ocs_model_machine *machine,
			       const struct ocs_model_strategy *s)
{
	int gpus = machine->servers * machine->gpus;
	double micro = ocs_model_microbatches(model, machine, s);
	int *ranks = ocs_calloc((size_t)gpus, sizeof(int));

	for (int pp = 0; pp < s->pp; pp++) {
		struct stage stage = stage_sum(model, s->pp, pp);

		stage_flows(traffic, model, machine, s, &stage, pp, ranks);
		gradient_flows(traffic, model, machine, s, &stage, pp, ranks);
		/* each rank of a stage sends its part to the same rank of the next */
		for (int r = 0; r < gpus / s->pp && pp + 1 < s->pp; r++) {
			double bytes =
				stage.outputs * s->microbatch * model->precision / s->cp / s->tp;
			int pair[2] = { pp * (gpus / s->pp) + r, (pp + 1) * (gpus / s->pp) + r };
			int back[2] = { pair[1], pair[0] };

			ranks_flow(traffic, machine, OCS_MODEL_PP, OCS_MODEL_SEND, pp, pair, 2,
				   bytes, micro);
			ranks_flow(traffic, machine, OCS_MODEL_PP, OCS_MODEL_SEND, pp + 1, back, 2,
				   bytes, micro);
		}
	}
	free(ranks);
}

/* From every server to every other one: BYTES in all are divided evenly. */
static void matrix_spread(struct ocs_model_traffic *traffic, int from, int to, double bytes)
{
	int n = traffic->servers;
	double *m = traffic->matrix;

	if (from >= 0 && to >= 0) {
		m[from * n + to] += from == to ? 0 : bytes;
		return;
	}
	for (int s = 0; s < n; s++) {
		if (from >= 0 && s != from)
			m[from * n + s] += bytes / n;
		else if (to >= 0 && s != to)
			m[s * n + to] += bytes / n;
		for (int t = 0; t < n && from < 0 && to < 0; t++)
			m[s * n + t] += s == t ? 0 : bytes / n / n;
	}
}

/* What one operator's output costs on its way to the next. */
static void edge_traffic(struct ocs_model_traffic *traffic, const struct ocs_model_strategy *s,
			 int before, int after, double bytes, const int *all)
{
	int from = s->layout[before], to = s->layout[after];
	int where = from == OCS_MODEL_PLACED ? s->server[before] : -1;

	if (to == OCS_MODEL_SPLIT) {
		/* all need the whole; gradients come back reduced */
		if (from == OCS_MODEL_PLACED)
			for (int t = 0; t < traffic->servers; t++)
				matrix_spread(traffic, where, t, bytes);
		else
			flow_add(traffic, OCS_MODEL_MP, OCS_MODEL_ALLGATHER, 0, all,
				 traffic->servers, bytes, 2);
		return;
	}
	if (from == OCS_MODEL_PLACED || to == OCS_MODEL_PLACED)
		matrix_spread(traffic, where, to == OCS_MODEL_PLACED ? s->server[after] : -1,
			      bytes);
	else if (from == OCS_MODEL_SPLIT)
		matrix_spread(traffic, -1, -1, bytes);
}

static void operators_traffic(struct ocs_model_traffic *traffic, const struct ocs_model *model,
			      const struct ocs_model_machine *machine,
			      const struct ocs_model_strategy *s)
{
	double samples = ocs_model_samples(model, machine->servers * machine->gpus);
	double replicated = 0, sharded = 0;
	int *all = ocs_calloc((size_t)machine->servers, sizeof(int));

	for (int i = 0; i < machine->servers; i++)
		all[i] = i;
	traffic->matrix =
		ocs_calloc((size_t)machine->servers * (size_t)machine->servers, sizeof(double));
	for (int i = 0; i < model->noperators; i++) {
		const struct ocs_model_operator *op = &model->operators[i];

		if (s->layout[i] == OCS_MODEL_REPLICATED)
			replicated += op->parameters * model->precision;
		if (s->layout[i] == OCS_MODEL_SHARDED)
			sharded += op->parameters * model->precision;
		if (op->consumer >= 0)
			edge_traffic(traffic, s, i, op->consumer,
				     op->outputs * samples * model->precision, all);
	}
	flow_add(traffic, OCS_MODEL_DP, OCS_MODEL_ALLREDUCE, 0, all, machine->servers, replicated,
		 1);
	/* weights are gathered in both passes, gradients scattered once */
	flow_add(traffic, OCS_MODEL_DP, OCS_MODEL_ALLGATHER, 0, all, machine->servers, sharded, 3);
	if (machine->gpus > 1)
		traffic->inside[OCS_MODEL_DP] =
			2 * (replicated + sharded) * (machine->gpus - 1) * machine->servers;
	free(all);
}

struct ocs_model_traffic *ocs_model_traffic_create(const struct ocs_model *model,
						   const struct ocs_model_machine *machine,
						   const struct ocs_model_strategy *strategy)
{
	struct ocs_model_traffic *traffic = ocs_calloc(1, sizeof(*traffic));

	traffic->servers = machine->servers;
	if (strategy->layout)
		operators_traffic(traffic, model, machine, strategy);
	else
		dimensions_traffic(traffic, model, machine, strategy);
	return traffic;
}

void ocs_model_traffic_destroy(struct ocs_model_traffic *traffic)
{
	if (!traffic)
		return;
	for (int i = 0; i < traffic->nflows; i++)
		free(traffic->flows[i].members);
	free(traffic->flows);
	free(traffic->matrix);
	free(traffic);
}

double ocs_model_traffic_bytes(const struct ocs_model_traffic *traffic,
			       enum ocs_model_dimension dimension)
{
	double sum = 0;

	for (int i = 0; i < traffic->nflows; i++) {
		const struct ocs_model_flow *flow = &traffic->flows[i];
		double k = flow->count;

		if (flow->dimension != dimension)
			continue;
		if (flow->kind == OCS_MODEL_SEND)
			sum += flow->bytes * flow->times;
		else if (flow->kind == OCS_MODEL_ALLREDUCE)
			sum += 2 * (k - 1) * flow->bytes * flow->times;
		else
			sum += (k - 1) * flow->bytes * flow->times;
	}
	for (int i = 0; dimension == OCS_MODEL_MP && traffic->matrix &&
			i < traffic->servers * traffic->servers;
	     i++)
		sum += 2 * traffic->matrix[i];
	return sum;
}

/* Pairs: all-to-alls, sends and the matrix in both passes. */
static double *pairs_sum(const struct ocs_model_traffic *traffic, bool *any)
{
	int n = traffic->servers;
	double *pairs = ocs_calloc((size_t)n * (size_t)n, sizeof(double));

	*any = false;
	for (int i = 0; i < traffic->nflows; i++) {
		const struct ocs_model_flow *flow = &traffic->flows[i];
		double bytes = flow->bytes * flow->times;

		if (flow->kind == OCS_MODEL_SEND)
			pairs[flow->members[0] * n + flow->members[1]] += bytes;
		if (flow->kind == OCS_MODEL_ALLTOALL)
			for (int a = 0; a < flow->count; a++)
				for (int b = 0; b < flow->count; b++)
					if (a != b)
						pairs[flow->members[a] * n + flow->members[b]] +=
							bytes / flow->count;
	}
	for (int a = 0; a < n; a++)
		for (int b = 0; b < n; b++) {
			if (traffic->matrix)
				pairs[a * n + b] +=
					traffic->matrix[a * n + b] + traffic->matrix[b * n + a];
			*any = *any || pairs[a * n + b] >= 1;
		}
	return pairs;
}

void ocs_model_demand_write(const struct ocs_model_traffic *traffic, struct ocs_text *text)
{
	int n = traffic->servers, groups = 0;
	bool any;
	double *pairs = pairs_sum(traffic, &any);

	ocs_text_add(text, "{\"allreduce\":[");
	for (int i = 0; i < traffic->nflows; i++) {
		const struct ocs_model_flow *flow = &traffic->flows[i];
		/* a ring carries half as much for a gather as for an AllReduce */
		double half = flow->kind == OCS_MODEL_ALLGATHER ? 0.5 : 1;

		if (flow->kind != OCS_MODEL_ALLREDUCE && flow->kind != OCS_MODEL_ALLGATHER)
			continue;
		ocs_text_add(text, "%s{\"members\":[", groups++ ? "," : "");
		for (int m = 0; m < flow->count; m++)
			ocs_text_add(text, "%s%d", m ? "," : "", flow->members[m]);
		ocs_text_add(text, "],\"bytes\":%.0f}", half * flow->bytes * flow->times);
	}
	if (!groups && !any) {
		ocs_text_add(text, "{\"members\":[");
		for (int s = 0; s < n; s++)
			ocs_text_add(text, "%s%d", s ? "," : "", s);
		ocs_text_add(text, "],\"bytes\":1}");
	}
	ocs_text_add(text, "]");
	if (any) {
		ocs_text_add(text, ",\"mp\":[");
		for (int a = 0; a < n; a++) {
			ocs_text_add(text, "%s[", a ? "," : "");
			for (int b = 0; b < n; b++)
				ocs_text_add(text, "%s%.0f", b ? "," : "", pairs[a * n + b]);
			ocs_text_add(text, "]");
		}
		ocs_text_add(text, "]");
	}
	ocs_text_add(text, "}\n");
	free(pairs);
}
