/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/ocsd/jobs/rail_fault.h"
#include "src/ocsd/state/events.h"
#include "src/ocsd/state/menus.h"

#include "src/protocol/fields.h"
#include "src/protocol/names.h"
#include "src/util/text.h"

#include <json-c/json.h>

void ocsd_rails_tell(struct ocsd *d, const struct ocsd_job *job)
{
	struct ocs_text text = { 0 };
	struct json_object *event;

	for (int r = 0; job->menu && r < job->menu->nrails; r++)
		if (job->menu->rails[r].degraded)
			ocs_text_add(&text, "%srail %d %s", text.length ? ", " : "", r,
				     job->menu->rails[r].degraded);
	if (!text.length)
		return;
	event = ocs_event_job(OCS_EVENT_DEGRADED, job->job, job->epoch);
	ocs_field_add_text(event, OCS_FIELD_ERROR, text.data);
	ocsd_event_post(d, event);
	ocs_text_free(&text);
}

void ocsd_rail_degrade(struct ocsd *d, const struct ocsd_job *job, struct ocsd_rail *rail)
{
	static const char ring[] = "went to the giant ring",
			  failed[] = "did not get the giant ring";

	if (job->menu->revoked || rail->degraded == ring || (rail->degraded && rail->error))
		return;
	rail->degraded = rail->error ? failed : ring;
	ocsd_rails_tell(d, job);
}
