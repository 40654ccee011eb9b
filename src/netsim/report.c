/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/netsim/report.h"

#include <json-c/json.h>
#include <math.h>
#include <stdio.h>

#include "src/plan/plan.h"
#include "src/util/text.h"

#define GBPS (8 * 1000 / 1e9) /* of a byte per ms */

static double jobs_mean(const struct ocs_netsim_request *request,
			const struct ocs_netsim_result *result)
{
	double sum = 0;

	for (int k = 0; k < request->njobs; k++)
		sum += result->step_ms[k];
	return sum / request->njobs;
}

/* Hops of a byte in the mean; 1 where none is forwarded by a server. */
static double bandwidth_tax(const struct ocs_netsim_result *result)
{
	return result->sent > 0 ? result->hops / result->sent : 1;
}

static struct json_object *vertex_json(const struct ocs_netsim_fabric *fabric, int vertex)
{
	char name[32];

	if (vertex < fabric->servers)
		return json_object_new_int(vertex);
	snprintf(name, sizeof(name), "switch %d", vertex - fabric->servers);
	return json_object_new_string(name);
}

static struct json_object *links_json(const struct ocs_netsim_fabric *fabric,
				      const struct ocs_netsim_result *result)
{
	struct json_object *list = json_object_new_array();

	for (int k = 0; k < fabric->nlinks; k++) {
		const struct ocs_netsim_link *link = &fabric->links[k];
		struct json_object *item;
		double most = link->rate * result->end_ms;

		if (!(link->rate > 0) && !(result->carried[k] > 0))
			continue;
		item = json_object_new_object();
		json_object_object_add(item, "from", vertex_json(fabric, link->from));
		json_object_object_add(item, "to", vertex_json(fabric, link->to));
		json_object_object_add(item, "gbps", json_object_new_double(link->rate * GBPS));
		json_object_object_add(item, "bytes", json_object_new_double(result->carried[k]));
		json_object_object_add(
			item, "use",
			json_object_new_double(most > 0 ? result->carried[k] / most : 0));
		json_object_array_add(list, item);
	}
	return list;
}

static void json_print(const struct ocs_netsim_args *args, const struct ocs_netsim_request *request,
		       const struct ocs_netsim_result *result)
{
	struct json_object *json = json_object_new_object(), *jobs = json_object_new_array();

	json_object_object_add(json, "step_ms", json_object_new_double(jobs_mean(request, result)));
	json_object_object_add(json, "tolerance", json_object_new_double(result->tolerance));
	json_object_object_add(json, "fabric", json_object_new_string(args->fabric));
	json_object_object_add(json, "servers", json_object_new_int(request->fabric->servers));
	json_object_object_add(
		json, "collective",
		json_object_new_string(ocs_netsim_algorithm_name(request->algorithm)));
	json_object_object_add(json, "seed", json_object_new_int64((int64_t)args->seed));
	json_object_object_add(json, "bytes", json_object_new_double(result->sent));
	json_object_object_add(json, "bandwidth_tax",
			       json_object_new_double(bandwidth_tax(result)));
	json_object_object_add(json, "changes", json_object_new_int64(result->changes));
	for (int k = 0; k < request->njobs; k++) {
		struct json_object *job = json_object_new_object();

		json_object_object_add(job, "graph", json_object_new_string(args->graphs[k]));
		json_object_object_add(job, "servers",
				       json_object_new_int(request->jobs[k].graph->servers));
		json_object_object_add(job, "step_ms", json_object_new_double(result->step_ms[k]));
		json_object_array_add(jobs, job);
	}
	json_object_object_add(json, "jobs", jobs);
	json_object_object_add(json, "links", links_json(request->fabric, result));
	puts(json_object_to_json_string_ext(json, JSON_C_TO_STRING_PLAIN));
	json_object_put(json);
}

static void text_print(const struct ocs_netsim_args *args, const struct ocs_netsim_request *request,
		       const struct ocs_netsim_result *result)
{
	double least = INFINITY, most = 0, sum = 0;
	int links = 0;

	printf("step             %.6g ms\n", jobs_mean(request, result));
	for (int k = 0; request->njobs > 1 && k < request->njobs; k++)
		printf("  job %-3d        %.6g ms  %s\n", k, result->step_ms[k], args->graphs[k]);
	printf("fabric           %s\n", args->fabric);
	printf("collectives      %s\n", ocs_netsim_algorithm_name(request->algorithm));
	printf("sent             %.6g bytes, each over %.4g hops\n", result->sent,
	       bandwidth_tax(result));
	for (int k = 0; k < request->fabric->nlinks; k++) {
		if (!(request->fabric->links[k].rate > 0))
			continue;
		links++;
		sum += result->carried[k];
		least = fmin(least, result->carried[k]);
		most = fmax(most, result->carried[k]);
	}
	if (links)
		printf("links            %d, with %.4g bytes in the mean, %.4g to %.4g\n", links,
		       sum / links, least, most);
	if (result->changes)
		printf("circuit changes  %ld\n", result->changes);
	printf("tolerance        %g\n", result->tolerance);
}

void ocs_netsim_report(const struct ocs_netsim_args *args, const struct ocs_netsim_request *request,
		       const struct ocs_netsim_result *result)
{
	if (args->json)
		json_print(args, request, result);
	else
		text_print(args, request, result);
}
