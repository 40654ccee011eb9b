/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_UTIL_NEAREST_H
#define OCS_UTIL_NEAREST_H

#include <stddef.h>

/* The one of the COUNT NAMES that a hasty typist of WORD meant, or NULL if none is near. */
const char *ocs_nearest(const char *word, const char *const *names, size_t count);

#endif
