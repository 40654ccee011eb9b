/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "src/rails/shim/stream.h"

#define CHUNK_WORDS 512
#define WORD_BYTES 64	 /* a cache line for each */
#define LOOK_NS 20000000 /* how often words are looked at that nobody reports */
#define HOST_PORTABLE 1	 /* CU_MEMHOSTALLOC_PORTABLE */
#define HOST_MAPPED 2	 /* CU_MEMHOSTALLOC_DEVICEMAP */
#define WAIT_EQUAL 1	 /* CU_STREAM_WAIT_VALUE_EQ */
#define CAPTURE_NONE 0	 /* CU_STREAM_CAPTURE_STATUS_NONE */

enum {
	WORD_GRANTED = 1,
	WORD_REFUSED = 2,
};

/* What is called of the driver, with the types of its binary interface. */
static struct {
	int (*launch_host)(void *stream, void (*function)(void *), void *data);
	int (*wait_value)(void *stream, unsigned long long address, uint32_t value, unsigned flags);
	int (*is_capturing)(void *stream, int *status);
	int (*host_alloc)(void **memory, size_t size, unsigned flags);
	int (*device_pointer)(unsigned long long *address, void *memory, unsigned flags);
	int (*error_string)(int error, const char **text);
} driver;

struct word {
	_Atomic uint32_t value;
	unsigned long long address; /* of VALUE as the GPU sees it */
	struct word *next;
};

struct ticket_operation {
	int group;
	bool next, over;
	uint64_t idx;
	struct word *word;
};

struct ocs_stream_ticket {
	struct ocs_gate *gate;
	_Atomic size_t unreached, unfinished; /* streams */
	bool arrived, finished;		      /* the thread's */
	struct ocs_stream_ticket *posted, *next;
	size_t count, stream_count;
	void **streams;
	struct ticket_operation operations[];
};

/* What a host function hands to the thread: two of each ticket, kept in it by kind. */
struct post {
	struct post *next;
	struct ocs_stream_ticket *ticket;
	bool finished;
};

static pthread_once_t started = PTHREAD_ONCE_INIT;
static char start_failure[OCS_STREAM_WHY];
static pthread_mutex_t words_lock = PTHREAD_MUTEX_INITIALIZER;
static struct word *words_free;
static struct post *_Atomic posts;
static sem_t posted;
static atomic_bool refused;
static void (*_Atomic refused_function)(void);
static struct ocs_stream_ticket *open_tickets; /* the thread's */

bool ocs_stream_refused(void)
{
	return atomic_load(&refused);
}

void ocs_stream_refused_call(void (*function)(void))
{
	atomic_store(&refused_function, function);
}

static const char *driver_text(int error)
{
	const char *text = NULL;

	if (driver.error_string && !driver.error_string(error, &text) && text)
		return text;
	return "an unknown error";
}

/* Of the names of one function, newest first, the one that this driver has. */
static void *driver_find(void *library, const char *newest, const char *older)
{
	void *function = dlsym(library, newest);

	return function || !older ? function : dlsym(library, older);
}

static bool driver_load(void)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);

	if (!library)
		library = dlopen("libcuda.so.1", RTLD_NOW);
	if (!library) {
		snprintf(start_failure, sizeof(start_failure), "the CUDA driver: %s", dlerror());
		return false;
	}
	driver.launch_host = driver_find(library, "cuLaunchHostFunc", NULL);
	/* The first form of it works where an option of the kernel module allows it only. */
	driver.wait_value = driver_find(library, "cuStreamWaitValue32_v2", "cuStreamWaitValue32");
	driver.is_capturing = driver_find(library, "cuStreamIsCapturing", NULL);
	driver.host_alloc = driver_find(library, "cuMemHostAlloc", NULL);
	driver.device_pointer =
		driver_find(library, "cuMemHostGetDevicePointer_v2", "cuMemHostGetDevicePointer");
	driver.error_string = driver_find(library, "cuGetErrorString", NULL);
	if (driver.launch_host && driver.wait_value && driver.is_capturing && driver.host_alloc &&
	    driver.device_pointer)
		return true;
	snprintf(start_failure, sizeof(start_failure),
		 "the CUDA driver is too old: it has no waits of streams for values");
	return false;
}

/* Memory for more words; with WORDS_LOCK held. */
static int words_add(char why[OCS_STREAM_WHY])
{
	unsigned long long address;
	struct word *chunk;
	void *memory = NULL;
	int error =
		driver.host_alloc(&memory, CHUNK_WORDS * WORD_BYTES, HOST_PORTABLE | HOST_MAPPED);

	_Static_assert(sizeof(struct word) <= WORD_BYTES, "a word and its links fit into a line");
	if (!error)
		error = driver.device_pointer(&address, memory, 0);
	if (error) {
		snprintf(why, OCS_STREAM_WHY, "memory that the GPU reads: %s", driver_text(error));
		return -1;
	}
	for (int k = 0; k < CHUNK_WORDS; k++) {
		chunk = (struct word *)((char *)memory + (size_t)k * WORD_BYTES);
		chunk->address = address + (unsigned long long)k * WORD_BYTES;
		chunk->next = words_free;
		words_free = chunk;
	}
	return 0;
}

static struct word *word_take(char why[OCS_STREAM_WHY])
{
	struct word *word = NULL;

	pthread_mutex_lock(&words_lock);
	if (words_free || !words_add(why)) {
		word = words_free;
		words_free = word->next;
		atomic_store(&word->value, 0);
	}
	pthread_mutex_unlock(&words_lock);
	return word;
}

static void word_return(struct word *word)
{
	pthread_mutex_lock(&words_lock);
	word->next = words_free;
	words_free = word;
	pthread_mutex_unlock(&words_lock);
}

/* Called by the driver's thread: hands POST over and never waits. */
static void post_send(struct post *post)
{
	post->next = atomic_load(&posts);
	while (!atomic_compare_exchange_weak(&posts, &post->next, post))
		;
	sem_post(&posted);
}

static void host_reached(void *data)
{
	struct post *post = data;

	if (atomic_fetch_sub(&post->ticket->unreached, 1) == 1)
		post_send(post);
}

static void host_finished(void *data)
{
	struct post *post = data;

	if (atomic_fetch_sub(&post->ticket->unfinished, 1) == 1)
		post_send(post);
}

static struct post *ticket_posts(struct ocs_stream_ticket *ticket)
{
	return (struct post *)(ticket->operations + ticket->count);
}

static void ticket_free(struct ocs_stream_ticket *ticket)
{
	for (size_t k = 0; k < ticket->count; k++)
		if (ticket->operations[k].word)
			word_return(ticket->operations[k].word);
	free(ticket->streams);
	free(ticket);
}

static void ticket_arrive(struct ocs_stream_ticket *ticket)
{
	for (size_t k = 0; k < ticket->count; k++) {
		struct ticket_operation *operation = &ticket->operations[k];

		if (ocs_gate_arrive_now(ticket->gate, operation->group, operation->idx,
					&operation->word->value))
			atomic_store(&operation->word->value, WORD_REFUSED);
	}
	ticket->arrived = true;
}

/* Ends what is granted of a ticket whose streams are through.  A send may be over before its receiver
 * arrived: its lease opens and ends later.  Returns whether nothing is left. */
static bool ticket_end(struct ocs_stream_ticket *ticket)
{
	bool all = true;

	for (size_t k = 0; k < ticket->count; k++) {
		struct ticket_operation *operation = &ticket->operations[k];
		uint32_t value = atomic_load(&operation->word->value);

		if (operation->over)
			continue;
		if (value == WORD_GRANTED)
			ocs_gate_leave(ticket->gate, operation->group, operation->idx, NULL, 0);
		operation->over = value != 0;
		all = all && operation->over;
	}
	return all;
}

static void ticket_look(struct ocs_stream_ticket *ticket)
{
	for (size_t k = 0; k < ticket->count; k++)
		if (atomic_load(&ticket->operations[k].word->value) == WORD_REFUSED &&
		    !atomic_exchange(&refused, true)) {
			void (*function)(void) = atomic_load(&refused_function);

			if (function)
				function();
		}
}

/* Takes what host functions posted, oldest first. */
static void posts_take(void)
{
	struct post *post = atomic_exchange(&posts, NULL), *oldest = NULL;

	while (post) {
		struct post *next = post->next;

		post->next = oldest;
		oldest = post;
		post = next;
	}
	for (post = oldest; post; post = oldest) {
		struct ocs_stream_ticket *ticket = post->ticket;

		oldest = post->next;
		if (post->finished) {
			ticket->finished = true;
			continue;
		}
		ticket->next = open_tickets;
		open_tickets = ticket;
		ticket_arrive(ticket);
	}
}

static void *stream_thread(void *unused)
{
	(void)unused;
	for (;;) {
		struct ocs_stream_ticket **at = &open_tickets;
		struct timespec limit;

		if (open_tickets) {
			clock_gettime(CLOCK_REALTIME, &limit);
			limit.tv_nsec += LOOK_NS;
			limit.tv_sec += limit.tv_nsec / 1000000000;
			limit.tv_nsec %= 1000000000;
			sem_timedwait(&posted, &limit);
		} else {
			sem_wait(&posted);
		}
		posts_take();
		while (*at) {
			struct ocs_stream_ticket *ticket = *at;

			ticket_look(ticket);
			if (ticket->finished && ticket_end(ticket)) {
				*at = ticket->next;
				ticket_free(ticket);
			} else {
				at = &ticket->next;
			}
		}
	}
	return NULL;
}

static void stream_start(void)
{
	pthread_attr_t attributes;
	pthread_t thread;

	if (!driver_load())
		return;
	if (sem_init(&posted, 0, 0) || pthread_attr_init(&attributes)) {
		snprintf(start_failure, sizeof(start_failure), "a thread: %s", strerror(errno));
		return;
	}
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	if (pthread_create(&thread, &attributes, stream_thread, NULL))
		snprintf(start_failure, sizeof(start_failure), "a thread: %s", strerror(errno));
	pthread_attr_destroy(&attributes);
}

/* Everything that may fail before an index of the gate is taken. */
static struct ocs_stream_ticket *ticket_make(struct ocs_gate *gate,
					     const struct ocs_stream_operation *operations,
					     size_t operation_count, void *const *streams,
					     size_t count, char why[OCS_STREAM_WHY])
{
	struct ocs_stream_ticket *ticket =
		calloc(1, sizeof(*ticket) + operation_count * sizeof(ticket->operations[0]) +
				  2 * sizeof(struct post));
	struct post *post;

	snprintf(why, OCS_STREAM_WHY, "no memory");
	if (!ticket)
		return NULL;
	ticket->gate = gate;
	ticket->count = operation_count;
	ticket->stream_count = count;
	atomic_store(&ticket->unreached, count);
	atomic_store(&ticket->unfinished, count);
	ticket->streams = calloc(count, sizeof(*ticket->streams));
	if (!ticket->streams) {
		ticket_free(ticket);
		return NULL;
	}
	memcpy(ticket->streams, streams, count * sizeof(*streams));
	post = ticket_posts(ticket);
	post[0].ticket = post[1].ticket = ticket;
	post[1].finished = true;
	for (size_t k = 0; k < operation_count; k++) {
		ticket->operations[k].group = operations[k].group;
		ticket->operations[k].next = operations[k].next;
		ticket->operations[k].word = word_take(why);
		if (!ticket->operations[k].word) {
			ticket_free(ticket);
			return NULL;
		}
	}
	return ticket;
}

static int streams_check(void *const *streams, size_t count, char why[OCS_STREAM_WHY])
{
	for (size_t k = 0; k < count; k++) {
		int status = CAPTURE_NONE, error = driver.is_capturing(streams[k], &status);

		if (error) {
			snprintf(why, OCS_STREAM_WHY, "a stream: %s", driver_text(error));
			return -1;
		}
		if (status != CAPTURE_NONE) {
			snprintf(why, OCS_STREAM_WHY,
				 "a CUDA graph is being captured: operations of graphs cannot be "
				 "gated; capture no collectives, or run the job with "
				 "--ocs-phases=off");
			return -1;
		}
	}
	return 0;
}

/* The gate's part on one stream. */
static int stream_hold(struct ocs_stream_ticket *ticket, void *stream, char why[OCS_STREAM_WHY])
{
	int error = driver.launch_host(stream, host_reached, &ticket_posts(ticket)[0]);

	for (size_t k = 0; k < ticket->count && !error; k++)
		if (!ticket->operations[k].next)
			error = driver.wait_value(stream, ticket->operations[k].word->address,
						  WORD_GRANTED, WAIT_EQUAL);
	if (!error)
		return 0;
	snprintf(why, OCS_STREAM_WHY, "a stream's gate: %s", driver_text(error));
	return -1;
}

struct ocs_stream_ticket *ocs_stream_before(struct ocs_gate *gate,
					    const struct ocs_stream_operation *operations,
					    size_t operation_count, void *const *streams,
					    size_t count, char why[OCS_STREAM_WHY])
{
	struct ocs_stream_ticket *ticket;

	pthread_once(&started, stream_start);
	if (start_failure[0]) {
		memcpy(why, start_failure, OCS_STREAM_WHY);
		return NULL;
	}
	if (streams_check(streams, count, why))
		return NULL;
	ticket = ticket_make(gate, operations, operation_count, streams, count, why);
	if (!ticket)
		return NULL;
	for (size_t k = 0; k < operation_count; k++) {
		if (ocs_gate_reserve(gate, operations[k].group, &ticket->operations[k].idx)) {
			snprintf(why, OCS_STREAM_WHY, "%s", ocs_gate_error());
			ticket_free(ticket);
			return NULL;
		}
	}
	for (size_t k = 0; k < count; k++)
		if (stream_hold(ticket, streams[k], why))
			return NULL; /* a stream may hold its address: it stays */
	return ticket;
}

int ocs_stream_after(struct ocs_stream_ticket *ticket, char why[OCS_STREAM_WHY])
{
	size_t count = ticket->stream_count;
	void *streams[count];

	/* The last one of the streams may end the ticket while this still runs. */
	memcpy(streams, ticket->streams, sizeof(streams));
	for (size_t k = 0; k < count; k++) {
		int error = driver.launch_host(streams[k], host_finished, &ticket_posts(ticket)[1]);

		if (error) {
			snprintf(why, OCS_STREAM_WHY, "a stream's end: %s", driver_text(error));
			return -1;
		}
	}
	return 0;
}
