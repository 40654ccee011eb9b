/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_SWITCH_SCPI_SCPI_H
#define OCS_SWITCH_SCPI_SCPI_H

/* SCPI as Polatis switches speak it: the lines that are sent, and the parsers of
 * what comes back.  No I/O here. */

#include <stdbool.h>
#include <stddef.h>

#include "src/switch/switch.h"

struct ocs_error;

/* Longest line that is sent, with its newline [not documented: what every known
 * program stays below]. */
#define OCS_SCPI_LINE 4096

/* The next change of a batch: as many of PATCHES as one line takes, *USED of them,
 * with *opc? behind it, without newline.  Refuses (NULL with ERR, code OCS_USAGE)
 * an empty batch and ports that a switch of SIZE does not have.  The caller frees
 * it. */
char *ocs_scpi_change(bool add, int size, const struct ocs_patch *patches, size_t count,
		      size_t *used, struct ocs_error *err);

/* A query of ports FIRST.. (as many as one line takes; *COUNT in: how many are
 * left, out: how many are asked for) from WHAT (":oxc:swit:port:stat?").  The
 * caller frees it. */
char *ocs_scpi_ask(const char *what, int first, int *count);

/* The last look at LINE before it is sent: whether it is anything but the few
 * queries and the two changes, of named ports, that this driver makes. */
bool ocs_scpi_dangerous(const char *line);

/* An answer of the error queue: "-222,"Data out of range",...". */
struct ocs_scpi_error {
	int code;	/* 0: none */
	char text[256]; /* of the first */
};
/* Returns 0, or -1: LINE is no such answer.  The first error counts. */
int ocs_scpi_parse_errors(const char *line, struct ocs_scpi_error *error);
/* "16,16" into the ports of one side.  -1 with ERR. */
int ocs_scpi_parse_size(const char *line, int *size, struct ocs_error *err);
/* "(@1,2),(@19,18)" into TABLE (initialised, all 0).  -1 with ERR if it is not
 * that, if a port does not exist or has two peers. */
int ocs_scpi_parse_table(const char *line, struct ocs_table *table, struct ocs_error *err);
/* "(D,E,F)" and "(-2.31,-60.0)" into COUNT ports from FIRST.  -1 with ERR. */
int ocs_scpi_parse_status(const char *line, struct ocs_health *health, int first, int count,
			  struct ocs_error *err);
int ocs_scpi_parse_power(const char *line, struct ocs_health *health, int first, int count,
			 struct ocs_error *err);

#endif
