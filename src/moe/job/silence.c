/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Nothing is sent into a circuit that may be cut: between two all-to-alls circuits are still, and are left without a word. */

#include <linux/sockios.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "src/moe/job/state.h"
#include "src/rails/shim/drain.h"

void ocs_moe_hush(int fd)
{
	static const struct linger none = { .l_onoff = 1 };
	static const char inside[] = "lo";

	/* What was not acknowledged would be sent again for minutes by a socket that is closed as usual.  Without
	 * waiting there is a reset instead, which the second call keeps in this machine. */
	setsockopt(fd, SOL_SOCKET, SO_LINGER, &none, sizeof(none));
	setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, inside, sizeof(inside));
	close(fd);
}

static bool conn_still(const struct ocs_moe_conn *conn)
{
	int left = 0;

	for (int class = 0; class < OCS_MOE_HOPS; class ++)
		if (conn->relay[class].head)
			return false;
	return !conn->out_size && (ioctl(conn->fd, SIOCOUTQ, &left) < 0 || left <= 0);
}

int ocs_moe_settle(struct ocs_moe *moe)
{
	int *fds = calloc((size_t)moe->conns + 1, sizeof(*fds));
	size_t count = 0;

	if (!fds)
		return ocs_moe_fail(moe, "there is no memory left");
	for (int k = moe->ranks; k < moe->conns; k++) {
		if (moe->conn[k]->state == OCS_MOE_UP)
			fds[count++] = moe->conn[k]->fd;
		else if (moe->conn[k]->state == OCS_MOE_CONNECTING)
			ocs_moe_conn_retry(moe->conn[k]);
	}
	ocs_drain(fds, count, moe->dark_ms);
	free(fds);
	for (int k = moe->ranks; k < moe->conns; k++)
		if (moe->conn[k]->state == OCS_MOE_UP && !conn_still(moe->conn[k]) &&
		    ocs_moe_conn_lost(moe, moe->conn[k], "the circuit is dark"))
			return -1;
	return 0;
}
