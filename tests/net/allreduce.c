/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* AllReduce and all-to-all, checked on every rank.  Prints "right" on rank 0. */

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#define COUNT 100000

int main(int argc, char **argv)
{
	int rank, size, wrong = 0, total, *in, *out;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	in = malloc(COUNT * sizeof(*in));
	out = malloc(COUNT * sizeof(*out));
	if (!in || !out)
		MPI_Abort(MPI_COMM_WORLD, 1);
	for (int round = 1; round <= 3; round++) {
		for (int i = 0; i < COUNT; i++)
			in[i] = round * rank + i;
		MPI_Allreduce(in, out, COUNT, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
		for (int i = 0; i < COUNT; i++)
			wrong += out[i] != round * size * (size - 1) / 2 + size * i;
	}
	for (int i = 0; i < size; i++)
		in[i] = 1000 * rank + i;
	MPI_Alltoall(in, 1, MPI_INT, out, 1, MPI_INT, MPI_COMM_WORLD);
	for (int i = 0; i < size; i++)
		wrong += out[i] != 1000 * i + rank;
	MPI_Reduce(&wrong, &total, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
	if (rank == 0)
		printf("%d ranks: %s\n", size, total ? "wrong" : "right");
	free(in);
	free(out);
	MPI_Finalize();
	return wrong != 0;
}
