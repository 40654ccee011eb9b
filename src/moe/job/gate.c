/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#include "src/moe/job/ocs_moe_gate.h"

#define PUBLIC __attribute__((visibility("default")))

struct ocs_moe_gate {
	int fd;
	int rank, ranks;
	struct sockaddr_un agent;
	uint64_t dropped; /* atomic */
};

static int address_set(struct sockaddr_un *address, const char *path)
{
	memset(address, 0, sizeof(*address));
	address->sun_family = AF_UNIX;
	if (!path || !*path || strlen(path) >= sizeof(address->sun_path))
		return -1;
	strcpy(address->sun_path, path);
	return 0;
}

/* What the user says, or spank_ocs(8); NULL: none. */
static const char *default_path(char *text, size_t size)
{
	const char *own = getenv("OCS_MOE_AGENT"), *folder = getenv("SLURM_OCS_MOE_SOCKETS");
	const char *group = getenv("SLURM_OCS_MOE_GROUP");

	if (own || !folder || !group)
		return own;
	return snprintf(text, size, "%s/gate.%s", folder, group) < (int)size ? text : NULL;
}

PUBLIC struct ocs_moe_gate *ocs_moe_gate_open(const char *path, int rank, int ranks)
{
	struct ocs_moe_gate *gate = calloc(1, sizeof(*gate));
	char text[sizeof(gate->agent.sun_path) + 1];

	if (!gate)
		return NULL;
	gate->rank = rank;
	gate->ranks = ranks;
	gate->fd = -1;
	if (!path)
		path = default_path(text, sizeof(text));
	if (!address_set(&gate->agent, path))
		gate->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	return gate;
}

PUBLIC void ocs_moe_gate_close(struct ocs_moe_gate *gate)
{
	if (gate && gate->fd >= 0)
		close(gate->fd);
	free(gate);
}

/* Sent by name each time: the agent may come, go and come back. */
static void gate_send(struct ocs_moe_gate *gate, struct ocs_moe_gate_head *head,
		      const int64_t *counts)
{
	struct iovec parts[2] = { { head, sizeof(*head) },
				  { (void *)counts, head->counts * sizeof(*counts) } };
	struct msghdr message = { .msg_name = &gate->agent,
				  .msg_namelen = sizeof(gate->agent),
				  .msg_iov = parts,
				  .msg_iovlen = counts ? 2 : 1 };

	head->magic = OCS_MOE_GATE_MAGIC;
	head->rank = gate->rank;
	head->ranks = gate->ranks;
	head->dropped = __atomic_load_n(&gate->dropped, __ATOMIC_RELAXED);
	if (gate->fd < 0 || sendmsg(gate->fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
		__atomic_add_fetch(&gate->dropped, 1, __ATOMIC_RELAXED);
}

PUBLIC void ocs_moe_gate(struct ocs_moe_gate *gate, int layer, int64_t microbatch,
			 const int64_t *counts, int n)
{
	struct ocs_moe_gate_head head = { .kind = OCS_MOE_GATE_ROW,
					  .layer = layer,
					  .microbatch = microbatch };
	int saved = errno;

	if (!gate)
		return;
	if (n < 1 || n > OCS_MOE_GATE_COUNTS || !counts) {
		__atomic_add_fetch(&gate->dropped, 1, __ATOMIC_RELAXED);
		return;
	}
	head.counts = (uint16_t)n;
	gate_send(gate, &head, counts);
	errno = saved;
}

PUBLIC void ocs_moe_gate_step(struct ocs_moe_gate *gate, int layer, int64_t microbatch,
			      int backward, int second, int ended)
{
	struct ocs_moe_gate_head head = { .kind = ended ? OCS_MOE_GATE_END : OCS_MOE_GATE_BEGIN,
					  .layer = layer,
					  .step = 2 * !!backward + !!second,
					  .microbatch = microbatch };
	int saved = errno;

	if (gate)
		gate_send(gate, &head, NULL);
	errno = saved;
}

PUBLIC uint64_t ocs_moe_gate_dropped(const struct ocs_moe_gate *gate)
{
	return gate ? __atomic_load_n(&gate->dropped, __ATOMIC_RELAXED) : 0;
}

/* Removes a socket that no process has open any more. */
static void stale_remove(const struct sockaddr_un *address)
{
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct stat what;

	if (fd < 0)
		return;
	if (connect(fd, (const struct sockaddr *)address, sizeof(*address)) &&
	    errno == ECONNREFUSED && !lstat(address->sun_path, &what) && S_ISSOCK(what.st_mode))
		unlink(address->sun_path);
	close(fd);
}

PUBLIC int ocs_moe_gate_listen(const char *path)
{
	struct sockaddr_un address;
	int fd, one = 1, saved;

	if (address_set(&address, path)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	stale_remove(&address);
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -1;
	/* The socket's mode follows that of the descriptor: no moment at which others may write. */
	if (!fchmod(fd, 0600) && !bind(fd, (struct sockaddr *)&address, sizeof(address)) &&
	    !setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &one, sizeof(one)))
		return fd;
	saved = errno;
	close(fd);
	errno = saved;
	return -1;
}

static int head_check(const struct ocs_moe_gate_head *head, size_t size)
{
	if (head->magic != OCS_MOE_GATE_MAGIC || head->rank < 0 || head->ranks < 1 ||
	    head->rank >= head->ranks || head->layer < 0 || head->microbatch < 0 ||
	    size != head->counts * sizeof(int64_t))
		return -1;
	if (head->kind == OCS_MOE_GATE_ROW)
		return head->counts && head->counts <= OCS_MOE_GATE_COUNTS && !head->step ? 0 : -1;
	return (head->kind == OCS_MOE_GATE_BEGIN || head->kind == OCS_MOE_GATE_END) &&
			       !head->counts && head->step >= 0 && head->step < 4 ?
		       0 :
		       -1;
}

PUBLIC int ocs_moe_gate_check(const struct ocs_moe_gate_head *head, const int64_t *counts,
			      size_t size)
{
	if (head_check(head, size))
		return -1;
	for (int k = 0; k < head->counts; k++)
		if (counts[k] < 0)
			return -1;
	return 0;
}

PUBLIC int ocs_moe_gate_read(int fd, struct ocs_moe_gate_head *head, int64_t *counts)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(struct ucred))];
	} control;
	struct iovec parts[2] = { { head, sizeof(*head) },
				  { counts, OCS_MOE_GATE_COUNTS * sizeof(*counts) } };
	struct msghdr message = { .msg_iov = parts,
				  .msg_iovlen = 2,
				  .msg_control = control.bytes,
				  .msg_controllen = sizeof(control.bytes) };
	ssize_t got = recvmsg(fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	struct cmsghdr *part = got < 0 ? NULL : CMSG_FIRSTHDR(&message);
	struct ucred who;

	if (got < 0)
		return 0;
	if (!part || part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_CREDENTIALS)
		return -1;
	memcpy(&who, CMSG_DATA(part), sizeof(who));
	if ((who.uid != geteuid() && who.uid != 0) || message.msg_flags & MSG_TRUNC ||
	    (size_t)got < sizeof(*head))
		return -1;
	return ocs_moe_gate_check(head, counts, (size_t)got - sizeof(*head)) ? -1 : 1;
}
