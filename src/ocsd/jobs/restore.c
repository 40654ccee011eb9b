/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Reading the database at start. */

#include "src/ocsd/ports/drain.h"
#include "src/ocsd/jobs/node_presence.h"
#include "src/ocsd/jobs/job.h"
#include "src/ocsd/store/sql.h"
#include "src/ocsd/store/store.h"

#include "src/protocol/fields.h"
#include "src/protocol/names.h"
#include "src/util/hostlist.h"
#include "src/util/text.h"

#include <json-c/json.h>
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

static const char *text(sqlite3_stmt *statement, int column)
{
	return (const char *)sqlite3_column_text(statement, column);
}

static char *copy(sqlite3_stmt *statement, int column)
{
	const char *value = text(statement, column);

	return value ? ocs_strdup(value) : NULL;
}

static int revision(const char *plan)
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
	job->user = copy(row, 3);
	job->section_name = copy(row, 4);
	job->section = ocs_fabric_section_named(d->fabric, job->section_name);
	job->partition = copy(row, 5);
	count = ocs_hostlist_expand(text(row, 6), 1 << 20, &job->nodes, err);
	if (count < 0) {
		ocsd_job_free(job);
		return -1;
	}
	job->nnodes = (size_t)count;
	job->released = ocs_calloc(job->nnodes + 1, sizeof(*job->released));
	job->shape = copy(row, 7);
	job->conn = copy(row, 8);
	job->placement = copy(row, 9);
	job->demand = copy(row, 10);
	job->plan = copy(row, 11);
	job->revision = revision(job->plan);
	job->state = (enum ocsd_job_state)sqlite3_column_int(row, 12);
	job->ended = sqlite3_column_int(row, 13);
	job->gone = sqlite3_column_int(row, 14);
	job->rolled_back = sqlite3_column_int(row, 15);
	job->wanted = sqlite3_column_int(row, 16);
	job->announced = sqlite3_column_int(row, 17);
	job->failed_switch = copy(row, 18);
	job->error = copy(row, 19);
	job->next = d->jobs;
	d->jobs = job;
	return 0;
}

static int load_release(struct ocsd *d, sqlite3_stmt *row, struct ocs_error *err)
{
	struct ocsd_job *job = job_of(d, row);
	int node = job ? ocsd_job_node(job, text(row, 2)) : -1;

	(void)err;
	if (node >= 0 && !job->released[node]) {
		job->released[node] = true;
		job->nreleased++;
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
	port.sw = known_switch(d, text(row, 2), job);
	port.port = sqlite3_column_int(row, 3);
	if (port.sw >= 0 && port.port >= 1 && port.port <= 2 * d->fabric->switches[port.sw].size)
		ocsd_job_port(job, port);
	return 0;
}

static int load_circuit(struct ocsd *d, sqlite3_stmt *row, struct ocs_error *err)
{
	struct ocsd_job *job = job_of(d, row);
	int sw = job ? known_switch(d, text(row, 2), job) : -1;
	struct ocs_error local;

	(void)err;
	if (sw >= 0 && ocsd_job_circuit(d, job, sw, sqlite3_column_int(row, 3),
					sqlite3_column_int(row, 4), sqlite3_column_int(row, 5),
					(enum ocsd_circuit_state)sqlite3_column_int(row, 6), &local))
		ocs_log(OCS_LOG_ERROR, "a circuit of job %u does not fit ocs.yaml any more: %s",
			job->job, local.text);
	return 0;
}

static int load_drain(struct ocsd *d, sqlite3_stmt *row, struct ocs_error *err)
{
	(void)err;
	ocsd_drain_set(d, text(row, 0), text(row, 1), text(row, 2));
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
		ocsd_heard_load_asked(job, text(row, 2));
	return 0;
}

static int load_heard(struct ocsd *d, sqlite3_stmt *row, struct ocs_error *err)
{
	(void)err;
	ocsd_heard_load_node(d, text(row, 0));
	return 0;
}

static int load_meta(struct ocsd *d, sqlite3_stmt *row, struct ocs_error *err)
{
	const char *name = text(row, 0);

	(void)err;
	if (strcmp(name, "max_epoch") == 0)
		d->max_epoch = (uint64_t)sqlite3_column_int64(row, 1);
	else if (strcmp(name, "term") == 0)
		d->term = (uint64_t)sqlite3_column_int64(row, 1);
	else if (strcmp(name, "controller") == 0)
		d->controller.place = sqlite3_column_int(row, 1);
	else if (strcmp(name, "controller_boot") == 0)
		d->controller.boot = sqlite3_column_int64(row, 1);
	return 0;
}

int ocsd_store_load(struct ocsd *d, struct ocs_error *err)
{
	/* jobs before what belongs to them */
	static const struct {
		const char *sql;
		take_row take;
	} tables[] = {
		{ "SELECT name, value FROM meta", load_meta },
		{ "SELECT job, epoch, uid, user, section, partition, nodes, shape, conn, placement,"
		  " demand, plan, state, ended, gone, rolled_back, wanted, announced,"
		  " failed_switch, error FROM jobs ORDER BY job DESC, epoch DESC", load_job },
		{ "SELECT job, epoch, node FROM releases", load_release },
		{ "SELECT job, epoch, switch, port FROM ports", load_port },
		{ "SELECT job, epoch, switch, a, b, directed, state FROM circuits", load_circuit },
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
