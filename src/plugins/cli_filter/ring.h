/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_PLUGINS_RING_H
#define OCS_PLUGINS_RING_H

#include <stdint.h>

struct ocs_error;
struct ocs_ranks;

/* Where the XPUs of a running job lie, in rank order.  DIR (may be NULL): its SLURM_OCS_DIR,
 * if this is one of its nodes; otherwise slurmctld is asked about JOB and the answer is read
 * with the help of FABRIC, the path of ocs.yaml; then *TASKS is how many tasks the job
 * has, else 0.  NULL with err->code OCS_OK if the job has no shape, else with ERR.  Free
 * with ocs_ranks_destroy. */
struct ocs_ranks *ocs_ring_ranks(uint32_t job, const char *dir, const char *fabric, int *tasks,
				 struct ocs_error *err);

/* The hosts of TASKS tasks in rank order, "n0,n0,n2", or NULL with ERR if that count
 * has no order (see ocs_ranks_hosts).  The caller frees it. */
char *ocs_ring_hosts(const struct ocs_ranks *ranks, int tasks, struct ocs_error *err);

/* Text form of the shape of JOB ("4x8x2"; "" if it has none); the caller frees it.
 * NULL with ERR. */
char *ocs_ring_shape(uint32_t job, struct ocs_error *err);

#endif
