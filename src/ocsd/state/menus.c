/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/ocsd/state/menus.h"

#include "src/protocol/fields.h"
#include "src/protocol/names.h"

#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

void ocsd_menu_first(const struct ocsd_menu *menu, char *topology)
{
	/* What nobody changes has to reach everybody. */
	if (menu->phases == OCS_PHASES_OFF && menu->layout.ports > 1)
		strcpy(topology, OCS_RAILS_RING);
	else
		ocs_rails_topology_first(&menu->layout, topology);
}

void ocsd_menu_free(struct ocsd_menu *menu)
{
	if (!menu)
		return;
	for (int r = 0; r < menu->nrails; r++) {
		free(menu->rails[r].circuits);
		free(menu->rails[r].by_ports);
		free(menu->rails[r].error);
		json_object_put(menu->rails[r].seen);
		free(menu->rails[r].leaving.nodes);
		free(menu->rails[r].ports);
		ocs_region_circuits_free(&menu->rails[r].first);
		ocs_region_circuits_free(&menu->rails[r].asked);
	}
	free(menu->rails);
	free(menu->routes);
	free(menu->name);
	ocs_rails_pairs_free(&menu->pairs);
	explicit_bzero(menu->key, sizeof(menu->key));
	free(menu);
}

size_t ocsd_menu_unread(const struct ocsd *d, const struct ocsd_job *job, bool all)
{
	size_t count = 0;

	for (int r = 0; job->menu && r < job->menu->nrails; r++)
		if ((job->menu->rails[r].unread || job->menu->rails[r].late) &&
		    (all || d->switches[job->menu->rails[r].sw].status.state != OCSD_SWITCH_FAILED))
			count++;
	return count;
}

bool ocsd_menu_unread_on(const struct ocsd_job *job, int sw)
{
	for (int r = 0; job->menu && r < job->menu->nrails; r++)
		if ((job->menu->rails[r].unread || job->menu->rails[r].late) &&
		    job->menu->rails[r].sw == sw)
			return true;
	return false;
}

struct json_object *ocsd_menu_circuits_json(const struct ocs_region_circuits *circuits)
{
	struct json_object *list = json_object_new_array();

	for (size_t i = 0; i < circuits->count; i++) {
		const struct ocs_region_circuit *one = &circuits->items[i];
		const int numbers[4] = { one->a, one->a_nic, one->b, one->b_nic };
		struct json_object *row = json_object_new_array();

		for (int n = 0; n < 4; n++)
			json_object_array_add(row, json_object_new_int(numbers[n]));
		json_object_array_add(list, row);
	}
	return list;
}

const char *ocsd_menu_mode(const struct ocsd_menu *menu)
{
	return menu->phases == OCS_PHASES_OFF ? "static" : "follow";
}

struct json_object *ocsd_menu_describe_region(const struct ocsd_menu *menu)
{
	struct json_object *about = json_object_new_object(), *groups = json_object_new_array();

	ocs_field_add_text(about, OCS_FIELD_MODE, ocsd_menu_mode(menu));
	ocs_field_add_number(about, OCS_FIELD_SERVERS, menu->groups.servers);
	ocs_field_add_number(about, OCS_FIELD_NICS, menu->nics);
	ocs_field_add_text(about, OCS_FIELD_DIGEST, menu->digest);
	for (int g = 0; g < menu->nrails; g++) {
		const struct ocsd_rail *rail = &menu->rails[g];
		struct json_object *row = json_object_new_object();

		ocs_field_add_number(row, OCS_FIELD_GROUP, g);
		json_object_object_add(row, OCS_FIELD_CIRCUITS,
				       ocsd_menu_circuits_json(&rail->first));
		json_object_array_add(groups, row);
	}
	json_object_object_add(about, OCS_FIELD_GROUPS, groups);
	return about;
}

struct json_object *ocsd_menu_describe(const struct ocsd_menu *menu)
{
	struct json_object *about = json_object_new_object(), *extents = json_object_new_array();
	char first[OCS_RAILS_TOPOLOGY];

	for (int i = 0; i < menu->layout.ndim; i++)
		json_object_array_add(extents, json_object_new_int(menu->layout.extent[i]));
	ocsd_menu_first(menu, first);
	ocs_field_add_text(about, OCS_FIELD_MODE, ocs_phases_name(menu->phases));
	json_object_object_add(about, OCS_FIELD_EXTENTS, extents);
	ocs_field_add_number(about, OCS_FIELD_ASYMMETRIC, menu->layout.asymmetric);
	ocs_field_add_number(about, OCS_FIELD_NIC_PORTS, menu->layout.ports);
	ocs_field_add_number(about, OCS_FIELD_RAILS, menu->nrails);
	ocs_field_add_text(about, OCS_FIELD_TOPO, first);
	ocs_field_add_text(about, OCS_FIELD_DIGEST, menu->digest);
	return about;
}
