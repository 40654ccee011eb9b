/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* NCCL without GPUs: its functions record what they were called with; collectives put a kernel on their
 * stream, in a group at its end.  Functions without a gate add up their arguments. */

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "stand_in.h"

struct id {
	unsigned char byte[128];
};

struct comm {
	int number, rank, ranks, in_progress;
};

struct kernel {
	struct comm *comm;
	int peer;
	char what[32];
	void *stream;
};

int nccl_loads;
static int comms;
static _Thread_local int depth, kept;
static _Thread_local struct kernel *queue[64];

__attribute__((constructor)) static void load_count(void)
{
	nccl_loads++;
}

static void call_record(const char *what, int communicator)
{
	struct event event = { .kind = EVENT_CALL, .communicator = communicator };

	snprintf(event.what, sizeof(event.what), "%s", what);
	event_add(event);
}

static void kernel_run(void *data)
{
	struct kernel *kernel = data;
	struct event event = { .kind = EVENT_KERNEL,
			       .communicator = kernel->comm->number,
			       .peer = kernel->peer };

	memcpy(event.what, kernel->what, sizeof(event.what));
	if (!strcmp(kernel->what, "Recv"))
		receive_wait(kernel->peer);
	if (!strcmp(kernel->what, "AlltoAll"))
		usleep(60000); /* an end that is noted too early is noted before this */
	event_add(event);
	free(kernel);
}

static int kernel_launch(const char *what, struct comm *comm, int peer, void *stream)
{
	struct kernel *kernel = calloc(1, sizeof(*kernel));

	kernel->comm = comm;
	kernel->peer = peer;
	kernel->stream = stream;
	snprintf(kernel->what, sizeof(kernel->what), "%s", what);
	if (depth)
		queue[kept++] = kernel;
	else
		stream_launch(stream, kernel_run, kernel);
	return 0;
}

int ncclGroupStart(void);
int ncclGroupStart(void)
{
	depth++;
	return 0;
}

int ncclGroupEnd(void);
int ncclGroupEnd(void)
{
	if (--depth)
		return 0;
	for (int k = 0; k < kept; k++)
		stream_launch(queue[k]->stream, kernel_run, queue[k]);
	kept = 0;
	return 0;
}

int ncclGroupSimulateEnd(void *information);
int ncclGroupSimulateEnd(void *information)
{
	*(int *)information = kept;
	for (int k = 0; k < kept; k++)
		free(queue[k]);
	depth = kept = 0;
	return 0;
}

#define COLLECTIVE(name)                                                                    \
	int nccl##name(const void *send, void *receive, size_t count, int type, int a,      \
		       struct comm *comm, void *stream);                                    \
	int nccl##name(const void *send, void *receive, size_t count, int type, int a,      \
		       struct comm *comm, void *stream)                                     \
	{                                                                                   \
		if (send != (void *)0x10 || receive != (void *)0x20 || count != 1L << 40 || \
		    type != 7 || a != 2)                                                    \
			return 4;                                                           \
		return kernel_launch(#name, comm, -1, stream);                              \
	}
COLLECTIVE(ReduceScatter)
COLLECTIVE(Gather)
COLLECTIVE(Scatter)
COLLECTIVE(Broadcast)

#define PLAIN(name)                                                                                \
	int nccl##name(const void *send, void *receive, size_t count, int type, struct comm *comm, \
		       void *stream);                                                              \
	int nccl##name(const void *send, void *receive, size_t count, int type, struct comm *comm, \
		       void *stream)                                                               \
	{                                                                                          \
		if (send != (void *)0x10 || receive != (void *)0x20 || count != 1L << 40 ||        \
		    type != 7)                                                                     \
			return 4;                                                                  \
		return kernel_launch(#name, comm, -1, stream);                                     \
	}
PLAIN(AllGather)
PLAIN(AlltoAll)

#define IN_PLACE(name, peered, qualifier)                                                        \
	int nccl##name(qualifier void *buffer, size_t count, int type, int a, struct comm *comm, \
		       void *stream);                                                            \
	int nccl##name(qualifier void *buffer, size_t count, int type, int a, struct comm *comm, \
		       void *stream)                                                             \
	{                                                                                        \
		if (buffer != (void *)0x20 || count != 1L << 40 || type != 7)                    \
			return 4;                                                                \
		return kernel_launch(#name, comm, peered ? a : -1, stream);                      \
	}
IN_PLACE(Send, 1, const)
IN_PLACE(Recv, 1, )

/* NCCL's own ncclBcast calls its exported ncclBroadcast, which a preloaded library has, too. */
int ncclBcast(void *buffer, size_t count, int type, int root, struct comm *comm, void *stream);
int ncclBcast(void *buffer, size_t count, int type, int root, struct comm *comm, void *stream)
{
	if (buffer != (void *)0x20 || root != 2)
		return 4;
	return ncclBroadcast((void *)0x10, buffer, count, type, root, comm, stream);
}

int ncclAllReduce(const void *send, void *receive, size_t count, int type, int op,
		  struct comm *comm, void *stream);
int ncclAllReduce(const void *send, void *receive, size_t count, int type, int op,
		  struct comm *comm, void *stream)
{
	(void)send;
	(void)receive;
	(void)count;
	(void)type;
	(void)op;
	return kernel_launch("AllReduce", comm, -1, stream);
}

/* The shim has it, too, and calls the other. */
int pncclAllReduce(void);
int pncclAllReduce(void)
{
	return 4;
}

int ncclReduce(const void *send, void *receive, size_t count, int type, int op, int root,
	       struct comm *comm, void *stream);
int ncclReduce(const void *send, void *receive, size_t count, int type, int op, int root,
	       struct comm *comm, void *stream)
{
	if (send != (void *)0x10 || receive != (void *)0x20 || count != 1L << 40 || type != 7 ||
	    op != 2 || root != 3)
		return 4;
	return kernel_launch("Reduce", comm, -1, stream);
}

int ncclRedOpDestroy(int op, struct comm *comm);
int ncclRedOpDestroy(int op, struct comm *comm)
{
	(void)op;
	call_record(kept ? "RedOpDestroy after" : "RedOpDestroy", comm->number);
	return 0;
}

int ncclGetUniqueId(struct id *id);
int ncclGetUniqueId(struct id *id)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(1) };
	static uint64_t magic = 77;

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	memset(id, 0, sizeof(*id));
	magic++;
	memcpy(id->byte, &magic, sizeof(magic));
	memcpy(id->byte + 8, &address, sizeof(address));
	return 0;
}

static int comm_make(struct comm **comm, int ranks, int rank, const char *what)
{
	*comm = calloc(1, sizeof(**comm));
	(*comm)->number = comms++;
	(*comm)->rank = rank;
	(*comm)->ranks = ranks;
	call_record(what, (*comm)->number);
	return 0;
}

int ncclCommInitRank(struct comm **comm, int ranks, struct id id, int rank);
int ncclCommInitRank(struct comm **comm, int ranks, struct id id, int rank)
{
	(void)id;
	return comm_make(comm, ranks, rank, "CommInitRank");
}

/* CONFIG begins with how often it is in progress. */
int ncclCommInitRankConfig(struct comm **comm, int ranks, struct id id, int rank, int *config);
int ncclCommInitRankConfig(struct comm **comm, int ranks, struct id id, int rank, int *config)
{
	(void)id;
	comm_make(comm, ranks, rank, "CommInitRankConfig");
	(*comm)->in_progress = *config;
	return *config ? 7 : 0;
}

int ncclCommInitRankScalable(struct comm **comm, int ranks, int rank, int count, struct id *ids,
			     void *config);
int ncclCommInitRankScalable(struct comm **comm, int ranks, int rank, int count, struct id *ids,
			     void *config)
{
	(void)count;
	(void)ids;
	(void)config;
	return comm_make(comm, ranks, rank, "CommInitRankScalable");
}

int ncclCommInitAll(struct comm **comm, int count, const int *devices);
int ncclCommInitAll(struct comm **comm, int count, const int *devices)
{
	(void)devices;
	for (int k = 0; k < count; k++)
		comm_make(&comm[k], count, k, "CommInitAll");
	return 0;
}

int ncclCommSplit(struct comm *comm, int color, int key, struct comm **child, void *config);
int ncclCommSplit(struct comm *comm, int color, int key, struct comm **child, void *config)
{
	(void)comm;
	(void)key;
	(void)config;
	*child = NULL;
	return color < 0 ? 0 : comm_make(child, -1, -1, "CommSplit");
}

int ncclCommShrink(struct comm *comm, int *excluded, int count, struct comm **child, void *config,
		   int flags);
int ncclCommShrink(struct comm *comm, int *excluded, int count, struct comm **child, void *config,
		   int flags)
{
	(void)comm;
	(void)excluded;
	(void)count;
	(void)config;
	(void)flags;
	return comm_make(child, -1, -1, "CommShrink");
}

int ncclCommGetAsyncError(struct comm *comm, int *error);
int ncclCommGetAsyncError(struct comm *comm, int *error)
{
	*error = comm->in_progress > 0 ? 7 : 0;
	if (comm->in_progress > 0)
		comm->in_progress--;
	return 0;
}

#define ENDING(name)                              \
	int nccl##name(struct comm *comm);        \
	int nccl##name(struct comm *comm)         \
	{                                         \
		call_record(#name, comm->number); \
		return 0;                         \
	}
ENDING(CommFinalize)
ENDING(CommDestroy)
ENDING(CommAbort)

const char *ncclGetLastError(void *comm);
const char *ncclGetLastError(void *comm)
{
	(void)comm;
	return "NCCL's own text";
}

/* NCCL calls a profiler's init from its own code. */
int profiler_begin(int (*init)(void **, int *), int *mask);
int profiler_begin(int (*init)(void **, int *), int *mask)
{
	void *context;
	int result = init(&context, mask);

	call_record("profiled", 0); /* so that init is called, not jumped to */
	return result;
}

int profiler_begin_new(int (*init)(void **, uint64_t, int *, const char *, int, int, int, void *),
		       void **context, int *mask);
int profiler_begin_new(int (*init)(void **, uint64_t, int *, const char *, int, int, int, void *),
		       void **context, int *mask)
{
	int result = init(context, 1, mask, "held", 4, 4, 0, NULL);

	call_record("profiled", 0);
	return result;
}

/* What the shim forwards: eleven arguments, more than registers hold, each with a weight of its own. */
#define OCS_NCCL_SYMBOL(name, refuse)                                                             \
	long name(long a, long b, long c, long d, long e, long f, long g, long h, long i, long j, \
		  long k);                                                                        \
	long name(long a, long b, long c, long d, long e, long f, long g, long h, long i, long j, \
		  long k)                                                                         \
	{                                                                                         \
		return a + 2 * b + 3 * c + 5 * d + 7 * e + 11 * f + 13 * g + 17 * h + 19 * i +    \
		       23 * j + 29 * k + (long)sizeof(#name);                                     \
	}
#include "nccl_symbols.h"
