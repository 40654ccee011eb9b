/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/switch/netconf/session.h"

#include <errno.h>
#include <libxml/tree.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/switch/netconf/ssh.h"
#include "src/util/error.h"
#include "src/util/net.h"

#define MS 1000000LL
/* A server that reads our hello and the first request at once may take both in the framing
 * of hellos, and wait for ever for the end of that request: netconfd does. */
#define HELLO_PAUSE_MS 50
/* At a time, of what a switch says by itself: it may never end, and there is work to do. */
#define LISTEN_READS 64

int64_t ocs_netconf_deadline(const struct ocs_switch_connection *connection)
{
	return ocs_now_ns() + connection->timeout_ms * MS;
}

int ocs_netconf_lose(struct ocs_switch_connection *connection)
{
	struct ocs_netconf *netconf = connection->state;

	if (netconf->ssh)
		ocs_ssh_close(netconf->ssh);
	netconf->ssh = NULL;
	connection->fd = -1;
	ocs_netconf_framer_free(&netconf->framer);
	return OCS_SWITCH_UNKNOWN;
}

/* All that it says, without its markup. */
static void notification_hear(struct ocs_switch_connection *connection,
			      const struct ocs_netconf_message *message)
{
	xmlChar *content = xmlNodeGetContent(xmlDocGetRootElement(message->document));

	ocs_switch_hear(connection, (const char *)content);
	xmlFree(content);
}

/* One message that came in.  1: it is the reply to ID, which MESSAGE now holds; 0:
 * something else, dealt with; -1: the peer makes no sense. */
static int message_sort(struct ocs_switch_connection *connection, const char *data, size_t length,
			unsigned int id, struct ocs_netconf_message *message, struct ocs_error *err)
{
	if (ocs_netconf_parse(data, length, message, err))
		return -1;
	if (message->kind == OCS_NETCONF_REPLY && id && message->has_id && message->id == id) {
		notification_hear(connection, message);
		return 1;
	}
	if (message->kind == OCS_NETCONF_NOTIFICATION)
		ocs_switch_notify(connection, message->notice);
	else
		notification_hear(connection, message);
	if (message->kind == OCS_NETCONF_REPLY && !message->has_id) {
		ocs_error_set(err, OCS_ERROR, "could not read a request: %s%s%s",
			      message->fault.tag, *message->fault.message ? ": " : "",
			      message->fault.message);
		return -1;
	}
	if (message->kind == OCS_NETCONF_OTHER) {
		ocs_error_set(err, OCS_ERROR,
			      "sends a message that is no reply and no notification");
		return -1;
	}
	/* A late or repeated reply is dropped. */
	return 0;
}

/* Feeds what came in.  1 once REPLY is filled, 0, or -1 with ERR. */
static int data_feed(struct ocs_switch_connection *connection, const char *data, size_t length,
		     unsigned int id, struct ocs_netconf_message *reply, struct ocs_error *err)
{
	struct ocs_netconf *netconf = connection->state;
	int found = 0;

	for (;;) {
		struct ocs_netconf_message message;
		size_t message_length;
		char *text;
		int rc = ocs_netconf_framer_take(&netconf->framer, &data, &length, &text,
						 &message_length, err);

		if (rc == 0)
			return found;
		if (rc > 0) {
			rc = message_sort(connection, text, message_length, found ? 0 : id,
					  &message, err);
			free(text);
			if (rc == 1) {
				*reply = message;
				found = 1;
				continue;
			}
			ocs_netconf_message_free(&message);
		}
		if (rc < 0) {
			if (found)
				ocs_netconf_message_free(reply);
			return -1;
		}
	}
}

/* Reads once.  1: LENGTH bytes; 0: the time is over; -1 with ERR. */
static int data_receive(struct ocs_switch_connection *connection, char *data, size_t *length,
			int64_t deadline, struct ocs_error *err)
{
	struct ocs_netconf *netconf = connection->state;
	struct ocs_error why = { 0 };
	long n = ocs_ssh_read(netconf->ssh, data, *length, deadline, &why);

	if (n > 0) {
		*length = (size_t)n;
		return 1;
	}
	if (n < 0 && errno == ETIMEDOUT)
		return 0;
	if (n == 0)
		ocs_error_set(err, OCS_UNREACHABLE, "closed the connection");
	else
		ocs_error_set(err, OCS_UNREACHABLE, "lost: %s", why.text);
	return -1;
}

static int wait_reply(struct ocs_switch_connection *connection, const char *operation,
		      unsigned int id, int64_t deadline, struct ocs_netconf_message *reply,
		      struct ocs_error *err)
{
	char data[16384];

	for (;;) {
		struct ocs_error why = { 0 };
		size_t length = sizeof(data);
		int rc = data_receive(connection, data, &length, deadline, &why);

		if (rc > 0) {
			rc = data_feed(connection, data, length, id, reply, &why);
			if (rc > 0)
				return OCS_SWITCH_OK;
			/* Notifications without end must not hold the deadline up. */
			if (rc == 0 && ocs_now_ns() < deadline)
				continue;
		}
		if (rc == 0)
			ocs_error_set(err, OCS_UNREACHABLE, "did not answer %s within %d ms",
				      operation, connection->timeout_ms);
		else
			ocs_error_set(err, why.code, "%s instead of answering %s", why.text,
				      operation);
		return ocs_netconf_lose(connection);
	}
}

/* Faults that say that a part was done, or that it is not known. */
static bool is_half_done(const struct ocs_netconf_fault *fault)
{
	return !strcmp(fault->tag, "rollback-failed") || !strcmp(fault->tag, "partial-operation");
}

static int reply_judge(const char *operation, const struct ocs_netconf_message *reply,
		       struct ocs_error *err)
{
	const struct ocs_netconf_fault *fault = &reply->fault;
	char session[40] = "";

	if (!reply->failed)
		return OCS_SWITCH_OK;
	if (fault->session)
		snprintf(session, sizeof(session), " (session %lu)", fault->session);
	ocs_error_set(err, OCS_ERROR, "%s %s: %s%s%s%s%s%s%s",
		      is_half_done(fault) ? "did only in part" : "refused", operation,
		      *fault->tag ? fault->tag : "no error-tag", session,
		      *fault->message ? ": " : "", fault->message, *fault->path ? " (" : "",
		      fault->path, *fault->path ? ")" : "");
	return is_half_done(fault) ? OCS_SWITCH_UNKNOWN : OCS_SWITCH_DENIED;
}

int ocs_netconf_execute(struct ocs_switch_connection *connection, const char *operation,
			char *message, struct ocs_netconf_message *reply, struct ocs_error *err)
{
	struct ocs_netconf *netconf = connection->state;
	int64_t deadline = ocs_netconf_deadline(connection);
	struct ocs_error why = { 0 };
	size_t length;
	char *framed;
	int rc;

	memset(reply, 0, sizeof(*reply));
	if (connection->fd < 0) {
		ocs_error_set(err, OCS_UNREACHABLE,
			      "the connection was lost earlier; %s was not sent", operation);
		rc = OCS_SWITCH_UNKNOWN;
	} else if (ocs_netconf_dangerous(message, strlen(message))) {
		ocs_error_set(err, OCS_USAGE,
			      "%s would disturb more than named ports and was not sent", operation);
		rc = OCS_SWITCH_REJECTED;
	} else {
		framed = ocs_netconf_frame(netconf->framer.chunked, message, &length);
		rc = OCS_SWITCH_OK;
		if (ocs_ssh_write(netconf->ssh, framed, length, deadline, &why)) {
			ocs_error_set(err, OCS_UNREACHABLE, "%s could not be sent: %s", operation,
				      why.text);
			rc = ocs_netconf_lose(connection);
		}
		free(framed);
	}
	free(message);
	if (rc == OCS_SWITCH_OK)
		rc = wait_reply(connection, operation, netconf->id, deadline, reply, err);
	if (rc == OCS_SWITCH_OK)
		rc = reply_judge(operation, reply, err);
	return rc;
}

int ocs_netconf_plain(struct ocs_switch_connection *connection, const char *operation,
		      struct ocs_netconf_fault *fault, struct ocs_error *err)
{
	struct ocs_netconf *netconf = connection->state;
	struct ocs_netconf_message reply;
	int rc = ocs_netconf_execute(connection, operation,
				     ocs_netconf_make_plain(++netconf->id, operation), &reply, err);

	if (fault)
		*fault = reply.fault;
	ocs_netconf_message_free(&reply);
	return rc;
}

static int say_hello(struct ocs_netconf *netconf, int64_t deadline, struct ocs_error *err)
{
	char *message = ocs_netconf_make_hello();
	size_t length;
	char *framed = ocs_netconf_frame(false, message, &length);
	int rc = ocs_ssh_write(netconf->ssh, framed, length, deadline, err);

	free(framed);
	free(message);
	return rc;
}

static int exchange_hellos(struct ocs_switch_connection *connection, struct ocs_error *err)
{
	struct ocs_netconf *netconf = connection->state;
	int64_t deadline = ocs_netconf_deadline(connection);
	struct ocs_error why = { 0 };
	char *text = NULL, byte;
	size_t length = 0;
	int rc = say_hello(netconf, deadline, &why);

	/* One byte at a time: behind its hello the framing may change. */
	while (rc == 0) {
		const char *at = &byte;
		size_t one = 1;

		rc = data_receive(connection, &byte, &one, deadline, &why);
		if (rc > 0)
			rc = ocs_netconf_framer_take(&netconf->framer, &at, &one, &text, &length,
						     &why);
		else if (rc == 0)
			rc = ocs_error_set(&why, OCS_UNREACHABLE, "timed out");
	}
	if (rc == 1)
		rc = ocs_netconf_parse_hello(netconf->dialect, text, length, &netconf->hello, &why);
	free(text);
	if (rc == 0)
		return OCS_SWITCH_OK;
	ocs_error_set(err, why.code, "no NETCONF session: %s", why.text);
	return ocs_netconf_lose(connection);
}

int ocs_netconf_begin(struct ocs_switch_connection *connection, struct ocs_error *err)
{
	struct ocs_netconf *netconf = connection->state;
	struct ocs_error why;
	int rc = exchange_hellos(connection, err);

	if (rc != OCS_SWITCH_OK)
		return rc;
	netconf->framer.chunked = netconf->hello.base_1_1;
	if (netconf->framer.chunked)
		poll(NULL, 0, HELLO_PAUSE_MS);
	if (!netconf->hello.writable_running) {
		ocs_error_set(
			err, OCS_ERROR,
			"does not let its running configuration be edited (no :writable-running)");
		return OCS_SWITCH_REJECTED;
	}
	/* A switch that has no stream of events is polled all the same. */
	if (netconf->hello.notifications)
		rc = ocs_netconf_plain(connection, "create-subscription", NULL, &why);
	if (connection->fd >= 0)
		return OCS_SWITCH_OK;
	*err = why;
	return rc;
}

int ocs_netconf_listen(struct ocs_switch_connection *connection, int wait_ms, struct ocs_error *err)
{
	int64_t deadline = ocs_now_ns() + wait_ms * MS;
	char data[16384];

	if (connection->fd < 0) {
		ocs_error_set(err, OCS_UNREACHABLE, "the connection was lost earlier");
		return OCS_SWITCH_UNKNOWN;
	}
	for (int reads = 1;; reads++) {
		size_t length = sizeof(data);
		int rc = data_receive(connection, data, &length, deadline, err);

		if (rc > 0)
			rc = data_feed(connection, data, length, 0, NULL, err);
		else if (rc == 0)
			return OCS_SWITCH_OK;
		if (rc < 0)
			return ocs_netconf_lose(connection);
		if (ocs_now_ns() >= deadline && (wait_ms || reads == LISTEN_READS))
			return OCS_SWITCH_OK;
	}
}
