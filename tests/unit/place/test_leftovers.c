/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* What parts of cubes hold: every box that fits somewhere is found or bettered, and rings take
 * as few cubes as their XPUs can be had on. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "src/advice/reason.h"
#include "src/place/box_layout.h"
#include "tests/unit/place/place_check.h"
#include "tests/unit/place/place_random.h"

#define XPUS_MAX 512

/* Only the box of these sides at the corner of each cube is free. */
static int corners_free(struct setup *s, int x, int y, int z)
{
	int cube, at[OCS_AXES];

	ocs_occupancy_fill(s->occupancy);
	for (cube = 0; cube < s->section->ncubes; cube++) {
		for (at[0] = 0; at[0] < x; at[0]++) {
			for (at[1] = 0; at[1] < y; at[1]++) {
				for (at[2] = 0; at[2] < z; at[2]++)
					ocs_occupancy_node_set(
						s->occupancy, s->fabric,
						ocs_section_node_at(s->section, cube, at), true);
			}
		}
	}
	return x * y * z;
}

/* Places SHAPE and returns its cubes, 0: refused. */
static int cubes_of(struct setup *s, const struct ocs_shape *shape, bool thorough)
{
	struct ocs_error err = { 0 };
	struct ocs_placement *p = ocs_reason_place(s->placer, s->occupancy, shape, 0, &err);
	int n = p ? p->ncubes : 0;

	if (p && thorough)
		check(s, p);
	else if (p && ocs_placement_verify(s->fabric, s->occupancy, p, &err))
		fail_msg("%s: %s", p->compact, err.text);
	ocs_placement_destroy(p);
	return n;
}

static void rings_check(const char *line, int x, int y, int z)
{
	struct ocs_error err = { 0 };
	struct ocs_shape shape;
	char text[OCS_SHAPE_TEXT];
	struct setup s;
	int n, per;

	open_fabric(&s, line);
	per = corners_free(&s, x, y, z);
	for (n = 4; n <= s.section->ncubes * per; n += n < 130 || (n >= 250 && n < 270) ? 2 : 60) {
		int cubes;

		snprintf(text, sizeof(text), "%d", n);
		assert_int_equal(ocs_shape_parse(text, NULL, &shape, &err), 0);
		cubes = cubes_of(&s, &shape, n % 6 == 0);
		if (cubes != (n + per - 1) / per)
			fail_msg("%s, %dx%dx%d free: %d on %d cubes", line, x, y, z, n, cubes);
	}
	close_fabric(&s);
}

static void test_rings(void **state)
{
	(void)state;
	rings_check("torus cubes:4x4x4 cube:4x4x4 tile:1x1x1", 1, 4, 4);
	rings_check("torus cubes:4x4x4 cube:4x4x4 tile:1x1x1", 2, 4, 4);
	rings_check("torus cubes:4x4x4 cube:4x4x4 tile:2x2x1", 4, 4, 2);
}

/* The fewest cubes of any box, laid out XPU by XPU. */
struct boxes {
	struct setup *s;
	const struct ocs_shape *shape;
	struct ocs_lattice host;
	int nodes, best;
	bool gaps;
};

/* Whether each piece finds a cube of its own where its XPUs are free (augmenting paths). */
static bool piece_seat(const struct setup *s, const uint64_t *need, int piece, int *piece_of,
		       bool *seen)
{
	int cube;

	for (cube = 0; cube < s->section->ncubes; cube++) {
		if (seen[cube] || (s->occupancy->free[cube] & need[piece]) != need[piece])
			continue;
		seen[cube] = true;
		if (piece_of[cube] < 0 || piece_seat(s, need, piece_of[cube], piece_of, seen)) {
			piece_of[cube] = piece;
			return true;
		}
	}
	return false;
}

static void lay_try(struct boxes *b, const struct ocs_fold_table *table,
		    const struct ocs_box_layout *lay)
{
	const struct ocs_section *section = b->s->section;
	int grid = lay->count[0] * lay->count[1] * lay->count[2], cubes = 0, nodes = 0, piece, n;
	uint64_t *need = calloc((size_t)grid, sizeof(*need));
	int *piece_of = malloc((size_t)section->ncubes * sizeof(int));
	bool *seen = calloc((size_t)section->ncubes, sizeof(*seen)), fits = true;
	struct ocs_xpu xpus[XPUS_MAX];
	long i;

	ocs_box_layout_xpus(section, table, lay, xpus);
	for (i = 0; i < b->shape->xpus; i++) {
		const int *tile = section->tile, *at = xpus[i].at;
		uint64_t *mask = &need[xpus[i].cube];
		int in[OCS_AXES], k;

		if (*mask >> ocs_section_bit(section, at) & 1)
			continue;
		nodes++;
		for (k = 0; k < tile[0] * tile[1] * tile[2]; k++) {
			in[0] = at[0] - at[0] % tile[0] + k / tile[2] / tile[1];
			in[1] = at[1] - at[1] % tile[1] + k / tile[2] % tile[1];
			in[2] = at[2] - at[2] % tile[2] + k % tile[2];
			*mask |= 1ULL << ocs_section_bit(section, in);
		}
	}
	for (n = 0; n < section->ncubes; n++)
		piece_of[n] = -1;
	for (piece = 0; piece < grid && fits; piece++) {
		if (!need[piece])
			continue;
		cubes++;
		memset(seen, 0, (size_t)section->ncubes * sizeof(*seen));
		fits = piece_seat(b->s, need, piece, piece_of, seen);
	}
	if (fits && nodes == b->nodes && (!b->best || cubes < b->best))
		b->best = cubes;
	free(need);
	free(piece_of);
	free(seen);
}

static bool folding_try(const struct ocs_folding *folding, void *arg)
{
	struct boxes *b = arg;
	const int *edge = b->host.edge;
	struct ocs_fold_table table;
	struct ocs_box_layout lay;
	int o, a, c;

	if (ocs_fold_table_make(folding, b->shape, &b->host, &table, NULL))
		return true;
	for (o = 0; o < edge[0] * edge[1] * edge[2]; o++) {
		for (c = 0; c < 8; c++) {
			int rest = o;
			bool good = true;

			for (a = 0; a < OCS_AXES; a++) {
				int least = (folding->box[a] + edge[a] - 1) / edge[a];

				lay.offset[a] = rest % edge[a];
				rest /= edge[a];
				lay.count[a] = least + (c >> a & 1);
				/* a box with gaps begins on a tile's border and does not go round */
				good &= !(c >> a & 1) ||
					(!b->gaps && !folding->closed[a] &&
					 lay.offset[a] + folding->box[a] > least * edge[a]);
				good &= !b->gaps ||
					(lay.offset[a] + folding->box[a] <= least * edge[a] &&
					 (folding->flip >> a & 1 ? lay.offset[a] + folding->box[a] :
								   lay.offset[a]) %
							 b->host.tile[a] ==
						 0);
			}
			if (good && ocs_box_layout_valid(b->s->section, folding, &lay))
				lay_try(b, &table, &lay);
		}
	}
	ocs_fold_table_free(&table);
	return true;
}

static int boxes_best(struct setup *s, const struct ocs_shape *shape)
{
	struct boxes b = { .s = s, .shape = shape };

	ocs_lattice_of(s->section, &b.host);
	b.nodes = ocs_place_node_count(s->placer, shape, NULL);
	ocs_fold_family(shape, &b.host, false, folding_try, &b);
	b.gaps = true;
	ocs_fold_family(shape, &b.host, true, folding_try, &b);
	return b.best;
}

static void shape_compare(struct setup *s, const char *text)
{
	struct ocs_error err = { 0 };
	struct ocs_shape shape;
	int boxes, cubes;

	assert_int_equal(ocs_shape_parse(text, NULL, &shape, &err), 0);
	boxes = boxes_best(s, &shape);
	cubes = cubes_of(s, &shape, true);
	if (boxes && (!cubes || cubes > boxes))
		fail_msg("%s: %d cubes, a box takes %d", text, cubes, boxes);
}

/* Two dimensions over parts of cubes. */
static void test_boxes(void **state)
{
	static const int sides[][3] = { { 1, 4, 4 }, { 2, 4, 4 }, { 4, 4, 2 } };
	static const char *const shapes[] = { "10x2",	"24x2",	 "32x4", "18x4",  "6x6",
					      "10x6",	"16x8",	 "32x8", "12x12", "4x4x4",
					      "16x4x2", "8x2x2", "20" };
	struct setup s;
	size_t i, j;

	(void)state;
	for (i = 0; i < 3; i++) {
		open_fabric(&s, i < 2 ? "torus cubes:4x2x2 cube:4x4x4 tile:1x1x1" :
					"torus cubes:4x2x2 cube:4x4x4 tile:2x2x1");
		corners_free(&s, sides[i][0], sides[i][1], sides[i][2]);
		for (j = 0; j < sizeof(shapes) / sizeof(shapes[0]); j++)
			shape_compare(&s, shapes[j]);
		close_fabric(&s);
	}
}

/* Halves, quarters and single nodes of a few cubes. */
static void test_mixed(void **state)
{
	static const char *const shapes[] = { "8",     "14",	"20",	"8x2", "6x4",
					      "8x4",   "10x2",	"12x4", "6x6", "8x8",
					      "4x4x2", "4x4x4", "6x2x2" };
	int i, node, cube;
	struct setup s;

	(void)state;
	random_state = 4711;
	for (i = 0; i < 60; i++) {
		open_fabric(&s, i % 2 ? "torus cubes:5x1x1 cube:4x4x4 tile:2x2x1" :
					"torus cubes:5x1x1 cube:4x4x4 tile:1x1x1");
		ocs_occupancy_reset(s.occupancy);
		for (cube = 0; cube < s.section->ncubes; cube++) {
			int axis = (int)random_next(3), from = (int)random_next(4);

			for (node = 0; node < s.section->cube_nodes; node++) {
				int at = node * (64 / s.section->cube_nodes), c[3];

				c[2] = node % 4;
				c[1] = s.section->cube_nodes == 64 ? at / 4 % 4 : node / 4 % 2 * 2;
				c[0] = s.section->cube_nodes == 64 ? at / 16 : node / 8 * 2;
				if (random_next(100) < (c[axis] < from ? 85U : 12U))
					ocs_occupancy_node_set(
						s.occupancy, s.fabric,
						ocs_section_node_at(s.section, cube, c), false);
			}
		}
		shape_compare(&s, shapes[(size_t)i % (sizeof(shapes) / sizeof(shapes[0]))]);
		close_fabric(&s);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rings),
		cmocka_unit_test(test_boxes),
		cmocka_unit_test(test_mixed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
