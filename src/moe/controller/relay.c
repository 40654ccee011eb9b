/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* On a node without the controller: the same two sockets for each group.  Gates go on to the controller or are
 * dropped; a question is answered by the controller, and without it, or after a time, by a plan of packets. */

#include "src/moe/controller/controller.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "src/moe/controller/relay_frames.h"
#include "src/util/text.h"

#define BEAT_S 1
#define SILENT_S 6	      /* a controller that does not answer beats is gone */
#define QUESTION_MORE_S 2     /* a question has the controller's time and this */
#define UNSENT_MAX (4U << 20) /* then gates are dropped */
#define UNREAD_MAX (8U << 20)
#define TICK_MS 200
#define PAUSE_FIRST_MS 20  /* between two attempts to find the controller, */
#define PAUSE_LAST_MS 1000 /* longer each time */

struct relay {
	struct controller *controller;
	const char *host;
	struct ocs_frame_hello hello;
	int node; /* its own, as a list of ranks */
	int fd;	  /* to the controller, or -1 */
	struct ocs_inbox inbox;
	struct ocs_outbox outbox;
	double heard, beat;
	uint64_t token;
	uint64_t parts_of; /* the plan of which PARTS have come; 0: none */
	struct ocs_text parts;
	/* the thread that seeks, to whom these belong until it has written to FOUND: */
	bool seeking, said;
	int found; /* an eventfd */
	int found_fd;
	struct ocs_inbox found_inbox;
};

/* ---- the controller ---- */

/* In a thread of its own: names are resolved, and ports tried, one after the other. */
static void *controller_seek(void *data)
{
	struct relay *relay = data;
	struct ocs_frame_welcome welcome;
	struct ocs_error err;
	uint64_t one = 1;
	int pause = PAUSE_FIRST_MS;

	for (;;) {
		struct timespec wait = { pause / 1000, pause % 1000 * 1000000L };

		relay->found_fd =
			ocs_rendezvous_connect(&relay->controller->meet, relay->host, &relay->hello,
					       &relay->node, &welcome, &relay->found_inbox, &err);
		if (relay->found_fd >= 0)
			break;
		if (!relay->said && pause >= PAUSE_LAST_MS)
			fprintf(stderr, "ocs-moe-controller: %s; ranks of this node have packets\n",
				err.text);
		relay->said |= pause >= PAUSE_LAST_MS;
		nanosleep(&wait, NULL);
		pause = pause * 2 < PAUSE_LAST_MS ? pause * 2 : PAUSE_LAST_MS;
	}
	if (write(relay->found, &one, sizeof(one)) < 0)
		perror("ocs-moe-controller");
	return NULL;
}

static void seeker_start(struct relay *relay)
{
	pthread_attr_t attributes;
	pthread_t thread;

	if (relay->fd >= 0 || relay->seeking)
		return;
	pthread_attr_init(&attributes);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	relay->seeking = pthread_create(&thread, &attributes, controller_seek, relay) == 0;
	pthread_attr_destroy(&attributes);
}

static void controller_found(struct relay *relay, double now)
{
	uint64_t count;

	if (read(relay->found, &count, sizeof(count)) != sizeof(count))
		return;
	relay->fd = relay->found_fd;
	relay->inbox = relay->found_inbox;
	relay->found_inbox = (struct ocs_inbox){ 0 };
	relay->seeking = relay->said = false;
	relay->heard = now;
	relay->beat = 0;
	ocs_rendezvous_tune(relay->fd);
}

/* The connection is gone, and with it what is on its way: who waits for a plan has packets. */
static void controller_lose(struct relay *relay)
{
	if (relay->fd < 0)
		return;
	close(relay->fd);
	relay->fd = -1;
	ocs_inbox_free(&relay->inbox);
	ocs_outbox_free(&relay->outbox);
	ocs_text_free(&relay->parts);
	relay->parts_of = 0;
	for (int g = 0; g < relay->controller->ngroups; g++)
		for (int i = 0; i < ASKERS; i++) {
			struct asker *asker = &relay->controller->groups[g].sockets.asker[i];

			if (asker->fd >= 0 && asker->waits)
				asker_answer(asker, "", 0);
		}
}

/* To who asked and still waits; what comes late or twice is for no one. */
static void plan_pass(struct relay *relay, uint64_t token)
{
	for (int g = 0; g < relay->controller->ngroups; g++)
		for (int i = 0; i < ASKERS; i++) {
			struct asker *asker = &relay->controller->groups[g].sockets.asker[i];

			if (asker->fd >= 0 && asker->waits && asker->token == token)
				asker_answer(asker, relay->parts.length ? relay->parts.data : "",
					     relay->parts.length);
		}
}

/* -1: it is not what a controller says. */
static int frame_take(struct relay *relay, const struct ocs_frame *frame)
{
	struct relay_plan plan;
	const char *text;
	size_t length;

	if (frame->kind == RELAY_BEAT)
		return 0;
	if (relay_plan_read(frame, &plan, &text, &length) < 0 ||
	    (relay->parts_of && relay->parts_of != plan.token) ||
	    relay->parts.length + length > UNREAD_MAX)
		return -1;
	ocs_text_put(&relay->parts, text, length);
	relay->parts_of = plan.token;
	if (plan.more)
		return 0;
	plan_pass(relay, plan.token);
	ocs_text_free(&relay->parts);
	relay->parts_of = 0;
	return 0;
}

static void controller_read(struct relay *relay, bool ready, double now)
{
	struct ocs_frame frame;
	int got = ready ? ocs_inbox_fill(&relay->inbox, relay->fd, UNREAD_MAX) : 0;

	if (got > 0)
		relay->heard = now;
	while (got >= 0 && (got = ocs_inbox_next(&relay->inbox, &frame)) > 0)
		got = frame_take(relay, &frame);
	if (got < 0 || now - relay->heard > SILENT_S)
		controller_lose(relay);
}

static void controller_flush(struct relay *relay, double now)
{
	if (relay->fd >= 0 && now - relay->beat >= BEAT_S &&
	    relay->outbox.used <= relay->outbox.sent + UNSENT_MAX) {
		relay->beat = now;
		relay_beat_add(&relay->outbox);
	}
	/* what was sent is kept until all is: twice as much is none that reads */
	if (relay->fd >= 0 && (ocs_outbox_flush(&relay->outbox, relay->fd) < 0 ||
			       relay->outbox.used > 4 * (size_t)UNSENT_MAX))
		controller_lose(relay);
}

/* ---- ranks ---- */

static void gates_pass(struct relay *relay, struct group *group)
{
	int64_t counts[OCS_MOE_GATE_COUNTS];
	struct ocs_moe_gate_head head;
	int rc;

	while ((rc = ocs_moe_gate_read(group->sockets.gate, &head, counts)) != 0)
		if (rc > 0 && relay->fd >= 0 &&
		    relay->outbox.used - relay->outbox.sent < UNSENT_MAX)
			relay_row_add(&relay->outbox, group->number, &head, counts);
}

static void question_pass(struct relay *relay, struct group *group, struct asker *asker)
{
	if (relay->fd < 0) {
		asker_answer(asker, "", 0);
		return;
	}
	asker->token = ++relay->token;
	relay_ask_add(&relay->outbox, group->number, asker->token, &asker->step);
}

static void group_serve(struct relay *relay, struct group *group, const struct pollfd *polls,
			double now)
{
	if (polls[0].revents)
		gates_pass(relay, group);
	for (int i = 0; i < ASKERS; i++) {
		struct asker *asker = &group->sockets.asker[i];

		if (asker->fd >= 0 && polls[2 + i].revents) {
			/* what ranks said before they asked */
			gates_pass(relay, group);
			if (asker_read(asker, now))
				question_pass(relay, group, asker);
		}
		if (asker->fd >= 0 && asker->waits &&
		    now - asker->since > relay->controller->timeout + QUESTION_MORE_S)
			asker_answer(asker, "", 0);
	}
	if (polls[1].revents)
		asker_accept(&group->sockets);
}

/* ---- all together ---- */

static void relay_serve(struct relay *relay)
{
	struct controller *controller = relay->controller;
	size_t n = 2 + (size_t)controller->ngroups * SOCKETS_POLLS;
	struct pollfd *polls = ocs_calloc(n, sizeof(*polls));

	while (!stop_wanted()) {
		bool unsent = relay->outbox.used > relay->outbox.sent;
		double now;

		seeker_start(relay);
		polls[0] = (struct pollfd){ .fd = relay->found, .events = POLLIN };
		polls[1] = (struct pollfd){ .fd = relay->fd,
					    .events = (short)(POLLIN | (unsent ? POLLOUT : 0)) };
		for (int g = 0; g < controller->ngroups; g++)
			sockets_poll(&controller->groups[g].sockets, &polls[2 + g * SOCKETS_POLLS]);
		poll(polls, (nfds_t)n, TICK_MS);
		now = controller_now();
		if (relay->fd >= 0)
			controller_read(relay, polls[1].revents & ~POLLOUT, now);
		if (polls[0].revents)
			controller_found(relay, now);
		for (int g = 0; g < controller->ngroups; g++)
			group_serve(relay, &controller->groups[g], &polls[2 + g * SOCKETS_POLLS],
				    now);
		controller_flush(relay, now);
	}
	free(polls);
}

/* The file of the key is locked by the relay that serves: one of another step waits for its end.  The secret
 * goes into MEET.  The descriptor, or -1 with ERR. */
static int key_lock(struct controller *controller, const char *key, struct ocs_error *err)
{
	int fd = open(key, O_RDONLY | O_NOFOLLOW | O_CLOEXEC), rc;

	if (fd < 0)
		return ocs_error_set(err, OCS_ERROR, "%s: %s", key, strerror(errno));
	do
		rc = flock(fd, LOCK_EX);
	while (rc < 0 && errno == EINTR);
	if (rc < 0)
		ocs_error_set(err, OCS_ERROR, "%s: %s", key, strerror(errno));
	else
		rc = ocs_rendezvous_secret(fd, controller->meet.secret,
					   sizeof(controller->meet.secret), err);
	if (rc == 0)
		return fd;
	close(fd);
	return -1;
}

int relay_run(struct controller *controller, const char *host, int node, const char *key,
	      const char *folder, struct ocs_error *err)
{
	struct relay relay = { .controller = controller, .host = host, .node = node, .fd = -1 };
	int lock = key_lock(controller, key, err), rc;

	if (lock < 0)
		return -1;
	controller->meet.job = controller->job;
	controller->meet.epoch = controller->epoch;
	relay.hello.node = (uint32_t)node;
	relay.hello.total = (uint32_t)(controller->servers * controller->ngroups);
	relay.hello.count = 1;
	relay.found = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	rc = relay.found < 0 ? ocs_error_set(err, OCS_ERROR, "no eventfd: %s", strerror(errno)) :
			       sockets_folder(folder, err);
	for (int g = 0; g < controller->ngroups && rc == 0; g++)
		rc = sockets_open(&controller->groups[g].sockets, folder, g, err);
	if (rc == 0) {
		stop_catch();
		puts("ready");
		fflush(stdout);
		relay_serve(&relay);
		sockets_remove(folder, controller->ngroups);
	}
	/* the thread that seeks may go on until the end of the process */
	if (rc == 0 && relay.seeking)
		_exit(0);
	controller_lose(&relay);
	close(lock);
	return rc;
}
