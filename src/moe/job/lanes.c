/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Which bytes take which way: the plan's shares, cut at whole chunks. */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/moe/job/state.h"

static struct ocs_moe_lane *lane_add(struct ocs_moe *moe, struct ocs_moe_conn *conn, int to,
				     size_t begin, size_t end)
{
	struct ocs_moe_lane *lane;

	if (moe->lanes == moe->lanes_size) {
		int size = moe->lanes_size ? 2 * moe->lanes_size : 64;
		void *more = realloc(moe->lane, (size_t)size * sizeof(struct ocs_moe_lane *));

		if (!more)
			return NULL;
		moe->lane = more;
		moe->lanes_size = size;
	}
	lane = calloc(1, sizeof(*lane));
	if (!lane)
		return NULL;
	moe->lane[moe->lanes++] = lane;
	lane->to = to;
	lane->begin = lane->next = begin;
	lane->end = end;
	lane->hops = 1;
	lane->route[0] = (struct ocs_moe_route_hop){ (uint32_t)to, OCS_MOE_LINK_PACKETS };
	lane->conn = conn;
	lane->sibling = conn->lanes;
	conn->lanes = lane;
	return lane;
}

/* The connection that WAY enters, if it is there now. */
static struct ocs_moe_conn *way_conn(const struct ocs_moe *moe, const struct ocs_moe_way *way)
{
	struct ocs_moe_conn *conn = ocs_moe_conn_find(moe, way->hop[0].rank, way->hop[0].link);

	return conn && conn->state == OCS_MOE_UP ? conn : NULL;
}

static int lanes_of(struct ocs_moe *moe, int to)
{
	size_t bytes = moe->send_bytes[to], chunks = (bytes + moe->chunk - 1) / moe->chunk;
	struct ocs_moe_lane *lane;
	double sum = 0, share = 0;
	size_t begin = 0, end;

	for (int k = 0; k < moe->ways; k++)
		sum += moe->way[k].to == to ? moe->way[k].share : 0;
	for (int k = 0; k < moe->ways; k++) {
		const struct ocs_moe_way *way = &moe->way[k];
		struct ocs_moe_conn *conn = way->to == to ? way_conn(moe, way) : NULL;

		if (!conn)
			continue;
		share += sum > 1 ? way->share / sum : way->share;
		end = (size_t)llround(share * (double)chunks) * moe->chunk;
		end = end < bytes ? end : bytes;
		if (end <= begin)
			continue;
		lane = lane_add(moe, conn, to, begin, end);
		if (!lane)
			return ocs_moe_fail(moe, "there is no memory left");
		lane->hops = way->hops;
		for (int h = 0; h < way->hops; h++)
			lane->route[h] = (struct ocs_moe_route_hop){ (uint32_t)way->hop[h].rank,
								     way->hop[h].link };
		begin = end;
	}
	if (begin < bytes && !lane_add(moe, moe->conn[to], to, begin, bytes))
		return ocs_moe_fail(moe, "there is no memory left");
	return 0;
}

int ocs_moe_lanes_make(struct ocs_moe *moe)
{
	for (int to = 0; to < moe->ranks; to++)
		if (to != moe->rank && moe->send_bytes[to] && lanes_of(moe, to))
			return -1;
	return 0;
}

void ocs_moe_lanes_free(struct ocs_moe *moe)
{
	for (int k = 0; k < moe->conns; k++)
		if (moe->conn[k])
			moe->conn[k]->lanes = moe->conn[k]->lane = NULL;
	for (int k = 0; k < moe->lanes; k++)
		free(moe->lane[k]);
	moe->lanes = 0;
}

void ocs_moe_lanes_turn(struct ocs_moe *moe, uint32_t link)
{
	int all = moe->lanes; /* those that are added take packets */

	for (int k = 0; k < all; k++) {
		struct ocs_moe_lane *lane = moe->lane[k], *other;
		bool over = false;

		for (int h = 0; h < lane->hops; h++)
			over |= lane->route[h].link == link;
		if (!over || lane->begin == lane->end)
			continue;
		other = lane_add(moe, moe->conn[lane->to], lane->to, lane->begin, lane->end);
		if (!other) {
			ocs_moe_fail(moe, "there is no memory left");
			return;
		}
		other->again = true;
		lane->begin = lane->next = lane->end; /* it has nothing any more */
	}
}
