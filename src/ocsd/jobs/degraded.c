/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Circuits that fail under running jobs.  What becomes of such a job is decided by
 * slurmctld (policies in ocs.yaml); here it stays realised, with an error, and what is
 * missing is tried again at every poll. */

#include "src/ocsd/store/audit.h"
#include "src/ocsd/jobs/degraded.h"
#include "src/ocsd/jobs/allocation.h"
#include "src/ocsd/jobs/connect.h"
#include "src/ocsd/jobs/circuits.h"
#include "src/ocsd/jobs/job_state.h"
#include "src/ocsd/jobs/lifecycle.h"
#include "src/ocsd/jobs/rail_fault.h"
#include "src/ocsd/jobs/replan.h"
#include "src/ocsd/jobs/topology.h"
#include "src/ocsd/state/events.h"
#include "src/ocsd/store/store.h"

#include "src/protocol/fields.h"
#include "src/protocol/names.h"
#include "src/util/text.h"

#include <json-c/json.h>
#include <stdlib.h>

static void circuit_event_post(struct ocsd *d, const struct ocsd_job *job, const char *what,
			       const char *sw, const char *error, bool unknown)
{
	struct json_object *event = ocs_event_job(what, job->job, job->epoch);
	struct json_object *ports = error ? ocsd_job_ports_to_blame(d, job) : NULL;

	if (sw)
		ocs_field_add_text(event, OCS_FIELD_SWITCH, sw);
	if (ports)
		json_object_object_add(event, OCS_FIELD_PORTS, ports);
	if (error)
		ocs_field_add_text(event, OCS_FIELD_ERROR, error);
	if (unknown)
		ocs_field_add_bool(event, OCS_FIELD_UNSURE, true);
	ocsd_event_post(d, event);
}

void ocsd_job_degrade(struct ocsd *d, struct ocsd_job *job, const struct ocsd_switch *sw,
		      const char *why)
{
	/* Once: what follows from the first failure is no news.  A plan that was kept to
	 * though a port failed is another matter. */
	if (!job || !ocsd_job_may(job, OCSD_JOB_DEGRADE) || (job->failure.error && !job->plan.text))
		return;
	free(job->failure.error);
	free(job->failure.sw);
	job->failure.sw = sw ? ocs_strdup(sw->description->name) : NULL;
	job->failure.error = ocs_strdup(why);
	d->counters.jobs_failed++;
	ocs_log(OCS_LOG_ERROR, "job %u: %s", job->job, why);
	ocsd_job_move(d, job, OCSD_JOB_DEGRADE);
	ocsd_audit(d, &(struct ocsd_audit){
			      .job = job, .sw = sw, .what = "circuit_failed", .reply = why });
	circuit_event_post(d, job, OCS_EVENT_CIRCUIT_FAILED, job->failure.sw, why, false);
}

void ocsd_circuit_failed(struct ocsd *d, struct ocsd_circuit *circuit, const char *why)
{
	struct ocsd_job *job = circuit->job;
	const struct ocsd_switch *sw = &d->switches[circuit->sw];

	/* A running job on a direct fabric may do without it, and a controller finds another way. */
	if (circuit->rail && ocsd_topology_live(job))
		ocsd_topology_failed(d, circuit, why);
	else if (ocsd_job_running(job) && job->plan.text)
		ocsd_repair_want(d, job, why, true);
	else if (ocsd_job_running(job))
		ocsd_job_degrade(d, job, sw, why);
	else
		ocsd_job_fail(d, job, sw, why);
}

void ocsd_port_lost(struct ocsd *d, struct ocs_port where, const char *why)
{
	const struct ocsd_switch *sw = &d->switches[where.sw];
	struct ocsd_job *job = sw->ports[where.port].owner;
	struct ocsd_circuit *circuit = NULL;

	if (!job || job->plan.text) {
		ocsd_repair_want(d, job, why, false);
		return;
	}
	if (ocsd_topology_live(job)) {
		ocsd_topology_port_lost(d, job, where, why);
		return;
	}
	/* A port that the job holds and does not use is none of its business. */
	for (size_t i = 0; i < job->circuits.count && !circuit; i++)
		if (job->circuits.list[i]->sw == where.sw &&
		    job->circuits.list[i]->state != OCSD_GONE &&
		    (job->circuits.list[i]->a == where.port ||
		     job->circuits.list[i]->b == where.port))
			circuit = job->circuits.list[i];
	if (circuit)
		ocsd_job_degrade(d, job, sw, why);
}

static bool circuits_whole(struct ocsd *d, const struct ocsd_job *job)
{
	for (size_t i = 0; i < job->circuits.count; i++) {
		const struct ocsd_circuit *circuit = job->circuits.list[i];
		const struct ocsd_port *ports = d->switches[circuit->sw].ports;

		if (circuit->rail && circuit->state == OCSD_GONE)
			continue;
		if (circuit->state != OCSD_CONNECTED || ports[circuit->a].failed ||
		    ports[circuit->b].failed)
			return false;
	}
	return true;
}

void ocsd_degraded_check(struct ocsd *d, struct ocsd_job *job)
{
	if (!job || job->state != OCSD_JOB_DEGRADED || job->plan.text || !circuits_whole(d, job))
		return;
	free(job->failure.error);
	free(job->failure.sw);
	job->failure.error = job->failure.sw = NULL;
	ocs_log(OCS_LOG_INFO, "job %u: all of its circuits are there again", job->job);
	ocsd_job_move(d, job, OCSD_JOB_RESTORE);
	ocsd_audit(d, &(struct ocsd_audit){ .job = job, .what = "circuit_restored" });
	circuit_event_post(d, job, OCS_EVENT_CIRCUIT_RESTORED, NULL, NULL, false);
}

void ocsd_degraded_retry(struct ocsd *d, struct ocsd_switch *sw)
{
	for (int in = 1; in <= sw->description->size; in++) {
		struct ocsd_circuit *circuit = sw->by_in[in];

		if (!circuit || circuit->state != OCSD_CIRCUIT_FAILED ||
		    !ocsd_job_running(circuit->job) || circuit->job->plan.text)
			continue;
		ocsd_circuit_set(d, circuit, OCSD_CONNECTING);
		ocsd_store_circuit(d, circuit);
	}
}

static bool job_uses_switch(const struct ocsd_job *job, const struct ocsd_switch *sw)
{
	for (size_t i = 0; i < job->circuits.count; i++)
		if (job->circuits.list[i]->sw == sw->index &&
		    job->circuits.list[i]->state != OCSD_GONE)
			return true;
	return false;
}

void ocsd_degraded_switch(struct ocsd *d, const struct ocsd_switch *sw, const char *why)
{
	for (struct ocsd_job *job = d->jobs; job; job = job->next)
		if (ocsd_job_running(job) && !job->failure.error && job_uses_switch(job, sw))
			circuit_event_post(
				d, job, why ? OCS_EVENT_CIRCUIT_FAILED : OCS_EVENT_CIRCUIT_RESTORED,
				sw->description->name, why, why != NULL);
}

void ocsd_degraded_tell(struct ocsd *d)
{
	for (struct ocsd_job *job = d->jobs; job; job = job->next)
		if (ocsd_job_running(job) && job->failure.error && !job->plan.text)
			circuit_event_post(d, job, OCS_EVENT_CIRCUIT_FAILED, job->failure.sw,
					   job->failure.error, false);
	for (const struct ocsd_job *job = d->jobs; job; job = job->next)
		if (ocsd_job_running(job))
			ocsd_rails_tell(d, job);
	for (int i = 0; i < d->fabric->nswitches; i++) {
		const struct ocsd_switch *sw = &d->switches[i];
		char *text;

		if (sw->status.state != OCSD_SWITCH_FAILED)
			continue;
		text = ocs_asprintf(OCSD_SWITCH_SILENT, sw->description->name,
				    sw->status.reason ? sw->status.reason : "it does not answer");
		ocsd_degraded_switch(d, sw, text);
		free(text);
	}
}
