/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* How long the audit log remembers. */

#include "src/ocsd/store.h"

#include <event2/event.h>
#include <stdlib.h>

#include "src/util/text.h"

#define EVERY_S 600
#define ROWS 5000	/* at a time: the loop must not stand still */

/* The trigger that forbids deleting is away for the length of one transaction, in
 * which only rows older than the limit go. */
static const char script[] =
	"DROP TRIGGER audit_delete;"
	"DELETE FROM audit WHERE time < %.3f AND id IN"
	" (SELECT id FROM audit ORDER BY id LIMIT %d);"
	"CREATE TRIGGER audit_delete BEFORE DELETE ON audit BEGIN"
	" SELECT RAISE(ABORT, 'the audit log is append-only'); END;";

static bool anything(struct ocsd_store *store, double before)
{
	sqlite3_stmt *row = NULL;
	bool found = false;

	if (sqlite3_prepare_v2(store->db, "SELECT time FROM audit ORDER BY id LIMIT 1", -1, &row,
			       NULL) == SQLITE_OK && sqlite3_step(row) == SQLITE_ROW)
		found = sqlite3_column_double(row, 0) < before;
	sqlite3_finalize(row);
	return found;
}

static void prune(evutil_socket_t fd, short what, void *context)
{
	struct ocsd *d = context;
	double before = ocsd_wall_clock() - d->fabric->ocsd_audit_days * 86400.0;
	char *text;

	(void)fd;
	(void)what;
	ocsd_store_transaction_trim(d->store);
	if (!anything(d->store, before))
		return;
	text = ocs_asprintf(script, before, ROWS);
	ocsd_store_script(d->store, text);
	free(text);
}

struct event *ocsd_audit_prune(struct ocsd *d)
{
	const struct timeval interval = { .tv_sec = EVERY_S };
	struct event *event = event_new(d->base, -1, EV_PERSIST, prune, d);

	if (event)
		event_add(event, &interval);
	prune(-1, 0, d);
	return event;
}
