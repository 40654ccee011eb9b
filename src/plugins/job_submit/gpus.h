/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_PLUGINS_GPUS_H
#define OCS_PLUGINS_GPUS_H

/* GPUs that Slurm counts (GRES gpu) and the XPUs of a shape are the same devices. */

#include "src/plugins/compat/compat.h"
#include "src/plugins/job_submit/site.h"
#include "src/util/error.h"

/* Gives the job all GPUs of every node that SHAPE takes, if slurm.conf counts GPUs there: what
 * --gpus, --gpus-per-node, --gres=gpu and --gpus-per-task say, which must not be fewer, becomes
 * a number per node.  0, or -1 with ERR. */
int ocs_gpus_set(job_desc_msg_t *job, const struct ocs_shape *shape,
		 const struct ocs_answer *answer, struct ocs_error *err);

#endif
