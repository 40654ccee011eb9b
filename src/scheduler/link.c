/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/protocol/client.h"
#include "src/protocol/fields.h"
#include "src/protocol/names.h"
#include "src/scheduler/state.h"
#include "src/util/net.h"
#include "src/util/text.h"

#include <errno.h>
#include <json-c/json.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#define CONNECT_MS 1000
#define SUBSCRIBE_MS 10000
#define BACKOFF_MIN_MS 50
#define BACKOFF_MAX_MS 1000
#define PROBE_EVERY_MS 2000 /* an idle connection is asked for a sign of life */
#define SILENCE_MS 15000    /* an answer that takes longer means a dead daemon */
#define SAY_EVERY_MS 60000  /* why it cannot be reached, when that changes */
#define MILLION INT64_C(1000000)
#define BOOT_BYTES_MAX 64

/* A request that waits for its answer. */
struct asked {
	int64_t id, since_ns;
	struct json_object *line;
	struct asked *next;
};

static struct {
	pthread_t thread;
	bool runs;
	bool stop;
	int64_t since_ms; /* when the caller took charge, with the jobs it then read */
	char *boot;	  /* which start of which machine, or NULL */
	void (*wake)(void);
	void (*superseded)(void);
} link_thread;

static void wake_thread(void)
{
	uint64_t one = 1;

	if (ocs_state.wake_fd >= 0 && write(ocs_state.wake_fd, &one, sizeof(one)) < 0)
		return; /* the counter is full: it wakes anyway */
}

void ocs_link_send(struct json_object *line)
{
	struct ocs_message *message;

	if (!ocs_state.open) {
		json_object_put(line);
		return;
	}
	message = ocs_calloc(1, sizeof(*message));
	message->line = line;
	if (!ocs_state.out)
		ocs_state.out_end = &ocs_state.out;
	*ocs_state.out_end = message;
	ocs_state.out_end = &message->next;
	wake_thread();
}

static struct json_object *next_message(void)
{
	struct ocs_message *message;
	struct json_object *line = NULL;

	pthread_mutex_lock(&ocs_state.lock);
	message = ocs_state.out;
	if (message) {
		ocs_state.out = message->next;
		line = message->line;
		free(message);
	}
	pthread_mutex_unlock(&ocs_state.lock);
	return line;
}

static void wake_caller(void)
{
	if (link_thread.wake)
		link_thread.wake();
}

static void tell_superseded(void)
{
	if (link_thread.superseded)
		link_thread.superseded();
}

static bool link_stopping(void)
{
	bool stop;

	pthread_mutex_lock(&ocs_state.lock);
	stop = link_thread.stop;
	pthread_mutex_unlock(&ocs_state.lock);
	return stop;
}

/* Sleeps at most MS, or until there is something to do on FD or in the queue. */
static void link_rest(int fd, int ms)
{
	struct pollfd wait[2] = {
		{ .fd = ocs_state.wake_fd, .events = POLLIN },
		{ .fd = fd, .events = POLLIN },
	};
	uint64_t count;

	if (poll(wait, fd >= 0 ? 2 : 1, ms) > 0 && wait[0].revents &&
	    read(ocs_state.wake_fd, &count, sizeof(count)) < 0)
		return;
}

/* Says goodbye to the connection: from here on ocsd is down. */
static void link_lost(void)
{
	struct json_object *line;

	pthread_mutex_lock(&ocs_state.lock);
	ocs_state.open = false;
	if (ocs_state.up) {
		ocs_state.up = false;
		ocs_state.down_since = time(NULL);
		ocs_state.down_since_ns = ocs_now_ns();
	}
	for (int i = 0; i < OCS_WAITING_BUCKETS; i++) {
		for (struct ocs_waiting *at = ocs_state.waiting[i]; at; at = at->next)
			at->pushed = false;
	}
	pthread_mutex_unlock(&ocs_state.lock);
	while ((line = next_message()))
		json_object_put(line);
}

/* Goes on while the machine sleeps. */
static int64_t boot_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_BOOTTIME, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / MILLION;
}

static char *boot_id(void)
{
	struct ocs_error err;
	char *text = ocs_file_read("/proc/sys/kernel/random/boot_id", BOOT_BYTES_MAX, NULL, &err);

	if (text)
		text[strcspn(text, "\n")] = '\0';
	return text;
}

static int ocsd_subscribe(struct ocs_client *client, struct ocs_error *err)
{
	struct json_object *line, *reply, *refusal = NULL;
	bool late;

	/* From the moment that the list is made, every change is queued. */
	pthread_mutex_lock(&ocs_state.lock);
	line = ocs_message_subscribe();
	ocs_field_add_number(line, OCS_FIELD_AGE_MS, boot_ms() - link_thread.since_ms);
	if (link_thread.boot)
		ocs_field_add_text(line, OCS_FIELD_BOOT, link_thread.boot);
	ocs_state.open = true;
	pthread_mutex_unlock(&ocs_state.lock);
	reply = ocs_client_call(client, line, SUBSCRIBE_MS, &refusal, err);
	json_object_put(line);
	late = refusal && ocs_field_has(refusal, OCS_FIELD_SUPERSEDED);
	json_object_put(refusal);
	if (late)
		tell_superseded();
	if (!reply)
		return -1;
	pthread_mutex_lock(&ocs_state.lock);
	ocs_message_subscribed(reply);
	ocs_state.up = true;
	ocs_state.changed = true;
	pthread_mutex_unlock(&ocs_state.lock);
	json_object_put(reply);
	return 0;
}

static int send_line(struct ocs_client *client, struct json_object *line, struct asked **asked,
		     struct ocs_error *err)
{
	struct asked *entry;

	if (ocs_client_send(client, line, err)) {
		json_object_put(line);
		return -1;
	}
	entry = ocs_calloc(1, sizeof(*entry));
	entry->id = ocs_field_number(line, OCS_FIELD_ID, 0);
	entry->since_ns = ocs_now_ns();
	entry->line = line;
	while (*asked)
		asked = &(*asked)->next;
	*asked = entry;
	return 0;
}

static void handle_reply(struct json_object *line, struct asked **asked)
{
	int64_t number = ocs_field_number(line, OCS_FIELD_ID, 0);
	const char *error = ocs_field_text(line, OCS_FIELD_ERROR, NULL);
	struct asked *entry;

	while (*asked && (*asked)->id != number)
		asked = &(*asked)->next;
	entry = *asked;
	if (!entry)
		return;
	*asked = entry->next;
	pthread_mutex_lock(&ocs_state.lock);
	ocs_message_reply(entry->line, line);
	pthread_mutex_unlock(&ocs_state.lock);
	if (error)
		ocs_controller_say(true, "ocsd refuses %s: %s",
				   ocs_field_text(entry->line, OCS_FIELD_OP, ""), error);
	json_object_put(entry->line);
	free(entry);
}

static void line_handle(struct json_object *line, struct asked **asked)
{
	bool late;

	if (ocs_field_has(line, OCS_FIELD_ID)) {
		handle_reply(line, asked);
	} else {
		pthread_mutex_lock(&ocs_state.lock);
		late = ocs_message_event(line);
		pthread_mutex_unlock(&ocs_state.lock);
		if (late)
			tell_superseded();
		ocs_controller_say(false, "ocsd: %s",
				   json_object_to_json_string_ext(line, JSON_C_TO_STRING_PLAIN));
	}
	wake_caller();
}

static struct json_object *ocsd_probe(void)
{
	struct json_object *line = ocs_request_new(OCS_OP_SHOW);

	ocs_field_add_text(line, OCS_FIELD_WHAT, OCS_SHOW_FABRIC);
	return line;
}

/* One turn of a standing connection.  -1 with ERR when it is lost. */
static int link_turn(struct ocs_client *client, struct asked **asked, int64_t *last_ns,
		     struct ocs_error *err)
{
	struct json_object *line;

	/* First of all: it may say that there is nothing to be sent any more. */
	while ((line = ocs_client_next(client, 0, err))) {
		line_handle(line, asked);
		json_object_put(line);
		*last_ns = ocs_now_ns();
	}
	if (err->code != OCS_OK)
		return -1;
	while ((line = next_message())) {
		if (send_line(client, line, asked, err))
			return -1;
		*last_ns = ocs_now_ns();
	}
	if (*asked && ocs_now_ns() - (*asked)->since_ns > SILENCE_MS * MILLION)
		return ocs_error_set(err, OCS_UNREACHABLE, "ocsd does not answer");
	if (!*asked && ocs_now_ns() - *last_ns > PROBE_EVERY_MS * MILLION) {
		if (send_line(client, ocsd_probe(), asked, err))
			return -1;
		*last_ns = ocs_now_ns();
	}
	link_rest(ocs_client_fd(client), PROBE_EVERY_MS / 2);
	return 0;
}

static void link_converse(struct ocs_client *client, struct ocs_error *err)
{
	struct asked *asked = NULL;
	int64_t last_ns = ocs_now_ns();

	while (!link_stopping()) {
		if (link_turn(client, &asked, &last_ns, err))
			break;
	}
	while (asked) {
		struct asked *entry = asked;

		asked = entry->next;
		json_object_put(entry->line);
		free(entry);
	}
}

static void *link_run(void *unused)
{
	const char *address = ocs_state.config->ocsd.address ? ocs_state.config->ocsd.address :
							       ocs_state.config->ocsd.socket;
	int backoff_ms = BACKOFF_MIN_MS;
	char said[OCS_ERROR_TEXT] = "";
	int64_t said_ns = 0;

	(void)unused;
	while (!link_stopping()) {
		struct ocs_error err = { .code = OCS_OK };
		struct ocs_client *client =
			ocs_client_open(address, ocs_state.config->ocsd.key,
					ocs_state.config->ocsd.user, CONNECT_MS, &err);

		if (client && ocsd_subscribe(client, &err) == 0) {
			ocs_controller_say(false, "connected to ocsd at %s", address);
			if (ocs_state.config_mismatch)
				ocs_controller_say(true, OCS_STRANGER);
			*said = '\0';
			backoff_ms = BACKOFF_MIN_MS;
			wake_caller();
			link_converse(client, &err);
		}
		ocs_client_close(client);
		link_lost();
		if (link_stopping())
			break;
		if (!*said || (strcmp(said, err.text) != 0 &&
			       ocs_now_ns() - said_ns > SAY_EVERY_MS * MILLION)) {
			ocs_controller_say(true, "ocsd at %s: %s", address, err.text);
			snprintf(said, sizeof(said), "%s", err.text);
			said_ns = ocs_now_ns();
		}
		wake_caller();
		link_rest(-1, backoff_ms);
		backoff_ms = backoff_ms * 2 < BACKOFF_MAX_MS ? backoff_ms * 2 : BACKOFF_MAX_MS;
	}
	return NULL;
}

/* What the thread needs beside itself. */
static void close_link(void)
{
	close(ocs_state.wake_fd);
	ocs_state.wake_fd = -1;
	free(link_thread.boot);
	link_thread.boot = NULL;
}

void ocs_controller_link_start(int controller, void (*wake)(void), void (*superseded)(void))
{
	sigset_t all, before;
	int rc;

	pthread_mutex_lock(&ocs_state.lock);
	if (link_thread.runs || !ocs_state.fabric) {
		pthread_mutex_unlock(&ocs_state.lock);
		return;
	}
	link_thread.wake = wake;
	link_thread.superseded = superseded;
	ocs_state.controller = controller;
	link_thread.stop = false;
	link_thread.since_ms = boot_ms();
	link_thread.boot = boot_id();
	ocs_state.term = 0;
	ocs_state.wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	ocs_state.down_since = time(NULL);
	ocs_state.down_since_ns = ocs_now_ns();
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = pthread_create(&link_thread.thread, NULL, link_run, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	link_thread.runs = rc == 0;
	if (rc)
		close_link();
	pthread_mutex_unlock(&ocs_state.lock);
	if (rc)
		ocs_controller_say(true, "the thread that talks to ocsd does not start: %s",
				   strerror(rc));
}

void ocs_controller_link_stop(void)
{
	bool runs;

	pthread_mutex_lock(&ocs_state.lock);
	runs = link_thread.runs;
	link_thread.stop = true;
	link_thread.runs = false;
	wake_thread();
	pthread_mutex_unlock(&ocs_state.lock);
	if (!runs)
		return;
	pthread_join(link_thread.thread, NULL);
	pthread_mutex_lock(&ocs_state.lock);
	close_link();
	pthread_mutex_unlock(&ocs_state.lock);
}

bool ocs_controller_link_runs(void)
{
	bool runs;

	pthread_mutex_lock(&ocs_state.lock);
	runs = link_thread.runs;
	pthread_mutex_unlock(&ocs_state.lock);
	return runs;
}

uint32_t ocs_controller_max_job(void)
{
	uint32_t job;

	pthread_mutex_lock(&ocs_state.lock);
	job = ocs_state.max_job;
	ocs_state.max_job = 0;
	pthread_mutex_unlock(&ocs_state.lock);
	return job;
}

int64_t ocs_controller_down_ms(void)
{
	int64_t ms = 0;

	pthread_mutex_lock(&ocs_state.lock);
	if (!ocs_state.up && ocs_state.down_since_ns)
		ms = (ocs_now_ns() - ocs_state.down_since_ns) / MILLION + 1;
	pthread_mutex_unlock(&ocs_state.lock);
	return ms;
}
