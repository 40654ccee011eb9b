/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Nodes that Slurm keeps for a reservation at the moment: only jobs that name it get them. */

#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "src/ocsctl/ocsctl.h"
#include "src/ocsctl/slurm/slurm.h"
#include "src/ocsctl/slurm/state.h"
#include "src/ocsctl/slurm/slurm_time.h"
#include "src/protocol/fields.h"
#include "src/protocol/names.h"
#include "src/util/error.h"
#include "src/util/hostlist.h"
#include "src/util/text.h"

#define NAMES_MAX 1000000
#define RESERVATIONS_S 5 /* what people wait for a picture */

static void add_text(struct json_object *object, const char *name, const char *text)
{
	json_object_object_add(object, name, json_object_new_string(text));
}

static struct json_object *node_list(const struct ocs_ctl_state *state)
{
	struct json_object *nodes = NULL;

	json_object_object_get_ex(state->nodes, OCS_FIELD_NODES, &nodes);
	return json_object_is_type(nodes, json_type_object) ? nodes : NULL;
}

/* NODE is one of reservation NAME.  Whether it is one of ours. */
static bool node_reserve(struct json_object *nodes, const char *node, const char *name)
{
	struct json_object *one;

	if (!json_object_object_get_ex(nodes, node, &one))
		return false;
	if (!strcmp(ocs_ctl_string(one, OCS_FIELD_STATE, "idle"), "idle"))
		add_text(one, OCS_FIELD_STATE, "reserved");
	add_text(one, "reservation", name);
	return true;
}

/* slurmctld tells ocsd of changes some seconds late. */
static void forget_old(struct json_object *nodes)
{
	json_object_object_foreach (nodes, name, one) {
		(void)name;
		if (!strcmp(ocs_ctl_string(one, OCS_FIELD_STATE, ""), "reserved"))
			add_text(one, OCS_FIELD_STATE, "idle");
	}
}

static void add_reservation(struct ocs_ctl_state *state, const struct ocs_ctl_reservation *r)
{
	struct json_object *one, *nodes = node_list(state);
	char **names = NULL, *whom;
	int n = ocs_hostlist_expand(r->nodes, NAMES_MAX, &names, NULL), ours = 0;

	for (int i = 0; i < n; i++)
		ours += node_reserve(nodes, names[i], r->name);
	if (n > 0)
		ocs_names_free(names, (size_t)n);
	if (!ours)
		return;
	whom = ocs_asprintf("%s%s%s", r->users, *r->users && *r->accounts ? "," : "", r->accounts);
	one = json_object_new_object();
	add_text(one, "name", r->name);
	add_text(one, "nodes", r->nodes);
	add_text(one, "for", whom);
	json_object_object_add(one, "maintenance",
			       json_object_new_boolean(ocs_list_has(r->flags, "MAINT", 5)));
	json_object_object_add(one, "end", json_object_new_int64(r->end));
	json_object_array_add(state->reservations, one);
	free(whom);
}

void ocs_ctl_state_reserve(struct ocs_ctl_state *state)
{
	struct ocs_ctl_reservations all;
	struct ocs_error err = { 0 };
	time_t now = time(NULL);

	state->reservations = json_object_new_array();
	/* ocsd has no nodes of slurmctld's, or does not answer. */
	if (!ocs_ctl_state_has_nodes(state) ||
	    (!state->by_slurm && !ocs_field_true(state->fabric, OCS_FIELD_SLURMCTLD)))
		return;
	if (ocs_ctl_reservations_read(&all, RESERVATIONS_S, &err)) {
		/* ocsd may live where Slurm's commands do not. */
		if (strncmp(err.text, "cannot run ", 11) != 0)
			state->unreserved = ocs_strdup(err.text);
		return;
	}
	/* To others slurmctld may show the states of nodes and no reservations. */
	if (!state->by_slurm)
		forget_old(node_list(state));
	for (int i = 0; i < all.count; i++) {
		const struct ocs_ctl_reservation *r = &all.list[i];

		if (*r->nodes && r->start <= now && (!r->end || r->end > now))
			add_reservation(state, r);
	}
	ocs_ctl_reservations_free(&all);
}

char *ocs_ctl_reservation_describe(struct json_object *reservation)
{
	const char *whom = ocs_ctl_string(reservation, "for", "");
	time_t end = ocs_field_number(reservation, "end", 0);
	char when[OCS_CTL_WHEN_TEXT];

	return ocs_asprintf("%s%s%suntil %s", *whom ? "for " : "", whom, *whom ? " " : "",
			    ocs_ctl_moment_format(end, "it is deleted", when));
}

void ocs_ctl_state_reserved_notes(const struct ocs_ctl_state *state, const char *before, FILE *out)
{
	if (state->unreserved)
		fprintf(out,
			"%sreservations are not known (%s): reserved nodes may count as free\n",
			before, state->unreserved);
	for (size_t i = 0; i < ocs_ctl_length(state->reservations); i++) {
		struct json_object *one = json_object_array_get_idx(state->reservations, i);
		char *text = ocs_ctl_reservation_describe(one);

		fprintf(out, "%s%s has %s, %s: not free without --reservation\n", before,
			ocs_ctl_string(one, OCS_FIELD_NAME, "?"),
			ocs_ctl_string(one, OCS_FIELD_NODES, "?"), text);
		free(text);
	}
}
