/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Sends and receives of Gloo.  Both write to the network, and neither may block: a thread begins them
 * when they are granted, and ends them when Gloo has completed them and their sockets are drained. */

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "src/rails/shim/gloo_shim.h"
#include "src/rails/shim/sockets.h"

#define BUFFER "_ZN4gloo9transport3tcp13UnboundBuffer"
#define SEND BUFFER "4sendEimmm"
#define RECEIVE BUFFER "4recvEimmm"
#define RECEIVE_ANY BUFFER "4recvESt6vectorIiSaIiEEmmm"
#define SENT BUFFER "20handleSendCompletionEi"
#define RECEIVED BUFFER "20handleRecvCompletionEi"
#define TIME "EPiNSt6chrono8durationIlSt5ratioILl1ELl1000EEEE"
#define WAIT_SEND BUFFER "8waitSend" TIME
#define WAIT_RECEIVE BUFFER "8waitRecv" TIME
#define ABORT_SEND BUFFER "13abortWaitSendEv"
#define ABORT_RECEIVE BUFFER "13abortWaitRecvEv"
#define DESTROY BUFFER "D1Ev"
#define REMOVE BUFFER "D0Ev"

#define TRANSPORT_OFFSET 24 /* of context_ in gloo::transport::tcp::UnboundBuffer */

enum message_state {
	MESSAGE_HELD,
	MESSAGE_BEGUN,	  /* Gloo works at it */
	MESSAGE_DRAINING, /* Gloo has done it */
	MESSAGE_REFUSED,
};

struct message {
	void *buffer; /* NULL where the program has destroyed it */
	bool send, calling;
	int partner, group;
	uint64_t slot, idx;
	size_t offset, bytes;
	enum message_state state;
	_Atomic uint32_t word;
	struct message *next;
};

typedef void message_call(void *buffer, int partner, uint64_t slot, size_t offset, size_t bytes);

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static struct message *first, **last = &first;
static _Atomic unsigned under_way;
static bool thread_runs;

/* -- the thread ---------------------------------------------------------------- */

static bool turn_waits(const struct message *message)
{
	for (const struct message *other = first; other != message; other = other->next)
		if (other->group == message->group && other->state == MESSAGE_HELD)
			return true;
	return false;
}

/* Hands MESSAGE to Gloo, which may complete it at once; LOCK is given away meanwhile. */
static void message_begin(struct message *message)
{
	message_call *send = (message_call *)REAL(SEND), *receive = (message_call *)REAL(RECEIVE);

	if (!message->buffer) {
		message->state = MESSAGE_DRAINING;
		return;
	}
	message->state = MESSAGE_BEGUN;
	message->calling = true;
	pthread_mutex_unlock(&lock);
	(message->send ? send : receive)(message->buffer, message->partner, message->slot,
					 message->offset, message->bytes);
	pthread_mutex_lock(&lock);
	message->calling = false;
	pthread_cond_broadcast(&changed);
}

/* Who waits for it hears that nothing comes. */
static void message_refuse(struct message *message)
{
	void (*of_send)(void *) = (void (*)(void *))REAL(ABORT_SEND);
	void (*of_receive)(void *) = (void (*)(void *))REAL(ABORT_RECEIVE);

	message->state = MESSAGE_REFUSED;
	if (!message->buffer)
		return;
	message->calling = true;
	pthread_mutex_unlock(&lock);
	(message->send ? of_send : of_receive)(message->buffer);
	pthread_mutex_lock(&lock);
	message->calling = false;
	pthread_cond_broadcast(&changed);
}

static void message_remove(struct message **link)
{
	struct message *message = *link;

	*link = message->next;
	if (last == &message->next)
		last = link;
	atomic_fetch_sub(&under_way, 1);
	free(message);
}

/* One thing that can be done, with LOCK held.  Returns false where there is none. */
static bool messages_advance(struct ocs_gate *gate)
{
	bool drained = false, looked = false;

	for (struct message **link = &first; *link; link = &(*link)->next) {
		struct message *message = *link;
		uint32_t word = atomic_load(&message->word);

		if (message->state == MESSAGE_HELD && word == 2) {
			message_refuse(message);
			return true;
		}
		if (message->state == MESSAGE_HELD && word == 1 && !turn_waits(message)) {
			message_begin(message);
			return true;
		}
		if (message->state == MESSAGE_REFUSED && !message->buffer) {
			message_remove(link);
			return true;
		}
		if (message->state != MESSAGE_DRAINING || message->calling)
			continue;
		if (!looked)
			drained = ocs_shim_sockets_drained();
		looked = true;
		if (drained) {
			ocs_gate_leave(gate, message->group, message->idx, NULL, 0);
			message_remove(link);
			return true;
		}
	}
	return false;
}

static void *messages_serve(void *data)
{
	struct timespec pause = { 0, 20000 };

	pthread_mutex_lock(&lock);
	for (;;) {
		if (!first) {
			pthread_cond_wait(&changed, &lock);
			pause.tv_nsec = 20000;
		} else if (messages_advance(data))
			pause.tv_nsec = 20000;
		else {
			pthread_mutex_unlock(&lock);
			nanosleep(&pause, NULL);
			pthread_mutex_lock(&lock);
			if (pause.tv_nsec < 400000)
				pause.tv_nsec += pause.tv_nsec / 4;
		}
	}
	return NULL;
}

/* With LOCK held. */
static bool thread_start(struct ocs_gate *gate)
{
	sigset_t all, before;
	pthread_t thread;

	if (thread_runs)
		return true;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	thread_runs = !pthread_create(&thread, NULL, messages_serve, gate);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (thread_runs)
		pthread_detach(thread);
	return thread_runs;
}

/* -- what programs call ---------------------------------------------------------- */

static const struct gloo_context *buffer_context(const void *buffer)
{
	void *transport;

	if (ocs_gloo_inside)
		return NULL;
	memcpy(&transport, (const char *)buffer + TRANSPORT_OFFSET, sizeof(transport));
	return ocs_gloo_context(NULL, transport);
}

/* 30 bits of a pair's number: receives may come in another order than sends of other slots do. */
static uint32_t pair_tag(const struct gloo_context *context, uint64_t slot)
{
	uint64_t mixed =
		(((uint64_t)context->identity << 32) ^ slot) * UINT64_C(0x9e3779b97f4a7c15);

	return (uint32_t)(mixed >> 34);
}

/* False where the message passes freely. */
static bool message_submit(struct message message)
{
	const struct gloo_context *context = buffer_context(message.buffer);
	struct ocs_gate *gate = ocs_gate_get();
	struct message *kept;
	int own, other;
	bool good;

	if (!context || message.partner < 0 || message.partner >= context->size)
		return false;
	own = context->world[context->rank];
	other = context->world[message.partner];
	message.group = ocs_gate_pair(gate, message.send ? own : other, message.send ? other : own,
				      pair_tag(context, message.slot));
	if (message.group == OCS_GATE_FREE)
		return false;
	kept = message.group == OCS_GATE_ERROR ? NULL : malloc(sizeof(*kept));
	if (kept)
		*kept = message;
	else
		ocs_gloo_throw(ocs_gate_error());
	pthread_mutex_lock(&lock);
	good = thread_start(gate) && !ocs_gate_reserve(gate, kept->group, &kept->idx) &&
	       !ocs_gate_arrive_now(gate, kept->group, kept->idx, &kept->word);
	if (good) {
		*last = kept;
		last = &kept->next;
		atomic_fetch_add(&under_way, 1);
		pthread_cond_broadcast(&changed);
	}
	pthread_mutex_unlock(&lock);
	if (!good) {
		free(kept);
		ocs_gloo_throw(ocs_gate_error());
	}
	return true;
}

message_call gloo_send GLOO_NAME(SEND);
message_call gloo_receive GLOO_NAME(RECEIVE);

void gloo_send(void *buffer, int to, uint64_t slot, size_t offset, size_t bytes)
{
	message_call *real = (message_call *)REAL(SEND);

	if (!message_submit((struct message){ .buffer = buffer,
					      .send = true,
					      .partner = to,
					      .slot = slot,
					      .offset = offset,
					      .bytes = bytes }))
		real(buffer, to, slot, offset, bytes);
}

void gloo_receive(void *buffer, int from, uint64_t slot, size_t offset, size_t bytes)
{
	message_call *real = (message_call *)REAL(RECEIVE);

	if (!message_submit((struct message){ .buffer = buffer,
					      .partner = from,
					      .slot = slot,
					      .offset = offset,
					      .bytes = bytes }))
		real(buffer, from, slot, offset, bytes);
}

void gloo_receive_any(void *buffer, void *from, uint64_t slot, size_t offset, size_t bytes)
	GLOO_NAME(RECEIVE_ANY);

void gloo_receive_any(void *buffer, void *from, uint64_t slot, size_t offset, size_t bytes)
{
	void (*real)(void *, void *, uint64_t, size_t, size_t) = REAL(RECEIVE_ANY);

	if (buffer_context(buffer))
		ocs_gloo_throw("a receive from any rank cannot be gated; run the program with "
			       "--ocs-phases=off");
	real(buffer, from, slot, offset, bytes);
}

/* Gloo's own threads say that data was written or read. */
static void message_done(const void *buffer, bool send)
{
	struct message *message;

	if (!atomic_load(&under_way))
		return;
	pthread_mutex_lock(&lock);
	for (message = first; message; message = message->next)
		if (message->buffer == buffer && message->send == send &&
		    message->state == MESSAGE_BEGUN) {
			message->state = MESSAGE_DRAINING;
			break;
		}
	pthread_mutex_unlock(&lock);
}

void gloo_sent(void *buffer, int rank) GLOO_NAME(SENT);
void gloo_received(void *buffer, int rank) GLOO_NAME(RECEIVED);

void gloo_sent(void *buffer, int rank)
{
	void (*real)(void *, int) = (void (*)(void *, int))REAL(SENT);

	message_done(buffer, true);
	real(buffer, rank);
}

void gloo_received(void *buffer, int rank)
{
	void (*real)(void *, int) = (void (*)(void *, int))REAL(RECEIVED);

	message_done(buffer, false);
	real(buffer, rank);
}

static bool message_refused(const void *buffer, bool send)
{
	const struct message *message;

	if (!atomic_load(&under_way))
		return false;
	pthread_mutex_lock(&lock);
	for (message = first; message; message = message->next)
		if (message->buffer == buffer && message->send == send &&
		    message->state == MESSAGE_REFUSED)
			break;
	pthread_mutex_unlock(&lock);
	return message != NULL;
}

typedef bool wait_call(void *buffer, int *rank, int64_t ms);

wait_call gloo_wait_send GLOO_NAME(WAIT_SEND);
wait_call gloo_wait_receive GLOO_NAME(WAIT_RECEIVE);

bool gloo_wait_send(void *buffer, int *rank, int64_t ms)
{
	bool result = ((wait_call *)REAL(WAIT_SEND))(buffer, rank, ms);

	if (!result && message_refused(buffer, true))
		ocs_gloo_throw(ocs_gate_refusal(ocs_gate_get()));
	return result;
}

bool gloo_wait_receive(void *buffer, int *rank, int64_t ms)
{
	bool result = ((wait_call *)REAL(WAIT_RECEIVE))(buffer, rank, ms);

	if (!result && message_refused(buffer, false))
		ocs_gloo_throw(ocs_gate_refusal(ocs_gate_get()));
	return result;
}

/* A program may drop what it has begun. */
static void buffer_forget(const void *buffer)
{
	if (!atomic_load(&under_way))
		return;
	pthread_mutex_lock(&lock);
	for (struct message *message = first; message;) {
		if (message->buffer == buffer && message->calling) {
			pthread_cond_wait(&changed, &lock);
			message = first; /* it may be gone */
			continue;
		}
		if (message->buffer == buffer) {
			message->buffer = NULL;
			if (message->state == MESSAGE_BEGUN)
				message->state = MESSAGE_DRAINING;
		}
		message = message->next;
	}
	pthread_mutex_unlock(&lock);
}

void gloo_destroy(void *buffer) GLOO_NAME(DESTROY);
void gloo_remove(void *buffer) GLOO_NAME(REMOVE);

void gloo_destroy(void *buffer)
{
	void (*real)(void *) = (void (*)(void *))REAL(DESTROY);

	buffer_forget(buffer);
	real(buffer);
}

void gloo_remove(void *buffer)
{
	void (*real)(void *) = (void (*)(void *))REAL(REMOVE);

	buffer_forget(buffer);
	real(buffer);
}
