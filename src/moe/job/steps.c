/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include <string.h>

#include "src/moe/job/steps.h"

void ocs_moe_steps_init(struct ocs_moe_steps *steps, int layers)
{
	memset(steps, 0, sizeof(*steps));
	steps->layers = layers > 0 ? layers : 0;
}

static uint64_t number_mix(uint64_t sum, uint64_t value)
{
	sum = (sum ^ value) * UINT64_C(0x9e3779b97f4a7c15);
	return sum ^ sum >> 29;
}

static uint64_t call_hash(const size_t *send, const size_t *receive, int ranks)
{
	uint64_t sum = 1;

	for (int j = 0; j < ranks; j++)
		sum = number_mix(number_mix(sum, send[j]), receive[j]);
	return sum;
}

/* As the training says. */
static struct ocs_moe_job_step step_counted(const struct ocs_moe_steps *steps)
{
	int64_t layers = steps->layers, at = steps->calls % (4 * layers);

	return (struct ocs_moe_job_step){
		.layer = (int32_t)(at < 2 * layers ? at / 2 : layers - 1 - (at - 2 * layers) / 2),
		.backward = at >= 2 * layers,
		.second = (int32_t)(at % 2),
		.microbatch = steps->calls / (4 * layers),
	};
}

/* A first all-to-all with what CALL hashes.  The gradients of a layer go as its tokens did, the last layer's first; so
 * do its tokens where they are computed a second time. */
static struct ocs_moe_job_step first_seen(struct ocs_moe_steps *steps, uint64_t call)
{
	struct ocs_moe_job_step step = { .microbatch = steps->last.microbatch };
	bool again = steps->last.backward && call == steps->forward[steps->depth];

	if (steps->depth && call == steps->forward[steps->depth - 1]) {
		step.layer = --steps->depth;
		step.backward = 1;
	} else if (again) {
		step.layer = steps->depth;
		step.backward = 1;
	} else {
		/* one place behind the last layer stays, for `again` */
		if (steps->last.backward || steps->depth == OCS_MOE_STEPS_LAYERS - 1) {
			steps->depth = 0;
			step.microbatch++;
		}
		step.layer = steps->depth++;
		steps->forward[step.layer] = call;
	}
	return step;
}

struct ocs_moe_job_step ocs_moe_steps_next(struct ocs_moe_steps *steps, const size_t *send,
					   const size_t *receive, int ranks)
{
	uint64_t call = call_hash(send, receive, ranks);

	if (steps->layers) {
		steps->last = step_counted(steps);
	} else if (steps->begun && call == steps->turned) {
		steps->last.second = 1;
		steps->begun = false;
	} else {
		steps->last = first_seen(steps, call);
		steps->turned = call_hash(receive, send, ranks);
		steps->begun = true;
	}
	steps->calls++;
	return steps->last;
}
