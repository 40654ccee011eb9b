/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_SPANK_JOB_PROGRAM_H
#define OCS_SPANK_JOB_PROGRAM_H

/* Programs of slurm-ocs that run in a job, as its user and in its cgroup. */

#include <slurm/spank.h>
#include <stdint.h>

#define OCS_JOB_PROGRAM_FD 3

/* Starts ARGV[0] in the background: its descriptor OCS_JOB_PROGRAM_FD is FD, it has no other one, and it
 * is killed when this process ends.  FD stays the caller's.  0, or -1 after logging. */
int ocs_job_program_start(spank_t spank, const char *const *argv, int fd);

/* The epoch that the prolog left in DIR, 0: none. */
uint64_t ocs_job_epoch(const char *dir);

#endif
