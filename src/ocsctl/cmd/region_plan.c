/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* 'ocsctl region plan': circuits for what the servers of a region send each other. */

#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

#include "src/moe/bound.h"
#include "src/moe/change.h"
#include "src/moe/routes.h"
#include "src/ocsctl/cmd/region.h"
#include "src/ocsctl/ocsctl.h"
#include "src/ocsctl/output/table.h"
#include "src/util/text.h"

#define ALPHA 6
#define BETA 2

/* One question and its answer. */
struct region_plan {
	struct ocs_moe_demand *demand;
	struct ocs_moe_region *region;
	struct ocs_moe_circuits *keep, *circuits;
	struct ocs_moe_routes *routes;
	struct ocs_moe_request request;
	double ports, server, linear; /* bounds */
};

static void plan_free(struct region_plan *plan)
{
	ocs_moe_demand_destroy(plan->demand);
	ocs_moe_region_destroy(plan->region);
	ocs_moe_circuits_destroy(plan->keep);
	ocs_moe_circuits_destroy(plan->circuits);
	ocs_moe_routes_destroy(plan->routes);
}

/* What makes no sense together. */
static int options_check(const struct ocs_ctl_args *args, struct ocs_error *err)
{
	if (!args->matrix)
		return ocs_error_set(err, OCS_USAGE,
				     "region plan: --matrix FILE says what the servers send, such "
				     "as [[0,5],[7,0]]");
	if (!args->keep && (args->change >= 0 || args->switching))
		return ocs_error_set(err, OCS_USAGE,
				     "region plan: --%s needs --keep CIRCUITS, which says what "
				     "exists",
				     args->change >= 0 ? "change" : "switching");
	if (args->keep && (args->change >= 0) == (args->switching != NULL))
		return ocs_error_set(err, OCS_USAGE,
				     "region plan: --keep needs --change K or --switching FIRST, "
				     "one of them");
	if ((args->remaining || args->window) && !args->switching)
		return ocs_error_set(err, OCS_USAGE, "region plan: --%s goes with --switching",
				     args->remaining ? "remaining" : "window");
	if (args->routes && !args->json)
		return ocs_error_set(err, OCS_USAGE, "region plan: --routes goes with --json");
	if (args->keep && args->policy && strcmp(args->policy, "best") != 0)
		return ocs_error_set(err, OCS_USAGE,
				     "region plan: --keep goes with --policy best only");
	return 0;
}

int ocs_ctl_region_switching(const char *text, double *first, double *each, struct ocs_error *err)
{
	char *end;

	*each = 0;
	*first = strtod(text, &end);
	if (end != text && *end == ',' && end[1]) {
		const char *second = end + 1;

		*each = strtod(second, &end);
		if (end == second)
			end = NULL;
	}
	if (!end || end == text || *end || !(*first >= 0) || !(*each >= 0) || *first > 1e15 ||
	    *each > 1e15)
		return ocs_error_set(err, OCS_USAGE,
				     "--switching=%s is not FIRST or FIRST,EACH in tokens per NIC "
				     "rate",
				     text);
	return 0;
}

static int switching_parse(const struct ocs_ctl_args *args, struct ocs_moe_change *change,
			   struct ocs_error *err)
{
	*change = (struct ocs_moe_change){ .remaining = args->remaining ? args->remaining : 1,
					   .window = args->window };
	if (ocs_ctl_region_switching(args->switching, &change->first, &change->each, err))
		return ocs_error_prefix(err, "region plan");
	return 0;
}

static int plan_read(const struct ocs_ctl_args *args, struct region_plan *plan,
		     struct ocs_error *err)
{
	struct json_object *json = ocs_ctl_read_json(args->matrix, err);
	int alpha = args->alpha >= 0 ? (int)args->alpha : ALPHA;
	int beta = args->beta ? (int)args->beta : BETA;

	if (!json)
		return -1;
	plan->demand = ocs_moe_demand_from_json(json, (int)args->servers, err);
	json_object_put(json);
	if (!plan->demand)
		return ocs_error_prefix(err, "region plan: %s", args->matrix);
	plan->region = ocs_moe_region_create(plan->demand->n, alpha, beta);
	if (!args->keep)
		return 0;
	json = ocs_ctl_read_json(args->keep, err);
	if (!json)
		return -1;
	plan->keep = ocs_moe_circuits_from_json(json, plan->region, err);
	json_object_put(json);
	return plan->keep ? 0 : ocs_error_prefix(err, "region plan: %s", args->keep);
}

static int plan_make(const struct ocs_ctl_args *args, struct region_plan *plan,
		     struct ocs_error *err)
{
	struct ocs_moe_request *request = &plan->request;
	struct ocs_moe_change change;

	*request = (struct ocs_moe_request){ .demand = plan->demand,
					     .region = plan->region,
					     .policy = OCS_MOE_BEST,
					     .keep = plan->keep,
					     .change = (int)args->change };
	if (args->policy && ocs_moe_policy_parse(args->policy, &request->policy))
		return ocs_error_set(err, OCS_USAGE,
				     "region plan: there is no policy '%s'; there are paper, "
				     "greedy and best",
				     args->policy);
	if (args->switching) {
		if (switching_parse(args, &change, err))
			return -1;
		plan->circuits = ocs_moe_change_choose(request, &change);
	} else {
		plan->circuits = ocs_moe_allocate(request);
	}
	plan->routes = args->relay ?
			       ocs_moe_routes_relay(plan->demand, plan->region, plan->circuits, 0) :
			       ocs_moe_routes_direct(plan->demand, plan->region, plan->circuits);
	plan->ports = ocs_moe_bound_ports(plan->demand, plan->region);
	plan->server = ocs_moe_bound_server(plan->demand, plan->region);
	plan->linear = ocs_moe_bound_linear(plan->demand, plan->region);
	if (ocs_moe_verify(plan->demand, plan->region, plan->circuits, plan->routes, err))
		return ocs_error_prefix(err, "region plan: the result is wrong, which is a fault "
					     "of ocsctl");
	return 0;
}

/* Below which nothing is possible the way it was planned. */
static double plan_bound(const struct ocs_ctl_args *args, const struct region_plan *plan)
{
	if (args->relay)
		return plan->ports;
	return plan->server > plan->linear ? plan->server : plan->linear;
}

static void number_add(struct json_object *object, const char *name, double value)
{
	char text[40];

	snprintf(text, sizeof(text), "%.10g", value);
	json_object_object_add(object, name, json_object_new_double_s(value, text));
}

/* [[from,to,relay,first,second,share],...]: a share of what a pair sends, as ocs_moe_ways_make of ocs_moe.h takes
 * it: RELAY -1 is none, FIRST and SECOND say whether its hops take circuits. */
static struct json_object *shares_make(const struct region_plan *plan)
{
	struct json_object *list = json_object_new_array();

	for (int k = 0; k < plan->routes->n; k++) {
		const struct ocs_moe_route *route = &plan->routes->route[k];
		double all = plan->demand->tokens[route->from * plan->demand->n + route->to];
		struct json_object *entry = json_object_new_array();
		bool first = route->way != OCS_MOE_PACKETS && route->way != OCS_MOE_PACKETS_CIRCUIT;
		bool second = route->way == OCS_MOE_CIRCUIT_CIRCUIT ||
			      route->way == OCS_MOE_PACKETS_CIRCUIT;
		char text[40];

		snprintf(text, sizeof(text), "%.6g", route->tokens / all);
		json_object_array_add(entry, json_object_new_int(route->from));
		json_object_array_add(entry, json_object_new_int(route->to));
		json_object_array_add(entry, json_object_new_int(route->relay));
		json_object_array_add(entry, json_object_new_int(first));
		json_object_array_add(entry, json_object_new_int(second));
		json_object_array_add(entry, json_object_new_double_s(route->tokens / all, text));
		json_object_array_add(list, entry);
	}
	return list;
}

static void print_object(const struct ocs_ctl_args *args, const struct region_plan *plan)
{
	struct json_object *object = json_object_new_object(), *bounds = json_object_new_object();

	number_add(object, "time", plan->routes->time);
	number_add(object, "bound", plan_bound(args, plan));
	json_object_object_add(object, "circuits", ocs_moe_circuits_to_json(plan->circuits));
	number_add(object, "relayed", plan->routes->relayed);
	number_add(bounds, "ports", plan->ports);
	number_add(bounds, "server", plan->server);
	number_add(bounds, "linear", plan->linear);
	json_object_object_add(object, "bounds", bounds);
	if (args->routes)
		json_object_object_add(object, "shares", shares_make(plan));
	if (plan->keep)
		json_object_object_add(
			object, "cut",
			json_object_new_int(ocs_moe_circuits_cut(plan->keep, plan->circuits)));
	ocs_ctl_print_json(object);
	json_object_put(object);
}

static void print_text(const struct ocs_ctl_args *args, const struct region_plan *plan)
{
	double bound = plan_bound(args, plan);
	int n = plan->region->n;
	struct ocs_text_table *table;

	printf("%d servers: done after %.10g tokens per NIC rate, %.3f of the bound\n", n,
	       plan->routes->time, bound > 0 ? plan->routes->time / bound : 1);
	printf("bounds: %.10g all ports together, %.10g each server alone, %.10g split circuits\n",
	       plan->ports, plan->server, plan->linear);
	if (args->relay)
		printf("%.1f %% of the tokens take two hops\n", 100 * plan->routes->relayed);
	if (plan->keep)
		printf("%d of the circuits that exist are cut\n",
		       ocs_moe_circuits_cut(plan->keep, plan->circuits));
	putchar('\n');
	table = ocs_text_table_create(">SERVER|>SERVER|>CIRCUITS|>TOKENS|>BACK");
	for (int i = 0; i < n; i++) {
		for (int j = i + 1; j < n; j++) {
			if (!plan->circuits->count[i * n + j])
				continue;
			ocs_text_table_format(table, "%d", i);
			ocs_text_table_format(table, "%d", j);
			ocs_text_table_format(table, "%d", plan->circuits->count[i * n + j]);
			ocs_text_table_format(table, "%.10g", plan->demand->tokens[i * n + j]);
			ocs_text_table_format(table, "%.10g", plan->demand->tokens[j * n + i]);
		}
	}
	ocs_text_table_print(table, stdout);
	ocs_text_table_destroy(table);
}

static int picture_write(const struct ocs_ctl_args *args, const struct region_plan *plan,
			 struct ocs_error *err)
{
	char *svg = ocs_ctl_region_svg(plan->demand, plan->circuits);
	int rc = ocs_file_write(args->svg, svg, strlen(svg), 0644, err);

	free(svg);
	return rc ? ocs_error_prefix(err, "region plan") : 0;
}

int ocs_ctl_region_plan(const struct ocs_ctl_args *args, struct ocs_error *err)
{
	struct region_plan plan = { 0 };
	int rc;

	if (options_check(args, err))
		return -1;
	rc = plan_read(args, &plan, err) || plan_make(args, &plan, err) ? -1 : 0;
	if (!rc && args->svg)
		rc = picture_write(args, &plan, err);
	if (!rc && args->json)
		print_object(args, &plan);
	else if (!rc)
		print_text(args, &plan);
	plan_free(&plan);
	return rc;
}
