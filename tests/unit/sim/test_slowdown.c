/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* What a placement does to an AllReduce, for cases that are known on paper. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "src/sim/slowdown.h"
#include "src/util/error.h"

static struct ocs_shape shape_of(const char *text, const char *conn)
{
	struct ocs_error err = { 0 };
	struct ocs_shape shape;

	if (ocs_shape_parse(text, conn, &shape, &err))
		fail_msg("%s", err.text);
	return shape;
}

/* Both directions of a ring on a line: each link carries one, and the two ends' way to each other. */
static void test_lines(void **state)
{
	static const struct {
		const char *shape, *asked, *placed;
		double ratio;
	} cases[] = {
		{ "8", "torus", "torus", 1 },
		{ "8", "torus", "mesh", 2 },
		{ "8", "mesh", "mesh", 1 },
		{ "2", "torus", "mesh", 1 },
		{ "128", "torus", "mesh", 2 }, /* a way of more links than a flow may have */
		{ "4x4x4", "torus", "mesh", 2 },
		{ "4x4x4", "torus", "torus,torus,mesh", 2 }, /* each phase waits for that one */
		{ "8x2", "torus", "torus,mesh", 1 },
		{ "4x4x8_twisted", "torus", "torus", 1 },
	};
	struct ocs_sim_ratios ratios = { 0 };

	(void)state;
	for (int again = 0; again < 2; again++) {
		for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
			struct ocs_shape asked = shape_of(cases[i].shape, cases[i].asked);
			struct ocs_shape placed = shape_of(cases[i].shape, cases[i].placed);
			double ratio = ocs_sim_ratio_find(&ratios, &asked, &placed, NULL);

			if (ratio < cases[i].ratio * (1 - 1e-9) ||
			    ratio > cases[i].ratio * (1 + 1e-9))
				fail_msg("%s %s: %g", cases[i].shape, cases[i].placed, ratio);
		}
		assert_int_equal(ratios.count, sizeof(cases) / sizeof(cases[0]));
	}
	ocs_sim_ratios_free(&ratios);
}

/* A ring of four whose last edge has no link: it takes the other three. */
static void test_routes(void **state)
{
	struct ocs_hop hops[] = { { 0, 0 }, { 1, 0 }, { 2, 0 }, { 3, 1 }, { 2, 1 }, { 1, 1 } };
	struct ocs_route routes[] = {
		{ 0, 1, 0, 1 }, { 1, 2, 1, 1 }, { 2, 3, 2, 1 }, { 3, 0, 3, 3 }
	};
	struct ocs_routes all = {
		.routes = routes, .nroutes = 4, .hops = hops, .nhops = 6, .load = 2
	};
	struct ocs_shape ring = shape_of("4", "torus");

	(void)state;
	assert_float_equal(ocs_sim_allreduce_ratio(&ring, &ring, &all), 2, 1e-9);
	/* with a link of its own, whatever the load is said to be */
	routes[3] = (struct ocs_route){ 3, 0, 0, 1 };
	all.routes[3].first = 3;
	hops[3] = (struct ocs_hop){ 3, 0 };
	assert_float_equal(ocs_sim_allreduce_ratio(&ring, &ring, &all), 1, 1e-9);
	all.load = 1;
	assert_float_equal(ocs_sim_allreduce_ratio(&ring, &ring, &all), 1, 1e-9);
}

/* 4x2: its short edges between the second and third of the long rings' members share those links.  The
 * long rings' links that are shared carry both dimensions in each phase. */
static void test_shared(void **state)
{
	struct ocs_hop hops[16];
	struct ocs_route routes[12];
	struct ocs_routes all = { .routes = routes, .hops = hops, .load = 2 };
	struct ocs_shape shape = shape_of("4x2", "torus");
	double ratio;

	(void)state;
	for (int c = 0; c < 4; c++)
		for (int side = 0; side < 2; side++) {
			int from = 2 * c + side, to = 2 * ((c + 1) % 4) + side;

			hops[all.nhops] = (struct ocs_hop){ from, 0 };
			routes[all.nroutes++] = (struct ocs_route){ from, to, all.nhops++, 1 };
		}
	/* three of the short edges have links; the first takes the long way: 0 to 2, over to 3, and back
	 * to 1 */
	for (int c = 1; c < 4; c++) {
		hops[all.nhops] = (struct ocs_hop){ 2 * c, 2 };
		routes[all.nroutes++] = (struct ocs_route){ 2 * c, 2 * c + 1, all.nhops++, 1 };
	}
	hops[all.nhops] = (struct ocs_hop){ 0, 0 };
	hops[all.nhops + 1] = (struct ocs_hop){ 2, 2 };
	hops[all.nhops + 2] = (struct ocs_hop){ 3, 1 };
	routes[all.nroutes++] = (struct ocs_route){ 0, 1, all.nhops, 3 };
	all.nhops += 3;
	ratio = ocs_sim_allreduce_ratio(&shape, &shape, &all);
	/* The bytes of one part: 3/8 each way along a long ring, 1/2 between two.  Phase one: 3/16 and 1/4 of
	 * all, alone 1/4.  The link of 2 to 3 carries two short edges: 1/2.  Phase two: the parts are swapped,
	 * 3/32 and 1/16, alone 3/32; two short edges 1/8, one and a long one 5/32. */
	assert_float_equal(ratio, (1. / 2 + 5. / 32) / (1. / 4 + 3. / 32), 1e-9);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_routes),
		cmocka_unit_test(test_shared),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
