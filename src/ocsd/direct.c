/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Jobs on switched servers: plan, then circuits. */

#include "src/ocsd/ocsd.h"

#include "src/plan/plan.h"
#include "src/util/text.h"

#include <json-c/json.h>
#include <stdlib.h>

static int server_port(struct ocsd *d, const struct ocsd_job *job, int server,
		       int interface, struct ocs_port *port, struct ocs_error *err)
{
	const struct ocs_node *node = ocs_fabric_node(d->fabric, job->nodes[server]);

	if (!node || ocs_section_server_port(d->fabric, job->section, node->server,
					     interface, port))
		return ocs_error_set(err, OCS_ERROR,
				     "interface %d of node %s is on no switch", interface,
				     job->nodes[server]);
	return 0;
}

/* Whether one switch reaches every interface of the job's servers. */
static int one_switch(struct ocsd *d, const struct ocsd_job *job, bool *yes,
		      struct ocs_error *err)
{
	int sw = -1;

	*yes = true;
	for (size_t s = 0; s < job->nnodes; s++)
		for (int i = 0; i < job->section->degree; i++) {
			struct ocs_port port;

			if (server_port(d, job, (int)s, i, &port, err))
				return -1;
			if (sw >= 0 && port.sw != sw)
				*yes = false;
			sw = port.sw;
		}
	return 0;
}

static int add_circuits(struct ocsd *d, struct ocsd_job *job,
			const struct ocs_plan *plan, struct ocs_error *err)
{
	for (int i = 0; i < plan->ncircuits; i++) {
		const struct ocs_plan_circuit *circuit = &plan->circuits[i];
		struct ocs_port a, b;

		if (server_port(d, job, circuit->a, circuit->a_port, &a, err) ||
		    server_port(d, job, circuit->b, circuit->b_port, &b, err))
			return -1;
		if (a.sw != b.sw)
			return ocs_error_set(err, OCS_ERROR,
					     "no switch joins interface %d of %s and interface %d of %s",
					     circuit->a_port, job->nodes[circuit->a],
					     circuit->b_port, job->nodes[circuit->b]);
		if (ocsd_job_circuit(d, job, a.sw, a.port, b.port, plan->directed,
				     OCSD_PLANNED, err))
			return -1;
	}
	return 0;
}

int ocsd_direct_plan(struct ocsd *d, struct ocsd_job *job, struct ocs_error *err)
{
	struct ocs_plan_request request = {
		.servers = (int)job->nnodes,
		.degree = job->section->degree,
		.directed = job->section->directed,
		.best = true,
		.routes = true,
		.demand = job->demand,
		.nodes = job->nodes,
	};
	struct ocs_plan *plan;
	struct json_object *json;

	if (!job->section->ports) /* a synthetic fabric without switches */
		return 0;
	/* Routes of large jobs are made where they are needed. */
	if (job->nnodes > 128)
		request.routes = false;
	if (one_switch(d, job, &request.any_port, err))
		return -1;
	plan = ocs_plan_make(&request, err);
	if (!plan)
		return ocs_error_prefix(err, "planning %zu servers", job->nnodes);
	if (ocs_plan_verify(plan, err) || add_circuits(d, job, plan, err)) {
		for (size_t i = 0; i < job->ncircuits; i++)
			free(job->circuits[i]);
		job->ncircuits = 0;
		free(job->circuits);
		job->circuits = NULL;
		ocs_plan_destroy(plan);
		return ocs_error_prefix(err, "planning %zu servers", job->nnodes);
	}
	json = ocs_plan_to_json(plan);
	job->plan = ocs_strdup(json_object_to_json_string_ext(json, JSON_C_TO_STRING_PLAIN));
	json_object_put(json);
	ocs_plan_destroy(plan);
	for (size_t i = 0; i < job->ncircuits; i++)
		ocsd_store_circuit_add(d, job->circuits[i]);
	return 0;
}
