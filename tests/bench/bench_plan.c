/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* The paper's plans against ours, as the table of doc/benchmarks.md.
 * Usage: bench_plan [RUNS] */

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "src/plan/plan.h"
#include "src/util/error.h"

/* Bytes of all-to-all over bytes of AllReduce at batch 64 and 2048: from the taxes
 * and the average path that the paper states for 128 servers at degree 4. */
static const double ratios[] = { 0.024, 0.76 };

static double now_ms(void)
{
	struct timespec at;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &at);
	return (double)at.tv_sec * 1e3 + (double)at.tv_nsec * 1e-6;
}

static double tax(double hops, double ratio)
{
	return (1 + hops * ratio) / (1 + ratio);
}

static int row(int servers, int degree, bool directed, bool best, int runs)
{
	struct ocs_plan_request request = {
		.servers = servers,
		.degree = degree,
		.directed = directed,
		.best = best,
	};
	struct ocs_plan *plan = NULL;
	struct ocs_error err = { 0 };
	double first = 0, least = 0;

	for (int i = 0; i < runs; i++) {
		double start = now_ms(), took;

		ocs_plan_destroy(plan);
		plan = ocs_plan_make(&request, &err);
		took = now_ms() - start;
		if (i == 0)
			first = least = took;
		least = took < least ? took : least;
		if (!plan || ocs_plan_verify(plan, &err) < 0) {
			fprintf(stderr, "bench_plan: %d servers, degree %d: %s\n", servers, degree,
				err.text);
			ocs_plan_destroy(plan);
			return 1;
		}
	}
	printf("| %d | %d | %s | %.2f | %d | %.0f | %.2f | %.3f | %.2f | %.1f (%.1f) |\n", servers,
	       degree, best ? "**best**" : "paper", plan->average_hops, plan->diameter,
	       plan->max_link_load, plan->max_link_load * degree / (servers - 1),
	       tax(plan->average_hops, ratios[0]), tax(plan->average_hops, ratios[1]), first,
	       least);
	ocs_plan_destroy(plan);
	return 0;
}

int main(int argc, char **argv)
{
	static const int servers[] = { 16, 64, 128, 432, 1024 };
	int runs = argc > 1 ? atoi(argv[1]) : 3, failed = 0;

	if (runs < 1) {
		fprintf(stderr, "usage: bench_plan [RUNS]\n");
		return 2;
	}
	for (int directed = 0; directed < 2; directed++) {
		printf("%s\n\n| servers | degree | plan | hops | diameter | busiest link | "
		       "load x degree / (n - 1) | tax, batch 64 | batch 2048 | ms of CPU, first "
		       "(least) |\n|---|---|---|---|---|---|---|---|---|---|\n",
		       directed ? "\nDirected circuits:" : "Duplex circuits:");
		for (int i = 0; i < 5; i++)
			for (int degree = 4; degree <= 8; degree += 4)
				for (int best = 0; best < 2; best++)
					failed |= row(servers[i], degree, directed, best, runs);
	}
	return failed;
}
