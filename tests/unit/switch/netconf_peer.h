/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef TESTS_NETCONF_PEER_H
#define TESTS_NETCONF_PEER_H

/* An SSH server that says by NETCONF exactly what a test wants, in a thread. */

#include <pthread.h>
#include <stdbool.h>

#include "src/util/text.h"

/* Set the members up to `flood`, then start. */
struct netconf_peer {
	const char *hello; /* NULL: says none */
	/* The answer to each request in turn; $ is replaced by its message-id.  Several
	 * messages are parted by '|'.  A '!' closes the connection there, NULL is
	 * silence; behind the last there is silence. */
	const char *const *answers;
	bool chunked;	  /* after the hellos */
	bool slow;	  /* never answers who asks within 20 ms of the hello */
	bool raw;	  /* answers carry their own frames */
	bool interactive; /* asks for the password by keyboard-interactive */
	bool no_subsystem;
	bool flood; /* notifications without end once the answers are spent */

	char folder[64];
	char address[64];	  /* host:port */
	char login[96];		  /* credentials file */
	char host_key[64];	  /* fingerprint */
	struct ocs_text received; /* every byte on the channel */
	int listener;
	pthread_t thread;
	void *bind;
};

void netconf_peer_start(struct netconf_peer *peer);
/* Waits until the peer has seen the end of its last connection. */
void netconf_peer_stop(struct netconf_peer *peer);
void netconf_peer_free(struct netconf_peer *peer);

#endif
