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

/* A predictor that has seen PASSES, [pass][layer][expert]; NULL with ERR. */
static struct ocs_moe_predictor *trace_replay(struct json_object *passes, int *layers, int *experts,
					      struct ocs_error *err)
{
	struct json_object *first =
		list_length(passes) ? json_object_array_get_idx(passes, 0) : NULL;
	struct ocs_moe_predictor *predictor;
	double *loads;

	*layers = (int)list_length(first);
	*experts = *layers ? (int)list_length(json_object_array_get_idx(first, 0)) : 0;
	if (*layers < 1 || *layers > LAYERS_MAX || *experts < 1 || *experts > OCS_MOE_EXPERTS_MAX) {
		ocs_error_set(err, OCS_USAGE,
			      "trace: a list of passes, each a list of layers (at most %d), each a "
			      "list of tokens per expert (at most %d), is wanted",
			      LAYERS_MAX, OCS_MOE_EXPERTS_MAX);
		return NULL;
	}
	predictor = ocs_moe_predictor_create(*experts, *layers);
	loads = ocs_calloc((size_t)*experts, sizeof(*loads));
	for (size_t pass = 0; pass < list_length(passes); pass++) {
		struct json_object *list = json_object_array_get_idx(passes, pass);

		if (list_length(list) != (size_t)*layers) {
			ocs_error_set(err, OCS_USAGE, "trace: pass %zu has not %d layers", pass,
				      *layers);
			goto bad;
		}
		for (int l = 0; l < *layers; l++) {
			if (loads_read(json_object_array_get_idx(list, (size_t)l), *experts, pass,
				       l, loads, err))
				goto bad;
			ocs_moe_observe(predictor, l, loads);
		}
	}
	free(loads);
	return predictor;
bad:
	free(loads);
	ocs_moe_predictor_destroy(predictor);
	return NULL;
}

/* On average over all layers. */
static void method_measure(const struct ocs_moe_predictor *predictor, int layers, int method,
			   double *difference, double *hit)
{
	*difference = *hit = 0;
	for (int l = 0; l < layers; l++) {
		double d, h;

		ocs_moe_predict_error(predictor, l, method, &d, &h);
		*difference += d / layers;
		*hit += h / layers;
	}
}

static struct json_object *number_make(double value)
{
	char text[40];

	snprintf(text, sizeof(text), "%.4f", value);
	return json_object_new_double_s(value, text);
}

static void print_object(const struct ocs_moe_predictor *predictor, int layers, size_t passes)
{
	struct json_object *object = json_object_new_object(), *list = json_object_new_array();

	json_object_object_add(object, "layers", json_object_new_int(layers));
	json_object_object_add(object, "passes", json_object_new_int64((int64_t)passes));
	for (int m = 0; m <= OCS_MOE_CHOSEN; m++) {
		struct json_object *entry = json_object_new_object();
		struct json_object *each = json_object_new_array();
		double difference, hit;

		method_measure(predictor, layers, m, &difference, &hit);
		json_object_object_add(entry, "method",
				       json_object_new_string(ocs_moe_method_name(m)));
		json_object_object_add(entry, "difference", number_make(difference));
		json_object_object_add(entry, "hit", number_make(hit));
		for (int l = 0; l < layers; l++) {
			struct json_object *pair = json_object_new_array();

			ocs_moe_predict_error(predictor, l, m, &difference, &hit);
			json_object_array_add(pair, number_make(difference));
			json_object_array_add(pair, number_make(hit));
			json_object_array_add(each, pair);
		}
		json_object_object_add(entry, "by_layer", each);
		json_object_array_add(list, entry);
	}
	json_object_object_add(object, "methods", list);
	ocs_ctl_print_json(object);
	json_object_put(object);
}

static void print_text(const struct ocs_moe_predictor *predictor, int layers, int experts,
		       size_t passes)
{
	struct ocs_text_table *table = ocs_text_table_create("METHOD|>DIFFERENCE|>LARGEST RIGHT");

	printf("%zu passes of %d layers of %d experts; the first %d are not counted\n\n", passes,
	       layers, experts, OCS_MOE_WARM);
	for (int m = 0; m <= OCS_MOE_CHOSEN; m++) {
		double difference, hit;

		method_measure(predictor, layers, m, &difference, &hit);
		ocs_text_table_add(table, ocs_moe_method_name(m));
		ocs_text_table_format(table, "%.3f", difference);
		ocs_text_table_format(table, "%.0f %%", 100 * hit);
	}
	ocs_text_table_print(table, stdout);
	ocs_text_table_destroy(table);
}

int ocs_ctl_region_predict(const struct ocs_ctl_args *args, struct ocs_error *err)
{
	struct json_object *json, *passes;
	struct ocs_moe_predictor *predictor;
	int layers, experts, rc = -1;
	size_t count;

	if (!args->trace)
		return ocs_error_set(err, OCS_USAGE,
				     "region predict: --trace FILE has the tokens per expert, "
				     "[pass][layer][expert]");
	json = passes = ocs_ctl_read_json(args->trace, err);
	if (!json)
		return -1;
	if (json_object_is_type(json, json_type_object))
		json_object_object_get_ex(json, "passes", &passes);
	count = list_length(passes);
	predictor = trace_replay(passes, &layers, &experts, err);
	if (!predictor) {
		ocs_error_prefix(err, "region predict: %s", args->trace);
	} else if (count <= OCS_MOE_WARM) {
		ocs_error_set(err, OCS_USAGE,
			      "region predict: %s: %zu passes are too few to judge by; more than "
			      "%d are wanted",
			      args->trace, count, OCS_MOE_WARM);
	} else {
		if (args->json)
			print_object(predictor, layers, count);
		else
			print_text(predictor, layers, experts, count);
		rc = 0;
	}
	ocs_moe_predictor_destroy(predictor);
	json_object_put(json);
	return rc;
}
