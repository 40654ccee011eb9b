/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_MOE_SHIM_MPI_LATE_H
#define OCS_MOE_SHIM_MPI_LATE_H

/* PMPI_X of the MPI that this process has loaded, maybe late and privately: programs without MPI have this
 * library loaded, too.  Where that is not an Open MPI, MPI_Alltoallv goes to it as it came. */

#include <mpi.h>

#pragma GCC visibility push(default)
int MPI_Alltoallv(const void *sendbuf, const int *sendcounts, const int *sdispls,
		  MPI_Datatype sendtype, void *recvbuf, const int *recvcounts, const int *rdispls,
		  MPI_Datatype recvtype, MPI_Comm comm);
int MPI_Finalize(void);
#pragma GCC visibility pop

#define OCS_MOE_MPI_CALLS(X)    \
	X(Abort)                \
	X(Allgather)            \
	X(Allreduce)            \
	X(Alltoallv)            \
	X(Comm_call_errhandler) \
	X(Comm_compare)         \
	X(Comm_create_keyval)   \
	X(Comm_delete_attr)     \
	X(Comm_get_attr)        \
	X(Comm_rank)            \
	X(Comm_set_attr)        \
	X(Comm_size)            \
	X(Comm_test_inter)      \
	X(Finalize)             \
	X(Pack)                 \
	X(Type_get_extent)      \
	X(Type_size)            \
	X(Unpack)

struct ocs_moe_mpi {
#define FIELD(NAME) __typeof__(&PMPI_##NAME) NAME;
	OCS_MOE_MPI_CALLS(FIELD)
#undef FIELD
	/* Objects of Open MPI, which the macros of mpi.h name. */
	MPI_Comm world;
	MPI_Datatype byte, number;
	MPI_Op least;
	int known; /* it is an Open MPI */
};

const struct ocs_moe_mpi *ocs_moe_mpi(void);

#define mpi_known() (ocs_moe_mpi()->known)

#undef MPI_COMM_WORLD
#undef MPI_BYTE
#undef MPI_INT
#undef MPI_MIN
#define MPI_COMM_WORLD (ocs_moe_mpi()->world)
#define MPI_BYTE (ocs_moe_mpi()->byte)
#define MPI_INT (ocs_moe_mpi()->number)
#define MPI_MIN (ocs_moe_mpi()->least)

#define MPI_Abort(...) ocs_moe_mpi()->Abort(__VA_ARGS__)
#define PMPI_Allgather(...) ocs_moe_mpi()->Allgather(__VA_ARGS__)
#define PMPI_Allreduce(...) ocs_moe_mpi()->Allreduce(__VA_ARGS__)
#define PMPI_Alltoallv(...) ocs_moe_mpi()->Alltoallv(__VA_ARGS__)
#define PMPI_Comm_call_errhandler(...) ocs_moe_mpi()->Comm_call_errhandler(__VA_ARGS__)
#define PMPI_Comm_compare(...) ocs_moe_mpi()->Comm_compare(__VA_ARGS__)
#define PMPI_Comm_create_keyval(...) ocs_moe_mpi()->Comm_create_keyval(__VA_ARGS__)
#define PMPI_Comm_delete_attr(...) ocs_moe_mpi()->Comm_delete_attr(__VA_ARGS__)
#define PMPI_Comm_get_attr(...) ocs_moe_mpi()->Comm_get_attr(__VA_ARGS__)
#define PMPI_Comm_rank(...) ocs_moe_mpi()->Comm_rank(__VA_ARGS__)
#define PMPI_Comm_set_attr(...) ocs_moe_mpi()->Comm_set_attr(__VA_ARGS__)
#define PMPI_Comm_size(...) ocs_moe_mpi()->Comm_size(__VA_ARGS__)
#define PMPI_Comm_test_inter(...) ocs_moe_mpi()->Comm_test_inter(__VA_ARGS__)
#define PMPI_Finalize() ocs_moe_mpi()->Finalize()
#define PMPI_Pack(...) ocs_moe_mpi()->Pack(__VA_ARGS__)
#define PMPI_Type_get_extent(...) ocs_moe_mpi()->Type_get_extent(__VA_ARGS__)
#define PMPI_Type_size(...) ocs_moe_mpi()->Type_size(__VA_ARGS__)
#define PMPI_Unpack(...) ocs_moe_mpi()->Unpack(__VA_ARGS__)

#endif
