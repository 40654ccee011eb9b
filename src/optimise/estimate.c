/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* How long a step takes: what servers compute, then what each dimension sends, one after the
 * other, each as long as its most loaded link takes. */

#include <stdlib.h>
#include <string.h>

#include "src/optimise/internal.h"
#include "src/plan/plan.h"
#include "src/util/text.h"

struct ocs_optimise_network {
	const struct ocs_optimise_request *request;
	const struct ocs_plan *plan;
	int n;
	int *circuits;			      /* n x n: how many join two servers, by direction */
	const struct ocs_plan_route **routes; /* n x n */
	double *load;			      /* n x n, or 2 x n of an ideal switch */
};

struct ocs_optimise_network *ocs_optimise_network_create(const struct ocs_optimise_request *request,
							 const struct ocs_plan *plan)
{
	struct ocs_optimise_network *network = ocs_calloc(1, sizeof(*network));
	size_t n = (size_t)request->machine.servers;

	network->request = request;
	network->plan = plan;
	network->n = (int)n;
	network->load = ocs_calloc(plan ? n * n : 2 * n, sizeof(double));
	if (!plan)
		return network;
	network->circuits = ocs_calloc(n * n, sizeof(int));
	network->routes = ocs_calloc(n * n, sizeof(*network->routes));
	for (int i = 0; i < plan->ncircuits; i++) {
		const struct ocs_plan_circuit *c = &plan->circuits[i];

		network->circuits[(size_t)c->a * n + (size_t)c->b]++;
		if (!plan->directed)
			network->circuits[(size_t)c->b * n + (size_t)c->a]++;
	}
	for (int i = 0; i < plan->nroutes; i++)
		network->routes[(size_t)plan->routes[i].src * n + (size_t)plan->routes[i].dst] =
			&plan->routes[i];
	return network;
}

void ocs_optimise_network_destroy(struct ocs_optimise_network *network)
{
	if (!network)
		return;
	free(network->circuits);
	free(network->routes);
	free(network->load);
	free(network);
}

static void load_clear(struct ocs_optimise_network *network)
{
	size_t n = (size_t)network->n;

	memset(network->load, 0, (network->plan ? n * n : 2 * n) * sizeof(double));
}

/* BYTES from one server to another. */
static void load_pair(struct ocs_optimise_network *network, int from, int to, double bytes)
{
	const struct ocs_plan_route *route;
	int n = network->n;

	if (from == to || bytes <= 0)
		return;
	if (!network->plan) {
		network->load[from] += bytes;
		network->load[n + to] += bytes;
		return;
	}
	route = network->routes[(size_t)from * n + to];
	for (int p = 0; route && p < route->npaths; p++)
		for (int hop = 0; hop + 1 < route->lengths[p]; hop++)
			network->load[(size_t)route->paths[p][hop] * n +
				      route->paths[p][hop + 1]] += bytes * route->weights[p];
}

static bool same_members(const struct ocs_plan_group *group, const int *members, int count)
{
	if (group->nmembers != count)
		return false;
	for (int i = 0; i < count; i++) {
		int k = 0;

		while (k < count && group->members[k] != members[i])
			k++;
		if (k == count)
			return false;
	}
	return true;
}

static const struct ocs_plan_group *group_find(const struct ocs_plan *plan, const int *members,
					       int count)
{
	for (int g = 0; plan && g < plan->ngroups; g++)
		if (plan->groups[g].nrings > 0 && same_members(&plan->groups[g], members, count))
			return &plan->groups[g];
	return NULL;
}

/* Every hop of a ring of COUNT carries BYTES; the rings of the plan share them, and duplex
 * ones go both ways. */
static void load_ring(struct ocs_optimise_network *network, const int *members, int count,
		      double bytes)
{
	const struct ocs_plan_group *group = group_find(network->plan, members, count);
	bool duplex = network->plan && !network->plan->directed;
	int n = network->n;

	if (!group) {
		for (int i = 0; i < count; i++) {
			int next = members[(i + 1) % count];

			load_pair(network, members[i], next, duplex ? bytes / 2 : bytes);
			if (duplex)
				load_pair(network, next, members[i], bytes / 2);
		}
		return;
	}
	bytes /= group->nrings * (duplex ? 2 : 1);
	for (int r = 0; r < group->nrings; r++)
		for (int i = 0; i < count; i++) {
			int a = group->members[(int)((long)i * group->steps[r] % count)];
			int b = group->members[(int)((long)(i + 1) * group->steps[r] % count)];

			network->load[(size_t)a * n + b] += bytes;
			if (duplex)
				network->load[(size_t)b * n + a] += bytes;
		}
}

/* Milliseconds of what was loaded, and an empty load again. */
static double load_time(struct ocs_optimise_network *network)
{
	double most = 0, rate = network->request->rate;
	size_t n = (size_t)network->n;

	if (!network->plan) {
		for (size_t i = 0; i < 2 * n; i++)
			most = network->load[i] > most ? network->load[i] : most;
		most /= network->request->degree;
	}
	for (size_t i = 0; network->plan && i < n * n; i++)
		if (network->load[i] > 0 && network->load[i] / network->circuits[i] > most)
			most = network->load[i] / network->circuits[i];
	load_clear(network);
	return most / rate * 1e3;
}

static void load_flow(struct ocs_optimise_network *network, const struct ocs_model_flow *flow)
{
	double bytes = flow->bytes * flow->times, k = flow->count;

	switch (flow->kind) {
	case OCS_MODEL_SEND:
		load_pair(network, flow->members[0], flow->members[1], bytes);
		break;
	case OCS_MODEL_ALLTOALL:
		for (int a = 0; a < flow->count; a++)
			for (int b = 0; b < flow->count; b++)
				load_pair(network, flow->members[a], flow->members[b], bytes / k);
		break;
	case OCS_MODEL_ALLGATHER:
		load_ring(network, flow->members, flow->count, (k - 1) / k * bytes);
		break;
	default:
		load_ring(network, flow->members, flow->count, 2 * (k - 1) / k * bytes);
	}
}

static double dimension_time(struct ocs_optimise_network *network,
			     const struct ocs_model_traffic *traffic,
			     enum ocs_model_dimension dimension)
{
	int n = network->n;
	bool any = false;
	double ms = 0;

	for (int i = 0; i < traffic->nflows; i++) {
		if (traffic->flows[i].dimension != dimension)
			continue;
		load_flow(network, &traffic->flows[i]);
		any = true;
	}
	if (any)
		ms = load_time(network);
	/* the forward pass, and the backward one */
	for (int back = 0; back < 2 && dimension == OCS_MODEL_MP && traffic->matrix; back++) {
		any = false;
		for (int a = 0; a < n; a++)
			for (int b = 0; b < n; b++) {
				double bytes = traffic->matrix[(size_t)a * n + b];

				if (bytes <= 0)
					continue;
				load_pair(network, back ? b : a, back ? a : b, bytes);
				any = true;
			}
		if (any)
			ms += load_time(network);
	}
	return ms;
}

/* Of the slowest stage in both passes; then as often as micro-batches pass the pipeline. */
static double stages_compute(const struct ocs_optimise_request *request,
			     const struct ocs_model_strategy *s,
			     const struct ocs_model_traffic *traffic)
{
	const struct ocs_model_machine *machine = &request->machine;
	int gpus = machine->servers * machine->gpus;
	int micro = ocs_model_microbatches(request->model, machine, s);
	double samples = (double)s->microbatch / s->cp / s->tp, inside = 0, most = 0;

	for (int d = 0; d < OCS_MODEL_DIMENSIONS; d++)
		inside += d == OCS_MODEL_DP ? 0 : traffic->inside[d];
	for (int stage = 0; stage < s->pp; stage++) {
		int end = ocs_model_stage_first(request->model, s->pp, stage + 1);
		double ms = 0;

		for (int i = ocs_model_stage_first(request->model, s->pp, stage); i < end; i++)
			ms += ocs_model_operator_ms(request->model, machine, i, samples, true) +
			      ocs_model_operator_ms(request->model, machine, i, samples, false);
		most = ms > most ? ms : most;
	}
	most += inside / gpus / micro / machine->scale_up * 1e3;
	return most * (micro + s->pp - 1) +
	       traffic->inside[OCS_MODEL_DP] / gpus / machine->scale_up * 1e3;
}

/* When an operator is done everywhere that it is computed: after what it reads, and after what
 * its server does before.  BACK: the operators run in the opposite order. */
struct schedule {
	const struct ocs_optimise_request *request;
	const struct ocs_model_strategy *s;
	double *ready; /* [operator][server]: when all it reads is there */
	double *busy;  /* per server: until when */
	double samples;
};

static bool same_place(const struct ocs_model_strategy *s, int a, int b)
{
	return s->layout[a] <= OCS_MODEL_SHARDED && s->layout[b] <= OCS_MODEL_SHARDED;
}

/* Operator OP ends on SERVER at END: NEXT, which reads it there or everywhere, may begin. */
static void schedule_pass(struct schedule *schedule, int op, int next, int server, double end)
{
	int n = schedule->request->machine.servers;
	double *ready = &schedule->ready[(size_t)next * (size_t)n];

	if (same_place(schedule->s, op, next)) {
		ready[server] = end > ready[server] ? end : ready[server];
		return;
	}
	for (int s = 0; s < n; s++)
		ready[s] = end > ready[s] ? end : ready[s];
}

static void schedule_run(struct schedule *schedule, int op, bool back)
{
	const struct ocs_model *model = schedule->request->model;
	const struct ocs_model_machine *machine = &schedule->request->machine;
	int n = machine->servers, consumer = model->operators[op].consumer;
	bool placed = schedule->s->layout[op] == OCS_MODEL_PLACED;
	double share = schedule->samples / machine->gpus / (placed ? 1 : n);
	double ms = ocs_model_operator_ms(model, machine, op, share, !back);

	for (int s = placed ? schedule->s->server[op] : 0; s < n; s++) {
		double start = schedule->ready[(size_t)op * (size_t)n + (size_t)s];

		start = schedule->busy[s] > start ? schedule->busy[s] : start;
		schedule->busy[s] = start + ms;
		if (!back && consumer >= 0)
			schedule_pass(schedule, op, consumer, s, start + ms);
		for (int i = op - 1, left = model->operators[op].joins; back && left > 0; i--) {
			if (model->operators[i].consumer != op)
				continue;
			schedule_pass(schedule, op, i, s, start + ms);
			left--;
		}
		if (placed)
			break;
	}
}

static double operators_compute(const struct ocs_optimise_request *request,
				const struct ocs_model_strategy *s,
				const struct ocs_model_traffic *traffic)
{
	const struct ocs_model_machine *machine = &request->machine;
	size_t n = (size_t)machine->servers, count = (size_t)request->model->noperators;
	struct schedule schedule = { .request = request, .s = s };
	double most = 0;

	schedule.samples = ocs_model_samples(request->model, machine->servers * machine->gpus);
	schedule.ready = ocs_calloc(count * n, sizeof(double));
	schedule.busy = ocs_calloc(n, sizeof(double));
	for (int back = 0; back < 2; back++) {
		for (size_t i = 0; i < n; i++)
			most = schedule.busy[i] > most ? schedule.busy[i] : most;
		/* the backward pass begins when the forward pass is over everywhere */
		for (size_t i = 0; i < count * n; i++)
			schedule.ready[i] = most;
		for (int i = 0; i < (int)count; i++)
			schedule_run(&schedule, back ? (int)count - 1 - i : i, back);
	}
	for (size_t i = 0; i < n; i++)
		most = schedule.busy[i] > most ? schedule.busy[i] : most;
	free(schedule.busy);
	free(schedule.ready);
	return most + traffic->inside[OCS_MODEL_DP] / machine->servers / machine->gpus /
			      machine->scale_up * 1e3;
}

void ocs_optimise_network_estimate(struct ocs_optimise_network *network,
				   const struct ocs_model_strategy *strategy,
				   struct ocs_optimise_time *time)
{
	const struct ocs_optimise_request *request = network->request;
	struct ocs_model_traffic *traffic =
		ocs_model_traffic_create(request->model, &request->machine, strategy);
	int micro = ocs_model_microbatches(request->model, &request->machine, strategy);

	memset(time, 0, sizeof(*time));
	time->compute = strategy->layout ? operators_compute(request, strategy, traffic) :
					   stages_compute(request, strategy, traffic);
	for (int d = 0; d < OCS_MODEL_DIMENSIONS; d++) {
		double ms = dimension_time(network, traffic, d);

		/* sends hide behind the computation of other micro-batches, but for the first
		 * way down the pipeline and the last way back */
		if (d == OCS_MODEL_PP)
			ms *= (double)(strategy->pp - 1) / micro;
		else if (!strategy->layout && d != OCS_MODEL_DP)
			ms *= (double)(micro + strategy->pp - 1) / micro;
		time->dimensions[d] = ms;
		time->network += ms;
	}
	time->total = time->compute + time->network;
	ocs_model_traffic_destroy(traffic);
}

void ocs_optimise_network_rates(struct ocs_optimise_network *network,
				struct ocs_optimise_rates *rates)
{
	int n = network->n, *all = ocs_calloc((size_t)n, sizeof(int));
	double unit = 1e6;

	for (int i = 0; i < n; i++)
		all[i] = i;
	load_ring(network, all, n, 2.0 * (n - 1) / n * unit);
	rates->allreduce = load_time(network) / unit;
	rates->allgather = rates->allreduce / 2;
	for (int a = 0; a < n; a++)
		for (int b = 0; b < n; b++)
			load_pair(network, a, b, unit / n / n);
	rates->alltoall = 2 * load_time(network) / unit;
	free(all);
}

void ocs_optimise_estimate(const struct ocs_optimise_request *request,
			   const struct ocs_model_strategy *strategy, const struct ocs_plan *plan,
			   struct ocs_optimise_time *time)
{
	struct ocs_optimise_network *network = ocs_optimise_network_create(request, plan);

	ocs_optimise_network_estimate(network, strategy, time);
	ocs_optimise_network_destroy(network);
}
