/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/node/route_cache.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/membarrier.h>
#include <net/if.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "src/util/error.h"
#include "src/util/text.h"

#define NAMESPACE "/proc/self/ns/net"
#define FLUSH "/proc/sys/net/ipv4/route/flush"

struct ocs_route_cache {
	int aside; /* a socket in a network namespace of its own; -1: there is none */
};

/* A socket in a new network namespace, which lasts as long as the socket.  -1 with errno if there is
 * none, -2: and the caller has not come back. */
static int socket_aside(void)
{
	int here = open(NAMESPACE, O_RDONLY | O_CLOEXEC), fd, back;

	if (here < 0)
		return -1;
	if (unshare(CLONE_NEWNET)) {
		close(here);
		return -1;
	}
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	back = setns(here, CLONE_NEWNET);
	close(here);
	if (!back)
		return fd;
	if (fd >= 0)
		close(fd);
	return -2;
}

struct ocs_route_cache *ocs_route_cache_create(struct ocs_error *err)
{
	struct ocs_route_cache *cache;
	int aside = socket_aside();

	if (aside == -2 ||
	    (aside < 0 && syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0) < 0)) {
		ocs_error_set(err, OCS_ERROR,
			      "no network namespace of its own to wait for senders in: %s",
			      strerror(errno));
		return NULL;
	}
	cache = ocs_calloc(1, sizeof(*cache));
	cache->aside = aside;
	return cache;
}

void ocs_route_cache_destroy(struct ocs_route_cache *cache)
{
	if (!cache)
		return;
	if (cache->aside >= 0)
		close(cache->aside);
	free(cache);
}

static int loopback_set(int fd, short flags)
{
	struct ifreq request = { .ifr_name = "lo", .ifr_flags = flags };

	return ioctl(fd, SIOCSIFFLAGS, &request);
}

/* Waits until what was in the middle of sending on any CPU has done so (a grace period of RCU).  The kernel
 * does that, and quickly, before an interface is down, whichever it is: some 50 us, where membarrier
 * takes 4 to 20 ms. */
static int senders_await(const struct ocs_route_cache *cache)
{
	if (cache->aside < 0)
		return (int)syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0);
	return loopback_set(cache->aside, IFF_UP) || loopback_set(cache->aside, 0) ? -1 : 0;
}

int ocs_route_cache_await(const struct ocs_route_cache *cache, struct ocs_error *err)
{
	return senders_await(cache) == 0 ?
		       0 :
		       ocs_error_set(err, OCS_ERROR, "no word when senders are done: %s",
				     strerror(errno));
}

/* All routes that sockets keep are old.  In the caller's network namespace. */
static int routes_age(void)
{
	int fd = open(FLUSH, O_WRONLY | O_CLOEXEC);
	int rc = fd >= 0 && write(fd, "1", 1) == 1 ? 0 : -1;

	if (fd >= 0)
		close(fd); /* of procfs: leaves errno as it is */
	return rc;
}

int ocs_route_cache_renew(struct ocs_route_cache *cache, struct ocs_error *err)
{
	/* Lookups from before are over; what they found is old; who had it in hand has sent. */
	if (senders_await(cache) == 0 && routes_age() == 0 && senders_await(cache) == 0)
		return 0;
	return ocs_error_set(err, OCS_ERROR, "sockets may still use the routes from before: %s",
			     strerror(errno));
}
