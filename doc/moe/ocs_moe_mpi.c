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
 * $OCS_MOE_LAYERS, of which each has two calls forward and two backward.
 * $OCS_MOE_PLAN has the plan for calls on all of MPI_COMM_WORLD: a file with what ocs_moe_plan takes, read again
 * when it is another one, or the UNIX socket of a controller.  Rank 0 asks it before each such call: a line
 * "plan LAYER MICROBATCH BACKWARD SECOND"; the answer is a plan and a line "end".  $OCS_MOE_EACH is how many ranks
 * a server has (1).  Intercommunicators and MPI_IN_PLACE
 * take the MPI's own way, and so does every call if $OCS_MOE_OFF is set: all ranks alike. */

#include <errno.h>
#include <mpi.h>
#include <netinet/in.h>
#include <arpa/inet.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "ocs_moe.h"
#include "ocs_moe_gate.h"

#define ADDRESS 64

/* What a communicator has got. */
struct channel {
	struct ocs_moe *moe;
	struct ocs_moe_gate *gate;
	long calls;
	bool planned;	  /* the plan's ranks are this communicator's */
	FILE *controller; /* rank 0's, or NULL */
	bool gone;	  /* it was there and is not any more */
	struct stat seen; /* the file that was read last */
};

/* Which all-to-all of a training a call is. */
struct step {
	int layer, backward, second;
	long microbatch;
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
	if (channel->controller)
		fclose(channel->controller);
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
	int there, good, all, same;

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
	PMPI_Comm_compare(comm, MPI_COMM_WORLD, &same);
	channel->planned = (same == MPI_IDENT || same == MPI_CONGRUENT) && getenv("OCS_MOE_PLAN");
	PMPI_Comm_set_attr(comm, channel_key, channel);
	return channel;
}

static struct step step_make(const struct channel *channel)
{
	const char *text = getenv("OCS_MOE_LAYERS");
	long layers = text && atol(text) > 0 ? atol(text) : 1, at = channel->calls % (4 * layers);

	return (struct step){
		.layer = (int)(at < 2 * layers ? at / 2 : layers - 1 - (at - 2 * layers) / 2),
		.backward = at >= 2 * layers,
		.second = (int)(at % 2),
		.microbatch = channel->calls / (4 * layers),
	};
}

static void row_report(struct channel *channel, const int *counts, int ranks, int ended)
{
	struct step step = step_make(channel);
	int64_t *row;

	if (!ended && !step.backward && !step.second) {
		row = malloc((size_t)ranks * sizeof(*row));
		for (int j = 0; row && j < ranks; j++)
			row[j] = counts[j];
		if (row)
			ocs_moe_gate(channel->gate, step.layer, step.microbatch, row, ranks);
		free(row);
	}
	ocs_moe_gate_step(channel->gate, step.layer, step.microbatch, step.backward, step.second,
			  ended);
}

/* Appends a line to TEXT, which may move; NULL without memory. */
static char *line_add(char *text, const char *line)
{
	size_t old = text ? strlen(text) : 0, more = strlen(line);
	char *longer = realloc(text, old + more + 1);

	if (!longer) {
		free(text);
		return NULL;
	}
	memcpy(longer + old, line, more + 1);
	return longer;
}

static FILE *controller_open(const char *path)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	FILE *file = NULL;

	if (strlen(path) < sizeof(at.sun_path)) {
		strcpy(at.sun_path, path);
		if (!connect(fd, (struct sockaddr *)&at, sizeof(at)))
			file = fdopen(fd, "r+");
	}
	if (!file && fd >= 0)
		close(fd);
	return file;
}

/* What the controller wants for this call; NULL: it is gone, and all stays as it is. */
static char *controller_ask(struct channel *channel)
{
	struct step step = step_make(channel);
	char line[512], *text = line_add(NULL, "");

	fprintf(channel->controller, "plan %d %ld %d %d\n", step.layer, step.microbatch,
		step.backward, step.second);
	fflush(channel->controller);
	while (text && fgets(line, sizeof(line), channel->controller)) {
		if (!strcmp(line, "end\n")) {
			fseek(channel->controller, 0, SEEK_CUR); /* from reading to writing */
			return text;
		}
		text = line_add(text, line);
	}
	free(text);
	fclose(channel->controller);
	channel->controller = NULL;
	channel->gone = true;
	return NULL;
}

/* What is in the plan's file if it is not the one that was read last; NULL: there is nothing new. */
static char *plan_read(struct channel *channel, const char *path)
{
	struct stat now;
	char line[512], *text = NULL;
	FILE *file;

	if (stat(path, &now) || (now.st_ino == channel->seen.st_ino &&
				 now.st_mtim.tv_sec == channel->seen.st_mtim.tv_sec &&
				 now.st_mtim.tv_nsec == channel->seen.st_mtim.tv_nsec))
		return NULL;
	file = S_ISREG(now.st_mode) ? fopen(path, "r") : NULL;
	if (!file)
		return NULL;
	channel->seen = now;
	text = line_add(NULL, "");
	while (text && fgets(line, sizeof(line), file))
		text = line_add(text, line);
	fclose(file);
	return text;
}

/* Rank 0 gets the plan of this call, all ranks take it. */
static void plan_follow(struct channel *channel, int rank, MPI_Comm comm)
{
	const char *path = getenv("OCS_MOE_PLAN"), *each = getenv("OCS_MOE_EACH");
	char *text = NULL;
	struct stat kind;
	int length = -1;

	if (!rank) {
		if (!channel->controller && !channel->gone && !stat(path, &kind) &&
		    S_ISSOCK(kind.st_mode))
			channel->controller = controller_open(path);
		text = channel->controller ? controller_ask(channel) : plan_read(channel, path);
		length = text ? (int)strlen(text) : -1;
	}
	PMPI_Bcast(&length, 1, MPI_INT, 0, comm);
	if (length < 0)
		return;
	if (rank)
		text = malloc((size_t)length + 1);
	if (!text)
		MPI_Abort(comm, 1);
	PMPI_Bcast(text, length + 1, MPI_CHAR, 0, comm);
	if (ocs_moe_plan(channel->moe, text, each ? atoi(each) : 1, 1000) < 0)
		fprintf(stderr, "ocs_moe_mpi: rank %d: %s\n", rank, ocs_moe_error(channel->moe));
	free(text);
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
	if (channel->planned)
		plan_follow(channel, rank, comm);
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
