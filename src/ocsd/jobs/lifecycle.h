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
void ocsd_job_end(struct ocsd *d, struct ocsd_job *job, const char *reason);
void ocsd_job_gone(struct ocsd *d, struct ocsd_job *job, const char *reason);
void ocsd_job_release(struct ocsd *d, struct ocsd_job *job, int node); /* -1: all */

/* Whether nothing keeps the circuits of JOB from being cut. */
bool ocsd_job_cut_due(const struct ocsd_job *job);

/* Takes the steps that are due: start, break, announce, free. */
void ocsd_job_progress(struct ocsd *d, struct ocsd_job *job);

/* Cannot be realised, or broke: SW may be NULL. */
void ocsd_job_fail(struct ocsd *d, struct ocsd_job *job, const struct ocsd_switch *sw,
		   const char *error);

/* Posts event `job_failed`. */
void ocsd_job_failed_event(struct ocsd *d, const struct ocsd_job *job);

#endif
