/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/ocsctl/cmd/free_room.h"

#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

#include "src/ocsctl/ocsctl.h"
#include "src/ocsctl/slurm/slurm.h"
#include "src/ocsctl/slurm/state.h"
#include "src/advice/fragmentation.h"
#include "src/protocol/fields.h"
#include "src/protocol/names.h"
#include "src/util/hostlist.h"
#include "src/util/text.h"

static void add_number(struct json_object *object, const char *name, int64_t value)
{
	json_object_object_add(object, name, json_object_new_int64(value));
}

static struct json_object *shape_largest(struct ocs_placer *placer,
					 const struct ocs_occupancy *occupancy)
{
	struct json_object *array = json_object_new_array();
	char text[OCS_SHAPE_TEXT];

	for (int ndim = 1; ndim <= 3; ndim++) {
		struct ocs_shape shape;

		if (ocs_fragmentation_largest(placer, occupancy, ndim, &shape))
			json_object_array_add(
				array, json_object_new_string(ocs_shape_format(&shape, text)));
	}
	return array;
}

static struct json_object *section_room(const struct ocs_ctl_state *state,
					const struct ocs_fabric *fabric,
					const struct ocs_section *section, struct ocs_error *err)
{
	struct ocs_occupancy *occupancy = ocs_occupancy_create(section);
	struct ocs_placer *placer = ocs_placer_create(fabric, section);
	struct ocs_fragmentation *room = ocs_fragmentation_create(section);
	struct json_object *out = NULL;

	if (!ocs_ctl_state_occupy(state, fabric, placer, occupancy, err)) {
		double share = ocs_fragmentation_measure(room, occupancy);

		out = json_object_new_object();
		json_object_object_add(out, "section", json_object_new_string(section->name));
		add_number(out, "xpus", (int64_t)section->ncubes * section->cube_xpus);
		add_number(out, "free", ocs_fragmentation_free_xpus(occupancy));
		add_number(out, "whole_cubes", ocs_fragmentation_whole_cubes(occupancy));
		json_object_object_add(out, "fragmentation_percent",
				       json_object_new_int((int)(100 * share + 0.5)));
		json_object_object_add(out, "largest", shape_largest(placer, occupancy));
	}
	ocs_fragmentation_destroy(room);
	ocs_placer_destroy(placer);
	ocs_occupancy_destroy(occupancy);
	return out;
}

static struct json_object *rooms_find(const struct ocs_ctl_state *state,
				      const struct ocs_fabric *fabric, struct ocs_error *err)
{
	struct json_object *array = json_object_new_array(), *one;

	for (int i = 0; i < fabric->nsections; i++) {
		const struct ocs_section *section = &fabric->sections[i];

		if (section->kind != OCS_TORUS && section->kind != OCS_STATIC)
			continue;
		one = section_room(state, fabric, section, err);
		if (!one) {
			json_object_put(array);
			return NULL;
		}
		json_object_array_add(array, one);
	}
	return array;
}

static void add_out(struct json_object *array, const char *kind, const char *name,
		    const char *state, const char *reason)
{
	struct json_object *one = json_object_new_object();

	json_object_object_add(one, "kind", json_object_new_string(kind));
	json_object_object_add(one, "name", json_object_new_string(name));
	json_object_object_add(one, "state", json_object_new_string(state));
	json_object_object_add(one, "reason", json_object_new_string(reason));
	json_object_array_add(array, one);
}

static void add_nodes(struct json_object *array, char *const *names, int n, const char *state,
		      const char *reason)
{
	char *list = ocs_hostlist_compress(names, (size_t)n);

	if (n)
		add_out(array, "nodes", list, state, reason);
	free(list);
}

/* Nodes that Slurm gives to no job: those of a group that FABRIC has. */
static void add_group(struct json_object *array, const struct ocs_fabric *fabric,
		      const struct ocs_ctl_nodes *group)
{
	char **ours = ocs_calloc((size_t)group->nnames + 1, sizeof(*ours));
	int kept = 0;

	for (int i = 0; i < group->nnames; i++) {
		if (ocs_fabric_node(fabric, group->names[i]))
			ours[kept++] = group->names[i];
	}
	add_nodes(array, ours, kept, group->silent ? "not responding" : group->state,
		  group->reason);
	free(ours);
}

/* The nodes that are WORD, as slurmctld has sent ocsd. */
static void add_told(struct json_object *array, const struct ocs_fabric *fabric,
		     const struct ocs_ctl_state *state, const char *word, const char *reason)
{
	char **names = ocs_calloc((size_t)fabric->nnodes + 1, sizeof(*names));
	int n = 0;

	for (int i = 0; i < fabric->nnodes; i++) {
		if (!strcmp(ocs_ctl_state_node(state, fabric->nodes[i].name), word))
			names[n++] = fabric->nodes[i].name;
	}
	add_nodes(array, names, n, word, reason);
	free(names);
}

/* What no new job gets, and why: drains, switches that failed, and nodes. */
static struct json_object *out_of_service(const struct ocs_ctl_state *state,
					  const struct ocs_fabric *fabric)
{
	struct json_object *array = json_object_new_array();
	struct json_object *drains = ocs_field_array(state->fabric, OCS_FIELD_DRAINS, NULL);
	struct ocs_ctl_groups groups;

	for (size_t i = 0; i < ocs_ctl_length(drains); i++) {
		struct json_object *one = json_object_array_get_idx(drains, i);

		add_out(array, ocs_ctl_string(one, OCS_FIELD_KIND, "?"),
			ocs_ctl_string(one, OCS_FIELD_NAME, "?"), "drained",
			ocs_ctl_string(one, OCS_FIELD_REASON, ""));
	}
	for (size_t i = 0; i < ocs_ctl_length(state->switches); i++) {
		struct json_object *one = json_object_array_get_idx(state->switches, i);
		const char *word = ocs_ctl_string(one, OCS_FIELD_STATE, "up");

		if (strcmp(word, "up") != 0 && strcmp(word, "drained") != 0)
			add_out(array, "switch", ocs_ctl_string(one, OCS_FIELD_NAME, "?"), word,
				ocs_ctl_string(one, OCS_FIELD_REASON, ""));
	}
	for (size_t i = 0; i < ocs_ctl_length(state->reservations); i++) {
		struct json_object *one = json_object_array_get_idx(state->reservations, i);
		char *whose = ocs_ctl_reservation_describe(one);
		char *text =
			ocs_asprintf("%s, %s", ocs_ctl_string(one, OCS_FIELD_NODES, "?"), whose);

		add_out(array, "reservation", ocs_ctl_string(one, OCS_FIELD_NAME, "?"),
			ocs_field_true(one, "maintenance") ? "maintenance" : "reserved", text);
		free(text);
		free(whose);
	}
	add_told(array, fabric, state, "absent", "not a node of Slurm");
	if (ocs_ctl_groups_read(&groups, NULL)) {
		/* without reasons where there is no sinfo */
		add_told(array, fabric, state, "down", "");
		add_told(array, fabric, state, "drained", "");
		return array;
	}
	for (int i = 0; i < groups.count; i++) {
		if (ocs_ctl_nodes_out(&groups.list[i]))
			add_group(array, fabric, &groups.list[i]);
	}
	ocs_ctl_groups_free(&groups);
	return array;
}

int ocs_ctl_room_add(const struct ocs_ctl_args *args, struct ocs_client *client,
		     struct json_object *reply, struct ocs_error *err)
{
	struct ocs_fabric *fabric = ocs_ctl_fabric_open(args, err);
	struct json_object *room = NULL;
	struct ocs_ctl_state state;

	if (fabric && !ocs_ctl_state_read(client, &state, err)) {
		json_object_object_add(reply, "out_of_service", out_of_service(&state, fabric));
		room = rooms_find(&state, fabric, err);
		ocs_ctl_state_free(&state);
	}
	if (room)
		json_object_object_add(reply, "room", room);
	ocs_fabric_destroy(fabric);
	return room ? 0 : -1;
}
