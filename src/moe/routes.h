/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_MOE_ROUTES_H
#define OCS_MOE_ROUTES_H

#include "src/moe/circuits.h"

/* How tokens travel from one server to another. */
enum ocs_moe_way {
	OCS_MOE_CIRCUIT,	 /* the circuits of the pair */
	OCS_MOE_PACKETS,	 /* the packet network */
	OCS_MOE_CIRCUIT_CIRCUIT, /* over a relay, by circuits to it and from it */
	OCS_MOE_CIRCUIT_PACKETS, /* ... by circuits to it, by packets from it */
	OCS_MOE_PACKETS_CIRCUIT, /* ... by packets to it, by circuits from it */
};

struct ocs_moe_route {
	int from, to;
	int relay; /* a third server; -1 for the first two ways */
	enum ocs_moe_way way;
	double tokens; /* more than 0 */
};

struct ocs_moe_routes {
	struct ocs_moe_route *route; /* by from, then to */
	int n;
	double time;	/* tokens per NIC rate, until the last is there */
	double relayed; /* share of all tokens that take two hops, 0 to 1 */
};

/* Rounds of ocs_moe_routes_relay unless one asks for others. */
#define OCS_MOE_ROUNDS 25

/* What a finish time (ocs_moe_finish_time) stands for: circuits as far as they carry, packets for
 * the rest.  The caller destroys them. */
struct ocs_moe_routes *ocs_moe_routes_direct(const struct ocs_moe_demand *demand,
					     const struct ocs_moe_region *region,
					     const struct ocs_moe_circuits *circuits);

/* The same with relays: a multiplicative-weights router that shifts tokens from dear ways to
 * cheap ones, ROUNDS times for every pair in ever smaller portions.  Never slower than direct. */
struct ocs_moe_routes *ocs_moe_routes_relay(const struct ocs_moe_demand *demand,
					    const struct ocs_moe_region *region,
					    const struct ocs_moe_circuits *circuits, int rounds);

void ocs_moe_routes_destroy(struct ocs_moe_routes *routes);

/* Checks circuits and routes from nothing but what they say, with no code of those who made them:
 * circuits are symmetric and fit the ports, every token of DEMAND arrives once, each way exists,
 * and no circuit or NIC carries more than it can in routes->time (up to one part in 10^9).
 * Returns 0, or -1 with ERR that names the first fault. */
int ocs_moe_verify(const struct ocs_moe_demand *demand, const struct ocs_moe_region *region,
		   const struct ocs_moe_circuits *circuits, const struct ocs_moe_routes *routes,
		   struct ocs_error *err);

#endif
