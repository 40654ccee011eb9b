/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_SPANK_JOB_PROGRAM_H
#define OCS_SPANK_JOB_PROGRAM_H

/* Programs of slurm-ocs that run in a job, as its user and in its cgroup. */

#include <slurm/spank.h>
#include <stdint.h>

#define OCS_JOB_PROGRAM_FD 3

/* In slurmstepd itself, before any is started. */
void ocs_job_programs_init(void);

/* Starts ARGV[0] in the background: its descriptor OCS_JOB_PROGRAM_FD is FD, it has no other one, and it
 * is killed when slurmstepd ends.  Where that has plugins called in another process (contain_spank), the program gets
 * one more argument, --parent-fd N: it ends when this pidfd is readable.  FD stays the caller's.  0, or -1 after
 * logging. */
int ocs_job_program_start(spank_t spank, const char *const *argv, int fd);

/* The step is about to end: kills those that run, and waits for that, so that the next step finds neither them nor
 * their ports and locks.  In slurmstepd. */
void ocs_job_programs_end(void);

/* The epoch that the prolog left in DIR, 0: none. */
uint64_t ocs_job_epoch(const char *dir);

#endif
