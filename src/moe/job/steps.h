/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_MOE_JOB_STEPS_H
#define OCS_MOE_JOB_STEPS_H

/* Which all-to-all of a training a call is, by what it sends and receives. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OCS_MOE_STEPS_LAYERS 1024

struct ocs_moe_job_step {
	int32_t layer, backward, second;
	int64_t microbatch;
};

struct ocs_moe_steps {
	int layers; /* 0: not said */
	int64_t calls;
	int depth;				/* layers that have gone forward and not backward */
	uint64_t forward[OCS_MOE_STEPS_LAYERS]; /* what the first all-to-all of each had */
	bool begun;				/* the last call was a first one */
	uint64_t turned;			/* what its second one will have */
	struct ocs_moe_job_step last;
};

/* LAYERS: forward and backward all of them in order, two calls for each; 0: it is to be seen. */
void ocs_moe_steps_init(struct ocs_moe_steps *steps, int layers);

/* The next call, in which this rank sends SEND[j] bytes to j and receives RECEIVE[j]. */
struct ocs_moe_job_step ocs_moe_steps_next(struct ocs_moe_steps *steps, const size_t *send,
					   const size_t *receive, int ranks);

#endif
