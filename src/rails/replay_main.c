/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include <errno.h>
#include <inttypes.h>
#include <json-c/json.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ocs_config.h"
#include "src/rails/replay.h"
#include "src/util/error.h"
#include "src/util/options.h"

#define MS_MAX 1e9

struct args {
	const char *folder;
	struct ocs_replay_options run;
	int stages;
	bool json;
};

enum { SWITCH_MS = 256, OPERATION_MS, WINDOW_MS, MODE, STAGES };

static const struct option options[] = {
	{ "switch-ms", required_argument, NULL, SWITCH_MS },
	{ "operation-ms", required_argument, NULL, OPERATION_MS },
	{ "window-ms", required_argument, NULL, WINDOW_MS },
	{ "mode", required_argument, NULL, MODE },
	{ "stages", required_argument, NULL, STAGES },
	{ "json", no_argument, NULL, 'j' },
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, 'V' },
	{ NULL, 0, NULL, 0 },
};

static const char usage[] =
	"Usage: ocs-replay DIR [OPTION...]\n\n"
	"Replays the phase tables of a training step on photonic rails.\n\n"
	"DIR has a file comm_pattern_N_rankL.txt for local rank L of node N.\n\n"
	"      --switch-ms T     a change of a topology takes T ms (0)\n"
	"      --operation-ms T  an operation takes T ms (0)\n"
	"      --window-ms T     a rank computes for T ms between two phases (0)\n"
	"      --mode MODE       provisioned or on-demand (on-demand)\n"
	"      --stages N        pipeline stages (found from the groups)\n"
	"  -j, --json            one JSON object\n"
	"  -h, --help            this text\n"
	"  -V, --version         the version\n";

static int ms_parse(const char *name, const char *text, double *ms, struct ocs_error *err)
{
	char *end;

	errno = 0;
	*ms = strtod(text, &end);
	if (errno || end == text || *end || !(*ms >= 0 && *ms <= MS_MAX))
		return ocs_error_set(err, OCS_USAGE, "%s: %s is not a number of milliseconds", name,
				     text);
	return 0;
}

static int stages_parse(const char *text, int *stages, struct ocs_error *err)
{
	char *end;
	long n = strtol(text, &end, 10);

	if (end == text || *end || n < 1 || n > OCS_RAILS_STAGES)
		return ocs_error_set(err, OCS_USAGE, "--stages: %s is not a number from 1 to %d",
				     text, OCS_RAILS_STAGES);
	*stages = (int)n;
	return 0;
}

static int mode_parse(const char *text, bool *provisioned, struct ocs_error *err)
{
	*provisioned = strcmp(text, "provisioned") == 0;
	if (!*provisioned && strcmp(text, "on-demand") != 0)
		return ocs_error_set(err, OCS_USAGE,
				     "--mode: there is no mode %s; use provisioned or on-demand",
				     text);
	return 0;
}

/* Returns 0; 1 when everything is said; -1 with ERR. */
static int args_parse(int argc, char **argv, struct args *args, struct ocs_error *err)
{
	static const struct ocs_options line = { "ocs-replay", "j", options, usage };
	int option = 0, rc = 0;

	while (!rc && (option = ocs_options_next(&line, argc, argv, err)) > 0) {
		switch (option) {
		case SWITCH_MS:
			rc = ms_parse("--switch-ms", optarg, &args->run.switch_ms, err);
			break;
		case OPERATION_MS:
			rc = ms_parse("--operation-ms", optarg, &args->run.operation_ms, err);
			break;
		case WINDOW_MS:
			rc = ms_parse("--window-ms", optarg, &args->run.window_ms, err);
			break;
		case MODE:
			rc = mode_parse(optarg, &args->run.provisioned, err);
			break;
		case STAGES:
			rc = stages_parse(optarg, &args->stages, err);
			break;
		default:
			args->json = true;
		}
	}
	if (rc || option < 0)
		return option == OCS_OPTIONS_SAID ? 1 : -1;
	if (optind + 1 != argc)
		return ocs_error_set(err, OCS_USAGE,
				     "give one folder with phase tables; see --help");
	args->folder = argv[optind];
	return 0;
}

static struct json_object *skipped_json(const struct ocs_phase_tables *tables)
{
	struct json_object *list = json_object_new_array();

	for (int g = 0; g < tables->ngroups; g++) {
		const struct ocs_phase_group *group = &tables->groups[g];
		struct json_object *one, *nodes;

		if (!group->skipped)
			continue;
		one = json_object_new_object();
		nodes = json_object_new_array();
		for (int i = 0; i < group->count; i++)
			json_object_array_add(nodes,
					      json_object_new_int(group->ranks[i] / tables->rails));
		json_object_object_add(one, "group", json_object_new_int64(group->number));
		json_object_object_add(one, "rail", json_object_new_int(group->rail));
		json_object_object_add(one, "nodes", nodes);
		json_object_object_add(one, "operations",
				       json_object_new_int64((int64_t)group->skipped));
		json_object_array_add(list, one);
	}
	return list;
}

static void json_print(const struct ocs_phase_tables *tables,
		       const struct ocs_replay_result *result)
{
	const struct ocs_coordinator_counts *counts = &result->counts;
	struct json_object *o = json_object_new_object(), *list = json_object_new_array();

	for (int i = 0; i < result->nviolations; i++)
		json_object_array_add(list, json_object_new_string(result->violations[i]));
	json_object_object_add(o, "barriers", json_object_new_int64((int64_t)counts->barriers));
	json_object_object_add(o, "topology_changes",
			       json_object_new_int64((int64_t)counts->changes));
	json_object_object_add(o, "outside_phases",
			       json_object_new_int64((int64_t)counts->outside_phases));
	json_object_object_add(o, "violations", list);
	json_object_object_add(o, "step_ms", json_object_new_double(result->step_ms));
	json_object_object_add(o, "provisioned",
			       json_object_new_int64((int64_t)counts->provisioned));
	json_object_object_add(o, "mispredicted",
			       json_object_new_int64((int64_t)counts->mispredicted));
	json_object_object_add(o, "stages", json_object_new_int(tables->layout.extent[0]));
	json_object_object_add(o, "nodes", json_object_new_int(tables->nodes));
	json_object_object_add(o, "skipped", skipped_json(tables));
	puts(json_object_to_json_string_ext(o, JSON_C_TO_STRING_PLAIN));
	json_object_put(o);
}

static void text_print(const struct ocs_phase_tables *tables,
		       const struct ocs_replay_result *result)
{
	const struct ocs_coordinator_counts *counts = &result->counts;

	printf("%d nodes, %d stages, %d rails\n", tables->nodes, tables->layout.extent[0],
	       tables->rails);
	printf("barriers          %" PRIu64 "\n", counts->barriers);
	printf("topology changes  %" PRIu64 ", %" PRIu64 " of them provisioned\n", counts->changes,
	       counts->provisioned);
	printf("outside phases    %" PRIu64 "\n", counts->outside_phases);
	for (int g = 0; g < tables->ngroups; g++)
		if (tables->groups[g].skipped)
			printf("  group %ld of node %d: %" PRIu64
			       " operations are in no phase of its table\n",
			       tables->groups[g].number, tables->groups[g].ranks[0] / tables->rails,
			       tables->groups[g].skipped);
	printf("step              %.3f ms\n", result->step_ms);
	for (int i = 0; i < result->nviolations; i++)
		printf("violation         %s\n", result->violations[i]);
}

int main(int argc, char **argv)
{
	struct args args = { 0 };
	struct ocs_error err = { 0 };
	struct ocs_replay_result result;
	struct ocs_phase_tables *tables = NULL;
	int rc = args_parse(argc, argv, &args, &err);

	if (rc == 1)
		return 0;
	if (!rc)
		tables = ocs_phase_tables_read(args.folder, args.stages, &err);
	if (!tables || ocs_replay_run(tables, &args.run, &result, &err) < 0) {
		fprintf(stderr, "ocs-replay: %s\n", err.text);
		ocs_phase_tables_free(tables);
		return err.code;
	}
	if (args.json)
		json_print(tables, &result);
	else
		text_print(tables, &result);
	rc = result.nviolations ? OCS_ERROR : 0;
	ocs_replay_result_free(&result);
	ocs_phase_tables_free(tables);
	return rc;
}
