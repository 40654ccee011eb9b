/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Rank 0 of a group asks before each all-to-all: "plan LAYER MICROBATCH BACKWARD SECOND".  The answer is a
 * plan and a line "end". */

#include "src/moe/controller/controller.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "src/util/text.h"

#define SEND_S 2 /* who does not read for so long is gone */

int askers_listen(struct group *group, const char *path, struct ocs_error *err)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };

	if (strlen(path) >= sizeof(at.sun_path))
		return ocs_error_set(err, OCS_USAGE, "%s is too long for a socket", path);
	strcpy(at.sun_path, path);
	unlink(path);
	group->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (group->listener < 0 || bind(group->listener, (struct sockaddr *)&at, sizeof(at)) < 0 ||
	    chmod(path, 0600) < 0 || listen(group->listener, ASKERS) < 0)
		return ocs_error_set(err, OCS_ERROR, "%s: %s", path, strerror(errno));
	return 0;
}

static bool peer_is_mine(int fd)
{
	struct ucred peer;
	socklen_t size = sizeof(peer);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.uid == geteuid();
}

void asker_accept(struct group *group)
{
	struct timeval limit = { .tv_sec = SEND_S };
	int fd = accept4(group->listener, NULL, NULL, SOCK_CLOEXEC);

	if (fd < 0)
		return;
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
	for (int i = 0; i < ASKERS && peer_is_mine(fd); i++)
		if (group->asker[i].fd < 0) {
			group->asker[i] = (struct asker){ .fd = fd };
			return;
		}
	close(fd);
}

static void asker_close(struct asker *asker)
{
	close(asker->fd);
	asker->fd = -1;
	asker->waits = false;
}

static void line_take(struct group *group, struct asker *asker, double now)
{
	int backward, second, used = 0;

	if (sscanf(asker->line, "plan %d %" SCNd64 " %d %d%n", &asker->step.layer,
		   &asker->step.microbatch, &backward, &second, &used) != 4 ||
	    asker->line[used] || asker->step.layer < 0 ||
	    asker->step.layer >= group->controller->layers || asker->step.microbatch < 0 ||
	    asker->step.microbatch > MICROBATCHES_MAX || backward < 0 || backward > 1 ||
	    second < 0 || second > 1) {
		asker_close(asker);
		return;
	}
	asker->step.pass = backward ? OCS_MOE_BACKWARD : OCS_MOE_FORWARD;
	asker->step.second = second;
	asker->waits = true;
	asker->since = now;
	if (!group->control)
		return;
	group_begin(group, &asker->step, now);
	ocs_moe_control_begin(group->control, &asker->step, 0, now);
}

void asker_read(struct group *group, struct asker *asker, double now)
{
	ssize_t got = recv(asker->fd, asker->line + asker->used,
			   sizeof(asker->line) - 1 - asker->used, MSG_DONTWAIT);
	char *end;

	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (got <= 0 || asker->waits) {
		asker_close(asker);
		return;
	}
	asker->used += (size_t)got;
	asker->line[asker->used] = '\0';
	end = strchr(asker->line, '\n');
	if (end) {
		*end = '\0';
		asker->used = 0;
		line_take(group, asker, now);
	} else if (asker->used == sizeof(asker->line) - 1) {
		asker_close(asker);
	}
}

static bool all_sent(int fd, const char *data, size_t length)
{
	while (length) {
		ssize_t sent = send(fd, data, length, MSG_NOSIGNAL);

		if (sent <= 0)
			return false;
		data += sent;
		length -= (size_t)sent;
	}
	return true;
}

void askers_answer(struct group *group, double now)
{
	for (int i = 0; i < ASKERS; i++) {
		struct asker *asker = &group->asker[i];
		struct ocs_text text = { 0 };

		if (asker->fd < 0 || !asker->waits)
			continue;
		if (group_plan(group, &asker->step, &text) ||
		    now - asker->since > group->controller->timeout) {
			ocs_text_add(&text, "end\n");
			asker->waits = false;
			if (!all_sent(asker->fd, text.data, text.length))
				asker_close(asker);
		}
		ocs_text_free(&text);
	}
}
