/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/emulator/netconf_data.h"

#include <libxml/tree.h>
#include <string.h>

#include "src/emulator/emulator.h"
#include "src/switch/netconf/netconf.h"

#define X(text) ((const xmlChar *)(text))

bool ocs_emu_netconf_is(const xmlNode *node, const char *ns, const char *name)
{
	return node && !xmlStrcmp(node->name, X(name)) && node->ns &&
	       !xmlStrcmp(node->ns->href, X(ns));
}

xmlNode *ocs_emu_netconf_child(const xmlNode *node, const char *ns, const char *name)
{
	xmlNode *at = node ? xmlFirstElementChild((xmlNode *)node) : NULL;

	while (at && name && !ocs_emu_netconf_is(at, ns, name))
		at = xmlNextElementSibling(at);
	return at;
}

static void add_pairs(struct ocs_text *text, const struct ocs_emu_switch *sw,
		      const struct ocs_netconf_list *list)
{
	for (int in = 1; in <= sw->size; in++) {
		if (!sw->out[in])
			continue;
		ocs_text_add(text, "<%s><%s>%d</%s><%s>%d</%s>", list->list, list->key, in,
			     list->key, list->value, sw->out[in], list->value);
		if (list->state)
			ocs_text_add(text, "<%s>%s</%s>", list->state,
				     sw->ports[in].failed || sw->ports[sw->out[in]].failed ?
					     "FAILED" :
					     "CONNECTED",
				     list->state);
		ocs_text_add(text, "</%s>", list->list);
	}
}

static const char *status_word(const struct ocs_netconf_dialect *dialect,
			       const struct ocs_emu_port *port)
{
	enum ocs_port_status status = port->failed ? OCS_PORT_FAILED :
				      port->closed ? OCS_PORT_BLOCKED :
						     OCS_PORT_TUNED;
	const struct ocs_netconf_word *word = dialect->words;

	while (word->status != status)
		word++;
	return word->word;
}

/* Ports of one list; ONLY_KEYS: the filter named the key and nothing else. */
static void add_ports(struct ocs_text *text, const struct ocs_emu_switch *sw,
		      const struct ocs_netconf_list *list, bool status, bool power, bool only_keys)
{
	const struct ocs_netconf_dialect *dialect = ocs_netconf_dialect_find(sw->dialect);

	for (int port = 1; port <= 2 * sw->size; port++) {
		ocs_text_add(text, "<%s><%s>%d</%s>", list->list, list->key, port, list->key);
		if (status && !only_keys)
			ocs_text_add(text, "<%s>%s</%s>", dialect->status.value,
				     status_word(dialect, &sw->ports[port]), dialect->status.value);
		if (power && !only_keys)
			ocs_text_add(text, "<%s>%.2f</%s>", dialect->power.value,
				     ocs_emu_power(sw, port), dialect->power.value);
		ocs_text_add(text, "</%s>", list->list);
	}
}

/* A container, if the filter selects it. */
static void add_container(struct ocs_text *text, const struct ocs_emu_switch *sw,
			  const xmlNode *filter, const struct ocs_netconf_list *list)
{
	const struct ocs_netconf_dialect *dialect = ocs_netconf_dialect_find(sw->dialect);
	const xmlNode *container = ocs_emu_netconf_child(filter, dialect->ns, list->container);
	const xmlNode *entry = ocs_emu_netconf_child(container, dialect->ns, list->list);
	bool same = !strcmp(dialect->status.container, dialect->power.container);

	if (filter && !container)
		return;
	ocs_text_add(text, "<%s xmlns=\"%s\">", list->container, dialect->ns);
	if (list == &dialect->patches)
		add_pairs(text, sw, list);
	else
		add_ports(text, sw, list, same || list == &dialect->status,
			  same || list == &dialect->power,
			  entry && xmlChildElementCount((xmlNode *)entry) == 1);
	ocs_text_add(text, "</%s>", list->container);
}

void ocs_emu_netconf_data(struct ocs_text *text, const struct ocs_emu_switch *sw,
			  const void *operation)
{
	const struct ocs_netconf_dialect *dialect = ocs_netconf_dialect_find(sw->dialect);
	const xmlNode *get = operation,
		      *filter = ocs_emu_netconf_child(get, OCS_NETCONF_NS, "filter");

	ocs_text_add(text, "<data>");
	add_container(text, sw, filter, &dialect->patches);
	if (!xmlStrcmp(get->name, X("get"))) {
		add_container(text, sw, filter, &dialect->status);
		if (strcmp(dialect->status.container, dialect->power.container))
			add_container(text, sw, filter, &dialect->power);
	}
	ocs_text_add(text, "</data>");
}
