/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_PLAN_INTERNAL_H
#define OCS_PLAN_INTERNAL_H

/* Shared by the files of the maker; ocs_plan_verify uses none of it. */

#include <stdint.h>

#include "src/plan/plan.h"

/* Reads a demand for SERVERS (0: for as many as its mp says, or any); the groups (in the order of the file) and *MP are the caller's.
 * *MP: SERVERS x SERVERS bytes from row to column, or NULL if there are none.
 * Returns 0, or -1 with ERR and nothing allocated. */
int ocs_plan_demand_parse(const char *text, int servers, struct ocs_plan_group **groups,
			  int *ngroups, double **mp, int *trees, struct ocs_error *err);
/* A group over servers 0..SERVERS-1. */
void ocs_plan_group_all(struct ocs_plan_group *group, int servers);
void ocs_plan_groups_free(struct ocs_plan_group *groups, int ngroups);

/* Chooses COUNT steps (steps[0] == 1) for rings over MEMBERS servers; repeats them
 * when there are fewer co-prime steps.  paper: the geometric sequence projected
 * on the candidates.  best: a search for the fewest average hops. */
void ocs_plan_steps_paper(int members, int count, bool directed, int *steps);
void ocs_plan_steps_best(int members, int count, bool directed, int *steps);

#define OCS_PLAN_MATCH_EXACT 320 /* vertices with an edge */

/* Maximum-weight matching on a general graph of N vertices.  WEIGHT: N x N,
 * symmetric, 0 (no edge) to 2^58.  MATE[i]: the partner of i or -1.  With more than
 * OCS_PLAN_MATCH_EXACT vertices at least half of the maximum. */
void ocs_plan_match(int n, const int64_t *weight, int *mate);

/* Interfaces while circuits are given out. */
struct ocs_plan_ports {
	struct ocs_plan *plan;
	uint64_t *tx;	     /* per server: free interfaces (transmitters) */
	uint64_t *rx;	     /* free receivers; the same array for duplex */
	int capacity;	     /* of plan->circuits */
	int crossed;	     /* circuits between different interfaces */
	int mp, expander;    /* circuits made for either */
	int trees, treeless; /* circuits of trees; trees that found no interfaces */
	bool kautz;	     /* the expander is a Kautz graph with a ring in it */
};

/* GROUP: the ring's group, or -1. */
void ocs_plan_circuit_add(struct ocs_plan_ports *ports, int a, int a_port, int b, int b_port,
			  int group);

/* The pair of trees of GROUP numbered by STEP; its arrays are the caller's. */
void ocs_plan_tree_make(const struct ocs_plan_group *group, int step, struct ocs_plan_tree *tree);
void ocs_plan_trees_free(struct ocs_plan_group *group);
/* Gives GROUP up to COUNT double binary trees on free interfaces. */
void ocs_plan_trees(struct ocs_plan_ports *ports, struct ocs_plan_group *group, int count);

/* Gives what is free to the pairs with most traffic: a matching per interface, the
 * demand of a pair halved for every circuit it has got. */
void ocs_plan_mp(struct ocs_plan_ports *ports, const double *mp);

/* A generalized Kautz digraph of DEGREE over N vertices, numbered so that i -> i + 1
 * (mod n) are among its arcs.  The others as DEGREE - 1 permutations: the c-th takes i
 * to [c * n + i] (-1: nowhere).  The caller frees it; NULL if none was found. */
int *ocs_plan_kautz(int n, int degree);

#define OCS_PLAN_EXPAND_MAX 4096 /* servers up to which circuits are exchanged */

/* What becomes of the interfaces that rings and pairs leave. */
enum ocs_plan_rest {
	OCS_PLAN_NOTHING,
	OCS_PLAN_RANDOM, /* an expander that begins with random circuits */
	OCS_PLAN_KAUTZ,	 /* directed: one that begins as a generalized Kautz
				 * graph with the ring in it, if all servers have the
				 * same interfaces left; else random */
};

/* Gives what is free to an expander, improved by exchanges while the average hops
 * fall. */
void ocs_plan_expand(struct ocs_plan_ports *ports, enum ocs_plan_rest rest);

/* Gives the rings of PLAN's groups (nrings and steps are wishes) ports and planes;
 * lowers nrings where they do not fit; what is left goes to MP (or NULL) and REST.  FAILED: interfaces to leave out, or NULL.  Fills circuits and assignment.  ORDER: groups, most
 * important first.  TREES: double binary trees of each group. */
void ocs_plan_assign(struct ocs_plan *plan, const int *order, const double *mp,
		     const uint64_t *failed, bool best, int trees, enum ocs_plan_rest rest);

/* Fills diameter, average_hops, max_link_load and bandwidth_tax, and routes if
 * ROUTES.  BALANCE: spends more time on even loads; otherwise members of a group
 * reach each other over its rings alone, as the paper has it.  Returns -1 when some
 * server cannot reach another. */
int ocs_plan_measure(struct ocs_plan *plan, bool routes, bool balance);

/* Gives pairs with traffic of their own up to K paths with equal shares, after
 * ocs_plan_measure with routes; their present one stays the first.  Corrects
 * max_link_load and bandwidth_tax. */
void ocs_plan_paths(struct ocs_plan *plan, int k);

#endif
