/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/rails/agent/agent.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "src/util/text.h"

#define GROUPS_MAX 65536
#define GROUP_MEMORY_MAX (1U << 24) /* members of all groups */

static void known_say(struct local_rank *rank, uint64_t id, int32_t error, uint32_t need)
{
	struct ocs_rails_word word = {
		.kind = OCS_RAILS_KNOWN,
		.version = OCS_RAILS_AGENT_VERSION,
		.group = id,
		.error = error,
		.need = need,
	};

	send(rank->fd, &word, sizeof(word), MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* Answers those that named GROUP, each once. */
static void known_tell(struct agent *agent, struct local_group *group)
{
	for (int i = 0; i < group->njoined; i++) {
		struct local_rank *rank = &agent->ranks[group->joined[i]];

		if (!group->answered[i] && rank->state == LOCAL_HERE)
			known_say(rank, group->id, group->error, group->need);
		group->answered[i] = true;
	}
}

static void group_free(void *thing)
{
	struct local_group *group = thing;

	free(group->ranks);
	free(group->joined);
	free(group->answered);
	free(group);
}

/* Whether LIST is what a group may be, and has RANK. */
static bool list_fits(const struct agent *agent, const int32_t *list, uint32_t count, int rank)
{
	bool has = false;

	if (!count || count > OCS_RAILS_GROUP_RANKS)
		return false;
	for (uint32_t i = 0; i < count; i++) {
		if (list[i] < 0 || (uint32_t)list[i] >= agent->hello.total ||
		    (i && list[i] <= list[i - 1]))
			return false;
		has |= list[i] == rank;
	}
	return has;
}

/* Asks the controller for it, unless the answer is plain here. */
static void group_ask(struct agent *agent, struct local_group *group)
{
	struct ocs_frame_group frame = { .group = group->id, .count = group->count };
	uint32_t local = 0, *ranks;

	for (uint32_t i = 0; i < group->count; i++)
		local += agent_rank(agent, group->ranks[i]) != NULL;
	if (local == group->count || agent->free_run || agent->over) {
		group->known = true;
		group->need = OCS_RAILS_FREE;
		group->error = local == group->count ? 0 : agent->over;
		return;
	}
	ranks = ocs_calloc(group->count, sizeof(*ranks));
	for (uint32_t i = 0; i < group->count; i++)
		ranks[i] = htole32((uint32_t)group->ranks[i]);
	ocs_frame_group_swap(&frame);
	ocs_outbox_frame(&agent->outbox, OCS_FRAME_GROUP, &frame, sizeof(frame), ranks,
			 group->count * sizeof(*ranks));
	free(ranks);
}

/* A group ID of the COUNT ranks LIST; one that was refused before is named anew.  NULL: too many. */
static struct local_group *group_make(struct agent *agent, struct local_group *group, uint64_t id,
				      const int32_t *list, uint32_t count)
{
	if (agent->group_memory + count > GROUP_MEMORY_MAX ||
	    (!group && agent->groups.count == GROUPS_MAX))
		return NULL;
	agent->group_memory += count;
	if (group) {
		agent->group_memory -= group->count;
		free(group->ranks);
		group->njoined = 0;
		group->known = false;
		group->error = 0;
	} else {
		group = ocs_calloc(1, sizeof(*group));
		group->id = id;
		ocs_rails_table_add(&agent->groups, id, group);
	}
	group->count = count;
	group->ranks = ocs_calloc(count, sizeof(*group->ranks));
	memcpy(group->ranks, list, count * sizeof(*list));
	group_ask(agent, group);
	return group;
}

void agent_group(struct agent *agent, struct local_rank *rank, const struct ocs_rails_word *word,
		 const int32_t *list)
{
	struct local_group *group = ocs_rails_table_get(&agent->groups, word->group);
	bool refused = group && group->known && group->error && !agent->over;
	int place = (int)(rank - agent->ranks);

	if (!list_fits(agent, list, word->count, rank->rank) ||
	    (group && !refused &&
	     (group->count != word->count ||
	      memcmp(group->ranks, list, word->count * sizeof(*list))))) {
		known_say(rank, word->group, OCS_RAILS_ERROR_REFUSED, OCS_RAILS_GATED);
		return;
	}
	if (!group || refused)
		group = group_make(agent, group, word->group, list, word->count);
	if (!group) {
		known_say(rank, word->group, OCS_RAILS_ERROR_REFUSED, OCS_RAILS_GATED);
		return;
	}
	for (int i = 0; i < group->njoined; i++) {
		if (group->joined[i] != place)
			continue;
		if (group->known)
			known_say(rank, group->id, group->error, group->need);
		return;
	}
	group->joined =
		ocs_realloc(group->joined, (size_t)(group->njoined + 1) * sizeof(*group->joined));
	group->answered = ocs_realloc(group->answered,
				      (size_t)(group->njoined + 1) * sizeof(*group->answered));
	group->joined[group->njoined] = place;
	group->answered[group->njoined++] = false;
	if (group->known)
		known_tell(agent, group);
}

static bool group_has(const struct agent *agent, const struct local_group *group,
		      const struct local_rank *rank)
{
	for (int i = 0; i < group->njoined; i++)
		if (&agent->ranks[group->joined[i]] == rank)
			return true;
	return false;
}

void agent_letter_take(struct agent *agent, struct local_rank *rank,
		       const struct ocs_rails_letter *letter)
{
	const struct local_group *group = ocs_rails_table_get(&agent->groups, letter->group);
	struct ocs_frame_letter frame = {
		.group = letter->group,
		.idx = letter->idx,
		.stamp = letter->stamp,
		.rank = (uint32_t)rank->rank,
		.kind = letter->kind,
	};
	struct ocs_rails_letter refusal = {
		.kind = OCS_RAILS_GRANT,
		.group = letter->group,
		.idx = letter->idx,
	};

	if (agent->over)
		refusal.error = agent->over;
	else if (letter->kind < OCS_RAILS_ARRIVE || letter->kind > OCS_RAILS_WISH || !group ||
		 !group->known || group->error || !group_has(agent, group, rank))
		refusal.error = OCS_RAILS_ERROR_REFUSED;
	/* Who did not listen that it needs no letters is granted at once. */
	else if (group->need == OCS_RAILS_FREE)
		refusal.error = 0;
	else {
		ocs_frame_letter_swap(&frame);
		ocs_outbox_record(&agent->outbox, OCS_FRAME_LETTERS, &frame, sizeof(frame));
		return;
	}
	if (letter->kind == OCS_RAILS_ARRIVE)
		agent_letter(agent, rank, &refusal);
}

void agent_known(struct agent *agent, const struct ocs_frame_known *known)
{
	struct local_group *group = ocs_rails_table_get(&agent->groups, known->group);

	if (!group || group->known)
		return;
	group->known = true;
	group->error = known->error;
	group->need = known->need;
	known_tell(agent, group);
}

void agent_grant(struct agent *agent, const struct ocs_frame_grant *grant)
{
	const struct local_group *group = ocs_rails_table_get(&agent->groups, grant->group);
	struct ocs_rails_letter letter = {
		.kind = OCS_RAILS_GRANT,
		.error = grant->error,
		.group = grant->group,
		.idx = grant->idx,
		.rails = grant->rails,
	};
	struct local_rank *rank;

	if (grant->rank >= 0) {
		rank = agent_rank(agent, grant->rank);
		if (rank)
			agent_letter(agent, rank, &letter);
		return;
	}
	for (int i = 0; group && i < group->njoined; i++)
		agent_letter(agent, &agent->ranks[group->joined[i]], &letter);
}

void agent_over(struct agent *agent, int32_t error)
{
	struct ocs_rails_letter letter = { .kind = OCS_RAILS_LOST, .error = error };

	if (agent->over)
		return;
	agent->over = error;
	for (size_t i = 0; i < agent->groups.size; i++) {
		struct local_group *group = agent->groups.entries[i].thing;

		if (!group || group->known)
			continue;
		group->known = true;
		group->error = error;
		known_tell(agent, group);
	}
	for (uint32_t i = 0; i < agent->hello.count; i++)
		agent_letter(agent, &agent->ranks[i], &letter);
}

bool agent_groups_known(const struct agent *agent)
{
	for (size_t i = 0; i < agent->groups.size; i++) {
		const struct local_group *group = agent->groups.entries[i].thing;

		if (group && group->known && group->need != OCS_RAILS_FREE)
			return true;
	}
	return false;
}

void agent_groups_ask(struct agent *agent)
{
	for (size_t i = 0; i < agent->groups.size; i++) {
		struct local_group *group = agent->groups.entries[i].thing;

		if (!group || group->known)
			continue;
		group_ask(agent, group);
		if (group->known)
			known_tell(agent, group);
	}
}

void agent_groups_free(struct agent *agent)
{
	ocs_rails_table_free(&agent->groups, group_free);
}
