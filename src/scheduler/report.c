/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/protocol/fields.h"
#include "src/protocol/names.h"
#include "src/scheduler/state.h"
#include "src/util/hostlist.h"
#include "src/util/text.h"

#include <ctype.h>
#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

/* Node states travel to ocsd in one line; beyond this only those that are not
 * idle do. */
#define NODES_LINE_MAX (900 * 1024)

static const char *const state_names[] = {
	[OCS_NODE_ABSENT] = "absent",	[OCS_NODE_IDLE] = "idle",
	[OCS_NODE_BUSY] = "busy",	[OCS_NODE_DOWN] = "down",
	[OCS_NODE_DRAINED] = "drained", [OCS_NODE_RESERVED] = "reserved",
};

/* Adds `"NAME":{"state":...}`. */
static void state_add(struct ocs_text *text, const char *name, uint8_t state, uint32_t job)
{
	struct json_object *key = json_object_new_string(name), *node = json_object_new_object();

	ocs_field_add_text(node, OCS_FIELD_STATE, state_names[state]);
	if (job)
		ocs_field_add_number(node, OCS_FIELD_JOB, job);
	ocs_text_add(text, "%s%s:%s", text->length > 1 ? "," : "",
		     json_object_to_json_string_ext(key, JSON_C_TO_STRING_PLAIN),
		     json_object_to_json_string_ext(node, JSON_C_TO_STRING_PLAIN));
	json_object_put(key);
	json_object_put(node);
}

/* All nodes, or those that are not idle, as an object that is text already: as one of json-c a node takes
 * a kilobyte, and slurmctld would keep this memory.  NULL if it is longer than NODES_LINE_MAX. */
static struct json_object *states_object(const uint8_t *states, const uint32_t *jobs, bool all)
{
	const struct ocs_fabric *fabric = ocs_state.fabric;
	struct ocs_text text = { 0 };
	struct json_object *object;

	ocs_text_put(&text, "{", 1);
	for (int i = 0; i < fabric->nnodes && text.length < NODES_LINE_MAX; i++)
		if (all || states[i] != OCS_NODE_IDLE)
			state_add(&text, fabric->nodes[i].name, states[i], jobs[i]);
	ocs_text_put(&text, "}", 1);
	if (text.length > NODES_LINE_MAX) {
		ocs_text_free(&text);
		return NULL;
	}
	object = json_object_new_object();
	json_object_set_serializer(object, json_object_userdata_to_json_string,
				   ocs_text_take(&text), json_object_free_userdata);
	return object;
}

/* Whether this differs from what was pushed last; remembers it. */
static bool states_changed(const uint8_t *states, const uint32_t *jobs)
{
	size_t count = (size_t)ocs_state.fabric->nnodes;

	if (ocs_state.nodes_known &&
	    memcmp(ocs_state.node_states, states, count * sizeof(*states)) == 0 &&
	    memcmp(ocs_state.node_jobs, jobs, count * sizeof(*jobs)) == 0)
		return false;
	memcpy(ocs_state.node_states, states, count * sizeof(*states));
	memcpy(ocs_state.node_jobs, jobs, count * sizeof(*jobs));
	ocs_state.nodes_known = ocs_state.up;
	return true;
}

void ocs_controller_nodes(const uint8_t *states, const uint32_t *jobs)
{
	struct json_object *object, *line;
	bool changed;

	pthread_mutex_lock(&ocs_state.lock);
	/* Without a connection it is not heard, and the next one begins with all of it. */
	changed = ocs_state.open && states_changed(states, jobs);
	pthread_mutex_unlock(&ocs_state.lock);
	if (!changed)
		return;
	/* The long work is done without the lock. */
	object = states_object(states, jobs, true);
	if (!object)
		object = states_object(states, jobs, false);
	/* ocsd ends the connection at a longer line; pictures do without. */
	if (!object)
		return;
	line = ocs_request_new(OCS_OP_NODES);
	json_object_object_add(line, OCS_FIELD_NODES, object);
	pthread_mutex_lock(&ocs_state.lock);
	ocs_link_send(line);
	pthread_mutex_unlock(&ocs_state.lock);
}

/* ---- scontrol show topology ---- */

struct list {
	struct ocs_controller_record *records;
	int count, size;
};

static void list_add(struct list *list, const char *name, char *nodes, struct ocs_text *text)
{
	struct ocs_controller_record *record;

	if (list->count == list->size) {
		list->size = list->size ? list->size * 2 : 64;
		list->records =
			ocs_realloc(list->records, (size_t)list->size * sizeof(*list->records));
	}
	record = &list->records[list->count++];
	record->name = ocs_strdup(name);
	record->nodes = nodes;
	record->text = ocs_text_take(text);
}

static char *range_names(int first, int count)
{
	char **names = ocs_calloc((size_t)count + 1, sizeof(*names));
	char *text;

	for (int i = 0; i < count; i++)
		names[i] = ocs_state.fabric->nodes[first + i].name;
	text = ocs_hostlist_compress(names, (size_t)count);
	free(names);
	return text;
}

static void add_counts(struct ocs_text *text, const uint8_t *states, int first, int count)
{
	int of[OCS_NODE_RESERVED + 1] = { 0 };

	for (int i = first; i < first + count; i++)
		of[states[i]]++;
	ocs_text_add(text, " Idle=%d Busy=%d Down=%d Drained=%d", of[OCS_NODE_IDLE],
		     of[OCS_NODE_BUSY], of[OCS_NODE_DOWN], of[OCS_NODE_DRAINED]);
	if (of[OCS_NODE_RESERVED])
		ocs_text_add(text, " Reserved=%d", of[OCS_NODE_RESERVED]);
	if (of[OCS_NODE_ABSENT])
		ocs_text_add(text, " Unconfigured=%d", of[OCS_NODE_ABSENT]);
}

/* Jobs with nodes among the COUNT from FIRST on. */
static void add_jobs(struct ocs_text *text, int first, int count)
{
	for (int living = 1; living >= 0; living--) {
		const char *label = living ? " Jobs=" : " Ending=";

		for (struct ocs_allocation *at = ocs_state.allocations; at; at = at->next) {
			bool here = false;

			for (int i = 0; i < at->nnodes && !here; i++)
				here = at->nodes[i] >= first && at->nodes[i] < first + count;
			if (!here || at->living != (bool)living)
				continue;
			ocs_text_add(text, "%s%u", label, at->pub.job);
			label = ",";
		}
	}
}

static void add_section(struct list *list, const struct ocs_section *section, const uint8_t *states,
			bool jobs)
{
	struct ocs_text text = { 0 };
	char *nodes = range_names(section->first_node, section->nnodes);

	ocs_text_add(&text, "Section=%s Kind=%s", section->name,
		     ocs_section_kind_name(section->kind));
	if (section->ncubes)
		ocs_text_add(&text, " Cubes=%d CubeSize=%dx%dx%d Tile=%dx%dx%d", section->ncubes,
			     section->edge[0], section->edge[1], section->edge[2], section->tile[0],
			     section->tile[1], section->tile[2]);
	if (section->nservers)
		ocs_text_add(&text, " Servers=%d Degree=%d", section->nservers, section->degree);
	for (size_t i = 0; i < section->npartitions; i++)
		ocs_text_add(&text, "%s%s", i ? "," : " Partitions=", section->partitions[i]);
	ocs_text_add(&text, " Nodes=%s", nodes);
	add_counts(&text, states, section->first_node, section->nnodes);
	if (jobs && !section->ncubes)
		add_jobs(&text, section->first_node, section->nnodes);
	list_add(list, section->name, nodes, &text);
}

static const struct ocs_drain *cube_drain(const char *name)
{
	for (const struct ocs_drain *drain = ocs_state.drains; drain; drain = drain->next) {
		if (strcmp(drain->kind, "cube") == 0 && strcmp(drain->name, name) == 0)
			return drain;
	}
	return NULL;
}

static void add_cube(struct list *list, const struct ocs_section *section, int cube,
		     const uint8_t *states, bool jobs)
{
	int first = section->first_node + cube * section->cube_nodes;
	const char *name = section->cube_names[cube];
	const struct ocs_drain *drain = cube_drain(name);
	char *nodes = range_names(first, section->cube_nodes);
	struct ocs_text text = { 0 };

	ocs_text_add(&text, "Cube=%s Section=%s Nodes=%s", name, section->name, nodes);
	add_counts(&text, states, first, section->cube_nodes);
	ocs_text_add(&text, " State=%s", drain ? "DRAINED" : "UP");
	if (drain && *drain->reason)
		ocs_text_add(&text, " Reason=\"%s\"", drain->reason);
	if (jobs)
		add_jobs(&text, first, section->cube_nodes);
	list_add(list, name, nodes, &text);
}

/* REASON, in which errors of connections name the switch's ADDRESS, without it. */
static void add_reason(struct ocs_text *text, const char *reason, const char *address)
{
	const char *colon = address ? strrchr(address, ':') : NULL;
	size_t host = colon ? (size_t)(colon - address) : 0;
	char before = ' ';

	ocs_text_add(text, " Reason=\"");
	while (*reason) {
		if (host && strncmp(reason, address, host) == 0 &&
		    !isalnum((unsigned char)before) && !isalnum((unsigned char)reason[host])) {
			reason += host;
			if (*reason == ':' && isdigit((unsigned char)reason[1]))
				reason += 1 + strspn(reason + 1, "0123456789");
			ocs_text_add(text, "its address");
			before = 's';
			continue;
		}
		before = *reason++;
		ocs_text_add(text, "%c", before);
	}
	ocs_text_add(text, "\"");
}

static void add_switch(struct list *list, int index)
{
	const struct ocs_switch *sw = &ocs_state.fabric->switches[index];
	const struct ocs_switch_state *state = &ocs_state.switches[index];
	struct ocs_text text = { 0 };
	bool drained = state->state == OCS_SWITCH_DRAINED;
	const char *reason = state->reason, *word = "UP";

	for (const struct ocs_drain *drain = ocs_state.drains; drain; drain = drain->next) {
		if (strcmp(drain->kind, "switch") == 0 && strcmp(drain->name, sw->name) == 0) {
			drained = true;
			reason = drain->reason;
		}
	}
	if (drained)
		word = "DRAINED";
	else if (!ocs_faults_switch_usable(index))
		word = "FAILED";
	else if (!ocs_state.up)
		word = "UNKNOWN";
	else
		reason = NULL;
	ocs_text_add(&text, "Switch=%s Size=%d State=%s", sw->name, sw->size, word);
	if (reason && *reason)
		add_reason(&text, reason, sw->address);
	list_add(list, sw->name, ocs_strdup(""), &text);
}

/* That the file could not be read comes before what is there all the same. */
static void add_fault(struct list *list)
{
	struct ocs_text text = { 0 };

	if (!ocs_state.fault)
		return;
	ocs_text_add(&text, "Config=%s State=%s Reason=\"%s\"",
		     ocs_state.fabric ? ocs_state.fabric->source : "none",
		     ocs_state.fabric ? "KEPT" : "MISSING", ocs_state.fault);
	if (!ocs_state.fabric && !ocs_state.partitions)
		ocs_text_add(&text, " Partitions=UNKNOWN");
	list_add(list, "ocs.yaml", ocs_strdup(""), &text);
}

int ocs_controller_report(const uint8_t *states, bool jobs, struct ocs_controller_record **records)
{
	const struct ocs_fabric *fabric = ocs_state.fabric;
	struct list list = { 0 };

	*records = NULL;
	pthread_mutex_lock(&ocs_state.lock);
	add_fault(&list);
	for (int i = 0; fabric && i < fabric->nsections; i++) {
		add_section(&list, &fabric->sections[i], states, jobs);
		for (int cube = 0; cube < fabric->sections[i].ncubes; cube++)
			add_cube(&list, &fabric->sections[i], cube, states, jobs);
	}
	for (int i = 0; fabric && i < fabric->nswitches; i++)
		add_switch(&list, i);
	pthread_mutex_unlock(&ocs_state.lock);
	*records = list.records;
	return list.count;
}

void ocs_controller_report_free(struct ocs_controller_record *records, int count)
{
	for (int i = 0; i < count; i++) {
		free(records[i].name);
		free(records[i].nodes);
		free(records[i].text);
	}
	free(records);
}

/* Whether a host of WANTED is in the host list NODES. */
static bool nodes_meet(const char *nodes, char *const *wanted, int nwanted)
{
	char **names;
	int count = ocs_hostlist_expand(nodes, 1000000, &names, NULL);
	bool found = false;

	if (count < 0)
		return false;
	for (int i = 0; i < count && !found; i++) {
		for (int j = 0; j < nwanted && !found; j++)
			found = strcmp(names[i], wanted[j]) == 0;
	}
	ocs_names_free(names, (size_t)count);
	return found;
}

char *ocs_controller_report_print(const struct ocs_controller_record *records, int count,
				  const char *name)
{
	struct ocs_text text = { 0 };
	char **wanted = NULL;
	int nwanted = 0;

	if (name && !*name)
		name = NULL;
	for (int i = 0; i < count; i++) {
		if (!name || strcmp(records[i].name, name) == 0)
			ocs_text_add(&text, "%s\n", records[i].text);
	}
	if (text.length || !name)
		return ocs_text_take(&text);
	nwanted = ocs_hostlist_expand(name, 1000000, &wanted, NULL);
	for (int i = 0; i < count && nwanted > 0; i++) {
		if (records[i].nodes[0] && nodes_meet(records[i].nodes, wanted, nwanted))
			ocs_text_add(&text, "%s\n", records[i].text);
	}
	if (nwanted >= 0)
		ocs_names_free(wanted, (size_t)nwanted);
	return ocs_text_take(&text);
}
