/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_MOE_H
#define OCS_MOE_H

/* The all-to-all of a mixture of experts over circuits, packets and relays, in host memory, by TCP.
 * It needs the C library and nothing else.  A handle belongs to one thread at a time.
 *
 * Every rank has a packet address, which all others reach at any time, and may own ends of circuits,
 * each with an address of its own.  A plan says which share of what this rank sends to another one
 * takes which way; the bytes arrive whatever it says: a way with a circuit that is not there, and
 * what a circuit loses when it goes dark, takes packets.
 *
 * Between ranks: a connection for packets, and one for each circuit.  Each begins with a greeting that
 * holds a key of the job, then carries frames (frame.h).  All ranks run on machines of one byte order. */

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define OCS_MOE_KEY 32 /* bytes */
#define OCS_MOE_HOPS 6 /* of a way, at most */
#define OCS_MOE_RANKS_MAX 4096
#define OCS_MOE_LINK_PACKETS 0 /* no circuit: the packet connection of two ranks */

struct ocs_moe;

struct ocs_moe_options {
	int rank, ranks;
	/* [ranks] packet addresses, "10.0.0.1:7000" or "[fd00::1]:7000"; no names. */
	const char *const *address;
	const unsigned char *key; /* [OCS_MOE_KEY], the same for all ranks */
	int open_ms;		  /* until all ranks are there; 0: 30000 */
	int idle_ms; /* a call in which nothing arrives or leaves for so long fails; 0: 600000 */
	int dark_ms; /* a circuit that confirms nothing for so long is dark; 0: 500 */
	int chunk;   /* bytes that travel together; 0: 32768; the same for all ranks */
	int listen_fd; /* a socket that listens on this rank's address, taken over; 0: there is none yet */
};

/* A circuit: rank A owns the NIC at one end, B at the other. */
struct ocs_moe_link {
	uint32_t id; /* not OCS_MOE_LINK_PACKETS; never used again for another circuit */
	int a, b;
	const char *a_address, *b_address; /* as above; B listens there */
};

struct ocs_moe_hop {
	int rank;      /* that this hop leads to */
	uint32_t link; /* that it takes, or OCS_MOE_LINK_PACKETS */
};

/* A way of this rank to rank TO, with the share of the bytes that takes it, 0 to 1.  The last hop leads
 * to TO.  What the ways to a rank leave of 1 takes packets. */
struct ocs_moe_way {
	int to;
	double share;
	int hops;
	struct ocs_moe_hop hop[OCS_MOE_HOPS];
};

struct ocs_moe_stats {
	uint64_t packets, circuits; /* bytes of this rank's own that left by either */
	uint64_t relayed;	    /* bytes of others that this rank passed on */
	uint64_t resent;	    /* bytes that were sent once more, by packets */
	uint64_t dark;		    /* circuits that went down */
	uint64_t strangers;	    /* connections without the key */
	uint64_t memory;	    /* bytes held for others, at most */
};

/* Connects all ranks; each of them calls it.  NULL with a sentence in ERROR (of SIZE bytes). */
struct ocs_moe *ocs_moe_open(const struct ocs_moe_options *options, char *error, size_t size);

/* Says goodbye and frees everything; NULL is fine.  Ranks that are still in a call with this one fail,
 * unless they have had all of it. */
void ocs_moe_close(struct ocs_moe *moe);

/* The circuits of this moment: those of N with this rank at an end are connected, others are let go.
 * Waits up to WAIT_MS for them; what is not there by then is tried during the next calls.  Between calls nothing is
 * under way on a circuit, and one that is let go hears nothing of it: it may be cut already.  The same
 * list may be given to all ranks.  Returns how many of its own are up, or -1 (ocs_moe_error). */
int ocs_moe_links(struct ocs_moe *moe, const struct ocs_moe_link *links, int n, int wait_ms);

/* The plan of the next calls; copied.  One that a controller has answered is for one all-to-all: when its ranks have
 * said that it is over, circuits may be cut, and other calls before the next plan need WAYS NULL.  WAYS NULL: circuits may have gone; those that are not up are not tried until
 * the next list.  -1: a way makes no sense, and the plan is as it was. */
int ocs_moe_ways(struct ocs_moe *moe, const struct ocs_moe_way *ways, int n);

/* Rank j gets SEND_BYTES[j] bytes from SEND + SEND_AT[j], and this rank RECEIVE_BYTES[j] from j at
 * RECEIVE + RECEIVE_AT[j]; what both say has to agree.  All ranks call it, in the same order.  Returns
 * 0 when all has arrived everywhere, or -1: ocs_moe_error says why, all other ranks get an error
 * too, and the handle is only good to be closed.  RECEIVE holds anything then. */
int ocs_moe_alltoall(struct ocs_moe *moe, const void *send, const size_t *send_bytes,
		     const size_t *send_at, void *receive, const size_t *receive_bytes,
		     const size_t *receive_at);

/* The last error, one sentence; "" if there was none. */
const char *ocs_moe_error(const struct ocs_moe *moe);
const struct ocs_moe_stats *ocs_moe_stats(const struct ocs_moe *moe);

/* A share of what one server sends to another: RELAY is a third server, or -1.  Whether its hops take
 * circuits (1) or packets (0); SECOND counts with a relay only. */
struct ocs_moe_share {
	int from, to, relay;
	int first, second;
	double share;
};

/* Ways of rank RANK for the N SHARES between servers, by delegates: what takes a circuit goes to the
 * rank of this server that owns an end of it, over it, and from the rank there to where it is to
 * go.  Parallel circuits get equal parts.  Rank r runs on server r / EACH.  Returns ways (the caller
 * frees them) and sets *COUNT, or NULL without memory. */
struct ocs_moe_way *ocs_moe_ways_make(int rank, int ranks, int each,
				      const struct ocs_moe_share *shares, int n,
				      const struct ocs_moe_link *links, int nlinks, int *count);

/* The circuits and ways of the next calls from text, a line each; lines that begin with # say nothing:
 *     link ID RANK RANK ADDRESS ADDRESS             as in struct ocs_moe_link
 *     circuit ID SERVER NIC SERVER NIC ADDRESS ADDRESS   the same between servers
 *     share FROM TO RELAY FIRST SECOND SHARE        as in struct ocs_moe_share
 * The same text may be given to all ranks.  As ocs_moe_links and ocs_moe_ways of ocs_moe_ways_make: returns
 * how many circuits of this rank are up, or -1; then, if the text made no sense, all is as it was. */
int ocs_moe_plan(struct ocs_moe *moe, const char *text, int each, int wait_ms);

#ifdef __cplusplus
}
#endif

#endif
