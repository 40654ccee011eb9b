/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Requests that are answered later. */

#include "src/ocsd/jobs/plan.h"
#include "src/ocsd/jobs/forwarding.h"
#include "src/ocsd/jobs/node_presence.h"
#include "src/ocsd/jobs/job.h"
#include "src/ocsd/protocol/connection.h"
#include "src/ocsd/ops/pending_reply.h"

#include "src/protocol/fields.h"
#include "src/protocol/names.h"
#include "src/util/net.h"
#include "src/util/text.h"

#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

#define COMMIT_WAIT_NS INT64_C(30000000000)

struct ocsd_waiter *ocsd_wait_add(struct ocsd *d, struct ocsd_client *client,
				  int64_t id, enum ocsd_wait kind,
				  struct ocsd_job *job, const char *node)
{
	struct ocsd_waiter *waiter = ocs_calloc(1, sizeof(*waiter));

	waiter->kind = kind;
	waiter->client = client;
	waiter->id = id;
	waiter->allocation = job;
	waiter->node = node ? ocs_strdup(node) : NULL;
	waiter->deadline_ns = ocs_now_ns() + COMMIT_WAIT_NS;
	waiter->next = d->waiters;
	d->waiters = waiter;
	return waiter;
}

static void waiter_free(struct ocsd_waiter *waiter)
{
	free(waiter->node);
	json_object_put(waiter->drift);
	free(waiter);
}

/* Takes the first waiter out for which MATCH says so; NULL if there is none. */
typedef bool (*matcher)(const struct ocsd_waiter *waiter, const void *what);

static struct ocsd_waiter *take(struct ocsd *d, matcher match, const void *what)
{
	for (struct ocsd_waiter **link = &d->waiters; *link; link = &(*link)->next) {
		struct ocsd_waiter *waiter = *link;

		if (match(waiter, what)) {
			*link = waiter->next;
			return waiter;
		}
	}
	return NULL;
}

static bool of_client(const struct ocsd_waiter *waiter, const void *client)
{
	return waiter->client == client;
}

static bool applies_for(const struct ocsd_waiter *waiter, const void *job)
{
	return waiter->kind == OCSD_WAIT_APPLY && waiter->allocation == job;
}

static bool satisfied_by(const struct ocsd_waiter *waiter, const void *what)
{
	const struct ocsd_job *job = what;

	return applies_for(waiter, job) && !job->mending &&
	       (!waiter->meets || ocsd_forward_met(job)) &&
	       (!waiter->after || waiter->after < job->revision);
}

static bool releases_of(const struct ocsd_waiter *waiter, const void *job)
{
	return waiter->kind == OCSD_WAIT_RELEASE && waiter->allocation == job;
}

static bool expired(const struct ocsd_waiter *waiter, const void *now_ns)
{
	return waiter->kind == OCSD_WAIT_APPLY && !waiter->allocation &&
	       waiter->deadline_ns <= *(const int64_t *)now_ns;
}

static bool tests_port(const struct ocsd_waiter *waiter, const void *name)
{
	return waiter->kind == OCSD_WAIT_TEST && !strcmp(waiter->node, name);
}

void ocsd_wait_tested(struct ocsd *d, const char *name, struct json_object *reply,
		      const char *wrong)
{
	struct ocsd_waiter *waiter;

	while ((waiter = take(d, tests_port, name))) {
		if (reply)
			ocsd_reply(waiter->client, waiter->id, json_object_get(reply));
		else
			ocsd_refuse(waiter->client, waiter->id, OCS_ERROR, NULL,
				    "port %s stays in quarantine: %s", name, wrong);
		waiter_free(waiter);
	}
	json_object_put(reply);
}

void ocsd_wait_client_lost(struct ocsd *d, struct ocsd_client *client)
{
	struct ocsd_waiter *waiter;

	while ((waiter = take(d, of_client, client)))
		waiter_free(waiter);
}

bool ocsd_wait_applies(const struct ocsd *d, const struct ocsd_job *job)
{
	for (const struct ocsd_waiter *waiter = d->waiters; waiter; waiter = waiter->next)
		if (applies_for(waiter, job))
			return true;
	return false;
}

void ocsd_wait_bind(struct ocsd *d, struct ocsd_job *job)
{
	struct ocsd_waiter **link = &d->waiters;

	while (*link) {
		struct ocsd_waiter *waiter = *link;
		int index;

		if (waiter->kind != OCSD_WAIT_APPLY || waiter->allocation ||
		    waiter->job != job->job ||
		    (waiter->epoch && waiter->epoch != job->epoch)) {
			link = &waiter->next;
			continue;
		}
		index = ocsd_job_node(job, waiter->node);
		if (index < 0) {
			ocsd_refuse(waiter->client, waiter->id, OCS_USAGE, NULL,
				    "node %s is not in the allocation of job %u",
				    waiter->node, job->job);
			*link = waiter->next;
			waiter_free(waiter);
			continue;
		}
		waiter->allocation = job;
		if (waiter->epoch)
			ocsd_heard_apply(d, job, index);
		link = &waiter->next;
	}
}

/* The interfaces of NODE: where each is plugged in. */
static struct json_object *node_ports(struct ocsd *d, const struct ocsd_job *job,
				      const char *name)
{
	struct json_object *list = json_object_new_array();
	const struct ocs_node *node = ocs_fabric_node(d->fabric, name);

	for (int i = 0; node && i < job->section->degree; i++) {
		struct json_object *row;
		struct ocs_port port;

		if (ocs_section_set_port(job->section, job->set, node->server, i, &port))
			break;
		row = json_object_new_object();
		ocs_field_add_number(row, OCS_FIELD_INTERFACE, i);
		ocs_field_add_text(row, OCS_FIELD_SWITCH, d->fabric->switches[port.sw].name);
		ocs_field_add_number(row, OCS_FIELD_PORT, port.port);
		json_object_array_add(list, row);
	}
	return list;
}

/* The success reply of an apply of NODE; the caller puts it. */
static struct json_object *apply_result(struct ocsd *d, struct ocsd_job *job, const char *node,
					size_t circuits)
{
	struct json_object *reply = json_object_new_object();

	ocs_field_add_number(reply, OCS_FIELD_CIRCUITS, (int64_t)circuits);
	if (job->plan)
		json_object_object_add(reply, OCS_FIELD_PLAN, ocsd_direct_plan_json(job));
	if (ocsd_forward_wanted(job))
		ocs_field_add_bool(reply, OCS_FIELD_FORWARDING, true);
	if (job->section && job->section->kind != OCS_TORUS &&
	    job->section->kind != OCS_STATIC)
		json_object_object_add(reply, OCS_FIELD_PORTS, node_ports(d, job, node));
	return reply;
}

struct json_object *ocsd_gone_extra(const struct ocsd_job *job)
{
	struct json_object *extra = json_object_new_object();

	ocs_field_add_bool(extra, OCS_FIELD_GONE, true);
	if (job && job->failed_switch)
		ocs_field_add_text(extra, OCS_FIELD_SWITCH, job->failed_switch);
	return extra;
}

void ocsd_wait_realised(struct ocsd *d, struct ocsd_job *job)
{
	struct ocsd_waiter *waiter = take(d, satisfied_by, job);
	/* The same for all nodes, of which there may be thousands. */
	size_t circuits = waiter ? ocsd_job_circuits(job) : 0;

	for (; waiter; waiter = take(d, satisfied_by, job)) {
		struct json_object *reply = apply_result(d, job, waiter->node, circuits);

		if (waiter->meets)
			json_object_object_add(reply, OCS_FIELD_HOSTS, ocsd_forward_hosts(job));
		ocsd_reply(waiter->client, waiter->id, reply);
		waiter_free(waiter);
	}
	ocsd_heard_check(d, job);
}

void ocsd_wait_gone(struct ocsd *d, struct ocsd_job *job)
{
	struct ocsd_waiter *waiter;

	while ((waiter = take(d, applies_for, job))) {
		ocsd_refuse(waiter->client, waiter->id, OCS_ERROR, ocsd_gone_extra(job),
			    "job %u has left this allocation%s%s", job->job,
			    job->error ? ": " : "", job->error ? job->error : "");
		waiter_free(waiter);
	}
}

static bool applies_for_pair(const struct ocsd_waiter *waiter, const void *what)
{
	const struct ocsd_pair *pair = what;

	return waiter->kind == OCSD_WAIT_APPLY && !waiter->allocation &&
	       waiter->job == pair->job && waiter->epoch == pair->epoch;
}

void ocsd_wait_never(struct ocsd *d, uint32_t job, uint64_t epoch)
{
	struct ocsd_pair pair = { .job = job, .epoch = epoch };
	struct ocsd_waiter *waiter;

	if (!epoch)
		return;
	while ((waiter = take(d, applies_for_pair, &pair))) {
		ocsd_refuse(waiter->client, waiter->id, OCS_ERROR, ocsd_gone_extra(NULL),
			    "job %u has left this allocation", job);
		waiter_free(waiter);
	}
	d->never[d->nnever++ % OCSD_NEVER_MAX] = pair;
}

bool ocsd_wait_is_never(const struct ocsd *d, uint32_t job, uint64_t epoch)
{
	for (size_t i = 0; i < OCSD_NEVER_MAX; i++)
		if (d->never[i].job == job && d->never[i].epoch == epoch)
			return true;
	return false;
}

void ocsd_wait_released(struct ocsd *d, struct ocsd_job *job)
{
	struct ocsd_waiter *waiter;

	while ((waiter = take(d, releases_of, job))) {
		struct json_object *reply = json_object_new_object();

		json_object_object_add(reply, OCS_FIELD_PENDING, ocsd_job_pending(d, job));
		ocsd_reply(waiter->client, waiter->id, reply);
		waiter_free(waiter);
	}
}

void ocsd_wait_expire(struct ocsd *d, int64_t now_ns)
{
	struct ocsd_waiter *waiter;

	while ((waiter = take(d, expired, &now_ns))) {
		/* Time may cure it: the node asks again. */
		ocsd_refuse(waiter->client, waiter->id, OCS_NOT_NOW, NULL,
			    "slurmctld has not committed job %u with epoch %llu to ocsd",
			    waiter->job, (unsigned long long)waiter->epoch);
		waiter_free(waiter);
	}
}
