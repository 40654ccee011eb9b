/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Operation reconcile: every switch is read, and what was not as it should be is told. */

#include "src/ocsd/ops/operations.h"
#include "src/ocsd/protocol/connection.h"
#include "src/ocsd/protocol/pending_reply.h"

#include "src/protocol/names.h"
#include "src/util/text.h"

#include <json-c/json.h>

struct reconcile_reply {
	struct ocsd_pending_reply reply;
	size_t from; /* rows of d->replies.drift that were there before */
};

static bool reconcile_due(struct ocsd *d, const struct ocsd_pending_reply *reply, int64_t now_ns)
{
	(void)reply;
	(void)now_ns;
	for (int i = 0; i < d->fabric->nswitches; i++) {
		const struct ocsd_switch *sw = &d->switches[i];

		if (sw->reconciling || sw->busy == OCSD_APPLY ||
		    (sw->dirty && sw->status.state == OCSD_UP))
			return false;
	}
	return true;
}

/* A switch may have been read more than once meanwhile. */
static bool drift_has(struct json_object *drift, struct json_object *row)
{
	for (size_t i = 0; i < json_object_array_length(drift); i++)
		if (json_object_equal(json_object_array_get_idx(drift, i), row))
			return true;
	return false;
}

static void reconcile_answer(struct ocsd *d, struct ocsd_pending_reply *reply)
{
	const struct reconcile_reply *wait = (const struct reconcile_reply *)reply;
	struct json_object *answer = json_object_new_object(), *drift = json_object_new_array();

	for (size_t i = wait->from; i < json_object_array_length(d->replies.drift); i++) {
		struct json_object *row = json_object_array_get_idx(d->replies.drift, i);

		if (!drift_has(drift, row))
			json_object_array_add(drift, json_object_get(row));
	}
	json_object_object_add(answer, OCS_FIELD_DRIFT, drift);
	ocsd_reply(reply->client, reply->id, answer);
}

static void reconcile_drop(struct ocsd *d, struct ocsd_pending_reply *reply)
{
	(void)reply;
	if (--d->replies.nreconciles)
		return;
	json_object_put(d->replies.drift);
	d->replies.drift = NULL;
}

void ocsd_op_reconcile(struct ocsd *d, struct ocsd_client *client, int64_t id,
		       struct json_object *request)
{
	static const struct ocsd_reply_kind kind = { reconcile_due, reconcile_answer,
						     reconcile_drop };
	struct reconcile_reply *wait = ocs_calloc(1, sizeof(*wait));

	(void)request;
	if (!d->replies.nreconciles++)
		d->replies.drift = json_object_new_array();
	wait->from = json_object_array_length(d->replies.drift);
	ocsd_reply_later(d, &wait->reply, &kind, client, id);
	for (int i = 0; i < d->fabric->nswitches; i++) {
		d->switches[i].poll.read_wanted = true;
		d->switches[i].reconciling = true;
	}
}
