/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Clients: who they are, their lines in, their lines out. */

#include "src/ocsd/auth.h"
#include "src/ocsd/limit.h"
#include "src/ocsd/metrics.h"
#include "src/ocsd/request.h"
#include "src/ocsd/server.h"
#include "src/ocsd/transaction.h"
#include "src/ocsd/wait.h"

#include "src/util/net.h"
#include "src/util/secret.h"
#include "src/util/text.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/listener.h>
#include <json-c/json.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define REQUEST_MAX (1U << 20)
#define UNREAD_MAX (64U << 20) /* a client that does not read is dropped */
#define CLIENTS_MAX 16384
#define HELLO_SECONDS 20
#define CHALLENGE_BYTES 16

struct ocsd_client {
	struct ocsd_client *next;
	struct ocsd *d;
	struct bufferevent *stream;
	struct evbuffer *held;	/* lines that wait for the database */
	uint64_t serial;
	uid_t uid;
	bool known;		/* uid is proven */
	bool asked;		/* its credential is being decoded */
	bool subscribed;
	uint64_t term;		/* of a slurmctld, 0: somebody else */
	bool lost;		/* to be freed at the next flush */
	struct ocsd_guest *guest; /* whose tokens it spends; NULL: an administrator's */
	bool surplus;		/* one connection too many: one answer, and it ends */
	bool paused;		/* not listened to for a while */
	struct event *resume;
	int64_t hello_id;
	char challenge[2 * CHALLENGE_BYTES + 1];
	struct ocs_seal seal;	/* remote, once it is known */
};

uid_t ocsd_client_uid(const struct ocsd_client *client)
{
	return client->uid;
}

void ocsd_client_subscribe(struct ocsd_client *client)
{
	client->subscribed = true;
}

uint64_t ocsd_term_newest(const struct ocsd *d)
{
	uint64_t newest = 0;

	for (const struct ocsd_client *client = d->clients; client; client = client->next)
		if (!client->lost && client->term > newest)
			newest = client->term;
	return newest;
}

bool ocsd_subscribed(const struct ocsd *d)
{
	for (const struct ocsd_client *client = d->clients; client; client = client->next)
		if (client->subscribed && !client->lost)
			return true;
	return false;
}

bool ocsd_admin(const struct ocsd *d, uid_t uid)
{
	for (size_t i = 0; i < d->nadmins; i++)
		if (d->admins[i] == uid)
			return true;
	return false;
}

/* Queues a line and puts LINE. */
static void say(struct ocsd_client *client, struct json_object *line)
{
	const char *text = json_object_to_json_string_ext(line, JSON_C_TO_STRING_PLAIN |
							  JSON_C_TO_STRING_NOSLASHESCAPE);

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

void ocsd_answer(struct ocsd *d, struct ocsd_client *client, int64_t id,
		 struct json_object *reply)
{
	if (d->transactions)
		ocsd_transaction_answer(d, client, id, reply);
	json_object_object_add(reply, "id", json_object_new_int64(id));
	say(client, reply);
}

void ocsd_reply(struct ocsd_client *client, int64_t id, struct json_object *reply)
{
	if (!reply)
		reply = json_object_new_object();
	json_object_object_add(reply, "ok", json_object_new_boolean(true));
	ocsd_answer(client->d, client, id, reply);
}

void ocsd_refuse(struct ocsd_client *client, int64_t id, int code,
		 struct json_object *extra, const char *format, ...)
{
	char text[OCS_ERROR_TEXT];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (!extra)
		extra = json_object_new_object();
	json_object_object_add(extra, "ok", json_object_new_boolean(false));
	json_object_object_add(extra, "code", json_object_new_int(code));
	json_object_object_add(extra, "error", json_object_new_string(text));
	ocsd_answer(client->d, client, id, extra);
}

void ocsd_event_send(struct ocsd *d, struct json_object *event)
{
	for (struct ocsd_client *client = d->clients; client; client = client->next)
		if (client->subscribed)
			say(client, json_object_get(event));
	json_object_put(event);
}

static void lose(struct ocsd_client *client)
{
	if (client->lost)
		return;
	client->lost = true;
	client->subscribed = false;
	ocsd_wait_client_lost(client->d, client);
	ocsd_transactions_lost(client->d, client);
	bufferevent_disable(client->stream, EV_READ | EV_WRITE);
}

void ocsd_term_set(struct ocsd_client *client, uint64_t term)
{
	client->term = term;
	for (struct ocsd_client *other = client->d->clients; other; other = other->next) {
		if (!other->term || other->term >= term)
			continue;
		if (!other->lost)
			ocs_log(OCS_LOG_WARNING, "another slurmctld is in charge now: the one before is dropped");
		lose(other);
	}
}

static void client_free(struct ocsd_client *client)
{
	ocsd_guest_leave(client->guest);
	if (client->resume)
		event_free(client->resume);
	bufferevent_free(client->stream);
	evbuffer_free(client->held);
	client->d->nclients--;
	free(client);
}

void ocsd_server_flush(struct ocsd *d)
{
	struct ocsd_client **link = &d->clients;

	while (*link) {
		struct ocsd_client *client = *link;

		if (client->lost) {
			*link = client->next;
			client_free(client);
			continue;
		}
		if (evbuffer_get_length(client->held))
			bufferevent_write_buffer(client->stream, client->held);
		if (evbuffer_get_length(bufferevent_get_output(client->stream)) > UNREAD_MAX) {
			ocs_log(OCS_LOG_WARNING, "a client of uid %u does not read; dropped",
				(unsigned int)client->uid);
			lose(client);
			continue; /* freed in this loop's next round */
		}
		link = &client->next;
	}
}

/* CLIENT is UID.  Who has far too many connections is not even answered. */
static void know(struct ocsd_client *client, uid_t uid)
{
	int surplus;

	client->uid = uid;
	client->known = true;
	client->guest = ocsd_guest_enter(client->d, uid);
	surplus = ocsd_guest_surplus(client->d, client->guest);
	client->surplus = surplus > 0;
	if (surplus > client->d->fabric->connections_max)
		lose(client);
}

static void welcome(struct ocsd_client *client, uid_t uid, const char *session)
{
	struct json_object *reply = json_object_new_object();

	know(client, uid);
	ocs_seal_start(&client->seal, session, true);
	bufferevent_set_timeouts(client->stream, NULL, NULL);
	json_object_object_add(reply, "uid", json_object_new_int64(uid));
	ocsd_reply(client, client->hello_id, reply);
}

/* Who holds the key may say who it is: root and daemons, as with Slurm's own key. */
static void hello_key(struct ocsd_client *client, struct json_object *request)
{
	const struct ocs_key *key = client->d->key;
	const char *nonce = ocsd_member(request, "nonce"), *proof = ocsd_member(request, "proof");
	char right[OCS_MAC_HEX + 1], session[OCS_MAC_HEX + 1], number[16];
	struct json_object *uid;

	if (!nonce || !proof || !json_object_object_get_ex(request, "uid", &uid)) {
		lose(client);
		return;
	}
	snprintf(number, sizeof(number), "%u", (unsigned int)json_object_get_int64(uid));
	ocs_key_prove(key->bytes, key->length, right, "hello", client->challenge, nonce, number,
		      NULL);
	client->asked = false;
	if (!ocs_same_secret(right, proof)) {
		ocs_log(OCS_LOG_WARNING, "a remote client is refused: it does not hold the key");
		ocsd_refuse(client, client->hello_id, OCS_ERROR, NULL,
			    "the proof is refused: ocsd has another key than this host");
		return;
	}
	ocs_key_prove(key->bytes, key->length, session, "session", client->challenge, nonce,
		      number, NULL);
	welcome(client, (uid_t)json_object_get_int64(uid), session);
	explicit_bzero(session, sizeof(session));
}

static void hello(struct ocsd_client *client, struct json_object *request)
{
	const char *op = ocsd_member(request, "op");
	const char *credential = ocsd_member(request, "credential");
	bool by_key = client->d->key;
	struct json_object *id = NULL;

	if (!op || strcmp(op, "hello") != 0 || (!by_key && !credential) || client->asked) {
		lose(client);
		return;
	}
	json_object_object_get_ex(request, "id", &id);
	client->hello_id = json_object_get_int64(id);
	client->asked = true;
	if (by_key)
		hello_key(client, request);
	else
		ocsd_auth_ask(client->d->auth, client->serial, credential);
}

/* PAYLOAD: the challenge, a blank, and the key of the session. */
static void on_credential(struct ocsd *d, uint64_t serial, const char *payload,
			  uid_t uid, const char *error)
{
	struct ocsd_client *client = d->clients;
	size_t length;

	while (client && client->serial != serial)
		client = client->next;
	if (!client || client->lost)
		return;
	length = strlen(client->challenge);
	if (!payload || strlen(payload) != length + 1 + OCS_MAC_HEX || payload[length] != ' ' ||
	    strncmp(payload, client->challenge, length) != 0) {
		ocs_log(OCS_LOG_WARNING, "a remote client is refused: %s",
			error ? error : "its credential answers another challenge");
		ocsd_refuse(client, client->hello_id, OCS_ERROR, NULL,
			    "the MUNGE credential is refused: %s",
			    error ? error : "it answers another challenge");
		client->asked = false; /* a second hello may do better */
		return;
	}
	welcome(client, uid, payload + length + 1);
}

static void on_event(struct bufferevent *stream, short what, void *context)
{
	(void)stream;
	(void)what;
	lose(context);
}

static void on_drained(struct bufferevent *stream, void *context)
{
	(void)stream;
	lose(context);
}

static void on_resume(evutil_socket_t fd, short what, void *context);

/* Not another line of CLIENT is read for MS. */
static void pause_client(struct ocsd_client *client, int ms)
{
	struct timeval delay = { .tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000 };

	if (!client->resume)
		client->resume = evtimer_new(client->d->base, on_resume, client);
	client->paused = true;
	bufferevent_disable(client->stream, EV_READ);
	event_add(client->resume, &delay);
}

/* Whether REQUEST is more than CLIENT's user may ask; answers it then. */
static bool too_much(struct ocsd_client *client, struct json_object *request)
{
	struct json_object *id = NULL, *extra;
	int ms = client->surplus ? 0 : ocsd_guest_wait_ms(client->d, client->guest);

	if (!client->surplus && !ms)
		return false;
	json_object_object_get_ex(request, "id", &id);
	ocsd_metrics_limited(client->d->metrics);
	if (client->surplus) {
		ocsd_refuse(client, json_object_get_int64(id), OCS_NOT_NOW, NULL,
			    "busy: user %u has more than %d connections to ocsd; close some",
			    (unsigned int)client->uid, client->d->fabric->connections_max);
		bufferevent_setcb(client->stream, NULL, on_drained, on_event, client);
		bufferevent_disable(client->stream, EV_READ);
		client->paused = true;
		return true;
	}
	extra = json_object_new_object();
	json_object_object_add(extra, "retry_ms", json_object_new_int(ms));
	ocsd_refuse(client, json_object_get_int64(id), OCS_NOT_NOW, extra,
		    "busy, try again in %d ms", ms);
	pause_client(client, ms);
	return true;
}

static void on_line(struct ocsd_client *client, const char *line)
{
	struct json_object *request;

	if (client->seal.on) {
		line = ocs_seal_open(&client->seal, line);
		if (!line) {
			ocs_log(OCS_LOG_WARNING, "a line of uid %u is not what it sent; dropped",
				(unsigned int)client->uid);
			lose(client);
			return;
		}
	}
	request = json_tokener_parse(line);
	if (client->guest && too_much(client, request)) {
		/* answered */
	} else if (!json_object_is_type(request, json_type_object)) {
		ocsd_refuse(client, 0, OCS_USAGE, NULL, "a request is one JSON object on a line");
		if (!client->known)
			lose(client);
	} else if (client->known) {
		ocsd_request(client->d, client, request);
	} else {
		hello(client, request);
	}
	json_object_put(request);
}

static void on_read(struct bufferevent *stream, void *context)
{
	struct ocsd_client *client = context;
	struct evbuffer *input = bufferevent_get_input(stream);
	char *line;

	while (!client->lost && !client->paused && (line = evbuffer_readln(input, NULL, EVBUFFER_EOL_LF))) {
		if (*line)
			on_line(client, line);
		free(line);
	}
	if (!client->lost && !client->paused && evbuffer_get_length(input) >= REQUEST_MAX) {
		ocs_log(OCS_LOG_WARNING, "a client of uid %u sent a line over %u bytes; dropped",
			(unsigned int)client->uid, REQUEST_MAX);
		lose(client);
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

static struct ocsd_client *client_new(struct ocsd *d, evutil_socket_t fd)
{
	static uint64_t serial;
	struct ocsd_client *client;

	if (d->nclients >= CLIENTS_MAX) {
		ocs_log(OCS_LOG_WARNING, "more than %d clients: one is turned away",
			CLIENTS_MAX);
		close(fd);
		return NULL;
	}
	client = ocs_calloc(1, sizeof(*client));
	client->d = d;
	client->serial = ++serial;
	client->uid = (uid_t)-1;
	client->held = evbuffer_new();
	client->stream = bufferevent_socket_new(d->base, fd, BEV_OPT_CLOSE_ON_FREE);
	if (!client->stream || !client->held) {
		ocs_log(OCS_LOG_ERROR, "no memory for a client");
		abort();
	}
	bufferevent_setcb(client->stream, on_read, NULL, on_event, client);
	bufferevent_setwatermark(client->stream, EV_READ, 0, REQUEST_MAX);
	client->next = d->clients;
	d->clients = client;
	d->nclients++;
	return client;
}

static void on_local(struct evconnlistener *listener, evutil_socket_t fd,
		     struct sockaddr *address, int length, void *context)
{
	struct ocsd_client *client;
	struct ucred who;
	socklen_t size = sizeof(who);

	(void)listener;
	(void)address;
	(void)length;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size)) {
		ocs_log(OCS_LOG_ERROR, "SO_PEERCRED: %s", strerror(errno));
		close(fd);
		return;
	}
	client = client_new(context, fd);
	if (!client)
		return;
	know(client, who.uid);
	if (client->lost)
		return;
	bufferevent_enable(client->stream, EV_READ | EV_WRITE);
}

static void on_remote(struct evconnlistener *listener, evutil_socket_t fd,
		      struct sockaddr *address, int length, void *context)
{
	struct timeval patience = { .tv_sec = HELLO_SECONDS };
	struct ocsd_client *client;
	struct json_object *line;
	struct ocs_error err;
	int one = 1;

	(void)listener;
	(void)address;
	(void)length;
	client = client_new(context, fd);
	if (!client)
		return;
	if (ocs_random_hex(client->challenge, CHALLENGE_BYTES, &err)) {
		ocs_log(OCS_LOG_ERROR, "%s", err.text);
		lose(client);
		return;
	}
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	/* A node that died must not keep its apply waiting for ever. */
	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one));
	bufferevent_set_timeouts(client->stream, &patience, NULL);
	bufferevent_enable(client->stream, EV_READ | EV_WRITE);
	line = json_object_new_object();
	json_object_object_add(line, "challenge",
			       json_object_new_string(client->challenge));
	json_object_object_add(line, "uid", json_object_new_int64(geteuid()));
	json_object_object_add(line, "key", json_object_new_boolean(client->d->key != NULL));
	say(client, line);
}

static void on_accept_error(struct evconnlistener *listener, void *context)
{
	(void)listener;
	(void)context;
	ocs_log(OCS_LOG_ERROR, "accept: %s", strerror(errno));
}

static int listen_on(struct ocsd *d, int slot, const char *address,
		     evconnlistener_cb callback, struct ocs_error *err)
{
	int fd = ocs_net_listen(address, err);

	if (fd < 0)
		return -1;
	/* Everybody may connect; what they may do is decided by uid. */
	if (strncmp(address, "unix:", 5) == 0 && chmod(address + 5, 0666)) {
		close(fd);
		return ocs_error_set(err, OCS_ERROR, "%s: %s", address, strerror(errno));
	}
	d->listeners[slot] = evconnlistener_new(d->base, callback, d,
						LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC,
						0, fd);
	if (!d->listeners[slot]) {
		close(fd);
		return ocs_error_set(err, OCS_ERROR, "%s: cannot listen", address);
	}
	evconnlistener_set_error_cb(d->listeners[slot], on_accept_error);
	ocs_log(OCS_LOG_INFO, "listening on %s", address);
	return 0;
}

int ocsd_server_listen(struct ocsd *d, struct ocs_error *err)
{
	const char *remote = d->fabric->ocsd_listen;
	bool local = strncmp(d->socket, "unix:", 5) == 0;

	if ((remote || !local) && d->fabric->ocsd_key) {
		d->key = ocs_calloc(1, sizeof(*d->key));
		if (ocs_key_read(d->fabric->ocsd_key, d->key, err))
			return ocs_error_prefix(err, "ocsd.key");
	} else if (remote || !local) {
		d->auth = ocsd_auth_start(d, on_credential, err);
		if (!d->auth)
			return -1;
	}
	if (listen_on(d, 0, d->socket, local ? on_local : on_remote, err))
		return -1;
	if (remote && strcmp(remote, d->socket) != 0 &&
	    listen_on(d, 1, remote, on_remote, err))
		return -1;
	if (d->fabric->ocsd_metrics)
		return ocsd_metrics_listen(d, d->fabric->ocsd_metrics, err);
	return 0;
}

void ocsd_server_close(struct ocsd *d)
{
	for (int i = 0; i < 2; i++)
		if (d->listeners[i])
			evconnlistener_free(d->listeners[i]);
	ocsd_auth_stop(d->auth);
	d->auth = NULL;
	if (d->key)
		ocs_key_wipe(d->key);
	free(d->key);
	d->key = NULL;
	for (struct ocsd_client *client = d->clients; client; client = client->next)
		lose(client);
	ocsd_server_flush(d);
	if (d->listeners[0] && strncmp(d->socket, "unix:", 5) == 0)
		unlink(d->socket + 5);
}
