/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* The circuits of this moment. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/moe/job/state.h"

#define PUBLIC __attribute__((visibility("default")))

static bool link_listed(const struct ocs_moe_link *links, int n, uint32_t id)
{
	for (int k = 0; k < n; k++)
		if (links[k].id == id)
			return true;
	return false;
}

/* Circuits that are not in the list any more. */
static void links_drop(struct ocs_moe *moe, const struct ocs_moe_link *links, int n)
{
	int kept = moe->ranks;

	for (int k = moe->ranks; k < moe->conns; k++) {
		struct ocs_moe_conn *conn = moe->conn[k];

		if (link_listed(links, n, conn->link))
			moe->conn[kept++] = conn;
		else
			ocs_moe_conn_destroy(moe, conn);
	}
	moe->conns = kept;
}

static void listeners_drop(struct ocs_moe *moe, const struct ocs_moe_link *links, int n)
{
	int kept = 0;

	for (int k = 0; k < moe->listeners; k++) {
		bool wanted = false;

		for (int c = moe->ranks; c < moe->conns; c++)
			wanted |= moe->conn[c]->link == moe->listener[k].link &&
				  moe->conn[c]->state == OCS_MOE_LISTENING;
		if (wanted && link_listed(links, n, moe->listener[k].link))
			moe->listener[kept++] = moe->listener[k];
		else
			close(moe->listener[k].fd);
	}
	moe->listeners = kept;
}

/* A socket for the circuit at its own address; one that cannot be had leaves it down. */
static int link_listen(struct ocs_moe *moe, struct ocs_moe_conn *conn)
{
	size_t size = ((size_t)moe->listeners + 1) * sizeof(*moe->listener);
	void *more = realloc(moe->listener, size);
	int fd;

	if (!more)
		return ocs_moe_fail(moe, "there is no memory left");
	moe->listener = more;
	fd = ocs_moe_listen(&conn->here);
	conn->state = fd < 0 ? OCS_MOE_CLOSED : OCS_MOE_LISTENING;
	if (fd >= 0) {
		moe->listener[moe->listeners].fd = fd;
		moe->listener[moe->listeners++].link = conn->link;
	}
	return 0;
}

static int link_add(struct ocs_moe *moe, const struct ocs_moe_link *link)
{
	bool first = link->a == moe->rank;
	int peer = first ? link->b : link->a;
	struct ocs_moe_conn *conn, **more;

	more = realloc(moe->conn, ((size_t)moe->conns + 1) * sizeof(struct ocs_moe_conn *));
	if (!more)
		return ocs_moe_fail(moe, "there is no memory left");
	moe->conn = more;
	conn = ocs_moe_conn_create(peer, link->id);
	if (!conn)
		return ocs_moe_fail(moe, "there is no memory left");
	moe->conn[moe->conns++] = conn;
	ocs_moe_address_parse(first ? link->a_address : link->b_address, &conn->here);
	ocs_moe_address_parse(first ? link->b_address : link->a_address, &conn->there);
	conn->connects = first;
	if (!first)
		return link_listen(moe, conn);
	ocs_moe_conn_start(moe, conn);
	return 0;
}

static int link_check(struct ocs_moe *moe, const struct ocs_moe_link *links, int k)
{
	const struct ocs_moe_link *link = &links[k];
	struct sockaddr_storage address;

	if (link->id != OCS_MOE_LINK_PACKETS && link->a >= 0 && link->b >= 0 &&
	    link->a < moe->ranks && link->b < moe->ranks && link->a != link->b && link->a_address &&
	    link->b_address && !ocs_moe_address_parse(link->a_address, &address) &&
	    !ocs_moe_address_parse(link->b_address, &address) && !link_listed(links, k, link->id))
		return 0;
	snprintf(moe->error, sizeof(moe->error), "circuit %d of the list makes no sense", k);
	return -1;
}

static int links_up(const struct ocs_moe *moe, bool *waiting)
{
	int up = 0;

	*waiting = false;
	for (int k = moe->ranks; k < moe->conns; k++) {
		up += moe->conn[k]->state == OCS_MOE_UP;
		*waiting |=
			moe->conn[k]->state != OCS_MOE_UP && moe->conn[k]->state != OCS_MOE_CLOSED;
	}
	return up;
}

PUBLIC int ocs_moe_links(struct ocs_moe *moe, const struct ocs_moe_link *links, int n, int wait_ms)
{
	int64_t end = ocs_moe_now() + wait_ms;
	bool waiting;
	int up;

	if (moe->broken)
		return -1;
	for (int k = 0; k < n; k++)
		if (link_check(moe, links, k))
			return -1;
	moe->unsure = false;
	links_drop(moe, links, n);
	for (int k = 0; k < n; k++) {
		const struct ocs_moe_link *link = &links[k];
		int peer = link->a == moe->rank ? link->b : link->a;

		if ((link->a == moe->rank || link->b == moe->rank) &&
		    !ocs_moe_conn_find(moe, peer, link->id) && link_add(moe, link))
			return -1;
	}
	while ((up = links_up(moe, &waiting)), waiting && ocs_moe_now() < end)
		if (ocs_moe_turn(moe, 10))
			return -1;
	listeners_drop(moe, links, n);
	return up;
}
