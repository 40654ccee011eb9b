/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* The flow engine on a star of hosts, each with a link in and a link out: what a run costs by
 * hosts, flows and tolerance.  Usage: bench_netsim [HOSTS FLOWS TOLERANCE] (random sizes; 0 flows
 * in the table are all pairs of equal size) */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "src/netsim/flow.h"

#define RATE 12.5e6 /* 100 Gb/s in bytes per ms */

static double now_s(void)
{
	struct timespec at;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &at);
	return (double)at.tv_sec + (double)at.tv_nsec * 1e-9;
}

static void flows_start(struct ocs_flownet *net, int hosts, int flows)
{
	srand(1);
	for (int k = 0; k < 2 * hosts; k++)
		ocs_flownet_link_add(net, RATE);
	for (int k = 0; !flows && k < hosts * hosts; k++) {
		if (k / hosts != k % hosts)
			ocs_flownet_start(net, (int[]){ k / hosts, hosts + k % hosts }, 2, 1e6, 1,
					  k);
	}
	for (int k = 0; k < flows; k++) {
		int src = rand() % hosts, dst = (src + 1 + rand() % (hosts - 1)) % hosts;

		ocs_flownet_start(net, (int[]){ src, hosts + dst }, 2, 1 + rand() % 1000000, 1, k);
	}
}

static double case_run(int hosts, int flows, double tolerance, double exact)
{
	struct ocs_flownet *net = ocs_flownet_create(tolerance);
	double start = now_s(), sum = 0, next, paths, mean;
	int count, ended = 0;
	long solves;

	flows_start(net, hosts, flows);
	for (; isfinite(next = ocs_flownet_next(net)); ended += count) {
		const struct ocs_flow_end *ends;

		ocs_flownet_advance(net, next);
		ends = ocs_flownet_ended(net, &count);
		for (int k = 0; k < count; k++)
			sum += ends[k].time;
	}
	ocs_flownet_effort(net, &solves, &paths);
	mean = sum / ended;
	printf("| %d | %d %s | %g | %.3f | %ld | %.4g | %.4g |", hosts, ended,
	       flows ? "random" : "equal", tolerance, now_s() - start, solves, paths,
	       ocs_flownet_now(net));
	if (exact > 0)
		printf(" %+.2f %% |\n", 100 * (mean / exact - 1));
	else
		printf(" |\n");
	fflush(stdout);
	ocs_flownet_destroy(net);
	return mean;
}

int main(int argc, char **argv)
{
	static const int equal[] = { 100, 320, 1000, 2000 };
	static const int hosts[] = { 64, 100, 320, 1000 },
			 flows[] = { 4096, 10000, 100000, 1000000 };

	printf("| hosts | flows | tolerance | s | rates shared out | paths in it | last ends, ms | mean "
	       "end |\n|---|---|---|---|---|---|---|---|\n");
	if (argc > 3) {
		case_run(atoi(argv[1]), atoi(argv[2]), atof(argv[3]), 0);
		return 0;
	}
	for (size_t k = 0; k < sizeof(equal) / sizeof(*equal); k++)
		case_run(equal[k], 0, 0, 0);
	for (size_t k = 0; k < sizeof(hosts) / sizeof(*hosts); k++) {
		double exact = flows[k] <= 10000 ? case_run(hosts[k], flows[k], 0, 0) : 0;

		case_run(hosts[k], flows[k], 1e-3, exact);
		case_run(hosts[k], flows[k], 1e-2, exact);
	}
	return 0;
}
