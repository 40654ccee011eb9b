/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Collectives: MPI_X waits for all members, MPI_IX arrives and starts when it is granted. */

#include <stdlib.h>

#include "src/rails/shim/mpi_shim.h"

/* What comes before the communicator, as A(type, name). */
#define ARGS_none(A)
#define ARGS_root(A) A(void *, buffer) A(int, count) A(MPI_Datatype, type) A(int, root)
#define ARGS_ends(A)          \
	A(const void *, send) \
	A(int, n) A(MPI_Datatype, send_type) A(void *, receive) A(int, m) A(MPI_Datatype, type)
#define ARGS_ends_root(A) ARGS_ends(A) A(int, root)
#define ARGS_gatherv(A)            \
	A(const void *, send)      \
	A(int, n)                  \
	A(MPI_Datatype, send_type) \
	A(void *, receive) A(const int *, m) A(const int *, at) A(MPI_Datatype, type)
#define ARGS_gatherv_root(A) ARGS_gatherv(A) A(int, root)
#define ARGS_scatterv(A)      \
	A(const void *, send) \
	A(const int *, n)     \
	A(const int *, at)    \
	A(MPI_Datatype, send_type) A(void *, receive) A(int, m) A(MPI_Datatype, type) A(int, root)
#define ARGS_alltoallv(A)          \
	A(const void *, send)      \
	A(const int *, n)          \
	A(const int *, from)       \
	A(MPI_Datatype, send_type) \
	A(void *, receive) A(const int *, m) A(const int *, to) A(MPI_Datatype, type)
#define ARGS_alltoallw(A)                   \
	A(const void *, send)               \
	A(const int *, n)                   \
	A(const int *, from)                \
	A(const MPI_Datatype *, send_types) \
	A(void *, receive) A(const int *, m) A(const int *, to) A(const MPI_Datatype *, types)
#define ARGS_neighborw(A)                   \
	A(const void *, send)               \
	A(const int *, n)                   \
	A(const MPI_Aint *, from)           \
	A(const MPI_Datatype *, send_types) \
	A(void *, receive) A(const int *, m) A(const MPI_Aint *, to) A(const MPI_Datatype *, types)
#define ARGS_reduce(A) \
	A(const void *, send) A(void *, receive) A(int, n) A(MPI_Datatype, type) A(MPI_Op, op)
#define ARGS_reduce_root(A) ARGS_reduce(A) A(int, root)
#define ARGS_scatter(A)       \
	A(const void *, send) \
	A(void *, receive) A(const int *, n) A(MPI_Datatype, type) A(MPI_Op, op)

#define PARAMETER(TYPE, NAME) TYPE NAME,
#define FIELD(TYPE, NAME) TYPE NAME;
#define GIVEN(TYPE, NAME) NAME,
#define KEPT(TYPE, NAME) kept->NAME,
#define KEEP(TYPE, NAME) kept->NAME = NAME;

/* One that passes freely still has to let operations proceed that are held: others may need them. */
#define COLLECTIVE(NAME, INAME, ARGS)                                                         \
	PUBLIC int MPI_##NAME(ARGS(PARAMETER) MPI_Comm comm)                                  \
	{                                                                                     \
		struct mpi_pass pass;                                                         \
		MPI_Request request;                                                          \
		int result = ocs_mpi_enter(comm, &pass);                                      \
                                                                                              \
		if (result != MPI_SUCCESS)                                                    \
			return result;                                                        \
		if (pass.group < 0 && ocs_mpi_pending()) {                                    \
			result = ocs_mpi()->INAME(ARGS(GIVEN) comm, &request);                \
			return result != MPI_SUCCESS ? result :                               \
						       MPI_Wait(&request, MPI_STATUS_IGNORE); \
		}                                                                             \
		result = ocs_mpi()->NAME(ARGS(GIVEN) comm);                                   \
		ocs_mpi_leave(&pass);                                                         \
		return result;                                                                \
	}                                                                                     \
	struct kept_##INAME {                                                                 \
		struct mpi_operation operation;                                               \
		ARGS(FIELD)                                                                   \
	};                                                                                    \
	static int start_##INAME(struct mpi_operation *operation, MPI_Request *request)       \
	{                                                                                     \
		struct kept_##INAME *kept = (struct kept_##INAME *)operation;                 \
                                                                                              \
		return ocs_mpi()->INAME(ARGS(KEPT) kept->operation.comm, request);            \
	}                                                                                     \
	PUBLIC int MPI_##INAME(ARGS(PARAMETER) MPI_Comm comm, MPI_Request *request)           \
	{                                                                                     \
		const struct mpi_comm *known = ocs_mpi_comm(comm);                            \
		struct kept_##INAME *kept;                                                    \
                                                                                              \
		if (!known)                                                                   \
			return ocs_mpi()->INAME(ARGS(GIVEN) comm, request);                   \
		if (known->group == OCS_GATE_ERROR)                                           \
			return ocs_mpi_refuse(comm, "%s", known->text);                       \
		kept = calloc(1, sizeof(*kept));                                              \
		if (!kept)                                                                    \
			return MPI_ERR_NO_MEM;                                                \
		kept->operation.start = start_##INAME;                                        \
		ARGS(KEEP)                                                                    \
		return ocs_mpi_submit(&kept->operation, comm, known->group, request);         \
	}

COLLECTIVE(Barrier, Ibarrier, ARGS_none)
COLLECTIVE(Bcast, Ibcast, ARGS_root)
COLLECTIVE(Gather, Igather, ARGS_ends_root)
COLLECTIVE(Gatherv, Igatherv, ARGS_gatherv_root)
COLLECTIVE(Scatter, Iscatter, ARGS_ends_root)
COLLECTIVE(Scatterv, Iscatterv, ARGS_scatterv)
COLLECTIVE(Allgather, Iallgather, ARGS_ends)
COLLECTIVE(Allgatherv, Iallgatherv, ARGS_gatherv)
COLLECTIVE(Alltoall, Ialltoall, ARGS_ends)
COLLECTIVE(Alltoallv, Ialltoallv, ARGS_alltoallv)
COLLECTIVE(Alltoallw, Ialltoallw, ARGS_alltoallw)
COLLECTIVE(Reduce, Ireduce, ARGS_reduce_root)
COLLECTIVE(Allreduce, Iallreduce, ARGS_reduce)
COLLECTIVE(Reduce_scatter, Ireduce_scatter, ARGS_scatter)
COLLECTIVE(Reduce_scatter_block, Ireduce_scatter_block, ARGS_reduce)
COLLECTIVE(Scan, Iscan, ARGS_reduce)
COLLECTIVE(Exscan, Iexscan, ARGS_reduce)
COLLECTIVE(Neighbor_allgather, Ineighbor_allgather, ARGS_ends)
COLLECTIVE(Neighbor_allgatherv, Ineighbor_allgatherv, ARGS_gatherv)
COLLECTIVE(Neighbor_alltoall, Ineighbor_alltoall, ARGS_ends)
COLLECTIVE(Neighbor_alltoallv, Ineighbor_alltoallv, ARGS_alltoallv)
COLLECTIVE(Neighbor_alltoallw, Ineighbor_alltoallw, ARGS_neighborw)
