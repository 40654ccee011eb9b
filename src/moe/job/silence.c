/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Nothing is sent into a circuit that may be cut: between two all-to-alls circuits are still, and are left without a word. */

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <unistd.h>

#include "src/moe/job/state.h"
#include "src/rails/shim/drain.h"

void ocs_moe_hush_at_death(int fd)
{
	static const struct linger none = { .l_onoff = 1 };

	setsockopt(fd, SOL_SOCKET, SO_LINGER, &none, sizeof(none));
}

void ocs_moe_hush(int fd)
{
	static const char inside[] = "lo";

	/* What was not acknowledged would be sent again for minutes by a socket that is closed as usual.  Without
	 * waiting there is a reset instead, which the second call keeps in this machine. */
	ocs_moe_hush_at_death(fd);
	setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, inside, sizeof(inside));
	close(fd);
}

void ocs_moe_acknowledge(int fd)
{
	int on = 1;

	setsockopt(fd, IPPROTO_TCP, TCP_QUICKACK, &on, sizeof(on));
}

/* Circuits that are up, for ocs_drain; the caller frees them. */
static int *ups_list(const struct ocs_moe *moe, size_t *count)
{
	int *fds = calloc((size_t)moe->conns + 1, sizeof(*fds));

	*count = 0;
	for (int k = moe->ranks; fds && k < moe->conns; k++)
		if (moe->conn[k]->state == OCS_MOE_UP)
			fds[(*count)++] = moe->conn[k]->fd;
	return fds;
}

/* Chunks that are left here are doubles of what has arrived. */
static bool conn_still(const struct ocs_moe_conn *conn)
{
	for (int class = 0; class < OCS_MOE_HOPS; class ++)
		if (conn->relay[class].head)
			return false;
	return !conn->out_size && ocs_drain(&conn->fd, 1, 0);
}

bool ocs_moe_still(const struct ocs_moe *moe)
{
	for (int k = moe->ranks; k < moe->conns; k++)
		if (moe->conn[k]->state == OCS_MOE_UP && !ocs_drain(&moe->conn[k]->fd, 1, 0))
			return false;
	return true;
}

int ocs_moe_settle(struct ocs_moe *moe)
{
	size_t count;
	int *fds = ups_list(moe, &count);

	if (!fds)
		return ocs_moe_fail(moe, "there is no memory left");
	/* What others had to acknowledge is on its way. */
	ocs_drain(fds, count, moe->dark_ms);
	free(fds);
	for (int k = moe->ranks; k < moe->conns; k++)
		if (moe->conn[k]->state == OCS_MOE_UP && !conn_still(moe->conn[k]) &&
		    ocs_moe_conn_lost(moe, moe->conn[k], "the circuit is dark"))
			return -1;
	return 0;
}

void ocs_moe_rest(struct ocs_moe *moe)
{
	for (int k = moe->ranks; k < moe->conns; k++)
		if (moe->conn[k]->state == OCS_MOE_CONNECTING)
			ocs_moe_conn_retry(moe->conn[k]);
}
