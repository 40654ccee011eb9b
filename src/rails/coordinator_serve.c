/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Which demand is served, and which topologies are requested for those that are not: the oldest demand
 * has its way, younger ones where they do not stand in its. */

#include <stdlib.h>
#include <string.h>

#include "src/rails/coordinator_internal.h"
#include "src/rails/rules.h"

/* What a pass over the demands has seen of older ones. */
struct pass {
	int64_t now;
	bool waiting; /* one of them waits */
	bool frozen;  /* one that lets nothing change waits */
};

static uint64_t rails_usable(const struct ocs_coordinator *coordinator, uint64_t wanted)
{
	uint64_t works = 0;

	for (int r = 0; r < coordinator->options.rails; r++)
		if (coordinator->rails[r].health != RAIL_FAILED)
			works |= UINT64_C(1) << r;
	/* The nodes hand it to another rail inside, where none of its own works. */
	return works & wanted ? works & wanted : works & -works;
}

/* Calls for every stage that NEED names: S. */
#define NEED_STAGES(s, need, stages)                        \
	for (int s = (need)->first, more_##s = 1; more_##s; \
	     more_##s = s != (need)->last, s = (s + 1) % (stages))

/* Keeps the stages of GROUP for it, unless an older demand wants them otherwise. */
static bool stages_reserve(const struct ocs_coordinator *coordinator, struct rail *rail,
			   const struct group *group)
{
	int stages = ocs_rails_layout_stages(&coordinator->circuits->layout);

	if (rail->health != RAIL_GOOD)
		return true;
	NEED_STAGES(s, &group->need, stages)
	if (rail->reserved[s] >= 0 && rail->reserved[s] != group->need.digit)
		return false;
	if (!OCS_RAILS_RULE(WISH) && rail->speculative &&
	    !ocs_rails_need_met(&group->need, rail->target))
		return false;
	NEED_STAGES(s, &group->need, stages)
	rail->reserved[s] = (signed char)group->need.digit;
	return true;
}

/* Turns the target of RAIL so that it has what GROUP needs, too, if no lease forbids it. */
static void target_meet(struct ocs_coordinator *coordinator, struct rail *rail,
			const struct group *group)
{
	char next[OCS_RAILS_TOPOLOGY];
	int stages = ocs_rails_layout_stages(&coordinator->circuits->layout);
	const uint64_t *now_set, *next_set;

	if (rail->changing || rail->health != RAIL_GOOD)
		return;
	ocs_rails_topology_meet(&coordinator->circuits->layout, rail->target, &group->need, next);
	for (int s = 0; s < stages; s++)
		if (rail->reserved[s] >= 0 && next[s] != '0' + rail->reserved[s] &&
		    next[s] != rail->target[s])
			return;
	now_set = ocs_rails_set_of(coordinator->circuits, rail->topology);
	next_set = ocs_rails_set_of(coordinator->circuits, next);
	if (ocs_rails_leases_allow(&rail->leases, now_set, next_set))
		strcpy(rail->target, next);
}

static void learn_served(struct ocs_coordinator *coordinator, const struct group *group,
			 uint64_t rails)
{
	int stages = ocs_rails_layout_stages(&coordinator->circuits->layout);

	if (group->need.kind == OCS_RAILS_OUTSIDE)
		return;
	NEED_STAGES(s, &group->need, stages)
	ocs_rails_predict_learn(coordinator->predict, s, group->need.digit);
	for (int r = 0; r < coordinator->options.rails; r++)
		if (rails >> r & 1)
			coordinator->rails[r].speculative = false;
}

static void operation_serve(struct ocs_coordinator *coordinator, struct operation *operation,
			    struct pass *pass)
{
	const struct group *group = operation->group;
	uint64_t rails = rails_usable(coordinator, group->rails);
	bool outside = group->need.kind == OCS_RAILS_OUTSIDE, ready = true;

	/* Packets may take any circuit between the members, on any rail. */
	if (outside)
		rails = rails_usable(coordinator, ~UINT64_C(0));
	if (!rails) {
		operation->error = outside ? OCS_COORDINATOR_GRANTED : OCS_COORDINATOR_NO_RAIL;
		ocs_operation_grant(coordinator, operation, 0, pass->now);
		return;
	}
	for (int r = 0; r < coordinator->options.rails && ready; r++)
		if (rails >> r & 1 && !outside)
			ready = stages_reserve(coordinator, &coordinator->rails[r], group);
	if (!ready) {
		pass->waiting = true;
		return;
	}
	for (int r = 0; r < coordinator->options.rails; r++)
		if (rails >> r & 1 &&
		    !ocs_rail_carries(coordinator, &coordinator->rails[r], group)) {
			ready = false;
			if (!outside && !pass->frozen)
				target_meet(coordinator, &coordinator->rails[r], group);
		}
	if (ready && !(outside && pass->waiting)) {
		learn_served(coordinator, group, rails);
		ocs_operation_grant(coordinator, operation, rails, pass->now);
		return;
	}
	pass->waiting = true;
	if (outside && OCS_RAILS_RULE(FROZEN))
		pass->frozen = true;
}

/* Whether STAGE is about to want 0, so that a neighbour may be joined to it. */
static bool stage_expects_line(const struct ocs_coordinator *coordinator, const struct rail *rail,
			       int stage)
{
	int next = ocs_rails_predict_next(coordinator->predict, stage);

	return next == 0 || (next < 0 && rail->topology[stage] == '0');
}

/* The topology that the stages are about to want, as far as that is known. */
static void wish_build(const struct ocs_coordinator *coordinator, const struct rail *rail,
		       char *next)
{
	int stages = ocs_rails_layout_stages(&coordinator->circuits->layout);

	strcpy(next, rail->topology);
	for (int s = 0; s < stages; s++) {
		int digit = ocs_rails_predict_next(coordinator->predict, s);

		if (digit < 0 || rail->topology[s] == '0' + digit)
			continue;
		if (digit == 0 && !stage_expects_line(coordinator, rail, (s + 1) % stages) &&
		    !stage_expects_line(coordinator, rail, (s + stages - 1) % stages))
			continue;
		next[s] = (char)('0' + digit);
	}
}

/* Changes RAIL for what has not been demanded yet: nothing waits for it, no lease is open on what it
 * cuts, and what is demanded next may change it again. */
static void rail_provision(struct ocs_coordinator *coordinator, struct rail *rail)
{
	char next[OCS_RAILS_TOPOLOGY];
	int stages = ocs_rails_layout_stages(&coordinator->circuits->layout);
	const uint64_t *now_set, *next_set;

	if (rail->changing || rail->unknown || rail->health != RAIL_GOOD ||
	    strcmp(rail->topology, rail->target) != 0)
		return;
	wish_build(coordinator, rail, next);
	for (int s = 0; s < stages; s++)
		if (next[s] != rail->topology[s] && rail->reserved[s] >= 0)
			return;
	now_set = ocs_rails_set_of(coordinator->circuits, rail->topology);
	next_set = ocs_rails_set_of(coordinator->circuits, next);
	if (strcmp(next, rail->topology) == 0 ||
	    !ocs_rails_leases_allow(&rail->leases, now_set, next_set))
		return;
	strcpy(rail->target, next);
	rail->speculative = true;
}

/* A demanded change of what was provisioned and not used was a wrong guess. */
static void prediction_judge(struct ocs_coordinator *coordinator, struct rail *rail)
{
	if (rail->changing || rail->health != RAIL_GOOD ||
	    strcmp(rail->topology, rail->target) == 0)
		return;
	if (rail->speculative)
		coordinator->counts.mispredicted++;
	rail->speculative = false;
}

void ocs_coordinator_serve(struct ocs_coordinator *coordinator, int64_t now)
{
	struct pass pass = { .now = now };
	struct operation *operation, *next;

	for (int r = 0; r < coordinator->options.rails; r++) {
		struct rail *rail = &coordinator->rails[r];

		memset(rail->reserved, -1, sizeof(rail->reserved));
		if (!rail->changing && !rail->unknown)
			strcpy(rail->target, rail->topology);
	}
	for (operation = TAILQ_FIRST(&coordinator->demanded); operation; operation = next) {
		next = TAILQ_NEXT(operation, by_age);
		operation_serve(coordinator, operation, &pass);
	}
	for (int r = 0; r < coordinator->options.rails; r++) {
		struct rail *rail = &coordinator->rails[r];

		prediction_judge(coordinator, rail);
		if (coordinator->options.provisioned && !pass.frozen)
			rail_provision(coordinator, rail);
		if (!coordinator->over)
			ocs_rail_request(coordinator, rail, now);
	}
}
