/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* What people may look at. */

#include "src/ocsd/jobs/node_presence.h"
#include "src/ocsd/store/history.h"
#include "src/ocsd/jobs/allocation.h"
#include "src/ocsd/ports/optical_power.h"
#include "src/ocsd/protocol/connection.h"
#include "src/ocsd/ops/operations.h"
#include "src/ocsd/state/out_of_service.h"
#include "src/ocsd/state/switch_state.h"
#include "src/ocsd/store/store.h"
#include "src/ocsd/protocol/fencing.h"
#include "src/ocsd/protocol/role.h"

#include "src/protocol/fields.h"
#include "src/protocol/names.h"
#include "src/util/hostlist.h"
#include "src/util/text.h"

#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Who asks, and for what. */
struct viewer {
	uid_t uid;
	const char *name; /* only this one, or NULL */
	int64_t last;	  /* how many events, 0: as many as usual */
};

static bool may_see(const struct ocsd *d, const struct viewer *viewer, const struct ocsd_job *job)
{
	char number[32];

	if (job->state == OCSD_JOB_CLOSED || !ocsd_role_owns(d, viewer->uid, job->uid))
		return false;
	if (!viewer->name)
		return true;
	snprintf(number, sizeof(number), "%u", job->job);
	return strcmp(number, viewer->name) == 0;
}

static struct json_object *released_json(const struct ocsd_job *job)
{
	char **names = ocs_calloc(job->nodes.count + 1, sizeof(*names));
	struct json_object *value;
	size_t count = 0;
	char *text;

	for (size_t i = 0; i < job->nodes.count; i++)
		if (job->nodes.released[i])
			names[count++] = job->nodes.names[i];
	text = ocs_hostlist_compress(names, count);
	value = json_object_new_string(text);
	free(text);
	free(names);
	return value;
}

static struct json_object *job_switches(struct ocsd *d, const struct ocsd_job *job)
{
	struct json_object *list = json_object_new_array();
	bool *used = ocs_calloc((size_t)d->fabric->nswitches + 1, sizeof(*used));

	for (size_t i = 0; i < job->ports.count; i++)
		used[job->ports.list[i].sw] = true;
	for (int i = 0; i < d->fabric->nswitches; i++)
		if (used[i])
			json_object_array_add(list,
					      json_object_new_string(d->fabric->switches[i].name));
	free(used);
	return list;
}

static struct json_object *job_json(struct ocsd *d, const struct ocsd_job *job)
{
	struct json_object *row = json_object_new_object();
	char *nodes = ocs_hostlist_compress(job->nodes.names, job->nodes.count);

	ocs_field_add_number(row, OCS_FIELD_JOB, job->job);
	ocs_field_add_number(row, OCS_FIELD_EPOCH, (int64_t)job->epoch);
	ocs_field_add_text(row, OCS_FIELD_USER, job->request.user);
	ocs_field_add_number(row, OCS_FIELD_UID, job->uid);
	ocs_field_add_text(row, OCS_FIELD_STATE, ocsd_job_state_name(job));
	ocs_field_add_text(row, OCS_FIELD_SECTION, job->request.section);
	ocs_field_add_text(row, OCS_FIELD_PARTITION, job->request.partition);
	ocs_field_add_text(row, OCS_FIELD_SHAPE, job->request.shape);
	ocs_field_add_text(row, OCS_FIELD_CONN, job->request.conn);
	ocs_field_add_text(row, OCS_FIELD_NODES, nodes);
	free(nodes);
	json_object_object_add(row, OCS_FIELD_RELEASED, released_json(job));
	ocs_field_add_text(row, OCS_FIELD_PLACEMENT, job->request.placement);
	if (job->plan.text)
		json_object_object_add(row, OCS_FIELD_PLAN, json_tokener_parse(job->plan.text));
	if (job->plan.revision)
		ocs_field_add_number(row, OCS_FIELD_REVISION, job->plan.revision);
	ocs_field_add_number(row, OCS_FIELD_CIRCUITS, (int64_t)ocsd_job_circuits(job));
	json_object_object_add(row, OCS_FIELD_SWITCHES, job_switches(d, job));
	ocsd_heard_show(job, row);
	if (job->failure.error)
		ocs_field_add_text(row, OCS_FIELD_ERROR, job->failure.error);
	return row;
}

static void show_job(struct ocsd *d, const struct viewer *viewer, struct json_object *reply)
{
	struct json_object *list = json_object_new_array();

	for (const struct ocsd_job *job = d->jobs; job; job = job->next)
		if (may_see(d, viewer, job))
			json_object_array_add(list, job_json(d, job));
	json_object_object_add(reply, OCS_FIELD_JOBS, list);
}

static void add_label(struct ocsd *d, struct json_object *row, const char *name, int sw, int port)
{
	char *label = ocs_fabric_port_label(d->fabric, (struct ocs_port){ .sw = sw, .port = port });

	ocs_field_add_text(row, name,
			   ocs_switch_loop_port(&d->fabric->switches[sw], port) ? "loop" : label);
	free(label);
}

/* Only what is on a switch or on its way there. */
static bool circuit_shown(const struct ocsd_circuit *circuit)
{
	return circuit->state != OCSD_PLANNED && circuit->state != OCSD_GONE;
}

static void show_circuit(struct ocsd *d, const struct viewer *viewer, struct json_object *reply)
{
	struct json_object *list = json_object_new_array();

	for (const struct ocsd_job *job = d->jobs; job; job = job->next) {
		if (!may_see(d, viewer, job))
			continue;
		for (size_t i = 0; i < job->circuits.count; i++) {
			const struct ocsd_circuit *circuit = job->circuits.list[i];
			struct json_object *row;

			if (!circuit_shown(circuit))
				continue;
			row = json_object_new_object();
			ocs_field_add_number(row, OCS_FIELD_JOB, job->job);
			ocs_field_add_number(row, OCS_FIELD_EPOCH, (int64_t)job->epoch);
			ocs_field_add_text(row, OCS_FIELD_SWITCH,
					   d->fabric->switches[circuit->sw].name);
			ocs_field_add_number(row, OCS_FIELD_A, circuit->a);
			ocs_field_add_number(row, OCS_FIELD_B, circuit->b);
			add_label(d, row, OCS_FIELD_A_LABEL, circuit->sw, circuit->a);
			add_label(d, row, OCS_FIELD_B_LABEL, circuit->sw, circuit->b);
			ocs_field_add_text(row, OCS_FIELD_STATE,
					   ocsd_circuit_state_name(circuit->state));
			json_object_array_add(list, row);
		}
	}
	json_object_object_add(reply, OCS_FIELD_CIRCUITS, list);
}

static void show_pending(struct ocsd *d, const struct viewer *viewer, struct json_object *reply)
{
	struct json_object *list = json_object_new_array();

	for (const struct ocsd_pending *entry = d->slurmctld.pending; entry; entry = entry->next) {
		struct json_object *row;
		char number[32];

		if (!ocsd_role_owns(d, viewer->uid, entry->uid))
			continue;
		snprintf(number, sizeof(number), "%u", entry->job);
		if (viewer->name && strcmp(viewer->name, number) != 0)
			continue;
		row = json_object_new_object();
		ocs_field_add_number(row, OCS_FIELD_JOB, entry->job);
		ocs_field_add_text(row, OCS_FIELD_USER, entry->user);
		ocs_field_add_text(row, OCS_FIELD_SHAPE, entry->shape);
		ocs_field_add_text(row, OCS_FIELD_REASON, entry->reason);
		json_object_object_add(row, OCS_FIELD_SINCE, json_object_new_double(entry->since));
		json_object_array_add(list, row);
	}
	json_object_object_add(reply, OCS_FIELD_PENDING, list);
}

static int quarantine_count(const struct ocsd *d, const struct ocsd_switch *sw)
{
	size_t length = strlen(sw->description->name);
	int count = 0;

	for (const struct ocsd_drain *drain = d->drains; drain; drain = drain->next)
		if (!strncmp(drain->name, sw->description->name, length) &&
		    drain->name[length] == ':' &&
		    !strncmp(drain->reason, OCSD_QUARANTINE, strlen(OCSD_QUARANTINE)))
			count++;
	return count;
}

/* Circuits of jobs on each switch; the caller frees the counts. */
static int64_t *switch_circuits(const struct ocsd *d)
{
	int64_t *counts = ocs_calloc((size_t)d->fabric->nswitches + 1, sizeof(*counts));

	for (const struct ocsd_job *job = d->jobs; job; job = job->next)
		for (size_t i = 0; job->state != OCSD_JOB_CLOSED && i < job->circuits.count; i++)
			counts[job->circuits.list[i]->sw] += circuit_shown(job->circuits.list[i]);
	return counts;
}

static void show_switch(struct ocsd *d, const struct viewer *viewer, struct json_object *reply)
{
	struct json_object *list = json_object_new_array();
	int64_t *circuits = switch_circuits(d);

	for (int i = 0; i < d->fabric->nswitches; i++) {
		const struct ocsd_switch *sw = &d->switches[i];
		struct json_object *row;

		if (viewer->name && strcmp(viewer->name, sw->description->name) != 0)
			continue;
		row = json_object_new_object();
		ocs_field_add_text(row, OCS_FIELD_NAME, sw->description->name);
		ocs_field_add_text(row, OCS_FIELD_STATE, ocsd_switch_state_name(sw));
		ocs_field_add_text(row, OCS_FIELD_REASON,
				   sw->status.state != OCSD_UP ? sw->status.reason :
								 sw->status.drain_reason);
		ocs_field_add_text(row, OCS_FIELD_ADDRESS, sw->description->address);
		ocs_field_add_number(row, OCS_FIELD_SIZE, sw->description->size);
		ocs_field_add_number(row, OCS_FIELD_CIRCUITS, circuits[i]);
		ocs_field_add_number(row, OCS_FIELD_PATCHES, (int64_t)sw->npatches);
		ocs_field_add_number(row, OCS_FIELD_QUARANTINE, quarantine_count(d, sw));
		json_object_object_add(row, OCS_FIELD_LAST_READ,
				       json_object_new_double(sw->poll.last_read));
		json_object_array_add(list, row);
	}
	free(circuits);
	json_object_object_add(reply, OCS_FIELD_SWITCHES, list);
}

/* For every port of SW the circuit that uses it and may exist; caller frees. */
static const struct ocsd_circuit **port_circuits(const struct ocsd_switch *sw)
{
	const struct ocsd_circuit **circuits =
		ocs_calloc(2 * (size_t)sw->description->size + 1, sizeof(*circuits));

	for (int in = 1; in <= sw->description->size; in++) {
		const struct ocsd_circuit *circuit = sw->by_in[in];

		if (circuit)
			circuits[circuit->a] = circuits[circuit->b] = circuit;
	}
	return circuits;
}

static const char *port_state(struct ocsd *d, const struct ocsd_switch *sw, int port,
			      const struct ocsd_circuit *circuit)
{
	char name[256];

	if (sw->ports[port].foreign)
		return "INVALID";
	if (circuit)
		return ocsd_circuit_state_name(circuit->state);
	snprintf(name, sizeof(name), "%s:%d", sw->description->name, port);
	if (ocsd_drain_find(d, "port", name))
		return "DRAINED";
	return sw->ports[port].owner ? "RESERVED" : "FREE";
}

/* NAME is a switch or SWITCH:PORT. */
static bool port_named(const struct ocsd_switch *sw, int port, const char *name)
{
	char text[256];

	if (!name || strcmp(name, sw->description->name) == 0)
		return true;
	snprintf(text, sizeof(text), "%s:%d", sw->description->name, port);
	return strcmp(text, name) == 0;
}

/* Why a port is out of service. */
static void add_reason(struct ocsd *d, const struct ocsd_switch *sw, int port,
		       struct json_object *row)
{
	char name[256];
	const struct ocsd_drain *drain;

	snprintf(name, sizeof(name), "%s:%d", sw->description->name, port);
	drain = ocsd_drain_find(d, "port", name);
	if (drain || sw->ports[port].foreign)
		ocs_field_add_text(row, OCS_FIELD_REASON,
				   drain ? drain->reason : "a patch that is not ours");
}

static void show_port(struct ocsd *d, const struct viewer *viewer, struct json_object *reply)
{
	struct json_object *list = json_object_new_array();

	for (int i = 0; i < d->fabric->nswitches; i++) {
		const struct ocsd_switch *sw = &d->switches[i];
		int ports = sw->description->size * (sw->description->bidi ? 2 : 1);
		const struct ocsd_circuit **circuits = port_circuits(sw);

		for (int port = 1; port <= ports; port++) {
			struct json_object *row;

			if (!port_named(sw, port, viewer->name))
				continue;
			row = json_object_new_object();
			ocs_field_add_text(row, OCS_FIELD_SWITCH, sw->description->name);
			ocs_field_add_number(row, OCS_FIELD_PORT, port);
			add_label(d, row, OCS_FIELD_LABEL, i, port);
			if (sw->ports[port].owner)
				ocs_field_add_number(row, OCS_FIELD_OWNER,
						     sw->ports[port].owner->job);
			ocs_field_add_text(row, OCS_FIELD_STATE,
					   port_state(d, sw, port, circuits[port]));
			ocsd_power_show(d, sw, port, row);
			add_reason(d, sw, port, row);
			json_object_array_add(list, row);
		}
		free(circuits);
	}
	json_object_object_add(reply, OCS_FIELD_PORTS, list);
}

static struct json_object *cube_jobs(struct ocsd *d, const struct ocs_section *section, int cube)
{
	struct json_object *list = json_object_new_array();

	for (const struct ocsd_job *job = d->jobs; job; job = job->next)
		for (int i = 0;
		     job->state != OCSD_JOB_CLOSED && job->section == section && i < job->ncubes;
		     i++)
			if (job->cubes[i] == cube)
				json_object_array_add(list, json_object_new_int64(job->job));
	return list;
}

static struct json_object *cube_nodes(struct ocsd *d, const struct ocs_section *section, int cube)
{
	int first = section->first_node + cube * section->cube_nodes;
	char **names = ocs_calloc((size_t)section->cube_nodes + 1, sizeof(*names)), *text;
	struct json_object *value;

	for (int i = 0; i < section->cube_nodes; i++)
		names[i] = d->fabric->nodes[first + i].name;
	text = ocs_hostlist_compress(names, (size_t)section->cube_nodes);
	value = json_object_new_string(text);
	free(text);
	free(names);
	return value;
}

static void show_cube(struct ocsd *d, const struct viewer *viewer, struct json_object *reply)
{
	struct json_object *list = json_object_new_array();

	for (int s = 0; s < d->fabric->nsections; s++) {
		const struct ocs_section *section = &d->fabric->sections[s];

		for (int cube = 0; cube < section->ncubes; cube++) {
			const char *name = section->cube_names ? section->cube_names[cube] : NULL;
			const struct ocsd_drain *drain;
			struct json_object *row;

			if (!name || (viewer->name && strcmp(viewer->name, name) != 0))
				continue;
			row = json_object_new_object();
			ocs_field_add_text(row, OCS_FIELD_SECTION, section->name);
			ocs_field_add_text(row, OCS_FIELD_NAME, name);
			drain = ocsd_drain_find(d, "cube", name);
			ocs_field_add_bool(row, OCS_FIELD_DRAINED, drain != NULL);
			if (drain)
				ocs_field_add_text(row, OCS_FIELD_REASON, drain->reason);
			json_object_object_add(row, OCS_FIELD_NODES, cube_nodes(d, section, cube));
			json_object_object_add(row, OCS_FIELD_JOBS, cube_jobs(d, section, cube));
			json_object_array_add(list, row);
		}
	}
	json_object_object_add(reply, OCS_FIELD_CUBES, list);
}

static void show_fabric(struct ocsd *d, const struct viewer *viewer, struct json_object *reply)
{
	struct json_object *list = json_object_new_array();
	char digest[OCS_DIGEST_TEXT];

	(void)viewer;
	ocs_field_add_text(reply, OCS_FIELD_SOURCE, d->fabric->source);
	if (d->yaml.fault) {
		snprintf(digest, sizeof(digest), "%016llx",
			 (unsigned long long)d->config->text_digest);
		ocs_field_add_text(reply, OCS_FIELD_FAULT, d->yaml.fault);
		ocs_field_add_text(reply, OCS_FIELD_TEXT, digest);
	}
	for (int s = 0; s < d->fabric->nsections; s++) {
		const struct ocs_section *section = &d->fabric->sections[s];
		struct json_object *row = json_object_new_object();

		ocs_field_add_text(row, OCS_FIELD_NAME, section->name);
		ocs_field_add_text(row, OCS_FIELD_KIND, ocs_section_kind_name(section->kind));
		ocs_field_add_number(row, OCS_FIELD_CUBES, section->ncubes);
		ocs_field_add_number(row, OCS_FIELD_NODES, section->nnodes);
		json_object_array_add(list, row);
	}
	json_object_object_add(reply, OCS_FIELD_SECTIONS, list);
	json_object_object_add(reply, OCS_FIELD_DRAINS, ocsd_drains_json(d));
	ocs_field_add_bool(reply, OCS_FIELD_SLURMCTLD, ocsd_subscribed(d));
	if (ocsd_term_newest(d) && d->slurmctld.yaml)
		json_object_object_add(reply, OCS_FIELD_SLURMCTLD_YAML,
				       json_object_get(d->slurmctld.yaml));
	ocs_field_add_number(reply, OCS_FIELD_MAX_EPOCH, (int64_t)d->slurmctld.max_epoch);
	ocs_fabric_digest(d->fabric, digest);
	ocs_field_add_text(reply, OCS_FIELD_DIGEST, digest);
}

static void show_nodes(struct ocsd *d, const struct viewer *viewer, struct json_object *reply)
{
	(void)viewer;
	json_object_object_add(reply, OCS_FIELD_NODES,
			       d->slurmctld.nodes ? json_object_get(d->slurmctld.nodes) :
						    json_object_new_object());
	json_object_object_add(reply, OCS_FIELD_NEVER_HEARD, ocsd_heard_never(d));
}

static void show_history(struct ocsd *d, const struct viewer *viewer, struct json_object *reply)
{
	json_object_object_add(reply, OCS_FIELD_HISTORY,
			       viewer->name ? ocsd_history(d, viewer->name, viewer->last) :
					      json_object_new_array());
}

static const struct view {
	const char *what;
	void (*show)(struct ocsd *d, const struct viewer *viewer, struct json_object *reply);
} views[] = {
	{ OCS_SHOW_FABRIC, show_fabric },   { OCS_SHOW_SWITCH, show_switch },
	{ OCS_SHOW_PORT, show_port },	    { OCS_SHOW_CUBE, show_cube },
	{ OCS_SHOW_JOB, show_job },	    { OCS_SHOW_CIRCUIT, show_circuit },
	{ OCS_SHOW_PENDING, show_pending }, { OCS_SHOW_NODES, show_nodes },
	{ OCS_SHOW_HISTORY, show_history },
};

void ocsd_op_show(struct ocsd *d, struct ocsd_client *client, int64_t id,
		  struct json_object *request)
{
	const char *what = ocs_field_text(request, OCS_FIELD_WHAT, NULL);
	struct viewer viewer = { .uid = *ocsd_client_who(client),
				 .name = ocs_field_text(request, OCS_FIELD_NAME, NULL),
				 .last = ocs_field_number(request, OCS_FIELD_LAST, 0) };
	struct json_object *reply;

	for (size_t i = 0; what && i < sizeof(views) / sizeof(views[0]); i++) {
		if (strcmp(what, views[i].what) != 0)
			continue;
		reply = json_object_new_object();
		views[i].show(d, &viewer, reply);
		ocs_field_add_number(reply, OCS_FIELD_REVISION, ocsd_store_revision(d));
		ocsd_reply(client, id, reply);
		return;
	}
	ocsd_refuse(
		client, id, OCS_USAGE, NULL,
		"show needs what: fabric, switch, port, cube, job, circuit, pending, nodes, phases, region or history");
}
