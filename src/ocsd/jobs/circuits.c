/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Circuits of jobs: the state that each has to reach, and what is known of it.
 * switches/scheduler.c turns that into batches. */

#include "src/ocsd/jobs/circuits.h"
#include "src/ocsd/jobs/transition.h"
#include "src/ocsd/store/store.h"

#include "src/util/net.h"

bool ocsd_circuit_moves(struct ocsd *d, const struct ocsd_circuit *circuit)
{
	return d->switches[circuit->sw].description->moves;
}

bool ocsd_circuits_any(const struct ocsd_job *job, const struct ocsd_switch *sw,
		       enum ocsd_circuit_state state)
{
	for (size_t i = 0; i < job->circuits.count; i++)
		if (job->circuits.list[i]->sw == sw->index && job->circuits.list[i]->state == state)
			return true;
	return false;
}

/* A batch whose time is up can no longer be executed late: its circuits are known, whatever happens to
 * the next one. */
static void outcomes_forget(struct ocsd_switch *sw)
{
	if (ocs_now_ns() < sw->poll.late_until_ns)
		return;
	for (int in = 1; in <= sw->description->size; in++) {
		if (sw->by_in[in])
			sw->by_in[in]->outcome_unknown = false;
		if (sw->leaving[in])
			sw->leaving[in]->outcome_unknown = false;
	}
}

/* The outcome of a second attempt is unknown, too: the first one may still be executed after it. */
void ocsd_circuits_lost(struct ocsd_switch *sw)
{
	outcomes_forget(sw);
	for (size_t i = 0; i < sw->batch.nadding; i++)
		sw->batch.adding[i]->outcome_unknown = true;
	/* A circuit of a menu that is cut late, once it stands again, harms no other job, and is missed. */
	for (size_t i = 0; i < sw->batch.nremoving; i++)
		sw->batch.removing[i]->outcome_unknown |=
			!sw->batch.removing[i]->rail ||
			!ocsd_job_running(sw->batch.removing[i]->job);
	if (sw->batch.nadding || sw->batch.nremoving)
		sw->poll.late_until_ns = INT64_MAX;
}

bool ocsd_circuit_outcome_unknown(struct ocsd *d, const struct ocsd_circuit *circuit)
{
	return circuit->outcome_unknown &&
	       ocs_now_ns() < d->switches[circuit->sw].poll.late_until_ns &&
	       !ocsd_circuit_moves(d, circuit);
}

void ocsd_circuits_gone(struct ocsd *d, const struct ocsd_switch *sw,
			struct ocsd_circuit *const *circuits, size_t count)
{
	size_t first = 0;

	for (size_t i = 0; i < count; i++) {
		struct ocsd_job *job = circuits[i]->job;
		bool rest;

		circuits[i]->postponed = ocsd_circuit_outcome_unknown(d, circuits[i]);
		if (circuits[i]->state == OCSD_DELETING && !circuits[i]->postponed)
			ocsd_circuit_set(d, circuits[i], OCSD_GONE);
		if (circuits[i]->rail) {
			first = i + 1;
			continue;
		}
		if (i + 1 < count && circuits[i + 1]->job == job)
			continue;
		/* the rows of a whole switch at once, as a rule */
		rest = ocsd_circuits_any(job, sw, OCSD_DELETING);
		if (!rest)
			ocsd_store_circuits(d, job, sw, OCSD_DELETING, OCSD_GONE);
		for (; first <= i; first++)
			if (rest && circuits[first]->state == OCSD_GONE)
				ocsd_store_circuit(d, circuits[first]);
	}
}

static bool has_outcome_unknown(struct ocsd *d, const struct ocsd_job *job)
{
	for (size_t i = 0; i < job->circuits.count; i++)
		if (ocsd_circuit_outcome_unknown(d, job->circuits.list[i]))
			return true;
	return false;
}

/* A circuit of unknown outcome stays CONNECTING there, so that it is one after a restart, too. */
void ocsd_circuits_write(struct ocsd *d, struct ocsd_job *job)
{
	if (!job->circuits.unwritten)
		return;
	job->circuits.unwritten = 0;
	if (!has_outcome_unknown(d, job))
		ocsd_store_circuits_seen(d, job);
}

bool ocsd_circuits_write_due(struct ocsd *d)
{
	bool more = false;

	for (struct ocsd_job *job = d->jobs; job; job = job->next) {
		if (job->circuits.unwritten > 1) {
			ocsd_circuits_write(d, job);
		} else if (job->circuits.unwritten) {
			job->circuits.unwritten++;
			more = true;
		}
	}
	return more;
}

/* GONE has left its 1x2 switch: what was sent there meanwhile is entered. */
static void position_inherit(struct ocsd *d, const struct ocsd_circuit *gone)
{
	struct ocsd_switch *sw = &d->switches[gone->sw];

	for (struct ocsd_job *job = d->jobs; job && ocsd_circuit_moves(d, gone); job = job->next)
		for (size_t i = 0; i < job->circuits.count; i++) {
			struct ocsd_circuit *other = job->circuits.list[i];

			if (other == gone || other->sw != gone->sw || other->a != gone->a ||
			    (other->state != OCSD_CONNECTING && other->state != OCSD_DELETING))
				continue;
			for (int p = 0; p < other->npatches; p++)
				sw->by_in[other->patches[p].in] = other;
		}
}

/* CIRCUIT, which may be one of a transition, is in STATE now. */
static void transition_note(struct ocsd *d, const struct ocsd_circuit *circuit,
			    enum ocsd_circuit_state state)
{
	struct ocsd_transition *t = circuit->transition;
	size_t *before = t ? ocsd_transition_counter(t, circuit->state) : NULL;
	size_t *after = t ? ocsd_transition_counter(t, state) : NULL;

	if (before == after)
		return;
	if (before)
		--*before;
	if (after)
		++*after;
	t->changed = d->loop.changes_due = true;
}

void ocsd_circuit_set(struct ocsd *d, struct ocsd_circuit *circuit, enum ocsd_circuit_state state)
{
	struct ocsd_switch *sw = &d->switches[circuit->sw];

	ocsd_circuits_write(d, circuit->job);
	if (circuit->state == OCSD_GONE)
		circuit->job->circuits.ngone--;
	if (state == OCSD_GONE)
		circuit->job->circuits.ngone++;
	transition_note(d, circuit, state);
	circuit->state = state;
	if (state == OCSD_CONNECTED)
		circuit->made_ns = ocs_now_ns();
	if (state == OCSD_CONNECTING || state == OCSD_DELETING)
		sw->dirty = true;
	if (state != OCSD_GONE)
		return;
	for (int p = 0; p < circuit->npatches; p++) {
		int in = circuit->patches[p].in;

		if (sw->by_in[in] == circuit)
			sw->by_in[in] = NULL;
		if (sw->leaving[in] == circuit)
			sw->leaving[in] = NULL;
	}
	position_inherit(d, circuit);
}

void ocsd_circuit_leave(struct ocsd *d, struct ocsd_circuit *circuit)
{
	struct ocsd_switch *sw = &d->switches[circuit->sw];

	if (circuit->state == OCSD_GONE)
		return;
	for (int p = 0; p < circuit->npatches; p++) {
		int in = circuit->patches[p].in;

		if (sw->by_in[in] == circuit)
			sw->by_in[in] = NULL;
		sw->leaving[in] = circuit;
	}
	circuit->postponed = false;
	ocsd_circuit_set(d, circuit, circuit->sent ? OCSD_DELETING : OCSD_GONE);
}

struct ocsd_circuit *ocsd_circuit_successor(struct ocsd *d, const struct ocsd_circuit *circuit)
{
	struct ocsd_job *next = d->switches[circuit->sw].ports[circuit->a].next;

	if (!ocsd_circuit_moves(d, circuit) || !next || next->state != OCSD_JOB_APPLYING)
		return NULL;
	for (size_t i = 0; i < next->circuits.count; i++) {
		struct ocsd_circuit *other = next->circuits.list[i];

		if (other->sw == circuit->sw && other->a == circuit->a &&
		    (other->state == OCSD_PLANNED || other->state == OCSD_CONNECTING))
			return other;
	}
	return NULL;
}

/* The ways of a 1x2 switch belong to it, not to a job. */
bool ocsd_circuit_owned(struct ocsd *d, const struct ocsd_circuit *circuit)
{
	const struct ocsd_switch *sw = &d->switches[circuit->sw];

	return sw->ports[circuit->a].owner == circuit->job &&
	       (sw->ports[circuit->b].owner == circuit->job || ocsd_circuit_moves(d, circuit));
}

/* The last look before a circuit may reach a switch: its ports are its job's,
 * and no other circuit of ours sits on them. */
int ocsd_circuit_check(struct ocsd *d, const struct ocsd_circuit *circuit, struct ocs_error *err)
{
	const struct ocsd_switch *sw = &d->switches[circuit->sw];

	if (!ocsd_circuit_owned(d, circuit))
		return ocs_error_set(
			err, OCS_ERROR, "port %d or %d of switch %s does not belong to job %u",
			circuit->a, circuit->b, sw->description->name, circuit->job->job);
	for (int p = 0; p < circuit->npatches; p++) {
		const struct ocsd_circuit *other = sw->by_in[circuit->patches[p].in];

		if (other && other != circuit)
			return ocs_error_set(
				err, OCS_ERROR,
				"ingress %d of switch %s still carries a circuit of job %u",
				circuit->patches[p].in, sw->description->name, other->job->job);
	}
	return 0;
}

int ocsd_circuit_switch_check(const struct ocsd *d, const struct ocsd_circuit *circuit,
			      struct ocs_error *err)
{
	const struct ocsd_switch *sw = &d->switches[circuit->sw];

	/* A job that runs already has had its circuits: it waits for the
	 * switch rather than being killed for it. */
	if (sw->status.state != OCSD_SWITCH_FAILED || circuit->job->adopt_running)
		return 0;
	return ocs_error_set(err, OCS_ERROR, "switch %s has failed: %s", sw->description->name,
			     sw->status.reason ? sw->status.reason : "it does not answer");
}

void ocsd_circuit_connect(struct ocsd *d, struct ocsd_circuit *circuit)
{
	struct ocsd_switch *sw = &d->switches[circuit->sw];

	for (int p = 0; p < circuit->npatches; p++)
		sw->by_in[circuit->patches[p].in] = circuit;
	/* A job that runs has them, though no batch of ours was sent. */
	circuit->sent |= circuit->job->adopt_running;
	ocsd_circuit_set(d, circuit, OCSD_CONNECTING);
}
