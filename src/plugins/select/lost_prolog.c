/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Jobs that wait for a prolog which is dead.  A slurmd that is killed within a prolog takes it along, and the next one says
 * nothing of it: slurmctld waits for its end, and the job would hold its nodes and circuits until its time limit.  Until a
 * job is ready ocsd's patience ends that (hold.c); here are those that were let go. */

#include "src/plugins/select/select_ocs.h"

#include "src/util/net.h"

/* A prolog that was asked for before the new slurmd said that it is there ends in that time, or is one of the new slurmd. */
#define GRACE_NS (INT64_C(10) * 1000000000)

static struct watched {
	uint32_t job;
	uint64_t epoch;
	time_t *starts;	 /* of the slurmds of its nodes, in their order */
	int64_t lost_ns; /* when a prolog was first seen to be lost, 0: none is */
} * watched;
static int count;

void ocs_select_prologs_watch(job_record_t *job)
{
	struct watched one = { .job = job->job_id, .epoch = ocs_select_epoch(job) };
	node_record_t *node;
	int at = 0;

	if (!job->node_bitmap || !ocs_select_prologs_run(job))
		return;
	for (int i = 0; i < count; i++)
		if (watched[i].job == one.job && watched[i].epoch == one.epoch)
			return;
	one.starts = xcalloc(bit_set_count(job->node_bitmap) + 1, sizeof(*one.starts));
	for (int i = 0; (node = next_node_bitmap(job->node_bitmap, &i)); i++)
		one.starts[at++] = node->slurmd_start_time;
	xrecalloc(watched, count + 1, sizeof(*watched));
	watched[count++] = one;
}

/* The node of JOB whose slurmd is another one than at the job's start, though its prolog has not ended; or NULL. */
static node_record_t *node_lost(job_record_t *job, const struct watched *one)
{
	node_record_t *node;
	int at = 0;

	if (!job->node_bitmap_pr)
		return NULL;
	for (int i = 0; (node = next_node_bitmap(job->node_bitmap, &i)); i++, at++)
		if (bit_test(job->node_bitmap_pr, i) && one->starts[at] &&
		    node->slurmd_start_time != one->starts[at])
			return node;
	return NULL;
}

/* Its job if that still waits for prologs. */
static job_record_t *job_waiting(const struct watched *one)
{
	job_record_t *job = find_job_record(one->job);

	return job && (IS_JOB_RUNNING(job) || IS_JOB_SUSPENDED(job)) && job->node_bitmap &&
			       ocs_select_epoch(job) == one->epoch && ocs_select_prologs_run(job) ?
		       job :
		       NULL;
}

static void watched_forget(int i)
{
	xfree(watched[i].starts);
	watched[i] = watched[--count];
}

bool ocs_select_prologs_lost_any(void)
{
	int64_t now = ocs_now_ns();
	bool any = false;

	for (int i = 0; i < count;) {
		struct watched *one = &watched[i];
		job_record_t *job = job_waiting(one);

		if (!job) {
			watched_forget(i);
			continue;
		}
		if (!node_lost(job, one))
			one->lost_ns = 0;
		else if (!one->lost_ns)
			one->lost_ns = now;
		any |= one->lost_ns && now - one->lost_ns > GRACE_NS;
		i++;
	}
	return any;
}

void ocs_select_prologs_lost_requeue(void)
{
	for (int i = 0; i < count;) {
		struct ocs_controller_failure failure = {
			.job = watched[i].job,
			.epoch = watched[i].epoch,
			.again = true,
		};
		job_record_t *job = job_waiting(&watched[i]);
		node_record_t *node = job ? node_lost(job, &watched[i]) : NULL;

		if (job && (!node || !watched[i].lost_ns ||
			    ocs_now_ns() - watched[i].lost_ns <= GRACE_NS)) {
			i++;
			continue;
		}
		watched_forget(i);
		if (!job)
			continue;
		failure.text = xstrdup_printf("slurmd of %s was started anew during the prolog, "
					      "whose end it does not know",
					      node->name);
		ocs_select_fail(&failure);
		xfree(failure.text);
	}
}
