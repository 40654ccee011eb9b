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

#include "src/advice/nearest_shape.h"
#include "src/advice/reason.h"
#include "src/config/config.h"
#include "src/place/place.h"
#include "src/place/placer.h"
#include "src/util/error.h"
#include "tests/unit/place/place_check.h"
#include "tests/unit/place/place_random.h"
#include "tests/unit/sanitizer.h"

#define POD "torus cubes:1x1x4 cube:4x4x4 tile:2x2x1"

static void random_cases(const char *line, int cases, int dims, int most)
{
	int nodes, placed = 0, never = 0, i;
	struct ocs_placement *p;
	struct ocs_shape shape;
	struct ocs_error err;
	struct setup s;

	cases = cases_here(cases);
	open_fabric(&s, line);
	for (i = 0; i < cases; i++) {
		random_shape(&shape, dims, most);
		random_occupancy(s.occupancy, s.fabric);
		memset(&err, 0, sizeof(err));
		nodes = ocs_reason_node_count(s.placer, &shape, &err);
		if (nodes < 0) {
			assert_int_equal(err.code, OCS_NEVER);
			never++;
		}
		p = ocs_reason_place(s.placer, s.occupancy, &shape, 0, &err);
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
			p = ocs_reason_place(s.placer, s.occupancy, &shape, nodes, &err);
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
		p = ocs_reason_place(s.placer, s.occupancy, &shape, 0, &err);
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
		{ "torus cubes:2x2x1 cube:4x4x4 tile:2x2x1", "4x6x5",
		  "a ring of 5 cannot close on 4x4x4 "
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
		assert_null(ocs_reason_place(s.placer, s.occupancy, &shape, 0, &err));
		assert_int_equal(err.code, OCS_NEVER);
		if (!strstr(err.text, never[i].says))
			fail_msg("%s: %s", never[i].shape, err.text);
		for (n = ocs_nearest_shapes(s.placer, &shape, near, 4); n > 0; n--)
			assert_true(ocs_reason_node_count(s.placer, &near[n - 1], &err) > 0);
		close_fabric(&s);
	}
}

/* The whole line: the reason, the nearest shapes, what else would work. */
static void test_never_names_what_fits(void **state)
{
	static const struct {
		const char *line, *shape, *conn;
		bool no_fold, no_rotate;
		const char *says;
	} lines[] = {
		{ POD, "5x5x5", NULL, false, false,
		  "5x5x5: a ring of 5 cannot close on 4x4x4 cubes; nearest shapes that fit: 8x4x4, "
		  "4x4x4, 8x8x4" },
		{ POD, "7", NULL, false, false,
		  "7: a ring of 7 cannot close on 4x4x4 cubes; nearest shapes that fit: 8, 6, 10; "
		  "with --conn-type=mesh it fits" },
		{ POD, "6x5", NULL, false, false,
		  "6x5: a ring of 5 cannot close on 4x4x4 cubes; nearest shapes that fit: 6x6, 6x4, "
		  "8x4; with --conn-type=torus,mesh it fits" },
		{ POD, "16x16x16", NULL, false, false,
		  "16x16x16 is larger than the machine: 4096 XPUs asked, 256 exist; nearest shapes "
		  "that fit: 8x8x4, 16x4x4, 16x8x2" },
		{ POD, "1000000", NULL, false, false,
		  "1000000 is larger than the machine: 1000000 XPUs asked, 256 exist; nearest shapes "
		  "that fit: 256, 254, 252" },
		{ POD, "4x4x4x4", NULL, false, false,
		  "4x4x4x4: its 4 dimensions need 8 links at an XPU, which has 6; nearest shapes that "
		  "fit: 8x8x2x2, 16x4x2x2, 32x2x2x2" },
		{ "static:16x16x16 tile:1x1x1", "34x60", "mesh", false, false,
		  "34x60: 60 and 34 are longer than the sides of a 16x16x16 torus (16) and would have to "
		  "be folded, which takes more than its three axes; nearest shapes that fit: 15x136, "
		  "12x170, 10x204" },
		{ "static:16x16x16 tile:1x1x1", "300x2", "mesh", false, false,
		  "300x2: 300 is longer than the sides of a 16x16x16 torus (16) and would have to be "
		  "folded, which takes more than its three axes; nearest shapes that fit: 200x3, 150x4, "
		  "120x5" },
		{ "static:16x8x8 tile:1x1x1", "9x9x9", "mesh", false, false,
		  "9x9x9: an extent of 9 is longer than the side of 8 that is left for it on a 16x8x8 "
		  "torus; nearest shapes that fit: 10x8x8, 11x8x8, 9x8x8" },
		{ POD, "2x2x2x2x2x4", NULL, false, false,
		  "2x2x2x2x2x4: its 6 dimensions need 7 links at an XPU, which has 6; nearest shapes "
		  "that fit: 2x2x2x2x2x2, 2x2x2x2x1x8, 2x2x2x2x1x4" },
		{ POD, "6x4", NULL, true, false,
		  "6x4: a ring of 6 cannot close on 4x4x4 cubes without folding; nearest shapes that "
		  "fit: 12x2, 8x4, 4x4; without --no-fold it fits" },
		{ POD, "6x6x4", NULL, false, false,
		  "6x6x4: its rings cannot all close on 4x4x4 cubes; nearest shapes that fit: 12x6x2, "
		  "18x4x2, 2x36x2; with --conn-type=mesh it fits" },
		{ POD, "3x20x3", "mesh", true, false,
		  "3x20x3: it needs 5 cubes, 4 exist; nearest shapes that fit: 4x15x3, 3x16x3, "
		  "4x16x3" },
		{ POD, "8x8x16_twisted", NULL, false, false,
		  "8x8x16_twisted is larger than the machine: 1024 XPUs asked, 256 exist; nearest "
		  "shapes that fit: 8x4x8_twisted, 4x4x8_twisted" },
		{ POD, "2x2x4_twisted", NULL, false, false,
		  "2x2x4_twisted: a twisted torus fills whole cubes, so on 4x4x4 cubes each extent "
		  "must be a multiple of the cube's edge; the plain torus of the same extents fits; "
		  "nearest shapes that fit: 4x4x8_twisted, 8x4x8_twisted" },
		{ "torus cubes:1x1x2 cube:3x3x3 tile:1x1x1", "5x5", NULL, false, false,
		  "5x5: its rings cannot all close on 3x3x3 cubes; nearest shapes that fit: 6x5, 6x4, "
		  "6x6; with --conn-type=mesh it fits" },
		{ "static:8x8x8 tile:1x1x1", "4x4x8_twisted", NULL, false, false,
		  "4x4x8_twisted: the wraps of a 8x8x8 torus are fixed, a twist needs circuits" },
	};
	struct ocs_shape shape;
	struct ocs_error err;
	struct setup s;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		open_fabric(&s, lines[i].line);
		assert_int_equal(ocs_shape_parse(lines[i].shape, lines[i].conn, &shape, &err), 0);
		shape.no_fold = lines[i].no_fold;
		shape.no_rotate = lines[i].no_rotate;
		assert_int_equal(ocs_reason_node_count(s.placer, &shape, &err), -1);
		assert_int_equal(err.code, OCS_NEVER);
		assert_string_equal(err.text, lines[i].says);
		close_fabric(&s);
	}
}

/* Whatever is asked of whatever machine: what is named fits, and with the connections
 * that are named the shape itself does. */
static void test_nearest_fit(void **state)
{
	static const char *const machines[] = {
		POD,
		"torus cubes:2x2x2 cube:2x2x2 tile:2x1x1",
		"torus cubes:1x1x3 cube:3x3x3 tile:1x1x1",
		"torus cubes:1x1x2 cube:8x8x8 tile:2x2x1",
		"static:8x8x4 tile:1x1x1",
		"torus cubes:1x1x2 cube:5x5x5 tile:1x1x1",
	};
	struct ocs_shape shape, near[3], other;
	unsigned int seed = 11;
	struct ocs_error err;
	int m, i, n, d, named = 0;
	struct setup s;

	(void)state;
	for (m = 0; m < 6; m++) {
		open_fabric(&s, machines[m]);
		for (i = 0; i < 150; i++) {
			const char *conn;

			shape = (struct ocs_shape){ .ndim = 1 + rand_r(&seed) % 6, .xpus = 1 };
			for (d = 0; d < shape.ndim; d++) {
				shape.extent[d] = 1 + rand_r(&seed) % (shape.ndim < 4 ? 20 : 5);
				shape.mesh[d] = rand_r(&seed) % 4 == 0;
				shape.xpus *= shape.extent[d];
			}
			shape.no_fold = rand_r(&seed) % 4 == 0;
			shape.no_rotate = rand_r(&seed) % 4 == 0;
			if (ocs_reason_node_count(s.placer, &shape, &err) > 0)
				continue;
			if (err.code != OCS_NEVER || strlen(err.text) > 400 ||
			    strchr(err.text, '\n'))
				fail_msg("%s", err.text);
			conn = strstr(err.text, "--conn-type=");
			if (conn) {
				char word[OCS_SHAPE_TEXT], text[OCS_SHAPE_TEXT];

				sscanf(conn, "--conn-type=%90s", word);
				assert_int_equal(ocs_shape_parse(ocs_shape_format(&shape, text),
								 word, &other, &err),
						 0);
				other.no_fold = shape.no_fold;
				other.no_rotate = shape.no_rotate;
				if (ocs_reason_node_count(s.placer, &other, &err) < 0)
					fail_msg("%s", err.text);
			}
			for (n = ocs_nearest_shapes(s.placer, &shape, near, 3); n > 0;
			     n--, named++) {
				struct ocs_placement *p = ocs_reason_place(s.placer, s.occupancy,
									   &near[n - 1], 0, &err);

				if (!p)
					fail_msg("%s", err.text);
				check(&s, p);
				ocs_placement_destroy(p);
			}
		}
		close_fabric(&s);
	}
	assert_true(named > 500);
}

/* On a busy machine what is named can be placed there and then, and is no larger. */
static void test_nearest_now(void **state)
{
	static const char *const shapes[] = { "4x4x4", "8x8x2",		"16",
					      "8x8",   "4x4x8_twisted", "2x2x2x2x2x2" };
	struct ocs_shape shape, near[3];
	unsigned int seed = 7;
	int i, k, n, node, named = 0;
	struct ocs_error err;
	struct setup s;

	(void)state;
	open_fabric(&s, POD);
	for (i = 0; i < 60; i++) {
		ocs_occupancy_reset(s.occupancy);
		for (node = 0; node < 64; node++) {
			if ((int)(rand_r(&seed) % 8) < 1 + i % 8)
				ocs_occupancy_node_set(s.occupancy, s.fabric, node, false);
		}
		for (k = 0; k < 6; k++) {
			assert_int_equal(ocs_shape_parse(shapes[k], NULL, &shape, &err), 0);
			n = ocs_nearest_shapes_now(s.placer, s.occupancy, &shape, near, 3);
			for (; n > 0; n--, named++) {
				struct ocs_placement *p = ocs_reason_place(s.placer, s.occupancy,
									   &near[n - 1], 0, &err);

				if (!p)
					fail_msg("%s", err.text);
				assert_true(near[n - 1].xpus <= shape.xpus);
				assert_int_equal(
					ocs_placement_verify(s.fabric, s.occupancy, p, &err), 0);
				ocs_placement_destroy(p);
			}
		}
	}
	assert_true(named > 500);
	ocs_occupancy_fill(s.occupancy);
	assert_int_equal(ocs_nearest_shapes_now(s.placer, s.occupancy, &shape, near, 3), 0);
	close_fabric(&s);
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
	assert_null(ocs_reason_place(s.placer, s.occupancy, &shape, 0, &err));
	assert_int_equal(err.code, OCS_NOT_NOW);
	assert_string_equal(err.text,
			    "needs 2 cubes that are wholly free; 1 is free, 1 is drained");
	assert_null(ocs_reason_place(s.placer, s.occupancy, &shape, 33, &err));
	assert_int_equal(err.code, OCS_NEVER);

	/* ports: both free cubes have what 4x4x4 needs, but not their circuits */
	ocs_occupancy_reset(s.occupancy);
	assert_int_equal(ocs_shape_parse("4x4x4", NULL, &shape, &err), 0);
	for (cube = 0; cube < 4; cube++)
		*(uint64_t *)(uintptr_t)ocs_occupancy_blocked(s.occupancy, cube, 1, OCS_MINUS) = 4;
	s.occupancy->any_blocked = true;
	assert_null(ocs_reason_place(s.placer, s.occupancy, &shape, 0, &err));
	assert_int_equal(err.code, OCS_NOT_NOW);
	assert_non_null(strstr(err.text, "switch ports"));
	*(uint64_t *)(uintptr_t)ocs_occupancy_blocked(s.occupancy, 2, 1, OCS_MINUS) = 0;
	p = ocs_reason_place(s.placer, s.occupancy, &shape, 0, &err);
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
	p = ocs_reason_place(s.placer, s.occupancy, &shape, 0, &err);
	assert_non_null(p);
	assert_int_equal(p->ncubes, 1);
	assert_int_equal(p->cubes[0], 2);
	check(&s, p);
	ocs_placement_destroy(p);
	close_fabric(&s);
}

/* What a decision did is counted: all of it, and of the last one only. */
static void test_work(void **state)
{
	struct ocs_place_work work;
	struct ocs_shape shape;
	struct ocs_error err;
	struct setup s;

	(void)state;
	open_fabric(&s, "torus cubes:2x2x1 cube:4x4x4 tile:2x2x1");
	assert_int_equal(ocs_shape_parse("4x4x4", "mesh", &shape, &err), 0);
	/* the one way that needs no circuit, in four cubes and then in the one chosen */
	ocs_placement_destroy(ocs_reason_place(s.placer, s.occupancy, &shape, 0, &err));
	ocs_placer_work(s.placer, &work);
	assert_int_equal(work.candidates, 2);
	assert_int_equal(work.words, 5);
	assert_int_equal(work.catalogues, 1);
	ocs_occupancy_cube_drain(s.occupancy, 3);
	ocs_placement_destroy(ocs_reason_place(s.placer, s.occupancy, &shape, 0, &err));
	ocs_placer_work(s.placer, &work);
	assert_int_equal(work.words, 4);
	assert_int_equal(work.catalogues, 0);
	ocs_occupancy_fill(s.occupancy);
	assert_null(ocs_reason_place(s.placer, s.occupancy, &shape, 0, &err));
	ocs_placer_work(s.placer, &work);
	assert_int_equal(work.words, 0);
	close_fabric(&s);

	/* the box of 4x4x4 lies at the first offset: 16 lines, looked at twice */
	open_fabric(&s, "static:16x16x16 tile:1x1x1");
	ocs_placement_destroy(ocs_reason_place(s.placer, s.occupancy, &shape, 0, &err));
	ocs_placer_work(s.placer, &work);
	assert_int_equal(work.candidates, 2);
	assert_int_equal(work.words, 32);
	assert_int_equal(work.searched, 0);
	assert_false(work.bounded);
	close_fabric(&s);
}

/* Candidates of more cubes are made only when they are needed; when they were made makes no
 * difference to a placement. */
static void test_in_parts(void **state)
{
	static const char *const shapes[] = { "102", "206", "2x2x66", "6x10", "30x4" };
	struct ocs_catalogue *all, *first;
	struct setup early, late;
	struct ocs_shape shape;
	struct ocs_error err;
	int i, j, placed = 0, same = 0;

	(void)state;
	for (i = 0; i < 5; i++) {
		open_fabric(&early, "torus cubes:4x2x2 cube:4x4x4 tile:1x1x1");
		open_fabric(&late, "torus cubes:4x2x2 cube:4x4x4 tile:1x1x1");
		assert_int_equal(ocs_shape_parse(shapes[i], NULL, &shape, &err), 0);
		assert_true(ocs_reason_node_count(late.placer, &shape, &err) > 0);
		assert_true(ocs_reason_node_count(early.placer, &shape, &err) > 0);
		all = ocs_placer_catalogue(late.placer, &shape, 0);
		first = ocs_placer_catalogue(early.placer, &shape, 0);
		assert_non_null(all->rest);
		while (ocs_catalogue_more(all, &late.placer->scratch))
			;
		assert_null(all->rest);
		assert_true(all->ncandidates > first->ncandidates);
		ocs_box_search_prepare(late.placer->fit, all);
		for (j = 0; j < 60; j++) {
			struct ocs_placement *p, *q;

			random_occupancy(early.occupancy, early.fabric);
			ocs_occupancy_copy(late.occupancy, early.occupancy);
			p = ocs_reason_place(early.placer, early.occupancy, &shape, 0, &err);
			q = ocs_reason_place(late.placer, late.occupancy, &shape, 0, &err);
			assert_int_equal(!p, !q);
			placed += p && q;
			same += p && q && !strcmp(p->compact, q->compact);
			ocs_placement_destroy(p);
			ocs_placement_destroy(q);
		}
		close_fabric(&early);
		close_fabric(&late);
	}
	assert_true(placed > 20);
	assert_int_equal(same, placed);
}

/* A machine of servers has no cubes. */
static void test_servers(void **state)
{
	struct ocs_shape shape;
	struct ocs_error err = { 0 };
	struct ocs_fabric *fabric;
	struct ocs_placer *placer;

	(void)state;
	fabric = ocs_config_take_fabric(ocs_config_open("direct servers:12 degree:4", &err));
	assert_non_null(fabric);
	placer = ocs_placer_create(fabric, &fabric->sections[0]);
	assert_int_equal(ocs_shape_parse("4", NULL, &shape, &err), 0);
	assert_int_equal(ocs_reason_node_count(placer, &shape, &err), -1);
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
		cmocka_unit_test(test_never_names_what_fits),
		cmocka_unit_test(test_nearest_fit),
		cmocka_unit_test(test_nearest_now),
		cmocka_unit_test(test_not_now),
		cmocka_unit_test(test_best_fit),
		cmocka_unit_test(test_work),
		cmocka_unit_test(test_in_parts),
		cmocka_unit_test(test_servers),
		cmocka_unit_test(test_random_4),
		cmocka_unit_test(test_random_others),
		cmocka_unit_test(test_random_static),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
