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

/* The address of NIC of SERVER; "" where it has none. */
static const char *address_text(struct json_object *group, int server, int nic)
{
	struct json_object *servers = ocs_field_array(group, OCS_REGION_ADDRESSES, NULL);
	struct json_object *list = json_object_array_get_idx(servers, (size_t)server);
	struct json_object *one = json_object_is_type(list, json_type_array) ?
					  json_object_array_get_idx(list, (size_t)nic) :
					  NULL;

	return one ? json_object_get_string(one) : "";
}

/* Number AT of the four that a circuit is, below LIMIT, or -1. */
static int end_number(struct json_object *ends, size_t at, int limit)
{
	int64_t value =
		json_object_is_type(ends, json_type_array) && at < json_object_array_length(ends) ?
			json_object_get_int64(json_object_array_get_idx(ends, at)) :
			-1;

	return value < 0 || value >= limit ? -1 : (int)value;
}

/* Circuit NUMBER of GROUP, and, for the first one of a pair, the shares of both directions. */
static void plan_add(struct json_object *group, int servers, int number,
		     const struct ocs_region_circuit *one, bool *paired, struct ocs_text *text)
{
	const char *a = address_text(group, one->a, one->a_nic);
	const char *b = address_text(group, one->b, one->b_nic);

	if (!*a || !*b)
		return;
	ocs_text_add(text, "circuit %d %d %d %d %d %s:%d %s:%d\n", number + 1, one->a, one->a_nic,
		     one->b, one->b_nic, a, OCS_REGION_PORT, b, OCS_REGION_PORT);
	if (!paired[one->a * servers + one->b])
		ocs_text_add(text, "share %d %d -1 1 0 1\nshare %d %d -1 1 0 1\n", one->a, one->b,
			     one->b, one->a);
	paired[one->a * servers + one->b] = paired[one->b * servers + one->a] = true;
}

char *ocs_node_region_plan(struct json_object *region, int group)
{
	struct json_object *groups = ocs_field_array(region, OCS_FIELD_GROUPS, NULL);
	struct json_object *row = json_object_array_get_idx(groups, (size_t)group);
	int servers = (int)ocs_field_number(region, OCS_FIELD_SERVERS, 0);
	int nics = (int)ocs_field_number(region, OCS_FIELD_NICS, 0);
	bool *paired = ocs_calloc((size_t)servers * (size_t)servers + 1, sizeof(*paired));
	struct ocs_text text = { 0 };
	size_t count;
	struct json_object *circuits = ocs_field_array(row, OCS_FIELD_CIRCUITS, &count);

	for (size_t i = 0; i < count; i++) {
		struct json_object *ends = json_object_array_get_idx(circuits, i);
		struct ocs_region_circuit one = { end_number(ends, 0, servers),
						  end_number(ends, 1, nics),
						  end_number(ends, 2, servers),
						  end_number(ends, 3, nics) };

		if (one.a >= 0 && one.a_nic >= 0 && one.b >= 0 && one.b_nic >= 0)
			plan_add(row, servers, (int)i, &one, paired, &text);
	}
	free(paired);
	return text.length ? ocs_text_take(&text) : NULL;
}
