/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_SPANK_SUBPROCESS_H
#define OCS_SPANK_SUBPROCESS_H

struct ocs_error;

/* Runs ARGV[0] with ARGV in a process group of its own, no input, and a small
 * clean environment.  What it writes to stdout and stderr goes to LINE, a line at
 * a time.  Waits at most TIMEOUT_MS, then kills the group.  Returns 0 if it ended with
 * status 0, else -1 with ERR (its last line, or how it ended). */
int ocs_child_run(char *const *argv, int timeout_ms, void (*line)(const char *text),
		  struct ocs_error *err);

#endif
