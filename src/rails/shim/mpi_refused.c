/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* What sends at times that nobody can hold: refused where it would leave the node. */

#include "src/rails/shim/mpi_shim.h"

#define REFUSE(COMM, WHAT, CALL)                                                                   \
	return ocs_mpi_comm(COMM) ? ocs_mpi_refuse(COMM, WHAT " cannot be gated; run the program " \
							      "with --ocs-phases=off") :           \
				    ocs_mpi()->CALL

#define PERSISTENT(NAME)                                                                         \
	PUBLIC int MPI_##NAME(const void *buffer, int count, MPI_Datatype type, int to, int tag, \
			      MPI_Comm comm, MPI_Request *request)                               \
	{                                                                                        \
		REFUSE(comm, "a persistent request",                                             \
		       NAME(buffer, count, type, to, tag, comm, request));                       \
	}

PERSISTENT(Send_init)
PERSISTENT(Ssend_init)
PERSISTENT(Bsend_init)
PERSISTENT(Rsend_init)

PUBLIC int MPI_Recv_init(void *buffer, int count, MPI_Datatype type, int from, int tag,
			 MPI_Comm comm, MPI_Request *request)
{
	REFUSE(comm, "a persistent request",
	       Recv_init(buffer, count, type, from, tag, comm, request));
}

PUBLIC int MPI_Mprobe(int from, int tag, MPI_Comm comm, MPI_Message *message, MPI_Status *status)
{
	REFUSE(comm, "a matched probe", Mprobe(from, tag, comm, message, status));
}

PUBLIC int MPI_Improbe(int from, int tag, MPI_Comm comm, int *flag, MPI_Message *message,
		       MPI_Status *status)
{
	REFUSE(comm, "a matched probe", Improbe(from, tag, comm, flag, message, status));
}

PUBLIC int MPI_Win_create(void *base, MPI_Aint size, int unit, MPI_Info info, MPI_Comm comm,
			  MPI_Win *win)
{
	REFUSE(comm, "one-sided communication", Win_create(base, size, unit, info, comm, win));
}

PUBLIC int MPI_Win_allocate(MPI_Aint size, int unit, MPI_Info info, MPI_Comm comm, void *base,
			    MPI_Win *win)
{
	REFUSE(comm, "one-sided communication", Win_allocate(size, unit, info, comm, base, win));
}

PUBLIC int MPI_Win_create_dynamic(MPI_Info info, MPI_Comm comm, MPI_Win *win)
{
	REFUSE(comm, "one-sided communication", Win_create_dynamic(info, comm, win));
}

PUBLIC int MPI_File_open(MPI_Comm comm, const char *name, int mode, MPI_Info info, MPI_File *file)
{
	REFUSE(comm, "a file of several nodes", File_open(comm, name, mode, info, file));
}

PUBLIC int MPI_Comm_idup(MPI_Comm comm, MPI_Comm *new, MPI_Request *request)
{
	REFUSE(comm, "MPI_Comm_idup", Comm_idup(comm, new, request));
}

PUBLIC int MPI_Intercomm_create(MPI_Comm comm, int leader, MPI_Comm bridge, int other, int tag,
				MPI_Comm *new)
{
	REFUSE(bridge, "an intercommunicator",
	       Intercomm_create(comm, leader, bridge, other, tag, new));
}

PUBLIC int MPI_Intercomm_merge(MPI_Comm comm, int high, MPI_Comm *new)
{
	REFUSE(comm, "an intercommunicator", Intercomm_merge(comm, high, new));
}

PUBLIC int MPI_Comm_spawn(const char *command, char *argv[], int most, MPI_Info info, int root,
			  MPI_Comm comm, MPI_Comm *new, int errors[])
{
	REFUSE(comm, "MPI_Comm_spawn",
	       Comm_spawn(command, argv, most, info, root, comm, new, errors));
}

PUBLIC int MPI_Comm_spawn_multiple(int count, char *commands[], char **argvs[], const int most[],
				   const MPI_Info infos[], int root, MPI_Comm comm, MPI_Comm *new,
				   int errors[])
{
	REFUSE(comm, "MPI_Comm_spawn_multiple",
	       Comm_spawn_multiple(count, commands, argvs, most, infos, root, comm, new, errors));
}

PUBLIC int MPI_Comm_connect(const char *port, MPI_Info info, int root, MPI_Comm comm, MPI_Comm *new)
{
	REFUSE(comm, "MPI_Comm_connect", Comm_connect(port, info, root, comm, new));
}

PUBLIC int MPI_Comm_accept(const char *port, MPI_Info info, int root, MPI_Comm comm, MPI_Comm *new)
{
	REFUSE(comm, "MPI_Comm_accept", Comm_accept(port, info, root, comm, new));
}
