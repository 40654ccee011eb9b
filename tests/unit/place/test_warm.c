/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Once warm, nothing is allocated between the request and the decision.  The allocator and
 * the functions that follow a decision are wrapped by the linker (--wrap). */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "src/advice/reason.h"
#include "src/place/placer.h"
#include "tests/unit/place/place_check.h"
#include "tests/unit/place/place_random.h"

static long calls, at_decision = -1;

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *old, size_t size);
char *__real_ocs_placement_encode(const struct ocs_shape *shape, const struct ocs_folding *folding,
				  const struct ocs_box_layout *lay, const int *piece_cube,
				  struct ocs_error *err);
char *__real_ocs_ring_encode(const struct ocs_ring_builder *builder, const struct ocs_shape *shape,
			     struct ocs_error *err);

void *__wrap_malloc(size_t size)
{
	calls++;
	return __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
	calls++;
	return __real_calloc(count, size);
}

void *__wrap_realloc(void *old, size_t size)
{
	calls++;
	return __real_realloc(old, size);
}

char *__wrap_ocs_placement_encode(const struct ocs_shape *shape, const struct ocs_folding *folding,
				  const struct ocs_box_layout *lay, const int *piece_cube,
				  struct ocs_error *err)
{
	at_decision = calls;
	return __real_ocs_placement_encode(shape, folding, lay, piece_cube, err);
}

char *__wrap_ocs_ring_encode(const struct ocs_ring_builder *builder, const struct ocs_shape *shape,
			     struct ocs_error *err)
{
	at_decision = calls;
	return __real_ocs_ring_encode(builder, shape, err);
}

static const char *const shapes[] = { "6",   "16",    "30",    "64",   "8x4", "4x4x2",
				      "8x8", "4x4x4", "8x4x4", "12x6", "128" };
#define NSHAPES ((int)(sizeof(shapes) / sizeof(shapes[0])))

/* Decides on all shapes on the same ROUNDS fabrics, twice; the second time nothing may be
 * allocated. */
static void decisions_run(const char *line, int rounds)
{
	int round, i, pass, placed = 0, refused = 0, other = 0;
	long made = 0;
	struct ocs_placement *p;
	struct ocs_shape shape;
	struct ocs_error err;
	struct setup s;

	open_fabric(&s, line);
	for (pass = 0; pass < 2; pass++) {
		random_state = 91;
		for (round = 0; round < rounds; round++) {
			random_occupancy(s.occupancy, s.fabric);
			for (i = 0; i < NSHAPES; i++) {
				assert_int_equal(ocs_shape_parse(shapes[i], NULL, &shape, &err), 0);
				if (ocs_reason_node_count(s.placer, &shape, &err) < 0)
					continue;
				calls = 0;
				at_decision = -1;
				p = ocs_place(s.placer, s.occupancy, &shape, 0, &err);
				if (!p)
					at_decision = calls; /* a refusal is all decision */
				assert_true(at_decision >= 0);
				if (pass && at_decision)
					fail_msg("%s, %s: %ld allocations", line, shapes[i],
						 at_decision);
				made += calls;
				placed += pass && p;
				refused += pass && !p;
				other += pass && p && p->compact[0] != 'p';
				ocs_placement_destroy(p);
			}
		}
	}
	assert_true(made > placed); /* the allocator is wrapped */
	assert_true(placed > rounds && refused > rounds / 2);
	if (!other && s.section->threading)
		fail_msg("%s: boxes only", line);
	close_fabric(&s);
}

static void test_warm(void **state)
{
	(void)state;
	decisions_run("torus cubes:3x2x2 cube:4x4x4 tile:1x1x1", 200);
	decisions_run("torus cubes:3x2x2 cube:4x4x4 tile:2x2x1", 200);
	decisions_run("torus cubes:3x2x2 cube:4x4x4 tile:1x1x1 threading", 200);
	decisions_run("torus cubes:2x1x1 cube:8x8x8 tile:2x2x2", 50);
	decisions_run("static:8x8x4 tile:2x2x1", 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_warm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
