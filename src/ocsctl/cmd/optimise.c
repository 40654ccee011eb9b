/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/ocsctl/cmd/model_args.h"
#include "src/ocsctl/ocsctl.h"
#include "src/ocsctl/output/table.h"
#include "src/util/text.h"

static const char *const layouts[] = { "replicated", "sharded", "split", "placed" };

static struct json_object *number_json(double value)
{
	char text[40];

	snprintf(text, sizeof(text), "%.6g", value);
	return json_object_new_double_s(value, text);
}

static void add_strategy(struct json_object *out, const struct ocs_model *model,
			 const struct ocs_model_strategy *s)
{
	struct json_object *list, *one = json_object_new_object();

	json_object_object_add(out, "strategy", one);
	if (!s->layout) {
		json_object_object_add(one, "dp", json_object_new_int(s->dp));
		json_object_object_add(one, "pp", json_object_new_int(s->pp));
		json_object_object_add(one, "tp", json_object_new_int(s->tp));
		json_object_object_add(one, "cp", json_object_new_int(s->cp));
		json_object_object_add(one, "ep", json_object_new_int(s->ep));
		json_object_object_add(one, "microbatch", json_object_new_int(s->microbatch));
		return;
	}
	list = json_object_new_array();
	for (int i = 0; i < model->noperators; i++) {
		struct json_object *op = json_object_new_object();

		json_object_object_add(op, "name",
				       json_object_new_string(model->operators[i].name));
		json_object_object_add(op, "layout", json_object_new_string(layouts[s->layout[i]]));
		if (s->layout[i] == OCS_MODEL_PLACED)
			json_object_object_add(op, "server", json_object_new_int(s->server[i]));
		json_object_array_add(list, op);
	}
	json_object_object_add(one, "operators", list);
}

static void add_times(struct json_object *out, const struct ocs_optimise_result *result,
		      const struct ocs_model_traffic *traffic, bool by_operators)
{
	struct json_object *network = json_object_new_object(), *bytes = json_object_new_object();

	json_object_object_add(out, "step_ms", number_json(result->time.total));
	json_object_object_add(out, "compute_ms", number_json(result->time.compute));
	for (int d = 0; d < OCS_MODEL_DIMENSIONS; d++) {
		const char *name = ocs_model_dimension_name(d);
		double sent = ocs_model_traffic_bytes(traffic, d);

		if (result->time.dimensions[d] > 0)
			json_object_object_add(network, name,
					       number_json(result->time.dimensions[d]));
		if (sent > 0)
			json_object_object_add(bytes, name, number_json(sent));
	}
	json_object_object_add(out, "network_ms", network);
	json_object_object_add(out, "bytes", bytes);
	json_object_object_add(out, "memory_gb", number_json(result->memory / 1e9));
	json_object_object_add(out, "sequential_ms", number_json(result->sequential_ms));
	if (by_operators) {
		json_object_object_add(out, "data_parallel_ms", number_json(result->start_ms));
		json_object_object_add(out, "data_parallel_fits",
				       json_object_new_boolean(result->start_fits));
	}
	json_object_object_add(out, "evaluations", json_object_new_int64(result->evaluations));
	json_object_object_add(out, "rounds", json_object_new_int(result->rounds));
}

static void print_json(const struct ocs_optimise_request *request,
		       const struct ocs_optimise_result *result,
		       const struct ocs_model_traffic *traffic, const char *shape,
		       const char *demand, int measured)
{
	struct json_object *out = json_object_new_object();
	bool by_operators = result->strategy->layout;

	json_object_object_add(out, "model", json_object_new_string(request->model->name));
	json_object_object_add(out, "shape", json_object_new_string(shape));
	add_times(out, result, traffic, by_operators);
	add_strategy(out, request->model, result->strategy);
	json_object_object_add(out, "assumptions", ocs_ctl_machine_json(request));
	json_object_object_add(out, "measured_operators", json_object_new_int(measured));
	json_object_object_add(out, "demand", json_tokener_parse(demand));
	ocs_ctl_print_json(out);
	json_object_put(out);
}

/* One line for operators that follow each other in the same way. */
static void print_operators(const struct ocs_model *model, const struct ocs_model_strategy *s)
{
	struct ocs_text_table *table = ocs_text_table_create("OPERATOR|>COUNT|LAYOUT|SERVERS");
	int end;

	for (int i = 0; i < model->noperators; i = end) {
		struct ocs_text where = { 0 };

		for (end = i; end < model->noperators && s->layout[end] == s->layout[i] &&
			      !strcmp(model->operators[end].name, model->operators[i].name);
		     end++)
			if (s->layout[end] == OCS_MODEL_PLACED && end - i < 12)
				ocs_text_add(&where, "%s%d", end > i ? "," : "", s->server[end]);
			else if (s->layout[end] == OCS_MODEL_PLACED && end - i == 12)
				ocs_text_add(&where, ",...");
		ocs_text_table_add(table, model->operators[i].name);
		ocs_text_table_format(table, "%d", end - i);
		ocs_text_table_add(table, layouts[s->layout[i]]);
		ocs_text_table_add(table, where.data ? where.data : "all");
		ocs_text_free(&where);
	}
	ocs_text_table_print(table, stdout);
	ocs_text_table_destroy(table);
}

static void print_text(const struct ocs_optimise_request *request,
		       const struct ocs_optimise_result *result, const char *shape, int measured)
{
	const struct ocs_model_strategy *s = result->strategy;
	char *machine = ocs_ctl_machine_text(request);

	printf("%s: %.3f ms a step, shape %s\n", request->model->name, result->time.total, shape);
	printf("computing %.3f ms", result->time.compute);
	for (int d = 0; d < OCS_MODEL_DIMENSIONS; d++)
		if (result->time.dimensions[d] > 0)
			printf(", %s %.3f ms", ocs_model_dimension_name(d),
			       result->time.dimensions[d]);
	printf("; %.1f GB per GPU\n", result->memory / 1e9);
	if (s->layout)
		printf("data parallel on an ideal switch %.3f ms%s\n", result->start_ms,
		       result->start_fits ? "" : ", but that does not fit the memory");
	printf("strategy first and topology after it %.3f ms; %ld evaluations, %d round%s\n",
	       result->sequential_ms, result->evaluations, result->rounds,
	       result->rounds == 1 ? "" : "s");
	printf("assumed: %s\n", machine);
	if (measured)
		printf("%d of %d operators have measured times\n", measured,
		       request->model->noperators);
	free(machine);
	if (s->layout) {
		putchar('\n');
		print_operators(request->model, s);
	} else {
		printf("micro-batches of %d, ep %d\n", s->microbatch, s->ep);
	}
}

int ocs_ctl_optimise(const struct ocs_ctl_args *args, struct ocs_error *err)
{
	struct ocs_model *model = ocs_model_open(args->operands[0], err);
	struct ocs_optimise_measured measured = { 0 };
	struct ocs_optimise_request request;
	struct ocs_optimise_result result;
	struct ocs_model_traffic *traffic;
	struct ocs_text demand = { 0 };
	char *shape;
	int rc = 0;

	if (!model)
		return -1;
	if (ocs_ctl_optimise_request(args, model, &request, &measured, err) ||
	    ocs_optimise(&request, &result, err)) {
		ocs_optimise_measured_free(&measured);
		ocs_model_destroy(model);
		return -1;
	}
	shape = ocs_optimise_shape(&request, result.strategy);
	traffic = ocs_model_traffic_create(model, &request.machine, result.strategy);
	ocs_model_demand_write(traffic, &demand);
	if (args->write)
		rc = ocs_file_write(args->write, demand.data, demand.length, 0644, err);
	if (!rc && args->json)
		print_json(&request, &result, traffic, shape, demand.data, measured.known);
	else if (!rc)
		print_text(&request, &result, shape, measured.known);
	ocs_optimise_measured_free(&measured);
	ocs_text_free(&demand);
	ocs_model_traffic_destroy(traffic);
	ocs_optimise_result_free(&result);
	free(shape);
	ocs_model_destroy(model);
	return rc;
}
