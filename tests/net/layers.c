/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* MPI_Alltoallv as a mixture of experts calls it: LAYERS layers forward and backward, each with a matrix of its own
 * that is skewed.  Prints a checksum of all that arrived, and the seconds of each pass. */

#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define RANKS 16
#define LAYERS 3

static uint64_t mix(uint64_t x)
{
	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

/* Of UNIT words most go to two ranks, other ones in each layer. */
static int pair_words(int layer, int pass, int from, int to, int ranks, int unit)
{
	int near = (from + 1 + layer) % ranks, far = (from + ranks - 1 - layer) % ranks;
	int noise = (int)(mix((uint64_t)(((pass * 7 + layer) * 64 + from) * 64 + to)) % 64);

	return (to == near || to == far ? unit * 7 / 16 : unit / 64) + noise;
}

static uint64_t exchange(int layer, int pass, int back, int ranks, int rank, int unit)
{
	int out[RANKS], out_at[RANKS], in[RANKS], in_at[RANKS], sent = 0, got = 0;
	uint64_t sum = 0, *send, *receive;

	for (int j = 0; j < ranks; j++) {
		out[j] = back ? pair_words(layer, pass, j, rank, ranks, unit) :
				pair_words(layer, pass, rank, j, ranks, unit);
		in[j] = back ? pair_words(layer, pass, rank, j, ranks, unit) :
			       pair_words(layer, pass, j, rank, ranks, unit);
		out_at[j] = sent;
		in_at[j] = got;
		sent += out[j];
		got += in[j];
	}
	send = malloc(sizeof(*send) * (size_t)sent);
	receive = malloc(sizeof(*receive) * (size_t)got);
	for (int k = 0; k < sent; k++)
		send[k] = mix((uint64_t)k * 77 + (uint64_t)(rank * 31 + pass));
	MPI_Alltoallv(send, out, out_at, MPI_UINT64_T, receive, in, in_at, MPI_UINT64_T,
		      MPI_COMM_WORLD);
	for (int k = 0; k < got; k++)
		sum = mix(sum + receive[k]);
	free(send);
	free(receive);
	return sum;
}

int main(int argc, char **argv)
{
	int rank, ranks, passes = 4, unit;
	uint64_t sum = 0, all;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	unit = argc > 1 ? atoi(argv[1]) : 32768;
	for (int pass = 0; pass < passes && ranks <= RANKS; pass++) {
		double start = MPI_Wtime();

		for (int l = 0; l < LAYERS; l++)
			for (int second = 0; second < 2; second++)
				sum = mix(sum + exchange(l, pass, second, ranks, rank, unit));
		for (int l = LAYERS - 1; l >= 0; l--)
			for (int second = 0; second < 2; second++)
				sum = mix(sum + exchange(l, pass, second, ranks, rank, unit));
		if (!rank)
			printf("pass %d: %.3f s\n", pass, MPI_Wtime() - start);
	}
	MPI_Reduce(&sum, &all, 1, MPI_UINT64_T, MPI_BXOR, 0, MPI_COMM_WORLD);
	if (!rank)
		printf("checksum %016llx\n", (unsigned long long)all);
	MPI_Finalize();
	return 0;
}
