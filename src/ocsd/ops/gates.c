/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Operation gates: what the controller of a job in a region has seen of its all-to-alls, for `show`.  It is the
 * user's word: nothing follows from it, and only what is checked here is kept. */

#include "src/ocsd/jobs/allocation.h"
#include "src/ocsd/ops/operations.h"
#include "src/ocsd/protocol/connection.h"
#include "src/ocsd/protocol/controller.h"
#include "src/ocsd/state/menus.h"

#include "src/protocol/fields.h"
#include "src/protocol/names.h"
#include "src/util/net.h"

#include <json-c/json.h>
#include <math.h>
#include <string.h>

#define NUMBER_MAX 1e15
#define LAYERS_MAX 1024
#define METHOD_MAX 16
#define TOP_MAX 8

/* A number from 0 to MOST. */
static bool number_read(struct json_object *json, double most, double *value)
{
	if (!json_object_is_type(json, json_type_int) &&
	    !json_object_is_type(json, json_type_double))
		return false;
	*value = json_object_get_double(json);
	return isfinite(*value) && *value >= 0 && *value <= most;
}

/* A copy of the matrix TOKENS of N servers, or NULL. */
static struct json_object *tokens_copy(struct json_object *tokens, int n)
{
	struct json_object *copy = json_object_new_array();
	bool right = json_object_is_type(tokens, json_type_array) &&
		     json_object_array_length(tokens) == (size_t)n;

	for (int i = 0; right && i < n; i++) {
		struct json_object *from = json_object_array_get_idx(tokens, (size_t)i);
		struct json_object *row = json_object_new_array();
		double value;

		json_object_array_add(copy, row);
		right = json_object_is_type(from, json_type_array) &&
			json_object_array_length(from) == (size_t)n;
		for (int j = 0; right && j < n; j++) {
			right = number_read(json_object_array_get_idx(from, (size_t)j), NUMBER_MAX,
					    &value);
			if (right)
				json_object_array_add(
					row, json_object_new_int64((int64_t)(value + 0.5)));
		}
	}
	if (right)
		return copy;
	json_object_put(copy);
	return NULL;
}

/* A word of lower case letters. */
static bool method_valid(const char *method)
{
	return *method && strlen(method) <= METHOD_MAX &&
	       !method[strspn(method, "abcdefghijklmnopqrstuvwxyz")];
}

/* A copy of what was foretold of one layer, or NULL. */
static struct json_object *layer_copy(struct json_object *from)
{
	struct json_object *copy = json_object_new_object(), *list = json_object_new_array();
	const char *method = ocs_field_text(from, OCS_FIELD_METHOD, "");
	size_t count;
	struct json_object *top = ocs_field_array(from, OCS_FIELD_TOP, &count);
	int64_t layer = 0;
	double value = 0;
	bool right = ocs_field_within(from, OCS_FIELD_LAYER, LAYERS_MAX - 1, &layer) &&
		     method_valid(method) && count <= TOP_MAX &&
		     number_read(ocs_field(from, OCS_FIELD_DIFFERENCE), 2, &value);

	ocs_field_add_number(copy, OCS_FIELD_LAYER, layer);
	ocs_field_add_text(copy, OCS_FIELD_METHOD, method);
	json_object_object_add(copy, OCS_FIELD_DIFFERENCE, json_object_new_double(value));
	json_object_object_add(copy, OCS_FIELD_TOP, list);
	for (size_t k = 0; right && k < count; k++) {
		right = number_read(json_object_array_get_idx(top, k), 1, &value);
		json_object_array_add(list, json_object_new_double(value));
	}
	if (right)
		return copy;
	json_object_put(copy);
	return NULL;
}

/* The step that SEEN says. */
static bool step_copy(struct json_object *seen, struct json_object *copy)
{
	int64_t layer, microbatch;

	if (!ocs_field_within(seen, OCS_FIELD_LAYER, LAYERS_MAX - 1, &layer) ||
	    !ocs_field_within(seen, OCS_FIELD_MICROBATCH, INT64_MAX, &microbatch))
		return false;
	ocs_field_add_number(copy, OCS_FIELD_LAYER, layer);
	ocs_field_add_number(copy, OCS_FIELD_MICROBATCH, microbatch);
	ocs_field_add_bool(copy, OCS_FIELD_BACKWARD, ocs_field_true(seen, OCS_FIELD_BACKWARD));
	ocs_field_add_bool(copy, OCS_FIELD_SECOND, ocs_field_true(seen, OCS_FIELD_SECOND));
	return true;
}

/* A copy of SEEN with what is known of it, or NULL: something of it makes no sense. */
static struct json_object *seen_copy(struct json_object *seen, int servers)
{
	struct json_object *copy = json_object_new_object(), *layers = json_object_new_array();
	struct json_object *tokens = tokens_copy(ocs_field(seen, OCS_FIELD_TOKENS), servers);
	size_t count;
	struct json_object *list = ocs_field_array(seen, OCS_FIELD_LAYERS, &count);
	double took, rate;
	bool right = tokens && count <= LAYERS_MAX && step_copy(seen, copy);

	json_object_object_add(copy, OCS_FIELD_TOKENS, tokens);
	json_object_object_add(copy, OCS_FIELD_LAYERS, layers);
	if (number_read(ocs_field(seen, OCS_FIELD_TOOK_MS), NUMBER_MAX, &took) &&
	    number_read(ocs_field(seen, OCS_FIELD_RATE), NUMBER_MAX, &rate)) {
		json_object_object_add(copy, OCS_FIELD_TOOK_MS, json_object_new_double(took));
		json_object_object_add(copy, OCS_FIELD_RATE, json_object_new_double(rate));
	}
	for (size_t l = 0; right && l < count; l++) {
		struct json_object *layer = layer_copy(json_object_array_get_idx(list, l));

		right = layer != NULL;
		if (layer)
			json_object_array_add(layers, layer);
	}
	if (right)
		return copy;
	json_object_put(copy);
	return NULL;
}

/* Keeps ENTRY, of one group; false: it makes no sense. */
static bool entry_take(struct ocsd_menu *menu, struct json_object *entry)
{
	struct json_object *seen;
	int64_t group;

	if (!ocs_field_within(entry, OCS_FIELD_GROUP, menu->nrails - 1, &group))
		return false;
	seen = seen_copy(ocs_field(entry, OCS_FIELD_SEEN), menu->groups.servers);
	if (!seen)
		return false;
	json_object_put(menu->rails[group].seen);
	menu->rails[group].seen = seen;
	return true;
}

void ocsd_op_gates(struct ocsd *d, struct ocsd_client *client, int64_t id,
		   struct json_object *request)
{
	struct ocsd_job *job = ocsd_job_find(d, ocs_field_job(request), ocs_field_epoch(request));
	size_t count;
	struct json_object *groups = ocs_field_array(request, OCS_FIELD_GROUPS, &count);
	bool right = ocsd_menu_region(job->menu) && count > 0;
	int ms = ocsd_controller_report_ms(job);

	if (ms) {
		struct json_object *extra = json_object_new_object();

		ocs_field_add_number(extra, OCS_FIELD_RETRY_MS, ms);
		ocsd_refuse(client, id, OCS_NOT_NOW, extra, "busy, try again in %d ms", ms);
		return;
	}
	job->menu->seen_ns = ocs_now_ns();
	for (size_t i = 0; right && i < count; i++)
		right = entry_take(job->menu, json_object_array_get_idx(groups, i));
	if (right)
		ocsd_reply(client, id, NULL);
	else
		ocsd_refuse(client, id, OCS_USAGE, NULL,
			    "gates needs groups: [{group, seen}...], each seen with layer, "
			    "microbatch and tokens of all servers of a group in a region");
}
