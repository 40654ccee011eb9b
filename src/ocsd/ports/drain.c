/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Ports that fail and return, and what returns to service. */

#include "src/ocsd/store/audit.h"
#include "src/ocsd/jobs/degraded.h"
#include "src/ocsd/ports/drain.h"
#include "src/ocsd/state/out_of_service.h"
#include "src/ocsd/state/switch_state.h"
#include "src/ocsd/store/store.h"

#include "src/util/text.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BEFORE " (drained before: "

void ocsd_drain_announce(struct ocsd *d, const char *kind, const char *name, const char *reason,
			 bool drained)
{
	struct ocs_port port;

	/* A quarantined port stays out of service when its drain is taken away. */
	if (!drained && strcmp(kind, "port") == 0 && ocsd_port_parse(d, name, &port) == 0 &&
	    d->switches[port.sw].ports[port.port].foreign)
		ocsd_drain_event(d, kind, name, "a patch that is not ours", true);
	else
		ocsd_drain_event(d, kind, name, reason, drained);
	if (strcmp(kind, "switch") == 0 && ocs_fabric_switch(d->fabric, name) >= 0)
		ocsd_switch_event(d, &d->switches[ocs_fabric_switch(d->fabric, name)]);
}

void ocsd_port_fail(struct ocsd *d, const uid_t *who, struct ocs_port where, const char *reason)
{
	const struct ocsd_switch *sw = &d->switches[where.sw];
	char *name = ocs_asprintf("%s:%d", sw->description->name, where.port);
	const struct ocsd_drain *before = who ? NULL : ocsd_drain_find(d, "port", name);
	/* What somebody has drained does not return when light does. */
	char *text =
		before ? ocs_asprintf(OCSD_PORT_FAILED "%s" BEFORE "%s)", reason, before->reason) :
			 ocs_asprintf(OCSD_PORT_FAILED "%s", reason);
	char *why = ocs_asprintf("port %s failed: %s", name, reason);

	ocsd_drain_set(d, "port", name, text);
	ocsd_store_drain(d, "port", name, text, who ? *who : geteuid());
	ocsd_audit(d, &(struct ocsd_audit){ .who = who,
					    .sw = sw,
					    .what = "port_failed",
					    .before = name,
					    .after = reason });
	ocs_log(OCS_LOG_ERROR, "%s", why);
	ocsd_drain_event(d, "port", name, text, true);
	ocsd_port_lost(d, where, why);
	free(why);
	free(text);
	free(name);
}

void ocsd_resume(struct ocsd *d, const char *kind, const char *name, uid_t who)
{
	struct ocs_port port;

	ocsd_store_drain(d, kind, name, NULL, who);
	ocs_log(OCS_LOG_INFO, "%s %s resumed", kind, name);
	ocsd_drain_set(d, kind, name, NULL);
	ocsd_drain_announce(d, kind, name, NULL, false);
	if (strcmp(kind, "port") == 0 && ocsd_port_parse(d, name, &port) == 0)
		ocsd_degraded_check(d, d->switches[port.sw].ports[port.port].owner);
}

bool ocsd_port_lit(struct ocsd *d, struct ocs_port where)
{
	static const char unlit[] = OCSD_PORT_FAILED OCSD_UNLIT, more[] = BEFORE;
	const struct ocsd_switch *sw = &d->switches[where.sw];
	char *name = ocs_asprintf("%s:%d", sw->description->name, where.port), *reason;
	const struct ocsd_drain *drain = ocsd_drain_find(d, "port", name);
	const char *rest = drain && strncmp(drain->reason, unlit, strlen(unlit)) == 0 ?
				   drain->reason + strlen(unlit) :
				   NULL;
	bool again = rest && strncmp(rest, more, strlen(more)) == 0;

	if (again) {
		rest += strlen(more);
		reason = ocs_asprintf("%.*s", (int)strlen(rest) - 1, rest);
		ocsd_drain_set(d, "port", name, reason);
		ocsd_store_drain(d, "port", name, reason, geteuid());
		ocs_log(OCS_LOG_INFO, "port %s is lit again, and drained as before: %s", name,
			reason);
		ocsd_drain_event(d, "port", name, reason, true);
		ocsd_degraded_check(d, sw->ports[where.port].owner);
		free(reason);
	} else if (rest && !*rest) {
		ocsd_resume(d, "port", name, geteuid());
		again = true;
	}
	free(name);
	return again;
}
