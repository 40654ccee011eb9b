/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/util/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const char *const level_names[] = { "error", "warning", "info", "debug" };
/* Syslog priorities, for the prefix that systemd's journal understands. */
static const int level_priorities[] = { 3, 4, 6, 7 };

static int level_now = OCS_LOG_INFO;

void ocs_log_level_set(enum ocs_log_level level)
{
	__atomic_store_n(&level_now, (int)level, __ATOMIC_RELAXED);
}

int ocs_log_level_parse(const char *text, enum ocs_log_level *level)
{
	for (int i = 0; i <= OCS_LOG_DEBUG; i++) {
		if (strcmp(text, level_names[i]) == 0) {
			*level = (enum ocs_log_level)i;
			return 0;
		}
	}
	return -1;
}

static int prefix_format(char *buffer, size_t size, enum ocs_log_level level)
{
	struct timespec now;
	struct tm local;
	char date[32];

	if (getenv("JOURNAL_STREAM"))
		return snprintf(buffer, size, "<%d>", level_priorities[level]);
	clock_gettime(CLOCK_REALTIME, &now);
	localtime_r(&now.tv_sec, &local);
	strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%S", &local);
	return snprintf(buffer, size, "%s.%03ld %s ", date, now.tv_nsec / 1000000,
			level_names[level]);
}

void ocs_log(enum ocs_log_level level, const char *format, ...)
{
	char line[4096];
	int saved = errno;
	size_t used;
	va_list args;
	int count;

	if ((int)level > __atomic_load_n(&level_now, __ATOMIC_RELAXED))
		return;
	used = (size_t)prefix_format(line, sizeof(line), level);
	va_start(args, format);
	errno = saved; /* for %m */
	count = vsnprintf(line + used, sizeof(line) - used - 1, format, args);
	va_end(args);
	if (count > 0)
		used += (size_t)count < sizeof(line) - used - 1 ? (size_t)count :
								  sizeof(line) - used - 2;
	/* One record is one line, whatever a peer put into the message. */
	for (size_t i = 0; i < used; i++)
		if (line[i] == '\n' || line[i] == '\r')
			line[i] = ' ';
	line[used++] = '\n';
	/* One write per line keeps lines of different threads apart. */
	while (write(STDERR_FILENO, line, used) < 0 && errno == EINTR)
		;
	errno = saved;
}
