/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Allocations from commit to verified teardown, and the ports they own. */

#include "src/ocsd/jobs/allocation.h"
#include "src/ocsd/jobs/connect.h"
#include "src/ocsd/jobs/lifecycle.h"
#include "src/ocsd/jobs/lookahead.h"
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
	for (size_t i = 0; i < job->nports; i++) {
		struct ocsd_port *port = port_of(d, job->ports[i]);

		if (port->owner == job)
			continue;
		if (!port->owner) {
			port->owner = job;
		} else if (!port->next) {
			port->next = job;
			job->nwaiting++;
		} else {
			/* Commit refuses this; only a damaged database brings it. */
			ocs_log(OCS_LOG_ERROR,
				"port %d of switch %s is claimed by jobs %u, %u and %u",
				job->ports[i].port, d->fabric->switches[job->ports[i].sw].name,
				port->owner->job, port->next->job, job->job);
			job->nwaiting++;
		}
	}
}

/* Gives back what no remaining circuit uses (CLEAN: there is none); the next in
 * line takes over. */
static void free_ports(struct ocsd *d, struct ocsd_job *job, bool clean)
{
	size_t kept = 0;

	for (size_t i = 0; i < job->nports; i++) {
		struct ocsd_port *port = port_of(d, job->ports[i]);
		struct ocsd_job *next = port->next;

		if (port->next == job) {
			port->next = NULL;
			continue;
		}
		if (port->owner != job)
			continue;
		if (!clean && ocsd_job_uses(job, job->ports[i])) {
			job->ports[kept++] = job->ports[i];
			continue;
		}
		port->owner = next;
		port->next = NULL;
		if (next && --next->nwaiting == 0)
			ocsd_job_progress(d, next);
	}
	job->nports = kept;
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
	if (!job->ended) {
		job->ended = true;
		ocs_log(OCS_LOG_INFO, "job %u left its allocation (epoch %llu): %s", job->job,
			(unsigned long long)job->epoch, reason ? reason : "no reason given");
		ocsd_store_job_update(d, job);
		ocsd_audit(d, &(struct ocsd_audit){ .job = job, .what = "end", .after = reason });
	}
	d->replies.due = true;
	ocsd_job_progress(d, job);
}

void ocsd_job_gone(struct ocsd *d, struct ocsd_job *job, const char *reason)
{
	if (!job->gone) {
		if (job->prepared)
			ocsd_ahead_leave_line(d, job);
		job->gone = true;
		job->ended = true;
		ocs_log(OCS_LOG_INFO, "job %u is gone (epoch %llu): %s", job->job,
			(unsigned long long)job->epoch, reason);
		ocsd_store_job_update(d, job);
		ocsd_audit(d, &(struct ocsd_audit){ .job = job, .what = "gone", .after = reason });
	}
	job->announced = false; /* whoever took it for a living job has missed that */
	d->replies.due = true;
	ocsd_job_progress(d, job);
}

void ocsd_job_release(struct ocsd *d, struct ocsd_job *job, int node)
{
	for (size_t i = 0; i < job->nnodes; i++) {
		if (job->released[i] || (node >= 0 && (size_t)node != i))
			continue;
		job->released[i] = true;
		job->nreleased++;
		ocsd_store_release(d, job, job->nodes[i]);
	}
	if (job->nreleased == job->nnodes && !job->ended)
		ocsd_job_end(d, job, "every node has released it");
	else
		ocsd_job_progress(d, job);
}

static void announce_released(struct ocsd *d, struct ocsd_job *job)
{
	struct json_object *event;

	if (!job->announced) {
		job->announced = true;
		event = ocs_event_job(OCS_EVENT_RELEASED, job->job, job->epoch);
		ocsd_event_post(d, event);
		ocsd_audit(d, &(struct ocsd_audit){ .job = job, .what = "released" });
		ocsd_store_job_update(d, job);
	}
	d->replies.due = true;
}

bool ocsd_job_break_due(const struct ocsd_job *job)
{
	if (job->gone || job->nreleased == job->nnodes)
		return true;
	/* No node was told yes: there is nothing to wait for. */
	return job->ended &&
	       (job->rolled_back || job->state == OCSD_COMMITTED || job->state == OCSD_APPLYING);
}

/* An ended job's circuit on a failed switch is in the way for who knows how
 * long: the job in its prolog had better go elsewhere. */
static void fail_blocked(struct ocsd *d, struct ocsd_job *job)
{
	for (size_t i = 0; i < job->nports; i++) {
		const struct ocsd_switch *sw = &d->switches[job->ports[i].sw];
		char *text;

		if (port_of(d, job->ports[i])->owner == job || sw->state != OCSD_SWITCH_FAILED)
			continue;
		text = ocs_asprintf(
			"switch %s has failed, and port %d still carries a circuit of job %u",
			sw->description->name, job->ports[i].port,
			port_of(d, job->ports[i])->owner->job);
		ocsd_job_fail(d, job, sw, text);
		free(text);
		return;
	}
}

void ocsd_job_progress(struct ocsd *d, struct ocsd_job *job)
{
	if (job->dead)
		return;
	if (!job->breaking && ocsd_job_break_due(job)) {
		job->breaking = true;
		ocsd_realise_abandon(d, job);
	}
	if (job->breaking) {
		bool clean = ocsd_job_left(d, job, true) == 0;

		if (ocsd_job_left(d, job, false)) {
			/* a 1x2 switch need not wait for the slow ones behind it */
			if (ocsd_ahead_has(job))
				free_ports(d, job, false);
			return;
		}
		free_ports(d, job, clean);
		announce_released(d, job);
		if (clean) {
			job->dead = true;
			ocsd_store_job_remove(d, job);
		}
		return;
	}
	if (!job->ended && job->state == OCSD_APPLYING && ocsd_ahead_has(job))
		ocsd_realise_more(d, job);
	if (job->ended || job->state != OCSD_COMMITTED)
		return;
	if (job->prepared) {
		ocsd_ahead_start(d, job);
		return;
	}
	if (job->nwaiting == 0 && (job->wanted || job->napplies))
		ocsd_realise_start(d, job);
	else if (job->nwaiting && !job->wanted && job->napplies)
		fail_blocked(d, job);
}

void ocsd_job_failed_event(struct ocsd *d, const struct ocsd_job *job)
{
	struct json_object *event = ocs_event_job(OCS_EVENT_JOB_FAILED, job->job, job->epoch);
	struct json_object *ports = ocsd_job_ports_to_blame(d, job);

	if (job->failed_switch)
		ocs_field_add_text(event, OCS_FIELD_SWITCH, job->failed_switch);
	if (job->failed_host)
		ocs_field_add_text(event, OCS_FIELD_HOST, job->failed_host);
	ocs_field_add_text(event, OCS_FIELD_ERROR, job->error ? job->error : "unknown");
	if (ports)
		json_object_object_add(event, OCS_FIELD_PORTS, ports);
	ocsd_event_post(d, event);
}

void ocsd_job_fail(struct ocsd *d, struct ocsd_job *job, const struct ocsd_switch *sw,
		   const char *error)
{
	bool realised = job->state == OCSD_REALISED;

	if (job->ended || job->breaking || job->state == OCSD_FAILED)
		return;
	free(job->error);
	if (job->prepared) {
		job->error = ocs_strdup(error);
		ocsd_job_gone(d, job, error);
		return;
	}
	job->state = OCSD_FAILED;
	d->counters.jobs_failed++;
	free(job->failed_switch);
	job->failed_switch = sw ? ocs_strdup(sw->description->name) : NULL;
	job->error = ocs_strdup(error);
	ocs_log(OCS_LOG_ERROR, "job %u: %s", job->job, error);
	/* A running job keeps what it has until it is taken off its nodes. */
	if (!realised) {
		job->rolled_back = true;
		ocsd_realise_abandon(d, job);
	}
	ocsd_store_job_update(d, job);
	ocsd_audit(d, &(struct ocsd_audit){
			      .job = job, .sw = sw, .what = "job_failed", .reply = error });
	ocsd_job_failed_event(d, job);
}
