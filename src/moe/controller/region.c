/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* What the job has: region.json of its directory. */

#include "src/moe/controller/controller.h"

#include <json-c/json.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "src/fold/shape.h"
#include "src/protocol/fields.h"
#include "src/protocol/names.h"
#include "src/util/text.h"

#define FILE_MAX (16 << 20)
#define SWITCHING 0.05 /* s, until the first circuit carries, and for each further one */
#define SWITCHING_EACH 0.001
#define SERVERS_MAX 4096
#define NICS_MAX 64
#define ENDS_MAX (1 << 20) /* NICs of all groups together */

int region_circuits_read(const struct controller *controller, struct json_object *row,
			 struct ocs_region_circuits *circuits, struct ocs_error *err)
{
	size_t count;
	struct json_object *list = ocs_field_array(row, OCS_FIELD_CIRCUITS, &count);

	memset(circuits, 0, sizeof(*circuits));
	for (size_t i = 0; i < count; i++) {
		struct json_object *one = json_object_array_get_idx(list, i);
		int numbers[4] = { -1, -1, -1, -1 };

		for (size_t n = 0; n < 4 && json_object_is_type(one, json_type_array); n++) {
			int64_t value = json_object_get_int64(json_object_array_get_idx(one, n));

			numbers[n] = value < 0 || value > INT_MAX ? -1 : (int)value;
		}
		ocs_region_circuits_add(circuits, numbers[0], numbers[1], numbers[2], numbers[3]);
	}
	if (ocs_region_circuits_check(circuits, controller->servers, controller->nics, err) == 0)
		return 0;
	ocs_region_circuits_free(circuits);
	return -1;
}

static int group_read(struct controller *controller, int number, struct json_object *row,
		      struct ocs_error *err)
{
	struct group *group = &controller->groups[number];
	size_t ends = (size_t)controller->servers * (size_t)controller->nics, servers;
	struct json_object *list = ocs_field_array(row, OCS_REGION_ADDRESSES, &servers);

	group->controller = controller;
	group->number = number;
	group->address = ocs_calloc(ends + 1, sizeof(*group->address));
	group->id = ocs_calloc(ends + 1, sizeof(*group->id));
	group->peer = ocs_calloc(ends + 1, sizeof(*group->peer));
	sockets_clear(&group->sockets);
	for (size_t e = 0; e < ends; e++) {
		size_t server = e / (size_t)controller->nics;
		struct json_object *of = NULL, *one = NULL;

		if (server < servers)
			of = json_object_array_get_idx(list, server);
		if (json_object_is_type(of, json_type_array))
			one = json_object_array_get_idx(of, e % (size_t)controller->nics);
		group->address[e] = ocs_strdup(one ? json_object_get_string(one) : "");
	}
	return region_circuits_read(controller, row, &group->stand, err);
}

/* What an exchange takes: as the site has measured it for all circuits at once, MS, else a likely time. */
static void switching_set(struct controller *controller, double ms)
{
	controller->first = ms > 0 ? ms / 1000 : SWITCHING;
	controller->each = ms > 0 ? 0 : SWITCHING_EACH;
}

static int text_read(struct controller *controller, struct json_object *json, struct ocs_error *err)
{
	int64_t servers = ocs_field_number(json, OCS_FIELD_SERVERS, 0);
	int64_t nics = ocs_field_number(json, OCS_FIELD_NICS, 0);
	size_t groups, numa;
	struct json_object *list = ocs_field_array(json, OCS_FIELD_GROUPS, &groups), *nodes;

	controller->job = ocs_field_job(json);
	controller->epoch = ocs_field_epoch(json);
	if (!controller->job || servers < 1 || servers > SERVERS_MAX || nics < 1 ||
	    nics > NICS_MAX || !groups || groups > SERVERS_MAX ||
	    servers * nics * (int64_t)groups > ENDS_MAX)
		return ocs_error_set(err, OCS_USAGE, "it describes no job in a region");
	controller->servers = (int)servers;
	controller->nics = (int)nics;
	controller->ngroups = (int)groups;
	controller->packets = (double)ocs_field_number(json, OCS_REGION_PACKET_NICS, 1);
	controller->speed = (double)ocs_field_number(json, OCS_REGION_SPEED, 100000);
	if (controller->first < 0)
		switching_set(controller, (double)ocs_field_number(json, OCS_FIELD_CHANGE_MS, 0));
	if (ocs_moe_wish_parse(ocs_field_text(json, OCS_FIELD_MOE, NULL), &controller->wish, err))
		return -1;
	controller->numa = ocs_calloc((size_t)nics, sizeof(*controller->numa));
	nodes = ocs_field_array(json, OCS_REGION_NUMA, &numa);
	for (size_t i = 0; i < numa && i < (size_t)nics; i++) {
		int node = json_object_get_int(json_object_array_get_idx(nodes, i));

		controller->numa[i] = node < 0 ? 0 : node;
	}
	controller->groups = ocs_calloc(groups, sizeof(*controller->groups));
	for (size_t g = 0; g < groups; g++)
		if (group_read(controller, (int)g, json_object_array_get_idx(list, g), err))
			return -1;
	return 0;
}

int region_read(struct controller *controller, const char *path, struct ocs_error *err)
{
	char *text = ocs_file_read(path, FILE_MAX, NULL, err);
	struct json_object *json;
	int rc;

	if (!text)
		return -1;
	json = json_tokener_parse(text);
	rc = text_read(controller, json, err);
	if (rc < 0)
		ocs_error_prefix(err, "%s", path);
	json_object_put(json);
	free(text);
	return rc;
}

void region_free(struct controller *controller)
{
	for (int g = 0; controller->groups && g < controller->ngroups; g++)
		group_free(&controller->groups[g]);
	free(controller->groups);
	free(controller->numa);
}
