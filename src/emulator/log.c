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
	const char *at = value;

	if (!value)
		return;
	ocs_text_put(line, ",\"", 2);
	ocs_text_put(line, name, strlen(name));
	ocs_text_put(line, "\":", 2);
	while ((unsigned char)*at >= ' ' && *at != '"' && *at != '\\')
		at++;
	if (!*at) {
		ocs_text_put(line, "\"", 1);
		ocs_text_put(line, value, (size_t)(at - value));
		ocs_text_put(line, "\"", 1);
		return;
	}
	string = json_object_new_string(value);
	value = json_object_to_json_string_ext(string, JSON_C_TO_STRING_NOSLASHESCAPE);
	ocs_text_put(line, value, strlen(value));
	json_object_put(string);
}

static void add_port(struct ocs_text *line, const char *name, int port)
{
	if (!port)
		return;
	ocs_text_put(line, name, strlen(name));
	ocs_text_number(line, port);
}

static void write_out(struct ocs_emu *emu)
{
	ssize_t written;

	/* Whole lines: a reader never sees half of one. */
	do
		written = write(emu->log, emu->lines.data, emu->lines.length);
	while (written < 0 && errno == EINTR);
	if (written != (ssize_t)emu->lines.length)
		ocs_log(OCS_LOG_ERROR, "the log cannot be written: %s",
			written < 0 ? strerror(errno) : "no space");
	ocs_text_free(&emu->lines);
}

void ocs_emu_log(struct ocs_emu *emu, const char *sw, const char *event, int in, int out,
		 const char *by, const char *text)
{
	struct ocs_text *line = &emu->lines;
	struct timespec mono, wall;

	if (emu->log < 0)
		return;
	clock_gettime(CLOCK_MONOTONIC, &mono);
	clock_gettime(CLOCK_REALTIME, &wall);
	ocs_text_add(line, "{\"t\":%lld.%09ld,\"wall\":%lld.%06ld", (long long)mono.tv_sec,
		     mono.tv_nsec, (long long)wall.tv_sec, wall.tv_nsec / 1000);
	add_member(line, "switch", sw);
	add_member(line, "event", event);
	add_port(line, ",\"in\":", in);
	add_port(line, ",\"out\":", out);
	add_member(line, "by", by);
	add_member(line, "text", text);
	ocs_text_put(line, "}\n", 2);
	if (!emu->log_held)
		write_out(emu);
}

void ocs_emu_log_hold(struct ocs_emu *emu)
{
	emu->log_held = true;
}

void ocs_emu_log_release(struct ocs_emu *emu)
{
	emu->log_held = false;
	if (emu->lines.length)
		write_out(emu);
}
