/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Operations: reached, granted, ended. */

#include <errno.h>
#include <stdlib.h>

#include "src/rails/shim/drain.h"
#include "src/rails/shim/gate_internal.h"

/* The group that a caller means, or NULL with the text; with LOCK held. */
static struct gate_group *group_at(struct ocs_gate *gate, int group)
{
	if (atomic_load(&gate->lost)) {
		ocs_gate_fail("%s", gate->why);
		return NULL;
	}
	if (group < 0 || (size_t)group >= gate->group_count ||
	    gate->groups[group]->state != GROUP_KNOWN) {
		ocs_gate_fail("no group has the number %d", group);
		return NULL;
	}
	return gate->groups[group];
}

/* Notes who waits, then says that this rank has arrived; with LOCK held. */
static int letter_arrive(struct ocs_gate *gate, struct gate_group *group, uint64_t idx,
			 _Atomic uint32_t *word, int32_t *error)
{
	if (gate->wait_count == gate->wait_room) {
		size_t room = gate->wait_room ? gate->wait_room * 2 : 32;
		struct gate_wait *waits = realloc(gate->waits, room * sizeof(*waits));

		if (!waits)
			return ocs_gate_fail("no memory");
		gate->waits = waits;
		gate->wait_room = room;
	}
	gate->waits[gate->wait_count++] = (struct gate_wait){ group->name, idx, word, error };
	if (!ocs_gate_write(gate, OCS_RAILS_ARRIVE, group->name, idx))
		return 0;
	/* The reader needs LOCK: what was noted last is there still. */
	gate->wait_count--;
	return -1;
}

static int word_wait(_Atomic uint32_t *word, const int32_t *error)
{
	while (!atomic_load_explicit(word, memory_order_acquire))
		ocs_gate_futex_wait(word, 0, 1000, false);
	return atomic_load(word) == 1 ? 0 : ocs_gate_fail("%s", ocs_gate_reason(*error));
}

int ocs_gate_enter(struct ocs_gate *gate, int group, uint64_t *idx)
{
	_Atomic uint32_t word = 0;
	int32_t error = 0;
	int before = errno, result = -1;
	struct gate_group *known;

	pthread_mutex_lock(&gate->lock);
	known = group_at(gate, group);
	if (known) {
		*idx = known->next++;
		result = letter_arrive(gate, known, *idx, &word, &error);
	}
	pthread_mutex_unlock(&gate->lock);
	if (!result)
		result = word_wait(&word, &error);
	errno = before;
	return result;
}

int ocs_gate_reserve(struct ocs_gate *gate, int group, uint64_t *idx)
{
	struct gate_group *known;

	pthread_mutex_lock(&gate->lock);
	known = group_at(gate, group);
	if (known)
		*idx = known->next++;
	pthread_mutex_unlock(&gate->lock);
	return known ? 0 : -1;
}

int ocs_gate_arrive_now(struct ocs_gate *gate, int group, uint64_t idx, _Atomic uint32_t *word)
{
	int before = errno, result = -1;
	struct gate_group *known;

	pthread_mutex_lock(&gate->lock);
	known = group_at(gate, group);
	if (known)
		result = letter_arrive(gate, known, idx, word, NULL);
	pthread_mutex_unlock(&gate->lock);
	errno = before;
	return result;
}

const char *ocs_gate_refusal(const struct ocs_gate *gate)
{
	return ocs_gate_reason(atomic_load(&gate->refusal));
}

void ocs_gate_leave(struct ocs_gate *gate, int group, uint64_t idx, const int *fds, size_t count)
{
	int before = errno;
	bool drained = ocs_drain(fds, count, gate->limit_ms);
	struct gate_group *known;

	pthread_mutex_lock(&gate->lock);
	if (!drained)
		gate->overdue++;
	known = group_at(gate, group);
	if (known)
		ocs_gate_write(gate, OCS_RAILS_END, known->name, idx);
	pthread_mutex_unlock(&gate->lock);
	errno = before;
}

void ocs_gate_wish(struct ocs_gate *gate, int group)
{
	int before = errno;
	struct gate_group *known;

	pthread_mutex_lock(&gate->lock);
	known = group_at(gate, group);
	if (known)
		ocs_gate_write(gate, OCS_RAILS_WISH, known->name, 0);
	pthread_mutex_unlock(&gate->lock);
	errno = before;
}
