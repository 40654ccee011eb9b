/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/ocsd/protocol/listener.h"

#include "src/util/error.h"
#include "src/util/log.h"
#include "src/util/net.h"

#include <arpa/inet.h>
#include <errno.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <limits.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define REST_MS 500

static void on_rested(evutil_socket_t fd, short what, void *context)
{
	(void)fd;
	(void)what;
	evconnlistener_enable(context);
}

void ocsd_listener_rest(struct evconnlistener *listener)
{
	struct timeval rest = { .tv_usec = REST_MS * 1000 };

	/* The base does not turn any more once its listeners are freed. */
	if (event_base_once(evconnlistener_get_base(listener), -1, EV_TIMEOUT, on_rested, listener,
			    &rest) == 0)
		evconnlistener_disable(listener);
}

/* The client stays in the queue: without a rest the loop would do nothing but fail. */
static void on_error(struct evconnlistener *listener, void *context)
{
	(void)context;
	ocs_log(OCS_LOG_ERROR, "new clients have to wait: accept: %s", strerror(errno));
	ocsd_listener_rest(listener);
}

struct evconnlistener *ocsd_listener_open(struct event_base *base, const char *address,
					  evconnlistener_cb callback, void *context,
					  struct ocs_error *err)
{
	struct evconnlistener *listener;
	int fd = ocs_net_listen(address, err);

	if (fd < 0)
		return NULL;
	/* Everybody may connect; what they may do is decided by uid. */
	if (strncmp(address, "unix:", 5) == 0 && chmod(address + 5, 0666)) {
		close(fd);
		ocs_error_set(err, OCS_ERROR, "%s: %s", address, strerror(errno));
		return NULL;
	}
	listener = evconnlistener_new(base, callback, context,
				      LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC, 0, fd);
	if (!listener) {
		close(fd);
		ocs_error_set(err, OCS_ERROR, "%s: cannot listen", address);
		return NULL;
	}
	evconnlistener_set_error_cb(listener, on_error);
	return listener;
}

void ocsd_stream_free(struct bufferevent *stream)
{
	evutil_socket_t fd = bufferevent_getfd(stream);

	bufferevent_setfd(stream, -1);
	bufferevent_free(stream);
	if (fd >= 0)
		close(fd);
}

int ocsd_descriptor_end(int reserved)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur > INT_MAX)
		return INT_MAX;
	if ((rlim_t)reserved > limit.rlim_cur / 2)
		reserved = (int)(limit.rlim_cur / 2);
	return (int)limit.rlim_cur - reserved;
}

void ocsd_peer_name(const struct sockaddr *address, char *name, size_t size)
{
	struct in6_addr six;
	char text[INET6_ADDRSTRLEN] = "?";
	bool half = false;

	if (address && address->sa_family == AF_INET) {
		inet_ntop(AF_INET, &((const struct sockaddr_in *)(const void *)address)->sin_addr,
			  text, sizeof(text));
	} else if (address && address->sa_family == AF_INET6) {
		six = ((const struct sockaddr_in6 *)(const void *)address)->sin6_addr;
		half = !IN6_IS_ADDR_V4MAPPED(&six);
		if (half)
			memset(six.s6_addr + 8, 0, 8);
		inet_ntop(AF_INET6, &six, text, sizeof(text));
	}
	snprintf(name, size, "address %s%s", text, half ? "/64" : "");
}
