/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "src/advice/nearest_shape.h"
#include "src/place/place.h"
#include "src/util/error.h"
#include "tests/unit/place/place_check.h"

/* As many XPUs in as many dimensions come first, and a dimension is not given up lightly. */
static void test_nearest_order(void **state)
{
	static const struct {
		const char *free, *shape, *says;
	} cases[] = {
		/* XPUs of a 4x4x4 cube that are free, as extents of a box at its corner */
		{ "4x4x4", "10x5", "12x4, 8x6, 10x4" },
		{ "4x4x2", "16x2x2", "8x2x2, 6x2x2, 16x2x1" },
		{ "2x4x4", "16x2x1", "8x4x1, 14x2x1, 12x2x1" },
		{ "4x2x2", "16x2x2", "4x2x2, 8x2x1, 6x2x1" },
	};
	struct ocs_shape shape, box;
	struct ocs_error err;
	struct setup s;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int at[OCS_AXES];
		char *text;

		open_fabric(&s, "torus cubes:1x1x1 cube:4x4x4 tile:1x1x1");
		assert_int_equal(ocs_shape_parse(cases[i].free, NULL, &box, &err), 0);
		assert_int_equal(ocs_shape_parse(cases[i].shape, NULL, &shape, &err), 0);
		for (at[0] = 0; at[0] < 4; at[0]++)
			for (at[1] = 0; at[1] < 4; at[1]++)
				for (at[2] = 0; at[2] < 4; at[2]++)
					ocs_occupancy_node_set(
						s.occupancy, s.fabric,
						ocs_section_node_at(s.section, 0, at),
						at[0] < box.extent[0] && at[1] < box.extent[1] &&
							at[2] < box.extent[2]);
		text = ocs_nearest_shapes_text(s.placer, s.occupancy, &shape, "");
		assert_string_equal(text, cases[i].says);
		free(text);
		close_fabric(&s);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nearest_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
