/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Twisted tori: wraps that shift other dimensions. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/place/place_check.h"

#include "src/advice/reason.h"

static const struct {
	const char *line, *shape;
	int cubes, nodes;
} fits[] = {
	{ "torus cubes:4x4x4 cube:4x4x4 tile:2x2x1", "4x4x8_twisted", 2, 32 },
	{ "torus cubes:4x4x4 cube:4x4x4 tile:2x2x1", "8x4x4_twisted", 2, 32 },
	{ "torus cubes:4x4x4 cube:4x4x4 tile:2x2x1", "4x8x8_twisted", 4, 64 },
	{ "torus cubes:4x4x4 cube:4x4x4 tile:2x2x1", "8x4x8_twisted", 4, 64 },
	{ "torus cubes:4x4x4 cube:4x4x4 tile:1x1x1", "8x8x16_twisted", 16, 1024 },
	{ "torus cubes:4x4x4 cube:4x4x4 tile:4x4x4", "8x16x16_twisted", 32, 32 },
	{ "torus cubes:4x4x4 cube:4x4x4 tile:2x2x2", "12x12x24_twisted", 54, 432 },
	{ "torus cubes:2x2x2 cube:8x8x8 tile:2x2x1", "8x8x16_twisted", 2, 256 },
	{ "torus cubes:4x4x4 cube:2x2x2 tile:1x1x1", "2x2x4_twisted", 2, 16 },
	{ "torus cubes:4x4x4 cube:2x2x2 tile:1x1x1", "2x4x4_twisted", 4, 32 },
	{ "torus cubes:4x4x4 cube:2x2x2 tile:1x1x1", "6x6x12_twisted", 54, 432 },
	{ "torus cubes:3x2x2 cube:3x3x3 tile:1x1x1", "3x3x6_twisted", 2, 54 },
};

/* One dimension of a plain torus has as many circuits as a twisted one. */
static void test_fits(void **state)
{
	struct ocs_placement *p, *plain;
	struct ocs_shape shape;
	struct ocs_error err;
	struct setup s;
	size_t i, j;

	(void)state;
	for (i = 0; i < sizeof(fits) / sizeof(fits[0]); i++) {
		open_fabric(&s, fits[i].line);
		assert_int_equal(ocs_shape_parse(fits[i].shape, NULL, &shape, &err), 0);
		shape.no_rotate = i % 2;
		shape.no_fold = i % 3;
		if (ocs_reason_node_count(s.placer, &shape, &err) != fits[i].nodes)
			fail_msg("%s: %s", fits[i].shape, err.text);
		/* one cube lost: another one serves */
		ocs_occupancy_cube_drain(s.occupancy, 1);
		p = ocs_reason_place(s.placer, s.occupancy, &shape, 0, &err);
		assert_non_null(p);
		assert_int_equal(p->ncubes, fits[i].cubes);
		check(&s, p);
		if (shape.extent[0] > 3 && shape.extent[1] > 3) {
			shape.twisted = false;
			plain = ocs_reason_place(s.placer, s.occupancy, &shape, 0, &err);
			assert_int_equal(plain->ncircuits, p->ncircuits);
			ocs_placement_destroy(plain);
		}
		/* no two jobs share a port, and a port may be out of order */
		for (j = 0; j < (size_t)p->nnodes; j++)
			ocs_occupancy_node_set(s.occupancy, s.fabric, p->nodes[j], false);
		ocs_placement_destroy(p);
		shape.twisted = true;
		p = ocs_reason_place(s.placer, s.occupancy, &shape, 0, &err);
		if (p)
			check(&s, p);
		else
			assert_int_equal(err.code, OCS_NOT_NOW);
		ocs_placement_destroy(p);
		close_fabric(&s);
	}
}

static void test_refusals(void **state)
{
	static const struct {
		const char *line, *shape, *says;
	} no[] = {
		{ "static:4x4x8 tile:1x1x1", "4x4x8_twisted",
		  "are fixed, a twist needs circuits; the plain" },
		{ "torus cubes:4x4x4 cube:4x4x4 tile:1x1x1", "2x2x4_twisted",
		  "a multiple of the cube's edge" },
		{ "torus cubes:4x4x4 cube:4x4x4 tile:1x1x1", "6x6x12_twisted", ", 4x4x8_twisted" },
		{ "torus cubes:2x1x1 cube:4x4x4 tile:1x1x1", "4x8x8_twisted",
		  "larger than the machine" },
		{ "torus cubes:2x2x2 cube:8x8x8 tile:1x1x1", "4x4x8_twisted",
		  "shapes that fit: 8x8x16_twisted" },
	};
	struct ocs_shape shape;
	struct ocs_error err;
	struct setup s;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(no) / sizeof(no[0]); i++) {
		open_fabric(&s, no[i].line);
		assert_int_equal(ocs_shape_parse(no[i].shape, NULL, &shape, &err), 0);
		assert_null(ocs_reason_place(s.placer, s.occupancy, &shape, 0, &err));
		assert_int_equal(err.code, OCS_NEVER);
		if (!strstr(err.text, no[i].says))
			fail_msg("'%s' does not say '%s'", err.text, no[i].says);
		close_fabric(&s);
	}
}

/* The vectors are printed, and only the right ones are read. */
static void test_json(void **state)
{
	struct json_object *json, *twist;
	struct ocs_placement *p;
	struct ocs_shape shape;
	struct ocs_error err;
	struct setup s;

	(void)state;
	open_fabric(&s, "torus cubes:2x2x1 cube:4x4x4 tile:2x2x1");
	assert_int_equal(ocs_shape_parse("4x8x8_twisted", NULL, &shape, &err), 0);
	p = ocs_reason_place(s.placer, s.occupancy, &shape, 0, &err);
	assert_non_null(p);
	json = ocs_placement_to_json(s.fabric, p);
	ocs_placement_destroy(p);
	assert_true(json_object_object_get_ex(json, "twist", &twist));
	assert_string_equal(json_object_to_json_string_ext(twist, JSON_C_TO_STRING_PLAIN),
			    "[[0,4,4],[0,0,0],[0,0,0]]");
	json_object_array_put_idx(json_object_array_get_idx(twist, 0), 1, json_object_new_int(0));
	assert_null(ocs_placement_from_json(s.fabric, json, &err));
	assert_non_null(strstr(err.text, "'twist'"));
	json_object_put(json);
	close_fabric(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fits),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_json),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
