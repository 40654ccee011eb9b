/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/ocsd/state/switch_state.h"

#include "src/ocsd/state/events.h"

#include "src/protocol/fields.h"
#include "src/protocol/names.h"
#include "src/util/net.h"
#include "src/util/text.h"

#include <json-c/json.h>
#include <stdlib.h>

const char *ocsd_switch_state_name(const struct ocsd_switch *sw)
{
	if (sw->status.state != OCSD_UP)
		return "failed";
	return sw->status.drained ? "drained" : "up";
}

void ocsd_switch_event(struct ocsd *d, struct ocsd_switch *sw)
{
	struct json_object *event = ocs_event_new(OCS_EVENT_SWITCH);
	const char *reason =
		sw->status.state != OCSD_UP ? sw->status.reason : sw->status.drain_reason;

	ocs_field_add_text(event, OCS_FIELD_NAME, sw->description->name);
	ocs_field_add_text(event, OCS_FIELD_STATE, ocsd_switch_state_name(sw));
	ocs_field_add_text(event, OCS_FIELD_REASON, reason);
	ocsd_event_post(d, event);
	free(sw->status.said);
	sw->status.said = reason ? ocs_strdup(reason) : NULL;
	sw->status.said_ns = ocs_now_ns();
}
