/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Operation apply: a node asks for the circuits of its job, and is answered when they are
 * verified, or when they will not come. */

#include "src/ocsd/jobs/forwarding.h"
#include "src/ocsd/jobs/allocation.h"
#include "src/ocsd/jobs/connect.h"
#include "src/ocsd/jobs/lifecycle.h"
#include "src/ocsd/state/menus.h"
#include "src/ocsd/jobs/node_presence.h"
#include "src/ocsd/jobs/plan.h"
#include "src/ocsd/ops/apply.h"
#include "src/ocsd/ops/operations.h"
#include "src/ocsd/ops/presence.h"
#include "src/ocsd/protocol/connection.h"
#include "src/ocsd/protocol/dispatch.h"
#include "src/ocsd/protocol/pending_reply.h"

#include "src/protocol/fields.h"
#include "src/protocol/names.h"
#include "src/util/net.h"
#include "src/util/secret.h"
#include "src/util/text.h"

#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COMMIT_WAIT_NS INT64_C(30000000000)

struct apply_reply {
	struct ocsd_pending_reply reply;
	uint32_t job;
	uint64_t epoch;
	struct ocsd_job *allocation; /* NULL: not committed yet */
	char *node;
	bool elsewhere; /* NODE is not in the allocation that was committed */
	bool meets;	/* the MACs of all hosts are wanted */
	int64_t after;	/* a plan of a later revision is wanted */
};

static bool is_never(const struct ocsd *d, uint32_t job, uint64_t epoch)
{
	for (size_t i = 0; i < OCSD_NEVER_MAX; i++)
		if (d->slurmctld.never[i].job == job && d->slurmctld.never[i].epoch == epoch)
			return true;
	return false;
}

void ocsd_apply_never(struct ocsd *d, uint32_t job, uint64_t epoch)
{
	if (!epoch)
		return;
	d->slurmctld.never[d->slurmctld.nnever++ % OCSD_NEVER_MAX] =
		(struct ocsd_pair){ .job = job, .epoch = epoch };
	d->replies.due = true;
}

/* ---- when ---- */

static bool apply_due(struct ocsd *d, const struct ocsd_pending_reply *reply, int64_t now_ns)
{
	const struct apply_reply *wait = (const struct apply_reply *)reply;
	const struct ocsd_job *job = wait->allocation;

	if (!job)
		return reply->deadline_ns <= now_ns ||
		       (wait->epoch && is_never(d, wait->job, wait->epoch));
	if (!ocsd_job_living(job) || wait->elsewhere)
		return true;
	return ocsd_job_settled(job) && (!wait->meets || ocsd_forward_met(job)) &&
	       (!wait->after || wait->after < job->plan.revision);
}

/* ---- what ---- */

/* The interfaces of NODE: where each is plugged in. */
static struct json_object *node_ports(struct ocsd *d, const struct ocsd_job *job, const char *name)
{
	struct json_object *list = json_object_new_array();
	const struct ocs_node *node = ocs_fabric_node(d->fabric, name);

	for (int i = 0; node && i < job->section->degree; i++) {
		struct json_object *row;
		struct ocs_port port;

		if (ocs_section_set_port(job->section, job->plan.set, node->server, i, &port))
			break;
		row = json_object_new_object();
		ocs_field_add_number(row, OCS_FIELD_INTERFACE, i);
		ocs_field_add_text(row, OCS_FIELD_SWITCH, d->fabric->switches[port.sw].name);
		ocs_field_add_number(row, OCS_FIELD_PORT, port.port);
		if (job->section->nic_ports > 1 &&
		    !ocs_section_nic_port(job->section, node->server, i, 1, &port))
			ocs_field_add_number(row, OCS_FIELD_NEXT_PORT, port.port);
		json_object_array_add(list, row);
	}
	return list;
}

/* The secret of the job's agents, which the controller can make of its key, and nobody the other way
 * round. */
static void agent_key_add(struct json_object *reply, const struct ocsd_job *job)
{
	char number[16], epoch[24], secret[OCS_MAC_HEX + 1];

	snprintf(number, sizeof(number), "%u", job->job);
	snprintf(epoch, sizeof(epoch), "%llu", (unsigned long long)job->epoch);
	ocs_key_prove(job->menu->key, strlen(job->menu->key), secret, "agents", number, epoch,
		      NULL);
	ocs_field_add_text(reply, OCS_FIELD_AGENT_KEY, secret);
	explicit_bzero(secret, sizeof(secret));
}

/* The success reply of an apply of NODE (BY_PROLOG: with an epoch); the caller puts it. */
static struct json_object *apply_result(struct ocsd *d, struct ocsd_job *job, const char *node,
					bool by_prolog)
{
	struct json_object *reply = json_object_new_object();

	ocs_field_add_number(reply, OCS_FIELD_CIRCUITS, (int64_t)ocsd_job_circuits(job));
	if (job->plan.text)
		json_object_object_add(reply, OCS_FIELD_PLAN, ocsd_direct_plan_json(job));
	if (ocsd_forward_wanted(job))
		ocs_field_add_bool(reply, OCS_FIELD_FORWARDING, true);
	if (job->section && job->section->kind != OCS_TORUS && job->section->kind != OCS_STATIC)
		json_object_object_add(reply, OCS_FIELD_PORTS, node_ports(d, job, node));
	if (job->menu && ocsd_menu_region(job->menu))
		json_object_object_add(reply, OCS_FIELD_REGION,
				       ocsd_menu_describe_region(job->menu));
	else if (job->menu)
		json_object_object_add(reply, OCS_FIELD_PHASES, ocsd_menu_describe(job->menu));
	/* For the controller, which runs there: root puts it where only the user reads it. */
	if (job->menu && job->menu->key[0] && by_prolog && strcmp(node, job->nodes.names[0]) == 0)
		ocs_field_add_text(reply, OCS_FIELD_KEY, job->menu->key);
	if (job->menu && job->menu->key[0] && by_prolog)
		agent_key_add(reply, job);
	return reply;
}

static struct json_object *gone_extra(const struct ocsd_job *job)
{
	struct json_object *extra = json_object_new_object();

	ocs_field_add_bool(extra, OCS_FIELD_GONE, true);
	if (job && job->failure.sw)
		ocs_field_add_text(extra, OCS_FIELD_SWITCH, job->failure.sw);
	return extra;
}

static void refuse_uncommitted(struct ocsd *d, const struct apply_reply *wait)
{
	const struct ocsd_pending_reply *reply = &wait->reply;

	if (wait->epoch && is_never(d, wait->job, wait->epoch))
		ocsd_refuse(reply->client, reply->id, OCS_ERROR, gone_extra(NULL),
			    "job %u has left this allocation", wait->job);
	else /* Time may cure it: the node asks again. */
		ocsd_refuse(reply->client, reply->id, OCS_NOT_NOW, NULL,
			    "slurmctld has not committed job %u with epoch %llu to ocsd", wait->job,
			    (unsigned long long)wait->epoch);
}

static void apply_answer(struct ocsd *d, struct ocsd_pending_reply *reply)
{
	const struct apply_reply *wait = (const struct apply_reply *)reply;
	struct ocsd_job *job = wait->allocation;
	struct json_object *result;

	if (!job) {
		refuse_uncommitted(d, wait);
	} else if (wait->elsewhere) {
		ocsd_refuse(reply->client, reply->id, OCS_USAGE, NULL,
			    "node %s is not in the allocation of job %u", wait->node, job->job);
	} else if (!ocsd_job_living(job)) {
		ocsd_refuse(reply->client, reply->id, OCS_ERROR, gone_extra(job),
			    "job %u has left this allocation%s%s", job->job,
			    job->failure.error ? ": " : "",
			    job->failure.error ? job->failure.error : "");
	} else {
		result = apply_result(d, job, wait->node, wait->epoch != 0);
		if (wait->meets)
			json_object_object_add(result, OCS_FIELD_HOSTS, ocsd_forward_hosts(job));
		ocsd_reply(reply->client, reply->id, result);
	}
}

static void apply_drop(struct ocsd *d, struct ocsd_pending_reply *reply)
{
	struct apply_reply *wait = (struct apply_reply *)reply;

	(void)d;
	if (wait->allocation && !wait->elsewhere)
		wait->allocation->prolog.napplies--;
	free(wait->node);
}

static const struct ocsd_reply_kind apply_kind = { apply_due, apply_answer, apply_drop };

/* What ASKED says, of NODE, is answered later. */
static void apply_wait(struct ocsd *d, struct ocsd_client *client, int64_t id,
		       const struct apply_reply *asked, const char *node)
{
	struct apply_reply *wait = ocs_calloc(1, sizeof(*wait));

	*wait = *asked;
	wait->node = ocs_strdup(node);
	ocsd_reply_later(d, &wait->reply, &apply_kind, client, id);
	if (wait->allocation)
		wait->allocation->prolog.napplies++;
	else
		wait->reply.deadline_ns = ocs_now_ns() + COMMIT_WAIT_NS;
}

void ocsd_apply_bind(struct ocsd *d, struct ocsd_job *job)
{
	for (struct ocsd_pending_reply *reply = d->replies.first; reply; reply = reply->next) {
		struct apply_reply *wait = (struct apply_reply *)reply;
		int index;

		if (reply->kind != &apply_kind || wait->allocation || wait->job != job->job ||
		    (wait->epoch && wait->epoch != job->epoch))
			continue;
		reply->deadline_ns = INT64_MAX;
		wait->allocation = job;
		index = ocsd_job_node(job, wait->node);
		wait->elsewhere = index < 0;
		if (wait->elsewhere) {
			d->replies.due = true;
			continue;
		}
		job->prolog.napplies++;
		if (wait->epoch)
			ocsd_node_asked(d, job, index);
	}
}

/* What a job holds now; an allocation that has ended is not waited for. */
static struct ocsd_job *living_find(struct ocsd *d, uint32_t number)
{
	struct ocsd_job *job = ocsd_job_newest(d, number);

	return job && ocsd_job_living(job) && !ocsd_job_prepared(job) ? job : NULL;
}

/* Whether the allocation that NODE asks for, as ASKED says, can be waited for; -1: it was refused. */
static int apply_check(struct ocsd *d, struct ocsd_client *client, int64_t id,
		       const struct apply_reply *asked, const char *node)
{
	struct ocsd_job *job = asked->allocation;
	uint32_t number = asked->job;
	uint64_t epoch = asked->epoch;

	if ((job && !ocsd_job_living(job)) ||
	    (!job && epoch && (ocsd_job_over(d, number, epoch) || is_never(d, number, epoch))))
		ocsd_refuse(client, id, OCS_ERROR, gone_extra(job),
			    "epoch %llu of job %u has ended", (unsigned long long)epoch, number);
	else if (job && asked->after && job->section && job->section->kind != OCS_DIRECT)
		ocsd_refuse(client, id, OCS_USAGE, NULL,
			    "job %u has no plan that could be repaired:"
			    " only jobs on direct fabrics have one",
			    number);
	else if (job && ocsd_job_node(job, node) < 0)
		ocsd_refuse(client, id, OCS_USAGE, NULL,
			    "node %s is not in the allocation of job %u", node, number);
	else if (asked->meets && !job)
		ocsd_refuse(client, id, OCS_NOT_NOW, NULL, "job %u is not known yet", number);
	else
		return 0;
	return -1;
}

void ocsd_op_apply(struct ocsd *d, struct ocsd_client *client, int64_t id,
		   struct json_object *request)
{
	const char *node = ocs_field_text(request, OCS_FIELD_NODE, NULL);
	struct apply_reply asked = { .meets = ocs_field_has(request, OCS_FIELD_MACS) };
	struct ocs_error err;
	struct ocsd_job *job;

	if (ocsd_request_job(client, id, request, &asked.job, &asked.epoch))
		return;
	if (ocs_field_has(request, OCS_FIELD_AFTER) &&
	    !ocs_field_within(request, OCS_FIELD_AFTER, INT32_MAX, &asked.after)) {
		ocsd_refuse(client, id, OCS_USAGE, NULL, "after is the number of a revision");
		return;
	}
	if (!node) {
		ocsd_refuse(client, id, OCS_USAGE, NULL, "apply needs the name of its node");
		return;
	}
	job = asked.epoch ? ocsd_job_find(d, asked.job, asked.epoch) : living_find(d, asked.job);
	asked.allocation = job;
	if (apply_check(d, client, id, &asked, node))
		return;
	if (asked.meets && ocsd_forward_announce(job, node, request, &err)) {
		ocsd_refuse(client, id, err.code, NULL, "%s", err.text);
		return;
	}
	apply_wait(d, client, id, &asked, node);
	/* An epoch comes from the prolog; without one it is a user who tries. */
	if (job && asked.epoch)
		ocsd_node_asked(d, job, ocsd_job_node(job, node));
	if (job) {
		ocsd_realised_answer(d, job);
		ocsd_job_progress(d, job);
	}
}
