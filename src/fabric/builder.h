/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_FABRIC_BUILDER_H
#define OCS_FABRIC_BUILDER_H

/* What a struct ocs_fabric is made of, for the files of src/fabric, and of src/config, which
 * build one. */

#include "src/fabric/fabric.h"
#include "src/fabric/names.h"

#define OCS_NODES_MAX (1 << 20)
#define OCS_CUBES_MAX (1 << 16)
#define OCS_CUBE_EDGE_MAX 8
#define OCS_DEGREE_MAX 64
#define OCS_XPUS_MAX 64 /* of one server */
#define OCS_NIC_PORTS_MAX 2
#define OCS_SECTIONS_MAX 64
#define OCS_SWITCHES_MAX (1 << 16)
#define OCS_SWITCH_SIZE_MAX (1 << 14)
#define OCS_SWITCH_PORTS_MAX (1 << 22) /* of all switches together */

/* How a section reaches the switches.  Every port is computed once, when the
 * file is read, so that lookups are an array access and conflicts show early. */
struct ocs_port_rule {
	struct ocs_port *table; /* by ocs_ports_item(); sw is -1: no port there */
	int count;
	char *switch_text; /* the rule as written, or NULL */
	char *port_text;
	int explicit_ports; /* entries of `map` */
};

/* What is plugged into a logical port. */
struct ocs_port_use {
	int section; /* -1: nothing */
	int item;    /* index into the section's port table */
};

struct ocs_fabric_index {
	struct ocs_names *nodes, *switches;
	struct ocs_port_use **uses; /* [switch][port - 1] */
};

/* A place in a port table. */
struct ocs_port_item {
	int cube, dim, sign, a, b; /* torus */
	int server, interface;	   /* others, */
	int nic_port;		   /* and the port of that interface */
	int bank;		   /* others: OCS_BANK_... */
};

/* Server ports of a section come in banks; a use names an item of bank b as b times
 * ocs_ports_count() and its place in the bank's table. */
enum {
	OCS_BANK_PORTS,	 /* `ports` */
	OCS_BANK_AHEAD,	 /* `look_ahead.ports` */
	OCS_BANK_SELECT, /* `look_ahead.select`: the 1x2 switch of an interface */
	OCS_BANK_FIRST,	 /* its way to `ports`: the next port of that switch */
	OCS_BANK_SECOND, /* its way to `look_ahead.ports`: the one after that */
};

/* An empty fabric. */
struct ocs_fabric *ocs_fabric_new(const char *source);
/* Appends a section named NAME (copied) and returns it; the pointer moves when
 * another one is added. */
struct ocs_section *ocs_fabric_section_add(struct ocs_fabric *fabric, const char *name,
					   enum ocs_section_kind kind);
/* Derives cube_xpus, cube_nodes and words from edge and tile. */
void ocs_section_geometry(struct ocs_section *section);
/* Whether every tile extent divides the edge. */
bool ocs_section_tile_divides(const struct ocs_section *section);
/* Appends COUNT nodes to FABRIC, the whole of SECTION (geometry, ncubes or
 * nservers are set), and takes over the names (not the array). */
void ocs_fabric_nodes_add(struct ocs_fabric *fabric, struct ocs_section *section,
			  char *const *names, int count);
/* Divides the servers of SECTION, whose nodes and region_servers are set, into regions, and names
 * them. */
void ocs_section_regions_set(struct ocs_section *section);
/* Builds the node index.  Returns -1, or the index of a node whose name was
 * there before. */
int ocs_fabric_nodes_index(struct ocs_fabric *fabric);

/* The two axes other than DIM, in x, y, z order. */
void ocs_axes_other(int dim, int other[2]);
/* Entries of the port table of a section, and the entry of one face port or
 * interface (which must exist), and back. */
int ocs_ports_count(const struct ocs_section *section);
int ocs_ports_torus(const struct ocs_section *section, int cube, int dim, int a, int b, int sign);
int ocs_ports_server(const struct ocs_section *section, int server, int interface, int nic_port);
void ocs_ports_item(const struct ocs_section *section, int item, struct ocs_port_item *place);
/* "c3 +x 0,1", "n5 interface 2" or "n5 interface 2 port 1"; the caller frees it. */
char *ocs_ports_item_label(const struct ocs_fabric *fabric, const struct ocs_section *section,
			   int item);
/* interfaces.c: what the loader put into the interfaces of a section. */
void ocs_interfaces_destroy(struct ocs_section *section);
void ocs_port_rule_destroy(struct ocs_port_rule *rule);

#endif
