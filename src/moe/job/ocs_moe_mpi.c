/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* MPI_Alltoallv by ocs_moe_channel_exchange, for programs that know nothing of it.  libocs-moe-mpi.so is this for Open MPI,
 * and spank_ocs(8) has tasks of a job with --ocs-moe load it.  For another MPI, whose types differ, it is
 * compiled and preloaded by hand:
 *
 *     mpicc -shared -fPIC -o ocs_moe_mpi.so ocs_moe_mpi.c -L/usr/libexec/slurm-ocs -l:libocsmoe.so
 *     LD_PRELOAD=./ocs_moe_mpi.so program
 *
 * ocs_moe_channel.h has the variables.  Intercommunicators, MPI_IN_PLACE and communicators without a channel take the
 * MPI's own way. */

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifdef OCS_MOE_MPI_LATE
#include "src/moe/shim/mpi_late.h"
#else
#define mpi_known() 1
#endif
#include "ocs_moe_channel.h"

/* What a communicator has got. */
struct known {
	struct ocs_moe_channel *channel; /* NULL: it takes the MPI's own way */
};

static int known_key = MPI_KEYVAL_INVALID;

static int known_copy(MPI_Comm comm, int key, void *extra, void *value, void *copy, int *wanted)
{
	(void)comm;
	(void)key;
	(void)extra;
	(void)value;
	(void)copy;
	*wanted = 0;
	return MPI_SUCCESS;
}

static int known_free(MPI_Comm comm, int key, void *value, void *extra)
{
	struct known *known = value;

	(void)comm;
	(void)key;
	(void)extra;
	ocs_moe_channel_close(known->channel);
	free(known);
	return MPI_SUCCESS;
}

/* All members open a channel, or none. */
static struct ocs_moe_channel *channel_open(MPI_Comm comm, int rank, int ranks)
{
	struct ocs_moe_card own, *cards = calloc((size_t)ranks, sizeof(*cards));
	struct ocs_moe_channel *channel = NULL;
	int fd = ocs_moe_card_make(&own), same, good, all;

	if (!cards)
		MPI_Abort(comm, 1);
	PMPI_Comm_compare(comm, MPI_COMM_WORLD, &same);
	PMPI_Allgather(&own, sizeof(own), MPI_BYTE, cards, sizeof(own), MPI_BYTE, comm);
	channel = ocs_moe_channel_open(rank, ranks, same == MPI_IDENT || same == MPI_CONGRUENT,
				       cards, fd);
	free(cards);
	good = channel != NULL;
	PMPI_Allreduce(&good, &all, 1, MPI_INT, MPI_MIN, comm);
	if (all)
		return channel;
	ocs_moe_channel_close(channel);
	return NULL;
}

/* The channel of COMM, made by all ranks at its first call; NULL: there is none. */
static struct ocs_moe_channel *channel_get(MPI_Comm comm, int rank, int ranks)
{
	struct known *known;
	int there;

	if (known_key == MPI_KEYVAL_INVALID)
		PMPI_Comm_create_keyval(known_copy, known_free, &known_key, NULL);
	PMPI_Comm_get_attr(comm, known_key, &known, &there);
	if (there)
		return known->channel;
	known = calloc(1, sizeof(*known));
	if (!known)
		MPI_Abort(comm, 1);
	known->channel = channel_open(comm, rank, ranks);
	PMPI_Comm_set_attr(comm, known_key, known);
	return known->channel;
}

/* Packed, so that any type will do: SIZE[j] bytes for each rank, one after the other. */
static char *buffer_make(const int *counts, MPI_Datatype type, int ranks, size_t *bytes, size_t *at)
{
	size_t all = 0;
	int size;

	PMPI_Type_size(type, &size);
	for (int j = 0; j < ranks; j++) {
		at[j] = all;
		bytes[j] = (size_t)counts[j] * (size_t)size;
		all += bytes[j];
	}
	return malloc(all + 1);
}

/* Where element DISPLACEMENT of BUFFER is. */
static char *element_at(const void *buffer, int displacement, MPI_Datatype type)
{
	MPI_Aint low, extent;

	PMPI_Type_get_extent(type, &low, &extent);
	return (char *)buffer + displacement * extent;
}

static int packed_send(struct ocs_moe_channel *channel, const void *send, const int *sendcounts,
		       const int *sdispls, MPI_Datatype sendtype, void *receive,
		       const int *recvcounts, const int *rdispls, MPI_Datatype recvtype,
		       MPI_Comm comm, int ranks)
{
	size_t *vector = calloc((size_t)ranks * 4, sizeof(*vector));
	size_t *out = vector, *out_at = vector + ranks, *in = vector + 2 * ranks,
	       *in_at = vector + 3 * ranks;
	char *from = vector ? buffer_make(sendcounts, sendtype, ranks, out, out_at) : NULL;
	char *to = vector ? buffer_make(recvcounts, recvtype, ranks, in, in_at) : NULL;
	int rc;

	if (!from || !to)
		MPI_Abort(comm, 1);
	for (int j = 0; j < ranks; j++) {
		int position = 0;

		if (out[j])
			PMPI_Pack(element_at(send, sdispls[j], sendtype), sendcounts[j], sendtype,
				  from + out_at[j], (int)out[j], &position, comm);
	}
	rc = ocs_moe_channel_exchange(channel, 0, from, out, out_at, to, in, in_at);
	for (int j = 0; !rc && j < ranks; j++) {
		int position = 0;

		if (in[j])
			PMPI_Unpack(to + in_at[j], (int)in[j], &position,
				    element_at(receive, rdispls[j], recvtype), recvcounts[j],
				    recvtype, comm);
	}
	free(from);
	free(to);
	free(vector);
	return rc;
}

int MPI_Alltoallv(const void *sendbuf, const int *sendcounts, const int *sdispls,
		  MPI_Datatype sendtype, void *recvbuf, const int *recvcounts, const int *rdispls,
		  MPI_Datatype recvtype, MPI_Comm comm)
{
	struct ocs_moe_channel *channel = NULL;
	int rank, ranks, inter = 1;

	if (mpi_known())
		PMPI_Comm_test_inter(comm, &inter);
	if (!inter && sendbuf != MPI_IN_PLACE) {
		PMPI_Comm_rank(comm, &rank);
		PMPI_Comm_size(comm, &ranks);
		channel = channel_get(comm, rank, ranks);
	}
	if (!channel)
		return PMPI_Alltoallv(sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts,
				      rdispls, recvtype, comm);
	if (!packed_send(channel, sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts,
			 rdispls, recvtype, comm, ranks))
		return MPI_SUCCESS;
	fprintf(stderr, "ocs_moe_mpi: rank %d: %s\n", rank, ocs_moe_channel_error(channel));
	PMPI_Comm_call_errhandler(comm, MPI_ERR_OTHER);
	return MPI_ERR_OTHER;
}

/* Channels end with the program: world's attributes are deleted late, when others have gone. */
int MPI_Finalize(void)
{
	void *known;
	int there = 0;

	if (known_key != MPI_KEYVAL_INVALID)
		PMPI_Comm_get_attr(MPI_COMM_WORLD, known_key, &known, &there);
	if (there)
		PMPI_Comm_delete_attr(MPI_COMM_WORLD, known_key);
	return PMPI_Finalize();
}
