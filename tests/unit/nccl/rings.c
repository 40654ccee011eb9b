/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Prints the rings, or lists of ranks, that doc/rings/ocs_rings.h finds.  With a third argument it says
 * instead what NCCL_GRAPH_FILE is for each of the latter.  Built with mpicc it also makes a
 * communicator for each and passes every rank's node once around it: each has to come
 * from the node before, or the same. */

#ifdef WITH_MPI
#include <mpi.h>
#endif
#include "doc/rings/ocs_rings.h"

static void print(const struct ocs_rings *rings)
{
	for (int r = 0; r < rings->count; r++) {
		printf("ring %d, group %d, step %d:", r, rings->ring[r].group, rings->ring[r].step);
		for (int i = 0; i < rings->ring[r].length; i++)
			printf(" %s", rings->node[rings->ring[r].nodes[i]]);
		printf("\n");
	}
}

static void print_orders(const struct ocs_orders *orders)
{
	for (int o = 0; o < orders->count; o++) {
		const struct ocs_order *one = &orders->order[o];

		for (int l = 0; l < one->count; l++) {
			printf("dimension %d, %s %d:", one->dim, one->ring ? "ring" : "line", l);
			for (int i = 0; i < one->length; i++)
				printf(" %d", one->ranks[l * one->length + i]);
			printf("\n");
		}
	}
}

/* This task's lists, and what NCCL is given for them. */
static void print_graphs(const struct ocs_orders *orders)
{
	for (int o = 0; o < orders->count; o++) {
		int place = -1, list = ocs_orders_list(orders, o, -1, &place);

		printf("%d %d", list, place);
#ifdef _GNU_SOURCE
		printf(" %d", ocs_orders_graph(orders, o));
		printf(" %s", getenv("NCCL_GRAPH_FILE") ? getenv("NCCL_GRAPH_FILE") : "-");
#endif
		printf("\n");
	}
}

/* Of a placement.  Exit status. */
static int orders_main(const char *path, int graphs)
{
	struct ocs_orders *orders = ocs_orders_read(path);

	if (!orders)
		return 1;
	if (graphs)
		print_graphs(orders);
	else
		print_orders(orders);
	ocs_orders_free(orders);
	return 0;
}

#ifdef WITH_MPI
static int around(const struct ocs_rings *rings, int number)
{
	const struct ocs_ring *ring = &rings->ring[number];
	int place = ocs_rings_place(rings, number, NULL), before = -1, rank, size, bad = 0, total;
	MPI_Comm comm;

	ocs_rings_split(rings, number, MPI_COMM_WORLD, &comm);
	if ((place < 0) != (comm == MPI_COMM_NULL))
		return 1;
	if (place < 0)
		return 0;
	MPI_Comm_rank(comm, &rank);
	MPI_Comm_size(comm, &size);
	MPI_Sendrecv(&place, 1, MPI_INT, (rank + 1) % size, 0, &before, 1, MPI_INT,
		     (rank + size - 1) % size, 0, comm, MPI_STATUS_IGNORE);
	bad = before != place && (before + 1) % ring->length != place;
	MPI_Allreduce(&bad, &total, 1, MPI_INT, MPI_SUM, comm);
	MPI_Comm_free(&comm);
	return total;
}
#endif

int main(int argc, char **argv)
{
	struct ocs_rings *rings;
	int rank = 0, bad;

	if (argc > 1 && strstr(argv[1], "placement"))
		return orders_main(argv[1], argc > 2);
	rings = ocs_rings_read(argc > 1 ? argv[1] : NULL);
	bad = !rings;
#ifdef WITH_MPI
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	for (int r = 0; rings && r < rings->count; r++)
		bad += around(rings, r);
	MPI_Allreduce(MPI_IN_PLACE, &bad, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	MPI_Finalize();
#endif
	if (rings && rank == 0)
		print(rings);
	ocs_rings_free(rings);
	return bad != 0;
}
