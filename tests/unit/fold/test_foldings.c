/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Walks and foldings by themselves, and how many shapes of the published workload
 * the family holds: the numbers are the proven maxima. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "src/config/config.h"
#include "src/fold/fold.h"
#include "src/place/candidates.h"
#include "src/util/error.h"

static int vertex_distance(const int *a, const int *b, int n)
{
	int sum = 0, j;

	for (j = 0; j < n; j++)
		sum += abs(a[j] - b[j]);
	return sum;
}

/* The first axis goes round if the walk may. */
static int step_axis(const int *a, const int *b, const int *length, int n, enum ocs_walk_kind kind)
{
	if (kind == OCS_WALK_ROUND && abs(a[0] - b[0]) == length[0] - 1)
		return 1 + vertex_distance(a + 1, b + 1, n - 1);
	return vertex_distance(a, b, n);
}

static void check_walk(const int *length, int n, int steps, enum ocs_walk_kind kind)
{
	int tile[OCS_FACTORS] = { 2, 2, 1, 1, 1, 1 }, (*at)[OCS_FACTORS], i, j, index, size = 1;
	bool *seen;

	for (j = 0; j < n; j++)
		size *= length[j];
	at = calloc((size_t)steps, sizeof(*at));
	seen = calloc((size_t)size, sizeof(*seen));
	assert_int_equal(ocs_walk(length, tile, n, steps, kind, at), 0);
	for (i = 0; i < steps; i++) {
		for (j = 0, index = 0; j < n; j++) {
			assert_in_range(at[i][j], 0, length[j] - 1);
			index = index * length[j] + at[i][j];
		}
		assert_false(seen[index]);
		seen[index] = true;
		if (i)
			assert_int_equal(step_axis(at[i - 1], at[i], length, n, kind), 1);
	}
	if (kind != OCS_WALK_LINE)
		assert_int_equal(step_axis(at[steps - 1], at[0], length, n, kind), 1);
	free(at);
	free(seen);
}

static void test_walks(void **state)
{
	int length[OCS_FACTORS], n, code, j, size, steps, fits[4] = { 0 };
	enum ocs_walk_kind kind;

	(void)state;
	for (n = 2; n <= 4; n++) {
		for (code = 0; code < 1 << 2 * n; code++) {
			for (j = 0, size = 1; j < n; j++) {
				length[j] = 2 + (code >> 2 * j & 3);
				size *= length[j];
			}
			for (steps = 2; steps <= size && steps < 200; steps++) {
				if (ocs_walk_fits(length, n, steps, OCS_WALK_LINE))
					check_walk(length, n, steps, OCS_WALK_LINE);
				for (kind = OCS_WALK_CYCLE; kind <= OCS_WALK_ROUND; kind++) {
					if (!ocs_walk_fits(length, n, steps, kind))
						continue;
					assert_int_equal(steps % 2, kind == OCS_WALK_ROUND);
					check_walk(length, n, steps, kind);
					fits[kind]++;
				}
			}
			/* no cycle leaves out more than parity wants */
			assert_true(ocs_walk_fits(length, n, size & ~1, OCS_WALK_SNUG));
			if (length[0] * length[1] % 2 == 0)
				assert_true(ocs_walk_fits(length, n, size, OCS_WALK_CYCLE));
			if (length[0] & 1)
				assert_true(
					ocs_walk_fits(length, n, (size - 1) | 1, OCS_WALK_ROUND));
			for (kind = OCS_WALK_LINE; kind <= OCS_WALK_ROUND; kind++) {
				assert_false(ocs_walk_fits(length, n, size + 1, kind));
				assert_false(ocs_walk_fits(length, n, size + 2, kind));
			}
		}
	}
	assert_true(fits[OCS_WALK_ROUND] > 500);
	assert_true(fits[OCS_WALK_CYCLE] > 1000);
}

static int cube_span(int extent)
{
	return (extent + 3) / 4;
}

static bool shape_possible(const struct ocs_fabric *fabric, int ndim, int a, int b, int c,
			   int *shapes)
{
	struct ocs_shape shape = { .ndim = ndim, .extent = { a, b, c }, .xpus = (long)a * b * c };

	++*shapes;
	return ocs_catalogue_possible(&fabric->sections[0], &shape);
}

/* All shapes of the workload with sizes up to 4096. */
static int count_possible(const struct ocs_fabric *fabric, int *shapes)
{
	int n, a, b, c, count = 0;

	*shapes = 0;
	for (n = 1; n <= 4096; n += n < 2 ? 1 : 2) {
		if (n <= 256)
			count += shape_possible(fabric, 1, n, 1, 1, shapes);
		for (a = 2; a * a <= n && n > 2; a += 2) {
			if (n % a)
				continue;
			b = n / a;
			if (b % 2 == 0 && b <= 256 && cube_span(a) * cube_span(b) <= 64)
				count += shape_possible(fabric, 2, a, b, 1, shapes);
			for (b = a; a * b * b <= n && n > 256; b += 2) {
				c = n / a / b;
				if (n / a % b || c % 2 || c > 256 ||
				    cube_span(a) * cube_span(b) * cube_span(c) > 64)
					continue;
				count += shape_possible(fabric, 3, a, b, c, shapes);
			}
		}
	}
	return count;
}

static void test_workload(void **state)
{
	static const struct {
		const char *line;
		int count;
	} machine[] = {
		{ "static:16x16x16 tile:1x1x1", 290 },
		{ "torus cubes:2x2x2 cube:8x8x8 tile:1x1x1", 425 },
		{ "torus cubes:4x4x4 cube:4x4x4 tile:1x1x1", 1305 },
		{ "torus cubes:8x8x8 cube:2x2x2 tile:1x1x1", 1879 },
	};
	struct ocs_fabric *fabric;
	struct ocs_error err;
	int shapes;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(machine) / sizeof(machine[0]); i++) {
		fabric = ocs_config_take_fabric(ocs_config_open(machine[i].line, &err));
		assert_non_null(fabric);
		assert_int_equal(count_possible(fabric, &shapes), machine[i].count);
		assert_int_equal(shapes, 1879);
		ocs_fabric_destroy(fabric);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_walks),
		cmocka_unit_test(test_workload),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
