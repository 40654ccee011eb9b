/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Flows whose times are known on paper.  With arguments, FILE [TOLERANCE], replays a case for
 * test_netsim_judges.py. */

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "src/netsim/flow.h"
#include "src/netsim/queue.h"
#include "src/util/error.h"
#include "tests/unit/netsim/flow_replay.h"

static void close_to(double a, double b)
{
	if (fabs(a - b) > 1e-9 * fabs(b))
		fail_msg("%.12g is not %.12g", a, b);
}

/* Runs to the end of the next flow, which must have TAG and end at TIME. */
static void end_expect(struct ocs_flownet *net, int tag, double time)
{
	static const struct ocs_flow_end *ends;
	static int count, at;

	if (!net) {
		count = at = 0;
		return;
	}
	while (at == count) {
		double next = ocs_flownet_next(net);
		struct ocs_error err;

		assert_true(isfinite(next));
		if (ocs_flownet_check(net, true, &err))
			fail_msg("%s", err.text);
		ocs_flownet_advance(net, next);
		ends = ocs_flownet_ended(net, &count);
		at = 0;
	}
	assert_int_equal(ends[at].tag, tag);
	close_to(ends[at++].time, time);
}

/* The example of every book: three links in a row, one flow over all of them. */
static void test_parking_lot(void **state)
{
	struct ocs_flownet *net = ocs_flownet_create(0);

	(void)state;
	end_expect(NULL, 0, 0);
	for (int k = 0; k < 3; k++)
		ocs_flownet_link_add(net, k == 1 ? 20 : 10);
	ocs_flownet_start(net, (int[]){ 0, 1, 2 }, 3, 50, 1, 0);
	ocs_flownet_start(net, (int[]){ 0 }, 1, 25, 1, 1);
	ocs_flownet_start(net, (int[]){ 1 }, 1, 150, 1, 2);
	ocs_flownet_start(net, (int[]){ 2 }, 1, 100, 1, 3);
	end_expect(net, 1, 5); /* 5, 5, 15, 5: then 0 has 5 of link 2, too */
	end_expect(net, 0, 10);
	end_expect(net, 2, 10);
	end_expect(net, 3, 15); /* 50 of 100 at 10, then 10 a ms */
	close_to(ocs_flownet_link_carried(net, 0), 75);
	close_to(ocs_flownet_link_carried(net, 1), 200);
	close_to(ocs_flownet_link_carried(net, 2), 150);
	assert_true(isinf(ocs_flownet_next(net)));
	ocs_flownet_destroy(net);
}

/* A circuit goes away for 10 ms and comes back at half its rate, a flow is paused meanwhile. */
static void test_changes(void **state)
{
	struct ocs_flownet *net = ocs_flownet_create(0);
	int other;

	(void)state;
	end_expect(NULL, 0, 0);
	ocs_flownet_link_add(net, 10);
	ocs_flownet_link_add(net, 10);
	ocs_flownet_start(net, (int[]){ 0 }, 1, 100, 1, 7);
	other = ocs_flownet_start(net, (int[]){ 1 }, 1, 100, 1, 8);
	close_to(ocs_flownet_next(net), 10);
	ocs_flownet_advance(net, 5);
	ocs_flownet_link_change(net, 0, 0);
	ocs_flownet_pause(net, other);
	assert_true(isinf(ocs_flownet_next(net)));
	ocs_flownet_advance(net, 15);
	ocs_flownet_link_change(net, 0, 5);
	ocs_flownet_resume(net, other);
	close_to(ocs_flownet_next(net), 20);
	ocs_flownet_advance(net, 17);
	close_to(ocs_flownet_left(net, other), 30);
	ocs_flownet_reroute(net, other, (int[]){ 0 }, 1);
	end_expect(net, 8, 29); /* 30 at 2.5 */
	end_expect(net, 7, 31);
	close_to(ocs_flownet_link_carried(net, 0), 130);
	close_to(ocs_flownet_link_carried(net, 1), 70);
	ocs_flownet_destroy(net);
}

/* Many on one path, in groups; and nothing at all, which ends at once. */
static void test_counts(void **state)
{
	struct ocs_flownet *net = ocs_flownet_create(0);

	(void)state;
	end_expect(NULL, 0, 0);
	ocs_flownet_link_add(net, 10);
	ocs_flownet_start(net, (int[]){ 0 }, 1, 3, 8, 1);
	ocs_flownet_start(net, (int[]){ 0 }, 1, 1, 2, 2);
	ocs_flownet_start(net, (int[]){ 0 }, 1, 0, 1, 3);
	end_expect(net, 3, 0);
	end_expect(net, 2, 1);
	end_expect(net, 1, 2.6); /* 8 x 2 bytes at 10 */
	close_to(ocs_flownet_link_carried(net, 0), 26);
	ocs_flownet_destroy(net);
}

static void test_queue(void **state)
{
	struct ocs_queue queue = { 0 };

	(void)state;
	assert_int_equal(ocs_queue_first(&queue), -1);
	assert_true(isinf(ocs_queue_next(&queue)));
	srand(5);
	for (int k = 0; k < 1000; k++)
		ocs_queue_set(&queue, k, rand() % 100);
	for (int k = 0; k < 500; k++)
		ocs_queue_set(&queue, rand() % 1000, rand() % 100);
	for (int k = 0; k < 1000; k += 3)
		ocs_queue_remove(&queue, k);
	ocs_queue_remove(&queue, 0);
	for (int k = 0, last = -1; k < 666; k++) {
		int first = ocs_queue_first(&queue), time = (int)ocs_queue_next(&queue) * 1000;

		assert_true(first % 3 && time + first > last);
		last = time + first;
		ocs_queue_remove(&queue, first);
	}
	assert_int_equal(queue.count, 0);
	ocs_queue_free(&queue);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parking_lot),
		cmocka_unit_test(test_changes),
		cmocka_unit_test(test_counts),
		cmocka_unit_test(test_queue),
	};

	if (argc > 1)
		return flow_replay(argv[1], argc > 2 ? atof(argv[2]) : 0);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
