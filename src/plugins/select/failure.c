/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/plugins/compat/spank_env.h"
#include "src/plugins/select/select_ocs.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define FAILURE_PREFIX "ocs failure: "
#define RUNNING_PREFIX OCS_SELECT_RUNNING_PREFIX
#define RESTORED "all there again"
/* The slurmds must have forgotten the credential of the attempt that failed; they
 * compare whole seconds. */
#define RESTART_DELAY 3

/* Jobs requeued here that have not been seen pending yet. */
static uint32_t *requeued;
static int nrequeued;

bool ocs_select_prologs_run(job_record_t *job)
{
	return IS_JOB_CONFIGURING(job) || job->state_reason == WAIT_PROLOG ||
	       (job->details && job->details->prolog_running > ocs_select_held(job)) ||
	       (job->node_bitmap_pr && bit_ffs(job->node_bitmap_pr) != -1);
}

bool ocs_select_in_prolog(job_record_t *job)
{
	return ocs_select_held(job) || ocs_select_prologs_run(job);
}

/* The job that can be requeued or cancelled: a component follows its leader. */
static job_record_t *whole_job(job_record_t *job)
{
	job_record_t *leader = job->het_job_id ? find_job_record(job->het_job_id) : NULL;

	return leader ? leader : job;
}

static void comment_note(job_record_t *job, const char *text)
{
	char *line = xstrdup_printf(FAILURE_PREFIX "%s", text);
	job_record_t *whole = whole_job(job);

	ocs_select_comment_set(&job->admin_comment, FAILURE_PREFIX, line);
	if (whole != job)
		ocs_select_comment_set(&whole->admin_comment, FAILURE_PREFIX, line);
	xfree(line);
}

static int attempts_of(job_record_t *job)
{
	const char *text = ocs_spank_get(job, "OCS_ATTEMPTS");

	return text ? atoi(text) : 0;
}

static void attempts_set(job_record_t *job, int attempts)
{
	char *text = xstrdup_printf("%d", attempts);

	ocs_select_spank_set(job, "OCS_ATTEMPTS", text);
	xfree(text);
}

static void job_cancel(job_record_t *job, const char *text, const char *why)
{
	job_record_t *whole = whole_job(job);
	char *message = xstrdup_printf("job %u is cancelled: %s", job->job_id, text);

	comment_note(job, text);
	srun_user_message(whole, message);
	ocs_slurm_info("%pJ: %s; it is cancelled: %s", job, text, why);
	if (whole->het_job_list)
		het_job_signal(whole, SIGKILL, 0, 0, false);
	else
		job_signal(job, SIGKILL, 0, 0, false);
	if (!job->state_desc)
		job->state_desc = xstrdup(text);
	xfree(message);
}

/* A running job keeps its nodes and learns what is wrong. */
static void user_tell(job_record_t *job, char *text)
{
	/* ocsd says it again after each connection. */
	if (xstrstr(job->admin_comment, text))
		return;
	comment_note(job, text);
	srun_user_message(job, text);
	ocs_slurm_info("%pJ: %s; it runs on", job, text);
	last_job_update = time(NULL);
}

static bool user_told(job_record_t *job)
{
	return xstrstr(job->admin_comment, RUNNING_PREFIX) &&
	       !xstrstr(job->admin_comment, RUNNING_PREFIX RESTORED);
}

static void note_running(job_record_t *job, const char *text)
{
	char *line = xstrdup_printf(RUNNING_PREFIX "%s", text);

	ocs_select_comment_set(&job->admin_comment, RUNNING_PREFIX, line);
	last_job_update = time(NULL);
	xfree(line);
}

/* It runs on; with a signal if that is the policy and it had none since it was whole. */
static void runs_on(job_record_t *job, const char *text, enum ocs_on_failure action)
{
	const struct ocs_config *config = ocs_controller_config();
	bool news = !user_told(job);
	char *line;

	if (!news && xstrstr(job->admin_comment, text))
		return;
	line = xstrdup_printf(
		"%s (%s%s)", text,
		action == OCS_ON_FAILURE_SIGNAL ? "it was sent SIG" : "it runs on",
		action == OCS_ON_FAILURE_SIGNAL ? sigabbrev_np(config->policies.signal) : "");
	note_running(job, line);
	ocs_slurm_info("%pJ: %s", job, line);
	if (action == OCS_ON_FAILURE_SIGNAL && news) {
		srun_user_message(job, line);
		job_signal(job, (uint16_t)config->policies.signal,
			   config->policies.signal_batch ? KILL_FULL_JOB : KILL_STEPS_ONLY, 0,
			   false);
	}
	xfree(line);
}

/* A circuit of a job failed, or may have.  True if that is all; false if the job has to
 * leave its nodes. */
static bool job_stays(job_record_t *job, const struct ocs_controller_failure *failure, char *text)
{
	const struct ocs_config *config = ocs_controller_config();
	enum ocs_on_failure action = !config ? OCS_ON_FAILURE_REQUEUE :
				     failure->kind == OCS_SWITCH_SILENT ?
					       config->policies.switch_failed :
					       config->policies.circuit_failed;

	switch (failure->kind) {
	case OCS_NO_CIRCUITS:
		return false;
	case OCS_DEGRADED:
		user_tell(job, text);
		return true;
	case OCS_CIRCUIT_RESTORED:
		if (user_told(job)) {
			note_running(job, RESTORED);
			ocs_slurm_info("%pJ: its circuits are there again", job);
		}
		return true;
	case OCS_REALISED:
		ocs_select_publish_circuits(job, failure->circuits);
		return true;
	case OCS_CIRCUIT_FAILED:
	case OCS_SWITCH_SILENT:
		break;
	}
	/* Nothing is lost yet that a signal could report. */
	if (ocs_select_in_prolog(job) && action == OCS_ON_FAILURE_SIGNAL)
		action = failure->kind == OCS_SWITCH_SILENT ? OCS_ON_FAILURE_IGNORE :
							      OCS_ON_FAILURE_REQUEUE;
	if (action == OCS_ON_FAILURE_CANCEL)
		job_cancel(job, text, "policies of ocs.yaml say so");
	else if (action != OCS_ON_FAILURE_REQUEUE)
		runs_on(job, text, action);
	return action != OCS_ON_FAILURE_REQUEUE;
}

/* The caller frees it. */
static char *text_of(const struct ocs_controller_failure *failure)
{
	char *blamed = failure->name ? xstrdup_printf("switch %s", failure->name) : NULL;
	char *text, *part;

	if (blamed && failure->kind == OCS_NO_CIRCUITS)
		text = xstrdup_printf("%s failed: %s", blamed,
				      ocs_error_cause(failure->text, blamed));
	else if (blamed && failure->kind == OCS_CIRCUIT_FAILED)
		text = xstrdup_printf("a circuit at %s failed: %s", blamed,
				      ocs_error_cause(failure->text, blamed));
	else
		text = xstrdup(failure->text);
	/* Texts of parts of a comment must not look like several parts. */
	while ((part = strstr(text, "; ")))
		*part = ',';
	xfree(blamed);
	return text;
}

void ocs_select_fail(const struct ocs_controller_failure *failure)
{
	job_record_t *job = find_job_record(failure->job), *whole;
	const struct ocs_config *config = ocs_controller_config();
	int limit = config ? config->policies.requeue_limit : 0, attempts;
	char *text, *line;
	/* What may fail again at the same place is not tried for ever. */
	bool counted = failure->name || failure->again, hold;

	if (!job || ocs_select_epoch(job) != failure->epoch ||
	    (!IS_JOB_RUNNING(job) && !IS_JOB_SUSPENDED(job)))
		return;
	text = text_of(failure);
	if (job_stays(job, failure, text)) {
		xfree(text);
		last_job_update = time(NULL);
		return;
	}
	whole = whole_job(job);
	attempts = attempts_of(job) + 1;
	hold = counted && limit > 0 && attempts >= limit;
	if (!counted)
		attempts--;
	if (counted)
		line = xstrdup_printf("%s (attempt %d of %d, %s)", text, attempts, limit,
				      hold ? "held" : "requeued");
	else
		line = xstrdup_printf("%s (requeued)", text);
	/* Before the requeue, which closes the record of this run in the accounting. */
	comment_note(job, line);
	if (!whole->batch_flag || !whole->details || !whole->details->requeue ||
	    ocs_compat_requeue(whole, hold ? JOB_REQUEUE_HOLD : 0)) {
		job_cancel(job, text, "it cannot be requeued");
		xfree(line);
		xfree(text);
		last_job_update = time(NULL);
		return;
	}
	attempts_set(job, hold ? 0 : attempts);
	if (hold || !job->state_desc) {
		xfree(job->state_desc);
		job->state_desc = xstrdup(line);
	}
	ocs_slurm_info("%pJ: %s", job, line);
	xrecalloc(requeued, nrequeued + 1, sizeof(*requeued));
	requeued[nrequeued++] = whole->job_id;
	last_job_update = time(NULL);
	xfree(line);
	xfree(text);
}

bool ocs_select_requeued_any(void)
{
	return nrequeued > 0;
}

static void job_hasten(job_record_t *job)
{
	time_t soon = time(NULL) + RESTART_DELAY;

	if (job->details && job->details->begin_time > soon) {
		job->details->begin_time = soon;
		last_job_update = time(NULL);
	}
}

void ocs_select_requeued_hasten(void)
{
	int kept = 0;

	for (int i = 0; i < nrequeued; i++) {
		job_record_t *job = find_job_record(requeued[i]);

		/* slurmctld sets the time when the last node has cleaned up. */
		if (job && IS_JOB_COMPLETING(job)) {
			requeued[kept++] = requeued[i];
			continue;
		}
		if (!job || !IS_JOB_PENDING(job))
			continue;
		if (job->het_job_list) {
			list_itr_t *iterator = list_iterator_create(job->het_job_list);
			job_record_t *part;

			while ((part = list_next(iterator)))
				job_hasten(part);
			list_iterator_destroy(iterator);
		} else {
			job_hasten(job);
		}
	}
	nrequeued = kept;
}
