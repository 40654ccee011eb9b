/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include <stdlib.h>
#include <string.h>

#include "src/sim/state.h"
#include "src/util/error.h"
#include "src/util/text.h"

#define BACKFILL_DEPTH 100 /* jobs behind the head that are looked at */

void ocs_sim_running_add(struct ocs_sim *sim, long job, struct ocs_placement *p)
{
	double end = sim->result->jobs[job].end;
	long i = sim->nrunning++;

	if (i == sim->running_room) {
		sim->running_room = i ? 2 * i : 256;
		sim->running = ocs_realloc(sim->running,
					   (size_t)sim->running_room * sizeof(*sim->running));
	}
	for (; i && sim->running[(i - 1) / 2].end > end; i = (i - 1) / 2)
		sim->running[i] = sim->running[(i - 1) / 2];
	sim->running[i] = (struct ocs_sim_running){ end, sim->time, job, p };
}

struct ocs_sim_running ocs_sim_running_pop(struct ocs_sim *sim)
{
	struct ocs_sim_running top = sim->running[0], last = sim->running[--sim->nrunning];
	long i = 0;

	for (;;) {
		long child = 2 * i + 1;

		if (child >= sim->nrunning)
			break;
		if (child + 1 < sim->nrunning &&
		    sim->running[child + 1].end < sim->running[child].end)
			child++;
		if (sim->running[child].end >= last.end)
			break;
		sim->running[i] = sim->running[child];
		i = child;
	}
	sim->running[i] = last;
	return top;
}

static int end_sooner(const void *a, const void *b)
{
	const struct ocs_sim_running *p = a, *q = b;

	return (p->end > q->end) - (p->end < q->end);
}

void ocs_sim_running_sort(struct ocs_sim *sim)
{
	qsort(sim->running, (size_t)sim->nrunning, sizeof(*sim->running), end_sooner);
}

/* Whether A goes before B; jobs that are equal keep the order of their arrival. */
static bool job_before(enum ocs_sim_order order, const struct ocs_sim_job *a,
		       const struct ocs_sim_job *b)
{
	switch (order) {
	case OCS_SIM_PRIORITY:
		return a->priority > b->priority;
	case OCS_SIM_SMALLEST:
		return a->shape.xpus < b->shape.xpus;
	case OCS_SIM_LARGEST:
		return a->shape.xpus > b->shape.xpus;
	case OCS_SIM_SHORTEST:
		return a->duration < b->duration;
	default:
		return false;
	}
}

void ocs_sim_queue_add(struct ocs_sim *sim, const struct ocs_sim_job *job)
{
	struct ocs_sim_result *r = sim->result;
	long i = sim->nqueue++;

	if (r->njobs == r->room) {
		r->room = r->room ? 2 * r->room : 1024;
		r->jobs = ocs_realloc(r->jobs, (size_t)r->room * sizeof(*r->jobs));
	}
	memset(&r->jobs[r->njobs], 0, sizeof(*r->jobs));
	r->jobs[r->njobs].job = *job;
	if (i == sim->queue_room) {
		sim->queue_room = i ? 2 * i : 256;
		sim->queue = ocs_realloc(sim->queue, (size_t)sim->queue_room * sizeof(*sim->queue));
	}
	for (; i && job_before(sim->options->order, job, &r->jobs[sim->queue[i - 1]].job); i--)
		sim->queue[i] = sim->queue[i - 1];
	sim->queue[i] = r->njobs++;
}

void ocs_sim_queue_remove(struct ocs_sim *sim, long at)
{
	sim->nqueue--;
	memmove(sim->queue + at, sim->queue + at + 1,
		(size_t)(sim->nqueue - at) * sizeof(*sim->queue));
}

/* Leaves in sim->shadow what will be free when SHAPE can start, and returns that time,
 * or -1 if it does not fit the empty machine. */
static double head_reservation(struct ocs_sim *sim, const struct ocs_shape *shape)
{
	size_t size = (size_t)sim->nrunning * sizeof(*sim->running);
	struct ocs_sim_running *order = ocs_calloc((size_t)sim->nrunning + 1, sizeof(*order));
	double left = sim->total - sim->allocated, start = -1;
	struct ocs_error err;
	long i;

	memcpy(order, sim->running, size);
	qsort(order, (size_t)sim->nrunning, sizeof(*order), end_sooner);
	ocs_occupancy_copy(sim->shadow, sim->occupancy);
	for (i = 0; i < sim->nrunning && start < 0; i++) {
		struct ocs_placement *p;

		ocs_sim_hold(sim, sim->shadow, order[i].placement, false);
		left += (double)order[i].placement->nnodes * sim->node_xpus;
		if (left < (double)shape->xpus)
			continue;
		p = ocs_sim_place(sim, sim->shadow, shape, &err);
		if (p)
			start = order[i].end;
		ocs_placement_destroy(p);
	}
	free(order);
	return start;
}

/* Whether HEAD still fits into the shadow without the nodes of P; keeps them out then. */
static bool leaves_room(struct ocs_sim *sim, const struct ocs_shape *head,
			const struct ocs_placement *p)
{
	struct ocs_placement *then;
	struct ocs_error err;

	ocs_sim_hold(sim, sim->shadow, p, true);
	then = ocs_sim_place(sim, sim->shadow, head, &err);
	if (!then)
		ocs_sim_hold(sim, sim->shadow, p, false);
	ocs_placement_destroy(then);
	return then != NULL;
}

int ocs_sim_backfill(struct ocs_sim *sim, struct ocs_error *err)
{
	const struct ocs_shape head = sim->result->jobs[sim->queue[0]].job.shape;
	double start = head_reservation(sim, &head);
	struct ocs_error why = { 0 };
	long i, looked = 0;

	for (i = 1; i < sim->nqueue && looked < BACKFILL_DEPTH; looked++) {
		long index = sim->queue[i];
		struct ocs_sim_job *job = &sim->result->jobs[index].job;
		struct ocs_placement *p;
		struct ocs_routes *routes;

		i++;
		if ((double)job->shape.xpus > sim->total - sim->allocated)
			continue;
		p = ocs_sim_place(sim, sim->occupancy, &job->shape, &why);
		if (!p)
			continue;
		routes = ocs_policy_routes_take(sim->policy);
		if (start >= 0 &&
		    sim->time + job->duration * ocs_sim_slowdown(sim, &job->shape, p, routes) >
			    start &&
		    !leaves_room(sim, &head, p)) {
			ocs_placement_destroy(p);
			ocs_routes_destroy(routes);
			continue;
		}
		ocs_sim_queue_remove(sim, --i);
		sim->result->jobs[index].backfilled = true;
		if (ocs_sim_start(sim, index, p, routes, err))
			return -1;
	}
	return 0;
}
