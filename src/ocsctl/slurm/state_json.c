/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include <json-c/json.h>
#include <string.h>

#include "src/ocsctl/ocsctl.h"
#include "src/ocsctl/slurm/state.h"
#include "src/protocol/fields.h"
#include "src/protocol/names.h"

bool ocs_ctl_state_drained(const struct ocs_ctl_state *state, const struct ocs_fabric *fabric,
			   int node)
{
	struct json_object *drains = ocs_field_array(state->fabric, OCS_FIELD_DRAINS, NULL);
	const struct ocs_section *section = &fabric->sections[fabric->nodes[node].section];
	int cube = fabric->nodes[node].cube;

	for (size_t i = 0; cube >= 0 && i < ocs_ctl_length(drains); i++) {
		struct json_object *drain = json_object_array_get_idx(drains, i);
		const char *kind = ocs_ctl_string(drain, OCS_FIELD_KIND, "");
		const char *name = ocs_ctl_string(drain, OCS_FIELD_NAME, "");

		if ((!strcmp(kind, "cube") && !strcmp(name, section->cube_names[cube])) ||
		    ocs_ctl_drain_node(fabric, kind, name) == node)
			return true;
	}
	return false;
}

static struct json_object *node_json(const struct ocs_ctl_state *state,
				     const struct ocs_fabric *fabric,
				     const struct ocs_section *section, int node)
{
	const char *name = fabric->nodes[node].name;
	bool drained =
		ocs_ctl_state_drained(state, fabric, node) && !ocs_ctl_state_out(state, name);
	const char *reservation = ocs_ctl_state_reservation(state, name);
	struct json_object *one = json_object_new_object();
	int cube = fabric->nodes[node].cube;

	ocs_field_add_text(one, OCS_FIELD_NODE, name);
	ocs_field_add_text(one, OCS_FIELD_SECTION, section->name);
	if (cube >= 0)
		ocs_field_add_text(one, "cube", section->cube_names[cube]);
	ocs_field_add_text(one, OCS_FIELD_STATE,
			   drained ? "drained" : ocs_ctl_state_node(state, name));
	if (reservation)
		ocs_field_add_text(one, "reservation", reservation);
	if (ocs_ctl_state_job(state, name))
		ocs_field_add_number(one, OCS_FIELD_JOB, ocs_ctl_state_job(state, name));
	return one;
}

struct json_object *ocs_ctl_state_json(const struct ocs_ctl_state *state,
				       const struct ocs_fabric *fabric, const char *section)
{
	struct json_object *out = json_object_new_object(), *nodes = json_object_new_array();
	struct json_object *jobs = json_object_new_array();

	for (int i = 0; i < fabric->nsections; i++) {
		const struct ocs_section *one = &fabric->sections[i];

		for (int k = 0; k < one->nnodes && (!section || !strcmp(section, one->name)); k++)
			json_object_array_add(nodes,
					      node_json(state, fabric, one, one->first_node + k));
	}
	for (size_t i = 0; i < ocs_ctl_length(state->jobs); i++) {
		struct json_object *job = json_object_array_get_idx(state->jobs, i);

		if (ocs_ctl_job_lives(job))
			json_object_array_add(jobs, json_object_get(job));
	}
	json_object_object_add(out, OCS_FIELD_NODES, nodes);
	json_object_object_add(out, OCS_FIELD_JOBS, jobs);
	/* the rest of what keeps shapes out, for advise */
	json_object_object_add(
		out, OCS_FIELD_DRAINS,
		json_object_get(ocs_field_array(state->fabric, OCS_FIELD_DRAINS, NULL)));
	json_object_object_add(out, OCS_FIELD_SWITCHES, json_object_get(state->switches));
	if (state->reservations)
		json_object_object_add(out, "reservations", json_object_get(state->reservations));
	return out;
}
