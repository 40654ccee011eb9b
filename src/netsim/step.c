/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/netsim/step.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/netsim/step_internal.h"
#include "src/util/error.h"
#include "src/util/text.h"

static const struct ocs_netsim_task *task_of(const struct step_run *run, int task)
{
	const struct step_job *job = &run->jobs[run->job_of[task]];

	return &job->job->graph->tasks[task - job->tasks];
}

static int server_of(const struct step_run *run, int task, int server)
{
	const int *place = run->jobs[run->job_of[task]].job->place;

	return place ? place[server] : server;
}

static void task_end(struct step_run *run, int task);

static void flow_note(struct step_run *run, int flow, int src, int dst, int task)
{
	if (flow >= run->flows_size) {
		int size = run->flows_size ? 2 * run->flows_size : 256;

		while (size <= flow)
			size *= 2;
		run->flows = ocs_realloc(run->flows, (size_t)size * sizeof(*run->flows));
		memset(run->flows + run->flows_size, 0,
		       (size_t)(size - run->flows_size) * sizeof(*run->flows));
		run->flows_size = size;
	}
	run->flows[flow] = (struct step_flow){ .src = src, .dst = dst, .task = task, .on = true };
}

/* What counts as a hop: a link that leaves a server. */
static int path_hops(const struct ocs_netsim_fabric *fabric, const struct ocs_netsim_path *path)
{
	int hops = 0;

	for (int k = 0; k < path->n; k++)
		hops += fabric->links[path->links[k]].from < fabric->servers;
	return hops;
}

void ocs_step_path_send(struct step_run *run, int task, int src, int dst,
			const struct ocs_netsim_path *path, double bytes)
{
	int hops = path_hops(run->fabric, path);
	int flow = ocs_flownet_start(run->net, path->links, path->n, bytes, 1, task);

	flow_note(run, flow, src, dst, task);
	run->tasks[task].pending++;
	run->result->hops += bytes * hops;
	run->result->hop_bytes[hops] += bytes;
	run->result->sent += bytes;
}

/* Sends BYTES for TASK over the routes of today. */
static void bytes_send(struct step_run *run, int task, int src, int dst, double bytes)
{
	const struct ocs_netsim_routes *routes =
		ocs_netsim_fabric_routes(run->fabric, src, dst, run->err);

	run->failed = !routes;
	for (int k = 0; routes && k < routes->count; k++)
		ocs_step_path_send(run, task, src, dst, &routes->paths[k],
				   bytes * routes->paths[k].weight);
}

/* All bytes have been sent; the last ones still have to arrive. */
static void phase_wait(struct step_run *run, int task)
{
	ocs_queue_set(&run->queue, task,
		      ocs_flownet_now(run->net) +
			      run->tasks[task].hops * run->fabric->spec.latency);
}

static void task_send(void *context, int src, int dst, double bytes, bool direct)
{
	struct step_run *run = context;
	const int *links = direct ? run->fabric->direct : NULL;
	int link = links ? links[src * run->fabric->servers + dst] : 0;

	if (run->failed || src == dst || !(bytes > 0))
		return;
	if (run->circuits)
		ocs_step_circuits_want(run);
	if (run->rails) {
		struct ocs_netsim_path path;

		ocs_step_rails_path(run, run->current, src, dst, &path);
		ocs_step_path_send(run, run->current, src, dst, &path, bytes);
	} else if (link) {
		ocs_step_path_send(
			run, run->current, src, dst,
			&(struct ocs_netsim_path){ .links = { link - 1 }, .n = 1, .weight = 1 },
			bytes);
	} else if (run->region) {
		ocs_step_region_send(run, run->current, src, dst, bytes);
	} else {
		bytes_send(run, run->current, src, dst, bytes);
	}
}

/* Begins the phase that the task has come to; ends the task after the last. */
static void phase_begin(struct step_run *run, int task)
{
	const struct ocs_netsim_task *it = task_of(run, task);
	const struct step_job *job = &run->jobs[run->job_of[task]];
	struct step_task *state = &run->tasks[task];
	bool more;

	run->current = task;
	state->pending = state->hops = 0;
	if (it->kind == OCS_NETSIM_TRANSFER) {
		more = state->phase == 0;
		state->hops = it->server != it->peer;
		if (more)
			task_send(run, server_of(run, task, it->server),
				  server_of(run, task, it->peer), it->bytes, false);
	} else {
		more = ocs_netsim_collective_phase(job->job->graph, it, job->job->place,
						   run->fabric, run->request->algorithm,
						   state->phase, task_send, run, &state->hops);
	}
	if (run->failed)
		return;
	if (!more)
		task_end(run, task);
	else if (!state->pending)
		phase_wait(run, task);
}

/* The device does TASK now, or when it has done what came before. */
static void device_begin(struct step_run *run, int task)
{
	const struct ocs_netsim_task *it = task_of(run, task);
	const struct step_job *job = &run->jobs[run->job_of[task]];
	struct step_device *device =
		&run->devices[job->devices + it->server * job->job->graph->devices + it->device];

	run->tasks[task].next = -1;
	if (device->task >= 0) {
		if (device->last >= 0)
			run->tasks[device->last].next = task;
		else
			device->first = task;
		device->last = task;
		return;
	}
	device->task = task;
	run->result->spans[task].start = ocs_flownet_now(run->net);
	ocs_queue_set(&run->queue, task, ocs_flownet_now(run->net) + it->ms);
}

static void device_next(struct step_run *run, int task)
{
	const struct ocs_netsim_task *it = task_of(run, task);
	const struct step_job *job = &run->jobs[run->job_of[task]];
	struct step_device *device =
		&run->devices[job->devices + it->server * job->job->graph->devices + it->device];
	int next = device->first;

	device->task = -1;
	if (next < 0)
		return;
	device->first = run->tasks[next].next;
	if (device->first < 0)
		device->last = -1;
	device_begin(run, next);
}

static void task_begin(struct step_run *run, int task)
{
	const struct ocs_netsim_task *it = task_of(run, task);
	double ms = it->ms;

	if (it->kind == OCS_NETSIM_COMPUTE) {
		device_begin(run, task);
		return;
	}
	run->result->spans[task].start = ocs_flownet_now(run->net);
	run->tasks[task].phase = -1;
	ocs_queue_set(&run->queue, task, ocs_flownet_now(run->net) + ms);
}

/* All tasks of a job that wait for nothing. */
static void step_begin(struct step_run *run, int number)
{
	struct step_job *job = &run->jobs[number];
	int n = job->job->graph->ntasks;

	job->left = n;
	for (int k = 0; k < n; k++) {
		run->tasks[job->tasks + k] = (struct step_task){ .waits = job->waits[k] };
		run->result->spans[job->tasks + k] = (struct ocs_netsim_span){ -1, -1 };
	}
	for (int k = 0; k < n && !run->failed; k++) {
		if (!job->waits[k])
			task_begin(run, job->tasks + k);
	}
}

static void step_end(struct step_run *run, int number)
{
	struct step_job *job = &run->jobs[number];
	double now = ocs_flownet_now(run->net);

	run->result->step_ms[number] = (now - job->timed) / ++job->step;
	if (job->step < job->job->steps)
		step_begin(run, number);
	else
		run->left--;
}

static void task_end(struct step_run *run, int task)
{
	int number = run->job_of[task];
	struct step_job *job = &run->jobs[number];
	int own = task - job->tasks;

	run->result->spans[task].end = ocs_flownet_now(run->net);
	if (task_of(run, task)->kind == OCS_NETSIM_COMPUTE)
		device_next(run, task);
	else if (run->rails && task_of(run, task)->kind != OCS_NETSIM_BARRIER)
		ocs_step_rails_end(run, task);
	else if (run->region && task_of(run, task)->kind != OCS_NETSIM_BARRIER)
		ocs_step_region_end(run, task);
	for (int k = job->first[own]; k < job->first[own + 1]; k++) {
		int after = job->tasks + job->next[k];

		if (!--run->tasks[after].waits)
			task_begin(run, after);
	}
	if (!--job->left)
		step_end(run, number);
}

void ocs_step_task_send(struct step_run *run, int task)
{
	run->tasks[task].phase++;
	phase_begin(run, task);
}

/* Whether TASK, which could send now, does so later: circuits have to change before. */
static bool task_hold(struct step_run *run, int task)
{
	double wait;

	if (run->rails)
		return ocs_step_rails_arrive(run, task);
	wait = run->region ? ocs_step_region_arrive(run, task) : 0;
	run->tasks[task].held = true;
	if (wait > 0)
		ocs_queue_set(&run->queue, task, ocs_flownet_now(run->net) + wait);
	return wait > 0;
}

/* The time of TASK has come. */
static void timer_end(struct step_run *run, int task)
{
	const struct ocs_netsim_task *it = task_of(run, task);

	ocs_queue_remove(&run->queue, task);
	if (it->kind == OCS_NETSIM_COMPUTE || it->kind == OCS_NETSIM_BARRIER) {
		task_end(run, task);
	} else if (run->tasks[task].phase >= 0 || run->tasks[task].held || !task_hold(run, task)) {
		ocs_step_task_send(run, task);
	}
}

static void flows_end(struct step_run *run)
{
	int count;
	const struct ocs_flow_end *ends = ocs_flownet_ended(run->net, &count);
	struct ocs_flow_end *copy = ocs_calloc((size_t)count + 1, sizeof(*copy));

	if (count)
		memcpy(copy, ends, (size_t)count * sizeof(*copy));
	for (int k = 0; k < count; k++)
		run->flows[copy[k].flow].on = false;
	for (int k = 0; k < count && !run->failed; k++) {
		if (!--run->tasks[copy[k].tag].pending)
			phase_wait(run, copy[k].tag);
	}
	run->result->events += count;
	free(copy);
}

static int run_stuck(const struct step_run *run)
{
	for (int k = 0; k < run->ntasks; k++) {
		if (run->tasks[k].pending > 0)
			return ocs_error_set(run->err, OCS_NEVER,
					     "task %d never ends: no circuit is ever made for it",
					     k - run->jobs[run->job_of[k]].tasks);
	}
	return ocs_error_set(run->err, OCS_NEVER, "tasks wait for each other");
}

/* Looks at all links now. */
static void sample_take(struct step_run *run)
{
	struct ocs_netsim_result *result = run->result;
	size_t links = (size_t)run->fabric->nlinks;

	result->samples = ocs_realloc(result->samples,
				      ((size_t)result->nsamples + 1) * links * sizeof(double));
	for (size_t k = 0; k < links; k++)
		result->samples[(size_t)result->nsamples * links + k] =
			ocs_flownet_link_carried(run->net, (int)k);
	result->nsamples++;
}

/* Goes on to TIME, by way of the samples before it. */
static void run_advance(struct step_run *run, double time)
{
	double every = run->request->sample_ms;

	while (every > 0 && run->result->nsamples * every <= time) {
		ocs_flownet_advance(run->net, run->result->nsamples * every);
		sample_take(run);
	}
	ocs_flownet_advance(run->net, time);
}

static int run_events(struct step_run *run)
{
	while (run->left > 0 && !run->failed) {
		double next = ocs_flownet_next(run->net), timer = ocs_queue_next(&run->queue);

		if (run->request->watch)
			run->request->watch(run->request->context, run->net);
		if (timer < next)
			next = timer;
		if (isinf(next))
			return run_stuck(run);
		run_advance(run, next);
		flows_end(run);
		while (!run->failed && ocs_queue_next(&run->queue) <= next) {
			int first = ocs_queue_first(&run->queue);

			run->result->events++;
			if (first < run->ntasks)
				timer_end(run, first);
			else if (first == run->ntasks && run->rails)
				ocs_step_rails_event(run);
			else if (first == run->ntasks)
				ocs_step_circuits_event(run);
			else
				ocs_queue_remove(&run->queue, first),
					step_begin(run, first - run->ntasks - 1);
		}
	}
	return run->failed ? -1 : 0;
}

/* What comes after each task of a job, and how much before. */
static void job_prepare(struct step_job *job)
{
	const struct ocs_netsim_graph *graph = job->job->graph;
	size_t n = (size_t)graph->ntasks;

	job->first = ocs_calloc(n + 2, sizeof(int));
	job->next = ocs_calloc((size_t)graph->nedges + 1, sizeof(int));
	job->waits = ocs_calloc(n + 1, sizeof(int));
	for (int k = 0; k < graph->nedges; k++) {
		job->first[graph->edges[k].before + 2]++;
		job->waits[graph->edges[k].after]++;
	}
	for (size_t k = 2; k < n + 2; k++)
		job->first[k] += job->first[k - 1];
	for (int k = 0; k < graph->nedges; k++)
		job->next[job->first[graph->edges[k].before + 1]++] = graph->edges[k].after;
}

static void run_prepare(struct step_run *run)
{
	const struct ocs_netsim_request *request = run->request;
	int devices = 0, at = 0;

	run->jobs = ocs_calloc((size_t)request->njobs + 1, sizeof(*run->jobs));
	for (int k = 0; k < request->njobs; k++) {
		const struct ocs_netsim_graph *graph = request->jobs[k].graph;

		run->jobs[k] = (struct step_job){ .job = &request->jobs[k],
						  .tasks = run->ntasks,
						  .devices = devices,
						  .timed = request->jobs[k].start };
		job_prepare(&run->jobs[k]);
		run->ntasks += graph->ntasks;
		devices += graph->servers * graph->devices;
	}
	run->tasks = ocs_calloc((size_t)run->ntasks + 1, sizeof(*run->tasks));
	run->job_of = ocs_calloc((size_t)run->ntasks + 1, sizeof(int));
	for (int k = 0; k < request->njobs; k++) {
		for (int i = 0; i < request->jobs[k].graph->ntasks; i++)
			run->job_of[at++] = k;
	}
	run->devices = ocs_calloc((size_t)devices + 1, sizeof(*run->devices));
	for (int k = 0; k < devices; k++)
		run->devices[k] = (struct step_device){ -1, -1, -1 };
	for (int k = 0; k < run->fabric->nlinks; k++)
		ocs_flownet_link_add(run->net, run->fabric->links[k].rate);
}

static void run_free(struct step_run *run)
{
	for (int k = 0; k < run->request->njobs; k++) {
		free(run->jobs[k].first);
		free(run->jobs[k].next);
		free(run->jobs[k].waits);
	}
	free(run->jobs);
	free(run->tasks);
	free(run->job_of);
	free(run->devices);
	free(run->flows);
	ocs_queue_free(&run->queue);
	ocs_step_circuits_destroy(run->circuits);
	ocs_step_rails_destroy(run->rails);
	ocs_step_region_destroy(run->region);
	ocs_flownet_destroy(run->net);
}

static void result_fill(struct step_run *run)
{
	struct ocs_netsim_result *result = run->result;
	double paths;

	result->end_ms = ocs_flownet_now(run->net);
	result->carried = ocs_calloc((size_t)run->fabric->nlinks + 1, sizeof(double));
	for (int k = 0; k < run->fabric->nlinks; k++)
		result->carried[k] = ocs_flownet_link_carried(run->net, k);
	ocs_flownet_effort(run->net, &result->solves, &paths);
}

/* One run; SEQUENCES as in struct step_run. */
static struct ocs_netsim_result *run_once(const struct ocs_netsim_request *request,
					  struct ocs_netsim_sequence *sequences, bool recording,
					  struct ocs_error *err)
{
	struct ocs_netsim_result *result = ocs_calloc(1, sizeof(*result));
	struct step_run run = { .request = request,
				.fabric = request->fabric,
				.net = ocs_flownet_create(request->tolerance),
				.err = err,
				.left = request->njobs,
				.sequences = sequences,
				.recording = recording,
				.result = result };

	run_prepare(&run);
	result->tolerance = request->tolerance;
	result->sample_ms = request->sample_ms;
	result->step_ms = ocs_calloc((size_t)request->njobs + 1, sizeof(double));
	result->spans = ocs_calloc((size_t)run.ntasks + 1, sizeof(*result->spans));
	result->nspans = run.ntasks;
	result->hop_bytes = ocs_calloc(OCS_FLOW_LINKS_MAX + 1, sizeof(double));
	run.circuits = ocs_step_circuits_create(&run);
	ocs_step_rails_create(&run);
	run.region = ocs_step_region_create(&run);
	for (int k = 0; k < request->njobs; k++) {
		if (request->jobs[k].graph->ntasks)
			ocs_queue_set(&run.queue, run.ntasks + 1 + k, request->jobs[k].start);
		else
			run.left--;
	}
	if (run_events(&run)) {
		ocs_netsim_result_destroy(result);
		result = NULL;
	} else {
		result_fill(&run);
	}
	run_free(&run);
	return result;
}

static struct ocs_netsim_sequence *sequences_create(const struct ocs_netsim_request *request)
{
	struct ocs_netsim_sequence *sequences =
		ocs_calloc((size_t)request->njobs + 1, sizeof(*sequences));

	for (int k = 0; k < request->njobs; k++)
		sequences[k].rows = ocs_calloc((size_t)request->jobs[k].graph->servers,
					       sizeof(*sequences[k].rows));
	return sequences;
}

static void sequences_destroy(const struct ocs_netsim_request *request,
			      struct ocs_netsim_sequence *sequences)
{
	for (int k = 0; k < request->njobs; k++) {
		for (int s = 0; s < request->jobs[k].graph->servers; s++)
			free(sequences[k].rows[s].groups);
		free(sequences[k].rows);
	}
	free(sequences);
}

struct ocs_netsim_result *ocs_netsim_run(const struct ocs_netsim_request *request,
					 struct ocs_error *err)
{
	struct ocs_netsim_spec *spec = &request->fabric->spec;
	struct ocs_netsim_sequence *sequences;
	struct ocs_netsim_result *result;

	if (spec->kind != OCS_NETSIM_OPUS || spec->phases != OCS_NETSIM_PROVISIONED)
		return run_once(request, NULL, false, err);
	/* a step on demand shows what comes after what */
	sequences = sequences_create(request);
	spec->phases = OCS_NETSIM_ON_DEMAND;
	result = run_once(request, sequences, true, err);
	spec->phases = OCS_NETSIM_PROVISIONED;
	if (result) {
		ocs_netsim_result_destroy(result);
		result = run_once(request, sequences, false, err);
	}
	sequences_destroy(request, sequences);
	return result;
}

void ocs_netsim_result_destroy(struct ocs_netsim_result *result)
{
	if (!result)
		return;
	free(result->step_ms);
	free(result->spans);
	free(result->carried);
	free(result->samples);
	free(result->hop_bytes);
	free(result);
}
