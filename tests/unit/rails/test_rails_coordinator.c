/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* The coordinator of a job on rails, one rule and one fault at a time. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "src/rails/coordinator.h"
#include "src/util/error.h"

#define EPOCH 9
#define PP(column) (10 + (column)) /* groups: column of the pipeline, */
#define DP(stage) (20 + (stage))   /* ring of a stage, */
#define WORLD 30		   /* all */

static struct ocs_coordinator *coordinator;
static struct ocs_coordinator_output seen[64];
static int nseen;
static int64_t now;

static void outputs_read(void)
{
	nseen = 0;
	while (nseen < 64 && ocs_coordinator_output(coordinator, &seen[nseen]))
		nseen++;
}

/* The NTH output of KIND since the last call that made any, or NULL. */
static const struct ocs_coordinator_output *output_find(enum ocs_coordinator_kind kind, int nth)
{
	for (int i = 0; i < nseen; i++)
		if (seen[i].kind == kind && !nth--)
			return &seen[i];
	return NULL;
}

static void group_add(uint64_t id, int count, const int *ranks)
{
	assert_int_equal(ocs_coordinator_group(coordinator, id, ranks, count, 1, NULL), 0);
}

/* pp:2,dp:2, a rank per node: 0 and 1 are stage 0. */
static void job_start(struct ocs_coordinator_options options)
{
	static const int nodes[] = { 0, 1, 2, 3 };

	options.layout = (struct ocs_rails_layout){
		.ndim = 2, .extent = { 2, 2 }, .asymmetric = 0, .ports = 2
	};
	options.rails = options.rails ? options.rails : 1;
	options.ranks = 4;
	options.nodes = nodes;
	options.epoch = EPOCH;
	options.timeout = 100;
	options.tries = 3;
	options.drain = 1000;
	now = 0;
	coordinator = ocs_coordinator_create(&options, now, NULL);
	assert_non_null(coordinator);
	group_add(PP(0), 2, (int[]){ 0, 2 });
	group_add(PP(1), 2, (int[]){ 3, 1 });
	group_add(DP(0), 2, (int[]){ 0, 1 });
	group_add(DP(1), 2, (int[]){ 2, 3 });
	group_add(WORLD, 4, (int[]){ 0, 1, 2, 3 });
	outputs_read();
}

static void request_expect(int rail, const char *topology)
{
	const struct ocs_coordinator_output *output = output_find(OCS_COORDINATOR_REQUEST, 0);

	assert_non_null(output);
	assert_int_equal(output->rail, rail);
	assert_string_equal(output->topology, topology);
	assert_int_equal(output->epoch, EPOCH);
}

/* ocsd does what it was asked last. */
static void request_answer(bool good)
{
	const struct ocs_coordinator_output *output = output_find(OCS_COORDINATOR_REQUEST, 0);

	assert_non_null(output);
	ocs_coordinator_answer(coordinator, output->rail, EPOCH, output->seq, good, now);
	outputs_read();
}

static void rank_arrive(uint64_t group, uint64_t idx, int rank)
{
	assert_int_equal(ocs_coordinator_arrive(coordinator, group, idx, rank, now, NULL), 0);
	outputs_read();
}

static void rank_end(uint64_t group, uint64_t idx, int rank)
{
	assert_int_equal(ocs_coordinator_end(coordinator, group, idx, rank, now, NULL), 0);
	outputs_read();
}

static void all_arrive(uint64_t group, uint64_t idx)
{
	int count;
	const int *ranks = ocs_coordinator_ranks(coordinator, group, &count);

	for (int i = 0; i < count; i++)
		rank_arrive(group, idx, ranks[i]);
}

static void all_end(uint64_t group, uint64_t idx)
{
	int count;
	const int *ranks = ocs_coordinator_ranks(coordinator, group, &count);

	for (int i = 0; i < count; i++)
		rank_end(group, idx, ranks[i]);
}

static void grant_expect(uint64_t group, uint64_t idx, enum ocs_coordinator_error error)
{
	const struct ocs_coordinator_output *output = output_find(OCS_COORDINATOR_GRANT, 0);

	assert_non_null(output);
	assert_int_equal(output->group, group);
	assert_int_equal(output->idx, idx);
	assert_int_equal(output->error, error);
}

static void time_pass(int64_t time)
{
	now += time;
	ocs_coordinator_tick(coordinator, now);
	outputs_read();
}

static int job_end(void **state)
{
	(void)state;
	ocs_coordinator_destroy(coordinator);
	coordinator = NULL;
	return 0;
}

static void waits_for_all(void **state)
{
	(void)state;
	job_start((struct ocs_coordinator_options){ 0 });
	request_expect(0, "11");
	request_answer(true);
	rank_arrive(DP(0), 0, 1);
	assert_int_equal(nseen, 0);
	rank_arrive(DP(0), 0, 1); /* once more is no second rank */
	assert_int_equal(nseen, 0);
	now = 5;
	rank_arrive(DP(0), 0, 0);
	grant_expect(DP(0), 0, OCS_COORDINATOR_GRANTED);
	assert_int_equal(seen[0].rank, -1);
	assert_int_equal(seen[0].rails, 1);
	rank_arrive(DP(0), 0, 1); /* the grant was lost */
	grant_expect(DP(0), 0, OCS_COORDINATOR_GRANTED);
	assert_int_equal(seen[0].rank, 1);
	assert_int_equal(ocs_coordinator_last(coordinator, 0), 1);
	assert_int_equal(ocs_coordinator_last(coordinator, 1), 0);
	assert_int_equal(ocs_coordinator_counts(coordinator)->late, 0);
	all_end(DP(0), 0);
	rank_arrive(DP(0), 1, 0);
	now += 1000000;
	rank_arrive(DP(0), 1, 1);
	assert_int_equal(ocs_coordinator_counts(coordinator)->late, 1);
	assert_int_equal(ocs_coordinator_counts(coordinator)->changes, 0);
}

static void cuts_after_the_drain(void **state)
{
	(void)state;
	job_start((struct ocs_coordinator_options){ 0 });
	request_answer(true);
	all_arrive(DP(1), 0);
	grant_expect(DP(1), 0, OCS_COORDINATOR_GRANTED);
	all_arrive(PP(0), 0);
	assert_int_equal(nseen, 0);
	/* younger ones that want what is to go wait behind it */
	all_arrive(DP(1), 1);
	assert_int_equal(nseen, 0);
	rank_end(DP(1), 0, 3);
	assert_int_equal(nseen, 0);
	rank_end(DP(1), 0, 3);
	assert_int_equal(nseen, 0);
	rank_end(DP(1), 0, 2);
	request_expect(0, "00");
	now += 7;
	request_answer(true);
	grant_expect(PP(0), 0, OCS_COORDINATOR_GRANTED);
	assert_int_equal(ocs_coordinator_counts(coordinator)->waited_max, 7);
	assert_int_equal(ocs_coordinator_counts(coordinator)->late, 0);
	all_end(PP(0), 0);
	request_expect(0, "11");
	request_answer(true);
	grant_expect(DP(1), 1, OCS_COORDINATOR_GRANTED);
	assert_int_equal(ocs_coordinator_counts(coordinator)->changes, 2);
}

static void drops_stale_answers(void **state)
{
	uint64_t first;

	(void)state;
	job_start((struct ocs_coordinator_options){ 0 });
	first = seen[0].seq;
	all_arrive(DP(0), 0);
	assert_int_equal(nseen, 0);
	time_pass(100);
	request_expect(0, "11");
	assert_int_equal(seen[0].seq, first); /* ocsd may be at it */
	ocs_coordinator_answer(coordinator, 0, EPOCH, first, false, now);
	ocs_coordinator_answer(coordinator, 0, EPOCH, first, true, now);
	time_pass(100);
	request_expect(0, "11");
	assert_int_equal(seen[0].seq, first + 1);
	ocs_coordinator_answer(coordinator, 0, EPOCH - 1, first + 1, true, now);
	ocs_coordinator_answer(coordinator, 1, EPOCH, first + 1, true, now);
	ocs_coordinator_answer(coordinator, -1, EPOCH, first + 1, true, now);
	assert_false(ocs_coordinator_output(coordinator, &seen[0]));
	ocs_coordinator_answer(coordinator, 0, EPOCH, first + 1, true, now);
	outputs_read();
	grant_expect(DP(0), 0, OCS_COORDINATOR_GRANTED);
	assert_int_equal(ocs_coordinator_counts(coordinator)->stale, 4);
	assert_int_equal(ocs_coordinator_counts(coordinator)->retries, 2);
}

static void falls_back_to_the_ring(void **state)
{
	(void)state;
	job_start((struct ocs_coordinator_options){ 0 });
	request_answer(true);
	all_arrive(PP(0), 0);
	for (int i = 0; i < 2; i++) {
		request_expect(0, "00");
		request_answer(false); /* a refusal is no answer: it waits, and asks again */
		assert_int_equal(nseen, 0);
		time_pass(100);
	}
	time_pass(100);
	request_expect(0, "ring");
	request_answer(true);
	assert_non_null(output_find(OCS_COORDINATOR_RING, 0));
	grant_expect(PP(0), 0, OCS_COORDINATOR_GRANTED);
	all_arrive(DP(0), 0);
	grant_expect(DP(0), 0, OCS_COORDINATOR_GRANTED);
	assert_int_equal(ocs_coordinator_deadline(coordinator), INT64_MAX);
}

static void another_rail(void **state)
{
	(void)state;
	job_start((struct ocs_coordinator_options){ .rails = 2 });
	ocs_coordinator_answer(coordinator, 1, EPOCH, seen[1].seq, true, now);
	all_arrive(DP(0), 0); /* its rail 0 never answers */
	for (int i = 0; i < 6; i++)
		time_pass(100);
	assert_non_null(output_find(OCS_COORDINATOR_RAIL_FAILED, 0));
	assert_int_equal(output_find(OCS_COORDINATOR_RAIL_FAILED, 0)->rail, 0);
	assert_int_equal(output_find(OCS_COORDINATOR_GRANT, 0)->rails, 2);
	all_end(DP(0), 0);
	all_arrive(PP(0), 0);
	request_expect(1, "00");
	for (int i = 0; i < 6; i++)
		time_pass(100);
	grant_expect(PP(0), 0, OCS_COORDINATOR_NO_RAIL);
}

static void lost_ranks_and_circuits(void **state)
{
	(void)state;
	job_start((struct ocs_coordinator_options){ 0 });
	request_answer(true);
	all_arrive(DP(0), 0);
	rank_arrive(PP(0), 0, 2);
	ocs_coordinator_topo_lost(coordinator, 0, now);
	outputs_read();
	request_expect(0, "11");
	all_arrive(DP(1), 0);
	assert_int_equal(nseen, 0);
	ocs_coordinator_answer(coordinator, 0, EPOCH, 2, true, now);
	outputs_read();
	grant_expect(DP(1), 0, OCS_COORDINATOR_GRANTED);
	ocs_coordinator_rank_lost(coordinator, 0, now);
	outputs_read();
	assert_int_equal(output_find(OCS_COORDINATOR_LOST, 0)->rank, 0);
	grant_expect(PP(0), 0, OCS_COORDINATOR_RANK_LOST);
	rank_arrive(PP(0), 1, 2);
	grant_expect(PP(0), 1, OCS_COORDINATOR_RANK_LOST);
	/* what was open ends without it, and its circuits may go */
	rank_end(DP(0), 0, 1);
	all_end(DP(1), 0);
	all_arrive(PP(1), 0);
	request_expect(0, "00");
	ocs_coordinator_revoked(coordinator, now);
	outputs_read();
	grant_expect(PP(1), 0, OCS_COORDINATOR_REVOKED);
	assert_int_equal(output_find(OCS_COORDINATOR_OVER, 0)->error, OCS_COORDINATOR_REVOKED);
	rank_arrive(DP(1), 1, 2);
	grant_expect(DP(1), 1, OCS_COORDINATOR_REVOKED);
}

static void outside_the_menu(void **state)
{
	(void)state;
	job_start((struct ocs_coordinator_options){ 0 });
	request_answer(true);
	rank_arrive(WORLD, 0, 3);
	grant_expect(WORLD, 0, OCS_COORDINATOR_GRANTED);
	assert_int_equal(seen[0].rails, 0);
	assert_int_equal(ocs_coordinator_counts(coordinator)->outside, 1);
	job_end(NULL);

	/* over shared addresses it waits for all, and keeps what stands */
	job_start((struct ocs_coordinator_options){ .shared = true });
	request_answer(true);
	rank_arrive(WORLD, 0, 3);
	assert_int_equal(nseen, 0);
	for (int rank = 0; rank < 3; rank++)
		rank_arrive(WORLD, 0, rank);
	grant_expect(WORLD, 0, OCS_COORDINATOR_GRANTED);
	assert_int_equal(seen[0].rails, 0);
	all_arrive(PP(0), 0);
	assert_int_equal(nseen, 0);
	all_end(WORLD, 0);
	request_expect(0, "00");
}

/* Two operations along the pipeline, then three in the rings, again and again. */
static void step_run(uint64_t step, bool *waited)
{
	*waited = false;
	for (int k = 0; k < 2; k++) {
		for (int column = 0; column < 2; column++) {
			all_arrive(PP(column), step * 2 + k);
			while (output_find(OCS_COORDINATOR_REQUEST, 0)) {
				*waited = true;
				request_answer(true);
			}
			all_end(PP(column), step * 2 + k);
		}
	}
	while (output_find(OCS_COORDINATOR_REQUEST, 0))
		request_answer(true);
	for (int k = 0; k < 3; k++) {
		for (int stage = 0; stage < 2; stage++) {
			all_arrive(DP(stage), step * 3 + k);
			while (output_find(OCS_COORDINATOR_REQUEST, 0)) {
				*waited = true;
				request_answer(true);
			}
			all_end(DP(stage), step * 3 + k);
		}
	}
	while (output_find(OCS_COORDINATOR_REQUEST, 0))
		request_answer(true);
}

static void learns_a_step(void **state)
{
	uint64_t step = 0;
	bool waited;

	(void)state;
	job_start((struct ocs_coordinator_options){ .provisioned = true });
	request_answer(true);
	for (; step < 8; step++)
		step_run(step, &waited);
	step_run(step++, &waited);
	assert_false(waited);
	assert_int_equal(ocs_coordinator_counts(coordinator)->mispredicted, 0);
	assert_true(ocs_coordinator_counts(coordinator)->provisioned > 8);
	/* the program turns to something else: it gets it, for one change more */
	all_arrive(DP(0), step * 3);
	request_expect(0, "11");
	request_answer(true);
	grant_expect(DP(0), step * 3, OCS_COORDINATOR_GRANTED);
	assert_int_equal(ocs_coordinator_counts(coordinator)->mispredicted, 1);
}

static void wishes_hold_nothing(void **state)
{
	(void)state;
	job_start((struct ocs_coordinator_options){ .provisioned = true });
	request_answer(true);
	ocs_coordinator_wish(coordinator, PP(0), 0, now);
	ocs_coordinator_wish(coordinator, PP(0), 2, now);
	outputs_read();
	request_expect(0, "00");
	/* while that is under way, the opposite is demanded */
	all_arrive(DP(0), 0);
	assert_int_equal(nseen, 0);
	ocs_coordinator_answer(coordinator, 0, EPOCH, 2, true, now);
	outputs_read();
	request_expect(0, "11");
	request_answer(true);
	grant_expect(DP(0), 0, OCS_COORDINATOR_GRANTED);
	/* nor does one cut what is in use */
	ocs_coordinator_wish(coordinator, PP(0), 0, now);
	ocs_coordinator_wish(coordinator, PP(0), 2, now);
	outputs_read();
	assert_int_equal(nseen, 0);
	all_end(DP(0), 0);
	request_expect(0, "00");
}

static void counts_outside_phases(void **state)
{
	struct ocs_error err;

	(void)state;
	job_start((struct ocs_coordinator_options){ 0 });
	assert_int_equal(ocs_coordinator_phase(coordinator, DP(0), 0, 1, &err), 0);
	assert_int_equal(ocs_coordinator_phase(coordinator, DP(0), 4, 4, &err), 0);
	assert_int_equal(ocs_coordinator_phase(coordinator, DP(0), 4, 9, &err), -1);
	assert_int_equal(err.code, OCS_USAGE);
	request_answer(true);
	for (uint64_t idx = 0; idx < 6; idx++) {
		all_arrive(DP(0), idx);
		grant_expect(DP(0), idx, OCS_COORDINATOR_GRANTED);
		all_end(DP(0), idx);
	}
	assert_int_equal(ocs_coordinator_counts(coordinator)->outside_phases, 3);
}

static void refuses_nonsense(void **state)
{
	struct ocs_coordinator_options options = { .rails = 65 };
	struct ocs_error err;

	(void)state;
	job_start((struct ocs_coordinator_options){ 0 });
	assert_int_equal(ocs_coordinator_group(coordinator, 1, (int[]){ 0, 4 }, 2, 1, &err), -1);
	assert_non_null(strstr(err.text, "no rank 4"));
	assert_int_equal(ocs_coordinator_group(coordinator, 1, (int[]){ 0, 0 }, 2, 1, &err), -1);
	assert_int_equal(ocs_coordinator_group(coordinator, 1, (int[]){ 0 }, 0, 1, &err), -1);
	assert_int_equal(ocs_coordinator_group(coordinator, 1, (int[]){ 0, 1 }, 2, 2, &err), -1);
	assert_int_equal(ocs_coordinator_group(coordinator, DP(0), (int[]){ 1, 0 }, 2, 1, &err), 0);
	assert_int_equal(ocs_coordinator_group(coordinator, DP(0), (int[]){ 1, 2 }, 2, 1, &err),
			 -1);
	assert_int_equal(ocs_coordinator_arrive(coordinator, 1, 0, 0, now, &err), -1);
	assert_int_equal(ocs_coordinator_arrive(coordinator, DP(0), 0, 2, now, &err), -1);
	assert_int_equal(ocs_coordinator_end(coordinator, DP(0), 0, 2, now, &err), -1);
	assert_int_equal(ocs_coordinator_end(coordinator, DP(0), 0, 1, now, &err), 0);
	for (uint64_t idx = 0; idx < 4096; idx++)
		assert_int_equal(ocs_coordinator_arrive(coordinator, DP(0), idx, 0, now, &err), 0);
	assert_int_equal(ocs_coordinator_arrive(coordinator, DP(0), 4096, 0, now, &err), -1);
	options.layout = (struct ocs_rails_layout){
		.ndim = 1, .extent = { 2 }, .asymmetric = -1, .ports = 2
	};
	assert_null(ocs_coordinator_create(&options, 0, &err));
	assert_int_equal(err.code, OCS_USAGE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(waits_for_all, job_end),
		cmocka_unit_test_teardown(cuts_after_the_drain, job_end),
		cmocka_unit_test_teardown(drops_stale_answers, job_end),
		cmocka_unit_test_teardown(falls_back_to_the_ring, job_end),
		cmocka_unit_test_teardown(another_rail, job_end),
		cmocka_unit_test_teardown(lost_ranks_and_circuits, job_end),
		cmocka_unit_test_teardown(outside_the_menu, job_end),
		cmocka_unit_test_teardown(learns_a_step, job_end),
		cmocka_unit_test_teardown(wishes_hold_nothing, job_end),
		cmocka_unit_test_teardown(counts_outside_phases, job_end),
		cmocka_unit_test_teardown(refuses_nonsense, job_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
