/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_PLAN_PLAN_H
#define OCS_PLAN_PLAN_H

/* Rings, circuits and routes for a job on switched servers (direct fabrics):
 * TopoOpt's TopologyFinder.  Loads igraph; never linked into a plugin. */

#include <stdbool.h>
#include <stdint.h>

struct ocs_error;
struct json_object;

/* A pair of binary trees over a group (a double binary tree): every member is a leaf
 * of one and passes data on in the other.  Each edge has a circuit of its own. */
struct ocs_plan_tree {
	int step;	 /* the members, numbered by it, in the order of the trees */
	int *parents[2]; /* per member, in the order of `members`: the server above
				 * it, or -1 at the root */
};

/* One AllReduce group and the rings chosen for it. */
struct ocs_plan_group {
	int *members; /* server numbers, in ring +1 order */
	int nmembers;
	long long bytes;
	int *steps;		     /* one per ring: the TotientPerms step p, steps[0] == 1 */
	int nrings;		     /* rings[r][i] = members[(i * steps[r]) % nmembers]; a
			 * duplex ring of two is one circuit.  0: no ports left */
	struct ocs_plan_tree *trees; /* besides the rings, if asked for */
	int ntrees;
};

/* A circuit between port A_PORT of server A and port B_PORT of server B (0-based
 * interfaces); OCS is the index of the switch plane (interface) that makes it (0
 * with any_port: there is one switch).
 * Directed plans: from A's transmitter to B's receiver. */
struct ocs_plan_circuit {
	int a, a_port, b, b_port, ocs;
	int group; /* whose ring it belongs to, or -1 */
};

/* Paths from SRC to DST, servers from src to dst inclusive; weights sum to 1. */
struct ocs_plan_route {
	int src, dst;
	int npaths;
	int **paths;
	int *lengths; /* vertices on each path */
	double *weights;
};

struct ocs_plan {
	int servers, degree;
	int revision; /* 1 for a new plan, one more after each repair */
	bool directed;
	bool any_port; /* circuits may join different interfaces */
	char **nodes;  /* server names, or NULL */
	double *mp;    /* servers x servers bytes of the demand, or NULL */
	struct ocs_plan_group *groups;
	int ngroups;
	struct ocs_plan_circuit *circuits;
	int ncircuits;
	struct ocs_plan_route *routes; /* NULL unless asked for */
	int nroutes;
	int diameter;
	double average_hops;
	double max_link_load; /* uniform all-to-all of one unit a pair */
	double bandwidth_tax; /* bytes times hops over bytes of the demand; 1: all
				 * traffic goes straight */
	double busiest_bytes; /* of the demand, on the circuit that carries most, one
				 * direction, each pair on one path; 0 if read from JSON */
	char *assignment;     /* how circuits were given to switches, a sentence */
};

#define OCS_PLAN_SERVERS_MAX 16384
#define OCS_PLAN_DEGREE_MAX 64
#define OCS_PLAN_ROUTES_MAX 1024 /* servers, when routes are asked for */
#define OCS_PLAN_PATHS_MAX 16
#define OCS_PLAN_TREES_MAX 15	      /* double binary trees of a group */
#define OCS_PLAN_DEMAND_MAX (4 << 20) /* bytes of a demand */

struct ocs_plan_request {
	int servers; /* 1..OCS_PLAN_SERVERS_MAX */
	int degree;  /* interfaces per server, 1..OCS_PLAN_DEGREE_MAX */
	bool directed;
	bool best;		/* --strategy=best; false: paper */
	bool stock;		/* all rings of a group are ring +1 with circuits of their own,
				 * which one communicator of stock NCCL uses all; false: rings
				 * of different steps, one communicator each.  The key rings of
				 * a demand wins */
	bool routes;		/* compute routes */
	bool any_port;		/* a switch may join any two interfaces; false:
				 * interface i reaches only plane i */
	const char *demand;	/* JSON text (doc/planning.md), or NULL: one
				 * AllReduce group over all servers */
	char *const *nodes;	/* `servers` names, or NULL */
	int trees;		/* double binary trees for each AllReduce group, besides one
				 * ring: 4 interfaces each.  0 or what the demand says */
	int paths;		/* of a pair with traffic of its own, at most; 0: one.
				 * 1..OCS_PLAN_PATHS_MAX, needs routes */
	const uint64_t *failed; /* per server a mask of interfaces to leave out (bit i:
				 * interface i), or NULL */
};

/* Returns a plan (ocs_plan_destroy), or NULL with ERR: OCS_USAGE (bad demand or
 * numbers), OCS_NEVER (these interfaces cannot close one ring: an odd number of
 * servers with two planes, or one interface).  doc/planning.md says how rings,
 * steps and planes are chosen.  Same request, same plan. */
struct ocs_plan *ocs_plan_make(const struct ocs_plan_request *request, struct ocs_error *err);
void ocs_plan_destroy(struct ocs_plan *plan);

struct ocs_plan_fault {
	int server, port;
};

/* A plan for the same job without the failed interfaces (transmitter and receiver;
 * all that failed so far, a plan does not remember them) that changes few circuits: rings keep their order, a broken edge of a ring takes
 * free interfaces or those of circuits that no ring uses; a ring is given up only
 * when nothing else is left.  All other circuits stay as they are.  Routes are made
 * again if PLAN has some; the revision is one more.  PLAN must be one that
 * ocs_plan_verify accepts.  Returns a plan (ocs_plan_destroy), or NULL with ERR: OCS_USAGE (no such interface),
 * OCS_NEVER (the servers would not all be joined). */
struct ocs_plan *ocs_plan_repair(const struct ocs_plan *plan, const struct ocs_plan_fault *faults,
				 int nfaults, struct ocs_error *err);

/* Gives PLAN routes if it has none: the same for the same circuits, wherever it is run.
 * 0, or -1 with ERR (OCS_USAGE: more than OCS_PLAN_ROUTES_MAX servers, OCS_NEVER: some
 * server cannot be reached). */
int ocs_plan_route(struct ocs_plan *plan, struct ocs_error *err);

/* Checks that no port is used twice, every circuit joins what its plane allows,
 * every ring step is co-prime, every edge of a ring or tree has a circuit, trees are
 * what they should be, every route follows circuits.  Returns 0, or -1 with ERR. */
int ocs_plan_verify(const struct ocs_plan *plan, struct ocs_error *err);

/* Gives a plan that was read from JSON, which does not hold it, the traffic between
 * pairs of the DEMAND (JSON text) it was made for.  Returns 0, or -1 with ERR. */
int ocs_plan_demand_set(struct ocs_plan *plan, const char *demand, struct ocs_error *err);
/* What the key rings of DEMAND (JSON text or NULL) says: 1 stock, 0 permuted, -1 nothing. */
int ocs_plan_demand_rings(const char *demand);
/* Whether DEMAND says nothing else: the plan is the one without a demand. */
bool ocs_plan_demand_bare(const char *demand);
/* Whether TEXT is a demand that a plan can be made for: 0, or -1 with ERR (OCS_USAGE) that
 * says what is wrong and where.  SERVERS 0: not known yet; members may be any and mp may
 * have any size.  In libocs_demand, which plugins link. */
int ocs_plan_demand_check(const char *text, int servers, struct ocs_error *err);

struct json_object *ocs_plan_to_json(const struct ocs_plan *plan);
/* Checks names, types and ranges only; run ocs_plan_verify on the result. */
struct ocs_plan *ocs_plan_from_json(struct json_object *json, struct ocs_error *err);

#endif
