/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include <json-c/json.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "src/plan/plan.h"
#include "src/util/error.h"

static struct ocs_plan *make(const struct ocs_plan_request *request)
{
	struct ocs_error err = { 0 };
	struct ocs_plan *plan = ocs_plan_make(request, &err);

	if (!plan)
		fail_msg("%d servers, degree %d: %s", request->servers, request->degree, err.text);
	if (ocs_plan_verify(plan, &err) < 0)
		fail_msg("%d servers, degree %d: %s", request->servers, request->degree, err.text);
	return plan;
}

/* Diameter and average hops of duplex (U) and directed (P) plans at degree 2, 4,
 * 6, 8, and the digits the average is known to. */
struct reference {
	int n;
	struct {
		int diameter;
		double hops, slack;
	} of[8];
};

static const struct reference references[] = {
	{ 12, { { 6, 3.27, .005 }, { 3, 1.82, .005 }, { 3, 1.82, .005 }, { 3, 1.82, .005 },
		{ 5, 2.73, .005 }, { 3, 1.82, .005 }, { 3, 1.82, .005 }, { 3, 1.82, .005 } } },
	{ 16, { { 8, 4.27, .005 }, { 4, 2.13, .005 }, { 3, 1.73, .005 }, { 2, 1.47, .005 },
		{ 6, 3.33, .005 }, { 3, 2.00, .005 }, { 3, 1.73, .005 }, { 2, 1.47, .005 } } },
	{ 32, { { 16, 8.26, .005 }, { 4, 2.71, .005 }, { 4, 2.39, .005 }, { 3, 2.00, .005 },
		{ 9, 4.77, .005 }, { 5, 2.71, .005 }, { 4, 2.26, .005 }, { 3, 2.00, .005 } } },
	{ 64, { { 32, 16.3, .05 }, { 8, 4.06, .005 }, { 4, 2.73, .005 }, { 4, 2.44, .005 },
		{ 14, 7.14, .005 }, { 6, 3.52, .005 }, { 5, 2.92, .005 }, { 4, 2.44, .005 } } },
	{ 128, { { 64, 32.3, .05 }, { 10, 5.62, .005 }, { 6, 3.67, .005 }, { 5, 2.96, .005 },
		 { 20, 10.3, .05 }, { 8, 4.52, .005 }, { 5, 3.37, .005 }, { 5, 3.06, .005 } } },
	{ 432, { { 216, 108, .5 }, { 18, 10.19, .005 }, { 9, 5.33, .005 }, { 7, 4.09, .005 },
		 { 39, 19.8, .05 }, { 12, 6.80, .005 }, { 8, 4.93, .005 }, { 7, 4.18, .005 } } },
	{ 1024, { { 512, 256, .5 }, { 32, 16.02, .005 }, { 12, 7.13, .005 }, { 8, 5.12, .005 },
		  { 62, 31.0, .05 }, { 17, 9.15, .005 }, { 10, 6.01, .005 }, { 8, 4.88, .005 } } },
};

static void test_reference(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(references) / sizeof(references[0]); i++)
		for (int j = 0; j < 8; j++) {
			struct ocs_plan_request request = {
				.servers = references[i].n,
				.degree = 2 * (j % 4) + 2,
				.directed = j >= 4,
			};
			struct ocs_plan *plan = make(&request);

			if (plan->diameter != references[i].of[j].diameter ||
			    fabs(plan->average_hops - references[i].of[j].hops) >
				    references[i].of[j].slack + 1e-9)
				fail_msg("%d servers, degree %d%s: %d/%.4f, want %d/%.2f",
					 request.servers, request.degree,
					 request.directed ? " directed" : "", plan->diameter,
					 plan->average_hops, references[i].of[j].diameter,
					 references[i].of[j].hops);
			assert_int_equal(plan->groups[0].nrings,
					 request.directed ? request.degree : request.degree / 2);
			assert_int_equal(plan->groups[0].steps[0], 1);
			ocs_plan_destroy(plan);
		}
}

/* The best plan beats the paper's where better steps are known, and never loses. */
static void test_best(void **state)
{
	static const struct {
		int n, d;
		double hops;	/* facts: the best co-prime steps, or 0 */
	} cases[] = {
		{ 64, 4, 3.84 }, { 128, 4, 5.35 }, { 432, 4, 9.84 }, { 1024, 4, 15.11 },
		{ 32, 6, 2.19 }, { 128, 6, 3.43 }, { 432, 6, 5.17 }, { 64, 8, 2.35 },
		{ 128, 8, 2.87 }, { 12, 4, 0 }, { 16, 3, 0 }, { 9, 4, 0 }, { 15, 6, 0 },
		{ 8, 5, 0 }, { 5, 8, 0 }, { 3, 4, 0 }, { 2, 3, 0 }, { 1, 2, 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		for (int directed = 0; directed < 2; directed++) {
			struct ocs_plan_request request = {
				.servers = cases[i].n, .degree = cases[i].d,
				.directed = directed,
			};
			struct ocs_plan *paper = make(&request), *best;

			request.best = true;
			best = make(&request);
			assert_true(best->average_hops <= paper->average_hops);
			if (cases[i].hops && !directed)
				assert_true(best->average_hops < cases[i].hops + .005);
			ocs_plan_destroy(best);
			ocs_plan_destroy(paper);
		}
}

/* Load of the busiest link for uniform all-to-all, times degree over n - 1: equal
 * cost multipath on the paper's steps gives 6.21; single routes do no worse here. */
static void test_load(void **state)
{
	struct ocs_plan_request request = { .servers = 128, .degree = 4, .best = true };
	struct ocs_plan *plan = make(&request);

	(void)state;
	assert_true(plan->max_link_load * 4 / 127 < 6.21);
	ocs_plan_destroy(plan);
}

/* With one ring and an expander the best plan comes near to random regular graphs
 * and below, and its routes near to even loads. */
static void test_expander(void **state)
{
	static const struct {
		int n, d;
		bool directed;
		double hops, alpha;	/* facts: a random regular graph; ours was lower */
	} cases[] = {
		{ 128, 4, false, 3.79, 4.2 }, { 128, 8, false, 2.53, 3.3 },
		{ 1024, 4, false, 5.65, 6.5 }, { 1024, 8, false, 3.61, 4.4 },
		{ 128, 4, true, 3.30, 3.9 }, { 64, 3, false, 4.0, 4.5 },
		{ 65, 4, false, 3.1, 4.2 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct ocs_plan_request request = {
			.servers = cases[i].n, .degree = cases[i].d,
			.directed = cases[i].directed, .best = true,
		};
		struct ocs_plan *plan = make(&request);
		double alpha = plan->max_link_load * cases[i].d / (cases[i].n - 1);

		if (plan->average_hops > cases[i].hops || alpha > cases[i].alpha)
			fail_msg("%d servers, degree %d: %.3f hops, load %.3f", cases[i].n,
				 cases[i].d, plan->average_hops, alpha);
		assert_int_equal(plan->groups[0].nrings, 1);
		assert_non_null(strstr(plan->assignment, "expander"));
		ocs_plan_destroy(plan);
	}
}

/* "[[...],...]" of a demand with N servers; free it. */
static char *demand_text(int n, long long bytes, const long long *mp)
{
	size_t size = 256 + (size_t)n * n * 24, at = 0;
	char *text = malloc(size);

	assert_non_null(text);
	at += snprintf(text + at, size - at, "{\"allreduce\":[{\"bytes\":%lld,\"members\":[0", bytes);
	for (int i = 1; i < n; i++)
		at += snprintf(text + at, size - at, ",%d", i);
	at += snprintf(text + at, size - at, "]}],\"mp\":[");
	for (int i = 0; i < n; i++)
		for (int j = 0; j < n; j++)
			at += snprintf(text + at, size - at, "%s%lld%s", j ? "," : i ? ",[" : "[",
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
			.servers = N, .degree = 4, .routes = true, .directed = way & 1,
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
			plan = make(&request);
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

/* Several paths for pairs with traffic: the k shortest, without repetition. */
static void test_paths(void **state)
{
	enum { N = 12 };

	(void)state;
	for (int way = 0; way < 4; way++) {
		long long mp[N * N] = { 0 };
		struct ocs_plan_request request = {
			.servers = N, .degree = 4, .routes = true, .paths = 3,
			.directed = way & 1, .best = way & 2,
		};
		struct ocs_plan *plan;
		int several = 0;
		char *text;

		for (int i = 0; i < N; i++)
			mp[i * N + (i + 5) % N] = 100;
		text = demand_text(N, 300, mp);
		request.demand = text;
		plan = make(&request);
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
		.servers = 4, .degree = 3, .routes = true,
		.demand = "{\"mp\":[[0,9,0,0],[0,0,9,0],[0,0,0,9],[9,0,0,0]]}",
	};
	struct ocs_plan *plan = make(&request);

	(void)state;
	for (int i = 0; i < 4; i++)
		assert_true(has_circuit(plan, i, (i + 1) % 4));
	assert_int_equal(plan->ngroups, 0);
	assert_true(fabs(plan->bandwidth_tax - 1) < 1e-9);
	ocs_plan_destroy(plan);
	request.demand = "{\"mp\":[[0,9,0,0],[0,0,0,0],[0,0,0,9],[0,0,0,0]]}";
	plan = make(&request);
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
	plan = make(&request);
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

static int circuits_on(const struct ocs_plan *plan, int ocs)
{
	int count = 0;

	for (int i = 0; i < plan->ncircuits; i++)
		count += plan->circuits[i].ocs == ocs;
	return count;
}

/* Every size and degree, with and without planes: a verified plan, or a refusal
 * exactly where no ring can close. */
static void test_sweep(void **state)
{
	(void)state;
	for (int n = 1; n <= 26; n++)
		for (int d = 1; d <= 9; d++)
			for (int way = 0; way < 4; way++) {
				struct ocs_plan_request request = {
					.servers = n, .degree = d, .directed = way & 1,
					.any_port = way & 2, .routes = n < 12,
				};
				struct ocs_error err = { 0 };
				struct ocs_plan *plan = ocs_plan_make(&request, &err);
				bool hopeless = n > 2 && !request.directed &&
						(d < 2 || (n % 2 && d < 3 && !request.any_port));

				if (hopeless) {
					assert_null(plan);
					assert_int_equal(err.code, OCS_NEVER);
					assert_true(strlen(err.text) > 20);
					continue;
				}
				if (!plan)
					fail_msg("%d servers degree %d way %d: %s", n, d, way,
						 err.text);
				if (ocs_plan_verify(plan, &err) < 0)
					fail_msg("%d servers degree %d way %d: %s", n, d, way,
						 err.text);
				assert_int_equal(plan->ngroups, 1);
				if (n > 1)
					assert_true(plan->groups[0].nrings >= 1);
				if (n > 1 && request.directed)
					assert_int_equal(plan->ncircuits, n * d);
				if (n > 2 && n % 2 == 0 && !request.directed)
					assert_int_equal(plan->ncircuits, n * (d / 2));
				assert_non_null(plan->assignment);
				ocs_plan_destroy(plan);
			}
}

/* Odd rings: closed on a third plane, the ports that remain are not wasted. */
static void test_odd(void **state)
{
	struct ocs_plan_request request = { .servers = 9, .degree = 3 };
	struct ocs_plan *plan = make(&request);

	(void)state;
	assert_int_equal(plan->groups[0].nrings, 1);
	assert_int_equal(plan->ncircuits, 9);
	assert_int_equal(circuits_on(plan, 0), 4);
	assert_int_equal(circuits_on(plan, 1), 4);
	assert_int_equal(circuits_on(plan, 2), 1);
	assert_non_null(strstr(plan->assignment, "closes on a third"));
	ocs_plan_destroy(plan);

	/* four planes can hold 4 * 4 circuits of 9 servers: a ring and most of another */
	request.degree = 4;
	plan = make(&request);
	assert_int_equal(plan->groups[0].nrings, 1);
	assert_true(plan->ncircuits >= 15);
	assert_non_null(strstr(plan->assignment, "cannot close"));
	ocs_plan_destroy(plan);

	request.any_port = true;
	plan = make(&request);
	assert_int_equal(plan->groups[0].nrings, 2);
	assert_int_equal(plan->ncircuits, 18);
	assert_non_null(strstr(plan->assignment, "different interfaces"));
	ocs_plan_destroy(plan);
}

static void test_routes(void **state)
{
	struct ocs_plan_request request = { .servers = 12, .degree = 4, .routes = true };
	struct ocs_plan *plan = make(&request);
	struct ocs_error err = { 0 };
	double load;
	long hops = 0;
	int keep;

	(void)state;
	assert_int_equal(plan->nroutes, 132);
	for (int i = 0; i < plan->nroutes; i++) {
		assert_int_equal(plan->routes[i].src, i / 11);
		hops += plan->routes[i].lengths[0] - 1;
	}
	assert_true(fabs(hops / 132.0 - plan->average_hops) < 1e-9);

	/* the verifier notices damage of every kind */
	keep = plan->routes[5].paths[0][0];
	plan->routes[5].paths[0][0] = keep + 1;
	assert_int_equal(ocs_plan_verify(plan, &err), -1);
	plan->routes[5].paths[0][0] = keep;
	plan->routes[5].weights[0] = 0.5;
	assert_int_equal(ocs_plan_verify(plan, &err), -1);
	plan->routes[5].weights[0] = 1;
	plan->circuits[3].a_port ^= 1;
	assert_int_equal(ocs_plan_verify(plan, &err), -1);
	plan->circuits[3].a_port ^= 1;
	keep = plan->circuits[3].b;
	plan->circuits[3].b = plan->circuits[3].a;
	assert_int_equal(ocs_plan_verify(plan, &err), -1);
	plan->circuits[3].b = keep;
	plan->groups[0].steps[1] = 3;
	assert_int_equal(ocs_plan_verify(plan, &err), -1);
	assert_non_null(strstr(err.text, "step 3"));
	plan->groups[0].steps[1] = 5;
	plan->diameter++;
	assert_int_equal(ocs_plan_verify(plan, &err), -1);
	plan->diameter--;
	load = plan->max_link_load;
	plan->max_link_load = 1;
	assert_int_equal(ocs_plan_verify(plan, &err), -1);
	plan->max_link_load = load + 1;
	assert_int_equal(ocs_plan_verify(plan, &err), -1);
	plan->max_link_load = load;
	plan->ncircuits--;
	assert_int_equal(ocs_plan_verify(plan, &err), -1);
	plan->ncircuits++;
	assert_int_equal(ocs_plan_verify(plan, &err), 0);
	ocs_plan_destroy(plan);
}

static void test_groups(void **state)
{
	/* two halves and a heavier whole; then halves alone, which need a whole */
	struct ocs_plan_request request = {
		.servers = 8, .degree = 4,
		.demand = "{\"allreduce\":[{\"members\":[0,2,4,6],\"bytes\":100},"
			  "{\"members\":[7,5,3,1],\"bytes\":100},"
			  "{\"members\":[0,1,2,3,4,5,6,7],\"bytes\":1e2}]}",
	};
	struct ocs_plan *plan = make(&request);

	(void)state;
	assert_int_equal(plan->ngroups, 3);
	for (int g = 0; g < 3; g++)
		assert_int_equal(plan->groups[g].nrings, 1);
	assert_int_equal(plan->groups[1].members[0], 7);
	assert_int_equal(plan->ncircuits, 16);
	ocs_plan_destroy(plan);

	request.demand = "{\"allreduce\":[{\"members\":[0,1,2,3],\"bytes\":5},"
			 "{\"members\":[4,5,6,7],\"bytes\":5}]}";
	plan = make(&request);
	assert_int_equal(plan->ngroups, 3);
	assert_int_equal(plan->groups[2].nmembers, 8);
	assert_int_equal(plan->groups[2].bytes, 0);
	assert_int_equal(plan->groups[0].nrings, 1);
	ocs_plan_destroy(plan);

	/* pairs: one circuit each */
	request.demand = "{\"allreduce\":[{\"members\":[0,1],\"bytes\":50},"
			 "{\"members\":[0,1,2,3,4,5,6,7],\"bytes\":50}],\"mp\":"
			 "[[0,0,0,0,0,0,0,0],[0,0,0,0,0,0,0,0],[0,0,0,0,0,0,0,0],"
			 "[0,0,0,0,0,0,0,0],[0,0,0,0,0,0,0,0],[0,0,0,0,0,0,0,0],"
			 "[0,0,0,0,0,0,0,0],[0,0,0,0,0,0,0,0]]}";
	plan = make(&request);
	assert_int_equal(plan->groups[0].nrings, 2);
	ocs_plan_destroy(plan);
}

static void test_bad_demand(void **state)
{
	static const char *const bad[] = {
		"", "x", "[]", "{}", "null", "{\"allreduce\":[]}", "{\"allreduce\":{}}",
		"{\"allreduce\":[7]}", "{\"allreduce\":[{}]}",
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

static void test_json(void **state)
{
	char *const names[] = { "a", "b", "c", "d", "e", "f" };
	struct ocs_plan_request request = {
		.servers = 6, .degree = 4, .routes = true, .nodes = names,
	};
	struct ocs_error err = { 0 };
	struct ocs_plan *plan = make(&request), *back;
	struct json_object *json = ocs_plan_to_json(plan), *other, *value;
	static const char *const keys[] = { "servers", "degree", "directed", "groups", "circuits",
					    "nodes", "routes", "diameter", "average_hops",
					    "max_link_load", "assignment" };

	(void)state;
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		assert_true(json_object_object_get_ex(json, keys[i], NULL));
	value = json_object_array_get_idx(json_object_object_get(json, "circuits"), 0);
	assert_int_equal(json_object_array_length(json_object_object_get(value, "a")), 2);
	back = ocs_plan_from_json(json, &err);
	assert_non_null(back);
	assert_int_equal(ocs_plan_verify(back, &err), 0);
	assert_string_equal(back->nodes[5], "f");
	other = ocs_plan_to_json(back);
	assert_string_equal(json_object_to_json_string(json), json_object_to_json_string(other));
	json_object_put(other);
	ocs_plan_destroy(back);

	/* a ring that is not that of its step */
	value = json_object_array_get_idx(json_object_object_get(json, "groups"), 0);
	value = json_object_array_get_idx(json_object_object_get(value, "rings"), 0);
	json_object_array_put_idx(value, 0, json_object_new_int(3));
	assert_null(ocs_plan_from_json(json, &err));
	json_object_put(json);

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]) - 1; i++) {
		json = ocs_plan_to_json(plan);
		json_object_object_add(json, keys[i], json_object_new_string("x"));
		if (strcmp(keys[i], "average_hops") != 0 && strcmp(keys[i], "max_link_load") != 0)
			assert_null(ocs_plan_from_json(json, &err));
		json_object_put(json);
	}
	ocs_plan_destroy(plan);
}

static int64_t now_us(void)
{
	struct timespec at;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &at);
	return at.tv_sec * INT64_C(1000000) + at.tv_nsec / 1000;
}

/* Wanted: under 100 ms of processor time (a loose bound here: sanitizers and
 * slow machines run this too; the benchmark prints the exact value). */
static void test_speed(void **state)
{
	struct ocs_plan_request request = { .servers = 1024, .degree = 8 };
	int64_t start = now_us();
	struct ocs_plan *plan = ocs_plan_make(&request, NULL);
	int64_t took = now_us() - start;

	(void)state;
	assert_non_null(plan);
	print_message("# paper plan for 1024 servers, degree 8: %.1f ms\n", took / 1000.0);
	assert_true(took < 1000000);
	ocs_plan_destroy(plan);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reference), cmocka_unit_test(test_best),
		cmocka_unit_test(test_load), cmocka_unit_test(test_expander),
		cmocka_unit_test(test_mp), cmocka_unit_test(test_paths),
		cmocka_unit_test(test_mp_alone),
		cmocka_unit_test(test_coins),
		cmocka_unit_test(test_sweep),	  cmocka_unit_test(test_odd),
		cmocka_unit_test(test_routes),	  cmocka_unit_test(test_groups),
		cmocka_unit_test(test_bad_demand), cmocka_unit_test(test_json),
		cmocka_unit_test(test_speed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
