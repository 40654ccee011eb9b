/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "tests/bench/timing.h"

#include <stdio.h>
#include <stdlib.h>

#include "src/util/net.h"
#include "src/util/text.h"

double timing_now_ms(void)
{
	return (double)ocs_now_ns() / 1e6;
}

double timing_cpu_ms(pid_t pid)
{
	char *path = ocs_asprintf("/proc/%d/schedstat", (int)pid);
	unsigned long long ns = 0;
	FILE *file = fopen(path, "r");

	free(path);
	if (file) {
		if (fscanf(file, "%llu", &ns) != 1)
			ns = 0;
		fclose(file);
	}
	return (double)ns / 1e6;
}

static int compare(const void *a, const void *b)
{
	double p = *(const double *)a, q = *(const double *)b;

	return (p > q) - (p < q);
}

void timing_show(const char *what, double *values, int n)
{
	qsort(values, (size_t)n, sizeof(*values), compare);
	printf("%-58s min %6.3f  p50 %6.3f  p99 %6.3f ms\n", what, values[0], values[n / 2],
	       values[n * 99 / 100]);
	fflush(stdout);
}
