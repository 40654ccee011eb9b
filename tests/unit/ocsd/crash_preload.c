/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Loaded before libc: ends the process by SIGKILL at its OCS_CRASH_AT-th call that
 * writes or syncs, as OCS_CRASH_HOW says: before the call, half of its bytes later,
 * or after it.  Reads and sockets to come are lost with it, as with the power. */

#include <dlfcn.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

static atomic_long calls;

static void die(void)
{
	kill(getpid(), SIGKILL);
	for (;;)
		pause();
}

enum when { NEVER, BEFORE, HALF, AFTER };

static enum when now(void)
{
	const char *at = getenv("OCS_CRASH_AT"), *how = getenv("OCS_CRASH_HOW");

	if (!at || atomic_fetch_add(&calls, 1) + 1 != atol(at))
		return NEVER;
	if (how && strcmp(how, "half") == 0)
		return HALF;
	return how && strcmp(how, "after") == 0 ? AFTER : BEFORE;
}

static void *next(const char *name)
{
	return dlsym(RTLD_NEXT, name);
}

/* CALL with the whole COUNT or, dying, with half of it. */
#define CUT(count, call)                \
	do {                            \
		enum when when = now(); \
		ssize_t rc;             \
                                        \
		if (when == BEFORE)     \
			die();          \
		if (when == HALF)       \
			(count) /= 2;   \
		rc = (call);            \
		if (when != NEVER)      \
			die();          \
		return rc;              \
	} while (0)

#pragma GCC visibility push(default)

ssize_t write(int fd, const void *data, size_t count)
{
	ssize_t (*real)(int, const void *, size_t) = next("write");

	CUT(count, real(fd, data, count));
}

ssize_t pwrite(int fd, const void *data, size_t count, off_t offset)
{
	ssize_t (*real)(int, const void *, size_t, off_t) = next("pwrite");

	CUT(count, real(fd, data, count, offset));
}

ssize_t pwrite64(int fd, const void *data, size_t count, off64_t offset)
{
	ssize_t (*real)(int, const void *, size_t, off64_t) = next("pwrite64");

	CUT(count, real(fd, data, count, offset));
}

ssize_t send(int fd, const void *data, size_t count, int flags)
{
	ssize_t (*real)(int, const void *, size_t, int) = next("send");

	CUT(count, real(fd, data, count, flags));
}

ssize_t writev(int fd, const struct iovec *parts, int count)
{
	ssize_t (*real)(int, const struct iovec *, int) = next("writev");

	CUT(count, real(fd, parts, count));
}

int fsync(int fd)
{
	int (*real)(int) = next("fsync");
	int bytes = 2;

	CUT(bytes, real(fd));
}

int fdatasync(int fd)
{
	int (*real)(int) = next("fdatasync");
	int bytes = 2;

	CUT(bytes, real(fd));
}

#pragma GCC visibility pop
