/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* The list `switches` of ocs.yaml: each entry describes many alike. */

#include <stdlib.h>
#include <string.h>

#include "src/config/expr.h"
#include "src/config/load.h"
#include "src/util/error.h"
#include "src/util/text.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

enum {
	NAME,
	DRIVER,
	DIALECT,
	ADDRESS,
	CREDENTIALS,
	HOST_KEY,
	KNOWN_HOSTS,
	SIZE,
	PORTS,
	MOVES,
	REPLACE,
	LOOP_PORTS,
	LOSS_BUDGET,
	LOSS_MAX
};

static const char *const tl1_dialects[] = { "polatis", "calient", "glimmerglass" };
static const char *const netconf_dialects[] = { "polatis", "ocp" };

/* The drivers, one in a line of each table; src/switch speaks them. */
static const char *const drivers[] = { "tl1", "scpi", "netconf" };
static const struct {
	const char *const *dialects; /* the first is the default; NULL: none */
	size_t ndialects;
	bool login; /* needs a credentials file, or has no use for one */
	bool ssh;   /* needs a host key */
} traits[] = {
	{ tl1_dialects, COUNT(tl1_dialects), true, false },
	{ NULL, 0, false, false },
	{ netconf_dialects, COUNT(netconf_dialects), true, true },
};
static const char *const sides[] = { "duplex", "bidi" };

/* One entry: its fields, and what all its switches share. */
struct entry {
	struct ocs_loader *loader;
	struct ocs_field *fields;
	int driver, dialect, size;
	bool bidi, moves, replace;
};

static int field_expand(struct entry *entry, int field, const struct ocs_variable *variables,
			size_t count, char **result)
{
	struct ocs_yaml *yaml = &entry->loader->yaml;
	const char *name = entry->fields[field].name;
	const char *template = ocs_yaml_text(yaml, entry->fields[field].node, name);
	struct ocs_text text = { 0 };

	if (!template)
		return -1;
	if (ocs_expr_expand(template, variables, count, &text, yaml->err) < 0) {
		ocs_text_free(&text);
		ocs_error_prefix(yaml->err, "%s: \"%.120s\"", name, template);
		return ocs_yaml_prefix(yaml, entry->fields[field].node);
	}
	*result = ocs_text_take(&text);
	return 0;
}

/* "SHA256:" and 256 bits in base64, as ssh-keygen -l prints them. */
static bool is_fingerprint(const char *text)
{
	return !strncmp(text, "SHA256:", 7) && strlen(text) == 50 &&
	       strspn(text + 7,
		      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/") == 43;
}

/* How the switch number INDEX of the entry proves that it is itself. */
static int host_key_load(struct entry *entry, const struct ocs_variable *variables, size_t count,
			 int index, struct ocs_switch *sw)
{
	struct ocs_yaml *yaml = &entry->loader->yaml;
	yaml_node_t *node = entry->fields[HOST_KEY].node;
	const char *text;

	if (node && node->type == YAML_SEQUENCE_NODE)
		node = ocs_yaml_item(yaml, node, index);
	if (node) {
		text = ocs_yaml_text(yaml, node, "host_key");
		if (!text)
			return -1;
		if (!is_fingerprint(text))
			return ocs_yaml_fail(
				yaml, node,
				"host_key must be a fingerprint as `ssh-keygen -l` prints it, SHA256: and 43 characters, not \"%.120s\"",
				text);
		sw->host_key = ocs_strdup(text);
		return 0;
	}
	node = entry->fields[KNOWN_HOSTS].node;
	if (!node)
		return 0;
	if (field_expand(entry, KNOWN_HOSTS, variables, count, &sw->known_hosts) < 0)
		return -1;
	if (sw->known_hosts[0] != '/')
		return ocs_yaml_fail(yaml, node,
				     "known_hosts must be an absolute path, not \"%.120s\"",
				     sw->known_hosts);
	return 0;
}

static int loops_load(struct entry *entry, struct ocs_switch *sw)
{
	struct ocs_yaml *yaml = &entry->loader->yaml;
	yaml_node_t *node = entry->fields[LOOP_PORTS].node;
	int count = node ? ocs_yaml_length(yaml, node, "loop_ports") : 0;

	if (count < 0)
		return -1;
	sw->loop_ports = ocs_calloc((size_t)count + 1, sizeof(int));
	for (int i = 0; i < count; i++) {
		yaml_node_t *item = ocs_yaml_item(yaml, node, i);
		int port;

		if (ocs_yaml_number(yaml, item, "loop_ports", 1, ocs_switch_ports(sw), &port) < 0)
			return -1;
		if (ocs_switch_loop_port(sw, port))
			return ocs_yaml_fail(yaml, item, "loop_ports names %d twice", port);
		sw->loop_ports[sw->nloop_ports++] = port;
	}
	return 0;
}

static int loss_load(struct entry *entry, int field, double *value)
{
	struct ocs_yaml *yaml = &entry->loader->yaml;
	const yaml_node_t *node = entry->fields[field].node;
	const char *name = entry->fields[field].name, *text;
	char *end;

	if (!node)
		return 0;
	text = ocs_yaml_text(yaml, node, name);
	if (!text)
		return -1;
	*value = strtod(text, &end);
	if (end == text || *end || !(*value >= 0.1 && *value <= 60))
		return ocs_yaml_fail(yaml, node, "%s must be 0.1 to 60 dB, not \"%.40s\"", name,
				     text);
	return 0;
}

/* Appends the switch NAME (taken over), number INDEX of its entry. */
static int switch_add(struct entry *entry, char *name, int index)
{
	struct ocs_fabric *fabric = entry->loader->fabric;
	const struct ocs_variable variables[] = {
		{ .name = "index", .value = index },
		{ .name = "name", .text = name, .text_only = true },
	};
	struct ocs_switch *sw = &fabric->switches[fabric->nswitches++];
	const yaml_node_t *node;
	int other;

	memset(sw, 0, sizeof(*sw));
	sw->name = name;
	sw->driver = ocs_strdup(drivers[entry->driver]);
	if (traits[entry->driver].dialects)
		sw->dialect = ocs_strdup(traits[entry->driver].dialects[entry->dialect]);
	sw->size = entry->size;
	sw->bidi = entry->bidi;
	sw->moves = entry->moves;
	sw->replace = entry->replace;
	if (loops_load(entry, sw) < 0 || loss_load(entry, LOSS_BUDGET, &sw->loss_budget) < 0 ||
	    loss_load(entry, LOSS_MAX, &sw->loss_max) < 0)
		return -1;
	if (ocs_names_add(fabric->index->switches, name, fabric->nswitches - 1) >= 0)
		return ocs_yaml_fail(&entry->loader->yaml, entry->fields[NAME].node,
				     "the switch %s is described twice", name);
	if (field_expand(entry, ADDRESS, variables, 2, &sw->address) < 0)
		return -1;
	node = entry->fields[CREDENTIALS].node;
	if (node && field_expand(entry, CREDENTIALS, variables, 2, &sw->credentials) < 0)
		return -1;
	if (node && sw->credentials[0] != '/')
		return ocs_yaml_fail(&entry->loader->yaml, node,
				     "credentials must be an absolute path, not \"%.120s\"",
				     sw->credentials);
	if (host_key_load(entry, variables, 2, index, sw) < 0)
		return -1;
	node = entry->fields[ADDRESS].node;
	if (ocs_load_address_check(entry->loader, node, "address", sw->address) < 0)
		return -1;
	/* Two switches at one address would undo each other's circuits. */
	other = ocs_names_add(entry->loader->addresses, sw->address, fabric->nswitches - 1);
	if (other >= 0)
		return ocs_yaml_fail(
			&entry->loader->yaml, node,
			"the switches %s and %s have the same address %s; use {index} or {name} in it",
			fabric->switches[other].name, sw->name, sw->address);
	return 0;
}

static int entry_values(struct entry *entry)
{
	struct ocs_yaml *yaml = &entry->loader->yaml;
	struct ocs_field *fields = entry->fields;
	int side = 0;

	entry->driver =
		ocs_yaml_choice(yaml, fields[DRIVER].node, "driver", drivers, COUNT(drivers));
	if (entry->driver < 0)
		return -1;
	if (fields[DIALECT].node && !traits[entry->driver].dialects)
		return ocs_yaml_fail(yaml, fields[DIALECT].node,
				     "the driver %s has no dialects; leave the key out",
				     drivers[entry->driver]);
	if (fields[DIALECT].node)
		entry->dialect = ocs_yaml_choice(yaml, fields[DIALECT].node, "dialect",
						 traits[entry->driver].dialects,
						 traits[entry->driver].ndialects);
	if (fields[PORTS].node)
		side = ocs_yaml_choice(yaml, fields[PORTS].node, "ports", sides, COUNT(sides));
	if (entry->dialect < 0 || side < 0)
		return -1;
	entry->bidi = side == 1;
	if (fields[MOVES].node &&
	    ocs_yaml_bool(yaml, fields[MOVES].node, "moves", &entry->moves) < 0)
		return -1;
	if (fields[REPLACE].node &&
	    ocs_yaml_bool(yaml, fields[REPLACE].node, "replace", &entry->replace) < 0)
		return -1;
	return ocs_yaml_number(yaml, fields[SIZE].node, "size", 2, OCS_SWITCH_SIZE_MAX,
			       &entry->size);
}

/* A host key where SSH is spoken, and only there; COUNT switches. */
static int host_keys_check(const struct entry *entry, const yaml_node_t *node, int count)
{
	struct ocs_yaml *yaml = &entry->loader->yaml;
	const yaml_node_t *key = entry->fields[HOST_KEY].node;
	const yaml_node_t *file = entry->fields[KNOWN_HOSTS].node;
	const char *driver = drivers[entry->driver];
	int keys;

	if (!traits[entry->driver].ssh && (key || file))
		return ocs_yaml_fail(yaml, key ? key : file,
				     "the driver %s does not use SSH; leave the key \"%s\" out",
				     driver, key ? "host_key" : "known_hosts");
	if (!traits[entry->driver].ssh)
		return 0;
	if (!key == !file)
		return ocs_yaml_fail(
			yaml, key ? file : node,
			key ? "\"known_hosts\" and \"host_key\" both say which switch to trust; keep one" :
			      "a netconf switch needs the key \"known_hosts\" (the path of a file with the keys of the switches) or \"host_key\" (a fingerprint)");
	if (!key || key->type != YAML_SEQUENCE_NODE)
		return 0;
	keys = ocs_yaml_length(yaml, key, "host_key");
	if (keys >= 0 && keys != count)
		return ocs_yaml_fail(yaml, key, "%d host keys for %d switches", keys, count);
	return keys < 0 ? -1 : 0;
}

static int entry_load(struct ocs_loader *loader, yaml_node_t *node)
{
	struct ocs_field fields[] = {
		[NAME] = { .name = "name", .required = true },
		[DRIVER] = { .name = "driver", .required = true },
		[DIALECT] = { .name = "dialect" },
		[ADDRESS] = { .name = "address", .required = true },
		[CREDENTIALS] = { .name = "credentials" },
		[HOST_KEY] = { .name = "host_key" },
		[KNOWN_HOSTS] = { .name = "known_hosts" },
		[SIZE] = { .name = "size", .required = true },
		[PORTS] = { .name = "ports" },
		[MOVES] = { .name = "moves" },
		[REPLACE] = { .name = "replace" },
		[LOOP_PORTS] = { .name = "loop_ports" },
		[LOSS_BUDGET] = { .name = "loss_budget" },
		[LOSS_MAX] = { .name = "loss_max" },
	};
	struct entry entry = { .loader = loader, .fields = fields };
	struct ocs_fabric *fabric = loader->fabric;
	char **names;
	int count, rc = 0, i;

	if (ocs_yaml_fields(&loader->yaml, node, "a switch", fields, COUNT(fields)) < 0 ||
	    entry_values(&entry) < 0)
		return -1;
	if (!fields[CREDENTIALS].node && traits[entry.driver].login)
		return ocs_yaml_fail(
			&loader->yaml, node,
			"a %s switch needs the key \"credentials\": the path of the file with its user and password",
			drivers[entry.driver]);
	if (fields[CREDENTIALS].node && !traits[entry.driver].login)
		return ocs_yaml_fail(&loader->yaml, fields[CREDENTIALS].node,
				     "a %s switch knows no login; leave the key out",
				     drivers[entry.driver]);
	count = ocs_yaml_names(&loader->yaml, fields[NAME].node, "name", OCS_SWITCHES_MAX, &names);
	if (count < 0)
		return -1;
	fabric->switches = ocs_realloc(fabric->switches, (size_t)(fabric->nswitches + count) *
								 sizeof(*fabric->switches));
	if (fabric->nswitches + count > OCS_SWITCHES_MAX)
		rc = ocs_yaml_fail(&loader->yaml, fields[NAME].node, "more than %d switches",
				   OCS_SWITCHES_MAX);
	if (rc == 0)
		rc = host_keys_check(&entry, node, count);
	for (i = 0; i < count && rc == 0; i++)
		rc = switch_add(&entry, names[i], i);
	for (; i < count; i++)
		free(names[i]);
	free(names);
	return rc;
}

int ocs_load_switches(struct ocs_loader *loader, yaml_node_t *node)
{
	struct ocs_fabric *fabric = loader->fabric;
	int count = ocs_yaml_length(&loader->yaml, node, "switches");
	long long ports_total = 0;

	if (count < 0)
		return -1;
	for (int i = 0; i < count; i++) {
		yaml_node_t *item = ocs_yaml_item(&loader->yaml, node, i);

		if (entry_load(loader, item) < 0)
			return -1;
	}
	fabric->index->uses = ocs_calloc((size_t)fabric->nswitches, sizeof(*fabric->index->uses));
	for (int i = 0; i < fabric->nswitches; i++)
		ports_total += ocs_switch_ports(&fabric->switches[i]);
	if (ports_total > OCS_SWITCH_PORTS_MAX)
		return ocs_yaml_fail(
			&loader->yaml, node,
			"the switches have %lld ports together; at most %d are supported",
			ports_total, OCS_SWITCH_PORTS_MAX);
	for (int i = 0; i < fabric->nswitches; i++) {
		int ports = ocs_switch_ports(&fabric->switches[i]);
		struct ocs_port_use *uses = ocs_calloc((size_t)ports, sizeof(*uses));

		for (int p = 0; p < ports; p++)
			uses[p].section = -1;
		fabric->index->uses[i] = uses;
	}
	return 0;
}
