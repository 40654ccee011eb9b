/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_UTIL_OPTIONS_H
#define OCS_UTIL_OPTIONS_H

#include <getopt.h>

struct ocs_error;

/* The command line of a program.  LONGS ends with an empty entry and has "help" ('h') and "version" ('V'); SHORTS
 * are further ones as for getopt, "jp:", with a leading '+' where the first operand ends the options. */
struct ocs_options {
	const char *program;
	const char *shorts;
	const struct option *longs;
	const char *help; /* what --help prints */
};

enum { OCS_OPTIONS_END = 0, OCS_OPTIONS_WRONG = -1, OCS_OPTIONS_SAID = -2 };

/* The next option, whose value is in optarg.  OCS_OPTIONS_END: operands begin at optind; OCS_OPTIONS_SAID: the help or
 * the version is printed, and the program is to end; OCS_OPTIONS_WRONG with ERR, one line of OCS_USAGE. */
int ocs_options_next(const struct ocs_options *options, int argc, char **argv,
		     struct ocs_error *err);

/* The long name of OPTION in LONGS, without the dashes, or "". */
const char *ocs_options_name(const struct option *longs, int option);

#endif
