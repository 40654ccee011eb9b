/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* One-line fabrics of the network simulator.  What is accepted has numbers that a fabric can be made of,
 * and a step of four servers runs on it, or it says in one line why not. */

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "src/netsim/step.h"
#include "src/util/error.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct ocs_netsim_graph *step_make(void)
{
	struct ocs_netsim_graph *graph = ocs_netsim_graph_create(4, 1);
	int group = ocs_netsim_group_add(graph, (int[]){ 0, 1, 2, 3 }, 4);
	int reduce = ocs_netsim_collective_add(graph, OCS_NETSIM_ALLREDUCE, group, 1e6);
	int change = ocs_netsim_collective_add(graph, OCS_NETSIM_ALLTOALL, group, 1e6);

	ocs_netsim_depend(graph, reduce, change);
	ocs_netsim_depend(graph, change, ocs_netsim_transfer_add(graph, 0, 2, 1e6));
	return graph;
}

static void line_check(const char *text, const struct ocs_netsim_spec *spec)
{
	if (!(spec->rate > 0) || !isfinite(spec->rate) || !(spec->latency >= 0) ||
	    !(spec->change >= 0) || !(spec->interval > 0) || !(spec->oversub >= 1) ||
	    spec->degree < 1 || spec->degree > 64 || spec->leaf < 1 || spec->cube < 1 ||
	    spec->optical < 1 || strcmp(spec->text, text) != 0)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ocs_netsim_spec spec;
	struct ocs_error err = { 0 };
	struct ocs_netsim_graph *graph;
	struct ocs_netsim_job job = { .steps = 1 };
	struct ocs_netsim_request request = { .jobs = &job, .njobs = 1, .tolerance = 0.01 };
	char *text = malloc(size + 1);

	memcpy(text, data, size);
	text[size] = '\0';
	if (ocs_netsim_spec_parse(text, &spec, &err)) {
		if (err.code != OCS_USAGE || !err.text[0] || strchr(err.text, '\n'))
			abort();
	} else {
		line_check(text, &spec);
		graph = step_make();
		job.graph = graph;
		/* files are left alone, and circuits that change a million times a step */
		if (!spec.plan && spec.servers <= 256 && spec.interval >= 1)
			request.fabric = ocs_netsim_fabric_create(
				&spec, (const struct ocs_netsim_graph *[]){ graph }, NULL, 1, 1,
				&err);
		if (request.fabric && spec.rate >= 1e5)
			ocs_netsim_result_destroy(ocs_netsim_run(&request, &err));
		if (strchr(err.text, '\n'))
			abort();
		ocs_netsim_fabric_destroy(request.fabric);
		ocs_netsim_graph_destroy(graph);
	}
	ocs_netsim_spec_free(&spec);
	free(text);
	return 0;
}
