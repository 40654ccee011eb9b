/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Collectives, sends and receives.  Between ncclGroupStart and ncclGroupEnd they are kept, and made at
 * the end, when it is known which operations of the gate they are: one for each communicator with
 * collectives, one for each send and each receive.  Where the gate fails, none of them is made. */

#include <stdlib.h>
#include <string.h>

#include "src/rails/shim/nccl_calls.h"

/* Parameters by their order. */
enum shape {
	SHAPE_PLAIN,	/* send, receive, count, type, comm, stream */
	SHAPE_ONE,	/* send, receive, count, type, a, comm, stream */
	SHAPE_TWO,	/* send, receive, count, type, a, b, comm, stream */
	SHAPE_IN_PLACE, /* buffer, count, type, a, comm, stream */
	SHAPE_OPERATOR, /* a, comm: ncclRedOpDestroy, which must not overtake those that use it */
};

enum peer_kind {
	PEER_ALL,
	PEER_TO,
	PEER_FROM,
};

struct call {
	enum shape shape;
	enum peer_kind kind;
	void *real;
	const void *send;
	void *receive;
	size_t count;
	int type, a, b;
	void *comm, *stream;
};

/* What a thread has called since its outermost ncclGroupStart. */
static _Thread_local struct {
	int depth;
	struct call *calls;
	size_t count, room;
} group;

int ocs_nccl_depth(void)
{
	return group.depth;
}

/* The real call. */
static int call_make(const struct call *c)
{
	int result;

	ocs_nccl_inside(1);
	switch (c->shape) {
	case SHAPE_PLAIN:
		result = ((int (*)(const void *, void *, size_t, int, void *, void *))c->real)(
			c->send, c->receive, c->count, c->type, c->comm, c->stream);
		break;
	case SHAPE_ONE:
		result = ((int (*)(const void *, void *, size_t, int, int, void *, void *))c->real)(
			c->send, c->receive, c->count, c->type, c->a, c->comm, c->stream);
		break;
	case SHAPE_TWO:
		result = ((int (*)(const void *, void *, size_t, int, int, int, void *,
				   void *))c->real)(c->send, c->receive, c->count, c->type, c->a,
						    c->b, c->comm, c->stream);
		break;
	case SHAPE_IN_PLACE:
		result = ((int (*)(void *, size_t, int, int, void *, void *))c->real)(
			c->receive, c->count, c->type, c->a, c->comm, c->stream);
		break;
	default:
		result = ((int (*)(int, void *))c->real)(c->a, c->comm);
	}
	ocs_nccl_inside(-1);
	return result;
}

/* What a launch is for the gate. */
struct launch {
	struct ocs_stream_operation *operations;
	void **streams;
	size_t operation_count, stream_count;
};

static void launch_add(struct launch *launch, int number, bool each, void *stream)
{
	bool there = false;

	for (size_t k = 0; k < launch->operation_count && !there; k++)
		there = launch->operations[k].group == number;
	if (!there || each)
		launch->operations[launch->operation_count++] =
			(struct ocs_stream_operation){ number, there };
	for (size_t k = 0; k < launch->stream_count; k++)
		if (launch->streams[k] == stream)
			return;
	launch->streams[launch->stream_count++] = stream;
}

/* Adds what call C is for the gate.  Returns -1 where the gate does not know it. */
static int launch_add_call(struct ocs_gate *gate, struct launch *launch, const struct call *c)
{
	struct ocs_nccl_communicator *communicator;
	int number, own = ocs_gate_rank(gate), peer;

	communicator = c->shape == SHAPE_OPERATOR ? NULL : ocs_nccl_communicator_find(c->comm);
	/* One that ncclCommInitAll made lies within this process. */
	if (!communicator || communicator->group == OCS_GATE_FREE)
		return 0;
	if (c->kind == PEER_ALL) {
		launch_add(launch, communicator->group, false, c->stream);
		return 0;
	}
	if (c->a < 0 || c->a >= communicator->ranks || communicator->members[c->a] == own)
		return 0;
	peer = communicator->members[c->a];
	/* The gate keeps two bits of a tag. */
	number = ocs_gate_pair(gate, c->kind == PEER_TO ? own : peer,
			       c->kind == PEER_TO ? peer : own,
			       (uint32_t)communicator->name & 0x3fffffff);
	if (number == OCS_GATE_ERROR)
		return -1;
	if (number >= 0)
		launch_add(launch, number, true, c->stream);
	return 0;
}

static void launch_free(struct launch *launch)
{
	free(launch->operations);
	free(launch->streams);
}

/* Puts the gate before CALLS.  *TICKET is NULL where none of them needs it. */
static int launch_begin(struct ocs_gate *gate, const struct call *calls, size_t count,
			struct ocs_stream_ticket **ticket)
{
	struct launch launch = { calloc(count, sizeof(*launch.operations)),
				 calloc(count, sizeof(*launch.streams)), 0, 0 };
	char why[OCS_STREAM_WHY] = "no memory";
	int result = launch.operations && launch.streams ? 0 : -1;

	*ticket = NULL;
	for (size_t k = 0; k < count && !result; k++) {
		result = launch_add_call(gate, &launch, &calls[k]);
		if (result)
			strncpy(why, ocs_gate_error(), sizeof(why) - 1);
	}
	if (!result && launch.operation_count) {
		*ticket = ocs_stream_before(gate, launch.operations, launch.operation_count,
					    launch.streams, launch.stream_count, why);
		result = *ticket ? 0 : -1;
	}
	launch_free(&launch);
	if (!result)
		return OCS_NCCL_SUCCESS;
	why[sizeof(why) - 1] = 0;
	ocs_nccl_say(true, "nothing is sent: %s", why);
	return OCS_NCCL_SYSTEM_ERROR;
}

static int launch_end(struct ocs_stream_ticket *ticket, int result)
{
	char why[OCS_STREAM_WHY];

	if (!ticket || !ocs_stream_after(ticket, why))
		return result;
	ocs_nccl_say(true, "%s", why);
	return OCS_NCCL_SYSTEM_ERROR;
}

/* What a thread does with C, which has no group around it. */
static int call_launch(struct ocs_gate *gate, const struct call *c)
{
	struct ocs_stream_ticket *ticket;
	int result = launch_begin(gate, c, 1, &ticket);

	if (result)
		return result;
	result = call_make(c);
	/* A communicator that does not block launches later: its end has to come behind that. */
	if (ticket)
		result = ocs_nccl_settle(c->comm, result);
	return launch_end(ticket, result);
}

static int call_keep(const struct call *c)
{
	if (group.count == group.room) {
		size_t room = group.room ? group.room * 2 : 16;
		struct call *more = realloc(group.calls, room * sizeof(*more));

		if (!more)
			return OCS_NCCL_SYSTEM_ERROR;
		group.calls = more;
		group.room = room;
	}
	group.calls[group.count++] = *c;
	return OCS_NCCL_SUCCESS;
}

static int call_take(const struct call *c)
{
	struct ocs_gate *gate = ocs_nccl_gate();

	if (!c->real)
		return OCS_NCCL_SYSTEM_ERROR;
	if (!gate)
		return call_make(c);
	if (c->shape == SHAPE_OPERATOR)
		return group.depth ? call_keep(c) : call_make(c);
	if (ocs_nccl_failed())
		return OCS_NCCL_SYSTEM_ERROR;
	return group.depth ? call_keep(c) : call_launch(gate, c);
}

/* Makes the calls of the outermost group that ends. */
static int group_make(void)
{
	int result = OCS_NCCL_SUCCESS;

	for (size_t k = 0; k < group.count; k++) {
		int one = call_make(&group.calls[k]);

		if (one && one != OCS_NCCL_IN_PROGRESS && !result)
			result = one;
	}
	return result;
}

static int group_settle(int result)
{
	int settled = result;

	if (result != OCS_NCCL_IN_PROGRESS)
		return result;
	for (size_t k = 0; k < group.count; k++) {
		int one = ocs_nccl_settle(group.calls[k].comm, result);

		if (settled == OCS_NCCL_IN_PROGRESS || one)
			settled = one;
	}
	return settled;
}

OCS_NCCL_ENTRY(int, GroupStart, (void))
{
	int (*real)(void) = ocs_nccl_find("ncclGroupStart");
	int result = real ? real() : OCS_NCCL_SYSTEM_ERROR;

	if (!result && ocs_nccl_gate())
		group.depth++;
	return result;
}

OCS_NCCL_ENTRY(int, GroupEnd, (void))
{
	int (*real)(void) = ocs_nccl_find("ncclGroupEnd");
	struct ocs_gate *gate = ocs_nccl_gate();
	struct ocs_stream_ticket *ticket = NULL;
	int result = OCS_NCCL_SUCCESS, made = OCS_NCCL_SUCCESS, ended;

	if (!real)
		return OCS_NCCL_SYSTEM_ERROR;
	if (!gate || !group.depth || --group.depth)
		return real();
	if (group.count)
		result = ocs_nccl_failed() ? OCS_NCCL_SYSTEM_ERROR :
					     launch_begin(gate, group.calls, group.count, &ticket);
	if (!result)
		made = group_make();
	ocs_nccl_inside(1);
	ended = real();
	if (ticket)
		ended = group_settle(ended);
	ocs_nccl_inside(-1);
	ocs_nccl_pending_keep(ended);
	ended = launch_end(ticket, ended);
	group.count = 0;
	return result ? result : made ? made : ended;
}

OCS_NCCL_ENTRY(int, GroupSimulateEnd, (void *information))
{
	int (*real)(void *) = ocs_nccl_find("ncclGroupSimulateEnd");
	int made = OCS_NCCL_SUCCESS, result;

	if (!real)
		return OCS_NCCL_SYSTEM_ERROR;
	if (ocs_nccl_gate() && group.depth && !--group.depth) {
		made = group_make(); /* nothing of it is launched */
		group.count = 0;
	}
	result = real(information);
	return made ? made : result;
}

/* Each entry point fills a call. */
#define CALL(name, form, ...)                                          \
	do {                                                           \
		struct call c = { .real = ocs_nccl_find("nccl" #name), \
				  .shape = form,                       \
				  __VA_ARGS__ };                       \
		return call_take(&c);                                  \
	} while (0)

OCS_NCCL_ENTRY(int, AllReduce,
	       (const void *send, void *receive, size_t count, int type, int operator_, void *comm,
		void *stream))
{
	CALL(AllReduce, SHAPE_ONE, .send = send, .receive = receive, .count = count, .type = type,
	     .a = operator_, .comm = comm, .stream = stream);
}

OCS_NCCL_ENTRY(int, ReduceScatter,
	       (const void *send, void *receive, size_t count, int type, int operator_, void *comm,
		void *stream))
{
	CALL(ReduceScatter, SHAPE_ONE, .send = send, .receive = receive, .count = count,
	     .type = type, .a = operator_, .comm = comm, .stream = stream);
}

OCS_NCCL_ENTRY(int, Broadcast,
	       (const void *send, void *receive, size_t count, int type, int root, void *comm,
		void *stream))
{
	CALL(Broadcast, SHAPE_ONE, .send = send, .receive = receive, .count = count, .type = type,
	     .a = root, .comm = comm, .stream = stream);
}

OCS_NCCL_ENTRY(int, Gather,
	       (const void *send, void *receive, size_t count, int type, int root, void *comm,
		void *stream))
{
	CALL(Gather, SHAPE_ONE, .send = send, .receive = receive, .count = count, .type = type,
	     .a = root, .comm = comm, .stream = stream);
}

OCS_NCCL_ENTRY(int, Scatter,
	       (const void *send, void *receive, size_t count, int type, int root, void *comm,
		void *stream))
{
	CALL(Scatter, SHAPE_ONE, .send = send, .receive = receive, .count = count, .type = type,
	     .a = root, .comm = comm, .stream = stream);
}

OCS_NCCL_ENTRY(int, AllGather,
	       (const void *send, void *receive, size_t count, int type, void *comm, void *stream))
{
	CALL(AllGather, SHAPE_PLAIN, .send = send, .receive = receive, .count = count, .type = type,
	     .comm = comm, .stream = stream);
}

OCS_NCCL_ENTRY(int, AlltoAll,
	       (const void *send, void *receive, size_t count, int type, void *comm, void *stream))
{
	CALL(AlltoAll, SHAPE_PLAIN, .send = send, .receive = receive, .count = count, .type = type,
	     .comm = comm, .stream = stream);
}

OCS_NCCL_ENTRY(int, Reduce,
	       (const void *send, void *receive, size_t count, int type, int operator_, int root,
		void *comm, void *stream))
{
	CALL(Reduce, SHAPE_TWO, .send = send, .receive = receive, .count = count, .type = type,
	     .a = operator_, .b = root, .comm = comm, .stream = stream);
}

OCS_NCCL_ENTRY(int, Bcast,
	       (void *buffer, size_t count, int type, int root, void *comm, void *stream))
{
	CALL(Bcast, SHAPE_IN_PLACE, .receive = buffer, .count = count, .type = type, .a = root,
	     .comm = comm, .stream = stream);
}

OCS_NCCL_ENTRY(int, Send,
	       (const void *buffer, size_t count, int type, int peer, void *comm, void *stream))
{
	CALL(Send, SHAPE_IN_PLACE, .kind = PEER_TO, .receive = (void *)buffer, .count = count,
	     .type = type, .a = peer, .comm = comm, .stream = stream);
}

OCS_NCCL_ENTRY(int, Recv,
	       (void *buffer, size_t count, int type, int peer, void *comm, void *stream))
{
	CALL(Recv, SHAPE_IN_PLACE, .kind = PEER_FROM, .receive = buffer, .count = count,
	     .type = type, .a = peer, .comm = comm, .stream = stream);
}

OCS_NCCL_ENTRY(int, RedOpDestroy, (int operator_, void *comm))
{
	CALL(RedOpDestroy, SHAPE_OPERATOR, .a = operator_, .comm = comm);
}
