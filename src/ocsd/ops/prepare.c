/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Operation prepare: the circuits of the job that comes next on its nodes. */

#include "src/ocsd/jobs/allocation.h"
#include "src/ocsd/jobs/lifecycle.h"
#include "src/ocsd/jobs/lookahead.h"
#include "src/ocsd/ops/commit.h"
#include "src/ocsd/ops/operations.h"
#include "src/ocsd/protocol/connection.h"
#include "src/ocsd/protocol/dispatch.h"
#include "src/ocsd/store/audit.h"
#include "src/ocsd/store/store.h"
#include "src/protocol/names.h"

#include "src/protocol/fields.h"

#include <json-c/json.h>

/* A prepared job needs a port set that nobody has, and to be the only one in line. */
static int ports_available(struct ocsd *d, struct ocsd_job *job, struct ocs_error *err)
{
	if (!ocsd_ahead_has(job))
		return ocs_error_set(err, OCS_USAGE, "section %s has no look_ahead",
				     job->section->name);
	for (size_t i = 0; i < job->ports.count; i++) {
		const struct ocsd_switch *sw = &d->switches[job->ports.list[i].sw];
		const struct ocsd_port *port = &sw->ports[job->ports.list[i].port];
		const struct ocsd_job *other = sw->description->moves ? port->next : port->owner;

		if (other)
			return ocs_error_set(err, OCS_NOT_NOW,
					     "port %d of switch %s is held by "
					     "job %u%s",
					     job->ports.list[i].port, sw->description->name,
					     other->job,
					     ocsd_job_prepared(other) ? ", which is prepared" : "");
	}
	return 0;
}

/* The only section with look-ahead need not be named. */
static int default_section(struct ocsd *d, struct json_object *request, struct ocs_error *err)
{
	const char *name = NULL;

	if (ocs_field_text(request, OCS_FIELD_SECTION, NULL))
		return 0;
	for (int s = 0; s < d->fabric->nsections; s++)
		if (d->fabric->sections[s].ahead) {
			if (name)
				return ocs_error_set(err, OCS_USAGE,
						     "sections %s and %s of ocs.yaml"
						     " have look_ahead: name one",
						     name, d->fabric->sections[s].name);
			name = d->fabric->sections[s].name;
		}
	if (!name)
		return ocs_error_set(err, OCS_USAGE, "no section of ocs.yaml has look_ahead");
	ocs_field_add_text(request, OCS_FIELD_SECTION, name);
	return 0;
}

void ocsd_op_prepare(struct ocsd *d, struct ocsd_client *client, int64_t id,
		     struct json_object *request)
{
	struct ocsd_job *job, *before;
	struct json_object *reply;
	struct ocs_error err;
	uint32_t number;
	uint64_t epoch;

	ocs_field_add_number(request, OCS_FIELD_EPOCH, 0);
	if (ocsd_request_job(client, id, request, &number, &epoch))
		return;
	/* Of one number and epoch there can be one only. */
	before = ocsd_job_find(d, number, 0);
	if (before && !ocsd_job_living(before)) {
		ocsd_refuse(client, id, OCS_NOT_NOW, NULL,
			    "the circuits that were prepared for job %u "
			    "before are not taken down yet",
			    number);
		return;
	}
	if (!before)
		before = ocsd_job_newest(d, number);
	if (before && ocsd_job_living(before)) {
		ocsd_refuse(client, id, OCS_ERROR, NULL,
			    ocsd_job_prepared(before) ? "job %u is prepared already" :
							"job %u has its nodes already",
			    number);
		return;
	}
	job = default_section(d, request, &err) ? NULL :
						  ocsd_commit_read(d, request, number, 0, &err);
	if (job && (ports_available(d, job, &err) || ocsd_commit_drained(d, job, &err))) {
		ocsd_job_free(job);
		job = NULL;
	}
	if (!job) {
		ocsd_refuse(client, id, err.code, NULL, "%s", err.text);
		return;
	}
	ocsd_job_enter(d, job);
	ocsd_store_job_add(d, job);
	ocsd_audit(d, &(struct ocsd_audit){
			      .who = ocsd_client_who(client), .job = job, .what = "prepare" });
	ocs_log(OCS_LOG_INFO, "job %u is prepared on port set %d of %zu nodes", number,
		job->plan.set, job->nodes.count);
	ocsd_job_progress(d, job);
	if (job->farewell.gone) {
		ocsd_refuse(client, id, OCS_NOT_NOW, NULL, "%s", job->failure.error);
		return;
	}
	reply = json_object_new_object();
	ocs_field_add_number(reply, OCS_FIELD_SET, job->plan.set);
	ocs_field_add_number(reply, OCS_FIELD_CIRCUITS, (int64_t)ocsd_job_circuits(job));
	ocsd_reply(client, id, reply);
}
