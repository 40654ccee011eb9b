/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* The disk is full, somebody holds the database locked, or it is damaged: no switch is
 * touched, every request is refused with the reason, and as soon as the database can be
 * used ocsd goes on as after a crash. */

#include "src/ocsd/protocol/connection.h"
#include "src/ocsd/settle.h"
#include "src/ocsd/systemd.h"
#include "src/ocsd/degraded_mode.h"
#include "src/ocsd/store/store.h"

#include "src/util/text.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ROOM (1 << 20)	 /* bytes that must be free to go on */
#define LOCK_WAIT_MS 100 /* for others who hold the database */
#define DELAY_MAX_MS 16000

struct standby {
	struct ocsd *d;
	const char *folder;
	struct event *timer;
	char *reason; /* the last one that was logged */
	int delay_ms;
	bool listening;
};

/* A disk with room for one page would be full again at the next job. */
static int find_room(const char *folder, struct ocs_error *err)
{
	char *path = ocs_asprintf("%s/ocsd.room", folder);
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	int number = fd < 0 ? errno : posix_fallocate(fd, 0, ROOM);

	if (number)
		ocs_error_set(err, OCS_ERROR, "there is no room for %d bytes in %s: %s", ROOM,
			      folder, strerror(number));
	if (fd >= 0) {
		close(fd);
		unlink(path);
	}
	free(path);
	return number ? -1 : 0;
}

static bool database_usable(struct standby *s)
{
	struct ocsd_store *store;
	struct ocs_error err;

	if (find_room(s->folder, &err) == 0) {
		store = ocsd_store_open(s->folder, LOCK_WAIT_MS, &err);
		if (store) {
			ocsd_store_close(store);
			return true;
		}
	}
	if (!s->reason || strcmp(s->reason, err.text) != 0)
		ocs_log(OCS_LOG_WARNING, "still standing by: %s", err.text);
	free(s->reason);
	s->reason = ocs_strdup(err.text);
	return false;
}

static void timer_arm(struct standby *s)
{
	struct timeval delay = { .tv_sec = s->delay_ms / 1000,
				 .tv_usec = s->delay_ms % 1000 * 1000 };

	event_add(s->timer, &delay);
	if (s->delay_ms < DELAY_MAX_MS)
		s->delay_ms *= 2;
}

static void on_timer(evutil_socket_t fd, short what, void *context)
{
	struct standby *s = context;

	(void)fd;
	(void)what;
	if (database_usable(s)) {
		s->d->life.standby = NULL;
		event_base_loopbreak(s->d->loop.base);
	} else {
		timer_arm(s);
	}
}

static void on_signal(evutil_socket_t number, short what, void *context)
{
	struct standby *s = context;

	(void)what;
	if (number == SIGHUP) {
		ocs_log(OCS_LOG_WARNING, "the description is not read again while ocsd stands by");
		return;
	}
	ocs_log(OCS_LOG_INFO, "stopping on signal %d; circuits stay as they are", (int)number);
	s->d->life.stopping = true;
	event_base_loopbreak(s->d->loop.base);
}

static void listen_again(struct standby *s)
{
	struct ocs_error err;

	if (s->listening)
		return;
	s->listening = ocsd_listen(s->d, &err) == 0;
	if (s->listening)
		return;
	ocs_log(OCS_LOG_ERROR, "%s", err.text);
	ocsd_server_close(s->d);
}

void ocsd_standby(struct ocsd *d, const char *folder, int delay_ms)
{
	static const int signals[] = { SIGTERM, SIGINT, SIGHUP };
	struct standby s = { .d = d, .folder = folder, .delay_ms = delay_ms };
	struct event *events[3], *watchdog = ocsd_service_watchdog(d->loop.base);
	char *status = ocs_asprintf("STATUS=%s", d->life.standby);

	for (size_t i = 0; i < 3; i++) {
		events[i] = evsignal_new(d->loop.base, signals[i], on_signal, &s);
		event_add(events[i], NULL);
	}
	s.timer = evtimer_new(d->loop.base, on_timer, &s);
	timer_arm(&s);
	ocsd_service_tell(status);
	while (d->life.standby && !d->life.stopping) {
		listen_again(&s);
		ocsd_server_flush(d);
		if (event_base_loop(d->loop.base, EVLOOP_ONCE) < 0)
			d->life.stopping = d->life.failed = true;
	}
	for (size_t i = 0; i < 3; i++)
		event_free(events[i]);
	event_free(s.timer);
	if (watchdog)
		event_free(watchdog);
	free(status);
	free(s.reason);
}
