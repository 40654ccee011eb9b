/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* What the kernel of this host has now. */

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "src/forward/internal.h"
#include "src/util/error.h"
#include "src/util/net.h"

#define CARRIER_PAUSE_US 20000

bool ocs_forward_rules_there(void)
{
	char *const words[] = { "ip", "-N", "rule", "show", NULL };
	char mark[24], *said = ocs_forward_ask(words);
	bool there;

	snprintf(mark, sizeof(mark), " proto %d", OCS_FORWARD_PROTOCOL);
	there = said && strstr(said, mark);
	free(said);
	return there;
}

int ocs_forward_device_flags(const char *device)
{
	struct ifreq request = { 0 };
	int sock = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), flags = 0;

	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", device);
	if (sock >= 0 && ioctl(sock, SIOCGIFFLAGS, &request) == 0)
		flags = request.ifr_flags;
	if (sock >= 0)
		close(sock);
	return flags;
}

bool ocs_forward_address_there(const char *address, const char *device)
{
	struct ifaddrs *list, *one;
	struct in_addr wanted;
	bool there = false;

	if (inet_pton(AF_INET, address, &wanted) != 1 || getifaddrs(&list) < 0)
		return false;
	for (one = list; one; one = one->ifa_next) {
		const struct sockaddr_in *in = (const void *)one->ifa_addr;

		if (in && in->sin_family == AF_INET && !strcmp(one->ifa_name, device))
			there |= in->sin_addr.s_addr == wanted.s_addr;
	}
	freeifaddrs(list);
	return there;
}

bool ocs_forward_clsact_there(char *device)
{
	char *const words[] = { "tc", "qdisc", "show", "dev", device, "clsact", NULL };
	char *said = ocs_forward_ask(words);
	bool there = said && *said;

	free(said);
	return there;
}

int ocs_forward_carrier(const struct ocs_forward *forward, const struct ocs_forward_hosts *hosts,
			int host, int timeout_ms, struct ocs_error *err)
{
	int64_t end = ocs_now_ns() + (int64_t)timeout_ms * 1000000;

	for (int p = 0; p < forward->degree; p++) {
		const struct ocs_forward_link *link = &forward->link[host * forward->degree + p];
		const char *device = hosts->host[host].ports[p].name;

		while (link->server >= 0 && !(ocs_forward_device_flags(device) & IFF_RUNNING)) {
			if (ocs_now_ns() > end)
				return ocs_error_set(
					err, OCS_ERROR,
					"interface %s has a circuit to %s but no carrier after"
					" %d s",
					device, hosts->host[link->server].node, timeout_ms / 1000);
			usleep(CARRIER_PAUSE_US);
		}
	}
	return 0;
}
