/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* MPI_Alltoallv of random sizes, on world and on a part of it, with plain and with strided types; prints a
 * checksum of all that arrived in the order in which it arrived. */

#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define CALLS 8
#define MOST 30000

static uint64_t mix(uint64_t x)
{
	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

static int pair_count(int call, int from, int to)
{
	uint64_t x = mix((uint64_t)call * 1000 + (uint64_t)from * 30 + (uint64_t)to + 1);

	return x % 4 ? (int)((x >> 8) % MOST) & ~1 : 0;
}

static uint64_t call_run(int call, MPI_Comm comm)
{
	int rank, ranks, sent = 0, got = 0, counts[64], at[64], incounts[64], inat[64];
	MPI_Datatype pair;
	uint64_t sum = 0;
	int *out, *in;

	MPI_Comm_rank(comm, &rank);
	MPI_Comm_size(comm, &ranks);
	/* Two integers with a hole between them: received as such, sent as plain ones. */
	MPI_Type_vector(2, 1, 2, MPI_INT, &pair);
	MPI_Type_create_resized(pair, 0, 4 * sizeof(int), &pair);
	MPI_Type_commit(&pair);
	for (int j = 0; j < ranks; j++) {
		counts[j] = pair_count(call, rank, j);
		at[j] = sent;
		sent += counts[j] + 3;
		incounts[j] = pair_count(call, j, rank) / (call % 2 ? 2 : 1);
		inat[j] = got;
		got += incounts[j] + 1;
	}
	out = malloc(sizeof(*out) * (size_t)(sent + 1));
	in = calloc((size_t)got * 4 + 4, sizeof(*in));
	for (int k = 0; k < sent; k++)
		out[k] = (int)mix((uint64_t)k * 77 + (uint64_t)rank);
	MPI_Alltoallv(out, counts, at, MPI_INT, in, incounts, inat, call % 2 ? pair : MPI_INT,
		      comm);
	for (int k = 0; k < got * 4; k++)
		sum = mix(sum + (uint64_t)(unsigned int)in[k]);
	MPI_Type_free(&pair);
	free(out);
	free(in);
	return sum;
}

int main(int argc, char **argv)
{
	uint64_t sum = 0, *all;
	int rank, ranks;
	MPI_Comm half;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
	all = calloc((size_t)ranks, sizeof(*all));
	for (int call = 0; call < CALLS; call++)
		sum = mix(sum + call_run(call, call % 3 == 2 ? half : MPI_COMM_WORLD));
	MPI_Gather(&sum, 1, MPI_UINT64_T, all, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
	for (int j = 0; !rank && j < ranks; j++)
		printf("rank %d: %016llx\n", j, (unsigned long long)all[j]);
	free(all);
	MPI_Comm_free(&half);
	MPI_Finalize();
	return 0;
}
