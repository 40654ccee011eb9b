/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* What the gates call of the CUDA driver: a stream is a queue that a thread works off. */

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

#include "stand_in.h"

struct item {
	void (*function)(void *);
	void *data;
	bool host;
	_Atomic uint32_t *word; /* a wait for VALUE */
	uint32_t value;
	struct item *next;
};

struct stream {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct item *first, **last;
	bool busy, capturing;
	atomic_bool held;
};

_Thread_local bool in_host_function;

static void *stream_run(void *data)
{
	struct stream *stream = data;

	pthread_mutex_lock(&stream->lock);
	for (;;) {
		struct item *item = stream->first;

		if (!item) {
			stream->busy = false;
			pthread_cond_broadcast(&stream->changed);
			pthread_cond_wait(&stream->changed, &stream->lock);
			continue;
		}
		stream->busy = true;
		pthread_mutex_unlock(&stream->lock);
		while (item->word && atomic_load(item->word) != item->value) {
			atomic_store(&stream->held, true);
			sched_yield();
		}
		atomic_store(&stream->held, false);
		in_host_function = item->host;
		if (item->host)
			event_add((struct event){ .kind = EVENT_REACHED });
		if (item->function)
			item->function(item->data);
		in_host_function = false;
		pthread_mutex_lock(&stream->lock);
		stream->first = item->next;
		if (!stream->first)
			stream->last = &stream->first;
		free(item);
	}
	return NULL;
}

static int item_add(struct stream *stream, struct item item)
{
	struct item *copy = malloc(sizeof(*copy));

	*copy = item;
	pthread_mutex_lock(&stream->lock);
	*stream->last = copy;
	stream->last = &copy->next;
	stream->busy = true;
	pthread_cond_broadcast(&stream->changed);
	pthread_mutex_unlock(&stream->lock);
	return 0;
}

void *stream_make(void)
{
	struct stream *stream = calloc(1, sizeof(*stream));
	pthread_t thread;

	pthread_mutex_init(&stream->lock, NULL);
	pthread_cond_init(&stream->changed, NULL);
	stream->last = &stream->first;
	pthread_create(&thread, NULL, stream_run, stream);
	pthread_detach(thread);
	return stream;
}

void stream_launch(void *stream, void (*function)(void *), void *data)
{
	item_add(stream, (struct item){ .function = function, .data = data });
}

void stream_capture(void *stream, bool on)
{
	((struct stream *)stream)->capturing = on;
}

void stream_wait(void *data)
{
	struct stream *stream = data;

	pthread_mutex_lock(&stream->lock);
	while (stream->busy)
		pthread_cond_wait(&stream->changed, &stream->lock);
	pthread_mutex_unlock(&stream->lock);
}

bool stream_held(void *stream)
{
	return atomic_load(&((struct stream *)stream)->held);
}

int cuLaunchHostFunc(void *stream, void (*function)(void *), void *data);
int cuLaunchHostFunc(void *stream, void (*function)(void *), void *data)
{
	return item_add(stream, (struct item){ .function = function, .data = data, .host = true });
}

/* The GPU sees memory of the host 4096 bytes further on. */
int cuStreamWaitValue32_v2(void *stream, unsigned long long address, uint32_t value,
			   unsigned flags);
int cuStreamWaitValue32_v2(void *stream, unsigned long long address, uint32_t value, unsigned flags)
{
	if (flags != 1) /* CU_STREAM_WAIT_VALUE_EQ */
		return 1;
	return item_add(stream,
			(struct item){ .word = (_Atomic uint32_t *)(uintptr_t)(address - 4096),
				       .value = value });
}

int cuStreamIsCapturing(void *stream, int *status);
int cuStreamIsCapturing(void *stream, int *status)
{
	*status = ((struct stream *)stream)->capturing ? 1 : 0;
	return 0;
}

int cuMemHostAlloc(void **memory, size_t size, unsigned flags);
int cuMemHostAlloc(void **memory, size_t size, unsigned flags)
{
	*memory = aligned_alloc(4096, size);
	return flags == 3 && *memory ? 0 : 1;
}

int cuMemHostGetDevicePointer_v2(unsigned long long *address, void *memory, unsigned flags);
int cuMemHostGetDevicePointer_v2(unsigned long long *address, void *memory, unsigned flags)
{
	*address = (unsigned long long)(uintptr_t)memory + 4096;
	return (int)flags;
}
