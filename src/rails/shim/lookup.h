/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_RAILS_SHIM_LOOKUP_H
#define OCS_RAILS_SHIM_LOOKUP_H

#include <stdbool.h>

/* Programs that open a communication library by a path of their own and look its functions up in that handle pass by what
 * is preloaded.  A library that has lookup.c in it defines dlsym: for a name that it gates it answers with its own function.
 * All else is looked up as before, on behalf of the caller. */

/* By the library: whether NAME may be one of its functions, and whether it gates FOUND, the program's function of that
 * name, which lies in another library. */
bool ocs_shim_lookup_name(const char *name);
bool ocs_shim_lookup_take(void *found);

/* The C library's dlsym, past all of these. */
void *ocs_shim_dlsym(void *handle, const char *name);

#endif
