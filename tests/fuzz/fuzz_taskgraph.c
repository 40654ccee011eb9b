/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Task graphs, which come from users: FlatBuffers, and JSON where the first byte is a brace.  What is
 * accepted is a step that can be run; a small one is run. */

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "src/netsim/step.h"
#include "src/util/error.h"

#define RUN_MAX 64 /* tasks, servers and members of a step that is run */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct ocs_netsim_graph *graph_read(const uint8_t *data, size_t size, struct ocs_error *err)
{
	struct ocs_netsim_graph *graph;
	char *text = malloc(size + 1);

	if (!text)
		abort();
	if (size)
		memcpy(text, data, size);
	text[size] = '\0';
	graph = ocs_netsim_graph_parse(text, size, err);
	free(text);
	return graph;
}

static void graph_run(const struct ocs_netsim_graph *graph)
{
	struct ocs_netsim_spec spec;
	struct ocs_error err = { 0 };
	struct ocs_netsim_job job = { .graph = graph, .steps = 1 };
	struct ocs_netsim_request request = { .jobs = &job, .njobs = 1 };
	struct ocs_netsim_result *result;

	if (ocs_netsim_spec_parse("ideal rate:1T", &spec, &err))
		abort();
	request.fabric = ocs_netsim_fabric_create(&spec, &graph, NULL, 1, 1, &err);
	if (!request.fabric)
		abort();
	result = ocs_netsim_run(&request, &err);
	if (!result || !(result->step_ms[0] >= 0))
		abort();
	ocs_netsim_result_destroy(result);
	ocs_netsim_fabric_destroy(request.fabric);
	ocs_netsim_spec_free(&spec);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ocs_error err = { 0 };
	struct ocs_netsim_graph *graph = graph_read(data, size, &err);
	int members = 0;

	if (!graph) {
		if (err.code != OCS_USAGE || !err.text[0] || strchr(err.text, '\n'))
			abort();
		return 0;
	}
	if (ocs_netsim_graph_check(graph, &err))
		abort();
	for (int k = 0; k < graph->ngroups; k++)
		members += graph->groups[k].count;
	if (graph->ntasks <= RUN_MAX && graph->servers <= RUN_MAX && graph->devices <= RUN_MAX &&
	    members <= RUN_MAX)
		graph_run(graph);
	ocs_netsim_graph_destroy(graph);
	return 0;
}
