/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include <math.h>
#include <stdlib.h>

#include "src/switch/driver.h"
#include "src/util/error.h"
#include "src/util/text.h"

static int check_size(struct ocs_switch_connection *connection, struct ocs_error *err)
{
	int size = 0, wanted = connection->description->size;
	int rc = connection->driver->read_size(connection, &size, err);

	if (rc == OCS_SWITCH_OK && size != wanted) {
		ocs_error_set(err, OCS_ERROR, "is %dx%d, but its description says %dx%d", size,
			      size, wanted, wanted);
		rc = OCS_SWITCH_REJECTED;
	}
	return rc;
}

struct ocs_switch_connection *ocs_switch_open(const struct ocs_switch *description, int timeout_ms,
					      ocs_switch_notice notice, void *context,
					      struct ocs_error *err)
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
		ocs_error_set(err, OCS_USAGE, "switch %s: unknown driver '%s'; there are %s",
			      description->name, description->driver ? description->driver : "",
			      ocs_switch_driver_names());
		free(connection);
		return NULL;
	}
	rc = connection->driver->open(connection, err);
	if (rc == OCS_SWITCH_OK)
		rc = check_size(connection, err);
	if (ocs_switch_fail(connection, rc, err) == OCS_SWITCH_OK)
		return connection;
	ocs_switch_close(connection);
	return NULL;
}

void ocs_switch_close(struct ocs_switch_connection *connection)
{
	if (!connection)
		return;
	connection->driver->close(connection);
	ocs_switch_unguard(connection);
	ocs_table_free(&connection->known);
	free(connection->refusals);
	free(connection);
}

const struct ocs_refusal *ocs_switch_refusals(const struct ocs_switch_connection *connection,
					      size_t *count)
{
	*count = connection->nrefusals;
	return connection->refusals;
}

int ocs_switch_descriptor(const struct ocs_switch_connection *connection)
{
	return connection->fd;
}

int ocs_switch_listen(struct ocs_switch_connection *connection, int wait_ms, struct ocs_error *err)
{
	return ocs_switch_fail(connection, connection->driver->listen(connection, wait_ms, err),
			       err);
}

int ocs_switch_read_table(struct ocs_switch_connection *connection, struct ocs_table *table,
			  struct ocs_error *err)
{
	int rc;

	ocs_table_init(table, connection->description->size);
	rc = connection->driver->read_table(connection, table, err);
	ocs_table_free(&connection->known);
	if (rc != OCS_SWITCH_OK)
		ocs_table_free(table);
	else
		ocs_table_copy(&connection->known, table);
	return rc;
}

int ocs_switch_read(struct ocs_switch_connection *connection, struct ocs_table *table,
		    struct ocs_error *err)
{
	return ocs_switch_fail(connection, ocs_switch_read_table(connection, table, err), err);
}

void ocs_health_init(struct ocs_health *health, int size)
{
	health->ports = 2 * size;
	health->port = ocs_calloc((size_t)health->ports + 1, sizeof(*health->port));
	for (int i = 0; i <= health->ports; i++)
		health->port[i].dbm = NAN;
}

void ocs_health_free(struct ocs_health *health)
{
	free(health->port);
	health->port = NULL;
	health->ports = 0;
}

const char *ocs_port_status_name(enum ocs_port_status status)
{
	static const char *const names[] = {
		[OCS_PORT_UNKNOWN] = "UNKNOWN", [OCS_PORT_TUNED] = "TUNED",
		[OCS_PORT_TUNING] = "TUNING",	[OCS_PORT_BLOCKED] = "BLOCKED",
		[OCS_PORT_FAILED] = "FAILED",
	};

	return names[status];
}

int ocs_switch_health(struct ocs_switch_connection *connection, struct ocs_health *health,
		      struct ocs_error *err)
{
	const struct ocs_switch_driver *driver = connection->driver;
	int rc = OCS_SWITCH_OK;

	ocs_health_init(health, connection->description->size);
	if (driver->read_status)
		rc = driver->read_status(connection, health, err);
	if (rc == OCS_SWITCH_OK && driver->read_power)
		rc = driver->read_power(connection, health, err);
	if (rc != OCS_SWITCH_OK)
		ocs_health_free(health);
	return ocs_switch_fail(connection, rc, err);
}
