/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* The TL1 driver: one command at a time on a TCP or UNIX socket, its answer found
 * by ctag, autonomous messages passed on. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/switch/driver.h"
#include "src/switch/tl1/tl1.h"
#include "src/util/error.h"
#include "src/util/net.h"

#define CTAG_MAX 999999 /* TL1 allows six digits */

struct tl1 {
	const struct ocs_tl1_dialect *dialect;
	struct ocs_tl1_parser parser;
	unsigned int ctag;
	char *user; /* logged in as, for the logout */
};

static const struct {
	const char *code, *meaning;
	enum ocs_switch_blame blame;
} meanings[] = {
	{ "IDNV", "invalid port", OCS_BLAME_PORT },
	{ "IIAC", "wrong parameter count", OCS_BLAME_SWITCH },
	{ "IICT", "command not understood", OCS_BLAME_SWITCH },
	{ "IITA", "wrong target identifier", OCS_BLAME_SWITCH },
	{ "PICC", "not permitted", OCS_BLAME_SWITCH },
	{ "SRCN", "not in the admin group", OCS_BLAME_SWITCH },
	{ "IPMS", "missing parameter", OCS_BLAME_SWITCH },
	{ "IPNV", "invalid parameter", OCS_BLAME_SWITCH },
	{ "SSTP", "state error", OCS_BLAME_UNKNOWN },
};

static unsigned int next_ctag(struct tl1 *tl1)
{
	tl1->ctag = tl1->ctag % CTAG_MAX + 1;
	return tl1->ctag;
}

/* After this it is not known what the switch does with what it was sent. */
static int connection_lose(struct ocs_switch_connection *connection)
{
	struct tl1 *tl1 = connection->state;

	if (connection->fd >= 0)
		close(connection->fd);
	connection->fd = -1;
	ocs_tl1_parser_free(&tl1->parser);
	return OCS_SWITCH_UNKNOWN;
}

/* All that may be quoted of an answer. */
static void message_hear(struct ocs_switch_connection *connection,
			 const struct ocs_tl1_message *answer)
{
	ocs_switch_hear(connection, answer->code);
	ocs_switch_hear(connection, answer->error);
	ocs_switch_hear(connection, answer->comment.data);
	ocs_switch_hear(connection, answer->body.data);
}

/* Feeds DATA; notices go out, the answer to CTAG goes to ANSWER, answers to
 * anything else are dropped.  1 once ANSWER is filled, 0, or -1: endless. */
static int data_feed(struct ocs_switch_connection *connection, const char *data, size_t length,
		     const char *ctag, struct ocs_tl1_message *answer)
{
	struct tl1 *tl1 = connection->state;
	int found = 0;

	for (size_t i = 0; i < length; i++) {
		struct ocs_tl1_message message;
		int rc = ocs_tl1_parser_byte(&tl1->parser, data[i], &message);

		if (rc < 0) {
			if (found)
				ocs_tl1_message_free(answer);
			return -1;
		}
		if (!rc)
			continue;
		if (message.autonomous) {
			ocs_switch_notify(connection, message.body.data);
		} else if (!found && ctag && !strcmp(message.ctag, ctag)) {
			message_hear(connection, &message);
			*answer = message;
			found = 1;
			continue;
		}
		ocs_tl1_message_free(&message);
	}
	return found;
}

static int wait_answer(struct ocs_switch_connection *connection, const char *verb, const char *ctag,
		       int64_t deadline, struct ocs_tl1_message *answer, struct ocs_error *err)
{
	int found = 0;

	while (!found) {
		struct ocs_error why = { 0 };
		char data[4096];
		long n = ocs_net_read(connection->fd, data, sizeof(data), deadline, &why);

		if (n > 0) {
			found = data_feed(connection, data, (size_t)n, ctag, answer);
			/* Notices without end must not hold the deadline up. */
			if (found > 0 || (!found && ocs_now_ns() < deadline))
				continue;
		}
		if (found < 0) {
			ocs_error_set(err, OCS_ERROR, "the answer to %s has no end", verb);
		} else if (n == 0) {
			ocs_error_set(err, OCS_UNREACHABLE,
				      "closed the connection instead of answering %s", verb);
		} else if (ocs_now_ns() >= deadline) {
			ocs_error_set(err, OCS_UNREACHABLE, "did not answer %s within %d ms", verb,
				      connection->timeout_ms);
		} else {
			ocs_error_set(err, OCS_UNREACHABLE, "lost while waiting for %s: %s", verb,
				      why.text);
		}
		return connection_lose(connection);
	}
	return OCS_SWITCH_OK;
}

static const char *meaning_of(const struct ocs_tl1_message *answer)
{
	for (size_t i = 0; i < sizeof(meanings) / sizeof(meanings[0]); i++)
		if (!strcmp(meanings[i].code, answer->error))
			return meanings[i].meaning;
	return NULL;
}

static int command_denied(const char *verb, const struct ocs_tl1_message *answer,
			  struct ocs_error *err)
{
	const char *meaning = meaning_of(answer);

	ocs_error_set(err, OCS_ERROR, "refused %s: %s%s%s%s%s", verb,
		      answer->error[0] ? answer->error : "no code", meaning ? ", " : "",
		      meaning ? meaning : "", answer->comment.length ? ": " : "",
		      answer->comment.length ? answer->comment.data : "");
	return OCS_SWITCH_DENIED;
}

/* What the denial of a command about PATCHES blames. */
static void port_blame(struct ocs_switch_connection *connection,
		       const struct ocs_tl1_message *answer, const struct ocs_patch *patches,
		       size_t count)
{
	const struct tl1 *tl1 = connection->state;

	connection->blamed_port = ocs_tl1_names_port(
		tl1->dialect, connection->description->size,
		answer->comment.length ? answer->comment.data : "", patches, count);
	connection->blame = connection->blamed_port ? OCS_BLAME_PORT : OCS_BLAME_UNKNOWN;
	for (size_t i = 0; i < sizeof(meanings) / sizeof(meanings[0]); i++)
		if (!strcmp(meanings[i].code, answer->error) &&
		    meanings[i].blame != OCS_BLAME_UNKNOWN)
			connection->blame = meanings[i].blame;
}

static int answer_judge(const char *verb, const struct ocs_tl1_message *answer,
			struct ocs_error *err)
{
	/* RTRV is what some switches put on every page of a long answer. */
	if (!strcmp(answer->code, "COMPLD") || !strcmp(answer->code, "RTRV"))
		return OCS_SWITCH_OK;
	if (!strcmp(answer->code, "DENY"))
		return command_denied(verb, answer, err);
	ocs_error_set(err, OCS_ERROR, "did %s only in part (%s%s%s%s%s)", verb, answer->code,
		      answer->error[0] ? " " : "", answer->error,
		      answer->comment.length ? ": " : "",
		      answer->comment.length ? answer->comment.data : "");
	return OCS_SWITCH_UNKNOWN;
}

/* Sends COMMAND (freed here, wiped: it may hold a password) and waits for the
 * answer to the ctag given out last. */
static int command_execute(struct ocs_switch_connection *connection, char *command,
			   struct ocs_tl1_message *answer, struct ocs_error *err)
{
	struct tl1 *tl1 = connection->state;
	int64_t deadline = ocs_now_ns() + (int64_t)connection->timeout_ms * 1000000;
	char verb[32], ctag[24];
	struct ocs_error why = { 0 };
	size_t length = strlen(command);
	int rc;

	memset(answer, 0, sizeof(*answer));
	snprintf(verb, sizeof(verb), "%.*s", (int)strcspn(command, ":"), command);
	snprintf(ctag, sizeof(ctag), "%u", tl1->ctag);
	if (connection->fd < 0) {
		ocs_error_set(err, OCS_UNREACHABLE,
			      "the connection was lost earlier; %s was not sent", verb);
		rc = OCS_SWITCH_UNKNOWN;
	} else if (ocs_tl1_dangerous(command)) {
		ocs_error_set(err, OCS_USAGE,
			      "%s would disturb more than named ports and was not sent", verb);
		rc = OCS_SWITCH_REJECTED;
	} else if (ocs_net_write(connection->fd, command, length, deadline, &why)) {
		ocs_error_set(err, OCS_UNREACHABLE, "%s could not be sent: %s", verb, why.text);
		rc = connection_lose(connection);
	} else {
		rc = wait_answer(connection, verb, ctag, deadline, answer, err);
	}
	explicit_bzero(command, length);
	free(command);
	if (rc == OCS_SWITCH_OK)
		rc = answer_judge(verb, answer, err);
	return rc;
}

/* Nothing of what the switch said is quoted: it may repeat what it was given. */
static void login_refused(struct ocs_switch_connection *connection,
			  const struct ocs_tl1_message *answer, const char *user,
			  struct ocs_error *err)
{
	const char *meaning = meaning_of(answer);

	ocs_switch_forget(connection);
	ocs_error_set(err, OCS_ERROR, "refused the login of %s%s%s%s%s", user, meaning ? ": " : "",
		      meaning ? answer->error : "", meaning ? ", " : "", meaning ? meaning : "");
}

static int session_login(struct ocs_switch_connection *connection, struct ocs_error *err)
{
	struct tl1 *tl1 = connection->state;
	struct ocs_tl1_message answer;
	struct ocs_credentials credentials;
	char *command;
	int rc;

	if (!connection->description->credentials || !tl1->dialect->login)
		return OCS_SWITCH_OK;
	if (ocs_credentials_read(connection->description->credentials, &credentials, err))
		return OCS_SWITCH_REJECTED;
	command = ocs_tl1_format(tl1->dialect->login, next_ctag(tl1), 0, &credentials);
	ocs_switch_guard(connection, &credentials);
	rc = command_execute(connection, command, &answer, err);
	if (rc != OCS_SWITCH_OK && answer.code[0])
		login_refused(connection, &answer, credentials.user, err);
	ocs_tl1_message_free(&answer);
	if (rc == OCS_SWITCH_OK)
		tl1->user = ocs_strdup(credentials.user);
	ocs_credentials_wipe(&credentials);
	return rc;
}

static int tl1_open(struct ocs_switch_connection *connection, struct ocs_error *err)
{
	const char *name = connection->description->dialect;
	struct tl1 *tl1 = ocs_calloc(1, sizeof(*tl1));

	connection->state = tl1;
	tl1->dialect = ocs_tl1_dialect_find(name);
	if (!tl1->dialect) {
		ocs_error_set(
			err, OCS_USAGE,
			"unknown TL1 dialect '%s'; polatis, calient and glimmerglass are known",
			name);
		return OCS_SWITCH_REJECTED;
	}
	connection->fd =
		ocs_net_connect(connection->description->address, connection->timeout_ms, err);
	if (connection->fd < 0)
		return OCS_SWITCH_UNKNOWN;
	ocs_net_abort_on_close(connection->fd, true);
	return session_login(connection, err);
}

static void tl1_close(struct ocs_switch_connection *connection)
{
	struct tl1 *tl1 = connection->state;

	if (!tl1)
		return;
	if (connection->fd >= 0 && tl1->user && tl1->dialect->logout) {
		struct ocs_credentials credentials = { 0 };
		char *command;

		/* A courtesy: the answer does not matter. */
		snprintf(credentials.user, sizeof(credentials.user), "%s", tl1->user);
		command = ocs_tl1_format(tl1->dialect->logout, next_ctag(tl1), 0, &credentials);
		ocs_net_write(connection->fd, command, strlen(command), ocs_now_ns() + 100000000,
			      NULL);
		free(command);
		ocs_net_abort_on_close(connection->fd, false);
	}
	connection_lose(connection);
	free(tl1->user);
	free(tl1);
	connection->state = NULL;
}

static int tl1_read_size(struct ocs_switch_connection *connection, int *size, struct ocs_error *err)
{
	struct tl1 *tl1 = connection->state;
	struct ocs_tl1_message answer;
	int rc;

	if (!tl1->dialect->size) {
		*size = connection->description->size;
		return OCS_SWITCH_OK;
	}
	rc = command_execute(connection,
			     ocs_tl1_format(tl1->dialect->size, next_ctag(tl1), 0, NULL), &answer,
			     err);
	if (rc == OCS_SWITCH_OK && ocs_tl1_parse_size(tl1->dialect, answer.body.data, size, err))
		rc = OCS_SWITCH_UNKNOWN;
	ocs_tl1_message_free(&answer);
	return rc;
}

typedef int (*table_parser)(const struct ocs_tl1_dialect *dialect, const char *body,
			    struct ocs_table *table, struct ocs_error *err);

static int read_with(struct ocs_switch_connection *connection, table_parser parse,
		     struct ocs_table *table, struct ocs_error *err)
{
	struct tl1 *tl1 = connection->state;
	struct ocs_tl1_message answer;
	int rc;

	rc = command_execute(connection,
			     ocs_tl1_format(tl1->dialect->read, next_ctag(tl1), 0, NULL), &answer,
			     err);
	if (rc == OCS_SWITCH_OK && parse(tl1->dialect, answer.body.data, table, err))
		rc = OCS_SWITCH_UNKNOWN;
	ocs_tl1_message_free(&answer);
	return rc;
}

static int tl1_read_table(struct ocs_switch_connection *connection, struct ocs_table *table,
			  struct ocs_error *err)
{
	return read_with(connection, ocs_tl1_parse_table, table, err);
}

/* One command of a change; *USED patches are named in it. */
static int command_run(struct ocs_switch_connection *connection, const char *template,
		       const struct ocs_patch *patches, size_t count, size_t *used,
		       struct ocs_error *err)
{
	struct tl1 *tl1 = connection->state;
	struct ocs_tl1_message answer;
	char *text = ocs_tl1_format_batch(tl1->dialect, template, next_ctag(tl1),
					  connection->description->size, patches, count, used, err);
	int rc;

	if (!text)
		return OCS_SWITCH_REJECTED;
	rc = command_execute(connection, text, &answer, err);
	if (rc == OCS_SWITCH_DENIED)
		port_blame(connection, &answer, patches, *used);
	ocs_tl1_message_free(&answer);
	return rc;
}

static int tl1_remove(struct ocs_switch_connection *connection, const struct ocs_patch *patches,
		      size_t count, size_t *used, struct ocs_error *err)
{
	const struct ocs_tl1_dialect *dialect = ((struct tl1 *)connection->state)->dialect;
	int rc = command_run(connection, dialect->remove[0], patches, count, used, err);

	if (dialect->remove[1] && (rc == OCS_SWITCH_OK || rc == OCS_SWITCH_DENIED))
		rc = command_run(connection, dialect->remove[1], patches, *used, used, err);
	return rc;
}

/* Takes away what an interrupted change left on the ports of PATCH; *LEFT says how
 * many entries that were. */
static int clear_ports(struct ocs_switch_connection *connection, const struct ocs_patch *patch,
		       int *left, struct ocs_error *err)
{
	const struct ocs_tl1_dialect *dialect = ((struct tl1 *)connection->state)->dialect;
	struct ocs_table idle;
	int rc;

	*left = 0;
	ocs_table_init(&idle, connection->description->size);
	rc = read_with(connection, ocs_tl1_parse_idle, &idle, err);
	for (int in = 1; rc == OCS_SWITCH_OK && in <= idle.size; in++) {
		const struct ocs_patch entry = { in, idle.out[in] };
		size_t used;

		if (!entry.out || (entry.in != patch->in && entry.out != patch->out))
			continue;
		rc = command_run(connection, dialect->undo, &entry, 1, &used, err);
		++*left;
	}
	ocs_table_free(&idle);
	return rc;
}

/* One patch in two commands. */
static int add_in_two(struct ocs_switch_connection *connection, const struct ocs_patch *patch,
		      size_t *used, struct ocs_error *err)
{
	const struct ocs_tl1_dialect *dialect = ((struct tl1 *)connection->state)->dialect;
	int rc = command_run(connection, dialect->add[0], patch, 1, used, err), left = 0, undone;
	const enum ocs_switch_blame blamed = connection->blame;
	const int port = connection->blamed_port;
	struct ocs_error why;

	if (rc == OCS_SWITCH_DENIED) {
		undone = clear_ports(connection, patch, &left, &why);
		connection->blame = blamed;
		connection->blamed_port = port;
		if (undone != OCS_SWITCH_OK && undone != OCS_SWITCH_DENIED) {
			ocs_error_set(err, why.code, "%s", why.text);
			return undone;
		}
		if (undone == OCS_SWITCH_OK && left)
			rc = command_run(connection, dialect->add[0], patch, 1, used, err);
	}
	if (rc != OCS_SWITCH_OK)
		return rc;
	rc = command_run(connection, dialect->add[1], patch, 1, used, err);
	if (rc != OCS_SWITCH_DENIED)
		return rc;
	undone = command_run(connection, dialect->undo, patch, 1, used, &why);
	return undone == OCS_SWITCH_OK ? OCS_SWITCH_DENIED : OCS_SWITCH_UNKNOWN;
}

static int tl1_add(struct ocs_switch_connection *connection, const struct ocs_patch *patches,
		   size_t count, size_t *used, struct ocs_error *err)
{
	const struct ocs_tl1_dialect *dialect = ((struct tl1 *)connection->state)->dialect;

	if (count && dialect->add[1])
		return add_in_two(connection, patches, used, err);
	return command_run(connection, dialect->add[0], patches, count, used, err);
}

typedef int (*health_parser)(const struct ocs_tl1_dialect *dialect, const char *body,
			     struct ocs_health *health, struct ocs_error *err);

static int read_health(struct ocs_switch_connection *connection, const char *template,
		       health_parser parse, struct ocs_health *health, struct ocs_error *err)
{
	struct tl1 *tl1 = connection->state;
	struct ocs_tl1_message answer;
	int rc;

	if (!template)
		return OCS_SWITCH_OK;
	rc = command_execute(connection,
			     ocs_tl1_format(template, next_ctag(tl1), health->ports / 2, NULL),
			     &answer, err);
	/* A switch without monitors refuses: nothing is known then. */
	if (rc == OCS_SWITCH_DENIED)
		rc = OCS_SWITCH_OK;
	else if (rc == OCS_SWITCH_OK && parse(tl1->dialect, answer.body.data, health, err))
		rc = OCS_SWITCH_UNKNOWN;
	ocs_tl1_message_free(&answer);
	return rc;
}

static int tl1_read_status(struct ocs_switch_connection *connection, struct ocs_health *health,
			   struct ocs_error *err)
{
	const struct ocs_tl1_dialect *dialect = ((struct tl1 *)connection->state)->dialect;

	return read_health(connection, dialect->status, ocs_tl1_parse_status, health, err);
}

static int tl1_read_power(struct ocs_switch_connection *connection, struct ocs_health *health,
			  struct ocs_error *err)
{
	const struct ocs_tl1_dialect *dialect = ((struct tl1 *)connection->state)->dialect;

	return read_health(connection, dialect->power, ocs_tl1_parse_power, health, err);
}

static int tl1_listen(struct ocs_switch_connection *connection, int wait_ms, struct ocs_error *err)
{
	int64_t deadline = ocs_now_ns() + (int64_t)wait_ms * 1000000;

	if (connection->fd < 0) {
		ocs_error_set(err, OCS_UNREACHABLE, "the connection was lost earlier");
		return OCS_SWITCH_UNKNOWN;
	}
	for (;;) {
		struct ocs_error why = { 0 };
		char data[4096];
		long n = ocs_net_read(connection->fd, data, sizeof(data), deadline, &why);

		if (n > 0 && data_feed(connection, data, (size_t)n, NULL, NULL) < 0)
			ocs_error_set(err, OCS_ERROR, "sends a message that has no end");
		else if (n == 0)
			ocs_error_set(err, OCS_UNREACHABLE, "closed the connection");
		else if (ocs_now_ns() >= deadline)
			return OCS_SWITCH_OK;
		else if (n > 0)
			continue;
		else
			ocs_error_set(err, OCS_UNREACHABLE, "lost: %s", why.text);
		return connection_lose(connection);
	}
}

const struct ocs_switch_driver ocs_tl1_driver = {
	.abi = OCS_DRIVER_ABI,
	.name = "tl1",
	.open = tl1_open,
	.close = tl1_close,
	.read_size = tl1_read_size,
	.read_table = tl1_read_table,
	.remove = tl1_remove,
	.add = tl1_add,
	.read_status = tl1_read_status,
	.read_power = tl1_read_power,
	.listen = tl1_listen,
};
