/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Circuits and relays for an all-to-all of a mixture of experts, as the table of
 * doc/benchmarks.md.  Usage: bench_moe [CASES] */

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "src/moe/allocate.h"
#include "src/moe/bound.h"
#include "src/moe/routes.h"
#include "src/util/error.h"
#include "tests/unit/moe/gates.h"

#define ALPHA 6
#define BETA 2

static const char *const gate_names[] = { "Zipf", "popular", "Dirichlet" };

static double now_ms(void)
{
	struct timespec at;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &at);
	return (double)at.tv_sec * 1e3 + (double)at.tv_nsec * 1e-6;
}

static int number_compare(const void *left, const void *right)
{
	double a = *(const double *)left, b = *(const double *)right;

	return a < b ? -1 : a > b;
}

/* Time over the bound of each policy, and with relays. */
struct sums {
	double policy[3], relay, server;
	double *search_ms, *relay_ms; /* of each case */
};

static int case_run(enum gate gate, int n, int number, struct sums *sums)
{
	struct ocs_moe_demand *demand = gate_demand(gate, n, number);
	struct ocs_moe_region *region = ocs_moe_region_create(n, ALPHA, BETA);
	double bound = ocs_moe_bound_ports(demand, region), start;
	struct ocs_moe_circuits *circuits = NULL;
	struct ocs_moe_routes *routes;
	struct ocs_error err;
	int rc;

	for (int policy = OCS_MOE_PAPER; policy <= OCS_MOE_BEST; policy++) {
		ocs_moe_circuits_destroy(circuits);
		start = now_ms();
		circuits = ocs_moe_allocate(&(struct ocs_moe_request){
			.demand = demand, .region = region, .policy = policy });
		sums->search_ms[number] = now_ms() - start;
		sums->policy[policy] += ocs_moe_finish_time(demand, region, circuits) / bound;
	}
	sums->server += ocs_moe_bound_server(demand, region) / bound;
	start = now_ms();
	routes = ocs_moe_routes_relay(demand, region, circuits, 0);
	sums->relay_ms[number] = now_ms() - start;
	sums->relay += routes->time / bound;
	rc = ocs_moe_verify(demand, region, circuits, routes, &err);
	if (rc)
		fprintf(stderr, "bench_moe: %s\n", err.text);
	ocs_moe_routes_destroy(routes);
	ocs_moe_circuits_destroy(circuits);
	ocs_moe_region_destroy(region);
	ocs_moe_demand_destroy(demand);
	return rc;
}

static int row(enum gate gate, int n, int cases)
{
	struct sums sums = { .search_ms = calloc(cases, sizeof(double)),
			     .relay_ms = calloc(cases, sizeof(double)) };

	for (int number = 0; number < cases; number++)
		if (case_run(gate, n, number, &sums))
			return 1;
	qsort(sums.search_ms, cases, sizeof(double), number_compare);
	qsort(sums.relay_ms, cases, sizeof(double), number_compare);
	printf("| %s | %d | %.2f | %.2f | %.2f | %.2f | %.3f (%.3f) | %.3f | %.1f (%.1f) |\n",
	       gate_names[gate], n, sums.policy[0] / cases, sums.policy[1] / cases,
	       sums.policy[2] / cases, sums.server / cases, sums.search_ms[cases / 2],
	       sums.search_ms[cases * 99 / 100], sums.relay / cases, sums.relay_ms[cases / 2],
	       sums.relay_ms[cases * 99 / 100]);
	free(sums.search_ms);
	free(sums.relay_ms);
	return 0;
}

int main(int argc, char **argv)
{
	static const int servers[] = { 8, 16, 32, 64 };
	int cases = argc > 1 ? atoi(argv[1]) : 200;

	if (cases < 1) {
		fprintf(stderr, "usage: bench_moe [CASES]\n");
		return 2;
	}
	printf("| gate | servers | paper | greedy | best | bound of single servers | ms (p99) | "
	       "with relays | ms (p99) |\n|---|---|---|---|---|---|---|---|---|\n");
	for (int gate = 0; gate < GATES; gate++)
		for (size_t k = 0; k < sizeof(servers) / sizeof(*servers); k++)
			if (row(gate, servers[k], cases))
				return 1;
	return 0;
}
