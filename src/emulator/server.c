/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Connections of a switch and its one queue: a switch does one command at a time,
 * the client that sent it. */

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/listener.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "src/emulator/emulator.h"
#include "src/util/error.h"
#include "src/util/log.h"
#include "src/util/net.h"

static void run_queue(struct ocs_emu_switch *sw);

static void free_command(const struct ocs_emu_switch *sw, struct ocs_emu_command *command)
{
	if (sw->protocol->forget)
		sw->protocol->forget(command);
	if (command->late)
		event_free(command->late);
	free(command->text);
	free(command->patches);
	free(command);
}

static void free_client(struct ocs_emu_client *client)
{
	struct ocs_emu_switch *sw = client->sw;
	struct ocs_emu_client **at = &sw->clients;

	while (*at != client)
		at = &(*at)->next;
	*at = client->next;
	/* What it asked for is done all the same, as a real switch does. */
	for (struct ocs_emu_command *c = sw->queue; c; c = c->next)
		if (c->client == client)
			c->client = NULL;
	if (sw->running && sw->running->client == client)
		sw->running->client = NULL;
	if (sw->protocol->close)
		sw->protocol->close(client);
	bufferevent_free(client->events);
	ocs_text_free(&client->line);
	free(client);
	ocs_emu_log(sw->emu, sw->name, "disconnect", 0, 0, NULL, NULL);
}

static bool is_idle(const struct ocs_emu_client *client)
{
	return !client->pending && !evbuffer_get_length(bufferevent_get_output(client->events));
}

/* The client, if it is there, waits for one command less. */
static void one_less(struct ocs_emu_client *client)
{
	if (!client)
		return;
	client->pending--;
	if (client->finished && is_idle(client))
		free_client(client);
}

/* The command is over: its answer, if any, has been handed to the socket. */
static void end_command(const struct ocs_emu_switch *sw, struct ocs_emu_command *command)
{
	struct ocs_emu_client *client = command->client;

	free_command(sw, command);
	one_less(client);
}

static void command_answer(struct ocs_emu_switch *sw, struct ocs_emu_command *command)
{
	const struct ocs_emu_protocol *protocol = sw->protocol;
	struct ocs_text bytes = { 0 };
	const char *note = "";
	char *summary, *line;

	protocol->finish(sw, command);
	ocs_emu_plane_settle(sw);
	summary = protocol->summary(command);
	if (command->lost) {
		note = " (the answer is lost)";
	} else if (command->client) {
		protocol->answer(sw, command, &bytes);
		for (int i = 0; i < (command->twice ? 2 : 1) && bytes.length; i++)
			ocs_emu_send(command->client, bytes.data, bytes.length);
		ocs_text_free(&bytes);
	} else {
		note = " (no client is connected)";
	}
	line = ocs_asprintf("%s%s", summary, note);
	ocs_emu_log(sw->emu, sw->name, "reply", 0, 0, NULL, line);
	free(line);
	free(summary);
	end_command(sw, command);
}

void ocs_emu_send(struct ocs_emu_client *client, const char *data, size_t length)
{
	bufferevent_write(client->events, data, length);
}

static void on_timer(evutil_socket_t fd, short what, void *context)
{
	struct ocs_emu_switch *sw = context;
	struct ocs_emu_command *command = sw->running;

	(void)fd;
	(void)what;
	sw->running = NULL;
	if (command)
		command_answer(sw, command);
	run_queue(sw);
}

static void start_timer(struct event *timer, double ms)
{
	struct timeval tv = { (time_t)(ms / 1000),
			      (suseconds_t)((ms - 1000 * (double)(time_t)(ms / 1000)) * 1000) };

	evtimer_add(timer, &tv);
}

/* Which fault hits this command; counts it. */
static enum ocs_emu_fault take_fault(struct ocs_emu_switch *sw,
				     const struct ocs_emu_command *command)
{
	enum ocs_emu_fault fault = sw->fault;

	if ((fault == OCS_EMU_DENY || fault == OCS_EMU_PARTIAL || fault == OCS_EMU_LOST ||
	     fault == OCS_EMU_LATE) &&
	    !sw->protocol->changes(sw, command))
		return OCS_EMU_NONE;
	if (fault != OCS_EMU_NONE && sw->fault_count > 0 && --sw->fault_count == 0) {
		sw->fault = OCS_EMU_NONE;
		sw->fault_count = -1;
		ocs_emu_log(sw->emu, sw->name, "fault", 0, 0, "count", "none");
	}
	return fault;
}

static void on_late(evutil_socket_t fd, short what, void *context)
{
	struct ocs_emu_command *command = context;
	struct ocs_emu_switch *sw = command->sw;
	struct ocs_emu_command **at = &sw->later;

	(void)fd;
	(void)what;
	while (*at != command)
		at = &(*at)->next;
	*at = command->next;
	sw->protocol->begin(sw, command);
	command_answer(sw, command);
}

/* The command is put aside without an answer. */
static void put_off(struct ocs_emu_switch *sw, struct ocs_emu_command *command)
{
	struct ocs_emu_client *client = command->client;

	command->client = NULL;
	command->next = sw->later;
	sw->later = command;
	command->late = evtimer_new(sw->emu->base, on_late, command);
	start_timer(command->late, sw->fault_ms);
	one_less(client);
}

/* Returns whether the command was dealt with by not dealing with it. */
static bool command_swallow(struct ocs_emu_switch *sw, enum ocs_emu_fault fault,
			    struct ocs_emu_command *command)
{
	struct ocs_emu_client *client = command->client;

	if (fault == OCS_EMU_SILENT) {
		end_command(sw, command);
		return true;
	}
	if (fault == OCS_EMU_LATE) {
		put_off(sw, command);
		return true;
	}
	if (fault == OCS_EMU_DROP) {
		free_command(sw, command);
		if (client)
			free_client(client);
		return true;
	}
	return false;
}

static void log_command(struct ocs_emu_switch *sw, const struct ocs_emu_command *command)
{
	char *masked = sw->protocol->masked(command);

	ocs_emu_log(sw->emu, sw->name, "command", 0, 0, NULL, masked);
	free(masked);
}

static void run_queue(struct ocs_emu_switch *sw)
{
	while (!sw->running && sw->queue) {
		struct ocs_emu_command *command = sw->queue;
		enum ocs_emu_fault fault;

		sw->queue = command->next;
		if (!sw->queue)
			sw->queue_end = &sw->queue;
		command->next = NULL;
		log_command(sw, command);
		fault = take_fault(sw, command);
		if (command_swallow(sw, fault, command))
			continue;
		command->lost = fault == OCS_EMU_LOST;
		command->twice = fault == OCS_EMU_DUPLICATE;
		if (fault == OCS_EMU_DENY)
			command->verdict = OCS_EMU_BUSY;
		else if (fault == OCS_EMU_PARTIAL)
			command->verdict = OCS_EMU_PART;
		sw->protocol->begin(sw, command);
		if (fault == OCS_EMU_SLOW)
			command->delay_ms += sw->fault_ms;
		if (command->delay_ms > 0) {
			sw->running = command;
			start_timer(sw->timer, command->delay_ms);
		} else {
			command_answer(sw, command);
		}
	}
}

void ocs_emu_queue(struct ocs_emu_client *client, char *text, void *state)
{
	struct ocs_emu_switch *sw = client->sw;
	struct ocs_emu_command *command = ocs_calloc(1, sizeof(*command));

	command->client = client;
	command->sw = sw;
	command->text = text;
	command->state = state;
	client->pending++;
	if (!sw->queue)
		sw->queue_end = &sw->queue;
	*sw->queue_end = command;
	sw->queue_end = &command->next;
}

static void on_read(struct bufferevent *events, void *context)
{
	struct ocs_emu_client *client = context;
	struct ocs_emu_switch *sw = client->sw;
	char data[4096];
	size_t n;

	while ((n = bufferevent_read(events, data, sizeof(data))) > 0)
		sw->protocol->bytes(client, data, n);
	run_queue(sw); /* may free the client */
}

static void on_written(struct bufferevent *events, void *context)
{
	struct ocs_emu_client *client = context;

	(void)events;
	if (client->finished && is_idle(client))
		free_client(client);
}

static void on_event(struct bufferevent *events, short what, void *context)
{
	struct ocs_emu_client *client = context;

	(void)events;
	if (!(what & (BEV_EVENT_EOF | BEV_EVENT_ERROR)))
		return;
	client->finished = true;
	if ((what & BEV_EVENT_ERROR) || is_idle(client))
		free_client(client);
}

static void on_accept(struct evconnlistener *listener, evutil_socket_t fd, struct sockaddr *address,
		      int length, void *context)
{
	struct ocs_emu_switch *sw = context;
	struct ocs_emu_client *client;
	int on = 1;

	(void)listener;
	(void)length;
	if (address->sa_family != AF_UNIX)
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	if (sw->protocol->secure) {
		fd = sw->protocol->secure(sw, fd);
		if (fd < 0)
			return;
	}
	client = ocs_calloc(1, sizeof(*client));
	client->sw = sw;
	client->logged_in = !sw->user;
	client->events = bufferevent_socket_new(sw->emu->base, fd, BEV_OPT_CLOSE_ON_FREE);
	client->next = sw->clients;
	sw->clients = client;
	bufferevent_setcb(client->events, on_read, on_written, on_event, client);
	bufferevent_enable(client->events, EV_READ | EV_WRITE);
	ocs_emu_log(sw->emu, sw->name, "connect", 0, 0, NULL, NULL);
	if (sw->protocol->open)
		sw->protocol->open(client);
}

/* Port 0 becomes the port that the system chose. */
static void note_port(struct ocs_emu_switch *sw, int fd)
{
	struct sockaddr_storage bound = { 0 };
	socklen_t length = sizeof(bound);
	char *colon = strrchr(sw->address, ':'), *full;
	int port;

	if (!strncmp(sw->address, "unix:", 5) || !colon || strcmp(colon, ":0") ||
	    getsockname(fd, (struct sockaddr *)&bound, &length) != 0)
		return;
	port = ntohs(bound.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&bound)->sin6_port :
						   ((struct sockaddr_in *)&bound)->sin_port);
	full = ocs_asprintf("%.*s:%d", (int)(colon - sw->address), sw->address, port);
	free(sw->address);
	sw->address = full;
}

int ocs_emu_listen(struct ocs_emu_switch *sw, struct ocs_error *err)
{
	int fd;

	if (sw->listener)
		return 0;
	if (!sw->timer)
		sw->timer = evtimer_new(sw->emu->base, on_timer, sw);
	fd = ocs_net_listen(sw->address, err);
	if (fd < 0)
		return ocs_error_prefix(err, "switch %s", sw->name);
	note_port(sw, fd);
	sw->listener = evconnlistener_new(sw->emu->base, on_accept, sw,
					  LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC, 64, fd);
	return 0;
}

void ocs_emu_unlisten(struct ocs_emu_switch *sw)
{
	if (!sw->listener)
		return;
	evconnlistener_free(sw->listener);
	sw->listener = NULL;
	if (!strncmp(sw->address, "unix:", 5))
		unlink(sw->address + 5);
}

void ocs_emu_disconnect(struct ocs_emu_switch *sw)
{
	while (sw->clients)
		free_client(sw->clients);
	while (sw->queue) {
		struct ocs_emu_command *command = sw->queue;

		sw->queue = command->next;
		free_command(sw, command);
	}
	while (sw->later) {
		struct ocs_emu_command *command = sw->later;

		sw->later = command->next;
		free_command(sw, command);
	}
	if (sw->running)
		free_command(sw, sw->running);
	sw->running = NULL;
	if (sw->timer)
		evtimer_del(sw->timer);
}

void ocs_emu_notice(struct ocs_emu_switch *sw, enum ocs_emu_notice kind, const char *text)
{
	if (sw->fault == OCS_EMU_SILENT || !sw->protocol->notice)
		return;
	for (struct ocs_emu_client *c = sw->clients; c; c = c->next) {
		char *bytes;

		if (!c->logged_in || c->muted)
			continue;
		bytes = sw->protocol->notice(c, kind, text);
		ocs_emu_send(c, bytes, strlen(bytes));
		free(bytes);
	}
	ocs_emu_log(sw->emu, sw->name, "notice", 0, 0, NULL, text);
}

static void on_boot(evutil_socket_t fd, short what, void *context)
{
	struct ocs_emu_switch *sw = context;
	struct ocs_error err;

	(void)fd;
	(void)what;
	if (sw->fault == OCS_EMU_REFUSE)
		return;
	if (ocs_emu_listen(sw, &err))
		ocs_log(OCS_LOG_ERROR, "%s", err.text);
	ocs_emu_log(sw->emu, sw->name, "booted", 0, 0, NULL, NULL);
}

void ocs_emu_reboot(struct ocs_emu_switch *sw, bool dark, double down_ms)
{
	ocs_emu_log(sw->emu, sw->name, "reboot", 0, 0, NULL, dark ? "dark" : "restore");
	ocs_emu_unlisten(sw);
	ocs_emu_disconnect(sw);
	for (int in = 1; dark && in <= sw->size; in++)
		ocs_emu_break(sw, in, "reboot");
	ocs_emu_save(sw);
	if (!sw->boot)
		sw->boot = evtimer_new(sw->emu->base, on_boot, sw);
	if (down_ms > 0)
		start_timer(sw->boot, down_ms);
	else
		on_boot(-1, 0, sw);
}
