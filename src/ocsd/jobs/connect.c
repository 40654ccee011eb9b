/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* A job's circuits: what has to be made, what has to go.  Each circuit carries
 * the state it must reach; switches/scheduler.c turns that into batches. */

#include "src/ocsd/jobs/lookahead.h"
#include "src/ocsd/store/audit.h"
#include "src/ocsd/jobs/plan.h"
#include "src/ocsd/jobs/allocation.h"
#include "src/ocsd/jobs/lifecycle.h"
#include "src/ocsd/jobs/node_presence.h"
#include "src/ocsd/jobs/connect.h"
#include "src/ocsd/state/events.h"
#include "src/ocsd/store/store.h"

#include "src/protocol/fields.h"
#include "src/protocol/names.h"
#include "src/util/net.h"
#include "src/util/text.h"

#include <json-c/json.h>
#include <stdlib.h>

/* Whether JOB has circuits on SW that must go. */
static bool going(const struct ocsd_job *job, const struct ocsd_switch *sw)
{
	for (size_t i = 0; i < job->ncircuits; i++)
		if (job->circuits[i]->sw == sw->index && job->circuits[i]->state == OCSD_DELETING)
			return true;
	return false;
}

/* Doubts that time has dispelled must not come back with the next one. */
static void forget_doubts(struct ocsd_switch *sw)
{
	if (ocs_now_ns() < sw->poll.sure_ns)
		return;
	for (int in = 1; in <= sw->description->size; in++)
		if (sw->by_in[in])
			sw->by_in[in]->unsure = false;
}

/* Also what a second attempt does is in doubt: the first one may still do it once more. */
void ocsd_circuits_lost(struct ocsd_switch *sw)
{
	forget_doubts(sw);
	for (size_t i = 0; i < sw->batch.nadding; i++)
		sw->batch.adding[i]->unsure = true;
	for (size_t i = 0; i < sw->batch.nremoving; i++)
		sw->batch.removing[i]->unsure = true;
	if (sw->batch.nadding || sw->batch.nremoving)
		sw->poll.sure_ns = INT64_MAX;
}

bool ocsd_circuit_unsure(struct ocsd *d, const struct ocsd_circuit *circuit)
{
	return circuit->unsure && ocs_now_ns() < d->switches[circuit->sw].poll.sure_ns &&
	       !ocsd_ahead_circuit(d, circuit);
}

void ocsd_circuits_gone(struct ocsd *d, const struct ocsd_switch *sw,
			struct ocsd_circuit *const *circuits, size_t count)
{
	size_t first = 0;

	for (size_t i = 0; i < count; i++) {
		struct ocsd_job *job = circuits[i]->job;
		bool rest;

		circuits[i]->postponed = ocsd_circuit_unsure(d, circuits[i]);
		if (circuits[i]->state == OCSD_DELETING && !circuits[i]->postponed)
			ocsd_circuit_set(d, circuits[i], OCSD_GONE);
		if (i + 1 < count && circuits[i + 1]->job == job)
			continue;
		/* the rows of a whole switch at once, as a rule */
		rest = going(job, sw);
		if (!rest)
			ocsd_store_circuits(d, job, sw, OCSD_DELETING, OCSD_GONE);
		for (; first <= i; first++)
			if (rest && circuits[first]->state == OCSD_GONE)
				ocsd_store_circuit(d, circuits[first]);
	}
}

static bool doubtful(struct ocsd *d, const struct ocsd_job *job)
{
	for (size_t i = 0; i < job->ncircuits; i++)
		if (ocsd_circuit_unsure(d, job->circuits[i]))
			return true;
	return false;
}

/* What is in doubt stays CONNECTING there, so that an ocsd that is started anew doubts it, too. */
void ocsd_realise_write(struct ocsd *d, struct ocsd_job *job)
{
	if (!job->unwritten)
		return;
	job->unwritten = 0;
	if (!doubtful(d, job))
		ocsd_store_circuits_seen(d, job);
}

bool ocsd_realise_write_due(struct ocsd *d)
{
	bool more = false;

	for (struct ocsd_job *job = d->jobs; job; job = job->next) {
		if (job->unwritten > 1) {
			ocsd_realise_write(d, job);
		} else if (job->unwritten) {
			job->unwritten++;
			more = true;
		}
	}
	return more;
}

void ocsd_circuit_set(struct ocsd *d, struct ocsd_circuit *circuit, enum ocsd_circuit_state state)
{
	struct ocsd_switch *sw = &d->switches[circuit->sw];

	ocsd_realise_write(d, circuit->job);
	if (circuit->state == OCSD_GONE)
		circuit->job->ngone--;
	if (state == OCSD_GONE)
		circuit->job->ngone++;
	circuit->state = state;
	if (state == OCSD_CONNECTED)
		circuit->made_ns = ocs_now_ns();
	if (state == OCSD_CONNECTING || state == OCSD_DELETING)
		sw->dirty = true;
	if (state != OCSD_GONE)
		return;
	for (int p = 0; p < circuit->npatches; p++)
		if (sw->by_in[circuit->patches[p].in] == circuit)
			sw->by_in[circuit->patches[p].in] = NULL;
	ocsd_ahead_inherit(d, circuit);
}

void ocsd_realised_tell(struct ocsd *d, const struct ocsd_job *job)
{
	struct json_object *event;

	/* How many others have follows from their placement. */
	if (!job->plan || job->prepared)
		return;
	event = ocs_event_job(OCS_EVENT_REALISED, job->job, job->epoch);
	ocs_field_add_number(event, OCS_FIELD_CIRCUITS, (int64_t)ocsd_job_circuits(job));
	ocsd_event_post(d, event);
}

void ocsd_realise_check(struct ocsd *d, struct ocsd_job *job)
{
	if (job->state == OCSD_APPLYING && !job->breaking) {
		for (size_t i = 0; i < job->ncircuits; i++)
			if (job->circuits[i]->state != OCSD_CONNECTED &&
			    job->circuits[i]->state != OCSD_GONE)
				return;
		job->state = OCSD_REALISED;
		job->unwritten = 1;
		ocsd_count_realised(&d->counters, ocs_now_ns() - job->started_ns);
		ocs_log(OCS_LOG_INFO, "job %u: %zu circuits verified (epoch %llu)", job->job,
			ocsd_job_circuits(job), (unsigned long long)job->epoch);
		ocsd_store_job_update(d, job);
		ocsd_audit(d, &(struct ocsd_audit){ .job = job, .what = "realised" });
		ocsd_realised_tell(d, job);
	}
	if (job->state == OCSD_REALISED && !job->ended) {
		d->replies.due = true;
		ocsd_heard_check(d, job);
	}
}

/* The ways of a 1x2 switch belong to it, not to a job. */
static bool owns(struct ocsd *d, const struct ocsd_circuit *circuit)
{
	const struct ocsd_switch *sw = &d->switches[circuit->sw];

	return sw->ports[circuit->a].owner == circuit->job &&
	       (sw->ports[circuit->b].owner == circuit->job || ocsd_ahead_circuit(d, circuit));
}

/* The last look before a circuit may reach a switch: its ports are its job's,
 * and no other circuit of ours sits on them. */
static int check_owner(struct ocsd *d, const struct ocsd_circuit *circuit, struct ocs_error *err)
{
	const struct ocsd_switch *sw = &d->switches[circuit->sw];

	if (!owns(d, circuit))
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

static int ready_to_start(struct ocsd *d, struct ocsd_job *job, const struct ocsd_switch **blame,
			  struct ocs_error *err)
{
	*blame = NULL;
	if (job->section && job->section->kind == OCS_DIRECT && !job->plan &&
	    ocsd_direct_plan(d, job, err))
		return -1;
	for (size_t i = 0; i < job->ncircuits; i++) {
		const struct ocsd_switch *sw = &d->switches[job->circuits[i]->sw];

		/* A job that runs already has had its circuits: it waits for the
		 * switch rather than being killed for it. */
		if (sw->state == OCSD_SWITCH_FAILED && !job->wanted) {
			*blame = sw;
			return ocs_error_set(err, OCS_ERROR, "switch %s has failed: %s",
					     sw->description->name,
					     sw->reason ? sw->reason : "it does not answer");
		}
		if (check_owner(d, job->circuits[i], err))
			return -1;
	}
	return 0;
}

/* CIRCUIT, whose ports were looked at, may go to its switch. */
static void connect_circuit(struct ocsd *d, struct ocsd_circuit *circuit)
{
	struct ocsd_switch *sw = &d->switches[circuit->sw];

	for (int p = 0; p < circuit->npatches; p++)
		sw->by_in[circuit->patches[p].in] = circuit;
	/* A job that runs has them, though no batch of ours was sent. */
	circuit->sent |= circuit->job->wanted;
	ocsd_circuit_set(d, circuit, OCSD_CONNECTING);
}

void ocsd_realise_start(struct ocsd *d, struct ocsd_job *job)
{
	const struct ocsd_switch *blame;
	struct ocs_error err;

	job->started_ns = ocs_now_ns();
	if (ready_to_start(d, job, &blame, &err)) {
		ocsd_job_fail(d, job, blame, err.text);
		return;
	}
	job->state = OCSD_APPLYING;
	for (size_t i = 0; i < job->ncircuits; i++) {
		struct ocsd_circuit *circuit = job->circuits[i];

		if (circuit->state == OCSD_PLANNED || circuit->state == OCSD_CONNECTING)
			connect_circuit(d, circuit);
	}
	ocsd_store_job_update(d, job);
	ocsd_store_circuits(d, job, NULL, OCSD_PLANNED, OCSD_CONNECTING);
	ocsd_audit(d, &(struct ocsd_audit){ .job = job, .what = "apply" });
	ocsd_realise_check(d, job);
}

int ocsd_realise_more(struct ocsd *d, struct ocsd_job *job)
{
	struct ocs_error err;

	for (size_t i = 0; i < job->ncircuits; i++)
		if (job->circuits[i]->state == OCSD_DELETING)
			return -1;
	for (size_t i = 0; i < job->ncircuits; i++) {
		if (job->circuits[i]->state != OCSD_PLANNED)
			continue;
		/* in line for the 1x2 switch of a job that is still there */
		if (job->nwaiting && !owns(d, job->circuits[i]))
			continue;
		if (check_owner(d, job->circuits[i], &err)) {
			ocsd_job_fail(d, job, NULL, err.text);
			return -1;
		}
		connect_circuit(d, job->circuits[i]);
		ocsd_store_circuit(d, job->circuits[i]);
	}
	return 0;
}

void ocsd_realise_abandon(struct ocsd *d, struct ocsd_job *job)
{
	for (size_t i = 0; i < job->ncircuits; i++) {
		struct ocsd_circuit *circuit = job->circuits[i];

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
