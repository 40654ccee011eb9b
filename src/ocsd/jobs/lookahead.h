/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_OCSD_JOBS_LOOKAHEAD_H
#define OCS_OCSD_JOBS_LOOKAHEAD_H

/* The next job's circuits behind 1x2 switches. */

#include "src/ocsd/state/ocsd.h"

/* Whether JOB's section has two port sets. */
bool ocsd_ahead_has(const struct ocsd_job *job);

/* Chooses the port set of a new job; finds it out for one of the database. */
void ocsd_ahead_choose(struct ocsd *d, struct ocsd_job *job);
void ocsd_ahead_recall(struct ocsd *d, struct ocsd_job *job);

/* Adds the positions of the 1x2 switches to JOB's circuits; -1 with ERR. */
int ocsd_ahead_circuits(struct ocsd *d, struct ocsd_job *job, struct ocs_error *err);

/* A prepared job that will not come stands in line no longer. */
void ocsd_ahead_leave_line(struct ocsd *d, struct ocsd_job *job);

/* Prepared jobs give up what the committed JOB needs. */
void ocsd_ahead_give_way(struct ocsd *d, const struct ocsd_job *job);

/* Plans a prepared job and makes what its own ports allow. */
void ocsd_ahead_start(struct ocsd *d, struct ocsd_job *job);

/* The prepared job that JOB (read from a commit, not entered) continues, made an
 * ordinary one; NULL if there is none.  JOB stays the caller's. */
struct ocsd_job *ocsd_ahead_adopt(struct ocsd *d, struct ocsd_job *job);

#endif
