/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/protocol/fields.h"
#include "src/protocol/names.h"
#include "src/scheduler/state.h"
#include "src/util/base64.h"
#include "src/util/text.h"

#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What the plan is made for.  An option comes before what the file says. */
static struct json_object *demand_json(const struct ocs_controller_allocation *allocation)
{
	char *text = allocation->demand ? ocs_base64_decode(allocation->demand) : NULL;
	struct json_object *demand = text ? json_tokener_parse(text) : NULL;

	free(text);
	if (!json_object_is_type(demand, json_type_object)) {
		json_object_put(demand);
		demand = allocation->rings ? json_object_new_object() : NULL;
	}
	if (allocation->rings)
		json_object_object_add(demand, "rings", json_object_new_string(allocation->rings));
	return demand;
}

struct json_object *ocs_link_commit(const struct ocs_controller_allocation *allocation)
{
	struct json_object *line =
		ocs_request_job(OCS_OP_COMMIT, allocation->job, allocation->epoch);
	struct json_object *demand;
	const struct {
		const char *key, *value;
	} texts[] = {
		{ OCS_FIELD_USER, allocation->user },
		{ OCS_FIELD_SECTION, allocation->section },
		{ OCS_FIELD_PARTITION, allocation->partition },
		{ OCS_FIELD_NODES, allocation->nodes },
		{ OCS_FIELD_SHAPE, allocation->shape },
		{ OCS_FIELD_CONN, allocation->conn },
		{ OCS_FIELD_PHASES, allocation->phases },
		{ OCS_FIELD_MOE, allocation->moe },
		{ OCS_FIELD_NAME, allocation->name },
		{ OCS_FIELD_PLACEMENT, allocation->placement },
	};

	ocs_field_add_number(line, OCS_FIELD_UID, allocation->uid);
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		if (texts[i].value)
			ocs_field_add_text(line, texts[i].key, texts[i].value);
	}
	demand = demand_json(allocation);
	if (demand)
		json_object_object_add(line, OCS_FIELD_DEMAND, demand);
	return line;
}

/* Which ocs.yaml slurmctld has read, for `ocsctl check`. */
static struct json_object *yaml_description(void)
{
	struct json_object *yaml = json_object_new_object();
	char text[OCS_DIGEST_TEXT];

	snprintf(text, sizeof(text), "%016llx", (unsigned long long)ocs_state.config->text_digest);
	ocs_field_add_text(yaml, OCS_FIELD_SOURCE, ocs_state.fabric->source);
	ocs_field_add_text(yaml, OCS_FIELD_DIGEST, ocs_state.digest);
	ocs_field_add_text(yaml, OCS_FIELD_TEXT, text);
	if (ocs_state.fault)
		ocs_field_add_text(yaml, OCS_FIELD_FAULT, ocs_state.fault);
	return yaml;
}

struct json_object *ocs_message_subscribe(void)
{
	struct json_object *line = ocs_request_new(OCS_OP_SUBSCRIBE);
	struct json_object *jobs = json_object_new_array();

	for (struct ocs_allocation *at = ocs_state.allocations; at; at = at->next) {
		struct json_object *job;

		at->listed = true; /* or, if it has ended, reported by its absence */
		if (!at->living)
			continue;
		job = json_object_new_object();
		ocs_field_add_number(job, OCS_FIELD_JOB, at->pub.job);
		ocs_field_add_number(job, OCS_FIELD_EPOCH, (int64_t)at->pub.epoch);
		json_object_array_add(jobs, job);
	}
	json_object_object_add(line, OCS_FIELD_JOBS, jobs);
	ocs_field_add_number(line, OCS_FIELD_TERM, (int64_t)ocs_state.term);
	ocs_field_add_number(line, OCS_FIELD_CONTROLLER, ocs_state.controller);
	json_object_object_add(line, OCS_FIELD_YAML, yaml_description());
	return line;
}

/* Asks for one job; the epoch is for us, when the answer comes. */
static struct json_object *show_job(uint32_t job, uint64_t epoch)
{
	struct json_object *line = ocs_request_job(OCS_OP_SHOW, job, epoch);
	char name[16];

	snprintf(name, sizeof(name), "%u", job);
	ocs_field_add_text(line, OCS_FIELD_WHAT, OCS_SHOW_JOB);
	ocs_field_add_text(line, OCS_FIELD_NAME, name);
	return line;
}

/* Allocations whose circuits ocsd still has to take down: ours, and those of jobs
 * that this slurmctld has forgotten. */
static void take_held(struct json_object *reply)
{
	struct ocs_allocation *at, *next;
	size_t length;
	struct json_object *held = ocs_field_array(reply, OCS_FIELD_HELD, &length);

	for (at = ocs_state.allocations; at; at = next) {
		bool found = false;

		next = at->next;
		if (at->living || !at->listed)
			continue;
		for (size_t i = 0; i < length && !found; i++) {
			struct json_object *entry = json_object_array_get_idx(held, i);

			found = ocs_field_job(entry) == at->pub.job &&
				ocs_field_epoch(entry) == at->pub.epoch;
		}
		if (!found)
			ocs_allocation_remove(at);
		else if (at->gone)
			ocs_link_send(ocs_request_job(OCS_OP_GONE, at->pub.job, at->pub.epoch));
	}
	for (size_t i = 0; i < length; i++) {
		struct json_object *entry = json_object_array_get_idx(held, i);
		uint32_t job = ocs_field_job(entry);
		uint64_t epoch = ocs_field_epoch(entry);

		if (ocs_allocation_find(job, epoch))
			continue;
		ocs_allocation_hold_unknown(job, epoch, ocs_field_text(entry, OCS_FIELD_NODES, ""));
		ocs_link_send(ocs_request_job(OCS_OP_GONE, job, epoch));
	}
}

/* Jobs that ocsd does not know to have ended, and we do not know at all.  (Of those that ended
 * while it was away we know.) */
static void take_forgotten(struct json_object *reply)
{
	size_t length;
	struct json_object *list = ocs_field_array(reply, OCS_FIELD_FORGOTTEN, &length);

	for (size_t i = 0; i < length; i++) {
		struct json_object *entry = json_object_array_get_idx(list, i);
		uint32_t job = ocs_field_job(entry);

		if (!ocs_allocation_find(job, ocs_field_epoch(entry)))
			ocs_forgotten_add(job, ocs_field_text(entry, OCS_FIELD_NODES, ""));
	}
}

/* Jobs that ocsd takes for waiting: some may have left while it was away, and a user who watches
 * the jobs is to see that. */
static void take_pending(struct json_object *reply)
{
	size_t length;
	struct json_object *list = ocs_field_array(reply, OCS_FIELD_PENDING, &length);

	for (size_t i = 0; i < length; i++) {
		struct json_object *entry = json_object_array_get_idx(list, i);

		ocs_waiting_find((uint32_t)json_object_get_int64(entry), true)->pushed = true;
	}
}

/* ENTRY names a job and its epoch. */
static void take_ready(struct json_object *entry)
{
	struct ocs_allocation *allocation =
		ocs_allocation_find(ocs_field_job(entry), ocs_field_epoch(entry));

	if (!allocation || allocation->ready)
		return;
	allocation->ready = true;
	ocs_state.readied = true;
}

void ocs_message_subscribed(struct json_object *reply)
{
	struct json_object *list;
	size_t length;
	uint64_t epoch = ocs_field_number(reply, OCS_FIELD_MAX_EPOCH, 0);

	if (epoch > ocs_state.epoch)
		ocs_state.epoch = epoch;
	ocs_state.max_job = (uint32_t)ocs_field_number(reply, OCS_FIELD_MAX_JOB, 0);
	ocs_state.term = ocs_field_number(reply, OCS_FIELD_TERM, 0);
	ocs_state.config_mismatch =
		ocs_field_has(reply, OCS_FIELD_FABRIC) &&
		strcmp(ocs_field_text(reply, OCS_FIELD_FABRIC, ""), ocs_state.digest) != 0;
	list = ocs_field_array(reply, OCS_FIELD_SWITCHES, &length);
	for (size_t i = 0; i < length; i++) {
		struct json_object *entry = json_object_array_get_idx(list, i);

		ocs_faults_switch(ocs_field_text(entry, OCS_FIELD_NAME, ""),
				  ocs_field_text(entry, OCS_FIELD_STATE, ""),
				  ocs_field_text(entry, OCS_FIELD_REASON, ""));
	}
	ocs_faults_drains_clear();
	list = ocs_field_array(reply, OCS_FIELD_DRAINS, &length);
	for (size_t i = 0; i < length; i++) {
		struct json_object *entry = json_object_array_get_idx(list, i);

		ocs_faults_drain(ocs_field_text(entry, OCS_FIELD_KIND, ""),
				 ocs_field_text(entry, OCS_FIELD_NAME, ""),
				 ocs_field_text(entry, OCS_FIELD_REASON, ""), true);
	}
	take_forgotten(reply);
	take_held(reply);
	ocs_state.mute = !ocs_field_has(reply, OCS_FIELD_READY);
	list = ocs_field_array(reply, OCS_FIELD_READY, &length);
	for (size_t i = 0; i < length; i++)
		take_ready(json_object_array_get_idx(list, i));
	list = ocs_field_array(reply, OCS_FIELD_UNKNOWN, &length);
	for (size_t i = 0; i < length; i++) {
		struct json_object *entry = json_object_array_get_idx(list, i);
		uint32_t job = (uint32_t)json_object_get_int64(entry);

		for (struct ocs_allocation *at = ocs_state.allocations; at; at = at->next) {
			if (at->pub.job == job && at->living)
				ocs_link_send(ocs_link_commit(&at->pub));
		}
	}
	for (struct ocs_allocation *at = ocs_state.allocations; at; at = at->next)
		at->listed = false;
	take_pending(reply);
	ocs_waiting_push_all();
	ocs_state.nodes_known = false;
}

static void job_failed(struct json_object *event)
{
	uint32_t job = ocs_field_job(event);
	uint64_t epoch = ocs_field_epoch(event);
	struct ocs_allocation *allocation = ocs_allocation_find(job, epoch);

	/* First of all: the next placement must avoid it.  Ports to blame are drained already,
	 * and the rest of the switch is fine. */
	if (!ocs_field_has(event, OCS_FIELD_PORTS))
		ocs_faults_suspect(ocs_field_text(event, OCS_FIELD_SWITCH, ""),
				   ocs_field_text(event, OCS_FIELD_ERROR, ""));
	/* Without a switch it is a host, or there is no plan for the job. */
	if (allocation && allocation->living)
		ocs_failure_add(job, epoch, ocs_field_text(event, OCS_FIELD_SWITCH, ""),
				!*ocs_field_text(event, OCS_FIELD_SWITCH, ""),
				ocs_field_text(event, OCS_FIELD_ERROR, ""));
}

/* Under a running job. */
static void circuit_event(struct json_object *event, bool restored)
{
	uint32_t job = ocs_field_job(event);
	uint64_t epoch = ocs_field_epoch(event);
	struct ocs_allocation *allocation = ocs_allocation_find(job, epoch);
	bool unsure = ocs_field_true(event, OCS_FIELD_UNSURE);
	const char *sw = ocs_field_text(event, OCS_FIELD_SWITCH, "");
	const char *error = ocs_field_text(event, OCS_FIELD_ERROR, "");

	/* A circuit that broke may break there again; a silent switch is known as such. */
	if (!restored && !unsure && !ocs_field_has(event, OCS_FIELD_PORTS))
		ocs_faults_suspect(sw, error);
	if (allocation && allocation->living)
		ocs_failure_add(job, epoch, sw, false, error)->pub.kind =
			restored ? OCS_CIRCUIT_RESTORED :
			unsure	 ? OCS_SWITCH_SILENT :
				   OCS_CIRCUIT_FAILED;
}

static void job_realised(struct json_object *event)
{
	uint32_t job = ocs_field_job(event);
	uint64_t epoch = ocs_field_epoch(event);
	struct ocs_allocation *allocation = ocs_allocation_find(job, epoch);
	struct ocs_failure *failure;

	if (!allocation || !allocation->living)
		return;
	failure = ocs_failure_add(job, epoch, NULL, false, NULL);
	failure->pub.kind = OCS_REALISED;
	failure->pub.circuits = (int)ocs_field_number(event, OCS_FIELD_CIRCUITS, 0);
}

bool ocs_message_event(struct json_object *event)
{
	const char *kind = ocs_field_text(event, OCS_FIELD_EVENT, "");

	if (strcmp(kind, OCS_EVENT_SWITCH) == 0) {
		ocs_faults_switch(ocs_field_text(event, OCS_FIELD_NAME, ""),
				  ocs_field_text(event, OCS_FIELD_STATE, ""),
				  ocs_field_text(event, OCS_FIELD_REASON, ""));
	} else if (strcmp(kind, OCS_EVENT_DRAIN) == 0) {
		ocs_faults_drain(ocs_field_text(event, OCS_FIELD_KIND, ""),
				 ocs_field_text(event, OCS_FIELD_NAME, ""),
				 ocs_field_text(event, OCS_FIELD_REASON, ""),
				 ocs_field_true(event, OCS_FIELD_DRAINED));
	} else if (strcmp(kind, OCS_EVENT_JOB_FAILED) == 0) {
		job_failed(event);
	} else if (strcmp(kind, OCS_EVENT_DEGRADED) == 0) {
		ocs_failure_add(ocs_field_job(event), ocs_field_epoch(event), NULL, false,
				ocs_field_text(event, OCS_FIELD_ERROR, ""))
			->pub.kind = OCS_DEGRADED;
	} else if (strcmp(kind, OCS_EVENT_CIRCUIT_FAILED) == 0) {
		circuit_event(event, false);
	} else if (strcmp(kind, OCS_EVENT_CIRCUIT_RESTORED) == 0) {
		circuit_event(event, true);
	} else if (strcmp(kind, OCS_EVENT_REALISED) == 0) {
		job_realised(event);
	} else if (strcmp(kind, OCS_EVENT_READY) == 0) {
		take_ready(event);
	} else if (strcmp(kind, OCS_EVENT_RELEASED) == 0) {
		struct ocs_allocation *allocation =
			ocs_allocation_find(ocs_field_job(event), ocs_field_epoch(event));

		if (allocation && !allocation->living)
			ocs_allocation_remove(allocation);
	}
	return strcmp(kind, OCS_EVENT_SUPERSEDED) == 0;
}

/* What ocsd has of a job whose teardown we wait for.  It announces each end only once, so
 * what is not there any more will never be announced. */
static void take_shown(struct json_object *request, struct json_object *reply)
{
	size_t length;
	struct json_object *jobs = ocs_field_array(reply, OCS_FIELD_JOBS, &length);
	uint32_t number = ocs_field_job(request);
	uint64_t epoch = ocs_field_epoch(request);
	struct ocs_allocation *allocation = ocs_allocation_find(number, epoch);

	for (size_t i = 0; i < length; i++) {
		struct json_object *job = json_object_array_get_idx(jobs, i);

		if (ocs_field_job(job) == number && ocs_field_epoch(job) == epoch)
			return;
	}
	if (allocation && !allocation->living)
		ocs_allocation_remove(allocation);
}

/* Which nodes of a job have not asked for its circuits. */
static void take_unheard(struct json_object *request, struct json_object *reply)
{
	const char *missing = ocs_field_text(reply, OCS_FIELD_MISSING, "");
	char *text;

	if (ocs_field_true(reply, OCS_FIELD_READY)) {
		take_ready(request);
		return;
	}
	/* All have: what hinders the circuits comes as events. */
	if (!*missing)
		return;
	if (ocs_field_true(reply, OCS_FIELD_UNCERTAIN))
		text = ocs_asprintf(
			"ocsd was restarted in its prolog and does not know whether %s asked for circuits",
			missing);
	else
		text = ocs_asprintf(
			"%s did not ask ocsd for circuits: spank_ocs is missing in plugstack.conf there, slurmd was not restarted since, or prolog=no stands there without a Prolog= that asks",
			missing);
	ocs_failure_add(ocs_field_job(request), ocs_field_epoch(request), NULL,
			!ocs_field_true(reply, OCS_FIELD_UNCERTAIN), text);
	free(text);
}

void ocs_message_reply(struct json_object *request, struct json_object *reply)
{
	const char *op = ocs_field_text(request, OCS_FIELD_OP, "");
	uint32_t job = ocs_field_job(request);
	uint64_t epoch = ocs_field_epoch(request);
	struct ocs_allocation *allocation = job ? ocs_allocation_find(job, epoch) : NULL;

	if (ocs_field_true(reply, OCS_FIELD_OK)) {
		if (strcmp(op, OCS_OP_SHOW) == 0 && job)
			take_shown(request, reply);
		else if (strcmp(op, OCS_OP_GONE) == 0 && allocation)
			ocs_link_send(show_job(job, epoch));
		else if (strcmp(op, OCS_OP_UNHEARD) == 0 && allocation && allocation->living)
			take_unheard(request, reply);
		return;
	}
	/* What is drained is seen at the next choice, but of a plan with less than all ports only
	 * ocsd knows whether there is one. */
	if (strcmp(op, OCS_OP_COMMIT) == 0 && allocation && allocation->living)
		ocs_failure_add(job, epoch, NULL, allocation->pub.planned,
				ocs_field_text(reply, OCS_FIELD_ERROR, ""));
	/* It is held and will never be ready. */
	else if (strcmp(op, OCS_OP_UNHEARD) == 0 && allocation && allocation->living &&
		 ocs_field_number(reply, OCS_FIELD_CODE, 0) == OCS_ERROR)
		ocs_failure_add(job, epoch, NULL, false,
				ocs_field_text(reply, OCS_FIELD_ERROR, ""));
}
