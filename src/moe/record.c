/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/moe/record.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/util/error.h"
#include "src/util/text.h"

#define TOKENS_MAX 1e12
#define SUM_ERROR 1e-9 /* of the sum; counts are whole numbers as a rule */

/* One layer of one microbatch. */
struct slot {
	int64_t microbatch; /* -1: none yet */
	bool conflict;
	int rows;		       /* ranks whose row is there */
	uint64_t *seen;		       /* [ranks] hash of the row; 0: none */
	struct ocs_moe_demand *demand; /* between servers */
	double *all;		       /* [servers x servers] with what stays inside a server */
};

struct ocs_moe_record {
	struct ocs_moe_record_setup setup;
	struct slot *slot; /* [layers x microbatches] */
	struct ocs_moe_record_count count;
};

struct ocs_moe_record *ocs_moe_record_create(const struct ocs_moe_record_setup *setup)
{
	struct ocs_moe_record *record = ocs_calloc(1, sizeof(*record));
	size_t slots = (size_t)setup->layers * setup->microbatches;

	record->setup = *setup;
	record->slot = ocs_calloc(slots, sizeof(*record->slot));
	for (size_t k = 0; k < slots; k++) {
		struct slot *slot = &record->slot[k];

		slot->microbatch = -1;
		slot->seen = ocs_calloc((size_t)setup->ranks, sizeof(*slot->seen));
		slot->demand = ocs_moe_demand_create(setup->servers);
		slot->all = ocs_calloc((size_t)setup->servers * setup->servers, sizeof(double));
	}
	return record;
}

void ocs_moe_record_destroy(struct ocs_moe_record *record)
{
	if (!record)
		return;
	for (int k = 0; k < record->setup.layers * record->setup.microbatches; k++) {
		free(record->slot[k].seen);
		free(record->slot[k].all);
		ocs_moe_demand_destroy(record->slot[k].demand);
	}
	free(record->slot);
	free(record);
}

static struct slot *slot_find(const struct ocs_moe_record *record, int layer, int64_t microbatch)
{
	const struct ocs_moe_record_setup *setup = &record->setup;

	if (layer < 0 || layer >= setup->layers || microbatch < 0)
		return NULL;
	return &record->slot[(size_t)layer * setup->microbatches +
			     (size_t)(microbatch % setup->microbatches)];
}

static void slot_reset(const struct ocs_moe_record *record, struct slot *slot, int64_t microbatch)
{
	size_t n = (size_t)record->setup.servers;

	slot->microbatch = microbatch;
	slot->conflict = false;
	slot->rows = 0;
	memset(slot->seen, 0, (size_t)record->setup.ranks * sizeof(*slot->seen));
	memset(slot->all, 0, n * n * sizeof(*slot->all));
	memset(slot->demand->tokens, 0, n * n * sizeof(*slot->demand->tokens));
}

/* FNV-1a over the numbers as they are; never 0. */
static uint64_t row_hash(const double *counts, int n)
{
	const unsigned char *bytes = (const unsigned char *)counts;
	uint64_t hash = UINT64_C(0xcbf29ce484222325);

	for (size_t k = 0; k < (size_t)n * sizeof(*counts); k++)
		hash = (hash ^ bytes[k]) * UINT64_C(0x100000001b3);
	return hash ? hash : 1;
}

static int row_check(const struct ocs_moe_record_setup *setup, int layer, int rank,
		     const double *counts, int n, struct ocs_error *err)
{
	double sum = 0;

	if (layer < 0 || layer >= setup->layers || rank < 0 || rank >= setup->ranks)
		return ocs_error_set(err, OCS_USAGE,
				     "gate: rank %d, layer %d: there are %d ranks and %d layers",
				     rank, layer, setup->ranks, setup->layers);
	if (n < setup->ranks || n % setup->ranks)
		return ocs_error_set(err, OCS_USAGE,
				     "gate: rank %d has %d counts, which is no multiple of the %d "
				     "ranks",
				     rank, n, setup->ranks);
	for (int e = 0; e < n; e++) {
		if (!(counts[e] >= 0 && counts[e] <= TOKENS_MAX))
			return ocs_error_set(err, OCS_USAGE,
					     "gate: rank %d, count %d is not a number from 0 to %g",
					     rank, e, TOKENS_MAX);
		sum += counts[e];
	}
	if (setup->row > 0 && fabs(sum - setup->row) > SUM_ERROR * setup->row)
		return ocs_error_set(err, OCS_USAGE,
				     "gate: the row of rank %d sums up to %.17g, not to %.17g",
				     rank, sum, setup->row);
	return 0;
}

static void row_add(const struct ocs_moe_record_setup *setup, struct slot *slot, int rank,
		    const double *counts, int n)
{
	int i = rank / (setup->ranks / setup->servers), each = n / setup->servers;

	for (int e = 0; e < n; e++) {
		size_t at = (size_t)i * setup->servers + e / each;

		slot->all[at] += counts[e];
		if (e / each != i)
			slot->demand->tokens[at] += counts[e];
	}
}

int ocs_moe_record_row(struct ocs_moe_record *record, int layer, int64_t microbatch, int rank,
		       const double *counts, int n, struct ocs_error *err)
{
	struct slot *slot = slot_find(record, layer, microbatch);
	uint64_t hash;

	if (microbatch < 0)
		ocs_error_set(err, OCS_USAGE, "gate: microbatch %lld is below 0",
			      (long long)microbatch);
	if (microbatch < 0 || row_check(&record->setup, layer, rank, counts, n, err)) {
		record->count.wrong++;
		return -1;
	}
	if (microbatch < slot->microbatch) {
		record->count.late++;
		return ocs_error_set(err, OCS_USAGE,
				     "gate: rank %d is late: microbatch %lld is forgotten", rank,
				     (long long)microbatch);
	}
	if (microbatch > slot->microbatch)
		slot_reset(record, slot, microbatch);
	hash = row_hash(counts, n);
	if (slot->seen[rank] == hash) {
		record->count.doubled++;
		return 0;
	}
	if (slot->seen[rank]) {
		record->count.conflicting++;
		slot->conflict = true;
		return ocs_error_set(err, OCS_USAGE,
				     "gate: rank %d sent two rows for layer %d of microbatch %lld",
				     rank, layer, (long long)microbatch);
	}
	slot->seen[rank] = hash;
	row_add(&record->setup, slot, rank, counts, n);
	record->count.taken++;
	return ++slot->rows == record->setup.ranks && !slot->conflict;
}

static const struct slot *slot_whole(const struct ocs_moe_record *record, int layer,
				     int64_t microbatch)
{
	const struct slot *slot = slot_find(record, layer, microbatch);

	return slot && slot->microbatch == microbatch && slot->rows == record->setup.ranks &&
			       !slot->conflict ?
		       slot :
		       NULL;
}

const struct ocs_moe_demand *ocs_moe_record_demand(const struct ocs_moe_record *record, int layer,
						   int64_t microbatch)
{
	const struct slot *slot = slot_whole(record, layer, microbatch);

	return slot ? slot->demand : NULL;
}

const double *ocs_moe_record_shares(const struct ocs_moe_record *record, int layer,
				    int64_t microbatch, int i)
{
	const struct slot *slot = slot_whole(record, layer, microbatch);

	return slot ? slot->all + (size_t)i * record->setup.servers : NULL;
}

const struct ocs_moe_record_count *ocs_moe_record_count(const struct ocs_moe_record *record)
{
	return &record->count;
}
