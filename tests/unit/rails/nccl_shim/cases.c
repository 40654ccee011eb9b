/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* A program that uses NCCL and knows nothing of gates, as a process for each rank, and what the record
 * must say afterwards.  It is run with the shim preloaded: `cases NAME`. */

#include <dlfcn.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "record.h"

#define WANT(condition)                                  \
	do {                                             \
		if (!(condition))                        \
			want_fail(__LINE__, #condition); \
	} while (0)
#define SYSTEM_ERROR 2
#define INVALID_USAGE 5

struct id {
	unsigned char byte[128];
};

typedef void *comm_t;
int ncclGetUniqueId(struct id *id);
int ncclCommInitRank(comm_t *comm, int ranks, struct id id, int rank);
int ncclCommInitRankConfig(comm_t *comm, int ranks, struct id id, int rank, int *config);
int ncclCommInitAll(comm_t *comm, int count, const int *devices);
int ncclCommSplit(comm_t comm, int color, int key, comm_t *child, void *config);
int ncclCommShrink(comm_t comm, int *excluded, int count, comm_t *child, void *config, int flags);
int ncclCommDestroy(comm_t comm);
int ncclCommAbort(comm_t comm);
int ncclCommGetAsyncError(comm_t comm, int *error);
const char *ncclGetLastError(comm_t comm);
int ncclGroupStart(void);
int ncclGroupEnd(void);
int ncclGroupSimulateEnd(int *information);
int ncclRedOpDestroy(int op, comm_t comm);
int ncclDevCommCreate(comm_t comm, void *requirements, void *made);
int ncclPutSignal(const void *a, size_t b, int c, int d, void *e, size_t f, int g, int h,
		  unsigned i, comm_t comm, void *stream);
typedef int collective_t(const void *send, void *receive, size_t count, int type, int a,
			 comm_t comm, void *stream);
collective_t ncclAllReduce, pncclAllReduce, ncclReduceScatter, ncclBroadcast, ncclGather,
	ncclScatter;
typedef int plain_t(const void *send, void *receive, size_t count, int type, comm_t comm,
		    void *stream);
plain_t ncclAllGather, ncclAlltoAll;
typedef int in_place_t(void *buffer, size_t count, int type, int a, comm_t comm, void *stream);
in_place_t ncclSend, ncclRecv, ncclBcast;
int ncclReduce(const void *send, void *receive, size_t count, int type, int op, int root,
	       comm_t comm, void *stream);

static void want_fail(int line, const char *condition)
{
	printf("# rank %d, line %d: %s\n", own_rank, line, condition);
	fflush(stdout);
	_exit(1);
}

static void mark_wait(int mark, int value)
{
	while (atomic_load(&record->marks[mark]) < value)
		sched_yield();
}

static void mark_add(int mark)
{
	atomic_fetch_add(&record->marks[mark], 1);
}

/* What a job's launcher does: rank 0 makes an id, all get it. */
static struct id *shared_id;

static struct id id_get(int mark)
{
	if (own_rank == 0) {
		WANT(!ncclGetUniqueId(shared_id));
		mark_add(mark);
	}
	mark_wait(mark, 1);
	return *shared_id;
}

static comm_t world_make(void)
{
	comm_t comm = NULL;

	WANT(!ncclCommInitRank(&comm, all_ranks, id_get(0), own_rank));
	WANT(comm);
	return comm;
}

static int reduce_all(comm_t comm, void *stream)
{
	return ncclAllReduce((void *)0x10, (void *)0x20, 1L << 40, 7, 2, comm, stream);
}

/* A kernel of the program itself, before NCCL's. */
static void kernel_other(void *mark)
{
	struct event event = {
		.kind = EVENT_KERNEL, .communicator = -9, .group = -9, .peer = -9, .what = "other"
	};

	if (mark)
		mark_wait(*(int *)mark, 1);
	event_add(event);
}

static struct event like(enum event_kind kind, int rank, int group, int idx, const char *what)
{
	struct event event = event_any(kind);

	event.rank = rank;
	event.group = group;
	if (idx >= 0)
		event.idx = (uint64_t)idx;
	snprintf(event.what, sizeof(event.what), "%s", what);
	return event;
}

/* Operation IDX of GROUP and the K-th kernel WHAT of each of COUNT members on its first communicator: all
 * have arrived before the grant, no kernel runs before it, and each rank leaves after its own. */
static void order_check(int group, int idx, const int *members, int count, const char *what, int k)
{
	int grant = event_find(like(EVENT_GRANT, -1, group, idx, ""), 0);

	WANT(group >= 0 && grant >= 0);
	for (int i = 0; i < count; i++) {
		int arrive = event_find(like(EVENT_ARRIVE, members[i], group, idx, ""), 0);
		int kernel = event_find(like(EVENT_KERNEL, members[i], -1, -1, what), k);
		int leave = event_find(like(EVENT_LEAVE, members[i], group, idx, ""), 0);

		WANT(arrive >= 0 && arrive < grant);
		WANT(kernel > grant);
		WANT(leave > kernel);
	}
}

static const int four[] = { 0, 1, 2, 3 };

/* Rank 3 comes late: nothing of the others runs before.  All kinds of collectives. */
static void rank_order(void)
{
	comm_t comm = world_make();
	void *stream = stream_make();
	static int late = 1;

	stream_launch(stream, kernel_other, own_rank == 3 ? &late : NULL);
	WANT(!reduce_all(comm, stream));
	if (own_rank == 0) {
		/* The stream waits for its grant; that takes a moment, and nothing else may happen. */
		while (!stream_held(stream))
			sched_yield();
		mark_add(1);
	}
	WANT(!ncclReduceScatter((void *)0x10, (void *)0x20, 1L << 40, 7, 2, comm, stream));
	WANT(!ncclBroadcast((void *)0x10, (void *)0x20, 1L << 40, 7, 2, comm, stream));
	WANT(!ncclGather((void *)0x10, (void *)0x20, 1L << 40, 7, 2, comm, stream));
	WANT(!ncclScatter((void *)0x10, (void *)0x20, 1L << 40, 7, 2, comm, stream));
	WANT(!ncclAllGather((void *)0x10, (void *)0x20, 1L << 40, 7, comm, stream));
	WANT(!ncclAlltoAll((void *)0x10, (void *)0x20, 1L << 40, 7, comm, stream));
	WANT(!ncclReduce((void *)0x10, (void *)0x20, 1L << 40, 7, 2, 3, comm, stream));
	WANT(!ncclBcast((void *)0x20, 1L << 40, 7, 2, comm, stream));
	WANT(!pncclAllReduce((void *)0x10, (void *)0x20, 1L << 40, 7, 2, comm, stream));
	stream_wait(stream);
}

static void check_order(void)
{
	static const char *const what[] = { "AllReduce", "ReduceScatter", "Broadcast", "Gather",
					    "Scatter",	 "AllGather",	  "AlltoAll",  "Reduce",
					    "Broadcast", "AllReduce" };
	int group = group_find(four, 4);
	int held = event_find(like(EVENT_KERNEL, 3, -1, -1, "other"), 0);

	for (int k = 0; k < 10; k++)
		order_check(group, k + 1, four, 4, what[k], k == 8 || k == 9);
	/* The arrival is the stream's: rank 3 called long before, behind a kernel of its own. */
	WANT(event_find(like(EVENT_ARRIVE, 3, group, 1, ""), 0) > held);
	WANT(event_find(like(EVENT_KERNEL, 0, -1, -1, "AllReduce"), 0) > held);
	/* The communicator was begun as operation 0, and ncclBcast's own ncclBroadcast is none. */
	WANT(event_count(like(EVENT_GRANT, -1, -1, -1, "")) == 11);
	WANT(event_find(like(EVENT_CALL, 2, -1, -1, "CommInitRank"), 0) >
	     event_find(like(EVENT_GRANT, -1, group, 0, ""), 0));
}

/* A pipeline, and rings of its stages, on streams of their own; the halves are parts of the world. */
static void rank_groups(void)
{
	comm_t comm = world_make(), half = NULL, none = NULL, shrunk = NULL;
	void *one = stream_make(), *two = stream_make();
	int excluded[] = { 0 }, peer = own_rank ^ 1, count = 0;

	/* Keys turn the order round. */
	WANT(!ncclCommSplit(comm, own_rank & 1, -own_rank, &half, NULL));
	WANT(!ncclCommSplit(comm, own_rank ? -1 : 5, 0, &none, NULL));
	WANT(half && !none == (own_rank != 0));
	if (own_rank)
		WANT(!ncclCommShrink(comm, excluded, 1, &shrunk, NULL, 0));
	WANT(!reduce_all(half, one));
	WANT(!ncclGroupStart());
	WANT(!ncclGroupStart());
	WANT(!ncclSend((void *)0x20, 1L << 40, 7, peer, comm, one));
	WANT(!ncclRecv((void *)0x20, 1L << 40, 7, peer, comm, two));
	WANT(!ncclSend((void *)0x20, 1L << 40, 7, own_rank, comm, two));
	WANT(!ncclGroupEnd());
	WANT(!reduce_all(half, two));
	WANT(!reduce_all(half, two));
	WANT(!ncclRedOpDestroy(9, comm));
	WANT(!ncclGroupEnd());
	WANT(!ncclGroupStart());
	WANT(!reduce_all(comm, one));
	WANT(!ncclGroupSimulateEnd(&count));
	WANT(count == 1);
	stream_wait(two);
	if (own_rank)
		WANT(!reduce_all(shrunk, one));
	stream_wait(one);
	stream_wait(two);
}

static void check_groups(void)
{
	static const int even[] = { 0, 2 }, odd[] = { 1, 3 }, last[] = { 1, 2, 3 };

	/* Operation 0 is the making, 1 the first collective, 2 both of the group. */
	for (int k = 1; k <= 2; k++) {
		order_check(group_find(even, 2), k, even, 2, "AllReduce", k - 1);
		order_check(group_find(odd, 2), k, odd, 2, "AllReduce", k - 1);
	}
	WANT(event_find(like(EVENT_GRANT, -1, group_find(odd, 2), 3, ""), 0) < 0);
	order_check(group_find(last, 3), 1, last, 3, "AllReduce", 3);
	for (int from = 0; from < 4; from++) {
		int to = from ^ 1, pair = pair_find(from, to);
		int grant = event_find(like(EVENT_GRANT, -1, pair, 0, ""), 0);

		WANT(pair >= 0 && grant >= 0);
		WANT(event_find(like(EVENT_KERNEL, from, -1, -1, "Send"), 0) > grant);
		WANT(event_find(like(EVENT_KERNEL, to, -1, -1, "Recv"), 0) > grant);
		WANT(event_find(like(EVENT_LEAVE, from, pair, 0, ""), 0) > grant);
		/* All of a group go after all of its grants. */
		WANT(event_find(like(EVENT_KERNEL, to, -1, -1, "Send"), 0) > grant);
		/* Nothing to itself, and what was only simulated was no operation. */
		WANT(pair_find(from, from) < 0);
		/* An operator lives until those that use it are launched. */
		WANT(event_count(like(EVENT_CALL, from, -1, -1, "RedOpDestroy after")) == 1);
	}
	WANT(event_count(like(EVENT_GRANT, -1, group_find(four, 4), -1, "")) == 1);
}

/* Rank 0 sends twice in one launch, rank 1 receives one by one. */
static void rank_uneven(void)
{
	comm_t comm = world_make();
	void *stream = stream_make();

	if (own_rank == 0)
		WANT(!ncclGroupStart());
	for (int k = 0; k < 3; k++)
		WANT(!(own_rank ? ncclRecv : ncclSend)((void *)0x20, 1L << 40, 7, 1 - own_rank,
						       comm, stream));
	if (own_rank == 0)
		WANT(!ncclGroupEnd());
	stream_wait(stream);
	mark_add(1);
	/* The end of an operation may be noted a moment after its stream is empty. */
	while (event_count(like(EVENT_LEAVE, -1, pair_find(0, 1), -1, "")) < 6)
		sched_yield();
}

static void check_uneven(void)
{
	for (int k = 0; k < 3; k++)
		WANT(event_find(like(EVENT_KERNEL, 1, -1, -1, "Recv"), k) >
		     event_find(like(EVENT_GRANT, -1, pair_find(0, 1), k, ""), 0));
}

/* Communicators go before their operations are over; one is within a node, one within a process. */
static void rank_early(void)
{
	comm_t comm = world_make(), node = NULL, own[2], slow = NULL;
	void *stream = stream_make(), *other = stream_make();
	int late = 1, progress = 3;

	WANT(!ncclCommSplit(comm, own_rank / 2, 0, &node, NULL));
	WANT(!ncclCommInitAll(own, 2, NULL));
	WANT(!reduce_all(node, other));
	WANT(!reduce_all(own[1], other));
	stream_wait(other);
	stream_launch(stream, kernel_other, own_rank == 3 ? &late : NULL);
	for (int k = 0; k < 20; k++)
		WANT(!reduce_all(comm, stream));
	WANT(!ncclCommDestroy(comm));
	mark_add(1);
	stream_wait(stream);
	mark_add(2);
	mark_wait(2, all_ranks);
	WANT(!ncclCommInitRankConfig(&slow, all_ranks, id_get(3), own_rank, &progress));
	WANT(!reduce_all(slow, stream));
	stream_wait(stream);
}

static void check_early(void)
{
	int group = group_find(four, 4);

	for (int k = 0; k < 20; k++)
		order_check(group, k + 1, four, 4, "AllReduce", k + 2);
	order_check(group, 22, four, 4, "AllReduce", 22);
	WANT(event_count(like(EVENT_CALL, -1, -1, -1, "CommDestroy")) == 4);
}

static void failure_wait(comm_t comm)
{
	int error = 0;

	while (!error)
		WANT(!ncclCommGetAsyncError(comm, &error));
	WANT(error == SYSTEM_ERROR);
}

/* The agent refuses what a stream has reached: nothing is sent, and who asks is told. */
static void rank_refused(void)
{
	comm_t comm = world_make();
	void *stream = stream_make();
	int error = 1;

	WANT(!ncclCommGetAsyncError(comm, &error) && !error);
	WANT(!reduce_all(comm, stream));
	WANT(!reduce_all(comm, stream));
	failure_wait(comm);
	WANT(strstr(ncclGetLastError(comm), "refused"));
	WANT(reduce_all(comm, stream) == SYSTEM_ERROR);
	WANT(stream_held(stream));
	WANT(!ncclCommAbort(comm));
	WANT(stream_held(stream));
}

static void check_refused(void)
{
	WANT(event_count(like(EVENT_KERNEL, -1, -1, -1, "AllReduce")) == 4);
	WANT(event_count(like(EVENT_CALL, -1, -1, -1, "CommAbort")) == 0);
}

/* The agent is gone before a call, in a group and alone. */
static void rank_lost(void)
{
	comm_t comm = world_make();
	void *stream = stream_make();

	mark_add(1);
	mark_wait(1, all_ranks);
	record->lost = 1;
	WANT(!ncclGroupStart());
	WANT(!reduce_all(comm, stream));
	WANT(!ncclSend((void *)0x20, 1L << 40, 7, (own_rank + 1) % 4, comm, stream));
	WANT(ncclGroupEnd() == SYSTEM_ERROR);
	WANT(strstr(ncclGetLastError(comm), "the agent is gone"));
	WANT(reduce_all(comm, stream) == SYSTEM_ERROR);
	stream_wait(stream);
	failure_wait(comm);
	WANT(!ncclCommAbort(comm));
}

static void check_lost(void)
{
	WANT(event_count(like(EVENT_KERNEL, -1, -1, -1, "")) == 0);
	WANT(event_count(like(EVENT_CALL, -1, -1, -1, "CommAbort")) == 4);
}

/* What cannot be gated is refused, each by a line. */
static void rank_refusals(void)
{
	comm_t comm = world_make(), twice = NULL;
	void *stream = stream_make();

	WANT(ncclDevCommCreate(comm, NULL, NULL) == INVALID_USAGE);
	WANT(strstr(ncclGetLastError(comm), "ncclDevCommCreate"));
	WANT(ncclPutSignal(NULL, 1, 2, 3, NULL, 5, 6, 7, 8, comm, stream) == INVALID_USAGE);
	WANT(strstr(ncclGetLastError(comm), "ncclPutSignal"));
	/* Two ranks of one communicator in one task. */
	if (own_rank == 0) {
		pid_t child = fork();

		if (!child) {
			WANT(ncclCommInitRank(&twice, 2, *shared_id, 1) == SYSTEM_ERROR);
			_exit(0);
		}
		WANT(ncclCommInitRank(&twice, 2, *shared_id, 0) == SYSTEM_ERROR);
		WANT(strstr(ncclGetLastError(comm), "several"));
		waitpid(child, NULL, 0);
	}
	stream_capture(stream, true);
	WANT(reduce_all(comm, stream) == SYSTEM_ERROR);
	WANT(strstr(ncclGetLastError(comm), "graph"));
	stream_capture(stream, false);
	stream_wait(stream);
}

static void check_refusals(void)
{
	WANT(event_count(like(EVENT_KERNEL, -1, -1, -1, "")) == 0);
	WANT(event_count(like(EVENT_CALL, -1, -1, -1, "ncclDevCommCreate")) == 0);
}

/* Without a gate everything goes through as it is. */
static void rank_plain(void)
{
	comm_t comm = NULL;
	void *stream = stream_make();
	struct id id;

	WANT(!ncclGetUniqueId(&id));
	for (int k = 40; k < 128; k++)
		WANT(!id.byte[k]);
	WANT(!ncclCommInitRank(&comm, 4, id, 2));
	WANT(!ncclGroupStart());
	WANT(!reduce_all(comm, stream));
	WANT(!ncclGroupEnd());
	WANT(!reduce_all(comm, stream));
	/* The stand-in's sum of arguments. */
	WANT(ncclDevCommCreate(comm, NULL, NULL) != INVALID_USAGE);
	stream_wait(stream);
	WANT(!strcmp(ncclGetLastError(comm), "NCCL's own text"));
}

static void check_plain(void)
{
	WANT(event_count(like(EVENT_KERNEL, -1, -1, -1, "AllReduce")) == 2);
	WANT(event_count(like(EVENT_REACHED, -1, -1, -1, "")) == 0);
}

static const struct {
	const char *name;
	int ranks, node, refuse_idx;
	void (*rank)(void), (*check)(void);
} cases[] = {
	{ "order", 4, 1, -1, rank_order, check_order },
	{ "groups", 4, 1, -1, rank_groups, check_groups },
	{ "uneven", 2, 1, -1, rank_uneven, check_uneven },
	{ "early", 4, 2, -1, rank_early, check_early },
	{ "refused", 4, 1, 2, rank_refused, check_refused },
	{ "lost", 4, 1, -1, rank_lost, check_lost },
	{ "refusals", 4, 1, -1, rank_refusals, check_refusals },
	{ "plain", 0, 1, -1, rank_plain, check_plain },
};

/* Waits until every lease has ended, so that the record is whole. */
static void leases_wait(void)
{
	for (int k = 0; k < 100000; k++) {
		int open = 0;

		for (int at = 0; at < record->events; at++) {
			struct event end = record->event[at];

			if (end.kind != EVENT_ARRIVE ||
			    !record->group[end.group].granted[end.idx] || end.rank != own_rank)
				continue;
			end.kind = EVENT_LEAVE;
			end.communicator = end.peer = -1;
			open += event_find(end, 0) < 0;
		}
		/* An operation that began a communicator has no stream. */
		if (!open)
			return;
		usleep(1000);
	}
	WANT(!"a lease stayed open");
}

static int case_run(size_t k)
{
	int ranks = cases[k].ranks ? cases[k].ranks : 1, bad = 0;

	record->refuse_group = cases[k].refuse_idx < 0 ? -1 : 0;
	record->refuse_idx = cases[k].refuse_idx;
	nodes_of = cases[k].node;
	for (int rank = 0; rank < ranks; rank++) {
		if (fork())
			continue;
		own_rank = rank;
		all_ranks = cases[k].ranks;
		alarm(120);
		cases[k].rank();
		if (cases[k].refuse_idx < 0)
			leases_wait();
		mark_add(7); /* the others may still ask this one who is in a communicator */
		mark_wait(7, ranks);
		_exit(0);
	}
	for (int rank = 0; rank < ranks; rank++) {
		int status;

		wait(&status);
		bad += status != 0;
		/* What waits for one that is gone waits for ever. */
		if (bad) {
			record_print();
			fflush(stdout);
			kill(0, SIGTERM);
		}
	}
	cases[k].check();
	return 0;
}

int main(int argc, char **argv)
{
	size_t size = sizeof(*record) + sizeof(*shared_id);
	char *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (memory == MAP_FAILED || argc != 2)
		return 2;
	setpgid(0, 0);
	record = (struct record *)(void *)memory;
	shared_id = (struct id *)(void *)(memory + sizeof(*record));
	for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++)
		if (!strcmp(argv[1], cases[k].name))
			return case_run(k);
	return 2;
}
