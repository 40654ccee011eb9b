/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/ocsctl/room.h"

#include <json-c/json.h>

#include "src/ocsctl/ocsctl.h"
#include "src/ocsctl/state.h"
#include "src/place/room.h"

static void add_number(struct json_object *object, const char *name, int64_t value)
{
	json_object_object_add(object, name, json_object_new_int64(value));
}

static struct json_object *largest(struct ocs_placer *placer,
				   const struct ocs_occupancy *occupancy)
{
	struct json_object *array = json_object_new_array();
	char text[OCS_SHAPE_TEXT];

	for (int ndim = 1; ndim <= 3; ndim++) {
		struct ocs_shape shape;

		if (ocs_room_largest(placer, occupancy, ndim, &shape))
			json_object_array_add(array, json_object_new_string(
				ocs_shape_format(&shape, text)));
	}
	return array;
}

static struct json_object *section_room(const struct ocs_ctl_state *state,
					const struct ocs_fabric *fabric,
					const struct ocs_section *section, struct ocs_error *err)
{
	struct ocs_occupancy *occupancy = ocs_occupancy_create(section);
	struct ocs_placer *placer = ocs_placer_create(fabric, section);
	struct ocs_room *room = ocs_room_create(section);
	struct json_object *out = NULL;

	if (!ocs_ctl_state_occupy(state, fabric, placer, occupancy, err)) {
		double share = ocs_room_fragmentation(room, occupancy);

		out = json_object_new_object();
		json_object_object_add(out, "section", json_object_new_string(section->name));
		add_number(out, "xpus", (int64_t)section->ncubes * section->cube_xpus);
		add_number(out, "free", ocs_room_free(occupancy));
		add_number(out, "whole_cubes", ocs_room_whole_cubes(occupancy));
		json_object_object_add(out, "fragmentation_percent",
				       json_object_new_int((int)(100 * share + 0.5)));
		json_object_object_add(out, "largest", largest(placer, occupancy));
	}
	ocs_room_destroy(room);
	ocs_placer_destroy(placer);
	ocs_occupancy_destroy(occupancy);
	return out;
}

struct json_object *ocs_ctl_room(const struct ocs_ctl_args *args, struct ocs_client *client,
				 struct ocs_error *err)
{
	struct ocs_fabric *fabric = ocs_ctl_fabric_open(args, err);
	struct json_object *array = NULL, *one = NULL;
	struct ocs_ctl_state state;

	if (!fabric)
		return NULL;
	if (!ocs_ctl_state_read(client, &state, err)) {
		array = json_object_new_array();
		for (int i = 0; i < fabric->nsections; i++) {
			const struct ocs_section *section = &fabric->sections[i];

			if (section->kind != OCS_TORUS && section->kind != OCS_STATIC)
				continue;
			one = section_room(&state, fabric, section, err);
			if (!one) {
				json_object_put(array);
				array = NULL;
				break;
			}
			json_object_array_add(array, one);
		}
		ocs_ctl_state_free(&state);
	}
	ocs_fabric_destroy(fabric);
	return array;
}
