/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include <dlfcn.h>
#include <mpi.h>
#include <pthread.h>

#include "src/moe/shim/mpi_late.h"
#include "src/rails/shim/loaded.h"

static struct ocs_moe_mpi library;
static pthread_once_t library_once = PTHREAD_ONCE_INIT;

static void library_find(void)
{
	void *handle =
		dlsym(RTLD_DEFAULT, "PMPI_Init") ? RTLD_DEFAULT : ocs_shim_loaded("libmpi.so");

#define FIND(NAME) library.NAME = (__typeof__(library.NAME))dlsym(handle, "PMPI_" #NAME);
	OCS_MOE_MPI_CALLS(FIND)
#undef FIND
	library.world = dlsym(handle, "ompi_mpi_comm_world");
	library.byte = dlsym(handle, "ompi_mpi_byte");
	library.number = dlsym(handle, "ompi_mpi_int");
	library.least = dlsym(handle, "ompi_mpi_op_min");
	library.known = library.world && library.byte && library.number && library.least;
}

const struct ocs_moe_mpi *ocs_moe_mpi(void)
{
	pthread_once(&library_once, library_find);
	return &library;
}
