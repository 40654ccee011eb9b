/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/rails/rails_log.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <syslog.h>

#include "src/util/net.h"
#include "src/util/text.h"

#define MINUTE INT64_C(60000000000)
#define LINES_MAX 200

static struct {
	const char *program;
	uint32_t job;
	bool system;
	int64_t since; /* of the lines that are counted */
	unsigned int lines, left_out;
} journal = { .program = "ocs-rails" };

void ocs_rails_log_open(const char *program, uint32_t job, bool system)
{
	journal.program = program;
	journal.job = job;
	journal.system = system;
	if (system)
		openlog(program, LOG_PID, LOG_DAEMON);
}

static void line_write(const char *text)
{
	fprintf(stderr, "%s: %s\n", journal.program, text);
	if (journal.system)
		syslog(LOG_NOTICE, "job %u: %s", journal.job, text);
}

void ocs_rails_log(const char *format, ...)
{
	int64_t now = ocs_now_ns();
	va_list args;
	char *text;

	if (!journal.since || now - journal.since >= MINUTE) {
		if (journal.left_out) {
			text = ocs_asprintf("%u lines of the last minute are left out",
					    journal.left_out);
			line_write(text);
			free(text);
		}
		journal.since = now;
		journal.lines = journal.left_out = 0;
	}
	if (journal.lines++ >= LINES_MAX) {
		journal.left_out++;
		return;
	}
	va_start(args, format);
	text = ocs_vasprintf(format, args);
	va_end(args);
	line_write(text);
	free(text);
}
