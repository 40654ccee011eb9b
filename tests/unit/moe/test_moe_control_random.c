/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* The control of a region against a switch and a ledger of its own: random trainings with rows that
 * are lost, late, doubled and wrong, servers that die, and a switch that fails or does not answer. */

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "src/moe/control.h"
#include "src/util/error.h"
#include "tests/unit/moe/gates.h"
#include "tests/unit/sanitizer.h"

#define SERVERS 8
#define PORTS 6
#define LAYERS 4
#define SLOTS 4
#define CHAINS 2 /* microbatches that are on their way at the same time */
#define RANKS_MAX (SERVERS * 2)
#define ROW 1000

/* A fibre of the judge's switch: where each NIC's light goes. */
struct light {
	int server, port; /* -1: nowhere */
};

/* What one layer's gate said, as the judge heard it. */
struct heard {
	int64_t microbatch;
	int conflict, rows;
	double row[RANKS_MAX][SERVERS * 4];
	int seen[RANKS_MAX];
};

struct lease {
	int open;
	struct ocs_moe_step step;
	int wires, begun, ended; /* masks of servers */
	struct ocs_moe_wire wire[SERVERS * PORTS];
};

struct world {
	uint64_t state;
	double now;
	int n, ranks, experts, ports, layers;
	struct ocs_moe_region *region;
	struct ocs_moe_numa numa;
	struct ocs_moe_control *control;
	struct light light[SERVERS][PORTS];
	int dubious[SERVERS][PORTS]; /* no one told the control what became of this NIC */
	struct heard heard[LAYERS][SLOTS];
	struct lease lease[CHAINS];
	const struct ocs_moe_order *order;
	struct ocs_moe_wire cut[SERVERS * PORTS], make[SERVERS * PORTS];
	int ncut, nmake;
	long seq;
	double answer_at;
	int dead, orders, calm; /* calm: nothing goes wrong */
};

static int draw(struct world *w, int n)
{
	return (int)(gate_random(&w->state) * n);
}

static int chance(struct world *w, double p)
{
	return !w->calm && gate_random(&w->state) < p;
}

static void light_join(struct world *w, const struct ocs_moe_wire *x)
{
	assert_true(x->a != x->b);
	assert_int_equal(w->light[x->a][x->a_port].server, -1);
	assert_int_equal(w->light[x->b][x->b_port].server, -1);
	assert_true(x->a_port < w->ports && x->b_port < w->ports);
	assert_false(w->dubious[x->a][x->a_port] || w->dubious[x->b][x->b_port]);
	w->light[x->a][x->a_port] = (struct light){ x->b, x->b_port };
	w->light[x->b][x->b_port] = (struct light){ x->a, x->a_port };
}

static int light_is(const struct world *w, const struct ocs_moe_wire *x)
{
	const struct light *l = &w->light[x->a][x->a_port], *m = &w->light[x->b][x->b_port];

	return l->server == x->b && l->port == x->b_port && m->server == x->a &&
	       m->port == x->a_port;
}

static void light_cut(struct world *w, const struct ocs_moe_wire *x)
{
	assert_true(light_is(w, x));
	w->light[x->a][x->a_port].server = w->light[x->b][x->b_port].server = -1;
}

/* The switch begins with an order at once: what is cut is dark from here on. */
static void order_look(struct world *w)
{
	const struct ocs_moe_order *order = ocs_moe_control_order(w->control);

	if (!order)
		return;
	assert_null(w->order);
	assert_false(w->dead);
	assert_int_equal(order->seq, w->seq + 1);
	assert_true(order->ncut + order->nmake > 0);
	w->seq = order->seq;
	w->order = order;
	w->orders++;
	w->ncut = order->ncut;
	w->nmake = order->nmake;
	memcpy(w->cut, order->cut, sizeof(*order->cut) * (size_t)order->ncut);
	memcpy(w->make, order->make, sizeof(*order->make) * (size_t)order->nmake);
	for (int k = 0; k < w->ncut; k++) {
		light_cut(w, &w->cut[k]);
		for (int c = 0; c < CHAINS; c++)
			for (int l = 0; w->lease[c].open && l < w->lease[c].wires; l++)
				assert_true(light_is(w, &w->lease[c].wire[l]));
	}
	w->answer_at = w->now + gate_random(&w->state) * 3;
	if (chance(w, 0.02))
		w->answer_at = INFINITY;
}

static void wire_doubt(struct world *w, const struct ocs_moe_wire *x)
{
	w->dubious[x->a][x->a_port] = w->dubious[x->b][x->b_port] = 1;
}

/* The order fails: some of its circuits stand, which the control is told or not. */
static void order_fail(struct world *w)
{
	struct ocs_moe_wire stand[2 * SERVERS * PORTS];
	int n = 0, told = draw(w, 2);

	if (draw(w, 2)) {
		for (int k = 0; k < w->ncut; k++)
			light_join(w, &w->cut[k]);
	} else {
		for (int k = 0; k < w->nmake; k++)
			if (draw(w, 2))
				light_join(w, &w->make[k]);
	}
	for (int k = 0; k < w->ncut + w->nmake; k++) {
		const struct ocs_moe_wire *x = k < w->ncut ? &w->cut[k] : &w->make[k - w->ncut];

		if (told && light_is(w, x))
			stand[n++] = *x;
		else if (!told)
			wire_doubt(w, x);
	}
	ocs_moe_control_failed(w->control, w->seq, told ? stand : NULL, n, w->now);
}

static void order_answer(struct world *w)
{
	if (chance(w, 0.05))
		ocs_moe_control_done(w->control, w->seq - 1 + 2 * draw(w, 2), w->now);
	if (!w->order || w->now < w->answer_at)
		return;
	w->order = NULL;
	if (chance(w, 0.1)) {
		order_fail(w);
	} else {
		for (int k = 0; k < w->nmake; k++)
			light_join(w, &w->make[k]);
		ocs_moe_control_done(w->control, w->seq, w->now);
	}
	if (chance(w, 0.1))
		ocs_moe_control_done(w->control, w->seq, w->now);
}

/* What the servers send each other by the judge's own sums; 0 if rows are missing. */
static int matrix_heard(const struct world *w, const struct ocs_moe_step *step, double *sum)
{
	const struct heard *heard = &w->heard[step->layer][step->microbatch % SLOTS];
	int n = w->n, per = w->experts / n;

	if (heard->microbatch != step->microbatch || heard->rows != w->ranks || heard->conflict)
		return 0;
	memset(sum, 0, sizeof(*sum) * SERVERS * SERVERS);
	for (int r = 0; r < w->ranks; r++)
		for (int e = 0; e < w->experts; e++) {
			int i = r / (w->ranks / n), j = e / per;

			if (i != j)
				sum[step->second ? j * n + i : i * n + j] += heard->row[r][e];
		}
	return 1;
}

static int joined(const struct ocs_moe_grant *grant, int i, int j)
{
	for (int k = 0; k < grant->wires; k++)
		if ((grant->wire[k].a == i && grant->wire[k].b == j) ||
		    (grant->wire[k].a == j && grant->wire[k].b == i))
			return 1;
	return 0;
}

/* The plan stands on circuits that carry light, and says what the gates said. */
static void grant_judge(struct world *w, const struct ocs_moe_step *step,
			const struct ocs_moe_grant *grant)
{
	double sum[SERVERS * SERVERS], said[SERVERS * SERVERS] = { 0 };
	int known = matrix_heard(w, step, sum);

	assert_int_equal(known, !grant->expected);
	for (int k = 0; k < grant->wires; k++)
		assert_true(light_is(w, &grant->wire[k]));
	for (int k = 0; k < grant->routes->n; k++) {
		const struct ocs_moe_route *r = &grant->routes->route[k];

		said[r->from * w->n + r->to] += r->tokens;
		if (r->way == OCS_MOE_CIRCUIT)
			assert_true(joined(grant, r->from, r->to));
		if (r->way == OCS_MOE_CIRCUIT_CIRCUIT || r->way == OCS_MOE_CIRCUIT_PACKETS)
			assert_true(joined(grant, r->from, r->relay));
		if (r->way == OCS_MOE_CIRCUIT_CIRCUIT || r->way == OCS_MOE_PACKETS_CIRCUIT)
			assert_true(joined(grant, r->relay, r->to));
	}
	for (int k = 0; known && k < w->n * w->n; k++)
		assert_true(fabs(said[k] - sum[k]) <= 1e-6 * (1 + sum[k]));
}

static void grant_take(struct world *w, struct lease *lease)
{
	const struct ocs_moe_grant *grant;

	if (lease->open || !lease->begun)
		return;
	grant = ocs_moe_control_grant(w->control, &lease->step);
	if (!grant)
		return;
	grant_judge(w, &lease->step, grant);
	lease->open = 1;
	lease->wires = grant->wires;
	memcpy(lease->wire, grant->wire, sizeof(*grant->wire) * (size_t)grant->wires);
}

static void row_hear(struct world *w, int layer, int64_t microbatch, int rank, const double *row)
{
	struct heard *heard = &w->heard[layer][microbatch % SLOTS];
	size_t size = sizeof(*row) * (size_t)w->experts;

	if (microbatch > heard->microbatch) {
		memset(heard, 0, sizeof(*heard));
		heard->microbatch = microbatch;
	}
	if (microbatch < heard->microbatch)
		return;
	if (heard->seen[rank]) {
		heard->conflict |= memcmp(heard->row[rank], row, size) != 0;
		return;
	}
	memcpy(heard->row[rank], row, size);
	heard->seen[rank] = 1;
	heard->rows++;
}

static void row_make(struct world *w, int layer, int rank, double *row)
{
	int left = ROW;

	for (int e = 0; e < w->experts; e++) {
		double share = (layer * 3 + rank * 5 + e) % w->experts % 5 == 1 ? 0.7 : 0.1;
		double noise = 0.9 + 0.1 * gate_random(&w->state);
		int k = e == w->experts - 1 ? left : (int)(left * share * noise);

		row[e] = k;
		left -= k;
	}
}

static void rows_send(struct world *w, int layer, int64_t microbatch)
{
	double row[SERVERS * 4];
	struct ocs_error err;

	for (int k = 0; k < w->ranks; k++) {
		int rank = w->ranks - 1 - k;

		row_make(w, layer, rank, row);
		if (chance(w, 0.01))
			continue;
		if (chance(w, 0.01)) {
			double was = row[0];

			row[0] = draw(w, 2) ? was + 1 : -1;
			assert_int_equal(ocs_moe_control_row(w->control, layer, microbatch, rank,
							     row, w->experts, w->now, &err),
					 -1);
			assert_int_equal(err.code, OCS_USAGE);
			row[0] = was;
		}
		row_hear(w, layer, microbatch, rank, row);
		assert_true(ocs_moe_control_row(w->control, layer, microbatch, rank, row,
						w->experts, w->now, &err) >= 0);
		order_look(w);
		if (chance(w, 0.02))
			assert_int_equal(ocs_moe_control_row(w->control, layer, microbatch, rank,
							     row, w->experts, w->now, &err),
					 0);
		if (chance(w, 0.01) && w->experts > 1 && row[0] > 0) {
			row[0]--;
			row[1]++;
			row_hear(w, layer, microbatch, rank, row);
			assert_int_equal(ocs_moe_control_row(w->control, layer, microbatch, rank,
							     row, w->experts, w->now, &err),
					 -1);
		}
		order_look(w);
	}
	if (chance(w, 0.05) && microbatch >= SLOTS)
		assert_int_equal(ocs_moe_control_row(w->control, layer, microbatch - SLOTS, 0, row,
						     w->experts, w->now, &err),
				 -1);
}

/* The next all-to-all of a chain of microbatches. */
static void step_next(struct world *w, struct ocs_moe_step *step)
{
	if (!step->second) {
		step->second = 1;
		return;
	}
	step->second = 0;
	if (step->pass == OCS_MOE_FORWARD && step->layer + 1 < w->layers) {
		step->layer++;
	} else if (step->pass == OCS_MOE_FORWARD) {
		step->pass = OCS_MOE_BACKWARD;
	} else if (step->layer) {
		step->layer--;
	} else {
		step->pass = OCS_MOE_FORWARD;
		step->microbatch += CHAINS;
	}
}

/* One server of one chain goes on. */
static void chain_move(struct world *w, int chain)
{
	struct lease *lease = &w->lease[chain];
	int server = draw(w, w->n), all = (1 << w->n) - 1;

	if (w->dead && server == w->dead - 1)
		return;
	if (!(lease->begun >> server & 1)) {
		if (!lease->begun && lease->step.pass == OCS_MOE_FORWARD && !lease->step.second)
			rows_send(w, lease->step.layer, lease->step.microbatch);
		lease->begun |= 1 << server;
		ocs_moe_control_begin(w->control, &lease->step, server, w->now);
		grant_take(w, lease);
		if (chance(w, 0.05))
			ocs_moe_control_begin(w->control, &lease->step, server, w->now);
	} else if (lease->open && !(lease->ended >> server & 1)) {
		/* The judge lets go before it tells: an exchange may come with the last end. */
		lease->ended |= 1 << server;
		if (lease->ended == all)
			lease->open = 0;
		ocs_moe_control_end(w->control, &lease->step, server, w->now);
		if (chance(w, 0.05))
			ocs_moe_control_end(w->control, &lease->step, server, w->now);
		if (lease->ended == all) {
			step_next(w, &lease->step);
			lease->begun = lease->ended = 0;
		}
	}
}

static void world_make(struct world *w, int seed)
{
	struct ocs_error err;

	memset(w, 0, sizeof(*w));
	w->state = (uint64_t)seed * 977 + 5;
	w->n = 2 + draw(w, SERVERS - 1);
	w->ranks = w->n * (1 + draw(w, 2));
	w->experts = w->ranks * (1 + draw(w, 2));
	w->ports = 1 + draw(w, PORTS);
	w->layers = 1 + draw(w, LAYERS);
	w->region = ocs_moe_region_create(w->n, w->ports, 1 + draw(w, 3));
	w->numa = (struct ocs_moe_numa){ w->ports, calloc(SERVERS * PORTS, sizeof(int)) };
	for (int k = 0; k < w->n * w->ports; k++)
		w->numa.node[k] = k % 2;
	for (int i = 0; i < SERVERS; i++)
		for (int p = 0; p < PORTS; p++)
			w->light[i][p].server = -1;
	for (int l = 0; l < LAYERS; l++)
		for (int s = 0; s < SLOTS; s++)
			w->heard[l][s].microbatch = -1;
	for (int c = 0; c < CHAINS; c++)
		w->lease[c].step.microbatch = c;
	w->control = ocs_moe_control_create(
		&(struct ocs_moe_control_setup){
			.region = w->region,
			.numa = &w->numa,
			.record = { w->n, w->ranks, w->layers, SLOTS, ROW },
			.rate = 1e4 * (1 + draw(w, 3)),
			.first = 0.001 * draw(w, 4),
			.timeout = 5,
			.predict = draw(w, 2),
			.relay = draw(w, 2),
			.effort = 300 },
		&err);
	assert_non_null(w->control);
}

static void world_free(struct world *w)
{
	ocs_moe_control_destroy(w->control);
	ocs_moe_region_destroy(w->region);
	free(w->numa.node);
}

static void world_run(struct world *w, int events, int chains)
{
	for (int e = 0; e < events; e++) {
		long timeouts = ocs_moe_control_count(w->control)->timeouts;

		w->now += gate_random(&w->state) * 0.01 * (draw(w, 20) ? 1 : 100);
		order_answer(w);
		ocs_moe_control_tick(w->control, w->now);
		if (ocs_moe_control_count(w->control)->timeouts > timeouts) {
			for (int k = 0; k < w->ncut + w->nmake; k++)
				wire_doubt(w, k < w->ncut ? &w->cut[k] : &w->make[k - w->ncut]);
			w->order = NULL;
			w->dead = w->n + 1; /* no order may follow */
		}
		for (int c = 0; c < chains; c++)
			grant_take(w, &w->lease[c]);
		chain_move(w, draw(w, chains));
		order_look(w);
		if (!w->dead && chance(w, 0.0002)) {
			w->dead = 1 + draw(w, w->n);
			ocs_moe_control_lost(w->control, w->dead - 1);
		}
	}
}

static void random_trainings(void **state)
{
	long orders = 0, leased = 0, predicted = 0, failed = 0, timeouts = 0;
	int seeds = cases_here(250);

	(void)state;
	for (int seed = 0; seed < seeds; seed++) {
		const struct ocs_moe_control_count *count;
		struct world w;

		world_make(&w, seed);
		world_run(&w, 3000, 1 + seed % CHAINS);
		count = ocs_moe_control_count(w.control);
		assert_int_equal(count->exchanges, w.orders);
		assert_in_range(count->mispredicted, 0, count->predicted);
		orders += w.orders;
		leased += count->leased;
		predicted += count->predicted;
		failed += count->failed;
		timeouts += count->timeouts;
		world_free(&w);
	}
	print_message("# %ld %ld %ld %ld %ld\n", orders, leased, predicted, failed, timeouts);
	/* All of it was seen. */
	assert_true(seeds < 250 ||
		    (orders > 300 && leased > 50 && predicted > 20 && failed > 20 && timeouts > 4));
	assert_true(orders && leased && predicted && failed && timeouts);
}

/* With a switch that takes no time circuits follow every gate. */
static void circuits_follow(void **state)
{
	(void)state;
	for (int seed = 0; seed < 10; seed++) {
		struct world w;
		long exchanges;

		world_make(&w, 4 * seed + 1000);
		w.calm = 1;
		world_run(&w, 3000, 1);
		exchanges = w.orders;
		if (w.n > 3 && w.ports < w.n - 1)
			assert_true(exchanges > 10);
		assert_int_equal(ocs_moe_control_count(w.control)->stray, 0);
		world_free(&w);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_trainings),
		cmocka_unit_test(circuits_follow),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
