/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/moe/job/state.h"

#define OPEN_MS 30000
#define IDLE_MS 600000
#define DARK_MS 500
#define CHUNK 32768
#define CHUNK_MAX (1 << 24)
#define FLUSH_MS 200 /* for a last word */

#define PUBLIC __attribute__((visibility("default")))

int ocs_moe_fail(struct ocs_moe *moe, const char *format, ...)
{
	va_list args;

	if (moe->broken)
		return -1; /* the first reason counts */
	moe->broken = true;
	va_start(args, format);
	vsnprintf(moe->error, sizeof(moe->error), format, args);
	va_end(args);
	return -1;
}

PUBLIC const char *ocs_moe_error(const struct ocs_moe *moe)
{
	return moe->error;
}

PUBLIC const struct ocs_moe_stats *ocs_moe_stats(const struct ocs_moe *moe)
{
	return &moe->stats;
}

static int options_check(const struct ocs_moe_options *o, char *error, size_t size)
{
	struct sockaddr_storage address;

	if (o->ranks < 1 || o->ranks > OCS_MOE_RANKS_MAX || o->rank < 0 || o->rank >= o->ranks ||
	    !o->address || !o->key || o->open_ms < 0 || o->idle_ms < 0 || o->dark_ms < 0 ||
	    o->chunk < 0 || o->chunk > CHUNK_MAX) {
		snprintf(error, size, "rank %d of %d, or another option, makes no sense", o->rank,
			 o->ranks);
		return -1;
	}
	for (int j = 0; j < o->ranks; j++) {
		if (o->address[j] && !ocs_moe_address_parse(o->address[j], &address))
			continue;
		snprintf(error, size, "the address of rank %d, '%s', is not like 10.0.0.1:7000", j,
			 o->address[j] ? o->address[j] : "");
		return -1;
	}
	return 0;
}

static struct ocs_moe *handle_create(const struct ocs_moe_options *o)
{
	struct ocs_moe *moe = calloc(1, sizeof(*moe));
	size_t ranks = (size_t)o->ranks;

	if (!moe)
		return NULL;
	moe->rank = o->rank;
	moe->ranks = moe->conns = o->ranks;
	moe->idle_ms = o->idle_ms ? o->idle_ms : IDLE_MS;
	moe->dark_ms = o->dark_ms ? o->dark_ms : DARK_MS;
	moe->chunk = o->chunk ? (size_t)o->chunk : CHUNK;
	memcpy(moe->key, o->key, sizeof(moe->key));
	moe->listen_fd = -1;
	moe->conn = calloc(ranks, sizeof(struct ocs_moe_conn *));
	moe->got = calloc(ranks, sizeof(*moe->got));
	moe->acked = calloc(ranks, sizeof(*moe->acked));
	if (!moe->conn || !moe->got || !moe->acked)
		goto bad;
	for (int j = 0; j < o->ranks; j++) {
		struct ocs_moe_conn *conn;

		if (j == o->rank)
			continue;
		conn = moe->conn[j] = ocs_moe_conn_create(j, OCS_MOE_LINK_PACKETS);
		if (!conn)
			goto bad;
		ocs_moe_address_parse(o->address[j], &conn->there);
		ocs_moe_address_parse(o->address[o->rank], &conn->here);
		conn->connects = j < o->rank;
		conn->state = conn->connects ? OCS_MOE_RETRYING : OCS_MOE_LISTENING;
	}
	return moe;
bad:
	ocs_moe_close(moe);
	return NULL;
}

static int ranks_missing(const struct ocs_moe *moe, int *which)
{
	int missing = 0;

	for (int j = moe->ranks - 1; j >= 0; j--) {
		if (j == moe->rank || moe->conn[j]->state == OCS_MOE_UP)
			continue;
		*which = j;
		missing++;
	}
	return missing;
}

PUBLIC struct ocs_moe *ocs_moe_open(const struct ocs_moe_options *options, char *error, size_t size)
{
	int64_t end = ocs_moe_now() + (options->open_ms ? options->open_ms : OPEN_MS);
	struct sockaddr_storage here;
	struct ocs_moe *moe;
	int which, missing;

	if (options_check(options, error, size))
		return NULL;
	moe = handle_create(options);
	if (!moe) {
		snprintf(error, size, "there is no memory left");
		return NULL;
	}
	ocs_moe_address_parse(options->address[options->rank], &here);
	moe->listen_fd = options->listen_fd > 0 ? options->listen_fd : ocs_moe_listen(&here);
	if (moe->listen_fd < 0 || fcntl(moe->listen_fd, F_SETFL, O_NONBLOCK)) {
		snprintf(error, size, "rank %d cannot listen on %s: %s", moe->rank,
			 options->address[moe->rank], strerror(errno));
		goto bad;
	}
	while ((missing = ranks_missing(moe, &which))) {
		if (ocs_moe_turn(moe, 10)) {
			snprintf(error, size, "%s", moe->error);
			goto bad;
		}
		if (ocs_moe_now() > end) {
			snprintf(error, size, "%d of %d ranks did not come, rank %d at %s for one",
				 missing, moe->ranks, which, options->address[which]);
			goto bad;
		}
	}
	return moe;
bad:
	ocs_moe_close(moe);
	return NULL;
}

void ocs_moe_farewell(struct ocs_moe *moe)
{
	int64_t end = ocs_moe_now() + FLUSH_MS;
	struct ocs_moe_frame frame = { .kind = moe->broken ? OCS_MOE_ABORT : OCS_MOE_BYE,
				       .from = (uint32_t)moe->rank };
	char text[OCS_MOE_TEXT];
	bool left = !moe->farewell;

	if (moe->farewell)
		return;
	moe->farewell = true;
	snprintf(text, sizeof(text), "%s", moe->error);
	for (int j = 0; j < moe->ranks; j++)
		ocs_moe_tell(moe, j, &frame, moe->broken ? text : NULL);
	while (left && ocs_moe_now() < end) {
		left = false;
		for (int j = 0; j < moe->ranks; j++) {
			struct ocs_moe_conn *conn = moe->conn[j];

			if (!conn || conn->state != OCS_MOE_UP ||
			    !(conn->out_size || conn->words.head))
				continue;
			if (ocs_moe_send(moe, conn))
				conn->state = OCS_MOE_CLOSED;
			else
				left |= conn->out_size || conn->words.head;
		}
		if (left)
			usleep(1000);
	}
}

/* A socket that is closed with bytes unread takes back what its peer has not read yet, the last words
 * too: they are read and thrown away until the peers have gone as well, for a while. */
static void conns_drain(struct ocs_moe *moe)
{
	int64_t end = ocs_moe_now() + FLUSH_MS;
	bool open = true;
	char bytes[4096];

	for (int j = 0; j < moe->ranks; j++)
		if (moe->conn[j] && moe->conn[j]->fd >= 0)
			shutdown(moe->conn[j]->fd, SHUT_WR);
	while (open && ocs_moe_now() < end) {
		open = false;
		for (int j = 0; j < moe->ranks; j++) {
			struct ocs_moe_conn *conn = moe->conn[j];
			ssize_t got = 0;

			if (!conn || conn->fd < 0 || conn->bye)
				continue;
			while ((got = recv(conn->fd, bytes, sizeof(bytes), MSG_DONTWAIT)) > 0)
				;
			conn->bye = !got || (errno != EAGAIN && errno != EINTR);
			open |= !conn->bye;
		}
		if (open)
			usleep(1000);
	}
}

static void listeners_free(struct ocs_moe *moe)
{
	for (int k = 0; k < moe->listeners; k++)
		close(moe->listener[k].fd);
	free(moe->listener);
	moe->listener = NULL;
	moe->listeners = 0;
}

PUBLIC void ocs_moe_close(struct ocs_moe *moe)
{
	if (!moe)
		return;
	if (moe->conn) {
		ocs_moe_farewell(moe);
		conns_drain(moe);
	}
	listeners_free(moe);
	for (int k = 0; k < moe->pendings; k++)
		close(moe->pending[k].fd);
	if (moe->listen_fd >= 0)
		close(moe->listen_fd);
	for (int k = 0; moe->conn && k < moe->conns; k++)
		ocs_moe_conn_destroy(moe, moe->conn[k]);
	for (int k = 0; k < moe->lanes; k++)
		free(moe->lane[k]);
	free(moe->lane);
	free(moe->conn);
	free(moe->got);
	free(moe->acked);
	free(moe->way);
	free(moe->poll);
	free(moe);
}

static int way_check(const struct ocs_moe *moe, const struct ocs_moe_way *way)
{
	if (way->to < 0 || way->to >= moe->ranks || way->to == moe->rank || way->hops < 1 ||
	    way->hops > OCS_MOE_HOPS || !(way->share >= 0 && way->share <= 1))
		return -1;
	for (int h = 0; h < way->hops; h++)
		if (way->hop[h].rank < 0 || way->hop[h].rank >= moe->ranks ||
		    way->hop[h].rank == (h ? way->hop[h - 1].rank : moe->rank))
			return -1;
	return way->hop[way->hops - 1].rank == way->to ? 0 : -1;
}

PUBLIC int ocs_moe_ways(struct ocs_moe *moe, const struct ocs_moe_way *ways, int n)
{
	struct ocs_moe_way *copy;

	if (moe->broken)
		return -1;
	for (int k = 0; k < n; k++) {
		if (!way_check(moe, &ways[k]))
			continue;
		snprintf(moe->error, sizeof(moe->error), "way %d of %d makes no sense", k, n);
		return -1;
	}
	copy = malloc(((size_t)n + 1) * sizeof(*copy));
	if (!copy)
		return ocs_moe_fail(moe, "there is no memory left");
	if (n)
		memcpy(copy, ways, (size_t)n * sizeof(*copy));
	free(moe->way);
	moe->way = copy;
	moe->ways = n;
	moe->unsure = !ways;
	return 0;
}
