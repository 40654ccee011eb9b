/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* No task of a job with circuits starts before they are verified and every node has asked for
 * them, whatever a node lacks.  Slurm counts in prolog_running what a launch waits for: the
 * script, srun, salloc and steps, but not the prologs of the nodes.  One of that count is ours
 * from the job's begin until ocsd says that it is ready, or the job leaves its nodes. */

#include "src/plugins/compat/spank_env.h"
#include "src/plugins/select/select_ocs.h"

#include "src/slurmctld/agent.h"
#include "src/slurmctld/job_scheduler.h"
#include "src/util/net.h"

#include <stdlib.h>

/* As those in compat.h. */
#pragma weak agent_trigger
#pragma weak launch_job
#pragma weak pick_batch_host
#pragma weak prolog_running_decr

/* In the job's SPANK environment, which outlives slurmctld; the count does not. */
#define MARK "OCS_HELD"
/* The last node's prolog has ended, and the news that it had asked may be on its way. */
#define GRACE_NS (INT64_C(2) * 1000000000)
/* Without an answer the question is put again. */
#define AGAIN_NS (INT64_C(20) * 1000000000)
/* Beyond what a prolog takes to give up, after which a node that has not asked never will. */
#define MARGIN_S 60

/* All under the job write lock; read under the read lock. */
static struct held {
	uint32_t job;
	uint64_t epoch;
	int64_t ended_ns; /* when its prologs were first seen to have ended, 0: not yet */
	int64_t asked_ns; /* when ocsd was asked who is missing, 0: not yet */
} * held;
static int count;

static struct held *held_find(uint32_t job, uint64_t epoch)
{
	for (int i = 0; i < count; i++) {
		if (held[i].job == job && (!epoch || held[i].epoch == epoch))
			return &held[i];
	}
	return NULL;
}

bool ocs_select_held(job_record_t *job)
{
	return held_find(job->job_id, 0);
}

void ocs_select_hold(job_record_t *job)
{
	struct held *entry = held_find(job->job_id, 0);

	/* Slurm began with it before, and changed its mind. */
	if (entry)
		entry->epoch = ocs_select_epoch(job);
	if (!job->details || entry)
		return;
	xrecalloc(held, count + 1, sizeof(*held));
	held[count++] = (struct held){ .job = job->job_id, .epoch = ocs_select_epoch(job) };
	job->details->prolog_running++;
	ocs_select_spank_set(job, MARK, "1");
	/* Its steps are made on the first node, from a copy of this record that the prolog takes
	 * along: it must be made while nothing of ours is in the count, as when PrologSlurmctld
	 * has ended (see configured). */
	if (job->bit_flags & STEPMGR_ENABLED) {
		job_state_set_flag(job, JOB_CONFIGURING);
		ocs_select_keeper_wake();
	}
}

void ocs_select_hold_again(job_record_t *job)
{
	if (ocs_spank_get(job, MARK))
		ocs_select_hold(job);
}

static void held_forget(struct held *entry)
{
	*entry = held[--count];
}

void ocs_select_hold_drop(job_record_t *job)
{
	struct held *entry = held_find(job->job_id, 0);

	if (!entry)
		return;
	held_forget(entry);
	if (job->details && job->details->prolog_running)
		job->details->prolog_running--;
	ocs_select_spank_set(job, MARK, NULL);
}

/* The job of ENTRY if that still is in the run that is held. */
static job_record_t *held_running(const struct held *entry)
{
	job_record_t *job = find_job_record(entry->job);

	return job && (IS_JOB_RUNNING(job) || IS_JOB_SUSPENDED(job)) &&
			       ocs_select_epoch(job) == entry->epoch ?
		       job :
		       NULL;
}

/* PrologSlurmctld has ended, if there was one: Slurm would look at the job's nodes but for us. */
static bool job_prepared(const job_record_t *job)
{
	return IS_JOB_CONFIGURING(job) && job->details->prolog_running == 1;
}

/* Slurm 26.05 chooses the first node of such a job only when it is prepared; without one its
 * nodes are never ready. */
static bool job_headless(const job_record_t *job)
{
	return job_prepared(job) && !job->batch_host;
}

/* And its nodes have booted: Slurm would have started their prologs. */
static bool job_configured(job_record_t *job)
{
	return job_prepared(job) && job->batch_host && test_job_nodes_ready(job);
}

/* Whether the time is over in which a prolog may still ask: that of spank_ocs gives up
 * after that of ocs.yaml. */
static bool job_overdue(job_record_t *job)
{
	time_t since = job->prolog_launch_time ? job->prolog_launch_time : job->start_time;

	return !IS_JOB_CONFIGURING(job) &&
	       time(NULL) - since > ocs_controller_config()->timeouts.prolog_ms / 1000 + MARGIN_S;
}

/* Whether ocsd is to be asked who is missing. */
static bool held_due(const struct held *entry, job_record_t *job)
{
	int64_t now = ocs_now_ns();

	/* Without ocs.yaml there is no ocsd to ask. */
	if (!ocs_controller_fabric() || ocs_controller_down_ms() ||
	    (entry->asked_ns && now - entry->asked_ns < AGAIN_NS))
		return false;
	return job_overdue(job) || (entry->ended_ns && now - entry->ended_ns > GRACE_NS);
}

/* PrologFlags=NoHold does not let us know. */
static bool prologs_ended(job_record_t *job)
{
	return !ocs_select_prologs_run(job) && job->node_bitmap_pr;
}

bool ocs_select_hold_any(bool *soon)
{
	bool any = false;

	for (int i = 0; i < count; i++) {
		job_record_t *job = held_running(&held[i]);

		if (!job || job_headless(job) || job_configured(job) ||
		    ocs_controller_ready(held[i].job, held[i].epoch) || held_due(&held[i], job) ||
		    (prologs_ended(job) != (held[i].ended_ns != 0)))
			any = true;
		/* PrologSlurmctld ends without a word to us. */
		if (job && IS_JOB_CONFIGURING(job) && job->details->prolog_running > 1)
			*soon = true;
	}
	return any;
}

/* The host list of JOB's nodes on which its prolog has ended; xfree it. */
static char *nodes_ended(job_record_t *job)
{
	bitstr_t *nodes = bit_copy(job->node_bitmap);
	char *list;

	if (job->node_bitmap_pr)
		bit_and_not(nodes, job->node_bitmap_pr);
	else
		bit_clear_all(nodes);
	list = bitmap2node_name(nodes);
	FREE_NULL_BITMAP(nodes);
	return list;
}

/* Lets JOB, which is held no more, start. */
static void job_launch(job_record_t *job)
{
	ocs_select_spank_set(job, MARK, NULL);
	prolog_running_decr(job);
	ocs_select_prologs_watch(job);
	/* Slurm has tried when its parts began. */
	if (job->het_job_id && job->batch_flag && IS_JOB_RUNNING(job) && !IS_JOB_CONFIGURING(job))
		launch_job(job);
	/* The script waits among the agent's requests. */
	agent_trigger(999, false, true);
	last_job_update = time(NULL);
}

/* Does what is due for the I-th; false if it is held no more. */
static bool held_tend(int i)
{
	struct held *entry = &held[i];
	job_record_t *job = held_running(entry);
	char *ended;

	if (!job) {
		/* It did not start after all, or has left its nodes. */
		job = find_job_record(entry->job);
		if (job)
			ocs_select_hold_drop(job);
		else
			held_forget(entry);
		return false;
	}
	if (ocs_controller_ready(entry->job, entry->epoch)) {
		held_forget(entry);
		job_launch(job);
		return false;
	}
	if (job_headless(job))
		pick_batch_host(job);
	if (job_configured(job)) {
		prolog_running_decr(job);
		job->details->prolog_running++;
		return true;
	}
	if (!prologs_ended(job))
		entry->ended_ns = 0;
	else if (!entry->ended_ns)
		entry->ended_ns = ocs_now_ns();
	if (!held_due(entry, job))
		return true;
	entry->asked_ns = ocs_now_ns();
	ended = nodes_ended(job);
	ocs_controller_unheard(entry->job, entry->epoch, ended);
	xfree(ended);
	return true;
}

void ocs_select_hold_tend(void)
{
	for (int i = 0; i < count;) {
		if (held_tend(i))
			i++;
	}
}
