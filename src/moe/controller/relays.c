/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Relays of other nodes, as the controller has them. */

#include "src/moe/controller/controller.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "src/moe/controller/relay_frames.h"
#include "src/util/text.h"

#define HELLO_S 10	    /* to prove that it is one */
#define UNPROVEN_MAX 64	    /* so many at a time */
#define UNPROVEN_BYTES 4096 /* that it may send before */
#define SILENT_S 30	    /* without a beat: it is gone */
#define PAUSE_S 1	    /* after no connection could be taken */
#define QUESTIONS_MAX 1024  /* of a relay */
#define UNREAD_MAX (8U << 20)
#define UNSENT_MAX (64U << 20)

/* A question that waits for its plan. */
struct question {
	struct group *group;
	struct ocs_moe_step step;
	uint64_t token;
	double since;
};

struct link {
	int fd; /* -1: it is gone */
	bool proven;
	uint8_t nonce[OCS_FRAMES_NONCE];
	uint32_t node;
	double heard;
	struct ocs_inbox inbox;
	struct ocs_outbox outbox;
	struct question *question;
	int nquestions;
	struct link *next;
};

void relays_listen(struct controller *controller)
{
	struct ocs_error err;

	if (controller->servers * controller->ngroups < 2)
		return;
	controller->meet.job = controller->job;
	controller->meet.epoch = controller->epoch;
	ocs_rendezvous_derive(&controller->meet, controller->key);
	controller->listener = ocs_rendezvous_listen(&controller->meet, &err);
	if (controller->listener < 0)
		fprintf(stderr, "ocs-moe-controller: %s; ranks of other nodes get no plans\n",
			err.text);
}

static void link_lose(struct link *link)
{
	if (link->fd >= 0)
		close(link->fd);
	link->fd = -1;
}

static void link_free(struct link *link)
{
	link_lose(link);
	ocs_inbox_free(&link->inbox);
	ocs_outbox_free(&link->outbox);
	free(link->question);
	free(link);
}

int relays_poll(struct controller *controller, struct pollfd *polls, double now)
{
	int n = 1;

	polls[0] = (struct pollfd){ .fd = now < controller->listen_at ? -1 : controller->listener,
				    .events = POLLIN };
	for (const struct link *link = controller->links; link; link = link->next, n++)
		polls[n] = (struct pollfd){
			.fd = link->fd,
			.events = (short)(POLLIN |
					  (link->outbox.used > link->outbox.sent ? POLLOUT : 0)),
		};
	return n;
}

static int unproven_count(const struct controller *controller)
{
	int count = 0;

	for (const struct link *link = controller->links; link; link = link->next)
		count += !link->proven;
	return count;
}

static void link_accept(struct controller *controller, double now)
{
	int fd = accept4(controller->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	struct link *link;

	if (fd < 0) {
		controller->listen_at = now + PAUSE_S;
		return;
	}
	link = ocs_calloc(1, sizeof(*link));
	link->fd = fd;
	link->heard = now;
	if (controller->nlinks == RELAYS_MAX || unproven_count(controller) == UNPROVEN_MAX ||
	    ocs_rendezvous_challenge(&link->outbox, link->nonce) < 0) {
		link_free(link);
		return;
	}
	ocs_rendezvous_tune(fd);
	link->next = controller->links;
	controller->links = link;
	controller->nlinks++;
}

/* One relay a node: one that comes while there is another takes its place, whose connection may be half
 * open. */
static int hello_take(struct controller *controller, struct link *link,
		      const struct ocs_frame *frame)
{
	struct ocs_frame_hello hello;
	int *ranks = NULL;
	bool good = ocs_rendezvous_hello(&controller->meet, link->nonce, frame, &hello, &ranks);

	free(ranks);
	if (!good || hello.node >= (uint32_t)controller->servers * (uint32_t)controller->ngroups)
		return -1;
	for (struct link *other = controller->links; other; other = other->next)
		if (other->proven && other->node == hello.node)
			link_lose(other);
	link->proven = true;
	link->node = hello.node;
	ocs_rendezvous_welcome(&controller->meet, link->nonce, &hello, false, &link->outbox);
	return 0;
}

static int ask_take(struct controller *controller, struct link *link, const struct ocs_frame *frame,
		    double now)
{
	struct question question = { .since = now };
	uint32_t group;

	if (relay_ask_read(frame, &group, &question.token, &question.step) < 0 ||
	    group >= (uint32_t)controller->ngroups || link->nquestions == QUESTIONS_MAX)
		return -1;
	question.group = &controller->groups[group];
	if (!link->question)
		link->question = ocs_calloc(QUESTIONS_MAX, sizeof(*link->question));
	link->question[link->nquestions++] = question;
	/* what ranks of this node said before */
	group_gates(question.group, now);
	group_ask(question.group, &question.step, now);
	return 0;
}

static int frame_take(struct controller *controller, struct link *link,
		      const struct ocs_frame *frame, double now)
{
	int64_t counts[OCS_MOE_GATE_COUNTS];
	struct ocs_moe_gate_head head;
	uint32_t group;

	if (!link->proven)
		return hello_take(controller, link, frame);
	if (frame->kind == RELAY_BEAT) {
		relay_beat_add(&link->outbox);
		return 0;
	}
	if (frame->kind == RELAY_ASK)
		return ask_take(controller, link, frame, now);
	if (relay_row_read(frame, &group, &head, counts) < 0 ||
	    group >= (uint32_t)controller->ngroups)
		return -1;
	group_gate(&controller->groups[group], &head, counts, now);
	return 0;
}

static void link_read(struct controller *controller, struct link *link, double now)
{
	struct ocs_frame frame;
	int got =
		ocs_inbox_fill(&link->inbox, link->fd, link->proven ? UNREAD_MAX : UNPROVEN_BYTES);

	if (got > 0 && link->proven)
		link->heard = now;
	while (got >= 0 && link->fd >= 0 && (got = ocs_inbox_next(&link->inbox, &frame)) > 0)
		got = frame_take(controller, link, &frame, now);
	if (got < 0)
		link_lose(link);
}

void relays_read(struct controller *controller, const struct pollfd *polls, double now)
{
	int n = 1;

	for (struct link *link = controller->links; link; link = link->next, n++)
		if (link->fd >= 0 && polls[n].revents & ~POLLOUT)
			link_read(controller, link, now);
	if (polls[0].revents)
		link_accept(controller, now);
}

static void questions_answer(struct link *link, double now)
{
	int left = 0;

	for (int i = 0; i < link->nquestions; i++) {
		struct question *question = &link->question[i];
		struct ocs_text text = { 0 };

		if (group_answer(question->group, &question->step, question->since, now, &text))
			relay_plan_add(&link->outbox, question->token, text.length ? text.data : "",
				       text.length);
		else
			link->question[left++] = *question;
		ocs_text_free(&text);
	}
	link->nquestions = left;
}

void relays_flush(struct controller *controller, double now)
{
	for (struct link **at = &controller->links; *at;) {
		struct link *link = *at;

		if (link->fd >= 0) {
			questions_answer(link, now);
			if (ocs_outbox_flush(&link->outbox, link->fd) < 0 ||
			    link->outbox.used > UNSENT_MAX ||
			    now - link->heard > (link->proven ? SILENT_S : HELLO_S))
				link_lose(link);
		}
		if (link->fd >= 0) {
			at = &link->next;
			continue;
		}
		*at = link->next;
		controller->nlinks--;
		link_free(link);
	}
}

void relays_free(struct controller *controller)
{
	while (controller->links) {
		struct link *link = controller->links;

		controller->links = link->next;
		link_free(link);
	}
	if (controller->listener >= 0)
		close(controller->listener);
}
