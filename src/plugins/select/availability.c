/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* When nodes become idle.  cons_tres finds out when a job can start by taking running jobs
 * away, weighing every node again each time.  Where a placement must wait for whole nodes
 * anyway, the first moment at which there is one is found without it. */

#include "src/plugins/select/select_ocs.h"

#include <stdlib.h>

struct ocs_select_future {
	bitstr_t *nodes; /* those that count */
	time_t *idle;	 /* per node of Slurm's table: when it is idle, 0: now */
	time_t from, until;
	time_t *moments; /* ascending; the first is 0 */
	int nmoments;
};

static int job_note(void *element, void *arg)
{
	struct ocs_select_future *future = arg;
	const job_record_t *job = element;

	if ((!IS_JOB_RUNNING(job) && !IS_JOB_SUSPENDED(job)) || !job->node_bitmap ||
	    job->end_time < future->from)
		return 0;
	for (int i = 0; next_node_bitmap(job->node_bitmap, &i); i++) {
		if (future->idle[i] < job->end_time)
			future->idle[i] = job->end_time;
	}
	return 0;
}

static int times_compare(const void *left, const void *right)
{
	time_t a = *(const time_t *)left, b = *(const time_t *)right;

	return (a > b) - (a < b);
}

static void sort_moments(struct ocs_select_future *future)
{
	int count = 1;

	future->moments = xcalloc(bit_set_count(future->nodes) + 1, sizeof(time_t));
	for (int i = 0; next_node_bitmap(future->nodes, &i); i++) {
		time_t idle = future->idle[i];

		/* Neighbours are of the same job as a rule: there is little to sort. */
		if (idle && idle != future->moments[count - 1] &&
		    (!future->until || idle <= future->until))
			future->moments[count++] = idle;
	}
	qsort(future->moments, count, sizeof(time_t), times_compare);
	for (int i = 0; i < count; i++) {
		if (!i || future->moments[i] != future->moments[i - 1])
			future->moments[future->nmoments++] = future->moments[i];
	}
}

struct ocs_select_future *ocs_select_future_create(bitstr_t *nodes, const will_run_data_t *span)
{
	struct ocs_select_future *future = xcalloc(1, sizeof(*future));

	future->nodes = bit_copy(nodes);
	future->idle = xcalloc(node_record_count, sizeof(*future->idle));
	future->from = span ? span->start : 0;
	future->until = span ? span->end : 0;
	list_for_each_ro(job_list, job_note, future);
	sort_moments(future);
	return future;
}

void ocs_select_future_destroy(struct ocs_select_future *future)
{
	FREE_NULL_BITMAP(future->nodes);
	xfree(future->idle);
	xfree(future->moments);
	xfree(future);
}

int ocs_select_future_moments(const struct ocs_select_future *future)
{
	return future->nmoments;
}

void ocs_select_future_nodes(const struct ocs_select_future *future, int moment, bitstr_t *nodes)
{
	bit_clear_all(nodes);
	for (int i = 0; next_node_bitmap(future->nodes, &i); i++) {
		if (future->idle[i] <= future->moments[moment])
			bit_set(nodes, i);
	}
}
