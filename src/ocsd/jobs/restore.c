/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Reading the database at start, and what follows from it. */

#include "src/ocsd/state/out_of_service.h"
#include "src/ocsd/jobs/node_presence.h"
#include "src/ocsd/jobs/allocation.h"
#include "src/ocsd/jobs/lifecycle.h"
#include "src/ocsd/jobs/lookahead.h"
#include "src/ocsd/jobs/menu.h"
#include "src/ocsd/jobs/replan.h"
#include "src/ocsd/jobs/restore.h"
#include "src/ocsd/store/sql.h"
#include "src/ocsd/store/store.h"

#include "src/place/place.h"
#include "src/protocol/fields.h"
#include "src/protocol/names.h"
#include "src/util/hostlist.h"
#include "src/util/text.h"

#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

/* Takes one row into D.  0, or -1 with ERR. */
typedef int (*take_row)(struct ocsd *d, sqlite3_stmt *row, struct ocs_error *err);

/* Hands every row that SQL yields to TAKE, until one is refused.  0, or -1 with ERR. */
static int each_row(struct ocsd *d, const char *sql, take_row take, struct ocs_error *err)
{
	sqlite3_stmt *row = NULL;
	int rc = sqlite3_prepare_v2(d->store->db, sql, -1, &row, NULL), taken = 0;

	while (rc == SQLITE_OK || rc == SQLITE_ROW) {
		rc = sqlite3_step(row);
		if (rc == SQLITE_ROW && (taken = take(d, row, err)))
			break;
	}
	sqlite3_finalize(row);
	if (taken)
		return -1;
	if (rc == SQLITE_DONE)
		return 0;
	return ocs_error_set(err, OCS_ERROR,
			     "the database %s cannot be read (%s): move it away or restore a copy",
			     d->store->path, sqlite3_errmsg(d->store->db));
}

static const char *column_text(sqlite3_stmt *statement, int column)
{
	return (const char *)sqlite3_column_text(statement, column);
}

static char *column_copy(sqlite3_stmt *statement, int column)
{
	const char *value = column_text(statement, column);

	return value ? ocs_strdup(value) : NULL;
}

static int plan_revision(const char *plan)
{
	struct json_object *json = plan ? json_tokener_parse(plan) : NULL;
	int number = json ? json_object_get_int(ocs_field(json, OCS_FIELD_REVISION)) : 0;

	json_object_put(json);
	/* A plan of an ocsd that did not number them. */
	return json && !number ? 1 : number;
}

/* The job that the first two columns name, or NULL. */
static struct ocsd_job *job_of(struct ocsd *d, sqlite3_stmt *row)
{
	return ocsd_job_find(d, (uint32_t)sqlite3_column_int64(row, 0),
			     (uint64_t)sqlite3_column_int64(row, 1));
}

static int load_job(struct ocsd *d, sqlite3_stmt *row, struct ocs_error *err)
{
	struct ocsd_job *job = ocs_calloc(1, sizeof(*job));
	int count;

	job->job = (uint32_t)sqlite3_column_int64(row, 0);
	job->epoch = (uint64_t)sqlite3_column_int64(row, 1);
	job->uid = (uid_t)sqlite3_column_int64(row, 2);
	job->request.user = column_copy(row, 3);
	job->request.section = column_copy(row, 4);
	job->section = ocs_fabric_section_named(d->fabric, job->request.section);
	job->request.partition = column_copy(row, 5);
	count = ocs_hostlist_expand(column_text(row, 6), 1 << 20, &job->nodes.names, err);
	if (count < 0) {
		ocsd_job_free(job);
		return -1;
	}
	job->nodes.count = (size_t)count;
	job->nodes.released = ocs_calloc(job->nodes.count + 1, sizeof(*job->nodes.released));
	job->request.shape = column_copy(row, 7);
	job->request.conn = column_copy(row, 8);
	job->request.placement = column_copy(row, 9);
	job->request.demand = column_copy(row, 10);
	job->plan.text = column_copy(row, 11);
	job->plan.revision = plan_revision(job->plan.text);
	job->farewell.gone = sqlite3_column_int(row, 14);
	job->adopt_running = sqlite3_column_int(row, 16);
	job->farewell.released = sqlite3_column_int(row, 17);
	job->failure.sw = column_copy(row, 18);
	job->failure.error = column_copy(row, 19);
	job->state = ocsd_job_state_restore(sqlite3_column_int(row, 12),
					    sqlite3_column_int(row, 13), job->farewell.gone,
					    sqlite3_column_int(row, 15), job->failure.error);
	job->next = d->jobs;
	d->jobs = job;
	return 0;
}

static int load_release(struct ocsd *d, sqlite3_stmt *row, struct ocs_error *err)
{
	struct ocsd_job *job = job_of(d, row);
	int node = job ? ocsd_job_node(job, column_text(row, 2)) : -1;

	(void)err;
	if (node >= 0 && !job->nodes.released[node]) {
		job->nodes.released[node] = true;
		job->nodes.nreleased++;
	}
	return 0;
}

/* A switch that ocs.yaml no longer describes cannot be talked to: what was on
 * it is only reported. */
static int known_switch(struct ocsd *d, const char *name, const struct ocsd_job *job)
{
	int sw = ocs_fabric_switch(d->fabric, name);

	if (sw < 0)
		ocs_log(OCS_LOG_ERROR,
			"switch %s of job %u is no longer described: its circuits there are not managed",
			name, job->job);
	return sw;
}

static int load_port(struct ocsd *d, sqlite3_stmt *row, struct ocs_error *err)
{
	struct ocsd_job *job = job_of(d, row);
	struct ocs_port port;

	(void)err;
	if (!job)
		return 0;
	port.sw = known_switch(d, column_text(row, 2), job);
	port.port = sqlite3_column_int(row, 3);
	if (port.sw >= 0 && port.port >= 1 && port.port <= 2 * d->fabric->switches[port.sw].size)
		ocsd_job_port(job, port);
	return 0;
}

static int load_circuit(struct ocsd *d, sqlite3_stmt *row, struct ocs_error *err)
{
	struct ocsd_job *job = job_of(d, row);
	int sw = job ? known_switch(d, column_text(row, 2), job) : -1;
	struct ocs_error local;

	(void)err;
	if (sw >= 0 &&
	    ocsd_job_circuit(d, job, sw, sqlite3_column_int(row, 3), sqlite3_column_int(row, 4),
			     sqlite3_column_int(row, 5),
			     (enum ocsd_circuit_state)sqlite3_column_int(row, 6), &local))
		ocs_log(OCS_LOG_ERROR, "a circuit of job %u does not fit ocs.yaml any more: %s",
			job->job, local.text);
	return 0;
}

static int load_menu(struct ocsd *d, sqlite3_stmt *row, struct ocs_error *err)
{
	struct ocsd_job *job = job_of(d, row);
	struct ocs_error why;

	(void)err;
	if (job && ocsd_menu_load(d, job, column_text(row, 2), column_text(row, 3),
				  column_text(row, 4), column_text(row, 5), &why))
		ocs_log(OCS_LOG_ERROR, "the menu of job %u cannot be used: %s", job->job, why.text);
	return 0;
}

static int load_drain(struct ocsd *d, sqlite3_stmt *row, struct ocs_error *err)
{
	(void)err;
	ocsd_drain_set(d, column_text(row, 0), column_text(row, 1), column_text(row, 2));
	return 0;
}

static int load_met(struct ocsd *d, sqlite3_stmt *row, struct ocs_error *err)
{
	struct ocsd_job *job = job_of(d, row);

	(void)err;
	if (job)
		ocsd_heard_load_job(job);
	return 0;
}

static int load_asked(struct ocsd *d, sqlite3_stmt *row, struct ocs_error *err)
{
	struct ocsd_job *job = job_of(d, row);

	(void)err;
	if (job)
		ocsd_heard_load_asked(job, column_text(row, 2));
	return 0;
}

static int load_heard(struct ocsd *d, sqlite3_stmt *row, struct ocs_error *err)
{
	(void)err;
	ocsd_heard_load_node(d, column_text(row, 0));
	return 0;
}

static int load_meta(struct ocsd *d, sqlite3_stmt *row, struct ocs_error *err)
{
	const char *name = column_text(row, 0);

	(void)err;
	if (strcmp(name, "max_epoch") == 0)
		d->slurmctld.max_epoch = (uint64_t)sqlite3_column_int64(row, 1);
	else if (strcmp(name, "term") == 0)
		d->slurmctld.term = (uint64_t)sqlite3_column_int64(row, 1);
	else if (strcmp(name, "controller") == 0)
		d->slurmctld.controller.place = sqlite3_column_int(row, 1);
	else if (strcmp(name, "controller_boot") == 0)
		d->slurmctld.controller.boot = sqlite3_column_int64(row, 1);
	return 0;
}

static int tables_load(struct ocsd *d, struct ocs_error *err)
{
	/* jobs before what belongs to them */
	static const struct {
		const char *sql;
		take_row take;
	} tables[] = {
		{ "SELECT name, value FROM meta", load_meta },
		{ "SELECT job, epoch, uid, user, section, partition, nodes, shape, conn, placement,"
		  " demand, plan, state, ended, gone, rolled_back, wanted, announced,"
		  " failed_switch, error FROM jobs ORDER BY job DESC, epoch DESC",
		  load_job },
		{ "SELECT job, epoch, node FROM releases", load_release },
		{ "SELECT job, epoch, switch, port FROM ports", load_port },
		{ "SELECT job, epoch, switch, a, b, directed, state FROM circuits", load_circuit },
		{ "SELECT job, epoch, layout, phases, digest, key FROM menus", load_menu },
		{ "SELECT kind, name, reason FROM drains", load_drain },
		{ "SELECT job, epoch FROM met", load_met },
		{ "SELECT name FROM heard", load_heard },
		{ "SELECT job, epoch, node FROM asked", load_asked },
	};

	for (size_t i = 0; i < sizeof(tables) / sizeof(*tables); i++)
		if (each_row(d, tables[i].sql, tables[i].take, err))
			return -1;
	/* They hold for this start alone. */
	ocsd_store_asked(d, NULL, NULL);
	return 0;
}

/* Pictures need to know the cubes of a job that an earlier ocsd committed. */
static void load_cubes(struct ocsd *d, struct ocsd_job *job)
{
	struct ocs_placement *placement;
	struct ocs_error err;

	if (!job->request.placement || !job->section || job->section->kind != OCS_TORUS)
		return;
	placement =
		ocs_placement_decode(ocsd_placer(d, job->section), job->request.placement, &err);
	if (!placement) {
		ocs_log(OCS_LOG_WARNING,
			"the placement of job %u does not fit ocs.yaml any more: %s", job->job,
			err.text);
		return;
	}
	job->ncubes = placement->ncubes;
	job->cubes = ocs_calloc((size_t)placement->ncubes + 1, sizeof(int));
	memcpy(job->cubes, placement->cubes, (size_t)placement->ncubes * sizeof(int));
	ocs_placement_destroy(placement);
}

/* Circuits that may exist are ours: a read-back must not call them foreign. */
static void adopt_circuits(struct ocsd *d, struct ocsd_job *job)
{
	for (size_t i = 0; i < job->circuits.count; i++) {
		struct ocsd_circuit *circuit = job->circuits.list[i];

		if (circuit->state == OCSD_PLANNED || circuit->state == OCSD_GONE)
			continue;
		/* A batch with it may have been on its way when ocsd ended. */
		circuit->outcome_unknown =
			circuit->state == OCSD_CONNECTING || circuit->state == OCSD_DELETING;
		if (circuit->outcome_unknown)
			d->switches[circuit->sw].poll.late_until_ns = INT64_MAX;
		for (int p = 0; p < circuit->npatches; p++) {
			struct ocsd_circuit **slot =
				&d->switches[circuit->sw].by_in[circuit->patches[p].in];

			/* what a 1x2 switch leaves goes first */
			if (!*slot || circuit->state == OCSD_DELETING)
				*slot = circuit;
		}
	}
}

/* What ocsd did not get round to before it ended. */
static void resume_repair(struct ocsd *d, struct ocsd_job *job)
{
	/* A running job has circuits to come or to go: ocsd ended within a repair. */
	ocsd_repair_resume(d, job);
	if (!ocsd_job_running(job) || !job->plan.text)
		return;
	for (size_t i = 0; i < job->circuits.count; i++)
		if (job->circuits.list[i]->state == OCSD_CIRCUIT_FAILED)
			ocsd_repair_want(d, job, "a circuit is lost", true);
	for (size_t i = 0; i < job->ports.count; i++)
		if (d->switches[job->ports.list[i].sw].ports[job->ports.list[i].port].failed)
			ocsd_repair_want(d, job, "a port has failed", false);
}

/* What a job that is over does not use it has given back: others may have it by now. */
static void drop_ports(struct ocsd_job *job)
{
	size_t kept = 0;

	for (size_t i = 0; i < job->ports.count; i++)
		if (ocsd_job_uses(job, job->ports.list[i]))
			job->ports.list[kept++] = job->ports.list[i];
	job->ports.count = kept;
}

int ocsd_jobs_load(struct ocsd *d, struct ocs_error *err)
{
	if (tables_load(d, err))
		return -1;
	for (struct ocsd_job *job = d->jobs; job; job = job->next) {
		ocsd_ahead_recall(d, job);
		/* With a menu its rows are those that it still holds. */
		if (ocsd_job_cut_due(job) && !job->menu)
			drop_ports(job);
	}
	for (int turn = 0; turn < 3; turn++)
		for (struct ocsd_job *job = d->jobs; job; job = job->next)
			if (turn == (!ocsd_job_living(job) ? 0 : ocsd_job_prepared(job) ? 2 : 1))
				ocsd_job_claim(d, job);
	for (struct ocsd_job *job = d->jobs; job; job = job->next) {
		load_cubes(d, job);
		adopt_circuits(d, job);
		resume_repair(d, job);
		if (job->epoch > d->slurmctld.max_epoch)
			d->slurmctld.max_epoch = job->epoch;
	}
	return 0;
}
