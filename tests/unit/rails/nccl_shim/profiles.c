/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* What NCCL calls of a profiler, by two ranks or four: `profiles NAME LIBRARY`.  With CHAINED this library is
 * the next profiler, too. */

#include <dlfcn.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "record.h"

/* The interface as NCCL has it, version 5. */
typedef struct {
	uint64_t type;
	void *parentObj;
	int rank;
	union {
		struct {
			const char *func;
			size_t count;
			const char *datatype;
			void *stream;
			bool graphCaptured;
		} p2pApi;
		struct {
			void *stream;
		} kernelLaunch;
		char room[120];
	};
} event_t;

typedef struct {
	const char *name;
	int (*init)(void **context, uint64_t commId, int *eActivationMask, const char *commName,
		    int nNodes, int nranks, int rank, void (*logfn)(void));
	int (*startEvent)(void *context, void **eHandle, event_t *eDescr);
	int (*stopEvent)(void *eHandle);
	int (*recordEventState)(void *eHandle, int eState, void *eStateArgs);
	int (*finalize)(void *context);
} profiler_t;

/* The program has them, also where the library is this file. */
int chained_starts, chained_stops, chained_handle;

static int next_init(void **context, uint64_t id, int *mask, const char *name, int nodes, int ranks,
		     int rank, void (*log)(void))
{
	(void)log;
	*context = &chained_starts;
	*mask = 1 << 9 | (getenv("CHAINED_LAUNCHES") ? 1 << 11 : 0);
	return id != 42 || strcmp(name, "pg") || nodes != all_ranks || ranks != all_ranks ||
	       rank != own_rank;
}

static int next_start(void *context, void **handle, event_t *event)
{
	if (context != &chained_starts || (event->type != 1 << 9 && event->type != 1 << 11))
		abort();
	chained_starts++;
	*handle = &chained_handle;
	return 0;
}

static int next_stop(void *handle)
{
	if (handle != &chained_handle)
		abort();
	chained_stops++;
	return 0;
}

static int next_record(void *handle, int state, void *arguments)
{
	(void)state;
	(void)arguments;
	return handle != &chained_handle;
}

static int next_finalize(void *context)
{
	return context != &chained_starts;
}

const profiler_t ncclProfiler_v5 = { "next",	next_init,   next_start,
				     next_stop, next_record, next_finalize };

static void kernel_run(void *stream)
{
	(void)stream;
	event_add((struct event){ .kind = EVENT_KERNEL, .what = "kernel" });
}

/* As ncclLaunchKernel: an event around it, on the launching thread. */
static int launch_make(const profiler_t *profiler, void *context, void *stream)
{
	event_t event = { .type = 1 << 11, .kernelLaunch.stream = stream };
	void *handle = NULL;
	int result = profiler->startEvent(context, &handle, &event);

	stream_launch(stream, kernel_run, stream);
	if (!handle)
		return 1;
	return result || profiler->stopEvent(handle);
}

static int rank_run(const profiler_t *profiler, const char *name, bool chained)
{
	void *context = NULL, *stream = stream_make(), *handle = NULL;
	event_t event = { .type = 1 << 9 };
	int mask = 0, ranks = strcmp(name, "part") ? all_ranks : all_ranks - 1;

	if (profiler->init(&context, 42, &mask, "pg", ranks, ranks, own_rank, NULL))
		return 1;
	if (mask != (1 << 11 | 1 << 10 | (chained ? 1 << 9 : 0)) && !getenv("CHAINED_LAUNCHES"))
		return 2;
	if (profiler->startEvent(context, &handle, &event) || !handle != !chained)
		return 3;
	if (handle && (profiler->recordEventState(handle, 3, NULL) || profiler->stopEvent(handle)))
		return 4;
	event = (event_t){ .type = 1 << 10, .p2pApi.stream = stream };
	if (!strcmp(name, "send"))
		profiler->startEvent(context, &handle, &event);
	stream_capture(stream, !strcmp(name, "graph"));
	for (int k = 0; k < 5; k++)
		if (launch_make(profiler, context, stream))
			return 5;
	stream_wait(stream);
	if (chained && chained_starts != (getenv("CHAINED_LAUNCHES") ? 6 : 1))
		return 6;
	return chained_starts != chained_stops || profiler->finalize(context) ? 7 : 0;
}

static int record_check(void)
{
	struct event grant = event_any(EVENT_GRANT), kernel = event_any(EVENT_KERNEL);

	for (int k = 0; k < 5; k++) {
		grant.idx = (uint64_t)k;
		for (kernel.rank = 0; kernel.rank < all_ranks; kernel.rank++)
			if (event_find(grant, 0) < 0 ||
			    event_find(kernel, k) < event_find(grant, 0))
				return 1;
	}
	return 0;
}

/* One of before 2.28 in the program itself, then the one that the preloaded library holds: what LIBRARY wants to know of
 * them.  PATH leads to the second. */
static int held_check(void *library, const char *path)
{
	const profiler_t *now = dlsym(library, "ncclProfiler_v5");
	const struct {
		const char *name;
		int (*init)(void **, int *);
	} *old = dlsym(library, "ncclProfiler_v4");
	int (*version)(int *), (*begin)(int (*)(void **, int *), int *),
		(*begin_new)(void *, void **, int *);
	int mask = 1, number;
	void *context, *held = dlopen(path, RTLD_NOW | RTLD_LOCAL);

	own_rank = 0;
	all_ranks = 4;
	for (int again = 0; again < 2; again++)
		if (!old || old->init(&context, &mask) || mask)
			return 1;
	version = held ? (int (*)(int *))dlsym(held, "ncclGetVersion") : NULL;
	begin = held ? (int (*)(int (*)(void **, int *), int *))dlsym(held, "profiler_begin") :
		       NULL;
	begin_new =
		held ? (int (*)(void *, void **, int *))dlsym(held, "profiler_begin_new") : NULL;
	if (!version || !begin || !begin_new)
		return 2;
	/* Before the program has called it nothing is known of it. */
	version(&number);
	mask = 1;
	if (begin(old->init, &mask) || mask)
		return 3;
	mask = 1;
	if (begin_new((void *)now->init, &context, &mask) || mask)
		return 4;
	return now->finalize(context) ? 5 : 0;
}

int main(int argc, char **argv)
{
	void *library = argc >= 3 ? dlopen(argv[2], RTLD_NOW | RTLD_LOCAL) : NULL;
	const profiler_t *profiler = library ? dlsym(library, "ncclProfiler_v5") : NULL;
	int bad = 0, ranks = argc >= 3 && !strcmp(argv[1], "pair") ? 2 : 4;

	record = mmap(NULL, sizeof(*record), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	if (!profiler || record == MAP_FAILED) {
		printf("# %s\n", dlerror());
		return 2;
	}
	nodes_of = 1;
	if (argc == 4)
		return held_check(library, argv[3]);
	record->refuse_group = strcmp(argv[1], "refused") ? -1 : 0;
	record->refuse_idx = 2;
	for (int rank = 0; rank < ranks; rank++) {
		int status;

		if (fork())
			continue;
		own_rank = rank;
		all_ranks = ranks;
		alarm(120);
		status = rank_run(profiler, argv[1], getenv("OCS_RAILS_NCCL_PROFILER") != NULL);
		if (status)
			printf("# rank %d: %d\n", rank, status);
		fflush(stdout);
		_exit(status);
	}
	all_ranks = ranks;
	for (int rank = 0; rank < ranks; rank++) {
		int status;

		wait(&status);
		/* Those that must not go on end by SIGABRT. */
		bad += WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT ? 100 : status != 0;
	}
	if (bad == 100 * ranks) {
		struct event kernel = event_any(EVENT_KERNEL);

		printf("ended, %d kernels\n", event_count(kernel));
		return 0;
	}
	return bad || record_check();
}
