/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* The gate of a process: connected once, closed in children, its groups. */

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "src/rails/shim/gate_internal.h"

#define GROUPS_MAX (1 << 20)
#define PAIR 0x80000000u
#define PAIR_DOWN 0x40000000u /* the sender is the greater rank */

static _Thread_local char error_text[240];

const char *ocs_gate_error(void)
{
	return error_text;
}

int ocs_gate_fail(const char *format, ...)
{
	va_list list;

	va_start(list, format);
	vsnprintf(error_text, sizeof(error_text), format, list);
	va_end(list);
	return -1;
}

const char *ocs_gate_reason(int32_t error)
{
	/* As ocs_coordinator_error says. */
	static const char *const of_coordinator[] = { "", "a rank of the group is gone",
						      "no rail works any more",
						      "circuits of this job were revoked" };

	if (error > 0 && error < 4)
		return of_coordinator[error];
	if (error == OCS_RAILS_ERROR_REFUSED)
		return "it knows no such version, rank or group";
	return "the agent of this node or the job's controller is gone";
}

/* -- one gate for each process ------------------------------------------- */

static struct ocs_gate the_gate = { .sock = -1, .bell = -1 };
static pthread_mutex_t get_lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic(struct ocs_gate *) open_gate;
static _Atomic int get_done; /* 1: looked for; the gate or none */

/* In a child: the parent's connection must end with the parent, and nothing is gated. */
static void child_close(void)
{
	atomic_store(&open_gate, NULL);
	atomic_store(&get_done, 1);
	if (the_gate.sock >= 0)
		close(the_gate.sock);
	if (the_gate.bell >= 0)
		close(the_gate.bell);
	the_gate.sock = the_gate.bell = -1;
	/* Threads that are not here may have held the lock; who kept the pointer is refused. */
	pthread_mutex_init(&the_gate.lock, NULL);
	snprintf(the_gate.why, sizeof(the_gate.why), "a child of fork() has no gate");
	atomic_store(&the_gate.lost, OCS_RAILS_ERROR_AGENT);
}

static void fork_prepare(void)
{
	pthread_mutex_lock(&get_lock);
}

static void fork_parent(void)
{
	pthread_mutex_unlock(&get_lock);
}

static void fork_child(void)
{
	pthread_mutex_unlock(&get_lock);
	/* A child that was forked before the gate was there connects like any process: only what
	 * the parent opened is closed. */
	if (atomic_load(&get_done))
		child_close();
}

static int number_get(const char *const *names, int max)
{
	for (; *names; names++) {
		const char *text = getenv(*names);
		char *end;
		long number;

		if (!text || !*text)
			continue;
		errno = 0;
		number = strtol(text, &end, 10);
		return *end || errno || number < 0 || number > max ? -1 : (int)number;
	}
	return -1;
}

/* The signal that TEXT names, "USR1", "SIGUSR1" or "10"; 0: none. */
static int signal_parse(const char *text)
{
	static const struct {
		const char *name;
		int number;
	} names[] = { { "USR1", SIGUSR1 }, { "USR2", SIGUSR2 }, { "TERM", SIGTERM },
		      { "INT", SIGINT },   { "HUP", SIGHUP },	{ "URG", SIGURG } };
	char *end;
	long number;

	if (!text || !*text)
		return 0;
	if (strncmp(text, "SIG", 3) == 0)
		text += 3;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (strcmp(text, names[i].name) == 0)
			return names[i].number;
	number = strtol(text, &end, 10);
	return *end || number < 1 || number > SIGRTMAX ? 0 : (int)number;
}

static void gate_open(void)
{
	static const char *const rank[] = { "SLURM_PROCID", NULL };
	static const char *const ranks[] = { "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS", NULL };
	static const char *const limit[] = { "OCS_RAILS_TIMEOUT", NULL };
	static const char *const local[] = { "SLURM_LOCALID", NULL };
	const char *path = getenv(OCS_RAILS_AGENT), *verbose = getenv("OCS_RAILS_VERBOSE");
	struct ocs_gate *gate = &the_gate;
	pthread_condattr_t clock;

	if (!path || !*path)
		return;
	gate->rank = number_get(rank, INT_MAX - 1);
	gate->ranks = number_get(ranks, INT_MAX);
	if (gate->rank < 0 || gate->ranks <= gate->rank)
		return;
	gate->verbose = verbose && *verbose && strcmp(verbose, "0");
	gate->quiet = verbose && !strcmp(verbose, "0");
	gate->signal = signal_parse(getenv("OCS_RAILS_SIGNAL"));
	gate->first = number_get(local, INT_MAX) <= 0;
	gate->limit_ms = number_get(limit, INT_MAX / 1000) * 1000;
	if (gate->limit_ms <= 0)
		gate->limit_ms = GATE_LIMIT_MS;
	gate->pid = getpid();
	pthread_mutex_init(&gate->lock, NULL);
	pthread_condattr_init(&clock);
	pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
	pthread_cond_init(&gate->answered, &clock);
	pthread_condattr_destroy(&clock);
	if (ocs_gate_connect(gate, path) || ocs_gate_start(gate)) {
		fprintf(stderr, "slurm-ocs: rank %d has no gate and must not send: %s\n",
			gate->rank, error_text);
		ocs_gate_lose(gate, OCS_RAILS_ERROR_AGENT, error_text);
	}
	atomic_store(&open_gate, gate);
}

struct ocs_gate *ocs_gate_get(void)
{
	int before = errno;

	if (!atomic_load(&get_done)) {
		pthread_mutex_lock(&get_lock);
		if (!atomic_load(&get_done)) {
			gate_open();
			atomic_store(&get_done, 1);
		}
		pthread_mutex_unlock(&get_lock);
		errno = before;
	}
	return atomic_load(&open_gate);
}

static void __attribute__((constructor)) gate_load(void)
{
	pthread_atfork(fork_prepare, fork_parent, fork_child);
}

static void __attribute__((destructor)) gate_unload(void)
{
	struct ocs_rails_word word = { .kind = OCS_RAILS_GOODBYE };
	struct ocs_gate *gate = atomic_load(&open_gate);

	if (gate && gate->pid == getpid() && gate->sock >= 0)
		send(gate->sock, &word, sizeof(word), MSG_NOSIGNAL | MSG_DONTWAIT);
}

int ocs_gate_rank(const struct ocs_gate *gate)
{
	return gate->rank;
}

int ocs_gate_ranks(const struct ocs_gate *gate)
{
	return gate->ranks;
}

/* -- groups --------------------------------------------------------------- */

static size_t name_slot(const struct ocs_gate *gate, uint64_t name)
{
	size_t slot = (size_t)(name ^ name >> 32) & (gate->name_room - 1);

	while (gate->by_name[slot] && gate->groups[gate->by_name[slot] - 1]->name != name)
		slot = (slot + 1) & (gate->name_room - 1);
	return slot;
}

struct gate_group *ocs_gate_find(struct ocs_gate *gate, uint64_t name)
{
	uint32_t number = gate->name_room ? gate->by_name[name_slot(gate, name)] : 0;

	return number ? gate->groups[number - 1] : NULL;
}

static bool room_make(struct ocs_gate *gate)
{
	size_t room = gate->group_room ? gate->group_room * 2 : 64;
	struct gate_group **groups;
	uint32_t *names;

	if (gate->group_count < gate->group_room)
		return true;
	groups = realloc(gate->groups, room * sizeof(*groups));
	if (groups)
		gate->groups = groups;
	names = calloc(room * 2, sizeof(*names));
	if (!groups || !names) {
		free(names);
		return false;
	}
	free(gate->by_name);
	gate->by_name = names;
	gate->name_room = room * 2;
	gate->group_room = room;
	for (size_t i = 0; i < gate->group_count; i++)
		names[name_slot(gate, groups[i]->name)] = (uint32_t)i + 1;
	return true;
}

/* The number of a new group, or -1 with the text; MEMBERS become the group's. */
static int group_add(struct ocs_gate *gate, int32_t *members, uint32_t count, uint32_t instance)
{
	struct gate_group *group = calloc(1, sizeof(*group));

	if (!group || gate->group_count >= GROUPS_MAX || !room_make(gate)) {
		free(group);
		free(members);
		return ocs_gate_fail("no room for another group");
	}
	group->name = ocs_rails_group_name(members, count, instance);
	group->members = members;
	group->count = count;
	group->instance = instance;
	group->state = GROUP_ASKED;
	gate->by_name[name_slot(gate, group->name)] = (uint32_t)gate->group_count + 1;
	gate->groups[gate->group_count] = group;
	return (int)gate->group_count++;
}

static int group_ask(struct ocs_gate *gate, const struct gate_group *group)
{
	size_t bytes = sizeof(struct ocs_rails_word) + group->count * sizeof(int32_t);
	struct ocs_rails_word *word = calloc(1, bytes);
	int result = 0;

	if (!word)
		return ocs_gate_fail("no memory");
	word->kind = OCS_RAILS_GROUP;
	word->version = OCS_RAILS_AGENT_VERSION;
	word->rank = (uint32_t)gate->rank;
	word->ranks = (uint32_t)gate->ranks;
	word->group = group->name;
	word->count = group->count;
	memcpy(word + 1, group->members, group->count * sizeof(int32_t));
	while (send(gate->sock, word, bytes, MSG_NOSIGNAL) < 0)
		if (errno != EINTR) {
			result = ocs_gate_fail("the agent: %s", strerror(errno));
			break;
		}
	free(word);
	return result;
}

/* Waits for the agent's answer about group NUMBER; with LOCK held. */
static int group_wait(struct ocs_gate *gate, int number)
{
	struct gate_group *group = gate->groups[number];
	struct timespec limit;

	clock_gettime(CLOCK_MONOTONIC, &limit);
	limit.tv_sec += gate->limit_ms / 1000;
	while (group->state == GROUP_ASKED && !atomic_load(&gate->lost))
		if (pthread_cond_timedwait(&gate->answered, &gate->lock, &limit)) {
			ocs_gate_fail("the agent does not answer");
			return OCS_GATE_ERROR;
		}
	if (group->state == GROUP_KNOWN)
		return group->need == OCS_RAILS_FREE ? OCS_GATE_FREE : number;
	ocs_gate_fail("%s", group->state == GROUP_REFUSED ?
				    ocs_gate_reason(OCS_RAILS_ERROR_REFUSED) :
				    gate->why);
	return OCS_GATE_ERROR;
}

static int rank_compare(const void *a, const void *b)
{
	int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;

	return (x > y) - (x < y);
}

/* A copy of MEMBERS, ascending; NULL with the text where they are no group of this rank. */
static int32_t *members_sort(const struct ocs_gate *gate, const int32_t *members, size_t count)
{
	int32_t *sorted;
	bool mine = false;

	if (!count || count > OCS_RAILS_GROUP_RANKS) {
		ocs_gate_fail("a group has 1 to %d ranks, not %zu", OCS_RAILS_GROUP_RANKS, count);
		return NULL;
	}
	sorted = malloc(count * sizeof(*sorted));
	if (!sorted) {
		ocs_gate_fail("no memory");
		return NULL;
	}
	memcpy(sorted, members, count * sizeof(*sorted));
	qsort(sorted, count, sizeof(*sorted), rank_compare);
	for (size_t i = 0; i < count; i++) {
		if (sorted[i] < 0 || sorted[i] >= gate->ranks ||
		    (i && sorted[i] == sorted[i - 1])) {
			ocs_gate_fail("rank %d of a group is none, or there twice", sorted[i]);
			free(sorted);
			return NULL;
		}
		mine |= sorted[i] == gate->rank;
	}
	if (!mine) {
		ocs_gate_fail("rank %d is not in its group", gate->rank);
		free(sorted);
		return NULL;
	}
	return sorted;
}

static int group_make(struct ocs_gate *gate, int32_t *sorted, uint32_t count, uint32_t instance)
{
	int number = group_add(gate, sorted, count, instance);

	if (number < 0)
		return OCS_GATE_ERROR;
	if (group_ask(gate, gate->groups[number])) {
		gate->groups[number]->state = GROUP_REFUSED;
		return OCS_GATE_ERROR;
	}
	return group_wait(gate, number);
}

int ocs_gate_group(struct ocs_gate *gate, const int32_t *members, size_t count)
{
	int32_t *sorted = members_sort(gate, members, count);
	uint32_t instance = 0;
	int result;

	if (!sorted)
		return OCS_GATE_ERROR;
	if (count == 1) {
		free(sorted);
		return OCS_GATE_FREE;
	}
	pthread_mutex_lock(&gate->lock);
	while (ocs_gate_find(gate, ocs_rails_group_name(sorted, (uint32_t)count, instance)))
		instance++;
	if (atomic_load(&gate->lost)) {
		ocs_gate_fail("%s", gate->why);
		free(sorted);
		result = OCS_GATE_ERROR;
	} else
		result = group_make(gate, sorted, (uint32_t)count, instance);
	pthread_mutex_unlock(&gate->lock);
	return result;
}

int ocs_gate_pair(struct ocs_gate *gate, int from, int to, uint32_t tag)
{
	int32_t pair[2] = { from < to ? from : to, from < to ? to : from }, *sorted;
	uint32_t instance = PAIR | (from > to ? PAIR_DOWN : 0) | (tag & (PAIR_DOWN - 1));
	uint64_t name = ocs_rails_group_name(pair, 2, instance);
	struct gate_group *group;
	int result;

	if (from == to)
		return OCS_GATE_FREE;
	pthread_mutex_lock(&gate->lock);
	group = ocs_gate_find(gate, name);
	if (group && (group->members[0] != pair[0] || group->members[1] != pair[1])) {
		ocs_gate_fail("two groups have one name");
		result = OCS_GATE_ERROR;
	} else if (group)
		result = group_wait(gate, (int)gate->by_name[name_slot(gate, name)] - 1);
	else if (atomic_load(&gate->lost)) {
		ocs_gate_fail("%s", gate->why);
		result = OCS_GATE_ERROR;
	} else {
		sorted = members_sort(gate, pair, 2);
		result = sorted ? group_make(gate, sorted, 2, instance) : OCS_GATE_ERROR;
	}
	pthread_mutex_unlock(&gate->lock);
	return result;
}
