/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/node/route_batch.h"

#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "src/util/error.h"
#include "src/util/rtnetlink.h"
#include "src/util/text.h"

#define ROUTE_MAX 4096 /* bytes of one route, with all its devices */
#define SEND_MAX 32768 /* bytes of one message: the answers have to fit into the socket's buffer */

struct ocs_route_batch {
	int fd;
	uint32_t table, source, sequence;
	uint8_t protocol;
	struct ocs_text text; /* messages, one after the other */
	size_t *ends;	      /* of each */
	size_t count;
};

/* A message while it is written. */
struct message {
	struct nlmsghdr header;
	struct rtmsg route;
	char attributes[ROUTE_MAX];
};

struct ocs_route_batch *ocs_route_batch_create(uint32_t table, uint8_t protocol, uint32_t source,
					       struct ocs_error *err)
{
	struct ocs_route_batch *batch;
	int fd = ocs_rtnetlink_open();

	if (fd < 0) {
		ocs_error_set(err, OCS_ERROR, "no netlink socket: %s", strerror(errno));
		return NULL;
	}
	batch = ocs_calloc(1, sizeof(*batch));
	batch->fd = fd;
	batch->table = table;
	batch->protocol = protocol;
	batch->source = source;
	return batch;
}

void ocs_route_batch_destroy(struct ocs_route_batch *batch)
{
	if (!batch)
		return;
	close(batch->fd);
	ocs_text_free(&batch->text);
	free(batch->ends);
	free(batch);
}

/* Several next hops, each without a gateway. */
static void hops_add(struct message *message, const unsigned int *devices, size_t count)
{
	struct rtattr *list = ocs_rtnetlink_add(&message->header, RTA_MULTIPATH, NULL, 0);

	for (size_t i = 0; i < count; i++) {
		struct rtnexthop *hop =
			(struct rtnexthop *)((char *)message + message->header.nlmsg_len);

		memset(hop, 0, sizeof(*hop));
		hop->rtnh_len = sizeof(*hop);
		hop->rtnh_ifindex = (int)devices[i];
		message->header.nlmsg_len += (unsigned int)sizeof(*hop);
	}
	ocs_rtnetlink_close_list(&message->header, list);
}

void ocs_route_batch_add(struct ocs_route_batch *batch, uint32_t destination,
			 const unsigned int *devices, size_t count, uint32_t gateway)
{
	static const struct message empty;
	struct message message = empty;

	message.header.nlmsg_type = RTM_NEWROUTE;
	message.header.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE | NLM_F_REPLACE;
	message.header.nlmsg_seq = ++batch->sequence;
	message.header.nlmsg_len = NLMSG_LENGTH(sizeof(message.route));
	message.route.rtm_family = AF_INET;
	message.route.rtm_dst_len = 32;
	message.route.rtm_table = RT_TABLE_UNSPEC;
	message.route.rtm_protocol = batch->protocol;
	message.route.rtm_scope = gateway ? RT_SCOPE_UNIVERSE : RT_SCOPE_LINK;
	message.route.rtm_type = RTN_UNICAST;
	ocs_rtnetlink_add(&message.header, RTA_DST, &destination, sizeof(destination));
	ocs_rtnetlink_add(&message.header, RTA_TABLE, &batch->table, sizeof(batch->table));
	ocs_rtnetlink_add(&message.header, RTA_PREFSRC, &batch->source, sizeof(batch->source));
	if (gateway)
		ocs_rtnetlink_add(&message.header, RTA_GATEWAY, &gateway, sizeof(gateway));
	if (count == 1)
		ocs_rtnetlink_add(&message.header, RTA_OIF, devices, sizeof(*devices));
	else
		hops_add(&message, devices, count);
	ocs_text_put(&batch->text, (const char *)&message, NLMSG_ALIGN(message.header.nlmsg_len));
	batch->ends = ocs_realloc(batch->ends, (batch->count + 1) * sizeof(*batch->ends));
	batch->ends[batch->count++] = batch->text.length;
}

/* Reads the answers to messages NEXT to LAST, which the kernel sends in this order.  Others are left from a
 * batch that gave up waiting, or repeated.  0, or the first errno of a route. */
static int answers_read(const struct ocs_route_batch *batch, uint32_t next, uint32_t last)
{
	char buffer[16384] __attribute__((aligned(NLMSG_ALIGNTO)));
	int first = 0;

	while ((int32_t)(last - next) >= 0) {
		ssize_t got = recv(batch->fd, buffer, sizeof(buffer), 0);
		const struct nlmsghdr *header = (const struct nlmsghdr *)buffer;

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return first ? first : errno;
		for (unsigned int left = (unsigned int)got; NLMSG_OK(header, left);
		     header = NLMSG_NEXT(header, left)) {
			const struct nlmsgerr *said = NLMSG_DATA(header);
			int failed;

			if (header->nlmsg_type != NLMSG_ERROR ||
			    (int32_t)(header->nlmsg_seq - next) < 0 ||
			    (int32_t)(last - header->nlmsg_seq) < 0)
				continue;
			/* Nothing is known of a route whose answer is missing. */
			failed = header->nlmsg_seq == next ? -said->error : EPROTO;
			next = header->nlmsg_seq + 1;
			if (!first)
				first = failed;
		}
	}
	return first;
}

int ocs_route_batch_run(struct ocs_route_batch *batch, struct ocs_error *err)
{
	uint32_t number = batch->sequence + 1 - (uint32_t)batch->count; /* of the first */
	size_t from = 0, done = 0;
	int first = 0;

	while (done < batch->count) {
		size_t last = done;
		int failed = 0;

		while (last + 1 < batch->count && batch->ends[last + 1] - from <= SEND_MAX / 8)
			last++;
		if (send(batch->fd, batch->text.data + from, batch->ends[last] - from, 0) < 0)
			failed = errno;
		else
			failed = answers_read(batch, number + (uint32_t)done,
					      number + (uint32_t)last);
		if (failed && !first)
			first = failed;
		from = batch->ends[last];
		done = last + 1;
	}
	batch->count = 0;
	batch->text.length = 0;
	return first ? ocs_error_set(err, OCS_ERROR, "the kernel refuses a route: %s",
				     strerror(first)) :
		       0;
}
