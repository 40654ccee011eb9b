/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Operation subscribe: the allocations that slurmctld lists, those that are here, and what has
 * happened while nobody listened. */

#include "src/ocsd/jobs/connect.h"
#include "src/ocsd/jobs/degraded.h"
#include "src/ocsd/jobs/lifecycle.h"
#include "src/ocsd/jobs/node_presence.h"
#include "src/ocsd/ops/operations.h"
#include "src/ocsd/protocol/connection.h"
#include "src/ocsd/protocol/fencing.h"
#include "src/ocsd/state/out_of_service.h"
#include "src/ocsd/state/switch_state.h"
#include "src/ocsd/store/store.h"

#include "src/protocol/fields.h"
#include "src/protocol/names.h"
#include "src/util/hostlist.h"
#include "src/util/text.h"

#include <json-c/json.h>
#include <stdlib.h>

static int by_job(const void *left, const void *right)
{
	const struct ocsd_pair *a = left, *b = right;

	if (a->job != b->job)
		return a->job < b->job ? -1 : 1;
	return a->epoch < b->epoch ? -1 : a->epoch > b->epoch;
}

static size_t read_pairs(struct json_object *jobs, struct ocsd_pair *pairs)
{
	size_t count = 0;

	for (size_t i = 0; i < json_object_array_length(jobs); i++) {
		struct json_object *row = json_object_array_get_idx(jobs, i);
		struct json_object *job, *epoch;

		if (!json_object_object_get_ex(row, OCS_FIELD_JOB, &job) ||
		    !json_object_object_get_ex(row, OCS_FIELD_EPOCH, &epoch))
			continue;
		pairs[count].job = (uint32_t)json_object_get_int64(job);
		pairs[count++].epoch = (uint64_t)json_object_get_int64(epoch);
	}
	qsort(pairs, count, sizeof(*pairs), by_job);
	return count;
}

/* An allocation that slurmctld may not know: one that died may not have saved that it had
 * started JOB.  The caller owns it. */
static struct json_object *listed_row(const struct ocsd_job *job)
{
	struct json_object *row = json_object_new_object();
	char *nodes = ocs_hostlist_compress(job->nodes.names, job->nodes.count);

	ocs_field_add_number(row, OCS_FIELD_JOB, job->job);
	ocs_field_add_number(row, OCS_FIELD_EPOCH, (int64_t)job->epoch);
	ocs_field_add_text(row, OCS_FIELD_NODES, nodes);
	free(nodes);
	return row;
}

/* Whether JOB is among PAIRS; notes that in KNOWN. */
static bool is_listed(const struct ocsd_pair *pairs, bool *known, size_t count,
		      const struct ocsd_job *job)
{
	struct ocsd_pair key = { .job = job->job, .epoch = job->epoch };
	const struct ocsd_pair *found = bsearch(&key, pairs, count, sizeof(*pairs), by_job);

	if (found)
		known[found - pairs] = true;
	return found != NULL;
}

static void unlisted_end(struct ocsd *d, const struct ocsd_pair *pairs, bool *known, size_t count,
			 bool confirms, struct json_object *forgotten)
{
	const char *unlisted = "slurmctld does not know it any more";

	for (struct ocsd_job *job = d->jobs; job; job = job->next) {
		if (job->state == OCSD_JOB_CLOSED || is_listed(pairs, known, count, job))
			continue;
		/* Its nodes may have it still, also where slurmctld has said that it ended
		 * and did not save that it had ever started. */
		if (!job->farewell.gone && !ocsd_job_prepared(job) &&
		    job->nodes.nreleased < job->nodes.count)
			json_object_array_add(forgotten, listed_row(job));
		if (confirms && !ocsd_job_prepared(job))
			ocsd_job_end(d, job, unlisted);
		else if (!job->farewell.gone)
			ocsd_job_gone(d, job, unlisted);
	}
}

/* Compares JOBS, an array of a subscribe, with what is here.  An allocation that is not listed
 * has ended and is broken; CONFIRMS: once the client has said `gone`, as slurmctld does when the
 * job has been cleaned up, and at once for all that it is told to be held and does not know.  So
 * circuits outlive the last epilog, and an answer that is lost is given again.
 * Adds to UNKNOWN and FORGOTTEN as in the reply. */
static void listed_compare(struct ocsd *d, struct json_object *jobs, bool confirms,
			   struct json_object *unknown, struct json_object *forgotten)
{
	size_t length = json_object_array_length(jobs);
	struct ocsd_pair *pairs = ocs_calloc(length + 1, sizeof(*pairs));
	bool *known = ocs_calloc(length + 1, sizeof(*known));
	size_t count = read_pairs(jobs, pairs);

	unlisted_end(d, pairs, known, count, confirms, forgotten);
	d->slurmctld.unknown =
		ocs_realloc(d->slurmctld.unknown, (count + 1) * sizeof(*d->slurmctld.unknown));
	d->slurmctld.nunknown = 0;
	for (size_t i = 0; i < count; i++) {
		if (known[i])
			continue;
		d->slurmctld.unknown[d->slurmctld.nunknown++] = pairs[i].job;
		json_object_array_add(unknown, json_object_new_int64(pairs[i].job));
	}
	free(known);
	free(pairs);
}

static struct json_object *switches_json(struct ocsd *d)
{
	struct json_object *list = json_object_new_array();

	for (int i = 0; i < d->fabric->nswitches; i++) {
		const struct ocsd_switch *sw = &d->switches[i];
		struct json_object *row = json_object_new_object();
		const char *reason =
			sw->status.state != OCSD_UP ? sw->status.reason : sw->status.drain_reason;

		ocs_field_add_text(row, OCS_FIELD_NAME, sw->description->name);
		ocs_field_add_text(row, OCS_FIELD_STATE, ocsd_switch_state_name(sw));
		ocs_field_add_text(row, OCS_FIELD_REASON, reason);
		json_object_array_add(list, row);
	}
	return list;
}

static void list_jobs(struct ocsd *d, struct json_object *held, struct json_object *realised)
{
	for (struct ocsd_job *job = d->jobs; job; job = job->next) {
		if (job->state == OCSD_JOB_CLOSED || job->farewell.released ||
		    ocsd_job_prepared(job))
			continue;
		if (ocsd_job_living(job)) {
			if (ocsd_job_running(job))
				json_object_array_add(realised, json_object_new_int64(job->job));
			continue;
		}
		json_object_array_add(held, listed_row(job));
	}
}

/* Jobs that waited when slurmctld was last heard: those that wait no longer it takes back. */
static struct json_object *pending_json(const struct ocsd *d)
{
	struct json_object *list = json_object_new_array();

	for (const struct ocsd_pending *entry = d->slurmctld.pending; entry; entry = entry->next)
		json_object_array_add(list, json_object_new_int64(entry->job));
	return list;
}

void ocsd_op_subscribe(struct ocsd *d, struct ocsd_client *client, int64_t id,
		       struct json_object *request)
{
	struct json_object *reply;
	struct json_object *unknown = json_object_new_array();
	struct json_object *forgotten = json_object_new_array();
	struct json_object *held = json_object_new_array();
	struct json_object *realised = json_object_new_array();
	char digest[OCS_DIGEST_TEXT];
	struct json_object *jobs;
	uint64_t term;

	if (ocsd_term_take(d, client, id, request, &term)) {
		json_object_put(unknown);
		json_object_put(forgotten);
		json_object_put(held);
		json_object_put(realised);
		return;
	}
	reply = json_object_new_object();
	if (term)
		ocs_field_add_number(reply, OCS_FIELD_TERM, (int64_t)term);
	if (json_object_object_get_ex(request, OCS_FIELD_JOBS, &jobs) &&
	    json_object_is_type(jobs, json_type_array))
		listed_compare(d, jobs, term != 0, unknown, forgotten);
	list_jobs(d, held, realised);
	ocs_field_add_number(reply, OCS_FIELD_MAX_JOB, ocsd_store_max_job(d));
	ocs_field_add_number(reply, OCS_FIELD_MAX_EPOCH, (int64_t)d->slurmctld.max_epoch);
	json_object_object_add(reply, OCS_FIELD_SWITCHES, switches_json(d));
	json_object_object_add(reply, OCS_FIELD_DRAINS, ocsd_drains_json(d));
	json_object_object_add(reply, OCS_FIELD_HELD, held);
	json_object_object_add(reply, OCS_FIELD_UNKNOWN, unknown);
	json_object_object_add(reply, OCS_FIELD_FORGOTTEN, forgotten);
	json_object_object_add(reply, OCS_FIELD_REALISED, realised);
	json_object_object_add(reply, OCS_FIELD_PENDING, pending_json(d));
	json_object_object_add(reply, OCS_FIELD_READY, ocsd_heard_ready(d));
	ocs_fabric_digest(d->fabric, digest);
	ocs_field_add_text(reply, OCS_FIELD_FABRIC, digest);
	ocsd_reply(client, id, reply);
	ocsd_client_subscribe(client);
	/* What failed while nobody listened is said again. */
	for (struct ocsd_job *job = d->jobs; job; job = job->next)
		if (ocsd_job_failed(job))
			ocsd_job_failed_event(d, job);
	for (const struct ocsd_job *job = d->jobs; job; job = job->next)
		if (ocsd_job_running(job))
			ocsd_realised_tell(d, job);
	ocsd_degraded_tell(d);
}
