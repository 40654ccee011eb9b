/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Clients: who they are, their lines in, their lines out. */

#include "src/ocsd/protocol/munge.h"
#include "src/ocsd/protocol/client.h"
#include "src/ocsd/protocol/log_limit.h"
#include "src/ocsd/protocol/connection_quota.h"
#include "src/ocsd/protocol/controller.h"
#include "src/ocsd/protocol/handshake.h"
#include "src/ocsd/protocol/rate_limit.h"
#include "src/ocsd/protocol/listener.h"
#include "src/ocsd/protocol/dispatch.h"
#include "src/ocsd/protocol/connection.h"
#include "src/ocsd/protocol/transaction.h"
#include "src/ocsd/protocol/pending_reply.h"

#include "src/protocol/fields.h"
#include "src/protocol/names.h"
#include "src/util/net.h"
#include "src/util/text.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <fcntl.h>
#include <json-c/json.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define REQUEST_MAX (1U << 20)
#define UNREAD_MAX (64U << 20) /* a client that does not read is dropped */
#define CLIENTS_MAX 16384
#define HELLO_SECONDS 20
#define HELLO_MAX (16U << 10) /* bytes before it is known who speaks */
#define ARRIVALS_MAX 256      /* before somebody else has a turn */
#define QUOTA_LOG_NS INT64_C(10000000000)
#define RESERVED 64 /* descriptors beside those of switches: the database ... */

const uid_t *ocsd_client_who(const struct ocsd_client *client)
{
	return &client->uid;
}

static int descriptors_reserved(const struct ocsd *d)
{
	return d->fabric->nswitches + RESERVED;
}

bool ocsd_subscribed(const struct ocsd *d)
{
	for (const struct ocsd_client *client = d->server.clients; client; client = client->next)
		if (client->subscribed && !client->lost)
			return true;
	return false;
}

void ocsd_client_line(struct ocsd_client *client, struct json_object *line)
{
	const char *text = json_object_to_json_string_ext(
		line, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE);

	if (!client->lost) {
		if (client->seal.on) {
			char prefix[OCS_MAC_HEX + 2];

			ocs_seal_prefix(&client->seal, text, strlen(text), prefix);
			evbuffer_add(client->held, prefix, strlen(prefix));
		}
		evbuffer_add(client->held, text, strlen(text));
		evbuffer_add(client->held, "\n", 1);
	}
	json_object_put(line);
}

/* Puts the events of the pass before what its clients are answered next. */
static void events_distribute(struct ocsd *d)
{
	struct json_object *events = d->replies.events;
	size_t count = events ? json_object_array_length(events) : 0;

	d->replies.events = NULL;
	for (size_t i = 0; i < count; i++)
		for (struct ocsd_client *client = d->server.clients; client; client = client->next)
			if (client->subscribed)
				ocsd_client_line(client, json_object_get(json_object_array_get_idx(
								 events, i)));
	json_object_put(events);
	if (d->replies.to_controllers)
		ocsd_controllers_tell(d);
}

void ocsd_client_subscribe(struct ocsd_client *client)
{
	events_distribute(client->d);
	client->subscribed = true;
}

void ocsd_answer(struct ocsd *d, struct ocsd_client *client, int64_t id, struct json_object *reply)
{
	events_distribute(d);
	if (d->server.transactions)
		ocsd_transaction_answer(d, client, id, reply);
	ocs_field_add_number(reply, OCS_FIELD_ID, id);
	ocsd_client_line(client, reply);
}

void ocsd_reply(struct ocsd_client *client, int64_t id, struct json_object *reply)
{
	if (!reply)
		reply = json_object_new_object();
	ocs_field_add_bool(reply, OCS_FIELD_OK, true);
	ocsd_answer(client->d, client, id, reply);
}

void ocsd_refuse(struct ocsd_client *client, int64_t id, int code, struct json_object *extra,
		 const char *format, ...)
{
	char text[OCS_ERROR_TEXT];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (!extra)
		extra = json_object_new_object();
	ocs_field_add_bool(extra, OCS_FIELD_OK, false);
	ocs_field_add_number(extra, OCS_FIELD_CODE, code);
	ocs_field_add_text(extra, OCS_FIELD_ERROR, text);
	ocsd_answer(client->d, client, id, extra);
}

void ocsd_client_lose(struct ocsd_client *client)
{
	if (client->lost)
		return;
	client->lost = true;
	client->d->server.nlost++;
	ocsd_quota_leave(client);
	client->subscribed = false;
	ocsd_replies_drop(client->d, client);
	ocsd_transactions_lost(client->d, client);
	bufferevent_disable(client->stream, EV_READ | EV_WRITE);
}

void ocsd_client_dismiss(struct ocsd_client *client, struct json_object *event)
{
	events_distribute(client->d);
	ocsd_client_line(client, event);
	client->dismissed = true;
	ocsd_client_lose(client);
}

/* CLIENT is lost already. */
static void client_free(struct ocsd_client *client)
{
	*client->link = client->next;
	if (client->next)
		client->next->link = client->link;
	/* Nobody waits until it reads: what its socket does not take is lost. */
	if (client->dismissed && !evbuffer_get_length(bufferevent_get_output(client->stream)))
		evbuffer_write(client->held, bufferevent_getfd(client->stream));
	ocsd_limited_user_leave(client->limited_user);
	if (client->resume)
		event_free(client->resume);
	if (client->handshake_timer)
		event_free(client->handshake_timer);
	ocsd_stream_free(client->stream);
	evbuffer_free(client->held);
	client->d->server.nclients--;
	client->d->server.nlost--;
	free(client);
}

/* Those who knock are heard again. */
static void listeners_wake(struct ocsd *d)
{
	if (d->server.arrivals >= ARRIVALS_MAX)
		for (int i = 0; i < 2; i++)
			if (d->server.listeners[i])
				evconnlistener_enable(d->server.listeners[i]);
	d->server.arrivals = 0;
}

void ocsd_server_flush(struct ocsd *d)
{
	struct ocsd_client *client, *next;

	events_distribute(d);
	for (client = d->server.clients; client; client = next) {
		next = client->next;
		if (client->lost) {
			client_free(client);
			continue;
		}
		if (evbuffer_get_length(client->held))
			bufferevent_write_buffer(client->stream, client->held);
		if (evbuffer_get_length(bufferevent_get_output(client->stream)) > UNREAD_MAX) {
			ocsd_log_limited(d, client->peer, "a client does not read; dropped");
			ocsd_client_lose(client);
			client_free(client);
		}
	}
	listeners_wake(d);
}

/* Clients of all kinds together. */
static size_t clients_max(const struct ocsd *d)
{
	int end = ocsd_descriptor_end(descriptors_reserved(d));

	return end < CLIENTS_MAX ? (size_t)end : CLIENTS_MAX;
}

static void quota_log(struct ocsd *d, const struct ocsd_client *victim)
{
	int64_t now_ns = ocs_now_ns();

	if (!d->server.quota_logged_ns || now_ns - d->server.quota_logged_ns > QUOTA_LOG_NS) {
		ocs_log(OCS_LOG_WARNING,
			"%zu clients are too many: the user or address with the most "
			"loses one at a time, now %s",
			d->server.nclients, victim ? victim->peer : "none is left");
		d->server.quota_logged_ns = now_ns;
	}
}

/* Ordinary users have half of the connections at most, so have those who have not said who
 * they are; of the rest, administrators take what they need. */
static void quota_enforce(struct ocsd *d, struct ocsd_quota *quota)
{
	size_t max = clients_max(d) / 2;

	while (ocsd_quota_count(quota) > max) {
		struct ocsd_client *victim = ocsd_quota_first(quota);

		quota_log(d, victim);
		ocsd_client_lose(victim);
	}
}

/* CLIENT is UID.  Who has far too many connections is not even answered. */
void ocsd_client_know(struct ocsd_client *client, uid_t uid)
{
	struct ocsd *d = client->d;
	int surplus;

	ocsd_quota_leave(client);
	client->uid = uid;
	client->known = true;
	snprintf(client->peer, sizeof(client->peer), "uid %u", (unsigned int)uid);
	client->limited_user = ocsd_limited_user_enter(d, uid);
	surplus = ocsd_limited_user_surplus(d, client->limited_user);
	client->surplus = surplus > 0;
	if (surplus > d->config->limits.connections) {
		ocsd_client_lose(client);
		return;
	}
	if (client->limited_user) {
		ocsd_quota_join(&d->server.users, client, client->peer);
		quota_enforce(d, d->server.users);
	}
}

static void on_event(struct bufferevent *stream, short what, void *context)
{
	(void)stream;
	(void)what;
	ocsd_client_lose(context);
}

static void on_drained(struct bufferevent *stream, void *context)
{
	(void)stream;
	ocsd_client_lose(context);
}

/* CLIENT is heard no more; it goes when it has been told what it was answered. */
void ocsd_client_finish(struct ocsd_client *client)
{
	bufferevent_setcb(client->stream, NULL, on_drained, on_event, client);
	bufferevent_disable(client->stream, EV_READ);
	client->paused = true;
}

static void on_resume(evutil_socket_t fd, short what, void *context);

/* Not another line of CLIENT is read for MS. */
static void pause_client(struct ocsd_client *client, int ms)
{
	struct timeval delay = { .tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000 };

	if (!client->resume)
		client->resume = evtimer_new(client->d->loop.base, on_resume, client);
	client->paused = true;
	bufferevent_disable(client->stream, EV_READ);
	event_add(client->resume, &delay);
}

/* Whether REQUEST is more than CLIENT's user may ask; answers it then. */
static bool too_much(struct ocsd_client *client, struct json_object *request)
{
	struct json_object *id = NULL, *extra;
	int ms = client->surplus ? 0 : ocsd_limited_user_wait_ms(client->d, client->limited_user);

	if (!client->surplus && !ms)
		return false;
	json_object_object_get_ex(request, OCS_FIELD_ID, &id);
	client->d->counters.limited++;
	if (client->surplus) {
		ocsd_refuse(client, json_object_get_int64(id), OCS_NOT_NOW, NULL,
			    "busy: user %u has more than %d connections to ocsd; close some",
			    (unsigned int)client->uid, client->d->config->limits.connections);
		ocsd_client_finish(client);
		return true;
	}
	extra = json_object_new_object();
	ocs_field_add_number(extra, OCS_FIELD_RETRY_MS, ms);
	ocsd_refuse(client, json_object_get_int64(id), OCS_NOT_NOW, extra,
		    "busy, try again in %d ms", ms);
	pause_client(client, ms);
	return true;
}

static void on_line(struct ocsd_client *client, const char *line)
{
	struct json_object *request;

	ocsd_quota_touch(client);
	if (client->seal.on) {
		line = ocs_seal_open(&client->seal, line);
		if (!line) {
			ocsd_log_limited(client->d, client->peer,
					 "a line is not what it sent; dropped");
			ocsd_client_lose(client);
			return;
		}
	}
	request = json_tokener_parse(line);
	if (client->limited_user && !ocsd_controller_exempt(client, request) &&
	    too_much(client, request)) {
		/* answered */
	} else if (!json_object_is_type(request, json_type_object)) {
		ocsd_refuse(client, 0, OCS_USAGE, NULL, "a request is one JSON object on a line");
		if (!client->known)
			ocsd_client_lose(client);
	} else if (client->known) {
		ocsd_request(client->d, client, request);
	} else {
		ocsd_hello(client, request);
	}
	json_object_put(request);
}

static void on_read(struct bufferevent *stream, void *context)
{
	struct ocsd_client *client = context;
	struct evbuffer *input = bufferevent_get_input(stream);
	size_t max;
	char *line;

	while (!client->lost && !client->paused &&
	       (line = evbuffer_readln(input, NULL, EVBUFFER_EOL_LF))) {
		if (*line)
			on_line(client, line);
		free(line);
	}
	max = client->known ? REQUEST_MAX : HELLO_MAX;
	if (!client->lost && !client->paused && evbuffer_get_length(input) >= max) {
		ocsd_log_limited(client->d, client->peer, "a line over %zu bytes; dropped", max);
		ocsd_client_lose(client);
	}
}

/* What it sent meanwhile waits in the buffer. */
static void on_resume(evutil_socket_t fd, short what, void *context)
{
	struct ocsd_client *client = context;

	(void)fd;
	(void)what;
	client->paused = false;
	if (client->lost)
		return;
	bufferevent_enable(client->stream, EV_READ);
	on_read(client->stream, client);
}

/* Frees a descriptor at once: of those that are lost, or else of whoever has most.  False if
 * there are only administrators. */
static bool make_room(struct ocsd *d)
{
	struct ocsd_quota *users = d->server.users, *unidentified = d->server.unidentified;
	struct ocsd_quota *quota =
		ocsd_quota_count(users) > ocsd_quota_count(unidentified) ? users : unidentified;
	struct ocsd_client *client, *next, *victim;

	if (!d->server.nlost) {
		victim = ocsd_quota_first(quota);
		quota_log(d, victim);
		if (!victim)
			return false;
		ocsd_client_lose(victim);
		client_free(victim);
		return true;
	}
	for (client = d->server.clients; client; client = next) {
		next = client->next;
		if (client->lost)
			client_free(client);
	}
	return true;
}

/* The descriptor for the client at FD, which may be a lower one now that there is room; or
 * -1: it cannot come in, and FD is closed. */
static int client_admit(struct ocsd *d, struct evconnlistener *listener, evutil_socket_t fd)
{
	int low = -1;

	/* However fast they come, the loop has other things to do. */
	if (++d->server.arrivals >= ARRIVALS_MAX)
		evconnlistener_disable(listener);
	if (d->server.nclients < CLIENTS_MAX && fd < ocsd_descriptor_end(descriptors_reserved(d)))
		return fd;
	if (make_room(d))
		low = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	else
		ocsd_listener_rest(listener);
	close(fd);
	return low;
}

static struct ocsd_client *client_new(struct ocsd *d, struct evconnlistener *listener,
				      evutil_socket_t fd)
{
	static uint64_t serial;
	struct ocsd_client *client;

	fd = client_admit(d, listener, fd);
	if (fd < 0)
		return NULL;
	client = ocs_calloc(1, sizeof(*client));
	client->d = d;
	client->serial = ++serial;
	client->uid = (uid_t)-1;
	client->held = evbuffer_new();
	client->stream = bufferevent_socket_new(d->loop.base, fd, BEV_OPT_CLOSE_ON_FREE);
	if (!client->stream || !client->held) {
		ocs_log(OCS_LOG_ERROR, "no memory for a client");
		abort();
	}
	bufferevent_setcb(client->stream, on_read, NULL, on_event, client);
	bufferevent_setwatermark(client->stream, EV_READ, 0, REQUEST_MAX);
	client->next = d->server.clients;
	client->link = &d->server.clients;
	if (client->next)
		client->next->link = &client->next;
	d->server.clients = client;
	d->server.nclients++;
	return client;
}

static void on_local(struct evconnlistener *listener, evutil_socket_t fd, struct sockaddr *address,
		     int length, void *context)
{
	struct ocsd_client *client;
	struct ucred who;
	socklen_t size = sizeof(who);

	(void)address;
	(void)length;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size)) {
		ocs_log(OCS_LOG_ERROR, "SO_PEERCRED: %s", strerror(errno));
		close(fd);
		return;
	}
	client = client_new(context, listener, fd);
	if (!client)
		return;
	ocsd_client_know(client, who.uid);
	if (client->lost)
		return;
	bufferevent_enable(client->stream, EV_READ | EV_WRITE);
}

static void on_handshake_timeout(evutil_socket_t fd, short what, void *context)
{
	(void)fd;
	(void)what;
	ocsd_client_lose(context);
}

static void on_remote(struct evconnlistener *listener, evutil_socket_t fd, struct sockaddr *address,
		      int length, void *context)
{
	struct timeval timeout = { .tv_sec = HELLO_SECONDS };
	struct ocsd_client *client;
	struct json_object *line;
	struct ocs_error err;
	int one = 1;

	(void)length;
	client = client_new(context, listener, fd);
	if (!client)
		return;
	ocsd_peer_name(address, client->peer, sizeof(client->peer));
	ocsd_quota_join(&client->d->server.unidentified, client, client->peer);
	quota_enforce(client->d, client->d->server.unidentified);
	if (client->lost)
		return;
	if (ocs_random_hex(client->challenge, OCSD_CHALLENGE_BYTES, &err)) {
		ocs_log(OCS_LOG_ERROR, "%s", err.text);
		ocsd_client_lose(client);
		return;
	}
	setsockopt(bufferevent_getfd(client->stream), IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	/* A node that died must not keep its apply waiting for ever. */
	setsockopt(bufferevent_getfd(client->stream), SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one));
	/* For the whole of its hello, not for its next byte. */
	client->handshake_timer = evtimer_new(client->d->loop.base, on_handshake_timeout, client);
	event_add(client->handshake_timer, &timeout);
	bufferevent_enable(client->stream, EV_READ | EV_WRITE);
	line = json_object_new_object();
	ocs_field_add_text(line, OCS_FIELD_CHALLENGE, client->challenge);
	ocs_field_add_number(line, OCS_FIELD_UID, geteuid());
	ocs_field_add_bool(line, OCS_FIELD_KEY, client->d->server.key != NULL);
	ocsd_client_line(client, line);
}

static int listen_on(struct ocsd *d, int slot, const char *address, evconnlistener_cb callback,
		     struct ocs_error *err)
{
	d->server.listeners[slot] = ocsd_listener_open(d->loop.base, address, callback, d, err);
	if (!d->server.listeners[slot])
		return -1;
	ocs_log(OCS_LOG_INFO, "listening on %s", address);
	return 0;
}

int ocsd_server_listen(struct ocsd *d, struct ocs_error *err)
{
	const char *remote = d->config->ocsd.listen;
	bool local = strncmp(d->socket, "unix:", 5) == 0;

	if ((remote || !local) && d->config->ocsd.key) {
		d->server.key = ocs_calloc(1, sizeof(*d->server.key));
		if (ocs_key_read(d->config->ocsd.key, d->server.key, err))
			return ocs_error_prefix(err, "ocsd.key");
	} else if (remote || !local) {
		d->server.auth = ocsd_auth_start(d, ocsd_hello_decoded, err);
		if (!d->server.auth)
			return -1;
	}
	/* whoever waits for the local one finds the other */
	if (remote && strcmp(remote, d->socket) != 0 && listen_on(d, 1, remote, on_remote, err))
		return -1;
	return listen_on(d, 0, d->socket, local ? on_local : on_remote, err);
}

void ocsd_server_close(struct ocsd *d)
{
	bool local = d->server.listeners[0] && strncmp(d->socket, "unix:", 5) == 0;

	for (int i = 0; i < 2; i++) {
		if (d->server.listeners[i])
			evconnlistener_free(d->server.listeners[i]);
		d->server.listeners[i] = NULL;
	}
	ocsd_auth_stop(d->server.auth);
	d->server.auth = NULL;
	if (d->server.key)
		ocs_key_wipe(d->server.key);
	free(d->server.key);
	d->server.key = NULL;
	for (struct ocsd_client *client = d->server.clients; client; client = client->next)
		ocsd_client_lose(client);
	ocsd_server_flush(d);
	if (local)
		unlink(d->socket + 5);
}
