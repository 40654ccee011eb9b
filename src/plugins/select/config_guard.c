/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* A changed ocs.yaml and the jobs that run: slurmctld keeps a copy of the last one that
 * it took, and takes no other that leaves a running job without what it has. */

#include "src/plugins/compat/conf.h"
#include "src/plugins/compat/spank_env.h"
#include "src/plugins/select/select_ocs.h"

#include <stdlib.h>

struct holdings {
	struct ocs_holding *jobs;
	int count;
};

static int job_collect(void *element, void *argument)
{
	struct holdings *all = argument;
	job_record_t *job = element;
	struct ocs_holding *holding;
	node_record_t *record;
	char **nodes;

	if ((!IS_JOB_RUNNING(job) && !IS_JOB_SUSPENDED(job) && !IS_JOB_COMPLETING(job)) ||
	    !job->node_bitmap || !ocs_select_epoch(job))
		return 0;
	xrecalloc(all->jobs, all->count + 1, sizeof(*all->jobs));
	holding = &all->jobs[all->count++];
	holding->job = job->job_id;
	holding->section = ocs_spank_get(job, "OCS_SECTION");
	nodes = xcalloc(bit_set_count(job->node_bitmap) + 1, sizeof(*nodes));
	for (int i = 0; (record = next_node_bitmap(job->node_bitmap, &i)); i++)
		nodes[holding->nnodes++] = record->name;
	holding->nodes = nodes;
	return 0;
}

/* Whether all jobs keep what they have; else says in ERR which does not. */
static bool all_keep(const char *copy, struct ocs_error *err)
{
	struct holdings all = { 0 };
	int rc;

	list_for_each(job_list, job_collect, &all);
	rc = ocs_controller_keeps(copy, all.jobs, all.count, err);
	for (int i = 0; i < all.count; i++) {
		char **nodes = (char **)all.jobs[i].nodes;

		xfree(nodes);
	}
	xfree(all.jobs);
	return rc == 0;
}

static void copy_keep(const char *copy)
{
	char *partitions = ocs_conf_partitions();
	struct ocs_error err;

	if (ocs_controller_copy(copy, partitions, &err))
		ocs_slurm_error("no copy of ocs.yaml is kept: %s", err.text);
	xfree(partitions);
}

void ocs_select_accept(void)
{
	static bool later;
	/* `scontrol reconfigure` makes a new process; with a parent, that one goes on. */
	bool reconfigures = !later && getenv("SLURMCTLD_RECONF");
	bool parent = getenv("SLURMCTLD_RECONF_PARENT_FD");
	char *copy = ocs_conf_accepted(), *why;
	struct ocs_error err;
	bool kept;

	later = true;
	if (!job_list || !xstrcmp(ocs_controller_fabric()->source, copy)) {
		xfree(copy);
		return;
	}
	if (!all_keep(copy, &err)) {
		if (reconfigures && parent)
			ocs_slurm_fatal("%s", err.text);
		ocs_slurm_error("%s", err.text);
		why = xstrdup(err.text);
		kept = reconfigures && ocs_controller_open_kept(copy, why, &err) == 0;
		xfree(why);
		if (kept) {
			ocs_slurm_error("ocs.yaml is not taken, what was read before is kept");
			ocs_select_nodes_map();
			xfree(copy);
			return;
		}
	}
	copy_keep(copy);
	xfree(copy);
}
