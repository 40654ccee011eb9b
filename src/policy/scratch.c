/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* A mark, not a placement: what best would reach if running jobs moved for nothing.  The
 * jobs are kept twice: under the XPUs that the caller was told, and as best lays them on a
 * machine of their own, where all are laid anew whenever the next one finds no room. */

#include <stdlib.h>

#include "src/policy/internal.h"
#include "src/util/text.h"

struct scratch_job {
	struct ocs_xpu told; /* one of those that the caller holds for it */
	struct ocs_placement *laid;
};

struct ocs_policy_scratch {
	struct scratch_job *jobs;
	int njobs, room;
	struct ocs_occupancy *own; /* without the jobs as laid */
	struct ocs_occupancy *anew;
};

static struct ocs_policy_scratch *scratch_create(const struct ocs_section *section)
{
	struct ocs_policy_scratch *s = ocs_calloc(1, sizeof(*s));

	s->own = ocs_occupancy_create(section);
	s->anew = ocs_occupancy_create(section);
	return s;
}

void ocs_policy_scratch_destroy(struct ocs_policy_scratch *s)
{
	int i;

	if (!s)
		return;
	for (i = 0; i < s->njobs; i++)
		ocs_placement_destroy(s->jobs[i].laid);
	ocs_occupancy_destroy(s->own);
	ocs_occupancy_destroy(s->anew);
	free(s->jobs);
	free(s);
}

static void xpus_hold(const struct ocs_policy *policy, struct ocs_occupancy *o,
		      const struct ocs_placement *p, bool is_free)
{
	int i;

	for (i = 0; i < p->nnodes; i++)
		ocs_occupancy_node_set(o, policy->fabric, p->nodes[i], is_free);
}

/* Drops the jobs whose XPUs came free. */
static void jobs_drop(struct ocs_policy *policy, const struct ocs_occupancy *occupancy)
{
	struct ocs_policy_scratch *s = policy->scratch_jobs;
	int i, n = 0;

	for (i = 0; i < s->njobs; i++) {
		if (!ocs_occupancy_xpu_free(occupancy, s->jobs[i].told.cube, s->jobs[i].told.at)) {
			s->jobs[n++] = s->jobs[i];
			continue;
		}
		xpus_hold(policy, s->own, s->jobs[i].laid, true);
		ocs_placement_destroy(s->jobs[i].laid);
	}
	s->njobs = n;
}

/* Most cubes first, then most XPUs; equal ones in the order in which they came. */
static int job_larger(const void *a, const void *b)
{
	const struct scratch_job *p = *(const struct scratch_job *const *)a;
	const struct scratch_job *q = *(const struct scratch_job *const *)b;

	if (p->laid->ncubes != q->laid->ncubes)
		return q->laid->ncubes - p->laid->ncubes;
	if (p->laid->shape.xpus != q->laid->shape.xpus)
		return p->laid->shape.xpus < q->laid->shape.xpus ? 1 : -1;
	return (p > q) - (p < q);
}

static struct ocs_placement *shape_lay(struct ocs_policy *policy, struct ocs_occupancy *o,
				       const struct ocs_shape *shape)
{
	struct ocs_error err;
	struct ocs_placement *p = ocs_place(policy->placer, o, shape, 0, &err);

	if (p)
		xpus_hold(policy, o, p, false);
	return p;
}

/* Lays all jobs, and SHAPE where its size comes, on an empty machine.  Returns where SHAPE
 * lies, or NULL: then nothing has changed. */
static struct ocs_placement *lay_anew(struct ocs_policy *policy,
				      const struct ocs_policy_shape *entry)
{
	struct ocs_policy_scratch *s = policy->scratch_jobs;
	struct scratch_job **order = ocs_calloc((size_t)s->njobs + 1, sizeof(*order));
	struct ocs_placement **to = ocs_calloc((size_t)s->njobs + 1, sizeof(*to)), *mine = NULL;
	struct ocs_occupancy *swap = s->own;
	bool all = true;
	int i;

	for (i = 0; i < s->njobs; i++)
		order[i] = &s->jobs[i];
	qsort(order, (size_t)s->njobs, sizeof(*order), job_larger);
	ocs_occupancy_reset(s->anew);
	for (i = 0; all && i <= s->njobs; i++) {
		if (!mine && (i == s->njobs || order[i]->laid->shape.xpus <= entry->use.xpus))
			all = (mine = shape_lay(policy, s->anew, &entry->use)) != NULL;
		if (all && i < s->njobs)
			all = (to[i] = shape_lay(policy, s->anew, &order[i]->laid->shape)) != NULL;
	}
	for (i = 0; i < s->njobs; i++) {
		if (!all) {
			ocs_placement_destroy(to[i]);
			continue;
		}
		ocs_placement_destroy(order[i]->laid);
		order[i]->laid = to[i];
	}
	if (all) {
		s->own = s->anew;
		s->anew = swap;
	} else {
		ocs_placement_destroy(mine);
		mine = NULL;
	}
	free(order);
	free(to);
	return mine;
}

struct ocs_placement *ocs_policy_scratch_place(struct ocs_policy *policy,
					       const struct ocs_policy_shape *entry,
					       const struct ocs_occupancy *occupancy)
{
	struct ocs_placement *told = ocs_policy_any_place(policy, &entry->use, occupancy), *laid;
	struct ocs_policy_scratch *s = policy->scratch_jobs;

	if (!s)
		s = policy->scratch_jobs = scratch_create(policy->section);
	if (!told)
		return NULL;
	jobs_drop(policy, occupancy);
	laid = shape_lay(policy, s->own, &entry->use);
	if (!laid)
		laid = lay_anew(policy, entry);
	if (!laid) {
		ocs_placement_destroy(told);
		return NULL;
	}
	if (s->njobs == s->room) {
		s->room = s->room ? 2 * s->room : 64;
		s->jobs = ocs_realloc(s->jobs, (size_t)s->room * sizeof(*s->jobs));
	}
	s->jobs[s->njobs].told = told->xpus[0];
	s->jobs[s->njobs++].laid = laid;
	return told;
}
