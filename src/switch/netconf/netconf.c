/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* The NETCONF driver: what is read, locked and edited. */

#include <libxml/parser.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "src/switch/netconf/session.h"
#include "src/switch/netconf/ssh.h"
#include "src/util/error.h"
#include "src/util/net.h"
#include "src/util/text.h"

#define MS 1000000LL
#define BATCH_MAX 1024 /* patches in one edit */
#define LOCK_PAUSE_MS 50
#define PENDING_PAUSE_MS 20

static pthread_once_t once = PTHREAD_ONCE_INIT;

static int netconf_open(struct ocs_switch_connection *connection, struct ocs_error *err)
{
	const struct ocs_switch *description = connection->description;
	struct ocs_netconf *netconf = ocs_calloc(1, sizeof(*netconf));
	struct ocs_credentials credentials;
	struct ocs_ssh_target target = {
		.address = description->address,
		.name = description->name,
		.host_key = description->host_key,
		.known_hosts = description->known_hosts,
		.credentials = &credentials,
		.subsystem = "netconf",
		.connection = connection,
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
	ocs_switch_guard(connection, &credentials);
	netconf->ssh = ocs_ssh_open(&target, connection->timeout_ms, err);
	ocs_credentials_wipe(&credentials);
	if (!netconf->ssh)
		return OCS_SWITCH_UNKNOWN;
	connection->fd = ocs_ssh_descriptor(netconf->ssh);
	return ocs_netconf_begin(connection, err);
}

static void netconf_close(struct ocs_switch_connection *connection)
{
	struct ocs_netconf *netconf = connection->state;

	if (!netconf)
		return;
	if (connection->fd >= 0 && netconf->hello.session) {
		char *message = ocs_netconf_make_plain(++netconf->id, "close-session");
		size_t length;
		char *framed = ocs_netconf_frame(netconf->framer.chunked, message, &length);

		/* A courtesy: the answer does not matter. */
		ocs_ssh_write(netconf->ssh, framed, length, ocs_now_ns() + 100 * MS, NULL);
		ocs_net_abort_on_close(connection->fd, false);
		free(framed);
		free(message);
	}
	ocs_netconf_lose(connection);
	free(netconf);
	connection->state = NULL;
}

static int read_list(struct ocs_switch_connection *connection, const struct ocs_netconf_list *list,
		     bool values, struct ocs_netconf_message *reply, struct ocs_error *err)
{
	struct ocs_netconf *netconf = connection->state;
	const char *operation =
		list == &netconf->dialect->patches && !list->state ? "get-config" : "get";

	return ocs_netconf_execute(
		connection, operation,
		ocs_netconf_make_read(++netconf->id, netconf->dialect, list, values), reply, err);
}

static int netconf_read_size(struct ocs_switch_connection *connection, int *size,
			     struct ocs_error *err)
{
	struct ocs_netconf *netconf = connection->state;
	struct ocs_netconf_message reply;
	struct ocs_error why;
	int rc = read_list(connection, &netconf->dialect->status, false, &reply, err);

	if (rc == OCS_SWITCH_OK && ocs_netconf_parse_size(netconf->dialect, &reply, size, &why)) {
		ocs_error_set(err, why.code, "%s%s", why.text,
			      netconf->hello.model ? "" : ", which its hello does not announce");
		rc = OCS_SWITCH_UNKNOWN;
	}
	ocs_netconf_message_free(&reply);
	return rc;
}

static int netconf_read_table(struct ocs_switch_connection *connection, struct ocs_table *table,
			      struct ocs_error *err)
{
	struct ocs_netconf *netconf = connection->state;
	int64_t deadline = ocs_netconf_deadline(connection);

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
			ocs_error_set(
				err, OCS_ERROR,
				"still has %d patches that are about to come or go after %d ms",
				pending, connection->timeout_ms);
			return OCS_SWITCH_UNKNOWN;
		}
		memset(table->out, 0, ((size_t)table->size + 1) * sizeof(*table->out));
		poll(NULL, 0, PENDING_PAUSE_MS);
	}
}

/* Another manager may hold the configuration for a moment. */
static int datastore_lock(struct ocs_switch_connection *connection, bool *locked,
			  struct ocs_error *err)
{
	struct ocs_netconf *netconf = connection->state;
	int64_t deadline = ocs_netconf_deadline(connection);

	*locked = false;
	while (!netconf->no_locks) {
		struct ocs_netconf_fault fault;
		int rc = ocs_netconf_plain(connection, "lock", &fault, err);

		*locked = rc == OCS_SWITCH_OK;
		if (rc != OCS_SWITCH_DENIED)
			return rc;
		if (!strcmp(fault.tag, "operation-not-supported")) {
			netconf->no_locks = true;
		} else if (strcmp(fault.tag, "lock-denied") || ocs_now_ns() >= deadline) {
			connection->blame = OCS_BLAME_SWITCH;
			connection->blamed_port = 0;
			return rc;
		} else {
			poll(NULL, 0, LOCK_PAUSE_MS);
		}
	}
	return OCS_SWITCH_OK;
}

/* A path names a pair, a message one of its ports. */
static void ports_blame(struct ocs_switch_connection *connection,
			const struct ocs_netconf_fault *fault, const struct ocs_patch *patches,
			size_t count)
{
	static const char *const whole[] = {
		"lock-denied",	     "access-denied",
		"resource-denied",   "operation-not-supported",
		"unknown-element",   "unknown-attribute",
		"unknown-namespace", "bad-attribute",
		"missing-attribute", "missing-element",
		"malformed-message", "too-big",
	};
	bool exists = !strcmp(fault->tag, "data-exists");

	connection->blamed_port = 0;
	connection->blame = OCS_BLAME_SWITCH;
	for (size_t i = 0; i < sizeof(whole) / sizeof(whole[0]); i++)
		if (!strcmp(whole[i], fault->tag))
			return;
	connection->blamed_port = exists && count == 1 ?
					  patches[0].in :
					  ocs_switch_names_port(fault->message, patches, count);
	connection->blame = connection->blamed_port || exists ||
					    !strcmp(fault->tag, "data-missing") ||
					    ocs_switch_names_port(fault->path, patches, count) ?
				    OCS_BLAME_PORT :
				    OCS_BLAME_UNKNOWN;
}

static int config_edit(struct ocs_switch_connection *connection, enum ocs_netconf_edit how,
		       const struct ocs_patch *patches, size_t count, struct ocs_error *err)
{
	struct ocs_netconf *netconf = connection->state;
	struct ocs_netconf_message reply;
	char *message =
		ocs_netconf_make_edit(++netconf->id, netconf->dialect, how, netconf->hello.rollback,
				      connection->description->size, patches, count, err);
	int rc;

	if (!message)
		return OCS_SWITCH_REJECTED;
	rc = ocs_netconf_execute(connection, "edit-config", message, &reply, err);
	/* What was to go alone is gone already. */
	if (rc == OCS_SWITCH_DENIED && how == OCS_NETCONF_DELETE && count == 1 &&
	    !strcmp(reply.fault.tag, "data-missing"))
		rc = OCS_SWITCH_OK;
	if (rc == OCS_SWITCH_DENIED)
		ports_blame(connection, &reply.fault, patches, count);
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
	rc = datastore_lock(connection, &locked, err);
	if (rc == OCS_SWITCH_OK)
		rc = config_edit(connection, how, patches, *used, err);
	/* If this fails the connection goes, and with it the lock. */
	if (locked && connection->fd >= 0 &&
	    ocs_netconf_plain(connection, "unlock", NULL, &ignored))
		ocs_netconf_lose(connection);
	return rc;
}

/* Where an edit can be half done, the next one must be able to repeat it. */
static int netconf_remove(struct ocs_switch_connection *connection, const struct ocs_patch *patches,
			  size_t count, size_t *used, struct ocs_error *err)
{
	const struct ocs_netconf_hello *hello = &((struct ocs_netconf *)connection->state)->hello;

	return locked_edit(connection,
			   hello->rollback || !hello->base_1_1 ? OCS_NETCONF_DELETE :
								 OCS_NETCONF_REMOVE,
			   patches, count, used, err);
}

static int netconf_add(struct ocs_switch_connection *connection, const struct ocs_patch *patches,
		       size_t count, size_t *used, struct ocs_error *err)
{
	const struct ocs_netconf_hello *hello = &((struct ocs_netconf *)connection->state)->hello;

	return locked_edit(connection, hello->rollback ? OCS_NETCONF_CREATE : OCS_NETCONF_MERGE,
			   patches, count, used, err);
}

typedef int (*parse_ports)(const struct ocs_netconf_dialect *dialect,
			   const struct ocs_netconf_message *message, struct ocs_health *health,
			   struct ocs_error *err);

static int read_ports(struct ocs_switch_connection *connection, const struct ocs_netconf_list *list,
		      parse_ports parse, struct ocs_health *health, struct ocs_error *err)
{
	struct ocs_netconf *netconf = connection->state;
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

static int netconf_read_status(struct ocs_switch_connection *connection, struct ocs_health *health,
			       struct ocs_error *err)
{
	const struct ocs_netconf *netconf = connection->state;

	return read_ports(connection, &netconf->dialect->status, ocs_netconf_parse_status, health,
			  err);
}

static int netconf_read_power(struct ocs_switch_connection *connection, struct ocs_health *health,
			      struct ocs_error *err)
{
	const struct ocs_netconf *netconf = connection->state;

	return read_ports(connection, &netconf->dialect->power, ocs_netconf_parse_power, health,
			  err);
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
	.listen = ocs_netconf_listen,
};
