/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_JOB_SUBMIT_SCRIPT_H
#define OCS_JOB_SUBMIT_SCRIPT_H

struct ocs_error;

/* Looks for options of spank_ocs among the #SBATCH lines that sbatch would read of SCRIPT for
 * the job, or the first component of a het job.  0 if there is none; else -1 with ERR
 * (OCS_USAGE), which says how to hand the option over without sbatch. */
int ocs_script_check(const char *script, struct ocs_error *err);

#endif
