/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Communicators: who is in them, made as operations of their groups, and gone. */

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "src/rails/shim/nccl_calls.h"

#define SETTLE_NS 50000

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static struct ocs_nccl_communicator *communicators;

/* A communicator that this thread makes inside a group: its handle is there at the group's end. */
struct pending {
	void **handle;
	struct ocs_nccl_communicator made;
	struct pending *next;
};
static _Thread_local struct pending *pending;

int ocs_nccl_communicator_add(const struct ocs_nccl_communicator *communicator)
{
	struct ocs_nccl_communicator *copy = malloc(sizeof(*copy));
	size_t size = (size_t)communicator->ranks * sizeof(*copy->members);

	if (!copy)
		return -1;
	*copy = *communicator;
	copy->members = malloc(size);
	if (!copy->members) {
		free(copy);
		return -1;
	}
	memcpy(copy->members, communicator->members, size);
	pthread_rwlock_wrlock(&lock);
	copy->next = communicators;
	communicators = copy;
	pthread_rwlock_unlock(&lock);
	return 0;
}

struct ocs_nccl_communicator *ocs_nccl_communicator_find(void *handle)
{
	struct ocs_nccl_communicator *at;

	pthread_rwlock_rdlock(&lock);
	for (at = communicators; at && at->handle != handle; at = at->next)
		;
	pthread_rwlock_unlock(&lock);
	return at;
}

void ocs_nccl_communicator_remove(void *handle)
{
	struct ocs_nccl_communicator **at, *gone = NULL;

	pthread_rwlock_wrlock(&lock);
	for (at = &communicators; *at && (*at)->handle != handle; at = &(*at)->next)
		;
	if (*at) {
		gone = *at;
		*at = gone->next;
	}
	pthread_rwlock_unlock(&lock);
	if (gone)
		free(gone->members);
	free(gone);
}

int ocs_nccl_settle(void *handle, int result)
{
	int (*state)(void *, int *) = ocs_nccl_find("ncclCommGetAsyncError");
	struct timespec pause = { 0, SETTLE_NS };
	int now = result;

	while (result == OCS_NCCL_IN_PROGRESS && now == OCS_NCCL_IN_PROGRESS && state && handle) {
		if (state(handle, &now))
			return OCS_NCCL_SYSTEM_ERROR;
		if (now == OCS_NCCL_IN_PROGRESS)
			nanosleep(&pause, NULL);
	}
	return now;
}

/* What ranks are told of a communicator that cannot be gated. */
static int making_fail(struct ocs_nccl_communicator *made, const char *why)
{
	ocs_nccl_say(false, "a communicator of %d ranks: %s", made->ranks, why);
	free(made->members);
	made->members = NULL;
	return OCS_NCCL_SYSTEM_ERROR;
}

static int rank_compare(const void *a, const void *b)
{
	const int32_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* The gate's group of MADE, whose members are known. */
static int group_make(struct ocs_gate *gate, struct ocs_nccl_communicator *made)
{
	size_t size = (size_t)made->ranks * sizeof(*made->members);
	int32_t *sorted = malloc(size);

	if (!sorted)
		return making_fail(made, "no memory");
	memcpy(sorted, made->members, size);
	qsort(sorted, (size_t)made->ranks, sizeof(*sorted), rank_compare);
	for (int k = 1; k < made->ranks; k++) {
		if (sorted[k] == sorted[k - 1]) {
			free(sorted);
			return making_fail(made, "a task has several of them; where circuits "
						 "follow phases every GPU has a task of its own");
		}
	}
	made->group = made->ranks == 1 ? OCS_GATE_FREE :
					 ocs_gate_group(gate, sorted, (size_t)made->ranks);
	free(sorted);
	return made->group == OCS_GATE_ERROR ? making_fail(made, ocs_gate_error()) :
					       OCS_NCCL_SUCCESS;
}

/* Fills MADE's members from what all of them say. */
static int members_learn(struct ocs_gate *gate, struct ocs_nccl_communicator *made)
{
	uint64_t *values = calloc((size_t)made->ranks, sizeof(*values));
	char why[OCS_STREAM_WHY] = "no memory";
	int result = 0;

	made->members = calloc((size_t)made->ranks, sizeof(*made->members));
	if (!values || !made->members)
		result = -1;
	else if (made->ranks == 1)
		values[0] = (uint64_t)ocs_gate_rank(gate);
	else
		result = ocs_nccl_exchange(&made->id, made->name, made->rank, made->ranks,
					   (uint64_t)ocs_gate_rank(gate), values, why);
	for (int k = 0; k < made->ranks && !result; k++)
		made->members[k] = (int32_t)values[k];
	free(values);
	return result ? making_fail(made, why) : group_make(gate, made);
}

static int communicator_keep(void **handle, struct ocs_nccl_communicator *made, int result)
{
	made->handle = *handle;
	if (!result && made->handle && ocs_nccl_communicator_add(made)) {
		ocs_nccl_say(true, "no memory for a communicator");
		result = OCS_NCCL_SYSTEM_ERROR;
	}
	free(made->members);
	return result;
}

/* As the first half of making: waits for the group's operation.  Inside ncclGroupStart nothing is made yet,
 * and ranks may list what they make in different orders. */
static int making_begin(struct ocs_gate *gate, struct ocs_nccl_communicator *made, uint64_t *idx)
{
	if (made->group < 0 || ocs_nccl_depth() || !ocs_gate_enter(gate, made->group, idx))
		return OCS_NCCL_SUCCESS;
	return making_fail(made, ocs_gate_error());
}

static int making_end(struct ocs_gate *gate, struct ocs_nccl_communicator *made, uint64_t idx,
		      void **handle, int result)
{
	struct pending *later;

	if (!ocs_nccl_depth()) {
		result = ocs_nccl_settle(*handle, result);
		if (made->group >= 0)
			ocs_gate_leave(gate, made->group, idx, NULL, 0);
		return communicator_keep(handle, made, result);
	}
	later = malloc(sizeof(*later));
	if (!later)
		return making_fail(made, "no memory");
	*later = (struct pending){ handle, *made, pending };
	pending = later;
	return result;
}

void ocs_nccl_pending_keep(int result)
{
	while (pending) {
		struct pending *next = pending->next;
		int known = result ? ocs_nccl_settle(*pending->handle, result) : 0;

		communicator_keep(pending->handle, &pending->made, known);
		free(pending);
		pending = next;
	}
}

/* The three ways to begin a communicator; CONFIG and IDS as NCCL takes them. */
enum init_way {
	INIT_PLAIN,
	INIT_CONFIG,
	INIT_SCALABLE,
};

static int init_real(enum init_way way, void **comm, int ranks, struct ocs_nccl_id *ids, int count,
		     int rank, void *config)
{
	int (*plain)(void **, int, struct ocs_nccl_id, int);
	int (*with_config)(void **, int, struct ocs_nccl_id, int, void *);
	int (*scalable)(void **, int, int, int, struct ocs_nccl_id *, void *);
	int result = OCS_NCCL_SYSTEM_ERROR;

	ocs_nccl_inside(1);
	if (way == INIT_PLAIN) {
		plain = ocs_nccl_find("ncclCommInitRank");
		if (plain)
			result = plain(comm, ranks, ids[0], rank);
	} else if (way == INIT_CONFIG) {
		with_config = ocs_nccl_find("ncclCommInitRankConfig");
		if (with_config)
			result = with_config(comm, ranks, ids[0], rank, config);
	} else {
		scalable = ocs_nccl_find("ncclCommInitRankScalable");
		if (scalable)
			result = scalable(comm, ranks, rank, count, ids, config);
	}
	ocs_nccl_inside(-1);
	return result;
}

static int communicator_init(enum init_way way, void **comm, int ranks, struct ocs_nccl_id *ids,
			     int count, int rank, void *config)
{
	struct ocs_gate *gate = ocs_nccl_gate();
	struct ocs_nccl_communicator made = { .rank = rank, .ranks = ranks };
	uint64_t idx = 0;
	int result;

	/* What NCCL refuses it refuses by its own words. */
	if (!gate || !comm || ranks < 1 || rank < 0 || rank >= ranks || !ids || count < 1)
		return init_real(way, comm, ranks, ids, count, rank, config);
	if (ocs_nccl_failed())
		return OCS_NCCL_SYSTEM_ERROR;
	made.id = ids[0];
	made.name = ocs_nccl_hash(0, &made.id, sizeof(made.id));
	result = members_learn(gate, &made);
	if (!result)
		result = making_begin(gate, &made, &idx);
	if (result)
		return result;
	result = init_real(way, comm, ranks, ids, count, rank, config);
	return making_end(gate, &made, idx, comm, result);
}

OCS_NCCL_ENTRY(int, CommInitRank, (void **comm, int ranks, struct ocs_nccl_id id, int rank))
{
	return communicator_init(INIT_PLAIN, comm, ranks, &id, 1, rank, NULL);
}

OCS_NCCL_ENTRY(int, CommInitRankConfig,
	       (void **comm, int ranks, struct ocs_nccl_id id, int rank, void *config))
{
	return communicator_init(INIT_CONFIG, comm, ranks, &id, 1, rank, config);
}

OCS_NCCL_ENTRY(int, CommInitRankScalable,
	       (void **comm, int ranks, int rank, int count, struct ocs_nccl_id *ids, void *config))
{
	return communicator_init(INIT_SCALABLE, comm, ranks, ids, count, rank, config);
}

OCS_NCCL_ENTRY(int, GetUniqueId, (struct ocs_nccl_id * id))
{
	int (*real)(struct ocs_nccl_id *) = ocs_nccl_find("ncclGetUniqueId");
	struct ocs_gate *gate = ocs_nccl_gate();
	char why[OCS_STREAM_WHY];
	int result;

	if (!real)
		return OCS_NCCL_SYSTEM_ERROR;
	ocs_nccl_inside(1);
	result = real(id);
	ocs_nccl_inside(-1);
	if (result || !gate || !ocs_nccl_exchange_offer(id, why))
		return result;
	ocs_nccl_say(false, "a unique id: %s", why);
	return OCS_NCCL_SYSTEM_ERROR;
}

/* The members of colour COLOR among VALUES of PARENT, by key and rank. */
static void members_pick(const struct ocs_nccl_communicator *parent, const uint64_t *values,
			 int color, struct ocs_nccl_communicator *made)
{
	int32_t before = 0;

	made->ranks = 0;
	for (int turn = 0; turn < parent->ranks; turn++) {
		int best = -1;

		/* Each turn finds the next one; a set of keys is small or sorted, as a rule. */
		for (int k = 0; k < parent->ranks; k++) {
			int key = (int32_t)(uint32_t)values[k];
			int best_key = best < 0 ? 0 : (int32_t)(uint32_t)values[best];

			if ((int32_t)(values[k] >> 32) != color)
				continue;
			if (made->ranks) {
				int last_key = (int32_t)(uint32_t)values[before];

				if (key < last_key || (key == last_key && k <= before))
					continue;
			}
			if (best < 0 || key < best_key)
				best = k;
		}
		if (best < 0)
			return;
		before = best;
		if (best == parent->rank)
			made->rank = made->ranks;
		made->members[made->ranks++] = parent->members[best];
	}
}

/* What a child of PARENT begins with; NULL: PARENT is not known. */
static struct ocs_nccl_communicator *parent_find(void *handle)
{
	struct ocs_nccl_communicator *parent = ocs_nccl_communicator_find(handle);

	if (!parent)
		ocs_nccl_say(false,
			     "a communicator that the gates do not know is divided; begin it with "
			     "ncclCommInitRank");
	return parent;
}

/* Fills MADE, the child of PARENT for this rank; without members where it has none. */
static int split_learn(struct ocs_gate *gate, struct ocs_nccl_communicator *parent, int color,
		       int key, struct ocs_nccl_communicator *made)
{
	uint64_t *values = calloc((size_t)parent->ranks, sizeof(*values));
	uint64_t value = (uint64_t)(uint32_t)color << 32 | (uint32_t)key;
	char why[OCS_STREAM_WHY] = "no memory";
	int result = -1;

	*made = (struct ocs_nccl_communicator){ .id = parent->id,
						.ranks = parent->ranks,
						.group = OCS_GATE_FREE };
	parent->splits++;
	made->name = ocs_nccl_hash(parent->name, &parent->splits, sizeof(parent->splits));
	made->members = calloc((size_t)parent->ranks, sizeof(*made->members));
	if (values && made->members) {
		if (parent->ranks == 1) {
			values[0] = value;
			result = 0;
		} else {
			result = ocs_nccl_exchange(&parent->id, made->name, parent->rank,
						   parent->ranks, value, values, why);
		}
	}
	if (!result && color != OCS_NCCL_NO_COLOR)
		members_pick(parent, values, color, made);
	free(values);
	if (result)
		return making_fail(made, why);
	made->name = ocs_nccl_hash(made->name, &color, sizeof(color));
	return color == OCS_NCCL_NO_COLOR ? OCS_NCCL_SUCCESS : group_make(gate, made);
}

OCS_NCCL_ENTRY(int, CommSplit, (void *comm, int color, int key, void **child, void *config))
{
	int (*real)(void *, int, int, void **, void *) = ocs_nccl_find("ncclCommSplit");
	struct ocs_gate *gate = ocs_nccl_gate();
	struct ocs_nccl_communicator made, *parent;
	uint64_t idx = 0;
	int result;

	if (!real)
		return OCS_NCCL_SYSTEM_ERROR;
	if (!gate || !comm || !child)
		return real(comm, color, key, child, config);
	if (ocs_nccl_failed())
		return OCS_NCCL_SYSTEM_ERROR;
	parent = parent_find(comm);
	if (!parent)
		return OCS_NCCL_INVALID_USAGE;
	result = split_learn(gate, parent, color, key, &made);
	if (!result)
		result = making_begin(gate, &made, &idx);
	if (result)
		return result;
	*child = NULL;
	ocs_nccl_inside(1);
	result = real(comm, color, key, child, config);
	ocs_nccl_inside(-1);
	return making_end(gate, &made, idx, child, result);
}

OCS_NCCL_ENTRY(int, CommShrink,
	       (void *comm, int *excluded, int count, void **child, void *config, int flags))
{
	int (*real)(void *, int *, int, void **, void *, int) = ocs_nccl_find("ncclCommShrink");
	struct ocs_gate *gate = ocs_nccl_gate();
	struct ocs_nccl_communicator made = { .group = OCS_GATE_FREE }, *parent;
	uint64_t idx = 0;
	int result;

	if (!real)
		return OCS_NCCL_SYSTEM_ERROR;
	if (!gate || !comm || !child || (count > 0 && !excluded))
		return real(comm, excluded, count, child, config, flags);
	if (ocs_nccl_failed())
		return OCS_NCCL_SYSTEM_ERROR;
	parent = parent_find(comm);
	if (!parent)
		return OCS_NCCL_INVALID_USAGE;
	made.id = parent->id;
	made.members = calloc((size_t)parent->ranks, sizeof(*made.members));
	if (!made.members)
		return making_fail(&made, "no memory");
	for (int k = 0; k < parent->ranks; k++) {
		bool out = false;

		for (int i = 0; i < count && !out; i++)
			out = excluded[i] == k;
		if (out)
			continue;
		if (k == parent->rank)
			made.rank = made.ranks;
		made.members[made.ranks++] = parent->members[k];
	}
	made.name = ocs_nccl_hash(parent->name, made.members,
				  (size_t)made.ranks * sizeof(*made.members));
	result = group_make(gate, &made);
	if (!result)
		result = making_begin(gate, &made, &idx);
	if (result)
		return result;
	*child = NULL;
	ocs_nccl_inside(1);
	result = real(comm, excluded, count, child, config, flags);
	ocs_nccl_inside(-1);
	return making_end(gate, &made, idx, child, result);
}

/* After a refusal a stream may be held for ever: NCCL would wait for it here. */
static int communicator_end(void *comm, int (*real)(void *), int held)
{
	int result = OCS_NCCL_SYSTEM_ERROR;

	if (ocs_nccl_gate() && ocs_stream_refused())
		return held;
	ocs_nccl_inside(1);
	if (real)
		result = real(comm);
	ocs_nccl_inside(-1);
	return result;
}

OCS_NCCL_ENTRY(int, CommFinalize, (void *comm))
{
	return communicator_end(comm, ocs_nccl_find("ncclCommFinalize"), OCS_NCCL_SYSTEM_ERROR);
}

OCS_NCCL_ENTRY(int, CommDestroy, (void *comm))
{
	ocs_nccl_communicator_remove(comm);
	return communicator_end(comm, ocs_nccl_find("ncclCommDestroy"), OCS_NCCL_SYSTEM_ERROR);
}

OCS_NCCL_ENTRY(int, CommAbort, (void *comm))
{
	ocs_nccl_communicator_remove(comm);
	return communicator_end(comm, ocs_nccl_find("ncclCommAbort"), OCS_NCCL_SUCCESS);
}

OCS_NCCL_ENTRY(int, CommGetAsyncError, (void *comm, int *error))
{
	int (*real)(void *, int *) = ocs_nccl_find("ncclCommGetAsyncError");

	if (error && ocs_nccl_gate() && ocs_nccl_failed()) {
		*error = OCS_NCCL_SYSTEM_ERROR;
		return OCS_NCCL_SUCCESS;
	}
	return real ? real(comm, error) : OCS_NCCL_SYSTEM_ERROR;
}

OCS_NCCL_ENTRY(const char *, GetLastError, (void *comm))
{
	const char *(*real)(void *);
	const char *said = ocs_nccl_said();

	if (said)
		return said;
	real = ocs_nccl_find("ncclGetLastError");
	return real ? real(comm) : "";
}
