/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include <json-c/json.h>
#include <string.h>
#include <time.h>

#include "src/protocol/client.h"
#include "src/config/config.h"
#include "src/ocsctl/ocsctl.h"
#include "src/protocol/fields.h"
#include "src/protocol/names.h"
#include "src/util/net.h"

/* The prolog's two operations.  They are idempotent, so a connection that is
 * lost, or a daemon that is not up yet, is tried again while --wait lasts. */

#define PAUSE_NS 500000000L
#define DEFAULT_APPLY_MS 300000

static struct json_object *request_new(const struct ocs_ctl_args *args, const char *op, long job)
{
	struct json_object *request = ocs_request_new(op);

	ocs_field_add_number(request, OCS_FIELD_JOB, job);
	ocs_field_add_number(request, OCS_FIELD_EPOCH, args->epoch);
	if (args->after)
		ocs_field_add_number(request, OCS_FIELD_AFTER, args->after);
	if (args->node)
		ocs_field_add_text(request, OCS_FIELD_NODE, args->node);
	return request;
}

/* One attempt.  *REFUSAL is the daemon's own answer where it gave one. */
static struct json_object *request_attempt(const struct ocs_ctl_args *args,
					   const struct ocs_config *config,
					   struct json_object *request, int timeout_ms,
					   struct json_object **refusal, struct ocs_error *err)
{
	struct ocs_client *client = ocs_ctl_connect(args, config, err);
	struct json_object *reply;

	*refusal = NULL;
	if (!client)
		return NULL;
	reply = ocs_client_call(client, request, timeout_ms, refusal, err);
	ocs_client_close(client);
	return reply;
}

static struct json_object *request_insist(const struct ocs_ctl_args *args,
					  const struct ocs_config *config,
					  struct json_object *request, int timeout_ms,
					  struct json_object **refusal, struct ocs_error *err)
{
	int64_t end = ocs_now_ns() + args->wait * 1000000000LL;
	struct timespec pause = { .tv_nsec = PAUSE_NS };

	for (;;) {
		int64_t left = (end - ocs_now_ns()) / 1000000;
		struct json_object *reply;

		reply = request_attempt(
			args, config, request,
			args->wait && left < timeout_ms ? (left > 100 ? left : 100) : timeout_ms,
			refusal, err);
		if (reply || err->code != OCS_UNREACHABLE || ocs_now_ns() + PAUSE_NS >= end)
			return reply;
		nanosleep(&pause, NULL);
	}
}

/* With --json the daemon's whole answer is printed, a refusal too: the prolog
 * hands it on and reads "gone" from it. */
static int command_perform(const struct ocs_ctl_args *args, const char *op, int timeout_ms,
			   const struct ocs_config *config, struct json_object **reply,
			   struct ocs_error *err)
{
	struct json_object *request, *refusal = NULL;
	long job;

	if (ocs_ctl_job_parse(args->operands[0], &job, err))
		return -1;
	request = request_new(args, op, job);
	if (ocs_ctl_transaction(args, request, err)) {
		json_object_put(request);
		return -1;
	}
	*reply = request_insist(args, config, request, timeout_ms, &refusal, err);
	json_object_put(request);
	if (args->json && (*reply || refusal))
		ocs_ctl_print_json(*reply ? *reply : refusal);
	json_object_put(refusal);
	return *reply ? 0 : -1;
}

/* A node of a cluster that reaches ocsd by --ocsd needs no ocs.yaml. */
static int open_config(const struct ocs_ctl_args *args, struct ocs_config **config,
		       struct ocs_error *err)
{
	*config = NULL;
	if (args->ocsd && !args->fabric)
		return 0;
	*config = ocs_ctl_config_open(args, err);
	return *config ? 0 : -1;
}

int ocs_ctl_apply(const struct ocs_ctl_args *args, struct ocs_error *err)
{
	struct json_object *reply = NULL;
	struct ocs_config *config;
	int rc;

	if (!args->node)
		return ocs_error_set(err, OCS_USAGE,
				     "apply: --node is missing: the node of the job that"
				     " asks");
	if (open_config(args, &config, err))
		return -1;
	rc = command_perform(args, OCS_OP_APPLY,
			     config ? config->timeouts.prolog_ms : DEFAULT_APPLY_MS, config, &reply,
			     err);
	if (!rc && !args->json)
		printf("job %s: %lld circuits verified\n", args->operands[0],
		       (long long)ocs_field_number(reply, OCS_FIELD_CIRCUITS, 0));
	json_object_put(reply);
	ocs_config_destroy(config);
	return rc;
}

int ocs_ctl_release(const struct ocs_ctl_args *args, struct ocs_error *err)
{
	struct json_object *reply = NULL, *pending;
	struct ocs_config *config;
	int rc;

	if (open_config(args, &config, err))
		return -1;
	rc = command_perform(args, OCS_OP_RELEASE,
			     config ? config->timeouts.prolog_ms : DEFAULT_APPLY_MS, config, &reply,
			     err);
	pending = ocs_field_array(reply, OCS_FIELD_PENDING, NULL);
	if (!rc && !args->json) {
		printf("job %s: released%s%s", args->operands[0], args->node ? " by " : "",
		       args->node ? args->node : "");
		for (size_t i = 0; i < ocs_ctl_length(pending); i++)
			printf("%s%s", i ? ", " : "; does not answer and is cut later: ",
			       json_object_get_string(json_object_array_get_idx(pending, i)));
		putchar('\n');
	}
	json_object_put(reply);
	ocs_config_destroy(config);
	return rc;
}

int ocs_ctl_prepare(const struct ocs_ctl_args *args, struct ocs_error *err)
{
	struct json_object *request, *demand = NULL, *reply;
	struct ocs_client *client;
	long job;

	if (ocs_ctl_job_parse(args->operands[0], &job, err))
		return -1;
	if (args->demand) {
		demand = ocs_ctl_read_json(args->demand, err);
		if (!demand)
			return -1;
	}
	request = ocs_request_new(OCS_OP_PREPARE);
	ocs_field_add_number(request, OCS_FIELD_JOB, job);
	ocs_field_add_text(request, OCS_FIELD_NODES, args->operands[1]);
	if (args->section)
		ocs_field_add_text(request, OCS_FIELD_SECTION, args->section);
	if (demand)
		json_object_object_add(request, OCS_FIELD_DEMAND, demand);
	client = ocs_ctl_transaction(args, request, err) ? NULL : ocs_ctl_connect(args, NULL, err);
	reply = client ? ocs_client_call(client, request, OCS_CTL_CALL_MS, NULL, err) : NULL;
	ocs_client_close(client);
	json_object_put(request);
	if (!reply)
		return -1;
	if (args->json)
		ocs_ctl_print_reply(reply);
	else
		printf("job %ld: %lld circuits are made on port set %lld\n", job,
		       (long long)ocs_field_number(reply, OCS_FIELD_CIRCUITS, 0),
		       (long long)ocs_field_number(reply, OCS_FIELD_SET, 0));
	json_object_put(reply);
	return 0;
}
