/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Fabrics without packet switches: servers joined by circuits. */

#include "src/netsim/fabric_make.h"

#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

#include "src/netsim/demand.h"
#include "src/plan/plan.h"
#include "src/util/error.h"
#include "src/util/text.h"

/* Servers up to which there is a link, mostly dark, between any two. */
#define CIRCUITS_MAX 512
#define PLAN_MAX ((size_t)256 << 20)

/* splitmix64 (Vigna). */
static uint64_t random_next(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15u;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

/* Numbers of links by pair while circuits become links: several of one pair are one. */
struct pairs {
	int *link; /* 0: none, else number + 1 */
	int n;
};

static void circuit_add(struct ocs_netsim_fabric *fabric, struct pairs *pairs, int a, int b)
{
	int *link = &pairs->link[a * pairs->n + b];

	if (*link)
		fabric->links[*link - 1].rate += fabric->spec.rate;
	else
		*link = ocs_netsim_fabric_link(fabric, a, b, fabric->spec.rate) + 1;
}

static struct pairs pairs_make(int n)
{
	return (struct pairs){ .link = ocs_calloc((size_t)n * n, sizeof(int)), .n = n };
}

/* Rings through all servers in random order; for an odd degree the last is every other edge of
 * one. */
int ocs_netsim_expander_make(struct ocs_netsim_fabric *fabric, uint64_t seed, struct ocs_error *err)
{
	int n = fabric->servers, degree = fabric->spec.degree, *order;
	struct pairs pairs;

	if (degree < 2 && n > 2)
		return ocs_error_set(err, OCS_NEVER,
				     "an expander of degree 1 does not join %d servers; write "
				     "degree:2 or more",
				     n);
	pairs = pairs_make(n);
	order = ocs_calloc((size_t)n, sizeof(int));
	for (int k = 0; k < n; k++)
		order[k] = k;
	for (int ring = 0; n > 1 && ring < (degree + 1) / 2; ring++) {
		int stride = 2 * ring + 1 == degree ? 2 : 1;

		for (int k = n - 1; k > 0; k--) {
			int other = (int)(random_next(&seed) % (uint64_t)(k + 1)), held = order[k];

			order[k] = order[other];
			order[other] = held;
		}
		for (int k = 0; k + stride - 1 < n; k += stride) {
			circuit_add(fabric, &pairs, order[k], order[(k + 1) % n]);
			circuit_add(fabric, &pairs, order[(k + 1) % n], order[k]);
		}
	}
	free(order);
	free(pairs.link);
	return 0;
}

static int shard_server(const struct ocs_netsim_shard *shard, int server)
{
	return shard->servers ? shard->servers[server] : server;
}

/* The routes of SHARD, in links. */
static void routes_take(struct ocs_netsim_fabric *fabric, const struct ocs_netsim_shard *shard,
			const struct pairs *pairs)
{
	const struct ocs_plan *plan = shard->plan;

	for (int r = 0; r < plan->nroutes; r++) {
		const struct ocs_plan_route *route = &plan->routes[r];
		int src = shard_server(shard, route->src), dst = shard_server(shard, route->dst);
		struct ocs_netsim_routes *to = &fabric->routes[src * fabric->servers + dst];
		int direct = pairs->link[src * pairs->n + dst];

		to->known = true;
		to->paths = ocs_calloc((size_t)route->npaths + 1, sizeof(*to->paths));
		/* rings and pairs with a circuit of their own take it alone */
		if (direct) {
			to->paths[0] = (struct ocs_netsim_path){ .n = 1, .weight = 1 };
			to->paths[0].links[0] = direct - 1;
			to->count = 1;
		}
		for (int k = 0; !direct && k < route->npaths; k++) {
			struct ocs_netsim_path *path = &to->paths[to->count];

			if (route->lengths[k] - 1 > OCS_FLOW_LINKS_MAX || !(route->weights[k] > 0))
				continue;
			for (path->n = 0; path->n + 1 < route->lengths[k]; path->n++)
				path->links[path->n] =
					pairs->link[shard_server(shard, route->paths[k][path->n]) *
							    pairs->n +
						    shard_server(shard,
								 route->paths[k][path->n + 1])] -
					1;
			path->weight = route->weights[k];
			to->count++;
		}
	}
}

/* The plan in the file PATH, as ocsctl plan --json --routes prints it.  NULL with ERR. */
static struct ocs_plan *plan_read(const char *path, int servers, struct ocs_error *err)
{
	char *text = ocs_file_read(path, PLAN_MAX, NULL, err);
	struct json_object *json = text ? json_tokener_parse(text) : NULL;
	struct ocs_plan *plan = NULL;

	if (json)
		plan = ocs_plan_from_json(json, err);
	else if (text)
		ocs_error_set(err, OCS_USAGE, "not valid JSON");
	if (plan && (plan->servers != servers || ocs_plan_verify(plan, err))) {
		if (plan->servers != servers)
			ocs_error_set(err, OCS_USAGE, "the plan has %d servers, the fabric %d",
				      plan->servers, servers);
		ocs_plan_destroy(plan);
		plan = NULL;
	}
	if (!plan)
		ocs_error_prefix(err, "%s", path);
	json_object_put(json);
	free(text);
	return plan;
}

/* Whether each job has servers of its own that are not all, so that it can have circuits of its own. */
static bool jobs_apart(const struct ocs_netsim_fabric *fabric,
		       const struct ocs_netsim_graph *const *graphs, int *const *places, int n)
{
	bool *taken = ocs_calloc((size_t)fabric->servers, sizeof(bool));
	bool apart = n > 1 || (n == 1 && graphs[0]->servers < fabric->servers);

	for (int k = 0; k < n && apart; k++) {
		for (int s = 0; s < graphs[k]->servers && apart; s++) {
			int at = places && places[k] ? places[k][s] : s;

			apart = !taken[at];
			taken[at] = true;
		}
	}
	free(taken);
	return apart;
}

/* Plans SHARD of SERVERS for the N GRAPHS at PLACES. */
static int shard_plan(const struct ocs_netsim_fabric *fabric, struct ocs_netsim_shard *shard,
		      int servers, const struct ocs_netsim_graph *const *graphs, int *const *places,
		      int n, struct ocs_error *err)
{
	const struct ocs_netsim_spec *spec = &fabric->spec;
	char *demand = ocs_netsim_demand(graphs, places, n, servers);
	struct ocs_plan_request request = { .servers = servers,
					    .degree = spec->degree,
					    .best = spec->best,
					    .any_port = true,
					    .routes = servers <= OCS_PLAN_ROUTES_MAX,
					    .paths = spec->paths,
					    .demand = demand };

	if (!request.routes)
		request.paths = 0;
	shard->plan =
		spec->plan ? plan_read(spec->plan, servers, err) : ocs_plan_make(&request, err);
	free(demand);
	return shard->plan ? 0 : ocs_error_prefix(err, "topoopt");
}

/* The circuits of SHARD as links. */
static void shard_links(struct ocs_netsim_fabric *fabric, const struct ocs_netsim_shard *shard,
			struct pairs *pairs)
{
	const struct ocs_plan *plan = shard->plan;

	for (int k = 0; k < plan->ncircuits; k++) {
		int a = shard_server(shard, plan->circuits[k].a);
		int b = shard_server(shard, plan->circuits[k].b);

		circuit_add(fabric, pairs, a, b);
		if (!plan->directed)
			circuit_add(fabric, pairs, b, a);
	}
}

int ocs_netsim_topoopt_make(struct ocs_netsim_fabric *fabric,
			    const struct ocs_netsim_graph *const *graphs, int *const *places, int n,
			    struct ocs_error *err)
{
	bool apart = !fabric->spec.plan && jobs_apart(fabric, graphs, places, n);
	struct pairs pairs = pairs_make(fabric->servers);
	int rc = 0;

	fabric->direct = pairs.link;
	fabric->shards = ocs_calloc((size_t)n + 1, sizeof(*fabric->shards));
	for (int k = 0; k < (apart ? n : 1) && !rc; k++) {
		struct ocs_netsim_shard *shard = &fabric->shards[fabric->nshards++];

		if (apart) {
			shard->servers = ocs_calloc((size_t)graphs[k]->servers, sizeof(int));
			for (int s = 0; s < graphs[k]->servers; s++)
				shard->servers[s] = places && places[k] ? places[k][s] : s;
			rc = shard_plan(fabric, shard, graphs[k]->servers, graphs + k, NULL, 1,
					err);
		} else {
			rc = shard_plan(fabric, shard, fabric->servers, graphs, places, n, err);
		}
		if (!rc)
			shard_links(fabric, shard, &pairs);
	}
	for (int k = 0; k < fabric->nshards && !rc; k++) {
		if (fabric->shards[k].plan->routes)
			routes_take(fabric, &fabric->shards[k], &pairs);
	}
	return rc;
}

int ocs_netsim_circuits_make(struct ocs_netsim_fabric *fabric, struct ocs_error *err)
{
	if (fabric->servers > CIRCUITS_MAX)
		return ocs_error_set(err, OCS_USAGE, "%s: %d servers, at most %d are simulated",
				     ocs_netsim_fabric_name(fabric->spec.kind), fabric->servers,
				     CIRCUITS_MAX);
	for (int i = 0; i < fabric->servers; i++) {
		for (int j = 0; j < fabric->servers; j++)
			ocs_netsim_fabric_link(fabric, i, j, 0);
	}
	return 0;
}
