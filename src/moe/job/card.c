/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* A rank's packet address, and what else its fellows have to know. */

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "src/moe/job/ocs_moe_channel.h"

#define PUBLIC __attribute__((visibility("default")))
#define BACKLOG 128
#define NUMBER_MAX 65535

/* The IPv4 address of the first device of LIST, "eth1,eth2"; -1: it names none. */
static int device_address(const char *list, struct in_addr *address)
{
	size_t length = list ? strcspn(list, ",") : 0;
	struct ifaddrs *all, *at;
	int rc = -1;

	if (!length || getifaddrs(&all))
		return -1;
	for (at = all; at && rc; at = at->ifa_next)
		if (at->ifa_addr && at->ifa_addr->sa_family == AF_INET &&
		    strlen(at->ifa_name) == length && !strncmp(at->ifa_name, list, length)) {
			*address = ((struct sockaddr_in *)at->ifa_addr)->sin_addr;
			rc = 0;
		}
	freeifaddrs(all);
	return rc;
}

/* Of a name or a number. */
static int name_address(const char *name, struct in_addr *address)
{
	struct addrinfo wanted = { .ai_family = AF_INET, .ai_socktype = SOCK_STREAM }, *found;

	if (getaddrinfo(name, NULL, &wanted, &found))
		return -1;
	*address = ((struct sockaddr_in *)found->ai_addr)->sin_addr;
	freeaddrinfo(found);
	return 0;
}

/* -1: what the user set is no address. */
static int address_find(struct in_addr *address)
{
	const char *own = getenv("OCS_MOE_ADDRESS"), *node = getenv("SLURM_OCS_MOE_ADDRESS");

	if (own)
		return inet_pton(AF_INET, own, address) == 1 ? 0 : -1;
	if (!device_address(getenv("OMPI_MCA_btl_tcp_if_include"), address) ||
	    !device_address(getenv("GLOO_SOCKET_IFNAME"), address) ||
	    (node && !name_address(node, address)))
		return 0;
	address->s_addr = htonl(INADDR_LOOPBACK);
	return 0;
}

/* A socket that listens on a free port of this rank's address, and its name. */
static int address_listen(char *text)
{
	struct sockaddr_in at = { .sin_family = AF_INET };
	socklen_t size = sizeof(at);
	char host[INET_ADDRSTRLEN];
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -1;
	if (address_find(&at.sin_addr) || bind(fd, (struct sockaddr *)&at, size) ||
	    listen(fd, BACKLOG) || getsockname(fd, (struct sockaddr *)&at, &size)) {
		close(fd);
		return -1;
	}
	inet_ntop(AF_INET, &at.sin_addr, host, sizeof(host));
	snprintf(text, OCS_MOE_CARD, "%s:%d", host, ntohs(at.sin_port));
	return fd;
}

/* A number of the job's environment; -1: there is none. */
static int number_get(const char *name)
{
	const char *text = getenv(name);
	long number = text ? strtol(text, NULL, 10) : -1;

	return number < 0 || number > NUMBER_MAX ? -1 : (int)number;
}

PUBLIC int ocs_moe_card_make(struct ocs_moe_card *card)
{
	memset(card, 0, sizeof(*card));
	card->group = number_get("SLURM_OCS_MOE_GROUP");
	card->server = number_get("SLURM_OCS_MOE_SERVER");
	card->servers = number_get("SLURM_OCS_MOE_SERVERS");
	/* by hand, within a job or without */
	if (getenv("OCS_MOE_PLAN") || card->server < 0 || card->servers < 1)
		card->group = -1;
	if (getrandom(card->key, sizeof(card->key), 0) != (ssize_t)sizeof(card->key))
		return -1;
	return address_listen(card->address);
}
