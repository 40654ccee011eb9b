/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

#include "src/fabric/fabric.h"
#include "src/ocsctl/ocsctl.h"
#include "src/ocsctl/output/table.h"
#include "src/plan/plan.h"
#include "src/util/text.h"

/* A list of routes grows with the square of the servers. */
#define ROUTES_MAX 128

static const struct ocs_section *direct_section(const struct ocs_fabric *fabric,
						const struct ocs_ctl_args *args,
						struct ocs_error *err)
{
	const struct ocs_section *found = NULL;

	for (int i = 0; i < fabric->nsections; i++) {
		const struct ocs_section *section = &fabric->sections[i];

		if (section->kind != OCS_DIRECT)
			continue;
		if (args->section && strcmp(args->section, section->name) != 0)
			continue;
		if (found) {
			ocs_error_set(err, OCS_USAGE,
				      "plan: %s has several direct sections; choose"
				      " one with --section",
				      fabric->source);
			return NULL;
		}
		found = section;
	}
	if (!found) {
		char *names = ocs_fabric_section_names(fabric);

		ocs_error_set(err, OCS_USAGE,
			      "plan: %s has no direct section%s%s; its sections: %s",
			      fabric->source, args->section ? " named " : "",
			      args->section ? args->section : "", names);
		free(names);
	}
	return found;
}

/* One switch that all interfaces of a server reach joins any two of them. */
static bool one_switch(const struct ocs_fabric *fabric, const struct ocs_section *section)
{
	struct ocs_port first, port;

	if (ocs_section_server_port(fabric, section, 0, 0, &first))
		return false;
	for (int i = 1; i < section->degree; i++)
		if (ocs_section_server_port(fabric, section, 0, i, &port) || port.sw != first.sw)
			return false;
	return section->degree > 1;
}

/* Fills REQUEST from the direct section of --fabric.  *NODES is for the caller
 * to free; its names belong to the fabric. */
static int from_fabric(const struct ocs_fabric *fabric, const struct ocs_ctl_args *args,
		       struct ocs_plan_request *request, char ***nodes, struct ocs_error *err)
{
	const struct ocs_section *section = direct_section(fabric, args, err);

	if (!section)
		return -1;
	if (!request->servers)
		request->servers = section->nservers;
	if (!request->degree)
		request->degree = section->degree;
	if (request->servers > section->nservers || request->degree > section->degree)
		return ocs_error_set(err, OCS_NEVER,
				     "plan: %d servers of degree %d are asked for;"
				     " section %s has %d of degree %d",
				     request->servers, request->degree, section->name,
				     section->nservers, section->degree);
	request->directed |= section->directed;
	request->any_port = one_switch(fabric, section);
	*nodes = ocs_calloc(request->servers, sizeof(**nodes));
	for (int i = 0; i < request->servers; i++)
		(*nodes)[i] = fabric->nodes[section->first_node + i].name;
	request->nodes = *nodes;
	return 0;
}

/* Mb/s, or 0 where one is not known. */
static int slowest_interface(const struct ocs_section *section)
{
	int mbps = 0;

	for (int i = 0; section->interfaces && i < section->degree; i++) {
		int speed = section->interfaces[i].speed;

		if (!speed)
			return 0;
		mbps = i == 0 || speed < mbps ? speed : mbps;
	}
	return mbps;
}

static int request_fill(const struct ocs_ctl_args *args, struct ocs_plan_request *request,
			struct ocs_error *err)
{
	memset(request, 0, sizeof(*request));
	request->servers = args->servers;
	request->degree = args->degree;
	request->directed = args->directed;
	request->best = !args->strategy || !strcmp(args->strategy, "best");
	if (!request->best && strcmp(args->strategy, "paper") != 0)
		return ocs_error_set(err, OCS_USAGE,
				     "plan: there is no strategy '%s'; there are"
				     " paper and best",
				     args->strategy);
	request->stock = args->rings && strcmp(args->rings, "stock") == 0;
	if (args->rings && !request->stock && strcmp(args->rings, "permuted") != 0)
		return ocs_error_set(err, OCS_USAGE, "plan: --rings is stock or permuted, not '%s'",
				     args->rings);
	if (!args->fabric && !args->section && !(args->servers && args->degree))
		return ocs_error_set(err, OCS_USAGE,
				     "plan: give --servers N and --degree D, or a"
				     " --fabric with a direct section");
	return 0;
}

static void print_members(const struct ocs_plan_group *group)
{
	bool run = true;

	for (int i = 1; i < group->nmembers; i++)
		run = run && group->members[i] == group->members[0] + i;
	if (run && group->nmembers > 1)
		printf("servers %d-%d", group->members[0], group->members[group->nmembers - 1]);
	else {
		printf("servers ");
		for (int i = 0; i < group->nmembers; i++)
			printf("%s%d", i ? "," : "", group->members[i]);
	}
}

/* How many circuits of every hop of ring +1, and in how many rings, a group has; MBPS: of an
 * interface, or 0. */
static void rings_print(const struct ocs_plan_group *group, int mbps)
{
	int stock = 0;

	for (int r = 0; r < group->nrings; r++)
		stock += group->steps[r] == 1;
	printf("  stock NCCL: %d circuit%s from server to server", stock, stock == 1 ? "" : "s");
	if (mbps)
		printf(", %g GB/s", stock * (mbps / 8000.0));
	if (stock < group->nrings) {
		printf("; a communicator a ring: %d", group->nrings);
		if (mbps)
			printf(", %g GB/s", group->nrings * (mbps / 8000.0));
	}
	putchar('\n');
}

static void print_text(const struct ocs_plan *plan, const struct ocs_ctl_args *args, int mbps)
{
	struct ocs_text_table *table;

	printf("%d server%s, degree %d, %s: %d circuit%s\n", plan->servers,
	       plan->servers == 1 ? "" : "s", plan->degree, plan->directed ? "directed" : "duplex",
	       plan->ncircuits, plan->ncircuits == 1 ? "" : "s");
	printf("diameter %d, average hops %.3f, most loaded link %.3f (all-to-all, 1 per pair)\n",
	       plan->diameter, plan->average_hops, plan->max_link_load);
	if (args->demand)
		printf("bandwidth tax of the demand %.3f\n", plan->bandwidth_tax);
	for (int i = 0; i < plan->ngroups; i++) {
		const struct ocs_plan_group *group = &plan->groups[i];

		printf("group %d: ", i);
		print_members(group);
		fputs(group->nrings ? "; ring steps" : "; no ring", stdout);
		for (int r = 0; r < group->nrings; r++)
			printf("%s %d", r ? "," : "", group->steps[r]);
		for (int t = 0; t < group->ntrees; t++)
			printf("%s %d", t ? "," : "; tree steps", group->trees[t].step);
		putchar('\n');
		if (group->nrings > 1 || (group->nrings && mbps))
			rings_print(group, mbps);
	}
	if (plan->assignment)
		printf("switches: %s\n", plan->assignment);
	putchar('\n');
	table = ocs_text_table_create(plan->nodes ? ">OCS|FROM|>PORT|TO|>PORT" :
						    ">OCS|>FROM|>PORT|>TO|>PORT");
	for (int i = 0; i < plan->ncircuits; i++) {
		const struct ocs_plan_circuit *c = &plan->circuits[i];

		ocs_text_table_format(table, "%d", c->ocs);
		if (plan->nodes)
			ocs_text_table_add(table, plan->nodes[c->a]);
		else
			ocs_text_table_format(table, "%d", c->a);
		ocs_text_table_format(table, "%d", c->a_port);
		if (plan->nodes)
			ocs_text_table_add(table, plan->nodes[c->b]);
		else
			ocs_text_table_format(table, "%d", c->b);
		ocs_text_table_format(table, "%d", c->b_port);
	}
	ocs_text_table_print(table, stdout);
	ocs_text_table_destroy(table);
}

/* "S:I,S:I..."; the caller frees the list. */
static struct ocs_plan_fault *faults_parse(const char *text, int *count, struct ocs_error *err)
{
	struct ocs_plan_fault *list = ocs_calloc(strlen(text) / 3 + 1, sizeof(*list));
	const char *at = text;

	*count = 0;
	do {
		int length = 0;

		if (sscanf(at, "%6d:%3d%n", &list[*count].server, &list[*count].port, &length) !=
			    2 ||
		    list[*count].server < 0 || list[*count].port < 0 ||
		    (at[length] && at[length] != ',') || (at[length] && !at[length + 1])) {
			ocs_error_set(err, OCS_USAGE,
				      "plan: --failed takes SERVER:INTERFACE pairs such"
				      " as 3:0,7:1, not '%.40s'",
				      text);
			free(list);
			return NULL;
		}
		at += length + (at[length] == ',');
		(*count)++;
	} while (*at);
	return list;
}

static uint64_t *failed_masks(const struct ocs_plan_fault *faults, int count,
			      const struct ocs_plan_request *request, struct ocs_error *err)
{
	uint64_t *masks = ocs_calloc(request->servers, sizeof(*masks));

	for (int i = 0; i < count; i++) {
		if (faults[i].server >= request->servers || faults[i].port >= request->degree ||
		    faults[i].port >= 64) {
			ocs_error_set(err, OCS_USAGE,
				      "plan: --failed names interface %d of server %d;"
				      " there are %d servers of degree %d",
				      faults[i].port, faults[i].server, request->servers,
				      request->degree);
			free(masks);
			return NULL;
		}
		masks[faults[i].server] |= UINT64_C(1) << faults[i].port;
	}
	return masks;
}

static struct ocs_plan *plan_repaired(const struct ocs_ctl_args *args,
				      const struct ocs_plan_fault *faults, int count,
				      struct ocs_error *err)
{
	struct json_object *json = ocs_ctl_read_json(args->repair, err);
	struct ocs_plan *plan, *made = NULL;

	if (!json)
		return NULL;
	plan = ocs_plan_from_json(json, err);
	json_object_put(json);
	if (!plan || ocs_plan_verify(plan, err))
		ocs_error_prefix(err, "plan: %s is no plan to repair", args->repair);
	else
		made = ocs_plan_repair(plan, faults, count, err);
	ocs_plan_destroy(plan);
	return made;
}

static int plan_print(const struct ocs_plan *plan, const struct ocs_ctl_args *args, int mbps,
		      struct ocs_error *err)
{
	if (args->svg) {
		char *svg = ocs_ctl_plan_svg(plan);
		int rc = ocs_file_write(args->svg, svg, strlen(svg), 0644, err);

		free(svg);
		if (rc)
			return -1;
	}
	if (args->json) {
		struct json_object *json = ocs_plan_to_json(plan);

		ocs_ctl_print_json(json);
		json_object_put(json);
	} else {
		print_text(plan, args, mbps);
	}
	return 0;
}

/* A new plan. */
static struct ocs_plan *plan_planned(const struct ocs_ctl_args *args,
				     const struct ocs_plan_fault *faults, int count, int *mbps,
				     struct ocs_error *err)
{
	struct ocs_plan_request request;
	struct ocs_fabric *fabric = NULL;
	struct ocs_plan *plan = NULL;
	char **nodes = NULL, *demand = NULL;
	uint64_t *failed = NULL;

	if (request_fill(args, &request, err))
		return NULL;
	if (args->fabric || args->section) {
		fabric = ocs_ctl_fabric_open(args, err);
		if (!fabric || from_fabric(fabric, args, &request, &nodes, err))
			goto out;
		*mbps = slowest_interface(direct_section(fabric, args, NULL));
	}
	request.routes = args->routes || request.servers <= ROUTES_MAX;
	request.paths = (int)args->paths;
	request.trees = (int)args->trees;
	if (args->demand) {
		demand = ocs_ctl_read(args->demand, err);
		if (!demand)
			goto out;
		request.demand = demand;
	}
	if (faults && request.servers <= OCS_PLAN_SERVERS_MAX) {
		failed = failed_masks(faults, count, &request, err);
		if (!failed)
			goto out;
		request.failed = failed;
	}
	plan = ocs_plan_make(&request, err);
out:
	free(failed);
	free(nodes);
	free(demand);
	ocs_fabric_destroy(fabric);
	return plan;
}

int ocs_ctl_plan(const struct ocs_ctl_args *args, struct ocs_error *err)
{
	struct ocs_plan_fault *faults = NULL;
	struct ocs_plan *plan;
	int count = 0, mbps = 0, rc;

	if (args->repair && !args->failed)
		return ocs_error_set(err, OCS_USAGE,
				     "plan: --repair needs --failed SERVER:INTERFACE");
	if (args->repair && (args->servers || args->degree || args->demand || args->strategy ||
			     args->directed || args->routes || args->paths || args->trees ||
			     args->rings || args->fabric || args->section))
		return ocs_error_set(err, OCS_USAGE,
				     "plan: --repair keeps what its plan was made for;"
				     " beside --failed only --json and --svg go with it");
	if (args->failed) {
		faults = faults_parse(args->failed, &count, err);
		if (!faults)
			return -1;
	}
	plan = args->repair ? plan_repaired(args, faults, count, err) :
			      plan_planned(args, faults, count, &mbps, err);
	free(faults);
	if (!plan)
		return -1;
	rc = plan_print(plan, args, mbps, err);
	ocs_plan_destroy(plan);
	return rc;
}
