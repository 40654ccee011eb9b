/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/ocsd/state/counters.h"

#include <stdlib.h>
#include <string.h>

#include "src/util/text.h"

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

struct ocsd_region_count *ocsd_count_region(struct ocsd_counters *counters, const char *section)
{
	struct ocsd_region_count *region;

	for (size_t i = 0; i < counters->nregions; i++)
		if (strcmp(counters->regions[i].section, section) == 0)
			return &counters->regions[i];
	counters->regions = ocs_realloc(counters->regions,
					(counters->nregions + 1) * sizeof(*counters->regions));
	region = &counters->regions[counters->nregions++];
	*region = (struct ocsd_region_count){ .section = ocs_strdup(section) };
	return region;
}

void ocsd_count_verified(struct ocsd_region_count *region, int64_t ns)
{
	histogram_add(&region->verified, ns);
}

void ocsd_counters_free(struct ocsd_counters *counters)
{
	for (size_t i = 0; i < counters->nregions; i++)
		free(counters->regions[i].section);
	free(counters->regions);
	counters->regions = NULL;
	counters->nregions = 0;
}
