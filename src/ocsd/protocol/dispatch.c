/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Requests: who may ask what, and what transactions have to do with it. */

#include "src/ocsd/protocol/controller.h"
#include "src/ocsd/protocol/dispatch.h"
#include "src/ocsd/protocol/connection.h"
#include "src/ocsd/protocol/pending_reply.h"
#include "src/ocsd/protocol/transaction.h"

#include "src/protocol/fields.h"
#include "src/protocol/names.h"
#include "src/util/net.h"

#include <json-c/json.h>
#include <string.h>

static const struct ocsd_operation_entry *find_operation(const struct ocsd *d, const char *name,
							 struct json_object *request)
{
	const char *what = ocs_field_text(request, OCS_FIELD_WHAT, "");

	for (const struct ocsd_operation_entry *at = d->server.operations; at->name; at++)
		if (strcmp(name, at->name) == 0 && (!at->what || strcmp(what, at->what) == 0))
			return at;
	return NULL;
}

static void refuse_role(struct ocsd_client *client, int64_t id,
			const struct ocsd_operation_entry *operation)
{
	ocsd_refuse(client, id, OCS_ERROR, NULL, "only administrators of ocsd may %s %s",
		    operation->what ? "see" : "ask for",
		    operation->what ? operation->what : operation->name);
}

int ocsd_request_job(struct ocsd_client *client, int64_t id, struct json_object *request,
		     uint32_t *job, uint64_t *epoch)
{
	struct ocs_error err;

	if (!ocs_field_need_job(request, job, epoch, &err))
		return 0;
	ocsd_refuse(client, id, err.code, NULL, "%s", err.text);
	return -1;
}

void ocsd_request(struct ocsd *d, struct ocsd_client *client, struct json_object *request)
{
	const char *op = ocs_field_text(request, OCS_FIELD_OP, NULL);
	const struct ocsd_operation_entry *operation;
	int64_t id = ocs_field_number(request, OCS_FIELD_ID, 0);

	if (!op || !json_object_is_type(ocs_field(request, OCS_FIELD_ID), json_type_int)) {
		ocsd_refuse(client, id, OCS_USAGE, NULL,
			    "a request has a string op and a number id");
		return;
	}
	if (d->life.standby) {
		ocsd_refuse(client, id, OCS_NOT_NOW, NULL, "%s", d->life.standby);
		return;
	}
	operation = find_operation(d, op, request);
	if (!operation) {
		ocsd_refuse(client, id, OCS_USAGE, NULL, "ocsd knows no operation %s", op);
	} else if (!ocsd_role_has(d, *ocsd_client_who(client), operation->role)) {
		refuse_role(client, id, operation);
	} else if (operation->role == OCSD_CONTROLLER &&
		   !ocsd_controller_admit(d, client, id, request)) {
		/* refused */
	} else if (operation->change == OCSD_LOOKS ||
		   ocsd_transaction_begin(d, client, id, request,
					  operation->change == OCSD_TELLS)) {
		operation->run(d, client, id, request);
		/* In the order of the requests, as far as they can be answered now. */
		if (d->replies.due)
			ocsd_replies_answer(d, ocs_now_ns());
		ocsd_transaction_end(d);
	}
}
