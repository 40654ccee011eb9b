/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Which rank the others wait for. */

#include "src/rails/coordinator_internal.h"

/* The first member of GROUP that MARKS has not. */
static int member_missing(const struct group *group, const char *marks)
{
	for (int i = 0; i < group->count; i++)
		if (!marks[i])
			return group->ranks[i];
	return -1;
}

/* Takes OPERATION into STALL where nobody has waited for longer. */
static void operation_look(const struct operation *operation, bool demanded,
			   struct ocs_coordinator_stall *stall)
{
	const struct group *group = operation->group;
	bool open = operation->state == OPERATION_OPEN;
	const char *marks = open ? operation->ended : operation->arrived;
	int64_t since = open ? operation->since : operation->latest;

	/* What all have reached waits for circuits, and what is open disturbs only those who want others. */
	if (operation->state == OPERATION_DEMANDED || operation->error || (open && !demanded) ||
	    since >= stall->since)
		return;
	*stall = (struct ocs_coordinator_stall){
		.rank = member_missing(group, marks),
		.members = group->count,
		.arrived = operation->narrived,
		.open = open,
		.group = group->id,
		.idx = operation->idx,
		.since = since,
	};
}

bool ocs_coordinator_stall(const struct ocs_coordinator *coordinator, int64_t before,
			   struct ocs_coordinator_stall *stall)
{
	const struct operation *oldest = TAILQ_FIRST(&coordinator->demanded), *operation;
	bool demanded = oldest && oldest->since < before;

	*stall = (struct ocs_coordinator_stall){ .rank = -1, .since = before };
	for (size_t i = 0; i < coordinator->ngroups; i++) {
		operation = TAILQ_FIRST(&coordinator->groups[i]->operations);
		for (; operation; operation = TAILQ_NEXT(operation, of_group))
			operation_look(operation, demanded, stall);
	}
	return stall->rank >= 0;
}
