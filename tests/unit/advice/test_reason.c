/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Reasons for waiting are true: free just what they say is missing, and the shape fits. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tests/unit/place/place_check.h"

#include "src/advice/reason.h"
#include "tests/unit/place/place_random.h"

/* What a reason names. */
struct lack {
	int cubes, have;
	int side[OCS_AXES];
};

/* Reads "needs 4 cubes with a free 4x4x2 slab; 2 are free". */
static void lack_read(const char *text, const struct ocs_section *s, struct lack *lack)
{
	const char *slab = strstr(text, "with a free "), *end = strstr(text, "; ");
	int a;

	assert_non_null(end);
	if (sscanf(text, "needs %d cubes ", &lack->cubes) != 1) {
		assert_memory_equal(text, "needs a cube ", 13);
		lack->cubes = 1;
	}
	for (a = 0; a < OCS_AXES; a++)
		lack->side[a] = slab ? 1 : s->edge[a];
	if (slab && memcmp(slab, "with a free XPU", 15))
		assert_int_equal(sscanf(slab, "with a free %dx%dx%d slab", &lack->side[0],
					&lack->side[1], &lack->side[2]),
				 3);
	else if (!slab)
		assert_non_null(strstr(text, "wholly free"));
	if (sscanf(end, "; %d", &lack->have) != 1) {
		assert_memory_equal(end, "; none is free", 14);
		lack->have = 0;
	}
}

/* The slab at this place, going round, of the cubes in SET. */
static void slabs_free(struct setup *s, const int *side, const int *from, unsigned int set)
{
	int cube, at[OCS_AXES], i, j, k;

	for (cube = 0; cube < s->section->ncubes; cube++) {
		if (!(set >> cube & 1))
			continue;
		for (i = 0; i < side[0]; i++) {
			for (j = 0; j < side[1]; j++) {
				for (k = 0; k < side[2]; k++) {
					at[0] = (from[0] + i) % s->section->edge[0];
					at[1] = (from[1] + j) % s->section->edge[1];
					at[2] = (from[2] + k) % s->section->edge[2];
					ocs_occupancy_node_set(
						s->occupancy, s->fabric,
						ocs_section_node_at(s->section, cube, at), true);
				}
			}
		}
	}
}

static bool fits_relaxed(struct setup *s, const struct ocs_shape *shape, const struct lack *lack)
{
	static const int turn[6][3] = { { 0, 1, 2 }, { 0, 2, 1 }, { 1, 0, 2 },
					{ 1, 2, 0 }, { 2, 0, 1 }, { 2, 1, 0 } };
	struct ocs_occupancy *before = ocs_occupancy_create(s->section);
	int edge = s->section->edge[0], t, o, a;
	struct ocs_error err;
	bool fits = false;
	unsigned int set;

	ocs_occupancy_copy(before, s->occupancy);
	for (set = 0; set < 1U << s->section->ncubes && !fits; set++) {
		if (__builtin_popcount(set) != lack->cubes - lack->have)
			continue;
		for (t = 0; t < 6 && !fits; t++) {
			for (o = 0; o < edge * edge * edge && !fits; o++) {
				int from[3] = { o % edge, o / edge % edge, o / edge / edge };
				struct ocs_placement *p;
				int side[3];

				for (a = 0; a < 3; a++)
					side[a] = lack->side[turn[t][a]];
				slabs_free(s, side, from, set);
				p = ocs_reason_place(s->placer, s->occupancy, shape, 0, &err);
				fits = p != NULL;
				ocs_placement_destroy(p);
				ocs_occupancy_copy(s->occupancy, before);
			}
		}
	}
	ocs_occupancy_destroy(before);
	return fits;
}

static int reasons_check(const char *line, int cases)
{
	static const char *const shapes[] = { "8",   "16",   "40",    "8x4",   "6x6",
					      "8x8", "16x8", "4x4x4", "8x4x4", "8x4x2",
					      "24",  "12x4", "1x4",   "20x2" };
	int i, node, refused = 0;
	struct ocs_placement *p;
	struct ocs_error err;
	struct ocs_shape shape;
	struct setup s;

	open_fabric(&s, line);
	for (i = 0; i < cases; i++) {
		uint32_t busy = 5 + random_next(80);
		struct lack lack;

		assert_int_equal(ocs_shape_parse(shapes[random_next(14)], NULL, &shape, &err), 0);
		ocs_occupancy_reset(s.occupancy);
		for (node = 0; node < s.section->ncubes * s.section->cube_nodes; node++) {
			if (random_next(100) < busy && node / s.section->cube_nodes != i % 5)
				ocs_occupancy_node_set(s.occupancy, s.fabric, node, false);
		}
		p = ocs_reason_place(s.placer, s.occupancy, &shape, 0, &err);
		if (p) {
			ocs_placement_destroy(p);
			continue;
		}
		if (err.code == OCS_NEVER)
			continue;
		refused++;
		lack_read(err.text, s.section, &lack);
		if (lack.have >= lack.cubes || !fits_relaxed(&s, &shape, &lack)) {
			char text[OCS_SHAPE_TEXT];

			fail_msg("%s, case %d, %s: \"%s\" is not true", line, i,
				 ocs_shape_format(&shape, text), err.text);
		}
	}
	close_fabric(&s);
	return refused;
}

static void test_reasons(void **state)
{
	(void)state;
	random_state = 99;
	assert_true(reasons_check("torus cubes:4x1x1 cube:4x4x4 tile:1x1x1", 150) > 20);
	assert_true(reasons_check("torus cubes:4x1x1 cube:4x4x4 tile:2x2x1", 250) > 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reasons),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
