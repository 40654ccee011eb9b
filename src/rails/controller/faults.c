/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* What the job and the administrator hear of faults. */

#include "src/rails/controller/controller.h"

#include <endian.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "src/rails/rails_log.h"
#include "src/util/net.h"
#include "src/util/text.h"

#define SECOND INT64_C(1000000000)
#define LOOK (10 * SECOND)
#define RANKS_TOLD 20	   /* of a step; a process shows no more lines anyway */
#define AWAY (10 * SECOND) /* an ocsd that restarts is no news for a job */

/* TEXT to the agents of STEP, or to all that are not of a step without gates: the first rank that is there has to
 * write it. */
static void fault_send(struct controller *controller, const char *text)
{
	struct ocs_frame_fault fault = { 0 };
	const struct step *step = controller->step;
	size_t length = strlen(text);
	uint32_t first = 0;

	if (!step)
		return;
	while (first < step->total && (!step->by_rank[first] || step->away[first]))
		first++;
	fault.rank = htole32(first);
	for (struct link *link = controller->links; link; link = link->next) {
		if (link->step != step || link->fd < 0)
			continue;
		ocs_outbox_frame(&link->outbox, OCS_FRAME_FAULT, &fault, sizeof(fault), text,
				 length < OCS_NOTE_MAX ? length : OCS_NOTE_MAX);
		link->dirty = true;
	}
}

void fault_tell(struct controller *controller, const char *format, ...)
{
	va_list args;
	char *text;

	va_start(args, format);
	text = ocs_vasprintf(format, args);
	va_end(args);
	ocs_rails_log("%s", text);
	fault_send(controller, text);
	free(text);
}

/* RANK of a group of COUNT, of which the others are told once. */
static void rank_tell(struct controller *controller, int rank, int count, const char *what)
{
	struct step *step = controller->step;
	enum step_away away = step->away[rank];
	const char *how = away == RANK_ENDED	 ? "has ended" :
			  away == RANK_NODE_LOST ? "is gone with its node or its agent" :
						   "is gone without a goodbye, killed perhaps";

	if (away == RANK_HERE || away == RANK_TOLD)
		return;
	step->away[rank] = RANK_TOLD;
	/* All ranks of a job that is cancelled go at once. */
	if (step->told++ < RANKS_TOLD)
		fault_tell(controller, "rank %d %s; operations of %d ranks that %s it fail", rank,
			   how, count, what);
	else
		ocs_rails_log("rank %d %s", rank, how);
}

void fault_rank_killed(struct controller *controller, uint64_t group, int rank)
{
	int count = 0;

	ocs_coordinator_ranks(controller->step->coordinator, group, &count);
	if (controller->step->away[rank] != RANK_ENDED)
		rank_tell(controller, rank, count, "are under way with");
}

void fault_rank_lost(struct controller *controller, uint64_t group)
{
	int count = 0;
	const int *ranks = ocs_coordinator_ranks(controller->step->coordinator, group, &count);

	for (int i = 0; i < count; i++)
		rank_tell(controller, ranks[i], count, "wait for");
}

/* ---- ranks that others wait for ---- */

static void stall_tell(struct controller *controller, const struct ocs_coordinator_stall *stall,
		       int64_t now)
{
	struct step *step = controller->step;
	long seconds = (long)((now - stall->since) / SECOND);
	const struct link *link = step->by_rank[stall->rank];
	unsigned int node = link ? link->hello.node : 0;

	if (stall->open)
		fault_tell(
			controller,
			"rank %d (node %u of the job) has not ended an operation of %d ranks for %ld s, and others "
			"wait for its circuits; is it stopped, or does it wait for an operation that needs other circuits?",
			stall->rank, node, stall->members, seconds);
	else
		fault_tell(
			controller,
			"rank %d (node %u of the job) keeps %d of %d ranks waiting for %ld s now; is it stopped?",
			stall->rank, node, stall->arrived, stall->members, seconds);
}

static void stall_look(struct controller *controller)
{
	struct ocs_coordinator_stall stall;
	struct step *step = controller->step;
	int64_t now = step_now(controller);

	if (!ocs_coordinator_stall(step->coordinator, now - controller->stall, &stall)) {
		if (step->stalled)
			ocs_rails_log("no rank keeps others waiting any more");
		step->stalled = false;
		return;
	}
	/* Once for each wait: who waits behind it is no news. */
	if (!step->stalled)
		stall_tell(controller, &stall, now);
	step->stalled = true;
}

void faults_tick(struct controller *controller, int64_t now)
{
	struct step *step = controller->step;

	if (controller->absent && !controller->missing && now - controller->absent >= AWAY) {
		controller->missing = true;
		fault_tell(
			controller,
			"ocsd does not answer; circuits stay as they are until it does, and operations that need others wait");
	}
	if (!step || !step->coordinator || !controller->stall || now < step->look_at)
		return;
	step->look_at = now + (controller->stall / 4 < LOOK ? controller->stall / 4 : LOOK);
	stall_look(controller);
}

void fault_ocsd_back(struct controller *controller)
{
	if (controller->missing)
		fault_tell(controller, "ocsd answers again");
	controller->missing = false;
}

int64_t faults_deadline(const struct controller *controller)
{
	const struct step *step = controller->step;
	int64_t next = INT64_MAX;

	if (controller->absent && !controller->missing)
		next = controller->absent + AWAY;
	if (step && step->coordinator && controller->stall && step->look_at < next)
		next = step->look_at;
	return next;
}
