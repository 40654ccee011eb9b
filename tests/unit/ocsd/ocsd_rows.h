/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef TESTS_OCSD_ROWS_H
#define TESTS_OCSD_ROWS_H

/* What the database of a rig's ocsd holds. */

#include <sqlite3.h>
#include <stdint.h>

struct rig;

/* The database, for reading and writing beside ocsd; sqlite3_close() it. */
sqlite3 *rig_database(struct rig *rig);
/* The first number of the first row that the query SQL finds; the test fails without a
 * row.  Opened for reading only. */
int64_t rig_select(struct rig *rig, const char *sql);

#endif
