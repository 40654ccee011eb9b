/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_UTIL_LIBRARY_H
#define OCS_UTIL_LIBRARY_H

#include <stddef.h>

struct ocs_error;

/* Libraries that few commands need and that bring many others along: loaded where they are used. */

struct ocs_library_symbol {
	const char *name;
	void *pointer; /* of the function pointer that is to be set */
};

/* Loads the shared library SONAME, once a process, and sets COUNT pointers.  It stays.  Safe in
 * threads that set pointers of their own.  Returns 0, or -1 with ERR (OCS_ERROR) that says what
 * the loader said. */
int ocs_library_load(const char *soname, const struct ocs_library_symbol *symbols, size_t count,
		     struct ocs_error *err);

#endif
