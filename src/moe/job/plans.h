/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_MOE_JOB_PLANS_H
#define OCS_MOE_JOB_PLANS_H

/* Where the first rank of a channel has its plans from: the socket of a controller, or a file. */

#include <stdio.h>
#include <sys/stat.h>
#include <time.h>

#include "src/moe/job/steps.h"

struct ocs_moe_plans {
	char path[256];	  /* "": there are none */
	FILE *controller; /* or NULL */
	time_t retry_at;  /* it did not answer: when it is asked again */
	struct stat seen; /* the file that was read last */
};

/* What the environment names. */
void ocs_moe_plans_open(struct ocs_moe_plans *plans);
void ocs_moe_plans_close(struct ocs_moe_plans *plans);

/* The plan for STEP, which the caller frees; NULL: all stays as it is. */
char *ocs_moe_plans_next(struct ocs_moe_plans *plans, const struct ocs_moe_job_step *step);

#endif
