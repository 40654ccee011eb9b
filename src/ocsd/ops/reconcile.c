/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* The allocations that slurmctld lists when it subscribes, and those that are here. */

#include "src/ocsd/jobs/job.h"
#include "src/ocsd/ops/reconcile.h"

#include "src/protocol/fields.h"
#include "src/protocol/names.h"
#include "src/util/hostlist.h"
#include "src/util/text.h"

#include <json-c/json.h>
#include <stdlib.h>

static int by_job(const void *left, const void *right)
{
	const struct ocsd_pair *a = left, *b = right;

	if (a->job != b->job)
		return a->job < b->job ? -1 : 1;
	return a->epoch < b->epoch ? -1 : a->epoch > b->epoch;
}

static size_t read_pairs(struct json_object *jobs, struct ocsd_pair *pairs)
{
	size_t count = 0;

	for (size_t i = 0; i < json_object_array_length(jobs); i++) {
		struct json_object *row = json_object_array_get_idx(jobs, i);
		struct json_object *job, *epoch;

		if (!json_object_object_get_ex(row, OCS_FIELD_JOB, &job) ||
		    !json_object_object_get_ex(row, OCS_FIELD_EPOCH, &epoch))
			continue;
		pairs[count].job = (uint32_t)json_object_get_int64(job);
		pairs[count++].epoch = (uint64_t)json_object_get_int64(epoch);
	}
	qsort(pairs, count, sizeof(*pairs), by_job);
	return count;
}

struct json_object *ocsd_listed_row(const struct ocsd_job *job)
{
	struct json_object *row = json_object_new_object();
	char *nodes = ocs_hostlist_compress(job->nodes, job->nnodes);

	ocs_field_add_number(row, OCS_FIELD_JOB, job->job);
	ocs_field_add_number(row, OCS_FIELD_EPOCH, (int64_t)job->epoch);
	ocs_field_add_text(row, OCS_FIELD_NODES, nodes);
	free(nodes);
	return row;
}

/* Whether JOB is among PAIRS; notes that in KNOWN. */
static bool is_listed(const struct ocsd_pair *pairs, bool *known, size_t count,
		      const struct ocsd_job *job)
{
	struct ocsd_pair key = { .job = job->job, .epoch = job->epoch };
	const struct ocsd_pair *found = bsearch(&key, pairs, count, sizeof(*pairs), by_job);

	if (found)
		known[found - pairs] = true;
	return found != NULL;
}

static void end_strangers(struct ocsd *d, const struct ocsd_pair *pairs, bool *known, size_t count,
			  bool confirms, struct json_object *forgotten)
{
	const char *stranger = "slurmctld does not know it any more";

	for (struct ocsd_job *job = d->jobs; job; job = job->next) {
		if (job->dead || is_listed(pairs, known, count, job))
			continue;
		/* Its nodes may have it still, also where slurmctld has said that it ended
		 * and did not save that it had ever started. */
		if (!job->gone && !job->prepared && job->nreleased < job->nnodes)
			json_object_array_add(forgotten, ocsd_listed_row(job));
		if (confirms && !job->prepared)
			ocsd_job_end(d, job, stranger);
		else if (!job->gone)
			ocsd_job_gone(d, job, stranger);
	}
}

void ocsd_listed_compare(struct ocsd *d, struct json_object *jobs, bool confirms,
			 struct json_object *unknown, struct json_object *forgotten)
{
	size_t length = json_object_array_length(jobs);
	struct ocsd_pair *pairs = ocs_calloc(length + 1, sizeof(*pairs));
	bool *known = ocs_calloc(length + 1, sizeof(*known));
	size_t count = read_pairs(jobs, pairs);

	end_strangers(d, pairs, known, count, confirms, forgotten);
	d->unknown = ocs_realloc(d->unknown, (count + 1) * sizeof(*d->unknown));
	d->nunknown = 0;
	for (size_t i = 0; i < count; i++) {
		if (known[i])
			continue;
		d->unknown[d->nunknown++] = pairs[i].job;
		json_object_array_add(unknown, json_object_new_int64(pairs[i].job));
	}
	free(known);
	free(pairs);
}
