/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Transitions of a job with circuits on one switch; what the database is told is a list of words,
 * and the test says what the switch has done. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "src/ocsd/jobs/allocation.h"
#include "src/ocsd/jobs/circuits.h"
#include "src/ocsd/state/menus.h"
#include "src/ocsd/jobs/transition.h"
#include "src/ocsd/store/store.h"
#include "src/util/text.h"

#define SIZE 2048
#define JOB 7

/* ---- stand-ins ---- */

static struct ocs_text journal;
static int done_calls, done_failed, refused_calls;
static char refused_why[256];

static void note(const char *word, const struct ocsd_circuit *circuit)
{
	ocs_text_add(&journal, "%s%s %d-%d %s", journal.length ? ", " : "", word, circuit->a,
		     circuit->b, ocsd_circuit_state_name(circuit->state));
}

void ocsd_store_circuit_add(struct ocsd *d, const struct ocsd_circuit *circuit)
{
	(void)d;
	note("add", circuit);
}

void ocsd_store_circuit(struct ocsd *d, const struct ocsd_circuit *circuit)
{
	(void)d;
	note("set", circuit);
}

void ocsd_store_circuits(struct ocsd *d, const struct ocsd_job *job, const struct ocsd_switch *sw,
			 enum ocsd_circuit_state from, enum ocsd_circuit_state to)
{
	(void)d;
	(void)job;
	(void)sw;
	ocs_text_add(&journal, "%sall %s %s", journal.length ? ", " : "",
		     ocsd_circuit_state_name(from), ocsd_circuit_state_name(to));
}

void ocsd_store_circuits_seen(struct ocsd *d, const struct ocsd_job *job)
{
	(void)d;
	(void)job;
}

void ocsd_store_circuits_delete(struct ocsd *d, const struct ocsd_job *job)
{
	(void)d;
	(void)job;
	ocs_text_add(&journal, "%sdelete", journal.length ? ", " : "");
}

uint64_t ocsd_store_last_epoch(struct ocsd *d, uint32_t job)
{
	(void)d;
	(void)job;
	return 0;
}

void ocsd_menu_free(struct ocsd_menu *menu)
{
	assert_null(menu);
}

size_t ocsd_menu_unread(const struct ocsd *d, const struct ocsd_job *job, bool all)
{
	(void)d;
	(void)job;
	(void)all;
	return 0;
}

bool ocsd_menu_unread_on(const struct ocsd_job *job, int sw)
{
	(void)job;
	(void)sw;
	return false;
}

static void on_done(struct ocsd *d, struct ocsd_job *job, size_t nfailed)
{
	(void)d;
	assert_int_equal(job->job, JOB);
	done_calls++;
	done_failed = (int)nfailed;
}

static void on_refused(struct ocsd *d, struct ocsd_job *job, const struct ocsd_switch *sw,
		       const char *why)
{
	(void)d;
	(void)job;
	(void)sw;
	refused_calls++;
	snprintf(refused_why, sizeof(refused_why), "%s", why);
}

static const struct ocsd_transition_kind kind = { on_done, on_refused, false, false };
static const struct ocsd_transition_kind fast = { on_done, on_refused, true, false };

/* ---- one switch, one job that owns all of its ports ---- */

struct world {
	struct ocs_switch description;
	struct ocs_fabric fabric;
	struct ocsd_switch sw;
	struct ocsd d;
	struct ocsd_job job, other;
};

static int setup(void **state)
{
	struct world *w = ocs_calloc(1, sizeof(*w));

	w->description.name = "ocs";
	w->description.size = SIZE;
	w->fabric.switches = &w->description;
	w->fabric.nswitches = 1;
	w->sw.description = &w->description;
	w->sw.status.state = OCSD_UP;
	w->sw.ports = ocs_calloc(2 * SIZE + 1, sizeof(*w->sw.ports));
	w->sw.by_in = ocs_calloc(SIZE + 1, sizeof(struct ocsd_circuit *));
	w->sw.leaving = ocs_calloc(SIZE + 1, sizeof(struct ocsd_circuit *));
	for (int port = 1; port <= SIZE; port++)
		w->sw.ports[port].owner = &w->job;
	w->d.fabric = &w->fabric;
	w->d.switches = &w->sw;
	w->d.jobs = &w->job;
	w->job.job = JOB;
	w->job.epoch = 70;
	w->job.state = OCSD_JOB_REALISED;
	w->other.job = 8;
	done_calls = refused_calls = 0;
	done_failed = -1;
	*state = w;
	return 0;
}

static int teardown(void **state)
{
	struct world *w = *state;

	ocsd_transitions_end(&w->job);
	for (size_t i = 0; i < w->job.circuits.count; i++)
		free(w->job.circuits.list[i]);
	free(w->job.circuits.list);
	free(w->sw.ports);
	free(w->sw.by_in);
	free(w->sw.leaving);
	free(w);
	ocs_text_free(&journal);
	journal = (struct ocs_text){ 0 };
	return 0;
}

static struct ocs_port port_at(int port)
{
	return (struct ocs_port){ .sw = 0, .port = port };
}

/* A circuit of the job that its switch has. */
static struct ocsd_circuit *connected(struct world *w, int a, int b)
{
	struct ocs_error err;
	struct ocsd_circuit *circuit;

	assert_int_equal(ocsd_job_circuit(&w->d, &w->job, 0, a, b, false, OCSD_CONNECTED, &err), 0);
	circuit = w->job.circuits.list[w->job.circuits.count - 1];
	for (int p = 0; p < circuit->npatches; p++)
		w->sw.by_in[circuit->patches[p].in] = circuit;
	return circuit;
}

/* Begins: CUT (or NULL) goes, A-B (A 0: none) comes.  The result of ocsd_transition_begin. */
static int change(struct world *w, struct ocsd_circuit *cut, int a, int b,
		  const struct ocsd_transition_kind *how)
{
	struct ocsd_transition *t = ocsd_transition_create(&w->job, how);
	struct ocs_error err;

	if (cut)
		ocsd_transition_cut(t, cut);
	if (a)
		assert_non_null(
			ocsd_transition_make(&w->d, t, port_at(a), port_at(b), false, &err));
	if (ocsd_transition_begin(&w->d, t, &err)) {
		assert_int_equal(err.code, OCS_NOT_NOW);
		return -1;
	}
	return 0;
}

static struct ocsd_circuit *last(struct world *w)
{
	return w->job.circuits.list[w->job.circuits.count - 1];
}

/* What the database was told since the last call. */
static void assert_journal(const char *expected)
{
	assert_string_equal(journal.data ? journal.data : "", expected);
	ocs_text_free(&journal);
	journal = (struct ocs_text){ 0 };
}

/* ---- the tests ---- */

/* Durable first; what comes is sent when what goes was seen gone; the owner hears once. */
static void in_order(void **state)
{
	struct world *w = *state;
	struct ocsd_circuit *old = connected(w, 1, 2), *new;

	assert_int_equal(change(w, old, 1, 3, &kind), 0);
	new = last(w);
	assert_journal("set 1-2 PENDING_DELETION, add 1-3 PLANNED");
	ocsd_transitions_run(&w->d);
	assert_int_equal(new->state, OCSD_PLANNED);
	assert_ptr_equal(w->sw.by_in[1], old);
	assert_journal("");

	ocsd_circuit_set(&w->d, old, OCSD_GONE);
	ocsd_transitions_run(&w->d);
	assert_int_equal(new->state, OCSD_CONNECTING);
	assert_ptr_equal(w->sw.by_in[1], new);
	assert_journal("all PLANNED PENDING_CONNECTION");
	assert_int_equal(done_calls, 0);

	ocsd_circuit_set(&w->d, new, OCSD_CONNECTED);
	assert_int_equal(done_calls, 0);
	ocsd_transitions_run(&w->d);
	ocsd_transitions_run(&w->d);
	assert_int_equal(done_calls, 1);
	assert_int_equal(done_failed, 0);
	assert_null(w->job.circuits.transitions);
	assert_null(new->transition);
}

/* What is there stays out of a transition: nothing is written, and its owner hears at once. */
static void nothing_to_do(void **state)
{
	struct world *w = *state;

	connected(w, 1, 2);
	assert_int_equal(change(w, NULL, 2, 1, &kind), 0);
	assert_int_equal(w->job.circuits.count, 1);
	assert_journal("");
	assert_true(w->d.loop.changes_due);
	ocsd_transitions_run(&w->d);
	assert_int_equal(done_calls, 1);
	ocsd_transitions_run(&w->d);
	assert_int_equal(done_calls, 1);
}

/* Two callers: on the same circuit or port the second is refused, and leaves nothing behind. */
static void one_at_a_time(void **state)
{
	struct world *w = *state;
	struct ocsd_circuit *old = connected(w, 1, 2), *far = connected(w, 10, 11);
	size_t circuits;

	assert_int_equal(change(w, old, 1, 3, &kind), 0);
	assert_journal("set 1-2 PENDING_DELETION, add 1-3 PLANNED");
	circuits = w->job.circuits.count;
	assert_int_equal(change(w, old, 0, 0, &kind), -1);    /* the circuit that goes */
	assert_int_equal(change(w, NULL, 3, 4, &kind), -1);   /* a port of the one that comes */
	assert_int_equal(change(w, NULL, 2, 5, &kind), -1);   /* of the one that goes */
	assert_int_equal(change(w, NULL, 10, 12, &kind), -1); /* one that stays as it is */
	assert_int_equal(w->job.circuits.count, circuits);
	assert_int_equal(ocsd_job_circuits(&w->job), circuits);
	assert_int_equal(far->state, OCSD_CONNECTED);
	assert_null(far->transition);
	assert_journal("");

	/* Other ports of the job are free for another one, which is not held up. */
	assert_int_equal(change(w, far, 10, 12, &kind), 0);
	ocsd_circuit_set(&w->d, far, OCSD_GONE);
	ocsd_transitions_run(&w->d);
	ocsd_circuit_set(&w->d, last(w), OCSD_CONNECTED);
	ocsd_transitions_run(&w->d);
	assert_int_equal(done_calls, 1);
	assert_int_equal(old->state, OCSD_DELETING);
	assert_non_null(old->transition);
	assert_journal(
		"set 10-11 PENDING_DELETION, add 10-12 PLANNED, set 10-12 PENDING_CONNECTION");
}

/* One that is dropped takes only its own circuits along. */
static void dropped(void **state)
{
	struct world *w = *state;
	struct ocsd_transition *t = ocsd_transition_create(&w->job, &kind);
	struct ocs_error err;

	assert_non_null(ocsd_transition_make(&w->d, t, port_at(1), port_at(2), false, &err));
	assert_int_equal(change(w, NULL, 3, 4, &kind), 0);
	ocsd_transition_drop(t);
	assert_int_equal(w->job.circuits.count, 1);
	assert_int_equal(ocsd_job_circuits(&w->job), 1);
	assert_int_equal(last(w)->a, 3);
	ocsd_transitions_run(&w->d);
	ocsd_circuit_set(&w->d, last(w), OCSD_CONNECTED);
	ocsd_transitions_run(&w->d);
	assert_int_equal(done_calls, 1);
}

/* A circuit that the switch does not make does not keep the others. */
static void not_made(void **state)
{
	struct world *w = *state;

	assert_int_equal(change(w, NULL, 1, 3, &kind), 0);
	ocsd_transitions_run(&w->d);
	ocsd_circuit_set(&w->d, last(w), OCSD_CIRCUIT_FAILED);
	ocsd_transitions_run(&w->d);
	assert_int_equal(done_calls, 1);
	assert_int_equal(done_failed, 1);
	/* Asked for again it is tried again. */
	assert_int_equal(change(w, NULL, 1, 3, &kind), 0);
	assert_int_equal(last(w)->state, OCSD_PLANNED);
	ocsd_transitions_run(&w->d);
	ocsd_circuit_set(&w->d, last(w), OCSD_CONNECTED);
	ocsd_transitions_run(&w->d);
	assert_int_equal(done_calls, 2);
	assert_int_equal(done_failed, 0);
}

/* A circuit that was made and is lost again before the others are there is waited for. */
static void lost_meanwhile(void **state)
{
	struct world *w = *state;
	struct ocsd_transition *t = ocsd_transition_create(&w->job, &kind);
	struct ocs_error err;
	struct ocsd_circuit *one =
		ocsd_transition_make(&w->d, t, port_at(1), port_at(2), false, &err);
	struct ocsd_circuit *two =
		ocsd_transition_make(&w->d, t, port_at(3), port_at(4), false, &err);

	assert_int_equal(ocsd_transition_begin(&w->d, t, &err), 0);
	ocsd_transitions_run(&w->d);
	ocsd_circuit_set(&w->d, one, OCSD_CONNECTED);
	ocsd_circuit_set(&w->d, one, OCSD_CONNECTING);
	ocsd_circuit_set(&w->d, two, OCSD_CONNECTED);
	ocsd_transitions_run(&w->d);
	assert_int_equal(done_calls, 0);
	ocsd_circuit_set(&w->d, one, OCSD_CONNECTED);
	ocsd_transitions_run(&w->d);
	assert_int_equal(done_calls, 1);
}

/* The last look before a circuit is sent: another job's port. */
static void refused(void **state)
{
	struct world *w = *state;
	struct ocsd_transition *t = ocsd_transition_create(&w->job, &kind);
	struct ocs_error err;

	ocsd_transition_make(&w->d, t, port_at(1), port_at(2), false, &err);
	ocsd_transition_make(&w->d, t, port_at(3), port_at(4), false, &err);
	w->sw.ports[4].owner = &w->other;
	assert_int_equal(ocsd_transition_begin(&w->d, t, &err), 0);
	ocsd_transitions_run(&w->d);
	assert_int_equal(refused_calls, 1);
	assert_int_equal(done_calls, 0);
	assert_string_equal(refused_why, "port 3 or 4 of switch ocs does not belong to job 7");
	/* Nothing of it was sent, and nothing will be. */
	assert_int_equal(ocsd_job_circuits(&w->job), 0);
	assert_null(w->sw.by_in[1]);
	assert_journal("add 1-2 PLANNED, add 3-4 PLANNED, set 1-2 GONE, set 3-4 GONE");
}

/* A failed switch is waited for, or not, as its owner wants. */
static void failed_switch(void **state)
{
	struct world *w = *state;

	w->sw.status.state = OCSD_SWITCH_FAILED;
	assert_int_equal(change(w, NULL, 1, 2, &kind), 0);
	ocsd_transitions_run(&w->d);
	assert_int_equal(refused_calls, 0);
	assert_int_equal(last(w)->state, OCSD_CONNECTING);
	assert_int_equal(change(w, NULL, 3, 4, &fast), 0);
	ocsd_transitions_run(&w->d);
	assert_int_equal(refused_calls, 1);
	assert_string_equal(refused_why, "switch ocs has failed: it does not answer");
}

/* The job ends while its circuits change: nobody is told, and what may be on the switch is cut. */
static void job_ends(void **state)
{
	struct world *w = *state;
	struct ocsd_circuit *old = connected(w, 1, 2), *there = connected(w, 5, 6), *new;

	assert_int_equal(change(w, old, 1, 3, &kind), 0);
	new = last(w);
	ocsd_transition_abandon(&w->d, &w->job);
	assert_int_equal(old->state, OCSD_DELETING);
	assert_int_equal(there->state, OCSD_DELETING);
	assert_int_equal(new->state, OCSD_GONE);
	assert_null(w->job.circuits.transitions);
	assert_null(old->transition);
	ocsd_circuit_set(&w->d, old, OCSD_GONE);
	ocsd_transitions_run(&w->d);
	assert_int_equal(done_calls + refused_calls, 0);
	/* What is on its way out is not begun with again, and a job that is over begins nothing. */
	assert_int_equal(change(w, there, 0, 0, &kind), -1);
	w->job.state = OCSD_JOB_LEAVING;
	assert_int_equal(change(w, NULL, 10, 11, &kind), -1);
	w->job.state = OCSD_JOB_FAILED;
	assert_int_equal(change(w, NULL, 10, 11, &kind), -1);
	assert_int_equal(w->job.circuits.count, 3);
}

/* After a restart the states of the circuits are enough to go on with. */
static void resumed(void **state)
{
	struct world *w = *state;
	struct ocsd_circuit *old = connected(w, 1, 2), *kept = connected(w, 5, 6), *new;
	struct ocs_error err;

	ocsd_circuit_set(&w->d, old, OCSD_DELETING);
	assert_int_equal(ocsd_job_circuit(&w->d, &w->job, 0, 1, 3, false, OCSD_PLANNED, &err), 0);
	new = last(w);
	ocsd_transition_resume(&w->d, &w->job, &kind);
	ocsd_transitions_run(&w->d);
	assert_int_equal(new->state, OCSD_PLANNED);
	assert_null(kept->transition);
	ocsd_circuit_set(&w->d, old, OCSD_GONE);
	ocsd_transitions_run(&w->d);
	assert_int_equal(new->state, OCSD_CONNECTING);
	ocsd_circuit_set(&w->d, new, OCSD_CONNECTED);
	ocsd_transitions_run(&w->d);
	assert_int_equal(done_calls, 1);
}

/* A port that is another job's still is waited for; the others need not wait. */
static void in_line(void **state)
{
	struct world *w = *state;
	struct ocsd_transition *t = ocsd_transition_create(&w->job, &kind);
	struct ocs_error err;
	struct ocsd_circuit *one =
		ocsd_transition_make(&w->d, t, port_at(1), port_at(2), false, &err);
	struct ocsd_circuit *two =
		ocsd_transition_make(&w->d, t, port_at(3), port_at(4), false, &err);

	w->sw.ports[3].owner = &w->other;
	w->sw.ports[3].next = &w->job;
	w->job.ports.nwaiting = 1;
	assert_int_equal(ocsd_transition_begin(&w->d, t, &err), 0);
	ocsd_transitions_run(&w->d);
	assert_int_equal(one->state, OCSD_CONNECTING);
	assert_int_equal(two->state, OCSD_PLANNED);
	assert_journal("add 1-2 PLANNED, add 3-4 PLANNED, set 1-2 PENDING_CONNECTION");
	ocsd_circuit_set(&w->d, one, OCSD_CONNECTED);
	ocsd_transitions_run(&w->d);
	assert_int_equal(done_calls, 0);
	w->sw.ports[3].owner = &w->job;
	w->job.ports.nwaiting = 0;
	ocsd_transitions_wake(&w->d, &w->job);
	ocsd_transitions_run(&w->d);
	assert_int_equal(two->state, OCSD_CONNECTING);
	ocsd_circuit_set(&w->d, two, OCSD_CONNECTED);
	ocsd_transitions_run(&w->d);
	assert_int_equal(done_calls, 1);
}

/* Hundreds at once in one job, and then each of them again: all of a step are due in one pass. */
static void hundreds(void **state)
{
	struct world *w = *state;

	for (int i = 0; i < 500; i++)
		assert_int_equal(change(w, NULL, 4 * i + 1, 4 * i + 2, &kind), 0);
	ocsd_transitions_run(&w->d);
	for (int round = 0; round < 4; round++) {
		for (size_t i = 0; i < w->job.circuits.count; i++)
			if (w->job.circuits.list[i]->state == OCSD_CONNECTING)
				ocsd_circuit_set(&w->d, w->job.circuits.list[i], OCSD_CONNECTED);
		ocsd_transitions_run(&w->d);
		assert_int_equal(done_calls, 500 * (round + 1));
		/* 1-2 becomes 1-3 and back: a circuit that was there is used again. */
		for (int i = 0; i < 500; i++) {
			struct ocsd_circuit *old = w->sw.by_in[4 * i + 1];

			assert_int_equal(change(w, old, 4 * i + 1, 4 * i + 3 - round % 2, &kind),
					 0);
		}
		assert_int_equal(w->job.circuits.count, 1000);
		ocsd_transitions_run(&w->d);
		for (size_t i = 0; i < w->job.circuits.count; i++)
			if (w->job.circuits.list[i]->state == OCSD_DELETING)
				ocsd_circuit_set(&w->d, w->job.circuits.list[i], OCSD_GONE);
		ocsd_transitions_run(&w->d);
	}
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(in_order), CASE(nothing_to_do),  CASE(one_at_a_time), CASE(dropped),
		CASE(not_made), CASE(lost_meanwhile), CASE(refused),	   CASE(failed_switch),
		CASE(job_ends), CASE(resumed),	      CASE(in_line),	   CASE(hundreds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
