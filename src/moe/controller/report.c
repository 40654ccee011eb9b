/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* What gates said and all-to-alls took goes to ocsd now and then (operation gates), for `ocsctl show region`. */

#include "src/moe/controller/controller.h"

#include <json-c/json.h>

#include "src/protocol/client.h"
#include "src/protocol/fields.h"
#include "src/protocol/names.h"

#define PERIOD_S 1
#define BYTES_MOST 250000 /* of a line; what does not fit waits for the next one */
#define CELL_BYTES 8	  /* of a number in it, about */
#define SERVERS_MOST 256  /* whose matrix is sure to fit into a request of ocsd, 1 MiB */

void report_note(struct group *group, double took)
{
	group->seen = group->current;
	group->took = took;
	group->seen_new = true;
}

static struct json_object *tokens_json(const struct ocs_moe_demand *demand)
{
	struct json_object *rows = json_object_new_array();

	for (int i = 0; i < demand->n; i++) {
		struct json_object *row = json_object_new_array();

		for (int j = 0; j < demand->n; j++)
			json_object_array_add(
				row, json_object_new_int64(
					     (int64_t)(demand->tokens[i * demand->n + j] + 0.5)));
		json_object_array_add(rows, row);
	}
	return rows;
}

/* How well each layer that has been judged was foretold. */
static struct json_object *layers_json(const struct group *group)
{
	struct json_object *layers = json_object_new_array();

	for (int l = 0; l < group->controller->layers; l++) {
		struct json_object *row, *top;
		enum ocs_moe_method method;
		struct ocs_moe_error error;

		if (!ocs_moe_control_foretold(group->control, l, &method, &error))
			continue;
		row = json_object_new_object();
		top = json_object_new_array();
		ocs_field_add_number(row, OCS_FIELD_LAYER, l);
		ocs_field_add_text(row, OCS_FIELD_METHOD, ocs_moe_method_name(method));
		json_object_object_add(row, OCS_FIELD_DIFFERENCE,
				       json_object_new_double(error.difference));
		for (int k = 0; k < OCS_MOE_TOP; k++)
			json_object_array_add(top, json_object_new_double(error.top[k]));
		json_object_object_add(row, OCS_FIELD_TOP, top);
		json_object_array_add(layers, row);
	}
	return layers;
}

/* The last all-to-all of GROUP; NULL: its rows are not there. */
static struct json_object *seen_json(const struct group *group)
{
	const struct ocs_moe_demand *demand = ocs_moe_control_matrix(group->control, &group->seen);
	struct json_object *seen;

	if (!demand)
		return NULL;
	seen = json_object_new_object();
	ocs_field_add_number(seen, OCS_FIELD_LAYER, group->seen.layer);
	ocs_field_add_number(seen, OCS_FIELD_MICROBATCH, group->seen.microbatch);
	ocs_field_add_bool(seen, OCS_FIELD_BACKWARD, group->seen.pass == OCS_MOE_BACKWARD);
	ocs_field_add_bool(seen, OCS_FIELD_SECOND, group->seen.second);
	json_object_object_add(seen, OCS_FIELD_TOKENS, tokens_json(demand));
	if (group->took >= 0) {
		json_object_object_add(seen, OCS_FIELD_TOOK_MS,
				       json_object_new_double(group->took * 1e3));
		json_object_object_add(seen, OCS_FIELD_RATE,
				       json_object_new_double(controller_rate(group->controller)));
	}
	json_object_object_add(seen, OCS_FIELD_LAYERS, layers_json(group));
	return seen;
}

/* Groups of which there is something new, from controller->report_next on, as many as go into a line. */
static struct json_object *groups_json(struct controller *controller)
{
	struct json_object *groups = json_object_new_array();
	size_t one = (size_t)controller->servers * (size_t)controller->servers * CELL_BYTES,
	       all = 0;

	for (int k = 0; k < controller->ngroups && (!all || all + one <= BYTES_MOST); k++) {
		int number = (controller->report_next + k) % controller->ngroups;
		struct group *group = &controller->groups[number];
		struct json_object *seen, *row;

		if (!group->seen_new)
			continue;
		group->seen_new = false;
		seen = seen_json(group);
		if (!seen)
			continue;
		row = json_object_new_object();
		ocs_field_add_number(row, OCS_FIELD_GROUP, number);
		json_object_object_add(row, OCS_FIELD_SEEN, seen);
		json_object_array_add(groups, row);
		all += one;
		if (all + one > BYTES_MOST)
			controller->report_next = number + 1;
	}
	return groups;
}

void report_send(struct controller *controller, double now)
{
	struct json_object *line, *groups;
	struct ocs_error err;

	if (!controller->client || controller->revoked || now < controller->report_at ||
	    controller->servers > SERVERS_MOST)
		return;
	controller->report_at = now + PERIOD_S;
	groups = groups_json(controller);
	if (!json_object_array_length(groups)) {
		json_object_put(groups);
		return;
	}
	line = ocs_request_job(OCS_OP_GATES, controller->job, controller->epoch);
	ocs_field_add_text(line, OCS_FIELD_KEY, controller->key);
	json_object_object_add(line, OCS_FIELD_GROUPS, groups);
	/* what is wrong with the connection shows where the next order needs it */
	ocs_client_send(controller->client, line, &err);
	json_object_put(line);
}
