/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* What people may see of the topologies of jobs on rails. */

#include "src/ocsd/jobs/allocation.h"
#include "src/ocsd/state/menus.h"
#include "src/ocsd/jobs/topology.h"
#include "src/ocsd/ops/operations.h"
#include "src/ocsd/protocol/connection.h"
#include "src/ocsd/protocol/role.h"
#include "src/ocsd/store/store.h"

#include "src/protocol/fields.h"
#include "src/protocol/names.h"

#include <json-c/json.h>
#include <stdio.h>
#include <string.h>

static struct json_object *rail_json(const struct ocsd *d, const struct ocsd_rail *rail, int number)
{
	struct json_object *row = json_object_new_object();

	ocs_field_add_number(row, OCS_FIELD_RAIL, number);
	ocs_field_add_text(row, OCS_FIELD_SWITCH,
			   rail->sw >= 0 ? d->fabric->switches[rail->sw].name : NULL);
	ocs_field_add_text(row, OCS_FIELD_STANDS, rail->stands[0] ? rail->stands : NULL);
	ocs_field_add_text(row, OCS_FIELD_TOPO, rail->topo);
	ocs_field_add_number(row, OCS_FIELD_SEQ, (int64_t)rail->seq);
	ocs_field_add_text(row, OCS_FIELD_STAGE, ocsd_stage_name(rail->stage));
	if (rail->error)
		ocs_field_add_text(row, OCS_FIELD_ERROR, rail->error);
	return row;
}

static struct json_object *job_phases(const struct ocsd *d, const struct ocsd_job *job)
{
	const struct ocsd_menu *menu = job->menu;
	struct json_object *row = ocsd_menu_describe(menu), *rails = json_object_new_array();

	ocs_field_add_number(row, OCS_FIELD_JOB, job->job);
	ocs_field_add_number(row, OCS_FIELD_EPOCH, (int64_t)job->epoch);
	for (int r = 0; r < menu->nrails; r++)
		json_object_array_add(rails, rail_json(d, &menu->rails[r], r));
	json_object_object_add(row, OCS_FIELD_RAILS, rails);
	ocs_field_add_number(row, OCS_FIELD_CHANGES, (int64_t)menu->total.changes);
	ocs_field_add_number(row, OCS_FIELD_CIRCUITS, (int64_t)menu->total.circuits);
	ocs_field_add_number(row, OCS_FIELD_FAILED, (int64_t)menu->total.failed);
	ocs_field_add_number(row, OCS_FIELD_REFUSED, (int64_t)menu->total.refused);
	json_object_object_add(row, OCS_FIELD_RATE,
			       json_object_new_double(ocsd_topology_rate(job)));
	ocs_field_add_number(row, OCS_FIELD_WAITED_MS, menu->waited_ms);
	ocs_field_add_number(row, OCS_FIELD_MISPREDICTED, menu->mispredicted);
	ocs_field_add_number(row, OCS_FIELD_LAST_ARRIVALS, menu->last_arrivals);
	return row;
}

void ocsd_op_show_phases(struct ocsd *d, struct ocsd_client *client, int64_t id,
			 struct json_object *request)
{
	const char *name = ocs_field_text(request, OCS_FIELD_NAME, NULL);
	struct json_object *reply = json_object_new_object(), *list = json_object_new_array();
	char number[32];

	for (const struct ocsd_job *job = d->jobs; job; job = job->next) {
		snprintf(number, sizeof(number), "%u", job->job);
		if (job->menu && !ocsd_menu_region(job->menu) && job->state != OCSD_JOB_CLOSED &&
		    ocsd_role_owns(d, *ocsd_client_who(client), job->uid) &&
		    (!name || strcmp(name, number) == 0))
			json_object_array_add(list, job_phases(d, job));
	}
	json_object_object_add(reply, OCS_FIELD_PHASES, list);
	ocs_field_add_number(reply, OCS_FIELD_REVISION, ocsd_store_revision(d));
	ocsd_reply(client, id, reply);
}
