/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/advice/preemption.h"
#include "src/scheduler/state.h"
#include "src/util/text.h"

#include <stdlib.h>
#include <string.h>

struct question {
	const struct ocs_controller_request *request;
	const struct ocs_controller_preemption *p;
	uint64_t *free;	    /* a bit per node that is free once the set is gone */
	int *users;	    /* per node: jobs that are left on it */
	int *chosen, count; /* the last answer */
	struct ocs_error err;
};

/* The nodes of SET lose a user each, or get it back (BY is -1 or 1). */
static void nodes_shift(struct question *q, const int *set, int count, int by)
{
	for (int i = 0; i < count; i++) {
		const struct ocs_controller_preemptable *job = &q->p->jobs[set[i]];

		for (int j = 0; j < job->nnodes; j++) {
			int node = job->nodes[j];
			uint64_t bit = UINT64_C(1) << (node % 64);

			q->users[node] += by;
			if (!(q->p->usable[node / 64] & bit))
				continue;
			if (q->users[node])
				q->free[node / 64] &= ~bit;
			else
				q->free[node / 64] |= bit;
		}
	}
}

static bool victims_fit(void *arg, const int *set, int count)
{
	struct question *q = arg;
	bool nodes_help;

	nodes_shift(q, set, count, -1);
	q->count = ocs_controller_choose(q->request, OCS_WILL_RUN, q->free, q->p->required,
					 q->p->nrequired, q->p->min, q->p->max, q->chosen,
					 &nodes_help, &q->err);
	nodes_shift(q, set, count, 1);
	return q->count > 0;
}

/* How many nodes the victims have to be on at least. */
static long lack_text(const struct question *q)
{
	const struct ocs_section *section = q->request->section;
	struct ocs_placer *placer = ocs_state.sections[section->index].placer;
	long need = q->p->min;

	if (placer) {
		pthread_mutex_lock(&ocs_state.lock);
		need = ocs_place_node_count(placer, &q->request->shape, NULL);
		pthread_mutex_unlock(&ocs_state.lock);
	} else if (q->request->shaped) {
		need = q->request->servers;
	}
	for (int i = section->first_node; i < section->first_node + section->nnodes; i++)
		need -= (long)(q->free[i / 64] >> (i % 64) & 1);
	return need;
}

int ocs_controller_victims(const struct ocs_controller_request *request,
			   const struct ocs_controller_preemption *p, int *set, int *chosen,
			   int *count, struct ocs_error *err)
{
	const struct ocs_fabric *fabric = ocs_state.fabric;
	size_t words = (size_t)fabric->nnodes / 64 + 1;
	struct question q = { .request = request, .p = p, .chosen = chosen };
	struct ocs_preemption_request search = { .njobs = p->njobs,
						 .fits = victims_fit,
						 .arg = &q };
	struct ocs_preemption_job *jobs = ocs_calloc((size_t)p->njobs + 1, sizeof(*jobs));
	int found;

	q.users = ocs_calloc((size_t)fabric->nnodes + 1, sizeof(*q.users));
	memcpy(q.users, p->users, (size_t)fabric->nnodes * sizeof(*q.users));
	q.free = ocs_calloc(words, sizeof(*q.free));
	for (int i = 0; i < fabric->nnodes; i++) {
		if (!q.users[i])
			q.free[i / 64] |= p->usable[i / 64] & UINT64_C(1) << (i % 64);
	}
	for (int i = 0; i < p->njobs; i++)
		jobs[i] = (struct ocs_preemption_job){ p->jobs[i].rank, p->jobs[i].cost,
						       p->jobs[i].nnodes };
	search.jobs = jobs;
	search.need = lack_text(&q);
	found = ocs_preemption_find(&search, set, NULL);
	if (found >= 0 && !victims_fit(&q, set, found))
		found = -1;
	*count = q.count;
	if (found < 0 && err)
		*err = q.err;
	free(jobs);
	free(q.users);
	free(q.free);
	return found;
}
