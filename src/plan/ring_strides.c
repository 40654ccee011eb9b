/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* TotientPerms and SelectPermutations: which steps p the rings of a group take.
 * Ring p joins member i to member (i + p) mod k and closes over all k members
 * exactly when gcd(p, k) = 1. */

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "src/plan/internal.h"
#include "src/util/text.h"

static int common_divisor(int a, int b)
{
	while (b) {
		int rest = a % b;

		a = b;
		b = rest;
	}
	return a;
}

/* All steps from 1 to LAST co-prime to K, ascending.  The caller frees them. */
static int *strides_coprime(int k, int last, int *count)
{
	int *list = ocs_calloc(last > 0 ? last : 1, sizeof(int));

	*count = 0;
	for (int p = 1; p <= last; p++)
		if (common_divisor(p, k) == 1)
			list[(*count)++] = p;
	return list;
}

/* Duplex, as the authors' program does it: targets are the geometric sequence
 * from the first to the last candidate (ratio (k-1)^(1/count)); each takes the
 * first candidate not below it that is still unused. */
static void select_duplex(const int *list, int n, int count, int *steps)
{
	double ratio = pow((double)list[n - 1] / list[0], 1.0 / count);
	double target = list[0];
	char *used = ocs_calloc(n, 1);

	for (int i = 0; i < count; i++) {
		int at = 0;

		while (at < n && (used[at] || list[at] < target - 1e-9))
			at++;
		if (at == n) /* beyond the last: the largest unused one */
			for (at = n - 1; used[at]; at--)
				;
		used[at] = 1;
		steps[i] = list[at];
		target *= ratio;
	}
	free(used);
}

/* Directed, as the paper has it: the next target is k^(1/count) times the step
 * just chosen; the nearest unused candidate wins, the smaller one on a tie. */
static void select_directed(const int *list, int n, int k, int count, int *steps)
{
	double ratio = pow(k, 1.0 / count);
	double target = 1;
	char *used = ocs_calloc(n, 1);

	for (int i = 0; i < count; i++) {
		int nearest = -1;

		for (int at = 0; at < n; at++)
			if (!used[at] &&
			    (nearest < 0 || fabs(list[at] - target) < fabs(list[nearest] - target)))
				nearest = at;
		used[nearest] = 1;
		steps[i] = list[nearest];
		target = steps[i] * ratio;
	}
	free(used);
}

/* More rings than steps: go round again, so that no port is idle. */
static void strides_repeat(int *steps, int have, int count)
{
	for (int i = have; i < count; i++)
		steps[i] = steps[i - have];
}

void ocs_plan_steps_paper(int members, int count, bool directed, int *steps)
{
	int n, have;
	int *list;

	if (count < 1)
		return;
	list = strides_coprime(members, members - 1, &n);
	have = count < n ? count : n;
	if (directed)
		select_directed(list, n, members, have, steps);
	else
		select_duplex(list, n, have, steps);
	strides_repeat(steps, have, count);
	free(list);
}

/* ---- best: the fewest average hops over circulants of co-prime steps ---- */

struct search {
	int k, count;
	bool directed;
	int *list, n; /* candidates */
	int *dist, *queue;
	long budget; /* edge visits left */
	long best_sum;
	int *best;
};

/* Sum of the distances from member 0, which is the same from everywhere. */
static long hops_sum(struct search *search, const int *steps)
{
	int head = 0, tail = 0, k = search->k;
	long sum = 0;

	for (int i = 0; i < k; i++)
		search->dist[i] = -1;
	search->dist[0] = 0;
	search->queue[tail++] = 0;
	while (head < tail) {
		int at = search->queue[head++];

		sum += search->dist[at];
		for (int i = 0; i < search->count; i++) {
			int next = at + steps[i] < k ? at + steps[i] : at + steps[i] - k;

			if (search->dist[next] < 0) {
				search->dist[next] = search->dist[at] + 1;
				search->queue[tail++] = next;
			}
			next = at - steps[i] >= 0 ? at - steps[i] : at - steps[i] + k;
			if (!search->directed && search->dist[next] < 0) {
				search->dist[next] = search->dist[at] + 1;
				search->queue[tail++] = next;
			}
		}
	}
	search->budget -= (long)k * search->count * (search->directed ? 1 : 2);
	return sum;
}

static bool strides_consider(struct search *search, const int *steps)
{
	long sum = hops_sum(search, steps);

	if (sum >= search->best_sum)
		return false;
	search->best_sum = sum;
	memcpy(search->best, steps, search->count * sizeof(int));
	return true;
}

/* Every ascending choice of the steps from AT on. */
static void strides_exhaust(struct search *search, int *steps, int at, int from)
{
	if (at == search->count) {
		strides_consider(search, steps);
		return;
	}
	for (int c = from; c < search->n; c++) {
		steps[at] = search->list[c];
		strides_exhaust(search, steps, at + 1, c + 1);
	}
}

/* Improves one step at a time until none improves. */
static void strides_descend(struct search *search, int *steps)
{
	bool better = true;
	long sum = hops_sum(search, steps);

	while (better && search->budget > 0) {
		better = false;
		for (int i = 1; i < search->count; i++) {
			int keep = steps[i];

			for (int c = 1; c < search->n && search->budget > 0; c++) {
				long now;

				steps[i] = search->list[c];
				now = hops_sum(search, steps);
				if (now < sum) {
					sum = now;
					keep = steps[i];
					better = true;
				}
			}
			steps[i] = keep;
		}
	}
	strides_consider(search, steps);
}

/* Number of choices of COUNT - 1 more steps, saturating. */
static double choices_count(int n, int count)
{
	double total = 1;

	for (int i = 1; i < count; i++)
		total = total * (n - i) / i;
	return total;
}

static void search_best(int members, int count, bool directed, int *steps)
{
	struct search search = { .k = members, .directed = directed, .budget = 60000000 };
	uint64_t random = 88172645463325252u;
	int *trial;

	ocs_plan_steps_paper(members, count, directed, steps);
	if (members < 5 || count < 2)
		return;
	/* duplex: p and k - p are the same ring */
	search.list = strides_coprime(members, directed ? members - 1 : members / 2, &search.n);
	search.count = count < search.n ? count : search.n;
	search.dist = ocs_calloc(members, sizeof(int));
	search.queue = ocs_calloc(members, sizeof(int));
	search.best = ocs_calloc(count, sizeof(int));
	search.best_sum = (long)members * members;
	trial = ocs_calloc(count, sizeof(int));
	/* repeats of the paper's choice come last, so its head is the one to beat */
	memcpy(trial, steps, search.count * sizeof(int));
	strides_consider(&search, trial);
	/* multiplying all steps by one of them leaves the graph as it is: step 1
	 * can be taken for granted */
	trial[0] = 1;
	if (choices_count(search.n, search.count) * members * search.count < search.budget / 3.0) {
		strides_exhaust(&search, trial, 1, 1);
	} else {
		while (search.budget > 0) {
			strides_descend(&search, trial);
			for (int i = 1; i < search.count; i++) {
				random ^= random << 13;
				random ^= random >> 7;
				random ^= random << 17;
				trial[i] = search.list[random % (uint64_t)search.n];
			}
		}
	}
	memcpy(steps, search.best, search.count * sizeof(int));
	strides_repeat(steps, search.count, count);
	free(trial);
	free(search.best);
	free(search.queue);
	free(search.dist);
	free(search.list);
}

/* What was found before: jobs of the same size come again and again. */
#define CACHE 128

static struct {
	int members, count;
	bool directed;
	int steps[OCS_PLAN_DEGREE_MAX];
} cache[CACHE];
static int cache_next;
static pthread_mutex_t cache_lock = PTHREAD_MUTEX_INITIALIZER;

static bool cache_find(int members, int count, bool directed, int *steps)
{
	bool found = false;

	pthread_mutex_lock(&cache_lock);
	for (int i = 0; i < CACHE && !found; i++) {
		found = cache[i].members == members && cache[i].count == count &&
			cache[i].directed == directed;
		if (found)
			memcpy(steps, cache[i].steps, count * sizeof(int));
	}
	pthread_mutex_unlock(&cache_lock);
	return found;
}

void ocs_plan_steps_best(int members, int count, bool directed, int *steps)
{
	if (count < 1 || cache_find(members, count, directed, steps))
		return;
	search_best(members, count, directed, steps);
	if (count > OCS_PLAN_DEGREE_MAX)
		return;
	pthread_mutex_lock(&cache_lock);
	cache[cache_next].members = members;
	cache[cache_next].count = count;
	cache[cache_next].directed = directed;
	memcpy(cache[cache_next].steps, steps, count * sizeof(int));
	cache_next = (cache_next + 1) % CACHE;
	pthread_mutex_unlock(&cache_lock);
}
