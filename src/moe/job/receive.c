/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* What comes in by a connection. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "src/moe/job/state.h"

#define BURST 16

static int frame_refuse(struct ocs_moe *moe, const struct ocs_moe_conn *conn, const char *what)
{
	return ocs_moe_fail(moe, "rank %d sent %s", conn->peer, what);
}

/* A chunk for this rank. */
static int data_mine(struct ocs_moe *moe, struct ocs_moe_conn *conn)
{
	const struct ocs_moe_frame *in = &conn->in;
	size_t all;

	if (!moe->calling || in->call != moe->call)
		return 0; /* a double that is late */
	all = moe->receive_bytes[in->from];
	if (in->at % moe->chunk || in->at >= all ||
	    in->length != (all - in->at < moe->chunk ? all - in->at : moe->chunk))
		return ocs_moe_fail(moe,
				    "rank %u sends other bytes than the %zu that this rank is to "
				    "receive from it",
				    in->from, all);
	if (ocs_moe_bit(moe->got[in->from], in->at / moe->chunk))
		return 0;
	conn->in_data = moe->receive + moe->receive_at[in->from] + in->at;
	conn->in_mine = true;
	return 0;
}

static int data_begin(struct ocs_moe *moe, struct ocs_moe_conn *conn)
{
	const struct ocs_moe_frame *in = &conn->in;

	if (in->from >= (uint32_t)moe->ranks || in->to >= (uint32_t)moe->ranks ||
	    in->from == in->to || !in->length || in->length > moe->chunk || !in->hops ||
	    in->hops > OCS_MOE_HOPS || in->hop >= in->hops)
		return frame_refuse(moe, conn, "a chunk that makes no sense");
	if (in->to == (uint32_t)moe->rank)
		return data_mine(moe, conn);
	if (in->hop + 1 >= in->hops)
		return frame_refuse(moe, conn, "a chunk that goes nowhere");
	conn->in_data = malloc(in->length);
	if (!conn->in_data)
		return ocs_moe_fail(moe, "there is no memory left for what is passed on");
	conn->in_relay = true;
	moe->memory += in->length;
	if (moe->memory > moe->stats.memory)
		moe->stats.memory = moe->memory;
	return 0;
}

/* The header of a frame is there. */
static int frame_begin(struct ocs_moe *moe, struct ocs_moe_conn *conn)
{
	const struct ocs_moe_frame *in = &conn->in;

	conn->in_data = NULL;
	conn->in_relay = conn->in_mine = false;
	switch (in->kind) {
	case OCS_MOE_DATA:
		return data_begin(moe, conn);
	case OCS_MOE_ABORT:
		if (in->length >= OCS_MOE_TEXT)
			return frame_refuse(moe, conn, "too long a text");
		conn->in_data = calloc(1, OCS_MOE_TEXT);
		if (!conn->in_data)
			return ocs_moe_fail(moe, "rank %d gave up", conn->peer);
		conn->in_relay = true;
		moe->memory += in->length;
		return 0;
	default:
		return in->length ? frame_refuse(moe, conn, "a frame of an unknown kind") : 0;
	}
}

/* A chunk of this rank's is there. */
static void data_take(struct ocs_moe *moe, struct ocs_moe_conn *conn)
{
	const struct ocs_moe_frame *in = &conn->in;
	size_t bit = in->at / moe->chunk;

	if (conn->in_mine) {
		if (!ocs_moe_bit(moe->got[in->from], bit)) {
			moe->got[in->from][bit / 8] |= (unsigned char)(1 << bit % 8);
			moe->to_get -= in->length;
		}
	}
	if (moe->calling && in->call == moe->call)
		ocs_moe_tell(moe, (int)in->from,
			     &(struct ocs_moe_frame){ .kind = OCS_MOE_ACK,
						      .call = in->call,
						      .from = in->from,
						      .to = (uint32_t)moe->rank,
						      .at = in->at },
			     NULL);
}

static void data_relay(struct ocs_moe *moe, struct ocs_moe_conn *conn)
{
	struct ocs_moe_item *item = calloc(1, sizeof(*item));

	if (!item) {
		ocs_moe_fail(moe, "there is no memory left for what is passed on");
		return;
	}
	item->frame = conn->in;
	item->data = conn->in_data;
	item->from_peer = conn->peer;
	item->from_link = conn->link;
	item->from_class = (uint8_t)(conn->in.hops - 1 - conn->in.hop);
	item->frame.hop++;
	conn->in_data = NULL;
	conn->in_relay = false;
	ocs_moe_pass(moe, item);
}

static void ack_take(struct ocs_moe *moe, const struct ocs_moe_frame *in)
{
	size_t bit = in->at / moe->chunk, all, length;

	if (!moe->calling || in->call != moe->call || in->to >= (uint32_t)moe->ranks ||
	    in->to == (uint32_t)moe->rank || in->at >= moe->send_bytes[in->to] ||
	    ocs_moe_bit(moe->acked[in->to], bit))
		return;
	all = moe->send_bytes[in->to];
	length = all - in->at < moe->chunk ? all - in->at : moe->chunk;
	moe->acked[in->to][bit / 8] |= (unsigned char)(1 << bit % 8);
	moe->to_ack -= length;
}

static void down_take(struct ocs_moe *moe, uint32_t link)
{
	for (int k = moe->ranks; k < moe->conns; k++)
		if (moe->conn[k]->link == link && moe->conn[k]->state == OCS_MOE_UP)
			ocs_moe_conn_lost(moe, moe->conn[k], "the other end says so");
	ocs_moe_lanes_turn(moe, link);
}

static void credit_take(struct ocs_moe *moe, const struct ocs_moe_conn *conn)
{
	struct ocs_moe_conn *over = ocs_moe_conn_find(moe, conn->peer, conn->in.link);

	if (over && conn->in.hop < OCS_MOE_HOPS && over->credits[conn->in.hop] < OCS_MOE_CREDITS)
		over->credits[conn->in.hop]++;
}

/* A frame is there as a whole. */
static int frame_end(struct ocs_moe *moe, struct ocs_moe_conn *conn)
{
	const struct ocs_moe_frame *in = &conn->in;

	conn->in_got = 0;
	switch (in->kind) {
	case OCS_MOE_DATA:
		if (conn->link != OCS_MOE_LINK_PACKETS)
			ocs_moe_acknowledge(conn->fd);
		if (conn->in_relay)
			data_relay(moe, conn);
		else
			data_take(moe, conn);
		conn->in_data = NULL;
		conn->in_mine = false;
		break;
	case OCS_MOE_ACK:
		ack_take(moe, in);
		break;
	case OCS_MOE_CREDIT:
		credit_take(moe, conn);
		break;
	case OCS_MOE_DONE:
		conn->done = true;
		break;
	case OCS_MOE_DOWN:
		down_take(moe, in->link);
		break;
	case OCS_MOE_BYE:
		conn->bye = true;
		break;
	case OCS_MOE_HERE:
		break;
	case OCS_MOE_ABORT:
		return ocs_moe_fail(moe, "rank %d gave up: %s", conn->peer, (char *)conn->in_data);
	default:
		return frame_refuse(moe, conn, "a frame of an unknown kind");
	}
	return moe->broken ? -1 : 0;
}

/* Whether the frame belongs to a call that this rank is not in yet. */
static bool frame_early(const struct ocs_moe *moe, const struct ocs_moe_frame *in)
{
	if (in->kind != OCS_MOE_DATA && in->kind != OCS_MOE_DONE)
		return false;
	return (int32_t)(in->call - moe->call) > 0;
}

int ocs_moe_resume(struct ocs_moe *moe, struct ocs_moe_conn *conn)
{
	if (!conn->paused || frame_early(moe, &conn->in))
		return 0;
	conn->paused = false;
	if (frame_begin(moe, conn))
		return -1;
	return conn->in.length ? 0 : frame_end(moe, conn);
}

int ocs_moe_receive(struct ocs_moe *moe, struct ocs_moe_conn *conn)
{
	static __thread unsigned char nowhere[65536];
	size_t head = sizeof(conn->in);

	for (int k = 0; k < BURST && !conn->paused; k++) {
		void *to = (char *)&conn->in + conn->in_got;
		size_t room = head - conn->in_got;
		ssize_t got;

		if (conn->in_got >= head) {
			room = head + conn->in.length - conn->in_got;
			to = conn->in_data ? conn->in_data + (conn->in_got - head) : nowhere;
			if (!conn->in_data && room > sizeof(nowhere))
				room = sizeof(nowhere);
		}
		got = recv(conn->fd, to, room, 0);
		if (got < 0 && (errno == EAGAIN || errno == EINTR))
			return 0;
		if (got <= 0)
			return ocs_moe_conn_lost(moe, conn, got ? strerror(errno) : NULL);
		conn->heard_at = ocs_moe_now();
		conn->in_got += (size_t)got;
		/* That others wait, too, moves nothing. */
		if (conn->in_got >= head && conn->in.kind != OCS_MOE_HERE)
			moe->progress_at = conn->heard_at;
		if (conn->in_got == head) {
			if (frame_early(moe, &conn->in)) {
				conn->paused = true;
				return 0;
			}
			if (frame_begin(moe, conn))
				return -1;
		}
		if (conn->in_got >= head && conn->in_got == head + conn->in.length &&
		    frame_end(moe, conn))
			return -1;
	}
	return 0;
}
