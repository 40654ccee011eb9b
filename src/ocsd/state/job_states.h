/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_OCSD_STATE_JOB_STATES_H
#define OCS_OCSD_STATE_JOB_STATES_H

/* The states of an allocation, and what each is called: on the wire, in the database and
 * among the metrics.  jobs/job_state.h has the transitions between them. */

#include <stdbool.h>

struct ocsd_job;

enum ocsd_job_state {
	OCSD_JOB_COMMITTED,   /* owns its ports or is next in line; no node has asked yet */
	OCSD_JOB_APPLYING,    /* its circuits are being made */
	OCSD_JOB_REALISED,    /* every circuit was seen in a read-back */
	OCSD_JOB_DEGRADED,    /* runs without a circuit or a port; its error says which */
	OCSD_JOB_REPAIRING,   /* runs; the circuits of a repaired plan are on their way */
	OCSD_JOB_FAILED,      /* failed after its nodes were answered: keeps its circuits */
	OCSD_JOB_ROLLED_BACK, /* failed before: its circuits are being cut */
	OCSD_JOB_LEAVING,     /* has ended; its nodes may use the circuits still */
	OCSD_JOB_CUT_DUE,     /* has ended, and nothing keeps its circuits from being cut */
	OCSD_JOB_CUTTING,     /* they are being cut */
	OCSD_JOB_CLOSED,      /* they were seen gone: freed at the end of the pass */
	OCSD_JOB_STATES,
};

#define OCSD_STORED_KEEP (-1)

/* What one state is outside of ocsd's memory. */
struct ocsd_job_state_entry {
	const char *name;  /* in the log */
	const char *word;  /* of `show job` */
	const char *gauge; /* of the metric jobs{state="..."} */
	int stored;	   /* column state; OCSD_STORED_KEEP: as it is there */
	int rolled_back;   /* column rolled_back, likewise */
	bool over;	   /* column ended */
};

/* The entry of STATE, one of the enumeration. */
const struct ocsd_job_state_entry *ocsd_job_state_entry(enum ocsd_job_state state);

/* The state of a job of the database, from its columns STORED (0 .. 4), ENDED, GONE and
 * ROLLED_BACK, and from DEGRADED: it has an error.  A job that was applying is committed again:
 * its nodes ask again.  Its circuits and releases are not known yet (jobs/restore.c). */
enum ocsd_job_state ocsd_job_state_restore(int stored, bool ended, bool gone, bool rolled_back,
					   bool degraded);

/* "committed", "prepared", "repairing" ...: the word of `show job` for JOB. */
const char *ocsd_job_state_name(const struct ocsd_job *job);

/* Whether JOB has not left its allocation. */
bool ocsd_job_living(const struct ocsd_job *job);

/* Whether the living JOB has had all of its circuits: also while it is repaired or degraded. */
bool ocsd_job_running(const struct ocsd_job *job);

/* Whether the circuits of the running JOB are what its nodes were told: no repair is on its way. */
bool ocsd_job_settled(const struct ocsd_job *job);

/* Whether circuits of JOB that are to come may be sent to switches. */
bool ocsd_job_connects(const struct ocsd_job *job);

/* Whether the living JOB has failed. */
bool ocsd_job_failed(const struct ocsd_job *job);

/* Whether JOB waits for a commit of its nodes (look-ahead): then its epoch is 0. */
bool ocsd_job_prepared(const struct ocsd_job *job);

#endif
