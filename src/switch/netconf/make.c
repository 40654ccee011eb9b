/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* The messages that are sent, and the last look at each of them. */

#include <libxml/parser.h>
#include <libxml/tree.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/switch/netconf/netconf.h"
#include "src/util/error.h"
#include "src/util/text.h"

#define X(text) ((const xmlChar *)(text))

/* NULL means that memory is exhausted, which ends the process everywhere else. */
static void *pointer_must(void *pointer)
{
	if (!pointer)
		abort();
	return pointer;
}

static xmlNode *element_add(xmlNode *parent, const char *name, const char *text)
{
	return pointer_must(xmlNewTextChild(parent, NULL, X(name), text ? X(text) : NULL));
}

static xmlNode *request_begin(const char *name, xmlDoc **document)
{
	xmlNode *root = pointer_must(xmlNewNode(NULL, X(name)));

	*document = pointer_must(xmlNewDoc(X("1.0")));
	xmlDocSetRootElement(*document, root);
	xmlSetNs(root, pointer_must(xmlNewNs(root, X(OCS_NETCONF_NS), NULL)));
	return root;
}

static xmlNode *begin_rpc(unsigned int id, const char *operation, xmlDoc **document)
{
	xmlNode *root = request_begin("rpc", document);
	char text[16];

	snprintf(text, sizeof(text), "%u", id);
	pointer_must(xmlNewProp(root, X("message-id"), X(text)));
	return element_add(root, operation, NULL);
}

static char *request_end(xmlDoc *document)
{
	xmlChar *bytes = NULL;
	char *text;
	int length;

	xmlDocDumpMemoryEnc(document, &bytes, &length, "UTF-8");
	text = ocs_strdup(pointer_must(bytes));
	xmlFree(bytes);
	xmlFreeDoc(document);
	return text;
}

char *ocs_netconf_make_hello(void)
{
	xmlDoc *document;
	xmlNode *list = element_add(request_begin("hello", &document), "capabilities", NULL);

	element_add(list, "capability", "urn:ietf:params:netconf:base:1.0");
	element_add(list, "capability", "urn:ietf:params:netconf:base:1.1");
	return request_end(document);
}

char *ocs_netconf_make_plain(unsigned int id, const char *operation)
{
	xmlDoc *document;
	xmlNode *node = begin_rpc(id, operation, &document);

	if (!strcmp(operation, "lock") || !strcmp(operation, "unlock"))
		element_add(element_add(node, "target", NULL), "running", NULL);
	if (!strcmp(operation, "create-subscription"))
		xmlSetNs(node, pointer_must(xmlNewNs(node, X(OCS_NETCONF_NOTIFICATION_NS), NULL)));
	return request_end(document);
}

/* A container of the model, in the model's namespace. */
static xmlNode *add_container(xmlNode *parent, const struct ocs_netconf_dialect *dialect,
			      const char *name)
{
	xmlNode *node = element_add(parent, name, NULL);

	xmlSetNs(node, pointer_must(xmlNewNs(node, X(dialect->ns), NULL)));
	return node;
}

char *ocs_netconf_make_read(unsigned int id, const struct ocs_netconf_dialect *dialect,
			    const struct ocs_netconf_list *list, bool values)
{
	/* Cross-connects are configuration; what a switch measures is state. */
	bool config = list == &dialect->patches && !list->state;
	xmlDoc *document;
	xmlNode *node = begin_rpc(id, config ? "get-config" : "get", &document);

	if (config)
		element_add(element_add(node, "source", NULL), "running", NULL);
	node = element_add(node, "filter", NULL);
	pointer_must(xmlNewProp(node, X("type"), X("subtree")));
	node = add_container(node, dialect, list->container);
	if (list != &dialect->patches) {
		node = element_add(node, list->list, NULL);
		element_add(node, list->key, NULL);
		if (values)
			element_add(node, list->value, NULL);
	}
	return request_end(document);
}

static int check_patches(int size, const struct ocs_patch *patches, size_t count,
			 struct ocs_error *err)
{
	if (!count)
		return ocs_error_set(
			err, OCS_USAGE,
			"an empty batch is never sent: a switch could take it for all ports");
	for (size_t i = 0; i < count; i++)
		if (patches[i].in < 1 || patches[i].in > size || patches[i].out <= size ||
		    patches[i].out > 2 * size)
			return ocs_error_set(err, OCS_USAGE,
					     "patch %d>%d does not exist on a %dx%d switch",
					     patches[i].in, patches[i].out, size, size);
	return 0;
}

static void add_port(xmlNode *pair, const char *name, int port)
{
	char text[16];

	snprintf(text, sizeof(text), "%d", port);
	element_add(pair, name, text);
}

char *ocs_netconf_make_edit(unsigned int id, const struct ocs_netconf_dialect *dialect,
			    enum ocs_netconf_edit edit, bool rollback, int size,
			    const struct ocs_patch *patches, size_t count, struct ocs_error *err)
{
	static const char *const operations[] = {
		[OCS_NETCONF_CREATE] = "create",
		[OCS_NETCONF_MERGE] = "merge",
		[OCS_NETCONF_DELETE] = "delete",
		[OCS_NETCONF_REMOVE] = "remove",
	};
	const struct ocs_netconf_list *list = &dialect->patches;
	xmlDoc *document;
	xmlNode *node;
	xmlNs *base;

	if (check_patches(size, patches, count, err))
		return NULL;
	node = begin_rpc(id, "edit-config", &document);
	element_add(element_add(node, "target", NULL), "running", NULL);
	element_add(node, "default-operation", "merge");
	if (rollback)
		element_add(node, "error-option", "rollback-on-error");
	node = element_add(node, "config", NULL);
	node = add_container(node, dialect, list->container);
	base = pointer_must(xmlNewNs(node, X(OCS_NETCONF_NS), X("nc")));
	for (size_t i = 0; i < count; i++) {
		xmlNode *pair = element_add(node, list->list, NULL);

		pointer_must(xmlNewNsProp(pair, base, X("operation"), X(operations[edit])));
		add_port(pair, list->key, patches[i].in);
		if (edit == OCS_NETCONF_CREATE || edit == OCS_NETCONF_MERGE)
			add_port(pair, list->value, patches[i].out);
	}
	return request_end(document);
}

static bool node_is(const xmlNode *node, const char *name)
{
	return node && node->type == XML_ELEMENT_NODE && !xmlStrcmp(node->name, X(name)) &&
	       node->ns && !xmlStrcmp(node->ns->href, X(OCS_NETCONF_NS));
}

/* Whether an element holds digits, and nothing else. */
static bool holds_number(const xmlNode *node)
{
	xmlChar *text = xmlNodeGetContent(node);
	size_t length = text ? strlen((char *)text) : 0;
	bool number = length && strspn((char *)text, "0123456789") == length;

	xmlFree(text);
	return number && !node->properties && !xmlFirstElementChild((xmlNode *)node);
}

/* One pair: an ingress, and for what is made an egress. */
static bool names_pair(const xmlNode *pair)
{
	xmlNode *first = xmlFirstElementChild((xmlNode *)pair);
	xmlNode *second = first ? xmlNextElementSibling(first) : NULL;
	const xmlAttr *attribute = pair->properties;
	xmlChar *operation;
	bool makes, breaks;

	if (!first || !holds_number(first) || !attribute || attribute->next ||
	    xmlStrcmp(attribute->name, X("operation")) || !attribute->ns ||
	    xmlStrcmp(attribute->ns->href, X(OCS_NETCONF_NS)))
		return false;
	operation = xmlNodeListGetString(pair->doc, attribute->children, 1);
	makes = !xmlStrcmp(operation, X("create")) || !xmlStrcmp(operation, X("merge"));
	breaks = !xmlStrcmp(operation, X("delete")) || !xmlStrcmp(operation, X("remove"));
	xmlFree(operation);
	if (makes)
		return second && holds_number(second) && !xmlNextElementSibling(second);
	return breaks && !second;
}

static bool content_is(const xmlNode *node, const char *wanted)
{
	xmlChar *text = xmlNodeGetContent(node);
	bool same = !xmlStrcmp(text, X(wanted));

	xmlFree(text);
	return same;
}

static bool harmless_config(const xmlNode *config)
{
	const xmlNode *container = xmlFirstElementChild((xmlNode *)config);
	const xmlNode *pair = container ? xmlFirstElementChild((xmlNode *)container) : NULL;

	if (config->properties || !pair || container->properties ||
	    xmlNextElementSibling((xmlNode *)container))
		return false;
	for (; pair; pair = xmlNextElementSibling((xmlNode *)pair))
		if (!names_pair(pair))
			return false;
	return true;
}

static bool harmless_edit(const xmlNode *edit)
{
	int configs = 0, defaults = 0;

	for (const xmlNode *node = xmlFirstElementChild((xmlNode *)edit); node;
	     node = xmlNextElementSibling((xmlNode *)node)) {
		if (node_is(node, "config")) {
			configs++;
			if (!harmless_config(node))
				return false;
		} else if (node_is(node, "default-operation")) {
			defaults++;
			if (!content_is(node, "merge"))
				return false;
		} else if (node_is(node, "target")) {
			if (!node_is(xmlFirstElementChild((xmlNode *)node), "running"))
				return false;
		} else if (!node_is(node, "error-option") ||
			   !content_is(node, "rollback-on-error")) {
			return false;
		}
	}
	return configs == 1 && defaults == 1;
}

static bool request_harmless(const xmlNode *root)
{
	static const char *const operations[] = { "get", "get-config", "lock", "unlock",
						  "close-session" };
	const xmlNode *operation;

	if (node_is(root, "hello"))
		return true;
	operation = node_is(root, "rpc") ? xmlFirstElementChild((xmlNode *)root) : NULL;
	if (!operation || xmlNextElementSibling((xmlNode *)operation))
		return false;
	if (node_is(operation, "edit-config"))
		return harmless_edit(operation);
	for (size_t i = 0; i < sizeof(operations) / sizeof(operations[0]); i++)
		if (node_is(operation, operations[i]))
			return true;
	return !xmlStrcmp(operation->name, X("create-subscription")) && operation->ns &&
	       !xmlStrcmp(operation->ns->href, X(OCS_NETCONF_NOTIFICATION_NS));
}

bool ocs_netconf_dangerous(const char *message, size_t length)
{
	struct ocs_netconf_message parsed;
	bool good = ocs_netconf_parse(message, length, &parsed, NULL) == 0 &&
		    request_harmless(xmlDocGetRootElement(parsed.document));

	ocs_netconf_message_free(&parsed);
	return !good;
}
