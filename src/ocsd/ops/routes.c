/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Operation routes: a node of a TCP job on rails has done what it was told, and waits for the next
 * word. */

#include "src/ocsd/jobs/allocation.h"
#include "src/ocsd/jobs/forwarding.h"
#include "src/ocsd/jobs/routes.h"
#include "src/ocsd/ops/operations.h"
#include "src/ocsd/protocol/connection.h"
#include "src/ocsd/protocol/dispatch.h"
#include "src/ocsd/protocol/pending_reply.h"
#include "src/ocsd/state/menus.h"

#include "src/protocol/fields.h"
#include "src/protocol/names.h"
#include "src/util/text.h"

#include <json-c/json.h>

struct routes_reply {
	struct ocsd_pending_reply reply;
	uint32_t job;
	uint64_t epoch;
	int node;
	uint64_t after;
};

static struct ocsd_job *job_of(struct ocsd *d, const struct routes_reply *wait)
{
	struct ocsd_job *job = ocsd_job_find(d, wait->job, wait->epoch);

	return job && ocsd_job_living(job) ? job : NULL;
}

static bool routes_due(struct ocsd *d, const struct ocsd_pending_reply *reply, int64_t now_ns)
{
	const struct routes_reply *wait = (const struct routes_reply *)reply;
	const struct ocsd_job *job = job_of(d, wait);

	(void)now_ns;
	return !job || ocsd_routes_due(job, wait->node, wait->after);
}

static void refuse_gone(struct ocsd_client *client, int64_t id, uint32_t job)
{
	struct json_object *extra = json_object_new_object();

	ocs_field_add_bool(extra, OCS_FIELD_GONE, true);
	ocsd_refuse(client, id, OCS_ERROR, extra, "job %u has left this allocation", job);
}

static void routes_answer(struct ocsd *d, struct ocsd_pending_reply *reply)
{
	const struct routes_reply *wait = (const struct routes_reply *)reply;
	const struct ocsd_job *job = job_of(d, wait);

	if (job)
		ocsd_reply(reply->client, reply->id, ocsd_routes_word(job));
	else
		refuse_gone(reply->client, reply->id, wait->job);
}

static void routes_drop(struct ocsd *d, struct ocsd_pending_reply *reply)
{
	(void)d;
	(void)reply;
}

void ocsd_op_routes(struct ocsd *d, struct ocsd_client *client, int64_t id,
		    struct json_object *request)
{
	static const struct ocsd_reply_kind kind = { routes_due, routes_answer, routes_drop };
	const char *name = ocs_field_text(request, OCS_FIELD_NODE, NULL);
	struct routes_reply asked = { .node = -1 }, *wait;
	struct ocs_error err;
	struct ocsd_job *job;
	int64_t after = 0;

	if (ocsd_request_job(client, id, request, &asked.job, &asked.epoch))
		return;
	job = job_of(d, &asked);
	if (!job) {
		refuse_gone(client, id, asked.job);
		return;
	}
	asked.node = name ? ocsd_job_node(job, name) : -1;
	if (asked.node < 0 || !job->menu || !job->menu->routes ||
	    (ocs_field_has(request, OCS_FIELD_AFTER) &&
	     !ocs_field_within(request, OCS_FIELD_AFTER, INT64_MAX, &after))) {
		ocsd_refuse(client, id, OCS_USAGE, NULL,
			    "routes needs a node of a job on rails with \"tcp\", and a revision");
		return;
	}
	if (ocs_field_has(request, OCS_FIELD_MACS) &&
	    ocsd_forward_announce(job, name, request, &err)) {
		ocsd_refuse(client, id, err.code, NULL, "%s", err.text);
		return;
	}
	asked.after = (uint64_t)after;
	ocsd_routes_done(d, job, asked.node, asked.after);
	wait = ocs_calloc(1, sizeof(*wait));
	*wait = asked;
	ocsd_reply_later(d, &wait->reply, &kind, client, id);
	d->replies.due = true;
}
