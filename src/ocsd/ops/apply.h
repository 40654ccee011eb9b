/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_OCSD_OPS_APPLY_H
#define OCS_OCSD_OPS_APPLY_H

/* Nodes that wait for circuits. */

#include "src/ocsd/state/ocsd.h"

/* JOB is committed: those who asked for it before wait for its circuits. */
void ocsd_apply_bind(struct ocsd *d, struct ocsd_job *job);

/* (JOB, EPOCH), which is not known here, has ended: who asks for it, or has, hears that it is gone. */
void ocsd_apply_never(struct ocsd *d, uint32_t job, uint64_t epoch);

#endif
