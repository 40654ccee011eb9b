/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* One thread, one poll: whatever is ready goes on. */

#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/moe/job/state.h"

/* A circuit's bytes that have not left, or may not have arrived, take packets. */
static void link_leave(struct ocs_moe *moe, struct ocs_moe_conn *conn)
{
	struct ocs_moe_item *item = conn->out_item;
	struct ocs_moe_queue left[OCS_MOE_HOPS];

	conn->out_item = NULL;
	conn->out_size = 0;
	memcpy(left, conn->relay, sizeof(left));
	memset(conn->relay, 0, sizeof(conn->relay));
	if (item)
		ocs_moe_pass(moe, item);
	for (int class = 0; class < OCS_MOE_HOPS; class ++) {
		while ((item = left[class].head)) {
			left[class].head = item->next;
			ocs_moe_pass(moe, item);
		}
	}
	for (int peer = 0; peer < moe->ranks; peer++)
		ocs_moe_tell(moe, peer,
			     &(struct ocs_moe_frame){ .kind = OCS_MOE_DOWN, .link = conn->link },
			     NULL);
	ocs_moe_lanes_turn(moe, conn->link);
}

int ocs_moe_conn_lost(struct ocs_moe *moe, struct ocs_moe_conn *conn, const char *why)
{
	ocs_moe_conn_shut(conn);
	conn->state = OCS_MOE_CLOSED;
	if (conn->in_relay) {
		moe->memory -= conn->in.length;
		free(conn->in_data);
	}
	conn->in_data = NULL;
	conn->in_relay = conn->in_mine = conn->paused = false;
	conn->in_got = 0;
	if (conn->link != OCS_MOE_LINK_PACKETS) {
		/* A rank that has finished may go and close its circuits; what others send through it
		 * still has to arrive. */
		moe->stats.dark += !moe->conn[conn->peer]->done || !moe->calling;
		link_leave(moe, conn);
		return moe->broken ? -1 : 0;
	}
	/* One that has finished the call owes this rank nothing. */
	if (!moe->calling || conn->done)
		return 0;
	if (conn->bye)
		return ocs_moe_fail(moe, "rank %d closed its handle in the middle of an all-to-all",
				    conn->peer);
	return ocs_moe_fail(moe, "rank %d is gone: %s", conn->peer,
			    why ? why : "it closed its connection");
}

/* Circuits on which bytes are under way and none was confirmed for long. */
static int dark_find(struct ocs_moe *moe, int64_t now)
{
	if (now < moe->dark_at)
		return 0;
	moe->dark_at = now + moe->dark_ms / 4 + 1;
	for (int k = moe->ranks; k < moe->conns; k++) {
		struct ocs_moe_conn *conn = moe->conn[k];
		struct tcp_info info = { 0 };
		socklen_t size = sizeof(info);

		if (conn->state != OCS_MOE_UP ||
		    getsockopt(conn->fd, IPPROTO_TCP, TCP_INFO, &info, &size))
			continue;
		if (!info.tcpi_unacked || info.tcpi_bytes_acked != conn->confirmed) {
			conn->confirmed = info.tcpi_bytes_acked;
			conn->stuck_at = 0;
		} else if (!conn->stuck_at) {
			/* Counted from here, not from when this was last looked at: the bytes may have
			 * left a moment ago. */
			conn->stuck_at = now;
		} else if (now - conn->stuck_at > moe->dark_ms &&
			   ocs_moe_conn_lost(moe, conn, "the circuit is dark")) {
			return -1;
		}
	}
	return 0;
}

static int polls_fill(struct ocs_moe *moe)
{
	int n = 0;

	moe->poll[n++] = (struct pollfd){ .fd = moe->listen_fd, .events = POLLIN };
	for (int k = 0; k < moe->listeners; k++)
		moe->poll[n++] = (struct pollfd){ .fd = moe->listener[k].fd, .events = POLLIN };
	for (int k = 0; k < moe->pendings; k++)
		moe->poll[n++] = (struct pollfd){ .fd = moe->pending[k].fd, .events = POLLIN };
	for (int k = 0; k < moe->conns; k++) {
		struct ocs_moe_conn *conn = moe->conn[k];
		struct pollfd *entry = &moe->poll[n++];

		*entry = (struct pollfd){ .fd = conn ? conn->fd : -1 };
		if (!conn)
			continue;
		if (conn->state == OCS_MOE_CONNECTING)
			entry->events = POLLOUT;
		if (conn->state == OCS_MOE_UP)
			entry->events = (short)((conn->paused ? 0 : POLLIN) |
						(ocs_moe_conn_has(moe, conn) ? POLLOUT : 0));
		/* A closed end says so all the time. */
		if (!entry->events)
			entry->fd = -1;
	}
	return n;
}

static int polls_reserve(struct ocs_moe *moe)
{
	int want = 1 + moe->listeners + OCS_MOE_PENDING + moe->conns;
	void *more;

	if (want <= moe->poll_size)
		return 0;
	more = realloc(moe->poll, (size_t)want * sizeof(*moe->poll));
	if (!more)
		return ocs_moe_fail(moe, "there is no memory left");
	moe->poll = more;
	moe->poll_size = want;
	return 0;
}

static int conn_serve(struct ocs_moe *moe, struct ocs_moe_conn *conn, short events)
{
	if (conn->state == OCS_MOE_CONNECTING) {
		ocs_moe_conn_finish(moe, conn);
		return 0;
	}
	if (conn->state == OCS_MOE_UP && events & (POLLIN | POLLHUP | POLLERR) &&
	    ocs_moe_receive(moe, conn))
		return -1;
	if (conn->state == OCS_MOE_UP && events & POLLOUT && ocs_moe_send(moe, conn))
		return ocs_moe_conn_lost(moe, conn, "it took no more bytes");
	return 0;
}

/* Whether CONN is to be tried again: a circuit only while it certainly stands. */
static bool conn_due(const struct ocs_moe *moe, const struct ocs_moe_conn *conn)
{
	return conn->state == OCS_MOE_RETRYING &&
	       (conn->link == OCS_MOE_LINK_PACKETS ||
		!(moe->unsure || (moe->calling && moe->told_done)));
}

static int conns_serve(struct ocs_moe *moe, int first)
{
	for (int k = 0; k < moe->conns; k++) {
		struct ocs_moe_conn *conn = moe->conn[k];
		short events = moe->poll[first + k].revents;

		if (conn && conn->fd >= 0 && moe->poll[first + k].fd == conn->fd && events &&
		    conn_serve(moe, conn, events))
			return -1;
		if (conn && conn_due(moe, conn) && ocs_moe_now() >= conn->retry_at)
			ocs_moe_conn_start(moe, conn);
	}
	return moe->broken ? -1 : 0;
}

int ocs_moe_turn(struct ocs_moe *moe, int wait_ms)
{
	int n, first;

	for (int k = 0; k < moe->conns; k++)
		if (moe->conn[k] && conn_due(moe, moe->conn[k]) && wait_ms > 10)
			wait_ms = 10;
	if (polls_reserve(moe))
		return -1;
	n = polls_fill(moe);
	first = n - moe->conns;
	if (poll(moe->poll, (nfds_t)n, wait_ms) < 0)
		memset(moe->poll, 0, (size_t)n * sizeof(*moe->poll));
	if (conns_serve(moe, first) || dark_find(moe, ocs_moe_now()))
		return -1;
	for (int k = moe->pendings - 1; k >= 0; k--)
		if (ocs_moe_greet(moe, &moe->pending[k]))
			moe->pending[k] = moe->pending[--moe->pendings];
	ocs_moe_accept(moe, moe->listen_fd);
	for (int k = 0; k < moe->listeners; k++)
		ocs_moe_accept(moe, moe->listener[k].fd);
	return 0;
}
