/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/ocsd/protocol/log_limit.h"

#include "src/ocsd/protocol/client.h"

#include "src/util/net.h"
#include "src/util/text.h"

#include <event2/event.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINES 5
#define WINDOW_S 60
#define PEERS_MAX 64 /* further ones share a line of their own */
#define OTHERS "other peers"

struct ocsd_log_limit {
	struct log_peer {
		char peer[OCSD_PEER_NAME];
		int64_t since_ns;
		unsigned long count;
	} peers[PEERS_MAX + 1];
	size_t npeers;
	struct event *timer;
};

/* Forgets those whose minute is over (ALL: everybody), and says what was not said. */
static void peers_sweep(struct ocsd_log_limit *c, bool all)
{
	int64_t now_ns = ocs_now_ns();
	size_t kept = 0;

	for (size_t i = 0; i < c->npeers; i++) {
		const struct log_peer *at = &c->peers[i];

		if (!all && now_ns - at->since_ns < WINDOW_S * INT64_C(1000000000))
			c->peers[kept++] = *at;
		else if (at->count > LINES)
			ocs_log(OCS_LOG_WARNING, "%s: %lu more such lines", at->peer,
				at->count - LINES);
	}
	c->npeers = kept;
}

static void timer_set(struct ocsd_log_limit *c)
{
	struct timeval window = { .tv_sec = WINDOW_S + 1 };

	if (c->npeers && !evtimer_pending(c->timer, NULL))
		evtimer_add(c->timer, &window);
}

static void on_window(evutil_socket_t fd, short what, void *context)
{
	(void)fd;
	(void)what;
	peers_sweep(context, false);
	timer_set(context);
}

static struct log_peer *peer_of(struct ocsd_log_limit *c, const char *peer)
{
	for (size_t i = 0; i < c->npeers; i++)
		if (strcmp(c->peers[i].peer, peer) == 0)
			return &c->peers[i];
	if (c->npeers >= PEERS_MAX && strcmp(peer, OTHERS) != 0)
		return peer_of(c, OTHERS);
	c->peers[c->npeers] = (struct log_peer){ .since_ns = ocs_now_ns() };
	snprintf(c->peers[c->npeers].peer, sizeof(c->peers[0].peer), "%s", peer);
	return &c->peers[c->npeers++];
}

void ocsd_log_limited(struct ocsd *d, const char *peer, const char *format, ...)
{
	struct ocsd_log_limit *c = d->server.log_limit;
	char text[OCS_ERROR_TEXT];
	va_list args;

	if (!c) {
		c = d->server.log_limit = ocs_calloc(1, sizeof(*c));
		c->timer = evtimer_new(d->loop.base, on_window, c);
	}
	peers_sweep(c, false);
	if (++peer_of(c, peer)->count <= LINES) {
		va_start(args, format);
		vsnprintf(text, sizeof(text), format, args);
		va_end(args);
		ocs_log(OCS_LOG_WARNING, "%s: %s", peer, text);
	}
	timer_set(c);
}

void ocsd_log_limit_end(struct ocsd *d)
{
	if (!d->server.log_limit)
		return;
	peers_sweep(d->server.log_limit, true);
	event_free(d->server.log_limit->timer);
	free(d->server.log_limit);
	d->server.log_limit = NULL;
}
