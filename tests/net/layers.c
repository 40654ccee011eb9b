/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* MPI_Alltoallv as a mixture of experts calls it: LAYERS layers forward and backward, each with a matrix of its own
 * that is skewed.  Prints the seconds of each pass and a checksum of all that has arrived, and ends where a word
 * is wrong.
 *
 *     layers [WORDS [PASSES [FILE]]]
 *
 * PASSES without FILE; else until FILE is there. */

#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

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

/* What word AT of all that RANK sends in a pass is. */
static uint64_t word_make(int rank, int pass, int at)
{
	return mix((uint64_t)at * 77 + (uint64_t)(rank * 31 + pass));
}

/* Words from FROM to TO; BACK: results. */
static int sent_words(int layer, int pass, int back, int from, int to, int ranks, int unit)
{
	return back ? pair_words(layer, pass, to, from, ranks, unit) :
		      pair_words(layer, pass, from, to, ranks, unit);
}

/* Whether those that FROM has sent to TO are these. */
static int words_right(const uint64_t *words, int layer, int pass, int back, int from, int to,
		       int ranks, int unit)
{
	int before = 0, count = sent_words(layer, pass, back, from, to, ranks, unit), k = 0;

	for (int j = 0; j < to; j++)
		before += sent_words(layer, pass, back, from, j, ranks, unit);
	while (k < count && words[k] == word_make(from, pass, before + k))
		k++;
	return k == count;
}

static uint64_t exchange(int layer, int pass, int back, int ranks, int rank, int unit)
{
	int out[RANKS], out_at[RANKS], in[RANKS], in_at[RANKS], sent = 0, got = 0;
	uint64_t sum = 0, *send, *receive;

	for (int j = 0; j < ranks; j++) {
		out[j] = sent_words(layer, pass, back, rank, j, ranks, unit);
		in[j] = sent_words(layer, pass, back, j, rank, ranks, unit);
		out_at[j] = sent;
		in_at[j] = got;
		sent += out[j];
		got += in[j];
	}
	send = malloc(sizeof(*send) * (size_t)sent);
	receive = malloc(sizeof(*receive) * (size_t)got);
	for (int k = 0; k < sent; k++)
		send[k] = word_make(rank, pass, k);
	MPI_Alltoallv(send, out, out_at, MPI_UINT64_T, receive, in, in_at, MPI_UINT64_T,
		      MPI_COMM_WORLD);
	for (int j = 0; j < ranks; j++)
		if (!words_right(receive + in_at[j], layer, pass, back, j, rank, ranks, unit)) {
			fprintf(stderr, "pass %d, layer %d: words of %d are wrong\n", pass, layer,
				j);
			MPI_Abort(MPI_COMM_WORLD, 1);
		}
	for (int k = 0; k < got; k++)
		sum = mix(sum + receive[k]);
	free(send);
	free(receive);
	return sum;
}

int main(int argc, char **argv)
{
	int rank, ranks, passes, unit, going = 1;
	uint64_t sum = 0, all = 0;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	unit = argc > 1 ? atoi(argv[1]) : 32768;
	passes = argc > 2 ? atoi(argv[2]) : 4;
	for (int pass = 0; going && ranks <= RANKS; pass++) {
		double start = MPI_Wtime();

		for (int l = 0; l < LAYERS; l++)
			for (int second = 0; second < 2; second++)
				sum = mix(sum + exchange(l, pass, second, ranks, rank, unit));
		for (int l = LAYERS - 1; l >= 0; l--)
			for (int second = 0; second < 2; second++)
				sum = mix(sum + exchange(l, pass, second, ranks, rank, unit));
		if (!rank)
			printf("pass %d: %.3f s\n", pass, MPI_Wtime() - start);
		MPI_Reduce(&sum, &all, 1, MPI_UINT64_T, MPI_BXOR, 0, MPI_COMM_WORLD);
		if (!rank)
			printf("sum %d %016llx\n", pass, (unsigned long long)all);
		fflush(stdout);
		going = argc > 3 ? access(argv[3], F_OK) != 0 : pass + 1 < passes;
		MPI_Bcast(&going, 1, MPI_INT, 0, MPI_COMM_WORLD);
	}
	if (!rank)
		printf("checksum %016llx\n", (unsigned long long)all);
	MPI_Finalize();
	return 0;
}
