/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_MOE_JOB_STATE_H
#define OCS_MOE_JOB_STATE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "src/moe/job/frame.h"

#define OCS_MOE_CREDITS \
	4 /* chunks of a class on a connection that are under way to a rank to be passed on */
#define OCS_MOE_PENDING 64 /* connections that have not greeted yet */

/* A frame to send: one that tells something, or a chunk of another rank. */
struct ocs_moe_item {
	struct ocs_moe_item *next;
	struct ocs_moe_frame frame;
	unsigned char *data; /* frame.length bytes, owned; NULL if there are none */
	int from_peer;	     /* who gets a credit when it has left; -1: no one */
	uint32_t from_link;
	uint8_t from_class;
};

struct ocs_moe_queue {
	struct ocs_moe_item *head, *tail;
};

enum ocs_moe_conn_state {
	OCS_MOE_CLOSED,
	OCS_MOE_LISTENING, /* waits for the other end */
	OCS_MOE_CONNECTING,
	OCS_MOE_RETRYING, /* connects again at RETRY_AT */
	OCS_MOE_UP,
};

/* What takes one path to one rank: the bytes BEGIN to END of what goes there. */
struct ocs_moe_lane {
	int to, hops;
	struct ocs_moe_route_hop route[OCS_MOE_HOPS];
	size_t begin, end, next;
	bool again; /* these bytes were sent before */
	struct ocs_moe_conn *conn;
	struct ocs_moe_lane *sibling; /* of the same connection */
};

/* A connection to PEER. */
struct ocs_moe_conn {
	int fd, peer;
	uint32_t link;
	enum ocs_moe_conn_state state;
	bool connects; /* this end does */
	struct sockaddr_storage here, there;
	int64_t retry_at;
	int credits[OCS_MOE_HOPS];

	struct ocs_moe_queue words;		  /* frames that tell something */
	struct ocs_moe_queue relay[OCS_MOE_HOPS]; /* chunks of others, by class */
	struct ocs_moe_lane *lanes, *lane;	  /* of this call; the one that was served last */
	/* What is being sent. */
	struct ocs_moe_frame out;
	const unsigned char *out_data;
	struct ocs_moe_item *out_item; /* owns out_data, or NULL: the caller's memory does */
	size_t out_sent, out_size;     /* header and data; 0: nothing */
	/* What is being received. */
	struct ocs_moe_frame in;
	unsigned char *in_data; /* where it goes; NULL: nowhere */
	bool in_relay;		/* in_data is ours */
	bool in_mine;		/* in_data is in the caller's memory */
	size_t in_got;
	bool paused;	    /* the next frame belongs to a later call */
	bool done;	    /* the peer has finished this call */
	int64_t heard_at;   /* when anything came by it */
	bool bye;	    /* the peer has closed its handle */
	uint64_t confirmed; /* bytes that the other end had when it was last looked at */
	int64_t stuck_at;   /* since when bytes are under way and none is confirmed; 0: not so */
};

struct ocs_moe_pending {
	int fd;
	size_t got;
	int64_t since;
	struct ocs_moe_greeting greeting;
};

struct ocs_moe {
	int rank, ranks, idle_ms, dark_ms;
	size_t chunk;
	unsigned char key[OCS_MOE_KEY];
	char error[OCS_MOE_TEXT];
	bool broken, farewell;
	struct ocs_moe_stats stats;
	uint64_t memory;

	int listen_fd;
	struct ocs_moe_conn **conn; /* [conns]; the first RANKS by rank, own one NULL; then links */
	int conns;
	struct ocs_moe_pending pending[OCS_MOE_PENDING];
	int pendings;
	struct {
		int fd;
		uint32_t link;
	} * listener; /* of circuits */
	int listeners;
	bool unsure; /* circuits of the list may be gone: none is tried again */

	struct ocs_moe_way *way;
	int ways;

	/* The call under way. */
	bool calling;
	uint32_t call;
	const unsigned char *send;
	unsigned char *receive;
	const size_t *send_bytes, *send_at, *receive_bytes, *receive_at;
	unsigned char **got, **acked; /* [ranks] a bit for each chunk */
	size_t to_get, to_ack;	      /* bytes */
	struct ocs_moe_lane **lane;
	int lanes, lanes_size;
	bool told_done;
	int64_t settle_at; /* when circuits were to be still first; 0: not yet */
	int64_t progress_at, dark_at, here_at;
	struct pollfd *poll; /* scratch */
	int poll_size;
};

/* handle.c: sets the error of a handle; returns -1. */
int ocs_moe_fail(struct ocs_moe *moe, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* handle.c: tells all others why this rank gives up, or that it goes, as far as they take it at
 * once. */
void ocs_moe_farewell(struct ocs_moe *moe);

/* connect.c */
int64_t ocs_moe_now(void); /* ms */
/* "ip:port"; 0 or -1. */
int ocs_moe_address_parse(const char *text, struct sockaddr_storage *address);
socklen_t ocs_moe_address_size(const struct sockaddr_storage *address);
/* Listens on ADDRESS, without blocking; a descriptor or -1 with errno. */
int ocs_moe_listen(const struct sockaddr_storage *address);
struct ocs_moe_conn *ocs_moe_conn_create(int peer, uint32_t link);
void ocs_moe_conn_destroy(struct ocs_moe *moe, struct ocs_moe_conn *conn);
/* Begins to connect, or again. */
void ocs_moe_conn_start(struct ocs_moe *moe, struct ocs_moe_conn *conn);
/* A connect is over, for good or bad. */
void ocs_moe_conn_finish(struct ocs_moe *moe, struct ocs_moe_conn *conn);
/* Takes what waits at a listening socket. */
void ocs_moe_accept(struct ocs_moe *moe, int fd);
/* Reads a greeting; the connection becomes one of the handle's, or is closed.  Returns whether it is
 * no longer pending. */
bool ocs_moe_greet(struct ocs_moe *moe, struct ocs_moe_pending *pending);
struct ocs_moe_conn *ocs_moe_conn_find(const struct ocs_moe *moe, int peer, uint32_t link);

/* Closes it; the other end of a circuit hears nothing. */
void ocs_moe_conn_shut(struct ocs_moe_conn *conn);
/* Closes it, to be begun again in a moment. */
void ocs_moe_conn_retry(struct ocs_moe_conn *conn);

/* silence.c */
/* Closes a circuit's socket.  Nothing leaves this machine for it, now or later; Linux before 5.7 sends one reset. */
void ocs_moe_hush(int fd);
/* A process that dies ends a circuit's socket by one reset, and nothing is sent again. */
void ocs_moe_hush_at_death(int fd);
/* Acknowledges what came, which the kernel would do 40 ms later. */
void ocs_moe_acknowledge(int fd);
/* Acknowledges what came by circuits, and says whether all that this rank sent by them is acknowledged. */
bool ocs_moe_still(const struct ocs_moe *moe);
/* Attempts to connect circuits are given up for this call. */
void ocs_moe_rest(struct ocs_moe *moe);
/* The end of a call: a circuit that is not still after dark_ms is left alone.  -1: the handle is broken. */
int ocs_moe_settle(struct ocs_moe *moe);

/* send.c */
void ocs_moe_tell(struct ocs_moe *moe, int peer, const struct ocs_moe_frame *frame,
		  const char *text);
bool ocs_moe_conn_has(const struct ocs_moe *moe, const struct ocs_moe_conn *conn);
/* Sends what there is; -1: the connection is gone. */
int ocs_moe_send(struct ocs_moe *moe, struct ocs_moe_conn *conn);
/* Hands a chunk of another rank on; takes ITEM. */
void ocs_moe_pass(struct ocs_moe *moe, struct ocs_moe_item *item);
void ocs_moe_item_free(struct ocs_moe *moe, struct ocs_moe_item *item);

/* receive.c: reads what is there; -1: the connection is gone, or the handle is broken. */
int ocs_moe_receive(struct ocs_moe *moe, struct ocs_moe_conn *conn);
/* A call has begun: what belongs to it is taken. */
int ocs_moe_resume(struct ocs_moe *moe, struct ocs_moe_conn *conn);

/* lanes.c */
int ocs_moe_lanes_make(struct ocs_moe *moe);
void ocs_moe_lanes_free(struct ocs_moe *moe);
/* The bytes of every lane over LINK are sent by packets, but for those that have arrived. */
void ocs_moe_lanes_turn(struct ocs_moe *moe, uint32_t link);

/* loop.c: one round of poll, at most WAIT_MS.  -1: the handle is broken. */
int ocs_moe_turn(struct ocs_moe *moe, int wait_ms);
/* A connection is lost: a circuit is left alone from now on, packets end the call. */
int ocs_moe_conn_lost(struct ocs_moe *moe, struct ocs_moe_conn *conn, const char *why);

static inline bool ocs_moe_bit(const unsigned char *bits, size_t k)
{
	return bits[k / 8] >> k % 8 & 1;
}

#endif
