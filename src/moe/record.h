/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_MOE_RECORD_H
#define OCS_MOE_RECORD_H

/* What the gates of a region said: a matrix for each layer of each microbatch, put together from
 * one row of each rank.  Rows come in any order; some are late, doubled, wrong or never come. */

#include <stdbool.h>
#include <stdint.h>

#include "src/moe/demand.h"

struct ocs_error;

struct ocs_moe_record_setup {
	int servers, ranks; /* rank r runs on server r / (ranks / servers) */
	int layers;
	int microbatches; /* kept at the same time; older ones are forgotten */
	double row;	  /* tokens that each row sums up to; 0: not known */
};

/* Rows that came. */
struct ocs_moe_record_count {
	long taken;
	long doubled;	  /* the same row a second time */
	long conflicting; /* another row of the same rank: the matrix is not used */
	long wrong;	  /* malformed, or the sum is not what it has to be */
	long late;	  /* of a microbatch that is forgotten */
};

struct ocs_moe_record;

/* The caller destroys it. */
struct ocs_moe_record *ocs_moe_record_create(const struct ocs_moe_record_setup *setup);
void ocs_moe_record_destroy(struct ocs_moe_record *record);

/* RANK sends COUNTS[N], N a multiple of the ranks: entry e goes to rank e / (N / ranks).
 * MICROBATCH is counted up over the whole run.  Returns 1 if that made the matrix whole, 0 if the
 * row was taken or is a double, or -1 with ERR (OCS_USAGE): it was not taken. */
int ocs_moe_record_row(struct ocs_moe_record *record, int layer, int64_t microbatch, int rank,
		       const double *counts, int n, struct ocs_error *err);

/* The matrix of all rows: what servers send each other.  NULL unless all rows are there and none
 * contradicts another.  Valid until the next row. */
const struct ocs_moe_demand *ocs_moe_record_demand(const struct ocs_moe_record *record, int layer,
						   int64_t microbatch);

/* What server I sent each server, itself included, [servers]; NULL as above. */
const double *ocs_moe_record_shares(const struct ocs_moe_record *record, int layer,
				    int64_t microbatch, int i);

const struct ocs_moe_record_count *ocs_moe_record_count(const struct ocs_moe_record *record);

#endif
