/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* A group: what its gates say goes into the control, what that wants comes out. */

#include "src/moe/controller/controller.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/fold/shape.h"
#include "src/util/text.h"

#define SLOTS 4 /* microbatches that are kept */

/* ---- circuits ---- */

static bool circuit_is(const struct ocs_region_circuit *one, const struct ocs_moe_wire *wire)
{
	return (one->a == wire->a && one->a_nic == wire->a_port && one->b == wire->b &&
		one->b_nic == wire->b_port) ||
	       (one->a == wire->b && one->a_nic == wire->b_port && one->b == wire->a &&
		one->b_nic == wire->a_port);
}

static bool wire_among(const struct ocs_region_circuit *one, const struct ocs_moe_wire *wires,
		       int count)
{
	for (int i = 0; i < count; i++)
		if (circuit_is(one, &wires[i]))
			return true;
	return false;
}

/* TO gets what FROM has besides CUT. */
static void circuits_without(const struct ocs_region_circuits *from, const struct ocs_moe_wire *cut,
			     int ncut, struct ocs_region_circuits *to)
{
	memset(to, 0, sizeof(*to));
	for (size_t i = 0; i < from->count; i++) {
		const struct ocs_region_circuit *one = &from->items[i];

		if (!wire_among(one, cut, ncut))
			ocs_region_circuits_add(to, one->a, one->a_nic, one->b, one->b_nic);
	}
}

/* The number by which ranks know WIRE: another one for each time that it is made. */
static uint32_t wire_id(struct group *group, const struct ocs_moe_wire *wire)
{
	int nics = group->controller->nics;
	int from = wire->a * nics + wire->a_port, to = wire->b * nics + wire->b_port;

	if (!group->id[from] || group->peer[from] != to) {
		group->id[from] = ++group->controller->last_id;
		group->peer[from] = to;
	}
	return group->id[from];
}

/* Circuits that were cut have no number any more. */
static void ids_forget(struct group *group, const struct ocs_moe_wire *cut, int ncut)
{
	for (int i = 0; i < ncut; i++)
		group->id[cut[i].a * group->controller->nics + cut[i].a_port] = 0;
}

void group_adopt(struct group *group, struct ocs_region_circuits *circuits)
{
	struct ocs_moe_wire *wires = ocs_calloc(circuits->count + 1, sizeof(*wires));
	struct ocs_error err;

	for (size_t i = 0; i < circuits->count; i++)
		wires[i] = (struct ocs_moe_wire){ circuits->items[i].a, circuits->items[i].a_nic,
						  circuits->items[i].b, circuits->items[i].b_nic };
	if (circuits != &group->stand) {
		ocs_region_circuits_free(&group->stand);
		group->stand = *circuits;
		memset(circuits, 0, sizeof(*circuits));
	}
	if (group->control &&
	    ocs_moe_control_adopt(group->control, wires, (int)group->stand.count, &err) < 0)
		fprintf(stderr, "ocs-moe-controller: group %d: %s\n", group->number, err.text);
	free(wires);
}

/* ---- the control ---- */

double controller_rate(const struct controller *controller)
{
	return controller->speed * 1e6 / 8 / controller->token_bytes;
}

/* A rank has said how many there are. */
static int control_start(struct group *group, int ranks)
{
	const struct controller *controller = group->controller;
	int servers = controller->servers, nics = controller->nics;
	struct ocs_moe_region *region = ocs_moe_region_create(servers, nics, controller->packets);
	struct ocs_moe_numa numa = {
		.ports = nics, .node = ocs_calloc((size_t)servers * (size_t)nics, sizeof(int))
	};
	struct ocs_moe_control_setup setup = {
		.region = region,
		.numa = &numa,
		.record = { .servers = servers,
			    .ranks = ranks,
			    .layers = controller->layers,
			    .microbatches = SLOTS },
		.rate = controller_rate(controller),
		.first = controller->first,
		.each = controller->each,
		.timeout = controller->timeout,
		.predict = !(controller->wish & OCS_MOE_WISH_NO_PREDICT),
		.relay = !(controller->wish & OCS_MOE_WISH_NO_RELAY),
	};
	struct ocs_error err;

	for (int i = 0; i < servers * nics; i++)
		numa.node[i] = controller->numa[i % nics];
	group->control = ocs_moe_control_create(&setup, &err);
	free(numa.node);
	ocs_moe_region_destroy(region);
	if (!group->control) {
		fprintf(stderr, "ocs-moe-controller: group %d: %s\n", group->number, err.text);
		return -1;
	}
	group->ranks = ranks;
	group->each = ranks / servers;
	group->ended = ocs_calloc((size_t)servers, sizeof(*group->ended));
	group_adopt(group, &group->stand);
	if (controller->revoked)
		ocs_moe_control_lost(group->control, 0);
	return 0;
}

static bool step_same(const struct ocs_moe_step *a, const struct ocs_moe_step *b)
{
	return a->layer == b->layer && a->microbatch == b->microbatch && a->pass == b->pass &&
	       a->second == b->second;
}

static void step_close(struct group *group, double took)
{
	report_note(group, took);
	group->open = false;
	group->closed[group->nclosed++ % CLOSED] = group->current;
}

/* Relays of different nodes are not equally fast: what a rank says of a step may come when others are in the next. */
static bool step_late(const struct group *group, const struct ocs_moe_step *step)
{
	for (unsigned int i = 0; i < CLOSED && i < group->nclosed; i++)
		if (step_same(step, &group->closed[i]))
			return true;
	return false;
}

/* A call ends when all ranks have all: who begins the next one is over with the last. */
static void step_begin(struct group *group, const struct ocs_moe_step *step, double now)
{
	if (!group->control || (group->open && step_same(step, &group->current)))
		return;
	for (int s = 0; group->open && s < group->controller->servers; s++) {
		/* a server that is over with it would begin it anew */
		if (group->ended[s] >= group->each)
			continue;
		/* its beginning may have been lost, too */
		ocs_moe_control_begin(group->control, &group->current, s, now);
		ocs_moe_control_end(group->control, &group->current, s, now);
	}
	if (group->open)
		step_close(group, -1);
	memset(group->ended, 0, (size_t)group->controller->servers * sizeof(*group->ended));
	group->current = *step;
	group->open = true;
	group->over = 0;
	group->begun = -1;
}

void group_ask(struct group *group, const struct ocs_moe_step *step, double now)
{
	if (!group->control || step->layer >= group->controller->layers)
		return;
	step_begin(group, step, now);
	ocs_moe_control_begin(group->control, step, 0, now);
}

/* A rank of SERVER has begun STEP, or is over with it. */
static void step_take(struct group *group, const struct ocs_moe_step *step, int server, bool end,
		      double now)
{
	if (!end) {
		if (step_late(group, step))
			return;
		step_begin(group, step, now);
		ocs_moe_control_begin(group->control, step, server, now);
		if (group->begun < 0)
			group->begun = now;
	} else if (group->open && step_same(step, &group->current) &&
		   ++group->ended[server] == group->each) {
		/* its beginning may have been lost: a step without its end holds circuits for ever */
		ocs_moe_control_begin(group->control, step, server, now);
		ocs_moe_control_end(group->control, step, server, now);
		if (++group->over == group->controller->servers)
			step_close(group, group->begun < 0 ? -1 : now - group->begun);
	}
}

static void row_take(struct group *group, const struct ocs_moe_gate_head *head,
		     const int64_t *counts, double now)
{
	double *row = ocs_calloc((size_t)head->counts + 1, sizeof(*row));

	for (int i = 0; i < head->counts; i++)
		row[i] = (double)counts[i];
	ocs_moe_control_row(group->control, head->layer, head->microbatch, head->rank, row,
			    head->counts, now, NULL);
	free(row);
}

void group_gate(struct group *group, const struct ocs_moe_gate_head *head, const int64_t *counts,
		double now)
{
	struct ocs_moe_step step = { .layer = head->layer,
				     .microbatch = head->microbatch,
				     .pass = head->step & 2 ? OCS_MOE_BACKWARD : OCS_MOE_FORWARD,
				     .second = head->step & 1 };

	/* of more ranks no row would come: it has a number for each */
	if (head->rank < 0 || head->ranks < 1 || head->rank >= head->ranks ||
	    head->ranks > OCS_MOE_GATE_COUNTS || head->layer < 0 ||
	    head->layer >= group->controller->layers || head->step < 0 || head->step > 3 ||
	    head->microbatch > MICROBATCHES_MAX)
		return;
	if (!group->control && control_start(group, head->ranks) < 0)
		return;
	if (head->ranks != group->ranks)
		return;
	if (head->kind == OCS_MOE_GATE_ROW)
		row_take(group, head, counts, now);
	else
		step_take(group, &step, head->rank / group->each, head->kind == OCS_MOE_GATE_END,
			  now);
}

void group_gates(struct group *group, double now)
{
	int64_t counts[OCS_MOE_GATE_COUNTS];
	struct ocs_moe_gate_head head;
	int rc;

	while ((rc = ocs_moe_gate_read(group->sockets.gate, &head, counts)) != 0)
		if (rc > 0)
			group_gate(group, &head, counts, now);
}

/* ---- orders ---- */

static void order_forget(struct group *group)
{
	ocs_region_circuits_free(&group->target);
	free(group->cut);
	group->cut = NULL;
	group->ncut = 0;
	group->order = 0;
	group->sent = false;
}

void group_orders(struct group *group, double now)
{
	const struct ocs_moe_order *order =
		group->control && !group->order ? ocs_moe_control_order(group->control) : NULL;

	if (order) {
		group->order = order->seq;
		group->sent = false;
		group->cut = ocs_calloc((size_t)order->ncut + 1, sizeof(*group->cut));
		memcpy(group->cut, order->cut, (size_t)order->ncut * sizeof(*group->cut));
		group->ncut = order->ncut;
		circuits_without(&group->stand, order->cut, order->ncut, &group->target);
		for (int i = 0; i < order->nmake; i++)
			ocs_region_circuits_add(&group->target, order->make[i].a,
						order->make[i].a_port, order->make[i].b,
						order->make[i].b_port);
	}
	if (!group->order || group->sent)
		return;
	/* without ocsd the circuits stay as they are */
	if (group->controller->client && !group->controller->revoked)
		ocsd_ask(group);
	else if (order)
		group_failed(group, true, now);
}

void group_done(struct group *group, double now)
{
	ids_forget(group, group->cut, group->ncut);
	ocs_region_circuits_free(&group->stand);
	group->stand = group->target;
	memset(&group->target, 0, sizeof(group->target));
	ocs_moe_control_done(group->control, group->order, now);
	order_forget(group);
}

void group_failed(struct group *group, bool nothing, double now)
{
	if (nothing) {
		ocs_moe_control_failed(group->control, group->order, group->cut, group->ncut, now);
	} else {
		struct ocs_region_circuits left;

		/* what was to be cut may be gone, and what was to come may not be there */
		circuits_without(&group->stand, group->cut, group->ncut, &left);
		ocs_region_circuits_free(&group->stand);
		group->stand = left;
		ids_forget(group, group->cut, group->ncut);
		ocs_moe_control_failed(group->control, group->order, NULL, 0, now);
	}
	order_forget(group);
}

void group_tick(struct group *group, double now)
{
	if (group->control)
		ocs_moe_control_tick(group->control, now);
}

/* ---- plans ---- */

static int delegate_rank(const struct group *group, int server, int nic)
{
	return server * group->each + nic % group->each;
}

static void link_add(struct group *group, const struct ocs_moe_wire *wire, struct ocs_text *text)
{
	const struct controller *controller = group->controller;
	const char *a = group->address[wire->a * controller->nics + wire->a_port];
	const char *b = group->address[wire->b * controller->nics + wire->b_port];

	if (!*a || !*b)
		return;
	ocs_text_add(text, "link %u %d %d %s:%d %s:%d\n", wire_id(group, wire),
		     delegate_rank(group, wire->a, wire->a_port),
		     delegate_rank(group, wire->b, wire->b_port), a, controller->port, b,
		     controller->port);
}

static void share_add(const struct ocs_moe_route *route, double all, struct ocs_text *text)
{
	bool first = route->way != OCS_MOE_PACKETS && route->way != OCS_MOE_PACKETS_CIRCUIT;
	bool second =
		route->way == OCS_MOE_CIRCUIT_CIRCUIT || route->way == OCS_MOE_PACKETS_CIRCUIT;

	if (route->way != OCS_MOE_PACKETS && all > 0)
		ocs_text_add(text, "share %d %d %d %d %d %.6f\n", route->from, route->to,
			     route->relay, first, second, route->tokens / all);
}

/* Routes are by from, then to. */
static void shares_add(const struct ocs_moe_routes *routes, struct ocs_text *text)
{
	for (int i = 0, next; routes && i < routes->n; i = next) {
		const struct ocs_moe_route *pair = &routes->route[i];
		double all = 0;

		for (next = i; next < routes->n && routes->route[next].from == pair->from &&
			       routes->route[next].to == pair->to;
		     next++)
			all += routes->route[next].tokens;
		for (int r = i; r < next; r++)
			share_add(&routes->route[r], all, text);
	}
}

/* Without a control, or of a layer that it does not know, there are packets. */
static bool plan_make(struct group *group, const struct ocs_moe_step *step, struct ocs_text *text)
{
	bool known = group->control && step->layer < group->controller->layers;
	const struct ocs_moe_grant *grant =
		known ? ocs_moe_control_grant(group->control, step) : NULL;

	if (!grant)
		return !known || !group->order;
	for (int i = 0; i < grant->wires; i++)
		link_add(group, &grant->wire[i], text);
	shares_add(grant->routes, text);
	return true;
}

bool group_answer(struct group *group, const struct ocs_moe_step *step, double since, double now,
		  struct ocs_text *text)
{
	return plan_make(group, step, text) || now - since > group->controller->timeout;
}

void group_free(struct group *group)
{
	for (int i = 0; group->address && i < group->controller->servers * group->controller->nics;
	     i++)
		free(group->address[i]);
	/* of a group that was not read all are 0 */
	if (group->controller)
		sockets_close(&group->sockets);
	order_forget(group);
	ocs_region_circuits_free(&group->stand);
	ocs_moe_control_destroy(group->control);
	free(group->address);
	free(group->ended);
	free(group->id);
	free(group->peer);
}
