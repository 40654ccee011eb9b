/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/ocsctl/cmd/advise_fabric.h"

#include <json-c/json.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/netsim/graph.h"
#include "src/ocsctl/cmd/model_args.h"
#include "src/ocsctl/cmd/training_step.h"
#include "src/ocsctl/ocsctl.h"
#include "src/ocsctl/output/table.h"
#include "src/optimise/compare.h"
#include "src/util/text.h"

static struct json_object *number_json(double value)
{
	char text[40];

	if (value < 0)
		return NULL; /* not known */
	snprintf(text, sizeof(text), "%.6g", value);
	return json_object_new_double_s(value, text);
}

static void add_assumptions(struct json_object *out, const struct ocs_cost_table *table)
{
	struct json_object *list = json_object_new_array();

	for (int i = 0; i < table->nassumptions; i++)
		json_object_array_add(list, json_object_new_string(table->assumptions[i]));
	json_object_object_add(out, "prices", json_object_new_string(table->source));
	json_object_object_add(out, "assumptions", list);
}

static struct json_object *row_json(const struct ocs_compare_row *row)
{
	struct json_object *one = json_object_new_object();

	json_object_object_add(one, "fabric", json_object_new_string(row->name));
	json_object_object_add(one, "circuits", json_object_new_boolean(row->circuits));
	json_object_object_add(one, "rate_gbps", number_json(row->rate * 8 / 1e9));
	json_object_object_add(one, "step_ms", number_json(row->step_ms));
	json_object_object_add(one, "dollars", number_json(row->dollars));
	json_object_object_add(one, "watts", number_json(row->watts));
	json_object_object_add(one, "value", number_json(row->value));
	json_object_object_add(one, "gain", number_json(row->gain));
	json_object_object_add(one, "simulated",
			       *row->simulated ? json_object_new_string(row->simulated) : NULL);
	json_object_object_add(one, "affordable", json_object_new_boolean(row->affordable));
	return one;
}

static struct json_object *points_json(const struct ocs_compare_point *points, int n)
{
	struct json_object *list = json_object_new_array();

	for (int i = 0; i < n; i++) {
		struct json_object *one = json_object_new_object();

		json_object_object_add(one, "what", json_object_new_string(points[i].what));
		json_object_object_add(one, "factor", number_json(points[i].factor));
		json_object_object_add(one, "circuits_ms", number_json(points[i].circuits_ms));
		json_object_object_add(one, "packets_ms", number_json(points[i].packets_ms));
		json_object_object_add(one, "pays", json_object_new_boolean(points[i].pays));
		json_object_array_add(list, one);
	}
	return list;
}

static void print_json(const struct ocs_compare *compare,
		       const struct ocs_optimise_request *request,
		       const struct ocs_cost_table *table, bool recorded)
{
	struct json_object *out = json_object_new_object(), *rows = json_object_new_array();
	struct json_object *servers;

	json_object_object_add(out, "pays", json_object_new_boolean(compare->pays));
	json_object_object_add(out, "verdict", json_object_new_string(compare->verdict));
	for (int i = 0; i < compare->nrows; i++)
		json_object_array_add(rows, row_json(&compare->rows[i]));
	json_object_object_add(out, "fabrics", rows);
	json_object_object_add(out, "break_even_gbps",
			       number_json(compare->break_even > 0 ? compare->break_even : -1));
	json_object_object_add(out, "rates", points_json(compare->rates, compare->nrates));
	json_object_object_add(out, "sensitivity",
			       points_json(compare->changes, compare->nchanges));
	json_object_object_add(out, "tolerance", number_json(compare->tolerance));
	servers = ocs_ctl_machine_json(request);
	if (recorded) {
		json_object_object_del(servers, "tflops");
		json_object_object_del(servers, "memory_gb");
		json_object_object_del(servers, "memory_gbs");
		json_object_object_del(servers, "scale_up_gbs");
	}
	json_object_object_add(out, "servers", servers);
	add_assumptions(out, table);
	ocs_ctl_print_json(out);
	json_object_put(out);
}

static void print_rows(const struct ocs_compare *compare)
{
	struct ocs_text_table *table = ocs_text_table_create(
		"FABRIC|>GB/S|>STEP MS|>DOLLARS|>WATTS|>PERFORMANCE PER $|>GAIN|BUDGET");

	for (int i = 0; i < compare->nrows; i++) {
		const struct ocs_compare_row *row = &compare->rows[i];

		ocs_text_table_add(table, row->name);
		ocs_text_table_format(table, "%.4g", row->rate / 1e9);
		if (row->step_ms < 0)
			ocs_text_table_add(table, NULL);
		else
			ocs_text_table_format(table, "%.3f", row->step_ms);
		ocs_text_table_format(table, "%.0f", row->dollars);
		if (row->watts < 0)
			ocs_text_table_add(table, NULL);
		else
			ocs_text_table_format(table, "%.0f", row->watts);
		if (row->value < 0)
			ocs_text_table_add(table, NULL);
		else
			ocs_text_table_format(table, "%.3f", row->value);
		if (row->gain < 0)
			ocs_text_table_add(table, NULL);
		else
			ocs_text_table_format(table, "%.2f", row->gain);
		ocs_text_table_add(table, row->affordable ? "within" : "above");
	}
	ocs_text_table_print(table, stdout);
	ocs_text_table_destroy(table);
}

static void print_points(const char *heading, const struct ocs_compare_point *points, int n)
{
	struct ocs_text_table *table = ocs_text_table_create(heading);

	for (int i = 0; i < n; i++) {
		if (!strcmp(points[i].what, "rate"))
			ocs_text_table_format(table, "%g Gb/s", points[i].factor);
		else
			ocs_text_table_format(table, "%s x %g", points[i].what, points[i].factor);
		ocs_text_table_format(table, "%.3f", points[i].circuits_ms);
		ocs_text_table_format(table, "%.3f", points[i].packets_ms);
		ocs_text_table_format(table, "%.3f", points[i].packets_ms / points[i].circuits_ms);
	}
	putchar('\n');
	ocs_text_table_print(table, stdout);
	ocs_text_table_destroy(table);
}

/* What ocs-netsim(1) explains, of fabrics whose circuits change during a step. */
static void print_simulated(const struct ocs_compare *compare)
{
	for (int i = 0; i < compare->nrows; i++) {
		const struct ocs_compare_row *row = &compare->rows[i];

		if (strchr(row->simulated, ':') && strncmp(row->simulated, "topoopt", 7) != 0)
			printf("%s is simulated as: %s%s\n", row->name, row->simulated,
			       row->step_ms < 0 ? ", on which this step cannot run" : "");
	}
}

static void print_text(const struct ocs_compare *compare, const char *machine,
		       const struct ocs_cost_table *table)
{
	printf("%s\n\n", compare->verdict);
	print_rows(compare);
	print_points("RATE|>CIRCUITS MS|>EQUAL COST MS|>RATIO", compare->rates, compare->nrates);
	puts(compare->at_rates);
	print_points("CHANGE|>CIRCUITS MS|>EQUAL COST MS|>RATIO", compare->changes,
		     compare->nchanges);
	if (*compare->turns)
		puts(compare->turns);
	printf("\nassumed: %s\n", machine);
	print_simulated(compare);
	printf("steps are simulated with a tolerance of %g\n", compare->tolerance);
	for (int i = 0; i < table->nassumptions; i++)
		printf("%s\n", table->assumptions[i]);
}

static int budget_read(const char *text, double *budget, struct ocs_error *err)
{
	char *end;

	*budget = text ? strtod(text, &end) : 0;
	if (text && (end == text || *end || !(*budget > 0 && isfinite(*budget))))
		return ocs_error_set(err, OCS_USAGE, "--budget=%.40s is no amount of dollars",
				     text);
	return 0;
}

/* "64M" of --operation, if it is given. */
static int bytes_take(const char *text, double *bytes, struct ocs_error *err)
{
	static const char units[] = "kMG";
	double value, unit = 1;
	const char *found;
	char *end;

	if (!text)
		return 0;
	value = strtod(text, &end);
	if (end != text && *end && (found = strchr(units, *end))) {
		for (const char *u = units; u <= found; u++)
			unit *= 1e3;
		end++;
	}
	if (end == text || *end || !(value > 0) || !(value * unit < 1e15))
		return ocs_error_set(err, OCS_USAGE,
				     "--operation=%.40s is no number of bytes, such as 64M", text);
	*bytes = value * unit;
	return 0;
}

/* The recorded step at PATH; *ASSUMED, which the caller frees: what was added to it, or NULL. */
static struct ocs_netsim_graph *graph_open(const struct ocs_ctl_args *args, const char *path,
					   char **assumed, struct ocs_error *err)
{
	struct ocs_ctl_trace_guess guess = { .bytes = 64e6, .compute_ms = 10 };
	struct ocs_netsim_graph *graph;
	bool tables;

	if (bytes_take(args->operation, &guess.bytes, err) ||
	    ocs_ctl_real_take("between", args->between, 1, &guess.compute_ms, err))
		return NULL;
	graph = ocs_ctl_step_read(path, &guess, &tables, err);
	if (!graph)
		return NULL;
	if (args->servers && graph->servers != args->servers) {
		ocs_error_set(err, OCS_USAGE, "%s is for %d servers: give --servers %d", path,
			      graph->servers, graph->servers);
		ocs_netsim_graph_destroy(graph);
		return NULL;
	}
	if (tables)
		*assumed = ocs_asprintf(
			"phase tables have no sizes: %g MB an operation, %g ms of computing between phases",
			guess.bytes / 1e6, guess.compute_ms);
	return graph;
}

/* A recorded step brings its computation along: of its servers only the number and the interfaces count. */
static char *machine_text(const struct ocs_optimise_request *request, const char *graph,
			  const char *assumed)
{
	if (!graph)
		return ocs_ctl_machine_text(request);
	return ocs_asprintf("the %d servers of %s, %d interfaces of %g Gb/s each%s%s",
			    request->machine.servers, graph, request->degree,
			    request->rate * 8 / 1e9, assumed ? "; " : "", assumed ? assumed : "");
}

static int comparison_print(const struct ocs_ctl_args *args, const struct ocs_compare *compare,
			    const struct ocs_optimise_request *request,
			    const struct ocs_cost_table *table, const char *title,
			    const char *graph, const char *assumed, struct ocs_error *err)
{
	char *machine = machine_text(request, graph, assumed), *page;
	int rc = 0;

	if (args->html) {
		page = ocs_ctl_fabric_html(compare, title, machine, table);
		rc = ocs_file_write(args->html, page, strlen(page), 0644, err);
		free(page);
	}
	if (!rc && args->svg) {
		char *said = ocs_asprintf("a step of %s on %d servers, %g Gb/s", title,
					  request->machine.servers, request->rate * 8 / 1e9);

		page = ocs_ctl_fabric_svg(compare, said);
		rc = ocs_file_write(args->svg, page, strlen(page), 0644, err);
		free(page);
		free(said);
	}
	if (!rc && args->json)
		print_json(compare, request, table, graph);
	else if (!rc)
		print_text(compare, machine, table);
	free(machine);
	return rc;
}

/* The comparison for NAME, a model, or for GRAPH. */
static int fabric_compare(const struct ocs_ctl_args *args, const char *name,
			  struct ocs_netsim_graph *graph, const char *assumed, double budget,
			  struct ocs_error *err)
{
	/* a graph has its own computation: the model only stands for the servers */
	struct ocs_model *model = ocs_model_open(graph ? "vgg16" : name, err);
	struct ocs_optimise_measured measured = { 0 };
	struct ocs_ctl_args given = *args;
	struct ocs_cost_table *table = NULL;
	struct ocs_optimise_request request;
	struct ocs_compare compare;
	int rc = -1;

	if (!model)
		return -1;
	if (graph) {
		given.servers = graph->servers;
		given.gpus = graph->devices;
	}
	if (given.servers == 1)
		ocs_error_set(err, OCS_USAGE,
			      "one server sends nothing over a fabric: give --servers 2 or more");
	else if (!ocs_ctl_optimise_request(&given, model, &request, &measured, err))
		table = ocs_cost_open(args->costs ? args->costs : "topoopt", err);
	if (table && !ocs_compare_make(&request, graph, table, budget, &compare, err))
		rc = comparison_print(args, &compare, &request, table, graph ? name : model->name,
				      graph ? name : NULL, assumed, err);
	ocs_optimise_measured_free(&measured);
	ocs_cost_destroy(table);
	ocs_model_destroy(model);
	return rc;
}

int ocs_ctl_advise_fabric(const struct ocs_ctl_args *args, struct ocs_error *err)
{
	const char *name = args->graph ? args->graph : args->count > 1 ? args->operands[1] : NULL;
	struct ocs_netsim_graph *graph = NULL;
	char *assumed = NULL;
	double budget;
	int rc;

	if (!args->graph == (args->count < 2))
		return ocs_error_set(
			err, OCS_USAGE,
			"advise fabric: one of MODEL, a recorded step and --graph FILE is needed");
	if (budget_read(args->budget, &budget, err))
		return -1;
	if (args->graph || ocs_ctl_step_recorded(name)) {
		if (args->measured)
			return ocs_error_set(
				err, OCS_USAGE,
				"--measured is for models: a recorded step has its own times");
		graph = graph_open(args, name, &assumed, err);
		if (!graph)
			return -1;
	}
	rc = fabric_compare(args, name, graph, assumed, budget, err);
	ocs_netsim_graph_destroy(graph);
	free(assumed);
	return rc;
}

/* Whether LIST is "NAME=T,..." of fabrics of TABLE, T a positive number.  0, or -1 with ERR. */
static int steps_check(const char *list, const struct ocs_cost_table *table, struct ocs_error *err)
{
	while (list) {
		int length = (int)strcspn(list, "=,"), known = 0;
		char *end;

		for (int i = 0; i < table->nfabrics; i++)
			known |= !strncmp(table->fabrics[i].name, list, (size_t)length) &&
				 !table->fabrics[i].name[length];
		if (!known || list[length] != '=')
			return ocs_error_set(
				err, OCS_USAGE,
				"--step-times: \"%.*s\" is no FABRIC=TIME of a fabric of %s",
				(int)strcspn(list, ","), list, table->source);
		list += length + 1;
		if (!(strtod(list, &end) > 0) || (*end && *end != ','))
			return ocs_error_set(err, OCS_USAGE,
					     "--step-times: \"%.*s\" is no positive number",
					     (int)strcspn(list, ","), list);
		list = *end ? end + 1 : NULL;
	}
	return 0;
}

/* The time of NAME in "NAME=T,...", or -1. */
static double step_time(const char *list, const char *name)
{
	size_t length = strlen(name);

	for (const char *at = list; at; at = strchr(at, ',')) {
		at += *at == ',';
		if (!strncmp(at, name, length) && at[length] == '=')
			return strtod(at + length + 1, NULL);
	}
	return -1;
}

static struct json_object *cost_row(const struct ocs_cost_table *table,
				    const struct ocs_cost_rate *rate, int servers, int interfaces,
				    int index, const char *steps)
{
	const struct ocs_cost_fabric *fabric = &table->fabrics[index];
	struct json_object *one = json_object_new_object();
	double dollars, watts, base, base_watts;
	double time = steps ? step_time(steps, fabric->name) : -1;
	double base_time = steps ? step_time(steps, table->fabrics[0].name) : -1;

	ocs_cost_total(fabric, rate, servers, interfaces, &dollars, &watts);
	ocs_cost_total(&table->fabrics[0], rate, servers, interfaces, &base, &base_watts);
	json_object_object_add(one, "fabric", json_object_new_string(fabric->name));
	json_object_object_add(one, "dollars", number_json(dollars));
	json_object_object_add(one, "cheaper", number_json(base / dollars));
	json_object_object_add(one, "watts", number_json(table->powers ? watts : -1));
	json_object_object_add(one, "power_saved",
			       number_json(table->powers ? base_watts / watts : -1));
	json_object_object_add(
		one, "value",
		number_json(time > 0 && base_time > 0 ? base_time * base / time / dollars : -1));
	return one;
}

static void print_costs(struct json_object *rows, const struct ocs_cost_table *table)
{
	struct ocs_text_table *out = ocs_text_table_create(
		"FABRIC|>DOLLARS|>TIMES CHEAPER|>WATTS|>TIMES LESS|>PERFORMANCE PER $");
	static const char *const keys[] = { "dollars", "cheaper", "watts", "power_saved", "value" };

	for (size_t i = 0; i < json_object_array_length(rows); i++) {
		struct json_object *row = json_object_array_get_idx(rows, i), *value;

		ocs_text_table_add(out, ocs_ctl_string(row, "fabric", ""));
		for (int k = 0; k < 5; k++) {
			json_object_object_get_ex(row, keys[k], &value);
			if (value)
				ocs_text_table_format(out, k == 0 || k == 2 ? "%.0f" : "%.3f",
						      json_object_get_double(value));
			else
				ocs_text_table_add(out, NULL);
		}
	}
	ocs_text_table_print(out, stdout);
	ocs_text_table_destroy(out);
	putchar('\n');
	for (int i = 0; i < table->nassumptions; i++)
		printf("%s\n", table->assumptions[i]);
}

int ocs_ctl_advise_costs(const struct ocs_ctl_args *args, struct ocs_error *err)
{
	struct ocs_cost_table *table = ocs_cost_open(args->costs ? args->costs : "topoopt", err);
	const struct ocs_cost_rate *rate;
	struct json_object *out, *rows;
	double bytes;
	int rc = -1;

	if (!table)
		return -1;
	bytes = table->rates[table->nrates - 1].rate;
	if (!args->servers || !args->degree) {
		ocs_error_set(err, OCS_USAGE,
			      "advise costs: --servers N and --degree D are needed");
	} else if ((args->rate && ocs_ctl_rate_parse(args->rate, &bytes, err)) ||
		   steps_check(args->steps, table, err)) {
		/* said */
	} else if (!(rate = ocs_cost_rate_find(table, bytes))) {
		ocs_cost_rate_refuse(table, bytes, err);
	} else {
		rows = json_object_new_array();
		for (int i = 0; i < table->nfabrics; i++)
			json_object_array_add(rows, cost_row(table, rate, (int)args->servers,
							     (int)args->degree, i, args->steps));
		if (args->json) {
			out = json_object_new_object();
			json_object_object_add(out, "fabrics", rows);
			add_assumptions(out, table);
			ocs_ctl_print_json(out);
			json_object_put(out);
		} else {
			print_costs(rows, table);
			json_object_put(rows);
		}
		rc = 0;
	}
	ocs_cost_destroy(table);
	return rc;
}
