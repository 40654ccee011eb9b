/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_MOE_INTERNAL_H
#define OCS_MOE_INTERNAL_H

#include <stdbool.h>

#include "src/moe/allocate.h"

/* What makes a pair the next to get a circuit. */
enum ocs_moe_weight {
	OCS_MOE_BOTH_WAYS,  /* what it sends both ways, as the paper has it */
	OCS_MOE_LARGER_WAY, /* the larger of the two: they flow at the same time */
};

/* greedy.c: adds circuits to CIRCUITS one by one, each for the pair that takes longest: pairs
 * without a circuit first, the larger WEIGHT first.  STOP: the first pair without a port ends
 * it. */
void ocs_moe_greedy(const struct ocs_moe_request *request, enum ocs_moe_weight weight, bool stop,
		    struct ocs_moe_circuits *circuits);

/* search.c: lowers the finish time of CIRCUITS by exchanges of circuits. */
void ocs_moe_search(const struct ocs_moe_request *request, struct ocs_moe_circuits *circuits);

#endif
