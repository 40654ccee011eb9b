/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/util/net.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "src/util/error.h"
#include "src/util/text.h"

#define SOCKET_FLAGS (SOCK_NONBLOCK | SOCK_CLOEXEC)
#define MS 1000000LL

int64_t ocs_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Waits until FD is ready for EVENTS.  1 ready, 0 timed out, -1 errno. */
static int wait_ready(int fd, short events, int64_t deadline_ns)
{
	struct pollfd entry = { .fd = fd, .events = events };

	for (;;) {
		int64_t left = deadline_ns - ocs_now_ns();
		int ms = 0, rc;

		if (left > 0) /* round up, or the last part of a ms would spin */
			ms = left / MS >= INT_MAX ? INT_MAX : (int)((left + MS - 1) / MS);
		rc = poll(&entry, 1, ms);
		if (rc > 0)
			return 1;
		if (rc < 0 && errno != EINTR)
			return -1;
		if (ocs_now_ns() >= deadline_ns)
			return 0;
	}
}

static int unix_address(const char *path, struct sockaddr_un *address, struct ocs_error *err)
{
	memset(address, 0, sizeof(*address));
	address->sun_family = AF_UNIX;
	if (!*path || strlen(path) >= sizeof(address->sun_path))
		return ocs_error_set(
			err, OCS_USAGE,
			"\"%s\" cannot be the path of a socket: it needs 1 to %zu characters", path,
			sizeof(address->sun_path) - 1);
	strcpy(address->sun_path, path);
	return 0;
}

/* Splits "host:port" or "[v6]:port".  *RESULT is the host (the caller frees it); returns
 * the port, which is the end of ADDRESS, or NULL with ERR. */
static const char *tcp_split(const char *address, bool passive, char **result,
			     struct ocs_error *err)
{
	const char *colon = strrchr(address, ':');
	char *host;
	long port;

	if (!colon || colon == address ||
	    ocs_number_parse(colon + 1, passive ? 0 : 1, 65535, &port) < 0) {
		ocs_error_set(err, OCS_USAGE,
			      "\"%s\" is not an address; unix:/path, host:port and [v6]:port are",
			      address);
		return NULL;
	}
	host = strndup(address, (size_t)(colon - address));
	if (!host)
		abort();
	if (host[0] == '[' && host[strlen(host) - 1] == ']') {
		memmove(host, host + 1, strlen(host));
		host[strlen(host) - 1] = '\0';
	} else if (strchr(host, ':')) {
		free(host);
		ocs_error_set(err, OCS_USAGE,
			      "\"%s\" is not an address: write an IPv6 address as [v6]:port",
			      address);
		return NULL;
	}
	*result = host;
	return colon + 1;
}

int ocs_net_address_check(const char *address, struct ocs_error *err)
{
	struct sockaddr_un local;
	char *host;

	if (strncmp(address, "unix:", 5) == 0)
		return unix_address(address + 5, &local, err);
	if (!tcp_split(address, false, &host, err))
		return -1;
	free(host);
	return 0;
}

static int tcp_resolve(const char *address, bool passive, struct addrinfo **list,
		       struct ocs_error *err)
{
	struct addrinfo hints = {
		.ai_socktype = SOCK_STREAM,
		.ai_flags = AI_NUMERICSERV | (passive ? AI_PASSIVE : 0),
	};
	char *host;
	const char *port = tcp_split(address, passive, &host, err);
	int rc;

	if (!port)
		return -1;
	rc = getaddrinfo(host, port, &hints, list);
	free(host);
	if (rc != 0)
		return ocs_error_set(err, OCS_UNREACHABLE, "cannot resolve \"%s\": %s", address,
				     gai_strerror(rc));
	return 0;
}

/* Whose queue is full says EAGAIN at once to a socket that does not block; who blocks has a
 * place in the order of those who wait.  Returns the socket, or -1 with errno. */
static int connect_local(const struct sockaddr *address, socklen_t length, int64_t deadline_ns)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), saved;

	if (fd < 0)
		return -1;
	for (;;) {
		int64_t left_us = (deadline_ns - ocs_now_ns()) / 1000;
		struct timeval patience = { .tv_usec = 1 };

		if (left_us > 0)
			patience = (struct timeval){ .tv_sec = left_us / 1000000,
						     .tv_usec = left_us % 1000000 };
		if (setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience)))
			break;
		if (connect(fd, address, length) == 0 &&
		    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK) == 0)
			return fd;
		if (errno == EAGAIN)
			errno = ETIMEDOUT;
		if (errno != EINTR)
			break;
	}
	saved = errno;
	close(fd);
	errno = saved;
	return -1;
}

/* Connects one socket.  Returns it, or -1 with errno. */
static int connect_one(const struct sockaddr *address, socklen_t length, int64_t deadline_ns)
{
	int status = 0, saved, fd;
	socklen_t size = sizeof(status);

	if (address->sa_family == AF_UNIX)
		return connect_local(address, length, deadline_ns);
	fd = socket(address->sa_family, SOCK_STREAM | SOCKET_FLAGS, 0);
	if (fd < 0)
		return -1;
	for (;;) {
		if (connect(fd, address, length) == 0)
			return fd;
		if (errno != EINPROGRESS && errno != EINTR)
			break;
		if (wait_ready(fd, POLLOUT, deadline_ns) <= 0) {
			errno = ETIMEDOUT;
			break;
		}
		if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &status, &size) == 0 && status == 0)
			return fd;
		errno = status;
		break;
	}
	saved = errno;
	close(fd);
	errno = saved;
	return -1;
}

static void tcp_tune(int fd)
{
	int on = 1;

	/* Requests are small and answered at once: do not hold them back. */
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
}

static int connect_failed(const char *address, struct ocs_error *err)
{
	return ocs_error_set(err, OCS_UNREACHABLE, "cannot connect to %s: %s", address,
			     errno == ETIMEDOUT ? "timed out" : strerror(errno));
}

int ocs_net_connect(const char *address, int timeout_ms, struct ocs_error *err)
{
	int64_t deadline = ocs_now_ns() + timeout_ms * MS;
	struct addrinfo *list;
	struct sockaddr_un local;
	int fd = -1;

	if (strncmp(address, "unix:", 5) == 0) {
		if (unix_address(address + 5, &local, err) < 0)
			return -1;
		fd = connect_one((struct sockaddr *)&local, sizeof(local), deadline);
		return fd < 0 ? connect_failed(address, err) : fd;
	}
	if (tcp_resolve(address, false, &list, err) < 0)
		return -1;
	for (struct addrinfo *i = list; i && fd < 0; i = i->ai_next)
		fd = connect_one(i->ai_addr, i->ai_addrlen, deadline);
	if (fd < 0)
		connect_failed(address, err);
	else
		tcp_tune(fd);
	freeaddrinfo(list);
	return fd;
}

/* Removes the socket at LOCAL if it is one and no process answers on it. */
static int unix_unlink_stale(const struct sockaddr_un *local, struct ocs_error *err)
{
	struct stat status;
	int fd;

	if (lstat(local->sun_path, &status) < 0)
		return errno == ENOENT ? 0 :
					 ocs_error_set(err, OCS_ERROR, "cannot look at %s: %s",
						       local->sun_path, strerror(errno));
	if (!S_ISSOCK(status.st_mode))
		return ocs_error_set(
			err, OCS_ERROR,
			"%s exists and is not a socket; remove it or choose another path",
			local->sun_path);
	fd = connect_one((const struct sockaddr *)local, sizeof(*local), ocs_now_ns() + 1000 * MS);
	if (fd >= 0 || errno != ECONNREFUSED) {
		if (fd >= 0)
			close(fd);
		return ocs_error_set(err, OCS_ERROR, "another process already listens on unix:%s",
				     local->sun_path);
	}
	if (unlink(local->sun_path) < 0 && errno != ENOENT)
		return ocs_error_set(err, OCS_ERROR, "cannot remove the stale socket %s: %s",
				     local->sun_path, strerror(errno));
	return 0;
}

void ocs_net_abort_on_close(int fd, bool abort)
{
	const struct linger linger = { .l_onoff = abort, .l_linger = 0 };

	setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
}

static int listen_one(const struct sockaddr *address, socklen_t length)
{
	int fd = socket(address->sa_family, SOCK_STREAM | SOCKET_FLAGS, 0);
	int on = 1, saved;

	if (fd < 0)
		return -1;
	if (address->sa_family != AF_UNIX)
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(fd, address, length) == 0 && listen(fd, SOMAXCONN) == 0)
		return fd;
	saved = errno;
	close(fd);
	errno = saved;
	return -1;
}

int ocs_net_listen(const char *address, struct ocs_error *err)
{
	struct addrinfo *list;
	struct sockaddr_un local;
	int fd = -1;

	if (strncmp(address, "unix:", 5) == 0) {
		if (unix_address(address + 5, &local, err) < 0 ||
		    unix_unlink_stale(&local, err) < 0)
			return -1;
		fd = listen_one((struct sockaddr *)&local, sizeof(local));
	} else {
		if (tcp_resolve(address, true, &list, err) < 0)
			return -1;
		for (struct addrinfo *i = list; i && fd < 0; i = i->ai_next)
			fd = listen_one(i->ai_addr, i->ai_addrlen);
		freeaddrinfo(list);
	}
	if (fd < 0)
		return ocs_error_set(err, OCS_ERROR, "cannot listen on %s: %s", address,
				     strerror(errno));
	return fd;
}

/* An I/O call would block: waits.  0 to go on, -1 with ERR. */
static int would_block(int fd, short events, int64_t deadline_ns, struct ocs_error *err)
{
	int rc = wait_ready(fd, events, deadline_ns);

	if (rc > 0)
		return 0;
	if (rc == 0) {
		ocs_error_set(err, OCS_UNREACHABLE, "timed out");
		errno = ETIMEDOUT;
		return -1;
	}
	return ocs_error_set(err, OCS_UNREACHABLE, "cannot wait: %s", strerror(errno));
}

int ocs_net_write(int fd, const void *data, size_t length, int64_t deadline_ns,
		  struct ocs_error *err)
{
	const char *at = data;

	while (length) {
		ssize_t count = send(fd, at, length, MSG_NOSIGNAL);

		if (count < 0 && errno == ENOTSOCK)
			count = write(fd, at, length);
		if (count >= 0) {
			at += count;
			length -= (size_t)count;
		} else if (errno == EAGAIN || errno == EWOULDBLOCK) {
			if (would_block(fd, POLLOUT, deadline_ns, err) < 0)
				return -1;
		} else if (errno != EINTR) {
			return ocs_error_set(err, OCS_UNREACHABLE, "cannot send: %s",
					     strerror(errno));
		}
	}
	return 0;
}

long ocs_net_read(int fd, void *data, size_t size, int64_t deadline_ns, struct ocs_error *err)
{
	for (;;) {
		ssize_t count = read(fd, data, size);

		if (count >= 0)
			return count;
		if (errno == EAGAIN || errno == EWOULDBLOCK) {
			if (would_block(fd, POLLIN, deadline_ns, err) < 0)
				return -1;
		} else if (errno != EINTR) {
			return ocs_error_set(err, OCS_UNREACHABLE, "cannot receive: %s",
					     strerror(errno));
		}
	}
}

/* Takes the first LENGTH bytes and the newline after them out of the buffer. */
static char *line_take(struct ocs_lines *lines, size_t length)
{
	char *line = ocs_calloc(1, length + 1);

	memcpy(line, lines->data, length);
	lines->used -= length + 1;
	memmove(lines->data, lines->data + length + 1, lines->used);
	lines->scanned = 0;
	return line;
}

char *ocs_lines_next(struct ocs_lines *lines, size_t limit, int64_t deadline_ns,
		     struct ocs_error *err)
{
	for (;;) {
		char *newline = NULL;
		long count;

		if (lines->used > lines->scanned)
			newline = memchr(lines->data + lines->scanned, '\n',
					 lines->used - lines->scanned);
		if ((newline ? (size_t)(newline - lines->data) : lines->used) > limit) {
			ocs_error_set(err, OCS_ERROR,
				      "a line is longer than the %zu bytes that are allowed",
				      limit);
			return NULL;
		}
		if (newline)
			return line_take(lines, (size_t)(newline - lines->data));
		lines->scanned = lines->used;
		if (lines->used == lines->size) {
			lines->size = lines->size ? lines->size * 2 : 4096;
			lines->data = ocs_realloc(lines->data, lines->size);
		}
		count = ocs_net_read(lines->fd, lines->data + lines->used,
				     lines->size - lines->used, deadline_ns, err);
		if (count == 0)
			ocs_error_set(err, OCS_UNREACHABLE, "the connection was closed%s",
				      lines->used ? " in the middle of a line" : "");
		if (count <= 0)
			return NULL;
		lines->used += (size_t)count;
	}
}

void ocs_lines_free(struct ocs_lines *lines)
{
	free(lines->data);
	lines->data = NULL;
	lines->used = lines->size = lines->scanned = 0;
}

int ocs_net_accept(int listener, int *spare, struct sockaddr_storage *from, int flags)
{
	socklen_t size = sizeof(*from);
	int fd, why;

	if (*spare < 0)
		*spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
	fd = accept4(listener, (struct sockaddr *)from, from ? &size : NULL, flags | SOCK_CLOEXEC);
	why = errno;
	if (fd >= 0 || (why != EMFILE && why != ENFILE && why != ENOBUFS && why != ENOMEM)) {
		errno = why;
		return fd;
	}
	if (*spare >= 0)
		close(*spare);
	fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	if (fd >= 0)
		close(fd);
	else
		usleep(1000); /* at least no busy loop */
	*spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
	errno = why;
	return -1;
}
