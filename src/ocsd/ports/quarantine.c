/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Ports that a switch refuses: out of service until somebody looked. */

#include "src/ocsd/store/audit.h"
#include "src/ocsd/state/out_of_service.h"
#include "src/ocsd/ports/quarantine.h"
#include "src/ocsd/store/store.h"

#include "src/util/text.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int ocsd_port_logical(const struct ocsd_switch *sw, int fibre)
{
	int size = sw->description->size;

	return sw->description->bidi || fibre <= size ? fibre : fibre - size;
}

void ocsd_port_quarantine(struct ocsd *d, const struct ocsd_switch *sw, int port, const char *why)
{
	char *name = ocs_asprintf("%s:%d", sw->description->name, port);
	char *reason = ocs_asprintf(OCSD_QUARANTINE "%s", why);
	const struct ocsd_drain *drain = ocsd_drain_find(d, "port", name);

	if (!drain || strcmp(drain->reason, OCSD_PORT_FAILED OCSD_UNLIT) == 0) {
		ocs_log(OCS_LOG_ERROR, "switch %s port %d is in quarantine: %s",
			sw->description->name, port, why);
		ocsd_drain_set(d, "port", name, reason);
		ocsd_store_drain(d, "port", name, reason, geteuid());
		ocsd_audit(d,
			   &(struct ocsd_audit){
				   .sw = sw, .what = "quarantine", .before = name, .reply = why });
		ocsd_drain_event(d, "port", name, reason, true);
	}
	free(reason);
	free(name);
}

void ocsd_port_refused(struct ocsd *d, const struct ocsd_switch *sw,
		       const struct ocs_refusal *refusals, size_t count, const char *reply)
{
	for (size_t i = 0; i < count; i++) {
		const struct ocs_refusal *refusal = &refusals[i];
		char *why = ocs_asprintf("the switch refused the patch %d>%d (%s)",
					 refusal->patch.in, refusal->patch.out, reply);

		/* A reply that names no port may mean either. */
		if (refusal->port != refusal->patch.out)
			ocsd_port_quarantine(d, sw, ocsd_port_logical(sw, refusal->patch.in), why);
		if (refusal->port != refusal->patch.in)
			ocsd_port_quarantine(d, sw, ocsd_port_logical(sw, refusal->patch.out), why);
		free(why);
	}
}
