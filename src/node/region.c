/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* region.json: what the controller of a job with experts has to know of its groups. */

#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

#include "src/fabric/fabric.h"
#include "src/node/node.h"
#include "src/place/region_circuits.h"
#include "src/place/region_groups.h"
#include "src/protocol/fields.h"
#include "src/protocol/names.h"
#include "src/util/text.h"

/* The addresses of the optical NICs of SERVER, "" where it has none. */
static struct json_object *addresses_json(const struct ocs_section *section, int server)
{
	struct json_object *list = json_object_new_array();

	for (int i = 0; i < section->degree; i++) {
		char text[OCS_ADDRESS_TEXT] = "";

		if (ocs_section_interface_address(section, server, i, text) < 0)
			text[0] = '\0';
		json_object_array_add(list, json_object_new_string(text));
	}
	return list;
}

static struct json_object *group_json(const struct ocs_fabric *fabric,
				      const struct ocs_section *section, char *const *nodes,
				      const struct ocs_region_layout *layout, int number)
{
	struct json_object *row = json_object_new_object(), *names = json_object_new_array();
	struct json_object *addresses = json_object_new_array();

	ocs_field_add_number(row, OCS_FIELD_GROUP, number);
	for (int s = 0; s < layout->servers; s++) {
		const char *name = nodes[number * layout->servers + s];
		const struct ocs_node *node = ocs_fabric_node(fabric, name);

		json_object_array_add(names, json_object_new_string(name));
		json_object_array_add(addresses, node ? addresses_json(section, node->server) :
							json_object_new_array());
	}
	json_object_object_add(row, OCS_FIELD_NODES, names);
	json_object_object_add(row, OCS_REGION_ADDRESSES, addresses);
	return row;
}

/* The circuits with which group ROW begins, of ocsd's REPLY. */
static void circuits_add(struct json_object *row, struct json_object *reply, int number)
{
	size_t count;
	struct json_object *groups =
		ocs_field_array(ocs_field(reply, OCS_FIELD_REGION), OCS_FIELD_GROUPS, &count);
	struct json_object *one =
		(size_t)number < count ? json_object_array_get_idx(groups, (size_t)number) : NULL;
	struct json_object *circuits = ocs_field_array(one, OCS_FIELD_CIRCUITS, NULL);

	json_object_object_add(row, OCS_FIELD_CIRCUITS,
			       circuits ? json_object_get(circuits) : json_object_new_array());
}

struct json_object *ocs_node_region(const struct ocs_node_request *request,
				    const struct ocs_fabric *fabric,
				    const struct ocs_section *section, char *const *nodes,
				    const struct ocs_region_layout *layout,
				    struct json_object *reply)
{
	struct json_object *json = json_object_new_object(), *groups = json_object_new_array();
	struct json_object *numa = json_object_new_array();

	ocs_field_add_number(json, OCS_FIELD_JOB, (int64_t)request->job);
	ocs_field_add_number(json, OCS_FIELD_EPOCH, (int64_t)request->epoch);
	ocs_field_add_text(json, OCS_FIELD_SECTION, section->name);
	ocs_field_add_text(json, OCS_FIELD_MOE, request->moe);
	ocs_field_add_number(json, OCS_FIELD_SERVERS, layout->servers);
	ocs_field_add_number(json, OCS_FIELD_NICS, section->degree);
	json_object_object_add(json, OCS_REGION_PACKET_NICS,
			       json_object_new_int(section->packet_nics));
	if (section->interfaces && section->interfaces[0].speed)
		json_object_object_add(json, OCS_REGION_SPEED,
				       json_object_new_int(section->interfaces[0].speed));
	if (section->change_ms)
		ocs_field_add_number(json, OCS_FIELD_CHANGE_MS, section->change_ms);
	for (int i = 0; i < section->degree; i++)
		json_object_array_add(
			numa, json_object_new_int(
				      section->interfaces ? section->interfaces[i].numa : -1));
	json_object_object_add(json, OCS_REGION_NUMA, numa);
	for (int g = 0; g < layout->groups; g++) {
		struct json_object *row = group_json(fabric, section, nodes, layout, g);

		circuits_add(row, reply, g);
		json_object_array_add(groups, row);
	}
	json_object_object_add(json, OCS_FIELD_GROUPS, groups);
	return json;
}
