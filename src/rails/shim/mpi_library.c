/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* The MPI library of this process, which may have been loaded late and privately. */

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/rails/shim/loaded.h"
#include "src/rails/shim/lookup.h"
#include "src/rails/shim/mpi_shim.h"

static struct mpi_library library;
static pthread_once_t library_once = PTHREAD_ONCE_INIT;

static void *symbol_find(void *handle, const char *name)
{
	void *found = dlsym(handle, name);

	if (!found) {
		fprintf(stderr,
			"slurm-ocs: the MPI library of this program has no %s; circuits of rails serve "
			"Open MPI 4 or later (or run it with --ocs-phases=off)\n",
			name);
		_Exit(1);
	}
	return found;
}

static void library_find(void)
{
	void *handle =
		dlsym(RTLD_DEFAULT, "PMPI_Init") ? RTLD_DEFAULT : ocs_shim_loaded("libmpi.so");

#define FIND(NAME) library.NAME = (__typeof__(library.NAME))symbol_find(handle, "PMPI_" #NAME);
	MPI_ALL(FIND)
#undef FIND
	library.world = symbol_find(handle, "ompi_mpi_comm_world");
	library.self = symbol_find(handle, "ompi_mpi_comm_self");
	library.comm_null = symbol_find(handle, "ompi_mpi_comm_null");
	library.request_null = symbol_find(handle, "ompi_request_null");
	library.packed = symbol_find(handle, "ompi_mpi_packed");
	library.datatype_null = symbol_find(handle, "ompi_mpi_datatype_null");
	library.op_null = symbol_find(handle, "ompi_mpi_op_null");
}

const struct mpi_library *ocs_mpi(void)
{
	pthread_once(&library_once, library_find);
	return &library;
}

bool ocs_shim_lookup_name(const char *name)
{
	return !strncmp(name, "MPI_", 4);
}

bool ocs_shim_lookup_take(void *found)
{
	const char *file;
	Dl_info there;

	if (!dladdr(found, &there) || !there.dli_fname)
		return false;
	file = strrchr(there.dli_fname, '/');
	return !strncmp(file ? file + 1 : there.dli_fname, "libmpi", 6);
}

PUBLIC int MPI_Init(int *argc, char ***argv)
{
	return ocs_mpi_begin(ocs_mpi()->Init(argc, argv));
}

PUBLIC int MPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
	return ocs_mpi_begin(ocs_mpi()->Init_thread(argc, argv, required, provided));
}

PUBLIC int MPI_Finalize(void)
{
	return ocs_mpi_end();
}
