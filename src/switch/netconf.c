/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* The NETCONF driver: one request at a time on an SSH channel, its reply found by
 * message-id, notifications passed on. */

#include <errno.h>
#include <libxml/parser.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/switch/driver.h"
#include "src/switch/netconf.h"
#include "src/switch/ssh.h"
#include "src/util/error.h"
#include "src/util/net.h"
#include "src/util/text.h"

#define MS 1000000LL
#define BATCH_MAX 1024		/* patches in one edit */
#define LOCK_PAUSE_MS 50
#define PENDING_PAUSE_MS 20

struct netconf {
	const struct ocs_netconf_dialect *dialect;
	struct ocs_ssh *ssh;
	struct ocs_netconf_framer framer;
	struct ocs_netconf_hello hello;
	unsigned int id;
	bool no_locks;		/* the switch knows none */
};

static int64_t deadline_of(const struct ocs_switch_connection *connection)
{
	return ocs_now_ns() + connection->timeout_ms * MS;
}

/* After this nobody knows what the switch does with what it was sent. */
static int lose(struct ocs_switch_connection *connection)
{
	struct netconf *netconf = connection->state;

	if (netconf->ssh)
		ocs_ssh_close(netconf->ssh);
	netconf->ssh = NULL;
	connection->fd = -1;
	ocs_netconf_framer_free(&netconf->framer);
	return OCS_SWITCH_UNKNOWN;
}

/* One message that came in.  1: it is the reply to ID, which MESSAGE now holds; 0:
 * something else, dealt with; -1: the peer makes no sense. */
static int sort(struct ocs_switch_connection *connection, const char *data, size_t length,
		unsigned int id, struct ocs_netconf_message *message, struct ocs_error *err)
{
	if (ocs_netconf_parse(data, length, message, err))
		return -1;
	if (message->kind == OCS_NETCONF_REPLY && id && message->has_id && message->id == id)
		return 1;
	if (message->kind == OCS_NETCONF_NOTIFICATION && connection->notice)
		connection->notice(connection->context, message->notice);
	if (message->kind == OCS_NETCONF_REPLY && !message->has_id) {
		ocs_error_set(err, OCS_ERROR, "could not read a request: %s%s%s",
			      message->fault.tag, *message->fault.message ? ": " : "",
			      message->fault.message);
		return -1;
	}
	if (message->kind == OCS_NETCONF_OTHER) {
		ocs_error_set(err, OCS_ERROR, "sends a message that is no reply and no notification");
		return -1;
	}
	/* A late or repeated reply is dropped. */
	return 0;
}

/* Feeds what came in.  1 once REPLY is filled, 0, or -1 with ERR. */
static int feed(struct ocs_switch_connection *connection, const char *data, size_t length,
		unsigned int id, struct ocs_netconf_message *reply, struct ocs_error *err)
{
	struct netconf *netconf = connection->state;
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
			rc = sort(connection, text, message_length, found ? 0 : id, &message, err);
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
static int receive(struct ocs_switch_connection *connection, char *data, size_t *length,
		   int64_t deadline, struct ocs_error *err)
{
	struct netconf *netconf = connection->state;
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
		int rc = receive(connection, data, &length, deadline, &why);

		if (rc > 0) {
			rc = feed(connection, data, length, id, reply, &why);
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
		return lose(connection);
	}
}

/* Faults that say that a part was done, or that nobody knows. */
static bool is_half_done(const struct ocs_netconf_fault *fault)
{
	return !strcmp(fault->tag, "rollback-failed") ||
	       !strcmp(fault->tag, "partial-operation");
}

static int judge(const char *operation, const struct ocs_netconf_message *reply,
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
		      *fault->message ? ": " : "", fault->message,
		      *fault->path ? " (" : "", fault->path, *fault->path ? ")" : "");
	return is_half_done(fault) ? OCS_SWITCH_UNKNOWN : OCS_SWITCH_DENIED;
}

/* Sends MESSAGE (freed here), which carries the id given out last, and waits for
 * its reply; the caller frees REPLY, whatever the result. */
static int execute(struct ocs_switch_connection *connection, const char *operation,
		   char *message, struct ocs_netconf_message *reply, struct ocs_error *err)
{
	struct netconf *netconf = connection->state;
	int64_t deadline = deadline_of(connection);
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
			rc = lose(connection);
		}
		free(framed);
	}
	free(message);
	if (rc == OCS_SWITCH_OK)
		rc = wait_reply(connection, operation, netconf->id, deadline, reply, err);
	if (rc == OCS_SWITCH_OK)
		rc = judge(operation, reply, err);
	return rc;
}

static int plain(struct ocs_switch_connection *connection, const char *operation,
		 struct ocs_netconf_fault *fault, struct ocs_error *err)
{
	struct netconf *netconf = connection->state;
	struct ocs_netconf_message reply;
	int rc = execute(connection, operation,
			 ocs_netconf_make_plain(++netconf->id, operation), &reply, err);

	if (fault)
		*fault = reply.fault;
	ocs_netconf_message_free(&reply);
	return rc;
}

static int exchange_hellos(struct ocs_switch_connection *connection, struct ocs_error *err)
{
	struct netconf *netconf = connection->state;
	int64_t deadline = deadline_of(connection);
	char *message = ocs_netconf_make_hello(), *text = NULL, byte;
	struct ocs_error why = { 0 };
	size_t length, one;
	const char *at;
	int rc;

	at = ocs_netconf_frame(false, message, &length);
	rc = ocs_ssh_write(netconf->ssh, at, length, deadline, &why);
	free((char *)at);
	free(message);
	/* One byte at a time: behind its hello the framing may change. */
	while (rc == 0) {
		one = 1;
		rc = receive(connection, &byte, &one, deadline, &why);
		if (rc == 0)
			ocs_error_set(&why, OCS_UNREACHABLE, "timed out");
		if (rc <= 0) {
			rc = -1;
			break;
		}
		at = &byte;
		rc = ocs_netconf_framer_take(&netconf->framer, &at, &one, &text, &length, &why);
	}
	if (rc == 1)
		rc = ocs_netconf_parse_hello(netconf->dialect, text, length, &netconf->hello, &why);
	free(text);
	if (rc == 0)
		return OCS_SWITCH_OK;
	ocs_error_set(err, why.code, "no NETCONF session: %s", why.text);
	return lose(connection);
}

static int begin_session(struct ocs_switch_connection *connection, struct ocs_error *err)
{
	struct netconf *netconf = connection->state;
	struct ocs_error why;
	int rc = exchange_hellos(connection, err);

	if (rc != OCS_SWITCH_OK)
		return rc;
	netconf->framer.chunked = netconf->hello.base_1_1;
	if (!netconf->hello.writable_running) {
		ocs_error_set(err, OCS_ERROR,
			      "does not let its running configuration be edited (no :writable-running)");
		return OCS_SWITCH_REJECTED;
	}
	/* A switch that has no stream of events is polled all the same. */
	if (netconf->hello.notifications)
		rc = plain(connection, "create-subscription", NULL, &why);
	if (connection->fd >= 0)
		return OCS_SWITCH_OK;
	*err = why;
	return rc;
}

static pthread_once_t once = PTHREAD_ONCE_INIT;

static int netconf_open(struct ocs_switch_connection *connection, struct ocs_error *err)
{
	const struct ocs_switch *description = connection->description;
	struct netconf *netconf = ocs_calloc(1, sizeof(*netconf));
	struct ocs_credentials credentials;
	struct ocs_ssh_target target = {
		.address = description->address, .name = description->name,
		.host_key = description->host_key, .known_hosts = description->known_hosts,
		.credentials = &credentials, .subsystem = "netconf",
	};

	connection->state = netconf;
	pthread_once(&once, xmlInitParser);
	netconf->dialect = ocs_netconf_dialect_find(description->dialect);
	if (!netconf->dialect) {
		ocs_error_set(err, OCS_USAGE,
			      "unknown NETCONF dialect '%s'; polatis and ocp are known",
			      description->dialect);
		return OCS_SWITCH_REJECTED;
	}
	if (!description->credentials) {
		ocs_error_set(err, OCS_USAGE, "has no credentials, and SSH needs a login");
		return OCS_SWITCH_REJECTED;
	}
	if (ocs_credentials_read_ssh(description->credentials, &credentials, err))
		return OCS_SWITCH_REJECTED;
	netconf->ssh = ocs_ssh_open(&target, connection->timeout_ms, err);
	ocs_credentials_wipe(&credentials);
	if (!netconf->ssh)
		return OCS_SWITCH_UNKNOWN;
	connection->fd = ocs_ssh_descriptor(netconf->ssh);
	return begin_session(connection, err);
}

static void netconf_close(struct ocs_switch_connection *connection)
{
	struct netconf *netconf = connection->state;

	if (!netconf)
		return;
	if (connection->fd >= 0 && netconf->hello.session) {
		char *message = ocs_netconf_make_plain(++netconf->id, "close-session");
		size_t length;
		char *framed = ocs_netconf_frame(netconf->framer.chunked, message, &length);

		/* A courtesy: the answer does not matter. */
		ocs_ssh_write(netconf->ssh, framed, length, ocs_now_ns() + 100 * MS, NULL);
		free(framed);
		free(message);
	}
	lose(connection);
	free(netconf);
	connection->state = NULL;
}

static int read_list(struct ocs_switch_connection *connection,
		     const struct ocs_netconf_list *list, bool values,
		     struct ocs_netconf_message *reply, struct ocs_error *err)
{
	struct netconf *netconf = connection->state;
	const char *operation = list == &netconf->dialect->patches && !list->state ?
				"get-config" : "get";

	return execute(connection, operation,
		       ocs_netconf_make_read(++netconf->id, netconf->dialect, list, values),
		       reply, err);
}

static int netconf_read_size(struct ocs_switch_connection *connection, int *size,
			     struct ocs_error *err)
{
	struct netconf *netconf = connection->state;
	struct ocs_netconf_message reply;
	int rc = read_list(connection, &netconf->dialect->status, false, &reply, err);

	if (rc == OCS_SWITCH_OK &&
	    ocs_netconf_parse_size(netconf->dialect, &reply, size, err))
		rc = OCS_SWITCH_UNKNOWN;
	ocs_netconf_message_free(&reply);
	return rc;
}

static int netconf_read_table(struct ocs_switch_connection *connection,
			      struct ocs_table *table, struct ocs_error *err)
{
	struct netconf *netconf = connection->state;
	int64_t deadline = deadline_of(connection);

	for (;;) {
		struct ocs_netconf_message reply;
		int pending = 0;
		int rc = read_list(connection, &netconf->dialect->patches, true, &reply, err);

		if (rc == OCS_SWITCH_OK &&
		    ocs_netconf_parse_table(netconf->dialect, &reply, table, &pending, err))
			rc = OCS_SWITCH_UNKNOWN;
		ocs_netconf_message_free(&reply);
		if (rc != OCS_SWITCH_OK || !pending)
			return rc;
		if (ocs_now_ns() >= deadline) {
			ocs_error_set(err, OCS_ERROR,
				      "still has %d patches that are about to come or go after %d ms",
				      pending, connection->timeout_ms);
			return OCS_SWITCH_UNKNOWN;
		}
		memset(table->out, 0, ((size_t)table->size + 1) * sizeof(*table->out));
		poll(NULL, 0, PENDING_PAUSE_MS);
	}
}

/* Another manager may hold the configuration for a moment. */
static int lock(struct ocs_switch_connection *connection, bool *locked, struct ocs_error *err)
{
	struct netconf *netconf = connection->state;
	int64_t deadline = deadline_of(connection);

	*locked = false;
	while (!netconf->no_locks) {
		struct ocs_netconf_fault fault;
		int rc = plain(connection, "lock", &fault, err);

		*locked = rc == OCS_SWITCH_OK;
		if (rc != OCS_SWITCH_DENIED)
			return rc;
		if (!strcmp(fault.tag, "operation-not-supported")) {
			netconf->no_locks = true;
		} else if (strcmp(fault.tag, "lock-denied") || ocs_now_ns() >= deadline) {
			connection->blame = OCS_BLAME_SWITCH;
			return rc;
		} else {
			poll(NULL, 0, LOCK_PAUSE_MS);
		}
	}
	return OCS_SWITCH_OK;
}

static enum ocs_switch_blame blame(const struct ocs_netconf_fault *fault,
				   const struct ocs_patch *patches, size_t count)
{
	static const char *const whole[] = {
		"lock-denied", "access-denied", "resource-denied", "operation-not-supported",
		"unknown-element", "unknown-attribute", "unknown-namespace", "bad-attribute",
		"missing-attribute", "missing-element", "malformed-message", "too-big",
	};

	for (size_t i = 0; i < sizeof(whole) / sizeof(whole[0]); i++)
		if (!strcmp(whole[i], fault->tag))
			return OCS_BLAME_SWITCH;
	if (!strcmp(fault->tag, "data-exists") || !strcmp(fault->tag, "data-missing") ||
	    ocs_switch_names_port(fault->path, patches, count) ||
	    ocs_switch_names_port(fault->message, patches, count))
		return OCS_BLAME_PORT;
	return OCS_BLAME_UNKNOWN;
}

static int edit(struct ocs_switch_connection *connection, enum ocs_netconf_edit how,
		const struct ocs_patch *patches, size_t count, struct ocs_error *err)
{
	struct netconf *netconf = connection->state;
	struct ocs_netconf_message reply;
	char *message = ocs_netconf_make_edit(++netconf->id, netconf->dialect, how,
					      netconf->hello.rollback,
					      connection->description->size, patches, count, err);
	int rc;

	if (!message)
		return OCS_SWITCH_REJECTED;
	rc = execute(connection, "edit-config", message, &reply, err);
	/* What was to go alone is gone already. */
	if (rc == OCS_SWITCH_DENIED && how == OCS_NETCONF_DELETE && count == 1 &&
	    !strcmp(reply.fault.tag, "data-missing"))
		rc = OCS_SWITCH_OK;
	if (rc == OCS_SWITCH_DENIED)
		connection->blame = blame(&reply.fault, patches, count);
	ocs_netconf_message_free(&reply);
	return rc;
}

static int locked_edit(struct ocs_switch_connection *connection, enum ocs_netconf_edit how,
		       const struct ocs_patch *patches, size_t count, size_t *used,
		       struct ocs_error *err)
{
	struct ocs_error ignored;
	bool locked;
	int rc;

	*used = count < BATCH_MAX ? count : BATCH_MAX;
	rc = lock(connection, &locked, err);
	if (rc == OCS_SWITCH_OK)
		rc = edit(connection, how, patches, *used, err);
	/* If this fails the connection goes, and with it the lock. */
	if (locked && connection->fd >= 0 && plain(connection, "unlock", NULL, &ignored))
		lose(connection);
	return rc;
}

/* Where an edit can be half done, the next one must be able to repeat it. */
static int netconf_remove(struct ocs_switch_connection *connection,
			  const struct ocs_patch *patches, size_t count, size_t *used,
			  struct ocs_error *err)
{
	const struct ocs_netconf_hello *hello = &((struct netconf *)connection->state)->hello;

	return locked_edit(connection, hello->rollback || !hello->base_1_1 ?
			   OCS_NETCONF_DELETE : OCS_NETCONF_REMOVE, patches, count, used, err);
}

static int netconf_add(struct ocs_switch_connection *connection,
		       const struct ocs_patch *patches, size_t count, size_t *used,
		       struct ocs_error *err)
{
	const struct ocs_netconf_hello *hello = &((struct netconf *)connection->state)->hello;

	return locked_edit(connection, hello->rollback ? OCS_NETCONF_CREATE : OCS_NETCONF_MERGE,
			   patches, count, used, err);
}

typedef int (*parse_ports)(const struct ocs_netconf_dialect *dialect,
			   const struct ocs_netconf_message *message,
			   struct ocs_health *health, struct ocs_error *err);

static int read_ports(struct ocs_switch_connection *connection,
		      const struct ocs_netconf_list *list, parse_ports parse,
		      struct ocs_health *health, struct ocs_error *err)
{
	struct netconf *netconf = connection->state;
	struct ocs_netconf_message reply;
	int rc = read_list(connection, list, true, &reply, err);

	/* A switch without power meters. */
	if (rc == OCS_SWITCH_DENIED && (!strcmp(reply.fault.tag, "unknown-element") ||
					!strcmp(reply.fault.tag, "operation-not-supported")))
		rc = OCS_SWITCH_OK;
	else if (rc == OCS_SWITCH_OK && parse(netconf->dialect, &reply, health, err))
		rc = OCS_SWITCH_UNKNOWN;
	ocs_netconf_message_free(&reply);
	return rc;
}

static int netconf_read_status(struct ocs_switch_connection *connection,
			       struct ocs_health *health, struct ocs_error *err)
{
	const struct netconf *netconf = connection->state;

	return read_ports(connection, &netconf->dialect->status, ocs_netconf_parse_status,
			  health, err);
}

static int netconf_read_power(struct ocs_switch_connection *connection,
			      struct ocs_health *health, struct ocs_error *err)
{
	const struct netconf *netconf = connection->state;

	return read_ports(connection, &netconf->dialect->power, ocs_netconf_parse_power, health,
			  err);
}

static int netconf_listen(struct ocs_switch_connection *connection, int wait_ms,
			  struct ocs_error *err)
{
	int64_t deadline = ocs_now_ns() + wait_ms * MS;
	char data[16384];

	if (connection->fd < 0) {
		ocs_error_set(err, OCS_UNREACHABLE, "the connection was lost earlier");
		return OCS_SWITCH_UNKNOWN;
	}
	for (;;) {
		size_t length = sizeof(data);
		int rc = receive(connection, data, &length, deadline, err);

		if (rc > 0)
			rc = feed(connection, data, length, 0, NULL, err);
		else if (rc == 0)
			return OCS_SWITCH_OK;
		if (rc < 0)
			return lose(connection);
		if (ocs_now_ns() >= deadline && wait_ms)
			return OCS_SWITCH_OK;
	}
}

const struct ocs_switch_driver ocs_netconf_driver = {
	.abi = OCS_DRIVER_ABI,
	.name = "netconf",
	.open = netconf_open,
	.close = netconf_close,
	.read_size = netconf_read_size,
	.read_table = netconf_read_table,
	.remove = netconf_remove,
	.add = netconf_add,
	.read_status = netconf_read_status,
	.read_power = netconf_read_power,
	.listen = netconf_listen,
};
