/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "tests/unit/moe/gates.h"

#include <math.h>
#include <stdlib.h>

#define TOKENS 32768

/* splitmix64 */
double gate_random(uint64_t *state)
{
	uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return (double)((z ^ z >> 31) >> 11) / 9007199254740992.0;
}

static void order_shuffle(int *order, int n, uint64_t *state)
{
	for (int i = n - 1; i > 0; i--) {
		int j = (int)(gate_random(state) * (i + 1)), swap = order[i];

		order[i] = order[j];
		order[j] = swap;
	}
}

/* A gamma variate of shape K < 1: one of shape 1 + K by Marsaglia and Tsang, made smaller. */
static double gamma_random(double k, uint64_t *state)
{
	double d = k + 1 - 1.0 / 3, c = 1 / sqrt(9 * d);

	for (;;) {
		double u = 1 - gate_random(state), angle = 2 * M_PI * gate_random(state);
		double x = sqrt(-2 * log(u)) * cos(angle), v = pow(1 + c * x, 3);

		if (v > 0 && log(1 - gate_random(state)) < x * x / 2 + d - d * v + d * log(v))
			return d * v * pow(1 - gate_random(state), 1 / k);
	}
}

struct ocs_moe_demand *gate_demand(enum gate gate, int n, uint64_t seed)
{
	struct ocs_moe_demand *demand = ocs_moe_demand_create(n);
	double *share = calloc((size_t)n, sizeof(*share));
	int *order = calloc((size_t)n, sizeof(*order));
	uint64_t state = seed;

	for (int i = 0; i < n; i++)
		order[i] = i;
	order_shuffle(order, n, &state);
	for (int i = 0; i < n; i++) {
		double sum = 0;

		if (gate == GATE_ZIPF)
			order_shuffle(order, n, &state);
		for (int j = 0; j < n; j++) {
			share[j] = gate == GATE_DIRICHLET ? gamma_random(0.3, &state) :
							    pow(order[j] + 1, -1.2);
			if (gate == GATE_POPULAR)
				share[j] *= 0.9 + 0.2 * gate_random(&state);
			sum += share[j];
		}
		for (int j = 0; j < n; j++)
			if (j != i)
				demand->tokens[i * n + j] = floor(TOKENS * share[j] / sum);
	}
	free(share);
	free(order);
	return demand;
}
