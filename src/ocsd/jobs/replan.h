/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_OCSD_JOBS_REPLAN_H
#define OCS_OCSD_JOBS_REPLAN_H

/* Ports that fail under running jobs of direct sections. */

#include "src/ocsd/state/ocsd.h"

/* JOB's plan must do without a port.  WHY: a clause for the log.  LOST: a circuit is
 * cut and cannot be made again, so the job fails unless it is repaired; otherwise
 * it keeps what it has and is called degraded.  Done at the next settle; other
 * kinds of jobs (NULL too) are left alone. */
void ocsd_repair_want(struct ocsd *d, struct ocsd_job *job, const char *why, bool lost);

/* Begins a repair of JOB that is asked for, unless one is under way. */
void ocsd_repair_progress(struct ocsd *d, struct ocsd_job *job);

/* JOB is of the database: if ocsd ended within a repair of it, that goes on. */
void ocsd_repair_resume(struct ocsd *d, struct ocsd_job *job);

#endif
