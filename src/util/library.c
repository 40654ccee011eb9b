/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/util/library.h"

#include <dlfcn.h>
#include <string.h>

#include "src/util/error.h"

int ocs_library_load(const char *soname, const struct ocs_library_symbol *symbols, size_t count,
		     struct ocs_error *err)
{
	void *library = dlopen(soname, RTLD_LAZY | RTLD_LOCAL | RTLD_NODELETE);

	if (!library)
		return ocs_error_set(err, OCS_ERROR, "%s cannot be loaded: %s", soname, dlerror());
	for (size_t i = 0; i < count; i++) {
		void *function = dlsym(library, symbols[i].name);

		if (!function)
			return ocs_error_set(err, OCS_ERROR, "%s has no %s", soname,
					     symbols[i].name);
		/* C has no conversion from an object pointer to a function pointer. */
		memcpy(symbols[i].pointer, &function, sizeof(function));
	}
	return 0;
}
