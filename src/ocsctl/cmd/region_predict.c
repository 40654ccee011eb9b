/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* 'ocsctl region predict': how well the choice of a gate could have been foretold. */

#include <json-c/json.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/moe/predict.h"
#include "src/ocsctl/cmd/region.h"
#include "src/ocsctl/ocsctl.h"
#include "src/ocsctl/output/table.h"
#include "src/util/text.h"

#define LAYERS_MAX 1024
#define SOURCES_MAX 4096

static size_t list_length(struct json_object *json)
{
	return json_object_is_type(json, json_type_array) ? json_object_array_length(json) : 0;
}

/* The loads of one layer in one pass. */
static int loads_read(struct json_object *json, int experts, size_t pass, int layer, double *loads,
		      struct ocs_error *err)
{
	if (list_length(json) != (size_t)experts)
		return ocs_error_set(err, OCS_USAGE,
				     "trace: layer %d of pass %zu is not a list of %d numbers",
				     layer, pass, experts);
	for (int e = 0; e < experts; e++) {
		struct json_object *item = json_object_array_get_idx(json, (size_t)e);

		loads[e] = json_object_get_double(item);
		if ((!json_object_is_type(item, json_type_int) &&
		     !json_object_is_type(item, json_type_double)) ||
		    !isfinite(loads[e]) || loads[e] < 0)
			return ocs_error_set(err, OCS_USAGE,
					     "trace: expert %d of layer %d of pass %zu is not a "
					     "number of at least 0",
					     e, layer, pass);
	}
	return 0;
}

/* Predictors that have seen a trace: one for each source, or one for all. */
struct replayed {
	struct ocs_moe_predictor **predictor; /* [sources] */
	int sources, layers, experts;
	size_t passes;
	bool by_source; /* the trace has what each source sends */
};

static void replayed_free(struct replayed *replayed)
{
	for (int s = 0; replayed->predictor && s < replayed->sources; s++)
		ocs_moe_predictor_destroy(replayed->predictor[s]);
	free(replayed->predictor);
}

/* What the trace is a list of, from its first layer. */
static int trace_measure(struct json_object *passes, struct replayed *replayed,
			 struct ocs_error *err)
{
	struct json_object *pass =
		list_length(passes) ? json_object_array_get_idx(passes, 0) : NULL;
	struct json_object *layer = list_length(pass) ? json_object_array_get_idx(pass, 0) : NULL;
	struct json_object *row = list_length(layer) ? json_object_array_get_idx(layer, 0) : NULL;

	replayed->passes = list_length(passes);
	replayed->layers = (int)list_length(pass);
	replayed->by_source = json_object_is_type(row, json_type_array);
	replayed->sources = replayed->by_source ? (int)list_length(layer) : 1;
	replayed->experts = (int)list_length(replayed->by_source ? row : layer);
	if (replayed->layers < 1 || replayed->layers > LAYERS_MAX || replayed->experts < 1 ||
	    replayed->experts > OCS_MOE_EXPERTS_MAX || replayed->sources > SOURCES_MAX)
		return ocs_error_set(err, OCS_USAGE,
				     "trace: a list of passes, each a list of layers (at most %d), "
				     "each a list of tokens per expert (at most %d), or such a "
				     "list for each rank (at most %d), is wanted",
				     LAYERS_MAX, OCS_MOE_EXPERTS_MAX, SOURCES_MAX);
	return 0;
}

static int layer_observe(struct json_object *json, struct replayed *replayed, size_t pass,
			 int layer, double *loads, struct ocs_error *err)
{
	if (replayed->by_source && list_length(json) != (size_t)replayed->sources)
		return ocs_error_set(err, OCS_USAGE, "trace: layer %d of pass %zu has not %d ranks",
				     layer, pass, replayed->sources);
	for (int s = 0; s < replayed->sources; s++) {
		struct json_object *row =
			replayed->by_source ? json_object_array_get_idx(json, (size_t)s) : json;

		if (loads_read(row, replayed->experts, pass, layer, loads, err))
			return -1;
		ocs_moe_observe(replayed->predictor[s], layer, loads);
	}
	return 0;
}

/* Shows PASSES, [pass][layer][expert] or [pass][layer][rank][expert], to predictors; -1 with ERR. */
static int trace_replay(struct json_object *passes, struct replayed *replayed,
			struct ocs_error *err)
{
	double *loads;
	int rc = 0;

	if (trace_measure(passes, replayed, err))
		return -1;
	replayed->predictor = ocs_calloc((size_t)replayed->sources, sizeof(*replayed->predictor));
	for (int s = 0; s < replayed->sources; s++)
		replayed->predictor[s] =
			ocs_moe_predictor_create(replayed->experts, replayed->layers);
	loads = ocs_calloc((size_t)replayed->experts, sizeof(*loads));
	for (size_t pass = 0; !rc && pass < replayed->passes; pass++) {
		struct json_object *list = json_object_array_get_idx(passes, pass);

		if (list_length(list) != (size_t)replayed->layers)
			rc = ocs_error_set(err, OCS_USAGE, "trace: pass %zu has not %d layers",
					   pass, replayed->layers);
		for (int l = 0; !rc && l < replayed->layers; l++)
			rc = layer_observe(json_object_array_get_idx(list, (size_t)l), replayed,
					   pass, l, loads, err);
	}
	free(loads);
	return rc;
}

/* On average over all sources. */
static struct ocs_moe_error layer_measure(const struct replayed *replayed, int layer, int method)
{
	struct ocs_moe_error mean = { 0 }, error;

	for (int s = 0; s < replayed->sources; s++) {
		ocs_moe_predict_error(replayed->predictor[s], layer, method, &error);
		ocs_moe_error_add(&mean, &error, replayed->sources);
	}
	return mean;
}

/* On average over all layers. */
static struct ocs_moe_error method_measure(const struct replayed *replayed, int method)
{
	struct ocs_moe_error mean = { 0 }, error;

	for (int l = 0; l < replayed->layers; l++) {
		error = layer_measure(replayed, l, method);
		ocs_moe_error_add(&mean, &error, replayed->layers);
	}
	return mean;
}

static struct json_object *number_make(double value)
{
	char text[40];

	snprintf(text, sizeof(text), "%.4f", value);
	return json_object_new_double_s(value, text);
}

static struct json_object *top_make(const struct ocs_moe_error *error)
{
	struct json_object *list = json_object_new_array();

	for (int k = 0; k < OCS_MOE_TOP; k++)
		json_object_array_add(list, number_make(error->top[k]));
	return list;
}

static void print_object(const struct replayed *replayed)
{
	struct json_object *object = json_object_new_object(), *list = json_object_new_array();

	json_object_object_add(object, "layers", json_object_new_int(replayed->layers));
	json_object_object_add(object, "passes", json_object_new_int64((int64_t)replayed->passes));
	for (int m = 0; m <= OCS_MOE_CHOSEN; m++) {
		struct json_object *entry = json_object_new_object();
		struct json_object *each = json_object_new_array();
		struct json_object *tops = json_object_new_array();
		struct ocs_moe_error error = method_measure(replayed, m);

		json_object_object_add(entry, "method",
				       json_object_new_string(ocs_moe_method_name(m)));
		json_object_object_add(entry, "difference", number_make(error.difference));
		json_object_object_add(entry, "hit", number_make(error.top[0]));
		json_object_object_add(entry, "top", top_make(&error));
		for (int l = 0; l < replayed->layers; l++) {
			struct json_object *pair = json_object_new_array();

			error = layer_measure(replayed, l, m);
			json_object_array_add(pair, number_make(error.difference));
			json_object_array_add(pair, number_make(error.top[0]));
			json_object_array_add(each, pair);
			json_object_array_add(tops, top_make(&error));
		}
		json_object_object_add(entry, "by_layer", each);
		json_object_object_add(entry, "top_by_layer", tops);
		json_object_array_add(list, entry);
	}
	json_object_object_add(object, "methods", list);
	ocs_ctl_print_json(object);
	json_object_put(object);
}

#define ERROR_COLUMNS "|>L1|>TOP 1|>TOP 2|>TOP 4"

static void error_cells(struct ocs_text_table *table, const struct ocs_moe_error *error)
{
	ocs_text_table_format(table, "%.3f", error->difference);
	for (int k = 1; k <= OCS_MOE_TOP; k *= 2)
		ocs_text_table_format(table, "%.0f %%", 100 * error->top[k - 1]);
}

static void print_text(const struct replayed *replayed)
{
	struct ocs_text_table *table = ocs_text_table_create("METHOD" ERROR_COLUMNS);

	printf("%zu passes of %d layers of %d experts", replayed->passes, replayed->layers,
	       replayed->experts);
	if (replayed->by_source)
		printf(", foretold for each of %d ranks", replayed->sources);
	printf("; the first %d are not counted\n\n", OCS_MOE_WARM);
	for (int m = 0; m <= OCS_MOE_CHOSEN; m++) {
		struct ocs_moe_error error = method_measure(replayed, m);

		ocs_text_table_add(table, ocs_moe_method_name(m));
		error_cells(table, &error);
	}
	ocs_text_table_print(table, stdout);
	ocs_text_table_destroy(table);
	puts("\nof the method that is chosen, by layer:\n");
	table = ocs_text_table_create(">LAYER" ERROR_COLUMNS);
	for (int l = 0; l < replayed->layers; l++) {
		struct ocs_moe_error error = layer_measure(replayed, l, OCS_MOE_CHOSEN);

		ocs_text_table_format(table, "%d", l);
		error_cells(table, &error);
	}
	ocs_text_table_print(table, stdout);
	ocs_text_table_destroy(table);
}

int ocs_ctl_region_predict(const struct ocs_ctl_args *args, struct ocs_error *err)
{
	struct json_object *json, *passes;
	struct replayed replayed = { 0 };
	int rc = -1;

	if (!args->trace)
		return ocs_error_set(err, OCS_USAGE,
				     "region predict: --trace FILE has the tokens per expert, "
				     "[pass][layer][expert] or [pass][layer][rank][expert]");
	json = passes = ocs_ctl_read_json(args->trace, err);
	if (!json)
		return -1;
	if (json_object_is_type(json, json_type_object))
		json_object_object_get_ex(json, "passes", &passes);
	if (trace_replay(passes, &replayed, err)) {
		ocs_error_prefix(err, "region predict: %s", args->trace);
	} else if (replayed.passes <= OCS_MOE_WARM) {
		ocs_error_set(err, OCS_USAGE,
			      "region predict: %s: %zu passes are too few to judge by; more than "
			      "%d are wanted",
			      args->trace, replayed.passes, OCS_MOE_WARM);
	} else {
		if (args->json)
			print_object(&replayed);
		else
			print_text(&replayed);
		rc = 0;
	}
	replayed_free(&replayed);
	json_object_put(json);
	return rc;
}
