/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_RAILS_SHIM_MPI_SHIM_H
#define OCS_RAILS_SHIM_MPI_SHIM_H

/* The shim of Open MPI: MPI_X of a program is here, PMPI_X of the library is looked up when it is
 * called first, since a program that has no MPI may have this library loaded, too.
 *
 *   mpi_library.c      PMPI_X, MPI_Init, MPI_Finalize
 *   mpi_communicators  communicators and their groups
 *   mpi_operations     operations that are under way, and their progress
 *   mpi_collectives, mpi_point, mpi_requests, mpi_refused: what programs call
 *
 * A blocking collective is held until all members have reached it.  Other operations are noted,
 * started when they are granted, and seen by the program as generalised requests; they proceed
 * whenever the program waits for anything.  A send is a synchronous one: when it is over its data has
 * left the library's own queues. */

#include <mpi.h>
#include <stdbool.h>

#include "src/rails/shim/gate.h"

#define PUBLIC __attribute__((visibility("default")))

#define MPI_COLLECTIVES(X)       \
	X(Barrier)               \
	X(Bcast)                 \
	X(Gather)                \
	X(Gatherv)               \
	X(Scatter)               \
	X(Scatterv)              \
	X(Allgather)             \
	X(Allgatherv)            \
	X(Alltoall)              \
	X(Alltoallv)             \
	X(Alltoallw)             \
	X(Reduce)                \
	X(Allreduce)             \
	X(Reduce_scatter)        \
	X(Reduce_scatter_block)  \
	X(Scan)                  \
	X(Exscan)                \
	X(Neighbor_allgather)    \
	X(Neighbor_allgatherv)   \
	X(Neighbor_alltoall)     \
	X(Neighbor_alltoallv)    \
	X(Neighbor_alltoallw)    \
	X(Ibarrier)              \
	X(Ibcast)                \
	X(Igather)               \
	X(Igatherv)              \
	X(Iscatter)              \
	X(Iscatterv)             \
	X(Iallgather)            \
	X(Iallgatherv)           \
	X(Ialltoall)             \
	X(Ialltoallv)            \
	X(Ialltoallw)            \
	X(Ireduce)               \
	X(Iallreduce)            \
	X(Ireduce_scatter)       \
	X(Ireduce_scatter_block) \
	X(Iscan)                 \
	X(Iexscan)               \
	X(Ineighbor_allgather)   \
	X(Ineighbor_allgatherv)  \
	X(Ineighbor_alltoall)    \
	X(Ineighbor_alltoallv)   \
	X(Ineighbor_alltoallw)

#define MPI_OTHERS(X)                 \
	X(Init)                       \
	X(Init_thread)                \
	X(Finalize)                   \
	X(Send)                       \
	X(Ssend)                      \
	X(Rsend)                      \
	X(Bsend)                      \
	X(Isend)                      \
	X(Issend)                     \
	X(Irsend)                     \
	X(Ibsend)                     \
	X(Recv)                       \
	X(Irecv)                      \
	X(Sendrecv)                   \
	X(Sendrecv_replace)           \
	X(Probe)                      \
	X(Iprobe)                     \
	X(Mprobe)                     \
	X(Improbe)                    \
	X(Send_init)                  \
	X(Ssend_init)                 \
	X(Bsend_init)                 \
	X(Rsend_init)                 \
	X(Recv_init)                  \
	X(Wait)                       \
	X(Waitall)                    \
	X(Waitany)                    \
	X(Waitsome)                   \
	X(Test)                       \
	X(Testall)                    \
	X(Testany)                    \
	X(Testsome)                   \
	X(Request_get_status)         \
	X(Grequest_start)             \
	X(Grequest_complete)          \
	X(Comm_rank)                  \
	X(Comm_size)                  \
	X(Comm_group)                 \
	X(Comm_test_inter)            \
	X(Comm_create_keyval)         \
	X(Comm_get_attr)              \
	X(Comm_set_attr)              \
	X(Comm_call_errhandler)       \
	X(Comm_split)                 \
	X(Comm_split_type)            \
	X(Comm_dup)                   \
	X(Comm_dup_with_info)         \
	X(Comm_idup)                  \
	X(Comm_create)                \
	X(Comm_create_group)          \
	X(Comm_free)                  \
	X(Comm_disconnect)            \
	X(Cart_create)                \
	X(Cart_sub)                   \
	X(Graph_create)               \
	X(Dist_graph_create)          \
	X(Dist_graph_create_adjacent) \
	X(Intercomm_create)           \
	X(Intercomm_merge)            \
	X(Comm_spawn)                 \
	X(Comm_spawn_multiple)        \
	X(Comm_connect)               \
	X(Comm_accept)                \
	X(Win_create)                 \
	X(Win_allocate)               \
	X(Win_create_dynamic)         \
	X(File_open)                  \
	X(Group_size)                 \
	X(Group_free)                 \
	X(Group_translate_ranks)      \
	X(Type_free)                  \
	X(Type_size)                  \
	X(Op_free)                    \
	X(Pack)                       \
	X(Pack_size)

#define MPI_ALL(X) MPI_COLLECTIVES(X) MPI_OTHERS(X)

struct mpi_library {
#define FIELD(NAME) __typeof__(&PMPI_##NAME) NAME;
	MPI_ALL(FIELD)
#undef FIELD
	/* Objects of Open MPI, which the macros of mpi.h name. */
	MPI_Comm world, self, comm_null;
	MPI_Request request_null;
	MPI_Datatype packed, datatype_null;
	MPI_Op op_null;
};

/* The library of this process; ends the process where there is none: nobody can call MPI then. */
const struct mpi_library *ocs_mpi(void);

/* What is known of a communicator. */
struct mpi_comm {
	int group;	   /* of the gate; OCS_GATE_FREE; OCS_GATE_ERROR with TEXT */
	uint32_t identity; /* the same at all members */
	int size;
	bool inter;
	char text[160];
	int world[]; /* ranks of its members */
};

/* NULL where operations of COMM pass freely. */
const struct mpi_comm *ocs_mpi_comm(MPI_Comm comm);
/* The gate, between MPI_Init and MPI_Finalize; else NULL. */
struct ocs_gate *ocs_mpi_gate(void);
int ocs_mpi_begin(int result); /* after MPI_Init */
int ocs_mpi_end(void);	       /* MPI_Finalize */

/* Says on stderr why something cannot be gated, and calls the error handler of COMM. */
int ocs_mpi_refuse(MPI_Comm comm, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* A blocking collective on COMM.  ocs_mpi_enter returns MPI_SUCCESS, where PASS goes to
 * ocs_mpi_leave, or an error. */
struct mpi_pass {
	int group;
	uint64_t idx;
};
int ocs_mpi_enter(MPI_Comm comm, struct mpi_pass *pass);
int ocs_mpi_enter_group(int group, struct mpi_pass *pass);
void ocs_mpi_leave(const struct mpi_pass *pass);

enum mpi_state {
	MPI_HELD,
	MPI_RUNNING,
	MPI_DRAINING,
	MPI_OVER,
};

/* An operation that starts when it is granted.  START begins it; its arguments follow. */
struct mpi_operation {
	int (*start)(struct mpi_operation *operation, MPI_Request *request);
	int group;
	uint64_t idx;
	_Atomic uint32_t *word; /* of the gate; its own memory: a receive takes a probe's over */
	_Atomic int state;
	bool generalised; /* USER is a request of the program */
	bool early;	  /* to be started before it is granted: a receive sends nothing */
	MPI_Comm comm;
	MPI_Request request, user;
	MPI_Status status;
	int error;
	struct mpi_operation *next;
};

/* Arrives at the next operation of GROUP; where USER is not NULL it becomes a request. */
int ocs_mpi_submit(struct mpi_operation *operation, MPI_Comm comm, int group, MPI_Request *user);
/* Waits for it and frees it. */
int ocs_mpi_complete(struct mpi_operation *operation, MPI_Status *status);
/* Operations that are not over. */
bool ocs_mpi_pending(void);
void ocs_mpi_progress(void);
/* After a round without success: gives the processor away, longer each time. */
void ocs_mpi_pause(int *rounds);

/* Arrives for a receive that is still to come, once; then whether a message may be looked for. */
int ocs_mpi_probe(MPI_Comm comm, int group, bool *granted);

#endif
