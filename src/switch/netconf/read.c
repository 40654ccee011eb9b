/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* What comes back: hellos, replies, errors, notifications. */

#include <libxml/parser.h>
#include <libxml/tree.h>
#include <libxml/xmlerror.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "src/switch/netconf/netconf.h"
#include "src/util/error.h"
#include "src/util/text.h"

#define X(text) ((const xmlChar *)(text))
#define NOTICE_LIMIT 400

static xmlNode *child_first(const xmlNode *node)
{
	return node ? xmlFirstElementChild((xmlNode *)node) : NULL;
}

static xmlNode *sibling_next(const xmlNode *node)
{
	return xmlNextElementSibling((xmlNode *)node);
}

static bool node_is(const xmlNode *node, const char *ns, const char *name)
{
	return node && !xmlStrcmp(node->name, X(name)) && node->ns &&
	       !xmlStrcmp(node->ns->href, X(ns));
}

static xmlNode *child_named(const xmlNode *node, const char *ns, const char *name)
{
	xmlNode *at = child_first(node);

	while (at && !node_is(at, ns, name))
		at = sibling_next(at);
	return at;
}

/* Appends one printable line: blanks run together, the rest becomes '?'. */
static void add_printable(struct ocs_text *text, const char *from, size_t limit)
{
	bool blank = !text->length || text->data[text->length - 1] == ' ';

	for (; *from && text->length < limit; from++) {
		bool is_blank = strchr(" \t\r\n", *from) != NULL;

		if (is_blank && blank)
			continue;
		blank = is_blank;
		ocs_text_add(text, "%c",
			     is_blank							 ? ' ' :
			     (unsigned char)*from < 0x20 || (unsigned char)*from >= 0x7f ? '?' :
											   *from);
	}
}

static void copy_content(const xmlNode *node, char *to, size_t size)
{
	xmlChar *content = node ? xmlNodeGetContent(node) : NULL;
	struct ocs_text text = { 0 };

	if (content)
		add_printable(&text, (const char *)content, size - 1);
	while (text.length && text.data[text.length - 1] == ' ')
		text.data[--text.length] = '\0';
	memcpy(to, text.data ? text.data : "", text.length + 1);
	ocs_text_free(&text);
	xmlFree(content);
}

static unsigned long number_of(const xmlNode *node)
{
	char text[24];
	long value;

	copy_content(node, text, sizeof(text));
	return ocs_number_parse(text, 1, 4294967295L, &value) ? 0 : (unsigned long)value;
}

static void take_fault(const xmlNode *error, struct ocs_netconf_fault *fault)
{
	copy_content(child_named(error, OCS_NETCONF_NS, "error-tag"), fault->tag,
		     sizeof(fault->tag));
	copy_content(child_named(error, OCS_NETCONF_NS, "error-message"), fault->message,
		     sizeof(fault->message));
	copy_content(child_named(error, OCS_NETCONF_NS, "error-path"), fault->path,
		     sizeof(fault->path));
	fault->session = number_of(child_named(child_named(error, OCS_NETCONF_NS, "error-info"),
					       OCS_NETCONF_NS, "session-id"));
}

static void take_reply(const xmlNode *root, struct ocs_netconf_message *message)
{
	xmlChar *id = xmlGetNoNsProp((xmlNode *)root, X("message-id"));
	char severity[16];
	long value;

	if (id && ocs_number_parse((const char *)id, 0, 4294967295L, &value) == 0) {
		message->has_id = true;
		message->id = (unsigned long)value;
	}
	xmlFree(id);
	for (const xmlNode *node = child_first(root); node; node = sibling_next(node)) {
		if (node_is(node, OCS_NETCONF_NS, "ok"))
			message->ok = true;
		if (!node_is(node, OCS_NETCONF_NS, "rpc-error") || message->failed)
			continue;
		copy_content(child_named(node, OCS_NETCONF_NS, "error-severity"), severity,
			     sizeof(severity));
		if (!strcmp(severity, "warning"))
			continue;
		message->failed = true;
		take_fault(node, &message->fault);
	}
}

/* "port-changed port=3 status=FAILED" from elements without their markup. */
static void text_flatten(const xmlNode *node, struct ocs_text *text, int depth)
{
	xmlChar *content;

	add_printable(text, (const char *)node->name, NOTICE_LIMIT);
	if (child_first(node)) {
		for (const xmlNode *at = child_first(node); at && depth < 8;
		     at = sibling_next(at)) {
			add_printable(text, " ", NOTICE_LIMIT);
			text_flatten(at, text, depth + 1);
		}
		return;
	}
	content = xmlNodeGetContent(node);
	if (content && *content) {
		add_printable(text, "=", NOTICE_LIMIT);
		add_printable(text, (const char *)content, NOTICE_LIMIT);
	}
	xmlFree(content);
}

static void take_notification(const xmlNode *root, struct ocs_netconf_message *message)
{
	struct ocs_text text = { 0 };

	for (const xmlNode *node = child_first(root); node; node = sibling_next(node)) {
		if (node_is(node, OCS_NETCONF_NOTIFICATION_NS, "eventTime"))
			continue;
		if (text.length)
			add_printable(&text, " ", NOTICE_LIMIT);
		text_flatten(node, &text, 0);
	}
	message->notice = ocs_text_take(&text);
}

/* The document, or NULL with ERR. */
static xmlDoc *read_document(const char *data, size_t length, struct ocs_error *err)
{
	const int options = XML_PARSE_NONET | XML_PARSE_NOERROR | XML_PARSE_NOWARNING |
			    XML_PARSE_NOBLANKS | XML_PARSE_NOCDATA | XML_PARSE_COMPACT;
	xmlDoc *document = NULL;

	while (length && strchr(" \t\r\n", *data)) {
		data++;
		length--;
	}
	/* RFC 6241 forbids it, and without it there are no entities. */
	if (memmem(data, length, "<!DOCTYPE", 9))
		ocs_error_set(err, OCS_ERROR, "sends a document type, which NETCONF forbids");
	else if (length <= OCS_NETCONF_MESSAGE_LIMIT)
		/* NETCONF is UTF-8, whatever a declaration says. */
		document = xmlReadMemory(data, (int)length, NULL, "UTF-8", options);
	else
		ocs_error_set(err, OCS_ERROR, "sends a message that has no end");
	if (document && !xmlGetIntSubset(document) && xmlDocGetRootElement(document))
		return document;
	if (!memmem(data, length, "<!DOCTYPE", 9) && length <= OCS_NETCONF_MESSAGE_LIMIT)
		ocs_error_set(err, OCS_ERROR, "sends what is not well-formed XML");
	xmlFreeDoc(document);
	return NULL;
}

int ocs_netconf_parse(const char *data, size_t length, struct ocs_netconf_message *message,
		      struct ocs_error *err)
{
	const xmlNode *root;

	memset(message, 0, sizeof(*message));
	message->document = read_document(data, length, err);
	if (!message->document)
		return -1;
	root = xmlDocGetRootElement(message->document);
	if (node_is(root, OCS_NETCONF_NS, "rpc-reply")) {
		message->kind = OCS_NETCONF_REPLY;
		take_reply(root, message);
	} else if (node_is(root, OCS_NETCONF_NOTIFICATION_NS, "notification")) {
		message->kind = OCS_NETCONF_NOTIFICATION;
		take_notification(root, message);
	}
	return 0;
}

void ocs_netconf_message_free(struct ocs_netconf_message *message)
{
	xmlFreeDoc(message->document);
	free(message->notice);
	memset(message, 0, sizeof(*message));
}

static bool capability_announces(const char *uri, const char *name)
{
	size_t length = strlen(name);

	return !strncmp(uri, name, length) && (!uri[length] || uri[length] == '?');
}

static void take_capability(const struct ocs_netconf_dialect *dialect, const char *uri,
			    struct ocs_netconf_hello *hello)
{
#define CAPABILITY "urn:ietf:params:netconf:capability:"
	if (capability_announces(uri, "urn:ietf:params:netconf:base:1.0"))
		hello->base_1_0 = true;
	else if (capability_announces(uri, "urn:ietf:params:netconf:base:1.1"))
		hello->base_1_1 = true;
	else if (capability_announces(uri, CAPABILITY "writable-running:1.0"))
		hello->writable_running = true;
	else if (capability_announces(uri, CAPABILITY "rollback-on-error:1.0"))
		hello->rollback = true;
	else if (capability_announces(uri, CAPABILITY "interleave:1.0"))
		hello->notifications = true;
	else if (capability_announces(uri, dialect->ns))
		hello->model = true;
#undef CAPABILITY
}

int ocs_netconf_parse_hello(const struct ocs_netconf_dialect *dialect, const char *message,
			    size_t length, struct ocs_netconf_hello *hello, struct ocs_error *err)
{
	struct ocs_netconf_message parsed;
	const xmlNode *root, *list;
	char uri[512];
	int rc = -1;

	memset(hello, 0, sizeof(*hello));
	if (ocs_netconf_parse(message, length, &parsed, err))
		return -1;
	root = xmlDocGetRootElement(parsed.document);
	list = child_named(root, OCS_NETCONF_NS, "capabilities");
	for (const xmlNode *node = child_first(list); node; node = sibling_next(node)) {
		if (!node_is(node, OCS_NETCONF_NS, "capability"))
			continue;
		copy_content(node, uri, sizeof(uri));
		take_capability(dialect, uri, hello);
	}
	hello->session = number_of(child_named(root, OCS_NETCONF_NS, "session-id"));
	if (!node_is(root, OCS_NETCONF_NS, "hello"))
		ocs_error_set(err, OCS_ERROR,
			      "sends something else where a NETCONF hello was expected");
	else if (!hello->base_1_0 && !hello->base_1_1)
		ocs_error_set(err, OCS_ERROR, "speaks neither NETCONF base:1.0 nor base:1.1");
	else if (!hello->session)
		ocs_error_set(err, OCS_ERROR, "sends a hello without session-id");
	else
		rc = 0;
	ocs_netconf_message_free(&parsed);
	return rc;
}

/* The first entry of LIST in a reply, or NULL. */
static xmlNode *first_entry(const struct ocs_netconf_dialect *dialect,
			    const struct ocs_netconf_message *message,
			    const struct ocs_netconf_list *list)
{
	const xmlNode *data =
		child_named(xmlDocGetRootElement(message->document), OCS_NETCONF_NS, "data");

	return child_named(child_named(data, dialect->ns, list->container), dialect->ns,
			   list->list);
}

static xmlNode *next_entry(const struct ocs_netconf_dialect *dialect, const xmlNode *node,
			   const struct ocs_netconf_list *list)
{
	xmlNode *at = sibling_next(node);

	while (at && !node_is(at, dialect->ns, list->list))
		at = sibling_next(at);
	return at;
}

static int leaf_number(const struct ocs_netconf_dialect *dialect, const xmlNode *entry,
		       const char *name)
{
	unsigned long value = number_of(child_named(entry, dialect->ns, name));

	return value <= 1000000 ? (int)value : 0;
}

static int table_entry(const struct ocs_netconf_dialect *dialect, const xmlNode *entry,
		       struct ocs_table *table, int *peer, struct ocs_error *err)
{
	const struct ocs_netconf_list *list = &dialect->patches;
	int in = leaf_number(dialect, entry, list->key);
	int out = leaf_number(dialect, entry, list->value);

	if (!in || !out)
		return ocs_error_set(err, OCS_ERROR, "reports a %s without %s or %s", list->list,
				     list->key, list->value);
	if (in > table->size || out <= table->size || out > 2 * table->size)
		return ocs_error_set(err, OCS_ERROR,
				     "reports the patch %d>%d, which a %dx%d switch cannot have",
				     in, out, table->size, table->size);
	if ((table->out[in] && table->out[in] != out) ||
	    (peer[out - table->size] && peer[out - table->size] != in))
		return ocs_error_set(err, OCS_ERROR,
				     "reports the patch %d>%d for a port that has another peer", in,
				     out);
	table->out[in] = out;
	peer[out - table->size] = in;
	return 0;
}

int ocs_netconf_parse_table(const struct ocs_netconf_dialect *dialect,
			    const struct ocs_netconf_message *message, struct ocs_table *table,
			    int *pending, struct ocs_error *err)
{
	const struct ocs_netconf_list *list = &dialect->patches;
	int *peer;
	char state[32];
	int rc = 0;

	*pending = 0;
	/* no data are not the data of an empty table */
	if (!child_named(xmlDocGetRootElement(message->document), OCS_NETCONF_NS, "data"))
		return ocs_error_set(err, OCS_ERROR,
				     "answers without data where its %s were asked for",
				     list->list);
	peer = ocs_calloc((size_t)table->size + 1, sizeof(*peer));
	for (const xmlNode *entry = first_entry(dialect, message, list); entry && !rc;
	     entry = next_entry(dialect, entry, list)) {
		if (list->state) {
			copy_content(child_named(entry, dialect->ns, list->state), state,
				     sizeof(state));
			*pending += !strncmp(state, "PENDING_", 8);
		}
		rc = table_entry(dialect, entry, table, peer, err);
	}
	free(peer);
	return rc;
}

int ocs_netconf_parse_size(const struct ocs_netconf_dialect *dialect,
			   const struct ocs_netconf_message *message, int *size,
			   struct ocs_error *err)
{
	const struct ocs_netconf_list *list = &dialect->status;
	int count = 0, highest = 0, lowest = 1;

	for (const xmlNode *entry = first_entry(dialect, message, list); entry;
	     entry = next_entry(dialect, entry, list)) {
		int port = leaf_number(dialect, entry, list->key);

		count++;
		highest = port > highest ? port : highest;
		lowest = port < lowest ? port : lowest;
	}
	if (!count)
		return ocs_error_set(err, OCS_ERROR, "tells of no ports in %s of the model %s",
				     list->container, dialect->ns);
	if (lowest < 1 || highest != count || count % 2)
		return ocs_error_set(
			err, OCS_ERROR,
			"tells of %d ports up to %d in %s of the model %s, where a size NxN has 1 to 2N",
			count, highest, list->container, dialect->ns);
	*size = count / 2;
	return 0;
}

typedef void (*take_value)(const struct ocs_netconf_dialect *dialect, const char *text,
			   struct ocs_port_health *port);

static int take_ports(const struct ocs_netconf_dialect *dialect,
		      const struct ocs_netconf_message *message,
		      const struct ocs_netconf_list *list, take_value take,
		      struct ocs_health *health, struct ocs_error *err)
{
	char text[64];

	for (const xmlNode *entry = first_entry(dialect, message, list); entry;
	     entry = next_entry(dialect, entry, list)) {
		int port = leaf_number(dialect, entry, list->key);

		if (port < 1 || port > health->ports)
			return ocs_error_set(err, OCS_ERROR,
					     "tells the %s of port %d, but has the ports 1 to %d",
					     list->value, port, health->ports);
		copy_content(child_named(entry, dialect->ns, list->value), text, sizeof(text));
		if (*text)
			take(dialect, text, &health->port[port]);
	}
	return 0;
}

static void take_status(const struct ocs_netconf_dialect *dialect, const char *text,
			struct ocs_port_health *port)
{
	const char *colon = strrchr(text, ':');

	/* An identity carries a prefix. */
	text = colon ? colon + 1 : text;
	port->status = OCS_PORT_UNKNOWN;
	for (const struct ocs_netconf_word *word = dialect->words; word->word; word++)
		if (!strcasecmp(word->word, text))
			port->status = word->status;
}

static void take_power(const struct ocs_netconf_dialect *dialect, const char *text,
		       struct ocs_port_health *port)
{
	char *end;
	double value = strtod(text, &end);

	(void)dialect;
	port->dbm = end != text && !*end && isfinite(value) ? value : NAN;
}

int ocs_netconf_parse_status(const struct ocs_netconf_dialect *dialect,
			     const struct ocs_netconf_message *message, struct ocs_health *health,
			     struct ocs_error *err)
{
	return take_ports(dialect, message, &dialect->status, take_status, health, err);
}

int ocs_netconf_parse_power(const struct ocs_netconf_dialect *dialect,
			    const struct ocs_netconf_message *message, struct ocs_health *health,
			    struct ocs_error *err)
{
	return take_ports(dialect, message, &dialect->power, take_power, health, err);
}
