/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_FABRIC_NAMES_H
#define OCS_FABRIC_NAMES_H

#include <stddef.h>

/* A hash of names to small numbers.  Names are borrowed: they must outlive it. */
struct ocs_names;

/* Room for EXPECTED names; it grows beyond. */
struct ocs_names *ocs_names_create(size_t expected);
void ocs_names_destroy(struct ocs_names *names);

/* Adds NAME with VALUE (>= 0).  Returns -1, or the value NAME already has (then
 * nothing changes). */
int ocs_names_add(struct ocs_names *names, const char *name, int value);
/* The value of NAME, or -1. */
int ocs_names_find(const struct ocs_names *names, const char *name);

#endif
