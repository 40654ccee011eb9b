/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef TESTS_GATE_AGENT_H
#define TESTS_GATE_AGENT_H

/* An agent for the gate of one task, written from the protocol's text; where it does not say otherwise a function
 * fails the test when the task is silent for a minute. */

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Of one direction: where things are. */
#define HEAD 0
#define TAIL 64
#define READER 68
#define WRITER 72
#define LETTERS 128
#define LETTER 64
#define ROOM 1024
#define RING (LETTERS + ROOM * LETTER)

#define HELLO 1
#define WELCOME 2
#define GROUP 3
#define KNOWN 4
#define GOODBYE 5
#define ARRIVE 1
#define END 2
#define WISH 3
#define GRANT 4
#define LOST 5

struct letter {
	uint32_t kind;
	int32_t error;
	uint64_t group, idx, rails, stamp, zero[3];
};

struct word {
	uint32_t kind, version, rank, ranks;
	uint64_t group;
	uint32_t count, need;
	int32_t error;
	uint32_t zero;
	int32_t members[64];
};

#define WORD offsetof(struct word, members)

struct agent {
	int listener, sock, box_fd, bell;
	unsigned char *box;
	uint32_t read, written;
	pid_t rank;
	char path[64];
};

/* Whether agents of cases to come have an abstract name. */
extern bool agent_abstract;

/* A case: RANK_SIDE runs in a process of its own, with the agent's address in its environment, and has to end
 * well; AGENT_SIDE (or NULL: nothing answers) runs here, connected to it. */
void case_run(void (*rank_side)(void), void (*agent_side)(struct agent *));

/* What lies at OFFSET of ring RING of the mailbox: 0 to the agent, 1 to the rank. */
_Atomic uint32_t *agent_number(struct agent *agent, int ring, int offset);

/* The next word of the rank: its bytes, 0 where it is gone.  And one that has to be of KIND. */
ssize_t word_get(struct agent *agent, struct word *word);
void words_expect(struct agent *agent, uint32_t kind);

/* A mailbox of SIZE bytes with SEALS of fcntl(), and its bell. */
void box_make(struct agent *agent, size_t size, int seals);
/* Sends BYTES of WORD with COUNT descriptors: those of mailbox, bell and bell. */
void welcome_send(struct agent *agent, const struct word *word, size_t bytes, int count);
/* Takes the rank's hello and answers it as an agent should. */
void agent_welcome(struct agent *agent);
/* Takes the rank's next group and answers with NEED and ERROR; its name. */
uint64_t group_serve(struct agent *agent, uint32_t need, int error);

/* The next letter of the rank; one to it; and one of the rank that has to be this. */
struct letter letter_get(struct agent *agent);
void letter_put(struct agent *agent, uint32_t kind, uint64_t group, uint64_t idx, int error);
void letter_expect(struct agent *agent, uint32_t kind, uint64_t group, uint64_t idx);

#endif
