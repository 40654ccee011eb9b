/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "src/util/error.h"
#include "src/util/net.h"
#include "src/util/text.h"
#include "tests/unit/ocsd/ocsd_rig.h"
#include "tests/unit/ocsd/ocsd_talk.h"

struct ocs_client *rig_client(struct rig *rig)
{
	struct ocs_error err;
	struct ocs_client *client =
		ocs_client_open(rig->address, NULL, NULL, RIG_PATIENCE_MS, &err);

	if (!client)
		fail_msg("%s", err.text);
	return client;
}

static struct json_object *format_json(const char *format, va_list args)
{
	struct json_object *object;
	char *text = NULL;

	assert_true(vasprintf(&text, format, args) >= 0);
	for (char *at = text; *at; at++)
		if (*at == '\'')
			*at = '"';
	object = json_tokener_parse(text);
	if (!object)
		fail_msg("not JSON: %s", text);
	free(text);
	return object;
}

struct json_object *rig_json(const char *format, ...)
{
	struct json_object *object;
	va_list args;

	va_start(args, format);
	object = format_json(format, args);
	va_end(args);
	return object;
}

struct json_object *rig_ask(struct ocs_client *client, const char *format, ...)
{
	struct json_object *request, *reply;
	struct ocs_error err;
	va_list args;

	va_start(args, format);
	request = format_json(format, args);
	va_end(args);
	reply = ocs_client_call(client, request, RIG_PATIENCE_MS, NULL, &err);
	if (!reply)
		fail_msg("%s: %s", json_object_to_json_string(request), err.text);
	json_object_put(request);
	return reply;
}

struct json_object *rig_refused(struct ocs_client *client, int code, const char *part,
				const char *format, ...)
{
	struct json_object *request, *reply, *refusal = NULL;
	struct ocs_error err;
	va_list args;

	va_start(args, format);
	request = format_json(format, args);
	va_end(args);
	reply = ocs_client_call(client, request, RIG_PATIENCE_MS, &refusal, &err);
	assert_null(reply);
	if (!refusal || err.code != code || !strstr(err.text, part))
		fail_msg("%s: code %d, %s (wanted %d, %s)", json_object_to_json_string(request),
			 err.code, err.text, code, part);
	json_object_put(request);
	return refusal;
}

void rig_send(struct ocs_client *client, const char *format, ...)
{
	struct json_object *request;
	struct ocs_error err;
	va_list args;

	va_start(args, format);
	request = format_json(format, args);
	va_end(args);
	assert_int_equal(ocs_client_send(client, request, &err), 0);
	json_object_put(request);
}

static struct json_object *next_with(struct ocs_client *client, const char *member,
				     const char *value)
{
	int64_t deadline = ocs_now_ns() + RIG_PATIENCE_MS * INT64_C(1000000);
	struct ocs_error err = { 0 };

	while (ocs_now_ns() < deadline) {
		struct json_object *line = ocs_client_next(client, 500, &err), *found;

		if (!line && err.code != OCS_OK)
			fail_msg("%s", err.text);
		if (line && json_object_object_get_ex(line, member, &found) &&
		    (!value || strcmp(json_object_get_string(found), value) == 0))
			return line;
		json_object_put(line);
	}
	fail_msg("no line with %s %s", member, value ? value : "");
	return NULL;
}

struct json_object *rig_event(struct ocs_client *client, const char *name)
{
	return next_with(client, "event", name);
}

struct json_object *rig_reply(struct ocs_client *client)
{
	return next_with(client, "id", NULL);
}

void rig_silence(struct ocs_client *client, int ms)
{
	struct ocs_error err = { 0 };
	struct json_object *line = ocs_client_next(client, ms, &err);

	if (line)
		fail_msg("unexpected: %s", json_object_to_json_string(line));
	assert_int_equal(err.code, OCS_OK);
}

const char *rig_text(struct json_object *object, const char *member)
{
	struct json_object *value = NULL;

	json_object_object_get_ex(object, member, &value);
	return value ? json_object_get_string(value) : "";
}

int64_t rig_number(struct json_object *object, const char *member)
{
	struct json_object *value = NULL;

	json_object_object_get_ex(object, member, &value);
	return value ? json_object_get_int64(value) : -1;
}

const char *rig_job_state(struct ocs_client *client, unsigned int job)
{
	struct json_object *reply = rig_ask(client, "{'op':'show','what':'job','name':'%u'}", job);
	struct json_object *jobs = NULL;
	static char state[32];

	*state = '\0';
	json_object_object_get_ex(reply, "jobs", &jobs);
	if (json_object_array_length(jobs))
		snprintf(state, sizeof(state), "%s",
			 rig_text(json_object_array_get_idx(jobs, 0), "state"));
	json_object_put(reply);
	return state;
}

void rig_until_job(struct ocs_client *client, unsigned int job, const char *state)
{
	int64_t deadline = ocs_now_ns() + RIG_PATIENCE_MS * INT64_C(1000000);

	while (strcmp(rig_job_state(client, job), state) != 0) {
		if (ocs_now_ns() > deadline)
			fail_msg("job %u is '%s', not '%s'", job, rig_job_state(client, job),
				 state);
		usleep(10000);
	}
}

void rig_until_forgotten(struct ocs_client *client, unsigned int job)
{
	rig_until_job(client, job, "");
}

void rig_until_switch(struct ocs_client *client, const char *name, const char *state)
{
	int64_t deadline = ocs_now_ns() + RIG_PATIENCE_MS * INT64_C(1000000);
	bool good = false;

	while (!good) {
		struct json_object *reply =
			rig_ask(client, "{'op':'show','what':'switch','name':'%s'}", name);
		struct json_object *list = NULL;

		json_object_object_get_ex(reply, "switches", &list);
		assert_int_equal(json_object_array_length(list), 1);
		good = strcmp(rig_text(json_object_array_get_idx(list, 0), "state"), state) == 0;
		json_object_put(reply);
		if (!good && ocs_now_ns() > deadline)
			fail_msg("switch %s does not become %s", name, state);
		if (!good)
			usleep(20000);
	}
}

char *rig_http(const char *address, const char *request)
{
	int64_t deadline = ocs_now_ns() + RIG_PATIENCE_MS * INT64_C(1000000);
	struct ocs_text text = { 0 };
	struct ocs_error err;
	char data[4096];
	long count;
	int fd = ocs_net_connect(address, RIG_PATIENCE_MS, &err);

	if (fd < 0)
		fail_msg("%s", err.text);
	assert_int_equal(ocs_net_write(fd, request, strlen(request), deadline, &err), 0);
	while ((count = ocs_net_read(fd, data, sizeof(data), deadline, &err)) > 0)
		ocs_text_add(&text, "%.*s", (int)count, data);
	close(fd);
	return ocs_text_take(&text);
}
