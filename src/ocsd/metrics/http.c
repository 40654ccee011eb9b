/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/ocsd/metrics/http.h"

#include "src/ocsd/protocol/listener.h"
#include "src/ocsd/state/ocsd.h"
#include "src/util/text.h"

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <stdlib.h>
#include <string.h>

#define VISITORS_MAX 32
#define VISIT_S 5 /* for request and answer together */
#define REQUEST_MAX 8192

struct http_connection {
	struct http_connection *next; /* an older one */
	struct ocsd_http *http;
	struct bufferevent *stream;
	struct event *end;
};

struct ocsd_http {
	struct ocsd *d;
	const char *path, *type;
	char *(*text)(struct ocsd *d);
	struct evconnlistener *listener;
	struct http_connection *connections;
	int count;
};

static void connection_free(struct http_connection *connection)
{
	struct http_connection **link = &connection->http->connections;

	while (*link != connection)
		link = &(*link)->next;
	*link = connection->next;
	connection->http->count--;
	event_free(connection->end);
	ocsd_stream_free(connection->stream);
	free(connection);
}

static void on_end(evutil_socket_t fd, short what, void *context)
{
	(void)fd;
	(void)what;
	connection_free(context);
}

static void on_event(struct bufferevent *stream, short what, void *context)
{
	(void)stream;
	(void)what;
	connection_free(context);
}

static void on_written(struct bufferevent *stream, void *context)
{
	(void)stream;
	connection_free(context);
}

/* What LINE asks for: METHOD PATH HTTP/1.x; a query behind the path does not matter. */
static void request_answer(struct http_connection *connection, const char *line)
{
	struct evbuffer *output = bufferevent_get_output(connection->stream);
	const struct ocsd_http *http = connection->http;
	bool head = strncmp(line, "HEAD ", 5) == 0, get = strncmp(line, "GET ", 4) == 0;
	const char *path = line + strcspn(line, " "), *status = "200 OK", *type = http->type;
	size_t length = strlen(http->path);
	char *body;

	path += *path == ' ';
	if (!head && !get) {
		status = "405 Method Not Allowed";
		body = ocs_strdup("only GET and HEAD are answered\n");
	} else if (strncmp(path, http->path, length) != 0 || !strchr(" ?", path[length])) {
		status = "404 Not Found";
		body = ocs_asprintf("only %s is here\n", http->path);
	} else {
		body = http->text(http->d);
	}
	if (*status != '2')
		type = "text/plain; charset=utf-8";
	evbuffer_add_printf(output,
			    "HTTP/1.1 %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\n"
			    "Connection: close\r\n\r\n%s",
			    status, type, strlen(body), head ? "" : body);
	free(body);
}

static void on_read(struct bufferevent *stream, void *context)
{
	struct evbuffer *input = bufferevent_get_input(stream);
	struct http_connection *connection = context;
	char *line;

	/* the empty line behind the headers */
	if (evbuffer_search(input, "\r\n\r\n", 4, NULL).pos < 0 &&
	    evbuffer_search(input, "\n\n", 2, NULL).pos < 0) {
		if (evbuffer_get_length(input) > REQUEST_MAX)
			connection_free(connection);
		return;
	}
	line = evbuffer_readln(input, NULL, EVBUFFER_EOL_CRLF);
	request_answer(connection, line ? line : "");
	free(line);
	bufferevent_disable(stream, EV_READ);
	bufferevent_setcb(stream, NULL, on_written, on_event, connection);
}

static void make_room(struct ocsd_http *http)
{
	struct http_connection *oldest = http->connections;

	while (oldest && oldest->next)
		oldest = oldest->next;
	if (oldest)
		connection_free(oldest);
}

static void on_connection(struct evconnlistener *listener, evutil_socket_t fd,
			  struct sockaddr *address, int length, void *context)
{
	struct ocsd_http *http = context;
	struct timeval limit = { .tv_sec = VISIT_S };
	struct http_connection *connection = ocs_calloc(1, sizeof(*connection));

	(void)listener;
	(void)address;
	(void)length;
	if (http->count == VISITORS_MAX)
		make_room(http);
	connection->http = http;
	connection->stream = bufferevent_socket_new(http->d->loop.base, fd, BEV_OPT_CLOSE_ON_FREE);
	connection->end = evtimer_new(http->d->loop.base, on_end, connection);
	if (!connection->stream || !connection->end) {
		ocs_log(OCS_LOG_ERROR, "no memory for a connection");
		abort();
	}
	connection->next = http->connections;
	http->connections = connection;
	http->count++;
	event_add(connection->end, &limit);
	bufferevent_setcb(connection->stream, on_read, NULL, on_event, connection);
	bufferevent_enable(connection->stream, EV_READ | EV_WRITE);
}

struct ocsd_http *ocsd_http_open(struct ocsd *d, const char *address, const char *path,
				 const char *type, char *(*text)(struct ocsd *d),
				 struct ocs_error *err)
{
	struct ocsd_http *http = ocs_calloc(1, sizeof(*http));

	http->d = d;
	http->path = path;
	http->type = type;
	http->text = text;
	http->listener = ocsd_listener_open(d->loop.base, address, on_connection, http, err);
	if (http->listener)
		return http;
	free(http);
	return NULL;
}

void ocsd_http_close(struct ocsd_http *http)
{
	if (!http)
		return;
	evconnlistener_free(http->listener);
	while (http->connections)
		connection_free(http->connections);
	free(http);
}
