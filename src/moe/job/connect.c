/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Connections between ranks: addresses, connecting, greetings. */

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "src/moe/job/state.h"

#define RETRY_MS 20
#define GREETING_MS 5000 /* a connection that has not greeted by then is closed */

int64_t ocs_moe_now(void)
{
	struct timespec at;

	clock_gettime(CLOCK_MONOTONIC, &at);
	return (int64_t)at.tv_sec * 1000 + at.tv_nsec / 1000000;
}

int ocs_moe_address_parse(const char *text, struct sockaddr_storage *address)
{
	const char *colon = strrchr(text, ':');
	char host[INET6_ADDRSTRLEN + 2], *end;
	struct sockaddr_in *four = (struct sockaddr_in *)address;
	struct sockaddr_in6 *six = (struct sockaddr_in6 *)address;
	size_t length = colon ? (size_t)(colon - text) : 0;
	long port = colon ? strtol(colon + 1, &end, 10) : 0;

	if (!length || length >= sizeof(host) || port < 1 || port > 65535 || *end)
		return -1;
	memcpy(host, text, length);
	host[length] = '\0';
	memset(address, 0, sizeof(*address));
	if (host[0] == '[' && host[length - 1] == ']') {
		host[length - 1] = '\0';
		six->sin6_family = AF_INET6;
		six->sin6_port = htons((uint16_t)port);
		return inet_pton(AF_INET6, host + 1, &six->sin6_addr) == 1 ? 0 : -1;
	}
	four->sin_family = AF_INET;
	four->sin_port = htons((uint16_t)port);
	return inet_pton(AF_INET, host, &four->sin_addr) == 1 ? 0 : -1;
}

socklen_t ocs_moe_address_size(const struct sockaddr_storage *address)
{
	return address->ss_family == AF_INET6 ? sizeof(struct sockaddr_in6) :
						sizeof(struct sockaddr_in);
}

static int socket_make(int family)
{
	return socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
}

int ocs_moe_listen(const struct sockaddr_storage *address)
{
	int fd = socket_make(address->ss_family), one = 1, saved;

	if (fd < 0)
		return -1;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (!bind(fd, (const struct sockaddr *)address, ocs_moe_address_size(address)) &&
	    !listen(fd, 128))
		return fd;
	saved = errno;
	close(fd);
	errno = saved;
	return -1;
}

struct ocs_moe_conn *ocs_moe_conn_create(int peer, uint32_t link)
{
	struct ocs_moe_conn *conn = calloc(1, sizeof(*conn));

	if (!conn)
		return NULL;
	conn->fd = -1;
	conn->peer = peer;
	conn->link = link;
	for (int k = 0; k < OCS_MOE_HOPS; k++)
		conn->credits[k] = OCS_MOE_CREDITS;
	return conn;
}

static void queue_free(struct ocs_moe *moe, struct ocs_moe_queue *queue)
{
	while (queue->head) {
		struct ocs_moe_item *item = queue->head;

		queue->head = item->next;
		ocs_moe_item_free(moe, item);
	}
	queue->tail = NULL;
}

void ocs_moe_conn_destroy(struct ocs_moe *moe, struct ocs_moe_conn *conn)
{
	if (!conn)
		return;
	ocs_moe_conn_shut(conn);
	queue_free(moe, &conn->words);
	for (int k = 0; k < OCS_MOE_HOPS; k++)
		queue_free(moe, &conn->relay[k]);
	if (conn->out_item)
		ocs_moe_item_free(moe, conn->out_item);
	if (conn->in_relay)
		free(conn->in_data);
	free(conn);
}

struct ocs_moe_conn *ocs_moe_conn_find(const struct ocs_moe *moe, int peer, uint32_t link)
{
	if (link == OCS_MOE_LINK_PACKETS)
		return peer >= 0 && peer < moe->ranks ? moe->conn[peer] : NULL;
	for (int k = moe->ranks; k < moe->conns; k++)
		if (moe->conn[k]->link == link && moe->conn[k]->peer == peer)
			return moe->conn[k];
	return NULL;
}

void ocs_moe_conn_shut(struct ocs_moe_conn *conn)
{
	if (conn->fd >= 0 && conn->link != OCS_MOE_LINK_PACKETS)
		ocs_moe_hush(conn->fd);
	else if (conn->fd >= 0)
		close(conn->fd);
	conn->fd = -1;
}

void ocs_moe_conn_retry(struct ocs_moe_conn *conn)
{
	ocs_moe_conn_shut(conn);
	conn->state = OCS_MOE_RETRYING;
	conn->retry_at = ocs_moe_now() + RETRY_MS;
}

void ocs_moe_conn_start(struct ocs_moe *moe, struct ocs_moe_conn *conn)
{
	struct sockaddr_storage here = conn->here;
	int one = 1;

	conn->fd = socket_make(conn->there.ss_family);
	conn->state = OCS_MOE_CONNECTING;
	/* A circuit is entered by its own NIC; any port of it will do. */
	if (here.ss_family == AF_INET6)
		((struct sockaddr_in6 *)&here)->sin6_port = 0;
	else
		((struct sockaddr_in *)&here)->sin_port = 0;
	if (conn->fd < 0 || setsockopt(conn->fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) ||
	    (here.ss_family == conn->there.ss_family &&
	     bind(conn->fd, (struct sockaddr *)&here, ocs_moe_address_size(&here)))) {
		ocs_moe_conn_retry(conn);
		return;
	}
	if (!connect(conn->fd, (struct sockaddr *)&conn->there, ocs_moe_address_size(&conn->there)))
		ocs_moe_conn_finish(moe, conn);
	else if (errno != EINPROGRESS)
		ocs_moe_conn_retry(conn);
}

static void conn_ready(struct ocs_moe_conn *conn)
{
	int one = 1;

	setsockopt(conn->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	if (conn->link != OCS_MOE_LINK_PACKETS)
		ocs_moe_hush_at_death(conn->fd);
	conn->state = OCS_MOE_UP;
}

void ocs_moe_conn_finish(struct ocs_moe *moe, struct ocs_moe_conn *conn)
{
	struct ocs_moe_greeting greeting = { .magic = OCS_MOE_MAGIC,
					     .version = OCS_MOE_VERSION,
					     .from = (uint32_t)moe->rank,
					     .to = (uint32_t)conn->peer,
					     .ranks = (uint32_t)moe->ranks,
					     .link = conn->link,
					     .chunk = (uint32_t)moe->chunk };
	socklen_t size = sizeof(int);
	int error = 0;

	getsockopt(conn->fd, SOL_SOCKET, SO_ERROR, &error, &size);
	memcpy(greeting.key, moe->key, sizeof(greeting.key));
	/* A new socket has room for a greeting. */
	if (error || send(conn->fd, &greeting, sizeof(greeting), MSG_NOSIGNAL) != sizeof(greeting))
		ocs_moe_conn_retry(conn);
	else
		conn_ready(conn);
}

void ocs_moe_accept(struct ocs_moe *moe, int fd)
{
	while (moe->pendings < OCS_MOE_PENDING) {
		int one = accept4(fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (one < 0)
			return;
		moe->pending[moe->pendings++] =
			(struct ocs_moe_pending){ .fd = one, .since = ocs_moe_now() };
	}
}

/* Whether every byte agrees, in a time that does not tell which. */
static bool key_same(const unsigned char *x, const unsigned char *y)
{
	unsigned char differ = 0;

	for (int k = 0; k < OCS_MOE_KEY; k++)
		differ |= x[k] ^ y[k];
	return !differ;
}

/* The connection that GREETING is for, if it is one of this job. */
static struct ocs_moe_conn *greeting_check(const struct ocs_moe *moe,
					   const struct ocs_moe_greeting *g)
{
	struct ocs_moe_conn *conn;

	if (g->magic != OCS_MOE_MAGIC || g->version != OCS_MOE_VERSION ||
	    !key_same(g->key, moe->key) || g->to != (uint32_t)moe->rank ||
	    g->ranks != (uint32_t)moe->ranks || g->chunk != (uint32_t)moe->chunk ||
	    g->from >= (uint32_t)moe->ranks)
		return NULL;
	conn = ocs_moe_conn_find(moe, (int)g->from, g->link);
	return conn && conn->state == OCS_MOE_LISTENING ? conn : NULL;
}

bool ocs_moe_greet(struct ocs_moe *moe, struct ocs_moe_pending *pending)
{
	size_t size = sizeof(pending->greeting);
	ssize_t got = recv(pending->fd, (char *)&pending->greeting + pending->got,
			   size - pending->got, 0);
	struct ocs_moe_conn *conn = NULL;

	if (got > 0)
		pending->got += (size_t)got;
	if (got > 0 && pending->got < size)
		return false;
	if (got < 0 && (errno == EAGAIN || errno == EINTR) &&
	    ocs_moe_now() - pending->since < GREETING_MS)
		return false;
	if (got > 0)
		conn = greeting_check(moe, &pending->greeting);
	if (conn) {
		conn->fd = pending->fd;
		conn_ready(conn);
	} else {
		close(pending->fd);
		moe->stats.strangers++;
	}
	return true;
}
