/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_OCSD_STORE_SQL_H
#define OCS_OCSD_STORE_SQL_H

/* Private to the files of this room and to jobs/restore.c: the only places that know SQLite. */

#include "src/ocsd/state/ocsd.h"

#include <sqlite3.h>

enum ocsd_sql {
	OCSD_SQL_JOB_ADD,
	OCSD_SQL_JOB_UPDATE,
	OCSD_SQL_JOB_REMOVE,
	OCSD_SQL_PORTS_REMOVE,
	OCSD_SQL_CIRCUITS_REMOVE,
	OCSD_SQL_RELEASES_REMOVE,
	OCSD_SQL_MENU_ADD,
	OCSD_SQL_MENU_REMOVE,
	OCSD_SQL_REGION_RUN,
	OCSD_SQL_REGION_RUN_SET,
	OCSD_SQL_REGION_RUN_TRIM,
	OCSD_SQL_PORT_REMOVE,
	OCSD_SQL_HISTORY,
	OCSD_SQL_HISTORY_TRIM,
	OCSD_SQL_PORT_ADD,
	OCSD_SQL_CIRCUIT_ADD,
	OCSD_SQL_CIRCUIT,
	OCSD_SQL_CIRCUITS,
	OCSD_SQL_CIRCUITS_SWITCH,
	OCSD_SQL_CIRCUITS_SEEN,
	OCSD_SQL_CIRCUITS_DELETE,
	OCSD_SQL_RELEASE,
	OCSD_SQL_DRAIN,
	OCSD_SQL_RESUME,
	OCSD_SQL_MAX_EPOCH,
	OCSD_SQL_AUDIT,
	OCSD_SQL_LAST_EPOCH,
	OCSD_SQL_BASELINE,
	OCSD_SQL_BASELINE_ADD,
	OCSD_SQL_REVISION,
	OCSD_SQL_TRANSACTION,
	OCSD_SQL_TRANSACTION_ADD,
	OCSD_SQL_TRANSACTION_ANSWER,
	OCSD_SQL_TRANSACTION_TRIM,
	OCSD_SQL_CLOCK,
	OCSD_SQL_TERM,
	OCSD_SQL_CONTROLLER,
	OCSD_SQL_BOOT,
	OCSD_SQL_MAX_JOB,
	OCSD_SQL_MET,
	OCSD_SQL_MET_REMOVE,
	OCSD_SQL_HEARD,
	OCSD_SQL_ASKED,
	OCSD_SQL_ASKED_REMOVE,
	OCSD_SQL_COUNT,
};

struct ocsd_store {
	sqlite3 *db;
	char *path;
	int lock;
	bool open;		  /* a transaction is open */
	int64_t revision, stored; /* and what meta says of it */
	int64_t noted;		  /* of these, the one that ocsd.lock tells */
	double age;		  /* the clock that ages are counted by, at AGE_NS */
	int64_t age_ns;
	char *lost; /* why it cannot be used any more, a sentence; or NULL */
	sqlite3_stmt *prepared[OCSD_SQL_COUNT];
};

/* Which rows of the audit log tell a switch's history: not the batches that went well.
 * There is an index of them, which SQLite uses only for these very words. */
#define OCSD_HISTORY_ROWS "what <> 'batch' AND (what <> 'outcome' OR reply <> 'ok')"

/* Bytes that ocsd.lock holds: a number and a newline. */
#define OCSD_NOTE_TEXT 20

/* The clock of ages goes on from KEPT (0: from now). */
void ocsd_store_age_start(struct ocsd_store *store, int64_t kept);
/* What it shows: seconds as of the wall clock, except that it does not step. */
double ocsd_store_age(struct ocsd_store *store);

/* Whether STATEMENT yields another row; a failure loses the store. */
bool ocsd_store_row(struct ocsd_store *store, sqlite3_stmt *statement);

/* Runs a statement in the open transaction (opens one); TYPES has one letter a
 * parameter: i int64_t, d double, s text or NULL. */
void ocsd_store_run(struct ocsd_store *store, enum ocsd_sql which, const char *types, ...);

/* Runs several statements in the open transaction. */
void ocsd_store_script(struct ocsd_store *store, const char *sql);

#endif
