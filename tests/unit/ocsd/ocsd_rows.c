/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "tests/unit/ocsd/ocsd_rows.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

#include "src/util/text.h"
#include "tests/unit/ocsd/ocsd_rig.h"

static sqlite3 *open_with(struct rig *rig, int flags)
{
	char *path = ocs_asprintf("%s/state/ocsd.db", rig->emulator.folder);
	sqlite3 *db = NULL;

	assert_int_equal(sqlite3_open_v2(path, &db, flags, NULL), SQLITE_OK);
	sqlite3_busy_timeout(db, 5000);
	free(path);
	return db;
}

sqlite3 *rig_database(struct rig *rig)
{
	return open_with(rig, SQLITE_OPEN_READWRITE);
}

int64_t rig_select(struct rig *rig, const char *sql)
{
	sqlite3 *db = open_with(rig, SQLITE_OPEN_READONLY);
	sqlite3_stmt *row = NULL;
	int64_t value;

	assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &row, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_step(row), SQLITE_ROW);
	value = sqlite3_column_int64(row, 0);
	sqlite3_finalize(row);
	sqlite3_close(db);
	return value;
}
