/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* What each switch does next, and what its answers mean. */

#include "src/ocsd/jobs/lookahead.h"
#include "src/ocsd/store/audit.h"
#include "src/ocsd/jobs/degraded.h"
#include "src/ocsd/store/clock.h"
#include "src/ocsd/switches/readback.h"
#include "src/ocsd/jobs/lifecycle.h"
#include "src/ocsd/switches/scheduler.h"
#include "src/ocsd/ports/optical_power.h"
#include "src/ocsd/jobs/circuits.h"
#include "src/ocsd/jobs/connect.h"
#include "src/ocsd/jobs/replan.h"
#include "src/ocsd/jobs/topology.h"
#include "src/ocsd/ports/selftest.h"
#include "src/ocsd/switches/status.h"
#include "src/ocsd/store/store.h"
#include "src/ocsd/switches/worker.h"

#include "src/util/net.h"
#include "src/util/text.h"

#include <stdlib.h>
#include <string.h>

#define MILLION INT64_C(1000000)

/* ---- batches ---- */

static bool to_add(const struct ocsd_circuit *circuit)
{
	return circuit->state == OCSD_CONNECTING && ocsd_job_connects(circuit->job);
}

/* Takes CIRCUIT, which may be NULL, into the batch of SW, unless nothing is to be done for it. */
static void circuit_gather(struct ocsd *d, struct ocsd_switch *sw, struct ocsd_circuit *circuit)
{
	struct ocsd_batch *batch = &sw->batch;
	const struct ocsd_job *only = batch->nremoving ? batch->removing[0]->job :
				      batch->nadding   ? batch->adding[0]->job :
							 NULL;
	struct ocsd_circuit *next;

	if (!circuit || circuit->postponed || (circuit->state != OCSD_DELETING && !to_add(circuit)))
		return;
	if (batch->split && only && circuit->job != only)
		return;
	batch->quick &= circuit->rail && ocsd_job_running(circuit->job);
	if (circuit->state != OCSD_DELETING) {
		batch->adding[batch->nadding++] = circuit;
		return;
	}
	batch->removing[batch->nremoving++] = circuit;
	next = ocsd_circuit_successor(d, circuit);
	if (!next)
		return;
	next->state = OCSD_CONNECTING;
	ocsd_store_circuit(d, next);
	batch->adding[batch->nadding++] = next;
}

static void batch_gather(struct ocsd *d, struct ocsd_switch *sw)
{
	size_t size = (size_t)sw->description->size + 1;

	sw->batch.adding = ocs_calloc(size, sizeof(*sw->batch.adding));
	sw->batch.removing = ocs_calloc(2 * size, sizeof(*sw->batch.removing));
	sw->batch.nadding = sw->batch.nremoving = 0;
	sw->batch.quick = true;
	for (int in = 1; in < (int)size; in++) {
		struct ocsd_circuit *leaving = sw->leaving[in], *circuit = sw->by_in[in];

		/* A duplex circuit has two ingresses: take it once. */
		if (leaving && leaving->patches[0].in == in)
			circuit_gather(d, sw, leaving);
		if (circuit && circuit->patches[0].in == in)
			circuit_gather(d, sw, circuit);
	}
}

static void forget_batch(struct ocsd_switch *sw)
{
	free(sw->batch.adding);
	free(sw->batch.removing);
	sw->batch.adding = sw->batch.removing = NULL;
	sw->batch.nadding = sw->batch.nremoving = 0;
}

void ocsd_switch_pick(struct ocsd *d, struct ocsd_switch *sw, int64_t now_ns)
{
	bool up = sw->status.state == OCSD_UP;
	bool due = sw->poll.next_ns <= now_ns || (sw->poll.heard_ns && sw->poll.heard_ns <= now_ns);

	if (sw->busy != OCSD_IDLE)
		return;
	/* A batch ends with a full read-back, but only a poll looks at the light and tries again
	 * what was put off: it comes in its time, also between batches. */
	if (sw->poll.read_wanted || (!(up && sw->dirty) && !sw->status.answers && due)) {
		sw->poll.read_wanted = false;
		sw->poll.heard_ns = 0;
		sw->poll.read_ns = now_ns;
		sw->busy = OCSD_READ;
		sw->prepared = true;
		return;
	}
	if (up && !sw->dirty && ocsd_selftest_next(d, sw, &sw->selftest.current)) {
		sw->busy = OCSD_TEST;
		sw->prepared = true;
		return;
	}
	if (!(up && sw->dirty) && !sw->status.answers)
		return;
	batch_gather(d, sw);
	if (sw->batch.nadding || sw->batch.nremoving) {
		for (size_t i = 0; i < sw->batch.nadding; i++)
			sw->batch.adding[i]->sent = true;
		if (!sw->batch.quick)
			ocsd_audit_batch(d, sw, "batch", NULL);
		sw->poll.heard_ns = 0;
		sw->poll.read_ns = now_ns;
		sw->busy = OCSD_APPLY;
		sw->prepared = true;
		return;
	}
	forget_batch(sw);
	sw->dirty = sw->batch.split = false;
	if (!up)
		ocsd_switch_up(d, sw);
}

static size_t patches_of(struct ocsd_circuit *const *circuits, size_t count,
			 struct ocs_patch **patches)
{
	size_t n = 0;

	*patches = ocs_calloc(2 * count + 1, sizeof(**patches));
	for (size_t i = 0; i < count; i++)
		for (int p = 0; p < circuits[i]->npatches; p++)
			(*patches)[n++] = circuits[i]->patches[p];
	return n;
}

void ocsd_switch_hand_over(struct ocsd *d, struct ocsd_switch *sw)
{
	struct ocs_patch *remove, *add;
	size_t nremove, nadd;

	sw->prepared = false;
	sw->batch.sent_ns = ocs_now_ns();
	if (sw->busy == OCSD_READ) {
		ocsd_worker_read(d, sw);
		return;
	}
	if (sw->busy == OCSD_TEST) {
		ocsd_worker_test(d, sw, &sw->selftest.current);
		return;
	}
	nremove = patches_of(sw->batch.removing, sw->batch.nremoving, &remove);
	nadd = patches_of(sw->batch.adding, sw->batch.nadding, &add);
	ocs_log(OCS_LOG_DEBUG, "switch %s: %zu patches to cut, %zu to make", sw->description->name,
		nremove, nadd);
	ocsd_worker_apply(d, sw, remove, nremove, add, nadd, sw->batch.quick);
}

/* ---- results ---- */

static bool several_jobs(const struct ocsd_switch *sw)
{
	const struct ocsd_job *first = sw->batch.nadding   ? sw->batch.adding[0]->job :
				       sw->batch.nremoving ? sw->batch.removing[0]->job :
							     NULL;

	for (size_t i = 0; i < sw->batch.nadding; i++)
		if (sw->batch.adding[i]->job != first)
			return true;
	for (size_t i = 0; i < sw->batch.nremoving; i++)
		if (sw->batch.removing[i]->job != first)
			return true;
	return false;
}

static void batch_done(struct ocsd *d, struct ocsd_switch *sw)
{
	const struct ocsd_job *last = NULL;

	ocsd_circuits_gone(d, sw, sw->batch.removing, sw->batch.nremoving);
	for (size_t i = 0; i < sw->batch.nadding; i++) {
		struct ocsd_circuit *circuit = sw->batch.adding[i];

		/* One whose job ended meanwhile stays DELETING. */
		if (circuit->state != OCSD_CONNECTING)
			continue;
		ocsd_circuit_set(d, circuit, OCSD_CONNECTED);
		/* All of a job's circuits of this switch came in this batch, and
		 * they are next to each other more often than not.  Those of a job that
		 * is not yet answered are written when it is: until then nobody counts on
		 * them, and an ocsd that ends here finds them on the switch. */
		if (circuit->job != last && !circuit->rail &&
		    circuit->job->state != OCSD_JOB_APPLYING &&
		    !ocsd_circuit_outcome_unknown(d, circuit))
			ocsd_store_circuits(d, circuit->job, sw, OCSD_CONNECTING, OCSD_CONNECTED);
		last = circuit->job;
	}
}

static bool in_place(const struct ocsd_circuit *circuit, const struct ocs_table *table)
{
	for (int p = 0; p < circuit->npatches; p++)
		if (table->out[circuit->patches[p].in] == circuit->patches[p].out)
			return true;
	return false;
}

/* The switch refused patches, each by itself; TABLE shows which.  Their jobs fail
 * or wait; the others have what they asked for. */
static void batch_partly(struct ocsd *d, struct ocsd_switch *sw, const struct ocs_table *table,
			 const struct ocs_error *err)
{
	for (size_t i = 0; i < sw->batch.nremoving; i++) {
		struct ocsd_circuit *circuit = sw->batch.removing[i];

		if (circuit->state != OCSD_DELETING)
			continue;
		circuit->postponed =
			in_place(circuit, table) || ocsd_circuit_outcome_unknown(d, circuit);
		if (circuit->postponed && circuit->rail)
			ocsd_topology_failed(d, circuit, err->text);
		if (circuit->postponed)
			continue;
		ocsd_circuit_set(d, circuit, OCSD_GONE);
		ocsd_store_circuit(d, circuit);
	}
	for (size_t i = 0; i < sw->batch.nadding; i++) {
		struct ocsd_circuit *circuit = sw->batch.adding[i];
		bool seen = ocsd_circuit_seen(circuit, table);

		if (circuit->state != OCSD_CONNECTING)
			continue;
		if (!seen && ocsd_topology_live(circuit->job)) {
			/* The controller asks again, and what is there in part does not stay. */
			ocsd_circuit_set(d, circuit,
					 in_place(circuit, table) ? OCSD_DELETING : OCSD_GONE);
			ocsd_topology_failed(d, circuit, err->text);
			continue;
		}
		ocsd_circuit_set(d, circuit, seen ? OCSD_CONNECTED : OCSD_CIRCUIT_FAILED);
		if (!seen || !ocsd_circuit_outcome_unknown(d, circuit))
			ocsd_store_circuit(d, circuit);
		if (!seen)
			ocsd_circuit_failed(d, circuit, err->text);
	}
}

/* A poll gives what was postponed another chance. */
static void try_again(struct ocsd *d, struct ocsd_switch *sw)
{
	ocsd_degraded_retry(d, sw);
	for (int in = 1; in <= sw->description->size; in++)
		for (int i = 0; i < 2; i++) {
			struct ocsd_circuit *circuit = i ? sw->by_in[in] : sw->leaving[in];

			if (!circuit || !circuit->postponed)
				continue;
			circuit->postponed = false;
			sw->dirty = true;
		}
}

/* Moves on the jobs of the batch that has just ended. */
static void follow_up(struct ocsd *d, struct ocsd_circuit **circuits, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct ocsd_job *job = circuits[i]->job;

		if (i && circuits[i - 1]->job == job)
			continue;
		d->replies.due |= ocsd_job_running(job);
		ocsd_degraded_check(d, job);
		if (job->state == OCSD_JOB_CUTTING)
			ocsd_job_progress(d, job);
	}
}

static void batch_refused(struct ocsd *d, struct ocsd_switch *sw, int result,
			  const struct ocs_error *err)
{
	char *name = ocs_asprintf("switch %s", sw->description->name);

	ocs_log(OCS_LOG_WARNING, "%s did not do a batch: %s", name,
		ocs_error_cause(err->text, name));
	free(name);
	sw->dirty = true;
	if (result == OCS_SWITCH_REJECTED && sw->batch.rejected++ == 0) {
		sw->poll.read_wanted = true; /* shows what is in the way */
	} else if (result == OCS_SWITCH_REFUSED && !sw->batch.split && several_jobs(sw)) {
		sw->batch.split = true; /* one job's trouble is not another's */
	} else {
		ocsd_switch_failed(d, sw, err->text);
	}
}

static size_t count_patches(const struct ocs_table *table)
{
	size_t count = 0;

	for (int in = 1; in <= table->size; in++)
		if (table->out[in])
			count++;
	return count;
}

static void table_read(struct ocsd *d, struct ocsd_switch *sw, const struct ocs_table *table,
		       bool poll)
{
	int64_t now_ns = ocs_now_ns(), poll_ns = d->config->timeouts.poll_ms * MILLION;

	sw->poll.last_read = ocsd_wall_clock();
	sw->npatches = count_patches(table);
	/* Read-outs of light lag behind a change by a second: a poll waits for that after a batch,
	 * but not for ever. */
	if (poll) {
		sw->poll.due_ns = 0;
		sw->poll.next_ns = now_ns + poll_ns;
	} else if (sw->poll.next_ns < now_ns + OCSD_LAG_NS) {
		sw->poll.due_ns = sw->poll.due_ns ? sw->poll.due_ns : sw->poll.next_ns;
		if (now_ns <
		    sw->poll.due_ns + (poll_ns < 2 * OCSD_LAG_NS ? 2 * poll_ns : 4 * OCSD_LAG_NS))
			sw->poll.next_ns = now_ns + OCSD_LAG_NS;
	}
	if (sw->poll.late_until_ns == INT64_MAX)
		sw->poll.late_until_ns = now_ns + d->config->timeouts.switch_ms * MILLION;
	if (now_ns < sw->poll.late_until_ns && sw->poll.late_until_ns < sw->poll.next_ns)
		sw->poll.next_ns = sw->poll.late_until_ns;
	if (sw->status.state != OCSD_UP)
		sw->status.answers = true;
	ocsd_examine(d, sw, table);
}

static int64_t count_batch(const struct ocsd_switch *sw)
{
	int64_t count = 0;

	for (size_t i = 0; i < sw->batch.nadding; i++)
		count += sw->batch.adding[i]->npatches;
	for (size_t i = 0; i < sw->batch.nremoving; i++)
		count += sw->batch.removing[i]->npatches;
	return count;
}

/* A self-test is over; whatever it found, the table was read again. */
static void test_done(struct ocsd *d, struct ocsd_switch *sw, int result,
		      const struct ocs_table *table, const struct ocs_error *err)
{
	sw->busy = OCSD_IDLE;
	ocsd_selftest_done(d, sw, result, err->text);
	sw->selftest.over = true;
	if (table->out)
		table_read(d, sw, table, false);
	else
		ocsd_switch_failed(d, sw, err->text);
	sw->selftest.over = false;
}

void ocsd_switch_result(struct ocsd *d, struct ocsd_switch *sw, int result,
			const struct ocs_table *table, const struct ocs_error *err)
{
	struct ocsd_circuit **adding = sw->batch.adding, **removing = sw->batch.removing;
	size_t nadding = sw->batch.nadding, nremoving = sw->batch.nremoving;
	enum ocsd_work work = sw->busy;

	if (work == OCSD_TEST) {
		test_done(d, sw, result, table, err);
		return;
	}
	sw->busy = OCSD_IDLE;
	if (work == OCSD_APPLY) {
		if (!sw->batch.quick || result != OCS_SWITCH_OK)
			ocsd_audit_batch(d, sw, "outcome",
					 result == OCS_SWITCH_OK ? "ok" : err->text);
		ocsd_count_batch(&d->counters,
				 result == OCS_SWITCH_OK      ? OCSD_DONE :
				 result == OCS_SWITCH_UNKNOWN ? OCSD_LOST :
								OCSD_REFUSED,
				 count_batch(sw), ocs_now_ns() - sw->batch.sent_ns);
	}
	if (result == OCS_SWITCH_OK) {
		if (work == OCSD_APPLY) {
			sw->batch.rejected = 0;
			batch_done(d, sw);
		}
		if (work == OCSD_READ)
			try_again(d, sw);
		table_read(d, sw, table, work == OCSD_READ);
	} else if (result == OCS_SWITCH_DENIED) {
		sw->batch.rejected = 0;
		batch_partly(d, sw, table, err);
		table_read(d, sw, table, false);
	} else if (work == OCSD_APPLY) {
		batch_refused(d, sw, result, err);
	} else {
		ocsd_drift(d, sw, 0, 0, "no answer");
		ocsd_switch_failed(d, sw, err->text);
	}
	if (work == OCSD_READ && !sw->poll.read_wanted)
		sw->reconciling = false;
	sw->batch.adding = sw->batch.removing = NULL;
	sw->batch.nadding = sw->batch.nremoving = 0;
	follow_up(d, adding, nadding);
	follow_up(d, removing, nremoving);
	free(adding);
	free(removing);
}
