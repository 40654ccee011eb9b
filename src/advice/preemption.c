/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Three quick searches leave out what can be left out; what they find bounds a search
 * through all smaller or cheaper sets. */

#include "src/advice/preemption.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "src/util/text.h"

#define STEPS_PER_WORK 500 /* sets on too few nodes cost no call, but time */

struct item {
	struct ocs_preemption_job job;
	int index;
};

struct search {
	const struct ocs_preemption_request *r;
	struct item *items;
	double *cheapest; /* of items[i] and all after it */
	long *largest;	  /* nodes of the largest of the same */
	long work, most, steps;
	int *set, *trial; /* being tried */
	int *best, nbest; /* nbest: -1 if there is none */
	int best_rank;
	double best_cost;
};

static bool set_fits(struct search *s, const int *set, int count)
{
	s->work++;
	return s->r->fits(s->r->arg, set, count);
}

static bool work_spent(const struct search *s)
{
	return s->work >= s->most || s->steps >= s->most * STEPS_PER_WORK;
}

static int compare_int(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

static int difference_sign(double difference)
{
	return difference > 0 ? 1 : difference < 0 ? -1 : 0;
}

static int by_cost(const void *a, const void *b)
{
	const struct item *x = a, *y = b;

	if (x->job.rank != y->job.rank)
		return x->job.rank < y->job.rank ? -1 : 1;
	if (x->job.cost != y->job.cost)
		return difference_sign(x->job.cost - y->job.cost);
	return x->index - y->index;
}

static int by_cost_down(const void *a, const void *b)
{
	return by_cost(b, a);
}

static int by_nodes(const void *a, const void *b)
{
	const struct item *x = a, *y = b;

	return x->job.nodes != y->job.nodes ? (x->job.nodes < y->job.nodes ? -1 : 1) :
					      by_cost_down(a, b);
}

static int by_density(const void *a, const void *b)
{
	const struct item *x = a, *y = b;
	double left = y->job.cost * (double)x->job.nodes,
	       right = x->job.cost * (double)y->job.nodes;

	return left != right ? difference_sign(left - right) : by_cost_down(a, b);
}

/* Takes SET if it is better than what there is. */
static void set_offer(struct search *s, const int *set, int count)
{
	int rank = INT_MIN;
	double cost = 0;

	for (int i = 0; i < count; i++) {
		const struct ocs_preemption_job *job = &s->r->jobs[set[i]];

		cost += job->cost;
		if (job->rank > rank)
			rank = job->rank;
	}
	if (s->nbest >= 0 && (count != s->nbest	   ? count > s->nbest :
			      rank != s->best_rank ? rank > s->best_rank :
						     cost >= s->best_cost))
		return;
	memcpy(s->best, set, (size_t)count * sizeof(*set));
	s->nbest = count;
	s->best_rank = rank;
	s->best_cost = cost;
}

/* From all jobs down to a set of which none can be left out, those that come first in
 * the order left out first, many at once while that works.  BOUNDED: gives up without
 * an answer when the work is spent. */
static void leave_out(struct search *s, int (*order)(const void *, const void *), bool bounded)
{
	int count = s->r->njobs;

	qsort(s->items, (size_t)count, sizeof(*s->items), order);
	for (int i = 0; i < count; i++)
		s->set[i] = s->items[i].index;
	for (int chunk = count > 1 ? count / 2 : 1; chunk; chunk /= 2) {
		for (int at = 0; at < count;) {
			int out = chunk < count - at ? chunk : count - at;

			if (bounded && work_spent(s))
				return;
			memcpy(s->trial, s->set, (size_t)at * sizeof(*s->set));
			memcpy(s->trial + at, s->set + at + out,
			       (size_t)(count - at - out) * sizeof(*s->set));
			if (set_fits(s, s->trial, count - out)) {
				count -= out;
				memcpy(s->set, s->trial, (size_t)count * sizeof(*s->set));
			} else {
				at += out;
			}
		}
	}
	set_offer(s, s->set, count);
}

/* All sets of SIZE jobs, HAVE of them chosen with COST and on NODES, that begin no earlier
 * than FROM and could be better than the best. */
static void sets_enumerate(struct search *s, int size, int have, int from, double cost, long nodes)
{
	if (have == size) {
		if (nodes >= s->r->need && set_fits(s, s->set, size))
			set_offer(s, s->set, size);
		return;
	}
	for (int i = from; i <= s->r->njobs - (size - have) && !work_spent(s); i++) {
		const struct ocs_preemption_job *job = &s->items[i].job;

		s->steps++;
		/* the ranks only grow from here on */
		if (size == s->nbest && (job->rank > s->best_rank ||
					 (job->rank == s->best_rank &&
					  cost + s->cheapest[i] * (size - have) >= s->best_cost)))
			return;
		if (nodes + s->largest[i] * (size - have) < s->r->need)
			return;
		s->set[have] = s->items[i].index;
		sets_enumerate(s, size, have + 1, i + 1, cost + job->cost, nodes + job->nodes);
	}
}

static void enumerate_all(struct search *s)
{
	int n = s->r->njobs;

	qsort(s->items, (size_t)n, sizeof(*s->items), by_cost);
	for (int i = n - 1; i >= 0; i--) {
		const struct ocs_preemption_job *job = &s->items[i].job;

		s->cheapest[i] = i < n - 1 && s->cheapest[i + 1] < job->cost ? s->cheapest[i + 1] :
									       job->cost;
		s->largest[i] = i < n - 1 && s->largest[i + 1] > job->nodes ? s->largest[i + 1] :
									      job->nodes;
	}
	for (int size = 1; size <= s->nbest && !work_spent(s); size++)
		sets_enumerate(s, size, 0, 0, 0, 0);
}

int ocs_preemption_find(const struct ocs_preemption_request *r, int *set, bool *complete)
{
	size_t n = (size_t)r->njobs;
	struct search s = {
		.r = r, .nbest = -1, .best = set, .most = r->work ? r->work : OCS_PREEMPTION_WORK
	};

	if (complete)
		*complete = true;
	if (set_fits(&s, NULL, 0))
		return 0;
	s.items = ocs_calloc(n + 1, sizeof(*s.items));
	s.cheapest = ocs_calloc(n + 1, sizeof(*s.cheapest));
	s.largest = ocs_calloc(n + 1, sizeof(*s.largest));
	s.set = ocs_calloc(n + 1, sizeof(*s.set));
	s.trial = ocs_calloc(n + 1, sizeof(*s.trial));
	for (size_t i = 0; i < n; i++) {
		s.items[i] = (struct item){ r->jobs[i], (int)i };
		s.set[i] = (int)i;
	}
	if (n && set_fits(&s, s.set, (int)n)) {
		leave_out(&s, by_cost_down, false);
		leave_out(&s, by_nodes, true);
		leave_out(&s, by_density, true);
		enumerate_all(&s);
		qsort(set, (size_t)s.nbest, sizeof(*set), compare_int);
	}
	if (complete)
		*complete = !work_spent(&s);
	free(s.items);
	free(s.cheapest);
	free(s.largest);
	free(s.set);
	free(s.trial);
	return s.nbest;
}
