/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_OCSD_JOBS_DEGRADED_H
#define OCS_OCSD_JOBS_DEGRADED_H

/* Circuits that fail under running jobs. */

#include "src/ocsd/state/ocsd.h"

/* %s: a switch, %s: what it did. */
#define OCSD_SWITCH_SILENT \
	"switch %s failed: %s; whether its circuits still carry light is not known"

/* A circuit of the running JOB is lost or dark and no plan can do without it; SW may be
 * NULL.  No-op for jobs that do not run or were told before. */
void ocsd_job_degrade(struct ocsd *d, struct ocsd_job *job, const struct ocsd_switch *sw,
		      const char *why);

/* CIRCUIT cannot be made because of WHY: the plan of its job is repaired, or its job is degraded
 * or, before its nodes were answered, fails. */
void ocsd_circuit_failed(struct ocsd *d, struct ocsd_circuit *circuit, const char *why);

/* The same for the job that uses port WHERE; on direct fabrics its plan is repaired. */
void ocsd_port_lost(struct ocsd *d, struct ocs_port where, const char *why);

/* Tells that JOB (NULL: no-op) has all of its circuits again, if it has. */
void ocsd_degraded_check(struct ocsd *d, struct ocsd_job *job);

/* Circuits of SW that could not be restored get another chance. */
void ocsd_degraded_retry(struct ocsd *d, struct ocsd_switch *sw);

/* SW does not answer because of WHY, or (NULL) does again: tells of the running jobs
 * with circuits on it. */
void ocsd_degraded_switch(struct ocsd *d, const struct ocsd_switch *sw, const char *why);

/* Says again, to a new subscriber, what is broken. */
void ocsd_degraded_tell(struct ocsd *d);

#endif
