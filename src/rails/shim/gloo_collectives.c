/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Collectives of Gloo: functions of one argument, options, that begin with a shared pointer to the
 * context. */

#include <errno.h>

#include "src/rails/shim/gloo_shim.h"
#include "src/rails/shim/sockets.h"

#define SOCKETS 4096

_Thread_local int ocs_gloo_inside;

void ocs_gloo_enter(int group, struct gloo_pass *pass)
{
	pass->group = OCS_GATE_FREE;
	if (group >= 0 && ocs_gate_enter(ocs_gate_get(), group, &pass->idx))
		ocs_gloo_throw(ocs_gate_error());
	pass->group = group;
	ocs_gloo_inside++;
}

void ocs_gloo_leave(struct gloo_pass *pass)
{
	int fds[SOCKETS], before = errno;
	struct ocs_gate *gate = ocs_gate_get();

	if (pass->group >= 0 && gate)
		ocs_gate_leave(gate, pass->group, pass->idx, fds, ocs_shim_sockets(fds, SOCKETS));
	if (pass->group >= 0)
		ocs_gloo_inside--;
	errno = before;
}

static void collective_run(void *options, void (*real)(void *))
{
	const struct gloo_context *context =
		ocs_gloo_inside ? NULL : ocs_gloo_context(*(void **)options, NULL);
	GLOO_PASS pass = { OCS_GATE_FREE, 0 };

	if (context)
		ocs_gloo_enter(context->group, &pass);
	real(options);
}

#define COLLECTIVE(NAME, TEXT)                                         \
	void gloo_##NAME(void *options) GLOO_NAME(TEXT);               \
	void gloo_##NAME(void *options)                                \
	{                                                              \
		collective_run(options, (void (*)(void *))REAL(TEXT)); \
	}

COLLECTIVE(allgather, "_ZN4gloo9allgatherERNS_16AllgatherOptionsE")
COLLECTIVE(allgatherv, "_ZN4gloo10allgathervERNS_17AllgathervOptionsE")
COLLECTIVE(allreduce, "_ZN4gloo9allreduceERKNS_16AllreduceOptionsE")
COLLECTIVE(alltoall, "_ZN4gloo8alltoallERNS_15AlltoallOptionsE")
COLLECTIVE(alltoallv, "_ZN4gloo9alltoallvERNS_16AlltoallvOptionsE")
COLLECTIVE(barrier, "_ZN4gloo7barrierERNS_14BarrierOptionsE")
COLLECTIVE(broadcast, "_ZN4gloo9broadcastERNS_16BroadcastOptionsE")
COLLECTIVE(gather, "_ZN4gloo6gatherERNS_13GatherOptionsE")
COLLECTIVE(gatherv, "_ZN4gloo7gathervERNS_14GathervOptionsE")
COLLECTIVE(reduce, "_ZN4gloo6reduceERNS_13ReduceOptionsE")
COLLECTIVE(scatter, "_ZN4gloo7scatterERNS_14ScatterOptionsE")
