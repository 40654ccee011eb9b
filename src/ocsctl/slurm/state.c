/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

#include "src/protocol/client.h"
#include "src/ocsctl/ocsctl.h"
#include "src/ocsctl/slurm/state.h"
#include "src/protocol/fields.h"
#include "src/protocol/names.h"
#include "src/util/text.h"

struct json_object *ocs_ctl_ask(struct ocs_client *client, const char *what, const char *name,
				struct ocs_error *err)
{
	struct json_object *request = ocs_request_new(OCS_OP_SHOW), *reply;

	ocs_field_add_text(request, OCS_FIELD_WHAT, what);
	if (name)
		ocs_field_add_text(request, OCS_FIELD_NAME, name);
	reply = ocs_client_call(client, request, OCS_CTL_CALL_MS, NULL, err);
	json_object_put(request);
	return reply;
}

/* The list WHAT of a reply outlives the reply. */
static struct json_object *ask_list(struct ocs_client *client, const char *what, const char *list,
				    struct ocs_error *err)
{
	struct json_object *reply = ocs_ctl_ask(client, what, NULL, err), *array;

	if (!reply)
		return NULL;
	array = ocs_field_array(reply, list, NULL);
	array = array ? json_object_get(array) : json_object_new_array();
	json_object_put(reply);
	return array;
}

bool ocs_ctl_for_administrators(const struct ocs_error *err)
{
	return err->code == OCS_ERROR && !strncmp(err->text, "only administrators of ocsd", 27);
}

int ocs_ctl_state_read(struct ocs_client *client, struct ocs_ctl_state *state,
		       struct ocs_error *err)
{
	memset(state, 0, sizeof(*state));
	state->fabric = ocs_ctl_ask(client, OCS_SHOW_FABRIC, NULL, err);
	if (state->fabric) {
		state->nodes = ocs_ctl_ask(client, OCS_SHOW_NODES, NULL, err);
		if (state->nodes)
			state->switches =
				ask_list(client, OCS_SHOW_SWITCH, OCS_FIELD_SWITCHES, err);
	} else if (ocs_ctl_for_administrators(err)) {
		ocs_ctl_state_from_slurm(state, err);
	}
	if (state->switches)
		state->jobs = ask_list(client, OCS_SHOW_JOB, OCS_FIELD_JOBS, err);
	if (state->jobs) {
		ocs_ctl_state_reserve(state);
		return 0;
	}
	ocs_ctl_state_free(state);
	return -1;
}

void ocs_ctl_state_notes(const struct ocs_ctl_state *state, const char *before, FILE *out)
{
	if (state->by_slurm)
		fprintf(out,
			"%socsd tells administrators only: this is what sinfo and scontrol show you;"
			" drained ports and XPUs are not known\n",
			before);
	if (!ocs_ctl_state_has_nodes(state))
		fprintf(out,
			"%sslurmctld has not sent its nodes to ocsd yet: only shaped jobs count"
			" as busy\n",
			before);
	ocs_ctl_state_reserved_notes(state, before, out);
}

int ocs_ctl_state_from_map(struct json_object *map, struct ocs_ctl_state *state,
			   struct ocs_error *err)
{
	struct json_object *nodes = ocs_field_array(map, OCS_FIELD_NODES, NULL),
			   *jobs = ocs_field_array(map, OCS_FIELD_JOBS, NULL);
	struct json_object *drains = ocs_field_array(map, OCS_FIELD_DRAINS, NULL), *states;
	struct json_object *switches = ocs_field_array(map, OCS_FIELD_SWITCHES, NULL);

	memset(state, 0, sizeof(*state));
	if (!nodes || !jobs)
		return ocs_error_set(err, OCS_USAGE,
				     "not what 'ocsctl map --json' prints: \"nodes\" or"
				     " \"jobs\" is missing");
	state->fabric = json_object_new_object();
	if (drains)
		json_object_object_add(state->fabric, "drains", json_object_get(drains));
	state->nodes = json_object_new_object();
	states = json_object_new_object();
	json_object_object_add(state->nodes, OCS_FIELD_NODES, states);
	for (size_t i = 0; i < ocs_ctl_length(nodes); i++) {
		struct json_object *one = json_object_array_get_idx(nodes, i);

		json_object_object_add(states, ocs_ctl_string(one, OCS_FIELD_NODE, ""),
				       json_object_get(one));
	}
	state->jobs = json_object_get(jobs);
	state->switches = switches ? json_object_get(switches) : json_object_new_array();
	state->reservations = json_object_get(ocs_field_array(map, "reservations", NULL));
	return 0;
}

void ocs_ctl_state_free(struct ocs_ctl_state *state)
{
	json_object_put(state->fabric);
	json_object_put(state->nodes);
	json_object_put(state->jobs);
	json_object_put(state->switches);
	json_object_put(state->reservations);
	free(state->unreserved);
	memset(state, 0, sizeof(*state));
}

static struct json_object *node_list(const struct ocs_ctl_state *state)
{
	struct json_object *nodes = NULL;

	json_object_object_get_ex(state->nodes, OCS_FIELD_NODES, &nodes);
	return nodes && json_object_is_type(nodes, json_type_object) ? nodes : NULL;
}

bool ocs_ctl_state_has_nodes(const struct ocs_ctl_state *state)
{
	struct json_object *nodes = node_list(state);

	return nodes && json_object_object_length(nodes) > 0;
}

const char *ocs_ctl_state_node(const struct ocs_ctl_state *state, const char *node)
{
	struct json_object *nodes = node_list(state), *one;

	/* sinfo shows all that there are */
	if (!nodes || !json_object_object_get_ex(nodes, node, &one))
		return state->by_slurm ? "absent" : "idle";
	return ocs_ctl_string(one, OCS_FIELD_STATE, "idle");
}

bool ocs_ctl_state_out(const struct ocs_ctl_state *state, const char *node)
{
	const char *word = ocs_ctl_state_node(state, node);

	return strcmp(word, "idle") != 0 && strcmp(word, "busy") != 0 &&
	       strcmp(word, "reserved") != 0;
}

const char *ocs_ctl_state_reservation(const struct ocs_ctl_state *state, const char *node)
{
	bool reserved = !strcmp(ocs_ctl_state_node(state, node), "reserved");
	struct json_object *nodes = node_list(state), *one;

	if (!nodes || !json_object_object_get_ex(nodes, node, &one))
		return NULL;
	return ocs_ctl_string(one, "reservation", reserved ? "?" : NULL);
}

int64_t ocs_ctl_state_job(const struct ocs_ctl_state *state, const char *node)
{
	struct json_object *nodes = node_list(state), *one;

	if (!nodes || !json_object_object_get_ex(nodes, node, &one))
		return 0;
	return ocs_field_number(one, OCS_FIELD_JOB, 0);
}

bool ocs_ctl_job_lives(struct json_object *job)
{
	return strcmp(ocs_ctl_string(job, OCS_FIELD_STATE, ""), "ended") != 0;
}

int ocs_ctl_job_placement(struct json_object *job, const struct ocs_section *section,
			  struct ocs_placer *placer, struct ocs_placement **placement,
			  struct ocs_error *err)
{
	const char *name = ocs_ctl_string(job, OCS_FIELD_SECTION, section->name);
	const char *compact = ocs_ctl_string(job, OCS_FIELD_PLACEMENT, NULL);

	*placement = NULL;
	if (!compact || !*compact || strcmp(name, section->name) != 0)
		return 0;
	*placement = ocs_placement_decode(placer, compact, err);
	if (*placement)
		return 0;
	return ocs_error_prefix(err,
				"job %s: the placement that ocsd holds does not fit this"
				" ocs.yaml",
				ocs_ctl_string(job, OCS_FIELD_JOB, "?"));
}

static int port_block(const struct ocs_fabric *fabric, struct ocs_occupancy *occupancy,
		      const char *name)
{
	const char *colon = strrchr(name, ':');
	char *sw_name;
	long port;
	int sw;

	if (!colon || ocs_number_parse(colon + 1, 1, 1 << 24, &port))
		return -1;
	sw_name = ocs_asprintf("%.*s", (int)(colon - name), name);
	sw = ocs_fabric_switch(fabric, sw_name);
	free(sw_name);
	if (sw < 0)
		return -1;
	ocs_occupancy_switch_block(occupancy, fabric, sw, port);
	return 0;
}

/* Names that this ocs.yaml does not have are of another section. */
int ocs_ctl_drain_node(const struct ocs_fabric *fabric, const char *kind, const char *name)
{
	const struct ocs_node *node;

	if (!strcmp(kind, "xpu"))
		return ocs_fabric_xpu_node(fabric, name);
	node = strcmp(kind, "node") ? NULL : ocs_fabric_node(fabric, name);
	return node ? (int)(node - fabric->nodes) : -1;
}

void ocs_ctl_state_drains(const struct ocs_ctl_state *state, const struct ocs_fabric *fabric,
			  struct ocs_occupancy *occupancy)
{
	struct json_object *drains = ocs_field_array(state->fabric, OCS_FIELD_DRAINS, NULL);

	for (size_t i = 0; i < ocs_ctl_length(drains); i++) {
		struct json_object *drain = json_object_array_get_idx(drains, i);
		const char *kind = ocs_ctl_string(drain, OCS_FIELD_KIND, "");
		const char *name = ocs_ctl_string(drain, OCS_FIELD_NAME, "");

		if (!strcmp(kind, "cube")) {
			int cube = ocs_section_cube(occupancy->section, name);

			if (cube >= 0)
				ocs_occupancy_cube_drain(occupancy, cube);
		} else if (!strcmp(kind, "xpu") || !strcmp(kind, "node")) {
			int node = ocs_ctl_drain_node(fabric, kind, name);

			if (node >= 0 && fabric->nodes[node].section == occupancy->section->index)
				ocs_occupancy_node_set(occupancy, fabric, node, false);
		} else if (!strcmp(kind, "switch")) {
			int sw = ocs_fabric_switch(fabric, name);

			if (sw >= 0)
				ocs_occupancy_switch_block(occupancy, fabric, sw, 0);
		} else if (!strcmp(kind, "port")) {
			port_block(fabric, occupancy, name);
		}
	}
	for (size_t i = 0; i < ocs_ctl_length(state->switches); i++) {
		struct json_object *one = json_object_array_get_idx(state->switches, i);
		int sw = ocs_fabric_switch(fabric, ocs_ctl_string(one, OCS_FIELD_NAME, ""));

		if (sw >= 0 && strcmp(ocs_ctl_string(one, OCS_FIELD_STATE, "up"), "up") != 0)
			ocs_occupancy_switch_block(occupancy, fabric, sw, 0);
	}
}

int ocs_ctl_state_occupy(const struct ocs_ctl_state *state, const struct ocs_fabric *fabric,
			 struct ocs_placer *placer, struct ocs_occupancy *occupancy,
			 struct ocs_error *err)
{
	const struct ocs_section *section = occupancy->section;

	for (int i = 0; i < section->nnodes; i++) {
		int node = section->first_node + i;

		if (strcmp(ocs_ctl_state_node(state, fabric->nodes[node].name), "idle") != 0)
			ocs_occupancy_node_set(occupancy, fabric, node, false);
	}
	for (size_t i = 0; i < ocs_ctl_length(state->jobs); i++) {
		struct json_object *job = json_object_array_get_idx(state->jobs, i);
		struct ocs_placement *placement;

		if (!ocs_ctl_job_lives(job))
			continue;
		if (ocs_ctl_job_placement(job, section, placer, &placement, err))
			return -1;
		for (int n = 0; placement && n < placement->nnodes; n++)
			ocs_occupancy_node_set(occupancy, fabric, placement->nodes[n], false);
		ocs_placement_destroy(placement);
	}
	ocs_ctl_state_drains(state, fabric, occupancy);
	return 0;
}
