/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* What leaves by a connection: words first, then chunks of others, then its lanes in turn. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include "src/moe/job/state.h"

#define BURST 8 /* frames, before another connection has its turn */

void ocs_moe_item_free(struct ocs_moe *moe, struct ocs_moe_item *item)
{
	if (item->data)
		moe->memory -= item->frame.length;
	free(item->data);
	free(item);
}

static void queue_add(struct ocs_moe_queue *queue, struct ocs_moe_item *item)
{
	item->next = NULL;
	if (queue->tail)
		queue->tail->next = item;
	else
		queue->head = item;
	queue->tail = item;
}

static struct ocs_moe_item *queue_take(struct ocs_moe_queue *queue)
{
	struct ocs_moe_item *item = queue->head;

	queue->head = item->next;
	if (!queue->head)
		queue->tail = NULL;
	return item;
}

void ocs_moe_tell(struct ocs_moe *moe, int peer, const struct ocs_moe_frame *frame,
		  const char *text)
{
	struct ocs_moe_conn *conn = ocs_moe_conn_find(moe, peer, OCS_MOE_LINK_PACKETS);
	struct ocs_moe_item *item;

	if (!conn || conn->state != OCS_MOE_UP)
		return;
	item = calloc(1, sizeof(*item));
	if (!item) {
		ocs_moe_fail(moe, "there is no memory left");
		return;
	}
	item->frame = *frame;
	item->from_peer = -1;
	if (text) {
		item->frame.length = (uint32_t)strlen(text);
		item->data = (unsigned char *)strdup(text);
		if (item->data)
			moe->memory += item->frame.length;
		else
			item->frame.length = 0;
	}
	queue_add(&conn->words, item);
}

/* Ranks that a chunk has still to pass when it has taken hop number HOP of HOPS. */
static int class_of(const struct ocs_moe_frame *frame)
{
	return frame->hops - 1 - frame->hop;
}

void ocs_moe_pass(struct ocs_moe *moe, struct ocs_moe_item *item)
{
	struct ocs_moe_frame *frame = &item->frame;
	struct ocs_moe_route_hop *hop = &frame->route[frame->hop];
	struct ocs_moe_conn *conn = NULL;

	if (hop->rank < (uint32_t)moe->ranks)
		conn = ocs_moe_conn_find(moe, (int)hop->rank, hop->link);
	if (!conn || conn->state != OCS_MOE_UP) {
		/* Straight to where it is to go. */
		frame->hops = (uint8_t)(frame->hop + 1);
		hop->rank = frame->to;
		hop->link = OCS_MOE_LINK_PACKETS;
		conn = ocs_moe_conn_find(moe, (int)frame->to, OCS_MOE_LINK_PACKETS);
	}
	if (!conn || conn->state != OCS_MOE_UP)
		ocs_moe_item_free(moe, item); /* the call fails for another reason */
	else
		queue_add(&conn->relay[class_of(frame)], item);
}

/* A lane of CONN that may send, beginning after the one that was served last. */
static struct ocs_moe_lane *lane_choose(const struct ocs_moe *moe, const struct ocs_moe_conn *conn)
{
	struct ocs_moe_lane *first = conn->lane ? conn->lane->sibling : NULL, *lane;

	if (!moe->calling || !conn->lanes)
		return NULL;
	if (!first)
		first = conn->lanes;
	lane = first;
	do {
		if (lane->next < lane->end && (lane->hops == 1 || conn->credits[lane->hops - 1]))
			return lane;
		lane = lane->sibling ? lane->sibling : conn->lanes;
	} while (lane != first);
	return NULL;
}

static int relay_choose(const struct ocs_moe_conn *conn)
{
	for (int class = 0; class < OCS_MOE_HOPS; class ++)
		if (conn->relay[class].head && (!class || conn->credits[class]))
			return class;
	return -1;
}

bool ocs_moe_conn_has(const struct ocs_moe *moe, const struct ocs_moe_conn *conn)
{
	return conn->state == OCS_MOE_UP && (conn->out_size || conn->words.head ||
					     relay_choose(conn) >= 0 || lane_choose(moe, conn));
}

/* The next chunk of LANE; those that have arrived are passed over. */
static bool lane_fill(struct ocs_moe *moe, struct ocs_moe_conn *conn, struct ocs_moe_lane *lane)
{
	size_t at, length;

	while (lane->again && lane->next < lane->end &&
	       ocs_moe_bit(moe->acked[lane->to], lane->next / moe->chunk))
		lane->next += moe->chunk;
	at = lane->next;
	if (at >= lane->end)
		return false;
	length = lane->end - at < moe->chunk ? lane->end - at : moe->chunk;
	lane->next = at + length;
	conn->lane = lane;
	conn->out = (struct ocs_moe_frame){ .kind = OCS_MOE_DATA,
					    .hop = 0,
					    .hops = (uint8_t)lane->hops,
					    .call = moe->call,
					    .from = (uint32_t)moe->rank,
					    .to = (uint32_t)lane->to,
					    .length = (uint32_t)length,
					    .at = at };
	memcpy(conn->out.route, lane->route, sizeof(lane->route));
	conn->out_data = moe->send + moe->send_at[lane->to] + at;
	conn->out_size = sizeof(conn->out) + length;
	if (lane->hops > 1)
		conn->credits[lane->hops - 1]--;
	if (conn->link)
		moe->stats.circuits += length;
	else
		moe->stats.packets += length;
	if (lane->again)
		moe->stats.resent += length;
	return true;
}

static bool conn_fill(struct ocs_moe *moe, struct ocs_moe_conn *conn)
{
	struct ocs_moe_item *item = NULL;
	struct ocs_moe_lane *lane;
	int class;

	conn->out_sent = 0;
	if (conn->words.head) {
		item = queue_take(&conn->words);
	} else if ((class = relay_choose(conn)) >= 0) {
		item = queue_take(&conn->relay[class]);
		if (class)
			conn->credits[class]--;
		moe->stats.relayed += item->frame.length;
	}
	if (!item) {
		while ((lane = lane_choose(moe, conn)))
			if (lane_fill(moe, conn, lane))
				return true;
		return false;
	}
	conn->out = item->frame;
	conn->out_item = item;
	conn->out_data = item->data;
	conn->out_size = sizeof(conn->out) + item->frame.length;
	return true;
}

/* A frame has left: what it held is free, and whoever sent it may send one more. */
static void conn_empty(struct ocs_moe *moe, struct ocs_moe_conn *conn)
{
	struct ocs_moe_item *item = conn->out_item;

	conn->out_size = 0;
	conn->out_data = NULL;
	conn->out_item = NULL;
	if (!item)
		return;
	if (item->from_peer >= 0)
		ocs_moe_tell(moe, item->from_peer,
			     &(struct ocs_moe_frame){ .kind = OCS_MOE_CREDIT,
						      .hop = item->from_class,
						      .link = item->from_link },
			     NULL);
	ocs_moe_item_free(moe, item);
}

int ocs_moe_send(struct ocs_moe *moe, struct ocs_moe_conn *conn)
{
	for (int k = 0; k < BURST; k++) {
		size_t head = sizeof(conn->out), sent;
		struct iovec parts[2];
		struct msghdr message = { .msg_iov = parts, .msg_iovlen = 2 };
		ssize_t got;

		if (!conn->out_size && !conn_fill(moe, conn))
			return 0;
		sent = conn->out_sent;
		parts[0] = (struct iovec){ (char *)&conn->out + (sent < head ? sent : head),
					   sent < head ? head - sent : 0 };
		sent = sent > head ? sent - head : 0;
		parts[1] = (struct iovec){ (void *)(conn->out_data ? conn->out_data + sent : NULL),
					   conn->out_size - head - sent };
		got = sendmsg(conn->fd, &message, MSG_NOSIGNAL);
		if (got < 0)
			return errno == EAGAIN || errno == EINTR ? 0 : -1;
		if (got > 0 && conn->out.kind != OCS_MOE_HERE)
			moe->progress_at = ocs_moe_now();
		conn->out_sent += (size_t)got;
		if (conn->out_sent < conn->out_size)
			return 0;
		conn_empty(moe, conn);
	}
	return 0;
}
