/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/plugins/compat/spank_env.h"
#include "src/plugins/select/select_ocs.h"

#include <inttypes.h>
#include <stdlib.h>

#define COUNTS_PREFIX "ocs: "
/* How placements begin that ocs_placement_decode reads. */
#define PLACEMENT_VERSION "p1:"
#define SYSTEM_PREFIX "ocs epoch="

void ocs_select_spank_set(job_record_t *job, const char *name, const char *value)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < job->spank_job_env_size; i++) {
		if (ocs_spank_value(job->spank_job_env[i], name))
			xfree(job->spank_job_env[i]);
		else
			job->spank_job_env[kept++] = job->spank_job_env[i];
	}
	xrecalloc(job->spank_job_env, kept + 2, sizeof(*job->spank_job_env));
	if (value)
		job->spank_job_env[kept++] = xstrdup_printf("%s=%s", name, value);
	job->spank_job_env[kept] = NULL;
	job->spank_job_env_size = kept;
}

void ocs_select_comment_set(char **comment, const char *prefix, const char *text)
{
	char *kept = NULL, *copy = xstrdup(*comment), *next;

	for (char *part = copy; part; part = next) {
		next = xstrstr(part, "; ");
		if (next) {
			*next = '\0';
			next += 2;
		}
		if (!*part || !xstrncmp(part, prefix, strlen(prefix)))
			continue;
		xstrfmtcat(kept, "%s%s", kept ? "; " : "", part);
	}
	if (text)
		xstrfmtcat(kept, "%s%s", kept ? "; " : "", text);
	xfree(copy);
	xfree(*comment);
	*comment = kept;
}

/* What a job on a direct fabric has; CIRCUITS: the last word of it. */
static void publish_planned(job_record_t *job, const char *circuits)
{
	const char *shape = ocs_spank_get(job, "OCS_SHAPE");
	char *text = xstrdup_printf(COUNTS_PREFIX "nodes=%d%s%s%s", bit_set_count(job->node_bitmap),
				    shape ? " shape=" : "", shape ? shape : "", circuits);

	ocs_select_comment_set(&job->admin_comment, COUNTS_PREFIX, text);
	xfree(text);
}

void ocs_select_publish(job_record_t *job, const struct ocs_controller_allocation *made)
{
	char *epoch = xstrdup_printf("%" PRIu64, made->epoch), *text = NULL;

	ocs_select_spank_set(job, "OCS_EPOCH", epoch);
	ocs_select_spank_set(job, "OCS_SECTION", made->section);
	ocs_select_spank_set(job, "OCS_SHAPE", made->shape);
	ocs_select_spank_set(job, "OCS_CONN", made->conn);
	ocs_select_spank_set(job, "OCS_PHASES", made->phases);
	ocs_select_spank_set(job, "OCS_MOE", made->moe);
	ocs_select_spank_set(job, "OCS_PLACEMENT", made->placement);
	/* A placement says its nodes; servers are ranked by this list. */
	ocs_select_spank_set(job, "OCS_NODES", made->placement ? NULL : made->nodes);
	if (!ocs_spank_get(job, "OCS_ATTEMPTS"))
		ocs_select_spank_set(job, "OCS_ATTEMPTS", "0");
	text = xstrdup_printf(SYSTEM_PREFIX "%s", epoch);
	if (made->placement)
		xstrfmtcat(text, " placement=%s", made->placement);
	ocs_select_comment_set(&job->system_comment, SYSTEM_PREFIX, text);
	xfree(text);
	/* What was said about circuits of an earlier run. */
	if (xstrstr(job->admin_comment, OCS_SELECT_RUNNING_PREFIX))
		ocs_select_comment_set(&job->admin_comment, OCS_SELECT_RUNNING_PREFIX, NULL);
	if (made->placement) {
		text = xstrdup_printf(
			COUNTS_PREFIX "shape=%s xpus=%ld idle=%ld cubes=%d circuits=%d",
			made->shape, made->xpus, made->idle, made->cubes, made->circuits);
		ocs_select_comment_set(&job->admin_comment, COUNTS_PREFIX, text);
		xfree(text);
	} else if (made->planned) {
		publish_planned(job, "");
	} else if (made->shape) {
		text = xstrdup_printf(
			COUNTS_PREFIX "shape=%s xpus=%ld idle=%ld nodes=%d%s%s", made->shape,
			made->xpus, made->idle, bit_set_count(job->node_bitmap),
			made->phases ? " phases=" : "", made->phases ? made->phases : "");
		if (made->moe)
			xstrfmtcat(text, " moe=%s", made->moe);
		ocs_select_comment_set(&job->admin_comment, COUNTS_PREFIX, text);
		xfree(text);
	}
	xfree(epoch);
}

void ocs_select_publish_circuits(job_record_t *job, int circuits)
{
	char *text = xstrdup_printf(" circuits=%d", circuits);

	publish_planned(job, text);
	xfree(text);
}

void ocs_select_unpublish(job_record_t *job)
{
	if (xstrstr(job->system_comment, SYSTEM_PREFIX))
		ocs_select_comment_set(&job->system_comment, SYSTEM_PREFIX, NULL);
}

void ocs_select_forget(job_record_t *job)
{
	static const char *const names[] = { "OCS_EPOCH",  "OCS_SECTION",   "OCS_SHAPE",
					     "OCS_CONN",   "OCS_PLACEMENT", "OCS_NODES",
					     "OCS_PHASES", "OCS_MOE",	    "OCS_ATTEMPTS" };

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		ocs_select_spank_set(job, names[i], NULL);
	if (xstrstr(job->admin_comment, COUNTS_PREFIX))
		ocs_select_comment_set(&job->admin_comment, COUNTS_PREFIX, NULL);
	ocs_select_unpublish(job);
}

uint64_t ocs_select_epoch(job_record_t *job)
{
	const char *text = ocs_spank_get(job, "OCS_EPOCH");

	return text ? strtoull(text, NULL, 10) : 0;
}

static char *text_of(job_record_t *job, const char *name)
{
	return (char *)ocs_spank_get(job, name);
}

static int job_restore(void *element, void *unused)
{
	job_record_t *job = element;
	struct ocs_controller_allocation known = { .job = job->job_id };
	bool living = IS_JOB_RUNNING(job) || IS_JOB_SUSPENDED(job);
	char *list;
	int *nodes, count;

	if ((!living && !IS_JOB_COMPLETING(job)) || !job->node_bitmap)
		return 0;
	known.epoch = ocs_select_epoch(job);
	if (!known.epoch)
		return 0;
	/* Without ocs.yaml all that is known of it is whether it may start. */
	if (!ocs_controller_fabric()) {
		if (living)
			ocs_select_hold_again(job);
		ocs_select_lost_note(job);
		return 0;
	}
	count = ocs_select_nodes_of(job->node_bitmap, &nodes, NULL);
	list = bitmap2node_name(job->node_bitmap);
	known.uid = job->user_id;
	known.user = job->user_name ? job->user_name : "";
	known.partition = job->partition;
	known.section = text_of(job, "OCS_SECTION");
	known.shape = text_of(job, "OCS_SHAPE");
	known.conn = text_of(job, "OCS_CONN");
	known.phases = text_of(job, "OCS_PHASES");
	known.moe = text_of(job, "OCS_MOE");
	known.name = known.moe ? job->name : NULL;
	known.placement = text_of(job, "OCS_PLACEMENT");
	known.demand = text_of(job, OCS_SELECT_DEMAND);
	known.rings = text_of(job, OCS_SELECT_RINGS);
	known.nodes = text_of(job, "OCS_NODES") ? text_of(job, "OCS_NODES") : list;
	if (known.placement && xstrncmp(known.placement, PLACEMENT_VERSION, 3))
		ocs_slurm_error(
			"%pJ: its placement is of version %.2s, and this slurm-ocs reads %.2s: a newer one wrote it; the circuits stay until the job ends",
			job, known.placement, PLACEMENT_VERSION);
	ocs_controller_restore(&known, nodes, count, living);
	ocs_select_lost_note(job);
	if (living)
		ocs_select_hold_again(job);
	if (living && !ocs_select_held(job))
		ocs_select_prologs_watch(job);
	xfree(nodes);
	xfree(list);
	return 0;
}

void ocs_select_restore_all(void)
{
	if (job_list)
		list_for_each(job_list, job_restore, NULL);
}
