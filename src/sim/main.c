/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>

#include "src/config/config.h"
#include "src/sim/series.h"
#include "src/util/error.h"

static const struct ocs_section *section_find(const struct ocs_fabric *fabric, const char *name,
					      struct ocs_error *err)
{
	const struct ocs_section *section =
		name ? ocs_fabric_section_named(fabric, name) : ocs_fabric_section(fabric, NULL);

	char *names = section ? NULL : ocs_fabric_section_names(fabric);

	if (!section && name)
		ocs_error_set(err, OCS_USAGE, "there is no section '%s' in the fabric; it has: %s",
			      name, names);
	else if (!section)
		ocs_error_set(err, OCS_USAGE,
			      "the fabric has several sections; name one with "
			      "--section: %s",
			      names);
	free(names);
	return section;
}

static struct json_object *runs_json(const struct ocs_sim_figures *runs, long n)
{
	struct json_object *array = json_object_new_array();
	long i;

	for (i = 0; i < n; i++)
		json_object_array_add(array, ocs_sim_figures_json(&runs[i]));
	return array;
}

static void print_json(const struct ocs_sim_series *s)
{
	const struct ocs_sim_args *a = s->args;
	struct json_object *o = ocs_sim_figures_json(&s->mean), *part;
	static const char *const quantiles[] = { "p50", "p90", "p99" };
	static const double at[] = { .5, .9, .99 };
	int i;

	json_object_object_add(o, "policy", json_object_new_string(a->policy));
	json_object_object_add(o, "fabric", json_object_new_string(a->fabric));
	json_object_object_add(o, "lenient", json_object_new_boolean(a->lenient));
	if (a->workload) {
		json_object_object_add(o, "workload", json_object_new_string(a->workload));
		json_object_object_add(o, "durations",
				       json_object_new_string(a->durations ? "file" : "fitted"));
		json_object_object_add(o, "arrivals",
				       json_object_new_string(a->arrivals ? "file" : "fitted"));
		json_object_object_add(o, "seed", json_object_new_int64(a->seed));
	} else {
		json_object_object_add(o, "trace", json_object_new_string(a->trace));
		ocs_sim_json_add(o, "left_out", (double)s->left_out, 0);
	}
	part = json_object_new_object();
	for (i = 0; i < 3; i++)
		ocs_sim_json_add(part, quantiles[i], ocs_sim_quantile(s->jct, s->njct, at[i]), 3);
	json_object_object_add(o, "jct_hours_all_runs", part);
	if (a->runs > 1)
		json_object_object_add(o, "runs", runs_json(s->runs, a->runs));
	puts(json_object_to_json_string_ext(o, JSON_C_TO_STRING_PLAIN |
						       JSON_C_TO_STRING_NOSLASHESCAPE));
	json_object_put(o);
}

static void fitted_note(const struct ocs_sim_args *a)
{
	if (a->workload && (!a->durations || !a->arrivals) && !a->quiet)
		fprintf(stderr,
			"ocs-sim: %s%s%s fitted distributions; --durations and --arrivals "
			"read the published files\n",
			a->durations ? "" : "durations", a->durations || a->arrivals ? "" : " and ",
			a->arrivals ? "come from" : "gaps come from");
}

static int series_simulate(struct ocs_sim_series *s, struct ocs_error *err)
{
	int rc;

	fitted_note(s->args);
	rc = ocs_sim_series_run(s, err);
	if (!rc && s->left_out && !s->args->quiet)
		fprintf(stderr, "ocs-sim: %s: jobs of zero seconds, left out: %ld\n",
			s->args->trace, s->left_out);
	if (!rc && s->args->json) {
		print_json(s);
	} else if (!rc) {
		ocs_sim_figures_print(&s->mean);
		if (s->args->runs > 1)
			printf("all runs       JCT hours p50 %.3f  p90 %.2f  p99 %.1f of %ld jobs\n",
			       ocs_sim_quantile(s->jct, s->njct, .5),
			       ocs_sim_quantile(s->jct, s->njct, .9),
			       ocs_sim_quantile(s->jct, s->njct, .99), s->njct);
	}
	ocs_sim_series_free(s);
	return rc;
}

/* Which shapes of the workload an empty machine takes, and how many jobs that are. */
static int shapes_count(const struct ocs_sim_series *s, struct ocs_error *err)
{
	struct ocs_policy *policy = ocs_sim_policy(s->args, s->fabric, s->section, err);
	bool tell = ocs_sim_progress_wanted(s->args);
	double share = 0, told = ocs_sim_clock();
	int i, count = 0, all = 0;

	if (!policy)
		return -1;
	for (i = 0; i < s->workload->nshapes; i++) {
		double p = ocs_sim_workload_probability(s->workload, i);

		if (p <= 0)
			continue;
		all++;
		if (tell && ocs_sim_clock() - told >= OCS_SIM_PROGRESS_EVERY) {
			told = ocs_sim_clock();
			fprintf(stderr, "\r\033[K%d of %d shapes looked at, %d fit", i,
				s->workload->nshapes, count);
		}
		if (!ocs_policy_possible(policy, &s->workload->shapes[i]))
			continue;
		count++;
		share += p;
	}
	ocs_policy_destroy(policy);
	if (tell)
		fputs("\r\033[K", stderr);
	if (s->args->json)
		printf("{\"shapes\":%d,\"possible\":%d,\"jobs_percent\":%.2f}\n", all, count,
		       100 * share);
	else
		printf("%d of %d shapes fit the empty machine: %.2f %% of the jobs\n", count, all,
		       100 * share);
	return 0;
}

static int command_run(const struct ocs_sim_args *a, struct ocs_error *err)
{
	struct ocs_fabric *fabric = ocs_config_take_fabric(ocs_config_open(a->fabric, err));
	struct ocs_sim_workload workload = { 0 };
	struct ocs_sim_series s = { .args = a, .fabric = fabric, .workload = &workload };
	struct ocs_policy *policy = NULL;
	int rc = -1;
	int i;

	if (!fabric)
		return -1;
	s.section = section_find(fabric, a->partition, err);
	/* what is wrong with the policy is said before files are read */
	if (s.section)
		policy = ocs_sim_policy(a, fabric, s.section, err);
	if (policy && (!a->workload || !ocs_sim_workload_open(&workload, a->workload, a->durations,
							      a->arrivals, a->sizes, err))) {
		workload.gap_mean *= a->gap_scale;
		for (i = 0; i < workload.gaps.n; i++)
			workload.gaps.value[i] *= a->gap_scale;
		rc = a->possible ? shapes_count(&s, err) : series_simulate(&s, err);
	}
	ocs_policy_destroy(policy);
	ocs_sim_workload_free(&workload);
	ocs_fabric_destroy(fabric);
	return rc;
}

int main(int argc, char **argv)
{
	struct ocs_error err = { 0 };
	struct ocs_sim_args args;
	int rc = ocs_sim_args_parse(argc, argv, &args, &err);

	if (!rc)
		rc = command_run(&args, &err);
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
