/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* What ranks do: they make groups known, arrive at operations, end them, and go. */

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "src/rails/coordinator_internal.h"
#include "src/rails/internal.h"
#include "src/rails/rules.h"
#include "src/util/error.h"
#include "src/util/text.h"

/* The place of GROUP in the list, or where it belongs. */
static size_t group_place(const struct ocs_coordinator *coordinator, uint64_t group)
{
	size_t low = 0, high = coordinator->ngroups;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (coordinator->groups[middle]->id < group)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static struct group *group_find(const struct ocs_coordinator *coordinator, uint64_t id,
				struct ocs_error *err)
{
	size_t place = group_place(coordinator, id);

	if (place < coordinator->ngroups && coordinator->groups[place]->id == id)
		return coordinator->groups[place];
	ocs_error_set(err, OCS_USAGE,
		      "group %" PRIx64 " is not known; its members have to be given first", id);
	return NULL;
}

static int rank_compare(const void *left, const void *right)
{
	return *(const int *)left - *(const int *)right;
}

static int member_find(const struct group *group, int rank)
{
	const int *found = bsearch(&rank, group->ranks, group->count, sizeof(rank), rank_compare);

	return found ? (int)(found - group->ranks) : -1;
}

/* What the nodes of GROUP's ranks need, and which circuits that are. */
static void group_needs(const struct ocs_coordinator *coordinator, struct group *group)
{
	int *members = ocs_calloc(group->count, sizeof(int)), count = 0;

	for (int i = 0; i < group->count; i++)
		members[i] = coordinator->nodes[group->ranks[i]];
	qsort(members, group->count, sizeof(int), rank_compare);
	for (int i = 0; i < group->count; i++)
		if (!i || members[i] != members[count - 1])
			members[count++] = members[i];
	group->need = ocs_rails_group_need(&coordinator->options.layout, members, count);
	group->circuits = ocs_rails_set_create(coordinator->circuits);
	if (group->need.kind == OCS_RAILS_OUTSIDE)
		ocs_rails_set_between(coordinator->circuits, members, count, group->circuits);
	else
		ocs_rails_set_needed(coordinator->circuits, &group->need, members, count,
				     group->circuits);
	free(members);
}

static int group_check(const struct ocs_coordinator *coordinator, const struct group *group,
		       struct ocs_error *err)
{
	for (int i = 0; i < group->count; i++) {
		if (group->ranks[i] < 0 || group->ranks[i] >= coordinator->options.ranks)
			return ocs_error_set(
				err, OCS_USAGE,
				"group %" PRIx64 ": there is no rank %d; the job has %d", group->id,
				group->ranks[i], coordinator->options.ranks);
		if (i && group->ranks[i] == group->ranks[i - 1])
			return ocs_error_set(err, OCS_USAGE,
					     "group %" PRIx64 ": rank %d is named twice", group->id,
					     group->ranks[i]);
	}
	if (!group->rails || (coordinator->options.rails < OCS_RAILS_RAILS &&
			      group->rails >> coordinator->options.rails))
		return ocs_error_set(err, OCS_USAGE,
				     "group %" PRIx64 ": rails %" PRIx64
				     " are not among the %d of the job",
				     group->id, group->rails, coordinator->options.rails);
	return 0;
}

/* Puts GROUP, which is freed if it cannot be taken, among the others. */
static int group_add(struct ocs_coordinator *coordinator, struct group *group,
		     struct ocs_error *err)
{
	size_t place = group_place(coordinator, group->id);

	if (group_check(coordinator, group, err) < 0) {
		free(group->ranks);
		free(group);
		return -1;
	}
	for (int i = 0; i < group->count; i++)
		group->lost |= coordinator->lost[group->ranks[i]];
	group->newest = ocs_calloc(group->count, sizeof(*group->newest));
	TAILQ_INIT(&group->operations);
	group_needs(coordinator, group);
	coordinator->groups = ocs_realloc(coordinator->groups,
					  (coordinator->ngroups + 1) * sizeof(struct group *));
	memmove(coordinator->groups + place + 1, coordinator->groups + place,
		(coordinator->ngroups - place) * sizeof(struct group *));
	coordinator->groups[place] = group;
	coordinator->ngroups++;
	return 0;
}

int ocs_coordinator_group(struct ocs_coordinator *coordinator, uint64_t id, const int *ranks,
			  int count, uint64_t rails, struct ocs_error *err)
{
	struct group *known = group_find(coordinator, id, NULL), *group;
	bool same;

	if (count < 1)
		return ocs_error_set(err, OCS_USAGE, "group %" PRIx64 " has no ranks", id);
	group = ocs_calloc(1, sizeof(*group));
	group->id = id;
	group->count = count;
	group->rails = rails;
	group->ranks = ocs_calloc(count, sizeof(int));
	memcpy(group->ranks, ranks, count * sizeof(int));
	qsort(group->ranks, count, sizeof(int), rank_compare);
	if (!known)
		return group_add(coordinator, group, err);
	same = known->count == count && known->rails == rails &&
	       memcmp(known->ranks, group->ranks, count * sizeof(int)) == 0;
	free(group->ranks);
	free(group);
	return same ? 0 :
		      ocs_error_set(err, OCS_USAGE,
				    "group %" PRIx64 " is known with other ranks or rails", id);
}

const int *ocs_coordinator_ranks(const struct ocs_coordinator *coordinator, uint64_t id, int *count)
{
	const struct group *group = group_find(coordinator, id, NULL);

	if (!group)
		return NULL;
	*count = group->count;
	return group->ranks;
}

int ocs_coordinator_phase(struct ocs_coordinator *coordinator, uint64_t id, uint64_t first,
			  uint64_t last, struct ocs_error *err)
{
	struct group *group = group_find(coordinator, id, err);

	if (!group)
		return -1;
	if (last < first || (group->nphases && first <= group->phases[group->nphases - 1].last))
		return ocs_error_set(err, OCS_USAGE,
				     "group %" PRIx64 ": phase %" PRIu64 " to %" PRIu64
				     " does not follow the one before",
				     id, first, last);
	group->phases = ocs_realloc(group->phases, (group->nphases + 1) * sizeof(*group->phases));
	group->phases[group->nphases++] = (struct phase_range){ first, last };
	return 0;
}

/* The phase of GROUP that has operation IDX. */
static const struct phase_range *phase_find(const struct group *group, uint64_t idx)
{
	size_t low = 0, high = group->nphases;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (group->phases[middle].last < idx)
			low = middle + 1;
		else
			high = middle;
	}
	return low < group->nphases && group->phases[low].first <= idx ? &group->phases[low] : NULL;
}

static struct operation *operation_find(const struct group *group, uint64_t idx)
{
	struct operation *operation;

	TAILQ_FOREACH(operation, &group->operations, of_group)
	if (operation->idx == idx)
		return operation;
	return NULL;
}

/* Operation IDX of GROUP, made where this is its first arrival; NULL: there are too many. */
static struct operation *operation_get(struct group *group, uint64_t idx)
{
	struct operation *operation = operation_find(group, idx), *before;
	int open = 0;

	if (operation)
		return operation;
	TAILQ_FOREACH(before, &group->operations, of_group)
	open++;
	if (open >= OPEN_MOST)
		return NULL;
	operation = ocs_calloc(1, sizeof(*operation));
	operation->group = group;
	operation->idx = idx;
	operation->arrived = ocs_calloc(group->count, 1);
	operation->ended = ocs_calloc(group->count, 1);
	before = TAILQ_LAST(&group->operations, operations);
	while (before && before->idx > idx)
		before = TAILQ_PREV(before, operations, of_group);
	if (before)
		TAILQ_INSERT_AFTER(&group->operations, before, operation, of_group);
	else
		TAILQ_INSERT_HEAD(&group->operations, operation, of_group);
	return operation;
}

/* RANK of a group that waits for nobody, or for somebody who will not come. */
static void arrival_answer(struct ocs_coordinator *coordinator, struct group *group, uint64_t idx,
			   int rank)
{
	struct operation operation = { .group = group, .idx = idx, .rails = group->rails };

	operation.seq = ++coordinator->grants;
	if (group->lost)
		operation.error = OCS_COORDINATOR_RANK_LOST;
	/* What needs no circuit goes on without ocsd. */
	else if (ocs_group_waits(coordinator, group))
		operation.error = coordinator->over;
	if (operation.error)
		coordinator->counts.failed++;
	else if (group->need.kind == OCS_RAILS_OUTSIDE)
		coordinator->counts.outside++;
	else
		coordinator->counts.inside++;
	ocs_operation_answer(coordinator, &operation, rank);
}

/* All have arrived: from now on OPERATION is a demand. */
static void operation_demand(struct ocs_coordinator *coordinator, struct operation *operation,
			     int rank, int64_t now)
{
	struct group *group = operation->group;
	const struct phase_range *phase = phase_find(group, operation->idx);

	operation->state = OPERATION_DEMANDED;
	operation->since = now;
	TAILQ_INSERT_TAIL(&coordinator->demanded, operation, by_age);
	coordinator->last[rank]++;
	coordinator->counts.outside += group->need.kind == OCS_RAILS_OUTSIDE;
	if (group->nphases && !phase)
		coordinator->counts.outside_phases++;
	if (!OCS_RAILS_RULE(TABLE) && phase && phase->first != operation->idx)
		ocs_operation_grant(coordinator, operation, group->rails, now);
	ocs_coordinator_serve(coordinator, now);
}

/* The place of RANK in *GROUP, that of ID; -1 with ERR: there is no such group or member. */
static int member_of(struct ocs_coordinator *coordinator, uint64_t id, int rank,
		     struct group **group, struct ocs_error *err)
{
	int member;

	*group = group_find(coordinator, id, err);
	if (!*group)
		return -1;
	member = member_find(*group, rank);
	if (member < 0)
		ocs_error_set(err, OCS_USAGE, "rank %d is no member of group %" PRIx64, rank, id);
	return member;
}

int ocs_coordinator_arrive(struct ocs_coordinator *coordinator, uint64_t id, uint64_t idx, int rank,
			   int64_t now, struct ocs_error *err)
{
	struct operation *operation;
	struct group *group;
	int member = member_of(coordinator, id, rank, &group, err);
	bool late;

	if (member < 0)
		return -1;
	if (idx < group->newest[member]) {
		operation = operation_find(group, idx);
		if (operation && operation->state == OPERATION_OPEN && !operation->ended[member])
			ocs_operation_answer(coordinator, operation, rank);
		else
			coordinator->counts.stale++;
		return 0;
	}
	if (group->lost || coordinator->over || !ocs_group_waits(coordinator, group)) {
		group->newest[member] = idx + 1;
		arrival_answer(coordinator, group, idx, rank);
		return 0;
	}
	operation = operation_get(group, idx);
	if (!operation)
		return ocs_error_set(err, OCS_USAGE,
				     "group %" PRIx64
				     " has %d operations open and cannot have more",
				     id, OPEN_MOST);
	group->newest[member] = idx + 1;
	operation->arrived[member] = 1;
	operation->narrived++;
	late = operation->narrived == group->count && now - operation->latest >= LATE;
	operation->latest = now;
	if (operation->state == OPERATION_OPEN)
		ocs_operation_answer(coordinator, operation, rank);
	else if (operation->narrived == group->count ||
		 (!OCS_RAILS_RULE(ALL_ARRIVED) && operation->narrived == 1 &&
		  ocs_rail_carries(coordinator, &coordinator->rails[0], group))) {
		coordinator->counts.late += late;
		operation_demand(coordinator, operation, rank, now);
	}
	return 0;
}

int ocs_coordinator_end(struct ocs_coordinator *coordinator, uint64_t id, uint64_t idx, int rank,
			int64_t now, struct ocs_error *err)
{
	struct operation *operation;
	struct group *group;
	int member = member_of(coordinator, id, rank, &group, err);

	if (member < 0)
		return -1;
	operation = operation_find(group, idx);
	if (!operation || operation->state != OPERATION_OPEN || operation->ended[member]) {
		/* Operations without leases end unheard. */
		if (ocs_group_waits(coordinator, group))
			coordinator->counts.stale++;
		return 0;
	}
	operation->ended[member] = 1;
	operation->nended++;
	if (operation->nended < group->count) {
		if (!OCS_RAILS_RULE(DRAINED))
			ocs_operation_close(coordinator, operation);
		return 0;
	}
	ocs_operation_remove(coordinator, operation);
	ocs_coordinator_serve(coordinator, now);
	return 0;
}

void ocs_coordinator_wish(struct ocs_coordinator *coordinator, uint64_t id, int rank, int64_t now)
{
	struct group *group = group_find(coordinator, id, NULL);
	int stage;

	if (!group || !coordinator->options.provisioned || member_find(group, rank) < 0 ||
	    (group->need.kind != OCS_RAILS_STAGE && group->need.kind != OCS_RAILS_LINE))
		return;
	stage = ocs_rails_stage(&coordinator->options.layout, coordinator->nodes[rank]);
	ocs_rails_predict_wish(coordinator->predict, stage, group->need.digit);
	ocs_coordinator_serve(coordinator, now);
}

/* Fails what waits for a rank that is gone; what is open ends without it. */
static void group_lose(struct ocs_coordinator *coordinator, struct group *group, int member,
		       int64_t now)
{
	struct operation *operation, *next;

	group->lost = true;
	for (operation = TAILQ_FIRST(&group->operations); operation; operation = next) {
		next = TAILQ_NEXT(operation, of_group);
		if (operation->state != OPERATION_OPEN) {
			operation->error = OCS_COORDINATOR_RANK_LOST;
			ocs_operation_grant(coordinator, operation, 0, now);
		} else if (!operation->ended[member]) {
			operation->ended[member] = 1;
			if (++operation->nended == group->count)
				ocs_operation_remove(coordinator, operation);
		}
	}
}

/* A group in an operation of which RANK goes away, or 0. */
static uint64_t group_open(const struct ocs_coordinator *coordinator, int rank)
{
	for (size_t i = 0; i < coordinator->ngroups; i++) {
		const struct group *group = coordinator->groups[i];
		const struct operation *operation;

		if (member_find(group, rank) < 0)
			continue;
		for (operation = TAILQ_FIRST(&group->operations); operation;
		     operation = TAILQ_NEXT(operation, of_group))
			if (operation->state == OPERATION_OPEN)
				return group->id;
	}
	return 0;
}

void ocs_coordinator_rank_lost(struct ocs_coordinator *coordinator, int rank, int64_t now)
{
	struct ocs_coordinator_output *output;

	if (rank < 0 || rank >= coordinator->options.ranks || coordinator->lost[rank])
		return;
	coordinator->lost[rank] = true;
	output = ocs_coordinator_emit(coordinator, OCS_COORDINATOR_LOST);
	output->rank = rank;
	output->group = group_open(coordinator, rank);
	for (size_t i = 0; i < coordinator->ngroups; i++) {
		int member = member_find(coordinator->groups[i], rank);

		if (member >= 0)
			group_lose(coordinator, coordinator->groups[i], member, now);
	}
	ocs_coordinator_serve(coordinator, now);
}
