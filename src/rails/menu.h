/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_RAILS_MENU_H
#define OCS_RAILS_MENU_H

/* What the circuits of one rail may be while a job runs: the menu of its topologies (Opus, section
 * 4.2, "topo_id").  A job on rails has a node for each coordinate of the dimensions that leave the
 * node.  One of them may be asymmetric (pipeline parallelism): its coordinates are the stages, and
 * neighbouring stages send to each other.  Along every other dimension the nodes of a stage form
 * rings.
 *
 * A topology is a string with one digit per stage: 0 says that the stage is joined to those
 * neighbouring stages that have 0 too, 1..9 that its nodes are joined along that symmetric dimension.
 * "ring" is the giant ring through all nodes in their order, for jobs that do without changes.  A
 * string is absolute: it names all circuits of a rail, whatever stood before.
 *
 * Nodes are numbered by their coordinate, row-major, last dimension fastest; ports of a NIC on the
 * rail 0 and 1: port 1 leads to the next node of a ring or line, port 0 to the previous one.  With
 * one port per NIC there are pairs only, port 0 to port 0. */

#include <stdbool.h>
#include <stddef.h>

struct ocs_error;

#define OCS_RAILS_DIMS 10     /* one asymmetric and nine symmetric */
#define OCS_RAILS_STAGES 64   /* digits of a topology, */
#define OCS_RAILS_TOPOLOGY 65 /* and bytes of its string */
#define OCS_RAILS_RING "ring"

struct ocs_rails_layout {
	int ndim;
	int extent[OCS_RAILS_DIMS]; /* nodes along each dimension, >= 1 */
	int asymmetric;		    /* that dimension, or -1: there is one stage */
	int ports;		    /* of each NIC on its rail: 1 or 2 */
};

/* A circuit between two nodes of the job on one rail, with two ports per NIC always from port 1 of A to
 * port 0 of B, with one from the smaller node: the same circuit has equal members everywhere. */
struct ocs_rails_pair {
	int a, a_port;
	int b, b_port;
};

/* Sorted by a, then a_port. */
struct ocs_rails_pairs {
	struct ocs_rails_pair *items;
	size_t count;
};

/* What a group of nodes that are to communicate needs of a topology. */
struct ocs_rails_need {
	enum ocs_rails_need_kind {
		OCS_RAILS_NOTHING, /* one node: it stays inside it */
		OCS_RAILS_STAGE,   /* DIGIT in stage FIRST (= LAST) */
		OCS_RAILS_LINE, /* 0 in the stages FIRST to LAST, over the end where LAST is less */
		OCS_RAILS_OUTSIDE, /* no topology joins them: packets must carry it */
	} kind;
	int digit;
	int first, last;
};

/* Whether rails can serve LAYOUT at all: rings of three and more, and lines of three and more
 * stages, need two ports; at most nine symmetric dimensions and OCS_RAILS_STAGES stages.  Returns 0,
 * or -1 with ERR (OCS_NEVER): one sentence with what would work. */
int ocs_rails_layout_check(const struct ocs_rails_layout *layout, struct ocs_error *err);

int ocs_rails_layout_nodes(const struct ocs_rails_layout *layout);
/* Digits of a topology of it. */
int ocs_rails_layout_stages(const struct ocs_rails_layout *layout);
/* The digit of dimension DIM, 0 for the asymmetric one, and the dimension of DIGIT or -1. */
int ocs_rails_layout_digit(const struct ocs_rails_layout *layout, int dim);
int ocs_rails_layout_dim(const struct ocs_rails_layout *layout, int digit);

/* The topology in which a job begins: every stage on its last symmetric dimension with more than
 * one node, or 0 where there is none.  TOPOLOGY has OCS_RAILS_TOPOLOGY bytes. */
void ocs_rails_topology_first(const struct ocs_rails_layout *layout, char *topology);

/* Whether TEXT names a topology of LAYOUT.  0, or -1 with ERR (OCS_USAGE): what is wrong, and which
 * digits there are. */
int ocs_rails_topology_check(const struct ocs_rails_layout *layout, const char *text,
			     struct ocs_error *err);

/* The circuits of TOPOLOGY on one rail, in PAIRS, which the caller frees by ocs_rails_pairs_free.
 * 0, or -1 with ERR as above. */
int ocs_rails_topology_pairs(const struct ocs_rails_layout *layout, const char *topology,
			     struct ocs_rails_pairs *pairs, struct ocs_error *err);

/* Every circuit that some topology of the menu has, the giant ring too, each once: what the switches
 * must be able to make. */
int ocs_rails_menu_pairs(const struct ocs_rails_layout *layout, struct ocs_rails_pairs *pairs,
			 struct ocs_error *err);

/* What FROM has and TO has not, and the other way round; what is in both is in neither list.  A
 * change of one stage touches only ports of that stage and of those it was or will be joined to.
 * The caller frees both. */
int ocs_rails_change(const struct ocs_rails_layout *layout, const char *from, const char *to,
		     struct ocs_rails_pairs *cut, struct ocs_rails_pairs *make,
		     struct ocs_error *err);

void ocs_rails_pairs_free(struct ocs_rails_pairs *pairs);

/* What the COUNT nodes MEMBERS, each named once, need.  All nodes along one symmetric dimension, or
 * two neighbours of them, need it in their stage; neighbouring stages along the asymmetric one need
 * these stages.  All others, and members that are no nodes of the job, are OCS_RAILS_OUTSIDE: nobody
 * on a ring forwards for two of it that are not neighbours. */
struct ocs_rails_need ocs_rails_group_need(const struct ocs_rails_layout *layout,
					   const int *members, int count);

/* Whether TOPOLOGY, one that the check lets pass, has what NEED asks for.  The giant ring has the
 * circuits of no need. */
bool ocs_rails_need_met(const struct ocs_rails_need *need, const char *topology);

/* The topology TO that meets NEED and else differs as little as possible from FROM (both
 * OCS_RAILS_TOPOLOGY bytes, may be the same; from the giant ring: from the first topology): stages
 * that keep 0 without a neighbour that has 0 follow the stage that left them. */
void ocs_rails_topology_meet(const struct ocs_rails_layout *layout, const char *from,
			     const struct ocs_rails_need *need, char *to);

#endif
