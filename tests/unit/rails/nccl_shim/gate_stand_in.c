/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* src/rails/shim/gate.h for the ranks of one case: an operation is granted once all members have arrived. */

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "record.h"
#include "src/rails/shim/gate.h"

struct record *record;
int own_rank, all_ranks, nodes_of;

static struct wait {
	int group;
	uint64_t idx;
	_Atomic uint32_t *word;
} waits[256];
static _Atomic int wait_count;
static pthread_mutex_t waits_lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t next_idx[GROUPS_MAX];
static _Thread_local char text[80];
static pthread_once_t started = PTHREAD_ONCE_INIT;

static void record_lock(void)
{
	int free_now = 0;

	while (!atomic_compare_exchange_weak(&record->lock, &free_now, 1)) {
		free_now = 0;
		sched_yield();
	}
}

static void record_unlock(void)
{
	atomic_store(&record->lock, 0);
}

void event_add(struct event event)
{
	int at = atomic_fetch_add(&record->events, 1);

	if (at >= EVENTS_MAX)
		abort();
	event.rank = own_rank;
	record->event[at] = event;
}

struct event event_any(enum event_kind kind)
{
	return (struct event){ kind, -1, -1, -1, -1, UINT64_MAX, "" };
}

static bool event_fits(const struct event *event, const struct event *like)
{
	return (!like->kind || event->kind == like->kind) &&
	       (like->rank < 0 || event->rank == like->rank) &&
	       (like->group < 0 || event->group == like->group) &&
	       (like->communicator < 0 || event->communicator == like->communicator) &&
	       (like->peer < 0 || event->peer == like->peer) &&
	       (like->idx == UINT64_MAX || event->idx == like->idx) &&
	       (!like->what[0] || !strcmp(event->what, like->what));
}

int event_find(struct event like, int k)
{
	for (int at = 0; at < record->events; at++)
		if (event_fits(&record->event[at], &like) && !k--)
			return at;
	return -1;
}

int event_count(struct event like)
{
	int count = 0;

	for (int at = 0; at < record->events; at++)
		count += event_fits(&record->event[at], &like);
	return count;
}

void receive_wait(int peer)
{
	static _Atomic int received[RANKS_MAX];
	struct event sent = event_any(EVENT_KERNEL);
	int k = atomic_fetch_add(&received[peer], 1);

	snprintf(sent.what, sizeof(sent.what), "Send");
	sent.rank = peer;
	sent.peer = own_rank;
	while (event_count(sent) <= k)
		sched_yield();
}

void record_print(void)
{
	static const char *const kinds[] = { "",       "arrive", "grant", "leave",
					     "kernel", "call",	 "host" };

	for (int at = 0; at < record->events; at++) {
		struct event *e = &record->event[at];

		if (e->kind != EVENT_REACHED)
			printf("# %d: rank %d %s %s group %d idx %d communicator %d peer %d\n", at,
			       e->rank, kinds[e->kind], e->what, e->group, (int)e->idx,
			       e->communicator, e->peer);
	}
}

int group_find(const int *members, int count)
{
	for (int g = 0; g < record->groups; g++)
		if (!record->group[g].pair && record->group[g].count == count &&
		    !memcmp(record->group[g].members, members, (size_t)count * sizeof(*members)))
			return g;
	return -1;
}

int pair_find(int from, int to)
{
	for (int g = 0; g < record->groups; g++)
		if (record->group[g].pair && record->group[g].members[0] == from &&
		    record->group[g].members[1] == to)
			return g;
	return -1;
}

/* The agent's word comes to this process. */
static void *words_write(void *unused)
{
	for (;;) {
		pthread_mutex_lock(&waits_lock);
		for (int k = 0; k < wait_count; k++) {
			struct wait *wait = &waits[k];
			struct record_group *group = &record->group[wait->group];
			uint32_t answer = group->granted[wait->idx] ? 1 : 0;

			if (record->refuse_group == wait->group &&
			    record->refuse_idx == (int)wait->idx)
				answer = 2;
			if (!answer)
				continue;
			atomic_store(wait->word, answer);
			*wait = waits[--wait_count];
			k--;
		}
		pthread_mutex_unlock(&waits_lock);
		sched_yield();
	}
	return unused;
}

static void gate_start(void)
{
	pthread_t thread;

	pthread_create(&thread, NULL, words_write, NULL);
}

struct ocs_gate *ocs_gate_get(void)
{
	if (!record || !all_ranks)
		return NULL;
	pthread_once(&started, gate_start);
	return (struct ocs_gate *)record;
}

int ocs_gate_rank(const struct ocs_gate *gate)
{
	(void)gate;
	return own_rank;
}

int ocs_gate_ranks(const struct ocs_gate *gate)
{
	(void)gate;
	return all_ranks;
}

const char *ocs_gate_error(void)
{
	return text;
}

static int group_make(const int32_t *members, size_t count, bool pair, uint32_t tag)
{
	int number = -1;

	record_lock();
	for (int g = 0; g < record->groups; g++) {
		struct record_group *group = &record->group[g];

		if (group->pair == pair && group->tag == tag && group->count == (int)count &&
		    !memcmp(group->members, members, count * sizeof(*members)))
			number = g;
	}
	if (number < 0) {
		number = record->groups++;
		if (number >= GROUPS_MAX || count > RANKS_MAX)
			abort();
		record->group[number].count = (int)count;
		record->group[number].pair = pair;
		record->group[number].tag = tag;
		memcpy(record->group[number].members, members, count * sizeof(*members));
	}
	record_unlock();
	return number;
}

int ocs_gate_group(struct ocs_gate *gate, const int32_t *members, size_t count)
{
	bool within = true;

	(void)gate;
	for (size_t k = 1; k < count; k++)
		within = within && members[k] / nodes_of == members[0] / nodes_of;
	return within ? OCS_GATE_FREE : group_make(members, count, false, 0);
}

int ocs_gate_pair(struct ocs_gate *gate, int from, int to, uint32_t tag)
{
	int32_t members[2] = { from, to };

	(void)gate;
	if (tag >> 30)
		abort(); /* two bits are the gate's */
	return from / nodes_of == to / nodes_of ? OCS_GATE_FREE : group_make(members, 2, true, tag);
}

int ocs_gate_reserve(struct ocs_gate *gate, int group, uint64_t *idx)
{
	(void)gate;
	if (record->lost) {
		snprintf(text, sizeof(text), "the agent is gone");
		return -1;
	}
	*idx = next_idx[group]++;
	return 0;
}

int ocs_gate_arrive_now(struct ocs_gate *gate, int group, uint64_t idx, _Atomic uint32_t *word)
{
	struct event event = { .kind = EVENT_ARRIVE, .group = group, .idx = idx };
	struct record_group *known = &record->group[group];
	uint32_t all = 0;

	(void)gate;
	if (in_host_function)
		abort(); /* this may wait */
	for (int k = 0; k < known->count; k++)
		all |= 1u << known->members[k];
	record_lock();
	event_add(event);
	known->arrived[idx] |= 1u << own_rank;
	if (known->arrived[idx] == all &&
	    !(record->refuse_group == group && record->refuse_idx == (int)idx)) {
		event.kind = EVENT_GRANT;
		event_add(event);
		known->granted[idx] = true;
	}
	record_unlock();
	pthread_mutex_lock(&waits_lock);
	waits[wait_count++] = (struct wait){ group, idx, word };
	pthread_mutex_unlock(&waits_lock);
	return 0;
}

int ocs_gate_enter(struct ocs_gate *gate, int group, uint64_t *idx)
{
	_Atomic uint32_t word = 0;

	if (in_host_function)
		abort();
	if (ocs_gate_reserve(gate, group, idx) || ocs_gate_arrive_now(gate, group, *idx, &word))
		return -1;
	while (!atomic_load(&word))
		sched_yield();
	snprintf(text, sizeof(text), "refused");
	return word == 1 ? 0 : -1;
}

void ocs_gate_leave(struct ocs_gate *gate, int group, uint64_t idx, const int *fds, size_t count)
{
	(void)gate;
	(void)fds;
	if (in_host_function || count)
		abort();
	/* What was not granted has no lease. */
	if (!record->group[group].granted[idx])
		abort();
	event_add((struct event){ .kind = EVENT_LEAVE, .group = group, .idx = idx });
}
