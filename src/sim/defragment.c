/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Restarts running jobs elsewhere when that lets the head of the queue in. */

#include <stdlib.h>

#include "src/advice/advice.h"
#include "src/sim/state.h"
#include "src/util/error.h"
#include "src/util/text.h"

/* Decisions like any other, but not those that are timed. */
static struct ocs_placement *shape_place(void *arg, const struct ocs_occupancy *occupancy,
					 const struct ocs_shape *shape, int node_count,
					 struct ocs_error *err)
{
	(void)node_count; /* always the smallest */
	return ocs_policy_place(arg, occupancy, shape, err);
}

/* Restarts the job of MOVE: it stands still while it is saved, wired and loaded. */
static void job_restart(struct ocs_sim *sim, struct ocs_advice_move *move)
{
	struct ocs_sim_running *run = &sim->running[move->job];
	struct ocs_sim_outcome *out = &sim->result->jobs[run->job];
	double pause = sim->options->restart;

	ocs_sim_span_keep(sim, run);
	run->since = sim->time;
	ocs_sim_switching(sim, run->placement);
	pause += ocs_sim_switching(sim, move->placement);
	ocs_placement_destroy(run->placement);
	run->placement = move->placement;
	move->placement = NULL;
	ocs_sim_hold(sim, sim->occupancy, run->placement, true);
	/* what is placed again has the rings and lines that it had, and links of its own: policy best gives
	 * no others.  So the job goes on as fast as before */
	run->end = out->end += pause;
	out->restarts++;
	out->cubes = run->placement->ncubes;
	out->circuits = run->placement->ncircuits;
	sim->result->restarts++;
	if (sim->time >= sim->options->warmup)
		sim->result->useful -= pause * (double)out->job.shape.xpus / out->slowdown;
}

struct ocs_placement *ocs_sim_defragment(struct ocs_sim *sim, const struct ocs_shape *shape)
{
	struct ocs_advice_job *jobs = ocs_calloc((size_t)sim->nrunning + 1, sizeof(*jobs));
	struct ocs_advice_request request = {
		.place = shape_place,
		.arg = sim->policy,
		.fabric = sim->options->fabric,
		.base = sim->shadow,
		.shape = shape,
		.jobs = jobs,
		.njobs = (int)sim->nrunning,
		.most_moves = sim->options->moves,
		.work = OCS_SIM_ADVICE_WORK,
	};
	struct ocs_placement *p = NULL;
	struct ocs_advice *advice;
	struct ocs_error why = { 0 };
	long i;
	int m;

	for (i = 0; i < sim->nrunning; i++) {
		jobs[i].placement = sim->running[i].placement;
		jobs[i].cost = (double)sim->running[i].placement->shape.xpus;
	}
	ocs_occupancy_reset(sim->shadow);
	advice = ocs_advise(&request, &why);
	free(jobs);
	if (!advice)
		return NULL;
	for (m = 0; m < advice->nmoves; m++)
		ocs_sim_hold(sim, sim->occupancy, sim->running[advice->moves[m].job].placement,
			     false);
	for (m = 0; m < advice->nmoves; m++)
		job_restart(sim, &advice->moves[m]);
	ocs_sim_running_sort(sim);
	p = advice->placement;
	advice->placement = NULL;
	ocs_advice_destroy(advice);
	return p;
}
