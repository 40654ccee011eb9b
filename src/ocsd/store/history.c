/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* What happened to a switch, from the audit log. */

#include "src/ocsd/store/history.h"
#include "src/ocsd/store/sql.h"
#include "src/protocol/names.h"

#include "src/protocol/fields.h"

#include <json-c/json.h>

#define LAST_DEFAULT 20
#define LAST_MAX 1000

/* The newest first; OCSD_HISTORY_ROWS leaves out the daily work. */
static const char newest[] =
	"SELECT time, what, who, job, before, after, reply FROM audit WHERE switch=?"
	" AND " OCSD_HISTORY_ROWS " ORDER BY id DESC LIMIT ?";

static void add_column(struct json_object *row, const char *name, sqlite3_stmt *from, int column)
{
	const char *text = (const char *)sqlite3_column_text(from, column);

	if (text && *text)
		json_object_object_add(row, name, json_object_new_string(text));
}

static struct json_object *event_json(sqlite3_stmt *from)
{
	struct json_object *row = json_object_new_object();

	json_object_object_add(row, OCS_FIELD_TIME,
			       json_object_new_double(sqlite3_column_double(from, 0)));
	add_column(row, OCS_FIELD_WHAT, from, 1);
	if (sqlite3_column_type(from, 2) != SQLITE_NULL)
		ocs_field_add_number(row, OCS_FIELD_WHO, sqlite3_column_int64(from, 2));
	if (sqlite3_column_int64(from, 3))
		ocs_field_add_number(row, OCS_FIELD_JOB, sqlite3_column_int64(from, 3));
	add_column(row, OCS_FIELD_BEFORE, from, 4);
	add_column(row, OCS_FIELD_AFTER, from, 5);
	add_column(row, OCS_FIELD_TEXT, from, 6);
	return row;
}

struct json_object *ocsd_history(struct ocsd *d, const char *name, int64_t last)
{
	struct json_object *list = json_object_new_array(), *rows[LAST_MAX];
	sqlite3_stmt *statement = NULL;
	int count = 0;

	if (last < 1 || last > LAST_MAX)
		last = last < 1 ? LAST_DEFAULT : LAST_MAX;
	if (sqlite3_prepare_v2(d->store->db, newest, -1, &statement, NULL) == SQLITE_OK) {
		sqlite3_bind_text(statement, 1, name, -1, SQLITE_STATIC);
		sqlite3_bind_int64(statement, 2, last);
		while (count < LAST_MAX && ocsd_store_row(d->store, statement))
			rows[count++] = event_json(statement);
	} else {
		ocs_log(OCS_LOG_ERROR, "the history of switch %s cannot be read: %s", name,
			sqlite3_errmsg(d->store->db));
	}
	sqlite3_finalize(statement);
	while (count)
		json_object_array_add(list, rows[--count]);
	return list;
}
