/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef TESTS_TL1_PEER_H
#define TESTS_TL1_PEER_H

/* A peer that says exactly what a test wants, in a thread of its own. */

#include <pthread.h>
#include <stdbool.h>

#include "src/util/text.h"

/* The answer to each command in turn; $ is replaced by the command's ctag.  NULL:
 * silence.  A '!' closes the connection there.  After the last: silence. */
struct tl1_peer {
	char folder[64];
	char address[96];
	int listener;
	pthread_t thread;
	const char *const *answers;
	bool bytewise;		  /* one byte at a time */
	struct ocs_text received; /* all bytes of all connections */
	int connections;
};

void tl1_peer_start(struct tl1_peer *peer, const char *const *answers, bool bytewise);
/* Waits until the peer has seen the end of its last connection. */
void tl1_peer_stop(struct tl1_peer *peer);
void tl1_peer_free(struct tl1_peer *peer);

#endif
