/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* The state of the machine for those whom ocsd does not tell it. */

#include <json-c/json.h>
#include <string.h>

#include "src/ocsctl/slurm/slurm.h"
#include "src/ocsctl/slurm/state.h"
#include "src/protocol/names.h"
#include "src/util/error.h"

static void add_text(struct json_object *object, const char *name, const char *text)
{
	json_object_object_add(object, name, json_object_new_string(text));
}

/* The word that slurmctld uses towards ocsd. */
static const char *state_word(const struct ocs_ctl_nodes *group)
{
	if (!strncmp(group->state, "drain", 5))
		return "drained";
	if (ocs_ctl_nodes_out(group))
		return "down";
	return ocs_ctl_nodes_used(group)     ? "busy" :
	       ocs_ctl_nodes_reserved(group) ? "reserved" :
					       "idle";
}

/* {name: {"state"}}. */
static int nodes_read(struct json_object *nodes, struct ocs_error *err)
{
	struct ocs_ctl_groups groups;

	if (ocs_ctl_groups_read(&groups, err))
		return -1;
	for (int i = 0; i < groups.count; i++) {
		const struct ocs_ctl_nodes *group = &groups.list[i];

		for (int k = 0; k < group->nnames; k++) {
			struct json_object *one = json_object_new_object();

			add_text(one, OCS_FIELD_STATE, state_word(group));
			json_object_object_add(nodes, group->names[k], one);
		}
	}
	ocs_ctl_groups_free(&groups);
	return 0;
}

/* Drained cubes, and the switches. */
static int topology_read(struct json_object *drains, struct json_object *switches,
			 struct ocs_error *err)
{
	struct ocs_ctl_parts parts;

	if (ocs_ctl_parts_read(&parts, err))
		return -1;
	for (int i = 0; i < parts.count; i++) {
		const struct ocs_ctl_part *part = &parts.list[i];
		bool drained = !strcmp(part->state, "DRAINED");
		struct json_object *one;

		if (part->cube ? !drained : !*part->state)
			continue;
		one = json_object_new_object();
		add_text(one, "name", part->cube ? part->cube : part->sw);
		add_text(one, "reason", part->reason);
		if (part->cube)
			add_text(one, "kind", "cube");
		else
			add_text(one, OCS_FIELD_STATE,
				 !strcmp(part->state, "UP") ? "up" :
				 drained		    ? "drained" :
							      "failed");
		json_object_array_add(part->cube ? drains : switches, one);
	}
	ocs_ctl_parts_free(&parts);
	return 0;
}

int ocs_ctl_state_from_slurm(struct ocs_ctl_state *state, struct ocs_error *err)
{
	struct json_object *drains = json_object_new_array();
	struct json_object *nodes = json_object_new_object();

	state->by_slurm = true;
	state->fabric = json_object_new_object();
	json_object_object_add(state->fabric, "drains", drains);
	state->nodes = json_object_new_object();
	json_object_object_add(state->nodes, OCS_FIELD_NODES, nodes);
	state->switches = json_object_new_array();
	if (!nodes_read(nodes, err) && !topology_read(drains, state->switches, err)) {
		if (json_object_object_length(nodes))
			return 0;
		ocs_error_set(err, OCS_ERROR, "sinfo shows you no nodes");
	}
	ocs_ctl_state_free(state);
	return ocs_error_prefix(err, "ocsd tells administrators only how the machine is");
}
