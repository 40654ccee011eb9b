/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_OCSD_JOBS_RESTORE_H
#define OCS_OCSD_JOBS_RESTORE_H

#include "src/ocsd/state/ocsd.h"

/* Takes what the database knows into D: allocations own their ports again, and circuits that may
 * exist are theirs.  0, or -1 with ERR. */
int ocsd_jobs_load(struct ocsd *d, struct ocs_error *err);

#endif
