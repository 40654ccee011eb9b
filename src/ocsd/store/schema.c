/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Opening the database: what is not certainly ours and whole is refused, and left as
 * it is. */

#include "src/ocsd/store/sql.h"
#include "src/ocsd/store/store.h"

#include "src/util/text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* The journal has no schema migrations yet: an unknown version is refused. */
#define SCHEMA_VERSION 1
#define TEXT_OF(number) #number
#define SCHEMA_PRAGMA(number) "PRAGMA user_version=" TEXT_OF(number) ";"

static const char schema[] =
	"CREATE TABLE meta(name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;"
	"INSERT INTO meta VALUES('max_epoch', 0), ('revision', 0), ('term', 0),"
	" ('controller', 0), ('controller_boot', 0);"
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
	" after TEXT, reply TEXT, revision INTEGER, txn TEXT);"
	"CREATE INDEX audit_history ON audit(switch, id) WHERE " OCSD_HISTORY_ROWS ";"
	"CREATE TABLE audit_marks(id INTEGER PRIMARY KEY, clock REAL NOT NULL);"
	"CREATE TABLE baselines(switch TEXT, ingress INTEGER, egress INTEGER,"
	" loss REAL NOT NULL, time REAL NOT NULL, PRIMARY KEY(switch, ingress, egress))"
	" WITHOUT ROWID;"
	"CREATE TABLE transactions(name TEXT PRIMARY KEY, asked TEXT NOT NULL,"
	" answer TEXT, time REAL NOT NULL) WITHOUT ROWID;"
	"CREATE TRIGGER audit_update BEFORE UPDATE ON audit BEGIN"
	" SELECT RAISE(ABORT, 'the audit log is append-only'); END;"
	"CREATE TRIGGER audit_delete BEFORE DELETE ON audit BEGIN"
	" SELECT RAISE(ABORT, 'the audit log is append-only'); END;" SCHEMA_PRAGMA(1);

/* What a database of this version may lack: ocsd noted later which nodes have asked
 * (tests/data/older/5855f60 is without), and has menus of topologies since. */
static const char additions[] =
	"CREATE TABLE IF NOT EXISTS met(job INTEGER, epoch INTEGER, PRIMARY KEY(job, epoch))"
	" WITHOUT ROWID;"
	"CREATE TABLE IF NOT EXISTS asked(job INTEGER, epoch INTEGER, node TEXT,"
	" PRIMARY KEY(job, epoch, node)) WITHOUT ROWID;"
	"CREATE TABLE IF NOT EXISTS menus(job INTEGER, epoch INTEGER, layout TEXT NOT NULL,"
	" phases TEXT NOT NULL, digest TEXT NOT NULL, key TEXT NOT NULL,"
	" PRIMARY KEY(job, epoch)) WITHOUT ROWID;"
	"CREATE TABLE IF NOT EXISTS region_runs(uid INTEGER, section TEXT, name TEXT, circuits TEXT NOT NULL,"
	" time REAL NOT NULL, PRIMARY KEY(uid, section, name)) WITHOUT ROWID;"
	"CREATE TABLE IF NOT EXISTS heard(name TEXT PRIMARY KEY, time REAL NOT NULL) WITHOUT ROWID;";

#define ADVICE                                                                             \
	"move it (and its -wal and -shm files) away, or restore a copy and remove "        \
	"ocsd.lock, and start again; circuits of running jobs are adopted when slurmctld " \
	"connects, other patches are left alone and reported"

static int damage_report(const struct ocsd_store *store, const char *what, struct ocs_error *err)
{
	return ocs_error_set(err, OCS_ERROR, "the database %s is damaged: " ADVICE " [%s]",
			     store->path, what);
}

/* Why SQLite refuses, and what to do about it. */
static int refusal_report(const struct ocsd_store *store, const char *doing, struct ocs_error *err)
{
	switch (sqlite3_errcode(store->db)) {
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
		return ocs_error_set(
			err, OCS_ERROR,
			"the database %s is locked by another process: end it ('fuser %s' "
			"names it), and start again",
			store->path, store->path);
	case SQLITE_FULL:
		return ocs_error_set(err, OCS_ERROR,
				     "the disk of the database %s is full: make "
				     "room, and start again",
				     store->path);
	case SQLITE_READONLY:
	case SQLITE_CANTOPEN:
	case SQLITE_PERM:
		return ocs_error_set(
			err, OCS_ERROR,
			"the database %s cannot be opened for writing "
			"(%s): it, its -wal and -shm files and their folder must belong to "
			"the account of ocsd",
			store->path, sqlite3_errmsg(store->db));
	case SQLITE_IOERR:
		return ocs_error_set(err, OCS_ERROR, "the database %s cannot be used (%s: %s)",
				     store->path, doing,
				     sqlite3_system_errno(store->db) ?
					     strerror(sqlite3_system_errno(store->db)) :
					     sqlite3_errmsg(store->db));
	default:
		return damage_report(store, sqlite3_errmsg(store->db), err);
	}
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

static int script_run(struct ocsd_store *store, const char *sql, struct ocs_error *err)
{
	return sqlite3_exec(store->db, sql, NULL, NULL, NULL) == SQLITE_OK ?
		       0 :
		       refusal_report(store, "write", err);
}

/* The one word that a pragma answers must be WANTED. */
static int pragma_check(struct ocsd_store *store, const char *sql, const char *wanted,
			struct ocs_error *err)
{
	sqlite3_stmt *statement = NULL;
	char *word = NULL;
	int rc = 0;

	if (sqlite3_prepare_v2(store->db, sql, -1, &statement, NULL) == SQLITE_OK &&
	    sqlite3_step(statement) == SQLITE_ROW)
		word = ocs_strdup((const char *)sqlite3_column_text(statement, 0));
	if (!word)
		rc = refusal_report(store, "read", err);
	else if (strcmp(word, wanted) != 0)
		rc = damage_report(store, word, err);
	sqlite3_finalize(statement);
	free(word);
	return rc;
}

/* The text of an object of the schema, "" if there is none; the caller frees it. */
static char *object_text(sqlite3 *db, const char *name)
{
	sqlite3_stmt *statement = NULL;
	char *sql = NULL;

	if (sqlite3_prepare_v2(db, "SELECT sql FROM sqlite_schema WHERE name=?", -1, &statement,
			       NULL) == SQLITE_OK &&
	    sqlite3_bind_text(statement, 1, name, -1, SQLITE_STATIC) == SQLITE_OK &&
	    sqlite3_step(statement) == SQLITE_ROW && sqlite3_column_text(statement, 0))
		sql = ocs_strdup((const char *)sqlite3_column_text(statement, 0));
	sqlite3_finalize(statement);
	return sql ? sql : ocs_strdup("");
}

/* Tables and triggers are what this ocsd makes, letter by letter. */
static int check_schema(struct ocsd_store *store, struct ocs_error *err)
{
	sqlite3_stmt *names = NULL;
	sqlite3 *model = NULL;
	int rc = 0;

	if (sqlite3_open(":memory:", &model) != SQLITE_OK ||
	    sqlite3_exec(model, schema, NULL, NULL, NULL) != SQLITE_OK ||
	    sqlite3_exec(model, additions, NULL, NULL, NULL) != SQLITE_OK ||
	    sqlite3_prepare_v2(model, "SELECT name, sql FROM sqlite_schema WHERE sql IS NOT NULL",
			       -1, &names, NULL) != SQLITE_OK)
		rc = ocs_error_set(err, OCS_ERROR, "SQLite does not work: %s",
				   sqlite3_errmsg(model));
	while (!rc && sqlite3_step(names) == SQLITE_ROW) {
		const char *name = (const char *)sqlite3_column_text(names, 0);
		char *sql = object_text(store->db, name);

		if (strcmp(sql, (const char *)sqlite3_column_text(names, 1)) != 0)
			rc = damage_report(store, name, err);
		free(sql);
	}
	sqlite3_finalize(names);
	sqlite3_close(model);
	return rc;
}

/* What no transaction of ocsd can have left behind. */
static int check_rows(struct ocsd_store *store, struct ocs_error *err)
{
	static const char *const wrong[] = {
		"SELECT count(*) FROM meta WHERE typeof(value)<>'integer'",
		"SELECT (SELECT count(*) FROM meta WHERE name='max_epoch')<>1",
		("SELECT count(*) FROM jobs WHERE state NOT BETWEEN 0 AND 4 OR ended NOT IN (0,1)"
		 " OR gone NOT IN (0,1) OR rolled_back NOT IN (0,1) OR wanted NOT IN (0,1)"
		 " OR announced NOT IN (0,1) OR job NOT BETWEEN 1 AND 4294967295 OR epoch<0"),
		"SELECT count(*) FROM releases LEFT JOIN jobs USING(job, epoch) WHERE uid IS NULL",
		"SELECT count(*) FROM ports LEFT JOIN jobs USING(job, epoch) WHERE uid IS NULL",
		("SELECT count(*) FROM circuits LEFT JOIN jobs USING(job, epoch) WHERE uid IS NULL"
		 " OR circuits.state NOT BETWEEN 0 AND 5 OR directed NOT IN (0,1)"),
		("SELECT count(*) FROM circuits c JOIN jobs USING(job, epoch) WHERE placement IS NOT NULL"
		 " AND (SELECT count(*) FROM ports p WHERE p.job=c.job AND p.epoch=c.epoch"
		 " AND p.switch=c.switch AND p.port IN (c.a, c.b))<>2 - (c.a=c.b)"),
		"SELECT count(*) FROM menus LEFT JOIN jobs USING(job, epoch) WHERE uid IS NULL",
		"SELECT count(*) FROM drains WHERE kind NOT IN ('cube','port','switch','xpu','node')",
	};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		if (query_int(store->db, wrong[i]) != 0)
			return damage_report(store, wrong[i], err);
	return 0;
}

/* A database that is older than what ocsd wrote last has lost its -wal file, or is an
 * old copy: drains and teardowns would be forgotten. */
static int check_note(struct ocsd_store *store, struct ocs_error *err)
{
	if (store->revision >= store->noted)
		return 0;
	return ocs_error_set(err, OCS_ERROR,
			     "the database %s is not what ocsd wrote last (revision %lld, it is at "
			     "%lld): put its -wal file back, or, to go on with it as it is, remove "
			     "ocsd.lock beside it, and start again",
			     store->path, (long long)store->noted, (long long)store->revision);
}

/* Adds what a database of this version may lack. */
static int schema_extend(struct ocsd_store *store, struct ocs_error *err)
{
	if (script_run(store, additions, err))
		return -1;
	store->revision = query_int(store->db, "SELECT value FROM meta WHERE name='revision'");
	store->stored = store->revision;
	ocsd_store_age_start(store,
			     query_int(store->db, "SELECT value FROM meta WHERE name='clock'"));
	return 0;
}

/* All in one transaction: of a database that is refused nothing is changed. */
static int database_check(struct ocsd_store *store, bool existed, struct ocs_error *err)
{
	int64_t version;
	bool empty;

	if (pragma_check(store, "PRAGMA quick_check(1)", "ok", err))
		return -1;
	version = query_int(store->db, "PRAGMA user_version");
	empty = version == 0 && query_int(store->db, "SELECT count(*) FROM sqlite_schema") == 0;
	if (!empty && version != SCHEMA_VERSION)
		return ocs_error_set(
			err, OCS_ERROR,
			"the database %s has version %lld and this ocsd reads version %d: "
			"start the ocsd that wrote it, or move the file away",
			store->path, (long long)version, SCHEMA_VERSION);
	/* One that was moved away starts anew. */
	if (!existed)
		store->noted = 0;
	if (!existed && ftruncate(store->lock, 0))
		return ocs_error_set(err, OCS_ERROR, "%s: ocsd.lock: %s", store->path,
				     strerror(errno));
	if ((empty && script_run(store, schema, err)) || schema_extend(store, err))
		return -1;
	if (check_schema(store, err) || check_rows(store, err) || check_note(store, err))
		return -1;
	/* Written anew: a disk that is full says so now. */
	return script_run(store, SCHEMA_PRAGMA(1), err);
}

/* Nobody else may have written it. */
static int check_owner(const char *path, mode_t forbidden, struct ocs_error *err)
{
	struct stat info;

	if (stat(path, &info))
		return errno == ENOENT ?
			       0 :
			       ocs_error_set(err, OCS_ERROR, "%s: %s", path, strerror(errno));
	if (info.st_uid != geteuid() && info.st_uid != 0)
		return ocs_error_set(err, OCS_ERROR,
				     "%s belongs to user %u, not to the account of "
				     "ocsd (%u): chown it if its content can be trusted",
				     path, (unsigned int)info.st_uid, (unsigned int)geteuid());
	if (info.st_mode & forbidden)
		return ocs_error_set(err, OCS_ERROR,
				     "%s may be written by others (mode %04o): chmod "
				     "it if its content can be trusted",
				     path, (unsigned int)info.st_mode & 07777);
	return 0;
}

/* One daemon a state folder.  The lock tells how far the last one had come. */
static int lock_folder(struct ocsd_store *store, const char *folder, struct ocs_error *err)
{
	char text[OCSD_NOTE_TEXT + 1] = "";
	char *path = ocs_asprintf("%s/ocsd.lock", folder);
	int rc = 0;

	store->lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (store->lock < 0)
		rc = ocs_error_set(err, OCS_ERROR, "%s: %s", path, strerror(errno));
	else if (flock(store->lock, LOCK_EX | LOCK_NB))
		rc = ocs_error_set(err, OCS_ERROR, "another ocsd is using %s (it holds %s)", folder,
				   path);
	else if (pread(store->lock, text, OCSD_NOTE_TEXT, 0) == OCSD_NOTE_TEXT)
		store->noted = strtoll(text, NULL, 10);
	free(path);
	return rc;
}

/* The files that are there; sets *EXISTED if the database is one of them. */
static int check_files(const struct ocsd_store *store, const char *folder, bool *existed,
		       struct ocs_error *err)
{
	char *wal = ocs_asprintf("%s-wal", store->path);
	struct stat info;
	int rc = 0;

	*existed = stat(store->path, &info) == 0;
	if (check_owner(folder, S_IWOTH, err) || check_owner(store->path, S_IWGRP | S_IWOTH, err) ||
	    check_owner(wal, S_IWGRP | S_IWOTH, err))
		rc = -1;
	else if (!*existed && access(wal, F_OK) == 0)
		rc = ocs_error_set(err, OCS_ERROR,
				   "%s is there without the database %s: put that back, "
				   "or move both away, and start again",
				   wal, store->path);
	else if (*existed && info.st_size == 0 && store->noted)
		rc = ocs_error_set(err, OCS_ERROR,
				   "the database %s is empty: restore a copy and remove "
				   "ocsd.lock, or move it away, and start again",
				   store->path);
	free(wal);
	return rc;
}

static int open_database(struct ocsd_store *store, int lock_wait_ms, struct ocs_error *err)
{
	if (sqlite3_open_v2(store->path, &store->db,
			    SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX,
			    NULL) != SQLITE_OK)
		return refusal_report(store, "open", err);
	sqlite3_busy_timeout(store->db, lock_wait_ms);
	/* Until it is judged nothing of it is moved. */
	sqlite3_db_config(store->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
	if (sqlite3_db_readonly(store->db, "main") == 1)
		return ocs_error_set(err, OCS_ERROR,
				     "the database %s may not be written by the account "
				     "of ocsd (%u): chown or chmod it",
				     store->path, (unsigned int)geteuid());
	if (pragma_check(store, "PRAGMA journal_mode=WAL", "wal", err))
		return -1;
	return script_run(store, "PRAGMA synchronous=FULL; PRAGMA trusted_schema=OFF;", err);
}

struct ocsd_store *ocsd_store_open(const char *folder, int lock_wait_ms, struct ocs_error *err)
{
	struct ocsd_store *store = ocs_calloc(1, sizeof(*store));
	bool existed;

	store->lock = -1;
	store->path = ocs_asprintf("%s/ocsd.db", folder);
	if (mkdir(folder, 0700) && errno != EEXIST) {
		ocs_error_set(err, OCS_ERROR, "the state folder %s cannot be made: %s", folder,
			      strerror(errno));
		goto fail;
	}
	if (lock_folder(store, folder, err) || check_files(store, folder, &existed, err) ||
	    open_database(store, lock_wait_ms, err))
		goto fail;
	if (script_run(store, "BEGIN IMMEDIATE", err))
		goto fail;
	store->open = true;
	if (database_check(store, existed, err))
		goto fail;
	ocsd_store_history_trim(store);
	ocsd_store_transaction_trim(store);
	if (store->lost || script_run(store, "COMMIT", err))
		goto fail;
	store->open = false;
	sqlite3_db_config(store->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0, NULL);
	return store;
fail:
	if (store->lost)
		ocs_error_set(err, OCS_ERROR, "%s", store->lost);
	if (store->open && store->db)
		sqlite3_exec(store->db, "ROLLBACK", NULL, NULL, NULL);
	store->open = false;
	ocsd_store_close(store);
	return NULL;
}
