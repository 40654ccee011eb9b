/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/sim/random.h"

static uint64_t bits_rotate(uint64_t x, int by)
{
	return x << by | x >> (64 - by);
}

void ocs_random_seed(struct ocs_random *random, uint64_t seed)
{
	int i;

	/* splitmix64: neighbouring seeds give unrelated states, never all zeros */
	for (i = 0; i < 4; i++) {
		uint64_t z = seed += UINT64_C(0x9e3779b97f4a7c15);

		z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
		z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
		random->state[i] = z ^ z >> 31;
	}
}

uint64_t ocs_random_next(struct ocs_random *random)
{
	uint64_t *s = random->state, result = bits_rotate(s[1] * 5, 7) * 9, t = s[1] << 17;

	s[2] ^= s[0];
	s[3] ^= s[1];
	s[1] ^= s[2];
	s[0] ^= s[3];
	s[2] ^= t;
	s[3] = bits_rotate(s[3], 45);
	return result;
}

double ocs_random_unit(struct ocs_random *random)
{
	return (double)(ocs_random_next(random) >> 11) * 0x1p-53;
}

int ocs_random_below(struct ocs_random *random, int below)
{
	return (int)(ocs_random_unit(random) * below);
}
