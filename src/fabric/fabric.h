/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_FABRIC_FABRIC_H
#define OCS_FABRIC_FABRIC_H

/* What exists: sections, cubes, nodes, switches and how their ports map.  A
 * struct ocs_fabric never changes after loading; who holds what is in
 * occupancy.h, and src/config reads one from ocs.yaml or a one-line description. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ocs_error;

#define OCS_AXES 3  /* x, y, z of a cube */
#define OCS_LINKS 6 /* of an XPU: two along each axis */
#define OCS_PLUS 0  /* sign of a face port */
#define OCS_MINUS 1
#define OCS_EDGE_MAX 16 /* static tori up to 16x16x16; cubes up to 8 */

enum ocs_section_kind {
	OCS_TORUS,  /* cubes joined by switches */
	OCS_STATIC, /* one torus with fixed wraps, no switches */
	OCS_RAILS,  /* NIC port i of every server to the switch of rail i */
	OCS_DIRECT, /* servers with `degree` interfaces, planned rings */
	OCS_REGION, /* regions of servers, each with all its optical NICs on one switch */
};

/* One optical circuit switch. */
struct ocs_switch {
	char *name;
	char *driver;	   /* "tl1", "scpi", "netconf" */
	char *dialect;	   /* "polatis", ...; NULL if the driver has none */
	char *address;	   /* host:port or unix:/path */
	char *credentials; /* path of the file with user and password, or NULL */
	char *host_key;	   /* SSH: "SHA256:..." of the switch's key, or NULL */
	char *known_hosts; /* SSH: path of a file with the key, or NULL */
	int size;	   /* ports on one side: an NxN unit has ingress
				 * 1..N and egress N+1..2N */
	bool moves;	   /* 1x2 switches: a new patch takes the place of those
				 * on its ports, in one go */
	bool replace;	   /* so it does on every port: proven by the operator */
	bool bidi;	   /* false, duplex: a logical port p is ingress p and
				 * egress N+p, a circuit p-q is the patches p>N+q
				 * and q>N+p.  true, bidi: one fibre a port, ports
				 * 1..2N, a circuit is one patch from an ingress
				 * to an egress */
	int *loop_ports;   /* logical ports that lead back to the switch, for
				 * tests of other ports */
	int nloop_ports;
	double loss_budget; /* dB that a path may lose above its baseline; 0: any */
	double loss_max;    /* dB that a path may lose at all; 0: any */
};

/* One Slurm node: the tile of a cube, or a server. */
struct ocs_node {
	char *name;
	int section;	      /* index into ocs_fabric.sections */
	int cube;	      /* index into the section; -1 for servers */
	int origin[OCS_AXES]; /* first XPU of the tile in its cube */
	int server;	      /* index into the section; -1 in cubes */
};

/* What hosts do with packets for others in a direct section. */
enum ocs_forwarding {
	OCS_FORWARDING_NONE,
	OCS_FORWARDING_AUTO, /* the first of these that the host's kernel has */
	OCS_FORWARDING_FLOWER,
	OCS_FORWARDING_BPF,
	OCS_FORWARDING_ROUTES,
};

/* An interface of every server (in cubes: node) of a section, as its operating system knows it. */
struct ocs_interface {
	char *name;    /* network device: "ens3" */
	char *rdma;    /* RDMA device and port as NCCL_IB_HCA takes them,
			 * "mlx5_0:1", or NULL */
	char *forward; /* second function of a split NIC port, which carries what
			 * the host forwards for others; NULL: `name` does */
	char *address; /* key `address` as written, or NULL */
	int prefix;    /* length of the prefix, 1 to 32; 0 without addresses */
	int speed;     /* Mb/s; 0: not said */
	int numa;      /* of regions: NUMA node that it is near to; -1: not said */
	/* in cubes: the link that it is the end of */
	int device; /* local device index of the XPU */
	int axis, sign;
};

struct ocs_port_rule;	 /* rule and table, private (builder.h) */
struct ocs_names;	 /* hash of names, private (names.h) */
struct ocs_fabric_index; /* private (builder.h) */

struct ocs_section {
	char *name;
	int index;
	enum ocs_section_kind kind;
	char **partitions; /* Slurm partitions served; none: all others */
	size_t npartitions;

	/* torus and static; cubes are numbered in the order of the file */
	int edge[OCS_AXES]; /* XPUs of a cube per axis: N,N,N; static: X,Y,Z */
	int tile[OCS_AXES]; /* XPUs of a node per axis; divides edge */
	int ncubes;	    /* 1 for static */
	char **cube_names;
	int cube_xpus;	/* edge[0]*edge[1]*edge[2] */
	int cube_nodes; /* tiles in a cube */
	int words;	/* 64-bit words of a cube's XPU mask */
	bool tpu;	/* torus, static: jobs get the TPU_* variables */
	bool threading; /* torus: where no box fits, a ring may take wholly free
				 * cubes, too */

	/* rails, direct, region */
	int nservers;
	int degree;	 /* interfaces (rails) of a server on switches */
	int nic_ports;	 /* rails: ports of each interface on its rail's switch, 1 or 2; else 1 */
	int server_xpus; /* XPUs of a server, 0 if not said */
	bool directed;	 /* direct: Tx and Rx joined apart */
	int packet_nics; /* region: NICs of a server on the packet network, at least 1 */
	int change_ms;	 /* region: what a change of circuits takes with its links; 0: not said */
	int change_limit_ms; /* region: up to which circuits are changed while jobs train */
	int region_servers;  /* region: servers of each region, in the order of the file; the last
			      * one may have fewer */
	int nregions;	     /* region: how many; else 0 */
	char **region_names; /* of each; NULL: there is one, which has the section's name */

	struct ocs_interface *interfaces; /* of servers ocs_section_devices(), in cubes one for each
					   * link that leaves a tile; NULL: not described */
	int ninterfaces;
	uint32_t *addresses; /* [server * devices + device], host byte order, 0:
				 * none; NULL: no interface has addresses */
	enum ocs_forwarding forwarding;
	char *management;   /* rails: the device by which TCP reaches the job's other nodes while
				 * no circuit stands; NULL: routes are the site's */
	bool job_addresses; /* region: the interfaces have their addresses only while a job with
				 * experts runs, from ocs-node; false: the site sets them */
	uint32_t *hosts;    /* by server: its address for forwarding, or with `management`, host
				 * byte order; NULL: not described */
	uint32_t subnets;   /* range with a subnet for each circuit, in cubes for each
				 * link; host byte order, */
	int subnets_prefix; /* and the length of its prefix; 0: none */

	int first_node; /* nodes of this section in ocs_fabric.nodes: */
	int nnodes;	/* cube by cube, tiles row-major; or servers */

	struct ocs_port_rule *ports;  /* NULL for synthetic fabrics without switches */
	struct ocs_port_rule *ahead;  /* direct with look-ahead: the second port set, */
	struct ocs_port_rule *select; /* and the 1x2 switches before both; or NULL */
	struct ocs_names *cube_index;
};

struct ocs_fabric {
	char *source; /* path or line it was read from */
	struct ocs_section *sections;
	int nsections;
	struct ocs_node *nodes;
	int nnodes;
	struct ocs_switch *switches;
	int nswitches;

	struct ocs_fabric_index *index;
};

void ocs_fabric_destroy(struct ocs_fabric *fabric);

/* What a job has of a fabric. */
struct ocs_holding {
	uint32_t job;
	const char *section; /* NULL: one that is not described any more */
	char *const *nodes;  /* names */
	size_t nnodes;
	const int *switches; /* that carry its circuits; may be left out */
	size_t nswitches;
};
/* Whether JOB, started under BEFORE, keeps its nodes, its cubes' and servers' switch
 * ports, and the switches under AFTER.  0, or -1 with ERR (OCS_USAGE), which names the
 * job and what would change. */
int ocs_fabric_keeps(const struct ocs_fabric *before, const struct ocs_fabric *after,
		     const struct ocs_holding *job, struct ocs_error *err);

/* Looks a node up by name in constant time; NULL if unknown. */
const struct ocs_node *ocs_fabric_node(const struct ocs_fabric *fabric, const char *name);
/* Index of a switch by name, or -1. */
int ocs_fabric_switch(const struct ocs_fabric *fabric, const char *name);
/* The section that serves PARTITION (NULL: the only section), or NULL. */
const struct ocs_section *ocs_fabric_section(const struct ocs_fabric *fabric,
					     const char *partition);
/* Section by name, or NULL. */
const struct ocs_section *ocs_fabric_section_named(const struct ocs_fabric *fabric,
						   const char *name);

/* "pod, ring": the names of all; the caller frees them. */
char *ocs_fabric_section_names(const struct ocs_fabric *fabric);

/* Index in fabric->nodes of the node that holds XPU AT of CUBE. */
int ocs_section_node_at(const struct ocs_section *section, int cube, const int at[OCS_AXES]);
/* Index of a cube by name, or -1. */
int ocs_section_cube(const struct ocs_section *section, const char *name);
/* Index in fabric->nodes of the node that holds the XPU NAME ("CUBE:x,y,z"), or -1. */
int ocs_fabric_xpu_node(const struct ocs_fabric *fabric, const char *name);
/* Row-major index of AT within a cube (z fastest): bit number in masks. */
int ocs_section_bit(const struct ocs_section *section, const int at[OCS_AXES]);
/* Local device index (row-major in the tile) of AT within its node. */
int ocs_section_device(const struct ocs_section *section, const int at[OCS_AXES]);

/* The interface of a node for the link of its XPU DEVICE (local index) along AXIS in direction
 * SIGN, or -1: not described, or the link stays in the tile. */
int ocs_section_link_interface(const struct ocs_section *section, int device, int axis, int sign);
/* How many links leave a tile; and whether that of DEVICE does. */
int ocs_section_tile_links(const struct ocs_section *section);
bool ocs_section_link_leaves(const struct ocs_section *section, int device, int axis, int sign);

/* A logical port of a switch. */
struct ocs_port {
	int sw;	  /* index into fabric->switches */
	int port; /* 1-based */
};

/* The switch port of CUBE's face port: DIM is the axis, A and B the two other
 * coordinates in x, y, z order, SIGN OCS_PLUS or OCS_MINUS.  Returns 0, or -1
 * where the section has no switches (synthetic fabrics, static). */
int ocs_section_torus_port(const struct ocs_fabric *fabric, const struct ocs_section *section,
			   int cube, int dim, int a, int b, int sign, struct ocs_port *port);
/* The switch port of INTERFACE (0-based) of SERVER; with two ports per NIC the one of its port 0. */
int ocs_section_server_port(const struct ocs_fabric *fabric, const struct ocs_section *section,
			    int server, int interface, struct ocs_port *port);

/* The same for port NIC_PORT (0 or 1, below nic_ports) of INTERFACE: on rails, (server, rail, port)
 * to (switch, port number).  All ports of one rail are on one switch.  0, or -1 where there is none. */
int ocs_section_nic_port(const struct ocs_section *section, int server, int interface, int nic_port,
			 struct ocs_port *port);

/* The region of SERVER, its first server, and how many it has; for sections of regions. */
int ocs_section_region(const struct ocs_section *section, int server);
int ocs_section_region_first(const struct ocs_section *section, int region);
int ocs_section_region_size(const struct ocs_section *section, int region);

/* Network devices of a server on switches: one for each port of each interface.  Port P of
 * interface I is device I * nic_ports + P. */
int ocs_section_devices(const struct ocs_section *section);

/* The interfaces of servers, where ocs.yaml describes them (key `interfaces`).
 * INTERFACE is a device: it counts from 0 and is below ocs_section_devices().  The texts live as
 * long as the fabric; NULL where nothing is described. */
const char *ocs_section_interface_name(const struct ocs_section *section, int interface);
/* The device that carries what the host forwards for others: the second function of
 * the port, or the same as its name. */
const char *ocs_section_interface_forward(const struct ocs_section *section, int interface);
/* "10.1.0.3" of INTERFACE of SERVER into TEXT.  Returns the length of its prefix, or -1
 * where that interface has no address. */
#define OCS_ADDRESS_TEXT 16
int ocs_section_interface_address(const struct ocs_section *section, int server, int interface,
				  char text[OCS_ADDRESS_TEXT]);
/* The address that SERVER has on all its interfaces for forwarding, or for TCP over rails.  0, or -1
 * where neither is described. */
int ocs_section_host_address(const struct ocs_section *section, int server,
			     char text[OCS_ADDRESS_TEXT]);
/* "none", "auto", "flower", "bpf" or "routes". */
const char *ocs_forwarding_name(enum ocs_forwarding forwarding);

/* The same in port set SET (1: look-ahead) of a section with look-ahead. */
int ocs_section_set_port(const struct ocs_section *section, int set, int server, int interface,
			 struct ocs_port *port);
/* The port of the 1x2 switch that leads to INTERFACE of SERVER: joined with the next
 * port of the same switch it leads to set 0, with the one after that to set 1.  -1
 * where the section has no look-ahead. */
int ocs_section_select_port(const struct ocs_section *section, int server, int interface,
			    struct ocs_port *port);

/* Whether PORT is one of the loop ports of SW. */
bool ocs_switch_loop_port(const struct ocs_switch *sw, int port);

/* The reverse, for pictures and messages: "c3 +x 0,1" or "n5 interface 2", or
 * "unused".  The caller frees it. */
char *ocs_fabric_port_label(const struct ocs_fabric *fabric, struct ocs_port port);

/* The patches (ingress, egress) that realise a circuit between two logical
 * ports of switch SW: two for duplex, one for bidi.  PATCHES has room for two.
 * Returns their number, or -1 with ERR (ports out of range, equal for duplex,
 * both on one side for bidi). */
struct ocs_patch {
	int in, out;
};
int ocs_switch_patches(const struct ocs_switch *sw, int port_a, int port_b,
		       struct ocs_patch patches[2], struct ocs_error *err);

/* Logical ports of SW: 1..size for duplex, 1..2*size for bidi. */
int ocs_switch_ports(const struct ocs_switch *sw);

/* The name of a kind as ocs.yaml writes it: "torus", "static", "rails"... */
const char *ocs_section_kind_name(enum ocs_section_kind kind);

/* What two programs must agree on to mean the same by a placement: switches, sections,
 * cubes, nodes and their order, the rule of ports (all of one cube, some of every
 * other).  Not timeouts, addresses, partitions.  Hexadecimal. */
#define OCS_DIGEST_TEXT 17
void ocs_fabric_digest(const struct ocs_fabric *fabric, char text[OCS_DIGEST_TEXT]);

/* The name of the cube or region that node NODE is in, or of its section if that has none. */
const char *ocs_fabric_node_unit(const struct ocs_fabric *fabric, int node);
/* Whether TOPOLOGY, which Slurm has of node NODE from 25.05 on ("default:c0", or several with
 * commas; NULL: nothing), says nothing else. */
bool ocs_fabric_unit_agrees(const struct ocs_fabric *fabric, int node, const char *topology);

/* In words: sections, counts, the port rule with examples, switches with the ports they
 * use.  The caller frees it. */
char *ocs_fabric_describe(const struct ocs_fabric *fabric);
/* Parts of that: how many ports of switch SW something is plugged into, and the port rule
 * as it is written (NULL: no rule; the strings belong to the section). */
int ocs_switch_used(const struct ocs_fabric *fabric, int sw);
void ocs_section_rule(const struct ocs_section *section, const char **switch_text,
		      const char **port_text);

#endif
