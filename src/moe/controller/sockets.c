/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Rank 0 of a group asks before each all-to-all: "plan LAYER MICROBATCH BACKWARD SECOND".  The answer is a
 * plan and a line "end". */

#include "src/moe/controller/sockets.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "src/moe/job/ocs_moe_gate.h"
#include "src/util/net.h"
#include "src/util/text.h"

#define SEND_S 2 /* who does not read for so long is gone */

void sockets_clear(struct sockets *sockets)
{
	sockets->gate = sockets->listener = sockets->spare = -1;
	for (int i = 0; i < ASKERS; i++)
		sockets->asker[i].fd = -1;
}

/* The folder is this user's alone. */
int sockets_folder(const char *folder, struct ocs_error *err)
{
	struct stat found;

	if (mkdir(folder, 0700) < 0 && errno != EEXIST)
		return ocs_error_set(err, OCS_ERROR, "%s: %s", folder, strerror(errno));
	if (lstat(folder, &found) < 0 || !S_ISDIR(found.st_mode) || found.st_uid != geteuid() ||
	    (found.st_mode & 077))
		return ocs_error_set(err, OCS_ERROR, "%s is not a folder of this user alone",
				     folder);
	return 0;
}

static int plan_listen(struct sockets *sockets, const char *path, struct ocs_error *err)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };

	if (strlen(path) >= sizeof(at.sun_path))
		return ocs_error_set(err, OCS_USAGE, "%s is too long for a socket", path);
	strcpy(at.sun_path, path);
	unlink(path);
	sockets->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (sockets->listener < 0 ||
	    bind(sockets->listener, (struct sockaddr *)&at, sizeof(at)) < 0 ||
	    chmod(path, 0600) < 0 || listen(sockets->listener, ASKERS) < 0)
		return ocs_error_set(err, OCS_ERROR, "%s: %s", path, strerror(errno));
	return 0;
}

int sockets_open(struct sockets *sockets, const char *folder, int number, struct ocs_error *err)
{
	char *gate = ocs_asprintf("%s/gate.%d", folder, number);
	char *plan = ocs_asprintf("%s/plan.%d", folder, number);
	int rc;

	sockets->gate = ocs_moe_gate_listen(gate);
	if (sockets->gate < 0)
		rc = ocs_error_set(err, OCS_ERROR, "%s: %s", gate, strerror(errno));
	else
		rc = plan_listen(sockets, plan, err);
	free(gate);
	free(plan);
	return rc;
}

void sockets_close(struct sockets *sockets)
{
	for (int i = 0; i < ASKERS; i++)
		if (sockets->asker[i].fd >= 0)
			close(sockets->asker[i].fd);
	if (sockets->gate >= 0)
		close(sockets->gate);
	if (sockets->listener >= 0)
		close(sockets->listener);
	if (sockets->spare >= 0)
		close(sockets->spare);
	sockets_clear(sockets);
}

void sockets_remove(const char *folder, int groups)
{
	for (int g = 0; g < groups; g++) {
		char *gate = ocs_asprintf("%s/gate.%d", folder, g);
		char *plan = ocs_asprintf("%s/plan.%d", folder, g);

		unlink(gate);
		unlink(plan);
		free(gate);
		free(plan);
	}
	rmdir(folder); /* unless there is something else */
}

void sockets_poll(const struct sockets *sockets, struct pollfd *polls)
{
	polls[0] = (struct pollfd){ .fd = sockets->gate, .events = POLLIN };
	polls[1] = (struct pollfd){ .fd = sockets->listener, .events = POLLIN };
	for (int i = 0; i < ASKERS; i++)
		polls[2 + i] = (struct pollfd){ .fd = sockets->asker[i].fd, .events = POLLIN };
}

/* ---- who asks ---- */

static bool peer_is_mine(int fd)
{
	struct ucred peer;
	socklen_t size = sizeof(peer);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.uid == geteuid();
}

void asker_accept(struct sockets *sockets)
{
	struct timeval limit = { .tv_sec = SEND_S };
	int fd = ocs_net_accept(sockets->listener, &sockets->spare, NULL, 0);

	if (fd < 0)
		return;
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
	for (int i = 0; i < ASKERS && peer_is_mine(fd); i++)
		if (sockets->asker[i].fd < 0) {
			sockets->asker[i] = (struct asker){ .fd = fd };
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

static bool line_take(struct asker *asker, double now)
{
	int backward, second, used = 0;

	if (sscanf(asker->line, "plan %d %" SCNd64 " %d %d%n", &asker->step.layer,
		   &asker->step.microbatch, &backward, &second, &used) != 4 ||
	    asker->line[used] || asker->step.layer < 0 || asker->step.microbatch < 0 ||
	    asker->step.microbatch > MICROBATCHES_MAX || backward < 0 || backward > 1 ||
	    second < 0 || second > 1) {
		asker_close(asker);
		return false;
	}
	asker->step.pass = backward ? OCS_MOE_BACKWARD : OCS_MOE_FORWARD;
	asker->step.second = second;
	asker->waits = true;
	asker->since = now;
	return true;
}

bool asker_read(struct asker *asker, double now)
{
	ssize_t got = recv(asker->fd, asker->line + asker->used,
			   sizeof(asker->line) - 1 - asker->used, MSG_DONTWAIT);
	char *end;

	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (got <= 0 || asker->waits) {
		asker_close(asker);
		return false;
	}
	asker->used += (size_t)got;
	asker->line[asker->used] = '\0';
	end = strchr(asker->line, '\n');
	if (end) {
		*end = '\0';
		asker->used = 0;
		return line_take(asker, now);
	}
	if (asker->used == sizeof(asker->line) - 1)
		asker_close(asker);
	return false;
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

void asker_answer(struct asker *asker, const char *text, size_t length)
{
	asker->waits = false;
	if (!all_sent(asker->fd, text, length) || !all_sent(asker->fd, "end\n", 4))
		asker_close(asker);
}
