/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/util/rtnetlink.h"

#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>

int ocs_rtnetlink_open(void)
{
	struct timeval limit = { .tv_sec = 5 };
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);

	if (fd >= 0)
		setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	return fd;
}

struct rtattr *ocs_rtnetlink_add(struct nlmsghdr *message, int type, const void *data,
				 size_t length)
{
	struct rtattr *at = (struct rtattr *)((char *)message + NLMSG_ALIGN(message->nlmsg_len));

	at->rta_type = (unsigned short)type;
	at->rta_len = (unsigned short)RTA_LENGTH(length);
	if (length)
		memcpy(RTA_DATA(at), data, length);
	message->nlmsg_len = NLMSG_ALIGN(message->nlmsg_len) + RTA_ALIGN(at->rta_len);
	return at;
}

void ocs_rtnetlink_close_list(const struct nlmsghdr *message, struct rtattr *list)
{
	list->rta_len =
		(unsigned short)((const char *)message + message->nlmsg_len - (const char *)list);
}
