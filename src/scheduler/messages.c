/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/scheduler/state.h"
#include "src/util/base64.h"
#include "src/util/text.h"

#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *text_of(struct json_object *object, const char *key)
{
	struct json_object *value;

	if (!json_object_object_get_ex(object, key, &value) ||
	    !json_object_is_type(value, json_type_string))
		return "";
	return json_object_get_string(value);
}

static uint64_t number_of(struct json_object *object, const char *key)
{
	struct json_object *value;

	return json_object_object_get_ex(object, key, &value) ?
		(uint64_t)json_object_get_int64(value) : 0;
}

static bool true_of(struct json_object *object, const char *key)
{
	struct json_object *value;

	return json_object_object_get_ex(object, key, &value) &&
	       json_object_get_boolean(value);
}

/* The array KEY of OBJECT, or NULL; LENGTH is 0 then. */
static struct json_object *array_of(struct json_object *object, const char *key,
				    size_t *length)
{
	struct json_object *value;

	*length = 0;
	if (!json_object_object_get_ex(object, key, &value) ||
	    !json_object_is_type(value, json_type_array))
		return NULL;
	*length = json_object_array_length(value);
	return value;
}

struct json_object *ocs_link_op(const char *op, uint32_t job, uint64_t epoch)
{
	struct json_object *line = json_object_new_object();

	json_object_object_add(line, "op", json_object_new_string(op));
	json_object_object_add(line, "job", json_object_new_int64(job));
	json_object_object_add(line, "epoch", json_object_new_int64((int64_t)epoch));
	return line;
}

struct json_object *ocs_link_commit(const struct ocs_controller_allocation *allocation)
{
	struct json_object *line = ocs_link_op("commit", allocation->job, allocation->epoch);
	const struct { const char *key, *value; } texts[] = {
		{ "user", allocation->user }, { "section", allocation->section },
		{ "partition", allocation->partition }, { "nodes", allocation->nodes },
		{ "shape", allocation->shape }, { "conn", allocation->conn },
		{ "placement", allocation->placement },
	};

	json_object_object_add(line, "uid", json_object_new_int64(allocation->uid));
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		if (texts[i].value)
			json_object_object_add(line, texts[i].key,
					       json_object_new_string(texts[i].value));
	}
	if (allocation->demand) {
		char *text = ocs_base64_decode(allocation->demand);
		struct json_object *demand = text ? json_tokener_parse(text) : NULL;

		if (json_object_is_type(demand, json_type_object))
			json_object_object_add(line, "demand", demand);
		else
			json_object_put(demand);
		free(text);
	}
	return line;
}

/* Which ocs.yaml slurmctld has read, for `ocsctl check`. */
static struct json_object *description(void)
{
	struct json_object *yaml = json_object_new_object();
	char text[OCS_DIGEST_TEXT];

	snprintf(text, sizeof(text), "%016llx", (unsigned long long)ocs_state.fabric->text_digest);
	json_object_object_add(yaml, "source", json_object_new_string(ocs_state.fabric->source));
	json_object_object_add(yaml, "digest", json_object_new_string(ocs_state.digest));
	json_object_object_add(yaml, "text", json_object_new_string(text));
	if (ocs_state.fault)
		json_object_object_add(yaml, "fault", json_object_new_string(ocs_state.fault));
	return yaml;
}

struct json_object *ocs_message_subscribe(void)
{
	struct json_object *line = json_object_new_object();
	struct json_object *jobs = json_object_new_array();

	for (struct ocs_allocation *at = ocs_state.allocations; at; at = at->next) {
		struct json_object *job;

		at->listed = true;	/* or, if it has ended, reported by its absence */
		if (!at->living)
			continue;
		job = json_object_new_object();
		json_object_object_add(job, "job", json_object_new_int64(at->pub.job));
		json_object_object_add(job, "epoch",
				       json_object_new_int64((int64_t)at->pub.epoch));
		json_object_array_add(jobs, job);
	}
	json_object_object_add(line, "op", json_object_new_string("subscribe"));
	json_object_object_add(line, "jobs", jobs);
	json_object_object_add(line, "term", json_object_new_int64((int64_t)ocs_state.term));
	json_object_object_add(line, "controller", json_object_new_int(ocs_state.controller));
	json_object_object_add(line, "yaml", description());
	return line;
}

/* Asks for one job; the epoch is for us, when the answer comes. */
static struct json_object *show_job(uint32_t job, uint64_t epoch)
{
	struct json_object *line = ocs_link_op("show", job, epoch);
	char name[16];

	snprintf(name, sizeof(name), "%u", job);
	json_object_object_add(line, "what", json_object_new_string("job"));
	json_object_object_add(line, "name", json_object_new_string(name));
	return line;
}

/* Allocations whose circuits ocsd still has to take down: ours, and those of jobs
 * that this slurmctld has forgotten. */
static void take_held(struct json_object *reply)
{
	struct ocs_allocation *at, *next;
	size_t length;
	struct json_object *held = array_of(reply, "held", &length);

	for (at = ocs_state.allocations; at; at = next) {
		bool found = false;

		next = at->next;
		if (at->living || !at->listed)
			continue;
		for (size_t i = 0; i < length && !found; i++) {
			struct json_object *entry = json_object_array_get_idx(held, i);

			found = number_of(entry, "job") == at->pub.job &&
				number_of(entry, "epoch") == at->pub.epoch;
		}
		if (!found)
			ocs_allocation_remove(at);
		else if (at->gone)
			ocs_link_send(ocs_link_op("gone", at->pub.job, at->pub.epoch));
	}
	for (size_t i = 0; i < length; i++) {
		struct json_object *entry = json_object_array_get_idx(held, i);
		uint32_t job = (uint32_t)number_of(entry, "job");
		uint64_t epoch = number_of(entry, "epoch");

		if (ocs_allocation_find(job, epoch))
			continue;
		ocs_allocation_hold_unknown(job, epoch, text_of(entry, "nodes"));
		ocs_link_send(ocs_link_op("gone", job, epoch));
	}
}

/* Jobs that ocsd does not know to have ended, and we do not know at all.  (Of those that ended
 * while it was away we know.) */
static void take_forgotten(struct json_object *reply)
{
	size_t length;
	struct json_object *list = array_of(reply, "forgotten", &length);

	for (size_t i = 0; i < length; i++) {
		struct json_object *entry = json_object_array_get_idx(list, i);
		uint32_t job = (uint32_t)number_of(entry, "job");

		if (!ocs_allocation_find(job, number_of(entry, "epoch")))
			ocs_forgotten_add(job, text_of(entry, "nodes"));
	}
}

/* Jobs that ocsd takes for waiting: some may have left while it was away, and whoever watches
 * the jobs is to see that. */
static void take_pending(struct json_object *reply)
{
	size_t length;
	struct json_object *list = array_of(reply, "pending", &length);

	for (size_t i = 0; i < length; i++) {
		struct json_object *entry = json_object_array_get_idx(list, i);

		ocs_waiting_find((uint32_t)json_object_get_int64(entry), true)->pushed = true;
	}
}

/* ENTRY names a job and its epoch. */
static void take_ready(struct json_object *entry)
{
	struct ocs_allocation *allocation =
		ocs_allocation_find((uint32_t)number_of(entry, "job"), number_of(entry, "epoch"));

	if (!allocation || allocation->ready)
		return;
	allocation->ready = true;
	ocs_state.readied = true;
}

void ocs_message_subscribed(struct json_object *reply)
{
	struct json_object *list;
	size_t length;
	uint64_t epoch = number_of(reply, "max_epoch");

	if (epoch > ocs_state.epoch)
		ocs_state.epoch = epoch;
	ocs_state.max_job = (uint32_t)number_of(reply, "max_job");
	ocs_state.term = number_of(reply, "term");
	ocs_state.stranger = json_object_object_get_ex(reply, "fabric", NULL) &&
			     strcmp(text_of(reply, "fabric"), ocs_state.digest) != 0;
	list = array_of(reply, "switches", &length);
	for (size_t i = 0; i < length; i++) {
		struct json_object *entry = json_object_array_get_idx(list, i);

		ocs_faults_switch(text_of(entry, "name"), text_of(entry, "state"),
				  text_of(entry, "reason"));
	}
	ocs_faults_drains_clear();
	list = array_of(reply, "drains", &length);
	for (size_t i = 0; i < length; i++) {
		struct json_object *entry = json_object_array_get_idx(list, i);

		ocs_faults_drain(text_of(entry, "kind"), text_of(entry, "name"),
				 text_of(entry, "reason"), true);
	}
	take_forgotten(reply);
	take_held(reply);
	ocs_state.mute = !json_object_object_get_ex(reply, "ready", NULL);
	list = array_of(reply, "ready", &length);
	for (size_t i = 0; i < length; i++)
		take_ready(json_object_array_get_idx(list, i));
	list = array_of(reply, "unknown", &length);
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
	uint32_t job = (uint32_t)number_of(event, "job");
	uint64_t epoch = number_of(event, "epoch");
	struct ocs_allocation *allocation = ocs_allocation_find(job, epoch);

	/* First of all: the next placement must avoid it.  Ports to blame are drained already,
	 * and the rest of the switch is fine. */
	if (!json_object_object_get_ex(event, "ports", NULL))
		ocs_faults_suspect(text_of(event, "switch"), text_of(event, "error"));
	/* Without a switch it is a host, or there is no plan for the job. */
	if (allocation && allocation->living)
		ocs_failure_add(job, epoch, text_of(event, "switch"), !*text_of(event, "switch"),
				text_of(event, "error"));
}

/* Under a running job. */
static void circuit_event(struct json_object *event, bool restored)
{
	uint32_t job = (uint32_t)number_of(event, "job");
	uint64_t epoch = number_of(event, "epoch");
	struct ocs_allocation *allocation = ocs_allocation_find(job, epoch);
	bool unsure = true_of(event, "unsure");
	const char *sw = text_of(event, "switch");

	/* A circuit that broke may break there again; a silent switch is known as such. */
	if (!restored && !unsure && !json_object_object_get_ex(event, "ports", NULL))
		ocs_faults_suspect(sw, text_of(event, "error"));
	if (allocation && allocation->living)
		ocs_failure_add(job, epoch, sw, false, text_of(event, "error"))->pub.kind =
			restored ? OCS_CIRCUIT_RESTORED :
			unsure ? OCS_SWITCH_SILENT : OCS_CIRCUIT_FAILED;
}

static void realised(struct json_object *event)
{
	uint32_t job = (uint32_t)number_of(event, "job");
	uint64_t epoch = number_of(event, "epoch");
	struct ocs_allocation *allocation = ocs_allocation_find(job, epoch);
	struct ocs_failure *failure;

	if (!allocation || !allocation->living)
		return;
	failure = ocs_failure_add(job, epoch, NULL, false, NULL);
	failure->pub.kind = OCS_REALISED;
	failure->pub.circuits = (int)number_of(event, "circuits");
}

bool ocs_message_event(struct json_object *event)
{
	const char *kind = text_of(event, "event");

	if (strcmp(kind, "switch") == 0) {
		ocs_faults_switch(text_of(event, "name"), text_of(event, "state"),
				  text_of(event, "reason"));
	} else if (strcmp(kind, "drain") == 0) {
		ocs_faults_drain(text_of(event, "kind"), text_of(event, "name"),
				 text_of(event, "reason"), true_of(event, "drained"));
	} else if (strcmp(kind, "job_failed") == 0) {
		job_failed(event);
	} else if (strcmp(kind, "degraded") == 0) {
		ocs_failure_add((uint32_t)number_of(event, "job"), number_of(event, "epoch"),
				NULL, false, text_of(event, "error"))->pub.kind = OCS_DEGRADED;
	} else if (strcmp(kind, "circuit_failed") == 0) {
		circuit_event(event, false);
	} else if (strcmp(kind, "circuit_restored") == 0) {
		circuit_event(event, true);
	} else if (strcmp(kind, "realised") == 0) {
		realised(event);
	} else if (strcmp(kind, "ready") == 0) {
		take_ready(event);
	} else if (strcmp(kind, "released") == 0) {
		struct ocs_allocation *allocation =
			ocs_allocation_find((uint32_t)number_of(event, "job"),
					    number_of(event, "epoch"));

		if (allocation && !allocation->living)
			ocs_allocation_remove(allocation);
	}
	return strcmp(kind, "superseded") == 0;
}

/* What ocsd has of a job whose teardown we wait for.  It announces each end only once, so
 * what is not there any more will never be announced. */
static void take_shown(struct json_object *request, struct json_object *reply)
{
	size_t length;
	struct json_object *jobs = array_of(reply, "jobs", &length);
	uint32_t number = (uint32_t)number_of(request, "job");
	uint64_t epoch = number_of(request, "epoch");
	struct ocs_allocation *allocation = ocs_allocation_find(number, epoch);

	for (size_t i = 0; i < length; i++) {
		struct json_object *job = json_object_array_get_idx(jobs, i);

		if (number_of(job, "job") == number && number_of(job, "epoch") == epoch)
			return;
	}
	if (allocation && !allocation->living)
		ocs_allocation_remove(allocation);
}

/* Which nodes of a job have not asked for its circuits. */
static void take_unheard(struct json_object *request, struct json_object *reply)
{
	const char *missing = text_of(reply, "missing");
	char *text;

	if (true_of(reply, "ready")) {
		take_ready(request);
		return;
	}
	/* All have: what hinders the circuits is told by events. */
	if (!*missing)
		return;
	if (true_of(reply, "uncertain"))
		text = ocs_asprintf("ocsd was restarted in its prolog and does not know whether %s asked for circuits",
				    missing);
	else
		text = ocs_asprintf("%s did not ask ocsd for circuits: spank_ocs is missing in plugstack.conf there, slurmd was not restarted since, or prolog=no stands there without a Prolog= that asks",
				    missing);
	ocs_failure_add((uint32_t)number_of(request, "job"), number_of(request, "epoch"), NULL,
			!true_of(reply, "uncertain"), text);
	free(text);
}

void ocs_message_reply(struct json_object *request, struct json_object *reply)
{
	const char *op = text_of(request, "op");
	uint32_t job = (uint32_t)number_of(request, "job");
	uint64_t epoch = number_of(request, "epoch");
	struct ocs_allocation *allocation = job ? ocs_allocation_find(job, epoch) : NULL;

	if (true_of(reply, "ok")) {
		if (strcmp(op, "show") == 0 && job)
			take_shown(request, reply);
		else if (strcmp(op, "gone") == 0 && allocation)
			ocs_link_send(show_job(job, epoch));
		else if (strcmp(op, "unheard") == 0 && allocation && allocation->living)
			take_unheard(request, reply);
		return;
	}
	/* What is drained is seen at the next choice, but of a plan with less than all ports only
	 * ocsd knows whether there is one. */
	if (strcmp(op, "commit") == 0 && allocation && allocation->living)
		ocs_failure_add(job, epoch, NULL, allocation->pub.planned, text_of(reply, "error"));
	/* It is held and will never be ready. */
	else if (strcmp(op, "unheard") == 0 && allocation && allocation->living &&
		 number_of(reply, "code") == OCS_ERROR)
		ocs_failure_add(job, epoch, NULL, false, text_of(reply, "error"));
}
