/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_RAILS_PHASE_TABLE_H
#define OCS_RAILS_PHASE_TABLE_H

/* The phase tables of one training step as Opus publishes them: a file comm_pattern_N_rankL.txt for
 * local rank L of node N, a line per phase:
 *
 *   DP start_backend: 5 start_idx: 0 end_backend: 5 end_idx: 16 len: 17
 *
 * is operations 0 to 16 of group 5.  A phase may begin in one group and end in another.  Numbers of
 * groups are the node's own where more than two nodes have the same pipeline group, else the job's.
 * Operations that a table leaves out between two phases of a group are made known as such. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/rails/menu.h"

struct ocs_error;

struct ocs_phase_group {
	long number; /* in the tables */
	int rail;    /* the local rank of its members */
	bool pipeline;
	int count;
	int *ranks;
	uint64_t skipped; /* operations that the table of its first member leaves out */
};

struct ocs_phase_operation {
	int group; /* index of ocs_phase_group */
	uint64_t idx;
	int phase; /* line of the table, or -1: it is outside all of them */
};

struct ocs_phase_rank {
	struct ocs_phase_operation *operations; /* in the order of the table */
	size_t count;
};

struct ocs_phase_tables {
	struct ocs_rails_layout layout; /* pipeline stages x nodes of a stage */
	int nodes, rails;
	struct ocs_phase_rank *ranks; /* rank = node * rails + local rank */
	struct ocs_phase_group *groups;
	int ngroups;
};

/* Reads all tables of FOLDER.  STAGES pipeline stages; 0: found from the groups.  Returns NULL with
 * ERR (OCS_USAGE): file and line, and what is wrong.  Freed by ocs_phase_tables_free. */
struct ocs_phase_tables *ocs_phase_tables_read(const char *folder, int stages,
					       struct ocs_error *err);
void ocs_phase_tables_free(struct ocs_phase_tables *tables);

#endif
