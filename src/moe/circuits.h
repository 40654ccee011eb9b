/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_MOE_CIRCUITS_H
#define OCS_MOE_CIRCUITS_H

#include "src/moe/demand.h"

/* A region: servers with optical ports on one switch and NICs on a packet network. */
struct ocs_moe_region {
	int n;	    /* servers */
	int *ports; /* [n] circuits that each can take, at least 0: alpha, less what is broken */
	double packets; /* beta: NICs on the packet network, more than 0; need not be whole */
};

/* Which servers are joined.  A circuit is duplex and has the rate of one NIC. */
struct ocs_moe_circuits {
	int n;
	int *count; /* n x n, symmetric, diagonal 0: circuits between i and j */
};

/* N servers with PORTS optical ports and PACKETS packet NICs each.  The caller destroys it. */
struct ocs_moe_region *ocs_moe_region_create(int n, int ports, double packets);
void ocs_moe_region_destroy(struct ocs_moe_region *region);

/* N servers, no circuit.  The caller destroys it. */
struct ocs_moe_circuits *ocs_moe_circuits_create(int n);
struct ocs_moe_circuits *ocs_moe_circuits_copy(const struct ocs_moe_circuits *circuits);
void ocs_moe_circuits_destroy(struct ocs_moe_circuits *circuits);

/* Adds BY (may be negative) circuits between I and J. */
void ocs_moe_circuits_add(struct ocs_moe_circuits *circuits, int i, int j, int by);
/* How many end at server I. */
int ocs_moe_circuits_degree(const struct ocs_moe_circuits *circuits, int i);
/* How many of BEFORE are not in AFTER: what has to be cut. */
int ocs_moe_circuits_cut(const struct ocs_moe_circuits *before,
			 const struct ocs_moe_circuits *after);

/* Reads [[i,j,count],...] for the servers of REGION, or an object that has this as "circuits".
 * NULL with ERR (OCS_USAGE): no such server, a server joined with itself, a pair that stands
 * twice, more circuits than a server has ports. */
struct ocs_moe_circuits *ocs_moe_circuits_from_json(struct json_object *json,
						    const struct ocs_moe_region *region,
						    struct ocs_error *err);
/* The same list, i < j, in order.  The caller puts it. */
struct json_object *ocs_moe_circuits_to_json(const struct ocs_moe_circuits *circuits);

/* The time of one all-to-all whose traffic takes circuits and packets straight to its
 * destination, a pair's shared between the two as is best: the smallest t such that for each
 * server what its circuits cannot carry, sum over j of max(0, D_ij - t C_ij), is at most
 * t * packets, and the same for what it receives.  In tokens per NIC rate. */
double ocs_moe_finish_time(const struct ocs_moe_demand *demand, const struct ocs_moe_region *region,
			   const struct ocs_moe_circuits *circuits);

#endif
