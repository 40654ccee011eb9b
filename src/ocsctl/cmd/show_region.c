/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* 'ocsctl show region': the circuits that stand in the groups of jobs with experts. */

#include <json-c/json.h>
#include <stdio.h>

#include "src/ocsctl/cmd/region.h"
#include "src/ocsctl/ocsctl.h"
#include "src/ocsctl/output/region_picture.h"
#include "src/ocsctl/what_if.h"
#include "src/protocol/fields.h"
#include "src/protocol/names.h"

#define WIDTH 160

/* The circuits of GROUP, [server, NIC, server, NIC] each; the caller destroys them. */
static struct ocs_moe_circuits *group_circuits(struct json_object *group, int servers)
{
	struct ocs_moe_circuits *circuits = ocs_moe_circuits_create(servers);
	struct json_object *list = ocs_field_array(group, OCS_FIELD_CIRCUITS, NULL);

	for (size_t k = 0; k < ocs_ctl_length(list); k++) {
		struct json_object *one = json_object_array_get_idx(list, k);
		int a, b;

		if (ocs_ctl_length(one) != 4)
			continue;
		a = json_object_get_int(json_object_array_get_idx(one, 0));
		b = json_object_get_int(json_object_array_get_idx(one, 2));
		if (a >= 0 && a < servers && b >= 0 && b < servers && a != b)
			ocs_moe_circuits_add(circuits, a, b, 1);
	}
	return circuits;
}

static void group_print(struct json_object *group, int servers)
{
	struct json_object *nodes = ocs_field_array(group, OCS_FIELD_NODES, NULL);
	struct ocs_moe_circuits *circuits = group_circuits(group, servers);

	printf("group %s on %s, %s", ocs_ctl_string(group, OCS_FIELD_GROUP, "?"),
	       ocs_ctl_string(group, OCS_FIELD_SWITCH, "no switch"),
	       ocs_ctl_string(group, OCS_FIELD_STAGE, "?"));
	if (ocs_field_text(group, OCS_FIELD_ERROR, NULL))
		printf(": %s", ocs_field_text(group, OCS_FIELD_ERROR, NULL));
	printf("; servers");
	for (size_t k = 0; k < ocs_ctl_length(nodes); k++)
		printf(" %zu %s%s", k, json_object_get_string(json_object_array_get_idx(nodes, k)),
		       k + 1 < ocs_ctl_length(nodes) ? "," : "");
	putchar('\n');
	ocs_region_picture_print(&(struct ocs_region_picture){ .circuits = circuits }, WIDTH,
				 ocs_ctl_colour(), stdout);
	ocs_moe_circuits_destroy(circuits);
}

static double number_of(struct json_object *one, const char *name)
{
	return json_object_get_double(ocs_field(one, name));
}

/* What its changes have been. */
static void changes_print(struct json_object *one)
{
	printf("%s changes (%.1f a second now), %s failed, %s refused",
	       ocs_ctl_string(one, OCS_FIELD_CHANGES, "0"), number_of(one, OCS_FIELD_RATE),
	       ocs_ctl_string(one, OCS_FIELD_FAILED, "0"),
	       ocs_ctl_string(one, OCS_FIELD_REFUSED, "0"));
	if (number_of(one, OCS_FIELD_CHANGES) > 0)
		printf("; circuits cut or made %s, kept %s",
		       ocs_ctl_string(one, OCS_FIELD_CIRCUITS, "0"),
		       ocs_ctl_string(one, OCS_FIELD_KEPT, "0"));
	if (json_object_is_type(ocs_field(one, OCS_FIELD_CHANGE_MS), json_type_double))
		printf("; a change takes %.1f ms", number_of(one, OCS_FIELD_CHANGE_MS));
	if (number_of(one, OCS_FIELD_WAITED_MS) > 0)
		printf("; ranks have waited %s ms", ocs_ctl_string(one, OCS_FIELD_WAITED_MS, "0"));
	putchar('\n');
}

void ocs_ctl_show_region_print(struct json_object *list)
{
	for (size_t k = 0; k < ocs_ctl_length(list); k++) {
		struct json_object *one = json_object_array_get_idx(list, k);
		struct json_object *groups = ocs_field_array(one, OCS_FIELD_GROUPS, NULL);
		int64_t servers = ocs_field_number(one, OCS_FIELD_SERVERS, 0);

		printf("%sjob %s, %s, %s: %s servers of %s optical NICs in each group\n",
		       k ? "\n" : "", ocs_ctl_string(one, OCS_FIELD_JOB, "?"),
		       ocs_ctl_string(one, OCS_FIELD_SHAPE, "no shape"),
		       ocs_ctl_string(one, OCS_FIELD_MODE, "?"),
		       ocs_ctl_string(one, OCS_FIELD_SERVERS, "?"),
		       ocs_ctl_string(one, OCS_FIELD_NICS, "?"));
		changes_print(one);
		for (size_t g = 0;
		     servers > 0 && servers <= OCS_MOE_SERVERS_MAX && g < ocs_ctl_length(groups);
		     g++)
			group_print(json_object_array_get_idx(groups, g), (int)servers);
	}
	if (!ocs_ctl_length(list))
		puts("no job in a region");
}
