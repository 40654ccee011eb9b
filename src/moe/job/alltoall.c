/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/moe/job/state.h"

#define SETTLE_US 20 /* between two looks at what is not acknowledged yet */

static void marks_free(struct ocs_moe *moe)
{
	for (int j = 0; j < moe->ranks; j++) {
		free(moe->got[j]);
		free(moe->acked[j]);
		moe->got[j] = moe->acked[j] = NULL;
	}
}

/* A bit for each chunk. */
static int marks_make(struct ocs_moe *moe)
{
	moe->to_get = moe->to_ack = 0;
	for (int j = 0; j < moe->ranks; j++) {
		if (j == moe->rank)
			continue;
		moe->got[j] = calloc(1, moe->receive_bytes[j] / moe->chunk / 8 + 1);
		moe->acked[j] = calloc(1, moe->send_bytes[j] / moe->chunk / 8 + 1);
		if (!moe->got[j] || !moe->acked[j])
			return ocs_moe_fail(moe, "there is no memory left");
		moe->to_get += moe->receive_bytes[j];
		moe->to_ack += moe->send_bytes[j];
	}
	return 0;
}

static int call_begin(struct ocs_moe *moe)
{
	size_t own = moe->send_bytes[moe->rank];

	if (own != moe->receive_bytes[moe->rank])
		return ocs_moe_fail(moe, "rank %d sends itself %zu bytes and receives %zu",
				    moe->rank, own, moe->receive_bytes[moe->rank]);
	if (own)
		memmove(moe->receive + moe->receive_at[moe->rank],
			moe->send + moe->send_at[moe->rank], own);
	moe->call++;
	moe->calling = true;
	moe->told_done = false;
	moe->settle_at = 0;
	moe->progress_at = moe->here_at = ocs_moe_now();
	for (int k = 0; k < moe->conns; k++)
		if (moe->conn[k])
			moe->conn[k]->done = false;
	for (int j = 0; j < moe->ranks; j++)
		if (j != moe->rank && moe->conn[j]->state != OCS_MOE_UP)
			return ocs_moe_fail(moe, "rank %d %s", j,
					    moe->conn[j]->bye ? "has closed its handle" :
								"is gone");
	if (marks_make(moe) || ocs_moe_lanes_make(moe))
		return -1;
	for (int k = 0; k < moe->conns; k++)
		if (moe->conn[k] && ocs_moe_resume(moe, moe->conn[k]))
			return -1;
	return 0;
}

/* Chunks that are left are doubles of what has arrived; words are not. */
static bool words_left(const struct ocs_moe_conn *conn)
{
	return conn->state == OCS_MOE_UP &&
	       (conn->words.head || (conn->out_size && conn->out.kind != OCS_MOE_DATA));
}

/* Whether this rank may say that it has finished.  Who hears that of all may have circuits cut, so nothing of this rank
 * may be under way on one, no acknowledgement either: the others' words go by packets. */
static bool circuits_rest(struct ocs_moe *moe)
{
	if (!moe->settle_at)
		moe->settle_at = ocs_moe_now();
	return ocs_moe_still(moe) || ocs_moe_now() - moe->settle_at > moe->dark_ms;
}

/* Whether this rank may go: no one needs it any more, and what it says has left. */
static bool call_over(struct ocs_moe *moe)
{
	if (moe->to_get || moe->to_ack || !(moe->told_done || circuits_rest(moe)))
		return false;
	if (!moe->told_done) {
		moe->told_done = true;
		ocs_moe_rest(moe);
		for (int j = 0; j < moe->ranks; j++)
			ocs_moe_tell(moe, j,
				     &(struct ocs_moe_frame){ .kind = OCS_MOE_DONE,
							      .call = moe->call,
							      .from = (uint32_t)moe->rank },
				     NULL);
	}
	for (int j = 0; j < moe->ranks; j++)
		if (j != moe->rank && (!moe->conn[j]->done || words_left(moe->conn[j])))
			return false;
	return true;
}

/* The caller's memory is the caller's again. */
static int conn_detach(struct ocs_moe *moe, struct ocs_moe_conn *conn)
{
	if (conn->in_mine) {
		conn->in_data = NULL;
		conn->in_mine = false;
	}
	if (conn->out_size && !conn->out_item && conn->out.kind == OCS_MOE_DATA) {
		struct ocs_moe_item *item = calloc(1, sizeof(*item));
		unsigned char *copy = malloc(conn->out.length);

		if (!item || !copy) {
			free(item);
			free(copy);
			return ocs_moe_fail(moe, "there is no memory left");
		}
		memcpy(copy, conn->out_data, conn->out.length);
		item->frame = conn->out;
		item->data = copy;
		item->from_peer = -1;
		moe->memory += conn->out.length;
		conn->out_item = item;
		conn->out_data = copy;
	}
	return 0;
}

static void call_end(struct ocs_moe *moe)
{
	for (int k = 0; k < moe->conns; k++)
		if (moe->conn[k] && conn_detach(moe, moe->conn[k]))
			break;
	ocs_moe_lanes_free(moe);
	marks_free(moe);
	moe->calling = false;
}

/* Who keeps this rank waiting: others that wait for the same one have been heard later. */
static int idle_fail(struct ocs_moe *moe)
{
	size_t missing = 0;
	int silent = -1;

	for (int j = 0; j < moe->ranks; j++)
		if (j != moe->rank && !moe->conn[j]->done &&
		    (silent < 0 || moe->conn[j]->heard_at < moe->conn[silent]->heard_at))
			silent = j;
	if (silent < 0)
		return ocs_moe_fail(moe, "nothing has moved for %d ms", moe->idle_ms);
	for (size_t at = 0; at < moe->receive_bytes[silent]; at += moe->chunk)
		missing += !ocs_moe_bit(moe->got[silent], at / moe->chunk);
	return ocs_moe_fail(moe,
			    "nothing has moved for %d ms; rank %d has not finished, was silent "
			    "longest, and %zu of its chunks have not arrived",
			    moe->idle_ms, silent, missing);
}

/* Those that wait for the same rank as this one learn that this one is not it. */
static void here_tell(struct ocs_moe *moe, int64_t now)
{
	struct ocs_moe_frame frame = { .kind = OCS_MOE_HERE, .from = (uint32_t)moe->rank };

	if (now - moe->here_at < moe->idle_ms / 8)
		return;
	moe->here_at = now;
	for (int j = 0; j < moe->ranks; j++)
		if (j != moe->rank && !moe->conn[j]->done && !moe->conn[j]->words.head)
			ocs_moe_tell(moe, j, &frame, NULL);
}

static int call_run(struct ocs_moe *moe)
{
	int dark = moe->dark_ms / 4, here = moe->idle_ms / 8;

	while (!call_over(moe)) {
		bool settling = moe->settle_at && !moe->told_done;

		if (settling)
			usleep(SETTLE_US);
		if (ocs_moe_turn(moe, settling ? 0 : (dark < here ? dark : here) + 1))
			return -1;
		if (ocs_moe_now() - moe->progress_at > moe->idle_ms)
			return idle_fail(moe);
		here_tell(moe, ocs_moe_now());
	}
	return 0;
}

__attribute__((visibility("default"))) int ocs_moe_alltoall(struct ocs_moe *moe, const void *send,
							    const size_t *send_bytes,
							    const size_t *send_at, void *receive,
							    const size_t *receive_bytes,
							    const size_t *receive_at)
{
	int rc;

	if (moe->broken)
		return -1;
	moe->send = send;
	moe->send_bytes = send_bytes;
	moe->send_at = send_at;
	moe->receive = receive;
	moe->receive_bytes = receive_bytes;
	moe->receive_at = receive_at;
	rc = call_begin(moe) || call_run(moe) || ocs_moe_settle(moe) ? -1 : 0;
	call_end(moe);
	if (rc || moe->broken)
		ocs_moe_farewell(moe);
	return rc || moe->broken ? -1 : 0;
}
