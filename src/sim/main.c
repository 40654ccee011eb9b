/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/sim/options.h"
#include "src/sim/plot.h"
#include "src/sim/report.h"
#include "src/util/error.h"
#include "src/util/text.h"

#define HOUR 3600.0

static const struct ocs_section *section_find(const struct ocs_fabric *fabric, const char *name,
					      struct ocs_error *err)
{
	const struct ocs_section *section = name ? ocs_fabric_section_named(fabric, name) :
		ocs_fabric_section(fabric, NULL);

	if (!section && name)
		ocs_error_set(err, OCS_USAGE, "there is no section '%s' in the fabric", name);
	else if (!section)
		ocs_error_set(err, OCS_USAGE, "the fabric has several sections; name one with "
			      "--section");
	return section;
}

static void progress(const struct ocs_sim_args *a, long run, const struct ocs_sim_figures *f)
{
	if (a->quiet || !isatty(STDERR_FILENO))
		return;
	fprintf(stderr, "\r%ld of %ld runs, the last: JCR %.1f, JCT p50 %.2f h, utilisation %.1f %%  %s",
		run + 1, a->runs, f->jcr, f->jct[0], f->utilisation, run + 1 == a->runs ? "\n" : "");
}

/* Jobs as the published program makes them: a closed loop under another policy. */
static int produce(const struct ocs_sim_args *a, const struct ocs_sim_workload *workload,
		   struct ocs_random *random, struct ocs_sim_trace *trace, struct ocs_error *err)
{
	struct ocs_fabric *fabric = ocs_fabric_open(a->produce_fabric, err);
	struct ocs_sim_options o = {
		.fabric = fabric, .trace = trace, .workload = workload, .random = random,
		.queue_limit = a->queue_limit, .horizon = a->produce_hours * HOUR,
	};
	struct ocs_sim_result result;
	struct ocs_policy *policy = NULL;
	int rc = -1;

	if (!fabric)
		return -1;
	o.section = section_find(fabric, NULL, err);
	if (o.section)
		policy = ocs_policy_create(fabric, o.section, a->produce_policy, true, err);
	if (policy)
		rc = ocs_sim_run(&o, policy, &result, err);
	if (!rc)
		ocs_sim_result_free(&result);
	ocs_policy_destroy(policy);
	ocs_fabric_destroy(fabric);
	return rc;
}

struct setup {
	const struct ocs_sim_args *a;
	struct ocs_fabric *fabric;
	const struct ocs_section *section;
	struct ocs_policy *policy;
	struct ocs_sim_workload workload;
	double *pool;		/* hours to completion of the jobs of all runs */
	long npool;
};

/* The mean of the runs' quantiles and the quantile of all their jobs differ where runs
 * do: both are shown. */
static void pool(struct setup *s, const struct ocs_sim_result *r)
{
	long i;

	s->pool = ocs_realloc(s->pool, (size_t)(s->npool + r->njobs + 1) * sizeof(double));
	for (i = 0; i < r->njobs; i++) {
		if (r->jobs[i].state == OCS_SIM_DONE)
			s->pool[s->npool++] = (r->jobs[i].end - r->jobs[i].job.arrival) / HOUR;
	}
}

static int outputs(const struct setup *s, const struct ocs_sim_trace *trace,
		   const struct ocs_sim_result *result, struct ocs_error *err)
{
	if (s->a->jobs && ocs_sim_jobs_write(result, s->a->jobs, err))
		return -1;
	if (s->a->write_trace && ocs_sim_trace_write(trace, s->a->write_trace, err))
		return -1;
	return s->a->svg ? ocs_sim_plot(result, s->a->policy, s->a->svg, err) : 0;
}

static int run_once(struct setup *s, long seed, struct ocs_sim_figures *figures,
		    struct ocs_error *err)
{
	const struct ocs_sim_args *a = s->a;
	struct ocs_sim_trace trace = { 0 };
	struct ocs_random random;
	struct ocs_sim_options o = {
		.fabric = s->fabric, .section = s->section, .trace = &trace, .random = &random,
		.queue_limit = a->queue_limit, .warmup = a->warmup_hours * HOUR,
		.horizon = a->trace && !a->hours_set ? 0 : a->hours * HOUR, .order = a->order,
		.easy = a->easy, .verify = !a->no_verify, .switch_delay = a->switch_ms * 1e-3,
		.communication = a->communication,
		.circuit_delay = a->circuit_ms * 1e-3, .switches_parallel = a->parallel_switches,
		.moments = a->svg ? OCS_SIM_PLOT_MOMENTS : 0,
	};
	struct ocs_sim_result result;
	int rc;

	ocs_random_seed(&random, (uint64_t)seed);
	if (a->trace)
		rc = ocs_sim_trace_read(&trace, a->trace, err);
	else if (a->saturated)
		rc = 0;
	else
		rc = produce(a, &s->workload, &random, &trace, err);
	if (!rc && a->saturated)
		o.workload = &s->workload;
	if (!rc)
		rc = ocs_sim_run(&o, s->policy, &result, err);
	if (!rc) {
		rc = outputs(s, &trace, &result, err);
		pool(s, &result);
		ocs_sim_figures(&result, s->section, figures);
		ocs_sim_result_free(&result);
	}
	ocs_sim_trace_free(&trace);
	return rc;
}

static struct json_object *runs_json(const struct ocs_sim_figures *runs, long n)
{
	struct json_object *array = json_object_new_array();
	long i;

	for (i = 0; i < n; i++)
		json_object_array_add(array, ocs_sim_figures_json(&runs[i]));
	return array;
}

static void print_json(const struct setup *s, const struct ocs_sim_figures *mean,
		       const struct ocs_sim_figures *runs)
{
	const struct ocs_sim_args *a = s->a;
	struct json_object *o = ocs_sim_figures_json(mean), *part;

	json_object_object_add(o, "policy", json_object_new_string(a->policy));
	json_object_object_add(o, "fabric", json_object_new_string(a->fabric));
	json_object_object_add(o, "lenient", json_object_new_boolean(a->lenient));
	if (a->workload) {
		json_object_object_add(o, "workload", json_object_new_string(a->workload));
		json_object_object_add(o, "durations", json_object_new_string(a->durations ?
				       "file" : "fitted"));
		json_object_object_add(o, "arrivals", json_object_new_string(a->arrivals ? "file" :
				       "fitted"));
		json_object_object_add(o, "seed", json_object_new_int64(a->seed));
	} else {
		json_object_object_add(o, "trace", json_object_new_string(a->trace));
	}
	part = json_object_new_object();
	json_object_object_add(part, "p50", json_object_new_double(ocs_sim_quantile(s->pool, s->npool,
									       .5)));
	json_object_object_add(part, "p90", json_object_new_double(ocs_sim_quantile(s->pool, s->npool,
									       .9)));
	json_object_object_add(part, "p99", json_object_new_double(ocs_sim_quantile(s->pool, s->npool,
									       .99)));
	json_object_object_add(o, "jct_hours_all_runs", part);
	if (a->runs > 1)
		json_object_object_add(o, "runs", runs_json(runs, a->runs));
	puts(json_object_to_json_string_ext(o, JSON_C_TO_STRING_PLAIN |
					    JSON_C_TO_STRING_NOSLASHESCAPE));
	json_object_put(o);
}

static void fitted(const struct ocs_sim_args *a)
{
	if (a->workload && (!a->durations || !a->arrivals) && !a->quiet)
		fprintf(stderr, "ocs-sim: %s%s%s fitted distributions; --durations and --arrivals "
			"read the published files\n", a->durations ? "" : "durations",
			a->durations || a->arrivals ? "" : " and ", a->arrivals ? "come from" :
			"gaps come from");
}

static int simulate(struct setup *s, struct ocs_error *err)
{
	long n = s->a->runs, i;
	size_t k;
	struct ocs_sim_figures *runs = ocs_calloc((size_t)n, sizeof(*runs));
	struct ocs_sim_figures mean = { 0 };
	double *sum = (double *)&mean;

	fitted(s->a);
	for (i = 0; i < n; i++) {
		if (run_once(s, s->a->seed + i, &runs[i], err)) {
			free(runs);
			return -1;
		}
		progress(s->a, i, &runs[i]);
		for (k = 0; k < OCS_SIM_FIGURES; k++)
			sum[k] += ((const double *)&runs[i])[k] / (double)n;
	}
	qsort(s->pool, (size_t)s->npool, sizeof(double), ocs_sim_ascending);
	if (s->a->json) {
		print_json(s, &mean, runs);
	} else {
		ocs_sim_figures_print(&mean);
		if (n > 1)
			printf("all runs       JCT hours p50 %.3f  p90 %.2f  p99 %.1f of %ld jobs\n",
			       ocs_sim_quantile(s->pool, s->npool, .5),
			       ocs_sim_quantile(s->pool, s->npool, .9),
			       ocs_sim_quantile(s->pool, s->npool, .99), s->npool);
	}
	free(runs);
	return 0;
}

/* Which shapes of the workload an empty machine takes, and how many jobs that are. */
static int possible(const struct setup *s)
{
	double share = 0;
	int i, count = 0, all = 0;

	for (i = 0; i < s->workload.nshapes; i++) {
		double p = ocs_sim_workload_probability(&s->workload, i);

		if (p <= 0)
			continue;
		all++;
		if (!ocs_policy_possible(s->policy, &s->workload.shapes[i]))
			continue;
		count++;
		share += p;
	}
	if (s->a->json)
		printf("{\"shapes\":%d,\"possible\":%d,\"jobs_percent\":%.2f}\n", all, count,
		       100 * share);
	else
		printf("%d of %d shapes fit the empty machine: %.2f %% of the jobs\n", count, all,
		       100 * share);
	return 0;
}

/* The edges a link may carry within the limit on the slowdown. */
static int load_most(const struct ocs_sim_args *a)
{
	double load = 1 + (a->slowdown_limit - 1) / (a->communication > 0 ? a->communication : 1e-9);

	/* 1 + .3 / .1 must be 4 */
	return load < OCS_POLICY_LOAD_MAX ? (int)(load + 1e-6) : OCS_POLICY_LOAD_MAX;
}

static int run(const struct ocs_sim_args *a, struct ocs_error *err)
{
	struct setup s = { .a = a, .fabric = ocs_fabric_open(a->fabric, err) };
	int rc = -1;
	int i;

	if (!s.fabric)
		return -1;
	s.section = section_find(s.fabric, a->partition, err);
	if (s.section)
		s.policy = ocs_policy_create(s.fabric, s.section, a->policy, a->lenient, err);
	if (s.policy)
		ocs_policy_load_set(s.policy, load_most(a));
	if (s.policy && (!a->workload ||
			 !ocs_sim_workload_open(&s.workload, a->workload, a->durations, a->arrivals,
						a->sizes, err))) {
		s.workload.gap_mean *= a->gap_scale;
		for (i = 0; i < s.workload.gaps.n; i++)
			s.workload.gaps.value[i] *= a->gap_scale;
		rc = a->possible ? possible(&s) : simulate(&s, err);
	}
	free(s.pool);
	ocs_sim_workload_free(&s.workload);
	ocs_policy_destroy(s.policy);
	ocs_fabric_destroy(s.fabric);
	return rc;
}

int main(int argc, char **argv)
{
	struct ocs_error err = { 0 };
	struct ocs_sim_args args;
	int rc = ocs_sim_args_parse(argc, argv, &args, &err);

	if (!rc)
		rc = run(&args, &err);
	if (rc < 0) {
		fprintf(stderr, "ocs-sim: %s\n", err.text);
		return err.code > 0 ? err.code : OCS_ERROR;
	}
	/* A full disk or a closed pipe must not look like success. */
	if (fflush(stdout) || ferror(stdout)) {
		fprintf(stderr, "ocs-sim: cannot write to standard output\n");
		return OCS_ERROR;
	}
	return 0;
}
