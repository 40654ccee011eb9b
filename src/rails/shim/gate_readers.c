/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* The threads of a gate: what the agent writes, and that it is still there. */

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "src/rails/shim/gate_internal.h"

#define TEXT_BYTES 1024
#define FAULTS_MAX 20 /* lines of a process */

/* Tells the waiter number I and forgets it; with LOCK held. */
static void wait_answer(struct ocs_gate *gate, size_t i, int32_t error)
{
	struct gate_wait wait = gate->waits[i];

	gate->waits[i] = gate->waits[--gate->wait_count];
	if (wait.error)
		*wait.error = error;
	if (error)
		atomic_store(&gate->refusal, error);
	/* From here on the word is its owner's again: its address is only woken, never read. */
	atomic_store_explicit(wait.word, error ? 2 : 1, memory_order_release);
	ocs_gate_futex_wake(wait.word, false);
}

void ocs_gate_lose(struct ocs_gate *gate, int32_t error, const char *why)
{
	pthread_mutex_lock(&gate->lock);
	if (!atomic_load(&gate->lost)) {
		snprintf(gate->why, sizeof(gate->why), "%s", why);
		atomic_store(&gate->lost, error);
		if (gate->verbose)
			fprintf(stderr, "slurm-ocs: rank %d: %s\n", gate->rank, gate->why);
	}
	while (gate->wait_count)
		wait_answer(gate, 0, atomic_load(&gate->lost));
	pthread_cond_broadcast(&gate->answered);
	pthread_mutex_unlock(&gate->lock);
}

static void letter_serve(struct ocs_gate *gate, const struct ocs_rails_letter *letter)
{
	size_t i = 0;

	if (letter->kind == OCS_RAILS_LOST) {
		ocs_gate_lose(gate, letter->error ? letter->error : OCS_RAILS_ERROR_AGENT,
			      ocs_gate_reason(letter->error));
		return;
	}
	pthread_mutex_lock(&gate->lock);
	if (letter->kind == OCS_RAILS_GRANT)
		while (i < gate->wait_count &&
		       (gate->waits[i].group != letter->group || gate->waits[i].idx != letter->idx))
			i++;
	else
		i = gate->wait_count;
	if (i < gate->wait_count)
		wait_answer(gate, i, letter->error);
	else
		gate->unknown++;
	pthread_mutex_unlock(&gate->lock);
}

static void *letters_read(void *data)
{
	struct ocs_gate *gate = data;
	struct ocs_rails_letter letter;
	int got;

	while (!atomic_load(&gate->lost)) {
		got = ocs_gate_read(gate, &letter);
		if (got < 0)
			ocs_gate_lose(gate, OCS_RAILS_ERROR_AGENT,
				      "the agent's letters make no sense");
		else if (got)
			letter_serve(gate, &letter);
		else
			ocs_gate_sleep(gate);
	}
	return NULL;
}

void ocs_gate_fault(struct ocs_gate *gate, const char *text, size_t length, bool here)
{
	if (gate->faults++ < FAULTS_MAX && !gate->quiet && (here || gate->verbose))
		fprintf(stderr, "slurm-ocs: %.*s%s\n", (int)length, text,
			gate->faults == FAULTS_MAX ? " (later faults are not shown)" : "");
	if (gate->signal)
		kill(getpid(), gate->signal);
}

static void word_serve(struct ocs_gate *gate, const struct ocs_rails_word *word, const char *text,
		       size_t bytes)
{
	struct gate_group *group;

	if (word->kind == OCS_RAILS_NOTE && word->error) {
		ocs_gate_fault(gate, text, word->count < bytes ? word->count : bytes,
			       word->rank == (uint32_t)gate->rank);
		return;
	}
	if (word->kind == OCS_RAILS_NOTE) {
		if (gate->verbose)
			fprintf(stderr, "slurm-ocs: rank %d: %.*s\n", gate->rank,
				(int)(word->count < bytes ? word->count : bytes), text);
		return;
	}
	if (word->kind != OCS_RAILS_KNOWN)
		return;
	pthread_mutex_lock(&gate->lock);
	group = ocs_gate_find(gate, word->group);
	if (group && group->state == GROUP_ASKED) {
		group->state = word->error ? GROUP_REFUSED : GROUP_KNOWN;
		group->need = word->need;
		pthread_cond_broadcast(&gate->answered);
	}
	pthread_mutex_unlock(&gate->lock);
}

static void *words_read(void *data)
{
	static const char agent_gone[] =
		"ocs-rails-agent of this node is gone; operations end with an error";
	struct ocs_gate *gate = data;
	union {
		struct ocs_rails_word word;
		char bytes[sizeof(struct ocs_rails_word) + TEXT_BYTES];
	} got;
	ssize_t length;

	for (;;) {
		length = recv(gate->sock, &got, sizeof(got), 0);
		if (length < 0 && errno == EINTR)
			continue;
		if (length <= 0)
			break;
		if (length >= (ssize_t)sizeof(got.word))
			word_serve(gate, &got.word, got.bytes + sizeof(got.word),
				   (size_t)length - sizeof(got.word));
	}
	if (!atomic_load(&gate->lost))
		ocs_gate_fault(gate, agent_gone, sizeof(agent_gone) - 1, gate->first);
	ocs_gate_lose(gate, OCS_RAILS_ERROR_AGENT, ocs_gate_reason(OCS_RAILS_ERROR_AGENT));
	ocs_gate_futex_wake(&gate->box->to_rank.head, true);
	return NULL;
}

int ocs_gate_start(struct ocs_gate *gate)
{
	void *(*const reads[])(void *) = { words_read, letters_read };
	sigset_t all, before;
	pthread_t thread;
	int error = 0;

	/* The program's signals are for the program's threads. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	for (size_t i = 0; i < 2 && !error; i++) {
		error = pthread_create(&thread, NULL, reads[i], gate);
		if (!error)
			pthread_detach(thread);
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return error ? ocs_gate_fail("no thread: %s", strerror(error)) : 0;
}
