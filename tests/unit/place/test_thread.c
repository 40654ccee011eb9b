/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Rings through what boxes cannot use. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/place/place_check.h"

#include "src/advice/reason.h"
#include "tests/unit/place/place_random.h"

/* Scattered leftovers, now and then with failed ports. */
static void xpus_scatter(struct setup *s, uint32_t busy)
{
	int node;

	random_occupancy(s->occupancy, s->fabric);
	if (random_next(3))
		ocs_occupancy_reset(s->occupancy);
	for (node = 0; node < s->section->ncubes * s->section->cube_nodes; node++) {
		if (random_next(100) < busy)
			ocs_occupancy_node_set(s->occupancy, s->fabric,
					       s->section->first_node + node, false);
	}
}

static int leftovers_run(const char *line, const char *const *shapes, int nshapes, int cases)
{
	struct ocs_placement *p;
	struct ocs_shape shape;
	struct ocs_error err;
	int threaded = 0, i;
	struct setup s;

	open_fabric(&s, line);
	for (i = 0; i < cases; i++) {
		assert_int_equal(
			ocs_shape_parse(shapes[i % nshapes], i % 5 ? NULL : "mesh", &shape, &err),
			0);
		xpus_scatter(&s, random_next(70));
		p = ocs_reason_place(s.placer, s.occupancy, &shape, 0, &err);
		if (!p) {
			assert_int_equal(err.code,
					 ocs_place_node_count(s.placer, &shape, NULL) < 0 ?
						 OCS_NEVER :
						 OCS_NOT_NOW);
			continue;
		}
		threaded += p->compact[0] == 't';
		check(&s, p);
		ocs_placement_destroy(p);
	}
	close_fabric(&s);
	return threaded;
}

static void test_leftovers(void **state)
{
	static const char *const four[] = {
		"12",	"18",	"30",	  "46",	 "64",	 "100", "8x4",
		"4x14", "2x18", "1x22x4", "8x8", "12x4", "26",	"16x8"
	};
	static const char *const two[] = { "6", "10", "14", "20", "2x8", "4x6" };

	(void)state;
	random_state = 77;
	assert_true(leftovers_run("torus cubes:3x2x2 cube:4x4x4 tile:1x1x1 threading", four, 14,
				  400) > 20);
	assert_true(leftovers_run("torus cubes:3x2x2 cube:4x4x4 tile:2x2x1 threading", four, 14,
				  400) > 20);
	leftovers_run("torus cubes:3x2x2 cube:4x4x4 tile:2x2x2 threading", four, 14, 100);
	leftovers_run("torus cubes:2x2x1 cube:8x8x8 tile:2x2x1 threading", four, 14, 40);
	leftovers_run("torus cubes:4x2x2 cube:2x2x2 tile:1x1x1 threading", two, 6, 200);
}

/* A wholly free cube and one with a column and two XPUs beside it, which no box of 70 has: the
 * placement of a ring of 70, or NULL. */
static struct ocs_placement *whole_place(struct setup *s, const char *line, struct ocs_error *err)
{
	static const int at[6][OCS_AXES] = { { 0, 0, 0 }, { 0, 0, 1 }, { 0, 0, 2 },
					     { 0, 0, 3 }, { 0, 1, 0 }, { 0, 1, 1 } };
	struct ocs_shape shape;
	int i;

	open_fabric(s, line);
	ocs_occupancy_fill(s->occupancy);
	for (i = 0; i < s->section->cube_nodes; i++)
		ocs_occupancy_node_set(s->occupancy, s->fabric, s->section->first_node + i, true);
	for (i = 0; i < 6; i++)
		ocs_occupancy_node_set(s->occupancy, s->fabric,
				       ocs_section_node_at(s->section, 1, at[i]), true);
	assert_int_equal(ocs_shape_parse("70", NULL, &shape, err), 0);
	return ocs_reason_place(s->placer, s->occupancy, &shape, 0, err);
}

/* With `threading` a ring takes a wholly free cube, too; without it waits for a box. */
static void test_whole(void **state)
{
	struct ocs_placement *p;
	struct ocs_error err;
	struct setup s;

	(void)state;
	p = whole_place(&s, "torus cubes:2x1x1 cube:4x4x4 tile:1x1x1 threading", &err);
	assert_non_null(p);
	assert_int_equal(p->compact[0], 't');
	assert_int_equal(p->ncubes, 2);
	check(&s, p);
	ocs_placement_destroy(p);
	close_fabric(&s);
	assert_null(whole_place(&s, "torus cubes:2x1x1 cube:4x4x4 tile:1x1x1", &err));
	assert_int_equal(err.code, OCS_NOT_NOW);
	close_fabric(&s);
}

static void hold_layers(struct setup *s, int cube)
{
	int node[3];

	for (node[0] = 0; node[0] < 4; node[0]++) {
		for (node[1] = 0; node[1] < 4; node[1]++) {
			for (node[2] = 0; node[2] < 4; node[2]++) {
				/* two layers, two rows with a hole: no box of 24 */
				if (node[2] > 1 || node[1] < 2 || (node[0] == 1 && node[1] == 2))
					ocs_occupancy_node_set(
						s->occupancy, s->fabric,
						ocs_section_node_at(s->section, cube, node), false);
			}
		}
	}
}

/* A box comes first, even in a whole cube; a ring goes through broken cubes only while
 * they have room. */
static void test_box_first(void **state)
{
	struct ocs_placement *p;
	struct ocs_shape shape;
	struct ocs_error err;
	struct setup s;
	int node;

	(void)state;
	open_fabric(&s, "torus cubes:3x1x1 cube:4x4x4 tile:1x1x1 threading");
	hold_layers(&s, 0);
	hold_layers(&s, 1);
	assert_int_equal(ocs_shape_parse("24", NULL, &shape, &err), 0);
	p = ocs_reason_place(s.placer, s.occupancy, &shape, 0, &err);
	assert_non_null(p);
	assert_int_equal(p->compact[0], 'p');
	assert_int_equal(p->ncubes, 1);
	assert_int_equal(p->cubes[0], 2);
	check(&s, p);
	ocs_placement_destroy(p);
	for (node = 0; node < s.section->cube_nodes; node++)
		ocs_occupancy_node_set(s.occupancy, s.fabric,
				       s.section->first_node + 2 * s.section->cube_nodes + node,
				       false);
	p = ocs_reason_place(s.placer, s.occupancy, &shape, 0, &err);
	assert_non_null(p);
	assert_int_equal(p->compact[0], 't');
	assert_int_equal(p->ncubes, 2);
	check(&s, p);
	ocs_placement_destroy(p);
	close_fabric(&s);
}

/* Nothing malformed gets through. */
static void test_faults(void **state)
{
	static const char *const bad[] = {
		"t1:",
		"t1:8:t:",
		"t1:8:t:0-0:",
		"t1:8:t:0-0:1.0:",
		"t1:8:t:0-0:1.0:0.",
		"t1:8:t:0-0:9.0:0.a",
		"t1:8:t:0-0:1.0:64.aaaaaaaa",
		"t1:8:t:0-0:1.0:0.aaaaaaaa",
		"t1:8:t:0-0:2.00:0.aaaaaaaa",
		"t1:8:t:1-0:1.0:0.acbc",
		"t1:8x4:tt:0z1:1.0:0.acbc",
		"t1:4x4x4:ttt:0z0:1.0:0.a",
		"t1:8x6:tt:0z0:1.0:0.a",
		"t1:4:t:0-0:1.0:0.acbdx",
		"t1:4:t:0-0:2.01:0.acbd",
		"t1:4x4:tt:0z0:1.0:0.aefd",
		"t2:4:t:0-0:1.0:0.acbd",
	};
	struct ocs_placement *p;
	struct ocs_error err;
	struct setup s;
	size_t i;

	(void)state;
	open_fabric(&s, "torus cubes:2x1x1 cube:4x4x4 tile:1x1x1 threading");
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		p = ocs_placement_decode(s.placer, bad[i], &err);
		if (p)
			fail_msg("%s is accepted", bad[i]);
		assert_true(err.text[0]);
	}
	p = ocs_placement_decode(s.placer, "t1:4:t:0-0:1.0:0.acbd", &err);
	assert_non_null(p);
	ocs_placement_destroy(p);
	close_fabric(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_leftovers),
		cmocka_unit_test(test_whole),
		cmocka_unit_test(test_box_first),
		cmocka_unit_test(test_faults),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
