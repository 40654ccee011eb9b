/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <json-c/json.h>

#include "src/place/place.h"
#include "src/util/error.h"
#include "tests/unit/place_check.h"
#include "tests/unit/place_random.h"

static void random_cases(const char *line, int cases, int dims, int most)
{
	int nodes, placed = 0, never = 0, i;
	struct ocs_placement *p;
	struct ocs_shape shape;
	struct ocs_error err;
	struct setup s;

	open_fabric(&s, line);
	for (i = 0; i < cases; i++) {
		random_shape(&shape, dims, most);
		random_occupancy(s.occupancy, s.fabric);
		memset(&err, 0, sizeof(err));
		nodes = ocs_place_node_count(s.placer, &shape, &err);
		if (nodes < 0) {
			assert_int_equal(err.code, OCS_NEVER);
			never++;
		}
		p = ocs_place(s.placer, s.occupancy, &shape, 0, &err);
		if (!p) {
			assert_int_equal(err.code, nodes < 0 ? OCS_NEVER : OCS_NOT_NOW);
			assert_true(err.text[0]);
			assert_null(strchr(err.text, '\n'));
		} else {
			assert_int_equal(p->nnodes, nodes);
			check(&s, p);
			ocs_placement_destroy(p);
			placed++;
		}
		/* what is not "never" fits the empty machine */
		if (nodes > 0 && !random_next(4)) {
			ocs_occupancy_reset(s.occupancy);
			p = ocs_place(s.placer, s.occupancy, &shape, nodes, &err);
			assert_non_null(p);
			check(&s, p);
			ocs_placement_destroy(p);
		}
	}
	assert_true(placed > cases / 20);
	assert_true(never < cases);
	close_fabric(&s);
}

static void test_random_4(void **state)
{
	(void)state;
	random_state = 4;
	random_cases("torus cubes:2x2x1 cube:4x4x4 tile:2x2x1", 1500, 3, 8);
	random_cases("torus cubes:3x1x1 cube:4x4x4 tile:1x1x1", 700, 3, 6);
	random_cases("torus cubes:2x2x2 cube:4x4x4 tile:2x2x2", 700, 6, 4);
	random_cases("torus cubes:2x1x1 cube:4x4x4 tile:4x1x1", 300, 1, 40);
}

static void test_random_others(void **state)
{
	(void)state;
	random_state = 5;
	random_cases("torus cubes:4x4x1 cube:2x2x2 tile:1x1x1", 500, 3, 5);
	random_cases("torus cubes:3x3x1 cube:3x3x3 tile:1x1x1", 300, 3, 6);
	random_cases("torus cubes:2x1x1 cube:6x6x6 tile:3x2x1", 100, 3, 9);
	random_cases("torus cubes:2x1x1 cube:8x8x8 tile:2x2x2", 100, 3, 9);
	random_cases("torus cubes:8x1x1 cube:1x1x1 tile:1x1x1", 200, 2, 6);
}

static void test_random_static(void **state)
{
	(void)state;
	random_state = 6;
	random_cases("static:8x8x4 tile:2x2x1", 300, 3, 8);
	random_cases("static:4x4x4 tile:1x1x1", 300, 3, 5);
	random_cases("static:6x5x2 tile:1x1x1", 200, 3, 6);
	random_cases("static:16x16x16 tile:1x1x1", 60, 3, 16);
}

/* What the issue names: nodes, cubes and circuits on four cubes. */
static void test_named(void **state)
{
	static const struct {
		const char *shape, *conn;
		int nodes, cubes, circuits;
	} named[] = {
		{ "1", NULL, 1, 1, 0 },
		{ "2", NULL, 1, 1, 0 },
		{ "18", NULL, 5, 1, 0 },
		{ "36", NULL, 9, 1, 0 },
		{ "6x4", NULL, 6, 1, 4 },
		{ "4x8x2", NULL, 16, 1, 24 },
		{ "4x4x4", NULL, 16, 1, 48 },
		{ "8x8x4", NULL, 64, 4, 192 },
		{ "16x4x4", NULL, 64, 4, 192 },
		{ "8x8", NULL, 16, 1, -1 },
		{ "6x6", NULL, 9, 1, -1 },
		{ "2x2x2x2x2x2", NULL, 16, 1, 48 },
		{ "8x4x2x4", NULL, -1, -1, -1 },
		{ "4x4x2", "mesh", 8, 1, 0 },
		{ "5x4x4", "mesh,torus,torus", -1, 2, -1 },
		{ "64", NULL, 16, 1, 0 },
		{ "256", NULL, 64, 4, -1 },
		{ "62", NULL, 16, 1, 0 },
		{ "7", "mesh", 2, 1, 0 },
	};
	struct ocs_placement *p;
	struct ocs_shape shape;
	struct ocs_error err;
	struct setup s;
	size_t i;

	(void)state;
	open_fabric(&s, "torus cubes:2x2x1 cube:4x4x4 tile:2x2x1");
	for (i = 0; i < sizeof(named) / sizeof(named[0]); i++) {
		assert_int_equal(ocs_shape_parse(named[i].shape, named[i].conn, &shape, &err), 0);
		p = ocs_place(s.placer, s.occupancy, &shape, 0, &err);
		if (!p) {
			if (named[i].nodes < 0 && named[i].cubes < 0)
				continue;
			fail_msg("%s: %s", named[i].shape, err.text);
		}
		check(&s, p);
		if (named[i].nodes >= 0 && p->nnodes != named[i].nodes)
			fail_msg("%s: %d nodes", named[i].shape, p->nnodes);
		if (named[i].cubes >= 0 && p->ncubes != named[i].cubes)
			fail_msg("%s: %d cubes", named[i].shape, p->ncubes);
		if (named[i].circuits >= 0 && p->ncircuits != named[i].circuits)
			fail_msg("%s: %d circuits", named[i].shape, p->ncircuits);
		ocs_placement_destroy(p);
	}
	close_fabric(&s);
}

static void test_never(void **state)
{
	static const struct {
		const char *line, *shape, *says;
	} never[] = {
		{ "torus cubes:2x2x1 cube:4x4x4 tile:2x2x1", "8x8x8",
		  "larger than the machine: 512 XPUs asked, 256 exist" },
		{ "torus cubes:2x2x1 cube:4x4x4 tile:2x2x1", "4x6x5", "a ring of 5 cannot close on 4x4x4 "
		  "cubes; nearest shapes that fit: " },
		{ "torus cubes:2x2x1 cube:4x4x4 tile:2x2x1", "3", "a ring of 3 cannot close" },
		/* proved impossible, see the notes on foldings */
		{ "torus cubes:2x2x2 cube:4x4x4 tile:1x1x1", "6x6x2", "rings cannot all close" },
		{ "torus cubes:2x2x2 cube:4x4x4 tile:1x1x1", "10x14x2", "rings cannot all close" },
		{ "torus cubes:2x2x2 cube:4x4x4 tile:1x1x1", "4x4x6", "rings cannot all close" },
		{ "torus cubes:2x2x4 cube:4x4x4 tile:1x1x1", "6x8x8", "rings cannot all close" },
		{ "torus cubes:2x2x1 cube:8x8x8 tile:1x1x1", "6x6", "rings cannot all close" },
		{ "torus cubes:2x2x1 cube:8x8x8 tile:1x1x1", "6x2x2", "rings cannot all close" },
		{ "static:16x16x16 tile:1x1x1", "4x4", "rings cannot all close" },
		{ "static:16x16x16 tile:1x1x1", "4x18", "rings cannot all close" },
		{ "static:16x16x16 tile:1x1x1", "6x4x2", "rings cannot all close" },
	};
	struct ocs_shape shape, near[4];
	struct ocs_error err;
	struct setup s;
	size_t i;
	int n;

	(void)state;
	for (i = 0; i < sizeof(never) / sizeof(never[0]); i++) {
		open_fabric(&s, never[i].line);
		assert_int_equal(ocs_shape_parse(never[i].shape, NULL, &shape, &err), 0);
		assert_null(ocs_place(s.placer, s.occupancy, &shape, 0, &err));
		assert_int_equal(err.code, OCS_NEVER);
		if (!strstr(err.text, never[i].says))
			fail_msg("%s: %s", never[i].shape, err.text);
		for (n = ocs_place_nearest(s.placer, &shape, near, 4); n > 0; n--)
			assert_true(ocs_place_node_count(s.placer, &near[n - 1], &err) > 0);
		close_fabric(&s);
	}
}

static void test_not_now(void **state)
{
	struct ocs_placement *p;
	struct ocs_shape shape;
	struct ocs_error err;
	struct setup s;
	int cube;

	(void)state;
	open_fabric(&s, "torus cubes:2x2x1 cube:4x4x4 tile:2x2x1");
	assert_int_equal(ocs_shape_parse("8x4x4", NULL, &shape, &err), 0);
	ocs_occupancy_cube_drain(s.occupancy, 3);
	for (cube = 1; cube < 3; cube++)
		ocs_occupancy_node_set(s.occupancy, s.fabric, cube * 16, false);
	assert_null(ocs_place(s.placer, s.occupancy, &shape, 0, &err));
	assert_int_equal(err.code, OCS_NOT_NOW);
	assert_string_equal(err.text, "needs 2 cubes that are wholly free; 1 is free, 1 is drained");
	assert_null(ocs_place(s.placer, s.occupancy, &shape, 33, &err));
	assert_int_equal(err.code, OCS_NEVER);

	/* ports: both free cubes have what 4x4x4 needs, but not their circuits */
	ocs_occupancy_reset(s.occupancy);
	assert_int_equal(ocs_shape_parse("4x4x4", NULL, &shape, &err), 0);
	for (cube = 0; cube < 4; cube++)
		*(uint64_t *)(uintptr_t)ocs_occupancy_blocked(s.occupancy, cube, 1, OCS_MINUS) = 4;
	s.occupancy->any_blocked = true;
	assert_null(ocs_place(s.placer, s.occupancy, &shape, 0, &err));
	assert_int_equal(err.code, OCS_NOT_NOW);
	assert_non_null(strstr(err.text, "switch ports"));
	*(uint64_t *)(uintptr_t)ocs_occupancy_blocked(s.occupancy, 2, 1, OCS_MINUS) = 0;
	p = ocs_place(s.placer, s.occupancy, &shape, 0, &err);
	assert_non_null(p);
	assert_int_equal(p->cubes[0], 2);
	check(&s, p);
	ocs_placement_destroy(p);
	close_fabric(&s);
}

/* Broken cubes are used up before whole ones are broken. */
static void test_best_fit(void **state)
{
	struct ocs_placement *p;
	struct ocs_shape shape;
	struct ocs_error err;
	struct setup s;
	int node;

	(void)state;
	open_fabric(&s, "torus cubes:2x2x1 cube:4x4x4 tile:2x2x1");
	for (node = 0; node < 4; node++)
		ocs_occupancy_node_set(s.occupancy, s.fabric, 2 * 16 + 4 * node, false);
	assert_int_equal(ocs_shape_parse("4x4x2", "mesh", &shape, &err), 0);
	p = ocs_place(s.placer, s.occupancy, &shape, 0, &err);
	assert_non_null(p);
	assert_int_equal(p->ncubes, 1);
	assert_int_equal(p->cubes[0], 2);
	check(&s, p);
	ocs_placement_destroy(p);
	close_fabric(&s);
}

/* A machine of servers has no cubes. */
static void test_servers(void **state)
{
	struct ocs_shape shape;
	struct ocs_error err = { 0 };
	struct ocs_fabric *fabric;
	struct ocs_placer *placer;

	(void)state;
	fabric = ocs_fabric_open("direct servers:12 degree:4", &err);
	assert_non_null(fabric);
	placer = ocs_placer_create(fabric, &fabric->sections[0]);
	assert_int_equal(ocs_shape_parse("4", NULL, &shape, &err), 0);
	assert_int_equal(ocs_place_node_count(placer, &shape, &err), -1);
	assert_int_equal(err.code, OCS_USAGE);
	assert_null(ocs_placement_decode(placer, "p1:1:t:-:0:0.1,0.1,0.1:0", &err));
	ocs_placer_destroy(placer);
	ocs_fabric_destroy(fabric);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_named),
		cmocka_unit_test(test_never),
		cmocka_unit_test(test_not_now),
		cmocka_unit_test(test_best_fit),
		cmocka_unit_test(test_servers),
		cmocka_unit_test(test_random_4),
		cmocka_unit_test(test_random_others),
		cmocka_unit_test(test_random_static),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
