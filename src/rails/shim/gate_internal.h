/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_RAILS_SHIM_GATE_INTERNAL_H
#define OCS_RAILS_SHIM_GATE_INTERNAL_H

/* The gate core's own: one gate for each process, three threads that touch it.
 *
 *   callers         hold LOCK while they look at groups and write letters
 *   letter reader   the ring of the agent: grants
 *   word reader     the socket: answers about groups, notes, and the agent's end */

#include <pthread.h>
#include <stdbool.h>
#include <sys/types.h>

#include "src/rails/mailbox.h"
#include "src/rails/shim/gate.h"

#define GATE_LIMIT_MS \
	10000 /* of the agent's answers, and of a drain; OCS_RAILS_TIMEOUT in seconds */

enum group_state {
	GROUP_ASKED,
	GROUP_KNOWN,
	GROUP_REFUSED,
};

struct gate_group {
	uint64_t name;
	int32_t *members; /* ascending */
	uint32_t count, instance;
	uint64_t next; /* index of the operation that is reached next */
	enum group_state state;
	uint32_t need;
};

/* An operation that has no grant yet. */
struct gate_wait {
	uint64_t group, idx;
	_Atomic uint32_t *word;
	int32_t *error; /* where its waiter wants to know; may be NULL */
};

struct ocs_gate {
	int rank, ranks;
	pid_t pid;
	bool first;	     /* task of its node */
	bool verbose, quiet; /* OCS_RAILS_VERBOSE: all notes; 0: not even faults */
	int signal;	     /* OCS_RAILS_SIGNAL: to this process, at a fault; 0: none */
	int faults;	     /* told so far */
	int limit_ms;
	pthread_mutex_t lock;
	pthread_cond_t answered;
	struct gate_group **groups;
	size_t group_count, group_room;
	uint32_t *by_name; /* open hashing: numbers of groups plus 1; a power of two */
	size_t name_room;
	struct gate_wait *waits;
	size_t wait_count, wait_room;
	uint64_t overdue, unknown; /* drains that took too long; grants of nothing */
	_Atomic int32_t refusal;   /* error of the operation that was refused last */
	_Atomic int32_t lost;	   /* not 0: why nothing is granted any more */
	char why[160];		   /* written once, before LOST */
	/* The agent: */
	int sock, bell;
	struct ocs_rails_mailbox *box;
	uint32_t written, read; /* letters; the agent could change what it shares */
};

/* Texts for ocs_gate_error.  Returns -1. */
int ocs_gate_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
int64_t ocs_gate_now_ms(void);

/* Connects GATE to the agent at PATH and maps its mailbox.  Returns 0, or -1 with the text. */
int ocs_gate_connect(struct ocs_gate *gate, const char *path);
/* Starts the readers.  Returns as above. */
int ocs_gate_start(struct ocs_gate *gate);
/* Writes a letter, waits while the ring is full; with LOCK held.  Returns as above. */
int ocs_gate_write(struct ocs_gate *gate, uint32_t kind, uint64_t group, uint64_t idx);
/* Takes the next letter of the agent.  Returns 1, 0 where there is none, -1 where what the agent
 * shares makes no sense. */
int ocs_gate_read(struct ocs_gate *gate, struct ocs_rails_letter *letter);
/* Waits for a letter, 100 ms at most. */
void ocs_gate_sleep(struct ocs_gate *gate);
/* Nothing is granted any more: every waiter hears of it.  Without LOCK. */
void ocs_gate_lose(struct ocs_gate *gate, int32_t error, const char *why);
/* A fault of the job, LENGTH bytes TEXT: written where HERE is true, and the signal that was asked for. */
void ocs_gate_fault(struct ocs_gate *gate, const char *text, size_t length, bool here);
/* The group of NAME, or NULL; with LOCK held. */
struct gate_group *ocs_gate_find(struct ocs_gate *gate, uint64_t name);
/* What an agent's error means. */
const char *ocs_gate_reason(int32_t error);

void ocs_gate_futex_wait(_Atomic uint32_t *word, uint32_t value, int ms, bool shared);
void ocs_gate_futex_wake(_Atomic uint32_t *word, bool shared);

#endif
