/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_UTIL_HOSTLIST_H
#define OCS_UTIL_HOSTLIST_H

#include <stddef.h>

struct ocs_error;

/* Expands "n[0-3,7],gpu[01-16]-a,login" into names, in the order written
 * (several brackets in one name expand last-fastest; leading zeros are kept).
 * At most LIMIT names.  Returns the count and sets *NAMES (the caller frees it
 * with ocs_names_free), or -1 with ERR (bad bracket, too many). */
int ocs_hostlist_expand(const char *text, size_t limit, char ***names, struct ocs_error *err);

/* The reverse: folds runs of consecutive numbers, keeps the order given.
 * The caller frees the string.  Never NULL. */
char *ocs_hostlist_compress(char *const *names, size_t count);

void ocs_names_free(char **names, size_t count);

#endif
