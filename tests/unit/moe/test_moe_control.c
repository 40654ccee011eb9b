/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* When the control of a region changes circuits, and when it does not. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "src/moe/allocate.h"
#include "src/moe/control.h"
#include "src/util/error.h"
#include "tests/unit/moe/gates.h"

/* A training with nothing random: two layers whose gates do not agree, four servers. */
struct training {
	struct ocs_moe_region *region;
	struct ocs_moe_control *control;
	struct ocs_moe_demand *gate[2];
	double now, wait; /* of the switch */
	double sum;	  /* of finish times with the circuits that stood */
};

static void training_make(struct training *t, double switching, int predict)
{
	static int nodes[6 * 3];
	struct ocs_moe_numa numa = { 3, nodes };
	struct ocs_error err;

	*t = (struct training){ .region = ocs_moe_region_create(6, 3, 1), .wait = switching };
	for (int l = 0; l < 2; l++)
		t->gate[l] = gate_demand(GATE_DIRICHLET, 6, 40 + l);
	t->control =
		ocs_moe_control_create(&(struct ocs_moe_control_setup){ .region = t->region,
									.numa = &numa,
									.record = { 6, 6, 2, 4, 0 },
									.rate = 1e6,
									.first = switching,
									.timeout = 5,
									.predict = predict },
				       &err);
	assert_non_null(t->control);
}

static void training_free(struct training *t)
{
	ocs_moe_control_destroy(t->control);
	ocs_moe_region_destroy(t->region);
	for (int l = 0; l < 2; l++)
		ocs_moe_demand_destroy(t->gate[l]);
}

static void training_rows(struct training *t, int layer, int64_t microbatch, int rows)
{
	struct ocs_error err;

	for (int r = 0; r < rows; r++)
		assert_int_equal(ocs_moe_control_row(t->control, layer, microbatch, r,
						     t->gate[layer]->tokens + r * 6, 6, t->now,
						     &err),
				 r == 5);
}

/* 30 ms of computation, then an all-to-all; the switch does its work in between. */
static void training_step(struct training *t, struct ocs_moe_step step)
{
	const struct ocs_moe_order *order = ocs_moe_control_order(t->control);
	struct ocs_moe_circuits *circuits = ocs_moe_circuits_create(6);
	const struct ocs_moe_grant *grant;
	double time;

	if (order && t->wait <= 0.03)
		ocs_moe_control_done(t->control, order->seq, t->now + t->wait);
	t->now += 0.03;
	for (int s = 0; s < 6; s++)
		ocs_moe_control_begin(t->control, &step, s, t->now);
	grant = ocs_moe_control_grant(t->control, &step);
	if (!grant) {
		t->now += t->wait;
		ocs_moe_control_done(t->control, order->seq, t->now);
		grant = ocs_moe_control_grant(t->control, &step);
	} else if (order && t->wait > 0.03) {
		ocs_moe_control_done(t->control, order->seq, t->now);
	}
	for (int k = 0; k < grant->wires; k++)
		ocs_moe_circuits_add(circuits, grant->wire[k].a, grant->wire[k].b, 1);
	time = ocs_moe_finish_time(t->gate[step.layer], t->region, circuits);
	ocs_moe_circuits_destroy(circuits);
	t->sum += time;
	t->now += time / 1e6;
	for (int s = 0; s < 6; s++)
		ocs_moe_control_end(t->control, &step, s, t->now);
}

/* ROWS of 6 rows of each gate arrive. */
static void training_run(struct training *t, int from, int to, int rows)
{
	t->sum = 0;
	for (int m = from; m < to; m++) {
		for (int l = 0; l < 2; l++) {
			training_rows(t, l, m, rows);
			for (int second = 0; second < 2; second++)
				training_step(
					t, (struct ocs_moe_step){ l, m, OCS_MOE_FORWARD, second });
		}
		for (int l = 1; l >= 0; l--)
			for (int second = 0; second < 2; second++)
				training_step(
					t, (struct ocs_moe_step){ l, m, OCS_MOE_BACKWARD, second });
	}
}

static double best_time(const struct training *t, int layer)
{
	struct ocs_moe_circuits *best = ocs_moe_allocate(&(struct ocs_moe_request){
		.demand = t->gate[layer], .region = t->region, .policy = OCS_MOE_BEST });
	double time = ocs_moe_finish_time(t->gate[layer], t->region, best);

	ocs_moe_circuits_destroy(best);
	return time;
}

static void a_fast_switch_is_used(void **state)
{
	for (int predict = 0; predict < 2; predict++) {
		struct training t;
		double best;

		(void)state;
		training_make(&t, 0.001, predict);
		best = best_time(&t, 0) + best_time(&t, 1);
		/* Predictions are watched before one is acted upon. */
		training_run(&t, 0, 3, 6);
		assert_int_equal(ocs_moe_control_count(t.control)->predicted, 0);
		training_run(&t, 3, 12, 6);
		training_run(&t, 12, 20, 6);
		/* Of four all-to-alls of a layer three follow the gate, with predictions all. */
		assert_true(t.sum / 8 <= 4 * best * (predict ? 1.02 : 1.15));
		if (predict)
			assert_true(ocs_moe_control_count(t.control)->predicted > 0);
		else
			assert_int_equal(ocs_moe_control_count(t.control)->predicted, 0);
		training_free(&t);
	}
}

/* While gates stay no prediction is wrong; once the second layer has the gate of the first, circuits that were made
 * ahead for what it had before are slower than those for the first, which were there. */
static void wrong_predictions_are_counted(void **state)
{
	const struct ocs_moe_control_count *count;
	struct training t;

	(void)state;
	training_make(&t, 0.001, 1);
	count = ocs_moe_control_count(t.control);
	training_run(&t, 0, 20, 6);
	assert_true(count->predicted > 0);
	assert_int_equal(count->mispredicted, 0);
	ocs_moe_demand_destroy(t.gate[1]);
	t.gate[1] = gate_demand(GATE_DIRICHLET, 6, 40);
	training_run(&t, 20, 21, 6);
	assert_in_range(count->mispredicted, 1, count->predicted);
	training_free(&t);
}

static void a_slow_switch_is_used_once(void **state)
{
	struct training t;
	double packets = 0;
	struct ocs_moe_circuits *none = ocs_moe_circuits_create(6);

	(void)state;
	training_make(&t, 2, 1);
	for (int l = 0; l < 2; l++)
		packets += 4 * ocs_moe_finish_time(t.gate[l], t.region, none);
	training_run(&t, 0, 400, 6);
	training_run(&t, 400, 410, 6);
	assert_true(t.sum / 10 < 0.6 * packets);
	assert_true(ocs_moe_control_count(t.control)->exchanges < 8);
	ocs_moe_circuits_destroy(none);
	training_free(&t);
}

static void lost_rows_keep_circuits(void **state)
{
	struct training t;

	(void)state;
	training_make(&t, 0, 0);
	training_run(&t, 0, 20, 5);
	assert_int_equal(ocs_moe_control_count(t.control)->exchanges, 0);
	assert_true(ocs_moe_control_count(t.control)->unknown > 0);
	training_free(&t);
}

static void a_dead_server_keeps_circuits(void **state)
{
	struct training t;
	long exchanges;

	(void)state;
	training_make(&t, 0, 0);
	training_run(&t, 0, 3, 6);
	exchanges = ocs_moe_control_count(t.control)->exchanges;
	assert_true(exchanges > 0);
	ocs_moe_control_lost(t.control, 2);
	training_run(&t, 3, 9, 6);
	assert_int_equal(ocs_moe_control_count(t.control)->exchanges, exchanges);
	training_free(&t);
}

static void adoption(void **state)
{
	struct ocs_moe_wire wires[] = { { 0, 0, 1, 0 }, { 2, 1, 3, 2 } };
	const struct ocs_moe_wire *stand;
	struct training t;
	struct ocs_error err;

	(void)state;
	training_make(&t, 0, 0);
	assert_int_equal(ocs_moe_control_adopt(t.control, wires, 2, &err), 0);
	assert_int_equal(ocs_moe_control_wires(t.control, &stand), 2);
	wires[1].a = 0;
	wires[1].a_port = 0;
	assert_int_equal(ocs_moe_control_adopt(t.control, wires, 2, &err), -1);
	wires[1].a_port = 3;
	assert_int_equal(ocs_moe_control_adopt(t.control, wires, 2, &err), -1);
	assert_int_equal(ocs_moe_control_wires(t.control, &stand), 2);
	training_free(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_fast_switch_is_used),
		cmocka_unit_test(wrong_predictions_are_counted),
		cmocka_unit_test(a_slow_switch_is_used_once),
		cmocka_unit_test(lost_rows_keep_circuits),
		cmocka_unit_test(a_dead_server_keeps_circuits),
		cmocka_unit_test(adoption),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
