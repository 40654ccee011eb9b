/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_MOE_ALLOCATE_H
#define OCS_MOE_ALLOCATE_H

#include "src/moe/circuits.h"

enum ocs_moe_policy {
	/* Algorithm 1 of the mFabric paper to the letter: what a pair sends both ways counts as
	 * one number, a pair without a circuit takes for ever, and the first bottleneck that has
	 * no port left ends it.  For comparison. */
	OCS_MOE_PAPER,
	/* The same that passes over pairs without a port and goes on. */
	OCS_MOE_GREEDY,
	/* The better of greedy and of a start that counts the larger direction of each pair, and a
	 * local search from there. */
	OCS_MOE_BEST,
};

struct ocs_moe_request {
	const struct ocs_moe_demand *demand;
	const struct ocs_moe_region *region; /* as many servers */
	enum ocs_moe_policy policy;
	/* Circuits that exist; NULL: none.  With OCS_MOE_BEST only: at most CHANGE of them are
	 * cut; those that stay carry on meanwhile.  Never more at a server than it has ports. */
	const struct ocs_moe_circuits *keep;
	int change;
	/* Exchanges of circuits that the search may look at; 0: as many as pay, which takes less than
	 * a millisecond at 32 to 64 servers, and up to ten up to 24.  The same request gives the
	 * same answer on every machine. */
	long effort;
};

/* "paper", "greedy", "best"; -1 if TEXT is none of them. */
int ocs_moe_policy_parse(const char *text, enum ocs_moe_policy *policy);

/* Circuits for REQUEST; the caller destroys them.  Their finish time is never more than what
 * greedy gives, or, with KEEP, than that of what is kept. */
struct ocs_moe_circuits *ocs_moe_allocate(const struct ocs_moe_request *request);

#endif
