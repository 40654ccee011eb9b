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

struct visitor {
	struct visitor *next; /* an older one */
	struct ocsd_http *http;
	struct bufferevent *stream;
	struct event *end;
};

struct ocsd_http {
	struct ocsd *d;
	const char *path, *type;
	char *(*text)(struct ocsd *d);
	struct evconnlistener *listener;
	struct visitor *visitors;
	int count;
};

static void visitor_free(struct visitor *visitor)
{
	struct visitor **link = &visitor->http->visitors;

	while (*link != visitor)
		link = &(*link)->next;
	*link = visitor->next;
	visitor->http->count--;
	event_free(visitor->end);
	ocsd_stream_free(visitor->stream);
	free(visitor);
}

static void on_end(evutil_socket_t fd, short what, void *context)
{
	(void)fd;
	(void)what;
	visitor_free(context);
}

static void on_event(struct bufferevent *stream, short what, void *context)
{
	(void)stream;
	(void)what;
	visitor_free(context);
}

static void on_written(struct bufferevent *stream, void *context)
{
	(void)stream;
	visitor_free(context);
}

/* What LINE asks for: METHOD PATH HTTP/1.x; a query behind the path does not matter. */
static void answer(struct visitor *visitor, const char *line)
{
	struct evbuffer *output = bufferevent_get_output(visitor->stream);
	const struct ocsd_http *http = visitor->http;
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
	struct visitor *visitor = context;
	char *line;

	/* the empty line behind the headers */
	if (evbuffer_search(input, "\r\n\r\n", 4, NULL).pos < 0 &&
	    evbuffer_search(input, "\n\n", 2, NULL).pos < 0) {
		if (evbuffer_get_length(input) > REQUEST_MAX)
			visitor_free(visitor);
		return;
	}
	line = evbuffer_readln(input, NULL, EVBUFFER_EOL_CRLF);
	answer(visitor, line ? line : "");
	free(line);
	bufferevent_disable(stream, EV_READ);
	bufferevent_setcb(stream, NULL, on_written, on_event, visitor);
}

static void make_room(struct ocsd_http *http)
{
	struct visitor *oldest = http->visitors;

	while (oldest && oldest->next)
		oldest = oldest->next;
	if (oldest)
		visitor_free(oldest);
}

static void on_visitor(struct evconnlistener *listener, evutil_socket_t fd,
		       struct sockaddr *address, int length, void *context)
{
	struct ocsd_http *http = context;
	struct timeval visit = { .tv_sec = VISIT_S };
	struct visitor *visitor = ocs_calloc(1, sizeof(*visitor));

	(void)listener;
	(void)address;
	(void)length;
	if (http->count == VISITORS_MAX)
		make_room(http);
	visitor->http = http;
	visitor->stream = bufferevent_socket_new(http->d->base, fd, BEV_OPT_CLOSE_ON_FREE);
	visitor->end = evtimer_new(http->d->base, on_end, visitor);
	if (!visitor->stream || !visitor->end) {
		ocs_log(OCS_LOG_ERROR, "no memory for a visitor");
		abort();
	}
	visitor->next = http->visitors;
	http->visitors = visitor;
	http->count++;
	event_add(visitor->end, &visit);
	bufferevent_setcb(visitor->stream, on_read, NULL, on_event, visitor);
	bufferevent_enable(visitor->stream, EV_READ | EV_WRITE);
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
	http->listener = ocsd_listener_open(d->base, address, on_visitor, http, err);
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
	while (http->visitors)
		visitor_free(http->visitors);
	free(http);
}
