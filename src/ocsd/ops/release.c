/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Operation release: a node, or (without one) the whole job, needs its circuits no longer. */

#include "src/ocsd/jobs/allocation.h"
#include "src/ocsd/jobs/lifecycle.h"
#include "src/ocsd/ops/operations.h"
#include "src/ocsd/protocol/connection.h"
#include "src/ocsd/protocol/dispatch.h"
#include "src/ocsd/protocol/pending_reply.h"
#include "src/ocsd/store/audit.h"

#include "src/protocol/fields.h"
#include "src/protocol/names.h"
#include "src/util/text.h"

#include <json-c/json.h>

struct release_reply {
	struct ocsd_pending_reply reply;
	struct ocsd_job *allocation;
};

/* Other nodes have it still, or nothing of it is left on a working switch. */
static bool release_due(struct ocsd *d, const struct ocsd_pending_reply *reply, int64_t now_ns)
{
	const struct ocsd_job *job = ((const struct release_reply *)reply)->allocation;

	(void)now_ns;
	return (job->state != OCSD_JOB_CUTTING && job->state != OCSD_JOB_CLOSED) ||
	       !ocsd_job_left(d, job, false);
}

static void release_answer(struct ocsd *d, struct ocsd_pending_reply *reply)
{
	const struct ocsd_job *job = ((const struct release_reply *)reply)->allocation;
	struct json_object *answer = json_object_new_object();

	json_object_object_add(answer, OCS_FIELD_PENDING, ocsd_job_pending(d, job));
	ocsd_reply(reply->client, reply->id, answer);
}

static void release_drop(struct ocsd *d, struct ocsd_pending_reply *reply)
{
	(void)d;
	(void)reply;
}

static void release_wait(struct ocsd *d, struct ocsd_client *client, int64_t id,
			 struct ocsd_job *job)
{
	static const struct ocsd_reply_kind kind = { release_due, release_answer, release_drop };
	struct release_reply *wait = ocs_calloc(1, sizeof(*wait));

	wait->allocation = job;
	ocsd_reply_later(d, &wait->reply, &kind, client, id);
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
	ocsd_audit(d, &(struct ocsd_audit){ .who = ocsd_client_who(client),
					    .job = job,
					    .what = "release",
					    .before = node });
	/* The last one hears when the circuits are gone. */
	release_wait(d, client, id, job);
	ocsd_job_release(d, job, index);
	d->replies.due = true;
}

void ocsd_op_release(struct ocsd *d, struct ocsd_client *client, int64_t id,
		     struct json_object *request)
{
	const char *node = ocs_field_text(request, OCS_FIELD_NODE, NULL);
	struct ocsd_job *job;
	uint32_t number;
	uint64_t epoch;

	if (ocsd_request_job(client, id, request, &number, &epoch))
		return;
	job = epoch ? ocsd_job_find(d, number, epoch) : ocsd_job_newest(d, number);
	if (job && ocsd_job_prepared(job)) {
		release_wait(d, client, id, job);
		ocsd_job_gone(d, job, "it will not come");
	} else if (job) {
		release_one(d, client, id, job, node);
	} else {
		empty_release(client, id);
	}
}
