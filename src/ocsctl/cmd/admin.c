/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include <json-c/json.h>
#include <pwd.h>
#include <string.h>
#include <unistd.h>

#include "src/protocol/client.h"
#include "src/fabric/fabric.h"
#include "src/ocsctl/ocsctl.h"
#include "src/ocsctl/output/table.h"
#include "src/protocol/fields.h"
#include "src/protocol/names.h"

/* A read-back of every switch may take as long as the slowest of them. */
#define RECONCILE_MS 120000

static struct json_object *ocsd_ask(const struct ocs_ctl_args *args, struct json_object *request,
				    int timeout_ms, struct ocs_error *err)
{
	struct ocs_client *client;
	struct json_object *reply;

	if (ocs_ctl_transaction(args, request, err))
		return NULL;
	client = ocs_ctl_connect(args, NULL, err);
	if (!client)
		return NULL;
	reply = ocs_client_call(client, request, timeout_ms, NULL, err);
	ocs_client_close(client);
	return reply;
}

/* A drain without a reason at least says who did it. */
static void add_reason(struct json_object *request, const char *reason, bool needed)
{
	const struct passwd *user = reason || !needed ? NULL : getpwuid(getuid());
	char text[128];

	if (!reason && !needed)
		return;
	snprintf(text, sizeof(text), "by %s", user ? user->pw_name : "an administrator");
	ocs_field_add_text(request, OCS_FIELD_REASON, reason ? reason : text);
}

/* What became of NAME, by REPLY. */
static void drain_print(const char *op, const char *kind, const char *name,
			struct json_object *reply)
{
	const char *tested = ocs_ctl_string(reply, OCS_FIELD_TESTED, "");
	const char *kept_out = ocs_ctl_string(reply, OCS_FIELD_REASON, "");

	if (*tested)
		printf("self-test: %s\n", tested);
	if (!strcmp(op, OCS_OP_RESUME) && *kept_out)
		printf("%s %s is resumed, but stays out of service: %s\n", kind, name, kept_out);
	else
		printf("%s %s is %s\n", kind, name,
		       !strcmp(op, OCS_OP_RESUME) ? "in service" :
		       !strcmp(op, OCS_OP_FAIL)	  ? "out of service, as failed" :
						    "drained");
}

int ocs_ctl_drain(const struct ocs_ctl_args *args, struct ocs_error *err)
{
	static const char *const kinds[] = { "cube", "node", "port", "switch", "xpu", NULL };
	const char *op = args->command->name, *kind = args->operands[0];
	const char *name = args->operands[1];
	struct json_object *request, *reply;
	size_t i = 0;

	while (kinds[i] && strcmp(kinds[i], kind) != 0)
		i++;
	if (!kinds[i])
		return ocs_error_set(err, OCS_USAGE, "%s: what is a '%s'? usage: ocsctl %s %s", op,
				     kind, op, args->command->operands);
	if (!strcmp(op, OCS_OP_FAIL) && strcmp(kind, "port") != 0)
		return ocs_error_set(err, OCS_USAGE,
				     "fail: only a port fails; 'ocsctl drain %s %s' keeps"
				     " new jobs off it",
				     kind, name);
	if (!strcmp(kind, "port") && !strchr(name, ':'))
		return ocs_error_set(err, OCS_USAGE, "%s: a port is written SWITCH:PORT, not '%s'",
				     op, name);
	if (!strcmp(kind, "xpu") && !strchr(name, ':'))
		return ocs_error_set(err, OCS_USAGE, "%s: an XPU is written CUBE:X,Y,Z, not '%s'",
				     op, name);
	request = ocs_request_new(op);
	ocs_field_add_text(request, OCS_FIELD_KIND, kind);
	ocs_field_add_text(request, OCS_FIELD_NAME, name);
	add_reason(request, args->reason, strcmp(op, OCS_OP_RESUME) != 0);
	reply = ocsd_ask(args, request, OCS_CTL_CALL_MS, err);
	json_object_put(request);
	if (!reply)
		return -1;
	if (args->json) {
		/* What the reply adds comes along. */
		ocs_field_add_text(reply, OCS_FIELD_KIND, kind);
		ocs_field_add_text(reply, OCS_FIELD_NAME, name);
		ocs_field_add_bool(reply, OCS_FIELD_DRAINED, strcmp(op, OCS_OP_RESUME) != 0);
		ocs_ctl_print_reply(reply);
	} else {
		drain_print(op, kind, name, reply);
	}
	json_object_put(reply);
	return 0;
}

int ocs_ctl_reconcile(const struct ocs_ctl_args *args, struct ocs_error *err)
{
	struct json_object *request = ocs_request_new(OCS_OP_RECONCILE), *reply, *drift;

	reply = ocsd_ask(args, request, RECONCILE_MS, err);
	json_object_put(request);
	if (!reply)
		return -1;
	drift = ocs_field_array(reply, OCS_FIELD_DRIFT, NULL);
	if (args->json) {
		ocs_ctl_print_reply(reply);
	} else if (!ocs_ctl_length(drift)) {
		puts("every switch holds what it should");
	} else {
		struct ocs_text_table *table = ocs_text_table_create("SWITCH|>IN|>OUT|WHAT");

		for (size_t i = 0; i < ocs_ctl_length(drift); i++) {
			struct json_object *one = json_object_array_get_idx(drift, i);

			ocs_text_table_add(table, ocs_ctl_string(one, OCS_FIELD_SWITCH, NULL));
			ocs_text_table_add(table, ocs_ctl_string(one, OCS_FIELD_IN, NULL));
			ocs_text_table_add(table, ocs_ctl_string(one, OCS_FIELD_OUT, NULL));
			ocs_text_table_add(table, ocs_ctl_string(one, OCS_FIELD_WHAT, NULL));
		}
		ocs_text_table_print(table, stdout);
		ocs_text_table_destroy(table);
	}
	json_object_put(reply);
	return 0;
}
