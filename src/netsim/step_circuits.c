/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Circuits that follow the traffic: when there is some and then every interval, what is still to be
 * sent decides about circuits (the greedy choice of TopoOpt's algorithm 5), and all flows stand
 * still while they change.  With forwarding flows go over circuits of others where they have none
 * of their own; without, they wait.  Where the estimate follows the clock, they change every interval
 * only, for what is on its way then, be it nothing. */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/netsim/step_internal.h"
#include "src/util/text.h"

struct step_circuits {
	int n;
	int *now, *next; /* circuits from i to j: [i * n + j] */
	double *demand;
	bool begun, dark; /* circuits change until the next event */
	double last;	  /* when they last changed */
};

/* All links as they are in circuits->now; DARK: none has a rate. */
static void links_set(struct step_run *run, bool dark)
{
	struct step_circuits *circuits = run->circuits;

	for (int k = 0; k < circuits->n * circuits->n; k++) {
		double rate = circuits->now[k] * run->fabric->spec.rate;

		run->fabric->links[k].rate = rate;
		ocs_flownet_link_change(run->net, k, dark ? 0 : rate);
	}
	ocs_netsim_fabric_changed(run->fabric);
}

struct step_circuits *ocs_step_circuits_create(struct step_run *run)
{
	const struct ocs_netsim_spec *spec = &run->fabric->spec;
	struct step_circuits *circuits;
	size_t pairs = (size_t)run->fabric->servers * run->fabric->servers;

	if (spec->kind != OCS_NETSIM_RECONFIG && spec->kind != OCS_NETSIM_SIPML)
		return NULL;
	circuits = ocs_calloc(1, sizeof(*circuits));
	circuits->n = run->fabric->servers;
	circuits->now = ocs_calloc(pairs, sizeof(int));
	circuits->next = ocs_calloc(pairs, sizeof(int));
	circuits->demand = ocs_calloc(pairs, sizeof(double));
	for (size_t k = 0; k < pairs; k++)
		run->fabric->links[k].rate = 0; /* what an earlier run has left */
	/* Something joins all before anything is known. */
	for (int i = 0; i < circuits->n && circuits->n > 1; i++) {
		for (int k = 0; k < spec->degree; k++)
			circuits->now[i * circuits->n +
				      (i + 1 + k % (circuits->n - 1)) % circuits->n]++;
	}
	run->circuits = circuits;
	links_set(run, false);
	circuits->begun = spec->clock;
	if (spec->clock)
		ocs_queue_set(&run->queue, run->ntasks, spec->interval);
	return circuits;
}

void ocs_step_circuits_destroy(struct step_circuits *circuits)
{
	if (!circuits)
		return;
	free(circuits->now);
	free(circuits->next);
	free(circuits->demand);
	free(circuits);
}

/* What is still to be sent between pairs.  Returns whether there is anything. */
static bool demand_read(const struct step_run *run, struct step_circuits *circuits)
{
	bool any = false;

	memset(circuits->demand, 0, (size_t)circuits->n * circuits->n * sizeof(double));
	for (int k = 0; k < run->flows_size; k++) {
		const struct step_flow *flow = &run->flows[k];

		if (!flow->on)
			continue;
		circuits->demand[flow->src * circuits->n + flow->dst] +=
			ocs_flownet_left(run->net, k);
		any = true;
	}
	return any;
}

/* Whether A comes before B; equal demands in no order, or they would make cliques far apart. */
static bool pair_before(const struct step_circuits *circuits, int a, int b)
{
	unsigned spread = 2654435761u;

	if (circuits->demand[a] != circuits->demand[b])
		return circuits->demand[a] > circuits->demand[b];
	return (unsigned)a * spread > (unsigned)b * spread;
}

/* The pair of largest demand that has interfaces left; -1: none. */
static int pair_choose(const struct step_circuits *circuits, const int *tx, const int *rx)
{
	int n = circuits->n, best = -1;

	for (int i = 0; i < n; i++) {
		for (int j = 0; tx[i] && j < n; j++) {
			int pair = i * n + j;

			if (i != j && rx[j] && (best < 0 || pair_before(circuits, pair, best)))
				best = pair;
		}
	}
	return best;
}

/* Interfaces that only their own server could use go into a circuit of others. */
static void rest_splice(struct step_circuits *circuits, int server)
{
	int n = circuits->n;

	for (int pair = 0; pair < n * n; pair++) {
		int a = pair / n, b = pair % n;

		if (!circuits->next[pair] || a == server || b == server)
			continue;
		circuits->next[pair]--;
		circuits->next[a * n + server]++;
		circuits->next[server * n + b]++;
		return;
	}
}

static void greedy_fill(struct step_circuits *circuits, int degree, double discount, int *left)
{
	int n = circuits->n, pair, *tx = left, *rx = left + n;

	memset(circuits->next, 0, (size_t)n * n * sizeof(int));
	for (int k = 0; k < 2 * n; k++)
		left[k] = degree;
	while ((pair = pair_choose(circuits, tx, rx)) >= 0) {
		circuits->next[pair]++;
		circuits->demand[pair] *= discount;
		tx[pair / n]--;
		rx[pair % n]--;
	}
	for (int k = 0; k < n; k++) {
		for (; tx[k] && rx[k] && n > 2; tx[k]--, rx[k]--)
			rest_splice(circuits, k);
	}
}

static int part_of(int *parts, int at)
{
	while (parts[at] != at)
		at = parts[at] = parts[parts[at]];
	return at;
}

/* The circuit of the part of ROOT (or, with OTHER, of any other part) with the least demand. */
static int circuit_cheapest(const struct step_circuits *circuits, int *parts, int root, bool other)
{
	int n = circuits->n, best = -1;

	for (int pair = 0; pair < n * n; pair++) {
		if (circuits->next[pair] && (part_of(parts, pair / n) != root) == other &&
		    (best < 0 || circuits->demand[pair] < circuits->demand[best]))
			best = pair;
	}
	return best;
}

/* Joins what is apart: a circuit of each of two parts exchange ends (OWAN's two-edge
 * replacement). */
static void parts_join(struct step_circuits *circuits, int *parts)
{
	int n = circuits->n;

	for (;;) {
		int a, b;

		for (int k = 0; k < n; k++)
			parts[k] = k;
		for (int pair = 0; pair < n * n; pair++) {
			if (circuits->next[pair])
				parts[part_of(parts, pair / n)] = part_of(parts, pair % n);
		}
		a = circuit_cheapest(circuits, parts, part_of(parts, 0), false);
		b = circuit_cheapest(circuits, parts, part_of(parts, 0), true);
		if (a < 0 || b < 0)
			return;
		circuits->next[a]--;
		circuits->next[b]--;
		circuits->next[a / n * n + b % n]++;
		circuits->next[b / n * n + a % n]++;
	}
}

/* Flows under way take the new circuits. */
static void flows_reroute(struct step_run *run)
{
	for (int k = 0; k < run->flows_size; k++) {
		const struct step_flow *flow = &run->flows[k];
		const struct ocs_netsim_routes *routes;
		const struct ocs_netsim_path *path;

		if (!flow->on)
			continue;
		routes = ocs_netsim_fabric_routes(run->fabric, flow->src, flow->dst, run->err);
		if (!routes) {
			run->failed = true;
			return;
		}
		path = &routes->paths[k % routes->count];
		ocs_flownet_reroute(run->net, k, path->links, path->n);
	}
}

static void change_begin(struct step_run *run, double discount)
{
	struct step_circuits *circuits = run->circuits;
	const struct ocs_netsim_spec *spec = &run->fabric->spec;
	size_t bytes = (size_t)circuits->n * circuits->n * sizeof(int);
	int *left = ocs_calloc((size_t)2 * circuits->n, sizeof(int));

	greedy_fill(circuits, spec->degree, discount, left);
	if (spec->forward)
		parts_join(circuits, left);
	free(left);
	circuits->last = ocs_flownet_now(run->net);
	if (!memcmp(circuits->now, circuits->next, bytes)) {
		ocs_queue_set(&run->queue, run->ntasks, circuits->last + spec->interval);
		return;
	}
	memcpy(circuits->now, circuits->next, bytes);
	circuits->dark = true;
	run->result->changes++;
	links_set(run, true);
	ocs_queue_set(&run->queue, run->ntasks, circuits->last + spec->pause);
}

void ocs_step_circuits_event(struct step_run *run)
{
	struct step_circuits *circuits = run->circuits;
	const struct ocs_netsim_spec *spec = &run->fabric->spec;

	ocs_queue_remove(&run->queue, run->ntasks);
	if (circuits->dark) {
		circuits->dark = false;
		links_set(run, false);
		flows_reroute(run);
		ocs_queue_set(&run->queue, run->ntasks,
			      fmax(circuits->last + spec->interval, ocs_flownet_now(run->net)));
	} else if (demand_read(run, circuits) || spec->clock) {
		change_begin(run, spec->kind == OCS_NETSIM_SIPML ? 1 : .5);
	} else {
		circuits->begun = false;
	}
}

void ocs_step_circuits_want(struct step_run *run)
{
	struct step_circuits *circuits = run->circuits;
	double now = ocs_flownet_now(run->net), due;

	if (circuits->begun)
		return;
	circuits->begun = true;
	due = run->result->changes ? circuits->last + run->fabric->spec.interval : now;
	ocs_queue_set(&run->queue, run->ntasks, fmax(due, now));
}
