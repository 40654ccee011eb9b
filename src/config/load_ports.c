/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* The key `ports` of a fabric: a rule, a list of explicit ports, or both.  All
 * ports are computed here, so that every contradiction is found at once. */

#include <stdlib.h>
#include <string.h>

#include "src/config/expr.h"
#include "src/config/load.h"
#include "src/util/error.h"
#include "src/util/nearest.h"
#include "src/util/text.h"

#define VARIABLES 8

/* Marks an item that `map` names, so that the rule leaves it alone. */
#define MAPPED (-2)

/* An entry of `map`. */
struct mapped {
	const yaml_node_t *node;
	int item;
	struct ocs_port port;
};

struct wiring {
	struct ocs_loader *loader;
	struct ocs_yaml *yaml;
	struct ocs_fabric *fabric;
	const struct ocs_section *section;
	struct ocs_port_rule *rule;
	int bank;
	yaml_node_t *node, *switch_node, *port_node, *map_node;
	struct mapped *mapped;
	int nmapped;
	/* All ports of a plane (a dimension and position, an interface number, or a region)
	 * must share a switch: first item seen of each plane, or -1. */
	int *plane;
};

static int plane_of(const struct ocs_section *section, int item)
{
	struct ocs_port_item place;
	int n = section->edge[0];

	ocs_ports_item(section, item, &place);
	if (section->kind == OCS_REGION)
		return ocs_section_region(section, place.server);
	if (section->kind != OCS_TORUS)
		return place.interface;
	return (place.dim * n + place.a) * n + place.b;
}

/* The number by which a use knows ITEM of the bank that is being read. */
static int item_number(const struct wiring *wiring, int item)
{
	return wiring->bank * ocs_ports_count(wiring->section) + item;
}

static char *item_label(const struct wiring *wiring, int item)
{
	return ocs_ports_item_label(wiring->fabric, wiring->section, item_number(wiring, item));
}

static int conflict_report(struct wiring *wiring, const yaml_node_t *node, int item,
			   struct ocs_port port, const struct ocs_port_use *use)
{
	const struct ocs_section *other = &wiring->fabric->sections[use->section];
	char *label = item_label(wiring, item);
	char *first = ocs_ports_item_label(wiring->fabric, other, use->item);

	ocs_yaml_fail(
		wiring->yaml, node,
		"port %d of switch %s is used twice: for %s of fabric %s and for %s of fabric %s",
		port.port, wiring->fabric->switches[port.sw].name, first, other->name, label,
		wiring->section->name);
	free(label);
	free(first);
	return -1;
}

static int plane_check(struct wiring *wiring, const yaml_node_t *node, int item, int sw)
{
	const struct ocs_section *section = wiring->section;
	int *first = &wiring->plane[plane_of(section, item)];
	char *label, *first_label;

	if (*first < 0)
		*first = item;
	if (wiring->rule->table[*first].sw == sw || *first == item)
		return 0;
	label = item_label(wiring, item);
	first_label = item_label(wiring, *first);
	ocs_yaml_fail(
		wiring->yaml, node,
		"%s is on switch %s but %s on switch %s: %s must share a switch, or they could never be joined",
		first_label, wiring->fabric->switches[wiring->rule->table[*first].sw].name, label,
		wiring->fabric->switches[sw].name,
		section->kind == OCS_TORUS  ? "all + and - ports of one dimension and position" :
		section->kind == OCS_REGION ? "all interfaces of the servers of one region" :
		section->nic_ports > 1	    ? "both ports of one interface of all servers" :
					      "the same interface of all servers");
	free(label);
	free(first_label);
	return -1;
}

/* Enters one port after all its checks. */
static int item_set(struct wiring *wiring, const yaml_node_t *node, int item, struct ocs_port port)
{
	const struct ocs_switch *sw = &wiring->fabric->switches[port.sw];
	struct ocs_port_use *use;
	struct ocs_port_item place;
	const char *fault = NULL;
	char *label;

	ocs_ports_item(wiring->section, item, &place);
	if (port.port < 1 || port.port > ocs_switch_ports(sw))
		fault = "the port does not exist";
	else if (sw->bidi && wiring->section->kind != OCS_TORUS)
		fault = "servers need a duplex switch";
	else if (sw->bidi && (port.port <= sw->size) != (place.sign == OCS_PLUS))
		fault = "on a bidi switch the + ports belong on the ingress side and the - ports on the egress side";
	if (!fault && sw->moves != (wiring->bank >= OCS_BANK_SELECT))
		fault = sw->moves ? "a switch with \"moves\" is for look_ahead.select only" :
				    "1x2 switches need \"moves: true\"";
	if (!fault && ocs_switch_loop_port(sw, port.port))
		fault = "that is one of its loop ports";
	if (fault) {
		label = item_label(wiring, item);
		ocs_yaml_fail(
			wiring->yaml, node,
			"%s would be port %d of switch %s, which is %s and has the ports 1 to %d%s: %s",
			label, port.port, sw->name, sw->bidi ? "bidi" : "duplex",
			ocs_switch_ports(sw), sw->bidi ? " (the first half is ingress)" : "",
			fault);
		free(label);
		return -1;
	}
	use = &wiring->fabric->index->uses[port.sw][port.port - 1];
	if (use->section >= 0)
		return conflict_report(wiring, node, item, port, use);
	/* 1x2 switches join nothing but the ways of their own interface */
	if (wiring->bank < OCS_BANK_SELECT && plane_check(wiring, node, item, port.sw) < 0)
		return -1;
	if (wiring->bank <= OCS_BANK_SELECT)
		wiring->rule->table[item] = port;
	use->section = wiring->section->index;
	use->item = item_number(wiring, item);
	return 0;
}

static int switch_unknown(struct wiring *wiring, const yaml_node_t *node, const char *name)
{
	const struct ocs_fabric *fabric = wiring->fabric;
	const char **names, *nearest;

	if (!fabric->nswitches)
		return ocs_yaml_fail(
			wiring->yaml, node,
			"the switch %.80s is not described: the file has no \"switches\"", name);
	names = ocs_calloc((size_t)fabric->nswitches, sizeof(*names));
	for (int i = 0; i < fabric->nswitches; i++)
		names[i] = fabric->switches[i].name;
	nearest = ocs_nearest(name, names, (size_t)fabric->nswitches);
	ocs_yaml_fail(wiring->yaml, node,
		      "the switch %.80s is not described in \"switches\"; %s %s", name,
		      nearest ? "the nearest name is" : "the first one there is",
		      nearest ? nearest : names[0]);
	free(names);
	return -1;
}

/* The variables of an item. */
static void variables_set(const struct ocs_section *section, int item,
			  struct ocs_variable variables[VARIABLES], size_t *count)
{
	static const char *const axis[] = { "x", "y", "z" };
	struct ocs_port_item at;

	ocs_ports_item(section, item, &at);
	memset(variables, 0, VARIABLES * sizeof(*variables));
	if (section->kind == OCS_TORUS) {
		variables[0] = (struct ocs_variable){ .name = "cube", .value = at.cube };
		variables[1] = (struct ocs_variable){ .name = "dim",
						      .value = at.dim,
						      .text = axis[at.dim] };
		variables[2] = (struct ocs_variable){ .name = "a", .value = at.a };
		variables[3] = (struct ocs_variable){ .name = "b", .value = at.b };
		variables[4] = (struct ocs_variable){ .name = "sign", .value = at.sign };
		variables[5] = (struct ocs_variable){ .name = "edge", .value = section->edge[0] };
		variables[6] = (struct ocs_variable){ .name = "cubes", .value = section->ncubes };
		*count = 7;
		return;
	}
	variables[0] = (struct ocs_variable){ .name = "server", .value = at.server };
	variables[1] = (struct ocs_variable){ .name = "interface", .value = at.interface };
	variables[2] = (struct ocs_variable){ .name = "servers", .value = section->nservers };
	variables[3] = (struct ocs_variable){ .name = "degree", .value = section->degree };
	variables[4] = (struct ocs_variable){ .name = "nic_port", .value = at.nic_port };
	variables[5] = (struct ocs_variable){ .name = "nic_ports", .value = section->nic_ports };
	*count = 6;
	if (section->kind != OCS_REGION)
		return;
	variables[6] = (struct ocs_variable){ .name = "region",
					      .value = ocs_section_region(section, at.server) };
	variables[7] =
		(struct ocs_variable){ .name = "region_servers", .value = section->region_servers };
	*count = 8;
}

/* An expression failed: says where and for which port. */
static int rule_fail(struct wiring *wiring, const yaml_node_t *node, const char *key, int item)
{
	char *label = item_label(wiring, item);

	ocs_error_prefix(wiring->yaml->err, "%s, for %s", key, label);
	free(label);
	return ocs_yaml_prefix(wiring->yaml, node);
}

static int rule_item(struct wiring *wiring, int item, struct ocs_text *name)
{
	struct ocs_variable variables[VARIABLES];
	struct ocs_port port;
	long value;
	size_t count;

	variables_set(wiring->section, item, variables, &count);
	name->length = 0;
	if (ocs_expr_expand(wiring->rule->switch_text, variables, count, name, wiring->yaml->err) <
	    0)
		return rule_fail(wiring, wiring->switch_node, "switch", item);
	if (ocs_expr_value(wiring->rule->port_text, variables, count, &value, wiring->yaml->err) <
	    0)
		return rule_fail(wiring, wiring->port_node, "port", item);
	port.sw = ocs_fabric_switch(wiring->fabric, name->length ? name->data : "");
	if (port.sw < 0)
		return switch_unknown(wiring, wiring->switch_node, name->length ? name->data : "");
	if (value < 0 || value > 2 * OCS_SWITCH_SIZE_MAX) /* keep it an int */
		value = value < 0 ? -1 : 2 * OCS_SWITCH_SIZE_MAX + 1;
	port.port = (int)value;
	return item_set(wiring, wiring->port_node, item, port);
}

static int rule_apply(struct wiring *wiring)
{
	struct ocs_text name = { 0 };
	int rc = 0;

	for (int i = 0; i < wiring->rule->count && rc == 0; i++)
		if (wiring->rule->table[i].sw != MAPPED)
			rc = rule_item(wiring, i, &name);
	ocs_text_free(&name);
	return rc;
}

/* cube, dim, position and sign of an entry of a torus. */
static int map_torus_item(struct wiring *wiring, const struct ocs_field *fields, int *item)
{
	static const char *const axes[] = { "x", "y", "z" }, *const signs[] = { "+", "-" };
	const struct ocs_section *section = wiring->section;
	struct ocs_yaml *yaml = wiring->yaml;
	const char *name = ocs_yaml_text(yaml, fields[0].node, "cube");
	int cube = ocs_section_cube(section, name), dim, sign, at[2] = { 0, 0 };

	if (!name)
		return -1;
	if (cube < 0)
		return ocs_yaml_fail(yaml, fields[0].node, "the fabric %s has no cube %.80s",
				     section->name, name);
	dim = ocs_yaml_choice(yaml, fields[1].node, "dim", axes, 3);
	if (dim < 0)
		return -1;
	sign = ocs_yaml_choice(yaml, fields[3].node, "sign", signs, 2);
	if (sign < 0)
		return -1;
	if (ocs_yaml_length(yaml, fields[2].node, "position") != 2)
		return ocs_yaml_fail(
			yaml, fields[2].node,
			"position must be the two coordinates other than %s, like [0, 3]",
			axes[dim]);
	for (int i = 0; i < 2; i++)
		if (ocs_yaml_number(yaml, ocs_yaml_item(yaml, fields[2].node, i), "position", 0,
				    section->edge[0] - 1, &at[i]) < 0)
			return -1;
	*item = ocs_ports_torus(section, cube, dim, at[0], at[1], sign);
	return 0;
}

/* node, interface and, with two ports per NIC, nic_port of an entry of servers. */
static int map_server_item(struct wiring *wiring, const struct ocs_field *fields, int *item)
{
	const struct ocs_section *section = wiring->section;
	struct ocs_yaml *yaml = wiring->yaml;
	const char *name = ocs_yaml_text(yaml, fields[0].node, "node");
	const struct ocs_node *node = name ? ocs_fabric_node(wiring->fabric, name) : NULL;
	int interface, nic_port = 0;

	if (!name)
		return -1;
	if (!node || node->section != section->index)
		return ocs_yaml_fail(yaml, fields[0].node, "the fabric %s has no node %.80s",
				     section->name, name);
	if (ocs_yaml_number(yaml, fields[1].node, "interface", 0, section->degree - 1, &interface) <
	    0)
		return -1;
	if (fields[4].node && ocs_yaml_number(yaml, fields[4].node, "nic_port", 0,
					      section->nic_ports - 1, &nic_port) < 0)
		return -1;
	if (!fields[4].node && section->nic_ports > 1)
		return ocs_yaml_fail(
			yaml, fields[1].node,
			"with two ports per NIC an entry of map needs nic_port: 0 or 1");
	*item = ocs_ports_server(section, node->server, interface, nic_port);
	return 0;
}

static int map_entry(struct wiring *wiring, yaml_node_t *node, struct mapped *entry)
{
	struct ocs_field torus[] = { { "cube", true, NULL },	 { "dim", true, NULL },
				     { "position", true, NULL }, { "sign", true, NULL },
				     { "switch", true, NULL },	 { "port", true, NULL } };
	struct ocs_field server[] = { { "node", true, NULL },
				      { "interface", true, NULL },
				      { "switch", true, NULL },
				      { "port", true, NULL },
				      { "nic_port", false, NULL } };
	bool cubes = wiring->section->kind == OCS_TORUS;
	struct ocs_field *where = cubes ? torus : server;
	size_t count = cubes ? 6 : 5, at = cubes ? 4 : 2;
	const char *name;
	char *label;

	if (ocs_yaml_fields(wiring->yaml, node, "an entry of map", where, count) < 0 ||
	    (cubes ? map_torus_item(wiring, where, &entry->item) :
		     map_server_item(wiring, where, &entry->item)) < 0)
		return -1;
	name = ocs_yaml_text(wiring->yaml, where[at].node, "switch");
	if (!name)
		return -1;
	entry->port.sw = ocs_fabric_switch(wiring->fabric, name);
	if (entry->port.sw < 0)
		return switch_unknown(wiring, where[at].node, name);
	if (ocs_yaml_number(wiring->yaml, where[at + 1].node, "port", 1,
			    ocs_switch_ports(&wiring->fabric->switches[entry->port.sw]),
			    &entry->port.port) < 0)
		return -1;
	entry->node = node;
	if (wiring->rule->table[entry->item].sw != MAPPED) {
		wiring->rule->table[entry->item].sw = MAPPED;
		return 0;
	}
	label = ocs_ports_item_label(wiring->fabric, wiring->section, entry->item);
	ocs_yaml_fail(wiring->yaml, node, "map names %s twice", label);
	free(label);
	return -1;
}

static int map_read(struct wiring *wiring)
{
	int count = ocs_yaml_length(wiring->yaml, wiring->map_node, "map");

	if (count < 0)
		return -1;
	wiring->mapped = ocs_calloc((size_t)count, sizeof(*wiring->mapped));
	for (int i = 0; i < count; i++)
		if (map_entry(wiring, ocs_yaml_item(wiring->yaml, wiring->map_node, i),
			      &wiring->mapped[wiring->nmapped++]) < 0)
			return -1;
	wiring->rule->explicit_ports = count;
	return 0;
}

/* Without a rule the map has to name everything. */
static int complete_check(struct wiring *wiring)
{
	char *label;

	for (int i = 0; i < wiring->rule->count; i++) {
		if (wiring->rule->table[i].sw != -1)
			continue;
		label = ocs_ports_item_label(wiring->fabric, wiring->section, i);
		ocs_yaml_fail(
			wiring->yaml, wiring->node,
			"%s has no port: add it to map, or give the rule with \"switch\" and \"port\"",
			label);
		free(label);
		return -1;
	}
	return 0;
}

static int wiring_fill(struct wiring *wiring)
{
	const char *text;

	if (wiring->map_node && map_read(wiring) < 0)
		return -1;
	if (wiring->switch_node) {
		text = ocs_yaml_text(wiring->yaml, wiring->switch_node, "switch");
		if (!text)
			return -1;
		wiring->rule->switch_text = ocs_strdup(text);
		text = ocs_yaml_text(wiring->yaml, wiring->port_node, "port");
		if (!text)
			return -1;
		wiring->rule->port_text = ocs_strdup(text);
		if (rule_apply(wiring) < 0)
			return -1;
	} else if (complete_check(wiring) < 0) {
		return -1;
	}
	for (int i = 0; i < wiring->nmapped; i++)
		if (item_set(wiring, wiring->mapped[i].node, wiring->mapped[i].item,
			     wiring->mapped[i].port) < 0)
			return -1;
	return 0;
}

/* The switches must have room at all; this also bounds the table. */
static int room_check(struct ocs_loader *loader, const struct ocs_section *section,
		      const yaml_node_t *node)
{
	long long room = 0;

	for (int i = 0; i < loader->fabric->nswitches; i++)
		room += ocs_switch_ports(&loader->fabric->switches[i]);
	if (room >= ocs_ports_count(section))
		return 0;
	return ocs_yaml_fail(
		&loader->yaml, node,
		"the fabric %s needs %d switch ports, but the switches described in \"switches\" have %lld",
		section->name, ocs_ports_count(section), room);
}

int ocs_load_ports(struct ocs_loader *loader, int index, yaml_node_t *node)
{
	struct ocs_section *section = &loader->fabric->sections[index];
	struct ocs_field fields[] = { { .name = "switch" }, { .name = "port" }, { .name = "map" } };
	struct wiring wiring = { .loader = loader,
				 .yaml = &loader->yaml,
				 .fabric = loader->fabric,
				 .section = section,
				 .node = node };
	int planes = section->kind == OCS_TORUS	 ? OCS_AXES * section->edge[0] * section->edge[0] :
		     section->kind == OCS_REGION ? section->nregions :
						   section->degree;
	int rc;

	if (ocs_yaml_fields(&loader->yaml, node, "ports", fields, 3) < 0)
		return -1;
	if (!fields[0].node != !fields[1].node)
		return ocs_yaml_fail(&loader->yaml, node,
				     "a rule needs both \"switch\" and \"port\"");
	if (!fields[0].node && !fields[2].node)
		return ocs_yaml_fail(&loader->yaml, node,
				     "ports needs a rule (\"switch\" and \"port\") or a \"map\"");
	if (room_check(loader, section, node) < 0)
		return -1;
	wiring.switch_node = fields[0].node;
	wiring.port_node = fields[1].node;
	wiring.map_node = fields[2].node;
	wiring.rule = section->ports = ocs_calloc(1, sizeof(*section->ports));
	wiring.rule->count = ocs_ports_count(section);
	wiring.rule->table = ocs_calloc((size_t)wiring.rule->count, sizeof(*wiring.rule->table));
	for (int i = 0; i < wiring.rule->count; i++)
		wiring.rule->table[i].sw = -1;
	wiring.plane = ocs_calloc((size_t)planes, sizeof(int));
	for (int i = 0; i < planes; i++)
		wiring.plane[i] = -1;
	rc = wiring_fill(&wiring);
	free(wiring.plane);
	free(wiring.mapped);
	return rc;
}

/* The two ways of every 1x2 switch are the ports that follow its own. */
static int ways_enter(struct wiring *wiring)
{
	for (int way = 1; way <= 2; way++) {
		wiring->bank = OCS_BANK_SELECT + way;
		for (int i = 0; i < wiring->rule->count; i++) {
			struct ocs_port port = wiring->rule->table[i];

			port.port += way;
			if (item_set(wiring, wiring->port_node, i, port) < 0)
				return -1;
		}
	}
	return 0;
}

/* One bank of look_ahead: always a rule. */
static int bank_load(struct ocs_loader *loader, int index, yaml_node_t *node, const char *name,
		     int bank)
{
	struct ocs_section *section = &loader->fabric->sections[index];
	struct ocs_field fields[] = { { .name = "switch", .required = true },
				      { .name = "port", .required = true } };
	struct wiring wiring = { .loader = loader,
				 .yaml = &loader->yaml,
				 .fabric = loader->fabric,
				 .section = section,
				 .node = node,
				 .bank = bank };
	int rc;

	if (ocs_yaml_fields(&loader->yaml, node, name, fields, 2) < 0)
		return -1;
	wiring.switch_node = fields[0].node;
	wiring.port_node = fields[1].node;
	wiring.rule = ocs_calloc(1, sizeof(*wiring.rule));
	*(bank == OCS_BANK_AHEAD ? &section->ahead : &section->select) = wiring.rule;
	wiring.rule->count = ocs_ports_count(section);
	wiring.rule->table = ocs_calloc((size_t)wiring.rule->count, sizeof(*wiring.rule->table));
	for (int i = 0; i < wiring.rule->count; i++)
		wiring.rule->table[i].sw = -1;
	wiring.plane = ocs_calloc((size_t)section->degree, sizeof(int));
	for (int i = 0; i < section->degree; i++)
		wiring.plane[i] = -1;
	rc = wiring_fill(&wiring);
	if (rc == 0 && bank == OCS_BANK_SELECT)
		rc = ways_enter(&wiring);
	free(wiring.plane);
	return rc;
}

int ocs_load_look_ahead(struct ocs_loader *loader, int index, yaml_node_t *node)
{
	struct ocs_field fields[] = { { .name = "ports", .required = true },
				      { .name = "select", .required = true } };

	if (ocs_yaml_fields(&loader->yaml, node, "look_ahead", fields, 2) < 0 ||
	    bank_load(loader, index, fields[0].node, "look_ahead.ports", OCS_BANK_AHEAD) < 0)
		return -1;
	return bank_load(loader, index, fields[1].node, "look_ahead.select", OCS_BANK_SELECT);
}
