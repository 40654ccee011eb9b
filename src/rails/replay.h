/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_RAILS_REPLAY_H
#define OCS_RAILS_REPLAY_H

/* Drives a coordinator through one training step of phase tables, with a switch that needs some time,
 * and looks for itself whether every operation has its circuits. */

#include "src/rails/coordinator.h"
#include "src/rails/phase_table.h"

struct ocs_replay_options {
	double switch_ms;    /* a change of a topology */
	double operation_ms; /* an operation, from the grant to its end */
	double window_ms;    /* what a rank computes between two phases */
	bool provisioned;
};

#define OCS_REPLAY_VIOLATIONS 16

struct ocs_replay_result {
	struct ocs_coordinator_counts counts;
	double step_ms;
	char *violations[OCS_REPLAY_VIOLATIONS]; /* the first ones */
	int nviolations;
};

/* Returns 0, or -1 with ERR where the tables' layout cannot be served. */
int ocs_replay_run(const struct ocs_phase_tables *tables, const struct ocs_replay_options *options,
		   struct ocs_replay_result *result, struct ocs_error *err);
void ocs_replay_result_free(struct ocs_replay_result *result);

#endif
