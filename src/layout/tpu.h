/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_LAYOUT_TPU_H
#define OCS_LAYOUT_TPU_H

/* The variables by which TPU-style frameworks learn their slice. */

#include "src/layout/task_map.h"

/* Lines NAME=VALUE for node NAME of a job: TPU_TOPOLOGY, TPU_TOPOLOGY_WRAP,
 * TPU_TOPOLOGY_ALT, TPU_HOST_BOUNDS, TPU_CHIPS_PER_HOST_BOUNDS, TPU_WORKER_ID and
 * TPU_WORKER_HOSTNAMES.  Workers are numbered with x fastest.  The caller frees
 * the text.  NULL with ERR, OCS_NEVER: the variables cannot describe this job
 * (more than three dimensions; the hosts do not hold equal blocks of the shape);
 * OCS_USAGE: NAME is not of the job. */
char *ocs_tpu_environment(const struct ocs_ranks *ranks, const char *name, struct ocs_error *err);

#endif
