/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_OCSCTL_CMD_TRAINING_STEP_H
#define OCS_OCSCTL_CMD_TRAINING_STEP_H

#include <stdbool.h>

struct ocs_error;
struct ocs_netsim_graph;

/* What phase tables do not say. */
struct ocs_ctl_trace_guess {
	double bytes;	   /* of an operation */
	double compute_ms; /* of a rank between two phases */
};

/* Whether SPEC is a recorded step: a folder of phase tables, a task graph as JSON or as a FlatBuffer of
 * FlexFlow.  Else it is a model, or nothing. */
bool ocs_ctl_step_recorded(const char *spec);

/* Reads such a step.  GUESS is for phase tables: in each operation of a ring all members reduce so many
 * bytes, in one of the pipeline each sends as many to the next one.  *TABLES: it was such a folder.
 * The caller destroys the graph.  NULL with ERR. */
struct ocs_netsim_graph *ocs_ctl_step_read(const char *path,
					   const struct ocs_ctl_trace_guess *guess, bool *tables,
					   struct ocs_error *err);

#endif
