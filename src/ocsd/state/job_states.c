/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/ocsd/state/job_states.h"
#include "src/ocsd/state/ocsd.h"

/* The column state of a database that this ocsd writes.  4 was reserved and never written. */
enum { STORED_COMMITTED, STORED_APPLYING, STORED_REALISED, STORED_FAILED };

/* An allocation that is over keeps what the columns said when it ended: whether its nodes had
 * been answered decides whether their epilogs are waited for. */
static const struct ocsd_job_state_entry entries[OCSD_JOB_STATES] = {
	[OCSD_JOB_COMMITTED] = { "COMMITTED", "committed", "committed", STORED_COMMITTED, 0,
				 false },
	[OCSD_JOB_APPLYING] = { "APPLYING", "applying", "applying", STORED_APPLYING, 0, false },
	[OCSD_JOB_REALISED] = { "REALISED", "realised", "realised", STORED_REALISED, 0, false },
	[OCSD_JOB_DEGRADED] = { "DEGRADED", "degraded", "realised", STORED_REALISED, 0, false },
	[OCSD_JOB_REPAIRING] = { "REPAIRING", "repairing", "realised", STORED_REALISED, 0, false },
	[OCSD_JOB_FAILED] = { "FAILED", "failed", "failed", STORED_FAILED, 0, false },
	[OCSD_JOB_ROLLED_BACK] = { "ROLLED_BACK", "failed", "failed", STORED_FAILED, 1, false },
	[OCSD_JOB_LEAVING] = { "LEAVING", "ended", "ended", OCSD_STORED_KEEP, OCSD_STORED_KEEP,
			       true },
	[OCSD_JOB_CUT_DUE] = { "CUT_DUE", "ended", "ended", OCSD_STORED_KEEP, OCSD_STORED_KEEP,
			       true },
	[OCSD_JOB_CUTTING] = { "CUTTING", "ended", "ended", OCSD_STORED_KEEP, OCSD_STORED_KEEP,
			       true },
	[OCSD_JOB_CLOSED] = { "CLOSED", "ended", "ended", OCSD_STORED_KEEP, OCSD_STORED_KEEP,
			      true },
};

const struct ocsd_job_state_entry *ocsd_job_state_entry(enum ocsd_job_state state)
{
	return &entries[state];
}

enum ocsd_job_state ocsd_job_state_restore(int stored, bool ended, bool gone, bool rolled_back,
					   bool degraded)
{
	if (ended)
		return gone || rolled_back || stored < STORED_REALISED ? OCSD_JOB_CUT_DUE :
									 OCSD_JOB_LEAVING;
	if (stored < STORED_REALISED)
		return OCSD_JOB_COMMITTED;
	if (stored == STORED_REALISED)
		return degraded ? OCSD_JOB_DEGRADED : OCSD_JOB_REALISED;
	return rolled_back ? OCSD_JOB_ROLLED_BACK : OCSD_JOB_FAILED;
}

const char *ocsd_job_state_name(const struct ocsd_job *job)
{
	return ocsd_job_living(job) && ocsd_job_prepared(job) ? "prepared" :
								entries[job->state].word;
}

bool ocsd_job_living(const struct ocsd_job *job)
{
	return !entries[job->state].over;
}

bool ocsd_job_running(const struct ocsd_job *job)
{
	return ocsd_job_settled(job) || job->state == OCSD_JOB_REPAIRING;
}

bool ocsd_job_settled(const struct ocsd_job *job)
{
	return job->state == OCSD_JOB_REALISED || job->state == OCSD_JOB_DEGRADED;
}

bool ocsd_job_connects(const struct ocsd_job *job)
{
	return job->state == OCSD_JOB_APPLYING || ocsd_job_running(job) ||
	       job->state == OCSD_JOB_LEAVING;
}

bool ocsd_job_failed(const struct ocsd_job *job)
{
	return job->state == OCSD_JOB_FAILED || job->state == OCSD_JOB_ROLLED_BACK;
}

bool ocsd_job_prepared(const struct ocsd_job *job)
{
	return job->epoch == 0;
}
