/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/sim/report.h"

#include <json-c/json.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/util/error.h"
#include "src/util/text.h"

#define HOUR 3600.0

int ocs_sim_ascending(const void *a, const void *b)
{
	double p = *(const double *)a, q = *(const double *)b;

	return (p > q) - (p < q);
}

double ocs_sim_quantile(const double *sorted, long n, double q)
{
	double at = q * (double)(n - 1);
	long low = (long)at;

	if (n <= 0)
		return 0;
	if (low >= n - 1)
		return sorted[n - 1];
	return sorted[low] + (sorted[low + 1] - sorted[low]) * (at - (double)low);
}

static double values_mean(const double *values, long n)
{
	double sum = 0;
	long i;

	for (i = 0; i < n; i++)
		sum += values[i];
	return n ? sum / (double)n : 0;
}

static void times_fill(const struct ocs_sim_result *r, struct ocs_sim_figures *f)
{
	double *jct = ocs_calloc((size_t)r->njobs + 1, sizeof(double));
	double *wait = ocs_calloc((size_t)r->njobs + 1, sizeof(double));
	long ndone = 0, nstarted = 0, nshared = 0, i;

	for (i = 0; i < r->njobs; i++) {
		const struct ocs_sim_outcome *out = &r->jobs[i];
		bool slower;

		f->never += out->state == OCS_SIM_NEVER;
		f->waiting += out->state == OCS_SIM_WAITING;
		if (out->state != OCS_SIM_RUNNING && out->state != OCS_SIM_DONE)
			continue;
		wait[nstarted++] = (out->start - out->job.arrival) / HOUR;
		f->backfilled += out->backfilled;
		f->cubes += out->cubes;
		f->circuits += out->circuits;
		f->switched += out->switched;
		slower = out->load > 1 || out->slowdown > 1;
		if (slower)
			f->predicted[0] += out->slowdown;
		if (slower && out->slowdown > f->predicted[1])
			f->predicted[1] = out->slowdown;
		nshared += slower;
		if (out->state != OCS_SIM_DONE)
			continue;
		jct[ndone++] = (out->end - out->job.arrival) / HOUR;
		f->slowdown += (out->end - out->job.arrival) / out->job.duration;
	}
	f->jobs = (double)r->njobs;
	f->done = (double)ndone;
	f->running = (double)(nstarted - ndone);
	f->decided = (double)nstarted + f->never;
	f->jcr = f->decided > 0 ? 100.0 * (double)nstarted / f->decided : 0;
	f->jct[3] = values_mean(jct, ndone);
	if (ndone)
		f->slowdown /= (double)ndone;
	if (nshared)
		f->predicted[0] /= (double)nshared;
	if (nstarted) {
		f->cubes /= (double)nstarted;
		f->circuits /= (double)nstarted;
		f->switched /= (double)nstarted;
	}
	qsort(jct, (size_t)ndone, sizeof(double), ocs_sim_ascending);
	qsort(wait, (size_t)nstarted, sizeof(double), ocs_sim_ascending);
	for (i = 0; i < 3; i++) {
		static const double at[3] = { .5, .9, .99 };

		f->jct[i] = ocs_sim_quantile(jct, ndone, at[i]);
		f->wait[i] = ocs_sim_quantile(wait, nstarted, at[i]);
	}
	free(jct);
	free(wait);
}

/* p50, p99 and the largest, in units of 1 / SCALE. */
static void values_spread(struct ocs_sim_numbers *values, double scale, double *out)
{
	if (!values->n)
		return;
	qsort(values->value, (size_t)values->n, sizeof(*values->value), ocs_sim_ascending);
	out[0] = scale * ocs_sim_quantile(values->value, values->n, .5);
	out[1] = scale * ocs_sim_quantile(values->value, values->n, .99);
	out[2] = scale * values->value[values->n - 1];
}

void ocs_sim_figures(struct ocs_sim_result *r, const struct ocs_section *section,
		     struct ocs_sim_figures *f)
{
	double total = (double)section->ncubes * section->cube_xpus;

	memset(f, 0, sizeof(*f));
	times_fill(r, f);
	f->lost = (double)r->lost;
	f->verified = (double)r->verified;
	f->relaxed = (double)r->relaxed;
	f->shared = (double)r->shared;
	f->restarts = (double)r->restarts;
	f->decisions = (double)(r->decisions.n + r->cold.n);
	f->first = (double)r->cold.n;
	f->searched = (double)r->searched;
	f->bounded = (double)r->bounded;
	if (r->measured > 0) {
		f->utilisation = 100 * r->busy / r->measured / total;
		f->allocated = 100 * r->allocated / r->measured / total;
		f->fragmentation = 100 * r->fragmented / r->measured;
		f->useful = 100 * r->useful / r->measured / total;
	}
	f->decision_mean = 1e6 * values_mean(r->decisions.value, r->decisions.n);
	values_spread(&r->decisions, 1e6, f->decision);
	f->decision90 = 1e6 * ocs_sim_quantile(r->decisions.value, r->decisions.n, .9);
	values_spread(&r->cold, 1e6, f->cold);
	values_spread(&r->verifications, 1e6, f->verification);
	values_spread(&r->candidates, 1, f->candidates);
	values_spread(&r->words, 1, f->words);
	f->candidates[3] =
		(double)r->candidates.n * values_mean(r->candidates.value, r->candidates.n);
	f->words[3] = (double)r->words.n * values_mean(r->words.value, r->words.n);
}

void ocs_sim_json_add(struct json_object *object, const char *name, double value, int digits)
{
	char text[64];
	size_t end;

	if (!digits) {
		json_object_object_add(object, name,
				       json_object_new_int64((int64_t)llround(value)));
		return;
	}
	/* json-c would write 17 digits: 66.67 as 66.670000000000002 */
	snprintf(text, sizeof(text), "%.*f", digits, value);
	for (end = strlen(text); text[end - 1] == '0' && text[end - 2] != '.'; end--)
		text[end - 1] = '\0';
	json_object_object_add(object, name, json_object_new_double_s(strtod(text, NULL), text));
}

static struct json_object *group_add(struct json_object *object, const char *name,
				     const char *const *names, const double *values, int n,
				     int digits)
{
	struct json_object *part = json_object_new_object();
	int i;

	for (i = 0; i < n; i++)
		ocs_sim_json_add(part, names[i], values[i], digits);
	json_object_object_add(object, name, part);
	return part;
}

struct json_object *ocs_sim_figures_json(const struct ocs_sim_figures *f)
{
	static const char *const quantiles[] = { "p50", "p90", "p99", "mean" };
	static const char *const decision[] = { "p50", "p99", "max" };
	static const char *const work[] = { "p50", "p99", "max", "total" };
	static const char *const predicted[] = { "mean", "max" };
	struct json_object *o = json_object_new_object(), *part;

	part = json_object_new_object();
	ocs_sim_json_add(part, "arrived", f->jobs, 0);
	ocs_sim_json_add(part, "lost", f->lost, 0);
	ocs_sim_json_add(part, "decided", f->decided, 0);
	ocs_sim_json_add(part, "never", f->never, 0);
	ocs_sim_json_add(part, "done", f->done, 0);
	ocs_sim_json_add(part, "running", f->running, 0);
	ocs_sim_json_add(part, "waiting", f->waiting, 0);
	ocs_sim_json_add(part, "backfilled", f->backfilled, 0);
	ocs_sim_json_add(part, "restarts", f->restarts, 0);
	json_object_object_add(o, "jobs", part);
	ocs_sim_json_add(o, "jcr_percent", f->jcr, 2);
	group_add(o, "jct_hours", quantiles, f->jct, 4, 3);
	group_add(o, "wait_hours", quantiles, f->wait, 3, 3);
	ocs_sim_json_add(o, "slowdown_mean", f->slowdown, 2);
	ocs_sim_json_add(o, "utilisation_percent", f->utilisation, 2);
	ocs_sim_json_add(o, "allocated_percent", f->allocated, 2);
	ocs_sim_json_add(o, "useful_percent", f->useful, 2);
	ocs_sim_json_add(o, "fragmentation_percent", f->fragmentation, 2);
	part = group_add(o, "decision_us", decision, f->decision, 3, 1);
	ocs_sim_json_add(part, "p90", f->decision90, 1);
	ocs_sim_json_add(part, "mean", f->decision_mean, 1);
	ocs_sim_json_add(part, "count", f->decisions, 0);
	part = group_add(o, "first_decision_us", decision, f->cold, 3, 1);
	ocs_sim_json_add(part, "count", f->first, 0);
	group_add(o, "verification_us", decision, f->verification, 3, 1);
	part = json_object_new_object();
	group_add(part, "candidates", work, f->candidates, 4, 0);
	group_add(part, "words", work, f->words, 4, 0);
	ocs_sim_json_add(part, "searched", f->searched, 0);
	ocs_sim_json_add(part, "bounded", f->bounded, 0);
	json_object_object_add(o, "decision_work", part);
	ocs_sim_json_add(o, "placements_verified", f->verified, 0);
	ocs_sim_json_add(o, "placements_relaxed", f->relaxed, 0);
	ocs_sim_json_add(o, "placements_shared", f->shared, 0);
	group_add(o, "predicted_slowdown", predicted, f->predicted, 2, 3);
	ocs_sim_json_add(o, "cubes_mean", f->cubes, 2);
	ocs_sim_json_add(o, "circuits_mean", f->circuits, 1);
	ocs_sim_json_add(o, "switching_seconds_mean", f->switched, 4);
	return o;
}

static void work_print(const struct ocs_sim_figures *f)
{
	printf("decision work  candidates p50 %.0f  p99 %.0f  max %.0f  total %.0f; words p50 %.0f  "
	       "p99 %.0f  max %.0f  total %.0f\n",
	       f->candidates[0], f->candidates[1], f->candidates[2], f->candidates[3], f->words[0],
	       f->words[1], f->words[2], f->words[3]);
	printf("               %.0f decisions cut short by a bound; %.0f searched where no box fitted\n",
	       f->bounded, f->searched);
}

void ocs_sim_figures_print(const struct ocs_sim_figures *f)
{
	printf("jobs           %.0f arrived, %.0f lost, %.0f can never fit, %.0f done, %.0f "
	       "running, %.0f waiting\n",
	       f->jobs, f->lost, f->never, f->done, f->running, f->waiting);
	printf("JCR            %.1f %%\n", f->jcr);
	printf("JCT hours      p50 %.3f  p90 %.2f  p99 %.1f  mean %.2f\n", f->jct[0], f->jct[1],
	       f->jct[2], f->jct[3]);
	printf("waiting hours  p50 %.3f  p90 %.2f  p99 %.1f\n", f->wait[0], f->wait[1], f->wait[2]);
	printf("utilisation    %.1f %% of the XPUs over time (%.1f %% allocated); fragmentation of the "
	       "rest %.1f %%\n",
	       f->utilisation, f->allocated, f->fragmentation);
	printf("decision us    p50 %.1f  p99 %.1f  max %.1f  (%.0f decisions, of which %.0f made some "
	       "of a catalogue: p50 %.0f  max %.0f)\n",
	       f->decision[0], f->decision[1], f->decision[2], f->decisions, f->first, f->cold[0],
	       f->cold[2]);
	if (f->candidates[3] > 0)
		work_print(f);
	if (f->verified > 0)
		printf("proof us       p50 %.1f  p99 %.1f  max %.1f\n", f->verification[0],
		       f->verification[1], f->verification[2]);
	printf("placements     %.0f verified, %.0f with lines for rings, %.2f cubes and %.1f "
	       "circuits on average\n",
	       f->verified, f->relaxed, f->cubes, f->circuits);
	if (f->restarts > 0)
		printf("restarts       %.0f of running jobs, elsewhere; %.1f %% of the XPUs useful over time\n",
		       f->restarts, f->useful);
	if (f->shared > 0)
		printf("shared links   %.0f placements, predicted to take %.2f times as long (at most "
		       "%.2f); %.1f %% of the XPUs useful over time\n",
		       f->shared, f->predicted[0], f->predicted[1], f->useful);
	else if (f->predicted[0] > 1)
		printf("slower jobs    predicted to take %.2f times as long (at most %.2f); %.1f %% of "
		       "the XPUs useful over time\n",
		       f->predicted[0], f->predicted[1], f->useful);
}

int ocs_sim_jobs_write(const struct ocs_sim_result *r, const char *path, struct ocs_error *err)
{
	static const char *const states[] = { "waiting", "never", "running", "done" };
	struct ocs_text text = { 0 };
	char shape[OCS_SHAPE_TEXT];
	int rc;
	long i;

	for (i = 0; i < r->njobs; i++) {
		const struct ocs_sim_outcome *out = &r->jobs[i];

		ocs_text_add(&text,
			     "{\"id\":%ld,\"shape\":\"%s\",\"xpus\":%ld,\"arrival\":%.1f,"
			     "\"duration\":%.1f,\"state\":\"%s\"",
			     out->job.id, ocs_shape_format(&out->job.shape, shape),
			     out->job.shape.xpus, out->job.arrival, out->job.duration,
			     states[out->state]);
		if (out->state == OCS_SIM_RUNNING || out->state == OCS_SIM_DONE)
			ocs_text_add(&text,
				     ",\"start\":%.3f,\"end\":%.3f,\"cubes\":%d,\"nodes\":%d,"
				     "\"circuits\":%d,\"backfilled\":%s,\"relaxed\":%s,"
				     "\"link_load\":%d,\"predicted_slowdown\":%.3f,"
				     "\"restarts\":%d",
				     out->start, out->end, out->cubes, out->nodes, out->circuits,
				     out->backfilled ? "true" : "false",
				     out->relaxed ? "true" : "false", out->load, out->slowdown,
				     out->restarts);
		ocs_text_add(&text, "}\n");
	}
	rc = ocs_file_write(path, text.data ? text.data : "", text.length, 0644, err);
	ocs_text_free(&text);
	return rc;
}
