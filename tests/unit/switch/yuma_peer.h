/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef TESTS_YUMA_PEER_H
#define TESTS_YUMA_PEER_H

/* netconfd of yuma123 behind OpenSSH's server: a NETCONF peer that shares no code
 * with this project.  It serves tests/data/optical-switch.yang for a 32x32 switch in
 * which port 7 has failed, port p has -2 - p/100 dBm, and 9>60 is joined. */

#include <pthread.h>
#include <stdbool.h>
#include <sys/types.h>

struct yuma_peer {
	char folder[64];
	char address[64]; /* host:port of SSH */
	char login[96];	  /* credentials file, with a key */
	char known_hosts[96];
	int listener;
	pthread_t thread;
	pid_t server;
};

/* Whether both programs are installed. */
bool yuma_peer_exists(void);
/* PROTOCOL is netconf1.0 or netconf1.1.  Fails the test if it does not come up. */
void yuma_peer_start(struct yuma_peer *peer, const char *protocol);
void yuma_peer_stop(struct yuma_peer *peer);

#endif
