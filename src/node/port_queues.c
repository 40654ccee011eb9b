/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/node/port_queues.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/gen_stats.h>
#include <linux/pkt_sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "src/node/route_cache.h"
#include "src/util/error.h"
#include "src/util/net.h"
#include "src/util/rtnetlink.h"
#include "src/util/text.h"

#define DEVICES "/sys/class/net"
#define PAUSE_NS 20000 /* between two looks, longer each time */
#define PAUSE_MAX_NS 1000000

struct port {
	unsigned int index;
	int *sending; /* files with the bytes that the NIC has, one for each of its queues */
	size_t nsending;
};

struct ocs_port_queues {
	int fd;
	uint32_t sequence;
	size_t count;
	struct port ports[];
};

/* A number in a file of sysfs; 0 if it is gone. */
static int64_t number_read(int fd)
{
	char text[32];
	ssize_t got = pread(fd, text, sizeof(text) - 1, 0);

	if (got <= 0)
		return 0;
	text[got] = '\0';
	return strtoll(text, NULL, 10);
}

/* Whether sysfs, which may be that of another network namespace, has this interface. */
static bool is_here(const char *name, unsigned int index)
{
	char *path = ocs_asprintf(DEVICES "/%s/ifindex", name);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	bool same = fd >= 0 && number_read(fd) == (int64_t)index;

	if (fd >= 0)
		close(fd);
	free(path);
	return same;
}

static void sending_open(struct port *port, const char *name)
{
	char *folder = ocs_asprintf(DEVICES "/%s/queues", name);
	DIR *list = is_here(name, port->index) ? opendir(folder) : NULL;
	struct dirent *entry;

	while (list && (entry = readdir(list))) {
		char *path;
		int fd;

		if (strncmp(entry->d_name, "tx-", 3) != 0)
			continue;
		path = ocs_asprintf("%s/%s/byte_queue_limits/inflight", folder, entry->d_name);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		free(path);
		if (fd < 0)
			continue;
		port->sending =
			ocs_realloc(port->sending, (port->nsending + 1) * sizeof(*port->sending));
		port->sending[port->nsending++] = fd;
	}
	if (list)
		closedir(list);
	free(folder);
}

struct ocs_port_queues *ocs_port_queues_create(const char *const *names,
					       const unsigned int *indices, size_t count,
					       struct ocs_error *err)
{
	struct ocs_port_queues *queues;
	int fd = ocs_rtnetlink_open();

	if (fd < 0) {
		ocs_error_set(err, OCS_ERROR, "no netlink socket: %s", strerror(errno));
		return NULL;
	}
	queues = ocs_calloc(1, sizeof(*queues) + count * sizeof(queues->ports[0]));
	queues->fd = fd;
	queues->count = count;
	for (size_t p = 0; p < count; p++) {
		queues->ports[p].index = indices[p];
		sending_open(&queues->ports[p], names[p]);
	}
	return queues;
}

void ocs_port_queues_destroy(struct ocs_port_queues *queues)
{
	if (!queues)
		return;
	for (size_t p = 0; p < queues->count; p++) {
		for (size_t i = 0; i < queues->ports[p].nsending; i++)
			close(queues->ports[p].sending[i]);
		free(queues->ports[p].sending);
	}
	close(queues->fd);
	free(queues);
}

/* The attribute TYPE among those from AT on, or NULL. */
static const struct rtattr *attribute_find(const struct rtattr *at, unsigned int left, int type)
{
	for (; RTA_OK(at, left); at = RTA_NEXT(at, left))
		if ((at->rta_type & NLA_TYPE_MASK) == type)
			return at;
	return NULL;
}

/* What the kernel says of a queueing discipline lies there; that of all its queues together. */
static int64_t held_read(const struct nlmsghdr *header)
{
	const struct tcmsg *about = NLMSG_DATA(header);
	const struct rtattr *stats, *queue = NULL;
	struct gnet_stats_queue said;

	if (header->nlmsg_len < NLMSG_LENGTH(sizeof(*about)))
		return 0;
	stats = attribute_find(TCA_RTA(about), (unsigned int)TCA_PAYLOAD(header), TCA_STATS2);
	if (stats)
		queue = attribute_find(RTA_DATA(stats), (unsigned int)RTA_PAYLOAD(stats),
				       TCA_STATS_QUEUE);
	if (!queue || RTA_PAYLOAD(queue) < 2 * sizeof(said.qlen))
		return 0;
	memset(&said, 0, sizeof(said));
	memcpy(&said, RTA_DATA(queue),
	       RTA_PAYLOAD(queue) < sizeof(said) ? RTA_PAYLOAD(queue) : sizeof(said));
	/* frames, where their bytes are not counted */
	return said.backlog ? said.backlog : said.qlen;
}

/* Reads the answer to the last question; others are left from one that gave up waiting.  -1 with errno. */
static int64_t answer_read(const struct ocs_port_queues *queues)
{
	char buffer[8192] __attribute__((aligned(NLMSG_ALIGNTO)));

	for (;;) {
		ssize_t got = recv(queues->fd, buffer, sizeof(buffer), 0);
		const struct nlmsghdr *header = (const struct nlmsghdr *)buffer;

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -1;
		for (unsigned int left = (unsigned int)got; NLMSG_OK(header, left);
		     header = NLMSG_NEXT(header, left)) {
			const struct nlmsgerr *said = NLMSG_DATA(header);

			if (header->nlmsg_seq != queues->sequence)
				continue;
			if (header->nlmsg_type == RTM_NEWQDISC)
				return held_read(header);
			if (header->nlmsg_type != NLMSG_ERROR)
				continue;
			errno = -said->error;
			return -1;
		}
	}
}

/* What the queueing discipline of PORT holds. */
static int64_t queue_bytes_read(struct ocs_port_queues *queues, size_t port, struct ocs_error *err)
{
	struct {
		struct nlmsghdr header;
		struct tcmsg about;
	} question = {
		.header = { .nlmsg_len = NLMSG_LENGTH(sizeof(struct tcmsg)),
			    .nlmsg_type = RTM_GETQDISC,
			    /* without ECHO the kernel tells only those who listen for changes */
			    .nlmsg_flags = NLM_F_REQUEST | NLM_F_ECHO,
			    .nlmsg_seq = ++queues->sequence },
		.about = { .tcm_ifindex = (int)queues->ports[port].index, .tcm_parent = TC_H_ROOT },
	};
	int64_t held = -1;

	if (send(queues->fd, &question, question.header.nlmsg_len, 0) >= 0)
		held = answer_read(queues);
	if (held >= 0)
		return held;
	/* a port without a queue, or no port */
	if (errno == EINVAL || errno == ENOENT || errno == ENODEV)
		return 0;
	return ocs_error_set(err, OCS_ERROR, "the kernel does not say what a port has to send: %s",
			     strerror(errno));
}

/* What the NIC has of PORT. */
static int64_t nic_bytes_read(const struct ocs_port_queues *queues, size_t port)
{
	const struct port *p = &queues->ports[port];
	int64_t bytes = 0;

	for (size_t i = 0; i < p->nsending; i++)
		bytes += number_read(p->sending[i]);
	return bytes;
}

int64_t ocs_port_queues_held(struct ocs_port_queues *queues, size_t port, struct ocs_error *err)
{
	int64_t bytes = queue_bytes_read(queues, port, err);

	return bytes < 0 ? -1 : bytes + nic_bytes_read(queues, port);
}

/* Takes those out of PORTS that have nothing to send. */
static int ports_look(struct ocs_port_queues *queues, struct ocs_route_cache *cache,
		      uint64_t *ports, struct ocs_error *err)
{
	uint64_t empty = 0;

	for (size_t p = 0; p < queues->count; p++) {
		int64_t bytes = *ports >> p & 1 ? queue_bytes_read(queues, p, err) : 1;

		if (bytes < 0)
			return -1;
		empty |= (uint64_t)!bytes << p;
	}
	/* what left the queue just now is with the NIC then */
	if (empty && ocs_route_cache_await(cache, err))
		return -1;
	for (size_t p = 0; p < queues->count; p++)
		if (empty >> p & 1 && !nic_bytes_read(queues, p))
			*ports &= ~(UINT64_C(1) << p);
	return 0;
}

int ocs_port_queues_wait(struct ocs_port_queues *queues, struct ocs_route_cache *cache,
			 uint64_t *ports, int64_t deadline_ns, struct ocs_error *err)
{
	long pause_ns = PAUSE_NS;

	while (*ports) {
		const struct timespec pause = { .tv_nsec = pause_ns };

		if (ports_look(queues, cache, ports, err))
			return -1;
		if (!*ports)
			break;
		if (ocs_now_ns() >= deadline_ns)
			return 1;
		nanosleep(&pause, NULL);
		pause_ns = pause_ns < PAUSE_MAX_NS ? 2 * pause_ns : pause_ns;
	}
	return 0;
}
