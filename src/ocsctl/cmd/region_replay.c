/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* 'ocsctl region replay': a recorded training, with packets, with circuits that stay and with circuits that
 * follow its gates. */

#include <json-c/json.h>
#include <stdlib.h>

#include "src/moe/replay.h"
#include "src/ocsctl/cmd/region.h"
#include "src/ocsctl/ocsctl.h"
#include "src/ocsctl/output/table.h"
#include "src/util/text.h"

#define ALPHA 6
#define BETA 2
#define LAYERS_MAX 1024
#define MATRICES_MAX (1 << 20)

static const char *const mode_names[] = { "packets", "static", "following" };

static size_t list_length(struct json_object *json)
{
	return json_object_is_type(json, json_type_array) ? json_object_array_length(json) : 0;
}

static void demands_free(struct ocs_moe_demand **demand, size_t n)
{
	for (size_t k = 0; k < n; k++)
		ocs_moe_demand_destroy(demand[k]);
	free(demand);
}

/* [pass][layer][rank][rank]; NULL with ERR. */
static struct ocs_moe_demand **trace_read(struct json_object *passes, int servers,
					  struct ocs_moe_replay *replay, struct ocs_error *err)
{
	size_t count = list_length(passes);
	size_t layers = count ? list_length(json_object_array_get_idx(passes, 0)) : 0;
	struct ocs_moe_demand **demand;

	if (!layers || layers > LAYERS_MAX || count < 2 || count > MATRICES_MAX / layers) {
		ocs_error_set(
			err, OCS_USAGE,
			"trace: at least two passes, each a list of layers (at most %d), each a "
			"matrix of tokens, are wanted",
			LAYERS_MAX);
		return NULL;
	}
	demand = ocs_calloc(count * layers, sizeof(struct ocs_moe_demand *));
	for (size_t k = 0; k < count * layers; k++) {
		struct json_object *pass = json_object_array_get_idx(passes, k / layers);

		if (list_length(pass) != layers) {
			ocs_error_set(err, OCS_USAGE, "trace: pass %zu has not %zu layers",
				      k / layers, layers);
			goto bad;
		}
		demand[k] = ocs_moe_demand_from_json(json_object_array_get_idx(pass, k % layers),
						     servers, err);
		if (!demand[k]) {
			ocs_error_prefix(err, "trace: layer %zu of pass %zu", k % layers,
					 k / layers);
			goto bad;
		}
		if (demand[k]->n != demand[0]->n) {
			ocs_error_set(err, OCS_USAGE,
				      "trace: layer %zu of pass %zu has %d servers, the first one "
				      "%d",
				      k % layers, k / layers, demand[k]->n, demand[0]->n);
			goto bad;
		}
	}
	replay->demand = demand;
	replay->passes = (int)count;
	replay->layers = (int)layers;
	return demand;
bad:
	demands_free(demand, count * layers);
	return NULL;
}

static void number_add(struct json_object *object, const char *name, double value)
{
	char text[40];

	snprintf(text, sizeof(text), "%.10g", value);
	json_object_object_add(object, name, json_object_new_double_s(value, text));
}

static void print_object(const struct ocs_moe_replay *replay,
			 const struct ocs_moe_replay_result *results)
{
	struct json_object *object = json_object_new_object(), *list = json_object_new_array();

	json_object_object_add(object, "layers", json_object_new_int(replay->layers));
	json_object_object_add(object, "passes", json_object_new_int(replay->passes));
	for (int m = 0; m <= OCS_MOE_REPLAY_FOLLOWING; m++) {
		struct json_object *entry = json_object_new_object();

		json_object_object_add(entry, "mode", json_object_new_string(mode_names[m]));
		number_add(entry, "time", results[m].time);
		number_add(entry, "sending", results[m].sending);
		number_add(entry, "exchanges", results[m].exchanges);
		number_add(entry, "cut", results[m].cut);
		number_add(entry, "predicted", results[m].predicted);
		json_object_array_add(list, entry);
	}
	json_object_object_add(object, "modes", list);
	ocs_ctl_print_json(object);
	json_object_put(object);
}

static void print_text(const struct ocs_moe_replay *replay,
		       const struct ocs_moe_replay_result *results)
{
	struct ocs_text_table *table =
		ocs_text_table_create("CIRCUITS|>TIME|>SENDING|>EXCHANGES|>CUT|>PREDICTED");

	printf("%d passes of %d layers, %d servers; means of the last %d passes, in tokens per NIC "
	       "rate\n\n",
	       replay->passes, replay->layers, replay->region->n,
	       replay->passes - replay->passes / 2);
	for (int m = 0; m <= OCS_MOE_REPLAY_FOLLOWING; m++) {
		ocs_text_table_add(table, mode_names[m]);
		ocs_text_table_format(table, "%.6g", results[m].time);
		ocs_text_table_format(table, "%.6g", results[m].sending);
		ocs_text_table_format(table, "%.1f", results[m].exchanges);
		ocs_text_table_format(table, "%.1f", results[m].cut);
		ocs_text_table_format(table, "%.1f", results[m].predicted);
	}
	ocs_text_table_print(table, stdout);
	ocs_text_table_destroy(table);
}

static int replay_show(const struct ocs_ctl_args *args, const struct ocs_moe_replay *replay,
		       struct ocs_error *err)
{
	struct ocs_moe_replay_result results[OCS_MOE_REPLAY_FOLLOWING + 1];

	for (int m = 0; m <= OCS_MOE_REPLAY_FOLLOWING; m++)
		if (ocs_moe_replay_run(replay, m, &results[m], err))
			return ocs_error_prefix(err, "region replay");
	if (args->json)
		print_object(replay, results);
	else
		print_text(replay, results);
	return 0;
}

int ocs_ctl_region_replay(const struct ocs_ctl_args *args, struct ocs_error *err)
{
	struct ocs_moe_replay replay = { .computing = (double)args->window,
					 .predict = 1,
					 .relay = args->relay };
	struct json_object *json, *passes;
	struct ocs_moe_demand **demand;
	struct ocs_moe_region *region;
	int rc;

	if (!args->trace)
		return ocs_error_set(err, OCS_USAGE,
				     "region replay: --trace FILE has what ranks sent each other, "
				     "[pass][layer][rank][rank]");
	if (args->switching &&
	    ocs_ctl_region_switching(args->switching, &replay.first, &replay.each, err))
		return ocs_error_prefix(err, "region replay");
	json = passes = ocs_ctl_read_json(args->trace, err);
	if (!json)
		return -1;
	if (json_object_is_type(json, json_type_object))
		json_object_object_get_ex(json, "passes", &passes);
	demand = trace_read(passes, (int)args->servers, &replay, err);
	json_object_put(json);
	if (!demand)
		return ocs_error_prefix(err, "region replay: %s", args->trace);
	region = ocs_moe_region_create(demand[0]->n, args->alpha >= 0 ? (int)args->alpha : ALPHA,
				       args->beta ? (int)args->beta : BETA);
	replay.region = region;
	rc = replay_show(args, &replay, err);
	ocs_moe_region_destroy(region);
	demands_free(demand, (size_t)replay.passes * (size_t)replay.layers);
	return rc;
}
