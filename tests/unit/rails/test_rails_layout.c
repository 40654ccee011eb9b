/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Shapes on the nodes of rails: examples, refusals, and over random shapes a judge that counts
 * coordinates one by one. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "src/rails/layout.h"
#include "src/util/error.h"

static void test_examples(void **state)
{
	static const struct {
		const char *shape;
		int xpus, ports, ndim, extent[3], asymmetric, nodes;
	} cases[] = {
		{ "pp:3,dp:2,cp:2,tp:8", 8, 2, 3, { 3, 2, 2 }, 0, 12 },
		{ "3x2x2x8", 8, 2, 3, { 3, 2, 2 }, -1, 12 },
		{ "pp:2,dp:2,tp:8", 8, 1, 2, { 2, 2 }, 0, 4 },
		{ "dp:3,deep+:4,tp:4", 4, 2, 2, { 3, 4 }, 1, 12 },
		{ "pp:2,deep+:2,tp:4", 4, 1, 2, { 2, 2 }, 1, 4 },
		{ "pp:3,dp:2,tp:4", 8, 2, 1, { 3 }, 0, 3 },	/* dp and tp fill a node */
		{ "dp:2,pp:2,tp:4", 8, 2, 1, { 2 }, -1, 2 },	/* stages inside nodes */
		{ "pp:2,tp:4", 8, 1, 1, { 1 }, -1, 1 },		/* one node */
		{ "dp:3,cp:3,tp:4", 8, 2, 2, { 3, 3 }, -1, 9 }, /* four XPUs of a node idle */
		{ "dp:16,tp:1", 8, 2, 1, { 16 }, -1, 16 },	/* one of each node */
		{ "2x3", 0, 2, 2, { 2, 3 }, -1, 6 },		/* XPUs not described */
		{ "2x3", 1, 2, 2, { 2, 3 }, -1, 6 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct ocs_rails_layout layout;
		struct ocs_shape shape;
		struct ocs_error err;

		assert_int_equal(ocs_shape_parse(cases[i].shape, NULL, &shape, &err), 0);
		if (ocs_rails_layout_make(&shape, cases[i].xpus, cases[i].ports, &layout, &err))
			fail_msg("%s", err.text);
		assert_int_equal(layout.ndim, cases[i].ndim);
		for (int d = 0; d < layout.ndim; d++)
			assert_int_equal(layout.extent[d], cases[i].extent[d]);
		assert_int_equal(layout.asymmetric, cases[i].asymmetric);
		assert_int_equal(layout.ports, cases[i].ports);
		assert_int_equal(ocs_rails_layout_nodes(&layout), cases[i].nodes);
		assert_int_equal(ocs_rails_shape_nodes(&shape, cases[i].xpus, &err),
				 cases[i].nodes);
	}
}

static void test_refusals(void **state)
{
	static const struct {
		const char *shape;
		int xpus, ports, code, nodes;
		const char *says;
	} cases[] = {
		{ "pp:3,tp:8", 8, 1, OCS_NEVER, 3, "two ports per NIC" },
		{ "4x8", 8, 1, OCS_NEVER, 4, "--shape=4x8: with one port per NIC" },
		{ "dp:2,tp:16", 8, 2, OCS_NEVER, -1, "the last stays inside a node, with 8" },
		{ "dp:2,tp:6", 8, 2, OCS_NEVER, -1, "the last dimension would use 6 of the 8" },
		{ "3x2x3", 8, 2, OCS_NEVER, -1, "the last dimensions would use 6 of the 8" },
		{ "dp:2,tp:5", 6, 2, OCS_NEVER, -1, "use 3" },
		{ "4x4x8_twisted", 8, 2, OCS_USAGE, -1, "leave _twisted out" },
		{ "pp:65,tp:8", 8, 2, OCS_NEVER, 65, "at most 64 stages" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct ocs_rails_layout layout;
		struct ocs_shape shape;
		struct ocs_error err;

		assert_int_equal(ocs_shape_parse(cases[i].shape, NULL, &shape, &err), 0);
		assert_int_equal(
			ocs_rails_layout_make(&shape, cases[i].xpus, cases[i].ports, &layout, &err),
			-1);
		assert_int_equal(err.code, cases[i].code);
		if (!strstr(err.text, cases[i].says))
			fail_msg("\"%s\" does not say \"%s\"", err.text, cases[i].says);
		assert_int_equal(ocs_rails_shape_nodes(&shape, cases[i].xpus, &err),
				 cases[i].nodes);
	}
}

/* One more in row-major order, as an odometer counts. */
static void count_up(const struct ocs_shape *shape, int *at)
{
	for (int d = shape->ndim - 1; d >= 0 && ++at[d] == shape->extent[d]; d--)
		at[d] = 0;
}

/* Each node has the XPUs of one coordinate of the dimensions over nodes, and no dimension more would
 * fit into it. */
static void shape_judge(const struct ocs_shape *shape, int xpus,
			const struct ocs_rails_layout *layout)
{
	int at[OCS_SHAPE_DIMS] = { 0 }, nodes = ocs_rails_layout_nodes(layout), over = 0;
	long per_node = shape->xpus / nodes;

	assert_int_equal(per_node * nodes, shape->xpus);
	if (xpus)
		assert_int_equal(xpus % per_node, 0);
	while (over < layout->ndim && nodes > 1 && over < shape->ndim &&
	       layout->extent[over] == shape->extent[over])
		over++;
	for (long r = 0; r < shape->xpus; r++, count_up(shape, at)) {
		long node = 0;

		for (int d = 0; d < layout->ndim && nodes > 1; d++)
			node = node * layout->extent[d] + at[d];
		assert_int_equal(node, r / per_node);
	}
	if (nodes > 1) {
		assert_int_equal(over, layout->ndim);
		assert_true(!xpus || per_node * shape->extent[over - 1] > xpus);
	}
}

static void test_random(void **state)
{
	unsigned long random = 7;
	int served = 0;

	(void)state;
	for (int i = 0; i < 20000; i++) {
		static const int sizes[] = { 0, 1, 2, 3, 4, 6, 8 };
		struct ocs_rails_layout layout;
		struct ocs_shape shape = { .xpus = 1 };
		struct ocs_error err;
		int xpus;

#define NEXT(n) (int)((random = random * 6364136223846793005ul + 1442695040888963407ul) >> 33) % (n)
		shape.ndim = 1 + NEXT(4);
		for (int d = 0; d < shape.ndim; d++)
			shape.xpus *= shape.extent[d] = 1 + NEXT(5);
		xpus = sizes[NEXT(7)];
		if (ocs_rails_layout_make(&shape, xpus, 2, &layout, &err))
			continue;
		served++;
		shape_judge(&shape, xpus, &layout);
	}
	assert_true(served > 5000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_examples),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_random),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
