/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/rails/agent/agent.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "src/rails/rails_log.h"
#include "src/util/net.h"

#define PAUSE_US 20000
#define SEEKS_MAX 5
#define AGAIN_S 5
#define SECOND INT64_C(1000000000)
#define UNREAD_MAX (64U << 20)

/* In a thread of its own: names are resolved, and ports tried, one after the other. */
static void *controller_seek(void *data)
{
	struct agent *agent = data;
	/* The next controller is there already, if there is one. */
	bool again = agent->seeks > 1 && agent->wait_s > AGAIN_S;
	int64_t deadline = ocs_now_ns() + (again ? AGAIN_S : agent->wait_s) * SECOND;
	uint64_t one = 1;

	do {
		agent->fd = ocs_rendezvous_connect(&agent->meet, agent->host, &agent->hello,
						   agent->numbers, &agent->welcome, &agent->inbox,
						   &agent->err);
		if (agent->fd < 0)
			usleep(PAUSE_US);
	} while (agent->fd < 0 && ocs_now_ns() < deadline);
	if (write(agent->found, &one, sizeof(one)) < 0)
		perror("ocs-rails-agent");
	return NULL;
}

int agent_seek(struct agent *agent, struct ocs_error *err)
{
	int code;

	agent->seeks++;
	agent->found = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (agent->found < 0 || agent_watch(agent, agent->found, EPOLLIN, EVENT_FOUND, 0) < 0)
		return ocs_error_set(err, OCS_ERROR, "no eventfd: %s", strerror(errno));
	code = pthread_create(&agent->seeker, NULL, controller_seek, agent);
	return code ? ocs_error_set(err, OCS_ERROR, "no thread: %s", strerror(code)) : 0;
}

/* The controller of the step before ends about when this step begins, and what was asked of it may be asked of the
 * next one.  Once it has granted something, only it knows what stands. */
static bool seek_again(struct agent *agent, const char *why)
{
	struct ocs_error err;

	if (agent->controller != CONTROLLER_FOUND || agent->free_run || agent->over ||
	    agent->seeks == SEEKS_MAX || agent_groups_known(agent))
		return false;
	close(agent->fd);
	agent->fd = -1;
	agent->writing = false;
	ocs_inbox_free(&agent->inbox);
	ocs_outbox_free(&agent->outbox);
	agent->controller = CONTROLLER_SOUGHT;
	ocs_rails_log("node %u, step %u: %s; it is sought again", agent->hello.node,
		      agent->hello.step, why);
	return agent_seek(agent, &err) == 0;
}

static void controller_lose(struct agent *agent, const char *why)
{
	if (agent->controller == CONTROLLER_LOST || seek_again(agent, why))
		return;
	if (agent->free_run)
		ocs_rails_log("%s", why);
	else
		agent_fault(agent, "%s: operations end with an error", why);
	agent->controller = CONTROLLER_LOST;
	if (agent->fd >= 0)
		close(agent->fd);
	agent->fd = -1;
	/* Who runs without gates needs none. */
	if (!agent->free_run)
		agent_over(agent, OCS_RAILS_ERROR_AGENT);
}

void agent_found(struct agent *agent)
{
	pthread_join(agent->seeker, NULL);
	close(agent->found);
	agent->found = -1;
	if (agent->fd < 0) {
		controller_lose(agent, agent->err.text);
		agent_welcome(agent, OCS_RAILS_ERROR_AGENT);
		return;
	}
	agent->controller = CONTROLLER_FOUND;
	ocs_outbox_free(&agent->outbox);
	agent->free_run = agent->welcome.free;
	agent_watch(agent, agent->fd, EPOLLIN, EVENT_CONTROLLER, 0);
	agent_groups_ask(agent);
	agent_ranks_ask(agent);
	agent_welcome(agent, 0);
	agent_controller_read(agent);
}

/* -1: it is not what a controller says. */
static int frame_take(struct agent *agent, const struct ocs_frame *frame)
{
	long count = ocs_frame_records(frame, OCS_FRAME_GRANTS);
	struct ocs_frame_known known;
	struct ocs_frame_lost lost;
	struct ocs_frame_fault fault;
	const char *text;
	size_t length;
	struct ocs_frame_grant grant;

	if (count > 0) {
		for (long i = 0; i < count; i++) {
			ocs_frame_grant_at(frame, (size_t)i, &grant);
			agent_grant(agent, &grant);
		}
		return 0;
	}
	if (ocs_frame_known_read(frame, &known) == 0) {
		agent_known(agent, &known);
		return 0;
	}
	if (ocs_frame_lost_read(frame, &lost) == 0) {
		agent_over(agent, lost.error ? lost.error : OCS_RAILS_ERROR_AGENT);
		return 0;
	}
	if (ocs_frame_fault_read(frame, &fault, &text, &length) == 0) {
		agent_fault_tell(agent, fault.rank, text, length);
		return 0;
	}
	if (frame->kind == OCS_FRAME_NOTE && frame->length <= OCS_NOTE_MAX) {
		agent_note(agent, (const char *)frame->body, frame->length);
		return 0;
	}
	return -1;
}

void agent_controller_read(struct agent *agent)
{
	struct ocs_frame frame;
	int got;

	if (agent->controller != CONTROLLER_FOUND)
		return;
	got = ocs_inbox_fill(&agent->inbox, agent->fd, UNREAD_MAX);
	if (got < 0) {
		controller_lose(agent, "the connection to the controller is lost");
		return;
	}
	while ((got = ocs_inbox_next(&agent->inbox, &frame)) > 0) {
		if (frame_take(agent, &frame) == 0)
			continue;
		got = -1;
		break;
	}
	if (got < 0)
		controller_lose(agent, "the controller sends what is no frame");
}

void agent_flush(struct agent *agent)
{
	struct epoll_event event = { .data.u64 = (uint64_t)EVENT_CONTROLLER << 32 };
	int rc;

	if (agent->controller != CONTROLLER_FOUND || agent->outbox.sent == agent->outbox.used)
		return;
	rc = ocs_outbox_flush(&agent->outbox, agent->fd);
	if (rc < 0) {
		controller_lose(agent, "the connection to the controller is lost");
		return;
	}
	if (agent->writing == !rc)
		return;
	agent->writing = !rc;
	event.events = EPOLLIN | (rc ? 0 : EPOLLOUT);
	epoll_ctl(agent->epoll, EPOLL_CTL_MOD, agent->fd, &event);
}
