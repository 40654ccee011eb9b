/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Allocations from commit to verified teardown, and the ports they own. */

#include "src/ocsd/jobs/lookahead.h"
#include "src/ocsd/store/audit.h"
#include "src/ocsd/jobs/forwarding.h"
#include "src/ocsd/jobs/job.h"
#include "src/ocsd/metrics/exporter.h"
#include "src/ocsd/jobs/connect.h"
#include "src/ocsd/jobs/replan.h"
#include "src/ocsd/protocol/connection.h"
#include "src/ocsd/store/store.h"
#include "src/ocsd/ops/pending_reply.h"

#include "src/place/place.h"
#include "src/protocol/fields.h"
#include "src/protocol/names.h"
#include "src/util/text.h"

#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

static const char *const job_states[] = {
	[OCSD_COMMITTED] = "committed", [OCSD_APPLYING] = "applying",
	[OCSD_REALISED] = "realised", [OCSD_FAILED] = "failed", [OCSD_ENDED] = "ended",
};

static const char *const circuit_states[] = {
	[OCSD_PLANNED] = "PLANNED", [OCSD_CONNECTING] = "PENDING_CONNECTION",
	[OCSD_CONNECTED] = "CONNECTED", [OCSD_DELETING] = "PENDING_DELETION",
	[OCSD_BROKEN] = "FAILED", [OCSD_GONE] = "GONE",
};

const char *ocsd_job_state_name(const struct ocsd_job *job)
{
	if (job->ended || job->breaking)
		return job_states[OCSD_ENDED];
	if (job->prepared && job->state != OCSD_FAILED)
		return "prepared";
	if (job->state == OCSD_REALISED && job->mending)
		return "repairing";
	if (job->state == OCSD_REALISED && job->error)
		return "degraded";
	return job_states[job->state];
}

size_t ocsd_job_circuits(const struct ocsd_job *job)
{
	return job->ncircuits - job->ngone;
}

const char *ocsd_circuit_state_name(enum ocsd_circuit_state state)
{
	return circuit_states[state];
}

struct ocsd_job *ocsd_job_find(struct ocsd *d, uint32_t job, uint64_t epoch)
{
	for (struct ocsd_job *at = d->jobs; at; at = at->next)
		if (at->job == job && at->epoch == epoch && !at->dead)
			return at;
	return NULL;
}

struct ocsd_job *ocsd_job_newest(struct ocsd *d, uint32_t job)
{
	struct ocsd_job *newest = NULL;

	for (struct ocsd_job *at = d->jobs; at; at = at->next)
		if (at->job == job && !at->dead && (!newest || at->epoch > newest->epoch))
			newest = at;
	return newest;
}

void ocsd_job_free(struct ocsd_job *job)
{
	if (!job)
		return;
	for (size_t i = 0; i < job->nnodes; i++)
		free(job->nodes[i]);
	for (size_t i = 0; i < job->ncircuits; i++)
		free(job->circuits[i]);
	free(job->nodes);
	free(job->sorted);
	free(job->circuits);
	free(job->released);
	free(job->asked);
	free(job->cubes);
	free(job->ports);
	free(job->user);
	free(job->partition);
	free(job->shape);
	free(job->conn);
	free(job->placement);
	free(job->demand);
	free(job->plan);
	json_object_put(job->plan_object);
	free(job->section_name);
	ocsd_forward_free(job);
	free(job->failed_host);
	free(job->failed_switch);
	free(job->error);
	free(job->repair);
	free(job);
}

static int by_name(const void *left, const void *right)
{
	return strcmp(**(char **const *)left, **(char **const *)right);
}

int ocsd_job_node(struct ocsd_job *job, const char *name)
{
	size_t low = 0, high = job->nnodes;

	/* Each of thousands of nodes asks. */
	if (!job->sorted && job->nnodes) {
		job->sorted = ocs_calloc(job->nnodes, sizeof(*job->sorted));
		for (size_t i = 0; i < job->nnodes; i++)
			job->sorted[i] = &job->nodes[i];
		qsort(job->sorted, job->nnodes, sizeof(*job->sorted), by_name);
	}
	while (low < high) {
		size_t middle = (low + high) / 2;
		int order = strcmp(name, *job->sorted[middle]);

		if (order == 0)
			return (int)(job->sorted[middle] - job->nodes);
		if (order < 0)
			high = middle;
		else
			low = middle + 1;
	}
	return -1;
}

int ocsd_job_circuit(struct ocsd *d, struct ocsd_job *job, int sw, int a, int b,
		     bool directed, enum ocsd_circuit_state state, struct ocs_error *err)
{
	const struct ocs_switch *description = &d->fabric->switches[sw];
	struct ocsd_circuit *circuit = ocs_calloc(1, sizeof(*circuit));
	int count = ocs_switch_patches(description, a, b, circuit->patches, err);

	if (count > 0 && directed && description->bidi)
		count = ocs_error_set(err, OCS_USAGE,
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
	job->ngone += state == OCSD_GONE;
	if ((job->ncircuits & (job->ncircuits + 1)) == 0)
		job->circuits = ocs_realloc(job->circuits, (job->ncircuits + 1) * 2 *
					    sizeof(struct ocsd_circuit *));
	job->circuits[job->ncircuits++] = circuit;
	return 0;
}

void ocsd_job_port(struct ocsd_job *job, struct ocs_port port)
{
	if ((job->nports & (job->nports + 1)) == 0)
		job->ports = ocs_realloc(job->ports, (job->nports + 1) * 2 *
					 sizeof(struct ocs_port));
	job->ports[job->nports++] = port;
}

static struct ocsd_port *port_of(struct ocsd *d, struct ocs_port port)
{
	return &d->switches[port.sw].ports[port.port];
}

static void claim_ports(struct ocsd *d, struct ocsd_job *job)
{
	for (size_t i = 0; i < job->nports; i++) {
		struct ocsd_port *port = port_of(d, job->ports[i]);

		if (port->owner == job)
			continue;
		if (!port->owner) {
			port->owner = job;
		} else if (!port->next) {
			port->next = job;
			job->nwaiting++;
		} else {
			/* Commit refuses this; only a damaged database brings it. */
			ocs_log(OCS_LOG_ERROR, "port %d of switch %s is claimed by jobs %u, %u and %u",
				job->ports[i].port,
				d->fabric->switches[job->ports[i].sw].name,
				port->owner->job, port->next->job, job->job);
			job->nwaiting++;
		}
	}
}

/* Whether a circuit of JOB that may still exist uses PORT. */
static bool in_use(const struct ocsd_job *job, struct ocs_port port)
{
	for (size_t i = 0; i < job->ncircuits; i++) {
		const struct ocsd_circuit *circuit = job->circuits[i];

		if (circuit->state != OCSD_GONE && circuit->sw == port.sw &&
		    (circuit->a == port.port || circuit->b == port.port))
			return true;
	}
	return false;
}

/* Gives back what no remaining circuit uses (CLEAN: there is none); the next in
 * line takes over. */
static void free_ports(struct ocsd *d, struct ocsd_job *job, bool clean)
{
	size_t kept = 0;

	for (size_t i = 0; i < job->nports; i++) {
		struct ocsd_port *port = port_of(d, job->ports[i]);
		struct ocsd_job *next = port->next;

		if (port->next == job) {
			port->next = NULL;
			continue;
		}
		if (port->owner != job)
			continue;
		if (!clean && in_use(job, job->ports[i])) {
			job->ports[kept++] = job->ports[i];
			continue;
		}
		port->owner = next;
		port->next = NULL;
		if (next && --next->nwaiting == 0)
			ocsd_job_progress(d, next);
	}
	job->nports = kept;
}

void ocsd_job_enter(struct ocsd *d, struct ocsd_job *job)
{
	struct ocsd_job **at = &d->jobs;

	/* In the order of their numbers, as people expect to see them. */
	while (*at && ((*at)->job < job->job ||
		       ((*at)->job == job->job && (*at)->epoch < job->epoch)))
		at = &(*at)->next;
	job->next = *at;
	*at = job;
	claim_ports(d, job);
	if (job->epoch > d->max_epoch)
		d->max_epoch = job->epoch;
}

void ocsd_job_end(struct ocsd *d, struct ocsd_job *job, const char *reason)
{
	if (!job->ended) {
		job->ended = true;
		ocs_log(OCS_LOG_INFO, "job %u left its allocation (epoch %llu): %s", job->job,
			(unsigned long long)job->epoch, reason ? reason : "no reason given");
		ocsd_store_job_update(d, job);
		ocsd_audit(d, &(struct ocsd_audit){ .job = job, .what = "end", .after = reason });
	}
	ocsd_wait_gone(d, job);
	ocsd_job_progress(d, job);
}

void ocsd_job_gone(struct ocsd *d, struct ocsd_job *job, const char *reason)
{
	if (!job->gone) {
		if (job->prepared)
			ocsd_ahead_leave_line(d, job);
		job->gone = true;
		job->ended = true;
		ocs_log(OCS_LOG_INFO, "job %u is gone (epoch %llu): %s", job->job,
			(unsigned long long)job->epoch, reason);
		ocsd_store_job_update(d, job);
		ocsd_audit(d, &(struct ocsd_audit){ .job = job, .what = "gone", .after = reason });
	}
	job->announced = false;	/* whoever took it for a living job has missed that */
	ocsd_wait_gone(d, job);
	ocsd_job_progress(d, job);
}

void ocsd_job_release(struct ocsd *d, struct ocsd_job *job, int node)
{
	for (size_t i = 0; i < job->nnodes; i++) {
		if (job->released[i] || (node >= 0 && (size_t)node != i))
			continue;
		job->released[i] = true;
		job->nreleased++;
		ocsd_store_release(d, job, job->nodes[i]);
	}
	if (job->nreleased == job->nnodes && !job->ended)
		ocsd_job_end(d, job, "every node has released it");
	else
		ocsd_job_progress(d, job);
}

/* Circuits of JOB that are left on switches that answer and obey (or on all). */
static size_t left(struct ocsd *d, const struct ocsd_job *job, bool all)
{
	size_t count = 0;

	for (size_t i = 0; i < job->ncircuits; i++)
		if (job->circuits[i]->state != OCSD_GONE &&
		    (all || (d->switches[job->circuits[i]->sw].state != OCSD_SWITCH_FAILED &&
			     !job->circuits[i]->postponed)))
			count++;
	return count;
}

struct json_object *ocsd_job_pending(struct ocsd *d, const struct ocsd_job *job)
{
	struct json_object *list = json_object_new_array();

	for (int s = 0; s < d->fabric->nswitches; s++)
		for (size_t i = 0; i < job->ncircuits; i++)
			if (job->circuits[i]->sw == s &&
			    job->circuits[i]->state != OCSD_GONE) {
				json_object_array_add(list, json_object_new_string(
					d->fabric->switches[s].name));
				break;
			}
	return list;
}

static void announce_released(struct ocsd *d, struct ocsd_job *job)
{
	struct json_object *event;

	if (!job->announced) {
		job->announced = true;
		event = ocs_event_job(OCS_EVENT_RELEASED, job->job, job->epoch);
		ocsd_event_send(d, event);
		ocsd_audit(d, &(struct ocsd_audit){ .job = job, .what = "released" });
		ocsd_store_job_update(d, job);
	}
	ocsd_wait_released(d, job);
}

static bool break_due(const struct ocsd_job *job)
{
	if (job->gone || job->nreleased == job->nnodes)
		return true;
	/* No node was told yes: there is nothing to wait for. */
	return job->ended && (job->rolled_back || job->state == OCSD_COMMITTED ||
			      job->state == OCSD_APPLYING);
}

/* An ended job's circuit on a failed switch is in the way for who knows how
 * long: the job in its prolog had better go elsewhere. */
static void fail_blocked(struct ocsd *d, struct ocsd_job *job)
{
	for (size_t i = 0; i < job->nports; i++) {
		const struct ocsd_switch *sw = &d->switches[job->ports[i].sw];
		char *text;

		if (port_of(d, job->ports[i])->owner == job ||
		    sw->state != OCSD_SWITCH_FAILED)
			continue;
		text = ocs_asprintf("switch %s has failed, and port %d still carries a circuit of job %u",
				    sw->description->name, job->ports[i].port,
				    port_of(d, job->ports[i])->owner->job);
		ocsd_job_fail(d, job, sw, text);
		free(text);
		return;
	}
}

void ocsd_job_progress(struct ocsd *d, struct ocsd_job *job)
{
	if (job->dead)
		return;
	if (!job->breaking && break_due(job)) {
		job->breaking = true;
		ocsd_realise_abandon(d, job);
	}
	if (job->breaking) {
		bool clean = left(d, job, true) == 0;

		if (left(d, job, false)) {
			/* a 1x2 switch need not wait for the slow ones behind it */
			if (ocsd_ahead_has(job))
				free_ports(d, job, false);
			return;
		}
		free_ports(d, job, clean);
		announce_released(d, job);
		if (clean) {
			job->dead = true;
			ocsd_store_job_remove(d, job);
		}
		return;
	}
	if (!job->ended && job->state == OCSD_APPLYING && ocsd_ahead_has(job))
		ocsd_realise_more(d, job);
	if (job->ended || job->state != OCSD_COMMITTED)
		return;
	if (job->prepared) {
		ocsd_ahead_start(d, job);
		return;
	}
	if (job->nwaiting == 0 && (job->wanted || ocsd_wait_applies(d, job)))
		ocsd_realise_start(d, job);
	else if (job->nwaiting && !job->wanted && ocsd_wait_applies(d, job))
		fail_blocked(d, job);
}

struct json_object *ocsd_job_ports_to_blame(struct ocsd *d, const struct ocsd_job *job)
{
	struct json_object *ports = NULL;

	for (size_t i = 0; i < job->nports; i++) {
		const struct ocsd_switch *sw = &d->switches[job->ports[i].sw];
		const struct ocsd_port *port = port_of(d, job->ports[i]);
		char *name;

		if (sw->state != OCSD_UP || !(port->foreign || port->drained || port->failed) ||
		    !job->failed_switch || strcmp(job->failed_switch, sw->description->name))
			continue;
		if (!ports)
			ports = json_object_new_array();
		name = ocs_asprintf("%s:%d", sw->description->name, job->ports[i].port);
		json_object_array_add(ports, json_object_new_string(name));
		free(name);
	}
	return ports;
}

void ocsd_job_failed_event(struct ocsd *d, const struct ocsd_job *job)
{
	struct json_object *event = ocs_event_job(OCS_EVENT_JOB_FAILED, job->job, job->epoch);
	struct json_object *ports = ocsd_job_ports_to_blame(d, job);

	if (job->failed_switch)
		ocs_field_add_text(event, OCS_FIELD_SWITCH, job->failed_switch);
	if (job->failed_host)
		ocs_field_add_text(event, OCS_FIELD_HOST, job->failed_host);
	ocs_field_add_text(event, OCS_FIELD_ERROR, job->error ? job->error : "unknown");
	if (ports)
		json_object_object_add(event, OCS_FIELD_PORTS, ports);
	ocsd_event_send(d, event);
}

void ocsd_job_fail(struct ocsd *d, struct ocsd_job *job, const struct ocsd_switch *sw,
		   const char *error)
{
	bool realised = job->state == OCSD_REALISED;

	if (job->ended || job->breaking || job->state == OCSD_FAILED)
		return;
	free(job->error);
	if (job->prepared) {
		job->error = ocs_strdup(error);
		ocsd_job_gone(d, job, error);
		return;
	}
	job->state = OCSD_FAILED;
	ocsd_metrics_job_failed(d->metrics);
	free(job->failed_switch);
	job->failed_switch = sw ? ocs_strdup(sw->description->name) : NULL;
	job->error = ocs_strdup(error);
	ocs_log(OCS_LOG_ERROR, "job %u: %s", job->job, error);
	/* A running job keeps what it has until it is taken off its nodes. */
	if (!realised) {
		job->rolled_back = true;
		ocsd_realise_abandon(d, job);
	}
	ocsd_store_job_update(d, job);
	ocsd_audit(d, &(struct ocsd_audit){ .job = job, .sw = sw, .what = "job_failed",
					    .reply = error });
	ocsd_job_failed_event(d, job);
}

struct ocs_placer *ocsd_placer(struct ocsd *d, const struct ocs_section *section)
{
	struct ocs_placer **slot = &d->placers[section->index];

	if (!*slot)
		*slot = ocs_placer_create(d->fabric, section);
	return *slot;
}

/* Pictures need to know the cubes of a job that an earlier ocsd committed. */
static void load_cubes(struct ocsd *d, struct ocsd_job *job)
{
	struct ocs_placement *placement;
	struct ocs_error err;

	if (!job->placement || !job->section || job->section->kind != OCS_TORUS)
		return;
	placement = ocs_placement_decode(ocsd_placer(d, job->section), job->placement, &err);
	if (!placement) {
		ocs_log(OCS_LOG_WARNING, "the placement of job %u does not fit ocs.yaml any more: %s",
			job->job, err.text);
		return;
	}
	job->ncubes = placement->ncubes;
	job->cubes = ocs_calloc((size_t)placement->ncubes + 1, sizeof(int));
	memcpy(job->cubes, placement->cubes, (size_t)placement->ncubes * sizeof(int));
	ocs_placement_destroy(placement);
}

/* Circuits that may exist are ours: a read-back must not call them foreign. */
static void adopt_circuits(struct ocsd *d, struct ocsd_job *job)
{
	for (size_t i = 0; i < job->ncircuits; i++) {
		struct ocsd_circuit *circuit = job->circuits[i];

		/* A running job has circuits to come or to go: ocsd ended within a repair. */
		if (job->state == OCSD_REALISED && !job->ended &&
		    (circuit->state == OCSD_PLANNED || circuit->state == OCSD_DELETING))
			job->mending = true;
		if (circuit->state == OCSD_PLANNED || circuit->state == OCSD_GONE)
			continue;
		/* A batch with it may have been on its way when ocsd ended. */
		circuit->unsure = circuit->state == OCSD_CONNECTING ||
				  circuit->state == OCSD_DELETING;
		if (circuit->unsure)
			d->switches[circuit->sw].sure_ns = INT64_MAX;
		for (int p = 0; p < circuit->npatches; p++) {
			struct ocsd_circuit **slot =
				&d->switches[circuit->sw].by_in[circuit->patches[p].in];

			/* what a 1x2 switch leaves goes first */
			if (!*slot || circuit->state == OCSD_DELETING)
				*slot = circuit;
		}
	}
	/* Its nodes ask again; until then nothing more is done for it. */
	if (job->state == OCSD_APPLYING)
		job->state = OCSD_COMMITTED;
}

/* What ocsd did not get round to before it ended. */
static void resume_repair(struct ocsd *d, struct ocsd_job *job)
{
	if (job->state != OCSD_REALISED || !job->plan)
		return;
	for (size_t i = 0; i < job->ncircuits; i++)
		if (job->circuits[i]->state == OCSD_BROKEN)
			ocsd_repair_want(d, job, "a circuit is lost", true);
	for (size_t i = 0; i < job->nports; i++)
		if (port_of(d, job->ports[i])->failed)
			ocsd_repair_want(d, job, "a port has failed", false);
}

/* What a job that is over does not use it has given back: others may have it by now. */
static void drop_ports(struct ocsd_job *job)
{
	size_t kept = 0;

	for (size_t i = 0; i < job->nports; i++)
		if (in_use(job, job->ports[i]))
			job->ports[kept++] = job->ports[i];
	job->nports = kept;
}

int ocsd_jobs_load(struct ocsd *d, struct ocs_error *err)
{
	if (ocsd_store_load(d, err))
		return -1;
	for (struct ocsd_job *job = d->jobs; job; job = job->next) {
		ocsd_ahead_recall(d, job);
		if (job->ended && break_due(job))
			drop_ports(job);
	}
	for (int turn = 0; turn < 3; turn++)
		for (struct ocsd_job *job = d->jobs; job; job = job->next)
			if (turn == (job->ended ? 0 : job->prepared ? 2 : 1))
				claim_ports(d, job);
	for (struct ocsd_job *job = d->jobs; job; job = job->next) {
		load_cubes(d, job);
		adopt_circuits(d, job);
		resume_repair(d, job);
		if (job->epoch > d->max_epoch)
			d->max_epoch = job->epoch;
	}
	return 0;
}
