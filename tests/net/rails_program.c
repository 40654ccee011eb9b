/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* A parallel program that knows nothing of circuits: a grid of PP stages by DP replicas trains steps,
 * with every kind of call.  Every value is checked.
 *
 *	rails_program PP STEPS [CP [wrong]]
 *
 * The replicas of a stage are rows of CP ranks, where CP is given.  "wrong" receives from anybody at the end, which no gate can hold. */

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define LONG 200000 /* does not fit into what is sent at once */

static int rank, ranks, bad;

static void value_check(int is, int expected, const char *what)
{
	if (is != expected && !bad++)
		fprintf(stderr, "rank %d: %s: %d instead of %d\n", rank, what, is, expected);
}

/* Forward and backward through the stages, blocking. */
static void pipeline_run(int stage, int stages, int width, int step)
{
	static int data[LONG];
	int up = rank + width, down = rank - width;
	MPI_Status status;
	int count;

	if (stage > 0) {
		MPI_Recv(data, LONG, MPI_INT, down, 7, MPI_COMM_WORLD, &status);
		MPI_Get_count(&status, MPI_INT, &count);
		value_check(count, LONG, "count");
		value_check(status.MPI_SOURCE, down, "source");
		value_check(data[LONG - 1], step * 100 + down, "forward");
	}
	for (int i = 0; i < LONG; i++)
		data[i] = step * 100 + rank;
	if (stage < stages - 1) {
		MPI_Send(data, LONG, MPI_INT, up, 7, MPI_COMM_WORLD);
		MPI_Recv(data, 3, MPI_INT, up, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		value_check(data[2], step + up, "backward");
	}
	data[0] = data[1] = data[2] = step + rank;
	if (stage > 0)
		MPI_Send(data, 3, MPI_INT, down, 8, MPI_COMM_WORLD);
}

/* Tags in another order at both ends, a type that is freed early, a probe. */
static void halo_run(int stage, int stages, int width, int step)
{
	int to = rank + width, from = rank - width, out[4], in[4] = { 0 }, index, flag = 0;
	MPI_Request requests[4];
	MPI_Datatype two;
	MPI_Status status;

	for (int i = 0; i < 4; i++)
		out[i] = step * 1000 + rank * 10 + i;
	if (stage % 2 == 0 && stage < stages - 1) {
		MPI_Type_contiguous(2, MPI_INT, &two);
		MPI_Type_commit(&two);
		MPI_Isend(out, 1, two, to, 1, MPI_COMM_WORLD, &requests[0]);
		MPI_Type_free(&two);
		MPI_Isend(out + 2, 1, MPI_INT, to, 2, MPI_COMM_WORLD, &requests[1]);
		MPI_Isend(out + 3, 1, MPI_INT, to, 3, MPI_COMM_WORLD, &requests[2]);
		MPI_Waitany(3, requests, &index, MPI_STATUS_IGNORE);
		MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
	} else if (stage % 2) {
		while (!flag)
			MPI_Iprobe(from, 3, MPI_COMM_WORLD, &flag, &status);
		MPI_Recv(in + 3, 1, MPI_INT, from, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		MPI_Recv(in + 2, 1, MPI_INT, from, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		MPI_Irecv(in, 2, MPI_INT, from, 1, MPI_COMM_WORLD, &requests[0]);
		for (flag = 0; !flag;)
			MPI_Test(&requests[0], &flag, &status);
		value_check(status.MPI_TAG, 1, "tag");
		for (int i = 0; i < 4; i++)
			value_check(in[i], step * 1000 + from * 10 + i, "halo");
	}
}

/* What may overlap: all replicas and the pipeline, none waits where another one needs it to. */
static void overlap_run(MPI_Comm replicas, int row, int step)
{
	int sum = 0, one = rank + step, before = -1, expected = 0, replica, width;
	MPI_Request requests[3];
	int partner = (rank + ranks / 2) % ranks;

	MPI_Comm_rank(replicas, &replica);
	MPI_Comm_size(replicas, &width);
	MPI_Irecv(&before, 1, MPI_INT, partner, 9, MPI_COMM_WORLD, &requests[0]);
	MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, replicas, &requests[1]);
	MPI_Isend(&one, 1, MPI_INT, partner, 9, MPI_COMM_WORLD, &requests[2]);
	if (replica % 2)
		MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
	MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
	for (int i = 0; i < width; i++)
		expected += rank + (i - replica) * row + step;
	value_check(sum, expected, "iallreduce");
	value_check(before, partner + step, "exchange");
}

static void collectives_run(MPI_Comm comm, int step)
{
	int own, size, sum, all[64], many[64], root = -1;

	MPI_Comm_rank(comm, &own);
	MPI_Comm_size(comm, &size);
	sum = own + step;
	MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_INT, MPI_SUM, comm);
	value_check(sum, size * (size - 1) / 2 + size * step, "allreduce");
	if (own == size - 1)
		root = step;
	MPI_Bcast(&root, 1, MPI_INT, size - 1, comm);
	value_check(root, step, "bcast");
	MPI_Allgather(&own, 1, MPI_INT, all, 1, MPI_INT, comm);
	for (int i = 0; i < size; i++) {
		value_check(all[i], i, "allgather");
		many[i] = own * 100 + i + step;
	}
	MPI_Alltoall(many, 1, MPI_INT, all, 1, MPI_INT, comm);
	for (int i = 0; i < size; i++)
		value_check(all[i], i * 100 + own + step, "alltoall");
	/* The same as successive matchings. */
	for (int round = 0; round < size; round++) {
		int partner = (round - own + size) % size;

		MPI_Sendrecv(&many[partner], 1, MPI_INT, partner, 5, &all[partner], 1, MPI_INT,
			     partner, 5, comm, MPI_STATUS_IGNORE);
		value_check(all[partner], partner * 100 + own + step, "matching");
	}
	root = own;
	MPI_Sendrecv_replace(&root, 1, MPI_INT, (own + 1) % size, 6, (own + size - 1) % size, 6,
			     comm, MPI_STATUS_IGNORE);
	value_check(root, (own + size - 1) % size, "ring");
	MPI_Barrier(comm);
}

/* 0 to 2 and 3 to 1 between nodes, 2 to 3 and 1 to 0 inside them: 0 waits inside its node for what its
 * own send begins. */
static void chain_run(int step)
{
	static const int next[] = { 2, 0, 3, 1 }, before[] = { 1, 3, 0, 2 };
	int data = -1, sent = step;
	MPI_Request request;

	if (rank == 0) {
		MPI_Isend(&sent, 1, MPI_INT, next[0], 11, MPI_COMM_WORLD, &request);
		MPI_Recv(&data, 1, MPI_INT, before[0], 11, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		MPI_Wait(&request, MPI_STATUS_IGNORE);
		value_check(data, step + 3, "chain");
	} else if (rank < 4) {
		MPI_Recv(&data, 1, MPI_INT, before[rank], 11, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		data++;
		MPI_Send(&data, 1, MPI_INT, next[rank], 11, MPI_COMM_WORLD);
	}
}

int main(int argc, char **argv)
{
	int stages = argc > 1 ? atoi(argv[1]) : 2, steps = argc > 2 ? atoi(argv[2]) : 3;
	int row = argc > 3 ? atoi(argv[3]) : 1;
	int stage, replica, width, any = 0, total = 0;
	MPI_Comm replicas, twin, context;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	width = ranks / stages;
	stage = rank / width;
	replica = rank % width;
	MPI_Comm_split(MPI_COMM_WORLD, stage * row + replica % row, replica, &replicas);
	MPI_Comm_split(MPI_COMM_WORLD, rank / row, replica, &context);
	MPI_Comm_dup(replicas, &twin);
	for (int step = 0; step < steps; step++) {
		pipeline_run(stage, stages, width, step);
		halo_run(stage, stages, width, step);
		collectives_run(replicas, step);
		collectives_run(twin, step);
		collectives_run(context, step);
		if (ranks >= 4)
			chain_run(step);
		overlap_run(twin, row, step);
		collectives_run(MPI_COMM_WORLD, step);
		/* A child has the parent's memory and must disturb nobody. */
		if (fork() == 0)
			_exit(0);
		wait(NULL);
	}
	if (argc > 4 && !strcmp(argv[4], "wrong"))
		MPI_Recv(&any, 1, MPI_INT, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	MPI_Comm_free(&twin);
	MPI_Comm_free(&replicas);
	MPI_Comm_free(&context);
	MPI_Reduce(&bad, &total, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
	MPI_Finalize();
	if (rank == 0)
		printf("%d ranks, %d steps: %s\n", ranks, steps, total ? "wrong" : "right");
	return bad != 0;
}
