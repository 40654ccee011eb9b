/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_SIM_RANDOM_H
#define OCS_SIM_RANDOM_H

/* xoshiro256** (Blackman and Vigna): the same seed gives the same numbers on every
 * machine. */

#include <stdint.h>

struct ocs_random {
	uint64_t state[4];
};

void ocs_random_seed(struct ocs_random *random, uint64_t seed);
uint64_t ocs_random_next(struct ocs_random *random);
/* Uniform in [0, 1). */
double ocs_random_unit(struct ocs_random *random);
/* Uniform in [0, BELOW); BELOW > 0. */
int ocs_random_below(struct ocs_random *random, int below);

#endif
