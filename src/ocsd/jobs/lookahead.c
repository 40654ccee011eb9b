/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Look-ahead: every interface has a 1x2 switch before it that leads to one of two
 * port sets.  While a job runs on one set, the circuits of the job that comes next
 * on its nodes are made on the other (`prepare`).  When the first job leaves, the
 * 1x2 switches move from its set to the other one, and only that is waited for.
 *
 * A prepared job is an allocation of epoch 0: it owns its ports of the dark set and
 * stands in line for the 1x2 switches.  Its commit makes it an ordinary one. */

#include "src/ocsd/jobs/lookahead.h"
#include "src/ocsd/jobs/plan.h"
#include "src/ocsd/jobs/allocation.h"
#include "src/ocsd/jobs/lifecycle.h"
#include "src/ocsd/jobs/connect.h"
#include "src/ocsd/jobs/circuits.h"
#include "src/ocsd/jobs/job_state.h"
#include "src/ocsd/store/store.h"

#include <string.h>

static struct ocsd_port *port_of(struct ocsd *d, struct ocs_port port)
{
	return &d->switches[port.sw].ports[port.port];
}

static int server_of(struct ocsd *d, const struct ocsd_job *job, size_t node)
{
	return ocs_fabric_node(d->fabric, job->nodes.names[node])->server;
}

bool ocsd_ahead_has(const struct ocsd_job *job)
{
	return job->section && job->section->ahead;
}

/* How far SET is from being free for JOB: 0, 1 (until a job that ended has gone), 2. */
static int set_occupied(struct ocsd *d, const struct ocsd_job *job, int set)
{
	int worst = 0;

	for (size_t i = 0; i < job->nodes.count; i++)
		for (int k = 0; k < job->section->degree; k++) {
			const struct ocsd_port *port;
			struct ocs_port where;
			bool waits;

			if (ocs_section_set_port(job->section, set, server_of(d, job, i), k,
						 &where))
				return 2;
			port = port_of(d, where);
			waits = port->owner && !port->next &&
				(!ocsd_job_living(port->owner) || ocsd_job_prepared(port->owner));
			if (port->owner && !waits)
				return 2;
			worst |= waits;
		}
	return worst;
}

void ocsd_ahead_choose(struct ocsd *d, struct ocsd_job *job)
{
	job->plan.set = set_occupied(d, job, 1) < set_occupied(d, job, 0);
}

void ocsd_ahead_recall(struct ocsd *d, struct ocsd_job *job)
{
	struct ocs_port second;

	if (!ocsd_ahead_has(job) || !job->nodes.count ||
	    !ocs_fabric_node(d->fabric, job->nodes.names[0]) ||
	    ocs_section_set_port(job->section, 1, server_of(d, job, 0), 0, &second))
		return;
	for (size_t i = 0; i < job->ports.count; i++)
		if (job->ports.list[i].sw == second.sw && job->ports.list[i].port == second.port)
			job->plan.set = 1;
}

int ocsd_ahead_circuits(struct ocsd *d, struct ocsd_job *job, struct ocs_error *err)
{
	for (size_t i = 0; i < job->nodes.count; i++)
		for (int k = 0; k < job->section->degree; k++) {
			struct ocs_port port;

			if (ocs_section_select_port(job->section, server_of(d, job, i), k, &port))
				return ocs_error_set(err, OCS_ERROR,
						     "interface %d of %s has no "
						     "1x2 switch",
						     k, job->nodes.names[i]);
			if (ocsd_job_circuit(d, job, port.sw, port.port,
					     port.port + 1 + job->plan.set, false, OCSD_PLANNED,
					     err))
				return -1;
		}
	return 0;
}

void ocsd_ahead_leave_line(struct ocsd *d, struct ocsd_job *job)
{
	for (size_t i = 0; i < job->ports.count; i++)
		if (port_of(d, job->ports.list[i])->next == job)
			port_of(d, job->ports.list[i])->next = NULL;
	job->ports.nwaiting = 0;
}

void ocsd_ahead_give_way(struct ocsd *d, const struct ocsd_job *job)
{
	for (size_t i = 0; ocsd_ahead_has(job) && i < job->ports.count; i++) {
		struct ocsd_port *port = port_of(d, job->ports.list[i]);
		struct ocsd_job *holders[] = { port->next, port->owner };

		for (int k = 0; k < 2; k++)
			if (holders[k] && holders[k] != job && ocsd_job_prepared(holders[k]) &&
			    !holders[k]->farewell.gone)
				ocsd_job_gone(d, holders[k], "another job got its nodes");
	}
}

void ocsd_ahead_start(struct ocsd *d, struct ocsd_job *job)
{
	struct ocs_error err;

	if (!job->plan.text && ocsd_direct_plan(d, job, &err)) {
		ocsd_job_fail(d, job, NULL, err.text);
		return;
	}
	ocsd_realise_begin(d, job, false);
}

static bool same_text(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) == 0 : a == b;
}

static bool same_job(const struct ocsd_job *prepared, const struct ocsd_job *job)
{
	if (prepared->section != job->section || prepared->nodes.count != job->nodes.count ||
	    !same_text(prepared->request.demand, job->request.demand))
		return false;
	for (size_t i = 0; i < job->nodes.count; i++)
		if (strcmp(prepared->nodes.names[i], job->nodes.names[i]) != 0)
			return false;
	return true;
}

static void swap_text(char **a, char **b)
{
	char *keep = *a;

	*a = *b;
	*b = keep;
}

struct ocsd_job *ocsd_ahead_adopt(struct ocsd *d, struct ocsd_job *job)
{
	struct ocsd_job *prepared = ocsd_job_find(d, job->job, 0);

	if (!prepared || !ocsd_job_living(prepared))
		return NULL;
	if (prepared->failure.error || !same_job(prepared, job)) {
		ocsd_job_gone(d, prepared,
			      prepared->failure.error ?
				      "a circuit of it failed" :
				      "the job got other nodes or another demand");
		return NULL;
	}
	ocsd_store_job_remove(d, prepared);
	prepared->epoch = job->epoch;
	prepared->uid = job->uid;
	prepared->adopt_running = job->adopt_running;
	swap_text(&prepared->request.user, &job->request.user);
	swap_text(&prepared->request.partition, &job->request.partition);
	swap_text(&prepared->request.shape, &job->request.shape);
	swap_text(&prepared->request.conn, &job->request.conn);
	ocsd_store_job_add(d, prepared);
	if (job->epoch > d->slurmctld.max_epoch)
		d->slurmctld.max_epoch = job->epoch;
	ocs_log(OCS_LOG_INFO, "job %u was prepared: %s", job->job,
		ocsd_job_running(prepared) ? "its circuits are verified" :
					     "its circuits are on their way");
	return prepared;
}
