/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* The controller as a client of ocsd. */

#include "src/moe/controller/controller.h"

#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "src/protocol/client.h"
#include "src/protocol/fields.h"
#include "src/protocol/names.h"
#include "src/util/text.h"

#define CONNECT_MS 500
#define PAUSE_S 1 /* between two attempts */

static void client_lose(struct controller *controller, double now)
{
	ocs_client_close(controller->client);
	controller->client = NULL;
	controller->seek_at = now + PAUSE_S;
	/* what was asked for is asked for again: a request says all circuits of its group */
	for (int g = 0; g < controller->ngroups; g++)
		controller->groups[g].sent = false;
}

/* Before the first all-to-all: what stands, which an earlier controller may have changed. */
static int circuits_ask(struct controller *controller, struct ocs_error *err)
{
	struct json_object *request = ocs_request_new(OCS_OP_SHOW), *reply, *rows, *row, *groups;
	char *number = ocs_asprintf("%u", controller->job);
	size_t count, ngroups = 0;
	int rc = 0;

	ocs_field_add_text(request, OCS_FIELD_WHAT, OCS_SHOW_REGION);
	ocs_field_add_text(request, OCS_FIELD_NAME, number);
	reply = ocs_client_call(controller->client, request, CONNECT_MS * 4, NULL, err);
	json_object_put(request);
	free(number);
	if (!reply)
		return -1;
	rows = ocs_field_array(reply, OCS_FIELD_REGION, &count);
	row = count == 1 ? json_object_array_get_idx(rows, 0) : NULL;
	groups = ocs_field_array(row, OCS_FIELD_GROUPS, &ngroups);
	if (ocs_field_epoch(row) != controller->epoch || ngroups != (size_t)controller->ngroups)
		rc = ocs_error_set(err, OCS_ERROR, "ocsd knows no groups of job %u",
				   controller->job);
	for (int g = 0; g < controller->ngroups && rc == 0; g++) {
		struct json_object *one = json_object_array_get_idx(groups, (size_t)g);
		int64_t seq = ocs_field_number(one, OCS_FIELD_SEQ, 0);
		struct ocs_region_circuits circuits;

		if (seq > controller->seq)
			controller->seq = seq;
		if (controller->groups[g].control)
			continue;
		rc = region_circuits_read(controller, one, &circuits, err);
		if (rc == 0)
			group_adopt(&controller->groups[g], &circuits);
	}
	json_object_put(reply);
	return rc;
}

void ocsd_seek(struct controller *controller, double now)
{
	struct ocs_error err;

	if (controller->client || controller->revoked || now < controller->seek_at)
		return;
	controller->client = ocs_client_open(controller->address, controller->ocsd_key,
					     controller->user, CONNECT_MS, &err);
	if (!controller->client || circuits_ask(controller, &err) < 0) {
		fprintf(stderr, "ocs-moe-controller: %s\n", err.text);
		client_lose(controller, now);
	}
}

/* What the groups did on predictions. */
static void predictions_add(const struct controller *controller, struct json_object *line)
{
	int64_t provisioned = 0, mispredicted = 0;

	for (int g = 0; g < controller->ngroups; g++) {
		const struct ocs_moe_control_count *count;

		if (!controller->groups[g].control)
			continue;
		count = ocs_moe_control_count(controller->groups[g].control);
		provisioned += count->predicted;
		mispredicted += count->mispredicted;
	}
	ocs_field_add_number(line, OCS_FIELD_PROVISIONED, provisioned);
	ocs_field_add_number(line, OCS_FIELD_MISPREDICTED, mispredicted);
}

void ocsd_ask(struct group *group)
{
	struct controller *controller = group->controller;
	struct json_object *line =
		ocs_request_job(OCS_OP_REGION, controller->job, controller->epoch);
	struct json_object *groups = json_object_new_array(), *row = json_object_new_object();
	struct json_object *list = json_object_new_array();
	struct ocs_error err;

	for (size_t i = 0; i < group->target.count; i++) {
		const struct ocs_region_circuit *one = &group->target.items[i];
		const int numbers[4] = { one->a, one->a_nic, one->b, one->b_nic };
		struct json_object *circuit = json_object_new_array();

		for (int n = 0; n < 4; n++)
			json_object_array_add(circuit, json_object_new_int(numbers[n]));
		json_object_array_add(list, circuit);
	}
	ocs_field_add_text(line, OCS_FIELD_KEY, controller->key);
	ocs_field_add_number(line, OCS_FIELD_SEQ, ++controller->seq);
	ocs_field_add_number(row, OCS_FIELD_GROUP, group->number);
	json_object_object_add(row, OCS_FIELD_CIRCUITS, list);
	json_object_array_add(groups, row);
	json_object_object_add(line, OCS_FIELD_GROUPS, groups);
	predictions_add(controller, line);
	group->sent = true;
	if (ocs_client_send(controller->client, line, &err) < 0)
		client_lose(controller, controller_now());
	else
		group->id_sent = ocs_field_number(line, OCS_FIELD_ID, 0);
	json_object_put(line);
}

static void revoked_take(struct controller *controller, const char *why)
{
	if (!controller->revoked)
		fprintf(stderr, "ocs-moe-controller: %s\n", why);
	controller->revoked = true;
	for (int g = 0; g < controller->ngroups; g++)
		if (controller->groups[g].control)
			ocs_moe_control_lost(controller->groups[g].control, 0);
}

static void reply_take(struct controller *controller, struct json_object *line, double now)
{
	int64_t id = ocs_field_number(line, OCS_FIELD_ID, -1);
	size_t count;
	struct json_object *rows = ocs_field_array(line, OCS_FIELD_GROUPS, &count);
	struct json_object *row = count == 1 ? json_object_array_get_idx(rows, 0) : NULL;
	const char *stage = ocs_field_text(row, OCS_FIELD_STAGE, "none");
	struct group *group = NULL;

	for (int g = 0; g < controller->ngroups; g++)
		if (controller->groups[g].sent && controller->groups[g].order &&
		    controller->groups[g].id_sent == id)
			group = &controller->groups[g];
	if (!group)
		return;
	if (ocs_field_true(line, OCS_FIELD_GONE))
		revoked_take(controller,
			     ocs_field_text(line, OCS_FIELD_ERROR, "the job has ended"));
	if (row && !ocs_field_has(row, OCS_FIELD_ERROR) && strcmp(stage, "verified") == 0)
		group_done(group, now);
	else
		group_failed(group, strcmp(stage, "none") == 0, now);
}

void ocsd_read(struct controller *controller, double now)
{
	struct ocs_error err = { 0 };
	struct json_object *line;

	while (controller->client && (line = ocs_client_next(controller->client, 0, &err))) {
		if (strcmp(ocs_field_text(line, OCS_FIELD_EVENT, ""), OCS_EVENT_REVOKED) == 0)
			revoked_take(controller,
				     ocs_field_text(line, OCS_FIELD_REASON, "the job has ended"));
		else
			reply_take(controller, line, now);
		json_object_put(line);
	}
	if (controller->client && err.code == OCS_UNREACHABLE)
		client_lose(controller, now);
}
