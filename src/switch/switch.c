/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include <stdlib.h>
#include <string.h>

#include "src/switch/connection.h"
#include "src/util/error.h"
#include "src/util/text.h"

static const struct ocs_switch_driver *const drivers[] = { &ocs_tl1_driver };

const struct ocs_switch_driver *ocs_switch_driver_find(const char *name)
{
	for (size_t i = 0; name && i < sizeof(drivers) / sizeof(drivers[0]); i++)
		if (!strcmp(drivers[i]->name, name) && drivers[i]->abi == OCS_DRIVER_ABI)
			return drivers[i];
	return NULL;
}

/* Every sentence about a switch starts with its name. */
static int fail(const struct ocs_switch_connection *connection, int rc,
		struct ocs_error *err)
{
	if (rc != OCS_SWITCH_OK)
		ocs_error_prefix(err, "switch %s", connection->description->name);
	return rc;
}

static int check_size(struct ocs_switch_connection *connection, struct ocs_error *err)
{
	int size = 0, wanted = connection->description->size;
	int rc = connection->driver->read_size(connection, &size, err);

	if (rc == OCS_SWITCH_OK && size != wanted) {
		ocs_error_set(err, OCS_ERROR, "is %dx%d, but its description says %dx%d",
			      size, size, wanted, wanted);
		rc = OCS_SWITCH_REJECTED;
	}
	return rc;
}

struct ocs_switch_connection *
ocs_switch_open(const struct ocs_switch *description, int timeout_ms,
		ocs_switch_notice notice, void *context, struct ocs_error *err)
{
	struct ocs_switch_connection *connection = ocs_calloc(1, sizeof(*connection));
	int rc;

	connection->description = description;
	connection->timeout_ms = timeout_ms;
	connection->notice = notice;
	connection->context = context;
	connection->fd = -1;
	connection->driver = ocs_switch_driver_find(description->driver);
	if (!connection->driver) {
		ocs_error_set(err, OCS_USAGE, "switch %s: unknown driver '%s'; tl1 is known",
			      description->name, description->driver ? description->driver : "");
		free(connection);
		return NULL;
	}
	rc = connection->driver->open(connection, err);
	if (rc == OCS_SWITCH_OK)
		rc = check_size(connection, err);
	if (rc == OCS_SWITCH_OK)
		return connection;
	fail(connection, rc, err);
	ocs_switch_close(connection);
	return NULL;
}

void ocs_switch_close(struct ocs_switch_connection *connection)
{
	if (!connection)
		return;
	connection->driver->close(connection);
	free(connection);
}

int ocs_switch_descriptor(const struct ocs_switch_connection *connection)
{
	return connection->fd;
}

int ocs_switch_listen(struct ocs_switch_connection *connection, int wait_ms,
		      struct ocs_error *err)
{
	return fail(connection, connection->driver->listen(connection, wait_ms, err), err);
}

static int read_table(struct ocs_switch_connection *connection, struct ocs_table *table,
		      struct ocs_error *err)
{
	int rc;

	ocs_table_init(table, connection->description->size);
	rc = connection->driver->read_table(connection, table, err);
	if (rc != OCS_SWITCH_OK)
		ocs_table_free(table);
	return rc;
}

int ocs_switch_read(struct ocs_switch_connection *connection, struct ocs_table *table,
		    struct ocs_error *err)
{
	return fail(connection, read_table(connection, table, err), err);
}

/* Names the first entry of ACTUAL that is not what EXPECTED says. */
static int compare(const struct ocs_table *expected, const struct ocs_table *actual,
		   struct ocs_error *err)
{
	int differences = 0, first = 0;

	for (int in = 1; in <= expected->size; in++) {
		if (expected->out[in] == actual->out[in])
			continue;
		if (!differences++)
			first = in;
	}
	if (!differences)
		return OCS_SWITCH_OK;
	ocs_error_set(err, OCS_ERROR,
		      "the read-back differs in %d of %d entries: ingress %d has egress %d instead of %d (0: none)",
		      differences, expected->size, first, actual->out[first],
		      expected->out[first]);
	return OCS_SWITCH_UNKNOWN;
}

/* The two batches; EXPECTED follows what was asked for. */
static int change(struct ocs_switch_connection *connection,
		  const struct ocs_switch_diff *diff, struct ocs_table *expected,
		  struct ocs_error *err)
{
	int rc = OCS_SWITCH_OK;

	if (diff->nremove)
		rc = connection->driver->remove(connection, diff->remove, diff->nremove, err);
	for (size_t i = 0; i < diff->nremove; i++)
		expected->out[diff->remove[i].in] = 0;
	if (rc == OCS_SWITCH_OK && diff->nadd)
		rc = connection->driver->add(connection, diff->add, diff->nadd, err);
	for (size_t i = 0; i < diff->nadd; i++)
		expected->out[diff->add[i].in] = diff->add[i].out;
	return rc;
}

/* TABLE: as read before; becomes the table as read last, or empty. */
static int change_and_verify(struct ocs_switch_connection *connection,
			     const struct ocs_switch_diff *diff, struct ocs_table *table,
			     struct ocs_error *err)
{
	struct ocs_table expected = *table;
	struct ocs_error why = { 0 };
	int rc, seen;

	rc = change(connection, diff, &expected, err);
	table->out = NULL;
	table->size = 0;
	seen = connection->fd < 0 ? OCS_SWITCH_UNKNOWN : read_table(connection, table, &why);
	if (rc == OCS_SWITCH_OK) {
		rc = seen == OCS_SWITCH_OK ? compare(&expected, table, &why) :
					     OCS_SWITCH_UNKNOWN;
		if (rc != OCS_SWITCH_OK)
			ocs_error_set(err, why.code, "%s", why.text);
	}
	ocs_table_free(&expected);
	return rc;
}

int ocs_switch_apply(struct ocs_switch_connection *connection,
		     const struct ocs_patch *remove, size_t nremove,
		     const struct ocs_patch *add, size_t nadd,
		     struct ocs_table *after, struct ocs_error *err)
{
	struct ocs_table table = { 0 };
	struct ocs_switch_diff diff;
	int rc;

	rc = read_table(connection, &table, err);
	if (rc == OCS_SWITCH_OK) {
		if (ocs_switch_diff(&table, remove, nremove, add, nadd, &diff, err)) {
			rc = OCS_SWITCH_REJECTED;
		} else {
			/* The table just read already is the full read-back if
			 * nothing is to be done. */
			if (diff.nremove || diff.nadd)
				rc = change_and_verify(connection, &diff, &table, err);
			ocs_switch_diff_free(&diff);
		}
	}
	if (after)
		*after = table;
	else
		ocs_table_free(&table);
	return fail(connection, rc, err);
}
