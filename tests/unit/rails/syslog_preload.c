/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Loaded before libc: what a program writes to the system's log goes to the file OCS_TEST_SYSLOG, a line
 * "facility.priority program: text" for each. */

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>
#include <unistd.h>

#define EXPORTED __attribute__((visibility("default")))

static const char *program = "-";
static int facility = LOG_USER;

EXPORTED void openlog(const char *ident, int option, int chosen)
{
	(void)option;
	program = ident;
	facility = chosen;
}

static void line_write(int priority, const char *format, va_list args)
{
	const char *path = getenv("OCS_TEST_SYSLOG");
	char line[4096];
	int fd, length;

	length = snprintf(line, sizeof(line),
			  "%s.%s %s: ", facility == LOG_DAEMON ? "daemon" : "other",
			  priority == LOG_NOTICE ? "notice" : "other", program);
	length += vsnprintf(line + length, sizeof(line) - (size_t)length - 1, format, args);
	if (length > (int)sizeof(line) - 2)
		length = (int)sizeof(line) - 2;
	line[length++] = '\n';
	fd = path ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600) : -1;
	if (fd < 0 || write(fd, line, (size_t)length) != length)
		abort();
	close(fd);
}

EXPORTED void syslog(int priority, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	line_write(priority, format, args);
	va_end(args);
}

/* What syslog is called where the compiler fortifies. */
EXPORTED void __syslog_chk(int priority, int flag, const char *format, ...);

EXPORTED void __syslog_chk(int priority, int flag, const char *format, ...)
{
	va_list args;

	(void)flag;
	va_start(args, format);
	line_write(priority, format, args);
	va_end(args);
}
