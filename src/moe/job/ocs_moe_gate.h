/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_MOE_GATE_H
#define OCS_MOE_GATE_H

/* Hands what a gate chose to the agent of the node.  Nothing here waits or fails: what the agent does not
 * take at once is dropped and counted.
 *
 * Each call is one datagram to a UNIX socket: struct ocs_moe_gate_head, and for a row COUNTS numbers of
 * 64 bits.  Numbers have the byte order of the node.  Agents take other versions for nothing.
 * The kernel keeps net.unix.max_dgram_qlen datagrams, 10 on some: an agent reads as soon as there is one. */

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define OCS_MOE_GATE_MAGIC UINT32_C(0x6f6d6731)
#define OCS_MOE_GATE_COUNTS 4096 /* of a row, at most */

enum ocs_moe_gate_kind {
	OCS_MOE_GATE_ROW = 1, /* the gate has chosen */
	OCS_MOE_GATE_BEGIN,   /* this rank begins an all-to-all */
	OCS_MOE_GATE_END,     /* it has sent and received all of it */
};

struct ocs_moe_gate_head {
	uint32_t magic;
	uint16_t kind;
	uint16_t counts; /* of a row; 0 for others */
	int32_t rank, ranks;
	int32_t layer;
	int32_t step; /* 2 * backward + second; 0 for a row */
	int64_t microbatch;
	uint64_t dropped; /* calls of this rank that were dropped so far */
};

struct ocs_moe_gate;

/* For rank RANK of RANKS; PATH is the agent's socket, or NULL for $OCS_MOE_AGENT, else that of the job's controller
 * or its relay here ($SLURM_OCS_MOE_SOCKETS/gate.$SLURM_OCS_MOE_GROUP).  The agent need not be
 * there (yet); without any path all calls are dropped.  NULL without memory; all others take NULL. */
struct ocs_moe_gate *ocs_moe_gate_open(const char *path, int rank, int ranks);
void ocs_moe_gate_close(struct ocs_moe_gate *gate);

/* COUNTS[N]: tokens that this rank's gate sends to each expert, or to each rank, in LAYER of MICROBATCH,
 * which is counted up over the whole run.  Thread-safe. */
void ocs_moe_gate(struct ocs_moe_gate *gate, int layer, int64_t microbatch, const int64_t *counts,
		  int n);

/* This rank begins (ENDED 0) or has finished (1) an all-to-all; SECOND: it brings results back. */
void ocs_moe_gate_step(struct ocs_moe_gate *gate, int layer, int64_t microbatch, int backward,
		       int second, int ended);

/* Calls that were dropped. */
uint64_t ocs_moe_gate_dropped(const struct ocs_moe_gate *gate);

/* The agent's side: a socket at PATH, for this user alone, non-blocking; -1 with errno.  A socket on which no
 * one listens is replaced. */
int ocs_moe_gate_listen(const char *path);

/* The next datagram: 1 and *HEAD, COUNTS (room for OCS_MOE_GATE_COUNTS); 0: there is none; -1: it was none of
 * these, or came from another user, and is thrown away. */
int ocs_moe_gate_read(int fd, struct ocs_moe_gate_head *head, int64_t *counts);

/* Whether HEAD and SIZE bytes of COUNTS are what ocs_moe_gate_read would return: 0, or -1. */
int ocs_moe_gate_check(const struct ocs_moe_gate_head *head, const int64_t *counts, size_t size);

#ifdef __cplusplus
}
#endif

#endif
