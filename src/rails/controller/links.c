/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/rails/controller/controller.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "src/util/net.h"
#include "src/util/text.h"

#define LINKS_MAX 16384
#define HELLO_NS INT64_C(10000000000)
#define UNREAD_MAX (64U << 20)
#define UNSENT_MAX (256U << 20)

void links_accept(struct controller *controller)
{
	int fd = accept4(controller->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	struct link *link;

	if (fd < 0)
		return;
	link = ocs_calloc(1, sizeof(*link));
	link->fd = fd;
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
	link->dirty = true;
}

void link_lose(struct controller *controller, struct link *link, const char *why)
{
	if (link->fd < 0)
		return;
	close(link->fd);
	link->fd = -1;
	controller->again = true;
	if (link->proven && why && !link->step->free && link->gone < link->hello.count)
		fprintf(stderr, "ocs-rails-controller: node %u: %s\n", link->hello.node, why);
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

void links_note(struct controller *controller, const char *format, ...)
{
	va_list args;
	char *text;

	va_start(args, format);
	text = ocs_vasprintf(format, args);
	va_end(args);
	fprintf(stderr, "ocs-rails-controller: %s\n", text);
	for (struct link *link = controller->links; link; link = link->next) {
		size_t length = strlen(text);

		if (!link->proven || link->fd < 0)
			continue;
		ocs_outbox_frame(&link->outbox, OCS_FRAME_NOTE, text,
				 length < OCS_NOTE_MAX ? length : OCS_NOTE_MAX, NULL, 0);
		link->dirty = true;
	}
	free(text);
}

void links_free(struct controller *controller)
{
	while (controller->links) {
		struct link *link = controller->links;

		controller->links = link->next;
		link_free(link);
	}
}
