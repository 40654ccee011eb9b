/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/moe/control.h"

#include <stdlib.h>
#include <string.h>

#include "src/moe/control_state.h"
#include "src/util/error.h"
#include "src/util/text.h"

#define HALF 0.5 /* of a window's average that the newest is */

static int setup_check(const struct ocs_moe_control_setup *s, struct ocs_error *err)
{
	const struct ocs_moe_record_setup *r = &s->record;

	if (r->servers != s->region->n || r->ranks < r->servers || r->ranks % r->servers)
		return ocs_error_set(err, OCS_USAGE,
				     "region: %d ranks do not fill the %d servers evenly", r->ranks,
				     s->region->n);
	if (r->layers < 1 || r->microbatches < 1)
		return ocs_error_set(err, OCS_USAGE, "region: %d layers, %d microbatches",
				     r->layers, r->microbatches);
	if (!(s->rate > 0) || !(s->first >= 0) || !(s->each >= 0) || !(s->timeout > 0))
		return ocs_error_set(err, OCS_USAGE,
				     "region: the rate and the timeout have to be more than 0, and "
				     "switching times not less");
	for (int i = 0; i < s->region->n; i++) {
		int there = 0;

		for (int p = 0; p < s->numa->ports; p++)
			there += s->numa->node[(size_t)i * s->numa->ports + p] >= 0;
		if (there < s->region->ports[i])
			return ocs_error_set(err, OCS_USAGE,
					     "region: server %d has %d ports and %d optical NICs",
					     i, s->region->ports[i], there);
	}
	return 0;
}

struct ocs_moe_control *ocs_moe_control_create(const struct ocs_moe_control_setup *setup,
					       struct ocs_error *err)
{
	struct ocs_moe_control *c;
	size_t n = (size_t)setup->region->n, ends = n * setup->numa->ports;
	size_t layers = (size_t)setup->record.layers;

	if (setup_check(setup, err))
		return NULL;
	c = ocs_calloc(1, sizeof(*c));
	c->setup = *setup;
	c->n = setup->region->n;
	c->region = ocs_moe_region_create(c->n, 0, setup->region->packets);
	memcpy(c->region->ports, setup->region->ports, n * sizeof(int));
	c->numa = (struct ocs_moe_numa){ .ports = setup->numa->ports,
					 .node = ocs_calloc(ends + 1, sizeof(int)) };
	memcpy(c->numa.node, setup->numa->node, ends * sizeof(int));
	c->record = ocs_moe_record_create(&setup->record);
	c->predictor = ocs_calloc(n, sizeof(struct ocs_moe_predictor *));
	for (int i = 0; i < c->n; i++)
		c->predictor[i] = ocs_moe_predictor_create(c->n, setup->record.layers);
	c->total = ocs_calloc(n, sizeof(double));
	c->expected = ocs_moe_demand_create(c->n);
	c->turned = ocs_moe_demand_create(c->n);
	/* What is being cut and what is being made are there at the same time. */
	c->wire = ocs_calloc(2 * ends + 1, sizeof(*c->wire));
	c->usable = ocs_calloc(2 * ends + 1, sizeof(*c->usable));
	c->cut = ocs_calloc(ends + 1, sizeof(*c->cut));
	c->make = ocs_calloc(ends + 1, sizeof(*c->make));
	c->successor = ocs_calloc(layers * 2, sizeof(*c->successor));
	c->window = ocs_calloc(layers * 4, sizeof(*c->window));
	for (size_t k = 0; k < layers * 4; k++)
		c->window[k] = -1;
	c->trust = ocs_calloc(layers, sizeof(*c->trust));
	return c;
}

static void flight_free(struct ocs_moe_flight *flight)
{
	free(flight->begun);
	free(flight->ended);
	free(flight->wire);
	ocs_moe_routes_destroy(flight->routes);
	free(flight);
}

void ocs_moe_control_destroy(struct ocs_moe_control *c)
{
	if (!c)
		return;
	for (int k = 0; k < c->flights; k++)
		flight_free(c->flight[k]);
	for (int l = 0; l < c->setup.record.layers; l++) {
		ocs_moe_circuits_destroy(c->trust[l].keep);
		ocs_moe_circuits_destroy(c->trust[l].predicted);
	}
	for (int i = 0; i < c->n; i++)
		ocs_moe_predictor_destroy(c->predictor[i]);
	ocs_moe_region_destroy(c->region);
	ocs_moe_record_destroy(c->record);
	ocs_moe_demand_destroy(c->expected);
	ocs_moe_demand_destroy(c->turned);
	free(c->numa.node);
	free(c->predictor);
	free(c->total);
	free(c->wire);
	free(c->usable);
	free(c->cut);
	free(c->make);
	free(c->successor);
	free(c->window);
	free(c->trust);
	free(c);
}

static bool step_same(const struct ocs_moe_step *x, const struct ocs_moe_step *y)
{
	return x->layer == y->layer && x->microbatch == y->microbatch && x->pass == y->pass &&
	       x->second == y->second;
}

static struct ocs_moe_flight *flight_find(const struct ocs_moe_control *c,
					  const struct ocs_moe_step *step)
{
	for (int k = 0; k < c->flights; k++)
		if (step_same(&c->flight[k]->step, step))
			return c->flight[k];
	return NULL;
}

static bool step_valid(const struct ocs_moe_control *c, const struct ocs_moe_step *step, int server)
{
	return step->layer >= 0 && step->layer < c->setup.record.layers && step->microbatch >= 0 &&
	       (step->pass == OCS_MOE_FORWARD || step->pass == OCS_MOE_BACKWARD) &&
	       (step->second == 0 || step->second == 1) && server >= 0 && server < c->n;
}

/* The plan, and leases of its circuits. */
static void flight_grant(struct ocs_moe_control *c, struct ocs_moe_flight *flight)
{
	struct ocs_moe_circuits *circuits = ocs_moe_control_circuits(c, false);
	const struct ocs_moe_demand *demand;

	flight->waits = false;
	demand = ocs_moe_control_demand(c, &flight->step, &flight->grant.expected);
	flight->routes = c->setup.relay ? ocs_moe_routes_relay(demand, c->region, circuits, 0) :
					  ocs_moe_routes_direct(demand, c->region, circuits);
	flight->wire = ocs_calloc((size_t)c->wires + 1, sizeof(*flight->wire));
	for (int k = 0; k < c->wires; k++) {
		if (c->wire[k].state != OCS_MOE_STANDS)
			continue;
		c->wire[k].leases++;
		flight->wire[flight->grant.wires++] = c->wire[k].wire;
	}
	flight->grant.wire = flight->wire;
	flight->grant.routes = flight->routes;
	ocs_moe_circuits_destroy(circuits);
}

/* Whether STEP is over earlier if it waits for what is being made. */
static bool flight_waits(struct ocs_moe_control *c, const struct ocs_moe_step *step, double now)
{
	struct ocs_moe_circuits *there, *after;
	const struct ocs_moe_demand *demand;
	double left, with, without;
	int expected;

	if (!c->order_open || c->frozen)
		return false;
	demand = ocs_moe_control_demand(c, step, &expected);
	there = ocs_moe_control_circuits(c, false);
	after = ocs_moe_control_circuits(c, true);
	left = c->order_end > now ? (c->order_end - now) * c->setup.rate : 0;
	with = ocs_moe_finish_time(demand, c->region, after);
	without = ocs_moe_finish_time(demand, c->region, there);
	ocs_moe_circuits_destroy(there);
	ocs_moe_circuits_destroy(after);
	return left + with < without;
}

/* How long there was nothing to send before STEP, and what came after what. */
static void step_remember(struct ocs_moe_control *c, const struct ocs_moe_step *step, double now)
{
	double *window = &c->window[step->layer * 4 + step->pass * 2 + step->second];
	double gap = now - c->last_end;

	if (c->next_known && step_same(step, &c->next))
		c->next_known = false;
	if (!c->any_ended || c->flights)
		return;
	*window = *window < 0 ? gap : *window + HALF * (gap - *window);
	if (c->last.second && !step->second) {
		struct ocs_moe_successor *successor =
			&c->successor[c->last.layer * 2 + c->last.pass];

		successor->known = true;
		successor->step = *step;
		successor->step.microbatch -= c->last.microbatch;
	}
}

void ocs_moe_control_begin(struct ocs_moe_control *c, const struct ocs_moe_step *step, int server,
			   double now)
{
	struct ocs_moe_flight *flight;

	if (!step_valid(c, step, server)) {
		c->count.stray++;
		return;
	}
	flight = flight_find(c, step);
	if (!flight) {
		if (c->flights == OCS_MOE_STEPS_OPEN) {
			c->count.stray++;
			return;
		}
		step_remember(c, step, now);
		flight = ocs_calloc(1, sizeof(*flight));
		flight->step = *step;
		flight->begun = ocs_calloc((size_t)c->n, sizeof(*flight->begun));
		flight->ended = ocs_calloc((size_t)c->n, sizeof(*flight->ended));
		flight->left = c->n;
		flight->waits = flight_waits(c, step, now);
		c->flight[c->flights++] = flight;
		if (!flight->waits)
			flight_grant(c, flight);
	}
	flight->begun[server] = true;
}

void ocs_moe_control_release(struct ocs_moe_control *c)
{
	for (int k = 0; k < c->flights; k++)
		if (c->flight[k]->waits)
			flight_grant(c, c->flight[k]);
}

/* What comes after the second all-to-all of a pass in one layer, as far as no one has seen it. */
static void successor_guess(const struct ocs_moe_control *c, struct ocs_moe_step *step)
{
	int last = c->setup.record.layers - 1;

	step->second = 0;
	if (step->pass == OCS_MOE_FORWARD && step->layer < last) {
		step->layer++;
	} else if (step->pass == OCS_MOE_FORWARD) {
		step->pass = OCS_MOE_BACKWARD;
	} else if (step->layer > 0) {
		step->layer--;
	} else {
		step->pass = OCS_MOE_FORWARD;
		step->microbatch++;
	}
}

static void next_find(struct ocs_moe_control *c)
{
	const struct ocs_moe_successor *successor = &c->successor[c->last.layer * 2 + c->last.pass];

	c->next = c->last;
	c->next_known = true;
	if (!c->last.second) {
		c->next.second = 1;
	} else if (successor->known) {
		c->next = successor->step;
		c->next.microbatch += c->last.microbatch;
	} else {
		successor_guess(c, &c->next);
	}
	if (c->next.microbatch < 0 || flight_find(c, &c->next))
		c->next_known = false;
}

static void flight_close(struct ocs_moe_control *c, struct ocs_moe_flight *flight, double now)
{
	for (int w = 0; w < flight->grant.wires; w++) {
		for (int k = 0; k < c->wires; k++) {
			const struct ocs_moe_wire *x = &c->wire[k].wire, *y = &flight->wire[w];

			/* Leased wires were neither cut nor moved. */
			if (x->a == y->a && x->a_port == y->a_port && x->b == y->b)
				c->wire[k].leases--;
		}
	}
	for (int k = 0; k < c->flights; k++)
		if (c->flight[k] == flight)
			c->flight[k] = c->flight[--c->flights];
	c->last = flight->step;
	c->any_ended = true;
	c->last_end = now;
	c->closed++;
	flight_free(flight);
	next_find(c);
	ocs_moe_control_choose(c, now);
}

void ocs_moe_control_end(struct ocs_moe_control *c, const struct ocs_moe_step *step, int server,
			 double now)
{
	struct ocs_moe_flight *flight = step_valid(c, step, server) ? flight_find(c, step) : NULL;

	if (!flight || !flight->begun[server] || flight->ended[server]) {
		c->count.stray++;
		return;
	}
	flight->ended[server] = true;
	if (!--flight->left)
		flight_close(c, flight, now);
}

const struct ocs_moe_grant *ocs_moe_control_grant(const struct ocs_moe_control *control,
						  const struct ocs_moe_step *step)
{
	const struct ocs_moe_flight *flight = flight_find(control, step);

	return flight && !flight->waits ? &flight->grant : NULL;
}

int ocs_moe_control_row(struct ocs_moe_control *c, int layer, int64_t microbatch, int rank,
			const double *counts, int n, double now, struct ocs_error *err)
{
	struct ocs_moe_step first = { .layer = layer, .microbatch = microbatch };
	int rc = ocs_moe_record_row(c->record, layer, microbatch, rank, counts, n, err);

	if (rc <= 0)
		return rc;
	ocs_moe_control_learn(c, layer, microbatch);
	if (!c->next_known && !c->flights && !c->any_ended) {
		c->next = first;
		c->next_known = true;
	}
	if (c->next_known && c->next.layer == layer && c->next.microbatch == microbatch &&
	    c->next.pass == OCS_MOE_FORWARD)
		ocs_moe_control_choose(c, now);
	return rc;
}

void ocs_moe_control_lost(struct ocs_moe_control *c, int server)
{
	(void)server;
	c->frozen = true;
	ocs_moe_control_release(c);
}

const struct ocs_moe_control_count *ocs_moe_control_count(const struct ocs_moe_control *control)
{
	return &control->count;
}

const struct ocs_moe_record_count *ocs_moe_control_rows(const struct ocs_moe_control *control)
{
	return ocs_moe_record_count(control->record);
}
