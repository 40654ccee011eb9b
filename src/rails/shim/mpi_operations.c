/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Operations that are under way. */

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "src/rails/shim/mpi_shim.h"
#include "src/rails/shim/sockets.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct mpi_operation *first, **last = &first; /* not over, in order of arrival */
static struct mpi_operation *probes;		     /* arrived, and no receive took them over */
static _Atomic unsigned under_way;

bool ocs_mpi_pending(void)
{
	return atomic_load(&under_way) > 0;
}

void ocs_mpi_pause(int *rounds)
{
	struct timespec pause = { 0, 20000 };

	if (++*rounds < 100)
		return;
	if (*rounds < 200)
		sched_yield();
	else {
		pause.tv_nsec = *rounds < 1000 ? 20000 : 200000;
		nanosleep(&pause, NULL);
	}
}

/* The library's own queues: any call that looks for messages empties them. */
static void library_progress(void)
{
	const struct mpi_library *mpi = ocs_mpi();
	int flag;

	mpi->Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, mpi->self, &flag, MPI_STATUS_IGNORE);
}

/* -- blocking collectives --------------------------------------------------- */

static _Thread_local char why[240]; /* the last group was refused */

int ocs_mpi_enter_group(int group, struct mpi_pass *pass)
{
	struct ocs_gate *gate = ocs_mpi_gate();
	_Atomic uint32_t *word;
	int rounds = 0, result;

	*pass = (struct mpi_pass){ group, 0 };
	if (group < 0 || !gate)
		return MPI_SUCCESS;
	word = calloc(1, sizeof(*word));
	if (!word || ocs_gate_reserve(gate, group, &pass->idx) ||
	    ocs_gate_arrive_now(gate, group, pass->idx, word)) {
		free(word);
		snprintf(why, sizeof(why), "%s", ocs_gate_error());
		return MPI_ERR_OTHER;
	}
	/* Others may need what this rank sent before and the library still queues. */
	while (!atomic_load(word)) {
		ocs_mpi_progress();
		ocs_mpi_pause(&rounds);
	}
	result = atomic_load(word) == 1 ? MPI_SUCCESS : MPI_ERR_OTHER;
	if (result != MPI_SUCCESS)
		snprintf(why, sizeof(why), "%s", ocs_gate_refusal(gate));
	free(word);
	return result;
}

int ocs_mpi_enter(MPI_Comm comm, struct mpi_pass *pass)
{
	const struct mpi_comm *known = ocs_mpi_comm(comm);

	*pass = (struct mpi_pass){ OCS_GATE_FREE, 0 };
	if (!known)
		return MPI_SUCCESS;
	if (known->group == OCS_GATE_ERROR)
		return ocs_mpi_refuse(comm, "%s", known->text);
	if (ocs_mpi_enter_group(known->group, pass) != MPI_SUCCESS)
		return ocs_mpi_refuse(comm, "an operation of %d ranks was not granted: %s",
				      known->size, why);
	return MPI_SUCCESS;
}

void ocs_mpi_leave(const struct mpi_pass *pass)
{
	struct ocs_gate *gate = ocs_gate_get();
	int rounds = 0;
	struct timespec begin, now;

	if (pass->group < 0 || !gate)
		return;
	clock_gettime(CLOCK_MONOTONIC, &begin);
	do {
		ocs_mpi_progress();
		if (ocs_shim_sockets_drained())
			break;
		ocs_mpi_pause(&rounds);
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while (now.tv_sec - begin.tv_sec < 10);
	ocs_gate_leave(gate, pass->group, pass->idx, NULL, 0);
}

/* -- requests ---------------------------------------------------------------- */

static int request_query(void *data, MPI_Status *status)
{
	const struct mpi_operation *operation = data;

	*status = operation->status;
	return operation->error;
}

static int request_free(void *data)
{
	free(data);
	return MPI_SUCCESS;
}

/* What has arrived at the gate is over when its partners have had it. */
static int request_cancel(void *data, int complete)
{
	(void)data, (void)complete;
	return MPI_SUCCESS;
}

static void operation_over(struct mpi_operation *operation, int error)
{
	MPI_Request user = operation->user;
	bool generalised = operation->generalised;

	free(operation->word);
	operation->error = error;
	atomic_fetch_sub(&under_way, 1);
	/* The program may free it from here on. */
	atomic_store(&operation->state, MPI_OVER);
	if (generalised)
		ocs_mpi()->Grequest_complete(user);
}

/* Whether an earlier operation of the same group is not started yet. */
static bool turn_waits(const struct mpi_operation *operation)
{
	for (const struct mpi_operation *other = first; other != operation; other = other->next)
		if (other->group == operation->group && other->state == MPI_HELD)
			return true;
	return false;
}

static void operation_advance(struct mpi_operation *operation)
{
	const struct mpi_library *mpi = ocs_mpi();
	uint32_t word = atomic_load(operation->word);
	int flag = 0, result;

	if (operation->state == MPI_HELD && (word == 1 || operation->early) &&
	    !turn_waits(operation)) {
		operation->error = operation->start(operation, &operation->request);
		operation->state = operation->error ? MPI_DRAINING : MPI_RUNNING;
	}
	if (operation->state == MPI_RUNNING && word == 1) {
		result = mpi->Test(&operation->request, &flag, &operation->status);
		if (result != MPI_SUCCESS)
			operation->error = result;
		if (flag || result != MPI_SUCCESS)
			operation->state = MPI_DRAINING;
	}
}

/* Goes through the list once, with LOCK held.  Returns one that is over, taken out, or NULL. */
static struct mpi_operation *operation_next(struct ocs_gate *gate)
{
	bool drained = false, looked = false;

	for (struct mpi_operation **link = &first; *link; link = &(*link)->next) {
		struct mpi_operation *operation = *link;
		bool refused = atomic_load(operation->word) == 2;

		operation_advance(operation);
		if (operation->state == MPI_DRAINING && !looked) {
			drained = ocs_shim_sockets_drained();
			looked = true;
		}
		if (!refused && (operation->state != MPI_DRAINING || !drained))
			continue;
		if (!refused)
			ocs_gate_leave(gate, operation->group, operation->idx, NULL, 0);
		else
			operation->error = MPI_ERR_OTHER;
		*link = operation->next;
		if (last == &operation->next)
			last = link;
		return operation;
	}
	return NULL;
}

void ocs_mpi_progress(void)
{
	struct ocs_gate *gate = ocs_gate_get();
	struct mpi_operation *operation;
	bool refused;

	library_progress();
	while (gate && ocs_mpi_pending() && !pthread_mutex_trylock(&lock)) {
		operation = operation_next(gate);
		refused = operation && atomic_load(operation->word) == 2;
		pthread_mutex_unlock(&lock);
		if (!operation)
			break;
		if (refused)
			ocs_mpi_refuse(operation->comm, "an operation was not granted: %s",
				       ocs_gate_refusal(ocs_gate_get()));
		operation_over(operation, operation->error);
	}
}

static int operation_arrive(struct mpi_operation *operation, int group)
{
	struct ocs_gate *gate = ocs_mpi_gate();

	operation->group = group;
	operation->word = calloc(1, sizeof(*operation->word));
	if (gate && operation->word && !ocs_gate_reserve(gate, group, &operation->idx) &&
	    !ocs_gate_arrive_now(gate, group, operation->idx, operation->word))
		return MPI_SUCCESS;
	free(operation->word);
	return ocs_mpi_refuse(operation->comm, "%s", ocs_gate_error());
}

/* -- probes ------------------------------------------------------------------ */

static struct mpi_operation **probe_find(int group)
{
	struct mpi_operation **link = &probes;

	while (*link && (*link)->group != group)
		link = &(*link)->next;
	return link;
}

int ocs_mpi_probe(MPI_Comm comm, int group, bool *granted)
{
	struct mpi_operation **link, *operation;
	int result = MPI_SUCCESS;
	uint32_t word = 0;

	pthread_mutex_lock(&lock);
	link = probe_find(group);
	if (!*link) {
		operation = calloc(1, sizeof(*operation));
		if (!operation)
			result = MPI_ERR_NO_MEM;
		else {
			operation->comm = comm;
			result = operation_arrive(operation, group);
			if (result == MPI_SUCCESS)
				*link = operation;
			else
				free(operation);
		}
	}
	if (result == MPI_SUCCESS)
		word = atomic_load((*link)->word);
	pthread_mutex_unlock(&lock);
	*granted = word == 1;
	return word == 2 ? ocs_mpi_refuse(comm, "an operation was not granted: %s",
					  ocs_gate_refusal(ocs_gate_get())) :
			   result;
}

int ocs_mpi_submit(struct mpi_operation *operation, MPI_Comm comm, int group, MPI_Request *user)
{
	const struct mpi_library *mpi = ocs_mpi();
	struct mpi_operation **probed;
	int result = MPI_SUCCESS;

	operation->comm = comm;
	operation->request = mpi->request_null;
	if (user) {
		result = mpi->Grequest_start(request_query, request_free, request_cancel, operation,
					     &operation->user);
		if (result != MPI_SUCCESS) {
			free(operation);
			return result;
		}
		operation->generalised = true;
		*user = operation->user;
	}
	pthread_mutex_lock(&lock);
	probed = operation->early ? probe_find(group) : NULL;
	if (probed && *probed) {
		struct mpi_operation *before = *probed;

		operation->group = group;
		operation->idx = before->idx;
		operation->word = before->word;
		*probed = before->next;
		free(before);
	} else
		result = operation_arrive(operation, group);
	if (result == MPI_SUCCESS) {
		atomic_fetch_add(&under_way, 1);
		operation->next = NULL;
		*last = operation;
		last = &operation->next;
		operation_advance(operation);
	}
	pthread_mutex_unlock(&lock);
	if (result != MPI_SUCCESS && !user)
		free(operation);
	return result;
}

int ocs_mpi_complete(struct mpi_operation *operation, MPI_Status *status)
{
	int rounds = 0, result;

	while (atomic_load(&operation->state) != MPI_OVER) {
		ocs_mpi_progress();
		ocs_mpi_pause(&rounds);
	}
	result = operation->error;
	if (status != MPI_STATUS_IGNORE)
		*status = operation->status;
	free(operation);
	return result;
}
