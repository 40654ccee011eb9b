/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_OCSD_JOBS_JOB_STATE_H
#define OCS_OCSD_JOBS_JOB_STATE_H

/* The transitions between the states of an allocation.  No other function of ocsd writes
 * job->state, but for jobs/restore.c, which sets the first one. */

#include "src/ocsd/state/ocsd.h"

enum ocsd_job_event {
	OCSD_JOB_START,	   /* its circuits are asked for, and may be made */
	OCSD_JOB_VERIFIED, /* all of them were seen */
	OCSD_JOB_DEGRADE,  /* a circuit or a port is lost, and no plan does without it */
	OCSD_JOB_RESTORE,  /* what was lost is there again */
	OCSD_JOB_REPAIR,   /* a plan that does without it is in the database */
	OCSD_JOB_REPAIRED, /* the circuits of that plan were seen, or another one replaces it */
	OCSD_JOB_FAIL,	   /* it cannot have its circuits */
	OCSD_JOB_END,	   /* it has left its allocation */
	OCSD_JOB_RELEASED, /* every node has released it */
	OCSD_JOB_GONE,	   /* no epilog will come any more */
	OCSD_JOB_CUT,	   /* ocsd begins to cut its circuits */
	OCSD_JOB_CLOSE,	   /* they were seen gone */
	OCSD_JOB_EVENTS,
};

/* Whether the table has a transition of JOB for EVENT. */
bool ocsd_job_may(const struct ocsd_job *job, enum ocsd_job_event event);

/* Moves JOB as the table says: its new state, its row in the database, and for some its circuits.
 * What else the row takes from JOB is set before.  Returns false, and logs an error, if the table
 * has no such transition: then JOB is as it was. */
bool ocsd_job_move(struct ocsd *d, struct ocsd_job *job, enum ocsd_job_event event);

/* "START" ...: for the log. */
const char *ocsd_job_event_name(enum ocsd_job_event event);

#endif
