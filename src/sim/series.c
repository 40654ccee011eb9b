/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/sim/series.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "src/config/config.h"
#include "src/sim/day.h"
#include "src/sim/plot.h"
#include "src/util/error.h"
#include "src/util/text.h"

#define HOUR 3600.0
#define POLICY_BYTES_MIN (4UL << 20)

/* One run: what came of it, and how far it is. */
struct run {
	double share; /* 0..1 done */
	double *jct;
	long njct;
};

struct work {
	struct ocs_sim_series *series;
	struct run *runs;
	pthread_mutex_t lock; /* of all below */
	long next;	      /* run that nobody has begun */
	long done;
	long failed;		 /* the first run that failed; args->runs: none */
	struct ocs_error err;	 /* of that run */
	double started, printed; /* clock, seconds */
	const struct ocs_sim_figures *last;
};

/* Where a run is: it makes its jobs first, then replays them. */
struct part {
	struct work *work;
	struct run *run;
	double from, to;
};

double ocs_sim_clock(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Runs at a time. */
static long threads_of(const struct ocs_sim_args *a)
{
	long n = a->threads ? a->threads : sysconf(_SC_NPROCESSORS_ONLN);

	n = n < a->runs ? n : a->runs;
	return n > 1 ? n : 1;
}

/* All threads together may keep what one may. */
static void memory_share(const struct ocs_sim_args *a, struct ocs_policy *policy)
{
	size_t bytes = OCS_POLICY_BYTES / (size_t)threads_of(a);

	ocs_policy_bytes_set(policy, bytes > POLICY_BYTES_MIN ? bytes : POLICY_BYTES_MIN);
}

bool ocs_sim_progress_wanted(const struct ocs_sim_args *a)
{
	return !a->quiet && isatty(STDERR_FILENO);
}

struct ocs_policy *ocs_sim_policy(const struct ocs_sim_args *a, const struct ocs_fabric *fabric,
				  const struct ocs_section *section, struct ocs_error *err)
{
	struct ocs_policy *policy = ocs_policy_create(fabric, section, a->policy, a->lenient, err);
	/* the edges a link may carry within the limit on the slowdown */
	double load =
		1 + (a->slowdown_limit - 1) / (a->communication > 0 ? a->communication : 1e-9);

	/* 1 + .3 / .1 must be 4 */
	if (!policy)
		return NULL;
	ocs_policy_load_set(policy,
			    load < OCS_POLICY_LOAD_MAX ? (int)(load + 1e-6) : OCS_POLICY_LOAD_MAX);
	memory_share(a, policy);
	return policy;
}

/* With the lock held. */
static void progress_print(struct work *w, bool end)
{
	const struct ocs_sim_args *a = w->series->args;
	double share = 0, now = ocs_sim_clock(), left;
	long i;

	if (!ocs_sim_progress_wanted(a) || (!end && now - w->printed < OCS_SIM_PROGRESS_EVERY))
		return;
	w->printed = now;
	for (i = 0; i < a->runs; i++)
		share += w->runs[i].share / (double)a->runs;
	left = share > 0 ? (now - w->started) * (1 - share) / share : 0;
	fprintf(stderr, "\r\033[K%ld of %ld runs, %.0f %%, %.0f s, about %.0f s left", w->done,
		a->runs, 100 * share, now - w->started, left);
	if (w->last)
		fprintf(stderr, "; the last: JCR %.1f, JCT p50 %.2f h, utilisation %.1f %%",
			w->last->jcr, w->last->jct[0], w->last->utilisation);
	if (end)
		fputc('\n', stderr);
}

static void progress_share(void *arg, double share)
{
	struct part *part = arg;

	pthread_mutex_lock(&part->work->lock);
	part->run->share = part->from + (part->to - part->from) * share;
	progress_print(part->work, false);
	pthread_mutex_unlock(&part->work->lock);
}

/* Jobs as the published program makes them: a closed loop under another policy. */
static int jobs_produce(const struct ocs_sim_args *a, const struct ocs_sim_workload *workload,
			struct ocs_random *random, struct part *part, struct ocs_sim_trace *trace,
			struct ocs_error *err)
{
	struct ocs_fabric *fabric = ocs_config_take_fabric(ocs_config_open(a->produce_fabric, err));
	struct ocs_sim_options o = {
		.fabric = fabric,
		.trace = trace,
		.workload = workload,
		.random = random,
		.queue_limit = a->queue_limit,
		.horizon = a->produce_hours * HOUR,
		.progress = progress_share,
		.progress_arg = part,
	};
	struct ocs_sim_result result;
	struct ocs_policy *policy = NULL;
	int rc = -1;

	if (!fabric)
		return -1;
	o.section = ocs_fabric_section(fabric, NULL);
	if (o.section)
		policy = ocs_policy_create(fabric, o.section, a->produce_policy, true, err);
	else
		ocs_error_set(err, OCS_USAGE,
			      "--produce-fabric: a fabric with one section is needed");
	if (policy) {
		memory_share(a, policy);
		rc = ocs_sim_run(&o, policy, &result, err);
	}
	if (!rc)
		ocs_sim_result_free(&result);
	ocs_policy_destroy(policy);
	ocs_fabric_destroy(fabric);
	return rc;
}

/* The mean of the runs' quantiles and the quantile of all their jobs differ where runs
 * do: both are shown. */
static void jct_keep(struct run *run, const struct ocs_sim_result *r)
{
	long i;

	run->jct = ocs_calloc((size_t)r->njobs + 1, sizeof(double));
	for (i = 0; i < r->njobs; i++) {
		if (r->jobs[i].state == OCS_SIM_DONE)
			run->jct[run->njct++] = (r->jobs[i].end - r->jobs[i].job.arrival) / HOUR;
	}
}

static int pictures_write(const struct ocs_sim_args *a, const struct ocs_section *section,
			  const struct ocs_sim_result *result, struct ocs_error *err)
{
	char *path = ocs_asprintf("%s-day.svg", a->svg);
	int rc = ocs_sim_plot(result, a->policy, a->svg, err);

	if (!rc && result->day_to <= result->day_from)
		rc = ocs_error_set(err, OCS_USAGE, "--day %g: the run ended at hour %.1f", a->day,
				   result->time / HOUR);
	if (!rc)
		rc = ocs_sim_day_plot(result, section, a->policy, path, err);
	if (!rc && !a->quiet)
		fprintf(stderr,
			"ocs-sim: pictures: %s-utilisation.svg, %s-jct.svg, %s-jcr.svg%s%s%s,"
			" %s\n",
			a->svg, a->svg, a->svg, result->moments ? ", " : "",
			result->moments ? a->svg : "", result->moments ? "-cubes.svg" : "", path);
	free(path);
	return rc;
}

static int outputs_write(const struct ocs_sim_args *a, const struct ocs_section *section,
			 const struct ocs_sim_trace *trace, const struct ocs_sim_result *result,
			 struct ocs_error *err)
{
	if (a->jobs && ocs_sim_jobs_write(result, a->jobs, err))
		return -1;
	if (a->write_trace && ocs_sim_trace_write(trace, a->write_trace, err))
		return -1;
	return a->svg ? pictures_write(a, section, result, err) : 0;
}

static int run_one(struct work *w, struct ocs_policy *policy, long index, struct ocs_error *err)
{
	const struct ocs_sim_series *s = w->series;
	const struct ocs_sim_args *a = s->args;
	struct run *run = &w->runs[index];
	struct part part = { w, run, 0, 1 };
	struct ocs_sim_trace trace = { 0 };
	struct ocs_random random;
	struct ocs_sim_options o = {
		.fabric = s->fabric,
		.section = s->section,
		.trace = &trace,
		.random = &random,
		.queue_limit = a->queue_limit,
		.warmup = a->warmup_hours * HOUR,
		.horizon = a->trace && !a->hours_set ? 0 : a->hours * HOUR,
		.order = a->order,
		.easy = a->easy,
		.verify = !a->no_verify,
		.switch_delay = a->switch_ms * 1e-3,
		.communication = a->communication,
		.simulated = a->simulated,
		.moves = (int)a->moves,
		.restart = a->restart_minutes * 60,
		.circuit_delay = a->circuit_ms * 1e-3,
		.switches_parallel = a->parallel_switches,
		.moments = a->svg ? OCS_SIM_PLOT_MOMENTS : 0,
		.keep_day = a->svg != NULL,
		.day = a->day * HOUR,
		.progress = progress_share,
		.progress_arg = &part,
	};
	struct ocs_sim_result result;
	int rc = 0;

	ocs_random_seed(&random, (uint64_t)(a->seed + index));
	if (a->trace) {
		rc = ocs_sim_trace_read(&trace, a->trace, err);
		w->series->left_out = trace.left_out;
	} else if (a->saturated) {
		o.workload = s->workload;
	} else {
		part.to = .2;
		rc = jobs_produce(a, s->workload, &random, &part, &trace, err);
		part.from = .2;
		part.to = 1;
	}
	if (!rc)
		rc = ocs_sim_run(&o, policy, &result, err);
	if (!rc) {
		rc = outputs_write(a, s->section, &trace, &result, err);
		jct_keep(run, &result);
		ocs_sim_figures(&result, s->section, &s->runs[index]);
		ocs_sim_result_free(&result);
	}
	ocs_sim_trace_free(&trace);
	return rc;
}

/* The next run to begin, or -1: none, or one before it failed. */
static long run_next(struct work *w)
{
	long index = -1;

	pthread_mutex_lock(&w->lock);
	if (w->next < w->series->args->runs && w->next < w->failed)
		index = w->next++;
	pthread_mutex_unlock(&w->lock);
	return index;
}

static void run_end(struct work *w, long index, int rc, const struct ocs_error *err)
{
	pthread_mutex_lock(&w->lock);
	w->done++;
	w->runs[index].share = 1;
	if (!rc)
		w->last = &w->series->runs[index];
	if (rc && index < w->failed) {
		w->failed = index;
		w->err = *err;
	}
	progress_print(w, w->done == w->series->args->runs);
	pthread_mutex_unlock(&w->lock);
}

/* Takes runs as long as there are any.  Policies are one per thread. */
static void *worker_run(void *arg)
{
	struct work *w = arg;
	const struct ocs_sim_series *s = w->series;
	struct ocs_error err = { 0 };
	struct ocs_policy *policy = ocs_sim_policy(s->args, s->fabric, s->section, &err);
	long index;

	while ((index = run_next(w)) >= 0)
		run_end(w, index, policy ? run_one(w, policy, index, &err) : -1, &err);
	ocs_policy_destroy(policy);
	return NULL;
}

static void all_work(struct work *w)
{
	const struct ocs_sim_args *a = w->series->args;
	long n = threads_of(a), started = 0;
	pthread_t *threads;

	threads = ocs_calloc((size_t)n + 1, sizeof(*threads));
	/* this thread works too, and alone if it must */
	while (started < n - 1 && !pthread_create(&threads[started], NULL, worker_run, w))
		started++;
	worker_run(w);
	while (started)
		pthread_join(threads[--started], NULL);
	free(threads);
}

/* In the order of the seeds, so that sums are the same however the runs were done. */
static void runs_gather(struct work *w)
{
	struct ocs_sim_series *s = w->series;
	double *sum = (double *)&s->mean;
	long n = s->args->runs, i;
	size_t k;

	for (i = 0; i < n; i++) {
		s->jct = ocs_realloc(s->jct,
				     (size_t)(s->njct + w->runs[i].njct + 1) * sizeof(double));
		if (w->runs[i].njct)
			memcpy(s->jct + s->njct, w->runs[i].jct,
			       (size_t)w->runs[i].njct * sizeof(double));
		s->njct += w->runs[i].njct;
		for (k = 0; k < OCS_SIM_FIGURES; k++)
			sum[k] += ((const double *)&s->runs[i])[k] / (double)n;
	}
	qsort(s->jct, (size_t)s->njct, sizeof(double), ocs_sim_ascending);
}

int ocs_sim_series_run(struct ocs_sim_series *s, struct ocs_error *err)
{
	struct work w = { .series = s, .failed = s->args->runs, .started = ocs_sim_clock() };
	long i;

	s->runs = ocs_calloc((size_t)s->args->runs, sizeof(*s->runs));
	w.runs = ocs_calloc((size_t)s->args->runs, sizeof(*w.runs));
	pthread_mutex_init(&w.lock, NULL);
	all_work(&w);
	pthread_mutex_destroy(&w.lock);
	if (w.failed == s->args->runs)
		runs_gather(&w);
	else
		*err = w.err;
	for (i = 0; i < s->args->runs; i++)
		free(w.runs[i].jct);
	free(w.runs);
	return w.failed == s->args->runs ? 0 : -1;
}

void ocs_sim_series_free(struct ocs_sim_series *s)
{
	free(s->runs);
	free(s->jct);
	s->runs = NULL;
	s->jct = NULL;
}
