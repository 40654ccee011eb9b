/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/ocsd/jobs/node_presence.h"
#include "src/ocsd/jobs/allocation.h"
#include "src/ocsd/state/events.h"
#include "src/ocsd/store/store.h"

#include "src/protocol/fields.h"
#include "src/protocol/names.h"
#include "src/util/hostlist.h"
#include "src/util/net.h"
#include "src/util/text.h"

#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

/* One entry for each node of ocs.yaml. */
struct ocsd_heard {
	bool known;	    /* in the database */
	int64_t present_ns; /* when its slurmd or a prolog there was heard last; 0: never */
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
	job->prolog.met = true;
}

bool ocsd_heard_asked(struct ocsd_job *job, int index)
{
	if (!job->prolog.asked)
		job->prolog.asked = ocs_calloc(job->nodes.count + 1, sizeof(*job->prolog.asked));
	if (job->prolog.asked[index])
		return false;
	job->prolog.asked[index] = true;
	job->prolog.nasked++;
	return true;
}

void ocsd_heard_load_asked(struct ocsd_job *job, const char *name)
{
	int index = ocsd_job_node(job, name);

	if (index >= 0 && ocsd_heard_asked(job, index))
		job->prolog.committed_ns = ocs_now_ns();
}

bool ocsd_heard_node(struct ocsd *d, const char *name)
{
	struct ocsd_heard *heard = heard_of(d, name);

	if (!heard)
		return false;
	if (!heard->known)
		ocsd_store_heard(d, name);
	heard->known = true;
	heard->present_ns = ocs_now_ns();
	return true;
}

int64_t ocsd_heard_when(struct ocsd *d, const char *name)
{
	const struct ocsd_heard *heard = heard_of(d, name);

	return heard ? heard->present_ns : -1;
}

void ocsd_heard_save(struct ocsd *d)
{
	for (const struct ocsd_job *job = d->jobs; job; job = job->next) {
		/* After kill -9 and a stop, who asked before is as unknown as before. */
		if (job->prolog.met || !ocsd_job_living(job) || ocsd_job_prepared(job) ||
		    !job->prolog.committed_ns)
			continue;
		for (size_t i = 0; i < job->nodes.count && job->prolog.asked; i++)
			if (job->prolog.asked[i])
				ocsd_store_asked(d, job, job->nodes.names[i]);
	}
}

void ocsd_heard_check(struct ocsd *d, struct ocsd_job *job)
{
	struct json_object *event;

	if (job->prolog.met || !ocsd_job_settled(job) || ocsd_job_prepared(job) ||
	    job->prolog.nasked < job->nodes.count)
		return;
	job->prolog.met = true;
	ocsd_store_met(d, job);
	event = ocs_event_job(OCS_EVENT_READY, job->job, job->epoch);
	ocsd_event_post(d, event);
}

struct json_object *ocsd_heard_ready(const struct ocsd *d)
{
	struct json_object *list = json_object_new_array();

	for (const struct ocsd_job *job = d->jobs; job; job = job->next) {
		struct json_object *row;

		if (!job->prolog.met || !ocsd_job_living(job))
			continue;
		row = json_object_new_object();
		ocs_field_add_number(row, OCS_FIELD_JOB, job->job);
		ocs_field_add_number(row, OCS_FIELD_EPOCH, (int64_t)job->epoch);
		json_object_array_add(list, row);
	}
	return list;
}

struct json_object *ocsd_heard_list(char **names, size_t count)
{
	char *text = ocs_hostlist_compress(names, count);
	struct json_object *value = json_object_new_string(text);

	free(text);
	return value;
}

size_t ocsd_heard_missing(const struct ocsd_job *job, char **names)
{
	size_t count = 0;

	for (size_t i = 0; i < job->nodes.count; i++)
		if (!job->prolog.met && !(job->prolog.asked && job->prolog.asked[i]))
			names[count++] = job->nodes.names[i];
	return count;
}

void ocsd_heard_show(const struct ocsd_job *job, struct json_object *row)
{
	char **names;

	if (job->prolog.met || !ocsd_job_living(job) || ocsd_job_prepared(job))
		return;
	names = ocs_calloc(job->nodes.count + 1, sizeof(*names));
	json_object_object_add(row, OCS_FIELD_UNHEARD,
			       ocsd_heard_list(names, ocsd_heard_missing(job, names)));
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
	value = ocsd_heard_list(names, count);
	free(names);
	return value;
}
