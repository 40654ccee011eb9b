/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* How broken what is free is, and what could start on it. */

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/place/place_check.h"
#include "tests/unit/place/place_random.h"
#include "src/advice/fragmentation.h"

static double rig_measure(const struct setup *s)
{
	struct ocs_fragmentation *room = ocs_fragmentation_create(s->section);
	double share = ocs_fragmentation_measure(room, s->occupancy);

	ocs_fragmentation_destroy(room);
	return share;
}

/* Leaves the box FROM..TO (inclusive, "xyz") of cube 0 free. */
static void box_leave(struct setup *s, const char *from, const char *to)
{
	int at[OCS_AXES];

	ocs_occupancy_fill(s->occupancy);
	for (at[0] = from[0] - '0'; at[0] <= to[0] - '0'; at[0]++)
		for (at[1] = from[1] - '0'; at[1] <= to[1] - '0'; at[1]++)
			for (at[2] = from[2] - '0'; at[2] <= to[2] - '0'; at[2]++)
				ocs_occupancy_node_set(s->occupancy, s->fabric,
						       ocs_section_node_at(s->section, 0, at),
						       true);
}

#define NEAR(a, b) assert_true(fabs((a) - (b)) < 1e-9)

/* Six sizes: 4x4x4, 2x4x4, 2x2x4, 2x2x2, 1x2x2, 1x1x2. */
static void test_known(void **unused)
{
	struct setup s;

	(void)unused;
	open_fabric(&s, "torus cubes:2x1x1 cube:4x4x4 tile:1x1x1");
	NEAR(rig_measure(&s), 0);
	ocs_occupancy_fill(s.occupancy);
	NEAR(rig_measure(&s), 0);
	box_leave(&s, "111", "111");
	NEAR(rig_measure(&s), 1);
	box_leave(&s, "000", "333");
	NEAR(rig_measure(&s), 0);
	assert_int_equal(ocs_fragmentation_whole_cubes(s.occupancy), 1);
	assert_int_equal(ocs_fragmentation_free_xpus(s.occupancy), 64);
	box_leave(&s, "000", "331"); /* half a cube, whichever way it lies */
	NEAR(rig_measure(&s), 1 / 6.0);
	box_leave(&s, "200", "333");
	NEAR(rig_measure(&s), 1 / 6.0);
	box_leave(&s, "000", "332"); /* the third layer is good for 1x2x2 at most */
	NEAR(rig_measure(&s), 1 - (32 + 32 + 32 + 48 + 48) / 48.0 / 6);
	box_leave(&s, "011", "021"); /* two, but not as a box that a halving makes */
	NEAR(rig_measure(&s), 1);
	close_fabric(&s);
}

static int count_boxes(const struct setup *s, int cube, const int *side)
{
	int low[3], at[3], n = 0;

	for (low[0] = 0; low[0] + side[0] <= s->section->edge[0]; low[0] += side[0]) {
		for (low[1] = 0; low[1] + side[1] <= s->section->edge[1]; low[1] += side[1]) {
			for (low[2] = 0; low[2] + side[2] <= s->section->edge[2];
			     low[2] += side[2]) {
				bool all = true;

				for (at[0] = low[0]; at[0] < low[0] + side[0]; at[0]++)
					for (at[1] = low[1]; at[1] < low[1] + side[1]; at[1]++)
						for (at[2] = low[2]; at[2] < low[2] + side[2];
						     at[2]++)
							all &= ocs_occupancy_xpu_free(s->occupancy,
										      cube, at);
				n += all;
			}
		}
	}
	return n * side[0] * side[1] * side[2];
}

/* The definition, XPU by XPU. */
static double definition_measure(const struct setup *s, const int (*sizes)[3], int nsizes)
{
	long useful = 0, all = ocs_fragmentation_free_xpus(s->occupancy);
	int cube, i, p;

	for (cube = 0; cube < s->section->ncubes; cube++) {
		for (i = 0; i < nsizes; i++) {
			int most = 0;

			for (p = 0; p < 6; p++) {
				int a = p / 2, b = (a + 1 + p % 2) % 3, c = 3 - a - b;
				int side[3] = { sizes[i][a], sizes[i][b], sizes[i][c] };
				int here = count_boxes(s, cube, side);

				most = here > most ? here : most;
			}
			/* edges that are not halved evenly break no whole cube */
			useful += ocs_occupancy_cube_free(s->occupancy, cube) ==
						  s->section->cube_xpus ?
					  s->section->cube_xpus :
					  most;
		}
	}
	return all ? 1 - (double)useful / (double)all / nsizes : 0;
}

static void test_definition(void **unused)
{
	static const int four[][3] = { { 4, 4, 4 }, { 2, 4, 4 }, { 2, 2, 4 },
				       { 2, 2, 2 }, { 1, 2, 2 }, { 1, 1, 2 } };
	static const int two[][3] = { { 2, 2, 2 }, { 1, 2, 2 }, { 1, 1, 2 } };
	static const int six[][3] = {
		{ 6, 5, 2 }, { 3, 5, 2 }, { 3, 2, 2 }, { 1, 2, 2 }, { 1, 1, 2 }
	};
	static const struct {
		const char *line;
		const int (*sizes)[3];
		int n;
	} runs[] = {
		{ "torus cubes:2x2x1 cube:4x4x4 tile:1x1x1", four, 6 },
		{ "torus cubes:2x2x1 cube:4x4x4 tile:2x2x1", four, 6 },
		{ "torus cubes:2x2x2 cube:2x2x2 tile:1x1x1", two, 3 },
		{ "static:6x5x2 tile:1x1x1", six, 5 },
	};
	size_t i;
	int n;

	(void)unused;
	for (i = 0; i < sizeof(runs) / sizeof(runs[0]); i++) {
		struct setup s;

		open_fabric(&s, runs[i].line);
		for (n = 0; n < 300; n++) {
			random_occupancy(s.occupancy, s.fabric);
			if (fabs(rig_measure(&s) -
				 definition_measure(&s, runs[i].sizes, runs[i].n)) > 1e-9)
				fail_msg("%s, round %d: %g, not %g", runs[i].line, n,
					 rig_measure(&s),
					 definition_measure(&s, runs[i].sizes, runs[i].n));
		}
		close_fabric(&s);
	}
}

static void assert_largest(struct setup *s, int ndim, const char *want)
{
	struct ocs_shape shape;
	char text[OCS_SHAPE_TEXT];

	assert_true(ocs_fragmentation_largest(s->placer, s->occupancy, ndim, &shape));
	assert_string_equal(ocs_shape_format(&shape, text), want);
}

static void test_largest(void **unused)
{
	struct ocs_shape shape;
	struct setup s;
	int n, d;

	(void)unused;
	open_fabric(&s, "torus cubes:4x2x1 cube:4x4x4 tile:1x1x1");
	assert_largest(&s, 1, "512");
	assert_largest(&s, 2, "32x16");
	assert_largest(&s, 3, "8x8x8");
	box_leave(&s, "000", "331");
	assert_largest(&s, 1, "32");
	assert_largest(&s, 2, "8x4");
	assert_largest(&s, 3, "4x4x2");
	ocs_occupancy_fill(s.occupancy);
	for (d = 1; d <= 3; d++)
		assert_false(ocs_fragmentation_largest(s.placer, s.occupancy, d, &shape));
	for (n = 0; n < 12; n++) {
		random_occupancy(s.occupancy, s.fabric);
		for (d = 1; d <= 3; d++) {
			struct ocs_placement *p;

			if (!ocs_fragmentation_largest(s.placer, s.occupancy, d, &shape))
				continue;
			assert_int_equal(shape.ndim, d);
			p = ocs_place(s.placer, s.occupancy, &shape, 0, NULL);
			assert_non_null(p);
			ocs_placement_destroy(p);
		}
	}
	close_fabric(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_known),
		cmocka_unit_test(test_definition),
		cmocka_unit_test(test_largest),
	};

	return cmocka_run_group_tests_name("room", tests, NULL, NULL);
}
