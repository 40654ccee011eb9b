/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_UTIL_NET_H
#define OCS_UTIL_NET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ocs_error;

/* Monotonic clock in ns. */
int64_t ocs_now_ns(void);

/* Whether ADDRESS is written like one: 0, or -1 with ERR (OCS_USAGE).  No name is resolved. */
int ocs_net_address_check(const char *address, struct ocs_error *err);

/* accept4 with SOCK_CLOEXEC and FLAGS; *FROM, where it is not NULL, is who connects.  *SPARE, -1 at first, keeps a descriptor
 * back: where there is none left, a connection is closed at once rather than left in the queue of LISTENER, which would
 * be readable for ever.  Returns the descriptor, or -1 with errno. */
struct sockaddr_storage;
int ocs_net_accept(int listener, int *spare, struct sockaddr_storage *from, int flags);

/* Connects to ADDRESS, "unix:/path", "host:port" or "[v6]:port", within
 * TIMEOUT_MS (host names are resolved before the clock matters).  Returns a non-blocking,
 * close-on-exec descriptor, or -1 with ERR (code OCS_UNREACHABLE; OCS_USAGE if ADDRESS is
 * malformed). */
int ocs_net_connect(const char *address, int timeout_ms, struct ocs_error *err);

/* Whether closing FD (also by the end of the process) takes back what the peer has not
 * got yet.  Without it the kernel goes on sending for minutes after the network was
 * away.  For TCP; with a UNIX socket the peer has everything at once. */
void ocs_net_abort_on_close(int fd, bool abort);

/* Listens on ADDRESS (a stale UNIX socket on which no process answers is replaced).
 * Returns a non-blocking, close-on-exec descriptor, or -1 with ERR. */
int ocs_net_listen(const char *address, struct ocs_error *err);

/* Writes all of DATA before DEADLINE_NS (of ocs_now_ns).  0, or -1 with ERR
 * (code OCS_UNREACHABLE; errno ETIMEDOUT after a timeout). */
int ocs_net_write(int fd, const void *data, size_t length, int64_t deadline_ns,
		  struct ocs_error *err);

/* Reads what is there, at most SIZE bytes, waiting until DEADLINE_NS.  Returns
 * the count, 0 at end of stream, or -1 with ERR (a timeout says "timed out" and
 * leaves errno ETIMEDOUT; the code is OCS_UNREACHABLE either way). */
long ocs_net_read(int fd, void *data, size_t size, int64_t deadline_ns, struct ocs_error *err);

/* A buffered reader of newline-terminated lines. Zero-initialise, set fd. */
struct ocs_lines {
	int fd;
	char *data;
	size_t used, size, scanned;
};

/* Returns the next line without its newline (the caller frees it) or NULL with
 * ERR: end of stream, timeout, or a line longer than LIMIT. */
char *ocs_lines_next(struct ocs_lines *lines, size_t limit, int64_t deadline_ns,
		     struct ocs_error *err);
void ocs_lines_free(struct ocs_lines *lines);

#endif
