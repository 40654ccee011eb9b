/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "src/config/config.h"
#include "src/sim/report.h"
#include "src/util/error.h"

struct rig {
	struct ocs_fabric *fabric;
	struct ocs_policy *policy;
	struct ocs_sim_trace trace;
	struct ocs_sim_options o;
	struct ocs_sim_result result;
};

static void rig_open(struct rig *r, const char *fabric, const char *policy)
{
	memset(r, 0, sizeof(*r));
	r->fabric = ocs_config_take_fabric(ocs_config_open(fabric, NULL));
	assert_non_null(r->fabric);
	r->policy = ocs_policy_create(r->fabric, &r->fabric->sections[0], policy, false, NULL);
	assert_non_null(r->policy);
	r->o.fabric = r->fabric;
	r->o.section = &r->fabric->sections[0];
	r->o.trace = &r->trace;
	r->o.verify = true;
}

static void rig_close(struct rig *r)
{
	ocs_sim_result_free(&r->result);
	ocs_sim_trace_free(&r->trace);
	ocs_policy_destroy(r->policy);
	ocs_fabric_destroy(r->fabric);
}

static void job_add(struct rig *r, double arrival, const char *shape, double duration, int priority)
{
	struct ocs_sim_job j = {
		.id = r->trace.njobs, .arrival = arrival, .duration = duration, .priority = priority
	};

	assert_int_equal(ocs_shape_parse(shape, NULL, &j.shape, NULL), 0);
	ocs_sim_trace_add(&r->trace, &j);
}

static void rig_run(struct rig *r)
{
	struct ocs_error err = { 0 };

	ocs_sim_result_free(&r->result);
	if (ocs_sim_run(&r->o, r->policy, &r->result, &err))
		fail_msg("%s", err.text);
}

static double job_start(const struct rig *r, long i)
{
	assert_int_equal(r->result.jobs[i].state, OCS_SIM_DONE);
	return r->result.jobs[i].start;
}

#define ONE "torus cubes:1x1x1 cube:4x4x4 tile:1x1x1"
#define TWO "torus cubes:2x1x1 cube:4x4x4 tile:1x1x1"

/* The head of the queue blocks; backfill lets pass only who does not delay it. */
static void test_queue(void **unused)
{
	struct rig r;

	(void)unused;
	rig_open(&r, ONE, "best");
	job_add(&r, 0, "8x4", 100, 0);	/* half the cube until 100 */
	job_add(&r, 10, "8x8", 50, 0);	/* waits for all of it */
	job_add(&r, 20, "4x4", 70, 0);	/* would end at 90, before the head starts */
	job_add(&r, 21, "4x4", 500, 0); /* would hold it up */
	job_add(&r, 22, "6x6x6", 5, 0); /* can never fit */
	rig_run(&r);
	assert_true(job_start(&r, 0) == 0);
	assert_true(job_start(&r, 1) == 100);
	assert_true(job_start(&r, 2) == 150);
	assert_true(job_start(&r, 3) == 150);
	assert_int_equal(r.result.jobs[4].state, OCS_SIM_NEVER);
	assert_int_equal(r.result.verified, 4);

	r.o.easy = true;
	rig_run(&r);
	assert_true(job_start(&r, 1) == 100);
	assert_true(job_start(&r, 2) == 20 && r.result.jobs[2].backfilled);
	assert_true(job_start(&r, 3) == 150 && !r.result.jobs[3].backfilled);
	rig_close(&r);
}

/* A long job may pass the head if it leaves it room where it will start. */
static void test_backfill_beside(void **unused)
{
	struct rig r;

	(void)unused;
	rig_open(&r, TWO, "best");
	r.o.easy = true;
	job_add(&r, 0, "8x8", 100, 0);	/* a cube */
	job_add(&r, 0, "8x4", 300, 0);	/* half the other */
	job_add(&r, 1, "8x8", 10, 0);	/* waits for the first cube, until 100 */
	job_add(&r, 2, "8x4", 1000, 0); /* takes the half that the head cannot use */
	rig_run(&r);
	assert_true(job_start(&r, 2) == 100);
	assert_true(job_start(&r, 3) == 2 && r.result.jobs[3].backfilled);
	rig_close(&r);
}

/* Half of each cube is in use: one job goes to the other half, and stands still for it. */
static void test_defragment(void **unused)
{
	struct rig r;
	long moved;

	(void)unused;
	rig_open(&r, TWO, "best");
	job_add(&r, 0, "8x4", 1000, 0);
	job_add(&r, 0, "8x4", 10, 0); /* the other half of its cube, for a while */
	job_add(&r, 1, "8x4", 1000, 0);
	job_add(&r, 20, "4x4x4", 100, 0);
	rig_run(&r);
	assert_true(job_start(&r, 3) == 1000);
	assert_int_equal(r.result.restarts, 0);
	r.o.moves = 1;
	r.o.restart = 50;
	rig_run(&r);
	assert_true(job_start(&r, 3) == 20);
	assert_int_equal(r.result.restarts, 1);
	moved = r.result.jobs[0].restarts ? 0 : 2;
	assert_int_equal(r.result.jobs[moved].restarts, 1);
	assert_true(r.result.jobs[moved].end == job_start(&r, moved) + 1050);
	assert_true(r.result.jobs[2 - moved].end == job_start(&r, 2 - moved) + 1000);
	assert_int_equal(r.result.verified, 4);
	assert_true(r.result.useful + 50 * 32 <= r.result.busy + 1e-6);
	rig_close(&r);
}

/* A job with a line takes longer than its duration, as much after a move as before. */
static void test_defragment_lines(void **unused)
{
	const struct ocs_sim_outcome *job;
	struct rig r;

	(void)unused;
	rig_open(&r, TWO, "best");
	ocs_policy_destroy(r.policy);
	r.policy = ocs_policy_create(r.fabric, &r.fabric->sections[0], "best", true, NULL);
	r.o.simulated = true;
	r.o.communication = 0.5;
	job_add(&r, 0, "7x4", 1000, 0);
	job_add(&r, 0, "8x4", 10, 0);
	job_add(&r, 1, "7x4", 1000, 0);
	job_add(&r, 20, "4x4x4", 100, 0);
	r.o.moves = 1;
	r.o.restart = 50;
	rig_run(&r);
	assert_int_equal(r.result.restarts, 1);
	job = &r.result.jobs[r.result.jobs[0].restarts ? 0 : 2];
	assert_true(job->relaxed && job->slowdown > 1.2);
	assert_true(fabs(job->end - job->start - 1000 * job->slowdown - 50) < 1e-6);
	rig_close(&r);
}

static void test_orders(void **unused)
{
	static const struct {
		enum ocs_sim_order order;
		long first;
	} orders[] = {
		{ OCS_SIM_FIFO, 1 },	{ OCS_SIM_PRIORITY, 3 }, { OCS_SIM_SMALLEST, 2 },
		{ OCS_SIM_LARGEST, 1 }, { OCS_SIM_SHORTEST, 3 },
	};
	size_t i;
	struct rig r;

	(void)unused;
	rig_open(&r, ONE, "best");
	job_add(&r, 0, "8x8", 100, 0);
	job_add(&r, 1, "8x8", 30, 1);
	job_add(&r, 2, "2", 40, 0);
	job_add(&r, 3, "8x4", 20, 2);
	for (i = 0; i < sizeof(orders) / sizeof(orders[0]); i++) {
		r.o.order = orders[i].order;
		rig_run(&r);
		assert_true(job_start(&r, orders[i].first) == 100);
	}
	rig_close(&r);
}

static void test_figures(void **unused)
{
	struct ocs_sim_figures f;
	struct rig r;

	(void)unused;
	rig_open(&r, ONE, "best");
	job_add(&r, 0, "8x8", 3600, 0);
	job_add(&r, 1800, "8x4", 3600, 0);
	job_add(&r, 1800, "6x6x6", 3600, 0);
	rig_run(&r);
	ocs_sim_figures(&r.result, r.o.section, &f);
	assert_true(fabs(f.jcr - 200.0 / 3) < 1e-9);
	assert_true(fabs(f.jct[3] - 1.25) < 1e-9);
	assert_true(fabs(f.utilisation - 75) < 1e-9); /* an hour full, an hour half */
	assert_true(f.done == 2 && f.never == 1 && f.decided == 3);

	/* cut off in the middle: what runs counts as decided, what waits does not */
	r.o.horizon = 1900;
	rig_run(&r);
	ocs_sim_figures(&r.result, r.o.section, &f);
	assert_true(f.running == 1 && f.waiting == 2 && f.done == 0 && f.decided == 1);
	assert_true(fabs(f.utilisation - 100) < 1e-9);

	/* the warm-up does not count */
	r.o.horizon = 0;
	r.o.warmup = 3600;
	rig_run(&r);
	ocs_sim_figures(&r.result, r.o.section, &f);
	assert_true(fabs(f.utilisation - 50) < 1e-9);
	rig_close(&r);
}

/* Circuits take time; a switch works on one batch after the other. */
static void test_switching(void **unused)
{
	struct rig r;

	(void)unused;
	rig_open(&r, TWO, "best");
	r.o.switch_delay = 1;
	job_add(&r, 0, "4x4x4", 100, 0); /* 48 circuits, one per switch */
	job_add(&r, 0, "4x4x4", 100, 0); /* the same switches */
	job_add(&r, 500, "2", 100, 0);	 /* none */
	rig_run(&r);
	assert_int_equal(r.result.jobs[0].circuits, 48);
	assert_true(r.result.jobs[0].end == 101);
	assert_true(r.result.jobs[1].end == 102);
	assert_true(r.result.jobs[2].end == 600);

	r.o.circuit_delay = .5;
	rig_run(&r);
	assert_true(r.result.jobs[0].end == 101.5);
	rig_close(&r);

	/* 8x4x4 has two circuits on each switch of the first axis */
	rig_open(&r, TWO, "best");
	r.o.circuit_delay = .5;
	job_add(&r, 0, "8x4x4", 100, 0);
	rig_run(&r);
	assert_true(r.result.jobs[0].end == 101);
	r.o.switches_parallel = true;
	rig_run(&r);
	assert_true(r.result.jobs[0].end == 100.5);
	rig_close(&r);
}

/* The same seed gives the same run, job by job; all placements are verified; nobody
 * overtakes; a closed loop keeps its limit. */
static void test_closed_loop(void **unused)
{
	struct ocs_sim_workload w;
	struct ocs_sim_result first;
	struct ocs_random random;
	struct rig r;
	double last = 0;
	long i, started = 0, waiting = 0;

	(void)unused;
	rig_open(&r, "torus cubes:4x4x4 cube:4x4x4 tile:1x1x1", "rfold");
	assert_int_equal(ocs_sim_workload_open(&w, "rfold-2025", NULL, NULL, NULL, NULL), 0);
	r.o.workload = &w;
	r.o.random = &random;
	r.o.queue_limit = 10;
	r.o.horizon = 300 * 3600;
	ocs_random_seed(&random, 5);
	rig_run(&r);
	first = r.result;
	memset(&r.result, 0, sizeof(r.result));
	assert_int_equal(r.trace.njobs, first.njobs);
	r.trace.njobs = 0;
	ocs_random_seed(&random, 5);
	rig_run(&r);
	assert_int_equal(first.njobs, r.result.njobs);
	assert_true(first.lost > 0 && first.njobs > 50);
	for (i = 0; i < first.njobs; i++) {
		const struct ocs_sim_outcome *a = &first.jobs[i], *b = &r.result.jobs[i];

		assert_int_equal(a->state, b->state);
		assert_true(a->start == b->start && a->end == b->end);
		waiting += a->state == OCS_SIM_WAITING;
		if (a->state != OCS_SIM_RUNNING && a->state != OCS_SIM_DONE)
			continue;
		assert_true(a->start >= last);
		last = a->start;
		started++;
	}
	assert_true(waiting <= 11);
	assert_int_equal(first.verified, started);

	/* replaying what the loop took gives the loop again */
	r.o.workload = NULL;
	rig_run(&r);
	assert_int_equal(first.njobs, r.result.njobs);
	for (i = 0; i < first.njobs; i++)
		assert_true(first.jobs[i].start == r.result.jobs[i].start);
	ocs_sim_result_free(&first);
	ocs_sim_workload_free(&w);
	rig_close(&r);
}

static void test_quantile(void **unused)
{
	static const double values[] = { 1, 2, 4, 8 };

	(void)unused;
	assert_true(ocs_sim_quantile(values, 4, 0) == 1);
	assert_true(ocs_sim_quantile(values, 4, .5) == 3);
	assert_true(ocs_sim_quantile(values, 4, 1) == 8);
	assert_true(ocs_sim_quantile(values, 1, .9) == 1);
	assert_true(ocs_sim_quantile(values, 0, .5) == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_queue),	   cmocka_unit_test(test_backfill_beside),
		cmocka_unit_test(test_defragment), cmocka_unit_test(test_defragment_lines),
		cmocka_unit_test(test_orders),	   cmocka_unit_test(test_figures),
		cmocka_unit_test(test_switching),  cmocka_unit_test(test_closed_loop),
		cmocka_unit_test(test_quantile),
	};

	return cmocka_run_group_tests_name("sim", tests, NULL, NULL);
}
