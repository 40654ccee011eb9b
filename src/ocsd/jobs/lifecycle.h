/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_OCSD_JOBS_LIFECYCLE_H
#define OCS_OCSD_JOBS_LIFECYCLE_H

/* Allocations from commit to verified teardown. */

#include "src/ocsd/state/ocsd.h"

/* Enters JOB and takes its ports (queues for those an ended job still holds). */
void ocsd_job_enter(struct ocsd *d, struct ocsd_job *job);

/* Takes the ports of a JOB that is entered. */
void ocsd_job_claim(struct ocsd *d, struct ocsd_job *job);

/* JOB has left its allocation because of REASON (NULL: none given): its circuits are cut when every
 * node has released it, or at once if no node was answered.  No-op for one that is over. */
void ocsd_job_end(struct ocsd *d, struct ocsd_job *job, const char *reason);

/* The same, and its circuits are cut now: no epilog will come any more.  Sends `released` again to a
 * slurmctld that says so of a job whose circuits are gone. */
void ocsd_job_gone(struct ocsd *d, struct ocsd_job *job, const char *reason);

/* Node NODE of JOB (its index; -1: all) needs its circuits no longer; the last one ends the job. */
void ocsd_job_release(struct ocsd *d, struct ocsd_job *job, int node);

/* Whether nothing keeps the circuits of JOB, which is over, from being cut. */
bool ocsd_job_cut_due(const struct ocsd_job *job);

/* Takes the steps of JOB that are due: begins to make or to cut circuits, gives ports back, posts
 * event `released`, closes. */
void ocsd_job_progress(struct ocsd *d, struct ocsd_job *job);

/* JOB cannot have its circuits because of ERROR; SW, the switch to blame, may be NULL.  Before its
 * nodes were answered they are cut, else kept.  A prepared job is gone.  No-op for one that has failed
 * or is over. */
void ocsd_job_fail(struct ocsd *d, struct ocsd_job *job, const struct ocsd_switch *sw,
		   const char *error);

/* Posts event `job_failed`. */
void ocsd_job_failed_event(struct ocsd *d, const struct ocsd_job *job);

#endif
