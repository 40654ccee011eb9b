/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Operation show, what "region": jobs with groups of experts, and the circuits that they have. */

#include "src/ocsd/jobs/region.h"
#include "src/ocsd/ops/operations.h"
#include "src/ocsd/ops/show_menus.h"
#include "src/ocsd/state/menus.h"

#include "src/protocol/fields.h"
#include "src/protocol/names.h"

#include <json-c/json.h>

static struct json_object *group_json(const struct ocsd *d, const struct ocsd_job *job, int number)
{
	const struct ocsd_rail *rail = &job->menu->rails[number];
	struct json_object *row = json_object_new_object(), *nodes = json_object_new_array();
	struct ocs_region_circuits stand;

	ocs_field_add_number(row, OCS_FIELD_GROUP, number);
	for (int s = 0; s < job->menu->groups.servers; s++)
		json_object_array_add(
			nodes, json_object_new_string(
				       job->nodes.names[number * job->menu->groups.servers + s]));
	json_object_object_add(row, OCS_FIELD_NODES, nodes);
	ocsd_region_stand(job->menu, number, &stand);
	json_object_object_add(row, OCS_FIELD_CIRCUITS, ocsd_menu_circuits_json(&stand));
	ocs_region_circuits_free(&stand);
	ocsd_show_rail(d, rail, row);
	if (rail->seen)
		json_object_object_add(row, OCS_FIELD_SEEN, json_object_get(rail->seen));
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
	ocsd_show_changes(job, row);
	ocs_field_add_number(row, OCS_FIELD_KEPT, (int64_t)menu->total.kept);
	json_object_object_add(row, OCS_FIELD_CHANGE_MS,
			       menu->total.verified ?
				       json_object_new_double((double)menu->total.took_ns /
							      (double)menu->total.verified / 1e6) :
				       NULL);
	return row;
}

void ocsd_op_show_region(struct ocsd *d, struct ocsd_client *client, int64_t id,
			 struct json_object *request)
{
	ocsd_show_menus(d, client, id, request, OCS_FIELD_REGION, true, job_region);
}
