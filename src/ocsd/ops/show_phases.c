/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Operation show, what "phases": the topologies of jobs on rails. */

#include "src/ocsd/ops/operations.h"
#include "src/ocsd/ops/show_menus.h"
#include "src/ocsd/state/menus.h"

#include "src/protocol/fields.h"
#include "src/protocol/names.h"

#include <json-c/json.h>

static struct json_object *rail_json(const struct ocsd *d, const struct ocsd_rail *rail, int number)
{
	struct json_object *row = json_object_new_object();

	ocs_field_add_number(row, OCS_FIELD_RAIL, number);
	ocs_field_add_text(row, OCS_FIELD_TOPO, rail->topo);
	ocsd_show_rail(d, rail, row);
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
	ocsd_show_changes(job, row);
	ocs_field_add_number(row, OCS_FIELD_LAST_ARRIVALS, menu->last_arrivals);
	return row;
}

void ocsd_op_show_phases(struct ocsd *d, struct ocsd_client *client, int64_t id,
			 struct json_object *request)
{
	ocsd_show_menus(d, client, id, request, OCS_FIELD_PHASES, false, job_phases);
}
