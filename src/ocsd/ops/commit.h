/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_OCSD_OPS_COMMIT_H
#define OCS_OCSD_OPS_COMMIT_H

/* New allocations, as requests describe them. */

#include "src/ocsd/state/ocsd.h"

/* What REQUEST says about an allocation (not entered; ocsd_job_free), and whether
 * something it needs is drained; NULL or -1 with ERR. */
struct ocsd_job *ocsd_commit_read(struct ocsd *d, struct json_object *request, uint32_t number,
				  uint64_t epoch, struct ocs_error *err);
int ocsd_commit_drained(struct ocsd *d, struct ocsd_job *job, struct ocs_error *err);

#endif
