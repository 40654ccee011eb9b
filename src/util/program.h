/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_UTIL_PROGRAM_H
#define OCS_UTIL_PROGRAM_H

#include <stddef.h>

/* Runs WORDS, a system's program, with the LENGTH bytes of INPUT as its standard input,
 * and waits for it.  Returns the status of waitpid, or -1; what it printed on both
 * outputs, at most LIMIT bytes, or why it could not be run, is in *SAID (the caller
 * frees it). */
int ocs_program_run(char *const *words, const char *input, size_t length, size_t limit,
		    char **said);

#endif
