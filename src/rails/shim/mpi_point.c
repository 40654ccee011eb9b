/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Sends and receives: each pair of ranks has operations of its own for each direction, communicator
 * and tag, since receives may be posted in another order than sends are. */

#include <stdlib.h>

#include "src/rails/shim/mpi_shim.h"

struct message {
	struct mpi_operation operation;
	const void *send;
	void *receive;
	int count, partner, tag;
	MPI_Datatype type;
};

/* 30 bits of a pair's number. */
static uint32_t pair_tag(const struct mpi_comm *known, int tag)
{
	uint64_t mixed =
		((uint64_t)known->identity << 32 | (uint32_t)tag) * UINT64_C(0x9e3779b97f4a7c15);

	return (uint32_t)(mixed >> 34);
}

/* The gate's group of messages with PARTNER: its number, OCS_GATE_FREE, or OCS_GATE_ERROR where
 * *RESULT is the error. */
static int pair_get(MPI_Comm comm, int partner, int tag, bool send, int *result)
{
	const struct mpi_comm *known = partner == MPI_PROC_NULL ? NULL : ocs_mpi_comm(comm);
	struct ocs_gate *gate = ocs_mpi_gate();
	int own, other, group;

	*result = MPI_SUCCESS;
	if (!known || !gate)
		return OCS_GATE_FREE;
	if (known->group == OCS_GATE_ERROR)
		*result = ocs_mpi_refuse(comm, "%s", known->text);
	else if (!send && (partner == MPI_ANY_SOURCE || tag == MPI_ANY_TAG))
		*result = ocs_mpi_refuse(comm,
					 "a receive with MPI_ANY_SOURCE or MPI_ANY_TAG cannot be "
					 "gated; run the program with --ocs-phases=off");
	else if (partner < 0 || partner >= known->size)
		return OCS_GATE_FREE; /* the library says so */
	else {
		ocs_mpi()->Comm_rank(comm, &own);
		own = known->world[own];
		other = known->world[partner];
		group = ocs_gate_pair(gate, send ? own : other, send ? other : own,
				      pair_tag(known, tag));
		if (group != OCS_GATE_ERROR)
			return group;
		*result = ocs_mpi_refuse(comm, "%s", ocs_gate_error());
	}
	return OCS_GATE_ERROR;
}

static int send_start(struct mpi_operation *operation, MPI_Request *request)
{
	struct message *message = (struct message *)operation;

	return ocs_mpi()->Issend(message->send, message->count, message->type, message->partner,
				 message->tag, operation->comm, request);
}

static int receive_start(struct mpi_operation *operation, MPI_Request *request)
{
	struct message *message = (struct message *)operation;

	return ocs_mpi()->Irecv(message->receive, message->count, message->type, message->partner,
				message->tag, operation->comm, request);
}

static struct message *send_make(const void *buffer, int count, MPI_Datatype type, int to, int tag)
{
	struct message *message = calloc(1, sizeof(*message));

	if (message) {
		message->operation.start = send_start;
		message->send = buffer;
		message->count = count;
		message->type = type;
		message->partner = to;
		message->tag = tag;
	}
	return message;
}

static struct message *receive_make(void *buffer, int count, MPI_Datatype type, int from, int tag)
{
	struct message *message = send_make(NULL, count, type, from, tag);

	if (message) {
		message->operation.start = receive_start;
		message->operation.early = true;
		message->receive = buffer;
	}
	return message;
}

static int message_run(struct message *message, MPI_Comm comm, int group, MPI_Status *status)
{
	int result =
		message ? ocs_mpi_submit(&message->operation, comm, group, NULL) : MPI_ERR_NO_MEM;

	return result == MPI_SUCCESS ? ocs_mpi_complete(&message->operation, status) : result;
}

/* What passes freely still lets held operations proceed. */
#define SEND(NAME, INAME)                                                                        \
	PUBLIC int MPI_##NAME(const void *buffer, int count, MPI_Datatype type, int to, int tag, \
			      MPI_Comm comm)                                                     \
	{                                                                                        \
		int result, group = pair_get(comm, to, tag, true, &result);                      \
		MPI_Request request;                                                             \
                                                                                                 \
		if (group == OCS_GATE_FREE && ocs_mpi_pending()) {                               \
			result = ocs_mpi()->INAME(buffer, count, type, to, tag, comm, &request); \
			return result != MPI_SUCCESS ? result :                                  \
						       MPI_Wait(&request, MPI_STATUS_IGNORE);    \
		}                                                                                \
		if (group == OCS_GATE_FREE)                                                      \
			return ocs_mpi()->NAME(buffer, count, type, to, tag, comm);              \
		if (group == OCS_GATE_ERROR)                                                     \
			return result;                                                           \
		return message_run(send_make(buffer, count, type, to, tag), comm, group,         \
				   MPI_STATUS_IGNORE);                                           \
	}

#define ISEND(NAME)                                                                              \
	PUBLIC int MPI_##NAME(const void *buffer, int count, MPI_Datatype type, int to, int tag, \
			      MPI_Comm comm, MPI_Request *request)                               \
	{                                                                                        \
		int result, group = pair_get(comm, to, tag, true, &result);                      \
		struct message *message;                                                         \
                                                                                                 \
		if (group == OCS_GATE_FREE)                                                      \
			return ocs_mpi()->NAME(buffer, count, type, to, tag, comm, request);     \
		if (group == OCS_GATE_ERROR)                                                     \
			return result;                                                           \
		message = send_make(buffer, count, type, to, tag);                               \
		return message ? ocs_mpi_submit(&message->operation, comm, group, request) :     \
				 MPI_ERR_NO_MEM;                                                 \
	}

SEND(Send, Isend)
SEND(Ssend, Issend)
SEND(Rsend, Irsend)
SEND(Bsend, Ibsend)
ISEND(Isend)
ISEND(Issend)
ISEND(Irsend)
ISEND(Ibsend)

PUBLIC int MPI_Recv(void *buffer, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
		    MPI_Status *status)
{
	int result, group = pair_get(comm, from, tag, false, &result);
	MPI_Request request;

	if (group == OCS_GATE_FREE && ocs_mpi_pending()) {
		result = ocs_mpi()->Irecv(buffer, count, type, from, tag, comm, &request);
		return result != MPI_SUCCESS ? result : MPI_Wait(&request, status);
	}
	if (group == OCS_GATE_FREE)
		return ocs_mpi()->Recv(buffer, count, type, from, tag, comm, status);
	if (group == OCS_GATE_ERROR)
		return result;
	return message_run(receive_make(buffer, count, type, from, tag), comm, group, status);
}

PUBLIC int MPI_Irecv(void *buffer, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
		     MPI_Request *request)
{
	int result, group = pair_get(comm, from, tag, false, &result);
	struct message *message;

	if (group == OCS_GATE_FREE)
		return ocs_mpi()->Irecv(buffer, count, type, from, tag, comm, request);
	if (group == OCS_GATE_ERROR)
		return result;
	message = receive_make(buffer, count, type, from, tag);
	return message ? ocs_mpi_submit(&message->operation, comm, group, request) : MPI_ERR_NO_MEM;
}

PUBLIC int MPI_Sendrecv(const void *send, int n, MPI_Datatype send_type, int to, int send_tag,
			void *receive, int m, MPI_Datatype type, int from, int tag, MPI_Comm comm,
			MPI_Status *status)
{
	MPI_Request request;
	int result, sent;

	if (!ocs_mpi_comm(comm) && !ocs_mpi_pending())
		return ocs_mpi()->Sendrecv(send, n, send_type, to, send_tag, receive, m, type, from,
					   tag, comm, status);
	result = MPI_Irecv(receive, m, type, from, tag, comm, &request);
	if (result != MPI_SUCCESS)
		return result;
	sent = MPI_Send(send, n, send_type, to, send_tag, comm);
	result = MPI_Wait(&request, status);
	return sent != MPI_SUCCESS ? sent : result;
}

PUBLIC int MPI_Sendrecv_replace(void *buffer, int count, MPI_Datatype type, int to, int send_tag,
				int from, int tag, MPI_Comm comm, MPI_Status *status)
{
	const struct mpi_library *mpi = ocs_mpi();
	int result, size = 0, at = 0;
	char *copy;

	if (!ocs_mpi_comm(comm))
		return mpi->Sendrecv_replace(buffer, count, type, to, send_tag, from, tag, comm,
					     status);
	result = mpi->Pack_size(count, type, comm, &size);
	if (result != MPI_SUCCESS)
		return result;
	copy = malloc((size_t)size + 1);
	if (!copy)
		return MPI_ERR_NO_MEM;
	result = mpi->Pack(buffer, count, type, copy, size, &at, comm);
	if (result == MPI_SUCCESS)
		result = MPI_Sendrecv(copy, at, mpi->packed, to, send_tag, buffer, count, type,
				      from, tag, comm, status);
	free(copy);
	return result;
}

PUBLIC int MPI_Iprobe(int from, int tag, MPI_Comm comm, int *flag, MPI_Status *status)
{
	int result, group = pair_get(comm, from, tag, false, &result);
	bool granted = true;

	ocs_mpi_progress();
	if (group == OCS_GATE_ERROR)
		return result;
	if (group >= 0)
		result = ocs_mpi_probe(comm, group, &granted);
	*flag = 0;
	if (result != MPI_SUCCESS || !granted)
		return result;
	return ocs_mpi()->Iprobe(from, tag, comm, flag, status);
}

PUBLIC int MPI_Probe(int from, int tag, MPI_Comm comm, MPI_Status *status)
{
	int flag = 0, rounds = 0, result;

	if (!ocs_mpi_comm(comm) && !ocs_mpi_pending())
		return ocs_mpi()->Probe(from, tag, comm, status);
	for (;;) {
		result = MPI_Iprobe(from, tag, comm, &flag, status);
		if (flag || result != MPI_SUCCESS)
			return result;
		ocs_mpi_pause(&rounds);
	}
}
