/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/ocsd/state/events.h"

#include <json-c/json.h>

void ocsd_event_post(struct ocsd *d, struct json_object *event)
{
	if (!d->replies.events)
		d->replies.events = json_object_new_array();
	json_object_array_add(d->replies.events, event);
}

void ocsd_controller_post(struct ocsd *d, struct json_object *event)
{
	if (!d->replies.to_controllers)
		d->replies.to_controllers = json_object_new_array();
	json_object_array_add(d->replies.to_controllers, event);
}
