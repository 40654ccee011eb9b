/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Which jobs to preempt, against trying all sets. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "src/advice/preemption.h"

#define JOBS 12
#define PLACES 40

/* Cubes of cells, each held by jobs (bits): WANTED wholly free ones are asked for. */
struct world {
	unsigned held[PLACES];
	int places, wanted;
	struct ocs_preemption_job jobs[JOBS];
	int njobs;
	long asked;
};

static uint64_t state;

static unsigned random_pick(unsigned below)
{
	state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (unsigned)(state >> 33) % below;
}

static bool fits_without(const struct world *w, unsigned gone)
{
	int count = 0;

	for (int i = 0; i < w->places; i++)
		count += !(w->held[i] & ~gone);
	return count >= w->wanted;
}

static bool set_fits(void *arg, const int *set, int count)
{
	struct world *w = arg;
	unsigned gone = 0;

	for (int i = 0; i < count; i++)
		gone |= 1u << set[i];
	w->asked++;
	return fits_without(w, gone);
}

static void set_weigh(const struct world *w, unsigned set, int *count, int *rank, double *cost)
{
	*count = 0;
	*rank = -1000;
	*cost = 0;
	for (int i = 0; i < w->njobs; i++) {
		if (!(set >> i & 1))
			continue;
		++*count;
		*cost += w->jobs[i].cost;
		if (w->jobs[i].rank > *rank)
			*rank = w->jobs[i].rank;
	}
}

static int set_find(struct world *w, long work, unsigned *mask, bool *complete)
{
	struct ocs_preemption_request request = {
		.jobs = w->jobs, .njobs = w->njobs, .fits = set_fits, .arg = w, .work = work
	};
	int set[JOBS], count;

	w->asked = 0;
	count = ocs_preemption_find(&request, set, complete);
	*mask = 0;
	for (int i = 0; i < count; i++) {
		*mask |= 1u << set[i];
		assert_true(i == 0 || set[i] > set[i - 1]);
	}
	return count;
}

static void world_fill(struct world *w)
{
	memset(w, 0, sizeof(*w));
	w->places = 4 + (int)random_pick(PLACES - 4);
	w->njobs = 1 + (int)random_pick(JOBS);
	w->wanted = 1 + (int)random_pick(6);
	for (int i = 0; i < w->njobs; i++)
		w->jobs[i] = (struct ocs_preemption_job){ (int)random_pick(3), random_pick(20),
							  1 + random_pick(5) };
	for (int i = 0; i < w->places; i++) {
		for (unsigned n = random_pick(4); n; n--)
			w->held[i] |= 1u << random_pick((unsigned)w->njobs);
		if (!random_pick(12))
			w->held[i] |= 1u << 31; /* by one that cannot be preempted */
	}
}

static void test_against_all_sets(void **unused)
{
	struct world w;

	(void)unused;
	state = 1;
	for (int round = 0; round < 3000; round++) {
		int count, rank, best_count = -1, best_rank = 0, got;
		double cost, best_cost = 0;
		bool complete;
		unsigned mask;

		world_fill(&w);
		for (unsigned set = 0; set < 1u << w.njobs; set++) {
			if (!fits_without(&w, set))
				continue;
			set_weigh(&w, set, &count, &rank, &cost);
			if (best_count < 0 || count < best_count ||
			    (count == best_count &&
			     (rank < best_rank || (rank == best_rank && cost < best_cost)))) {
				best_count = count;
				best_rank = rank;
				best_cost = cost;
			}
		}
		got = set_find(&w, 100000, &mask, &complete);
		assert_true(complete);
		assert_int_equal(got, best_count);
		if (got <= 0)
			continue;
		set_weigh(&w, mask, &count, &rank, &cost);
		assert_int_equal(rank, best_rank);
		assert_true(cost == best_cost);
	}
}

static void test_little_work_still_leaves_out_what_it_can(void **unused)
{
	struct world w;

	(void)unused;
	state = 2;
	for (int round = 0; round < 2000; round++) {
		bool complete;
		unsigned mask;
		int got;

		world_fill(&w);
		got = set_find(&w, 1, &mask, &complete);
		if (got <= 0)
			continue;
		assert_true(fits_without(&w, mask));
		for (int i = 0; i < w.njobs; i++) {
			if (mask >> i & 1)
				assert_false(fits_without(&w, mask & ~(1u << i)));
		}
		assert_true(w.asked <= 3 * w.njobs + 3);
	}
}

static void test_jobs_on_too_few_nodes_are_not_tried(void **unused)
{
	struct world w = { .places = 2,
			   .wanted = 1,
			   .njobs = 4,
			   .held = { 1u << 3, 7 },
			   .jobs = { { 0, 1, 1 }, { 0, 1, 1 }, { 0, 1, 1 }, { 0, 99, 8 } } };
	struct ocs_preemption_request request = {
		.jobs = w.jobs, .njobs = 4, .need = 8, .fits = set_fits, .arg = &w
	};
	int set[4];

	(void)unused;
	assert_int_equal(ocs_preemption_find(&request, set, NULL), 1);
	assert_int_equal(set[0], 3);
}

static void test_none_where_none_helps(void **unused)
{
	struct world w = { .places = 1,
			   .wanted = 1,
			   .njobs = 1,
			   .held = { 1u << 31 | 1 },
			   .jobs = { { 0, 1, 1 } } };
	bool complete;
	unsigned mask;

	(void)unused;
	assert_int_equal(set_find(&w, 0, &mask, &complete), -1);
	w.njobs = 0;
	assert_int_equal(set_find(&w, 0, &mask, &complete), -1);
	w.held[0] = 0;
	assert_int_equal(set_find(&w, 0, &mask, &complete), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_against_all_sets),
		cmocka_unit_test(test_little_work_still_leaves_out_what_it_can),
		cmocka_unit_test(test_jobs_on_too_few_nodes_are_not_tried),
		cmocka_unit_test(test_none_where_none_helps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
