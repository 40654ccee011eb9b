/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_RAILS_LOG_H
#define OCS_RAILS_LOG_H

/* What the programs of a job on rails say to administrators: lines on stderr and, where they were asked to, in
 * the system's log, which outlives the job.  The user of the job runs them, so that lines are few. */

#include <stdbool.h>
#include <stdint.h>

/* PROGRAM (static) of JOB; SYSTEM: to the system's log, too. */
void ocs_rails_log_open(const char *program, uint32_t job, bool system);

/* One line, without its newline; 200 a minute at most, what is left out is counted.  Errors: none. */
void ocs_rails_log(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
