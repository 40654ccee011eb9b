/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef TEST_GATES_H
#define TEST_GATES_H

#include <stdint.h>

#include "src/moe/demand.h"

/* What gates choose, made up: each server sends 32768 tokens. */
enum gate {
	GATE_ZIPF,	/* shares by rank ^ -1.2, another order of experts for each source */
	GATE_POPULAR,	/* the same order for all, shaken by a tenth */
	GATE_DIRICHLET, /* shares of each source from a Dirichlet distribution of 0.3 */
	GATES,
};

/* A seeded random number in [0, 1). */
double gate_random(uint64_t *state);

/* N servers; what a server sends itself is left out.  The same SEED gives the same demand. */
struct ocs_moe_demand *gate_demand(enum gate gate, int n, uint64_t seed);

#endif
