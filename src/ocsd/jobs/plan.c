/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Jobs on switched servers: plan, then circuits. */

#include "src/ocsd/jobs/lookahead.h"
#include "src/ocsd/jobs/plan.h"
#include "src/ocsd/state/out_of_service.h"
#include "src/ocsd/jobs/allocation.h"
#include "src/ocsd/store/store.h"

#include "src/plan/plan.h"
#include "src/util/text.h"

#include <json-c/json.h>
#include <stdlib.h>

int ocsd_direct_port(struct ocsd *d, const struct ocsd_job *job, int server, int interface,
		     struct ocs_port *port, struct ocs_error *err)
{
	const struct ocs_node *node = ocs_fabric_node(d->fabric, job->nodes.names[server]);

	if (!node ||
	    ocs_section_set_port(job->section, job->plan.set, node->server, interface, port))
		return ocs_error_set(err, OCS_ERROR, "interface %d of node %s is on no switch",
				     interface, job->nodes.names[server]);
	return 0;
}

/* Whether one switch reaches every interface of the job's servers. */
static int one_switch(struct ocsd *d, const struct ocsd_job *job, bool *yes, struct ocs_error *err)
{
	int sw = -1;

	*yes = true;
	for (size_t s = 0; s < job->nodes.count; s++)
		for (int i = 0; i < job->section->degree; i++) {
			struct ocs_port port;

			if (ocsd_direct_port(d, job, (int)s, i, &port, err))
				return -1;
			if (sw >= 0 && port.sw != sw)
				*yes = false;
			sw = port.sw;
		}
	return 0;
}

int ocsd_direct_ports(struct ocsd *d, const struct ocsd_job *job,
		      const struct ocs_plan_circuit *circuit, struct ocs_port *a,
		      struct ocs_port *b, struct ocs_error *err)
{
	if (ocsd_direct_port(d, job, circuit->a, circuit->a_port, a, err) ||
	    ocsd_direct_port(d, job, circuit->b, circuit->b_port, b, err))
		return -1;
	if (a->sw != b->sw)
		return ocs_error_set(err, OCS_ERROR,
				     "no switch joins interface %d of %s and interface %d of %s",
				     circuit->a_port, job->nodes.names[circuit->a], circuit->b_port,
				     job->nodes.names[circuit->b]);
	return 0;
}

static int add_circuits(struct ocsd *d, struct ocsd_job *job, const struct ocs_plan *plan,
			struct ocs_error *err)
{
	for (int i = 0; i < plan->ncircuits; i++) {
		struct ocs_port a, b;

		if (ocsd_direct_ports(d, job, &plan->circuits[i], &a, &b, err) ||
		    ocsd_job_circuit(d, job, a.sw, a.port, b.port, plan->directed, OCSD_PLANNED,
				     err))
			return -1;
	}
	return 0;
}

/* Says of the port at WHERE whether interface I of server S may be used. */
static void port_judge(struct ocsd *d, struct ocs_port where, size_t s, int i, uint64_t *failed,
		       uint64_t *drained)
{
	const struct ocsd_port *port = &d->switches[where.sw].ports[where.port];

	if (port->failed || port->foreign)
		failed[s] |= UINT64_C(1) << i;
	else if (port->drained)
		drained[s] |= UINT64_C(1) << i;
}

void ocsd_direct_unusable(struct ocsd *d, const struct ocsd_job *job, uint64_t *failed,
			  uint64_t *drained)
{
	for (size_t s = 0; s < job->nodes.count; s++)
		for (int i = 0; i < job->section->degree && i < 64; i++) {
			const struct ocs_node *node =
				ocs_fabric_node(d->fabric, job->nodes.names[s]);
			struct ocs_port where;

			if (!ocsd_direct_port(d, job, (int)s, i, &where, NULL))
				port_judge(d, where, s, i, failed, drained);
			if (node && !ocs_section_select_port(job->section, node->server, i, &where))
				port_judge(d, where, s, i, failed, drained);
		}
}

static struct ocs_plan *plan_make(struct ocsd *d, const struct ocsd_job *job, bool best,
				  const uint64_t *failed, struct ocs_error *err)
{
	struct ocs_plan_request request = {
		.servers = (int)job->nodes.count,
		.degree = job->section->degree,
		.directed = job->section->directed,
		.best = best,
		.stock = d->config->nccl.stock_rings,
		.demand = job->request.demand,
		.nodes = job->nodes.names,
		.failed = failed,
	};

	if (one_switch(d, job, &request.any_port, err))
		return NULL;
	return ocs_plan_make(&request, err);
}

struct ocs_plan *ocsd_direct_make(struct ocsd *d, const struct ocsd_job *job,
				  const uint64_t *failed, struct ocs_error *err)
{
	/* Routes are made where they are needed: they follow from the circuits. */
	return plan_make(d, job, true, failed, err);
}

struct json_object *ocsd_direct_plan_json(struct ocsd_job *job)
{
	if (job->plan.text && !job->plan.object)
		job->plan.object = json_tokener_parse(job->plan.text);
	return json_object_get(job->plan.object);
}

void ocsd_direct_keep(struct ocsd_job *job, const struct ocs_plan *plan)
{
	struct json_object *json = ocs_plan_to_json(plan);

	free(job->plan.text);
	json_object_put(job->plan.object);
	job->plan.text = ocs_strdup(json_object_to_json_string_ext(json, JSON_C_TO_STRING_PLAIN));
	job->plan.object = json;
	job->plan.revision = plan->revision;
}

/* The first port that is left out, for people. */
static void name_unusable(struct ocsd *d, const struct ocsd_job *job, const uint64_t *failed,
			  struct ocs_error *err)
{
	const struct ocsd_drain *drain;
	struct ocs_port port;
	char *name;
	size_t s = 0;

	while (s < job->nodes.count && !failed[s])
		s++;
	if (s == job->nodes.count ||
	    ocsd_direct_port(d, job, (int)s, __builtin_ctzll(failed[s]), &port, NULL))
		return;
	name = ocs_asprintf("%s:%d", d->fabric->switches[port.sw].name, port.port);
	drain = ocsd_drain_find(d, "port", name);
	ocs_error_prefix(err, "port %s is %s%s", name, drain ? "drained: " : "",
			 drain ? drain->reason :
				 "in quarantine, a patch that is not ours is on it");
	free(name);
}

/* What is drained, failed or in quarantine; NULL: nothing.  A job that runs already
 * has its circuits, whatever ocsd takes them for. */
static uint64_t *unusable_find(struct ocsd *d, const struct ocsd_job *job)
{
	uint64_t *failed = ocs_calloc(job->nodes.count, sizeof(*failed));

	if (!job->adopt_running)
		ocsd_direct_unusable(d, job, failed, failed);
	for (size_t s = 0; s < job->nodes.count; s++)
		if (failed[s])
			return failed;
	free(failed);
	return NULL;
}

int ocsd_direct_possible(struct ocsd *d, const struct ocsd_job *job, struct ocs_error *err)
{
	uint64_t *failed = job->section->ports ? unusable_find(d, job) : NULL;
	struct ocs_plan *plan;
	int rc = 0;

	if (!failed)
		return 0;
	plan = plan_make(d, job, false, failed, err);
	if (!plan) {
		name_unusable(d, job, failed, err);
		err->code = OCS_NOT_NOW;
		rc = -1;
	}
	ocs_plan_destroy(plan);
	free(failed);
	return rc;
}

static struct ocs_plan *plan_now(struct ocsd *d, const struct ocsd_job *job, struct ocs_error *err)
{
	uint64_t *failed = unusable_find(d, job);
	struct ocs_plan *plan = ocsd_direct_make(d, job, failed, err);

	if (!plan && failed)
		name_unusable(d, job, failed, err);
	free(failed);
	return plan;
}

int ocsd_direct_plan(struct ocsd *d, struct ocsd_job *job, struct ocs_error *err)
{
	struct ocs_plan *plan;

	if (!job->section->ports) /* a synthetic fabric without switches */
		return 0;
	plan = plan_now(d, job, err);
	if (!plan)
		return ocs_error_prefix(err, "planning %zu servers", job->nodes.count);
	if (ocs_plan_verify(plan, err) || add_circuits(d, job, plan, err) ||
	    (ocsd_ahead_has(job) && ocsd_ahead_circuits(d, job, err))) {
		for (size_t i = 0; i < job->circuits.count; i++)
			free(job->circuits.list[i]);
		job->circuits.count = 0;
		free(job->circuits.list);
		job->circuits.list = NULL;
		ocs_plan_destroy(plan);
		return ocs_error_prefix(err, "planning %zu servers", job->nodes.count);
	}
	ocsd_direct_keep(job, plan);
	ocs_plan_destroy(plan);
	for (size_t i = 0; i < job->circuits.count; i++)
		ocsd_store_circuit_add(d, job->circuits.list[i]);
	return 0;
}
