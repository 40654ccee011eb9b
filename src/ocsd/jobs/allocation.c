/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/ocsd/jobs/allocation.h"
#include "src/ocsd/state/menus.h"
#include "src/ocsd/store/store.h"

#include "src/place/place.h"
#include "src/util/text.h"

#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

static const char *const circuit_states[] = {
	[OCSD_PLANNED] = "PLANNED",	  [OCSD_CONNECTING] = "PENDING_CONNECTION",
	[OCSD_CONNECTED] = "CONNECTED",	  [OCSD_DELETING] = "PENDING_DELETION",
	[OCSD_CIRCUIT_FAILED] = "FAILED", [OCSD_GONE] = "GONE",
};

size_t ocsd_job_circuits(const struct ocsd_job *job)
{
	return job->circuits.count - job->circuits.ngone;
}

const char *ocsd_circuit_state_name(enum ocsd_circuit_state state)
{
	return circuit_states[state];
}

struct ocsd_job *ocsd_job_find(struct ocsd *d, uint32_t job, uint64_t epoch)
{
	for (struct ocsd_job *at = d->jobs; at; at = at->next)
		if (at->job == job && at->epoch == epoch && at->state != OCSD_JOB_CLOSED)
			return at;
	return NULL;
}

struct ocsd_job *ocsd_job_newest(struct ocsd *d, uint32_t job)
{
	struct ocsd_job *newest = NULL;

	for (struct ocsd_job *at = d->jobs; at; at = at->next)
		if (at->job == job && at->state != OCSD_JOB_CLOSED &&
		    (!newest || at->epoch > newest->epoch))
			newest = at;
	return newest;
}

bool ocsd_job_over(struct ocsd *d, uint32_t number, uint64_t epoch)
{
	const struct ocsd_job *newest = ocsd_job_newest(d, number);

	return (newest && newest->epoch > epoch) || ocsd_store_last_epoch(d, number) >= epoch;
}

void ocsd_job_free(struct ocsd_job *job)
{
	if (!job)
		return;
	for (size_t i = 0; i < job->nodes.count; i++)
		free(job->nodes.names[i]);
	for (size_t i = 0; i < job->circuits.count; i++)
		free(job->circuits.list[i]);
	free(job->nodes.names);
	free(job->nodes.sorted);
	free(job->circuits.list);
	free(job->nodes.released);
	free(job->prolog.asked);
	free(job->cubes);
	free(job->ports.list);
	free(job->request.user);
	free(job->request.partition);
	free(job->request.shape);
	free(job->request.conn);
	free(job->request.placement);
	free(job->request.demand);
	free(job->plan.text);
	json_object_put(job->plan.object);
	free(job->request.section);
	for (size_t i = 0; job->prolog.hosts && i < job->nodes.count; i++)
		json_object_put(job->prolog.hosts[i]);
	free(job->prolog.hosts);
	free(job->failure.host);
	free(job->failure.sw);
	free(job->failure.error);
	free(job->repair.why);
	ocsd_menu_free(job->menu);
	free(job);
}

static int by_name(const void *left, const void *right)
{
	return strcmp(**(char **const *)left, **(char **const *)right);
}

int ocsd_job_node(struct ocsd_job *job, const char *name)
{
	size_t low = 0, high = job->nodes.count;

	/* Each of thousands of nodes asks. */
	if (!job->nodes.sorted && job->nodes.count) {
		job->nodes.sorted = ocs_calloc(job->nodes.count, sizeof(*job->nodes.sorted));
		for (size_t i = 0; i < job->nodes.count; i++)
			job->nodes.sorted[i] = &job->nodes.names[i];
		qsort(job->nodes.sorted, job->nodes.count, sizeof(*job->nodes.sorted), by_name);
	}
	while (low < high) {
		size_t middle = (low + high) / 2;
		int order = strcmp(name, *job->nodes.sorted[middle]);

		if (order == 0)
			return (int)(job->nodes.sorted[middle] - job->nodes.names);
		if (order < 0)
			high = middle;
		else
			low = middle + 1;
	}
	return -1;
}

int ocsd_job_circuit(struct ocsd *d, struct ocsd_job *job, int sw, int a, int b, bool directed,
		     enum ocsd_circuit_state state, struct ocs_error *err)
{
	const struct ocs_switch *description = &d->fabric->switches[sw];
	struct ocsd_circuit *circuit = ocs_calloc(1, sizeof(*circuit));
	int count = ocs_switch_patches(description, a, b, circuit->patches, err);

	if (count > 0 && directed && description->bidi)
		count = ocs_error_set(
			err, OCS_USAGE,
			"switch %s has one fibre a port and cannot join Tx and Rx apart",
			description->name);
	if (count < 0) {
		free(circuit);
		return -1;
	}
	if (directed) {
		circuit->patches[0].in = a;
		circuit->patches[0].out = description->size + b;
		count = 1;
	}
	circuit->job = job;
	circuit->sw = sw;
	circuit->a = a;
	circuit->b = b;
	circuit->directed = directed;
	circuit->npatches = count;
	circuit->state = state;
	circuit->sent = state != OCSD_PLANNED;
	job->circuits.ngone += state == OCSD_GONE;
	if ((job->circuits.count & (job->circuits.count + 1)) == 0)
		job->circuits.list =
			ocs_realloc(job->circuits.list,
				    (job->circuits.count + 1) * 2 * sizeof(struct ocsd_circuit *));
	job->circuits.list[job->circuits.count++] = circuit;
	return 0;
}

void ocsd_job_port(struct ocsd_job *job, struct ocs_port port)
{
	if ((job->ports.count & (job->ports.count + 1)) == 0)
		job->ports.list = ocs_realloc(job->ports.list,
					      (job->ports.count + 1) * 2 * sizeof(struct ocs_port));
	job->ports.list[job->ports.count++] = port;
}

bool ocsd_job_uses(const struct ocsd_job *job, struct ocs_port port)
{
	for (size_t i = 0; i < job->circuits.count; i++) {
		const struct ocsd_circuit *circuit = job->circuits.list[i];

		if (circuit->state != OCSD_GONE && circuit->sw == port.sw &&
		    (circuit->a == port.port || circuit->b == port.port))
			return true;
	}
	return ocsd_menu_unread_on(job, port.sw);
}

size_t ocsd_job_left(const struct ocsd *d, const struct ocsd_job *job, bool all)
{
	size_t count = ocsd_menu_unread(d, job, all);

	for (size_t i = 0; i < job->circuits.count; i++)
		if (job->circuits.list[i]->state != OCSD_GONE &&
		    (all ||
		     (d->switches[job->circuits.list[i]->sw].status.state != OCSD_SWITCH_FAILED &&
		      !job->circuits.list[i]->postponed)))
			count++;
	return count;
}

struct json_object *ocsd_job_pending(struct ocsd *d, const struct ocsd_job *job)
{
	struct json_object *list = json_object_new_array();

	for (int s = 0; s < d->fabric->nswitches; s++)
		for (size_t i = 0; i < job->circuits.count; i++)
			if (job->circuits.list[i]->sw == s &&
			    job->circuits.list[i]->state != OCSD_GONE) {
				json_object_array_add(
					list, json_object_new_string(d->fabric->switches[s].name));
				break;
			}
	return list;
}

struct json_object *ocsd_job_ports_to_blame(struct ocsd *d, const struct ocsd_job *job)
{
	struct json_object *ports = NULL;

	for (size_t i = 0; i < job->ports.count; i++) {
		const struct ocsd_switch *sw = &d->switches[job->ports.list[i].sw];
		const struct ocsd_port *port = &sw->ports[job->ports.list[i].port];
		char *name;

		if (sw->status.state != OCSD_UP ||
		    !(port->foreign || port->drained || port->failed) || !job->failure.sw ||
		    strcmp(job->failure.sw, sw->description->name))
			continue;
		if (!ports)
			ports = json_object_new_array();
		name = ocs_asprintf("%s:%d", sw->description->name, job->ports.list[i].port);
		json_object_array_add(ports, json_object_new_string(name));
		free(name);
	}
	return ports;
}

struct ocs_placer *ocsd_placer(struct ocsd *d, const struct ocs_section *section)
{
	struct ocs_placer **slot = &d->placers[section->index];

	if (!*slot)
		*slot = ocs_placer_create(d->fabric, section);
	return *slot;
}
