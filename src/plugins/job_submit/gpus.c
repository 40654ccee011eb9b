/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/plugins/job_submit/gpus.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "src/interfaces/gres.h"
#include "src/util/text.h"

#pragma weak gres_node_config_cnt

/* What a list such as "gres/nic:1,gres/gpu:h100:4" says about GPUs. */
struct gpus {
	bool asked;
	unsigned long count;
	char *type; /* "h100", or NULL */
	char *rest; /* the list without them, or NULL */
};

static void gpus_free(struct gpus *gpus)
{
	free(gpus->type);
	free(gpus->rest);
}

/* WORD behind "gpu". */
static void read_gpu(char *word, struct gpus *gpus)
{
	char *last;

	gpus->asked = true;
	gpus->count += 1;
	if (!*word)
		return;
	word++;
	last = strrchr(word, ':');
	last = last ? last + 1 : word;
	if (isdigit((unsigned char)*last)) {
		gpus->count += strtoul(last, NULL, 10) - 1;
		if (last == word)
			return;
		last[-1] = '\0';
	}
	free(gpus->type);
	gpus->type = ocs_strdup(word);
}

static void read_list(const char *list, struct gpus *gpus)
{
	char *copy = ocs_strdup(list ? list : ""), *save = NULL, *word;
	struct ocs_text rest = { 0 };

	memset(gpus, 0, sizeof(*gpus));
	for (word = strtok_r(copy, ",", &save); word; word = strtok_r(NULL, ",", &save)) {
		bool prefixed = !strncmp(word, "gres", 4) && (word[4] == '/' || word[4] == ':');
		char *name = prefixed ? word + 5 : word;

		if (!strncmp(name, "gpu", 3) && strchr(":=", name[3]))
			read_gpu(name + 3, gpus);
		else
			ocs_text_add(&rest, "%s%s", rest.length ? "," : "", word);
	}
	gpus->rest = rest.length ? ocs_text_take(&rest) : NULL;
	ocs_text_free(&rest);
	free(copy);
}

static void list_put(char **list, const char *text)
{
	xfree(*list);
	*list = text ? xstrdup(text) : NULL;
}

/* GPUs that Slurm knows of a node; 0: none. */
static unsigned long gpus_configured(const struct ocs_answer *answer)
{
	node_record_t *node =
		answer->some_node ? find_node_record((char *)answer->some_node) : NULL;

	return node && node->gres_list ? gres_node_config_cnt(node->gres_list, "gpu") : 0;
}

static int count_refuse(const char *option, unsigned long count, const struct ocs_shape *shape,
			const struct ocs_answer *answer, unsigned long each, struct ocs_error *err)
{
	char text[OCS_SHAPE_TEXT];

	return ocs_error_set(
		err, OCS_USAGE,
		"%s=%lu: --shape=%s takes all %lu GPUs of each of its %d node%s, %lu in all; leave %s out",
		option, count, ocs_shape_format(shape, text), each, answer->nodes,
		answer->nodes == 1 ? "" : "s", each * (unsigned long)answer->nodes, option);
}

static int counts_check(const job_desc_msg_t *job, const struct gpus *per_job,
			const struct gpus *per_node, const struct gpus *per_task,
			const struct ocs_shape *shape, const struct ocs_answer *answer,
			unsigned long each, struct ocs_error *err)
{
	unsigned long all = each * (unsigned long)answer->nodes;
	unsigned long xpus = (unsigned long)shape->xpus;

	/* XPUs of a node that the shape leaves idle need not be asked for. */
	if (per_job->asked && per_job->count != all && per_job->count != xpus)
		return count_refuse("--gpus", per_job->count, shape, answer, each, err);
	if (per_node->asked && per_node->count != each)
		return count_refuse("--gpus-per-node", per_node->count, shape, answer, each, err);
	if (per_task->asked && job->num_tasks != NO_VAL &&
	    per_task->count * job->num_tasks != all && per_task->count * job->num_tasks != xpus)
		return ocs_error_set(
			err, OCS_USAGE,
			"--gpus-per-task=%lu with %u tasks is not the %lu GPUs that the shape takes; leave it out: the tasks share the GPUs of their nodes",
			per_task->count, job->num_tasks, all);
	return 0;
}

int ocs_gpus_set(job_desc_msg_t *job, const struct ocs_shape *shape,
		 const struct ocs_answer *answer, struct ocs_error *err)
{
	unsigned long each = answer->node_xpus > 0 ? gpus_configured(answer) : 0;
	struct gpus per_job, per_node, per_task;
	const char *type;
	char *list;
	int rc;

	if (!each)
		return 0;
	read_list(job->tres_per_job, &per_job);
	read_list(job->tres_per_node, &per_node);
	read_list(job->tres_per_task, &per_task);
	rc = counts_check(job, &per_job, &per_node, &per_task, shape, answer, each, err);
	if (!rc) {
		type = per_node.type ? per_node.type : per_job.type ? per_job.type : per_task.type;
		list = ocs_asprintf("%s%sgres/gpu%s%s:%lu", per_node.rest ? per_node.rest : "",
				    per_node.rest ? "," : "", type ? ":" : "", type ? type : "",
				    each);
		list_put(&job->tres_per_node, list);
		free(list);
		if (per_job.asked)
			list_put(&job->tres_per_job, per_job.rest);
		if (per_task.asked)
			list_put(&job->tres_per_task, per_task.rest);
	}
	gpus_free(&per_job);
	gpus_free(&per_node);
	gpus_free(&per_task);
	return rc;
}
