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
#include "src/ocsd/jobs/circuits.h"
#include "src/ocsd/jobs/connect.h"
#include "src/ocsd/jobs/job_state.h"
#include "src/ocsd/state/events.h"
#include "src/ocsd/store/store.h"

#include "src/protocol/fields.h"
#include "src/protocol/names.h"
#include "src/util/net.h"
#include "src/util/text.h"

#include <json-c/json.h>
#include <stdlib.h>

void ocsd_realised_tell(struct ocsd *d, const struct ocsd_job *job)
{
	struct json_object *event;

	/* How many others have follows from their placement. */
	if (!job->plan || ocsd_job_prepared(job))
		return;
	event = ocs_event_job(OCS_EVENT_REALISED, job->job, job->epoch);
	ocs_field_add_number(event, OCS_FIELD_CIRCUITS, (int64_t)ocsd_job_circuits(job));
	ocsd_event_post(d, event);
}

void ocsd_realise_check(struct ocsd *d, struct ocsd_job *job)
{
	if (job->state == OCSD_JOB_APPLYING) {
		for (size_t i = 0; i < job->ncircuits; i++)
			if (job->circuits[i]->state != OCSD_CONNECTED &&
			    job->circuits[i]->state != OCSD_GONE)
				return;
		job->unwritten = 1;
		ocsd_count_realised(&d->counters, ocs_now_ns() - job->started_ns);
		ocs_log(OCS_LOG_INFO, "job %u: %zu circuits verified (epoch %llu)", job->job,
			ocsd_job_circuits(job), (unsigned long long)job->epoch);
		ocsd_job_move(d, job, OCSD_JOB_VERIFIED);
		ocsd_audit(d, &(struct ocsd_audit){ .job = job, .what = "realised" });
		ocsd_realised_tell(d, job);
	}
	if (ocsd_job_running(job)) {
		d->replies.due = true;
		ocsd_heard_check(d, job);
	}
}

/* The ways of a 1x2 switch belong to it, not to a job. */
static bool owns(struct ocsd *d, const struct ocsd_circuit *circuit)
{
	const struct ocsd_switch *sw = &d->switches[circuit->sw];

	return sw->ports[circuit->a].owner == circuit->job &&
	       (sw->ports[circuit->b].owner == circuit->job || ocsd_circuit_moves(d, circuit));
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
		if (sw->state == OCSD_SWITCH_FAILED && !job->adopt_running) {
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
	circuit->sent |= circuit->job->adopt_running;
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
	ocsd_job_move(d, job, OCSD_JOB_START);
	for (size_t i = 0; i < job->ncircuits; i++) {
		struct ocsd_circuit *circuit = job->circuits[i];

		if (circuit->state == OCSD_PLANNED || circuit->state == OCSD_CONNECTING)
			connect_circuit(d, circuit);
	}
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
