/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Communicators: which ranks of the job they join, and the groups of the gate that they are. */

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/rails/mailbox.h"
#include "src/rails/shim/mpi_shim.h"

static _Atomic(struct ocs_gate *) gate; /* from MPI_Init to MPI_Finalize */
static int keyval = MPI_KEYVAL_INVALID;
/* How many communicators have the same members: names of those that there were. */
static pthread_mutex_t name_lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t *names;
static size_t name_count, name_room;

struct ocs_gate *ocs_mpi_gate(void)
{
	/* A child of fork has none, and the pointer was copied. */
	return atomic_load(&gate) ? ocs_gate_get() : NULL;
}

int ocs_mpi_refuse(MPI_Comm comm, const char *format, ...)
{
	char text[300];
	va_list list;

	va_start(list, format);
	vsnprintf(text, sizeof(text), format, list);
	va_end(list);
	fprintf(stderr, "slurm-ocs: rank %d: %s\n",
		ocs_gate_get() ? ocs_gate_rank(ocs_gate_get()) : -1, text);
	ocs_mpi()->Comm_call_errhandler(comm, MPI_ERR_OTHER);
	return MPI_ERR_OTHER;
}

static int attribute_copy(MPI_Comm comm, int key, void *extra, void *from, void *to, int *flag)
{
	(void)comm, (void)key, (void)extra, (void)from, (void)to;
	*flag = 0;
	return MPI_SUCCESS;
}

static int attribute_delete(MPI_Comm comm, int key, void *value, void *extra)
{
	(void)comm, (void)key, (void)extra;
	free(value);
	return MPI_SUCCESS;
}

static int rank_compare(const void *a, const void *b)
{
	return (*(const int *)a > *(const int *)b) - (*(const int *)a < *(const int *)b);
}

static bool name_known(uint64_t name)
{
	for (size_t i = 0; i < name_count; i++)
		if (names[i] == name)
			return true;
	return false;
}

static void name_add(uint64_t name)
{
	size_t room = name_room ? name_room * 2 : 16;
	uint64_t *more = names;

	if (name_count == name_room) {
		more = realloc(names, room * sizeof(*names));
		if (!more)
			return;
		names = more;
		name_room = room;
	}
	names[name_count++] = name;
}

/* A number for the communicator that all its members find: they make those of the same members in
 * the same order. */
static uint32_t identity_make(const int *world, int size)
{
	int32_t *sorted = malloc((size_t)size * sizeof(*sorted));
	uint32_t instance = 0;
	uint64_t name;

	if (!sorted)
		return 0;
	memcpy(sorted, world, (size_t)size * sizeof(*sorted));
	qsort(sorted, (size_t)size, sizeof(*sorted), rank_compare);
	pthread_mutex_lock(&name_lock);
	do
		name = ocs_rails_group_name(sorted, (uint32_t)size, instance++);
	while (name_known(name));
	name_add(name);
	pthread_mutex_unlock(&name_lock);
	free(sorted);
	return (uint32_t)(name ^ name >> 32);
}

/* The ranks that GROUP has in MPI_COMM_WORLD. */
static bool group_translate(MPI_Group group, int size, int *world)
{
	const struct mpi_library *mpi = ocs_mpi();
	int *own = malloc((size_t)size * sizeof(*own));
	MPI_Group all;
	bool good;

	if (!own)
		return false;
	for (int i = 0; i < size; i++)
		own[i] = i;
	good = mpi->Comm_group(mpi->world, &all) == MPI_SUCCESS;
	if (good) {
		good = mpi->Group_translate_ranks(group, size, own, all, world) == MPI_SUCCESS;
		mpi->Group_free(&all);
	}
	free(own);
	return good;
}

static struct mpi_comm *comm_learn(MPI_Comm comm, struct ocs_gate *open)
{
	const struct mpi_library *mpi = ocs_mpi();
	int size = 0, inter = 0;
	struct mpi_comm *known;
	MPI_Group group;

	mpi->Comm_test_inter(comm, &inter);
	mpi->Comm_size(comm, &size);
	known = calloc(1, sizeof(*known) + (size_t)(size > 0 ? size : 1) * sizeof(int));
	if (!known)
		return NULL;
	known->inter = inter;
	known->size = size;
	known->group = OCS_GATE_ERROR;
	if (inter)
		snprintf(known->text, sizeof(known->text), "intercommunicators cannot be gated");
	else if (mpi->Comm_group(comm, &group) != MPI_SUCCESS)
		snprintf(known->text, sizeof(known->text), "a communicator has no group");
	else {
		if (group_translate(group, size, known->world)) {
			known->identity = identity_make(known->world, size);
			known->group = ocs_gate_group(open, known->world, (size_t)size);
		}
		if (known->group == OCS_GATE_ERROR)
			snprintf(known->text, sizeof(known->text), "%s", ocs_gate_error());
		mpi->Group_free(&group);
	}
	mpi->Comm_set_attr(comm, keyval, known);
	return known;
}

const struct mpi_comm *ocs_mpi_comm(MPI_Comm comm)
{
	const struct mpi_library *mpi = ocs_mpi();
	struct ocs_gate *open = ocs_mpi_gate();
	struct mpi_comm *known = NULL;
	int flag = 0;

	if (!open || !comm || comm == mpi->comm_null)
		return NULL;
	if (mpi->Comm_get_attr(comm, keyval, &known, &flag) != MPI_SUCCESS)
		return NULL; /* no communicator: the library says so */
	if (!flag)
		known = comm_learn(comm, open);
	return known && known->group != OCS_GATE_FREE ? known : NULL;
}

int ocs_mpi_begin(int result)
{
	const struct mpi_library *mpi = ocs_mpi();
	struct ocs_gate *open = result == MPI_SUCCESS ? ocs_gate_get() : NULL;
	int rank, size;

	if (!open)
		return result;
	mpi->Comm_rank(mpi->world, &rank);
	mpi->Comm_size(mpi->world, &size);
	if (size == 1)
		return result; /* sends to nobody */
	if (rank != ocs_gate_rank(open) || size != ocs_gate_ranks(open))
		return ocs_mpi_refuse(
			mpi->world,
			"rank %d of %d of MPI is not the task's (%d of %d): start the "
			"program by srun, or with --ocs-phases=off",
			rank, size, ocs_gate_rank(open), ocs_gate_ranks(open));
	if (mpi->Comm_create_keyval(attribute_copy, attribute_delete, &keyval, NULL) != MPI_SUCCESS)
		return ocs_mpi_refuse(mpi->world, "no attribute for communicators");
	atomic_store(&gate, open);
	ocs_mpi_comm(mpi->world);
	return result;
}

int ocs_mpi_end(void)
{
	const struct mpi_library *mpi = ocs_mpi();
	struct mpi_pass pass = { OCS_GATE_FREE, 0 };
	int result, rounds = 0;

	while (ocs_mpi_pending()) {
		ocs_mpi_progress();
		ocs_mpi_pause(&rounds);
	}
	/* Connections close there. */
	if (ocs_mpi_gate() && ocs_mpi_enter(mpi->world, &pass) != MPI_SUCCESS)
		pass.group = OCS_GATE_FREE;
	result = mpi->Finalize();
	if (pass.group >= 0)
		ocs_gate_leave(ocs_gate_get(), pass.group, pass.idx, NULL, 0);
	atomic_store(&gate, NULL);
	return result;
}

/* -- what makes communicators ---------------------------------------------- */

/* CALL is a collective of PARENT, which makes *NEW. */
#define COMM_MAKER(PARENT, NEW, CALL)                      \
	do {                                               \
		struct mpi_pass pass;                      \
		int result = ocs_mpi_enter(PARENT, &pass); \
                                                           \
		if (result != MPI_SUCCESS)                 \
			return result;                     \
		result = ocs_mpi()->CALL;                  \
		ocs_mpi_leave(&pass);                      \
		if (result == MPI_SUCCESS)                 \
			ocs_mpi_comm(*(NEW));              \
		return result;                             \
	} while (0)

PUBLIC int MPI_Comm_split(MPI_Comm comm, int color, int key, MPI_Comm *new)
{
	COMM_MAKER(comm, new, Comm_split(comm, color, key, new));
}

PUBLIC int MPI_Comm_split_type(MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm *new)
{
	COMM_MAKER(comm, new, Comm_split_type(comm, type, key, info, new));
}

PUBLIC int MPI_Comm_dup(MPI_Comm comm, MPI_Comm *new)
{
	COMM_MAKER(comm, new, Comm_dup(comm, new));
}

PUBLIC int MPI_Comm_dup_with_info(MPI_Comm comm, MPI_Info info, MPI_Comm *new)
{
	COMM_MAKER(comm, new, Comm_dup_with_info(comm, info, new));
}

PUBLIC int MPI_Comm_create(MPI_Comm comm, MPI_Group group, MPI_Comm *new)
{
	COMM_MAKER(comm, new, Comm_create(comm, group, new));
}

PUBLIC int MPI_Cart_create(MPI_Comm comm, int count, const int dims[], const int periods[],
			   int reorder, MPI_Comm *new)
{
	COMM_MAKER(comm, new, Cart_create(comm, count, dims, periods, reorder, new));
}

PUBLIC int MPI_Cart_sub(MPI_Comm comm, const int remain[], MPI_Comm *new)
{
	COMM_MAKER(comm, new, Cart_sub(comm, remain, new));
}

PUBLIC int MPI_Graph_create(MPI_Comm comm, int count, const int index[], const int edges[],
			    int reorder, MPI_Comm *new)
{
	COMM_MAKER(comm, new, Graph_create(comm, count, index, edges, reorder, new));
}

PUBLIC int MPI_Dist_graph_create(MPI_Comm comm, int count, const int nodes[], const int degrees[],
				 const int targets[], const int weights[], MPI_Info info,
				 int reorder, MPI_Comm *new)
{
	COMM_MAKER(comm, new,
		   Dist_graph_create(comm, count, nodes, degrees, targets, weights, info, reorder,
				     new));
}

PUBLIC int MPI_Dist_graph_create_adjacent(MPI_Comm comm, int in, const int sources[],
					  const int in_weights[], int out, const int to[],
					  const int out_weights[], MPI_Info info, int reorder,
					  MPI_Comm *new)
{
	COMM_MAKER(comm, new,
		   Dist_graph_create_adjacent(comm, in, sources, in_weights, out, to, out_weights,
					      info, reorder, new));
}

/* Of the members of GROUP alone. */
PUBLIC int MPI_Comm_create_group(MPI_Comm comm, MPI_Group group, int tag, MPI_Comm *new)
{
	struct mpi_pass pass = { OCS_GATE_FREE, 0 };
	struct ocs_gate *open = ocs_mpi_gate();
	int result, size = 0, *world;

	ocs_mpi()->Group_size(group, &size);
	if (open && size > 1) {
		world = malloc((size_t)size * sizeof(*world));
		pass.group = world && group_translate(group, size, world) ?
				     ocs_gate_group(open, world, (size_t)size) :
				     OCS_GATE_ERROR;
		free(world);
		if (pass.group == OCS_GATE_ERROR)
			return ocs_mpi_refuse(comm, "%s", ocs_gate_error());
		result = ocs_mpi_enter_group(pass.group, &pass);
		if (result != MPI_SUCCESS)
			return ocs_mpi_refuse(comm, "MPI_Comm_create_group was not granted: %s",
					      ocs_gate_refusal(open));
	}
	result = ocs_mpi()->Comm_create_group(comm, group, tag, new);
	ocs_mpi_leave(&pass);
	if (result == MPI_SUCCESS)
		ocs_mpi_comm(*new);
	return result;
}
