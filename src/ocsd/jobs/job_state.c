/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/ocsd/jobs/job_state.h"
#include "src/ocsd/jobs/transition.h"
#include "src/ocsd/store/store.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

typedef void (*job_action)(struct ocsd *d, struct ocsd_job *job);

static void row_write(struct ocsd *d, struct ocsd_job *job)
{
	ocsd_store_job_update(d, job);
}

static void row_remove(struct ocsd *d, struct ocsd_job *job)
{
	ocsd_store_job_remove(d, job);
}

/* What it has it keeps as it is. */
static void circuits_keep_row_write(struct ocsd *d, struct ocsd_job *job)
{
	ocsd_transitions_end(job);
	ocsd_store_job_update(d, job);
}

static void circuits_cut(struct ocsd *d, struct ocsd_job *job)
{
	ocsd_transition_abandon(d, job);
}

static void circuits_cut_row_write(struct ocsd *d, struct ocsd_job *job)
{
	ocsd_transition_abandon(d, job);
	ocsd_store_job_update(d, job);
}

/* What the table does not have is refused. */
static const struct {
	enum ocsd_job_state from;
	enum ocsd_job_event event;
	enum ocsd_job_state to;
	job_action action; /* in the new state; NULL: the database has nothing to learn */
} transitions[] = {
	{ OCSD_JOB_COMMITTED, OCSD_JOB_START, OCSD_JOB_APPLYING, row_write },
	{ OCSD_JOB_COMMITTED, OCSD_JOB_FAIL, OCSD_JOB_ROLLED_BACK, circuits_cut_row_write },
	{ OCSD_JOB_COMMITTED, OCSD_JOB_END, OCSD_JOB_CUT_DUE, row_write },
	{ OCSD_JOB_COMMITTED, OCSD_JOB_GONE, OCSD_JOB_CUT_DUE, row_write },

	{ OCSD_JOB_APPLYING, OCSD_JOB_VERIFIED, OCSD_JOB_REALISED, row_write },
	{ OCSD_JOB_APPLYING, OCSD_JOB_FAIL, OCSD_JOB_ROLLED_BACK, circuits_cut_row_write },
	{ OCSD_JOB_APPLYING, OCSD_JOB_END, OCSD_JOB_CUT_DUE, row_write },
	{ OCSD_JOB_APPLYING, OCSD_JOB_GONE, OCSD_JOB_CUT_DUE, row_write },

	{ OCSD_JOB_REALISED, OCSD_JOB_DEGRADE, OCSD_JOB_DEGRADED, row_write },
	{ OCSD_JOB_REALISED, OCSD_JOB_REPAIR, OCSD_JOB_REPAIRING, row_write },
	{ OCSD_JOB_REALISED, OCSD_JOB_FAIL, OCSD_JOB_FAILED, circuits_keep_row_write },
	{ OCSD_JOB_REALISED, OCSD_JOB_END, OCSD_JOB_LEAVING, circuits_keep_row_write },
	{ OCSD_JOB_REALISED, OCSD_JOB_GONE, OCSD_JOB_CUT_DUE, row_write },

	{ OCSD_JOB_DEGRADED, OCSD_JOB_DEGRADE, OCSD_JOB_DEGRADED, row_write },
	{ OCSD_JOB_DEGRADED, OCSD_JOB_RESTORE, OCSD_JOB_REALISED, row_write },
	{ OCSD_JOB_DEGRADED, OCSD_JOB_REPAIR, OCSD_JOB_REPAIRING, row_write },
	{ OCSD_JOB_DEGRADED, OCSD_JOB_FAIL, OCSD_JOB_FAILED, circuits_keep_row_write },
	{ OCSD_JOB_DEGRADED, OCSD_JOB_END, OCSD_JOB_LEAVING, circuits_keep_row_write },
	{ OCSD_JOB_DEGRADED, OCSD_JOB_GONE, OCSD_JOB_CUT_DUE, row_write },

	{ OCSD_JOB_REPAIRING, OCSD_JOB_REPAIRED, OCSD_JOB_REALISED, NULL },
	{ OCSD_JOB_REPAIRING, OCSD_JOB_FAIL, OCSD_JOB_FAILED, circuits_keep_row_write },
	{ OCSD_JOB_REPAIRING, OCSD_JOB_END, OCSD_JOB_LEAVING, circuits_keep_row_write },
	{ OCSD_JOB_REPAIRING, OCSD_JOB_GONE, OCSD_JOB_CUT_DUE, row_write },

	{ OCSD_JOB_FAILED, OCSD_JOB_END, OCSD_JOB_LEAVING, circuits_keep_row_write },
	{ OCSD_JOB_FAILED, OCSD_JOB_GONE, OCSD_JOB_CUT_DUE, row_write },

	{ OCSD_JOB_ROLLED_BACK, OCSD_JOB_END, OCSD_JOB_CUT_DUE, row_write },
	{ OCSD_JOB_ROLLED_BACK, OCSD_JOB_GONE, OCSD_JOB_CUT_DUE, row_write },

	{ OCSD_JOB_LEAVING, OCSD_JOB_RELEASED, OCSD_JOB_CUT_DUE, NULL },
	{ OCSD_JOB_LEAVING, OCSD_JOB_GONE, OCSD_JOB_CUT_DUE, row_write },

	{ OCSD_JOB_CUT_DUE, OCSD_JOB_GONE, OCSD_JOB_CUT_DUE, row_write },
	{ OCSD_JOB_CUT_DUE, OCSD_JOB_CUT, OCSD_JOB_CUTTING, circuits_cut },

	{ OCSD_JOB_CUTTING, OCSD_JOB_GONE, OCSD_JOB_CUTTING, row_write },
	{ OCSD_JOB_CUTTING, OCSD_JOB_CLOSE, OCSD_JOB_CLOSED, row_remove },
};

static const char *const event_names[OCSD_JOB_EVENTS] = {
	[OCSD_JOB_START] = "START",	  [OCSD_JOB_VERIFIED] = "VERIFIED",
	[OCSD_JOB_DEGRADE] = "DEGRADE",	  [OCSD_JOB_RESTORE] = "RESTORE",
	[OCSD_JOB_REPAIR] = "REPAIR",	  [OCSD_JOB_REPAIRED] = "REPAIRED",
	[OCSD_JOB_FAIL] = "FAIL",	  [OCSD_JOB_END] = "END",
	[OCSD_JOB_RELEASED] = "RELEASED", [OCSD_JOB_GONE] = "GONE",
	[OCSD_JOB_CUT] = "CUT",		  [OCSD_JOB_CLOSE] = "CLOSE",
};

const char *ocsd_job_event_name(enum ocsd_job_event event)
{
	return event_names[event];
}

/* The index of the transition of JOB for EVENT, or -1. */
static int transition_find(const struct ocsd_job *job, enum ocsd_job_event event)
{
	for (size_t i = 0; i < COUNT(transitions); i++)
		if (transitions[i].from == job->state && transitions[i].event == event)
			return (int)i;
	return -1;
}

bool ocsd_job_may(const struct ocsd_job *job, enum ocsd_job_event event)
{
	return transition_find(job, event) >= 0;
}

bool ocsd_job_move(struct ocsd *d, struct ocsd_job *job, enum ocsd_job_event event)
{
	int index = transition_find(job, event);

	if (index < 0) {
		ocs_log(OCS_LOG_ERROR,
			"job %u (epoch %llu) is %s: %s has no transition there and is refused",
			job->job, (unsigned long long)job->epoch,
			ocsd_job_state_entry(job->state)->name, event_names[event]);
		return false;
	}
	job->state = transitions[index].to;
	if (transitions[index].action)
		transitions[index].action(d, job);
	return true;
}
