/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Which jobs to restart elsewhere, against trying all sets in all orders. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/place/place_check.h"
#include "tests/unit/place/place_random.h"
#include "src/advice/advice.h"

#define JOBS 24

struct rig {
	struct setup s; /* occupancy: the base, without the jobs */
	struct ocs_advice_job jobs[JOBS];
	int njobs;
};

static void rig_open(struct rig *r, const char *fabric)
{
	memset(r, 0, sizeof(*r));
	open_fabric(&r->s, fabric);
}

static void jobs_clear(struct rig *r)
{
	while (r->njobs)
		ocs_placement_destroy(
			(struct ocs_placement *)(uintptr_t)r->jobs[--r->njobs].placement);
}

static void rig_close(struct rig *r)
{
	jobs_clear(r);
	close_fabric(&r->s);
}

static void xpus_take(struct rig *r, struct ocs_occupancy *o, const struct ocs_placement *p,
		      bool held)
{
	int i;

	for (i = 0; i < p->nnodes; i++)
		ocs_occupancy_node_set(o, r->s.fabric, p->nodes[i], !held);
}

static struct ocs_occupancy *as_is(struct rig *r)
{
	struct ocs_occupancy *o = ocs_occupancy_create(r->s.section);
	int i;

	ocs_occupancy_copy(o, r->s.occupancy);
	for (i = 0; i < r->njobs; i++)
		xpus_take(r, o, r->jobs[i].placement, true);
	return o;
}

static struct ocs_shape shape_of(const char *text)
{
	struct ocs_shape shape;

	assert_int_equal(ocs_shape_parse(text, NULL, &shape, NULL), 0);
	return shape;
}

/* Puts a job where the engine would, with all that is not free taken. */
static bool job_add(struct rig *r, const struct ocs_occupancy *free_now,
		    const struct ocs_shape *shape, double cost)
{
	struct ocs_placement *p = ocs_place(r->s.placer, free_now, shape, 0, NULL);

	if (!p)
		return false;
	r->jobs[r->njobs].placement = p;
	r->jobs[r->njobs++].cost = cost;
	return true;
}

/* Whether the items of SHAPES find room in some order. */
static bool any_order(struct rig *r, struct ocs_occupancy *o, const struct ocs_shape *const *shapes,
		      const int *nodes, int n, unsigned int done)
{
	int i;

	if (done == (1u << n) - 1)
		return true;
	for (i = 0; i < n; i++) {
		struct ocs_placement *p;
		bool good;

		if (done >> i & 1)
			continue;
		p = ocs_place(r->s.placer, o, shapes[i], nodes[i], NULL);
		if (!p)
			continue;
		xpus_take(r, o, p, true);
		good = any_order(r, o, shapes, nodes, n, done | 1u << i);
		xpus_take(r, o, p, false);
		ocs_placement_destroy(p);
		if (good)
			return true;
	}
	return false;
}

/* The best set of at most MOST jobs by trying them all; its size, or -1. */
static int best_brute(struct rig *r, const struct ocs_shape *shape, int most, double *cost)
{
	int best = -1;
	unsigned int set;

	for (set = 0; set < 1u << r->njobs; set++) {
		const struct ocs_shape *shapes[JOBS + 1] = { shape };
		int nodes[JOBS + 1] = { 0 }, n = __builtin_popcount(set), i, k = 1;
		struct ocs_occupancy *o;
		double sum = 0;

		for (i = 0; i < r->njobs; i++) {
			if (!(set >> i & 1))
				continue;
			sum += r->jobs[i].cost;
			shapes[k] = &r->jobs[i].placement->shape;
			nodes[k++] = r->jobs[i].placement->nnodes;
		}
		if (n > most || (best >= 0 && (n > best || (n == best && sum >= *cost))))
			continue;
		o = as_is(r);
		for (i = 0; i < r->njobs; i++) {
			if (set >> i & 1)
				xpus_take(r, o, r->jobs[i].placement, false);
		}
		/* what is down stays down */
		for (i = 0; i < r->s.section->nnodes; i++) {
			const struct ocs_node *node = &r->s.fabric->nodes[i];

			if (!ocs_occupancy_xpu_free(r->s.occupancy, node->cube, node->origin))
				ocs_occupancy_node_set(o, r->s.fabric, i, false);
		}
		if (any_order(r, o, shapes, nodes, k, 0)) {
			best = n;
			*cost = sum;
		}
		ocs_occupancy_destroy(o);
	}
	return best;
}

/* Placing in the order of the advice gives its placements. */
static void advice_replay(struct rig *r, const struct ocs_advice *a, struct ocs_occupancy *o)
{
	int at, i;

	for (at = 0; at <= a->nmoves; at++) {
		const struct ocs_placement *want = a->order == at ? a->placement : NULL;
		struct ocs_placement *p;

		for (i = 0; i < a->nmoves; i++) {
			if (a->moves[i].order == at)
				want = a->moves[i].placement;
		}
		assert_non_null(want);
		p = ocs_place(r->s.placer, o, &want->shape, want->nnodes, NULL);
		assert_non_null(p);
		assert_same(p, want);
		xpus_take(r, o, p, true);
		ocs_placement_destroy(p);
	}
}

/* The advice can be followed: all placements are right, side by side. */
static void advice_follow(struct rig *r, const struct ocs_advice *a, const struct ocs_shape *shape)
{
	struct ocs_occupancy *o = as_is(r), *before = ocs_occupancy_create(r->s.section);
	struct ocs_error err = { 0 };
	double cost = 0;
	int i, k;

	for (i = 0; i < a->nmoves; i++) {
		const struct ocs_placement *was = r->jobs[a->moves[i].job].placement;

		for (k = 0; k < was->nnodes; k++) {
			const struct ocs_node *node = &r->s.fabric->nodes[was->nodes[k]];

			if (ocs_occupancy_xpu_free(r->s.occupancy, node->cube, node->origin))
				ocs_occupancy_node_set(o, r->s.fabric, was->nodes[k], true);
		}
		cost += r->jobs[a->moves[i].job].cost;
	}
	ocs_occupancy_copy(before, o);
	advice_replay(r, a, before);
	ocs_occupancy_destroy(before);
	assert_memory_equal(&a->placement->shape, shape, sizeof(*shape));
	if (ocs_placement_verify(r->s.fabric, o, a->placement, &err))
		fail_msg("%s", err.text);
	xpus_take(r, o, a->placement, true);
	for (i = 0; i < a->nmoves; i++) {
		const struct ocs_placement *was = r->jobs[a->moves[i].job].placement;

		assert_memory_equal(&a->moves[i].placement->shape, &was->shape, sizeof(was->shape));
		assert_int_equal(a->moves[i].placement->nnodes, was->nnodes);
		if (ocs_placement_verify(r->s.fabric, o, a->moves[i].placement, &err))
			fail_msg("%s", err.text);
		xpus_take(r, o, a->moves[i].placement, true);
	}
	assert_true(cost == a->cost);
	ocs_occupancy_destroy(o);
}

static struct ocs_advice *advice_ask(struct rig *r, const struct ocs_shape *shape, int most_moves,
				     long work, struct ocs_error *err)
{
	struct ocs_advice_request request = {
		.place = ocs_advice_place,
		.arg = r->s.placer,
		.fabric = r->s.fabric,
		.base = r->s.occupancy,
		.shape = shape,
		.jobs = r->jobs,
		.njobs = r->njobs,
		.most_moves = most_moves,
		.work = work,
	};

	return ocs_advise(&request, err);
}

static struct ocs_advice *advice_get(struct rig *r, const char *shape, struct ocs_error *err)
{
	struct ocs_shape s = shape_of(shape);

	return advice_ask(r, &s, 0, 0, err);
}

/* Leaves only cube CUBE free and puts a job there. */
static void job_in(struct rig *r, int cube, const char *shape, double cost)
{
	struct ocs_occupancy *o = as_is(r);
	struct ocs_shape s = shape_of(shape);
	int i;

	for (i = 0; i < r->s.section->nnodes; i++) {
		if (r->s.fabric->nodes[i].cube != cube)
			ocs_occupancy_node_set(o, r->s.fabric, i, false);
	}
	assert_true(job_add(r, o, &s, cost));
	ocs_occupancy_destroy(o);
}

/* Two half-used cubes: one of the jobs goes to the other, the cheaper one. */
static void test_halves(void **unused)
{
	struct ocs_error err = { 0 };
	struct ocs_advice *a;
	struct rig r;

	(void)unused;
	rig_open(&r, "torus cubes:2x1x1 cube:4x4x4 tile:1x1x1");
	job_in(&r, 0, "4x4x2", 32);
	a = advice_get(&r, "4x4x4", &err);
	assert_non_null(a);
	assert_int_equal(a->nmoves, 0); /* fits as it is */
	ocs_advice_destroy(a);
	job_in(&r, 1, "4x8", 31);
	a = advice_get(&r, "4x4x4", &err);
	assert_non_null(a);
	assert_int_equal(a->nmoves, 1);
	assert_int_equal(a->moves[0].job, 1);
	assert_true(a->complete);
	assert_int_equal(a->moves[0].placement->cubes[0], 0);
	assert_int_equal(a->placement->cubes[0], 1);
	ocs_advice_destroy(a);
	/* no moving makes more room */
	assert_null(advice_get(&r, "4x4x8", &err));
	assert_int_equal(err.code, OCS_NOT_NOW);
	assert_non_null(strstr(err.text, "needs 128 nodes and 64 are free"));
	assert_null(advice_get(&r, "6x6x6", &err));
	assert_int_equal(err.code, OCS_NEVER);
	rig_close(&r);
}

/* Nodes that are down stay down when their job goes. */
static void test_down(void **unused)
{
	struct ocs_error err = { 0 };
	struct ocs_advice *a;
	struct rig r;
	int at[OCS_AXES] = { 3, 3, 3 };

	(void)unused;
	rig_open(&r, "torus cubes:3x1x1 cube:4x4x4 tile:1x1x1");
	job_in(&r, 0, "4x4x2", 1);
	job_in(&r, 1, "4x4x2", 2);
	job_in(&r, 2, "4x4x2", 3);
	ocs_occupancy_node_set(r.s.occupancy, r.s.fabric, ocs_section_node_at(r.s.section, 0, at),
			       false);
	ocs_occupancy_node_set(r.s.occupancy, r.s.fabric,
			       ocs_section_node_at(r.s.section, 0, (int[]){ 0, 0, 0 }), false);
	a = advice_get(&r, "4x4x4", &err);
	assert_non_null(a);
	assert_int_equal(a->nmoves, 1);
	assert_int_equal(a->moves[0].job, 1); /* 0 is cheaper but its cube is not whole */
	advice_follow(&r, a, &a->placement->shape);
	ocs_advice_destroy(a);
	rig_close(&r);
}

/* Fills the machine, lets some go, asks. */
static void random_jobs(struct rig *r, const char *const *shapes, int nshapes, int most)
{
	struct ocs_occupancy *o;
	int i, tries;

	jobs_clear(r);
	for (tries = 0; tries < 60 && r->njobs < JOBS; tries++) {
		struct ocs_shape s = shape_of(shapes[random_next((uint32_t)nshapes)]);

		o = as_is(r);
		job_add(r, o, &s, 1 + random_next(9));
		ocs_occupancy_destroy(o);
	}
	for (i = r->njobs - 1; i >= 0; i--) {
		if (r->njobs <= most && random_next(10) < 6)
			continue;
		ocs_placement_destroy((struct ocs_placement *)(uintptr_t)r->jobs[i].placement);
		r->jobs[i] = r->jobs[--r->njobs];
	}
	while (r->njobs > most)
		ocs_placement_destroy(
			(struct ocs_placement *)(uintptr_t)r->jobs[--r->njobs].placement);
}

static void test_brute(void **unused)
{
	static const char *const small[] = { "2", "2x2", "4", "2x2x2", "4x2", "6" };
	static const char *const middle[] = {
		"4x4x2", "4x4", "8x2", "4x2x2", "4x4x4", "8x4", "12"
	};
	static const struct {
		const char *fabric;
		const char *const *shapes;
		int n;
		const char *ask[3];
	} runs[] = {
		{ "torus cubes:4x1x1 cube:2x2x2 tile:1x1x1",
		  small,
		  6,
		  { "2x2x2", "4x2x2", "4x2" } },
		{ "torus cubes:3x1x1 cube:4x4x4 tile:1x1x1",
		  middle,
		  7,
		  { "4x4x4", "8x4x2", "4x4x2" } },
		{ "torus cubes:3x1x1 cube:4x4x4 tile:2x2x1",
		  middle,
		  7,
		  { "4x4x4", "8x4x4", "4x8" } },
		{ "static:4x4x4 tile:1x1x1", small, 6, { "4x4x2", "4x4", "2x2x2" } },
	};
	int moves[4] = { 0 }, none = 0, n;
	size_t i;

	(void)unused;
	for (i = 0; i < sizeof(runs) / sizeof(runs[0]); i++) {
		struct rig r;

		rig_open(&r, runs[i].fabric);
		for (n = 0; n < 400; n++) {
			struct ocs_shape shape = shape_of(runs[i].ask[n % 3]);
			struct ocs_error err = { 0 };
			struct ocs_advice *a;
			double cost = 0;
			int best;

			ocs_occupancy_reset(r.s.occupancy);
			if (n % 4 == 3) /* a node that is down */
				ocs_occupancy_node_set(
					r.s.occupancy, r.s.fabric,
					(int)random_next((uint32_t)r.s.section->nnodes), false);
			random_jobs(&r, runs[i].shapes, runs[i].n, 7);
			best = best_brute(&r, &shape, 3, &cost);
			a = advice_ask(&r, &shape, 0, 1000000, &err);
			if (best < 0) {
				assert_true(!a || a->nmoves > 3);
				none++;
			} else {
				if (!a)
					fail_msg("%s: none, but %d jobs do: %s", runs[i].fabric,
						 best, err.text);
				assert_int_equal(a->nmoves, best);
				assert_true(a->cost == cost);
				assert_true(a->complete);
				moves[best]++;
			}
			if (a)
				advice_follow(&r, a, &shape);
			ocs_advice_destroy(a);
			a = advice_ask(&r, &shape, 1, 1000000, &err);
			assert_true(!a == (best < 0 || best > 1));
			ocs_advice_destroy(a);
		}
		rig_close(&r);
	}
	/* the test means something */
	printf("# moves: none needed %d, 1: %d, 2: %d, 3: %d; none helps %d\n", moves[0], moves[1],
	       moves[2], moves[3], none);
	assert_true(moves[0] > 20 && moves[1] > 20 && moves[2] + moves[3] > 5 && none > 20);
}

/* A small budget still gives advice that can be followed, or none. */
static void test_budget(void **unused)
{
	static const char *const shapes[] = { "4x4x2", "4x4", "8x2", "4x2x2", "8x4", "12" };
	int found = 0, cut = 0, n;
	struct rig r;

	(void)unused;
	rig_open(&r, "torus cubes:4x2x1 cube:4x4x4 tile:1x1x1");
	for (n = 0; n < 60; n++) {
		struct ocs_shape shape = shape_of(n % 2 ? "8x8x4" : "8x4x4");
		struct ocs_error err = { 0 };
		struct ocs_advice *a;

		random_jobs(&r, shapes, 6, 20);
		a = advice_ask(&r, &shape, 0, 100, &err);
		if (!a) {
			assert_int_equal(err.code, OCS_NOT_NOW);
			continue;
		}
		assert_true(a->work <= 100 + JOBS + 1);
		advice_follow(&r, a, &shape);
		found++;
		cut += !a->complete;
		ocs_advice_destroy(a);
	}
	printf("# found %d, cut short %d\n", found, cut);
	assert_true(found > 20 && cut > 2);
	rig_close(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_halves),
		cmocka_unit_test(test_down),
		cmocka_unit_test(test_brute),
		cmocka_unit_test(test_budget),
	};

	return cmocka_run_group_tests_name("advice", tests, NULL, NULL);
}
