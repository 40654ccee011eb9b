/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Batch jobs whose script would never start.  slurmctld keeps the launch of a script,
 * which waits for the prologs of all nodes, in memory only: a restart, a reconfigure or a
 * failover forgets it, and the job would hold its nodes and circuits until its time limit. */

#include "src/plugins/select/select_ocs.h"

static struct noted {
	uint32_t job;
	uint64_t epoch;
} * noted;
static int count;

void ocs_select_lost_note(job_record_t *job)
{
	/* While nodes boot or PrologSlurmctld runs there is no launch that could be forgotten. */
	if (!job->batch_flag || !IS_JOB_RUNNING(job) || IS_JOB_CONFIGURING(job) ||
	    !ocs_select_prologs_run(job))
		return;
	xrecalloc(noted, count + 1, sizeof(*noted));
	noted[count++] = (struct noted){ .job = job->job_id, .epoch = ocs_select_epoch(job) };
}

/* Its job if that is still in the run that was noted. */
static job_record_t *batch_running(const struct noted *one)
{
	job_record_t *job = find_job_record(one->job);

	return job && IS_JOB_RUNNING(job) && ocs_select_epoch(job) == one->epoch ? job : NULL;
}

/* A prolog that ends now shows that the script was not launched before. */
bool ocs_select_lost_any(void)
{
	for (int i = 0; i < count; i++) {
		job_record_t *job = batch_running(&noted[i]);

		if (!job || !ocs_select_prologs_run(job))
			return true;
	}
	return false;
}

void ocs_select_lost_requeue(void)
{
	int kept = 0;

	for (int i = 0; i < count; i++) {
		struct ocs_controller_failure failure = {
			.job = noted[i].job,
			.epoch = noted[i].epoch,
		};
		job_record_t *job = batch_running(&noted[i]);

		if (!job)
			continue;
		if (ocs_select_prologs_run(job)) {
			noted[kept++] = noted[i];
			continue;
		}
		failure.text = xstrdup(
			"slurmctld was restarted during its prolog and did not start its script");
		ocs_select_fail(&failure);
		xfree(failure.text);
	}
	count = kept;
}
