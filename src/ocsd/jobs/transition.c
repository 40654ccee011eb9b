/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/ocsd/jobs/allocation.h"
#include "src/ocsd/jobs/circuits.h"
#include "src/ocsd/jobs/transition.h"
#include "src/ocsd/store/store.h"

#include "src/util/text.h"

#include <stdlib.h>
#include <string.h>

/* ---- filling one ---- */

struct ocsd_transition *ocsd_transition_create(struct ocsd_job *job,
					       const struct ocsd_transition_kind *kind)
{
	struct ocsd_transition *t = ocs_calloc(1, sizeof(*t));

	t->job = job;
	t->kind = kind;
	t->nbefore = job->circuits.count;
	return t;
}

static void member_add(struct ocsd_transition *t, struct ocsd_circuit *circuit, bool cut,
		       bool fresh)
{
	if ((t->count & (t->count + 1)) == 0)
		t->members = ocs_realloc(t->members, (t->count + 1) * 2 * sizeof(*t->members));
	t->members[t->count++] =
		(struct ocsd_transition_member){ .circuit = circuit, .cut = cut, .fresh = fresh };
}

void ocsd_transition_cut(struct ocsd_transition *t, struct ocsd_circuit *circuit)
{
	member_add(t, circuit, true, false);
}

void ocsd_transition_add(struct ocsd_transition *t, struct ocsd_circuit *circuit)
{
	member_add(t, circuit, false, false);
}

static bool circuit_joins(const struct ocsd_circuit *circuit, struct ocs_port a, struct ocs_port b)
{
	return circuit->sw == a.sw &&
	       ((circuit->a == a.port && circuit->b == b.port) ||
		(!circuit->directed && circuit->a == b.port && circuit->b == a.port));
}

struct ocsd_circuit *ocsd_transition_make(struct ocsd *d, struct ocsd_transition *t,
					  struct ocs_port a, struct ocs_port b, bool directed,
					  struct ocs_error *err)
{
	struct ocsd_job *job = t->job;
	struct ocsd_circuit *circuit;

	for (size_t i = 0; i < job->circuits.count; i++) {
		circuit = job->circuits.list[i];
		if (!circuit_joins(circuit, a, b))
			continue;
		if (circuit->state != OCSD_CONNECTED && circuit->state != OCSD_CONNECTING)
			member_add(t, circuit, false, i >= t->nbefore);
		return circuit;
	}
	if (ocsd_job_circuit(d, job, a.sw, a.port, b.port, directed, OCSD_GONE, err))
		return NULL;
	circuit = job->circuits.list[job->circuits.count - 1];
	member_add(t, circuit, false, true);
	return circuit;
}

static void transition_free(struct ocsd_transition *t)
{
	for (size_t i = 0; t->begun && i < t->count; i++)
		t->members[i].circuit->transition = NULL;
	if (t->slot)
		*t->slot = NULL;
	free(t->members);
	free(t);
}

static bool is_fresh(const struct ocsd_transition *t, const struct ocsd_circuit *circuit)
{
	for (size_t i = 0; i < t->count; i++)
		if (t->members[i].fresh && t->members[i].circuit == circuit)
			return true;
	return false;
}

void ocsd_transition_drop(struct ocsd_transition *t)
{
	struct ocsd_job_circuits *circuits = &t->job->circuits;
	size_t kept = t->nbefore;

	/* Another one may have added circuits since. */
	for (size_t i = t->nbefore; i < circuits->count; i++) {
		if (!is_fresh(t, circuits->list[i])) {
			circuits->list[kept++] = circuits->list[i];
			continue;
		}
		circuits->ngone--;
		free(circuits->list[i]);
	}
	circuits->count = kept;
	transition_free(t);
}

/* ---- beginning ---- */

static bool fibres_meet(const struct ocsd_circuit *one, const struct ocsd_circuit *other)
{
	for (int p = 0; p < one->npatches; p++)
		for (int q = 0; q < other->npatches; q++)
			if (one->patches[p].in == other->patches[q].in ||
			    one->patches[p].out == other->patches[q].out)
				return true;
	return false;
}

/* The circuit of the job that keeps CIRCUIT of T from being made, or NULL.  A transition of all
 * circuits has no others to look at. */
static const struct ocsd_circuit *blocker_find(const struct ocsd_transition *t,
					       const struct ocsd_circuit *circuit)
{
	const struct ocsd_job *job = t->job;

	/* A topology has a port once. */
	if (circuit->rail)
		return NULL;
	for (size_t i = 0; t->count < job->circuits.count && i < job->circuits.count; i++) {
		const struct ocsd_circuit *other = job->circuits.list[i];

		if (other->sw == circuit->sw && other->transition != t &&
		    other->state != OCSD_GONE && fibres_meet(other, circuit))
			return other;
	}
	return NULL;
}

static int refuse_busy(const struct ocsd *d, const struct ocsd_circuit *other,
		       struct ocs_error *err)
{
	return ocs_error_set(err, OCS_NOT_NOW, "the circuit of ports %d and %d of switch %s %s",
			     other->a, other->b, d->fabric->switches[other->sw].name,
			     other->transition ? "is being changed" : "is in the way");
}

/* Makes the members T's own.  -1 with ERR: one is another's, or another one is in the way. */
static int members_take(const struct ocsd *d, struct ocsd_transition *t, struct ocs_error *err)
{
	const struct ocsd_circuit *other = NULL;
	size_t taken = 0;

	for (; taken < t->count && !other; taken++) {
		struct ocsd_circuit *circuit = t->members[taken].circuit;

		if (circuit->transition || circuit->state == OCSD_DELETING)
			other = circuit;
		else
			circuit->transition = t;
	}
	for (size_t i = 0; i < t->count && !other; i++)
		if (!t->members[i].cut)
			other = blocker_find(t, t->members[i].circuit);
	if (!other)
		return 0;
	refuse_busy(d, other, err);
	for (size_t i = 0; i < taken; i++)
		if (t->members[i].circuit->transition == t)
			t->members[i].circuit->transition = NULL;
	return -1;
}

static void member_cut(struct ocsd *d, struct ocsd_circuit *circuit)
{
	if (circuit->state == OCSD_GONE)
		return;
	ocsd_circuit_set(d, circuit, circuit->sent ? OCSD_DELETING : OCSD_GONE);
	ocsd_store_circuit(d, circuit);
}

static void circuit_refresh(struct ocsd_circuit *circuit)
{
	circuit->sent = circuit->lit = circuit->outcome_unknown = circuit->postponed = false;
	circuit->dark = 0;
}

static void member_plan(struct ocsd *d, const struct ocsd_transition_member *member)
{
	struct ocsd_circuit *circuit = member->circuit;

	if (circuit->state == OCSD_PLANNED)
		return;
	if (circuit->state == OCSD_CONNECTING) {
		/* A batch with it may have been on its way when ocsd ended. */
		circuit->sent |= circuit->job->adopt_running;
		ocsd_circuit_set(d, circuit, OCSD_CONNECTING);
		return;
	}
	circuit_refresh(circuit);
	ocsd_circuit_set(d, circuit, OCSD_PLANNED);
	if (member->fresh)
		ocsd_store_circuit_add(d, circuit);
	else
		ocsd_store_circuit(d, circuit);
}

static void transition_enter(struct ocsd *d, struct ocsd_transition *t)
{
	for (size_t i = 0; i < t->count; i++) {
		size_t *counter = ocsd_transition_counter(t, t->members[i].circuit->state);

		if (counter)
			++*counter;
	}
	t->next = t->job->circuits.transitions;
	t->job->circuits.transitions = t;
	t->begun = t->planned = t->changed = d->loop.changes_due = true;
}

int ocsd_transition_begin(struct ocsd *d, struct ocsd_transition *t, struct ocs_error *err)
{
	bool over = t->job->state != OCSD_JOB_APPLYING && !ocsd_job_running(t->job);

	if (over)
		ocs_error_set(err, OCS_NOT_NOW, "job %u is %s: its circuits do not change",
			      t->job->job, ocsd_job_state_name(t->job));
	if (over || members_take(d, t, err)) {
		ocsd_transition_drop(t);
		return -1;
	}
	transition_enter(d, t);
	for (size_t i = 0; i < t->count; i++)
		if (t->members[i].cut)
			member_cut(d, t->members[i].circuit);
		else
			member_plan(d, &t->members[i]);
	return 0;
}

/* MEMBER comes, beside what leaves by its ingresses. */
static void member_make(struct ocsd *d, struct ocsd_circuit *circuit)
{
	struct ocsd_switch *sw = &d->switches[circuit->sw];

	if (circuit->state == OCSD_CONNECTED)
		return;
	for (int p = 0; p < circuit->npatches; p++)
		if (sw->leaving[circuit->patches[p].in] == circuit)
			sw->leaving[circuit->patches[p].in] = NULL;
	if (circuit->state == OCSD_GONE)
		circuit_refresh(circuit);
	circuit->postponed = false;
	ocsd_circuit_connect(d, circuit);
}

void ocsd_transition_begin_at_once(struct ocsd *d, struct ocsd_transition *t)
{
	for (size_t i = 0; i < t->count; i++)
		t->members[i].circuit->transition = t;
	transition_enter(d, t);
	t->planned = false;
	for (size_t i = 0; i < t->count; i++)
		if (t->members[i].cut)
			ocsd_circuit_leave(d, t->members[i].circuit);
	for (size_t i = 0; i < t->count; i++)
		if (!t->members[i].cut)
			member_make(d, t->members[i].circuit);
}

void ocsd_transition_resume(struct ocsd *d, struct ocsd_job *job,
			    const struct ocsd_transition_kind *kind)
{
	struct ocsd_transition *t = ocsd_transition_create(job, kind);

	for (size_t i = 0; i < job->circuits.count; i++) {
		struct ocsd_circuit *circuit = job->circuits.list[i];

		if (circuit->state != OCSD_PLANNED && circuit->state != OCSD_CONNECTING &&
		    circuit->state != OCSD_DELETING)
			continue;
		member_add(t, circuit, circuit->state == OCSD_DELETING, false);
		circuit->transition = t;
	}
	transition_enter(d, t);
}

/* ---- its steps ---- */

static void transition_unlink(struct ocsd_transition *t)
{
	struct ocsd_transition **link = &t->job->circuits.transitions;

	while (*link != t)
		link = &(*link)->next;
	*link = t->next;
}

/* Whether CIRCUIT of T may be sent now: 0; 1: it waits for a port; -1 with ERR, and *BLAME is the
 * switch that has failed or NULL. */
static int member_check(struct ocsd *d, const struct ocsd_transition *t,
			const struct ocsd_circuit *circuit, const struct ocsd_switch **blame,
			struct ocs_error *err)
{
	*blame = NULL;
	/* in line for the 1x2 switch of a job that is still there */
	if (t->job->ports.nwaiting && !ocsd_circuit_owned(d, circuit))
		return 1;
	if (t->kind->fails_fast && ocsd_circuit_switch_check(d, circuit, err)) {
		*blame = &d->switches[circuit->sw];
		return -1;
	}
	return ocsd_circuit_check(d, circuit, err);
}

/* What T has not sent yet will not come. */
static void unsent_forget(struct ocsd *d, struct ocsd_transition *t)
{
	for (size_t i = 0; i < t->count; i++) {
		struct ocsd_circuit *circuit = t->members[i].circuit;

		if (circuit->state != OCSD_PLANNED && !t->members[i].sent)
			continue;
		ocsd_circuit_set(d, circuit, OCSD_GONE);
		ocsd_store_circuit(d, circuit);
	}
}

/* Writes what this step of T has sent; ALL: whatever the job had planned. */
static void sent_store(struct ocsd *d, struct ocsd_transition *t, bool all)
{
	if (all)
		ocsd_store_circuits(d, t->job, NULL, OCSD_PLANNED, OCSD_CONNECTING);
	for (size_t i = 0; i < t->count; i++) {
		if (t->members[i].sent && !all)
			ocsd_store_circuit(d, t->members[i].circuit);
		t->members[i].sent = false;
	}
}

/* Sends what T has planned.  -1: it cannot be, and T is gone. */
static int planned_send(struct ocsd *d, struct ocsd_transition *t)
{
	bool alone = t->job->circuits.transitions == t && !t->next, waiting = false;
	const struct ocsd_transition_kind *kind = t->kind;
	const struct ocsd_switch *blame;
	struct ocsd_job *job = t->job;
	struct ocs_error err;

	for (size_t i = 0; i < t->count; i++) {
		struct ocsd_circuit *circuit = t->members[i].circuit;
		int rc;

		if (circuit->state != OCSD_PLANNED)
			continue;
		rc = member_check(d, t, circuit, &blame, &err);
		if (rc < 0) {
			unsent_forget(d, t);
			transition_unlink(t);
			transition_free(t);
			kind->refused(d, job, blame, err.text);
			return -1;
		}
		waiting |= rc > 0;
		t->members[i].sent = !rc;
		if (!rc)
			ocsd_circuit_connect(d, circuit);
	}
	t->planned = waiting;
	sent_store(d, t, alone && !waiting);
	return 0;
}

static void transition_step(struct ocsd *d, struct ocsd_transition *t)
{
	const struct ocsd_transition_kind *kind = t->kind;
	struct ocsd_job *job = t->job;
	size_t nfailed;

	t->changed = false;
	if (t->ncut || (t->planned && planned_send(d, t)) || t->nmake)
		return;
	nfailed = t->nfailed;
	transition_unlink(t);
	transition_free(t);
	kind->done(d, job, nfailed);
}

/* A transition of JOB with a step that may be due, or NULL. */
static struct ocsd_transition *changed_find(const struct ocsd_job *job)
{
	struct ocsd_transition *t = job->circuits.transitions;

	while (t && !t->changed)
		t = t->next;
	return t;
}

void ocsd_transitions_run(struct ocsd *d)
{
	for (struct ocsd_job *job = d->jobs; job; job = job->next) {
		struct ocsd_transition *t;

		/* An owner that is told may begin another one, or end the job. */
		while ((t = changed_find(job)))
			transition_step(d, t);
	}
}

void ocsd_transitions_wake(struct ocsd *d, struct ocsd_job *job)
{
	for (struct ocsd_transition *t = job->circuits.transitions; t; t = t->next)
		t->changed = d->loop.changes_due = true;
}

/* ---- the end of a job ---- */

void ocsd_transition_end(struct ocsd_transition *t)
{
	transition_unlink(t);
	transition_free(t);
}

void ocsd_transitions_end(struct ocsd_job *job)
{
	while (job->circuits.transitions)
		ocsd_transition_end(job->circuits.transitions);
}

void ocsd_transition_abandon(struct ocsd *d, struct ocsd_job *job)
{
	ocsd_transitions_end(job);
	for (size_t i = 0; i < job->circuits.count; i++) {
		struct ocsd_circuit *circuit = job->circuits.list[i];

		if (circuit->state == OCSD_GONE || circuit->state == OCSD_DELETING)
			continue;
		if (circuit->sent) {
			ocsd_circuit_set(d, circuit, OCSD_DELETING);
			continue;
		}
		ocsd_circuit_set(d, circuit, OCSD_GONE);
		ocsd_store_circuit(d, circuit);
	}
	ocsd_store_circuits_delete(d, job);
}
