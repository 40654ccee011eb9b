/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Plans for a demand: groups, and traffic between pairs. */

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "src/plan/plan.h"
#include "src/util/error.h"
#include "tests/unit/plan/plan_check.h"

/* "[[...],...]" of a demand with N servers; free it. */
static char *demand_text(int n, long long bytes, const long long *mp)
{
	size_t size = 256 + (size_t)n * n * 24, at = 0;
	char *text = malloc(size);

	assert_non_null(text);
	at += snprintf(text + at, size - at, "{\"allreduce\":[{\"bytes\":%lld,\"members\":[0",
		       bytes);
	for (int i = 1; i < n; i++)
		at += snprintf(text + at, size - at, ",%d", i);
	at += snprintf(text + at, size - at, "]}],\"mp\":[");
	for (int i = 0; i < n; i++)
		for (int j = 0; j < n; j++)
			at += snprintf(text + at, size - at, "%s%lld%s",
				       j ? "," :
				       i ? ",[" :
					   "[",
				       mp[i * n + j], j == n - 1 ? "]" : "");
	snprintf(text + at, size - at, "]}");
	return text;
}

static bool has_circuit(const struct ocs_plan *plan, int a, int b)
{
	for (int i = 0; i < plan->ncircuits; i++)
		if ((plan->circuits[i].a == a && plan->circuits[i].b == b) ||
		    (!plan->directed && plan->circuits[i].a == b && plan->circuits[i].b == a))
			return true;
	return false;
}

/* The tax from its definition: what the routes and rings carry over what is sent. */
static double tax(const struct ocs_plan *plan, const long long *mp)
{
	double bytes = 0, carried = 0;

	for (int i = 0; i < plan->nroutes; i++) {
		double part = (double)mp[plan->routes[i].src * plan->servers + plan->routes[i].dst];

		bytes += part;
		for (int p = 0; p < plan->routes[i].npaths; p++)
			carried += part * plan->routes[i].weights[p] *
				   (plan->routes[i].lengths[p] - 1);
	}
	for (int g = 0; g < plan->ngroups; g++) {
		assert_true(plan->groups[g].nrings > 0);
		bytes += 2.0 * (double)plan->groups[g].bytes * (plan->groups[g].nmembers - 1);
		carried += 2.0 * (double)plan->groups[g].bytes * (plan->groups[g].nmembers - 1);
	}
	return carried / bytes;
}

/* AllReduce and traffic between pairs share the interfaces by bytes. */
static void test_mp(void **state)
{
	enum { N = 16 };
	long long mp[N * N];

	(void)state;
	for (int way = 0; way < 12; way++) {
		struct ocs_plan_request request = {
			.servers = N,
			.degree = 4,
			.routes = true,
			.directed = way & 1,
			.any_port = way & 2,
		};
		long long bytes = way < 4 ? 1000 : way < 8 ? 1000000 : 1;
		double hops[2];
		char *text;

		memset(mp, 0, sizeof(mp));
		/* heavy pairs (i, i + 8), light ones (i, i + 7) */
		for (int i = 0; i < N; i++) {
			mp[i * N + (i + 8) % N] = 2000;
			mp[i * N + (i + 7) % N] = 300;
		}
		text = demand_text(N, bytes, mp);
		request.demand = text;
		for (int best = 0; best < 2; best++) {
			struct ocs_plan *plan;
			int want = way < 4 ? 2 : way < 8 ? 4 : 1;

			request.best = best;
			plan = plan_make(&request);
			assert_true(fabs(tax(plan, mp) - plan->bandwidth_tax) < 1e-9);
			hops[best] = plan->bandwidth_tax;
			/* 4 * 30000 / (30000 + 36800), 4 * 3e7 / ..., 4 * 30 / ... */
			if (request.directed)
				assert_int_equal(plan->groups[0].nrings, want);
			else
				assert_int_equal(plan->groups[0].nrings, (want + 1) / 2);
			for (int i = 0; way < 4 && i < N; i++)
				assert_true(has_circuit(plan, i, (i + 8) % N));
			assert_true(way >= 4 || strstr(plan->assignment, "much traffic"));
			ocs_plan_destroy(plan);
		}
		assert_true(hops[1] <= hops[0] + 1e-9);
		free(text);
	}
}

/* Bytes on the busiest circuit in one direction, from routes and circuits alone: a ring sends both
 * ways round unless directed, circuits between the same servers share. */
static double busiest(const struct ocs_plan *plan, const long long *mp)
{
	int n = plan->servers, ways = plan->directed ? 1 : 2;
	double *bytes = calloc((size_t)n * n, sizeof(double)), most = 0;
	double ring = 2.0 * (double)plan->groups[0].bytes * (n - 1) / n;
	int *count = calloc((size_t)n * n, sizeof(int));

	for (int c = 0; c < plan->ncircuits; c++) {
		count[plan->circuits[c].a * n + plan->circuits[c].b]++;
		if (!plan->directed)
			count[plan->circuits[c].b * n + plan->circuits[c].a]++;
	}
	for (int i = 0; i < plan->nroutes; i++) {
		const struct ocs_plan_route *route = &plan->routes[i];

		for (int k = 1; k < route->lengths[0]; k++)
			bytes[route->paths[0][k - 1] * n + route->paths[0][k]] +=
				(double)mp[route->src * n + route->dst];
	}
	for (int c = 0; c < 2 * plan->ncircuits; c++) {
		const struct ocs_plan_circuit *circuit = &plan->circuits[c / 2];
		int at = c % 2 ? circuit->b * n + circuit->a : circuit->a * n + circuit->b;
		double here;

		if (c % 2 && plan->directed)
			continue;
		here = bytes[at] / count[at] +
		       (circuit->group < 0 ? 0 : ring / ways / plan->groups[0].nrings);
		most = here > most ? here : most;
	}
	free(bytes);
	free(count);
	return most;
}

/* Traffic of pairs: the same of all, or drawn (every eighth has up to ten times as much), or one
 * heavy pair for each server, far away or (KIND 3) next to it on the ring. */
static void pairs_draw(long long *mp, int n, int kind, unsigned seed)
{
	for (int i = 0; i < n; i++)
		for (int j = 0; j < n; j++) {
			long long drawn;

			seed = seed * 1103515245u + 12345u;
			drawn = seed >> 29 ? 1 + (seed >> 16) % 5 : 1 + (seed >> 8) % 50;
			if (kind == 0)
				drawn = 3;
			else if (kind == 2)
				drawn = j == (i + n / 2) % n ? 500 : 0;
			else if (kind == 3)
				drawn = j == (i ^ 1) ? 500 : 0;
			mp[i * n + j] = i == j ? 0 : drawn;
		}
}

/* Pairs get circuits only where the busiest circuit carries no more than with rings on all
 * interfaces: an all-to-all of all servers does not, neighbours on the ring do. */
static void test_rings_alone(void **state)
{
	enum { N = 32 };
	int rings_won = 0, pairs_won = 0;

	(void)state;
	for (int way = 0; way < 32; way++) {
		long long mp[N * N], none[N * N] = { 0 };
		struct ocs_plan_request request = {
			.servers = N,
			.degree = way & 4 ? 6 : 4,
			.routes = true,
			.best = true,
			.directed = way & 1,
			.any_port = way & 2,
		};
		struct ocs_plan *plan, *alone;
		char *text;

		pairs_draw(mp, N, way / 8, (unsigned)way);
		text = demand_text(N, 60, none);
		request.demand = text;
		alone = plan_make(&request);
		free(text);
		text = demand_text(N, 60, mp);
		request.demand = text;
		plan = plan_make(&request);
		free(text);
		assert_true(fabs(tax(plan, mp) - plan->bandwidth_tax) < 1e-9);
		assert_true(fabs(busiest(plan, mp) / plan->busiest_bytes - 1) < 1e-9);
		assert_true(plan->busiest_bytes <= busiest(alone, mp) * (1 + 1e-9));
		if (plan->groups[0].nrings == alone->groups[0].nrings)
			rings_won++;
		else
			pairs_won++;
		if (way >= 16)
			assert_true(plan->groups[0].nrings < alone->groups[0].nrings);
		ocs_plan_destroy(plan);
		ocs_plan_destroy(alone);
	}
	assert_true(rings_won >= 4);
	assert_true(pairs_won >= 4);
}

/* Several paths for pairs with traffic: the k shortest, without repetition. */
static void test_paths(void **state)
{
	enum { N = 12 };

	(void)state;
	for (int way = 0; way < 4; way++) {
		long long mp[N * N] = { 0 };
		struct ocs_plan_request request = {
			.servers = N,
			.degree = 4,
			.routes = true,
			.paths = 3,
			.directed = way & 1,
			.best = way & 2,
		};
		struct ocs_plan *plan;
		int several = 0;
		char *text;

		for (int i = 0; i < N; i++)
			mp[i * N + (i + 5) % N] = 100;
		text = demand_text(N, 300, mp);
		request.demand = text;
		plan = plan_make(&request);
		assert_true(fabs(tax(plan, mp) - plan->bandwidth_tax) < 1e-9);
		for (int i = 0; i < plan->nroutes; i++) {
			struct ocs_plan_route *route = &plan->routes[i];

			if (!mp[route->src * N + route->dst]) {
				assert_int_equal(route->npaths, 1);
				continue;
			}
			assert_in_range(route->npaths, 1, 3);
			several += route->npaths == 3;
			for (int p = 1; p < route->npaths; p++) {
				assert_true(route->lengths[p] >= route->lengths[0]);
				for (int q = 0; q < p; q++)
					assert_true(route->lengths[p] != route->lengths[q] ||
						    memcmp(route->paths[p], route->paths[q],
							   route->lengths[p] * sizeof(int)));
			}
		}
		assert_int_equal(several, N);
		ocs_plan_destroy(plan);
		free(text);
	}
}

/* Traffic between pairs alone: a ring is added only where pairs do not reach all. */
static void test_mp_alone(void **state)
{
	struct ocs_plan_request request = {
		.servers = 4,
		.degree = 3,
		.routes = true,
		.demand = "{\"mp\":[[0,9,0,0],[0,0,9,0],[0,0,0,9],[9,0,0,0]]}",
	};
	struct ocs_plan *plan = plan_make(&request);

	(void)state;
	for (int i = 0; i < 4; i++)
		assert_true(has_circuit(plan, i, (i + 1) % 4));
	assert_int_equal(plan->ngroups, 0);
	/* no group is added that the demand does not have */
	for (int degree = 3; degree <= 6; degree++) {
		struct ocs_plan *best;

		request.best = true;
		request.degree = degree;
		request.demand = "{\"mp\":[[0,9,0,0],[9,0,9,0],[0,9,0,9],[0,0,9,0]]}";
		best = plan_make(&request);
		assert_int_equal(best->ngroups, 0);
		ocs_plan_destroy(best);
	}
	request.best = false;
	request.degree = 3;
	assert_true(fabs(plan->bandwidth_tax - 1) < 1e-9);
	ocs_plan_destroy(plan);
	request.demand = "{\"mp\":[[0,9,0,0],[0,0,0,0],[0,0,0,9],[0,0,0,0]]}";
	plan = plan_make(&request);
	assert_int_equal(plan->ngroups, 1);
	assert_int_equal(plan->groups[0].nmembers, 4);
	ocs_plan_destroy(plan);
}

/* The paper's routes: members of a group without traffic of their own go over its
 * rings (CoinChangeMod), even past a circuit that joins them. */
static void test_coins(void **state)
{
	enum { N = 12 };
	long long mp[N * N] = { 0 };
	struct ocs_plan_request request = { .servers = N, .degree = 4, .routes = true };
	struct ocs_plan *plan;
	char *text;

	(void)state;
	for (int i = 0; i < N; i += 2) {
		mp[i * N + (i + 6) % N] = 1000;
		mp[(i + 1) * N + (i + 4) % N] = 1000;
	}
	text = demand_text(N, 500, mp);
	request.demand = text;
	plan = plan_make(&request);
	assert_int_equal(plan->groups[0].nrings, 1);
	for (int i = 0; i < plan->nroutes; i++) {
		int s = plan->routes[i].src, t = plan->routes[i].dst;
		int ring = (t - s + N) % N, hops = plan->routes[i].lengths[0] - 1;
		bool pair = false;

		if (ring > N - ring)
			ring = N - ring;
		for (int v = 0; v < N; v++)
			pair |= mp[v * N + t] > 0;
		if (!pair)
			assert_int_equal(hops, ring);
		else
			assert_true(hops <= ring);
		if (mp[s * N + t] && has_circuit(plan, s, t))
			assert_int_equal(hops, 1);
	}
	ocs_plan_destroy(plan);
	free(text);
}

static void test_groups(void **state)
{
	/* two halves and a heavier whole; then halves alone, which need a whole */
	struct ocs_plan_request request = {
		.servers = 8,
		.degree = 4,
		.demand = "{\"allreduce\":[{\"members\":[0,2,4,6],\"bytes\":100},"
			  "{\"members\":[7,5,3,1],\"bytes\":100},"
			  "{\"members\":[0,1,2,3,4,5,6,7],\"bytes\":1e2}]}",
	};
	struct ocs_plan *plan = plan_make(&request);

	(void)state;
	assert_int_equal(plan->ngroups, 3);
	for (int g = 0; g < 3; g++)
		assert_int_equal(plan->groups[g].nrings, 1);
	assert_int_equal(plan->groups[1].members[0], 7);
	assert_int_equal(plan->ncircuits, 16);
	ocs_plan_destroy(plan);

	request.demand = "{\"allreduce\":[{\"members\":[0,1,2,3],\"bytes\":5},"
			 "{\"members\":[4,5,6,7],\"bytes\":5}]}";
	plan = plan_make(&request);
	assert_int_equal(plan->ngroups, 3);
	assert_int_equal(plan->groups[2].nmembers, 8);
	assert_int_equal(plan->groups[2].bytes, 0);
	assert_int_equal(plan->groups[0].nrings, 1);
	ocs_plan_destroy(plan);

	/* a light group has its ring before circuits join opposite servers */
	request.best = true;
	request.demand = "{\"allreduce\":[{\"members\":[0,1,2,3,4,5,6,7],\"bytes\":900},"
			 "{\"members\":[0,1,2,3,4,5,6,7],\"bytes\":1}]}";
	plan = plan_make(&request);
	assert_int_equal(plan->groups[0].nrings, 1);
	assert_int_equal(plan->groups[1].nrings, 1);
	ocs_plan_destroy(plan);
	request.best = false;

	/* pairs: one circuit each */
	request.demand = "{\"allreduce\":[{\"members\":[0,1],\"bytes\":50},"
			 "{\"members\":[0,1,2,3,4,5,6,7],\"bytes\":50}],\"mp\":"
			 "[[0,0,0,0,0,0,0,0],[0,0,0,0,0,0,0,0],[0,0,0,0,0,0,0,0],"
			 "[0,0,0,0,0,0,0,0],[0,0,0,0,0,0,0,0],[0,0,0,0,0,0,0,0],"
			 "[0,0,0,0,0,0,0,0],[0,0,0,0,0,0,0,0]]}";
	plan = plan_make(&request);
	assert_int_equal(plan->groups[0].nrings, 2);
	ocs_plan_destroy(plan);
}

static void test_bad_demand(void **state)
{
	static const char *const bad[] = {
		"",
		"x",
		"[]",
		"{}",
		"null",
		"{\"allreduce\":[]}",
		"{\"allreduce\":{}}",
		"{\"allreduce\":[7]}",
		"{\"allreduce\":[{}]}",
		"{\"allreduce\":[{\"members\":[0,1]}]}",
		"{\"allreduce\":[{\"members\":[0,4],\"bytes\":1}]}",
		"{\"allreduce\":[{\"members\":[0,-1],\"bytes\":1}]}",
		"{\"allreduce\":[{\"members\":[0,0],\"bytes\":1}]}",
		"{\"allreduce\":[{\"members\":[0,4294967297],\"bytes\":1}]}",
		"{\"allreduce\":[{\"members\":[0,1.5],\"bytes\":1}]}",
		"{\"allreduce\":[{\"members\":[],\"bytes\":1}]}",
		"{\"allreduce\":[{\"members\":[0,1,2,3,0],\"bytes\":1}]}",
		"{\"allreduce\":[{\"members\":[0,1],\"bytes\":-1}]}",
		"{\"allreduce\":[{\"members\":[0,1],\"bytes\":1e30}]}",
		"{\"allreduce\":[{\"members\":[0,1],\"bytes\":99999999999999999999}]}",
		"{\"allreduce\":[{\"members\":[0,1],\"bytes\":\"1\"}]}",
		"{\"allreduce\":[{\"members\":[0,1],\"bytes\":1,\"x\":1}]}",
		"{\"allreduce\":[{\"members\":[0,1],\"bytes\":1}]} x",
		"{\"allreduce\":[{\"members\":[0,1],\"bytes\":1}],\"other\":1}",
		"{\"allreduce\":[{\"members\":[0,1],\"bytes\":1}],\"mp\":[[1]]}",
		"{\"allreduce\":[{\"members\":[0,1],\"bytes\":1}],\"mp\":"
		"[[0,1,0,0],[0,0,0,0],[0,0,0,0],[0,0,0]]}",
		"{\"allreduce\":[{\"members\":[0,1],\"bytes\":1}],\"mp\":"
		"[[0,1,0,0],[0,0,0,0],[0,0,0,0],[0,0,0,-1]]}",
		"{\"allreduce\":[[[[[[[[[[[[1]]]]]]]]]]]]}",
	};
	struct ocs_plan_request request = { .servers = 4, .degree = 4 };
	struct ocs_error err;
	char *huge;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		memset(&err, 0, sizeof(err));
		request.demand = bad[i];
		if (ocs_plan_make(&request, &err))
			fail_msg("accepted: %s", bad[i]);
		assert_int_equal(err.code, OCS_USAGE);
		if (strncmp(err.text, "demand: ", 8) != 0)
			fail_msg("%s: %s", bad[i], err.text);
	}
	huge = malloc(OCS_PLAN_DEMAND_MAX + 2);
	memset(huge, ' ', OCS_PLAN_DEMAND_MAX + 1);
	huge[OCS_PLAN_DEMAND_MAX + 1] = '\0';
	request.demand = huge;
	assert_null(ocs_plan_make(&request, &err));
	assert_int_equal(err.code, OCS_USAGE);
	free(huge);
	request.demand = NULL;
	request.servers = 0;
	assert_null(ocs_plan_make(&request, &err));
	request.servers = 4;
	request.degree = 65;
	assert_null(ocs_plan_make(&request, &err));
	request.degree = 4;
	request.routes = true;
	request.servers = OCS_PLAN_ROUTES_MAX + 1;
	assert_null(ocs_plan_make(&request, &err));
	assert_int_equal(err.code, OCS_USAGE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_mp),	   cmocka_unit_test(test_rings_alone),
		cmocka_unit_test(test_paths),	   cmocka_unit_test(test_mp_alone),
		cmocka_unit_test(test_coins),	   cmocka_unit_test(test_groups),
		cmocka_unit_test(test_bad_demand),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
