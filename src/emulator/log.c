/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include <errno.h>
#include <json-c/json.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "src/emulator/emulator.h"
#include "src/util/log.h"

static void add_member(struct ocs_text *line, const char *name, const char *value)
{
	struct json_object *string;

	if (!value)
		return;
	string = json_object_new_string(value);
	ocs_text_add(line, ",\"%s\":%s", name,
		     json_object_to_json_string_ext(string, JSON_C_TO_STRING_NOSLASHESCAPE));
	json_object_put(string);
}

void ocs_emu_log(const struct ocs_emu *emu, const char *sw, const char *event, int in,
		 int out, const char *by, const char *text)
{
	struct timespec mono, wall;
	struct ocs_text line = { 0 };
	ssize_t written;

	if (emu->log < 0)
		return;
	clock_gettime(CLOCK_MONOTONIC, &mono);
	clock_gettime(CLOCK_REALTIME, &wall);
	ocs_text_add(&line, "{\"t\":%lld.%09ld,\"wall\":%lld.%06ld",
		     (long long)mono.tv_sec, mono.tv_nsec, (long long)wall.tv_sec,
		     wall.tv_nsec / 1000);
	add_member(&line, "switch", sw);
	add_member(&line, "event", event);
	if (in)
		ocs_text_add(&line, ",\"in\":%d", in);
	if (out)
		ocs_text_add(&line, ",\"out\":%d", out);
	add_member(&line, "by", by);
	add_member(&line, "text", text);
	ocs_text_add(&line, "}\n");
	/* One write a line: a reader never sees half of one. */
	do
		written = write(emu->log, line.data, line.length);
	while (written < 0 && errno == EINTR);
	if (written != (ssize_t)line.length)
		ocs_log(OCS_LOG_ERROR, "the log cannot be written: %s",
			written < 0 ? strerror(errno) : "no space");
	ocs_text_free(&line);
}
