/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_RAILS_AGENT_H
#define OCS_RAILS_AGENT_H

/* The agent of one node for one step: ranks reach it as src/rails/mailbox.h says, and it reaches the
 * controller of the job over one connection (src/rails/frames.h). */

#include <pthread.h>
#include <stdbool.h>

#include "src/rails/frames.h"
#include "src/rails/mailbox.h"
#include "src/rails/rendezvous.h"
#include "src/rails/table.h"
#include "src/util/error.h"

/* A rank of this node. */
struct local_rank {
	int rank;
	enum local_state {
		LOCAL_ABSENT,
		LOCAL_GREETED, /* it said hello, and waits for the controller */
		LOCAL_HERE,
		LOCAL_GONE,
	} state;
	bool clean; /* it said goodbye */
	int fd, bell;
	struct ocs_rails_mailbox *box;
	uint32_t read, written;		/* letters of its rings */
	struct ocs_rails_letter *queue; /* that its ring had no room for */
	size_t queued, room;
};

/* A connection at the socket. */
struct peer {
	int fd; /* -1: a free place */
	struct local_rank *rank;
};

struct local_group {
	uint64_t id;
	int *ranks;
	uint32_t count;
	bool known;
	int32_t error;
	uint32_t need;
	int *joined; /* places of local ranks that named it */
	int njoined;
	bool *answered; /* of these */
};

struct agent {
	struct ocs_rendezvous meet;
	struct ocs_frame_hello hello; /* what the controller is told */
	int *numbers;		      /* global numbers of the local ranks, ascending */
	const char *host, *socket;
	int wait_s; /* for the controller, at first */
	int epoll, listener, stop;
	int spare;  /* descriptor */
	int parent; /* pidfd of the process with which this one ends, or -1 */
	bool syslog;
	struct local_rank *ranks; /* hello.count of them */
	struct peer *peers;
	int npeers;
	struct ocs_rails_table groups;
	size_t group_memory;
	int nqueued; /* ranks with letters that wait for room */
	/* The controller: */
	enum {
		CONTROLLER_SOUGHT,
		CONTROLLER_FOUND,
		CONTROLLER_LOST,
	} controller;
	int fd;
	int seeks;     /* so far */
	bool free_run; /* another step has the circuits */
	bool writing;  /* EPOLLOUT is asked for */
	int32_t over;  /* error of every operation from now on */
	struct ocs_inbox inbox;
	struct ocs_outbox outbox;
	/* The thread that seeks it; what it found, when FOUND is readable: */
	pthread_t seeker;
	int found;
	struct ocs_frame_welcome welcome;
	struct ocs_error err;
};

enum agent_event {
	EVENT_STOP,
	EVENT_LISTENER,
	EVENT_FOUND,
	EVENT_CONTROLLER,
	EVENT_PEER,
	EVENT_BELL
};

/* Waits for EVENTS of FD; which one it was is KIND and NUMBER. */
int agent_watch(struct agent *agent, int fd, uint32_t events, enum agent_event kind, int number);

/* ---- ranks.c: the socket and mailboxes of ranks ---- */

int agent_listen(struct agent *agent, struct ocs_error *err);
void agent_accept(struct agent *agent);
void agent_peer(struct agent *agent, int number);
void agent_bell(struct agent *agent, int number);
/* Every rank that waits for it is welcomed, or refused where ERROR is not 0. */
void agent_welcome(struct agent *agent, int32_t error);
/* LETTER for RANK; queued where its ring is full. */
void agent_letter(struct agent *agent, struct local_rank *rank,
		  const struct ocs_rails_letter *letter);
void agent_queue_flush(struct agent *agent);
void agent_note(struct agent *agent, const char *text, size_t length);
/* Says which ranks are gone, to another controller. */
void agent_ranks_ask(struct agent *agent);
/* Whether every rank has come and gone. */
bool agent_done(const struct agent *agent);
void agent_ranks_free(struct agent *agent);
struct local_rank *agent_rank(struct agent *agent, int rank);

/* WORD with LENGTH bytes TEXT, if RANK is there to read. */
void agent_word_send(const struct local_rank *rank, const struct ocs_rails_word *word,
		     const char *text, size_t length);

/* ---- faults.c ---- */

/* Every rank here is told of a fault of LENGTH bytes TEXT, and RANK is to write it. */
void agent_fault_tell(struct agent *agent, uint32_t rank, const char *text, size_t length);
/* The same of a fault that this agent found, which goes to the log, too. */
void agent_fault(struct agent *agent, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* ---- groups.c ---- */

/* RANK names a group: WORD with its ranks LIST. */
void agent_group(struct agent *agent, struct local_rank *rank, const struct ocs_rails_word *word,
		 const int32_t *list);
/* What RANK wrote. */
void agent_letter_take(struct agent *agent, struct local_rank *rank,
		       const struct ocs_rails_letter *letter);
void agent_known(struct agent *agent, const struct ocs_frame_known *known);
void agent_grant(struct agent *agent, const struct ocs_frame_grant *grant);
/* Nothing more will be granted. */
void agent_over(struct agent *agent, int32_t error);
/* Whether one was granted, or may have been, by the controller. */
bool agent_groups_known(const struct agent *agent);
/* Asks another controller for those that are not known. */
void agent_groups_ask(struct agent *agent);
void agent_groups_free(struct agent *agent);

/* ---- controller.c: the connection to it ---- */

int agent_seek(struct agent *agent, struct ocs_error *err);
void agent_found(struct agent *agent);
void agent_controller_read(struct agent *agent);
void agent_flush(struct agent *agent);

#endif
