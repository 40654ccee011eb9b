/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* The drain of an operation: what this rank wrote was acknowledged, what it read it acknowledges. */

#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>

#include "src/rails/shim/drain.h"

static bool socket_empty(int fd)
{
	int left = 0;

	return ioctl(fd, SIOCOUTQ, &left) < 0 || left <= 0;
}

bool ocs_drain(const int *fds, size_t count, int limit_ms)
{
	int64_t left = limit_ms * INT64_C(1000000);
	struct timespec pause = { 0, 10000 };
	size_t i = 0;
	int on = 1;

	/* An acknowledgement that is held back for 40 ms would hold the sender's drain. */
	for (size_t k = 0; k < count; k++)
		setsockopt(fds[k], IPPROTO_TCP, TCP_QUICKACK, &on, sizeof(on));
	while (i < count) {
		if (socket_empty(fds[i])) {
			i++;
			continue;
		}
		if (left <= 0)
			return false;
		nanosleep(&pause, NULL);
		left -= pause.tv_nsec;
		if (pause.tv_nsec < 500000)
			pause.tv_nsec *= 2;
	}
	return true;
}
