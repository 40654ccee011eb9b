/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* What switches say of themselves between two commands: the table is read at once,
 * instead of at the next poll. */

#include "src/ocsd/store/audit.h"
#include "src/ocsd/switches/notification.h"

#include "src/util/net.h"

#include <string.h>

#define MILLION INT64_C(1000000)
/* Between two read-backs that a switch asks for by what it says. */
#define PAUSE_MS 250
/* What is kept of it in the audit log: so much at once, and then one a second. */
#define KEPT_BURST 20
#define KEPT_EVERY_NS (1000 * MILLION)

/* Whether TEXT may be about a circuit, a port, or a restart; temperatures and logins
 * are not. */
static bool notice_matters(const char *text)
{
	static const char *const words[] = {
		"REPT ALM", "patch",  "crs",  "cross",	 "connect", "pair", "port",
		"shutter",  "config", "boot", "restart", "reset",   "init",
	};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strcasestr(text, words[i]))
			return true;
	return false;
}

/* Whether there is room for one more row. */
static bool notice_keep(struct ocsd_switch *sw, int64_t now_ns)
{
	int64_t fresh = (now_ns - sw->notice.kept_ns) / KEPT_EVERY_NS;

	if (fresh > 0) {
		sw->notice.kept = fresh < sw->notice.kept ? sw->notice.kept - (int)fresh : 0;
		sw->notice.kept_ns = now_ns;
	}
	if (sw->notice.kept >= KEPT_BURST)
		return false;
	sw->notice.kept++;
	return true;
}

void ocsd_switch_heard(struct ocsd *d, struct ocsd_switch *sw, const char *text)
{
	int64_t now_ns = ocs_now_ns();
	int64_t pause_ms = text ? PAUSE_MS : d->config->timeouts.retry_ms;

	ocs_log(OCS_LOG_INFO, "switch %s %s%s", sw->description->name,
		text ? "says: " : "has closed its connection", text ? text : "");
	if (text && !notice_matters(text))
		return;
	if (text && notice_keep(sw, now_ns))
		ocsd_audit(d, &(struct ocsd_audit){ .sw = sw, .what = "notice", .reply = text });
	/* One that has failed is tried again in its own time, and a batch ends with a
	 * read-back. */
	if (sw->status.state != OCSD_UP || sw->busy == OCSD_APPLY || sw->poll.heard_ns)
		return;
	sw->poll.heard_ns = sw->poll.read_ns + pause_ms * MILLION;
	if (sw->poll.heard_ns < now_ns)
		sw->poll.heard_ns = now_ns;
}
