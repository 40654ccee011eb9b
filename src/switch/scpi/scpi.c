/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* The SCPI driver.  Answers carry no tag: they are matched by their order and told
 * apart by their form, and neighbours in a conversation never have the same form,
 * so that one answer too many or too few is noticed at the next; the connection is
 * given up then.  Changes are silent: *opc? says when they are over and the error
 * queue how. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/switch/driver.h"
#include "src/switch/scpi/scpi.h"
#include "src/util/error.h"
#include "src/util/net.h"
#include "src/util/text.h"

#define ANSWER_LIMIT (1024 * 1024)
#define ERRORS ":syst:err:all?"

struct scpi {
	struct ocs_lines lines;
};

/* After this it is not known which answer belongs to what. */
static int connection_lose(struct ocs_switch_connection *connection)
{
	struct scpi *scpi = connection->state;

	if (connection->fd >= 0)
		close(connection->fd);
	connection->fd = -1;
	ocs_lines_free(&scpi->lines);
	memset(&scpi->lines, 0, sizeof(scpi->lines));
	return OCS_SWITCH_UNKNOWN;
}

static int64_t deadline_of(const struct ocs_switch_connection *connection)
{
	return ocs_now_ns() + (int64_t)connection->timeout_ms * 1000000;
}

/* What was said before anything was asked answers something else. */
static bool line_unasked(struct ocs_switch_connection *connection)
{
	struct scpi *scpi = connection->state;
	char byte;

	return scpi->lines.used || ocs_net_read(connection->fd, &byte, 1, 0, NULL) >= 0;
}

/* Sends COUNT lines at once. */
static int lines_say(struct ocs_switch_connection *connection, const char *const *lines,
		     size_t count, int64_t deadline, struct ocs_error *err)
{
	struct ocs_text text = { 0 };
	struct ocs_error why = { 0 };
	int rc = OCS_SWITCH_OK;

	for (size_t i = 0; i < count; i++) {
		if (ocs_scpi_dangerous(lines[i])) {
			ocs_error_set(
				err, OCS_USAGE,
				"'%.40s' would disturb more than named ports and was not sent",
				lines[i]);
			ocs_text_free(&text);
			return OCS_SWITCH_REJECTED;
		}
		ocs_text_add(&text, "%s\n", lines[i]);
	}
	if (connection->fd < 0) {
		ocs_error_set(err, OCS_UNREACHABLE,
			      "the connection was lost earlier; %.40s was not sent", lines[0]);
		rc = OCS_SWITCH_UNKNOWN;
	} else if (line_unasked(connection)) {
		ocs_error_set(
			err, OCS_ERROR,
			"said something that was not asked for, or hung up; %.40s was not sent",
			lines[0]);
		rc = connection_lose(connection);
	} else if (ocs_net_write(connection->fd, text.data, text.length, deadline, &why)) {
		ocs_error_set(err, OCS_UNREACHABLE, "%.40s could not be sent: %s", lines[0],
			      why.text);
		rc = connection_lose(connection);
	}
	ocs_text_free(&text);
	return rc;
}

/* The next line, for WHAT; NULL with ERR and the connection lost. */
static char *line_hear(struct ocs_switch_connection *connection, const char *what, int64_t deadline,
		       struct ocs_error *err)
{
	struct scpi *scpi = connection->state;
	struct ocs_error why = { 0 };
	char *line = ocs_lines_next(&scpi->lines, ANSWER_LIMIT, deadline, &why);
	size_t length;

	if (!line) {
		if (ocs_now_ns() >= deadline)
			ocs_error_set(err, OCS_UNREACHABLE, "did not answer %.40s within %d ms",
				      what, connection->timeout_ms);
		else
			ocs_error_set(err, OCS_UNREACHABLE, "lost while waiting for %.40s: %s",
				      what, why.text);
		connection_lose(connection);
		return NULL;
	}
	length = strlen(line);
	if (length && line[length - 1] == '\r')
		line[length - 1] = '\0';
	ocs_switch_hear(connection, line);
	return ocs_text_clean(line);
}

/* An answer of another form than its question: out of step. */
static int reply_confused(struct ocs_switch_connection *connection, const char *what,
			  const char *line, struct ocs_error *err)
{
	ocs_error_set(err, OCS_ERROR, "answered '%.60s' to %.40s", line, what);
	return connection_lose(connection);
}

static enum ocs_switch_blame port_blame(const struct ocs_scpi_error *error,
					const struct ocs_patch *patches, size_t count, int *port)
{
	/* -222 data out of range, -224 illegal parameter value; -1xx: the command
	 * itself; -203 protected. */
	*port = ocs_switch_names_port(error->text, patches, count);
	if (error->code == -222 || error->code == -224 || *port)
		return OCS_BLAME_PORT;
	return (error->code <= -100 && error->code > -200) || error->code == -203 ?
		       OCS_BLAME_SWITCH :
		       OCS_BLAME_UNKNOWN;
}

/* Sends LINE and then asks the error queue, at once; hears the answer to LINE (NULL
 * if the switch had none but an error) and the error. */
static int line_converse(struct ocs_switch_connection *connection, const char *line, char **answer,
			 struct ocs_scpi_error *error, struct ocs_error *err)
{
	const char *const lines[] = { "*cls", line, ERRORS };
	int64_t deadline = deadline_of(connection);
	int rc = lines_say(connection, lines, 3, deadline, err);
	char *errors;

	*answer = NULL;
	if (rc != OCS_SWITCH_OK)
		return rc;
	errors = line_hear(connection, line, deadline, err);
	if (!errors)
		return OCS_SWITCH_UNKNOWN;
	if (ocs_scpi_parse_errors(errors, error) != 0) {
		*answer = errors;
		errors = line_hear(connection, ERRORS, deadline, err);
		if (errors && ocs_scpi_parse_errors(errors, error) != 0)
			reply_confused(connection, ERRORS, errors, err);
	}
	free(errors);
	if (connection->fd < 0) {
		free(*answer);
		*answer = NULL;
		return OCS_SWITCH_UNKNOWN;
	}
	return OCS_SWITCH_OK;
}

static int scpi_open(struct ocs_switch_connection *connection, struct ocs_error *err)
{
	struct scpi *scpi = ocs_calloc(1, sizeof(*scpi));

	connection->state = scpi;
	connection->fd =
		ocs_net_connect(connection->description->address, connection->timeout_ms, err);
	scpi->lines.fd = connection->fd;
	if (connection->fd < 0)
		return OCS_SWITCH_UNKNOWN;
	ocs_net_abort_on_close(connection->fd, true);
	return OCS_SWITCH_OK;
}

static void scpi_close(struct ocs_switch_connection *connection)
{
	if (!connection->state)
		return;
	connection_lose(connection);
	free(connection->state);
	connection->state = NULL;
}

static int scpi_read_size(struct ocs_switch_connection *connection, int *size,
			  struct ocs_error *err)
{
	static const char *const line = ":oxc:swit:size?";
	int64_t deadline = deadline_of(connection);
	int rc = lines_say(connection, &line, 1, deadline, err);
	char *answer;

	if (rc != OCS_SWITCH_OK)
		return rc;
	answer = line_hear(connection, line, deadline, err);
	if (!answer)
		return OCS_SWITCH_UNKNOWN;
	if (ocs_scpi_parse_size(answer, size, err))
		rc = connection_lose(connection);
	free(answer);
	return rc;
}

/* *opc? stands before the question for the sake of the order: two tables never
 * follow each other. */
static int scpi_read_table(struct ocs_switch_connection *connection, struct ocs_table *table,
			   struct ocs_error *err)
{
	static const char *const lines[] = { "*opc?", ":oxc:swit:conn:stat?" };
	int64_t deadline = deadline_of(connection);
	int rc = lines_say(connection, lines, 2, deadline, err);

	for (int i = 0; i < 2 && rc == OCS_SWITCH_OK; i++) {
		char *answer = line_hear(connection, lines[i], deadline, err);

		if (!answer)
			return OCS_SWITCH_UNKNOWN;
		if (i == 0 && strcmp(answer, "1") != 0)
			rc = reply_confused(connection, lines[i], answer, err);
		else if (i == 1 && ocs_scpi_parse_table(answer, table, err))
			rc = connection_lose(connection);
		free(answer);
	}
	return rc;
}

static int patches_change(struct ocs_switch_connection *connection, bool add,
			  const struct ocs_patch *patches, size_t count, size_t *used,
			  struct ocs_error *err)
{
	char *line = ocs_scpi_change(add, connection->description->size, patches, count, used, err);
	const char *what = add ? "conn:add" : "conn:sub";
	struct ocs_scpi_error error;
	char *answer;
	int rc;

	if (!line)
		return OCS_SWITCH_REJECTED;
	rc = line_converse(connection, line, &answer, &error, err);
	free(line);
	if (rc != OCS_SWITCH_OK)
		return rc;
	if (answer && strcmp(answer, "1") != 0) {
		rc = reply_confused(connection, what, answer, err);
	} else if (error.code) {
		ocs_error_set(err, OCS_ERROR, "refused %s: %d, %s", what, error.code, error.text);
		connection->blame = port_blame(&error, patches, *used, &connection->blamed_port);
		rc = OCS_SWITCH_DENIED;
	} else if (!answer) {
		/* Neither done nor refused. */
		ocs_error_set(err, OCS_ERROR, "answered nothing to %s and knows of no error", what);
		rc = connection_lose(connection);
	}
	free(answer);
	return rc;
}

static int scpi_remove(struct ocs_switch_connection *connection, const struct ocs_patch *patches,
		       size_t count, size_t *used, struct ocs_error *err)
{
	return patches_change(connection, false, patches, count, used, err);
}

static int scpi_add(struct ocs_switch_connection *connection, const struct ocs_patch *patches,
		    size_t count, size_t *used, struct ocs_error *err)
{
	return patches_change(connection, true, patches, count, used, err);
}

typedef int (*parser)(const char *line, struct ocs_health *health, int first, int count,
		      struct ocs_error *err);

/* Asks WHAT of every port.  A switch that does not know the question is no failure. */
static int read_ports(struct ocs_switch_connection *connection, const char *what, parser parse,
		      struct ocs_health *health, struct ocs_error *err)
{
	int rc = OCS_SWITCH_OK;

	for (int first = 1; rc == OCS_SWITCH_OK && first <= health->ports;) {
		int count = health->ports - first + 1;
		char *line = ocs_scpi_ask(what, first, &count), *answer;
		struct ocs_scpi_error error;

		rc = line_converse(connection, line, &answer, &error, err);
		free(line);
		if (rc == OCS_SWITCH_OK && !answer)
			return OCS_SWITCH_OK;
		if (rc == OCS_SWITCH_OK && parse(answer, health, first, count, err))
			rc = connection_lose(connection);
		free(answer);
		first += count;
	}
	return rc;
}

static int scpi_read_status(struct ocs_switch_connection *connection, struct ocs_health *health,
			    struct ocs_error *err)
{
	return read_ports(connection, ":oxc:swit:port:stat?", ocs_scpi_parse_status, health, err);
}

static int scpi_read_power(struct ocs_switch_connection *connection, struct ocs_health *health,
			   struct ocs_error *err)
{
	return read_ports(connection, ":opm:pow?", ocs_scpi_parse_power, health, err);
}

/* There are no autonomous messages; whatever comes is out of order. */
static int scpi_listen(struct ocs_switch_connection *connection, int wait_ms, struct ocs_error *err)
{
	int64_t deadline = ocs_now_ns() + (int64_t)wait_ms * 1000000;
	struct ocs_error why = { 0 };
	char byte;
	long n;

	if (connection->fd < 0) {
		ocs_error_set(err, OCS_UNREACHABLE, "the connection was lost earlier");
		return OCS_SWITCH_UNKNOWN;
	}
	n = ocs_net_read(connection->fd, &byte, 1, deadline, &why);
	if (n < 0 && ocs_now_ns() >= deadline)
		return OCS_SWITCH_OK;
	if (n > 0)
		ocs_error_set(err, OCS_ERROR, "said something that was not asked for");
	else if (n == 0)
		ocs_error_set(err, OCS_UNREACHABLE, "closed the connection");
	else
		ocs_error_set(err, OCS_UNREACHABLE, "lost: %s", why.text);
	return connection_lose(connection);
}

const struct ocs_switch_driver ocs_scpi_driver = {
	.abi = OCS_DRIVER_ABI,
	.name = "scpi",
	.open = scpi_open,
	.close = scpi_close,
	.read_size = scpi_read_size,
	.read_table = scpi_read_table,
	.remove = scpi_remove,
	.add = scpi_add,
	.read_status = scpi_read_status,
	.read_power = scpi_read_power,
	.listen = scpi_listen,
};
