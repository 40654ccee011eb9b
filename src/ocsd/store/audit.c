/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* The audit log: its rows, and how long it remembers them. */

#include "src/ocsd/store/audit.h"
#include "src/ocsd/store/clock.h"
#include "src/ocsd/store/sql.h"
#include "src/ocsd/store/store.h"

#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>

#include "src/util/text.h"

#define EVERY_S 600
#define MORE_S 2 /* while there is more than goes at a time */
#define DAY_S 86400.0
#define ROWS 5000 /* at a time: the loop must not stand still */

/* Rows tell the wall clock, which may have been wrong.  How old they are is known from
 * marks: every day which row was the last, by the clock of ages. */
static const char mark_script[] = "INSERT OR REPLACE INTO audit_marks VALUES(%lld, %.0f)";

/* The trigger that forbids deleting is away for the length of one transaction, in
 * which only rows older than the limit go. */
static const char script[] = "DROP TRIGGER audit_delete;"
			     "DELETE FROM audit WHERE id <= %lld AND id IN"
			     " (SELECT id FROM audit ORDER BY id LIMIT %d);"
			     "DELETE FROM audit_marks WHERE id < %lld;"
			     "CREATE TRIGGER audit_delete BEFORE DELETE ON audit BEGIN"
			     " SELECT RAISE(ABORT, 'the audit log is append-only'); END;";

void ocsd_audit(struct ocsd *d, const struct ocsd_audit *row)
{
	char who[32];

	/* The column makes a number of it; NULL is the daemon itself. */
	if (row->who)
		snprintf(who, sizeof(who), "%u", (unsigned int)*row->who);
	ocsd_store_run(d->store, OCSD_SQL_AUDIT, "dsiisssssis", ocsd_wall_clock(),
		       row->who ? who : NULL, row->job ? (int64_t)row->job->job : 0,
		       row->job ? (int64_t)row->job->epoch : 0,
		       row->sw ? row->sw->description->name : NULL, row->what, row->before,
		       row->after, row->reply, d->store->revision,
		       row->transaction ? row->transaction : d->server.transaction_name);
}

/* The number that SQL yields with the parameter VALUE; false: none. */
static bool number_query(struct ocsd_store *store, const char *sql, double value, double *number)
{
	sqlite3_stmt *row = NULL;
	bool found = false;

	if (!ocsd_store_lost(store) &&
	    sqlite3_prepare_v2(store->db, sql, -1, &row, NULL) == SQLITE_OK) {
		sqlite3_bind_double(row, 1, value);
		found = ocsd_store_row(store, row) && sqlite3_column_type(row, 0) != SQLITE_NULL;
	}
	if (found)
		*number = sqlite3_column_double(row, 0);
	sqlite3_finalize(row);
	return found;
}

/* What is done once a day. */
static void daily_prune(struct ocsd_store *store, double now)
{
	double newest, last;
	char *text;

	if ((number_query(store, "SELECT max(clock) FROM audit_marks", 0, &last) &&
	     now - last < DAY_S) ||
	    !number_query(store, "SELECT max(id) FROM audit", 0, &newest))
		return;
	text = ocs_asprintf(mark_script, (long long)newest, now);
	ocsd_store_script(store, text);
	free(text);
	/* Looks at every row: not with every pass. */
	ocsd_store_history_trim(store);
}

/* Rows that are too old go, as many as may at a time.  Whether there are more. */
static bool rows_forget(struct ocsd *d, double now)
{
	double limit, oldest;
	char *text;

	if (!number_query(d->store, "SELECT max(id) FROM audit_marks WHERE clock < ?",
			  now - d->config->ocsd.audit_days * DAY_S, &limit) ||
	    !number_query(d->store, "SELECT min(id) FROM audit", 0, &oldest) || oldest > limit)
		return false;
	text = ocs_asprintf(script, (long long)limit, ROWS, (long long)limit);
	ocsd_store_script(d->store, text);
	free(text);
	return limit - oldest >= ROWS;
}

static void on_prune(evutil_socket_t fd, short what, void *context)
{
	struct ocsd *d = context;
	double now = ocsd_store_age(d->store);
	struct timeval pause = { .tv_sec = EVERY_S };

	(void)fd;
	(void)what;
	ocsd_store_transaction_trim(d->store);
	ocsd_store_run(d->store, OCSD_SQL_CLOCK, "i", (int64_t)now);
	daily_prune(d->store, now);
	if (rows_forget(d, now))
		pause.tv_sec = MORE_S;
	event_add(d->loop.pruner, &pause);
}

void ocsd_audit_prune(struct ocsd *d)
{
	d->loop.pruner = evtimer_new(d->loop.base, on_prune, d);
	on_prune(-1, 0, d);
}

static char *patch_text(struct ocsd_circuit *const *circuits, size_t count)
{
	struct ocs_text text = { 0 };

	for (size_t i = 0; i < count; i++)
		for (int p = 0; p < circuits[i]->npatches; p++) {
			if (text.length)
				ocs_text_put(&text, " ", 1);
			ocs_text_number(&text, circuits[i]->patches[p].in);
			ocs_text_put(&text, ">", 1);
			ocs_text_number(&text, circuits[i]->patches[p].out);
		}
	return ocs_text_take(&text);
}

void ocsd_audit_batch(struct ocsd *d, const struct ocsd_switch *sw, const char *what,
		      const char *reply)
{
	char *before = patch_text(sw->batch.removing, sw->batch.nremoving);
	char *after = patch_text(sw->batch.adding, sw->batch.nadding);

	ocsd_audit(
		d,
		&(struct ocsd_audit){
			.sw = sw, .what = what, .before = before, .after = after, .reply = reply });
	free(before);
	free(after);
}
