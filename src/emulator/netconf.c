/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* NETCONF of a switch, seen from its side: hellos, requests, errors.  An edit is
 * done as a whole or not at all (unless a fault makes it half). */

#include <event2/bufferevent.h>
#include <libxml/parser.h>
#include <libxml/tree.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "src/emulator/emulator.h"
#include "src/emulator/netconf_data.h"
#include "src/emulator/ssh.h"
#include "src/switch/netconf/netconf.h"
#include "src/util/text.h"

#define X(text) ((const xmlChar *)(text))
#define CAPABILITY "urn:ietf:params:netconf:capability:"

struct session {
	struct ocs_netconf_framer framer;
	unsigned long id;
	bool greeted;
	bool broken; /* nothing it sends is listened to */
};

/* Of the switch. */
struct switch_state {
	unsigned long sessions; /* so far */
	unsigned long lock;	/* session that holds it, or 0 */
};

/* What one edit wants, pair by pair. */
struct edit {
	int *in, *out;
	int count;
	bool makes, breaks, all;
};

struct request {
	struct ocs_netconf_message message;
	const xmlNode *operation; /* NULL: no request that can be read */
	char id[64];
	const char *tag; /* of the error; NULL: none */
	char *why;
	int in;		      /* ingress of the pair in question, or 0 */
	unsigned long holder; /* of the lock in the way */
	struct edit edit;
};

static const struct ocs_netconf_dialect *dialect_of(const struct ocs_emu_switch *sw)
{
	return ocs_netconf_dialect_find(sw->dialect);
}

static struct switch_state *state_of(struct ocs_emu_switch *sw)
{
	if (!sw->state)
		sw->state = ocs_calloc(1, sizeof(struct switch_state));
	return sw->state;
}

static bool dialect_known(const struct ocs_emu_switch *sw)
{
	return dialect_of(sw) != NULL;
}

static bool is_operation(const struct request *request, const char *name)
{
	return ocs_emu_netconf_is(request->operation, OCS_NETCONF_NS, name);
}

static void add_escaped(struct ocs_text *text, const char *from)
{
	xmlChar *escaped = xmlEncodeSpecialChars(NULL, X(from));

	ocs_text_add(text, "%s", escaped ? (char *)escaped : "");
	xmlFree(escaped);
}

static void send_message(struct ocs_emu_client *client, bool chunked, const char *message)
{
	size_t length;
	char *framed = ocs_netconf_frame(chunked, message, &length);

	ocs_emu_send(client, framed, length);
	free(framed);
}

/* No further command of this client is read; those it sent are done. */
static void hang_up(struct ocs_emu_client *client)
{
	((struct session *)client->state)->broken = true;
	shutdown(bufferevent_getfd(client->events), SHUT_RD);
}

static void open_session(struct ocs_emu_client *client)
{
	static const char *const capabilities[] = {
		"urn:ietf:params:netconf:base:1.0", "urn:ietf:params:netconf:base:1.1",
		CAPABILITY "writable-running:1.0",  CAPABILITY "rollback-on-error:1.0",
		CAPABILITY "notification:1.0",	    CAPABILITY "interleave:1.0",
	};
	struct session *session = ocs_calloc(1, sizeof(*session));
	struct ocs_text text = { 0 };

	client->state = session;
	client->logged_in = true; /* SSH has seen to that */
	client->muted = true;	  /* until it subscribes */
	session->id = ++state_of(client->sw)->sessions;
	ocs_text_add(
		&text,
		"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<hello xmlns=\"%s\"><capabilities>",
		OCS_NETCONF_NS);
	for (size_t i = 0; i < sizeof(capabilities) / sizeof(capabilities[0]); i++)
		ocs_text_add(&text, "<capability>%s</capability>", capabilities[i]);
	ocs_text_add(
		&text,
		"<capability>%s?module=optical-switch</capability></capabilities><session-id>%lu</session-id></hello>",
		dialect_of(client->sw)->ns, session->id);
	send_message(client, false, text.data);
	ocs_text_free(&text);
}

static void close_session(struct ocs_emu_client *client)
{
	struct session *session = client->state;

	if (state_of(client->sw)->lock == session->id)
		state_of(client->sw)->lock = 0;
	ocs_netconf_framer_free(&session->framer);
	free(session);
	client->state = NULL;
}

/* The client's hello: from then on chunks, if it knows them. */
static void client_greet(struct ocs_emu_client *client, const char *text, size_t length)
{
	struct session *session = client->state;
	struct ocs_netconf_message message;
	const xmlNode *root, *list;

	if (ocs_netconf_parse(text, length, &message, NULL) == 0) {
		root = xmlDocGetRootElement(message.document);
		list = ocs_emu_netconf_is(root, OCS_NETCONF_NS, "hello") ?
			       ocs_emu_netconf_child(root, OCS_NETCONF_NS, "capabilities") :
			       NULL;
		session->greeted = list != NULL;
		for (const xmlNode *node = ocs_emu_netconf_child(list, NULL, NULL); node;
		     node = xmlNextElementSibling((xmlNode *)node)) {
			xmlChar *uri = xmlNodeGetContent(node);

			if (!xmlStrcmp(uri, X("urn:ietf:params:netconf:base:1.1")))
				session->framer.chunked = true;
			xmlFree(uri);
		}
	}
	ocs_netconf_message_free(&message);
	if (!session->greeted)
		hang_up(client);
}

static void take_bytes(struct ocs_emu_client *client, const char *data, size_t length)
{
	struct session *session = client->state;

	while (!session->broken) {
		size_t message_length;
		char *text;
		int rc = ocs_netconf_framer_take(&session->framer, &data, &length, &text,
						 &message_length, NULL);

		if (rc == 0)
			return;
		if (rc < 0) {
			hang_up(client);
		} else if (!session->greeted) {
			client_greet(client, text, message_length);
			free(text);
		} else {
			ocs_emu_queue(client, text, NULL);
		}
	}
}

static bool command_changes(const struct ocs_emu_switch *sw, const struct ocs_emu_command *command)
{
	(void)sw;
	return strstr(command->text, "edit-config") != NULL;
}

static void request_refuse(struct request *request, const char *tag, int in, const char *why)
{
	if (request->tag)
		return;
	request->tag = tag;
	request->in = in;
	request->why = ocs_strdup(why);
}

static const char *operation_of(const xmlNode *node, const char *inherited)
{
	static const char *const names[] = { "merge", "create", "delete", "remove", "replace" };
	xmlChar *value = xmlGetNsProp((xmlNode *)node, X("operation"), X(OCS_NETCONF_NS));
	const char *name = value ? "" : inherited;

	for (size_t i = 0; value && i < sizeof(names) / sizeof(names[0]); i++)
		if (!xmlStrcmp(value, X(names[i])))
			name = names[i];
	xmlFree(value);
	return name;
}

static int leaf_read(const struct ocs_netconf_dialect *dialect, const xmlNode *node,
		     const char *name)
{
	xmlChar *content = xmlNodeGetContent(ocs_emu_netconf_child(node, dialect->ns, name));
	long value = 0;

	if (content && ocs_number_parse((char *)content, 1, 1000000, &value))
		value = 0;
	xmlFree(content);
	return (int)value;
}

/* One pair of an edit. */
static void take_pair(struct ocs_emu_switch *sw, struct request *request, const xmlNode *pair,
		      const char *inherited)
{
	const struct ocs_netconf_dialect *dialect = dialect_of(sw);
	const char *operation = operation_of(pair, inherited);
	int in = leaf_read(dialect, pair, dialect->patches.key);
	int out = leaf_read(dialect, pair, dialect->patches.value);
	struct edit *edit = &request->edit;
	bool breaks = !strcmp(operation, "delete") || !strcmp(operation, "remove");
	bool known = in >= 1 && in <= sw->size;

	if (!*operation) {
		request_refuse(request, "bad-attribute", in, "no such operation");
	} else if (!in || (!breaks && !out)) {
		request_refuse(request, "missing-element", in, "a pair needs two ports");
	} else if (!strcmp(operation, "delete") && known && !sw->out[in]) {
		request_refuse(request, "data-missing", in, "there is no such pair");
	} else if (!strcmp(operation, "create") && known && sw->out[in]) {
		request_refuse(request, "data-exists", in, "there is such a pair");
	} else if (breaks && !known) {
		request_refuse(request, "invalid-value", in, "there is no such ingress port");
	} else if (breaks && !sw->out[in]) {
		edit->breaks = true; /* nothing to remove */
	} else {
		edit->in[edit->count] = in;
		edit->out[edit->count++] = out;
		*(breaks ? &edit->breaks : &edit->makes) = true;
	}
}

static void take_config(struct ocs_emu_switch *sw, struct request *request, const xmlNode *config,
			const char *inherited)
{
	const struct ocs_netconf_dialect *dialect = dialect_of(sw);
	const struct ocs_netconf_list *list = &dialect->patches;
	const xmlNode *container = ocs_emu_netconf_child(config, NULL, NULL);
	size_t count = (size_t)xmlChildElementCount((xmlNode *)container);

	request->edit.in = ocs_calloc(count + 1, sizeof(int));
	request->edit.out = ocs_calloc(count + 1, sizeof(int));
	if (!ocs_emu_netconf_is(container, dialect->ns, list->container)) {
		request_refuse(request, "unknown-element", 0, "only cross-connects can be edited");
		return;
	}
	inherited = operation_of(container, inherited);
	if (!strcmp(inherited, "delete") || !strcmp(inherited, "remove") ||
	    !strcmp(inherited, "replace"))
		request->edit.all = true;
	if (!strcmp(inherited, "delete") || !strcmp(inherited, "remove"))
		return;
	for (const xmlNode *pair = ocs_emu_netconf_child(container, NULL, NULL); pair;
	     pair = xmlNextElementSibling((xmlNode *)pair)) {
		if (ocs_emu_netconf_is(pair, dialect->ns, list->list))
			take_pair(sw, request, pair, inherited);
		else
			request_refuse(request, "unknown-element", 0, "only pairs can be edited");
	}
}

/* The model's verdict in the words of NETCONF. */
static void request_translate(struct ocs_emu_command *command)
{
	static const struct {
		const char *tag, *why;
	} words[] = {
		[OCS_EMU_PART] = { "partial-operation", "only a part is done" },
		[OCS_EMU_BUSY] = { "operation-failed", "the switch cannot do this now" },
		[OCS_EMU_NO_PORT] = { "invalid-value", "there is no port" },
		[OCS_EMU_WRONG_SIDE] = { "invalid-value", "on the wrong side is port" },
		[OCS_EMU_TWICE] = { "invalid-value", "named twice is port" },
		[OCS_EMU_TAKEN] = { "operation-failed", "another peer has port" },
		[OCS_EMU_BAD_PORT] = { "operation-failed", "out of order is port" },
	};
	struct request *request = command->state;
	struct ocs_text why = { 0 };
	int in = 0;

	if (command->verdict == OCS_EMU_DONE)
		return;
	ocs_text_add(&why, "%s", words[command->verdict].why);
	if (command->verdict > OCS_EMU_BUSY)
		ocs_text_add(&why, " %ld", command->port);
	for (int i = 0; command->port && i < request->edit.count; i++)
		if (request->edit.in[i] == command->port || request->edit.out[i] == command->port)
			in = request->edit.in[i];
	request_refuse(request, words[command->verdict].tag, in, why.data);
	ocs_text_free(&why);
}

static void begin_edit(struct ocs_emu_switch *sw, struct ocs_emu_command *command)
{
	struct request *request = command->state;
	struct edit *edit = &request->edit;
	const xmlNode *config = ocs_emu_netconf_child(request->operation, OCS_NETCONF_NS, "config");
	xmlChar *inherited = xmlNodeGetContent(
		ocs_emu_netconf_child(request->operation, OCS_NETCONF_NS, "default-operation"));

	if (!ocs_emu_netconf_child(
		    ocs_emu_netconf_child(request->operation, OCS_NETCONF_NS, "target"),
		    OCS_NETCONF_NS, "running"))
		request_refuse(request, "operation-not-supported", 0, "only running can be edited");
	else if (!config)
		request_refuse(request, "missing-element", 0, "config is missing");
	else
		take_config(sw, request, config, inherited ? (char *)inherited : "merge");
	xmlFree(inherited);
	if (edit->makes && (edit->breaks || edit->all))
		request_refuse(request, "operation-not-supported", 0,
			       "an edit either makes or breaks pairs");
	if (request->tag)
		return;
	if (edit->all)
		ocs_emu_break_all(sw, command, "edit-config");
	else if (edit->makes)
		ocs_emu_begin_make(sw, command, edit->in, edit->out, edit->count);
	else
		ocs_emu_begin_break(sw, command, edit->in, edit->count);
	request_translate(command);
}

static unsigned long session_of(const struct ocs_emu_command *command)
{
	return command->client ? ((struct session *)command->client->state)->id : 0;
}

static void read_request(struct ocs_emu_command *command)
{
	struct request *request = ocs_calloc(1, sizeof(*request));
	const xmlNode *root;
	xmlChar *id;

	command->state = request;
	if (ocs_netconf_parse(command->text, strlen(command->text), &request->message, NULL)) {
		request_refuse(request, "malformed-message", 0,
			       "this is no XML that NETCONF allows");
		return;
	}
	root = xmlDocGetRootElement(request->message.document);
	id = xmlGetNoNsProp((xmlNode *)root, X("message-id"));
	if (id && xmlStrlen(id) < (int)sizeof(request->id))
		strcpy(request->id, (char *)id);
	xmlFree(id);
	if (ocs_emu_netconf_is(root, OCS_NETCONF_NS, "rpc"))
		request->operation = ocs_emu_netconf_child(root, NULL, NULL);
	if (!request->operation)
		request_refuse(request, "missing-element", 0, "a request holds one operation");
	else if (!*request->id)
		request_refuse(request, "missing-attribute", 0, "a request has a message-id");
}

static void session_begin(struct ocs_emu_switch *sw, struct ocs_emu_command *command)
{
	struct request *request;

	read_request(command);
	request = command->state;
	if (request->tag || !is_operation(request, "edit-config"))
		return;
	if (state_of(sw)->lock && state_of(sw)->lock != session_of(command)) {
		request->holder = state_of(sw)->lock;
		request_refuse(request, "in-use", 0, "another session holds the lock");
		return;
	}
	begin_edit(sw, command);
}

static void lock_take(struct ocs_emu_switch *sw, struct request *request, unsigned long session)
{
	if (state_of(sw)->lock) {
		request->holder = state_of(sw)->lock;
		request_refuse(request, "lock-denied", 0, "the lock is held already");
		return;
	}
	state_of(sw)->lock = session;
}

static void lock_release(struct ocs_emu_switch *sw, struct request *request, unsigned long session)
{
	if (state_of(sw)->lock == session)
		state_of(sw)->lock = 0;
	else
		request_refuse(request, "operation-failed", 0,
			       "the lock is not held by this session");
}

static void kill_session(struct ocs_emu_switch *sw, struct request *request)
{
	xmlChar *content = xmlNodeGetContent(
		ocs_emu_netconf_child(request->operation, OCS_NETCONF_NS, "session-id"));
	unsigned long id = content ? strtoul((char *)content, NULL, 10) : 0;
	struct ocs_emu_client *client = sw->clients;

	xmlFree(content);
	while (client && ((struct session *)client->state)->id != id)
		client = client->next;
	if (client)
		shutdown(bufferevent_getfd(client->events), SHUT_RDWR);
	else
		request_refuse(request, "invalid-value", 0, "there is no such session");
}

static void command_finish(struct ocs_emu_switch *sw, struct ocs_emu_command *command)
{
	struct request *request = command->state;

	if (request->tag && command->verdict != OCS_EMU_PART)
		return;
	if (is_operation(request, "edit-config") && request->edit.makes) {
		ocs_emu_finish_make(sw, command);
		request_translate(command);
	} else if (is_operation(request, "lock")) {
		lock_take(sw, request, session_of(command));
	} else if (is_operation(request, "unlock")) {
		lock_release(sw, request, session_of(command));
	} else if (is_operation(request, "kill-session")) {
		kill_session(sw, request);
	} else if (is_operation(request, "close-session")) {
		if (command->client)
			hang_up(command->client);
	} else if (ocs_emu_netconf_is(request->operation, OCS_NETCONF_NOTIFICATION_NS,
				      "create-subscription")) {
		if (command->client)
			command->client->muted = false;
	} else if (!is_operation(request, "edit-config") && !is_operation(request, "get") &&
		   !is_operation(request, "get-config")) {
		request_refuse(request, "operation-not-supported", 0, "no such operation");
	}
}

static void add_error(struct ocs_text *text, const struct ocs_emu_switch *sw,
		      const struct request *request)
{
	const struct ocs_netconf_list *list = &dialect_of(sw)->patches;

	ocs_text_add(
		text,
		"<rpc-error><error-type>application</error-type><error-tag>%s</error-tag><error-severity>error</error-severity>",
		request->tag);
	if (request->in)
		ocs_text_add(text, "<error-path xmlns:m=\"%s\">/m:%s/m:%s[m:%s='%d']</error-path>",
			     dialect_of(sw)->ns, list->container, list->list, list->key,
			     request->in);
	ocs_text_add(text, "<error-message xml:lang=\"en\">");
	add_escaped(text, request->why);
	ocs_text_add(text, "%s", sw->says ? ": " : "");
	add_escaped(text, sw->says ? sw->says : "");
	ocs_text_add(text, "</error-message>");
	if (request->holder)
		ocs_text_add(text, "<error-info><session-id>%lu</session-id></error-info>",
			     request->holder);
	ocs_text_add(text, "</rpc-error>");
}

static void reply_make(struct ocs_emu_switch *sw, const struct ocs_emu_command *command,
		       struct ocs_text *bytes)
{
	const struct session *session = command->client->state;
	const struct request *request = command->state;
	struct ocs_text text = { 0 };
	size_t length;
	char *framed;

	ocs_text_add(&text, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<rpc-reply xmlns=\"%s\"",
		     OCS_NETCONF_NS);
	if (*request->id) {
		ocs_text_add(&text, " message-id=\"");
		add_escaped(&text, request->id);
		ocs_text_add(&text, "\"");
	}
	ocs_text_add(&text, ">");
	if (request->tag)
		add_error(&text, sw, request);
	else if (is_operation(request, "get") || is_operation(request, "get-config"))
		ocs_emu_netconf_data(&text, sw, request->operation);
	else
		ocs_text_add(&text, "<ok/>");
	ocs_text_add(&text, "</rpc-reply>");
	framed = ocs_netconf_frame(session->framer.chunked, text.data, &length);
	ocs_text_add(bytes, "%s", framed);
	free(framed);
	ocs_text_free(&text);
}

/* In one line, from the first element on. */
static char *text_masked(const struct ocs_emu_command *command)
{
	const char *from = command->text;
	char *line;

	if (!strncmp(from, "<?xml", 5) && strstr(from, "?>"))
		from = strstr(from, "?>") + 2;
	line = ocs_strdup(from + strspn(from, " \t\r\n"));
	for (char *at = line; *at; at++)
		if ((unsigned char)*at < 0x20)
			*at = ' ';
	return line;
}

static char *request_summary(const struct ocs_emu_command *command)
{
	const struct request *request = command->state;

	return ocs_asprintf("%s %s%s%s", *request->id ? request->id : "-",
			    request->tag ? request->tag : "ok", request->tag ? " " : "",
			    request->tag ? request->why : "");
}

static void request_free(struct ocs_emu_command *command)
{
	struct request *request = command->state;

	if (!request)
		return;
	ocs_netconf_message_free(&request->message);
	free(request->edit.in);
	free(request->edit.out);
	free(request->why);
	free(request);
	command->state = NULL;
}

static char *notice_send(struct ocs_emu_client *client, enum ocs_emu_notice kind, const char *words)
{
	const struct session *session = client->state;
	struct ocs_text text = { 0 };
	time_t now = time(NULL);
	const char *element = kind == OCS_EMU_EVENT ? "event" : "alarm";
	char date[32], *framed;
	struct tm tm;
	size_t length;

	gmtime_r(&now, &tm);
	strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%SZ", &tm);
	ocs_text_add(&text,
		     "<notification xmlns=\"%s\"><eventTime>%s</eventTime><%s xmlns=\"%s\"><text>",
		     OCS_NETCONF_NOTIFICATION_NS, date, element, dialect_of(client->sw)->ns);
	add_escaped(&text, words);
	ocs_text_add(&text, "</text></%s></notification>", element);
	framed = ocs_netconf_frame(session->framer.chunked, text.data, &length);
	ocs_text_free(&text);
	return framed;
}

const struct ocs_emu_protocol ocs_emu_netconf = {
	.name = "netconf",
	.speaks = dialect_known,
	.secure = ocs_emu_ssh_secure,
	.open = open_session,
	.close = close_session,
	.bytes = take_bytes,
	.changes = command_changes,
	.begin = session_begin,
	.finish = command_finish,
	.answer = reply_make,
	.masked = text_masked,
	.summary = request_summary,
	.forget = request_free,
	.notice = notice_send,
};
