/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/ocsd/ops/show_menus.h"

#include "src/ocsd/jobs/topology.h"
#include "src/ocsd/protocol/connection.h"
#include "src/ocsd/protocol/role.h"
#include "src/ocsd/state/menus.h"
#include "src/ocsd/store/store.h"

#include "src/protocol/fields.h"
#include "src/protocol/names.h"

#include <json-c/json.h>
#include <stdio.h>
#include <string.h>

void ocsd_show_rail(const struct ocsd *d, const struct ocsd_rail *rail, struct json_object *row)
{
	ocs_field_add_text(row, OCS_FIELD_SWITCH,
			   rail->sw >= 0 ? d->fabric->switches[rail->sw].name : NULL);
	ocs_field_add_text(row, OCS_FIELD_STANDS, rail->stands[0] ? rail->stands : NULL);
	ocs_field_add_number(row, OCS_FIELD_SEQ, (int64_t)rail->seq);
	ocs_field_add_text(row, OCS_FIELD_STAGE, ocsd_stage_name(rail->stage));
	if (rail->error)
		ocs_field_add_text(row, OCS_FIELD_ERROR, rail->error);
}

void ocsd_show_changes(const struct ocsd_job *job, struct json_object *row)
{
	const struct ocsd_menu_count *total = &job->menu->total;

	ocs_field_add_number(row, OCS_FIELD_CHANGES, (int64_t)total->changes);
	ocs_field_add_number(row, OCS_FIELD_CIRCUITS, (int64_t)total->circuits);
	ocs_field_add_number(row, OCS_FIELD_FAILED, (int64_t)total->failed);
	ocs_field_add_number(row, OCS_FIELD_REFUSED, (int64_t)total->refused);
	json_object_object_add(row, OCS_FIELD_RATE,
			       json_object_new_double(ocsd_topology_rate(job)));
	ocs_field_add_number(row, OCS_FIELD_WAITED_MS, job->menu->waited_ms);
	ocs_field_add_number(row, OCS_FIELD_PROVISIONED, job->menu->provisioned);
	ocs_field_add_number(row, OCS_FIELD_MISPREDICTED, job->menu->mispredicted);
}

static bool menu_visible(const struct ocsd *d, struct ocsd_client *client,
			 const struct ocsd_job *job, bool region, const char *name)
{
	char number[32];

	snprintf(number, sizeof(number), "%u", job->job);
	return job->menu && ocsd_menu_region(job->menu) == region &&
	       job->state != OCSD_JOB_CLOSED &&
	       ocsd_role_owns(d, *ocsd_client_who(client), job->uid) &&
	       (!name || strcmp(name, number) == 0);
}

void ocsd_show_menus(struct ocsd *d, struct ocsd_client *client, int64_t id,
		     struct json_object *request, const char *field, bool region,
		     ocsd_menu_row *row)
{
	const char *name = ocs_field_text(request, OCS_FIELD_NAME, NULL);
	struct json_object *reply = json_object_new_object(), *list = json_object_new_array();

	for (const struct ocsd_job *job = d->jobs; job; job = job->next)
		if (menu_visible(d, client, job, region, name))
			json_object_array_add(list, row(d, job));
	json_object_object_add(reply, field, list);
	ocs_field_add_number(reply, OCS_FIELD_REVISION, ocsd_store_revision(d));
	ocsd_reply(client, id, reply);
}
