/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Operation show, what "region": jobs with groups of experts, and the circuits that they have. */

#include "src/ocsd/jobs/region.h"
#include "src/ocsd/jobs/topology.h"
#include "src/ocsd/ops/operations.h"
#include "src/ocsd/protocol/connection.h"
#include "src/ocsd/protocol/dispatch.h"
#include "src/ocsd/protocol/role.h"
#include "src/ocsd/state/menus.h"
#include "src/ocsd/store/audit.h"
#include "src/ocsd/store/store.h"

#include "src/protocol/fields.h"
#include "src/protocol/names.h"

#include <json-c/json.h>
#include <stdio.h>
#include <string.h>

static struct json_object *group_json(const struct ocsd *d, const struct ocsd_job *job, int number)
{
	const struct ocsd_rail *rail = &job->menu->rails[number];
	struct json_object *row = json_object_new_object(), *nodes = json_object_new_array();
	struct ocs_region_circuits stand;

	ocs_field_add_number(row, OCS_FIELD_GROUP, number);
	ocs_field_add_text(row, OCS_FIELD_SWITCH,
			   rail->sw >= 0 ? d->fabric->switches[rail->sw].name : NULL);
	for (int s = 0; s < job->menu->groups.servers; s++)
		json_object_array_add(
			nodes, json_object_new_string(
				       job->nodes.names[number * job->menu->groups.servers + s]));
	json_object_object_add(row, OCS_FIELD_NODES, nodes);
	ocsd_region_stand(job->menu, number, &stand);
	json_object_object_add(row, OCS_FIELD_CIRCUITS, ocsd_menu_circuits_json(&stand));
	ocs_region_circuits_free(&stand);
	ocs_field_add_text(row, OCS_FIELD_STANDS, rail->stands[0] ? rail->stands : NULL);
	ocs_field_add_number(row, OCS_FIELD_SEQ, (int64_t)rail->seq);
	ocs_field_add_text(row, OCS_FIELD_STAGE, ocsd_stage_name(rail->stage));
	if (rail->error)
		ocs_field_add_text(row, OCS_FIELD_ERROR, rail->error);
	return row;
}

static struct json_object *job_region(const struct ocsd *d, const struct ocsd_job *job)
{
	const struct ocsd_menu *menu = job->menu;
	struct json_object *row = json_object_new_object(), *groups = json_object_new_array();

	ocs_field_add_number(row, OCS_FIELD_JOB, job->job);
	ocs_field_add_number(row, OCS_FIELD_EPOCH, (int64_t)job->epoch);
	ocs_field_add_text(row, OCS_FIELD_SHAPE, job->request.shape);
	ocs_field_add_text(row, OCS_FIELD_MODE, ocsd_menu_mode(menu));
	ocs_field_add_number(row, OCS_FIELD_SERVERS, menu->groups.servers);
	ocs_field_add_number(row, OCS_FIELD_NICS, menu->nics);
	for (int g = 0; g < menu->nrails; g++)
		json_object_array_add(groups, group_json(d, job, g));
	json_object_object_add(row, OCS_FIELD_GROUPS, groups);
	ocs_field_add_number(row, OCS_FIELD_CHANGES, (int64_t)menu->total.changes);
	ocs_field_add_number(row, OCS_FIELD_FAILED, (int64_t)menu->total.failed);
	ocs_field_add_number(row, OCS_FIELD_REFUSED, (int64_t)menu->total.refused);
	json_object_object_add(row, OCS_FIELD_RATE,
			       json_object_new_double(ocsd_topology_rate(job)));
	return row;
}

void ocsd_op_show_region(struct ocsd *d, struct ocsd_client *client, int64_t id,
			 struct json_object *request)
{
	const char *name = ocs_field_text(request, OCS_FIELD_NAME, NULL);
	struct json_object *reply = json_object_new_object(), *list = json_object_new_array();
	char number[32];

	for (const struct ocsd_job *job = d->jobs; job; job = job->next) {
		snprintf(number, sizeof(number), "%u", job->job);
		if (job->menu && ocsd_menu_region(job->menu) && job->state != OCSD_JOB_CLOSED &&
		    ocsd_role_owns(d, *ocsd_client_who(client), job->uid) &&
		    (!name || strcmp(name, number) == 0))
			json_object_array_add(list, job_region(d, job));
	}
	json_object_object_add(reply, OCS_FIELD_REGION, list);
	ocs_field_add_number(reply, OCS_FIELD_REVISION, ocsd_store_revision(d));
	ocsd_reply(client, id, reply);
}
