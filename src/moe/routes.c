/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/moe/routes.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "src/moe/bound.h"
#include "src/util/text.h"

/* A full circuit is e to this dearer than an empty one, in the first round and in the last: who
 * is strict too early ends where single pairs cannot get better. */
#define STEEP_FIRST 10.0
#define STEEP_LAST 80.0
/* What a round shifts at once, as a share of what a NIC carries all the time. */
#define PORTION_FIRST 0.05
#define PORTION_LAST 0.006

/* What carries tokens: circuit i to j is i * n + j, what i sends by packets n * n + i, what it
 * receives by packets n * n + n + i. */
struct router {
	const struct ocs_moe_demand *demand;
	int n;
	int degree;	  /* neighbours that a server has at most */
	int *neighbour;	  /* [n x degree], -1 behind the last */
	double *capacity; /* NICs */
	double *load;	  /* tokens */
	double *price;
	double time; /* what a load is measured by */
	double steep;
	int ways;	/* of a pair, at most */
	double *tokens; /* [n x n x ways] */
};

/* One of the ways of a pair. */
struct way {
	enum ocs_moe_way kind;
	int relay;
	int n;	   /* what it loads */
	int at[3]; /* indexes into router.load */
};

static void routes_add(struct ocs_moe_routes *routes, int from, int to, int relay,
		       enum ocs_moe_way way, double tokens)
{
	if (tokens <= 0)
		return;
	if (!(routes->n & (routes->n - 1)))
		routes->route = ocs_realloc(routes->route, (routes->n ? 2 * (size_t)routes->n : 1) *
								   sizeof(*routes->route));
	routes->route[routes->n++] = (struct ocs_moe_route){
		.from = from, .to = to, .relay = relay, .way = way, .tokens = tokens
	};
}

struct ocs_moe_routes *ocs_moe_routes_direct(const struct ocs_moe_demand *demand,
					     const struct ocs_moe_region *region,
					     const struct ocs_moe_circuits *circuits)
{
	struct ocs_moe_routes *routes = ocs_calloc(1, sizeof(*routes));
	int n = demand->n;

	routes->time = ocs_moe_finish_time(demand, region, circuits);
	for (int i = 0; i < n; i++) {
		for (int j = 0; j < n; j++) {
			double d = demand->tokens[(size_t)i * n + j];
			double most = routes->time * circuits->count[(size_t)i * n + j];

			routes_add(routes, i, j, -1, OCS_MOE_CIRCUIT, d < most ? d : most);
			routes_add(routes, i, j, -1, OCS_MOE_PACKETS, d - most);
		}
	}
	return routes;
}

void ocs_moe_routes_destroy(struct ocs_moe_routes *routes)
{
	if (!routes)
		return;
	free(routes->route);
	free(routes);
}

static void price_set(struct router *r, int at)
{
	r->price[at] = exp(r->steep * r->load[at] / (r->capacity[at] * r->time)) / r->capacity[at];
}

static void load_change(struct router *r, const struct way *way, double by)
{
	for (int k = 0; k < way->n; k++) {
		r->load[way->at[k]] += by;
		price_set(r, way->at[k]);
	}
}

static double way_price(const struct router *r, const struct way *way)
{
	double price = 0;

	for (int k = 0; k < way->n; k++)
		price += r->price[way->at[k]];
	return price;
}

/* Way number INDEX from I to J; false if there is none of this number.  Numbers: 0 the pair's
 * circuits, 1 packets, then three for each place in the list of neighbours: of I by circuits on
 * and by packets on, and of J reached by packets. */
static bool way_find(const struct router *r, int i, int j, int index, struct way *way)
{
	int n = r->n, in = n * n + n + j, out = n * n + i, relay, kind;

	if (index < 2) {
		bool packets = index == 1;

		*way = (struct way){ .kind = packets ? OCS_MOE_PACKETS : OCS_MOE_CIRCUIT,
				     .relay = -1,
				     .n = packets ? 2 : 1,
				     .at = { packets ? out : i * n + j, in } };
		return packets || r->capacity[i * n + j] > 0;
	}
	kind = (index - 2) % 3;
	relay = r->neighbour[(kind == 2 ? j : i) * r->degree + (index - 2) / 3];
	if (relay < 0 || relay == i || relay == j)
		return false;
	if (kind == 0) {
		*way = (struct way){
			OCS_MOE_CIRCUIT_CIRCUIT, relay, 2, { i * n + relay, relay * n + j, 0 }
		};
		return r->capacity[relay * n + j] > 0;
	}
	if (kind == 1)
		*way = (struct way){
			OCS_MOE_CIRCUIT_PACKETS, relay, 3, { i * n + relay, n * n + relay, in }
		};
	else
		*way = (struct way){
			OCS_MOE_PACKETS_CIRCUIT, relay, 3, { out, n * n + n + relay, relay * n + j }
		};
	return true;
}

/* All ways from I to J; returns how many, their numbers in INDEX. */
static int ways_list(const struct router *r, int i, int j, struct way *ways, int *index)
{
	int found = 0;

	for (int w = 0; w < r->ways; w++)
		if (way_find(r, i, j, w, &ways[found]))
			index[found++] = w;
	return found;
}

static int way_cheapest(const struct router *r, const struct way *ways, int n)
{
	double least = INFINITY;
	int best = 0;

	for (int w = 0; w < n; w++) {
		double price = way_price(r, &ways[w]);

		if (price < least) {
			least = price;
			best = w;
		}
	}
	return best;
}

/* Of the ways that carry something; -1 for none. */
static int way_dearest(const struct router *r, const struct way *ways, const int *index, int n,
		       const double *tokens)
{
	double most = 0;
	int worst = -1;

	for (int w = 0; w < n; w++) {
		double price = tokens[index[w]] > 0 ? way_price(r, &ways[w]) : 0;

		if (price > most) {
			most = price;
			worst = w;
		}
	}
	return worst;
}

/* Lays the tokens of a pair on its ways, each portion on the one that is cheapest then. */
static void pair_fill(struct router *r, int i, int j, double portion, struct way *ways, int *index)
{
	double left = r->demand->tokens[(size_t)i * r->n + j];
	double *tokens = r->tokens + ((size_t)i * r->n + j) * (size_t)r->ways;
	int n = ways_list(r, i, j, ways, index);

	while (left > 0) {
		double part = left < portion ? left : portion;
		int best = way_cheapest(r, ways, n);

		tokens[index[best]] += part;
		load_change(r, &ways[best], part);
		left -= part;
	}
}

/* Shifts portions of a pair from its dearest way to its cheapest as long as that is still the
 * cheaper one with the portion on it. */
static void pair_shift(struct router *r, int i, int j, double portion, struct way *ways, int *index)
{
	double *tokens = r->tokens + ((size_t)i * r->n + j) * (size_t)r->ways;
	double d = r->demand->tokens[(size_t)i * r->n + j];
	int n = ways_list(r, i, j, ways, index);

	for (double moved = 0; moved < d;) {
		int from = way_dearest(r, ways, index, n, tokens), to;
		double part, before;

		if (from < 0)
			return;
		part = tokens[index[from]] < portion ? tokens[index[from]] : portion;
		before = way_price(r, &ways[from]);
		load_change(r, &ways[from], -part);
		to = way_cheapest(r, ways, n);
		load_change(r, &ways[to], part);
		if (to == from || way_price(r, &ways[to]) >= before) {
			load_change(r, &ways[to], -part);
			load_change(r, &ways[from], part);
			return;
		}
		tokens[index[from]] -= part;
		tokens[index[to]] += part;
		moved += part;
	}
}

/* What is loaded most, relative to what it carries. */
static double router_time(const struct router *r)
{
	int all = r->n * r->n + 2 * r->n;
	double time = 0;

	for (int k = 0; k < all; k++)
		if (r->load[k] > 0 && r->load[k] / r->capacity[k] > time)
			time = r->load[k] / r->capacity[k];
	return time;
}

static void router_init(struct router *r, const struct ocs_moe_demand *demand,
			const struct ocs_moe_region *region,
			const struct ocs_moe_circuits *circuits)
{
	int n = demand->n, all = n * n + 2 * n;

	*r = (struct router){ .demand = demand, .n = n };
	for (int i = 0; i < n; i++) {
		int degree = 0;

		for (int j = 0; j < n; j++)
			degree += circuits->count[(size_t)i * n + j] > 0;
		r->degree = degree > r->degree ? degree : r->degree;
	}
	r->ways = 2 + 3 * r->degree;
	r->neighbour = ocs_calloc((size_t)n * r->degree + 1, sizeof(*r->neighbour));
	r->capacity = ocs_calloc((size_t)all, sizeof(double));
	r->load = ocs_calloc((size_t)all, sizeof(double));
	r->price = ocs_calloc((size_t)all, sizeof(double));
	r->tokens = ocs_calloc((size_t)n * n * r->ways, sizeof(double));
	r->time = ocs_moe_bound_ports(demand, region);
	for (int i = 0; i < n; i++) {
		int degree = 0;

		for (int j = 0; j < n; j++) {
			r->capacity[i * n + j] = circuits->count[(size_t)i * n + j];
			if (circuits->count[(size_t)i * n + j])
				r->neighbour[i * r->degree + degree++] = j;
		}
		while (degree < r->degree)
			r->neighbour[i * r->degree + degree++] = -1;
		r->capacity[n * n + i] = r->capacity[n * n + n + i] = region->packets;
	}
}

static void router_free(struct router *r)
{
	free(r->neighbour);
	free(r->capacity);
	free(r->load);
	free(r->price);
	free(r->tokens);
}

/* FIRST in round 0, LAST in the last one of ROUNDS, by equal factors between. */
static double round_scale(double first, double last, int round, int rounds)
{
	return rounds > 1 ? first * pow(last / first, (double)round / (rounds - 1)) : first;
}

static void steep_set(struct router *r, double steep)
{
	int all = r->n * r->n + 2 * r->n;

	r->steep = steep;
	for (int k = 0; k < all; k++)
		if (r->capacity[k] > 0)
			price_set(r, k);
}

static void router_run(struct router *r, int rounds)
{
	struct way *ways = ocs_calloc((size_t)r->ways, sizeof(*ways));
	int *index = ocs_calloc((size_t)r->ways, sizeof(*index)), n = r->n;

	for (int round = 0; round < rounds; round++) {
		double portion = r->time * round_scale(PORTION_FIRST, PORTION_LAST, round, rounds);

		steep_set(r, round_scale(STEEP_FIRST, STEEP_LAST, round, rounds));

		for (int i = 0; i < n; i++) {
			for (int j = 0; j < n; j++) {
				if (!(r->demand->tokens[(size_t)i * n + j] > 0))
					continue;
				if (round)
					pair_shift(r, i, j, portion, ways, index);
				else
					pair_fill(r, i, j, portion, ways, index);
			}
		}
	}
	free(ways);
	free(index);
}

static struct ocs_moe_routes *router_routes(const struct router *r)
{
	struct ocs_moe_routes *routes = ocs_calloc(1, sizeof(*routes));
	double all = 0, relayed = 0;

	routes->time = router_time(r);
	for (int i = 0; i < r->n; i++) {
		for (int j = 0; j < r->n; j++) {
			const double *tokens = r->tokens + ((size_t)i * r->n + j) * (size_t)r->ways;

			all += r->demand->tokens[(size_t)i * r->n + j];
			for (int w = 0; w < r->ways; w++) {
				struct way way;

				if (!(tokens[w] > 0) || !way_find(r, i, j, w, &way))
					continue;
				routes_add(routes, i, j, way.relay, way.kind, tokens[w]);
				relayed += way.relay < 0 ? 0 : tokens[w];
			}
		}
	}
	routes->relayed = all > 0 ? relayed / all : 0;
	return routes;
}

struct ocs_moe_routes *ocs_moe_routes_relay(const struct ocs_moe_demand *demand,
					    const struct ocs_moe_region *region,
					    const struct ocs_moe_circuits *circuits, int rounds)
{
	struct ocs_moe_routes *direct = ocs_moe_routes_direct(demand, region, circuits), *relayed;
	struct router router;

	if (!(direct->time > 0))
		return direct;
	router_init(&router, demand, region, circuits);
	router_run(&router, rounds > 0 ? rounds : OCS_MOE_ROUNDS);
	relayed = router_routes(&router);
	router_free(&router);
	if (relayed->time < direct->time) {
		ocs_moe_routes_destroy(direct);
		return relayed;
	}
	ocs_moe_routes_destroy(relayed);
	return direct;
}
