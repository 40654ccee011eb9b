/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/model/strategy.h"
#include "src/netsim/model_graph.h"
#include "src/netsim/options.h"
#include "src/netsim/plot.h"
#include "src/netsim/report.h"
#include "src/netsim/step.h"
#include "src/util/error.h"
#include "src/util/text.h"

/* The step of a model on SERVERS of them. */
static struct ocs_netsim_graph *model_read(const char *spec, int servers, struct ocs_error *err)
{
	struct ocs_model *model = ocs_model_open(spec, err);
	struct ocs_netsim_graph *graph = NULL;
	struct ocs_model_strategy *strategy;
	struct ocs_model_machine machine;

	if (model && !servers)
		ocs_error_set(err, OCS_USAGE, "the fabric of a model needs servers:N");
	if (model && servers) {
		ocs_model_machine_default(model, servers, &machine);
		strategy = ocs_model_strategy_default(model, &machine, err);
		if (strategy)
			graph = ocs_netsim_model_graph(model, &machine, strategy, err);
		ocs_model_strategy_destroy(strategy);
	}
	ocs_model_destroy(model);
	return graph;
}

/* Job K of the command line. */
static struct ocs_netsim_graph *graph_read(const struct ocs_netsim_args *args, int k, int servers,
					   struct ocs_error *err)
{
	struct ocs_netsim_graph *graph = args->models[k] ?
						 model_read(args->graphs[k], servers, err) :
						 ocs_netsim_graph_read(args->graphs[k], err);

	for (int t = 0; graph && t < graph->ntasks; t++) {
		if (graph->tasks[t].kind == OCS_NETSIM_COMPUTE)
			graph->tasks[t].ms /= args->speed;
	}
	return graph;
}

/* The jobs take the servers of the fabric one after the other, in order or as drawn. */
static int jobs_place(struct ocs_netsim_graph *const *graphs, int n, int servers,
		      const struct ocs_netsim_args *args, int **places, struct ocs_error *err)
{
	int wanted = 0, at = 0, *order;
	unsigned state = (unsigned)args->seed * 2654435761u + 1;

	for (int k = 0; k < n; k++)
		wanted += graphs[k]->servers;
	if (!servers)
		servers = wanted;
	if (wanted > servers)
		return ocs_error_set(err, OCS_USAGE,
				     "the fabric has %d servers, the graphs need %d; write "
				     "servers:%d",
				     servers, wanted, wanted);
	order = ocs_calloc((size_t)servers, sizeof(int));
	for (int k = 0; k < servers; k++)
		order[k] = k;
	for (int k = servers - 1; args->scatter && k > 0; k--) {
		int other = rand_r(&state) % (k + 1), held = order[k];

		order[k] = order[other];
		order[other] = held;
	}
	for (int k = 0; k < n; k++) {
		places[k] = ocs_calloc((size_t)graphs[k]->servers, sizeof(int));
		for (int s = 0; s < graphs[k]->servers; s++)
			places[k][s] = order[at++];
	}
	free(order);
	return 0;
}

/* The run again, now that is known how long it takes, with looks at the links. */
static int pictures_make(const struct ocs_netsim_args *args, struct ocs_netsim_request *request,
			 double end_ms, struct ocs_error *err)
{
	struct ocs_netsim_result *result;
	int rc;

	request->sample_ms = end_ms > 0 ? end_ms / OCS_NETSIM_PLOT_SAMPLES : 1;
	result = ocs_netsim_run(request, err);
	rc = result ? ocs_netsim_plot(request, result, args->fabric, args->svg, err) : -1;
	ocs_netsim_result_destroy(result);
	return rc;
}

static int graph_write(const struct ocs_netsim_graph *graph, const char *path,
		       struct ocs_error *err)
{
	struct ocs_text text = { 0 };
	int rc;

	ocs_netsim_graph_write(graph, &text);
	rc = ocs_file_write(path, text.data, text.length, 0644, err);
	ocs_text_free(&text);
	return rc;
}

static int step_run(const struct ocs_netsim_args *args, struct ocs_netsim_graph *const *graphs,
		    int **places, const struct ocs_netsim_spec *spec, struct ocs_error *err)
{
	struct ocs_netsim_job jobs[OCS_NETSIM_JOBS_MAX];
	struct ocs_netsim_request request = { .jobs = jobs,
					      .njobs = args->ngraphs,
					      .algorithm = args->algorithm,
					      .tolerance = args->tolerance };
	struct ocs_netsim_result *result;

	if (jobs_place(graphs, args->ngraphs, spec->servers, args, places, err))
		return -1;
	for (int k = 0; k < args->ngraphs; k++)
		jobs[k] = (struct ocs_netsim_job){ .graph = graphs[k],
						   .place = places[k],
						   .steps = args->steps };
	request.fabric =
		ocs_netsim_fabric_create(spec, (const struct ocs_netsim_graph *const *)graphs,
					 places, args->ngraphs, args->seed, err);
	if (!request.fabric)
		return -1;
	result = ocs_netsim_run(&request, err);
	if (result)
		ocs_netsim_report(args, &request, result);
	if (result && args->svg && pictures_make(args, &request, result->end_ms, err)) {
		ocs_netsim_result_destroy(result);
		result = NULL;
	}
	ocs_netsim_fabric_destroy(request.fabric);
	ocs_netsim_result_destroy(result);
	return result ? 0 : -1;
}

int main(int argc, char **argv)
{
	struct ocs_netsim_graph *graphs[OCS_NETSIM_JOBS_MAX] = { NULL };
	int *places[OCS_NETSIM_JOBS_MAX] = { NULL }, rc;
	struct ocs_netsim_spec spec = { 0 };
	struct ocs_netsim_args args;
	struct ocs_error err = { 0 };

	rc = ocs_netsim_args_parse(argc, argv, &args, &err);
	if (rc == 1)
		return 0;
	if (!rc && args.fabric)
		rc = ocs_netsim_spec_parse(args.fabric, &spec, &err);
	for (int k = 0; !rc && k < args.ngraphs; k++) {
		graphs[k] = graph_read(&args, k, spec.servers / args.ngraphs, &err);
		rc = graphs[k] ? 0 : -1;
	}
	if (!rc && args.write_graph)
		rc = graph_write(graphs[0], args.write_graph, &err);
	if (!rc && args.fabric)
		rc = step_run(&args, graphs, places, &spec, &err);
	for (int k = 0; k < OCS_NETSIM_JOBS_MAX; k++) {
		ocs_netsim_graph_destroy(graphs[k]);
		free(places[k]);
	}
	ocs_netsim_spec_free(&spec);
	if (rc)
		fprintf(stderr, "ocs-netsim: %s\n", err.text);
	return rc ? err.code : 0;
}
