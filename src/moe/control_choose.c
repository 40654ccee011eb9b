/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Whether, and for which matrix, the circuits of a region are changed. */

#include <stdlib.h>
#include <string.h>

#include "src/moe/change.h"
#include "src/moe/control_state.h"
#include "src/util/text.h"

#define EFFORT 3000	   /* exchanges that a search looks at: some 0.1 ms */
#define TRUST_SAMPLES 3	   /* predictions that are watched before one is acted upon */
#define TRUST_SHARE 0.25   /* of the average that the newest is */
#define LONG_SAMPLES 64	   /* matrices that the long run is judged by */
#define SHARE_UNKNOWN 1000 /* tokens of a server of which no row was seen */

/* The matrix of STEP as its prediction has it, from experts' view not turned. */
static const struct ocs_moe_demand *demand_predict(struct ocs_moe_control *c, int layer)
{
	double *loads = ocs_calloc((size_t)c->n, sizeof(*loads));

	for (int i = 0; i < c->n; i++) {
		double total = c->total[i] > 0 ? c->total[i] : SHARE_UNKNOWN;

		ocs_moe_predict(c->predictor[i], layer, OCS_MOE_CHOSEN, loads);
		for (int j = 0; j < c->n; j++)
			c->expected->tokens[i * c->n + j] = i == j ? 0 : loads[j] * total;
	}
	free(loads);
	return c->expected;
}

const struct ocs_moe_demand *ocs_moe_control_demand(struct ocs_moe_control *c,
						    const struct ocs_moe_step *step, int *expected)
{
	const struct ocs_moe_demand *demand =
		ocs_moe_record_demand(c->record, step->layer, step->microbatch);

	*expected = !demand;
	if (!demand)
		demand = demand_predict(c, step->layer);
	if (!step->second)
		return demand;
	for (int i = 0; i < c->n; i++)
		for (int j = 0; j < c->n; j++)
			c->turned->tokens[j * c->n + i] = demand->tokens[i * c->n + j];
	return c->turned;
}

const struct ocs_moe_demand *ocs_moe_control_matrix(struct ocs_moe_control *c,
						    const struct ocs_moe_step *step)
{
	int expected;
	const struct ocs_moe_demand *demand = ocs_moe_control_demand(c, step, &expected);

	return expected ? NULL : demand;
}

long ocs_moe_control_foretold(const struct ocs_moe_control *c, int layer,
			      enum ocs_moe_method *method, struct ocs_moe_error *error)
{
	int votes[OCS_MOE_METHODS] = { 0 };
	long passes = 0;

	memset(error, 0, sizeof(*error));
	*method = OCS_MOE_UNIFORM;
	for (int i = 0; i < c->n; i++) {
		enum ocs_moe_method now = ocs_moe_predict_method(c->predictor[i], layer);
		struct ocs_moe_error of_server;

		passes = ocs_moe_predict_error(c->predictor[i], layer, OCS_MOE_CHOSEN, &of_server);
		ocs_moe_error_add(error, &of_server, c->n);
		if (++votes[now] > votes[*method])
			*method = now;
	}
	return passes;
}

/* What the prediction for this matrix would have gained or did gain. */
static void trust_learn(struct ocs_moe_control *c, int layer, int64_t microbatch)
{
	struct ocs_moe_trust *trust = &c->trust[layer];
	const struct ocs_moe_demand *demand = ocs_moe_record_demand(c->record, layer, microbatch);
	double before, with;

	if (!trust->predicted || trust->microbatch != microbatch)
		return;
	before = ocs_moe_finish_time(demand, c->region, trust->keep);
	with = ocs_moe_finish_time(demand, c->region, trust->predicted);
	c->count.mispredicted += trust->made && with > before;
	if (before > 0) {
		double gain = (before - with) / before;

		trust->gain += (trust->samples ? TRUST_SHARE : 1) * (gain - trust->gain);
		trust->samples++;
	}
	ocs_moe_circuits_destroy(trust->keep);
	ocs_moe_circuits_destroy(trust->predicted);
	trust->keep = trust->predicted = NULL;
}

void ocs_moe_control_learn(struct ocs_moe_control *c, int layer, int64_t microbatch)
{
	trust_learn(c, layer, microbatch);
	for (int i = 0; i < c->n; i++) {
		const double *shares = ocs_moe_record_shares(c->record, layer, microbatch, i);

		c->total[i] = 0;
		for (int j = 0; j < c->n; j++)
			c->total[i] += shares[j];
		ocs_moe_observe(c->predictor[i], layer, shares);
	}
}

/* Switching, less what of the time before c->next is still to come. */
static struct ocs_moe_change change_make(const struct ocs_moe_control *c, double remaining,
					 double now)
{
	const struct ocs_moe_step *next = &c->next;
	double window = c->window[next->layer * 4 + next->pass * 2 + next->second];

	if (c->any_ended)
		window -= now - c->last_end;
	return (struct ocs_moe_change){ .remaining = remaining,
					.first = c->setup.first * c->setup.rate,
					.each = c->setup.each * c->setup.rate,
					.window = window > 0 ? window * c->setup.rate : 0 };
}

/* Circuits for DEMAND of which as many differ from KEEP as CHANGE pays for; the caller destroys them. */
static struct ocs_moe_circuits *circuits_choose(const struct ocs_moe_control *c,
						const struct ocs_moe_demand *demand,
						const struct ocs_moe_circuits *keep,
						const struct ocs_moe_change *change)
{
	return ocs_moe_change_choose(
		&(struct ocs_moe_request){ .demand = demand,
					   .region = c->region,
					   .keep = keep,
					   .effort = c->setup.effort ? c->setup.effort : EFFORT },
		change);
}

static bool circuits_same(const struct ocs_moe_circuits *x, const struct ocs_moe_circuits *y)
{
	return !memcmp(x->count, y->count, (size_t)x->n * x->n * sizeof(*x->count));
}

/* The newest matrices that are kept, at most LONG_SAMPLES.  Returns how many. */
static int record_sample(const struct ocs_moe_control *c, const struct ocs_moe_demand **demands)
{
	int found = 0;

	for (int64_t m = c->last.microbatch; m >= 0 && found < LONG_SAMPLES &&
					     m > c->last.microbatch - c->setup.record.microbatches;
	     m--) {
		for (int l = 0; l < c->setup.record.layers && found < LONG_SAMPLES; l++) {
			demands[found] = ocs_moe_record_demand(c->record, l, m);
			found += demands[found] != NULL;
		}
	}
	return found;
}

/* Their mean time. */
static double record_time(const struct ocs_moe_control *c, const struct ocs_moe_circuits *circuits)
{
	const struct ocs_moe_demand *demands[LONG_SAMPLES];
	int found = record_sample(c, demands);
	double sum = 0;

	for (int i = 0; i < found; i++)
		sum += ocs_moe_finish_time(demands[i], c->region, circuits);
	return found ? sum / found : 0;
}

/* Their mean: what circuits that stay for long have to carry. */
static struct ocs_moe_demand *record_mean(const struct ocs_moe_control *c)
{
	struct ocs_moe_demand *sum = ocs_moe_demand_create(c->n);
	const struct ocs_moe_demand *demands[LONG_SAMPLES];
	int found = record_sample(c, demands);

	for (int i = 0; i < found; i++)
		for (int k = 0; k < c->n * c->n; k++)
			sum->tokens[k] += demands[i]->tokens[k];
	for (int k = 0; found && k < c->n * c->n; k++)
		sum->tokens[k] /= found;
	return sum;
}

/* Circuits that pay in the long run: the run is taken to last as long again as it has. */
static void long_choose(struct ocs_moe_control *c, const struct ocs_moe_circuits *keep, double now)
{
	struct ocs_moe_demand *demand;
	struct ocs_moe_circuits *circuits;
	struct ocs_moe_change change;
	double switching;
	int moved;

	/* Ever more seldom: each look is for twice as long. */
	if (c->closed < 2 * c->long_closed || c->closed < 4L * c->setup.record.layers)
		return;
	c->long_closed = c->closed;
	change = change_make(c, (double)c->closed, now);
	demand = record_mean(c);
	circuits = circuits_choose(c, demand, keep, &change);
	moved = ocs_moe_circuits_cut(keep, circuits);
	if (ocs_moe_circuits_cut(circuits, keep) > moved)
		moved = ocs_moe_circuits_cut(circuits, keep);
	switching = change.first + (moved - 1) * change.each - change.window;
	if (moved && change.remaining * (record_time(c, keep) - record_time(c, circuits)) >
			     (switching > 0 ? switching : 0))
		ocs_moe_control_exchange(c, circuits, now);
	ocs_moe_demand_destroy(demand);
	ocs_moe_circuits_destroy(circuits);
}

/* Whether circuits chosen on a prediction are made: they are remembered, and judged when the gate
 * has spoken, whether they were made or not. */
static bool trust_ask(struct ocs_moe_control *c, const struct ocs_moe_circuits *keep,
		      const struct ocs_moe_circuits *circuits)
{
	struct ocs_moe_trust *trust = &c->trust[c->next.layer];

	ocs_moe_circuits_destroy(trust->keep);
	ocs_moe_circuits_destroy(trust->predicted);
	trust->keep = ocs_moe_circuits_copy(keep);
	trust->predicted = ocs_moe_circuits_copy(circuits);
	trust->microbatch = c->next.microbatch;
	trust->made = false;
	return trust->samples >= TRUST_SAMPLES && trust->gain > 0;
}

void ocs_moe_control_choose(struct ocs_moe_control *c, double now)
{
	bool first = c->next.pass == OCS_MOE_FORWARD && !c->next.second;
	const struct ocs_moe_demand *demand;
	struct ocs_moe_circuits *keep, *circuits;
	struct ocs_moe_change change;
	int expected;

	if (!c->next_known || c->order_open || c->frozen)
		return;
	demand = ocs_moe_control_demand(c, &c->next, &expected);
	if (expected && !(first && c->setup.predict)) {
		c->count.unknown += !first;
		return;
	}
	keep = ocs_moe_control_circuits(c, false);
	change = change_make(c, c->next.second ? 1 : 2, now);
	circuits = circuits_choose(c, demand, keep, &change);
	if (circuits_same(keep, circuits)) {
		c->count.kept++;
		long_choose(c, keep, now);
	} else if (!expected || trust_ask(c, keep, circuits)) {
		if (ocs_moe_control_exchange(c, circuits, now) && expected) {
			c->count.predicted++;
			c->trust[c->next.layer].made = true;
		}
	}
	ocs_moe_circuits_destroy(circuits);
	ocs_moe_circuits_destroy(keep);
}
