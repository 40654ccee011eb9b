/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* MPI_Alltoallv by ocs_moe_alltoall, for programs that know nothing of it.  Compiled against the MPI of the
 * site, whose types differ from one to the next, and preloaded:
 *
 *     mpicc -shared -fPIC -o ocs_moe_mpi.so ocs_moe_mpi.c -L/usr/libexec/slurm-ocs -l:libocsmoe.so
 *     LD_PRELOAD=./ocs_moe_mpi.so program
 *
 * $OCS_MOE_ADDRESS is this rank's packet address (default: 127.0.0.1, for ranks of one host).  $OCS_MOE_AGENT,
 * if it is set, gets the send counts of each call as a row of a gate: layer and microbatch follow from
 * $OCS_MOE_LAYERS, of which each has two calls forward and two backward.  Intercommunicators and MPI_IN_PLACE
 * take the MPI's own way, and so does every call if $OCS_MOE_OFF is set: all ranks alike. */

#include <errno.h>
#include <mpi.h>
#include <netinet/in.h>
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ocs_moe.h"
#include "ocs_moe_gate.h"

#define ADDRESS 64

/* What a communicator has got. */
struct channel {
	struct ocs_moe *moe;
	struct ocs_moe_gate *gate;
	long calls;
};

static int channel_key = MPI_KEYVAL_INVALID;

static int channel_free(MPI_Comm comm, int key, void *value, void *extra)
{
	struct channel *channel = value;

	(void)comm;
	(void)key;
	(void)extra;
	ocs_moe_close(channel->moe);
	ocs_moe_gate_close(channel->gate);
	free(channel);
	return MPI_SUCCESS;
}

/* A socket that listens on a free port of this rank's address, and its name. */
static int address_make(char *text)
{
	const char *host = getenv("OCS_MOE_ADDRESS");
	struct sockaddr_in at = { .sin_family = AF_INET };
	socklen_t size = sizeof(at);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	host = host ? host : "127.0.0.1";
	if (fd < 0 || inet_pton(AF_INET, host, &at.sin_addr) != 1 ||
	    bind(fd, (struct sockaddr *)&at, size) || listen(fd, 128) ||
	    getsockname(fd, (struct sockaddr *)&at, &size)) {
		if (fd >= 0)
			close(fd);
		return -1;
	}
	snprintf(text, ADDRESS, "%s:%d", host, ntohs(at.sin_port));
	return fd;
}

static struct ocs_moe *moe_open(MPI_Comm comm, int rank, int ranks)
{
	char own[ADDRESS] = "", error[256] = "no address", *all = calloc((size_t)ranks, ADDRESS);
	const char **address = calloc((size_t)ranks, sizeof(*address));
	unsigned char key[OCS_MOE_KEY] = { 0 };
	struct ocs_moe_options options = {
		.rank = rank, .ranks = ranks, .address = address, .key = key
	};
	struct ocs_moe *moe = NULL;

	options.listen_fd = address_make(own);
	if (!rank && getrandom(key, sizeof(key), 0) != sizeof(key))
		memset(key, 0, sizeof(key));
	PMPI_Bcast(key, sizeof(key), MPI_BYTE, 0, comm);
	PMPI_Allgather(own, ADDRESS, MPI_CHAR, all, ADDRESS, MPI_CHAR, comm);
	for (int j = 0; j < ranks; j++)
		address[j] = all + (size_t)j * ADDRESS;
	if (options.listen_fd >= 0)
		moe = ocs_moe_open(&options, error, sizeof(error));
	if (!moe)
		fprintf(stderr, "ocs_moe_mpi: rank %d: %s\n", rank, error);
	free(all);
	free(address);
	return moe;
}

/* The channel of COMM, made by all ranks at its first call; NULL: one of them could not. */
static struct channel *channel_get(MPI_Comm comm, int rank, int ranks)
{
	struct channel *channel;
	int there, good, all;

	if (channel_key == MPI_KEYVAL_INVALID)
		PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, channel_free, &channel_key, NULL);
	PMPI_Comm_get_attr(comm, channel_key, &channel, &there);
	if (there)
		return channel;
	channel = calloc(1, sizeof(*channel));
	channel->moe = moe_open(comm, rank, ranks);
	good = channel->moe != NULL;
	PMPI_Allreduce(&good, &all, 1, MPI_INT, MPI_MIN, comm);
	if (!all) {
		ocs_moe_close(channel->moe);
		channel->moe = NULL;
	}
	channel->gate = ocs_moe_gate_open(NULL, rank, ranks);
	PMPI_Comm_set_attr(comm, channel_key, channel);
	return channel;
}

/* Which all-to-all of a training this call is. */
static void row_report(struct channel *channel, const int *counts, int ranks, int ended)
{
	const char *text = getenv("OCS_MOE_LAYERS");
	long layers = text ? atol(text) : 1, at;
	int64_t *row;

	if (layers < 1)
		return;
	at = channel->calls % (4 * layers);
	if (!ended && at < 2 * layers && at % 2 == 0) {
		row = malloc((size_t)ranks * sizeof(*row));
		for (int j = 0; row && j < ranks; j++)
			row[j] = counts[j];
		ocs_moe_gate(channel->gate, (int)(at / 2), channel->calls / (4 * layers), row,
			     ranks);
		free(row);
	}
	ocs_moe_gate_step(channel->gate,
			  (int)(at < 2 * layers ? at / 2 : layers - 1 - (at - 2 * layers) / 2),
			  channel->calls / (4 * layers), at >= 2 * layers, (int)(at % 2), ended);
}

/* Packed, so that any type will do: SIZE[j] bytes for each rank, one after the other. */
static char *buffer_make(const int *counts, MPI_Datatype type, int ranks, MPI_Comm comm,
			 size_t *bytes, size_t *at)
{
	size_t all = 0;
	int size;

	PMPI_Type_size(type, &size);
	(void)comm;
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

static int packed_send(struct channel *channel, const void *send, const int *sendcounts,
		       const int *sdispls, MPI_Datatype sendtype, void *receive,
		       const int *recvcounts, const int *rdispls, MPI_Datatype recvtype,
		       MPI_Comm comm, int ranks)
{
	size_t *vector = calloc((size_t)ranks * 4, sizeof(*vector));
	size_t *out = vector, *out_at = vector + ranks, *in = vector + 2 * ranks,
	       *in_at = vector + 3 * ranks;
	char *from = buffer_make(sendcounts, sendtype, ranks, comm, out, out_at);
	char *to = buffer_make(recvcounts, recvtype, ranks, comm, in, in_at);
	int rc;

	for (int j = 0; j < ranks; j++) {
		int position = 0;

		if (out[j])
			PMPI_Pack(element_at(send, sdispls[j], sendtype), sendcounts[j], sendtype,
				  from + out_at[j], (int)out[j], &position, comm);
	}
	rc = ocs_moe_alltoall(channel->moe, from, out, out_at, to, in, in_at);
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
	struct channel *channel = NULL;
	int rank, ranks, inter, rc;

	PMPI_Comm_test_inter(comm, &inter);
	PMPI_Comm_rank(comm, &rank);
	PMPI_Comm_size(comm, &ranks);
	if (!inter && sendbuf != MPI_IN_PLACE && !getenv("OCS_MOE_OFF"))
		channel = channel_get(comm, rank, ranks);
	if (!channel || !channel->moe)
		return PMPI_Alltoallv(sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts,
				      rdispls, recvtype, comm);
	row_report(channel, sendcounts, ranks, 0);
	rc = packed_send(channel, sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts,
			 rdispls, recvtype, comm, ranks);
	row_report(channel, sendcounts, ranks, 1);
	channel->calls++;
	if (!rc)
		return MPI_SUCCESS;
	fprintf(stderr, "ocs_moe_mpi: rank %d: %s\n", rank, ocs_moe_error(channel->moe));
	PMPI_Comm_call_errhandler(comm, MPI_ERR_OTHER);
	return MPI_ERR_OTHER;
}

/* Channels end with the program: world's attributes are deleted late, when others have gone. */
int MPI_Finalize(void)
{
	struct channel *channel;
	int there = 0;

	if (channel_key != MPI_KEYVAL_INVALID)
		PMPI_Comm_get_attr(MPI_COMM_WORLD, channel_key, &channel, &there);
	if (there)
		PMPI_Comm_delete_attr(MPI_COMM_WORLD, channel_key);
	return PMPI_Finalize();
}
