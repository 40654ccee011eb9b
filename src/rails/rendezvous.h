/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_RAILS_RENDEZVOUS_H
#define OCS_RAILS_RENDEZVOUS_H

/* Where agents find the controller of their job: on the first node, at a port of a range that follows
 * from the number of the job; the next one where that is taken.  Agents try the same ports in the same
 * order, and stay where they are shown a proof of the job's secret (src/rails/frames.h). */

#include "src/rails/frames.h"

#define OCS_RENDEZVOUS_PORTS "24000-24999"
#define OCS_RENDEZVOUS_TRIES 16

struct ocs_rendezvous {
	int low, high; /* ports */
	uint32_t job;
	uint64_t epoch;
	char secret[129]; /* text, of the job */
};

/* PORTS is LOW-HIGH, or one port.  0, or -1 with ERR (OCS_USAGE). */
int ocs_rendezvous_ports(struct ocs_rendezvous *meet, const char *ports, struct ocs_error *err);

/* Reads a secret from descriptor FD: one line.  0, or -1 with ERR. */
int ocs_rendezvous_secret(int fd, char *secret, size_t size, struct ocs_error *err);
/* The secret of agents, which follows from the CONTROLLER's key. */
void ocs_rendezvous_derive(struct ocs_rendezvous *meet, const char *controller);

/* Which port try number TRY is. */
int ocs_rendezvous_port(const struct ocs_rendezvous *meet, int try);

/* A non-blocking descriptor that listens, or -1 with ERR. */
int ocs_rendezvous_listen(const struct ocs_rendezvous *meet, struct ocs_error *err);

/* Goes once through the ports of HOST (a name or an address).  HELLO, in the order of the machine,
 * without nonce, proof, job and epoch; RANKS are its count of ranks.  Returns a non-blocking
 * descriptor of a proven connection with *WELCOME and what else has come in INBOX, or -1 with ERR. */
int ocs_rendezvous_connect(const struct ocs_rendezvous *meet, const char *host,
			   const struct ocs_frame_hello *hello, const int *ranks,
			   struct ocs_frame_welcome *welcome, struct ocs_inbox *inbox,
			   struct ocs_error *err);

/* ---- the controller's side of the same ---- */

/* What a proven connection needs: no delay, and an end when the other node is gone without a word. */
void ocs_rendezvous_tune(int fd);

/* The first frame of a connection into OUTBOX, with the NONCE that it draws.  0, or -1: no random numbers. */
int ocs_rendezvous_challenge(struct ocs_outbox *outbox, uint8_t nonce[OCS_FRAMES_NONCE]);

/* Whether FRAME, the first one that came after NONCE, proves that its sender knows the secret of the job: *HELLO in
 * the order of the machine, *RANKS as of ocs_frame_hello_read (NULL where it is no hello at all). */
bool ocs_rendezvous_hello(const struct ocs_rendezvous *meet, const uint8_t nonce[OCS_FRAMES_NONCE],
			  const struct ocs_frame *frame, struct ocs_frame_hello *hello,
			  int **ranks);

/* The answer to HELLO into OUTBOX; FREE as in the frame. */
void ocs_rendezvous_welcome(const struct ocs_rendezvous *meet,
			    const uint8_t nonce[OCS_FRAMES_NONCE],
			    const struct ocs_frame_hello *hello, bool free,
			    struct ocs_outbox *outbox);

#endif
