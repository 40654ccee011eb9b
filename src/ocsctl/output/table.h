/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_OCSCTL_OUTPUT_TABLE_H
#define OCS_OCSCTL_OUTPUT_TABLE_H

/* Tables as an administrator likes them: a header line, aligned columns, no
 * lines drawn, no trailing blanks. */

#include <stdio.h>

struct ocs_text_table;

/* COLUMNS holds the headings separated by '|'; one that starts with '>' is
 * aligned to the right ("JOB|USER|>CIRCUITS"). */
struct ocs_text_table *ocs_text_table_create(const char *columns);
void ocs_text_table_destroy(struct ocs_text_table *table);

/* Adds a cell; rows fill from left to right.  NULL and "" print as "-". */
void ocs_text_table_add(struct ocs_text_table *table, const char *cell);
void ocs_text_table_format(struct ocs_text_table *table, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Prints header and rows; only the header if there are none. */
void ocs_text_table_print(const struct ocs_text_table *table, FILE *out);

#endif
