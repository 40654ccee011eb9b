/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/ocsd/jobs/allocation.h"
#include "src/ocsd/state/menus.h"
#include "src/ocsd/jobs/topology.h"
#include "src/ocsd/protocol/client.h"
#include "src/ocsd/protocol/connection.h"
#include "src/ocsd/protocol/controller.h"
#include "src/ocsd/protocol/dispatch.h"
#include "src/ocsd/protocol/log_limit.h"
#include "src/ocsd/protocol/role.h"

#include "src/protocol/fields.h"
#include "src/protocol/names.h"
#include "src/util/net.h"

#include <json-c/json.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define SECOND_NS 1e9
#define BURST_S 2     /* seconds' worth of requests at once */
#define REPORT_MS 900 /* between two reports of a job */

static void tokens_fill(const struct ocsd *d, struct ocsd_menu *menu)
{
	int64_t now_ns = ocs_now_ns();
	double rate = d->config->limits.topologies_per_second;

	if (!menu->filled_ns)
		menu->tokens = BURST_S * rate;
	else
		menu->tokens += (double)(now_ns - menu->filled_ns) / SECOND_NS * rate;
	if (menu->tokens > BURST_S * rate)
		menu->tokens = BURST_S * rate;
	menu->filled_ns = now_ns;
}

int ocsd_controller_wait_ms(const struct ocsd *d, struct ocsd_job *job)
{
	struct ocsd_menu *menu = job->menu;

	tokens_fill(d, menu);
	if (menu->tokens >= 1) {
		menu->tokens -= 1;
		return 0;
	}
	return (int)ceil((1 - menu->tokens) * 1000 / d->config->limits.topologies_per_second);
}

int ocsd_controller_report_ms(const struct ocsd_job *job)
{
	int64_t since_ms = (ocs_now_ns() - job->menu->seen_ns) / 1000000;

	return !job->menu->seen_ns || since_ms >= REPORT_MS ? 0 : (int)(REPORT_MS - since_ms);
}

bool ocsd_controller_exempt(struct ocsd_client *client, struct json_object *request)
{
	const char *op = client->controls ? ocs_field_text(request, OCS_FIELD_OP, "") : "";
	bool report = strcmp(op, OCS_OP_GATES) == 0;
	struct ocsd_job *job;

	if (strcmp(op, OCS_OP_TOPO) != 0 && strcmp(op, OCS_OP_REGION) != 0 && !report)
		return false;
	job = ocsd_job_find(client->d, client->controls, client->controls_epoch);
	if (!job || !job->menu)
		return false;
	if (report)
		return !ocsd_controller_report_ms(job);
	tokens_fill(client->d, job->menu);
	return job->menu->tokens >= 1;
}

/* Of a job that it does not own a client learns as much as of one that is not there. */
static bool key_fits(const struct ocsd *d, const struct ocsd_client *client,
		     const struct ocsd_job *job, const char *key)
{
	return job && job->menu && job->menu->key[0] && key &&
	       ocsd_role_owns(d, client->uid, job->uid) && ocs_same_secret(job->menu->key, key);
}

bool ocsd_controller_prove(struct ocsd *d, uint32_t job, uint64_t epoch, const char *challenge,
			   const char *nonce, const char *proof, char session[OCS_MAC_HEX + 1],
			   uid_t *uid)
{
	const struct ocsd_job *found = ocsd_job_find(d, job, epoch);
	const char *key = found && found->menu ? found->menu->key : "";
	char right[OCS_MAC_HEX + 1], number[16], text[24];

	if (!*key)
		return false;
	snprintf(number, sizeof(number), "%u", job);
	snprintf(text, sizeof(text), "%llu", (unsigned long long)epoch);
	ocs_key_prove(key, strlen(key), right, "hello of job", challenge, nonce, number, text,
		      NULL);
	if (!ocs_same_secret(right, proof))
		return false;
	ocs_key_prove(key, strlen(key), session, "session of job", challenge, nonce, number, text,
		      NULL);
	*uid = found->uid;
	return true;
}

/* EVENT goes to the controller of its job, whose time is over after a revocation. */
static void event_tell(struct ocsd *d, struct json_object *event)
{
	const char *kind = ocs_field_text(event, OCS_FIELD_EVENT, "");

	for (struct ocsd_client *client = d->server.clients; client; client = client->next) {
		if (client->lost || client->controls != ocs_field_job(event) ||
		    client->controls_epoch != ocs_field_epoch(event))
			continue;
		ocsd_client_line(client, json_object_get(event));
		if (strcmp(kind, OCS_EVENT_REVOKED) == 0)
			client->controls = 0;
	}
}

void ocsd_controllers_tell(struct ocsd *d)
{
	struct json_object *events = d->replies.to_controllers;
	size_t count = events ? json_object_array_length(events) : 0;

	d->replies.to_controllers = NULL;
	for (size_t i = 0; i < count; i++)
		event_tell(d, json_object_array_get_idx(events, i));
	json_object_put(events);
}

/* CLIENT has lost its place as the controller of JOB to another one. */
static void client_replace(struct ocsd_client *client, const struct ocsd_job *job)
{
	struct json_object *event = ocs_event_job(OCS_EVENT_REVOKED, job->job, job->epoch);

	client->controls = 0;
	client->replaced = true;
	ocs_field_add_text(event, OCS_FIELD_REASON, "another controller of the job has taken over");
	ocsd_client_line(client, event);
}

/* CLIENT is the controller of JOB now. */
static void client_bind(struct ocsd_client *client, const struct ocsd_job *job)
{
	if (client->controls == job->job && client->controls_epoch == job->epoch)
		return;
	for (struct ocsd_client *other = client->d->server.clients; other; other = other->next) {
		if (other == client || other->controls != job->job ||
		    other->controls_epoch != job->epoch || other->lost)
			continue;
		ocs_log(OCS_LOG_WARNING,
			"job %u: another controller takes the place of the one before", job->job);
		client_replace(other, job);
	}
	client->controls = job->job;
	client->controls_epoch = job->epoch;
	client->replaced = false;
}

bool ocsd_controller_admit(struct ocsd *d, struct ocsd_client *client, int64_t id,
			   struct json_object *request)
{
	const char *key = ocs_field_text(request, OCS_FIELD_KEY, NULL);
	struct json_object *extra;
	struct ocsd_job *job;
	uint32_t number;
	uint64_t epoch;

	if (ocsd_request_job(client, id, request, &number, &epoch))
		return false;
	job = ocsd_job_find(d, number, epoch);
	if (!key_fits(d, client, job, key)) {
		ocsd_log_limited(d, client->peer, "a request for job %u without its key is refused",
				 number);
		if (job)
			ocsd_topology_refused(d, job, "a request without the key of the job");
		ocsd_refuse(
			client, id, OCS_ERROR, NULL,
			"no job %u with epoch %llu has this key; its controller finds the key where the prolog of the first node has left it",
			number, (unsigned long long)epoch);
	} else if (job->menu->revoked || !ocsd_job_living(job)) {
		extra = json_object_new_object();
		ocs_field_add_bool(extra, OCS_FIELD_GONE, true);
		ocsd_topology_refused(d, job, "a request after the end of the job");
		ocsd_refuse(client, id, OCS_ERROR, extra, "epoch %llu of job %u has ended",
			    (unsigned long long)epoch, number);
	} else if (client->replaced) {
		ocsd_topology_refused(d, job, "a request of a controller that was replaced");
		ocsd_refuse(client, id, OCS_ERROR, NULL,
			    "another controller of job %u has taken over", number);
	} else if (!ocsd_topology_live(job)) {
		ocsd_refuse(client, id, OCS_NOT_NOW, NULL,
			    "the first topology of job %u is not verified yet", number);
	} else {
		client_bind(client, job);
		return true;
	}
	return false;
}
