/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/rails/controller/controller.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "src/rails/rails_log.h"
#include "src/util/net.h"
#include "src/util/text.h"

#define LINKS_MAX 16384
#define UNPROVEN_MAX 1024 /* connections that have not said who they are, */
#define UNPROVEN_HOST 256 /* and of one address */
#define HELLO_NS INT64_C(10000000000)
#define UNREAD_MAX (64U << 20)
#define UNSENT_MAX (256U << 20)

static struct in6_addr address_of(const struct sockaddr_storage *from)
{
	const struct sockaddr_in *four = (const struct sockaddr_in *)from;
	struct in6_addr address = { 0 };

	if (from->ss_family == AF_INET6)
		return ((const struct sockaddr_in6 *)from)->sin6_addr;
	memcpy(&address.s6_addr[12], &four->sin_addr, sizeof(four->sin_addr));
	return address;
}

/* Anybody may connect and say nothing.  Makes room for one more from FROM: the oldest of those that have not proven that
 * they know the secret goes, and one host cannot take the places of all. */
static void unproven_bound(struct controller *controller, const struct in6_addr *from)
{
	struct link *oldest = NULL, *of_host = NULL;
	int host = 0;

	if (controller->nunproven < UNPROVEN_HOST)
		return;
	/* The newest is the first. */
	for (struct link *link = controller->links; link; link = link->next) {
		if (link->proven || link->fd < 0)
			continue;
		oldest = link;
		if (memcmp(&link->from, from, sizeof(*from)) != 0)
			continue;
		of_host = link;
		host++;
	}
	if (host >= UNPROVEN_HOST)
		link_lose(controller, of_host, NULL);
	else if (controller->nunproven >= UNPROVEN_MAX)
		link_lose(controller, oldest, NULL);
}

void links_accept(struct controller *controller)
{
	struct sockaddr_storage from = { 0 };
	int fd = ocs_net_accept(controller->listener, &controller->spare, &from, SOCK_NONBLOCK);
	struct link *link;

	if (fd < 0)
		return;
	link = ocs_calloc(1, sizeof(*link));
	link->fd = fd;
	link->from = address_of(&from);
	unproven_bound(controller, &link->from);
	if (controller->nlinks == LINKS_MAX ||
	    ocs_rendezvous_challenge(&link->outbox, link->nonce) ||
	    controller_watch(controller, fd, EPOLLIN, EVENT_LINK, link) < 0) {
		close(fd);
		ocs_outbox_free(&link->outbox);
		free(link);
		return;
	}
	ocs_rendezvous_tune(fd);
	link->deadline = ocs_now_ns() + HELLO_NS;
	link->next = controller->links;
	controller->links = link;
	controller->nlinks++;
	controller->nunproven++;
	link->dirty = true;
}

void link_lose(struct controller *controller, struct link *link, const char *why)
{
	if (link->fd < 0)
		return;
	close(link->fd);
	link->fd = -1;
	controller->again = true;
	controller->nunproven -= !link->proven;
	if (link->proven && why && !link->step->free && link->gone < link->hello.count)
		ocs_rails_log("node %u, step %u: %s", link->hello.node, link->hello.step, why);
	if (link->proven)
		step_leave(controller, link);
}

static int hello_take(struct controller *controller, struct link *link,
		      const struct ocs_frame *frame)
{
	if (!ocs_rendezvous_hello(&controller->meet, link->nonce, frame, &link->hello,
				  &link->ranks) ||
	    !step_join(controller, link))
		return -1;
	link->proven = true;
	controller->nunproven--;
	ocs_rendezvous_welcome(&controller->meet, link->nonce, &link->hello, link->step->free,
			       &link->outbox);
	link->dirty = true;
	step_begin(controller);
	return 0;
}

void link_frames(struct controller *controller, struct link *link)
{
	struct ocs_frame frame;
	int got = 0;

	while (link->fd >= 0) {
		struct step *step = link->step;

		if (step && !step->free && !step->coordinator) {
			/* What comes first is a group, or that a rank is gone. */
			if (step != controller->step && link->inbox.at < link->inbox.used)
				step_take(controller, step);
			return;
		}
		got = ocs_inbox_next(&link->inbox, &frame);
		if (got <= 0)
			break;
		if (!step)
			got = hello_take(controller, link, &frame);
		else if (step->free)
			step_free_frame(link, &frame);
		else
			got = step_frame(controller, link, &frame);
		if (got < 0)
			break;
	}
	if (got < 0)
		link_lose(controller, link, "it sends what an agent does not send");
}

void link_read(struct controller *controller, struct link *link)
{
	if (link->fd < 0)
		return;
	if (ocs_inbox_fill(&link->inbox, link->fd, link->proven ? UNREAD_MAX : OCS_FRAME_MAX) < 0)
		link_lose(controller, link, "its agent is gone");
	else
		link_frames(controller, link);
}

/* What senders did about LINK. */
static void link_flushed(struct controller *controller, struct link *link)
{
	struct epoll_event event = { .data.ptr = link };
	int rc = link->sent;

	if (!link->dirty || link->fd < 0)
		return;
	if (rc < 0 || link->outbox.used > UNSENT_MAX) {
		link_lose(controller, link, "its agent is gone");
		return;
	}
	/* Another one may have been lost meanwhile, which this one is told in the next round. */
	link->dirty = link->outbox.used > 0;
	if (link->writing == !rc)
		return;
	link->writing = !rc;
	event.events = EPOLLIN | (rc ? 0 : EPOLLOUT);
	epoll_ctl(controller->epoll, EPOLL_CTL_MOD, link->fd, &event);
}

static void link_free(struct link *link)
{
	if (link->fd >= 0)
		close(link->fd);
	ocs_inbox_free(&link->inbox);
	ocs_outbox_free(&link->outbox);
	free(link->ranks);
	free(link);
}

void links_flush(struct controller *controller)
{
	int64_t now = ocs_now_ns();

	for (struct link *link = controller->links; link; link = link->next)
		if (link->dirty && link->fd >= 0)
			senders_add(controller->senders, link);
	senders_run(controller->senders);
	for (struct link *link = controller->links; link; link = link->next) {
		link_flushed(controller, link);
		if (!link->proven && link->deadline < now)
			link_lose(controller, link, NULL);
	}
	for (struct link **at = &controller->links; *at;) {
		struct link *link = *at;

		if (link->fd >= 0) {
			at = &link->next;
			continue;
		}
		*at = link->next;
		controller->nlinks--;
		link_free(link);
	}
}

void links_free(struct controller *controller)
{
	while (controller->links) {
		struct link *link = controller->links;

		controller->links = link->next;
		link_free(link);
	}
}
