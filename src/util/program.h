/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_UTIL_PROGRAM_H
#define OCS_UTIL_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>

/* The PATH of a program that root runs, whatever its own is. */
#define OCS_PROGRAM_PATH "/usr/sbin:/usr/bin:/sbin:/bin"

/* A program to be run. */
struct ocs_program {
	char *const *words; /* NULL-terminated; the first is looked for in PATH */
	const char *path;   /* its PATH; NULL: that of the caller */
	const char *input;  /* LENGTH bytes for its standard input; NULL: none */
	size_t length;
	unsigned int seconds; /* SIGALRM ends it after so many; 0: nothing does */
};

/* Runs PROGRAM without a shell and waits for it.  Returns the status of waitpid, or -1.
 * *OUT is what it printed and *SAID what it printed on standard error, or why it could
 * not be run; with SAID NULL both are in *OUT.  The caller frees them, in any case. */
int ocs_program_run(const struct ocs_program *program, char **out, char **said);

/* Goes on in a process of its own, without a terminal, descriptors or a parent that waits for
 * it; its working directory is /.  True there; false in the caller, also if there could be none. */
bool ocs_program_detach(void);

#endif
