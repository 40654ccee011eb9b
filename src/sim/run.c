/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/sim/run.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "src/sim/state.h"
#include "src/util/error.h"
#include "src/util/text.h"

/* Time of the processor: on a busy machine the wall clock measures the others. */
static double cpu_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void value_note(struct ocs_sim_numbers *values, double value)
{
	if (values->n == values->room) {
		values->room = values->room ? 2 * values->room : 4096;
		values->value =
			ocs_realloc(values->value, (size_t)values->room * sizeof(*values->value));
	}
	values->value[values->n++] = value;
}

struct ocs_placement *ocs_sim_place(struct ocs_sim *sim, const struct ocs_occupancy *occupancy,
				    const struct ocs_shape *shape, struct ocs_error *err)
{
	struct ocs_sim_result *r = sim->result;
	bool cold = !ocs_policy_known(sim->policy, shape);
	struct ocs_place_work work;
	double start = cpu_now(), took;
	struct ocs_placement *p = ocs_policy_place(sim->policy, occupancy, shape, err);

	took = cpu_now() - start;
	ocs_policy_work(sim->policy, &work);
	/* a catalogue is made again if it had to give way to others, and the rest of it when
	 * few cubes do not do */
	value_note(cold || work.catalogues ? &r->cold : &r->decisions, took);
	value_note(&r->candidates, (double)work.candidates);
	value_note(&r->words, (double)work.words);
	r->searched += work.searched;
	r->bounded += work.bounded;
	return p;
}

/* Seconds until all switches of P have made its circuits, from sim->time on.  Each
 * switch serves one batch after the other. */
double ocs_sim_switching(struct ocs_sim *sim, const struct ocs_placement *p)
{
	const struct ocs_sim_options *o = sim->options;
	double latest = sim->time;
	int i;

	if (o->switch_delay <= 0 && o->circuit_delay <= 0)
		return 0;
	for (i = 0; i < p->ncircuits; i++)
		sim->batch[ocs_sim_switch(sim, &p->circuits[i])]++;
	for (i = 0; i < p->ncircuits; i++) {
		int sw = ocs_sim_switch(sim, &p->circuits[i]), n = sim->batch[sw];

		if (!n)
			continue;
		sim->batch[sw] = 0;
		if (sim->switch_free[sw] < sim->time)
			sim->switch_free[sw] = sim->time;
		sim->switch_free[sw] +=
			o->switch_delay + o->circuit_delay * (o->switches_parallel ? 1 : n);
		if (sim->switch_free[sw] > latest)
			latest = sim->switch_free[sw];
	}
	return latest - sim->time;
}

void ocs_sim_hold(struct ocs_sim *sim, struct ocs_occupancy *occupancy,
		  const struct ocs_placement *p, bool hold)
{
	int i;

	for (i = 0; i < p->nnodes; i++)
		ocs_occupancy_node_set(occupancy, sim->options->fabric, p->nodes[i], !hold);
}

static bool shape_relaxed(const struct ocs_shape *asked, const struct ocs_shape *placed)
{
	return memcmp(asked->mesh, placed->mesh, sizeof(asked->mesh)) != 0;
}

double ocs_sim_slowdown(struct ocs_sim *sim, const struct ocs_shape *asked,
			const struct ocs_placement *p, const struct ocs_routes *routes)
{
	if (sim->options->simulated)
		return 1 + sim->options->communication *
				   (ocs_sim_ratio_find(&sim->ratios, asked, &p->shape, routes) - 1);
	return routes ? ocs_routes_slowdown(routes->load, sim->options->communication) : 1;
}

/* Proves P right, if that is wanted. */
static int placement_prove(struct ocs_sim *sim, const struct ocs_sim_outcome *out,
			   const struct ocs_placement *p, const struct ocs_routes *routes,
			   struct ocs_error *err)
{
	const struct ocs_fabric *fabric = sim->options->fabric;
	char shape[OCS_SHAPE_TEXT];
	double start;

	if (!sim->options->verify || !ocs_policy_verifiable(sim->policy))
		return 0;
	start = cpu_now();
	if (routes ? ocs_routes_verify(fabric, sim->occupancy, p, routes, err) :
		     ocs_placement_verify(fabric, sim->occupancy, p, err))
		return ocs_error_prefix(err, "job %ld, %s: the policy made a wrong placement",
					out->job.id, ocs_shape_format(&out->job.shape, shape));
	value_note(&sim->result->verifications, cpu_now() - start);
	sim->result->verified++;
	return 0;
}

int ocs_sim_start(struct ocs_sim *sim, long index, struct ocs_placement *p,
		  struct ocs_routes *routes, struct ocs_error *err)
{
	struct ocs_sim_outcome *out = &sim->result->jobs[index];

	if (placement_prove(sim, out, p, routes, err)) {
		ocs_placement_destroy(p);
		ocs_routes_destroy(routes);
		return -1;
	}
	ocs_sim_hold(sim, sim->occupancy, p, true);
	out->state = OCS_SIM_RUNNING;
	out->start = sim->time;
	out->switched = ocs_sim_switching(sim, p);
	out->load = routes ? routes->load : 1;
	out->slowdown = ocs_sim_slowdown(sim, &out->job.shape, p, routes);
	out->end = sim->time + out->switched + out->job.duration * out->slowdown;
	out->cubes = p->ncubes;
	out->nodes = p->nnodes;
	out->circuits = p->ncircuits;
	out->relaxed = shape_relaxed(&out->job.shape, &p->shape);
	sim->result->relaxed += out->relaxed;
	sim->result->shared += out->load > 1;
	ocs_routes_destroy(routes);
	ocs_sim_running_add(sim, index, p);
	sim->fragmentation = -1;
	sim->busy += (double)out->job.shape.xpus;
	sim->useful += (double)out->job.shape.xpus / out->slowdown;
	sim->allocated += (double)p->nnodes * sim->node_xpus;
	return 0;
}

void ocs_sim_span_keep(struct ocs_sim *sim, const struct ocs_sim_running *run)
{
	const struct ocs_section *s = sim->options->section;
	const struct ocs_placement *p = run->placement;
	struct ocs_sim_result *r = sim->result;
	struct ocs_sim_span *span;
	long i;

	if (!sim->options->keep_day || run->since >= r->day_to || sim->time <= r->day_from)
		return;
	if (r->nspans == r->span_room) {
		r->span_room = r->span_room ? 2 * r->span_room : 256;
		r->spans = ocs_realloc(r->spans, (size_t)r->span_room * sizeof(*r->spans));
	}
	span = &r->spans[r->nspans++];
	span->job = run->job;
	span->from = run->since;
	span->to = sim->time;
	span->n = (int)p->shape.xpus;
	span->xpus = ocs_calloc((size_t)span->n, sizeof(int));
	for (i = 0; i < p->shape.xpus; i++)
		span->xpus[i] = p->xpus[i].cube * s->cube_xpus + ocs_section_bit(s, p->xpus[i].at);
}

/* The job that ends first goes. */
static void job_finish(struct ocs_sim *sim)
{
	struct ocs_sim_running gone = ocs_sim_running_pop(sim);
	struct ocs_sim_outcome *out = &sim->result->jobs[gone.job];

	ocs_sim_span_keep(sim, &gone);
	ocs_sim_hold(sim, sim->occupancy, gone.placement, false);
	/* breaking circuits keeps the switches busy, not the job */
	ocs_sim_switching(sim, gone.placement);
	sim->busy -= (double)out->job.shape.xpus;
	sim->useful -= (double)out->job.shape.xpus / out->slowdown;
	sim->allocated -= (double)gone.placement->nnodes * sim->node_xpus;
	out->state = OCS_SIM_DONE;
	ocs_placement_destroy(gone.placement);
	sim->fragmentation = -1;
	sim->changed = true;
}

/* Starts what can start.  The first job that cannot holds up all behind it, unless
 * backfill finds some that do not delay it. */
static int queue_schedule(struct ocs_sim *sim, struct ocs_error *err)
{
	struct ocs_error why = { 0 };

	while (sim->nqueue) {
		long head = sim->queue[0];
		struct ocs_sim_outcome *out = &sim->result->jobs[head];
		struct ocs_placement *p;

		if (!sim->changed && sim->blocked == head)
			break;
		p = ocs_sim_place(sim, sim->occupancy, &out->job.shape, &why);
		if (!p && why.code != OCS_NOT_NOW) {
			if (why.code != OCS_NEVER) {
				*err = why;
				return -1;
			}
			out->state = OCS_SIM_NEVER;
			ocs_sim_queue_remove(sim, 0);
			continue;
		}
		if (!p && sim->options->moves)
			p = ocs_sim_defragment(sim, &out->job.shape);
		if (!p) {
			sim->blocked = head;
			break;
		}
		ocs_sim_queue_remove(sim, 0);
		if (ocs_sim_start(sim, head, p, ocs_policy_routes_take(sim->policy), err))
			return -1;
	}
	sim->changed = false;
	return sim->nqueue > 1 && sim->options->easy ? ocs_sim_backfill(sim, err) : 0;
}

/* Keeps how full the cubes are at the moments before TIME. */
static void moments_keep(struct ocs_sim *sim, double time)
{
	struct ocs_sim_result *r = sim->result;
	const struct ocs_section *s = sim->options->section;
	int cube;

	while (r->moments < sim->options->moments && r->moments * sim->moment_step < time) {
		float *at = r->cubes + (size_t)r->moments++ * (size_t)s->ncubes;

		for (cube = 0; cube < s->ncubes; cube++)
			at[cube] = 1 - (float)ocs_occupancy_cube_free(sim->occupancy, cube) /
					       (float)s->cube_xpus;
	}
}

/* Adds up what was in use until TIME. */
static void time_advance(struct ocs_sim *sim, double time)
{
	struct ocs_sim_result *r = sim->result;
	double from = sim->time < sim->options->warmup ? sim->options->warmup : sim->time;

	moments_keep(sim, time);
	if (time > from) {
		if (sim->fragmentation < 0)
			sim->fragmentation = ocs_fragmentation_measure(sim->room, sim->occupancy);
		r->fragmented += sim->fragmentation * (time - from);
		r->busy += sim->busy * (time - from);
		r->allocated += sim->allocated * (time - from);
		r->useful += sim->useful * (time - from);
		r->measured += time - from;
		r->bins[(int)(sim->busy * OCS_SIM_BINS / sim->total + 0.5)] += time - from;
	}
	sim->time = time;
}

static void state_sample(struct ocs_sim *sim)
{
	struct ocs_sim_result *r = sim->result;

	if (r->nsamples == r->sample_room) {
		r->sample_room = r->sample_room ? 2 * r->sample_room : 4096;
		r->samples = ocs_realloc(r->samples, (size_t)r->sample_room * sizeof(*r->samples));
	}
	r->samples[r->nsamples].time = sim->time;
	r->samples[r->nsamples].busy = (float)(sim->busy / sim->total);
	r->samples[r->nsamples++].waiting = (int)sim->nqueue;
}

/* The next job, or false when there is none. */
static bool arrival_next(struct ocs_sim *sim)
{
	const struct ocs_sim_options *o = sim->options;

	if (o->workload) {
		sim->next.arrival = sim->next_arrival;
		sim->next_arrival += ocs_sim_workload_draw(o->workload, o->random, &sim->next);
		return true;
	}
	if (sim->cursor == o->trace->njobs)
		return false;
	sim->next = o->trace->jobs[sim->cursor++];
	return true;
}

static void job_arrive(struct ocs_sim *sim)
{
	const struct ocs_sim_options *o = sim->options;

	if (o->workload && o->queue_limit && sim->nqueue > o->queue_limit) {
		sim->result->lost++;
		return;
	}
	if (o->workload) {
		sim->next.id = sim->result->njobs;
		if (o->trace)
			ocs_sim_trace_add(o->trace, &sim->next);
	}
	ocs_sim_queue_add(sim, &sim->next);
}

static void progress_tell(struct ocs_sim *sim)
{
	const struct ocs_sim_options *o = sim->options;
	double share = o->horizon > 0 ? sim->time / o->horizon :
					(double)sim->cursor / (double)(o->trace->njobs + 1);

	if (!o->progress || share < sim->told + .01)
		return;
	sim->told = share;
	o->progress(o->progress_arg, share);
}

static int events_loop(struct ocs_sim *sim, struct ocs_error *err)
{
	double horizon = sim->options->horizon;
	bool more = arrival_next(sim);

	while (more || sim->nrunning) {
		double time;

		if (!more || (sim->nrunning && sim->running[0].end <= sim->next.arrival))
			time = sim->running[0].end;
		else
			time = sim->next.arrival;
		if (horizon > 0 && time > horizon)
			break;
		time_advance(sim, time);
		while (sim->nrunning && sim->running[0].end <= time)
			job_finish(sim);
		/* one arrival a turn: what it finds waiting counts */
		if (more && sim->next.arrival <= time) {
			job_arrive(sim);
			more = arrival_next(sim);
		}
		if (queue_schedule(sim, err))
			return -1;
		state_sample(sim);
		progress_tell(sim);
	}
	if (horizon > 0)
		time_advance(sim, horizon);
	return 0;
}

int ocs_sim_run(const struct ocs_sim_options *options, struct ocs_policy *policy,
		struct ocs_sim_result *result, struct ocs_error *err)
{
	const struct ocs_section *s = options->section;
	struct ocs_sim sim = {
		.options = options,
		.policy = policy,
		.result = result,
		.blocked = -1,
		.node_xpus = s->tile[0] * s->tile[1] * s->tile[2],
		.total = (double)s->ncubes * s->cube_xpus,
	};
	int face = 0, a, rc;
	double last = options->horizon;

	memset(result, 0, sizeof(*result));
	/* without a horizon, until the last job arrives */
	if (last <= 0 && options->trace->njobs)
		last = options->trace->jobs[options->trace->njobs - 1].arrival;
	if (options->keep_day) {
		result->day_from = options->day < 0 ? last - OCS_SIM_DAY : options->day;
		result->day_from = result->day_from < 0 ? 0 : result->day_from;
		result->day_to = result->day_from + OCS_SIM_DAY;
	}
	if (options->moments) {
		sim.moment_step = last / options->moments;
		result->ncubes = s->ncubes;
		result->cubes =
			ocs_calloc((size_t)options->moments * (size_t)s->ncubes, sizeof(float));
	}
	for (a = 0; a < OCS_AXES; a++)
		face = s->edge[a] > face ? s->edge[a] : face;
	sim.face_edge = face;
	sim.switch_free = ocs_calloc((size_t)(OCS_AXES * face * face), sizeof(double));
	sim.batch = ocs_calloc((size_t)(OCS_AXES * face * face), sizeof(int));
	sim.occupancy = ocs_occupancy_create(s);
	sim.shadow = ocs_occupancy_create(s);
	sim.room = ocs_fragmentation_create(s);
	rc = events_loop(&sim, err);
	result->time = sim.time;
	while (sim.nrunning) {
		struct ocs_sim_running run = ocs_sim_running_pop(&sim);

		ocs_sim_span_keep(&sim, &run);
		ocs_placement_destroy(run.placement);
	}
	if (result->day_to > sim.time)
		result->day_to = sim.time;
	ocs_occupancy_destroy(sim.occupancy);
	ocs_occupancy_destroy(sim.shadow);
	ocs_fragmentation_destroy(sim.room);
	free(sim.switch_free);
	free(sim.batch);
	free(sim.running);
	free(sim.queue);
	ocs_sim_ratios_free(&sim.ratios);
	if (rc)
		ocs_sim_result_free(result);
	return rc;
}

void ocs_sim_result_free(struct ocs_sim_result *result)
{
	long i;

	for (i = 0; i < result->nspans; i++)
		free(result->spans[i].xpus);
	free(result->spans);
	free(result->jobs);
	free(result->cubes);
	free(result->samples);
	free(result->decisions.value);
	free(result->cold.value);
	free(result->verifications.value);
	free(result->candidates.value);
	free(result->words.value);
	memset(result, 0, sizeof(*result));
}
