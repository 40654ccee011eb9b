/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/rails/shim/loaded.h"

#include <dlfcn.h>
#include <link.h>
#include <string.h>

struct search {
	const char *name;
	void *handle;
};

static int library_match(struct dl_phdr_info *info, size_t size, void *data)
{
	const char *file = strrchr(info->dlpi_name, '/');
	struct search *search = data;

	(void)size;
	if (!file || strncmp(file + 1, search->name, strlen(search->name)) != 0)
		return 0;
	search->handle = dlopen(info->dlpi_name, RTLD_NOLOAD | RTLD_LAZY);
	return search->handle != NULL;
}

void *ocs_shim_loaded(const char *name)
{
	struct search search = { name, NULL };

	dl_iterate_phdr(library_match, &search);
	return search.handle;
}
