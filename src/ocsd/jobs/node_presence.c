/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/ocsd/store/audit.h"
#include "src/ocsd/ports/drain.h"
#include "src/ocsd/jobs/node_presence.h"
#include "src/ocsd/jobs/job.h"
#include "src/ocsd/protocol/dispatch.h"
#include "src/ocsd/protocol/connection.h"
#include "src/ocsd/store/store.h"

#include "src/protocol/fields.h"
#include "src/protocol/names.h"
#include "src/util/hostlist.h"
#include "src/util/net.h"
#include "src/util/text.h"

#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* One entry for each node of ocs.yaml. */
struct ocsd_heard {
	bool known;		/* in the database */
	int64_t present_ns;	/* when its slurmd or a prolog there was heard last; 0: never */
};

static struct ocsd_heard *heard_of(struct ocsd *d, const char *name)
{
	const struct ocs_node *node = ocs_fabric_node(d->fabric, name);

	if (!node)
		return NULL;
	if (!d->heard)
		d->heard = ocs_calloc((size_t)d->fabric->nnodes + 1, sizeof(*d->heard));
	return &d->heard[node - d->fabric->nodes];
}

void ocsd_heard_load_node(struct ocsd *d, const char *name)
{
	struct ocsd_heard *heard = heard_of(d, name);

	if (heard)
		heard->known = true;
}

void ocsd_heard_load_job(struct ocsd_job *job)
{
	job->met = true;
}

/* False if that was known. */
static bool asked_add(struct ocsd_job *job, int index)
{
	if (!job->asked)
		job->asked = ocs_calloc(job->nnodes + 1, sizeof(*job->asked));
	if (job->asked[index])
		return false;
	job->asked[index] = true;
	job->nasked++;
	return true;
}

void ocsd_heard_load_asked(struct ocsd_job *job, const char *name)
{
	int index = ocsd_job_node(job, name);

	if (index >= 0 && asked_add(job, index))
		job->committed_ns = ocs_now_ns();
}

void ocsd_heard_save(struct ocsd *d)
{
	for (const struct ocsd_job *job = d->jobs; job; job = job->next) {
		/* After kill -9 and a stop, who asked before is as unknown as before. */
		if (job->met || job->ended || job->dead || job->prepared || !job->committed_ns)
			continue;
		for (size_t i = 0; i < job->nnodes && job->asked; i++)
			if (job->asked[i])
				ocsd_store_asked(d, job, job->nodes[i]);
	}
}

/* NAME talks to ocsd, whatever was thought of it. */
static void node_present(struct ocsd *d, const char *name)
{
	struct ocsd_heard *heard = heard_of(d, name);
	const struct ocsd_drain *drain;

	if (!heard)
		return;
	if (!heard->known)
		ocsd_store_heard(d, name);
	heard->known = true;
	heard->present_ns = ocs_now_ns();
	drain = d->drains ? ocsd_drain_find(d, "node", name) : NULL;
	if (drain && strncmp(drain->reason, OCSD_UNHEARD, strlen(OCSD_UNHEARD)) == 0) {
		ocsd_audit(d, &(struct ocsd_audit){ .what = "resume", .before = name,
						    .after = "it was heard of" });
		ocsd_resume(d, "node", name, geteuid());
	}
}

void ocsd_heard_apply(struct ocsd *d, struct ocsd_job *job, int index)
{
	if (asked_add(job, index))
		node_present(d, job->nodes[index]);
}

void ocsd_heard_check(struct ocsd *d, struct ocsd_job *job)
{
	struct json_object *event;

	if (job->met || job->state != OCSD_REALISED || job->mending || job->ended ||
	    job->breaking || job->prepared || job->nasked < job->nnodes)
		return;
	job->met = true;
	ocsd_store_met(d, job);
	event = ocs_event_job(OCS_EVENT_READY, job->job, job->epoch);
	ocsd_event_send(d, event);
}

struct json_object *ocsd_heard_ready(const struct ocsd *d)
{
	struct json_object *list = json_object_new_array();

	for (const struct ocsd_job *job = d->jobs; job; job = job->next) {
		struct json_object *row;

		if (!job->met || job->ended || job->dead)
			continue;
		row = json_object_new_object();
		ocs_field_add_number(row, OCS_FIELD_JOB, job->job);
		ocs_field_add_number(row, OCS_FIELD_EPOCH, (int64_t)job->epoch);
		json_object_array_add(list, row);
	}
	return list;
}

static struct json_object *host_list(char **names, size_t count)
{
	char *text = ocs_hostlist_compress(names, count);
	struct json_object *value = json_object_new_string(text);

	free(text);
	return value;
}

/* Nodes of JOB that have not asked: the count; NAMES has room for all. */
static size_t nodes_missing(const struct ocsd_job *job, char **names)
{
	size_t count = 0;

	for (size_t i = 0; i < job->nnodes; i++)
		if (!job->met && !(job->asked && job->asked[i]))
			names[count++] = job->nodes[i];
	return count;
}

void ocsd_heard_show(const struct ocsd_job *job, struct json_object *row)
{
	char **names;

	if (job->met || job->ended || job->dead || job->prepared)
		return;
	names = ocs_calloc(job->nnodes + 1, sizeof(*names));
	json_object_object_add(row, OCS_FIELD_UNHEARD, host_list(names, nodes_missing(job, names)));
	free(names);
}

struct json_object *ocsd_heard_never(struct ocsd *d)
{
	char **names = ocs_calloc((size_t)d->fabric->nnodes + 1, sizeof(*names));
	struct json_object *value;
	size_t count = 0;

	for (int i = 0; i < d->fabric->nnodes; i++)
		if (!d->heard || !d->heard[i].known)
			names[count++] = d->fabric->nodes[i].name;
	value = host_list(names, count);
	free(names);
	return value;
}

void ocsd_op_present(struct ocsd *d, struct ocsd_client *client, int64_t id,
		     struct json_object *request)
{
	const char *node = ocs_field_text(request, OCS_FIELD_NODE, NULL);

	if (!node) {
		ocsd_refuse(client, id, OCS_USAGE, NULL, "present needs the name of its node");
		return;
	}
	/* Nodes that ocs.yaml does not have may run spank_ocs, too. */
	node_present(d, node);
	ocsd_reply(client, id, NULL);
}

/* Takes NAME out of service for shapes, unless it was heard of since JOB was committed: then it
 * has been mended meanwhile. */
static void node_close(struct ocsd *d, struct ocsd_client *client, const struct ocsd_job *job,
		       const char *name)
{
	const struct ocsd_heard *heard = heard_of(d, name);
	bool mended = heard && heard->present_ns > job->committed_ns;
	const struct ocsd_drain *before = ocsd_drain_find(d, "node", name);
	char *reason;

	if (before || mended || !heard) {
		ocsd_drain_event(d, "node", name, before ? before->reason : NULL, before);
		return;
	}
	reason = ocs_asprintf(OCSD_UNHEARD "its prolog for job %u ended without having asked ocsd for circuits",
			      job->job);
	ocsd_drain_set(d, "node", name, reason);
	ocsd_store_drain(d, "node", name, reason, ocsd_client_uid(client));
	ocsd_audit(d, &(struct ocsd_audit){ .who = client, .job = job, .what = "drain",
					    .before = name, .after = reason });
	ocs_log(OCS_LOG_ERROR, "node %s gets no shapes until it is heard of: %s", name, reason);
	ocsd_drain_event(d, "node", name, reason, true);
	free(reason);
}

void ocsd_op_unheard(struct ocsd *d, struct ocsd_client *client, int64_t id,
		     struct json_object *request)
{
	const char *ended = ocs_field_text(request, OCS_FIELD_ENDED, NULL);
	struct json_object *reply;
	struct ocs_error err;
	struct ocsd_job *job;
	char **names, **over = NULL;
	uint32_t number;
	uint64_t epoch;
	size_t missing;
	int nover;

	if (ocs_field_need_job(request, &number, &epoch, &err)) {
		ocsd_refuse(client, id, err.code, NULL, "%s", err.text);
		return;
	}
	job = ocsd_job_find(d, number, epoch);
	/* An ended one will never be ready: slurmctld was killed before it had saved its end. */
	if (!job || job->ended || job->dead) {
		ocsd_refuse(client, id, OCS_ERROR, NULL, "job %u has no %sallocation of that epoch",
			    number, job ? "living " : "");
		return;
	}
	names = ocs_calloc(job->nnodes + 1, sizeof(*names));
	missing = nodes_missing(job, names);
	reply = json_object_new_object();
	ocs_field_add_bool(reply, OCS_FIELD_READY, job->met);
	json_object_object_add(reply, OCS_FIELD_MISSING, host_list(names, missing));
	/* Who asked before ocsd was restarted is not known, and not to blame. */
	ocs_field_add_bool(reply, OCS_FIELD_UNCERTAIN, missing && !job->committed_ns);
	nover = ended ? ocs_hostlist_expand(ended, job->nnodes, &over, NULL) : 0;
	for (int i = 0; i < nover && job->committed_ns; i++) {
		int index = ocsd_job_node(job, over[i]);

		if (!job->met && index >= 0 && !(job->asked && job->asked[index]))
			node_close(d, client, job, over[i]);
	}
	if (nover > 0)
		ocs_names_free(over, (size_t)nover);
	free(names);
	ocsd_reply(client, id, reply);
}
