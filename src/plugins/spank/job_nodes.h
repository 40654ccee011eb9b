/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_SPANK_JOB_NODES_H
#define OCS_SPANK_JOB_NODES_H

/* Nodes of a job, as its programs find each other. */

struct ocs_ranks;

/* The address of NODE as Slurm has it, else its name; the caller frees it. */
char *ocs_node_address(const char *node);

/* Which node of the job with RANKS NODE is, from 0, or -1. */
int ocs_job_node_number(const struct ocs_ranks *ranks, const char *node);

#endif
