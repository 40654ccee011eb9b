/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include <math.h>
#include <stdlib.h>

#include "src/moe/routes.h"
#include "src/util/error.h"
#include "src/util/text.h"

#define TOLERANCE 1e-9

/* What was counted of everything; all in tokens. */
struct tally {
	double *pair;		 /* [n x n] what arrived */
	double *circuit;	 /* [n x n] what the circuits of a pair carried, by direction */
	double *sent, *received; /* [n] by packets */
};

static int circuits_check(const struct ocs_moe_region *region,
			  const struct ocs_moe_circuits *circuits, struct ocs_error *err)
{
	int n = region->n;

	if (circuits->n != n)
		return ocs_error_set(err, OCS_ERROR, "circuits of %d servers in a region of %d",
				     circuits->n, n);
	for (int i = 0; i < n; i++) {
		int ports = 0;

		for (int j = 0; j < n; j++) {
			int count = circuits->count[i * n + j];

			if (count < 0 || (i == j && count) || count != circuits->count[j * n + i])
				return ocs_error_set(err, OCS_ERROR,
						     "%d circuits from server %d to %d and %d back",
						     count, i, j, circuits->count[j * n + i]);
			ports += count;
		}
		if (ports > region->ports[i])
			return ocs_error_set(err, OCS_ERROR,
					     "server %d has %d circuits and %d ports", i, ports,
					     region->ports[i]);
	}
	return 0;
}

/* One hop over circuits, or over packets. */
static void hop_count(struct tally *tally, int n, int from, int to, int packets, double tokens)
{
	if (packets) {
		tally->sent[from] += tokens;
		tally->received[to] += tokens;
	} else {
		tally->circuit[from * n + to] += tokens;
	}
}

static int route_count(struct tally *tally, int n, const struct ocs_moe_route *route,
		       struct ocs_error *err)
{
	int two = route->way >= OCS_MOE_CIRCUIT_CIRCUIT, relay = route->relay;

	if (route->from < 0 || route->to < 0 || route->from >= n || route->to >= n ||
	    route->from == route->to || !(route->tokens > 0) || !isfinite(route->tokens))
		return ocs_error_set(err, OCS_ERROR, "a route from %d to %d with %g tokens",
				     route->from, route->to, route->tokens);
	if (two ? relay < 0 || relay >= n || relay == route->from || relay == route->to :
		  relay != -1)
		return ocs_error_set(err, OCS_ERROR, "a route from %d to %d over relay %d",
				     route->from, route->to, relay);
	tally->pair[route->from * n + route->to] += route->tokens;
	if (!two) {
		hop_count(tally, n, route->from, route->to, route->way == OCS_MOE_PACKETS,
			  route->tokens);
		return 0;
	}
	hop_count(tally, n, route->from, relay, route->way == OCS_MOE_PACKETS_CIRCUIT,
		  route->tokens);
	hop_count(tally, n, relay, route->to, route->way == OCS_MOE_CIRCUIT_PACKETS, route->tokens);
	return 0;
}

static int tally_check(const struct tally *tally, const struct ocs_moe_demand *demand,
		       const struct ocs_moe_region *region, const struct ocs_moe_circuits *circuits,
		       double time, struct ocs_error *err)
{
	int n = demand->n;
	double most = time * (1 + TOLERANCE);

	for (int i = 0; i < n; i++) {
		if (tally->sent[i] > most * region->packets ||
		    tally->received[i] > most * region->packets)
			return ocs_error_set(err, OCS_ERROR,
					     "the packet NICs of server %d send %g and receive %g "
					     "tokens in a time of %g",
					     i, tally->sent[i], tally->received[i], time);
		for (int j = 0; j < n; j++) {
			double d = demand->tokens[i * n + j], arrived = tally->pair[i * n + j];

			if (fabs(d - arrived) > TOLERANCE * (d + 1))
				return ocs_error_set(err, OCS_ERROR,
						     "%g of %g tokens from server %d reach %d",
						     arrived, d, i, j);
			if (tally->circuit[i * n + j] > most * circuits->count[i * n + j])
				return ocs_error_set(
					err, OCS_ERROR,
					"%d circuits from server %d to %d carry %g tokens in a "
					"time of %g",
					circuits->count[i * n + j], i, j, tally->circuit[i * n + j],
					time);
		}
	}
	return 0;
}

int ocs_moe_verify(const struct ocs_moe_demand *demand, const struct ocs_moe_region *region,
		   const struct ocs_moe_circuits *circuits, const struct ocs_moe_routes *routes,
		   struct ocs_error *err)
{
	size_t n = (size_t)demand->n;
	struct tally tally;
	int rc = circuits_check(region, circuits, err);

	if (rc)
		return rc;
	tally.pair = ocs_calloc(n * n, sizeof(double));
	tally.circuit = ocs_calloc(n * n, sizeof(double));
	tally.sent = ocs_calloc(n, sizeof(double));
	tally.received = ocs_calloc(n, sizeof(double));
	for (int k = 0; k < routes->n && !rc; k++)
		rc = route_count(&tally, demand->n, &routes->route[k], err);
	if (!rc)
		rc = tally_check(&tally, demand, region, circuits, routes->time, err);
	free(tally.pair);
	free(tally.circuit);
	free(tally.sent);
	free(tally.received);
	return rc;
}
