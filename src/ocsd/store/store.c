/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/ocsd/store/clock.h"
#include "src/ocsd/store/sql.h"
#include "src/ocsd/store/store.h"

#include "src/util/hostlist.h"
#include "src/util/text.h"

#include <errno.h>
#include <math.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TRANSACTION_DAYS 7
#define HISTORY_DAYS 30

static const char *const statements[OCSD_SQL_COUNT] = {
	[OCSD_SQL_JOB_ADD] = "INSERT INTO jobs VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
	[OCSD_SQL_JOB_UPDATE] =
		"UPDATE jobs SET plan=?1, state=CASE WHEN ?2<0 THEN state ELSE ?2 END, ended=?3, gone=?4,"
		" rolled_back=CASE WHEN ?5<0 THEN rolled_back ELSE ?5 END, wanted=?6,"
		" announced=?7, failed_switch=?8, error=?9 WHERE job=?10 AND epoch=?11",
	[OCSD_SQL_JOB_REMOVE] = "DELETE FROM jobs WHERE job=? AND epoch=?",
	[OCSD_SQL_PORTS_REMOVE] = "DELETE FROM ports WHERE job=? AND epoch=?",
	[OCSD_SQL_CIRCUITS_REMOVE] = "DELETE FROM circuits WHERE job=? AND epoch=?",
	[OCSD_SQL_RELEASES_REMOVE] = "DELETE FROM releases WHERE job=? AND epoch=?",
	[OCSD_SQL_MENU_ADD] = "INSERT INTO menus VALUES(?,?,?,?,?,?)",
	[OCSD_SQL_MENU_REMOVE] = "DELETE FROM menus WHERE job=? AND epoch=?",
	[OCSD_SQL_REGION_RUN] =
		"SELECT circuits FROM region_runs WHERE uid=? AND section=? AND name=?",
	[OCSD_SQL_REGION_RUN_SET] = "INSERT OR REPLACE INTO region_runs VALUES(?,?,?,?,?)",
	[OCSD_SQL_REGION_RUN_TRIM] = "DELETE FROM region_runs WHERE time<?",
	[OCSD_SQL_PORT_REMOVE] =
		"DELETE FROM ports WHERE job=? AND epoch=? AND switch=? AND port=?",
	[OCSD_SQL_HISTORY] = "INSERT INTO history VALUES(?1,?2,?3) ON CONFLICT(job) DO UPDATE"
			     " SET epoch=max(epoch, ?2), time=?3",
	[OCSD_SQL_HISTORY_TRIM] = "DELETE FROM history WHERE time<?",
	[OCSD_SQL_PORT_ADD] = "INSERT INTO ports VALUES(?,?,?,?)",
	[OCSD_SQL_CIRCUIT_ADD] = "INSERT INTO circuits VALUES(?,?,?,?,?,?,?)",
	[OCSD_SQL_CIRCUIT] =
		"UPDATE circuits SET state=? WHERE job=? AND epoch=? AND switch=? AND a=?"
		" AND b=?",
	[OCSD_SQL_CIRCUITS] = "UPDATE circuits SET state=? WHERE job=? AND epoch=? AND state=?",
	[OCSD_SQL_CIRCUITS_SWITCH] =
		"UPDATE circuits SET state=? WHERE job=? AND epoch=? AND state=?"
		" AND switch=?",
	[OCSD_SQL_CIRCUITS_SEEN] =
		"UPDATE circuits SET state=? WHERE job=? AND epoch=? AND state=?",
	[OCSD_SQL_CIRCUITS_DELETE] =
		"UPDATE circuits SET state=?1 WHERE job=?2 AND epoch=?3 AND state NOT IN (?1, ?4)",
	[OCSD_SQL_RELEASE] = "INSERT OR IGNORE INTO releases VALUES(?,?,?)",
	[OCSD_SQL_DRAIN] = "INSERT OR REPLACE INTO drains VALUES(?,?,?,?,?)",
	[OCSD_SQL_RESUME] = "DELETE FROM drains WHERE kind=? AND name=?",
	[OCSD_SQL_MAX_EPOCH] = "UPDATE meta SET value=? WHERE name='max_epoch'",
	[OCSD_SQL_TERM] = "UPDATE meta SET value=? WHERE name='term'",
	[OCSD_SQL_CONTROLLER] = "UPDATE meta SET value=? WHERE name='controller'",
	[OCSD_SQL_BOOT] = "UPDATE meta SET value=? WHERE name='controller_boot'",
	[OCSD_SQL_AUDIT] =
		"INSERT INTO audit(time, who, job, epoch, switch, what, before, after, reply,"
		" revision, txn) VALUES(?,?,?,?,?,?,?,?,?,?,?)",
	[OCSD_SQL_BASELINE] =
		"SELECT loss FROM baselines WHERE switch=? AND ingress=? AND egress=?",
	[OCSD_SQL_BASELINE_ADD] = "INSERT OR IGNORE INTO baselines VALUES(?,?,?,?,?)",
	[OCSD_SQL_LAST_EPOCH] = "SELECT epoch FROM history WHERE job=?",
	[OCSD_SQL_MAX_JOB] = "SELECT max(job) FROM (SELECT max(job) AS job FROM history"
			     " UNION ALL SELECT max(job) FROM jobs)",
	[OCSD_SQL_MET] = "INSERT OR IGNORE INTO met VALUES(?,?)",
	[OCSD_SQL_MET_REMOVE] = "DELETE FROM met WHERE job=? AND epoch=?",
	[OCSD_SQL_ASKED] = "INSERT OR IGNORE INTO asked VALUES(?,?,?)",
	[OCSD_SQL_ASKED_REMOVE] = "DELETE FROM asked",
	[OCSD_SQL_HEARD] = "INSERT OR REPLACE INTO heard VALUES(?,?)",
	[OCSD_SQL_CLOCK] = "INSERT OR REPLACE INTO meta VALUES('clock', ?)",
	[OCSD_SQL_REVISION] = "UPDATE meta SET value=? WHERE name='revision'",
	[OCSD_SQL_TRANSACTION] = "SELECT asked, answer FROM transactions WHERE name=?",
	[OCSD_SQL_TRANSACTION_ADD] = "INSERT INTO transactions VALUES(?,?,NULL,?)",
	[OCSD_SQL_TRANSACTION_ANSWER] = "UPDATE transactions SET answer=? WHERE name=?",
	[OCSD_SQL_TRANSACTION_TRIM] = "DELETE FROM transactions WHERE time<?",
};

/* Whether a statement changes what the revision counts. */
static bool statement_counts(enum ocsd_sql which)
{
	switch (which) {
	case OCSD_SQL_JOB_ADD:
	case OCSD_SQL_JOB_UPDATE:
	case OCSD_SQL_JOB_REMOVE:
	case OCSD_SQL_CIRCUIT_ADD:
	case OCSD_SQL_CIRCUIT:
	case OCSD_SQL_CIRCUITS:
	case OCSD_SQL_CIRCUITS_SWITCH:
	case OCSD_SQL_CIRCUITS_DELETE:
	case OCSD_SQL_RELEASE:
	case OCSD_SQL_DRAIN:
	case OCSD_SQL_RESUME:
		return true;
	default:
		return false;
	}
}

/* What hinders SQLite, as the end of a sentence. */
static const char *hindrance_text(sqlite3 *db, char *buffer, size_t size)
{
	int number = sqlite3_system_errno(db);

	switch (sqlite3_errcode(db)) {
	case SQLITE_FULL:
		return "its disk is full";
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
		return "another process holds it locked";
	case SQLITE_CORRUPT:
	case SQLITE_NOTADB:
		return "it is damaged";
	case SQLITE_READONLY:
		return "this account may not write it";
	case SQLITE_IOERR:
	case SQLITE_CANTOPEN:
		if (number) {
			snprintf(buffer, size, "%s", strerror(number));
			return buffer;
		}
		/* fall through */
	default:
		return sqlite3_errmsg(db);
	}
}

/* Nothing more is written or read: memory may be ahead of the database now, so it
 * has to be thrown away. */
static void store_lose(struct ocsd_store *store, const char *doing)
{
	char buffer[128];

	if (store->lost)
		return;
	store->lost =
		ocs_asprintf("the database %s cannot be used (%s); until it can, ocsd changes "
			     "nothing and circuits stay as they are",
			     store->path, hindrance_text(store->db, buffer, sizeof(buffer)));
	/* What may be damaged is left as it is. */
	sqlite3_db_config(store->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
	ocs_log(OCS_LOG_ERROR, "%s [%s: %s]", store->lost, doing, sqlite3_errmsg(store->db));
}

const char *ocsd_store_lost(const struct ocsd_store *store)
{
	return store->lost;
}

/* Opens a transaction, unless one is open. */
static void transaction_begin(struct ocsd_store *store)
{
	if (store->open || store->lost)
		return;
	if (sqlite3_exec(store->db, "BEGIN IMMEDIATE", NULL, NULL, NULL) != SQLITE_OK)
		store_lose(store, "begin");
	else
		store->open = true;
}

/* Beside the database stands how far it had come: an older one would go unnoticed. */
static void note_revision(struct ocsd_store *store)
{
	char text[OCSD_NOTE_TEXT + 1];

	if (store->stored == store->noted)
		return;
	snprintf(text, sizeof(text), "%019lld\n", (long long)store->stored);
	if (pwrite(store->lock, text, OCSD_NOTE_TEXT, 0) != OCSD_NOTE_TEXT)
		ocs_log(OCS_LOG_WARNING, "%s: ocsd.lock: %s", store->path, strerror(errno));
	store->noted = store->stored;
}

void ocsd_store_commit(struct ocsd_store *store)
{
	if (!store->open || store->lost)
		return;
	if (store->revision != store->stored)
		ocsd_store_run(store, OCSD_SQL_REVISION, "i", store->revision);
	store->stored = store->revision;
	if (!store->lost && sqlite3_exec(store->db, "COMMIT", NULL, NULL, NULL) != SQLITE_OK)
		store_lose(store, "commit");
	if (store->lost)
		return;
	store->open = false;
	note_revision(store);
}

/* NULL: the store is lost. */
static sqlite3_stmt *statement_of(struct ocsd_store *store, enum ocsd_sql which)
{
	sqlite3_stmt **slot = &store->prepared[which];

	if (store->lost)
		return NULL;
	if (!*slot && sqlite3_prepare_v3(store->db, statements[which], -1,
					 SQLITE_PREPARE_PERSISTENT, slot, NULL) != SQLITE_OK)
		store_lose(store, statements[which]);
	return store->lost ? NULL : *slot;
}

bool ocsd_store_row(struct ocsd_store *store, sqlite3_stmt *statement)
{
	int rc = sqlite3_step(statement);

	if (rc != SQLITE_ROW && rc != SQLITE_DONE)
		store_lose(store, "read");
	return rc == SQLITE_ROW;
}

static void columns_bind(sqlite3_stmt *statement, const char *types, va_list args)
{
	for (int column = 1; *types; types++, column++) {
		const char *text;

		switch (*types) {
		case 'i':
			sqlite3_bind_int64(statement, column, va_arg(args, int64_t));
			break;
		case 'd':
			sqlite3_bind_double(statement, column, va_arg(args, double));
			break;
		default:
			text = va_arg(args, const char *);
			if (text)
				sqlite3_bind_text(statement, column, text, -1, SQLITE_TRANSIENT);
			else
				sqlite3_bind_null(statement, column);
		}
	}
}

void ocsd_store_run(struct ocsd_store *store, enum ocsd_sql which, const char *types, ...)
{
	sqlite3_stmt *statement;
	va_list args;

	transaction_begin(store);
	statement = statement_of(store, which);
	if (!statement)
		return;
	va_start(args, types);
	columns_bind(statement, types, args);
	va_end(args);
	if (sqlite3_step(statement) != SQLITE_DONE)
		store_lose(store, statements[which]);
	sqlite3_reset(statement);
	if (!store->lost && statement_counts(which) && sqlite3_changes(store->db) > 0)
		store->revision++;
}

void ocsd_store_script(struct ocsd_store *store, const char *sql)
{
	transaction_begin(store);
	if (!store->lost && sqlite3_exec(store->db, sql, NULL, NULL, NULL) != SQLITE_OK)
		store_lose(store, "script");
}

void ocsd_store_close(struct ocsd_store *store)
{
	if (!store)
		return;
	ocsd_store_commit(store);
	for (int i = 0; i < OCSD_SQL_COUNT; i++)
		sqlite3_finalize(store->prepared[i]);
	sqlite3_close(store->db);
	if (store->lock >= 0)
		close(store->lock);
	free(store->lost);
	free(store->path);
	free(store);
}

static const char *switch_name(struct ocsd *d, int sw)
{
	return d->fabric->switches[sw].name;
}

/* A new job is living: its columns have no KEEP. */
void ocsd_store_job_add(struct ocsd *d, const struct ocsd_job *job)
{
	const struct ocsd_job_state_entry *state = ocsd_job_state_entry(job->state);
	char *nodes = ocs_hostlist_compress(job->nodes.names, job->nodes.count);

	ocsd_store_run(d->store, OCSD_SQL_JOB_ADD, "iiisssssssssiiiiiissd", (int64_t)job->job,
		       (int64_t)job->epoch, (int64_t)job->uid, job->request.user,
		       job->request.section, job->request.partition, nodes, job->request.shape,
		       job->request.conn, job->request.placement, job->request.demand,
		       job->plan.text, (int64_t)state->stored, (int64_t)state->over,
		       (int64_t)job->farewell.gone, (int64_t)state->rolled_back,
		       (int64_t)job->adopt_running, (int64_t)job->farewell.released,
		       job->failure.sw, job->failure.error, ocsd_wall_clock());
	free(nodes);
	for (size_t i = 0; i < job->ports.count; i++)
		ocsd_store_run(d->store, OCSD_SQL_PORT_ADD, "iisi", (int64_t)job->job,
			       (int64_t)job->epoch, switch_name(d, job->ports.list[i].sw),
			       (int64_t)job->ports.list[i].port);
	for (size_t i = 0; i < job->circuits.count; i++)
		if (!job->circuits.list[i]->rail)
			ocsd_store_circuit_add(d, job->circuits.list[i]);
}

void ocsd_store_menu_add(struct ocsd *d, const struct ocsd_job *job, const char *layout,
			 const char *phases, const char *digest, const char *key)
{
	ocsd_store_run(d->store, OCSD_SQL_MENU_ADD, "iissss", (int64_t)job->job,
		       (int64_t)job->epoch, layout, phases, digest, key);
}

void ocsd_store_port_remove(struct ocsd *d, const struct ocsd_job *job, struct ocs_port port)
{
	ocsd_store_run(d->store, OCSD_SQL_PORT_REMOVE, "iisi", (int64_t)job->job,
		       (int64_t)job->epoch, switch_name(d, port.sw), (int64_t)port.port);
}

void ocsd_store_job_update(struct ocsd *d, const struct ocsd_job *job)
{
	const struct ocsd_job_state_entry *state = ocsd_job_state_entry(job->state);

	ocsd_store_run(d->store, OCSD_SQL_JOB_UPDATE, "siiiiiissii", job->plan.text,
		       (int64_t)state->stored, (int64_t)state->over, (int64_t)job->farewell.gone,
		       (int64_t)state->rolled_back, (int64_t)job->adopt_running,
		       (int64_t)job->farewell.released, job->failure.sw, job->failure.error,
		       (int64_t)job->job, (int64_t)job->epoch);
}

void ocsd_store_job_remove(struct ocsd *d, const struct ocsd_job *job)
{
	static const enum ocsd_sql tables[] = {
		OCSD_SQL_RELEASES_REMOVE, OCSD_SQL_CIRCUITS_REMOVE, OCSD_SQL_PORTS_REMOVE,
		OCSD_SQL_MET_REMOVE,	  OCSD_SQL_MENU_REMOVE,	    OCSD_SQL_JOB_REMOVE,
	};

	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
		ocsd_store_run(d->store, tables[i], "ii", (int64_t)job->job, (int64_t)job->epoch);
	ocsd_store_run(d->store, OCSD_SQL_HISTORY, "iid", (int64_t)job->job, (int64_t)job->epoch,
		       ocsd_store_age(d->store));
}

void ocsd_store_circuit_add(struct ocsd *d, const struct ocsd_circuit *circuit)
{
	ocsd_store_run(d->store, OCSD_SQL_CIRCUIT_ADD, "iisiiii", (int64_t)circuit->job->job,
		       (int64_t)circuit->job->epoch, switch_name(d, circuit->sw),
		       (int64_t)circuit->a, (int64_t)circuit->b, (int64_t)circuit->directed,
		       (int64_t)circuit->state);
}

void ocsd_store_circuit(struct ocsd *d, const struct ocsd_circuit *circuit)
{
	if (circuit->rail)
		return;
	ocsd_store_run(d->store, OCSD_SQL_CIRCUIT, "iiisii", (int64_t)circuit->state,
		       (int64_t)circuit->job->job, (int64_t)circuit->job->epoch,
		       switch_name(d, circuit->sw), (int64_t)circuit->a, (int64_t)circuit->b);
}

void ocsd_store_circuits(struct ocsd *d, const struct ocsd_job *job, const struct ocsd_switch *sw,
			 enum ocsd_circuit_state from, enum ocsd_circuit_state to)
{
	if (sw)
		ocsd_store_run(d->store, OCSD_SQL_CIRCUITS_SWITCH, "iiiis", (int64_t)to,
			       (int64_t)job->job, (int64_t)job->epoch, (int64_t)from,
			       sw->description->name);
	else
		ocsd_store_run(d->store, OCSD_SQL_CIRCUITS, "iiii", (int64_t)to, (int64_t)job->job,
			       (int64_t)job->epoch, (int64_t)from);
}

void ocsd_store_circuits_seen(struct ocsd *d, const struct ocsd_job *job)
{
	ocsd_store_run(d->store, OCSD_SQL_CIRCUITS_SEEN, "iiii", (int64_t)OCSD_CONNECTED,
		       (int64_t)job->job, (int64_t)job->epoch, (int64_t)OCSD_CONNECTING);
}

void ocsd_store_circuits_delete(struct ocsd *d, const struct ocsd_job *job)
{
	ocsd_store_run(d->store, OCSD_SQL_CIRCUITS_DELETE, "iiii", (int64_t)OCSD_DELETING,
		       (int64_t)job->job, (int64_t)job->epoch, (int64_t)OCSD_GONE);
}

void ocsd_store_release(struct ocsd *d, const struct ocsd_job *job, const char *node)
{
	ocsd_store_run(d->store, OCSD_SQL_RELEASE, "iis", (int64_t)job->job, (int64_t)job->epoch,
		       node);
}

void ocsd_store_met(struct ocsd *d, const struct ocsd_job *job)
{
	ocsd_store_run(d->store, OCSD_SQL_MET, "ii", (int64_t)job->job, (int64_t)job->epoch);
}

void ocsd_store_asked(struct ocsd *d, const struct ocsd_job *job, const char *node)
{
	if (node)
		ocsd_store_run(d->store, OCSD_SQL_ASKED, "iis", (int64_t)job->job,
			       (int64_t)job->epoch, node);
	else
		ocsd_store_run(d->store, OCSD_SQL_ASKED_REMOVE, "");
}

void ocsd_store_heard(struct ocsd *d, const char *node)
{
	ocsd_store_run(d->store, OCSD_SQL_HEARD, "sd", node, ocsd_wall_clock());
}

void ocsd_store_drain(struct ocsd *d, const char *kind, const char *name, const char *reason,
		      uid_t who)
{
	if (reason)
		ocsd_store_run(d->store, OCSD_SQL_DRAIN, "sssid", kind, name, reason, (int64_t)who,
			       ocsd_wall_clock());
	else
		ocsd_store_run(d->store, OCSD_SQL_RESUME, "ss", kind, name);
}

void ocsd_store_max_epoch(struct ocsd *d)
{
	ocsd_store_run(d->store, OCSD_SQL_MAX_EPOCH, "i", (int64_t)d->slurmctld.max_epoch);
}

uint32_t ocsd_store_max_job(struct ocsd *d)
{
	sqlite3_stmt *statement = statement_of(d->store, OCSD_SQL_MAX_JOB);
	uint32_t job = 0;

	if (!statement)
		return 0;
	if (ocsd_store_row(d->store, statement))
		job = (uint32_t)sqlite3_column_int64(statement, 0);
	sqlite3_reset(statement);
	return job;
}

void ocsd_store_term(struct ocsd *d)
{
	ocsd_store_run(d->store, OCSD_SQL_TERM, "i", (int64_t)d->slurmctld.term);
	ocsd_store_run(d->store, OCSD_SQL_CONTROLLER, "i", (int64_t)d->slurmctld.controller.place);
	ocsd_store_run(d->store, OCSD_SQL_BOOT, "i", d->slurmctld.controller.boot);
}

uint64_t ocsd_store_last_epoch(struct ocsd *d, uint32_t job)
{
	sqlite3_stmt *statement = statement_of(d->store, OCSD_SQL_LAST_EPOCH);
	uint64_t epoch = 0;

	if (!statement)
		return 0;
	sqlite3_bind_int64(statement, 1, job);
	if (ocsd_store_row(d->store, statement))
		epoch = (uint64_t)sqlite3_column_int64(statement, 0);
	sqlite3_reset(statement);
	return epoch;
}

char *ocsd_store_region_run(struct ocsd *d, const struct ocsd_job *job, const char *name)
{
	sqlite3_stmt *statement = statement_of(d->store, OCSD_SQL_REGION_RUN);
	char *circuits = NULL;

	if (!statement)
		return NULL;
	sqlite3_bind_int64(statement, 1, (int64_t)job->uid);
	sqlite3_bind_text(statement, 2, job->section->name, -1, SQLITE_STATIC);
	sqlite3_bind_text(statement, 3, name, -1, SQLITE_STATIC);
	if (ocsd_store_row(d->store, statement))
		circuits = ocs_strdup((const char *)sqlite3_column_text(statement, 0));
	sqlite3_reset(statement);
	return circuits;
}

void ocsd_store_region_run_set(struct ocsd *d, const struct ocsd_job *job, const char *name,
			       const char *circuits)
{
	ocsd_store_run(d->store, OCSD_SQL_REGION_RUN_SET, "isssd", (int64_t)job->uid,
		       job->request.section, name, circuits, ocsd_store_age(d->store));
}

double ocsd_store_baseline(struct ocsd *d, const struct ocsd_switch *sw, int in, int out)
{
	sqlite3_stmt *statement = statement_of(d->store, OCSD_SQL_BASELINE);
	double loss = NAN;

	if (!statement)
		return NAN;
	sqlite3_bind_text(statement, 1, sw->description->name, -1, SQLITE_STATIC);
	sqlite3_bind_int(statement, 2, in);
	sqlite3_bind_int(statement, 3, out);
	if (ocsd_store_row(d->store, statement))
		loss = sqlite3_column_double(statement, 0);
	sqlite3_reset(statement);
	return loss;
}

void ocsd_store_baseline_add(struct ocsd *d, const struct ocsd_switch *sw, int in, int out,
			     double loss)
{
	ocsd_store_run(d->store, OCSD_SQL_BASELINE_ADD, "siidd", sw->description->name, (int64_t)in,
		       (int64_t)out, loss, ocsd_wall_clock());
}

int64_t ocsd_store_revision(const struct ocsd *d)
{
	return d->store->revision;
}

bool ocsd_store_transaction_find(struct ocsd *d, const char *name, char **asked, char **answer)
{
	sqlite3_stmt *statement = statement_of(d->store, OCSD_SQL_TRANSACTION);
	bool found;

	if (!statement)
		return false;
	sqlite3_bind_text(statement, 1, name, -1, SQLITE_TRANSIENT);
	found = ocsd_store_row(d->store, statement);
	if (found) {
		const char *text = (const char *)sqlite3_column_text(statement, 1);

		*asked = ocs_strdup((const char *)sqlite3_column_text(statement, 0));
		*answer = text ? ocs_strdup(text) : NULL;
	}
	sqlite3_reset(statement);
	return found;
}

void ocsd_store_transaction_add(struct ocsd *d, const char *name, const char *asked)
{
	ocsd_store_run(d->store, OCSD_SQL_TRANSACTION_ADD, "ssd", name, asked,
		       ocsd_store_age(d->store));
}

void ocsd_store_transaction_answer(struct ocsd *d, const char *name, const char *answer)
{
	ocsd_store_run(d->store, OCSD_SQL_TRANSACTION_ANSWER, "ss", answer, name);
}

void ocsd_store_history_trim(struct ocsd_store *store)
{
	ocsd_store_run(store, OCSD_SQL_HISTORY_TRIM, "d",
		       ocsd_store_age(store) - HISTORY_DAYS * 86400.0);
	ocsd_store_run(store, OCSD_SQL_REGION_RUN_TRIM, "d",
		       ocsd_store_age(store) - HISTORY_DAYS * 86400.0);
}

void ocsd_store_transaction_trim(struct ocsd_store *store)
{
	ocsd_store_run(store, OCSD_SQL_TRANSACTION_TRIM, "d",
		       ocsd_store_age(store) - TRANSACTION_DAYS * 86400.0);
}
