/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/ocsd/state/counters.h"

#include <stddef.h>

static const double bounds[OCSD_NBOUNDS] = OCSD_BOUNDS;

static void histogram_add(struct ocsd_histogram *histogram, int64_t ns)
{
	double seconds = (double)ns / 1e9;

	for (size_t i = 0; i < OCSD_NBOUNDS; i++)
		if (seconds <= bounds[i])
			histogram->within[i]++;
	histogram->count++;
	histogram->sum += seconds;
}

void ocsd_count_batch(struct ocsd_counters *counters, enum ocsd_outcome outcome, int64_t patches,
		      int64_t ns)
{
	counters->batches[outcome]++;
	if (outcome != OCSD_DONE)
		return;
	counters->patches += (uint64_t)patches;
	histogram_add(&counters->batch, ns);
}

void ocsd_count_realised(struct ocsd_counters *counters, int64_t ns)
{
	histogram_add(&counters->realised, ns);
}
