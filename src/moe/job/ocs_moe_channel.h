/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_MOE_CHANNEL_H
#define OCS_MOE_CHANNEL_H

/* The all-to-alls of a program that knows nothing of circuits: what the wrappers of its communication
 * library make of them (ocs_moe_mpi.c).  A channel belongs to a communicator.
 *
 * It has the addresses, gates and plans that the environment names.  In a job with --ocs-moe that is what
 * spank_ocs(8) sets; by hand, with one of the first three at least:
 *   OCS_MOE_ADDRESS  this rank's packet address; else that of the first device in OMPI_MCA_btl_tcp_if_include or
 *                    GLOO_SOCKET_IFNAME, of the node as Slurm knows it, or 127.0.0.1
 *   OCS_MOE_PLAN     a plan: a file with what ocs_moe_plan takes, read again when it is another one, or the UNIX socket
 *                    of a controller, which is asked before each call (doc/moe.md)
 *   OCS_MOE_AGENT    where gates go (ocs_moe_gate.h)
 *   OCS_MOE_EACH     ranks of a server (1)
 *   OCS_MOE_LAYERS   layers of the training: each has two calls forward and two backward.  Without it they are
 *                    known by their counts: results go back as tokens came, gradients as tokens and results did
 *   OCS_MOE_TOKEN_BYTES  bytes of a token (8192)
 *   OCS_MOE_OFF      there are no channels; set it for all ranks alike */

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define OCS_MOE_CARD 64

/* What all members of a communicator tell each other before they open a channel. */
struct ocs_moe_card {
	char address[OCS_MOE_CARD]; /* "": it has none */
	unsigned char key[32];	    /* the first member's counts */
	int32_t group, servers;	    /* of the job, or -1; servers of the group */
	int32_t server;		    /* of the group, which this rank is on */
};

struct ocs_moe_channel;

/* This rank's card.  Returns the socket that listens at its address, which ocs_moe_channel_open takes over, or -1. */
int ocs_moe_card_make(struct ocs_moe_card *card);

/* Of RANK of RANKS; WHOLE: these are all ranks of the program.  Each of them calls it with the same CARDS, by
 * rank.  NULL: this communicator goes the library's own way, since it is not what --ocs-moe calls a group (as many
 * ranks on each of its servers), or a rank could not, with a line on stderr; members have to agree on that. */
struct ocs_moe_channel *ocs_moe_channel_open(int rank, int ranks, int whole,
					     const struct ocs_moe_card *cards, int listen_fd);
void ocs_moe_channel_close(struct ocs_moe_channel *channel);

/* As ocs_moe_alltoall, with ranks of the communicator; asks for the plan before, and tells the gate.  Threads may call
 * it at once, with another TAG each, the same for all members: calls are made in the first member's order. */
int ocs_moe_channel_exchange(struct ocs_moe_channel *channel, int64_t tag, const void *send,
			     const size_t *send_bytes, const size_t *send_at, void *receive,
			     const size_t *receive_bytes, const size_t *receive_at);

/* Why it failed. */
const char *ocs_moe_channel_error(const struct ocs_moe_channel *channel);

#ifdef __cplusplus
}
#endif

#endif
