/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* What holds a job up, against trying all sets of what could go. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "tests/unit/place/place_random.h"
#include "src/config/config.h"
#include "src/ocsctl/slurm/blockers.h"
#include "src/place/place.h"
#include "src/util/text.h"

#define ENDS 7
#define SETS (1 << ENDS)

struct rig {
	struct ocs_fabric *fabric;
	struct ocs_placer *placer;
	struct ocs_occupancy *occupancy;
	struct ocs_ctl_obstacles all;
};

static void rig_open(struct rig *r, const char *fabric, const char *shape)
{
	memset(r, 0, sizeof(*r));
	r->fabric = ocs_config_take_fabric(ocs_config_open(fabric, NULL));
	assert_non_null(r->fabric);
	r->all.fabric = r->fabric;
	r->all.section = &r->fabric->sections[0];
	r->placer = ocs_placer_create(r->fabric, r->all.section);
	r->occupancy = ocs_occupancy_create(r->all.section);
	r->all.shaped = true;
	assert_int_equal(ocs_shape_parse(shape, NULL, &r->all.shape, NULL), 0);
}

static void rig_close(struct rig *r)
{
	ocs_ctl_obstacles_free(&r->all);
	ocs_occupancy_destroy(r->occupancy);
	ocs_placer_destroy(r->placer);
	ocs_fabric_destroy(r->fabric);
}

static struct ocs_ctl_obstacle *add(struct rig *r, enum ocs_ctl_obstacle_kind kind, int first,
				    int count, time_t end)
{
	char *nodes = ocs_asprintf("n[%d-%d]", first, first + count - 1);
	struct ocs_ctl_obstacle *one = ocs_ctl_obstacle_add(&r->all, kind, nodes);

	assert_non_null(one);
	one->end = end;
	one->name = nodes;
	return one;
}

/* Whether there is room when only those of THERE stand in the way. */
static bool room(struct rig *r, const bool *there)
{
	struct ocs_placement *placement;

	ocs_occupancy_reset(r->occupancy);
	for (int i = 0; i < r->all.section->nnodes; i++) {
		if (r->all.eligible && !r->all.eligible[i])
			ocs_occupancy_node_set(r->occupancy, r->fabric, i, false);
	}
	for (int i = 0; i < r->all.count; i++) {
		for (int n = 0; there[i] && n < r->all.list[i].nnodes; n++)
			ocs_occupancy_node_set(r->occupancy, r->fabric, r->all.list[i].nodes[n],
					       false);
	}
	placement = ocs_place(r->placer, r->occupancy, &r->all.shape, 0, NULL);
	ocs_placement_destroy(placement);
	return placement;
}

static bool ends_by_itself(const struct ocs_ctl_obstacle *one)
{
	return one->kind <= OCS_BY_RESERVATION;
}

/* Without LASTING, which sets of those that end are enough: the smallest size, and the
 * earliest end of a set of that size. */
static void all_sets(struct rig *r, const struct ocs_ctl_answer *answer, int *smallest)
{
	bool there[64];

	*smallest = -1;
	for (int set = 0; set < SETS; set++) {
		int size = __builtin_popcount((unsigned)set), bit = 0;

		for (int i = 0; i < r->all.count; i++)
			there[i] = !ends_by_itself(&r->all.list[i]) || !(set >> bit++ & 1);
		for (int i = 0; i < answer->nlasting; i++)
			there[answer->lasting[i]] = false;
		if (bit < ENDS && set >> bit)
			break;
		if ((*smallest < 0 || size < *smallest) && room(r, there))
			*smallest = size;
	}
}

static void check(struct rig *r)
{
	struct ocs_ctl_answer answer;
	bool there[64] = { false };
	int smallest;

	ocs_ctl_obstacles_ask(&r->all, &answer);
	assert_int_equal(room(r, there), answer.possible);
	for (int i = 0; i < r->all.count; i++)
		there[i] = true;
	assert_int_equal(room(r, there), answer.now);
	if (!answer.now && answer.possible) {
		all_sets(r, &answer, &smallest);
		assert_true(answer.complete);
		assert_int_equal(answer.nends, smallest);
		for (int i = 0; i < answer.nends; i++)
			there[answer.ends[i]] = false;
		for (int i = 0; i < answer.nlasting; i++)
			there[answer.lasting[i]] = false;
		assert_true(room(r, there));
		/* None of what lasts could have been spared. */
		for (int i = 0; i < r->all.count; i++)
			there[i] = !ends_by_itself(&r->all.list[i]);
		for (int i = 0; i < answer.nlasting; i++)
			there[answer.lasting[i]] = false;
		for (int i = 0; i < answer.nlasting; i++) {
			there[answer.lasting[i]] = true;
			assert_false(room(r, there));
			there[answer.lasting[i]] = false;
		}
		/* And what could go instead is enough alone. */
		for (int i = 0; i < r->all.count; i++)
			there[i] = true;
		for (int i = 0; i < answer.ninstead; i++) {
			assert_false(ends_by_itself(&r->all.list[answer.instead[i]]));
			there[answer.instead[i]] = false;
		}
		assert_true(!answer.ninstead || room(r, there));
	}
	ocs_ctl_answer_free(&answer);
}

static void test_all_sets(void **state)
{
	static const char *const shapes[] = { "4x4x4", "8x4x4", "4x4x2", "16x4x4", "8x8", "4x4" };

	(void)state;
	for (int round = 0; round < 300; round++) {
		struct rig r;

		rig_open(&r, "torus cubes:4x1x1 cube:4x4x4 tile:4x4x1", shapes[random_next(6)]);
		for (int i = 0; i < ENDS; i++) {
			int first = (int)random_next(16), count = 1 + (int)random_next(4);

			add(&r, random_next(4) ? OCS_BY_JOB : OCS_BY_RESERVATION, first,
			    first + count > 16 ? 1 : count,
			    random_next(8) ? 100 + random_next(9) : 0);
		}
		for (int i = (int)random_next(3); i > 0; i--)
			add(&r, OCS_BY_NODES, (int)random_next(16), 1, 0);
		if (!random_next(3))
			add(&r, OCS_BY_CUBE, 4 * (int)random_next(4), 4, 0);
		if (!random_next(4))
			ocs_ctl_obstacles_without(&r.all, "n3");
		check(&r);
		rig_close(&r);
	}
}

/* Of two jobs either of which is enough the one that ends first is named. */
static void test_the_earlier_of_two(void **state)
{
	struct ocs_ctl_answer answer;
	struct rig r;

	(void)state;
	rig_open(&r, "torus cubes:2x1x1 cube:4x4x4 tile:4x4x1", "4x4x4");
	add(&r, OCS_BY_JOB, 0, 4, 900);
	add(&r, OCS_BY_JOB, 5, 1, 400);
	ocs_ctl_obstacles_ask(&r.all, &answer);
	assert_int_equal(answer.nends, 1);
	assert_int_equal(answer.ends[0], 1);
	ocs_ctl_answer_free(&answer);
	/* One that ends late beats two that end early: fewest first. */
	add(&r, OCS_BY_JOB, 6, 1, 300);
	ocs_ctl_obstacles_ask(&r.all, &answer);
	assert_int_equal(answer.nends, 1);
	assert_int_equal(answer.ends[0], 0);
	assert_true(answer.complete);
	ocs_ctl_answer_free(&answer);
	rig_close(&r);
}

static void test_nothing_helps(void **state)
{
	struct ocs_ctl_answer answer;
	struct rig r;

	(void)state;
	rig_open(&r, "torus cubes:2x1x1 cube:4x4x4 tile:4x4x1", "8x4x4");
	ocs_ctl_obstacles_only(&r.all, "n[0-6]");
	add(&r, OCS_BY_JOB, 0, 1, 100);
	ocs_ctl_obstacles_ask(&r.all, &answer);
	assert_false(answer.possible || answer.now);
	assert_int_equal(answer.nends + answer.nlasting + answer.ninstead, 0);
	ocs_ctl_answer_free(&answer);
	rig_close(&r);
}

static void test_servers_are_counted(void **state)
{
	struct ocs_ctl_answer answer;
	struct rig r = { 0 };

	(void)state;
	r.fabric = ocs_config_take_fabric(ocs_config_open("direct servers:8 degree:4", NULL));
	assert_non_null(r.fabric);
	r.all.fabric = r.fabric;
	r.all.section = &r.fabric->sections[0];
	r.all.servers = 6;
	add(&r, OCS_BY_JOB, 0, 2, 100);
	add(&r, OCS_BY_JOB, 2, 3, 300);
	add(&r, OCS_BY_NODES, 7, 1, 0);
	ocs_ctl_obstacles_ask(&r.all, &answer);
	assert_true(answer.possible && !answer.now);
	assert_int_equal(answer.nends, 2);
	assert_int_equal(answer.nlasting, 0);
	ocs_ctl_answer_free(&answer);
	rig_close(&r);
}

/* A large machine full of small jobs: an answer in time, though perhaps not the fewest. */
static void test_a_large_machine(void **state)
{
	struct ocs_ctl_answer answer;
	struct timespec begin, end;
	struct rig r;

	(void)state;
	rig_open(&r, "torus cubes:8x8x4 cube:4x4x4 tile:2x2x1", "32x16x16");
	for (int i = 0; i < 2048; i++)
		add(&r, OCS_BY_JOB, 2 * i, 1, 100 + (time_t)random_next(100000));
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begin);
	ocs_ctl_obstacles_ask(&r.all, &answer);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
	assert_true(answer.possible && !answer.now);
	assert_int_equal(answer.nends, 1024); /* half of the machine, eight in each cube */
	printf("# 2048 jobs on 4096 nodes: %.2f s\n",
	       (double)(end.tv_sec - begin.tv_sec) + 1e-9 * (double)(end.tv_nsec - begin.tv_nsec));
	assert_true(end.tv_sec - begin.tv_sec < 60);
	ocs_ctl_answer_free(&answer);
	rig_close(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_sets),	cmocka_unit_test(test_the_earlier_of_two),
		cmocka_unit_test(test_nothing_helps),	cmocka_unit_test(test_servers_are_counted),
		cmocka_unit_test(test_a_large_machine),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
