/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_MOE_SOCKETS_H
#define OCS_MOE_SOCKETS_H

/* The two UNIX sockets that ranks of a group find on their node: datagrams of gates, and questions for plans.
 * Both the controller and its relays on other nodes serve them. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/moe/control.h"
#include "src/util/error.h"

struct pollfd;

#define ASKERS 8 /* connections of a group */
/* Steps of more are not taken: far beyond any run, and sums of them are numbers yet. */
#define MICROBATCHES_MAX (INT64_C(1) << 53)

/* Who asks for plans. */
struct asker {
	int fd; /* -1: none */
	char line[128];
	size_t used;
	bool waits; /* for the plan of STEP, since SINCE */
	struct ocs_moe_step step;
	double since;
	uint64_t token; /* of the question, in a relay */
};

struct sockets {
	int gate, listener;
	int spare; /* descriptor of ocs_net_accept */
	struct asker asker[ASKERS];
};

#define SOCKETS_POLLS (2 + ASKERS) /* descriptors of a group */

/* No socket is open. */
void sockets_clear(struct sockets *sockets);
/* gate.NUMBER and plan.NUMBER in FOLDER.  0, or -1 with ERR. */
int sockets_open(struct sockets *sockets, const char *folder, int number, struct ocs_error *err);
void sockets_close(struct sockets *sockets);
/* FOLDER, for this user alone, made if it is not there.  0, or -1 with ERR. */
int sockets_folder(const char *folder, struct ocs_error *err);
/* Takes away what sockets_open made for groups 0 to GROUPS - 1, and FOLDER if it is empty then. */
void sockets_remove(const char *folder, int groups);
/* Fills SOCKETS_POLLS of POLLS: the gate, the listener, askers. */
void sockets_poll(const struct sockets *sockets, struct pollfd *polls);

/* Takes a connection, if it is one of this user. */
void asker_accept(struct sockets *sockets);
/* Reads what ASKER says.  True: a question is complete, and in its STEP; it waits from NOW on.  Who says
 * anything else is closed. */
bool asker_read(struct asker *asker, double now);
/* Sends TEXT and a line "end"; who does not take it is closed. */
void asker_answer(struct asker *asker, const char *text, size_t length);

#endif
