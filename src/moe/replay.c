/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/moe/replay.h"

#include <stdlib.h>

#include "src/moe/allocate.h"
#include "src/moe/control.h"
#include "src/util/text.h"

#define TIMEOUT 1e300 /* the switch of a replay always answers */
#define SLOTS 4	      /* microbatches that the control remembers */

struct player {
	const struct ocs_moe_replay *replay;
	struct ocs_moe_circuits *circuits; /* static ones */
	struct ocs_moe_control *control;   /* NULL: circuits do not change */
	double now, sending;
	long seq; /* of the order under way, 0: none */
	double answer_at;
};

/* The switch begins with an order when there is one, and answers when it has been carried out. */
static void switch_look(struct player *p)
{
	const struct ocs_moe_order *order;
	int most;

	if (!p->control)
		return;
	if (p->seq && p->now >= p->answer_at) {
		ocs_moe_control_done(p->control, p->seq, p->answer_at);
		p->seq = 0;
	}
	order = ocs_moe_control_order(p->control);
	if (!order)
		return;
	most = order->ncut > order->nmake ? order->ncut : order->nmake;
	p->seq = order->seq;
	p->answer_at = p->now + p->replay->first + (most - 1) * p->replay->each;
	switch_look(p); /* it may take no time */
}

static double routes_time(const struct player *p, const struct ocs_moe_demand *demand,
			  const struct ocs_moe_circuits *circuits)
{
	struct ocs_moe_routes *routes;
	double time;

	if (!p->replay->relay)
		return ocs_moe_finish_time(demand, p->replay->region, circuits);
	routes = ocs_moe_routes_relay(demand, p->replay->region, circuits, 0);
	time = routes->time;
	ocs_moe_routes_destroy(routes);
	return time;
}

/* How long the all-to-all of DEMAND takes by the plan that it is granted.  The slower direction counts, so
 * that a matrix and its transpose take as long. */
static double grant_time(struct player *p, const struct ocs_moe_step *step,
			 const struct ocs_moe_demand *demand)
{
	const struct ocs_moe_grant *grant = ocs_moe_control_grant(p->control, step);
	struct ocs_moe_circuits *circuits = ocs_moe_circuits_create(demand->n);
	double time;

	if (!grant) {
		p->now = p->answer_at > p->now ? p->answer_at : p->now;
		switch_look(p);
		grant = ocs_moe_control_grant(p->control, step);
	}
	for (int k = 0; grant && k < grant->wires; k++)
		ocs_moe_circuits_add(circuits, grant->wire[k].a, grant->wire[k].b, 1);
	time = routes_time(p, demand, circuits);
	ocs_moe_circuits_destroy(circuits);
	return time;
}

static void step_play(struct player *p, const struct ocs_moe_step *step,
		      const struct ocs_moe_demand *demand)
{
	double time;

	p->now += p->replay->computing * (step->pass == OCS_MOE_BACKWARD ? 2 : 1);
	switch_look(p);
	for (int s = 0; p->control && s < demand->n; s++)
		ocs_moe_control_begin(p->control, step, s, p->now);
	time = p->control ? grant_time(p, step, demand) : routes_time(p, demand, p->circuits);
	p->now += time;
	p->sending += time;
	switch_look(p);
	for (int s = 0; p->control && s < demand->n; s++)
		ocs_moe_control_end(p->control, step, s, p->now);
	switch_look(p);
}

static int gate_say(struct player *p, int layer, int pass, const struct ocs_moe_demand *demand,
		    struct ocs_error *err)
{
	for (int s = 0; p->control && s < demand->n; s++) {
		if (ocs_moe_control_row(p->control, layer, pass, s,
					demand->tokens + (size_t)s * demand->n, demand->n, p->now,
					err) < 0)
			return -1;
	}
	switch_look(p);
	return 0;
}

static int pass_play(struct player *p, int pass, struct ocs_error *err)
{
	const struct ocs_moe_replay *r = p->replay;
	struct ocs_moe_demand *const *demand = r->demand + (size_t)pass * r->layers;
	struct ocs_moe_step step = { .microbatch = pass };

	for (step.layer = 0; step.layer < r->layers; step.layer++) {
		for (step.second = 0; step.second < 2; step.second++) {
			/* Rows are on their way while tokens are. */
			step_play(p, &step, demand[step.layer]);
			if (!step.second && gate_say(p, step.layer, pass, demand[step.layer], err))
				return -1;
		}
	}
	step.pass = OCS_MOE_BACKWARD;
	for (step.layer = r->layers - 1; step.layer >= 0; step.layer--)
		for (step.second = 0; step.second < 2; step.second++)
			step_play(p, &step, demand[step.layer]);
	return 0;
}

/* Circuits for the mean of all matrices. */
static struct ocs_moe_circuits *static_make(const struct ocs_moe_replay *r)
{
	struct ocs_moe_demand *sum = ocs_moe_demand_create(r->region->n);
	struct ocs_moe_circuits *circuits;
	int all = r->passes * r->layers;

	for (int k = 0; k < all; k++)
		for (int e = 0; e < sum->n * sum->n; e++)
			sum->tokens[e] += r->demand[k]->tokens[e] / all;
	circuits = ocs_moe_allocate(&(struct ocs_moe_request){
		.demand = sum, .region = r->region, .policy = OCS_MOE_BEST });
	ocs_moe_demand_destroy(sum);
	return circuits;
}

static struct ocs_moe_control *control_make(const struct ocs_moe_replay *r, struct ocs_error *err)
{
	struct ocs_moe_numa numa = { 0 };
	struct ocs_moe_control *control;
	int n = r->region->n;

	for (int i = 0; i < n; i++)
		numa.ports = r->region->ports[i] > numa.ports ? r->region->ports[i] : numa.ports;
	numa.node = ocs_calloc((size_t)n * (size_t)numa.ports + 1, sizeof(int));
	control = ocs_moe_control_create(
		&(struct ocs_moe_control_setup){
			.region = r->region,
			.numa = &numa,
			.record = { .servers = n,
				    .ranks = n,
				    .layers = r->layers,
				    .microbatches = SLOTS },
			.rate = 1,
			.first = r->first,
			.each = r->each,
			.timeout = TIMEOUT,
			.predict = r->predict,
			.relay = 0 }, /* routes are made here, of what was granted */
		err);
	free(numa.node);
	return control;
}

int ocs_moe_replay_run(const struct ocs_moe_replay *replay, enum ocs_moe_replay_mode mode,
		       struct ocs_moe_replay_result *result, struct ocs_error *err)
{
	struct player p = { .replay = replay };
	struct ocs_moe_control_count from = { 0 }, to = { 0 };
	int half = replay->passes / 2, counted = replay->passes - half, rc = 0;
	double began = 0, sent = 0;

	if (mode == OCS_MOE_REPLAY_FOLLOWING) {
		p.control = control_make(replay, err);
		if (!p.control)
			return -1;
	} else if (mode == OCS_MOE_REPLAY_STATIC) {
		p.circuits = static_make(replay);
	} else {
		p.circuits = ocs_moe_circuits_create(replay->region->n);
	}
	for (int pass = 0; !rc && pass < replay->passes; pass++) {
		if (pass == half) {
			began = p.now;
			sent = p.sending;
			if (p.control)
				from = *ocs_moe_control_count(p.control);
		}
		rc = pass_play(&p, pass, err);
	}
	if (p.control)
		to = *ocs_moe_control_count(p.control);
	*result = (struct ocs_moe_replay_result){
		.time = (p.now - began) / counted,
		.sending = (p.sending - sent) / counted,
		.exchanges = (double)(to.exchanges - from.exchanges) / counted,
		.cut = (double)(to.cut - from.cut) / counted,
		.predicted = (double)(to.predicted - from.predicted) / counted,
	};
	ocs_moe_circuits_destroy(p.circuits);
	ocs_moe_control_destroy(p.control);
	return rc;
}
