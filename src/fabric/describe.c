/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* The fabric in words. */

#include <stdlib.h>
#include <string.h>

#include "src/fabric/builder.h"
#include "src/util/text.h"

static void section_describe(struct ocs_text *text, const struct ocs_fabric *fabric,
			     const struct ocs_section *section)
{
	const struct ocs_node *nodes = &fabric->nodes[section->first_node];

	ocs_text_add(text, "section %s: %s, ", section->name, ocs_section_kind_name(section->kind));
	if (section->kind == OCS_STATIC)
		ocs_text_add(text, "%dx%dx%d XPUs with fixed wraps", section->edge[0],
			     section->edge[1], section->edge[2]);
	else if (section->kind == OCS_TORUS)
		ocs_text_add(text, "%d cube%s of %dx%dx%d XPUs (%s%s%s)", section->ncubes,
			     section->ncubes == 1 ? "" : "s", section->edge[0], section->edge[1],
			     section->edge[2], section->cube_names[0],
			     section->ncubes > 1 ? " ... " : "",
			     section->ncubes > 1 ? section->cube_names[section->ncubes - 1] : "");
	else
		ocs_text_add(text, "%d server%s with %d %s%s", section->nservers,
			     section->nservers == 1 ? "" : "s", section->degree,
			     section->kind == OCS_RAILS ? "rail" : "optical interface",
			     section->degree == 1 ? "" : "s");
	if (section->nic_ports > 1)
		ocs_text_add(text, ", %d ports per NIC", section->nic_ports);
	if (section->ncubes)
		ocs_text_add(text, ", tile %dx%dx%d, %ld XPUs", section->tile[0], section->tile[1],
			     section->tile[2], (long)section->ncubes * section->cube_xpus);
	else if (section->server_xpus)
		ocs_text_add(text, "%s %d XPUs each", section->nic_ports > 1 ? "," : " and",
			     section->server_xpus);
	if (section->nregions > 1)
		ocs_text_add(text, ", %d regions of %d servers", section->nregions,
			     section->region_servers);
	if (section->packet_nics)
		ocs_text_add(text, ", %d packet NIC%s", section->packet_nics,
			     section->packet_nics == 1 ? "" : "s");
	if (section->threading)
		ocs_text_add(text, ", rings threaded through leftovers");
	if (section->directed)
		ocs_text_add(text, ", directed circuits");
	ocs_text_add(text, "\n  nodes: %d (%s%s%s)\n  partitions: ", section->nnodes, nodes[0].name,
		     section->nnodes > 1 ? " ... " : "",
		     section->nnodes > 1 ? nodes[section->nnodes - 1].name : "");
	for (size_t i = 0; i < section->npartitions; i++)
		ocs_text_add(text, "%s%s", i ? "," : "", section->partitions[i]);
	ocs_text_add(text, "%s\n",
		     !section->npartitions ? fabric->nsections == 1 ? "all" : "all others" : "");
}

void ocs_section_rule(const struct ocs_section *section, const char **switch_text,
		      const char **port_text)
{
	*switch_text = section->ports ? section->ports->switch_text : NULL;
	*port_text = section->ports ? section->ports->port_text : NULL;
}

static void example_add(struct ocs_text *text, const struct ocs_fabric *fabric,
			const struct ocs_section *section, int item)
{
	const struct ocs_port *port = &section->ports->table[item];
	char *label = ocs_ports_item_label(fabric, section, item);

	if (port->sw < 0)
		ocs_text_add(text, "    %s -> no switch\n", label);
	else
		ocs_text_add(text, "    %s -> %s port %d\n", label, fabric->switches[port->sw].name,
			     port->port);
	free(label);
}

/* The rule, and what it makes of a few ports that differ in everything. */
static void rule_describe(struct ocs_text *text, const struct ocs_fabric *fabric,
			  const struct ocs_section *section)
{
	const struct ocs_port_rule *rule = section->ports;
	int n = section->edge[0] - 1;

	if (!rule) {
		ocs_text_add(text, section->kind == OCS_STATIC ?
					   "  switches: none, the wraps are fixed\n" :
					   "  switches: none described\n");
		return;
	}
	if (rule->switch_text)
		ocs_text_add(text, "  ports: switch %s, port %s\n", rule->switch_text,
			     rule->port_text);
	if (rule->explicit_ports)
		ocs_text_add(text, "  explicit ports: %d\n", rule->explicit_ports);
	if (section->ahead)
		ocs_text_add(
			text,
			"  look-ahead: switch %s, port %s\n"
			"  1x2 switches: switch %s, port %s; the next leads to ports, the one after "
			"to look-ahead\n",
			section->ahead->switch_text, section->ahead->port_text,
			section->select->switch_text, section->select->port_text);
	ocs_text_add(text, "  for example\n");
	if (section->kind == OCS_TORUS) {
		int last = section->ncubes - 1;

		example_add(text, fabric, section, ocs_ports_torus(section, 0, 0, 0, n, OCS_PLUS));
		example_add(text, fabric, section, ocs_ports_torus(section, 0, 0, 0, n, OCS_MINUS));
		example_add(text, fabric, section,
			    ocs_ports_torus(section, last, 2, n, 0, OCS_MINUS));
		return;
	}
	example_add(text, fabric, section, 0);
	if (rule->count > 1)
		example_add(text, fabric, section, rule->count - 1);
}

int ocs_switch_used(const struct ocs_fabric *fabric, int sw)
{
	int used = 0;

	for (int i = 0; i < ocs_switch_ports(&fabric->switches[sw]); i++)
		used += fabric->index->uses[sw][i].section >= 0;
	return used;
}

static bool switches_alike(const struct ocs_fabric *fabric, int a, int b)
{
	const struct ocs_switch *x = &fabric->switches[a], *y = &fabric->switches[b];

	return strcmp(x->driver, y->driver) == 0 && x->size == y->size && x->bidi == y->bidi &&
	       !x->dialect == !y->dialect && (!x->dialect || strcmp(x->dialect, y->dialect) == 0) &&
	       ocs_switch_used(fabric, a) == ocs_switch_used(fabric, b);
}

static void interfaces_describe(struct ocs_text *text, const struct ocs_fabric *fabric,
				const struct ocs_section *section)
{
	const struct ocs_node *nodes = &fabric->nodes[section->first_node];
	bool cubes = section->kind == OCS_TORUS || section->kind == OCS_STATIC;
	int last = section->nservers - 1;
	char first_address[OCS_ADDRESS_TEXT], last_address[OCS_ADDRESS_TEXT];

	if (!section->interfaces)
		return;
	ocs_text_add(text, "  interfaces:");
	for (int i = 0; i < section->ninterfaces; i++) {
		const struct ocs_interface *one = &section->interfaces[i];

		ocs_text_add(text, "%s %s", i ? "," : "", one->name);
		if (cubes)
			ocs_text_add(text, " %c%c of XPU %d", one->sign == OCS_PLUS ? '+' : '-',
				     "xyz"[one->axis], one -> device);
		if (one->rdma)
			ocs_text_add(text, " (%s)", one->rdma);
		if (one->forward)
			ocs_text_add(text, " forwards by %s", one->forward);
		if (one->speed)
			ocs_text_add(text, " %g Gb/s", one->speed / 1000.0);
		if (ocs_section_interface_address(section, 0, i, first_address) > 0)
			ocs_text_add(text, " %s/%d", first_address, one->prefix);
	}
	ocs_text_add(text, "%s\n", section->addresses ? " (addresses of the first server)" : "");
	if (section->job_addresses)
		ocs_text_add(text,
			     "  tcp: jobs with experts have these addresses while they run\n");
	if (section->subnets_prefix)
		ocs_text_add(text, "  subnets: %u.%u.%u.%u/%d, one for each %s\n",
			     section->subnets >> 24, section->subnets >> 16 & 0xff,
			     section->subnets >> 8 & 0xff, section->subnets & 0xff,
			     section->subnets_prefix, cubes ? "link" : "circuit");
	if (ocs_section_host_address(section, 0, first_address) ||
	    ocs_section_host_address(section, last, last_address))
		return;
	ocs_text_add(text, "  %s: %s, %s (%s) ... %s (%s)\n",
		     section->management ? "tcp" : "forwarding",
		     section->management ? section->management :
					   ocs_forwarding_name(section->forwarding),
		     first_address, nodes[0].name, last_address, nodes[last].name);
}

/* Runs of switches that differ only in name and address share a line. */
static void switches_describe(struct ocs_text *text, const struct ocs_fabric *fabric)
{
	ocs_text_add(text, "switches: %d\n", fabric->nswitches);
	for (int i = 0, run; i < fabric->nswitches; i += run) {
		const struct ocs_switch *sw = &fabric->switches[i], *last;

		for (run = 1; i + run < fabric->nswitches; run++)
			if (!switches_alike(fabric, i, i + run))
				break;
		last = sw + run - 1;
		ocs_text_add(text, "  %s", sw->name);
		if (run > 1)
			ocs_text_add(text, " ... %s (%d)", last->name, run);
		ocs_text_add(text, ": %s%s%s, %dx%d %s, at %s", sw->driver, sw->dialect ? "/" : "",
			     sw->dialect ? sw->dialect : "", sw->size, sw->size,
			     sw->bidi ? "bidi" : "duplex", sw->address);
		if (run > 1)
			ocs_text_add(text, " ... %s", last->address);
		ocs_text_add(text, ", %d of %d ports used%s", ocs_switch_used(fabric, i),
			     ocs_switch_ports(sw), run > 1 ? " each" : "");
		for (int p = 0; p < sw->nloop_ports; p++)
			ocs_text_add(text, "%s %d", p ? "," : ", loop ports", sw->loop_ports[p]);
		ocs_text_add(text, "\n");
	}
}

char *ocs_fabric_describe(const struct ocs_fabric *fabric)
{
	struct ocs_text text = { 0 };

	ocs_text_add(&text, "fabric %s\n", fabric->source);
	for (int i = 0; i < fabric->nsections; i++) {
		section_describe(&text, fabric, &fabric->sections[i]);
		rule_describe(&text, fabric, &fabric->sections[i]);
		interfaces_describe(&text, fabric, &fabric->sections[i]);
	}
	switches_describe(&text, fabric);
	return ocs_text_take(&text);
}
