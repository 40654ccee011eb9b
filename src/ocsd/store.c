/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/ocsd/store.h"

#include "src/util/hostlist.h"
#include "src/util/text.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* The journal has no schema migrations yet: an unknown version is refused. */
#define SCHEMA_VERSION 1
#define TEXT_OF(number) #number
#define SCHEMA_PRAGMA(number) "PRAGMA user_version=" TEXT_OF(number) ";"
#define HISTORY_DAYS 30
#define TRANSACTION_DAYS 7

static const char schema[] =
	"CREATE TABLE meta(name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;"
	"INSERT INTO meta VALUES('max_epoch', 0);"
	"CREATE TABLE jobs(job INTEGER, epoch INTEGER, uid INTEGER NOT NULL,"
	" user TEXT, section TEXT NOT NULL, partition TEXT, nodes TEXT NOT NULL,"
	" shape TEXT, conn TEXT, placement TEXT, demand TEXT, plan TEXT,"
	" state INTEGER NOT NULL, ended INTEGER NOT NULL, gone INTEGER NOT NULL,"
	" rolled_back INTEGER NOT NULL, wanted INTEGER NOT NULL,"
	" announced INTEGER NOT NULL, failed_switch TEXT, error TEXT,"
	" created REAL NOT NULL, PRIMARY KEY(job, epoch)) WITHOUT ROWID;"
	"CREATE TABLE releases(job INTEGER, epoch INTEGER, node TEXT,"
	" PRIMARY KEY(job, epoch, node)) WITHOUT ROWID;"
	"CREATE TABLE ports(job INTEGER, epoch INTEGER, switch TEXT, port INTEGER,"
	" PRIMARY KEY(job, epoch, switch, port)) WITHOUT ROWID;"
	"CREATE TABLE circuits(job INTEGER, epoch INTEGER, switch TEXT, a INTEGER,"
	" b INTEGER, directed INTEGER NOT NULL, state INTEGER NOT NULL,"
	" PRIMARY KEY(job, epoch, switch, a, b)) WITHOUT ROWID;"
	"CREATE TABLE drains(kind TEXT, name TEXT, reason TEXT NOT NULL,"
	" who INTEGER NOT NULL, time REAL NOT NULL, PRIMARY KEY(kind, name)) WITHOUT ROWID;"
	"CREATE TABLE history(job INTEGER PRIMARY KEY, epoch INTEGER NOT NULL,"
	" time REAL NOT NULL);"
	"CREATE TABLE audit(id INTEGER PRIMARY KEY, time REAL NOT NULL, who INTEGER,"
	" job INTEGER, epoch INTEGER, switch TEXT, what TEXT NOT NULL, before TEXT,"
	" after TEXT, reply TEXT);"
	"CREATE TRIGGER audit_update BEFORE UPDATE ON audit BEGIN"
	" SELECT RAISE(ABORT, 'the audit log is append-only'); END;"
	"CREATE TRIGGER audit_delete BEFORE DELETE ON audit BEGIN"
	" SELECT RAISE(ABORT, 'the audit log is append-only'); END;"
	SCHEMA_PRAGMA(1);

/* What a database of this version may lack. */
static const char additions[] =
	"CREATE TABLE IF NOT EXISTS baselines(switch TEXT, ingress INTEGER, egress INTEGER,"
	" loss REAL NOT NULL, time REAL NOT NULL, PRIMARY KEY(switch, ingress, egress))"
	" WITHOUT ROWID;"
	"CREATE TABLE IF NOT EXISTS transactions(name TEXT PRIMARY KEY, asked TEXT NOT NULL,"
	" answer TEXT, time REAL NOT NULL) WITHOUT ROWID;"
	"INSERT OR IGNORE INTO meta VALUES('revision', 0);"
	"CREATE INDEX IF NOT EXISTS audit_history ON audit(switch, id) WHERE " OCSD_HISTORY_ROWS ";";
static const char audit_additions[] =
	"ALTER TABLE audit ADD COLUMN revision INTEGER;"
	"ALTER TABLE audit ADD COLUMN txn TEXT;";

static const char *const statements[OCSD_SQL_COUNT] = {
	[OCSD_SQL_JOB_ADD] =
		"INSERT INTO jobs VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
	[OCSD_SQL_JOB_UPDATE] =
		"UPDATE jobs SET plan=?, state=?, ended=?, gone=?, rolled_back=?, wanted=?,"
		" announced=?, failed_switch=?, error=? WHERE job=? AND epoch=?",
	[OCSD_SQL_JOB_REMOVE] = "DELETE FROM jobs WHERE job=? AND epoch=?",
	[OCSD_SQL_PORTS_REMOVE] = "DELETE FROM ports WHERE job=? AND epoch=?",
	[OCSD_SQL_CIRCUITS_REMOVE] = "DELETE FROM circuits WHERE job=? AND epoch=?",
	[OCSD_SQL_RELEASES_REMOVE] = "DELETE FROM releases WHERE job=? AND epoch=?",
	[OCSD_SQL_HISTORY] =
		"INSERT INTO history VALUES(?1,?2,?3) ON CONFLICT(job) DO UPDATE"
		" SET epoch=max(epoch, ?2), time=?3",
	[OCSD_SQL_HISTORY_TRIM] = "DELETE FROM history WHERE time<?",
	[OCSD_SQL_PORT_ADD] = "INSERT INTO ports VALUES(?,?,?,?)",
	[OCSD_SQL_CIRCUIT_ADD] = "INSERT INTO circuits VALUES(?,?,?,?,?,?,?)",
	[OCSD_SQL_CIRCUIT] =
		"UPDATE circuits SET state=? WHERE job=? AND epoch=? AND switch=? AND a=?"
		" AND b=?",
	[OCSD_SQL_CIRCUITS] =
		"UPDATE circuits SET state=? WHERE job=? AND epoch=? AND state=?",
	[OCSD_SQL_CIRCUITS_SWITCH] =
		"UPDATE circuits SET state=? WHERE job=? AND epoch=? AND state=?"
		" AND switch=?",
	[OCSD_SQL_RELEASE] = "INSERT OR IGNORE INTO releases VALUES(?,?,?)",
	[OCSD_SQL_DRAIN] = "INSERT OR REPLACE INTO drains VALUES(?,?,?,?,?)",
	[OCSD_SQL_RESUME] = "DELETE FROM drains WHERE kind=? AND name=?",
	[OCSD_SQL_MAX_EPOCH] = "UPDATE meta SET value=? WHERE name='max_epoch'",
	[OCSD_SQL_AUDIT] =
		"INSERT INTO audit(time, who, job, epoch, switch, what, before, after, reply,"
		" revision, txn) VALUES(?,?,?,?,?,?,?,?,?,?,?)",
	[OCSD_SQL_BASELINE] =
		"SELECT loss FROM baselines WHERE switch=? AND ingress=? AND egress=?",
	[OCSD_SQL_BASELINE_ADD] = "INSERT OR IGNORE INTO baselines VALUES(?,?,?,?,?)",
	[OCSD_SQL_LAST_EPOCH] = "SELECT epoch FROM history WHERE job=?",
	[OCSD_SQL_REVISION] = "UPDATE meta SET value=? WHERE name='revision'",
	[OCSD_SQL_TRANSACTION] = "SELECT asked, answer FROM transactions WHERE name=?",
	[OCSD_SQL_TRANSACTION_ADD] = "INSERT INTO transactions VALUES(?,?,NULL,?)",
	[OCSD_SQL_TRANSACTION_ANSWER] = "UPDATE transactions SET answer=? WHERE name=?",
	[OCSD_SQL_TRANSACTION_TRIM] = "DELETE FROM transactions WHERE time<?",
};

/* Whether a statement changes what the revision counts. */
static bool counts(enum ocsd_sql which)
{
	switch (which) {
	case OCSD_SQL_JOB_ADD:
	case OCSD_SQL_JOB_UPDATE:
	case OCSD_SQL_JOB_REMOVE:
	case OCSD_SQL_CIRCUIT_ADD:
	case OCSD_SQL_CIRCUIT:
	case OCSD_SQL_CIRCUITS:
	case OCSD_SQL_CIRCUITS_SWITCH:
	case OCSD_SQL_RELEASE:
	case OCSD_SQL_DRAIN:
	case OCSD_SQL_RESUME:
		return true;
	default:
		return false;
	}
}

double ocsd_wall_clock(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void stop_daemon(struct ocsd_store *store, const char *doing)
{
	ocs_log(OCS_LOG_ERROR,
		"the database %s cannot be written (%s: %s); stopping, circuits stay as they are",
		store->path, doing, sqlite3_errmsg(store->db));
	_exit(1);
}

static void begin(struct ocsd_store *store)
{
	if (store->open)
		return;
	if (sqlite3_exec(store->db, "BEGIN IMMEDIATE", NULL, NULL, NULL) != SQLITE_OK)
		stop_daemon(store, "begin");
	store->open = true;
}

void ocsd_store_commit(struct ocsd_store *store)
{
	if (!store->open)
		return;
	if (store->revision != store->stored)
		ocsd_store_run(store, OCSD_SQL_REVISION, "i", store->revision);
	store->stored = store->revision;
	if (sqlite3_exec(store->db, "COMMIT", NULL, NULL, NULL) != SQLITE_OK)
		stop_daemon(store, "commit");
	store->open = false;
}

sqlite3_stmt *ocsd_store_statement(struct ocsd_store *store, enum ocsd_sql which)
{
	sqlite3_stmt **slot = &store->prepared[which];

	if (!*slot && sqlite3_prepare_v3(store->db, statements[which], -1,
					 SQLITE_PREPARE_PERSISTENT, slot, NULL) != SQLITE_OK)
		stop_daemon(store, statements[which]);
	return *slot;
}

void ocsd_store_run(struct ocsd_store *store, enum ocsd_sql which,
		    const char *types, ...)
{
	sqlite3_stmt *statement;
	va_list args;
	int column = 0;

	begin(store);
	statement = ocsd_store_statement(store, which);
	va_start(args, types);
	for (; *types; types++) {
		const char *text;

		column++;
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
				sqlite3_bind_text(statement, column, text, -1,
						  SQLITE_TRANSIENT);
			else
				sqlite3_bind_null(statement, column);
		}
	}
	va_end(args);
	if (sqlite3_step(statement) != SQLITE_DONE)
		stop_daemon(store, statements[which]);
	sqlite3_reset(statement);
	if (counts(which) && sqlite3_changes(store->db) > 0)
		store->revision++;
}

/* One integer that SQL yields, or -1. */
static int64_t query_int(sqlite3 *db, const char *sql)
{
	sqlite3_stmt *statement = NULL;
	int64_t value = -1;

	if (sqlite3_prepare_v2(db, sql, -1, &statement, NULL) == SQLITE_OK &&
	    sqlite3_step(statement) == SQLITE_ROW)
		value = sqlite3_column_int64(statement, 0);
	sqlite3_finalize(statement);
	return value;
}

static int check(struct ocsd_store *store, struct ocs_error *err)
{
	sqlite3_stmt *statement = NULL;
	bool sound = false;
	int64_t version;

	if (sqlite3_prepare_v2(store->db, "PRAGMA quick_check(1)", -1, &statement,
			       NULL) == SQLITE_OK &&
	    sqlite3_step(statement) == SQLITE_ROW) {
		const char *text = (const char *)sqlite3_column_text(statement, 0);

		sound = text && strcmp(text, "ok") == 0;
	}
	sqlite3_finalize(statement);
	if (!sound)
		return ocs_error_set(err, OCS_ERROR,
				     "the database %s is damaged: move it (and its -wal and -shm files) away, "
				     "or restore a copy, and start again; circuits of running jobs are adopted "
				     "when slurmctld connects, other patches are left alone and reported",
				     store->path);
	version = query_int(store->db, "PRAGMA user_version");
	if (version == 0 &&
	    query_int(store->db, "SELECT count(*) FROM sqlite_schema") == 0) {
		begin(store);
		if (sqlite3_exec(store->db, schema, NULL, NULL, NULL) != SQLITE_OK)
			return ocs_error_set(err, OCS_ERROR, "creating the database %s failed: %s",
					     store->path, sqlite3_errmsg(store->db));
		ocsd_store_commit(store);
		return 0;
	}
	if (version != SCHEMA_VERSION)
		return ocs_error_set(err, OCS_ERROR,
				     "the database %s has version %lld and this ocsd reads version %d: "
				     "start the ocsd that wrote it, or move the file away",
				     store->path, (long long)version, SCHEMA_VERSION);
	return 0;
}

/* Adds what a database of this version may lack, all or nothing. */
static int extend(struct ocsd_store *store, struct ocs_error *err)
{
	bool old = query_int(store->db, "SELECT count(*) FROM pragma_table_info('audit')"
			     " WHERE name='revision'") == 0;

	begin(store);
	if (sqlite3_exec(store->db, additions, NULL, NULL, NULL) != SQLITE_OK ||
	    (old && sqlite3_exec(store->db, audit_additions, NULL, NULL, NULL) != SQLITE_OK)) {
		ocs_error_set(err, OCS_ERROR, "the database %s cannot be extended: %s",
			      store->path, sqlite3_errmsg(store->db));
		sqlite3_exec(store->db, "ROLLBACK", NULL, NULL, NULL);
		store->open = false;
		return -1;
	}
	store->revision = query_int(store->db, "SELECT value FROM meta WHERE name='revision'");
	store->stored = store->revision;
	ocsd_store_commit(store);
	return 0;
}

/* One daemon a state folder. */
static int lock_folder(struct ocsd_store *store, const char *folder,
		       struct ocs_error *err)
{
	char *path = ocs_asprintf("%s/ocsd.lock", folder);
	int rc = 0;

	store->lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (store->lock < 0)
		rc = ocs_error_set(err, OCS_ERROR, "%s: %s", path, strerror(errno));
	else if (flock(store->lock, LOCK_EX | LOCK_NB))
		rc = ocs_error_set(err, OCS_ERROR,
				   "another ocsd is using %s (it holds %s)", folder, path);
	free(path);
	return rc;
}

struct ocsd_store *ocsd_store_open(const char *folder, struct ocs_error *err)
{
	struct ocsd_store *store = ocs_calloc(1, sizeof(*store));

	store->lock = -1;
	store->path = ocs_asprintf("%s/ocsd.db", folder);
	if (mkdir(folder, 0700) && errno != EEXIST) {
		ocs_error_set(err, OCS_ERROR, "the state folder %s cannot be made: %s",
			      folder, strerror(errno));
		goto fail;
	}
	if (lock_folder(store, folder, err))
		goto fail;
	if (sqlite3_open_v2(store->path, &store->db, SQLITE_OPEN_READWRITE |
			    SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, NULL) != SQLITE_OK) {
		ocs_error_set(err, OCS_ERROR, "the database %s cannot be opened: %s",
			      store->path, sqlite3_errmsg(store->db));
		goto fail;
	}
	sqlite3_busy_timeout(store->db, 5000);
	if (sqlite3_exec(store->db, "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;"
			 "PRAGMA trusted_schema=OFF;", NULL, NULL, NULL) != SQLITE_OK)
		ocs_log(OCS_LOG_DEBUG, "%s: %s", store->path, sqlite3_errmsg(store->db));
	if (check(store, err))
		goto fail;
	if (extend(store, err))
		goto fail;
	ocsd_store_run(store, OCSD_SQL_HISTORY_TRIM, "d",
		       ocsd_wall_clock() - HISTORY_DAYS * 86400.0);
	ocsd_store_transaction_trim(store);
	ocsd_store_commit(store);
	return store;
fail:
	ocsd_store_close(store);
	return NULL;
}

void ocsd_store_script(struct ocsd_store *store, const char *sql)
{
	begin(store);
	if (sqlite3_exec(store->db, sql, NULL, NULL, NULL) != SQLITE_OK)
		stop_daemon(store, "script");
}

void ocsd_store_close(struct ocsd_store *store)
{
	if (!store)
		return;
	if (store->open && store->db)
		ocsd_store_commit(store);
	for (int i = 0; i < OCSD_SQL_COUNT; i++)
		sqlite3_finalize(store->prepared[i]);
	sqlite3_close(store->db);
	if (store->lock >= 0)
		close(store->lock);
	free(store->path);
	free(store);
}

static const char *switch_name(struct ocsd *d, int sw)
{
	return d->fabric->switches[sw].name;
}

void ocsd_store_job_add(struct ocsd *d, const struct ocsd_job *job)
{
	char *nodes = ocs_hostlist_compress(job->nodes, job->nnodes);

	ocsd_store_run(d->store, OCSD_SQL_JOB_ADD, "iiisssssssssiiiiiissd",
		       (int64_t)job->job, (int64_t)job->epoch, (int64_t)job->uid,
		       job->user, job->section_name, job->partition, nodes, job->shape,
		       job->conn, job->placement, job->demand, job->plan,
		       (int64_t)job->state, (int64_t)job->ended, (int64_t)job->gone,
		       (int64_t)job->rolled_back, (int64_t)job->wanted,
		       (int64_t)job->announced, job->failed_switch, job->error,
		       ocsd_wall_clock());
	free(nodes);
	for (size_t i = 0; i < job->nports; i++)
		ocsd_store_run(d->store, OCSD_SQL_PORT_ADD, "iisi", (int64_t)job->job,
			       (int64_t)job->epoch, switch_name(d, job->ports[i].sw),
			       (int64_t)job->ports[i].port);
	for (size_t i = 0; i < job->ncircuits; i++)
		ocsd_store_circuit_add(d, job->circuits[i]);
}

void ocsd_store_job_update(struct ocsd *d, const struct ocsd_job *job)
{
	ocsd_store_run(d->store, OCSD_SQL_JOB_UPDATE, "siiiiiissii", job->plan,
		       (int64_t)job->state, (int64_t)job->ended, (int64_t)job->gone,
		       (int64_t)job->rolled_back, (int64_t)job->wanted,
		       (int64_t)job->announced, job->failed_switch, job->error,
		       (int64_t)job->job, (int64_t)job->epoch);
}

void ocsd_store_job_remove(struct ocsd *d, const struct ocsd_job *job)
{
	static const enum ocsd_sql tables[] = {
		OCSD_SQL_RELEASES_REMOVE, OCSD_SQL_CIRCUITS_REMOVE,
		OCSD_SQL_PORTS_REMOVE, OCSD_SQL_JOB_REMOVE,
	};

	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
		ocsd_store_run(d->store, tables[i], "ii", (int64_t)job->job,
			       (int64_t)job->epoch);
	ocsd_store_run(d->store, OCSD_SQL_HISTORY, "iid", (int64_t)job->job,
		       (int64_t)job->epoch, ocsd_wall_clock());
}

void ocsd_store_circuit_add(struct ocsd *d, const struct ocsd_circuit *circuit)
{
	ocsd_store_run(d->store, OCSD_SQL_CIRCUIT_ADD, "iisiiii",
		       (int64_t)circuit->job->job, (int64_t)circuit->job->epoch,
		       switch_name(d, circuit->sw), (int64_t)circuit->a,
		       (int64_t)circuit->b, (int64_t)circuit->directed,
		       (int64_t)circuit->state);
}

void ocsd_store_circuit(struct ocsd *d, const struct ocsd_circuit *circuit)
{
	ocsd_store_run(d->store, OCSD_SQL_CIRCUIT, "iiisii", (int64_t)circuit->state,
		       (int64_t)circuit->job->job, (int64_t)circuit->job->epoch,
		       switch_name(d, circuit->sw), (int64_t)circuit->a,
		       (int64_t)circuit->b);
}

void ocsd_store_circuits(struct ocsd *d, const struct ocsd_job *job,
			 const struct ocsd_switch *sw, enum ocsd_circuit_state from,
			 enum ocsd_circuit_state to)
{
	if (sw)
		ocsd_store_run(d->store, OCSD_SQL_CIRCUITS_SWITCH, "iiiis", (int64_t)to,
			       (int64_t)job->job, (int64_t)job->epoch, (int64_t)from,
			       sw->description->name);
	else
		ocsd_store_run(d->store, OCSD_SQL_CIRCUITS, "iiii", (int64_t)to,
			       (int64_t)job->job, (int64_t)job->epoch, (int64_t)from);
}

void ocsd_store_release(struct ocsd *d, const struct ocsd_job *job, const char *node)
{
	ocsd_store_run(d->store, OCSD_SQL_RELEASE, "iis", (int64_t)job->job,
		       (int64_t)job->epoch, node);
}

void ocsd_store_drain(struct ocsd *d, const char *kind, const char *name,
		      const char *reason, uid_t who)
{
	if (reason)
		ocsd_store_run(d->store, OCSD_SQL_DRAIN, "sssid", kind, name, reason,
			       (int64_t)who, ocsd_wall_clock());
	else
		ocsd_store_run(d->store, OCSD_SQL_RESUME, "ss", kind, name);
}

void ocsd_store_max_epoch(struct ocsd *d)
{
	ocsd_store_run(d->store, OCSD_SQL_MAX_EPOCH, "i", (int64_t)d->max_epoch);
}

uint64_t ocsd_store_last_epoch(struct ocsd *d, uint32_t job)
{
	sqlite3_stmt *statement = ocsd_store_statement(d->store, OCSD_SQL_LAST_EPOCH);
	uint64_t epoch = 0;

	sqlite3_bind_int64(statement, 1, job);
	if (sqlite3_step(statement) == SQLITE_ROW)
		epoch = (uint64_t)sqlite3_column_int64(statement, 0);
	sqlite3_reset(statement);
	return epoch;
}

double ocsd_store_baseline(struct ocsd *d, const struct ocsd_switch *sw, int in, int out)
{
	sqlite3_stmt *statement = ocsd_store_statement(d->store, OCSD_SQL_BASELINE);
	double loss = NAN;

	sqlite3_bind_text(statement, 1, sw->description->name, -1, SQLITE_STATIC);
	sqlite3_bind_int(statement, 2, in);
	sqlite3_bind_int(statement, 3, out);
	if (sqlite3_step(statement) == SQLITE_ROW)
		loss = sqlite3_column_double(statement, 0);
	sqlite3_reset(statement);
	return loss;
}

void ocsd_store_baseline_add(struct ocsd *d, const struct ocsd_switch *sw, int in, int out,
			     double loss)
{
	ocsd_store_run(d->store, OCSD_SQL_BASELINE_ADD, "siidd", sw->description->name,
		       (int64_t)in, (int64_t)out, loss, ocsd_wall_clock());
}

void ocsd_audit(struct ocsd *d, const struct ocsd_audit *row)
{
	char who[32];

	/* The column makes a number of it; NULL is the daemon itself. */
	if (row->who)
		snprintf(who, sizeof(who), "%u", (unsigned int)ocsd_client_uid(row->who));
	ocsd_store_run(d->store, OCSD_SQL_AUDIT, "dsiisssssis", ocsd_wall_clock(),
		       row->who ? who : NULL, row->job ? (int64_t)row->job->job : 0,
		       row->job ? (int64_t)row->job->epoch : 0,
		       row->sw ? row->sw->description->name : NULL, row->what, row->before,
		       row->after, row->reply, d->store->revision,
		       row->transaction ? row->transaction : ocsd_transaction_name(d));
}

int64_t ocsd_store_revision(const struct ocsd *d)
{
	return d->store->revision;
}

bool ocsd_store_transaction_find(struct ocsd *d, const char *name, char **asked, char **answer)
{
	sqlite3_stmt *statement = ocsd_store_statement(d->store, OCSD_SQL_TRANSACTION);
	bool found;

	sqlite3_bind_text(statement, 1, name, -1, SQLITE_TRANSIENT);
	found = sqlite3_step(statement) == SQLITE_ROW;
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
	ocsd_store_run(d->store, OCSD_SQL_TRANSACTION_ADD, "ssd", name, asked, ocsd_wall_clock());
}

void ocsd_store_transaction_answer(struct ocsd *d, const char *name, const char *answer)
{
	ocsd_store_run(d->store, OCSD_SQL_TRANSACTION_ANSWER, "ss", answer, name);
}

void ocsd_store_transaction_trim(struct ocsd_store *store)
{
	ocsd_store_run(store, OCSD_SQL_TRANSACTION_TRIM, "d",
		       ocsd_wall_clock() - TRANSACTION_DAYS * 86400.0);
}
