/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Jobs with circuits are not suspended for others: they would keep their circuits, and the
 * others would get XPUs that are joined to theirs.  job_submit refuses such jobs; what
 * partitions and QOS say may change afterwards. */

#include "src/plugins/select/select_ocs.h"

#include "src/interfaces/preempt.h"

#pragma weak slurm_job_preempt_mode

bool ocs_select_suspends(job_record_t *job)
{
	return job->part_ptr && slurm_job_preempt_mode(job) == PREEMPT_MODE_SUSPEND;
}

/* Has circuits and would be suspended. */
static bool job_spared(job_record_t *job)
{
	return (IS_JOB_RUNNING(job) || IS_JOB_SUSPENDED(job)) && ocs_select_suspends(job) &&
	       ocs_select_epoch(job);
}

static int find_spared(void *element, void *unused)
{
	return job_spared(element);
}

list_t *ocs_select_spare_jobs(list_t *preemptable)
{
	list_itr_t *iterator;
	job_record_t *job;
	list_t *left;

	if (!preemptable || !list_find_first(preemptable, find_spared, NULL))
		return NULL;
	left = list_create(NULL);
	iterator = list_iterator_create(preemptable);
	while ((job = list_next(iterator))) {
		if (!job_spared(job))
			list_append(left, job);
	}
	list_iterator_destroy(iterator);
	return left;
}

static int leave_out(void *element, void *nodes)
{
	job_record_t *job = element;

	if (job->node_bitmap && job_spared(job))
		bit_and_not(nodes, job->node_bitmap);
	return 0;
}

void ocs_select_spare_nodes(bitstr_t *nodes)
{
	/* Nothing is suspended without the gang scheduler. */
	if (slurm_conf.preempt_mode & PREEMPT_MODE_GANG)
		list_for_each(job_list, leave_out, nodes);
}
