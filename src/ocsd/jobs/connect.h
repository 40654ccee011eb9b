/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_OCSD_JOBS_CONNECT_H
#define OCS_OCSD_JOBS_CONNECT_H

/* From a job's circuits to what the switches have to do, and back. */

#include "src/ocsd/state/ocsd.h"

/* Starts the circuits of the committed JOB, after the plan if it needs one.  They are sent at the end
 * of the pass; JOB has failed if they cannot be. */
void ocsd_realise_start(struct ocsd *d, struct ocsd_job *job);

/* The same for JOB that has all it needs; some ports may still be another job's (look-ahead).
 * FAILS_FAST: a switch that has failed fails it, and is not waited for. */
void ocsd_realise_begin(struct ocsd *d, struct ocsd_job *job, bool fails_fast);

/* If JOB runs: answers those who wait for its circuits, and slurmctld. */
void ocsd_realised_answer(struct ocsd *d, struct ocsd_job *job);

/* Tells how many circuits the realised JOB has, if they were planned here. */
void ocsd_realised_tell(struct ocsd *d, const struct ocsd_job *job);

#endif
