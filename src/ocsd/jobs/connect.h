/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_OCSD_JOBS_CONNECT_H
#define OCS_OCSD_JOBS_CONNECT_H

/* From a job's circuits to what the switches have to do, and back. */

#include "src/ocsd/state/ocsd.h"

void ocsd_realise_start(struct ocsd *d, struct ocsd_job *job);

/* APPLYING becomes REALISED when every circuit was seen. */
void ocsd_realise_check(struct ocsd *d, struct ocsd_job *job);

/* Tells how many circuits the realised JOB has, if they were planned here. */
void ocsd_realised_tell(struct ocsd *d, const struct ocsd_job *job);

/* Sends what a repair has planned for the running JOB, once everything that it cuts
 * is gone.  Returns 0, or -1: not yet, or not possible (then JOB has failed). */
int ocsd_realise_more(struct ocsd *d, struct ocsd_job *job);

#endif
