/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* The gates as a profiler of NCCL (2.28 on), for programs that have NCCL linked in: NCCL says on the thread
 * that launches when a kernel comes next on a stream, and when it is there.  The launch is an operation of
 * the communicator's ranks.
 *
 * NCCL says neither who is in a communicator nor, before the launch, to whom it sends, and goes on whatever
 * a profiler returns.  So communicators have to hold all tasks of the job or lie within a node, sends need
 * one of two tasks, and a task that cannot be gated is ended: it would send in the dark. */

#include <dlfcn.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/rails/shim/gate.h"
#include "src/rails/shim/stream.h"

/* Of NCCL's interface of profilers, version 5: what is used of it. */
enum {
	EVENT_COLLECTIVE_CALL = 1 << 9,
	EVENT_SEND_CALL = 1 << 10,
	EVENT_LAUNCH = 1 << 11,
};

struct profiler_event {
	uint64_t type;
	void *parent;
	int rank;
	union {
		struct {
			void *stream;
		} launch;
		unsigned char other[96];
	};
};

struct profiler {
	const char *name;
	int (*init)(void **context, uint64_t id, int *mask, const char *name, int nodes, int ranks,
		    int rank, void *log);
	int (*start)(void *context, void **handle, struct profiler_event *event);
	int (*stop)(void *handle);
	int (*record)(void *handle, int state, void *arguments);
	int (*finalize)(void *context);
};

/* Versions 1 to 4; the arguments of init behind these differ. */
struct profiler_old {
	const char *name;
	int (*init)(void **context, int *mask);
	int (*start)(void *context, void **handle, void *event);
	int (*stop)(void *handle);
	int (*record)(void *handle, int state, void *arguments);
	int (*finalize)(void *context);
};

/* A communicator. */
struct context {
	void *chained; /* its context at the next profiler */
	int chained_mask, ranks, group;
};

/* The handle of a launch that the next profiler does not want to know of. */
static char launch_handle;
/* What this thread launches: NCCL starts and stops one launch after the other. */
static _Thread_local struct ocs_stream_ticket *launch_ticket;
static _Thread_local void *launch_at;
static const struct profiler *chained;
static void *chained_library;

__attribute__((noreturn, format(printf, 1, 2))) static void task_end(const char *format, ...)
{
	char text[OCS_STREAM_WHY + 80];
	va_list list;

	va_start(list, format);
	vsnprintf(text, sizeof(text), format, list);
	va_end(list);
	fprintf(stderr,
		"slurm-ocs: NCCL on photonic rails: %s; this task ends, since it would send "
		"without circuits\n",
		text);
	fflush(NULL);
	abort();
}

/* The profiler that the user wants, behind this one. */
static void chained_load(void)
{
	const char *path = getenv("OCS_RAILS_NCCL_PROFILER");
	char name[4096];

	if (chained_library || !path || !path[0])
		return;
	chained_library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!chained_library) {
		snprintf(name, sizeof(name), "libnccl-profiler-%s.so", path);
		chained_library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
	}
	if (chained_library)
		chained = dlsym(chained_library, "ncclProfiler_v5");
	if (!chained)
		fprintf(stderr,
			"slurm-ocs: NCCL on photonic rails: OCS_RAILS_NCCL_PROFILER=%s: %s\n", path,
			chained_library ? "it has no ncclProfiler_v5" : dlerror());
}

/* Whether CALLER, an address in the NCCL that calls, is in the one whose calls libocs-rails-nccl.so holds. */
static bool shim_holds(void *caller)
{
	const void *(*real)(void) =
		(const void *(*)(void))dlsym(RTLD_DEFAULT, "ocs_rails_nccl_real");
	Dl_info here, there;

	return real && real() && dladdr(real(), &there) && dladdr(caller, &here) &&
	       here.dli_fbase == there.dli_fbase;
}

static int group_find(struct ocs_gate *gate, int nodes, int ranks)
{
	int32_t *members;
	int group;

	if (nodes == 1 || ranks == 1)
		return OCS_GATE_FREE;
	if (ranks != ocs_gate_ranks(gate))
		task_end("a communicator of %d of %d tasks: a profiler is not told which; preload "
			 "libocs-rails-nccl.so instead",
			 ranks, ocs_gate_ranks(gate));
	members = calloc((size_t)ranks, sizeof(*members));
	if (!members)
		task_end("no memory");
	for (int k = 0; k < ranks; k++)
		members[k] = k;
	group = ocs_gate_group(gate, members, (size_t)ranks);
	free(members);
	if (group == OCS_GATE_ERROR)
		task_end("a communicator of all tasks: %s", ocs_gate_error());
	return group;
}

static void refusal_end(void)
{
	task_end("the agent of this node has refused an operation that a stream had reached");
}

static int profiler_init(void **context, uint64_t id, int *mask, const char *name, int nodes,
			 int ranks, int rank, void *log)
{
	struct ocs_gate *gate = shim_holds(__builtin_return_address(0)) ? NULL : ocs_gate_get();
	struct context *made = calloc(1, sizeof(*made));

	if (!made)
		task_end("no memory");
	chained_load();
	ocs_stream_refused_call(refusal_end);
	made->ranks = ranks;
	made->group = gate ? group_find(gate, nodes, ranks) : OCS_GATE_FREE;
	if (chained) {
		int chained_mask = 0;

		if (!chained->init(&made->chained, id, &chained_mask, name, nodes, ranks, rank,
				   log))
			made->chained_mask = chained_mask;
	}
	*mask = made->chained_mask;
	/* NCCL keeps one mask for all communicators: that of the last. */
	if (gate)
		*mask |= EVENT_LAUNCH | EVENT_SEND_CALL;
	*context = made;
	return 0;
}

static void launch_begin(const struct context *context, void *stream)
{
	struct ocs_stream_operation operation = { context->group, false };
	char why[OCS_STREAM_WHY];

	launch_ticket = ocs_stream_before(ocs_gate_get(), &operation, 1, &stream, 1, why);
	if (!launch_ticket)
		task_end("%s", why);
}

static int profiler_start(void *data, void **handle, struct profiler_event *event)
{
	struct context *context = data;
	int result = 0;

	*handle = NULL;
	if (event->type == EVENT_SEND_CALL && context->group >= 0 && context->ranks != 2)
		task_end("a send or receive in a communicator of %d tasks: a profiler is not told "
			 "to whom; preload libocs-rails-nccl.so instead",
			 context->ranks);
	if (chained && (context->chained_mask & (int)event->type))
		result = chained->start(context->chained, handle, event);
	if (event->type != EVENT_LAUNCH || context->group < 0)
		return result;
	launch_begin(context, event->launch.stream);
	if (!*handle)
		*handle = &launch_handle;
	launch_at = *handle;
	return result;
}

static int profiler_stop(void *handle)
{
	struct ocs_stream_ticket *ticket = launch_ticket;
	char why[OCS_STREAM_WHY];

	if (ticket && handle == launch_at) {
		launch_ticket = NULL;
		if (ocs_stream_after(ticket, why))
			task_end("%s", why);
	}
	return chained && handle != &launch_handle ? chained->stop(handle) : 0;
}

static int profiler_record(void *handle, int state, void *arguments)
{
	return chained && handle != &launch_handle ? chained->record(handle, state, arguments) : 0;
}

static int profiler_finalize(void *data)
{
	struct context *context = data;
	int result = chained ? chained->finalize(context->chained) : 0;

	free(context);
	return result;
}

/* NCCL before 2.28 tells a profiler nothing of its launches. */
static int old_init(void **context, int *mask)
{
	static atomic_bool said;

	*context = NULL;
	*mask = 0;
	if (!shim_holds(__builtin_return_address(0)) && ocs_gate_get() &&
	    !atomic_exchange(&said, true))
		fprintf(stderr,
			"slurm-ocs: NCCL on photonic rails: nothing holds what the NCCL that is linked "
			"into this program sends, since it is older than 2.28: use libnccl.so.2, or "
			"run the job with --ocs-phases=off\n");
	return 0;
}

static int old_start(void *context, void **handle, void *event)
{
	(void)context;
	(void)event;
	*handle = NULL;
	return 0;
}

static int old_stop(void *handle)
{
	(void)handle;
	return 0;
}

static int old_record(void *handle, int state, void *arguments)
{
	(void)handle;
	(void)state;
	(void)arguments;
	return 0;
}

/* Found by their names. */
#define OLD(version)                                                              \
	extern const struct profiler_old ncclProfiler_v##version;                 \
	__attribute__((visibility("default")))                                    \
	const struct profiler_old ncclProfiler_v##version = {                     \
		"slurm-ocs", old_init, old_start, old_stop, old_record, old_stop, \
	}
OLD(1);
OLD(2);
OLD(3);
OLD(4);
extern const struct profiler ncclProfiler_v5;
__attribute__((visibility("default"))) const struct profiler ncclProfiler_v5 = {
	"slurm-ocs gates", profiler_init,   profiler_start,
	profiler_stop,	   profiler_record, profiler_finalize,
};
