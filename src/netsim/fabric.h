/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_NETSIM_FABRIC_H
#define OCS_NETSIM_FABRIC_H

/* What joins the servers: links with rates, and routes over them. */

#include <stdbool.h>
#include <stdint.h>

#include "src/netsim/flow.h"
#include "src/netsim/graph.h"

struct ocs_error;
struct ocs_netsim_torus;
struct ocs_plan;

enum ocs_netsim_fabric_kind {
	OCS_NETSIM_IDEAL,	   /* one switch that never is the bottleneck */
	OCS_NETSIM_FAT_TREE,	   /* leaves with as much up as down */
	OCS_NETSIM_OVERSUBSCRIBED, /* leaves with half of it up */
	OCS_NETSIM_RAIL,	   /* interface i of all servers on rail switch i */
	OCS_NETSIM_EXPANDER,	   /* a random regular graph of the servers */
	OCS_NETSIM_TOPOOPT,	   /* circuits planned for the traffic, for the whole job */
	OCS_NETSIM_RECONFIG,	   /* circuits that follow the traffic */
	OCS_NETSIM_SIPML,	   /* the same, faster, after SiP-ML */
	OCS_NETSIM_OPUS,	   /* rails of circuits that follow the phases of a job */
	OCS_NETSIM_REGION,	   /* mFabric: circuits in regions, and packets */
	OCS_NETSIM_TORUS,	   /* cubes of XPUs joined by circuits, jobs laid on them */
	OCS_NETSIM_FABRICS,
};

/* When the circuits of rails change. */
enum ocs_netsim_phases {
	OCS_NETSIM_ON_DEMAND,	/* when all that send together have arrived */
	OCS_NETSIM_PROVISIONED, /* as soon as what was sent before is over */
	OCS_NETSIM_ONE_SHOT,	/* never: each dimension has a part of the rate for good */
};

#define OCS_NETSIM_SPEC_DIMS 6
#define OCS_NETSIM_SPEC_SHAPES 8

/* One line: "KIND servers:16 degree:4 rate:100G" and what else KIND has. */
struct ocs_netsim_spec {
	enum ocs_netsim_fabric_kind kind;
	int servers;		       /* 0: those of the graph */
	int degree;		       /* interfaces of a server */
	double rate;		       /* of an interface, bytes per ms */
	double latency;		       /* of a hop of a collective and of a transfer, ms */
	int leaf;		       /* fat-tree, oversubscribed: servers of a leaf */
	double oversub;		       /* down : up of a leaf */
	double interval;	       /* reconfig: from one change to the next, ms */
	double pause;		       /* reconfig: all flows stand still for a change, ms */
	bool forward;		       /* reconfig: servers without a circuit go through others */
	bool clock;		       /* reconfig: the traffic is looked at every interval only */
	bool best;		       /* topoopt: this project's strategy; false: the paper's */
	double change;		       /* opus, region: until new circuits carry, ms */
	enum ocs_netsim_phases phases; /* opus */
	double frontend;	       /* opus: a server's packet network beside the rails */
	int ndim;		       /* opus: the shape, pipeline stages first; 0: as the */
	int extent[OCS_NETSIM_SPEC_DIMS]; /* graph has it */
	double packets; /* region: rate of an interface on the packet network, 0: as the others */
	int optical;	/* region: interfaces of a server that are on circuits */
	int region;	/* region: servers of one; 0: of the largest all-to-all */
	int policy;	/* region: enum ocs_moe_policy */
	bool always;	/* region: change for each all-to-all; false: if it pays */
	bool ahead;	/* region: what comes next is known when the last one ends */
	bool relays;	/* region: traffic goes through other servers, too */
	int cube;	/* torus: XPUs along an edge of a cube */
	bool shared;	/* torus: cubes wired as one torus, jobs share its links */
	char *shapes[OCS_NETSIM_SPEC_SHAPES]; /* torus: of jobs, one after the other */
	int nshapes;			      /* 0: the most cubic */
	char *text;			      /* the line */
	int paths;  /* expander, topoopt: shortest ways that a pair uses, at most */
	char *plan; /* topoopt: file of the plan to use, or NULL: one is made */
};

const char *ocs_netsim_fabric_name(enum ocs_netsim_fabric_kind kind);

/* Reads a line.  0, or -1 with ERR (OCS_USAGE) that says what is wrong and what would do. */
int ocs_netsim_spec_parse(const char *text, struct ocs_netsim_spec *spec, struct ocs_error *err);
void ocs_netsim_spec_free(struct ocs_netsim_spec *spec);

/* FROM and TO: servers, or SERVERS + k: switch k. */
struct ocs_netsim_link {
	int from, to;
	double rate; /* bytes per ms */
};

struct ocs_netsim_path {
	int links[OCS_FLOW_LINKS_MAX];
	int n;
	double weight; /* part of the bytes; of all paths of a pair 1 */
};

struct ocs_netsim_routes {
	struct ocs_netsim_path *paths; /* none: no way */
	int count;
	bool known; /* was looked for */
};

/* A plan and the servers of the fabric that it is for; NULL: its own numbers. */
struct ocs_netsim_shard {
	struct ocs_plan *plan;
	int *servers;
};

struct ocs_netsim_fabric {
	struct ocs_netsim_spec spec; /* its text belongs to who parsed it */
	int servers, vertices;	     /* switches are the vertices after the servers */
	struct ocs_netsim_link *links;
	int nlinks, links_size;
	struct ocs_netsim_routes *routes; /* servers x servers, filled as they are wanted */
	int *out;			  /* vertex k: links out[first[k]] to out[first[k + 1]] */
	int *first;
	int *direct;			 /* topoopt: number + 1 of the link of each pair, 0: none */
	struct ocs_netsim_shard *shards; /* topoopt: one for all, or one for each job */
	int nshards;
	struct ocs_netsim_torus *torus; /* of each job */
	int ntorus;
	int paths_max; /* of a pair */
};

/* The fabric of SPEC for what the N GRAPHS send.  PLACES[k][s] is where server s of graph k is; NULL: at
 * s.  Topoopt plans for each job on its own where none shares a server with another.  The caller
 * destroys it.  NULL with ERR (OCS_USAGE, OCS_NEVER). */
struct ocs_netsim_fabric *ocs_netsim_fabric_create(const struct ocs_netsim_spec *spec,
						   const struct ocs_netsim_graph *const *graphs,
						   int *const *places, int n, uint64_t seed,
						   struct ocs_error *err);
void ocs_netsim_fabric_destroy(struct ocs_netsim_fabric *fabric);

/* Adds a link; with fabric->first NULL, that is before routes are asked for. */
int ocs_netsim_fabric_link(struct ocs_netsim_fabric *fabric, int from, int to, double rate);

/* The ways from SRC to another server DST, which the fabric keeps.  NULL with ERR (OCS_NEVER): there
 * is none, or none short enough. */
const struct ocs_netsim_routes *ocs_netsim_fabric_routes(struct ocs_netsim_fabric *fabric, int src,
							 int dst, struct ocs_error *err);
/* Forgets all routes and the order of links: they have changed. */
void ocs_netsim_fabric_changed(struct ocs_netsim_fabric *fabric);

#endif
