/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* The control socket: lines in, one line of JSON each out. */

#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/listener.h>
#include <json-c/json.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/emulator/emulator.h"
#include "src/util/error.h"
#include "src/util/net.h"

#define LINE_LIMIT 65536
#define ANSWER_LIMIT (16 * 1024 * 1024)
#define CLIENT_TIMEOUT_NS 30000000000LL

static const char *const fault_names[] = {
	[OCS_EMU_NONE] = "none",       [OCS_EMU_SILENT] = "silent",
	[OCS_EMU_DROP] = "drop",       [OCS_EMU_DENY] = "deny",
	[OCS_EMU_PARTIAL] = "partial", [OCS_EMU_LOST] = "lost",
	[OCS_EMU_LATE] = "late",       [OCS_EMU_SLOW] = "slow",
	[OCS_EMU_REFUSE] = "refuse",   [OCS_EMU_DUPLICATE] = "duplicate",
	[OCS_EMU_LOGIN] = "login",
};

#define FAULTS (sizeof(fault_names) / sizeof(fault_names[0]))

static char *reply_done(void)
{
	return ocs_strdup("{\"ok\":true}");
}

static char *reply_failed(const char *format, ...) __attribute__((format(printf, 1, 2)));

static char *reply_failed(const char *format, ...)
{
	struct json_object *object = json_object_new_object();
	char sentence[512], *text;
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(sentence, sizeof(sentence), format, arguments);
	va_end(arguments);
	json_object_object_add(object, "error", json_object_new_string(sentence));
	text = ocs_strdup(json_object_to_json_string_ext(object, JSON_C_TO_STRING_PLAIN));
	json_object_put(object);
	return text;
}

static char *take_json(struct json_object *object)
{
	char *text = ocs_strdup(json_object_to_json_string_ext(
		object, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE));

	json_object_put(object);
	return text;
}

/* The next word of the line, or NULL. */
static char *word_next(char **line)
{
	char *at;

	do
		at = strsep(line, " \t");
	while (at && !*at);
	return at;
}

static struct json_object *patches_json(const struct ocs_emu_switch *sw)
{
	struct json_object *list = json_object_new_array();

	for (int in = 1; in <= sw->size; in++) {
		struct json_object *pair;

		if (!sw->out[in])
			continue;
		pair = json_object_new_array();
		json_object_array_add(pair, json_object_new_int(in));
		json_object_array_add(pair, json_object_new_int(sw->out[in]));
		json_object_array_add(list, pair);
	}
	return list;
}

static struct json_object *status_json(const struct ocs_emu_switch *sw)
{
	struct json_object *object = json_object_new_object();
	int clients = 0, count = 0;

	for (const struct ocs_emu_client *c = sw->clients; c; c = c->next)
		clients++;
	for (int in = 1; in <= sw->size; in++)
		count += sw->out[in] != 0;
	json_object_object_add(object, "address", json_object_new_string(sw->address));
	json_object_object_add(object, "size", json_object_new_int(sw->size));
	json_object_object_add(object, "patches", json_object_new_int(count));
	json_object_object_add(object, "fault", json_object_new_string(fault_names[sw->fault]));
	json_object_object_add(object, "clients", json_object_new_int(clients));
	return object;
}

static char *switches_show(struct ocs_emu *emu, const char *name,
			   struct json_object *(*one)(const struct ocs_emu_switch *))
{
	struct json_object *all;

	if (name && !ocs_emu_find(emu, name))
		return reply_failed("unknown switch '%s'", name);
	all = json_object_new_object();
	for (int i = 0; i < emu->nswitches; i++)
		if (!name || !strcmp(emu->switches[i].name, name))
			json_object_object_add(all, emu->switches[i].name, one(&emu->switches[i]));
	return take_json(all);
}

static int parse_ms(const char *text, double *ms)
{
	char *end;

	if (!text || !*text)
		return -1;
	errno = 0;
	*ms = strtod(text, &end);
	return *end || errno || !(*ms >= 0 && *ms <= 3600000) ? -1 : 0;
}

static char *set_fault(struct ocs_emu_switch *sw, char *rest)
{
	char *name = word_next(&rest), *next;
	enum ocs_emu_fault fault = OCS_EMU_NONE;
	struct ocs_error err;
	double ms = 0;
	long count = -1;

	while (name && fault < FAULTS && strcmp(fault_names[fault], name))
		fault++;
	if (!name || fault == FAULTS)
		return reply_failed(
			"unknown fault '%s'; silent, drop, deny, partial, lost, duplicate, late MS, slow MS, refuse, login and none exist",
			name ? name : "");
	if ((fault == OCS_EMU_SLOW || fault == OCS_EMU_LATE) && parse_ms(word_next(&rest), &ms))
		return reply_failed("%s needs a number of milliseconds", name);
	next = word_next(&rest);
	if (next && (strcmp(next, "count") || !(next = word_next(&rest)) ||
		     ocs_number_parse(next, 1, 1000000000, &count)))
		return reply_failed("after the fault only 'count N' may follow");
	if (count > 0 &&
	    (fault == OCS_EMU_REFUSE || fault == OCS_EMU_LOGIN || fault == OCS_EMU_NONE))
		return reply_failed("%s cannot be counted", name);
	sw->fault = fault;
	sw->fault_ms = ms;
	sw->fault_count = count;
	ocs_emu_log(sw->emu, sw->name, "fault", 0, 0, "control", name);
	if (fault == OCS_EMU_REFUSE) {
		ocs_emu_unlisten(sw);
		ocs_emu_disconnect(sw);
		return reply_done();
	}
	if (fault == OCS_EMU_LOGIN)
		ocs_emu_disconnect(sw);
	return ocs_emu_listen(sw, &err) ? reply_failed("%s", err.text) : reply_done();
}

/* A hand at the switch: no login, no delay, and whatever is in the way
 * goes; clients that are logged in hear of it, unless it is done quietly. */
static char *by_hand(struct ocs_emu_switch *sw, char *rest, bool make)
{
	char *first = word_next(&rest), *second = make ? word_next(&rest) : NULL,
	     *how = word_next(&rest);
	long in, out = 0;
	char *text;

	if (!first || ocs_number_parse(first, 1, sw->size, &in))
		return reply_failed("an ingress port 1..%d is needed", sw->size);
	if (make && (!second || ocs_number_parse(second, sw->size + 1, 2L * sw->size, &out)))
		return reply_failed("an egress port %d..%d is needed", sw->size + 1, 2 * sw->size);
	if (how && strcmp(how, "quietly"))
		return reply_failed("after the ports only 'quietly' may follow");
	if (make)
		ocs_emu_make(sw, (int)in, (int)out, "hand");
	else
		ocs_emu_break(sw, (int)in, "hand");
	ocs_emu_save(sw);
	if (!how) {
		text = ocs_asprintf("PATCH:%ld,%d:CHANGED BY HAND", in, sw->out[in]);
		ocs_emu_notice(sw, OCS_EMU_EVENT, text);
		free(text);
	}
	return reply_done();
}

/* One port goes wrong, or is mended. */
static char *set_port(struct ocs_emu_switch *sw, char *rest)
{
	char *number = word_next(&rest), *how = word_next(&rest), *amount = word_next(&rest), *text;
	struct ocs_emu_port *state;
	bool failed_before;
	long port;

	if (!number || ocs_number_parse(number, 1, 2L * sw->size, &port))
		return reply_failed("a port 1..%d is needed", 2 * sw->size);
	state = &sw->ports[port];
	failed_before = state->failed;
	if (how && !strcmp(how, "refuse"))
		state->refuses = true;
	else if (how && !strcmp(how, "fail"))
		state->failed = true;
	else if (how && !strcmp(how, "lossy") && amount && !parse_ms(amount, &state->loss_db))
		;
	else if (how && !strcmp(how, "good"))
		*state = (struct ocs_emu_port){ .closed = state->closed };
	else
		return reply_failed("a port is made refuse, fail, lossy DB or good");
	ocs_emu_plane_shutter(sw, (int)port);
	text = ocs_asprintf("port %ld %s", port, how);
	ocs_emu_log(sw->emu, sw->name, "fault", 0, 0, "control", text);
	free(text);
	/* A switch finds out by itself what has failed; losses it does not judge. */
	if (failed_before != state->failed) {
		text = ocs_asprintf("PORT:%ld,%s", port, state->failed ? "FAILED" : "CLEARED");
		ocs_emu_notice(sw, state->failed ? OCS_EMU_ALARM : OCS_EMU_CLEARED, text);
		free(text);
	}
	return reply_done();
}

static char *switch_reboot(struct ocs_emu_switch *sw, char *rest)
{
	char *how = word_next(&rest), *down = word_next(&rest);
	double ms = 0;

	if (!how || (strcmp(how, "dark") && strcmp(how, "restore")))
		return reply_failed("reboot needs dark or restore");
	if (down && parse_ms(down, &ms))
		return reply_failed("'%s' is no number of milliseconds", down);
	ocs_emu_reboot(sw, !strcmp(how, "dark"), ms);
	return reply_done();
}

static char *set_delay(struct ocs_emu *emu, char *rest)
{
	char *first = word_next(&rest), *second = word_next(&rest);
	struct ocs_emu_switch *sw = second ? ocs_emu_find(emu, first) : NULL;
	const char *value = second ? second : first;
	double ms;

	if (second && !sw)
		return reply_failed("unknown switch '%s'", first);
	if (value && !strcmp(value, "published"))
		ms = OCS_EMU_PUBLISHED;
	else if (parse_ms(value, &ms))
		return reply_failed("delay needs milliseconds or 'published'");
	for (int i = 0; !sw && i < emu->nswitches; i++)
		emu->switches[i].delay_ms = OCS_EMU_INHERIT;
	*(sw ? &sw->delay_ms : &emu->delay_ms) = ms;
	return reply_done();
}

/* Runs one line; returns the answer, one line of JSON; the caller frees it. */
static char *command_run(struct ocs_emu *emu, char *line)
{
	char *rest = line, *command = word_next(&rest), *name;
	struct ocs_emu_switch *sw;

	if (!command)
		return reply_failed("empty command");
	if (!strcmp(command, "table"))
		return switches_show(emu, word_next(&rest), patches_json);
	if (!strcmp(command, "frames"))
		return switches_show(emu, word_next(&rest), ocs_emu_plane_frames);
	if (!strcmp(command, "status"))
		return switches_show(emu, word_next(&rest), status_json);
	if (!strcmp(command, "delay"))
		return set_delay(emu, rest);
	if (!strcmp(command, "quit")) {
		event_base_loopexit(emu->base, &(struct timeval){ 0, 50000 });
		return reply_done();
	}
	name = word_next(&rest);
	sw = name ? ocs_emu_find(emu, name) : NULL;
	if (strcmp(command, "fault") && strcmp(command, "patch") && strcmp(command, "unpatch") &&
	    strcmp(command, "reboot") && strcmp(command, "notice") && strcmp(command, "port") &&
	    strcmp(command, "say"))
		return reply_failed(
			"unknown command '%s'; table, status, frames, fault, port, patch, unpatch, reboot, delay, notice, say and quit exist",
			command);
	if (!sw)
		return reply_failed("unknown switch '%s'", name ? name : "");
	if (!strcmp(command, "fault"))
		return set_fault(sw, rest);
	if (!strcmp(command, "port"))
		return set_port(sw, rest);
	if (!strcmp(command, "reboot"))
		return switch_reboot(sw, rest);
	if (!strcmp(command, "say")) {
		free(sw->says);
		sw->says = rest && *rest ? ocs_strdup(rest) : NULL;
		return reply_done();
	}
	if (strcmp(command, "notice"))
		return by_hand(sw, rest, !strcmp(command, "patch"));
	ocs_emu_notice(sw, OCS_EMU_EVENT, rest ? rest : "");
	return reply_done();
}

static void on_read(struct bufferevent *events, void *context)
{
	struct evbuffer *input = bufferevent_get_input(events);
	char *line;

	while ((line = evbuffer_readln(input, NULL, EVBUFFER_EOL_CRLF))) {
		char *answer = command_run(context, line);

		evbuffer_add_printf(bufferevent_get_output(events), "%s\n", answer);
		free(answer);
		free(line);
	}
	if (evbuffer_get_length(input) > LINE_LIMIT)
		bufferevent_free(events);
}

static void on_event(struct bufferevent *events, short what, void *context)
{
	(void)context;
	if (what & (BEV_EVENT_EOF | BEV_EVENT_ERROR))
		bufferevent_free(events);
}

static void on_accept(struct evconnlistener *listener, evutil_socket_t fd, struct sockaddr *address,
		      int length, void *context)
{
	struct ocs_emu *emu = context;
	struct bufferevent *events = bufferevent_socket_new(emu->base, fd, BEV_OPT_CLOSE_ON_FREE);

	(void)listener;
	(void)address;
	(void)length;
	bufferevent_setcb(events, on_read, NULL, on_event, emu);
	bufferevent_enable(events, EV_READ | EV_WRITE);
}

int ocs_emu_control_listen(struct ocs_emu *emu, const char *address, struct ocs_error *err)
{
	int fd = ocs_net_listen(address, err);

	if (fd < 0)
		return -1;
	emu->control_address = ocs_strdup(address);
	emu->control = evconnlistener_new(emu->base, on_accept, emu,
					  LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC, 64, fd);
	return 0;
}

static int print_answer(const char *answer)
{
	struct json_object *object = json_tokener_parse(answer), *error = NULL;
	int rc = OCS_OK;

	if (object && json_object_is_type(object, json_type_object) &&
	    json_object_object_get_ex(object, "error", &error)) {
		fprintf(stderr, "ocs-emulator: %s\n", json_object_get_string(error));
		rc = OCS_ERROR;
	} else {
		puts(answer);
	}
	json_object_put(object);
	return rc;
}

int ocs_emu_control_client(const char *address, char *const *words, int count)
{
	int64_t deadline = ocs_now_ns() + CLIENT_TIMEOUT_NS;
	struct ocs_lines lines = { .fd = ocs_net_connect(address, 5000, NULL) };
	struct ocs_text line = { 0 };
	struct ocs_error err;
	char *answer = NULL;
	int rc;

	if (lines.fd < 0) {
		fprintf(stderr, "ocs-emulator: no answer on %s\n", address);
		return OCS_UNREACHABLE;
	}
	for (int i = 0; i < count; i++)
		ocs_text_add(&line, "%s%s", i ? " " : "", words[i]);
	ocs_text_add(&line, "\n");
	if (!ocs_net_write(lines.fd, line.data, line.length, deadline, &err))
		answer = ocs_lines_next(&lines, ANSWER_LIMIT, deadline, &err);
	if (answer) {
		rc = print_answer(answer);
	} else {
		fprintf(stderr, "ocs-emulator: %s: %s\n", address, err.text);
		rc = OCS_UNREACHABLE;
	}
	free(answer);
	ocs_text_free(&line);
	ocs_lines_free(&lines);
	close(lines.fd);
	return rc;
}
