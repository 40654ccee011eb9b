/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/plugins/cli_filter/ring.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/config/config.h"
#include "src/layout/task_map.h"
#include "src/plugins/compat/slurm_api.h"
#include "src/util/error.h"
#include "src/util/hostlist.h"
#include "src/util/text.h"

#define FILE_LIMIT (64 << 20)
#define NODES_LIMIT (1 << 20)

static struct ocs_ranks *from_file(const char *dir, struct ocs_error *err)
{
	char *path = ocs_asprintf("%s/ranks", dir), *text;
	struct ocs_ranks *ranks = NULL;

	/* No such file: a job on rails without a shape. */
	if (!access(path, F_OK)) {
		text = ocs_file_read(path, FILE_LIMIT, NULL, err);
		if (text)
			ranks = ocs_ranks_parse(text, err);
		free(text);
	}
	free(path);
	return ranks;
}

static struct ocs_ranks *from_placement(const struct ocs_fabric *fabric,
					const struct ocs_section *section, const char *compact,
					struct ocs_error *err)
{
	struct ocs_placer *placer = ocs_placer_create(fabric, section);
	struct ocs_placement *placement;
	struct ocs_ranks *ranks = NULL;

	placement = ocs_placement_decode(placer, compact, err);
	if (placement)
		ranks = ocs_ranks_from_placement(fabric, placement);
	ocs_placement_destroy(placement);
	ocs_placer_destroy(placer);
	return ranks;
}

static struct ocs_ranks *from_nodes(const slurm_job_info_t *job, struct ocs_error *err)
{
	struct ocs_ranks *ranks = NULL;
	struct ocs_shape shape;
	char **names;
	int count;

	if (ocs_shape_extra_parse(job->extra ? job->extra : "", &shape, err) <= 0)
		return NULL;
	count = ocs_hostlist_expand(job->nodes ? job->nodes : "", NODES_LIMIT, &names, err);
	if (count < 0)
		return NULL;
	ranks = ocs_ranks_from_nodes(&shape, names, count);
	ocs_names_free(names, count);
	return ranks;
}

/* The value of WORD= in the note that the select plugin leaves with the job. */
static char *word_noted(const char *note, const char *word)
{
	const char *at = note ? strstr(note, word) : NULL;
	size_t length;

	if (!at)
		return NULL;
	at += strlen(word);
	length = strcspn(at, " \n");
	/* Notes of others may follow, after "; ". */
	if (length && at[length - 1] == ';')
		length--;
	return ocs_asprintf("%.*s", (int)length, at);
}

static struct ocs_ranks *from_job(const slurm_job_info_t *job, const char *path,
				  struct ocs_error *err)
{
	char *epoch = word_noted(job->system_comment, "ocs epoch=");
	char *compact = word_noted(job->system_comment, "placement=");
	struct ocs_ranks *ranks = NULL;
	const struct ocs_section *section;
	struct ocs_fabric *fabric;

	if (epoch && compact && *compact) {
		fabric = ocs_config_take_fabric(ocs_config_open(path, err));
		section = fabric ? ocs_fabric_section(fabric, job->partition) : NULL;
		if (section)
			ranks = from_placement(fabric, section, compact, err);
		if (fabric)
			ocs_fabric_destroy(fabric);
	} else if (epoch) {
		ranks = from_nodes(job, err);
	}
	free(compact);
	free(epoch);
	return ranks;
}

static job_info_msg_t *job_load(uint32_t job, slurm_job_info_t **found, struct ocs_error *err)
{
	job_info_msg_t *reply = NULL;

	if (ocs_slurm_load_job(&reply, job)) {
		ocs_error_set(err, OCS_ERROR, "job %u: %s", job, slurm_strerror(errno));
		return NULL;
	}
	for (uint32_t i = 0; i < reply->record_count; i++) {
		*found = &reply->job_array[i];
		if ((*found)->job_id == job)
			return reply;
	}
	slurm_free_job_info_msg(reply);
	ocs_error_set(err, OCS_ERROR, "job %u is unknown", job);
	return NULL;
}

struct ocs_ranks *ocs_ring_ranks(uint32_t job, const char *dir, const char *fabric, int *tasks,
				 struct ocs_error *err)
{
	struct ocs_ranks *ranks;
	slurm_job_info_t *found;
	job_info_msg_t *reply;

	err->code = OCS_OK;
	*tasks = 0;
	if (dir)
		return from_file(dir, err);
	reply = job_load(job, &found, err);
	if (!reply)
		return NULL;
	if (found->num_tasks < NO_VAL)
		*tasks = (int)found->num_tasks;
	ranks = from_job(found, fabric, err);
	slurm_free_job_info_msg(reply);
	return ranks;
}

char *ocs_ring_hosts(const struct ocs_ranks *ranks, int tasks, struct ocs_error *err)
{
	int *hosts = ocs_ranks_hosts(ranks, tasks, err);
	struct ocs_text text = { 0 };

	if (!hosts)
		return NULL;
	for (int i = 0; i < tasks; i++)
		ocs_text_add(&text, "%s%s", i ? "," : "", ranks->nodes[hosts[i]]);
	free(hosts);
	return ocs_text_take(&text);
}

char *ocs_ring_shape(uint32_t job, struct ocs_error *err)
{
	char buffer[OCS_SHAPE_TEXT];
	struct ocs_shape shape;
	slurm_job_info_t *found;
	job_info_msg_t *reply = job_load(job, &found, err);
	int has;

	if (!reply)
		return NULL;
	has = ocs_shape_extra_parse(found->extra ? found->extra : "", &shape, err);
	slurm_free_job_info_msg(reply);
	if (has < 0)
		return NULL;
	return ocs_strdup(has ? ocs_shape_format(&shape, buffer) : "");
}
