/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Requests: who may ask what, and the operations on allocations. */

#include "src/ocsd/jobs/lookahead.h"
#include "src/ocsd/store/audit.h"
#include "src/ocsd/store/clock.h"
#include "src/ocsd/ops/commit.h"
#include "src/ocsd/ports/drain.h"
#include "src/ocsd/jobs/forwarding.h"
#include "src/ocsd/jobs/node_presence.h"
#include "src/ocsd/jobs/job.h"
#include "src/ocsd/protocol/dispatch.h"
#include "src/ocsd/protocol/connection.h"
#include "src/ocsd/ops/show.h"
#include "src/ocsd/store/store.h"
#include "src/ocsd/protocol/transaction.h"
#include "src/ocsd/ops/pending_reply.h"

#include "src/protocol/fields.h"
#include "src/protocol/names.h"
#include "src/util/text.h"

#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

static bool over(struct ocsd *d, uint32_t number, uint64_t epoch)
{
	const struct ocsd_job *newest = ocsd_job_newest(d, number);

	return (newest && newest->epoch > epoch) ||
	       ocsd_store_last_epoch(d, number) >= epoch;
}

/* end and gone name an allocation that may be finished already. */
static void op_end(struct ocsd *d, struct ocsd_client *client, int64_t id,
		   struct json_object *request)
{
	struct ocs_error err;
	struct ocsd_job *job;
	uint32_t number;
	uint64_t epoch;

	if (ocs_field_need_job(request, &number, &epoch, &err)) {
		ocsd_refuse(client, id, err.code, NULL, "%s", err.text);
		return;
	}
	job = ocsd_job_find(d, number, epoch);
	if (job)
		ocsd_job_end(d, job, ocs_field_text(request, OCS_FIELD_REASON, NULL));
	else if (!over(d, number, epoch))
		ocsd_wait_never(d, number, epoch);
	ocsd_reply(client, id, NULL);
}

static void op_gone(struct ocsd *d, struct ocsd_client *client, int64_t id,
		    struct json_object *request)
{
	struct ocs_error err;
	struct ocsd_job *job;
	uint32_t number;
	uint64_t epoch;

	if (ocs_field_need_job(request, &number, &epoch, &err)) {
		ocsd_refuse(client, id, err.code, NULL, "%s", err.text);
		return;
	}
	job = ocsd_job_find(d, number, epoch);
	if (job)
		ocsd_job_gone(d, job, "slurmctld says so");
	ocsd_reply(client, id, NULL);
}

/* What a job holds now; an allocation that has ended is not waited for. */
static struct ocsd_job *living(struct ocsd *d, uint32_t number)
{
	struct ocsd_job *job = ocsd_job_newest(d, number);

	return job && !job->ended && !job->breaking && !job->prepared ? job : NULL;
}

static void op_apply(struct ocsd *d, struct ocsd_client *client, int64_t id,
		     struct json_object *request)
{
	const char *node = ocs_field_text(request, OCS_FIELD_NODE, NULL);
	struct ocsd_waiter *waiter;
	bool meets = ocs_field_has(request, OCS_FIELD_MACS);
	struct ocsd_job *job;
	struct ocs_error err;
	int64_t after = 0;
	uint32_t number;
	uint64_t epoch;

	if (ocs_field_need_job(request, &number, &epoch, &err)) {
		ocsd_refuse(client, id, err.code, NULL, "%s", err.text);
		return;
	}
	if (ocs_field_has(request, OCS_FIELD_AFTER) &&
	    !ocs_field_within(request, OCS_FIELD_AFTER, INT32_MAX, &after)) {
		ocsd_refuse(client, id, OCS_USAGE, NULL, "after is the number of a revision");
		return;
	}
	if (!node) {
		ocsd_refuse(client, id, OCS_USAGE, NULL, "apply needs the name of its node");
		return;
	}
	job = epoch ? ocsd_job_find(d, number, epoch) : living(d, number);
	if ((job && (job->ended || job->breaking)) ||
	    (!job && epoch && (over(d, number, epoch) || ocsd_wait_is_never(d, number, epoch)))) {
		ocsd_refuse(client, id, OCS_ERROR, ocsd_gone_extra(job),
			    "epoch %llu of job %u has ended", (unsigned long long)epoch,
			    number);
		return;
	}
	if (job && after && job->section && job->section->kind != OCS_DIRECT) {
		ocsd_refuse(client, id, OCS_USAGE, NULL, "job %u has no plan that could be repaired:"
			    " only jobs on direct fabrics have one", number);
		return;
	}
	if (job && ocsd_job_node(job, node) < 0) {
		ocsd_refuse(client, id, OCS_USAGE, NULL,
			    "node %s is not in the allocation of job %u", node, number);
		return;
	}
	if (meets && !job) {
		ocsd_refuse(client, id, OCS_NOT_NOW, NULL, "job %u is not known yet", number);
		return;
	}
	if (meets && ocsd_forward_announce(job, node, request, &err)) {
		ocsd_refuse(client, id, err.code, NULL, "%s", err.text);
		return;
	}
	waiter = ocsd_wait_add(d, client, id, OCSD_WAIT_APPLY, job, node);
	waiter->meets = meets;
	waiter->job = number;
	waiter->epoch = epoch;
	waiter->after = after;
	/* An epoch comes from the prolog; without one it is somebody who tries. */
	if (job && epoch)
		ocsd_heard_apply(d, job, ocsd_job_node(job, node));
	if (job && job->state == OCSD_REALISED)
		ocsd_wait_realised(d, job);
	else if (job)
		ocsd_job_progress(d, job);
}

static void empty_release(struct ocsd_client *client, int64_t id)
{
	struct json_object *reply = json_object_new_object();

	json_object_object_add(reply, OCS_FIELD_PENDING, json_object_new_array());
	ocsd_reply(client, id, reply);
}

static void release_one(struct ocsd *d, struct ocsd_client *client, int64_t id,
			struct ocsd_job *job, const char *node)
{
	int index = node ? ocsd_job_node(job, node) : -1;

	if (node && index < 0) {
		/* Its epilog runs, but the circuits are not its business. */
		empty_release(client, id);
		return;
	}
	ocsd_audit(d, &(struct ocsd_audit){ .who = client, .job = job,
					    .what = "release", .before = node });
	/* The last one hears when the circuits are gone; progress may do it now,
	 * so the waiter comes first. */
	ocsd_wait_add(d, client, id, OCSD_WAIT_RELEASE, job, node);
	ocsd_job_release(d, job, index);
	if (!job->breaking)
		ocsd_wait_released(d, job);
}

static void op_release(struct ocsd *d, struct ocsd_client *client, int64_t id,
		       struct json_object *request)
{
	const char *node = ocs_field_text(request, OCS_FIELD_NODE, NULL);
	struct ocs_error err;
	struct ocsd_job *job;
	uint32_t number;
	uint64_t epoch;

	if (ocs_field_need_job(request, &number, &epoch, &err)) {
		ocsd_refuse(client, id, err.code, NULL, "%s", err.text);
		return;
	}
	job = epoch ? ocsd_job_find(d, number, epoch) : ocsd_job_newest(d, number);
	if (job && job->prepared) {
		ocsd_wait_add(d, client, id, OCSD_WAIT_RELEASE, job, node);
		ocsd_job_gone(d, job, "it will not come");
	} else if (job) {
		release_one(d, client, id, job, node);
	} else {
		empty_release(client, id);
	}
}

void ocsd_pending_clear(struct ocsd *d)
{
	while (d->pending) {
		struct ocsd_pending *entry = d->pending;

		d->pending = entry->next;
		free(entry->user);
		free(entry->shape);
		free(entry->reason);
		free(entry);
	}
}

static void op_pending(struct ocsd *d, struct ocsd_client *client, int64_t id,
		       struct json_object *request)
{
	const char *reason = ocs_field_text(request, OCS_FIELD_REASON, NULL);
	const char *user = ocs_field_text(request, OCS_FIELD_USER, NULL);
	const char *shape = ocs_field_text(request, OCS_FIELD_SHAPE, NULL);
	struct ocsd_pending **link = &d->pending, *entry;
	int64_t job, uid = -1;

	ocs_field_within(request, OCS_FIELD_UID, UINT32_MAX, &uid);
	if (!ocs_field_within(request, OCS_FIELD_JOB, UINT32_MAX, &job)) {
		ocsd_refuse(client, id, OCS_USAGE, NULL, "the request needs a job number");
		return;
	}
	while (*link && (*link)->job != job)
		link = &(*link)->next;
	entry = *link;
	if (!entry && reason) {
		entry = ocs_calloc(1, sizeof(*entry));
		entry->job = (uint32_t)job;
		entry->since = ocsd_wall_clock();
		*link = entry;
	}
	if (entry) {
		free(entry->user);
		free(entry->shape);
		free(entry->reason);
		if (reason) {
			entry->uid = uid;
			entry->user = user ? ocs_strdup(user) : NULL;
			entry->shape = shape ? ocs_strdup(shape) : NULL;
			entry->reason = ocs_strdup(reason);
		} else {
			*link = entry->next;
			free(entry);
		}
	}
	ocsd_reply(client, id, NULL);
}

static void op_nodes(struct ocsd *d, struct ocsd_client *client, int64_t id,
		     struct json_object *request)
{
	struct json_object *nodes = ocs_field(request, OCS_FIELD_NODES);

	if (!json_object_is_type(nodes, json_type_object)) {
		ocsd_refuse(client, id, OCS_USAGE, NULL, "nodes needs an object of node states");
		return;
	}
	json_object_put(d->nodes);
	d->nodes = json_object_get(nodes);
	ocsd_reply(client, id, NULL);
}

static void op_reconcile(struct ocsd *d, struct ocsd_client *client, int64_t id,
			 struct json_object *request)
{
	struct ocsd_waiter *waiter = ocsd_wait_add(d, client, id, OCSD_WAIT_RECONCILE,
						   NULL, NULL);

	(void)request;
	waiter->drift = json_object_new_array();
	for (int i = 0; i < d->fabric->nswitches; i++) {
		d->switches[i].read_wanted = true;
		d->switches[i].reconciling = true;
	}
}

enum change {
	LOOKS,		/* changes no circuit and no drain */
	CHANGES,	/* may expect a revision and carry the id of a transaction */
	TELLS,		/* and always answers with the revision: asked by hand or script */
};

static const struct operation {
	const char *name;
	ocsd_operation run;
	bool everybody;
	enum change change;
} operations[] = {
	{ OCS_OP_APPLY, op_apply, false, CHANGES },
	{ OCS_OP_RELEASE, op_release, false, CHANGES },
	{ OCS_OP_UNABLE, ocsd_op_unable, false, CHANGES },
	{ OCS_OP_PRESENT, ocsd_op_present, false, LOOKS },
	{ OCS_OP_UNHEARD, ocsd_op_unheard, false, LOOKS },
	{ OCS_OP_COMMIT, ocsd_op_commit, false, CHANGES },
	{ OCS_OP_PREPARE, ocsd_op_prepare, false, TELLS },
	{ OCS_OP_END, op_end, false, CHANGES },
	{ OCS_OP_GONE, op_gone, false, CHANGES },
	{ OCS_OP_SUBSCRIBE, ocsd_op_subscribe, false, LOOKS },
	{ OCS_OP_PENDING, op_pending, false, LOOKS },
	{ OCS_OP_NODES, op_nodes, false, LOOKS },
	{ OCS_OP_SHOW, ocsd_op_show, true, LOOKS },
	{ OCS_OP_DRAIN, ocsd_op_drain, false, TELLS },
	{ OCS_OP_FAIL, ocsd_op_fail, false, TELLS },
	{ OCS_OP_RESUME, ocsd_op_resume, false, TELLS },
	{ OCS_OP_RECONCILE, op_reconcile, false, TELLS },
};

static const struct operation *find_operation(const char *name)
{
	for (size_t i = 0; i < sizeof(operations) / sizeof(operations[0]); i++)
		if (strcmp(name, operations[i].name) == 0)
			return &operations[i];
	return NULL;
}

void ocsd_request(struct ocsd *d, struct ocsd_client *client,
		  struct json_object *request)
{
	const char *op = ocs_field_text(request, OCS_FIELD_OP, NULL);
	const struct operation *operation;
	int64_t id = ocs_field_number(request, OCS_FIELD_ID, 0);

	if (!op || !json_object_is_type(ocs_field(request, OCS_FIELD_ID), json_type_int)) {
		ocsd_refuse(client, id, OCS_USAGE, NULL,
			    "a request has a string op and a number id");
		return;
	}
	if (d->standby) {
		ocsd_refuse(client, id, OCS_NOT_NOW, NULL, "%s", d->standby);
		return;
	}
	operation = find_operation(op);
	if (!operation) {
		ocsd_refuse(client, id, OCS_USAGE, NULL, "ocsd knows no operation %s", op);
	} else if (!operation->everybody && !ocsd_admin(d, ocsd_client_uid(client))) {
		ocsd_refuse(client, id, OCS_ERROR, NULL,
			    "only administrators of ocsd may ask for %s", op);
	} else if (operation->change == LOOKS ||
		   ocsd_transaction_begin(d, client, id, request, operation->change == TELLS)) {
		operation->run(d, client, id, request);
		ocsd_transaction_end(d);
	}
}
