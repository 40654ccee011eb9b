/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_UTIL_CONSTRAINT_H
#define OCS_UTIL_CONSTRAINT_H

/* What a job wants of the features of its nodes: words joined by & (or a comma) and |, from left
 * to right, without precedence; groups in parentheses; and, once, alternatives in brackets, of
 * which all nodes must meet the same one: "gpu&[rack1|rack2]". */

#include <stdbool.h>

/* How many alternatives WANTED leaves: 1 without brackets.  0 if it counts nodes ("gpu*2",
 * "[a*1&b*3]"), -1 if it is no such expression. */
int ocs_constraint_alternatives(const char *wanted);

/* Whether a node with the features HAVE ("gpu,rack1"; NULL: none) meets WANTED with the
 * alternative INDEX (from 0).  False where ocs_constraint_alternatives says there is none such. */
bool ocs_constraint_meet(const char *wanted, int index, const char *have);

#endif
