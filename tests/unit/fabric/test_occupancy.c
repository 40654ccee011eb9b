/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/config/config.h"
#include "src/fabric/occupancy.h"
#include "src/util/error.h"
#include "src/util/text.h"

struct world {
	struct ocs_fabric *fabric;
	const struct ocs_section *section;
	struct ocs_occupancy *occupancy;
};

static struct world world_open(const char *spec)
{
	struct ocs_error err = { 0 };
	struct world world = { .fabric = ocs_config_take_fabric(ocs_config_open(spec, &err)) };

	if (!world.fabric)
		fail_msg("%s: %s", spec, err.text);
	world.section = &world.fabric->sections[0];
	world.occupancy = ocs_occupancy_create(world.section);
	return world;
}

static void world_close(struct world *world)
{
	ocs_occupancy_destroy(world->occupancy);
	ocs_fabric_destroy(world->fabric);
}

static int all_free(const struct world *world)
{
	int count = 0;

	for (int i = 0; i < world->section->ncubes; i++)
		count += ocs_occupancy_cube_free(world->occupancy, i);
	return count;
}

static void nodes_come_and_go(void **state)
{
	static const char *const specs[] = { "torus cubes:3 cube:4x4x4 tile:2x2x1",
					     "torus cubes:2 cube:8x8x8 tile:2x1x4",
					     "torus cubes:5 cube:2x2x2 tile:1x1x2",
					     "torus cubes:2 cube:3x3x3 tile:1x3x1",
					     "static:16x16x16 tile:2x2x1" };

	(void)state;
	for (size_t i = 0; i < sizeof(specs) / sizeof(specs[0]); i++) {
		struct world w = world_open(specs[i]);
		int total = w.section->ncubes * w.section->cube_xpus;
		int tile = w.section->cube_xpus / w.section->cube_nodes;

		assert_int_equal(all_free(&w), total);
		for (int n = 0; n < w.fabric->nnodes; n++) {
			const struct ocs_node *node = &w.fabric->nodes[n];
			int last[3];

			ocs_occupancy_node_set(w.occupancy, w.fabric, n, false);
			assert_int_equal(all_free(&w), total - (n + 1) * tile);
			for (int axis = 0; axis < 3; axis++)
				last[axis] = node->origin[axis] + w.section->tile[axis] - 1;
			assert_false(ocs_occupancy_xpu_free(w.occupancy, node->cube, node->origin));
			assert_false(ocs_occupancy_xpu_free(w.occupancy, node->cube, last));
		}
		ocs_occupancy_node_set(w.occupancy, w.fabric, 1, true);
		assert_int_equal(all_free(&w), tile);
		assert_true(ocs_occupancy_xpu_free(w.occupancy, 0, w.fabric->nodes[1].origin));
		ocs_occupancy_reset(w.occupancy);
		assert_int_equal(all_free(&w), total);
		ocs_occupancy_fill(w.occupancy);
		assert_int_equal(all_free(&w), 0);
		world_close(&w);
	}
}

static void drained_cubes(void **state)
{
	struct world w = world_open("torus cubes:3 cube:4x4x4 tile:2x2x1");
	struct ocs_occupancy *copy = ocs_occupancy_create(w.section);

	(void)state;
	ocs_occupancy_cube_drain(w.occupancy, 1);
	assert_int_equal(all_free(&w), 128);
	assert_true(w.occupancy->drained[1]);
	/* a node that becomes idle does not free a drained cube */
	ocs_occupancy_node_set(w.occupancy, w.fabric, 16, true);
	assert_int_equal(all_free(&w), 128);
	ocs_occupancy_node_set(w.occupancy, w.fabric, 0, false);
	ocs_occupancy_copy(copy, w.occupancy);
	ocs_occupancy_reset(w.occupancy);
	assert_int_equal(all_free(&w), 192);
	assert_false(w.occupancy->drained[1]);
	assert_int_equal(ocs_occupancy_cube_free(copy, 0), 60);
	assert_int_equal(ocs_occupancy_cube_free(copy, 1), 0);
	assert_true(copy->drained[1]);
	ocs_occupancy_destroy(copy);
	world_close(&w);
}

static int blocked_count(const struct world *w)
{
	int count = 0;

	for (int cube = 0; cube < w->section->ncubes; cube++)
		for (int dim = 0; dim < 3; dim++)
			for (int sign = 0; sign < 2; sign++)
				for (int i = 0; i < w->occupancy->face_words; i++)
					count += __builtin_popcountll(ocs_occupancy_blocked(
						w->occupancy, cube, dim, sign)[i]);
	return count;
}

static void blocked_ports(void **state)
{
	struct world w = world_open(TEST_SOURCE_DIR "/examples/ocs-torus.yaml");
	struct ocs_occupancy *copy = ocs_occupancy_create(w.section);
	int sw = ocs_fabric_switch(w.fabric, "ocs-y-2-3");

	(void)state;
	assert_true(sw >= 0);
	assert_false(w.occupancy->any_blocked);
	assert_int_equal(blocked_count(&w), 0);
	/* port 6 is cube 2, sign - */
	ocs_occupancy_switch_block(w.occupancy, w.fabric, sw, 6);
	assert_true(w.occupancy->any_blocked);
	assert_int_equal(blocked_count(&w), 1);
	assert_true(ocs_occupancy_port_blocked(w.occupancy, 2, 1, 2, 3, OCS_MINUS));
	assert_int_equal(ocs_occupancy_blocked(w.occupancy, 2, 1, OCS_MINUS)[0], 1 << (2 * 4 + 3));
	ocs_occupancy_switch_block(w.occupancy, w.fabric, sw, 0);
	assert_int_equal(blocked_count(&w), 8);
	for (int cube = 0; cube < 4; cube++) {
		assert_true(ocs_occupancy_port_blocked(w.occupancy, cube, 1, 2, 3, OCS_PLUS));
		assert_true(ocs_occupancy_port_blocked(w.occupancy, cube, 1, 2, 3, OCS_MINUS));
		assert_false(ocs_occupancy_port_blocked(w.occupancy, cube, 1, 3, 2, OCS_PLUS));
		assert_false(ocs_occupancy_port_blocked(w.occupancy, cube, 0, 2, 3, OCS_PLUS));
	}
	/* an unused port, ports and switches that do not exist: nothing */
	ocs_occupancy_switch_block(w.occupancy, w.fabric, sw, 16);
	ocs_occupancy_switch_block(w.occupancy, w.fabric, sw, 17);
	ocs_occupancy_switch_block(w.occupancy, w.fabric, 48, 0);
	ocs_occupancy_switch_block(w.occupancy, w.fabric, -1, 1);
	assert_int_equal(blocked_count(&w), 8);
	ocs_occupancy_copy(copy, w.occupancy);
	assert_true(copy->any_blocked);
	ocs_occupancy_reset(w.occupancy);
	assert_int_equal(blocked_count(&w), 0);
	assert_false(w.occupancy->any_blocked);
	/* and copying "nothing blocked" over something clears it */
	ocs_occupancy_copy(copy, w.occupancy);
	assert_false(ocs_occupancy_port_blocked(copy, 0, 1, 2, 3, OCS_PLUS));
	ocs_occupancy_destroy(copy);
	world_close(&w);
}

static char *file_of(const char *text)
{
	char *path = ocs_strdup("/tmp/ocs-test-busy.XXXXXX");
	int fd = mkstemp(path);
	struct ocs_error err;

	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(ocs_file_write(path, text, strlen(text), 0600, &err), 0);
	return path;
}

static void busy_files(void **state)
{
	struct world w = world_open("torus cubes:2 cube:4x4x4 tile:2x2x1");
	char *path = file_of("# busy\nc0 0 0 0\n\n  c1\t3 3 3 # last\r\nc0 1 1 0");
	struct ocs_error err = { 0 };

	(void)state;
	assert_int_equal(ocs_occupancy_read_busy(w.occupancy, w.fabric, path, &err), 0);
	/* two tiles: c0 1 1 0 is in the tile of c0 0 0 0 */
	assert_int_equal(ocs_occupancy_cube_free(w.occupancy, 0), 60);
	assert_int_equal(ocs_occupancy_cube_free(w.occupancy, 1), 60);
	assert_false(ocs_occupancy_xpu_free(w.occupancy, 1, (int[]){ 2, 2, 3 }));
	unlink(path);
	free(path);
	world_close(&w);
}

static void busy_files_refused(void **state)
{
	static const struct {
		const char *text, *line, *word;
	} cases[] = {
		{ "c0 0 0 0\nc9 0 0 0\n", ":2: ", "no cube \"c9\"" },
		{ "c0 0 0 0\n\n#\nc0 0 0\n", ":4: ", "three coordinates" },
		{ "c0 1 2 4\n", ":1: ", "z runs from 0 to 3" },
		{ "c0 -1 2 3\n", ":1: ", "x runs" },
		{ "c0 1 2 3 4\n", ":1: ", "after the three" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct world w = world_open("torus cubes:2 cube:4x4x4 tile:2x2x1");
		char *path = file_of(cases[i].text);
		struct ocs_error err = { 0 };

		assert_int_equal(ocs_occupancy_read_busy(w.occupancy, w.fabric, path, &err), -1);
		assert_memory_equal(err.text, path, strlen(path));
		assert_memory_equal(err.text + strlen(path), cases[i].line, 4);
		if (!strstr(err.text, cases[i].word))
			fail_msg("\"%s\" does not say \"%s\"", err.text, cases[i].word);
		assert_int_equal(all_free(&w), 128);
		unlink(path);
		assert_int_equal(ocs_occupancy_read_busy(w.occupancy, w.fabric, path, &err), -1);
		free(path);
		world_close(&w);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nodes_come_and_go),  cmocka_unit_test(drained_cubes),
		cmocka_unit_test(blocked_ports),      cmocka_unit_test(busy_files),
		cmocka_unit_test(busy_files_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
