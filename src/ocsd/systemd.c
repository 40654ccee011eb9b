/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* What a service manager hears of the daemon: ready, reloading, alive. */

#include "src/ocsd/systemd.h"

#include <errno.h>
#include <event2/event.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "src/ocsd/state/ocsd.h"
#include "src/util/log.h"
#include "src/util/text.h"

void ocsd_service_tell(const char *text)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	size_t length = path ? strlen(path) : 0;
	int fd;

	if (length < 2 || length >= sizeof(address.sun_path))
		return;
	memcpy(address.sun_path, path, length);
	if (*path == '@')
		address.sun_path[0] = '\0';
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return;
	if (sendto(fd, text, strlen(text), MSG_NOSIGNAL, (struct sockaddr *)&address,
		   (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length)) < 0)
		ocs_log(OCS_LOG_WARNING, "systemd cannot be told: %s", strerror(errno));
	close(fd);
}

void ocsd_ready(struct ocsd *d)
{
	ocs_log(OCS_LOG_INFO, "ready: %d switches, fabric %s", d->fabric->nswitches,
		d->fabric->source);
	ocsd_service_tell("READY=1");
	if (d->life.ready_fd >= 0) {
		if (write(d->life.ready_fd, "R", 1) != 1)
			ocs_log(OCS_LOG_WARNING, "the parent does not listen");
		close(d->life.ready_fd);
		d->life.ready_fd = -1;
	}
}

static void on_watchdog(evutil_socket_t fd, short what, void *context)
{
	(void)fd;
	(void)what;
	(void)context;
	ocsd_service_tell("WATCHDOG=1");
}

struct event *ocsd_service_watchdog(struct event_base *base)
{
	const char *text = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");
	struct timeval interval;
	struct event *event;
	long usec;

	if (!text || ocs_number_parse(text, 2, 86400L * 1000000, &usec) < 0)
		return NULL;
	if (pid && strtol(pid, NULL, 10) != (long)getpid())
		return NULL;
	interval.tv_sec = usec / 2 / 1000000;
	interval.tv_usec = usec / 2 % 1000000;
	/* After a reload the last beat may be half an interval old, and the next one comes half an
	 * interval from now. */
	ocsd_service_tell("WATCHDOG=1");
	event = event_new(base, -1, EV_PERSIST, on_watchdog, NULL);
	if (event)
		event_add(event, &interval);
	return event;
}
