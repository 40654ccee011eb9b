/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Allocations from commit to verified teardown, and the ports they own. */

#include "src/ocsd/jobs/allocation.h"
#include "src/ocsd/jobs/connect.h"
#include "src/ocsd/jobs/job_state.h"
#include "src/ocsd/jobs/lifecycle.h"
#include "src/ocsd/jobs/lookahead.h"
#include "src/ocsd/jobs/topology.h"
#include "src/ocsd/jobs/transition.h"
#include "src/ocsd/state/events.h"
#include "src/ocsd/store/audit.h"
#include "src/ocsd/store/store.h"

#include "src/protocol/fields.h"
#include "src/protocol/names.h"
#include "src/util/text.h"

#include <json-c/json.h>
#include <stdlib.h>

static struct ocsd_port *port_of(struct ocsd *d, struct ocs_port port)
{
	return &d->switches[port.sw].ports[port.port];
}

void ocsd_job_claim(struct ocsd *d, struct ocsd_job *job)
{
	for (size_t i = 0; i < job->ports.count; i++) {
		struct ocsd_port *port = port_of(d, job->ports.list[i]);

		if (port->owner == job)
			continue;
		if (!port->owner) {
			port->owner = job;
		} else if (!port->next) {
			port->next = job;
			job->ports.nwaiting++;
		} else {
			/* Commit refuses this; only a damaged database brings it. */
			ocs_log(OCS_LOG_ERROR,
				"port %d of switch %s is claimed by jobs %u, %u and %u",
				job->ports.list[i].port,
				d->fabric->switches[job->ports.list[i].sw].name, port->owner->job,
				port->next->job, job->job);
			job->ports.nwaiting++;
		}
	}
}

/* Gives back what no remaining circuit uses (CLEAN: there is none); the next in
 * line takes over. */
static void free_ports(struct ocsd *d, struct ocsd_job *job, bool clean)
{
	size_t kept = 0;

	for (size_t i = 0; i < job->ports.count; i++) {
		struct ocsd_port *port = port_of(d, job->ports.list[i]);
		struct ocsd_job *next = port->next;

		if (port->next == job) {
			port->next = NULL;
			continue;
		}
		if (port->owner != job)
			continue;
		if (!clean && ocsd_job_uses(job, job->ports.list[i])) {
			job->ports.list[kept++] = job->ports.list[i];
			continue;
		}
		port->owner = next;
		port->next = NULL;
		/* After a restart its menu must not claim what others have by then. */
		if (job->menu && !clean)
			ocsd_store_port_remove(d, job, job->ports.list[i]);
		if (next && --next->ports.nwaiting == 0)
			ocsd_job_progress(d, next);
	}
	job->ports.count = kept;
}

void ocsd_job_enter(struct ocsd *d, struct ocsd_job *job)
{
	struct ocsd_job **at = &d->jobs;

	/* In the order of their numbers, as people expect to see them. */
	while (*at &&
	       ((*at)->job < job->job || ((*at)->job == job->job && (*at)->epoch < job->epoch)))
		at = &(*at)->next;
	job->next = *at;
	*at = job;
	ocsd_job_claim(d, job);
	if (job->epoch > d->slurmctld.max_epoch)
		d->slurmctld.max_epoch = job->epoch;
}

void ocsd_job_end(struct ocsd *d, struct ocsd_job *job, const char *reason)
{
	if (ocsd_job_living(job)) {
		ocsd_job_move(d, job, OCSD_JOB_END);
		ocs_log(OCS_LOG_INFO, "job %u left its allocation (epoch %llu): %s", job->job,
			(unsigned long long)job->epoch, reason ? reason : "no reason given");
		ocsd_audit(d, &(struct ocsd_audit){ .job = job, .what = "end", .after = reason });
		ocsd_topologies_revoke(d, job, reason ? reason : "the job has ended");
	}
	d->replies.due = true;
	ocsd_job_progress(d, job);
}

void ocsd_job_gone(struct ocsd *d, struct ocsd_job *job, const char *reason)
{
	if (!job->farewell.gone) {
		if (ocsd_job_prepared(job))
			ocsd_ahead_leave_line(d, job);
		job->farewell.gone = true;
		ocsd_job_move(d, job, OCSD_JOB_GONE);
		ocs_log(OCS_LOG_INFO, "job %u is gone (epoch %llu): %s", job->job,
			(unsigned long long)job->epoch, reason);
		ocsd_audit(d, &(struct ocsd_audit){ .job = job, .what = "gone", .after = reason });
		ocsd_topologies_revoke(d, job, reason);
	}
	job->farewell.released = false; /* slurmctld took it for a living job: it is sent again */
	d->replies.due = true;
	ocsd_job_progress(d, job);
}

void ocsd_job_release(struct ocsd *d, struct ocsd_job *job, int node)
{
	for (size_t i = 0; i < job->nodes.count; i++) {
		if (job->nodes.released[i] || (node >= 0 && (size_t)node != i))
			continue;
		job->nodes.released[i] = true;
		job->nodes.nreleased++;
		ocsd_store_release(d, job, job->nodes.names[i]);
	}
	if (job->nodes.nreleased == job->nodes.count && ocsd_job_living(job))
		ocsd_job_end(d, job, "every node has released it");
	else
		ocsd_job_progress(d, job);
}

static void announce_released(struct ocsd *d, struct ocsd_job *job)
{
	struct json_object *event;

	if (!job->farewell.released) {
		job->farewell.released = true;
		event = ocs_event_job(OCS_EVENT_RELEASED, job->job, job->epoch);
		ocsd_event_post(d, event);
		ocsd_audit(d, &(struct ocsd_audit){ .job = job, .what = "released" });
		ocsd_store_job_update(d, job);
	}
	d->replies.due = true;
}

bool ocsd_job_cut_due(const struct ocsd_job *job)
{
	return job->state == OCSD_JOB_CUT_DUE ||
	       (job->state == OCSD_JOB_LEAVING && job->nodes.nreleased == job->nodes.count);
}

/* A circuit of an ended job on a failed switch is in the way, and no one knows for how long: the job
 * in its prolog is placed elsewhere. */
static void fail_blocked(struct ocsd *d, struct ocsd_job *job)
{
	for (size_t i = 0; i < job->ports.count; i++) {
		const struct ocsd_switch *sw = &d->switches[job->ports.list[i].sw];
		char *text;

		if (port_of(d, job->ports.list[i])->owner == job ||
		    sw->status.state != OCSD_SWITCH_FAILED)
			continue;
		text = ocs_asprintf(
			"switch %s has failed, and port %d still carries a circuit of job %u",
			sw->description->name, job->ports.list[i].port,
			port_of(d, job->ports.list[i])->owner->job);
		ocsd_job_fail(d, job, sw, text);
		free(text);
		return;
	}
}

/* Gives back the ports of JOB, whose circuits are being cut, as they are seen gone. */
static void cutting_progress(struct ocsd *d, struct ocsd_job *job)
{
	bool clean = ocsd_job_left(d, job, true) == 0;

	if (ocsd_job_left(d, job, false)) {
		/* a 1x2 switch need not wait for the slow ones behind it */
		if (ocsd_ahead_has(job))
			free_ports(d, job, false);
		return;
	}
	free_ports(d, job, clean);
	announce_released(d, job);
	if (clean)
		ocsd_job_move(d, job, OCSD_JOB_CLOSE);
}

/* Starts JOB once its ports are its own, if its circuits are needed now. */
static void committed_progress(struct ocsd *d, struct ocsd_job *job)
{
	if (ocsd_job_prepared(job))
		ocsd_ahead_start(d, job);
	else if (job->ports.nwaiting == 0 && (job->adopt_running || job->prolog.napplies))
		ocsd_realise_start(d, job);
	else if (job->ports.nwaiting && !job->adopt_running && job->prolog.napplies)
		fail_blocked(d, job);
}

void ocsd_job_progress(struct ocsd *d, struct ocsd_job *job)
{
	if (ocsd_job_cut_due(job)) {
		if (job->state == OCSD_JOB_LEAVING)
			ocsd_job_move(d, job, OCSD_JOB_RELEASED);
		ocsd_job_move(d, job, OCSD_JOB_CUT);
	}
	if (job->state == OCSD_JOB_CUTTING)
		cutting_progress(d, job);
	else if (job->state == OCSD_JOB_COMMITTED)
		committed_progress(d, job);
	else if (job->state == OCSD_JOB_APPLYING && ocsd_ahead_has(job))
		ocsd_transitions_wake(d, job);
}

void ocsd_job_failed_event(struct ocsd *d, const struct ocsd_job *job)
{
	struct json_object *event = ocs_event_job(OCS_EVENT_JOB_FAILED, job->job, job->epoch);
	struct json_object *ports = ocsd_job_ports_to_blame(d, job);

	if (job->failure.sw)
		ocs_field_add_text(event, OCS_FIELD_SWITCH, job->failure.sw);
	if (job->failure.host)
		ocs_field_add_text(event, OCS_FIELD_HOST, job->failure.host);
	ocs_field_add_text(event, OCS_FIELD_ERROR,
			   job->failure.error ? job->failure.error : "unknown");
	if (ports)
		json_object_object_add(event, OCS_FIELD_PORTS, ports);
	ocsd_event_post(d, event);
}

void ocsd_job_fail(struct ocsd *d, struct ocsd_job *job, const struct ocsd_switch *sw,
		   const char *error)
{
	if (!ocsd_job_may(job, OCSD_JOB_FAIL))
		return;
	free(job->failure.error);
	if (ocsd_job_prepared(job)) {
		job->failure.error = ocs_strdup(error);
		ocsd_job_gone(d, job, error);
		return;
	}
	d->counters.jobs_failed++;
	free(job->failure.sw);
	job->failure.sw = sw ? ocs_strdup(sw->description->name) : NULL;
	job->failure.error = ocs_strdup(error);
	ocs_log(OCS_LOG_ERROR, "job %u: %s", job->job, error);
	/* A running job keeps what it has until it is taken off its nodes. */
	ocsd_job_move(d, job, OCSD_JOB_FAIL);
	ocsd_audit(d, &(struct ocsd_audit){
			      .job = job, .sw = sw, .what = "job_failed", .reply = error });
	ocsd_job_failed_event(d, job);
	ocsd_topologies_revoke(d, job, error);
}
