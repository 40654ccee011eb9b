/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_OCSD_STATE_COUNTERS_H
#define OCS_OCSD_STATE_COUNTERS_H

/* What has passed, counted since ocsd was started: what can be counted now is counted when a
 * collector asks. */

#include <stddef.h>
#include <stdint.h>

/* Upper bounds in seconds: mirrors move in 10 to 50 ms, retries take seconds. */
#define OCSD_BOUNDS                                                         \
	{                                                                   \
		0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30 \
	}
#define OCSD_NBOUNDS 12

/* What became of a batch. */
enum ocsd_outcome { OCSD_DONE, OCSD_REFUSED, OCSD_LOST, OCSD_OUTCOMES };

struct ocsd_histogram {
	uint64_t within[OCSD_NBOUNDS]; /* each bound, and what is below it */
	uint64_t count;
	double sum; /* s */
};

/* Changes of circuits in the regions of a section, group by group. */
struct ocsd_region_count {
	char *section;
	uint64_t changes, cut, made, kept; /* circuits of these changes */
	uint64_t failed, refused;
	struct ocsd_histogram verified; /* from the request to the table */
};

struct ocsd_counters {
	struct ocsd_histogram batch;	/* verified ones, from the hand-over to the table */
	struct ocsd_histogram realised; /* from the first apply to the last verified circuit */
	uint64_t batches[OCSD_OUTCOMES];
	uint64_t patches; /* of verified batches */
	uint64_t jobs_failed, switches_failed;
	uint64_t limited; /* requests of users who ask too much */
	/* Changes of topologies, rail by rail, and the circuits that they cut and made; those of them
	 * that did not come whole; requests that were refused. */
	uint64_t topologies, topology_circuits, topologies_failed, topologies_refused;
	/* Of these changes, as controllers say: begun before they were demanded, and of those, wrong ones. */
	uint64_t topologies_provisioned, topologies_mispredicted;
	struct ocsd_region_count *regions; /* of sections that have had jobs with experts */
	size_t nregions;
};

/* One batch with PATCHES patches, which took NS. */
void ocsd_count_batch(struct ocsd_counters *counters, enum ocsd_outcome outcome, int64_t patches,
		      int64_t ns);
/* A job's circuits took NS. */
void ocsd_count_realised(struct ocsd_counters *counters, int64_t ns);
/* The counts of SECTION, which has regions; until the next call. */
struct ocsd_region_count *ocsd_count_region(struct ocsd_counters *counters, const char *section);
/* A change took NS. */
void ocsd_count_verified(struct ocsd_region_count *region, int64_t ns);
/* Frees what COUNTERS hold. */
void ocsd_counters_free(struct ocsd_counters *counters);

#endif
