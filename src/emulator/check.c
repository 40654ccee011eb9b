/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Judges a log of the emulator.  It keeps tables of its own, so that a mistake of
 * the bank cannot hide itself. */

#include <errno.h>
#include <json-c/json.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/emulator/emulator.h"
#include "src/util/error.h"

#define SIZE_MAX_PORTS 100000

struct record {
	char *name;
	int size;
	int *peer; /* entries 1..2*size */
};

struct judge {
	const char *path;
	unsigned long line;
	struct record *records;
	size_t count;
	unsigned long violations, makes, breaks;
};

static void violation_report(struct judge *judge, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static void violation_report(struct judge *judge, const char *format, ...)
{
	va_list arguments;

	judge->violations++;
	printf("%s:%lu: ", judge->path, judge->line);
	va_start(arguments, format);
	vprintf(format, arguments);
	va_end(arguments);
	putchar('\n');
}

static struct record *record_find(struct judge *judge, const char *name)
{
	for (size_t i = 0; i < judge->count; i++)
		if (!strcmp(judge->records[i].name, name))
			return &judge->records[i];
	return NULL;
}

/* A switch is switched on: dark; what it restores follows as "make" events. */
static void switch_start(struct judge *judge, const char *name, const char *text)
{
	struct record *record = record_find(judge, name);
	int size = 0, other = 0;

	if (sscanf(text, "%9dx%9d", &size, &other) != 2 || size != other || size < 1 ||
	    size > SIZE_MAX_PORTS) {
		violation_report(judge, "switch %s starts without a size", name);
		return;
	}
	if (!record) {
		judge->records = ocs_realloc(judge->records, (judge->count + 1) * sizeof(*record));
		record = &judge->records[judge->count++];
		record->name = ocs_strdup(name);
		record->peer = NULL;
	}
	free(record->peer);
	record->size = size;
	record->peer = ocs_calloc(2 * (size_t)size + 1, sizeof(*record->peer));
}

static void patch_make(struct judge *judge, struct record *record, int in, int out)
{
	int ports[2] = { in, out };

	judge->makes++;
	for (int i = 0; i < 2; i++)
		if (record->peer[ports[i]])
			violation_report(judge,
					 "switch %s makes %d>%d while port %d is joined to %d",
					 record->name, in, out, ports[i], record->peer[ports[i]]);
	record->peer[in] = out;
	record->peer[out] = in;
}

static void patch_cut(struct judge *judge, struct record *record, int in, int out)
{
	judge->breaks++;
	if (record->peer[in] != out || record->peer[out] != in)
		violation_report(judge, "switch %s breaks %d>%d, which was not joined",
				 record->name, in, out);
	record->peer[in] = record->peer[out] = 0;
}

static const char *text_member(struct json_object *event, const char *name)
{
	struct json_object *member;

	if (!json_object_object_get_ex(event, name, &member) ||
	    !json_object_is_type(member, json_type_string))
		return "";
	return json_object_get_string(member);
}

static int port_member(struct json_object *event, const char *name)
{
	struct json_object *member;

	if (!json_object_object_get_ex(event, name, &member))
		return 0;
	return json_object_get_int(member);
}

static void judge_event(struct judge *judge, struct json_object *event)
{
	const char *kind = text_member(event, "event"), *name = text_member(event, "switch");
	bool made = !strcmp(kind, "make");
	struct record *record;
	int in, out;

	if (!strcmp(kind, "start") && *name)
		switch_start(judge, name, text_member(event, "text"));
	if (!made && strcmp(kind, "break"))
		return;
	record = record_find(judge, name);
	in = port_member(event, "in");
	out = port_member(event, "out");
	if (!record)
		violation_report(judge, "switch '%s' changes before it starts", name);
	else if (in < 1 || in > record->size || out <= record->size || out > 2 * record->size)
		violation_report(judge, "switch %s has no patch %d>%d", name, in, out);
	else if (made)
		patch_make(judge, record, in, out);
	else
		patch_cut(judge, record, in, out);
}

static void judge_line(struct judge *judge, const char *line, size_t length)
{
	struct json_object *event;

	/* Killed while it wrote its last line: nothing can be said about it. */
	if (line[length - 1] != '\n')
		return;
	event = json_tokener_parse(line);
	if (event && json_object_is_type(event, json_type_object))
		judge_event(judge, event);
	else
		violation_report(judge, "not an event");
	json_object_put(event);
}

static void print_tables(const struct judge *judge)
{
	putchar('{');
	for (size_t i = 0; i < judge->count; i++) {
		const struct record *record = &judge->records[i];
		const char *comma = "";

		printf("%s\"%s\":[", i ? "," : "", record->name);
		for (int in = 1; in <= record->size; in++) {
			if (!record->peer[in])
				continue;
			printf("%s[%d,%d]", comma, in, record->peer[in]);
			comma = ",";
		}
		putchar(']');
	}
	puts("}");
}

int ocs_emu_check_log(const char *path)
{
	struct judge judge = { .path = path };
	FILE *file = fopen(path, "r");
	char *line = NULL;
	size_t size = 0;
	ssize_t length;

	if (!file) {
		fprintf(stderr, "ocs-emulator: %s: %s\n", path, strerror(errno));
		return OCS_ERROR;
	}
	while ((length = getline(&line, &size, file)) > 0) {
		judge.line++;
		judge_line(&judge, line, (size_t)length);
	}
	free(line);
	fclose(file);
	print_tables(&judge);
	fprintf(stderr, "%lu lines, %lu makes, %lu breaks, %lu violations\n", judge.line,
		judge.makes, judge.breaks, judge.violations);
	for (size_t i = 0; i < judge.count; i++) {
		free(judge.records[i].name);
		free(judge.records[i].peer);
	}
	free(judge.records);
	return judge.violations ? OCS_ERROR : OCS_OK;
}
