/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_UTIL_RTNETLINK_H
#define OCS_UTIL_RTNETLINK_H

/* The socket and the attributes of rtnetlink, for those who need more than ip and tc say, or sooner. */

#include <linux/rtnetlink.h>
#include <stddef.h>

/* A socket on which an answer of the kernel is waited for no longer than 5 s (EAGAIN).  -1 with errno. */
int ocs_rtnetlink_open(void);

/* Appends an attribute TYPE with the LENGTH bytes DATA (NULL: none) to MESSAGE, behind which the caller has
 * the room.  Returns where it lies. */
struct rtattr *ocs_rtnetlink_add(struct nlmsghdr *message, int type, const void *data,
				 size_t length);

/* What was appended to MESSAGE since LIST, which was added without data, lies in LIST. */
void ocs_rtnetlink_close_list(const struct nlmsghdr *message, struct rtattr *list);

#endif
