/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Which face port or interface sits on which port of which switch. */

#include <stdlib.h>
#include <string.h>

#include "src/fabric/builder.h"
#include "src/util/error.h"
#include "src/util/text.h"

void ocs_axes_other(int dim, int other[2])
{
	other[0] = dim == 0 ? 1 : 0;
	other[1] = dim == 2 ? 1 : 2;
}

int ocs_ports_count(const struct ocs_section *section)
{
	if (section->kind == OCS_TORUS)
		return section->ncubes * 2 * OCS_AXES * section->edge[0] * section->edge[0];
	if (section->kind == OCS_STATIC)
		return 0;
	return section->nservers * ocs_section_devices(section);
}

int ocs_ports_torus(const struct ocs_section *section, int cube, int dim, int a, int b, int sign)
{
	int n = section->edge[0];

	return (((cube * OCS_AXES + dim) * 2 + sign) * n + a) * n + b;
}

int ocs_section_devices(const struct ocs_section *section)
{
	return section->degree * section->nic_ports;
}

int ocs_ports_server(const struct ocs_section *section, int server, int interface, int nic_port)
{
	return (server * section->degree + interface) * section->nic_ports + nic_port;
}

void ocs_ports_item(const struct ocs_section *section, int item, struct ocs_port_item *place)
{
	int n = section->edge[0];

	memset(place, 0, sizeof(*place));
	if (section->kind != OCS_TORUS) {
		place->bank = item / ocs_ports_count(section);
		item %= ocs_ports_count(section);
		place->nic_port = item % section->nic_ports;
		item /= section->nic_ports;
		place->server = item / section->degree;
		place->interface = item % section->degree;
		return;
	}
	place->b = item % n;
	item /= n;
	place->a = item % n;
	item /= n;
	place->sign = item % 2;
	item /= 2;
	place->dim = item % OCS_AXES;
	place->cube = item / OCS_AXES;
}

char *ocs_ports_item_label(const struct ocs_fabric *fabric, const struct ocs_section *section,
			   int item)
{
	static const char *const banks[] = {
		[OCS_BANK_PORTS] = "",
		[OCS_BANK_AHEAD] = " look-ahead",
		[OCS_BANK_SELECT] = " 1x2 switch",
		[OCS_BANK_FIRST] = " 1x2 switch to ports",
		[OCS_BANK_SECOND] = " 1x2 switch to look-ahead",
	};
	struct ocs_port_item place;

	ocs_ports_item(section, item, &place);
	if (section->kind == OCS_TORUS)
		return ocs_asprintf("%s %c%c %d,%d", section->cube_names[place.cube],
				    place.sign == OCS_PLUS ? '+' : '-', "xyz"[place.dim], place.a,
				    place.b);
	if (section->nic_ports > 1)
		return ocs_asprintf("%s interface %d port %d",
				    fabric->nodes[section->first_node + place.server].name,
				    place.interface, place.nic_port);
	return ocs_asprintf("%s interface %d%s",
			    fabric->nodes[section->first_node + place.server].name, place.interface,
			    banks[place.bank]);
}

void ocs_port_rule_destroy(struct ocs_port_rule *rule)
{
	if (!rule)
		return;
	free(rule->table);
	free(rule->switch_text);
	free(rule->port_text);
	free(rule);
}

static int table_get(const struct ocs_port_rule *rule, int item, struct ocs_port *port)
{
	if (rule->table[item].sw < 0)
		return -1;
	*port = rule->table[item];
	return 0;
}

int ocs_section_torus_port(const struct ocs_fabric *fabric, const struct ocs_section *section,
			   int cube, int dim, int a, int b, int sign, struct ocs_port *port)
{
	int n = section->edge[0];

	(void)fabric;
	if (section->kind != OCS_TORUS || !section->ports || cube < 0 || cube >= section->ncubes ||
	    dim < 0 || dim >= OCS_AXES || a < 0 || a >= n || b < 0 || b >= n ||
	    (sign != OCS_PLUS && sign != OCS_MINUS))
		return -1;
	return table_get(section->ports, ocs_ports_torus(section, cube, dim, a, b, sign), port);
}

static int server_get(const struct ocs_section *section, const struct ocs_port_rule *rule,
		      int server, int interface, int nic_port, struct ocs_port *port)
{
	if (section->ncubes || !rule || server < 0 || server >= section->nservers ||
	    interface < 0 || interface >= section->degree || nic_port < 0 ||
	    nic_port >= section->nic_ports)
		return -1;
	return table_get(rule, ocs_ports_server(section, server, interface, nic_port), port);
}

int ocs_section_server_port(const struct ocs_fabric *fabric, const struct ocs_section *section,
			    int server, int interface, struct ocs_port *port)
{
	(void)fabric;
	return server_get(section, section->ports, server, interface, 0, port);
}

int ocs_section_nic_port(const struct ocs_section *section, int server, int interface, int nic_port,
			 struct ocs_port *port)
{
	return server_get(section, section->ports, server, interface, nic_port, port);
}

int ocs_section_set_port(const struct ocs_section *section, int set, int server, int interface,
			 struct ocs_port *port)
{
	return server_get(section, set ? section->ahead : section->ports, server, interface, 0,
			  port);
}

int ocs_section_select_port(const struct ocs_section *section, int server, int interface,
			    struct ocs_port *port)
{
	return server_get(section, section->select, server, interface, 0, port);
}

int ocs_switch_ports(const struct ocs_switch *sw)
{
	return sw->bidi ? 2 * sw->size : sw->size;
}

bool ocs_switch_loop_port(const struct ocs_switch *sw, int port)
{
	for (int i = 0; i < sw->nloop_ports; i++)
		if (sw->loop_ports[i] == port)
			return true;
	return false;
}

char *ocs_fabric_port_label(const struct ocs_fabric *fabric, struct ocs_port port)
{
	const struct ocs_port_use *use;

	if (port.sw < 0 || port.sw >= fabric->nswitches || port.port < 1 ||
	    port.port > ocs_switch_ports(&fabric->switches[port.sw]))
		return ocs_strdup("unused");
	use = &fabric->index->uses[port.sw][port.port - 1];
	if (use->section < 0)
		return ocs_strdup("unused");
	return ocs_ports_item_label(fabric, &fabric->sections[use->section], use->item);
}

int ocs_switch_patches(const struct ocs_switch *sw, int port_a, int port_b,
		       struct ocs_patch patches[2], struct ocs_error *err)
{
	int ports = ocs_switch_ports(sw);

	if (port_a < 1 || port_a > ports || port_b < 1 || port_b > ports)
		return ocs_error_set(err, OCS_ERROR,
				     "switch %s has the ports 1 to %d: %d and %d cannot be joined",
				     sw->name, ports, port_a, port_b);
	if (!sw->bidi) {
		if (port_a == port_b)
			return ocs_error_set(err, OCS_ERROR,
					     "port %d of switch %s cannot be joined with itself",
					     port_a, sw->name);
		patches[0].in = port_a;
		patches[0].out = sw->size + port_b;
		patches[1].in = port_b;
		patches[1].out = sw->size + port_a;
		return 2;
	}
	if ((port_a <= sw->size) == (port_b <= sw->size))
		return ocs_error_set(
			err, OCS_ERROR,
			"ports %d and %d of switch %s are on the same side: one of 1 to %d and one of %d to %d can be joined",
			port_a, port_b, sw->name, sw->size, sw->size + 1, ports);
	patches[0].in = port_a <= sw->size ? port_a : port_b;
	patches[0].out = port_a <= sw->size ? port_b : port_a;
	return 1;
}
