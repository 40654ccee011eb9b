/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Loaded before libc: a bad disk and a wall clock that somebody sets.  In the folder
 * OCS_TROUBLE
 *   disk    "ERRNO AT": from the AT-th call on that writes or syncs a file whose name
 *           has ocsd.db in it, such calls fail, until the file is gone;
 *   clock   seconds that are added to the wall clock. */

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

static void *next(const char *name)
{
	return dlsym(RTLD_NEXT, name);
}

/* The numbers in file NAME of the folder; how many. */
static int numbers(const char *name, long *first, long *second)
{
	const char *folder = getenv("OCS_TROUBLE");
	char path[512], text[64] = "";
	int fd, count = 0;

	if (!folder)
		return 0;
	snprintf(path, sizeof(path), "%s/%s", folder, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	if (read(fd, text, sizeof(text) - 1) > 0)
		count = sscanf(text, "%ld %ld", first, second);
	close(fd);
	return count;
}

static int is_database(int fd)
{
	char link[64], target[512];
	ssize_t length;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	length = readlink(link, target, sizeof(target) - 1);
	if (length < 0)
		return 0;
	target[length] = '\0';
	return strstr(target, "ocsd.db") != NULL;
}

/* Sets errno if this call on FD has to fail. */
static int fails(int fd)
{
	static long calls;
	long number, at;

	if (!getenv("OCS_TROUBLE") || !is_database(fd))
		return 0;
	if (numbers("disk", &number, &at) != 2) {
		calls = 0;
		return 0;
	}
	if (++calls < at)
		return 0;
	errno = (int)number;
	return 1;
}

static long offset(void)
{
	long seconds = 0, unused;

	numbers("clock", &seconds, &unused);
	return seconds;
}

#pragma GCC visibility push(default)

ssize_t write(int fd, const void *data, size_t count)
{
	ssize_t (*real)(int, const void *, size_t) = next("write");

	return fails(fd) ? -1 : real(fd, data, count);
}

ssize_t pwrite(int fd, const void *data, size_t count, off_t at)
{
	ssize_t (*real)(int, const void *, size_t, off_t) = next("pwrite");

	return fails(fd) ? -1 : real(fd, data, count, at);
}

ssize_t pwrite64(int fd, const void *data, size_t count, off64_t at)
{
	ssize_t (*real)(int, const void *, size_t, off64_t) = next("pwrite64");

	return fails(fd) ? -1 : real(fd, data, count, at);
}

int fsync(int fd)
{
	int (*real)(int) = next("fsync");

	return fails(fd) ? -1 : real(fd);
}

int fdatasync(int fd)
{
	int (*real)(int) = next("fdatasync");

	return fails(fd) ? -1 : real(fd);
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
	int (*real)(clockid_t, struct timespec *) = next("clock_gettime");
	int rc = real(clock, now);

	if (rc == 0 && clock == CLOCK_REALTIME)
		now->tv_sec += offset();
	return rc;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone)
{
	int (*real)(struct timeval *, void *) = next("gettimeofday");
	int rc = real(now, zone);

	if (rc == 0)
		now->tv_sec += offset();
	return rc;
}

time_t time(time_t *result)
{
	time_t (*real)(time_t *) = next("time");
	time_t now = real(NULL) + offset();

	if (result)
		*result = now;
	return now;
}

#pragma GCC visibility pop
