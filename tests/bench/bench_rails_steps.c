/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Published phase tables (ocs-replay(1)) on the real controller, ocsd and emulator, in real time.
 *
 * With ROUNDS: the operations one after the other, on switches that need no time and with no work
 * between them; what remains is the control plane.
 *
 * With "estimate", for the tables of Llama-3 on 16 GPUs (4 nodes, 10 steps): configurations 1 and 2 of
 * the paper, beside its estimate, T_native + 6 T, and what it published.  Configuration 2 has the same
 * steps on 8 nodes a stage.  Nodes compute so long that a step without changes takes the published
 * native time: a second before the phase of the reduce-scatter and a millisecond before every other
 * one, as far as the windows are published, and the rest in equal parts before operations inside a phase
 * of data parallelism.  As in the paper five steps are counted, after five that warm up.
 * Usage: bench_rails_steps BUILD-DIRECTORY DIRECTORY TABLES [ROUNDS | estimate] */

#include "tests/bench/rails_job.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "src/rails/mailbox.h"
#include "src/rails/phase_table.h"
#include "src/util/net.h"
#include "src/util/text.h"

#define ROUNDS_MAX 10000
#define MS INT64_C(1000000)
#define SYNC 6		 /* number of the group whose operations end a step, */
#define SYNCS 3		 /* so many of them */
#define REDUCE_PHASE 18	 /* operations of the phase that reduces and scatters */
#define STEPS 10	 /* of the published tables, */
#define WARM 5		 /* and those that are not counted */
#define PUBLISHED 6	 /* changes a step */
#define REPLICAS 8	 /* of a stage in configuration 2 */
#define REDUCE_MS 1000.0 /* windows of the paper's figure 4: the mean before the reduce-scatter, */
#define WINDOW_MS 1.0	 /* and less than three quarters of all */

/* ms that a rank computes. */
struct pace {
	double window, reduce, gap;
};

struct play {
	const struct ocs_phase_tables *tables;
	struct pace pace;
	size_t *at;   /* operation of each rank, */
	int64_t *due; /* and when it arrives there; 0: it has, and waits */
	int left;     /* ranks that are not done */
	int64_t marks[STEPS];
	int nmarks;
};

static double values[ROUNDS_MAX];

static int compare(const void *a, const void *b)
{
	double p = *(const double *)a, q = *(const double *)b;

	return (p > q) - (p < q);
}

/* ---- how long ranks compute ---- */

static bool operation_pipeline(const struct ocs_phase_tables *tables,
			       const struct ocs_phase_operation *operation)
{
	return tables->groups[operation->group].pipeline;
}

/* Whether the operations of data parallelism from AT on have the phase that reduces. */
static bool run_reduces(const struct ocs_phase_tables *tables, const struct ocs_phase_rank *row,
			size_t at)
{
	for (int length = 1; at < row->count && !operation_pipeline(tables, &row->operations[at]);
	     at++) {
		bool same = at + 1 < row->count && row->operations[at].phase >= 0 &&
			    row->operations[at + 1].phase == row->operations[at].phase;

		if (!same && length == REDUCE_PHASE)
			return true;
		length = same ? length + 1 : 1;
	}
	return false;
}

/* ms before operation AT of ROW, after the one before has ended. */
static double pause_before(const struct ocs_phase_tables *tables, const struct pace *pace,
			   const struct ocs_phase_rank *row, size_t at)
{
	bool pipeline;

	if (!at || at >= row->count)
		return 0;
	pipeline = operation_pipeline(tables, &row->operations[at]);
	if (pipeline == operation_pipeline(tables, &row->operations[at - 1]))
		return pipeline ? 0 : pace->gap;
	return !pipeline && run_reduces(tables, row, at) ? pace->reduce : pace->window;
}

static bool step_ends(const struct ocs_phase_tables *tables, int rank, size_t at)
{
	const struct ocs_phase_operation *operation = &tables->ranks[rank].operations[at];

	return rank == 0 && tables->groups[operation->group].number == SYNC &&
	       operation->idx % SYNCS == SYNCS - 1;
}

/* Whether all members of what RANK waits for wait for it, too: since WHEN. */
static bool operation_ready(const struct play *play, const double *when, int rank, double *since)
{
	const struct ocs_phase_tables *tables = play->tables;
	const struct ocs_phase_operation *operation =
		&tables->ranks[rank].operations[play->at[rank]];
	const struct ocs_phase_group *group = &tables->groups[operation->group];

	*since = 0;
	for (int i = 0; i < group->count; i++) {
		int member = group->ranks[i];
		const struct ocs_phase_rank *row = &tables->ranks[member];
		const struct ocs_phase_operation *other = &row->operations[play->at[member]];

		if (play->at[member] == row->count || other->group != operation->group ||
		    other->idx != operation->idx)
			return false;
		*since = fmax(*since, when[member]);
	}
	return true;
}

/* ms of the steps that are counted, where nothing changes and operations take no time. */
static double native_ms(const struct ocs_phase_tables *tables, const struct pace *pace)
{
	struct play play = { .tables = tables };
	double *when = ocs_calloc((size_t)tables->nodes, sizeof(*when)), marks[STEPS] = { 0 };
	int nmarks = 0;

	play.at = ocs_calloc((size_t)tables->nodes, sizeof(*play.at));
	for (bool more = true; more;) {
		more = false;
		for (int rank = 0; rank < tables->nodes; rank++) {
			const struct ocs_phase_rank *row = &tables->ranks[rank];
			const struct ocs_phase_group *group;
			double since;

			if (play.at[rank] == row->count ||
			    !operation_ready(&play, when, rank, &since))
				continue;
			more = true;
			group = &tables->groups[row->operations[play.at[rank]].group];
			for (int i = 0; i < group->count; i++) {
				int member = group->ranks[i];
				size_t at = play.at[member]++;

				if (step_ends(tables, member, at) && nmarks < STEPS)
					marks[nmarks++] = since;
				when[member] = since + pause_before(tables, pace,
								    &tables->ranks[member], at + 1);
			}
		}
	}
	free(play.at);
	free(when);
	if (nmarks < STEPS)
		fail("these tables have fewer steps than those of Llama-3 on 16 GPUs");
	return (marks[STEPS - 1] - marks[WARM - 1]) / (STEPS - WARM);
}

/* The pace at which a step without changes takes NATIVE ms. */
static struct pace pace_find(const struct ocs_phase_tables *tables, double native)
{
	struct pace pace = { WINDOW_MS, REDUCE_MS, 0 };
	double low = 0, high = native;

	for (int i = 0; i < 40; i++) {
		pace.gap = (low + high) / 2;
		if (native_ms(tables, &pace) < native)
			low = pace.gap;
		else
			high = pace.gap;
	}
	return pace;
}

/* ---- the same tables with more replicas ---- */

/* TABLES of 2 stages of 2 nodes, with REPLICAS nodes in each: every second one does the same. */
static struct ocs_phase_tables *tables_widen(const struct ocs_phase_tables *tables)
{
	struct ocs_phase_tables *wide = ocs_calloc(1, sizeof(*wide));
	int copies = REPLICAS / 2, *first = ocs_calloc((size_t)tables->ngroups, sizeof(*first));

	*wide = *tables;
	wide->layout.extent[1] = REPLICAS;
	wide->nodes = 2 * REPLICAS;
	wide->ngroups = 0;
	wide->groups =
		ocs_calloc((size_t)(tables->ngroups * copies), sizeof(struct ocs_phase_group));
	for (int g = 0; g < tables->ngroups; g++) {
		const struct ocs_phase_group *old = &tables->groups[g];
		int times = old->pipeline ? copies : 1, members = old->pipeline ? 1 : copies;

		first[g] = wide->ngroups;
		for (int c = 0; c < times; c++) {
			struct ocs_phase_group *group = &wide->groups[wide->ngroups++];

			*group = *old;
			group->count = 0;
			group->ranks = ocs_calloc((size_t)(old->count * members), sizeof(int));
			for (int k = 0; k < members; k++)
				for (int i = 0; i < old->count; i++)
					group->ranks[group->count++] =
						old->ranks[i] / 2 * REPLICAS + old->ranks[i] % 2 +
						2 * (c + k);
		}
	}
	wide->ranks = ocs_calloc((size_t)wide->nodes, sizeof(*wide->ranks));
	for (int rank = 0; rank < wide->nodes; rank++) {
		int replica = rank % REPLICAS;
		const struct ocs_phase_rank *old =
			&tables->ranks[rank / REPLICAS * 2 + replica % 2];
		struct ocs_phase_rank *row = &wide->ranks[rank];

		row->count = old->count;
		row->operations = ocs_calloc(old->count, sizeof(*row->operations));
		for (size_t i = 0; i < old->count; i++) {
			row->operations[i] = old->operations[i];
			row->operations[i].group =
				first[old->operations[i].group] +
				(operation_pipeline(tables, &old->operations[i]) ? replica / 2 : 0);
		}
	}
	free(first);
	return wide;
}

/* ---- in real time ---- */

/* The letter KIND of RANK about its operation. */
static void play_letter(const struct play *play, int rank, uint32_t kind)
{
	const struct ocs_phase_operation *operation =
		&play->tables->ranks[rank].operations[play->at[rank]];
	struct ocs_frame_letter letter = {
		.group = (uint64_t)operation->group,
		.idx = operation->idx,
		.rank = (uint32_t)rank,
		.kind = kind,
	};

	ocs_frame_letter_swap(&letter);
	ocs_outbox_record(&nodes[rank / play->tables->rails].outbox, OCS_FRAME_LETTERS, &letter,
			  sizeof(letter));
}

/* Arrivals whose time has come; ns until the next one, or -1. */
static int64_t play_arrive(struct play *play)
{
	int64_t now = ocs_now_ns(), next = INT64_MAX;
	int total = play->tables->nodes * play->tables->rails;

	for (int rank = 0; rank < total; rank++) {
		if (play->due[rank] && play->due[rank] <= now) {
			play->due[rank] = 0;
			play_letter(play, rank, OCS_RAILS_ARRIVE);
		}
		if (play->due[rank] && play->due[rank] < next)
			next = play->due[rank];
	}
	for (int i = 0; i < play->tables->nodes; i++)
		node_flush(&nodes[i]);
	now = ocs_now_ns();
	if (next == INT64_MAX)
		return -1;
	return next > now ? next - now : 0;
}

static void rank_go_on(struct play *play, int rank)
{
	const struct ocs_phase_rank *row = &play->tables->ranks[rank];
	int64_t now = ocs_now_ns();
	double pause;

	play_letter(play, rank, OCS_RAILS_END);
	if (step_ends(play->tables, rank, play->at[rank]) && play->nmarks < STEPS)
		play->marks[play->nmarks++] = now;
	pause = pause_before(play->tables, &play->pace, row, ++play->at[rank]);
	play->due[rank] = now + (int64_t)(pause * (double)MS);
	if (play->at[rank] == row->count) {
		play->due[rank] = 0;
		play->left--;
	} else if (pause <= 0) {
		play->due[rank] = 0;
		play_letter(play, rank, OCS_RAILS_ARRIVE);
	}
}

/* Ranks of node NUMBER that wait for GRANT. */
static void play_grant(struct play *play, int number, const struct ocs_frame_grant *grant)
{
	for (int i = 0; i < play->tables->rails; i++) {
		int rank = number * play->tables->rails + i;
		const struct ocs_phase_rank *row = &play->tables->ranks[rank];
		const struct ocs_phase_operation *operation = &row->operations[play->at[rank]];

		if (play->at[rank] < row->count && !play->due[rank] &&
		    (uint64_t)operation->group == grant->group && operation->idx == grant->idx &&
		    (grant->rank < 0 || grant->rank == rank))
			rank_go_on(play, rank);
	}
}

static void play_read(struct play *play, int number)
{
	struct node *node = &nodes[number];
	struct ocs_frame frame;

	if (ocs_inbox_fill(&node->inbox, node->fd, 1U << 24) < 0)
		fail("the controller is gone");
	while (ocs_inbox_next(&node->inbox, &frame) > 0)
		for (long i = 0; i < ocs_frame_records(&frame, OCS_FRAME_GRANTS); i++) {
			struct ocs_frame_grant grant;

			ocs_frame_grant_at(&frame, (size_t)i, &grant);
			if (grant.error)
				fail("an operation");
			play_grant(play, number, &grant);
		}
	node_flush(node);
}

/* All groups of TABLES, by the nodes of their members. */
static void groups_tell(const struct ocs_phase_tables *tables)
{
	for (int g = 0; g < tables->ngroups; g++) {
		const struct ocs_phase_group *group = &tables->groups[g];
		struct ocs_frame_group frame = { .group = (uint64_t)g,
						 .count = (uint32_t)group->count };
		uint32_t *ranks = ocs_calloc((size_t)group->count, sizeof(*ranks));
		int last = -1;

		for (int i = 0; i < group->count; i++)
			ranks[i] = (uint32_t)group->ranks[i];
		ocs_frame_group_swap(&frame);
		for (int i = 0; i < group->count; i++) {
			int number = group->ranks[i] / tables->rails;

			if (number != last)
				ocs_outbox_frame(&nodes[number].outbox, OCS_FRAME_GROUP, &frame,
						 sizeof(frame), ranks,
						 (size_t)group->count * sizeof(*ranks));
			last = number;
		}
		free(ranks);
	}
}

/* Runs PLAY in a job of its own; ms from its first arrival to its last end. */
static double play_run(struct daemons *d, struct play *play, const char *mode)
{
	const struct ocs_phase_tables *tables = play->tables;
	int total = tables->nodes * tables->rails,
	    stages = ocs_rails_layout_stages(&tables->layout);
	pid_t controller = job_start(d, tables->nodes, stages, mode);
	struct epoll_event events[NODES_MAX];
	int64_t start;

	polled = epoll_create1(0);
	for (int i = 0; i < tables->nodes; i++)
		node_connect(i, total, tables->rails);
	groups_tell(tables);
	for (int i = 0; i < tables->nodes; i++)
		node_flush(&nodes[i]);
	nodes_await(tables->nodes, OCS_FRAME_KNOWN);
	play->at = ocs_calloc((size_t)total, sizeof(*play->at));
	play->due = ocs_calloc((size_t)total, sizeof(*play->due));
	start = ocs_now_ns();
	for (int rank = 0; rank < total; rank++)
		play->due[rank] = start;
	for (play->left = total; play->left;) {
		int64_t ns = play_arrive(play), most = ns < 0 ? 60000 * MS : ns;
		struct timespec wait = { most / (1000 * MS), most % (1000 * MS) };
		int got = epoll_pwait2(polled, events, NODES_MAX, &wait, NULL);

		if (got < 0 || (!got && ns < 0))
			fail("nothing is granted");
		for (int i = 0; i < got; i++)
			play_read(play, (int)events[i].data.u32);
	}
	start = ocs_now_ns() - start;
	nodes_close(tables->nodes);
	job_end(d, controller);
	free(play->at);
	free(play->due);
	return (double)start / (double)MS;
}

static void rounds_run(struct daemons *d, const struct ocs_phase_tables *tables, const char *mode,
		       int rounds)
{
	for (int i = 0; i < rounds; i++) {
		struct play play = { .tables = tables };

		values[i] = play_run(d, &play, mode);
	}
	qsort(values, (size_t)rounds, sizeof(*values), compare);
	printf("%-34s %5d ranks  min %6.3f  p50 %6.3f  p99 %6.3f ms\n", mode,
	       tables->nodes * tables->rails, values[0], values[rounds / 2],
	       values[rounds * 99 / 100]);
	fflush(stdout);
}

/* ---- the published configurations ---- */

static const double delays[] = { 0, 10, 50, 100, 250, 500, 750, 1000 }; /* ms of a change */
#define DELAYS (int)(sizeof(delays) / sizeof(delays[0]))

static const struct configuration {
	double native; /* s of a step */
	double published[2][DELAYS];
} configurations[] = {
	{ 10.178,
	  { { 10.442, 10.461, 10.682, 10.904, 11.884, 13.108, 14.157, 15.401 },
	    { 10.222, 10.371, 10.320, 10.614, 11.269, 12.557, 13.954, 15.122 } } },
	{ 14.499,
	  { { 14.709, 14.703, 14.933, 14.991, 15.766, 17.235, 18.332, 19.551 },
	    { 13.973, 13.986, 14.093, 14.308, 15.027, 16.173, 17.593, 18.721 } } },
};
#define CONFIGURATIONS (int)(sizeof(configurations) / sizeof(configurations[0]))
#define RUNS (CONFIGURATIONS * 2 * DELAYS)

/* A run with daemons of its own: writes seconds of a step to FD. */
static void run_measure(const struct daemons *where, int number,
			const struct ocs_phase_tables *tables, const struct pace *pace, int fd)
{
	struct daemons d = { .build = where->build };
	struct play play = { .tables = tables, .pace = *pace };
	char delay[16];
	double seconds;

	d.folder = ocs_asprintf("%s/%d", where->folder, number);
	mkdir(d.folder, 0755);
	meet.job = 100 + 16 * (uint32_t)number;
	/* a change is two commands */
	snprintf(delay, sizeof(delay), "%d", (int)delays[number % DELAYS] / 2);
	job_daemons(&d, delay);
	play_run(&d, &play, number / DELAYS % 2 ? "provisioned" : "on-demand");
	daemons_stop(&d);
	seconds = (double)(play.marks[STEPS - 1] - play.marks[WARM - 1]) / 1e9 / (STEPS - WARM);
	if (write(fd, &seconds, sizeof(seconds)) != sizeof(seconds))
		_exit(1);
	_exit(0);
}

static void rows_print(double seconds[CONFIGURATIONS][2][DELAYS])
{
	puts("| configuration | T | T_native + 6 T | on demand | of the estimate | published, of the estimate | provisioned | less than on demand | published |");
	puts("|---|---|---|---|---|---|---|---|---|");
	for (int c = 0; c < CONFIGURATIONS; c++)
		for (int i = 0; i < DELAYS; i++) {
			const struct configuration *of = &configurations[c];
			double estimate = of->native + PUBLISHED * delays[i] / 1e3;

			printf("| %d | %.0f ms | %.3f s | %.3f s | %+.2f %% | %.3f s, %+.2f %% | %.3f s | %.3f s | %.3f s, %.3f s |\n",
			       c + 1, delays[i], estimate, seconds[c][0][i],
			       100 * (seconds[c][0][i] / estimate - 1), of->published[0][i],
			       100 * (of->published[0][i] / estimate - 1), seconds[c][1][i],
			       seconds[c][0][i] - seconds[c][1][i], of->published[1][i],
			       of->published[0][i] - of->published[1][i]);
		}
}

/* All at once: they mostly wait. */
static void estimate_run(const struct daemons *d, const struct ocs_phase_tables *tables)
{
	double seconds[CONFIGURATIONS][2][DELAYS];
	struct ocs_phase_tables *wide;
	int ends[RUNS][2];

	if (tables->nodes != 4 || tables->rails != 1 ||
	    ocs_rails_layout_stages(&tables->layout) != 2)
		fail("these tables are not those of Llama-3 on 16 GPUs");
	wide = tables_widen(tables);
	for (int c = 0; c < CONFIGURATIONS; c++) {
		const struct ocs_phase_tables *used = c ? wide : tables;
		struct pace pace = pace_find(used, configurations[c].native * 1e3);

		printf("configuration %d: %d nodes, windows of %.0f and %.0f ms, %.2f ms before operations inside\n",
		       c + 1, used->nodes, pace.reduce, pace.window, pace.gap);
		fflush(stdout);
		for (int i = c * 2 * DELAYS; i < (c + 1) * 2 * DELAYS; i++) {
			if (pipe(ends[i]))
				fail("pipe");
			if (!fork())
				run_measure(d, i, used, &pace, ends[i][1]);
			close(ends[i][1]);
		}
	}
	for (int i = 0; i < RUNS; i++)
		if (read(ends[i][0], &seconds[i / 2 / DELAYS][i / DELAYS % 2][i % DELAYS],
			 sizeof(double)) != sizeof(double))
			fail("a run");
	while (wait(NULL) > 0)
		;
	rows_print(seconds);
}

int main(int argc, char **argv)
{
	struct rlimit files = { 65536, 65536 };
	struct daemons d = { 0 };
	struct ocs_phase_tables *tables;
	bool estimate = argc == 5 && strcmp(argv[4], "estimate") == 0;
	int rounds = argc > 4 ? atoi(argv[4]) : 20;

	if (argc < 4 || argc > 5 || (!estimate && (rounds < 1 || rounds > ROUNDS_MAX))) {
		fputs("usage: bench_rails_steps BUILD-DIRECTORY DIRECTORY TABLES [ROUNDS | estimate]\n",
		      stderr);
		return 2;
	}
	setrlimit(RLIMIT_NOFILE, &files);
	d.build = argv[1];
	d.folder = argv[2];
	tables = ocs_phase_tables_read(argv[3], 0, &err);
	if (!tables || tables->rails > PER_NODE || tables->nodes > NODES_MAX)
		fail(argv[3]);
	if (estimate) {
		estimate_run(&d, tables);
	} else {
		meet.job = 100;
		job_daemons(&d, "0");
		rounds_run(&d, tables, "on-demand", rounds);
		rounds_run(&d, tables, "provisioned", rounds);
		daemons_stop(&d);
	}
	ocs_phase_tables_free(tables);
	return 0;
}
