/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Waiting: operations of the gate proceed meanwhile.  And what they use lives until they are over. */

#include <pthread.h>
#include <stdlib.h>

#include "src/rails/shim/mpi_shim.h"

/* Until LOOK says so, or with the library's own wait where nothing of the gate is under way. */
#define WAIT(OWN, LOOK, DONE)                                \
	do {                                                 \
		int rounds = 0, result;                      \
                                                             \
		while (ocs_mpi_pending()) {                  \
			ocs_mpi_progress();                  \
			result = ocs_mpi()->LOOK;            \
			if (result != MPI_SUCCESS || (DONE)) \
				return result;               \
			ocs_mpi_pause(&rounds);              \
		}                                            \
		return ocs_mpi()->OWN;                       \
	} while (0)

#define LOOK(OWN)                           \
	do {                                \
		if (ocs_mpi_pending())      \
			ocs_mpi_progress(); \
		return ocs_mpi()->OWN;      \
	} while (0)

PUBLIC int MPI_Wait(MPI_Request *request, MPI_Status *status)
{
	int flag = 0;

	WAIT(Wait(request, status), Test(request, &flag, status), flag);
}

PUBLIC int MPI_Waitall(int count, MPI_Request requests[], MPI_Status statuses[])
{
	int flag = 0;

	WAIT(Waitall(count, requests, statuses), Testall(count, requests, &flag, statuses), flag);
}

PUBLIC int MPI_Waitany(int count, MPI_Request requests[], int *index, MPI_Status *status)
{
	int flag = 0;

	WAIT(Waitany(count, requests, index, status),
	     Testany(count, requests, index, &flag, status), flag);
}

PUBLIC int MPI_Waitsome(int count, MPI_Request requests[], int *done, int indices[],
			MPI_Status statuses[])
{
	WAIT(Waitsome(count, requests, done, indices, statuses),
	     Testsome(count, requests, done, indices, statuses), *done);
}

PUBLIC int MPI_Test(MPI_Request *request, int *flag, MPI_Status *status)
{
	LOOK(Test(request, flag, status));
}

PUBLIC int MPI_Testall(int count, MPI_Request requests[], int *flag, MPI_Status statuses[])
{
	LOOK(Testall(count, requests, flag, statuses));
}

PUBLIC int MPI_Testany(int count, MPI_Request requests[], int *index, int *flag, MPI_Status *status)
{
	LOOK(Testany(count, requests, index, flag, status));
}

PUBLIC int MPI_Testsome(int count, MPI_Request requests[], int *done, int indices[],
			MPI_Status statuses[])
{
	LOOK(Testsome(count, requests, done, indices, statuses));
}

PUBLIC int MPI_Request_get_status(MPI_Request request, int *flag, MPI_Status *status)
{
	LOOK(Request_get_status(request, flag, status));
}

/* -- objects that a program frees while operations that are held need them ---- */

struct freed {
	struct freed *next;
	MPI_Datatype type;
	MPI_Op op;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct freed *later;

static void freed_end(void)
{
	const struct mpi_library *mpi = ocs_mpi();
	struct freed *freed, *next;

	pthread_mutex_lock(&lock);
	freed = later;
	later = NULL;
	pthread_mutex_unlock(&lock);
	for (; freed; freed = next) {
		next = freed->next;
		if (freed->type)
			mpi->Type_free(&freed->type);
		if (freed->op)
			mpi->Op_free(&freed->op);
		free(freed);
	}
}

/* True where it is kept for later. */
static bool freed_keep(MPI_Datatype type, MPI_Op op)
{
	struct freed *freed = ocs_mpi_pending() ? calloc(1, sizeof(*freed)) : NULL;

	if (!freed) {
		freed_end();
		return false;
	}
	freed->type = type;
	freed->op = op;
	pthread_mutex_lock(&lock);
	freed->next = later;
	later = freed;
	pthread_mutex_unlock(&lock);
	return true;
}

PUBLIC int MPI_Type_free(MPI_Datatype *type)
{
	if (!freed_keep(*type, NULL))
		return ocs_mpi()->Type_free(type);
	*type = ocs_mpi()->datatype_null;
	return MPI_SUCCESS;
}

PUBLIC int MPI_Op_free(MPI_Op *op)
{
	if (!freed_keep(NULL, *op))
		return ocs_mpi()->Op_free(op);
	*op = ocs_mpi()->op_null;
	return MPI_SUCCESS;
}

/* Collectives of all members: each one can wait for what it began. */
static void operations_end(void)
{
	int rounds = 0;

	while (ocs_mpi_pending()) {
		ocs_mpi_progress();
		ocs_mpi_pause(&rounds);
	}
	freed_end();
}

PUBLIC int MPI_Comm_free(MPI_Comm *comm)
{
	operations_end();
	return ocs_mpi()->Comm_free(comm);
}

PUBLIC int MPI_Comm_disconnect(MPI_Comm *comm)
{
	operations_end();
	return ocs_mpi()->Comm_disconnect(comm);
}
