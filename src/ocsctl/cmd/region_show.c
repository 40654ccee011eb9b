/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* 'ocsctl region show': what servers of a region send each other, their circuits, and what they achieve. */

#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

#include "src/moe/allocate.h"
#include "src/ocsctl/cmd/region.h"
#include "src/ocsctl/ocsctl.h"
#include "src/ocsctl/output/region_picture.h"
#include "src/ocsctl/output/watch.h"
#include "src/ocsctl/what_if.h"
#include "src/util/text.h"

#define ALPHA 6
#define BETA 2
#define PICTURES_MAX 1024
#define PORTS_MAX 1024

/* One picture and what it is made of. */
struct scene {
	struct ocs_moe_demand *demand, *achieved;
	struct ocs_moe_circuits *circuits;
	char *caption;
};

struct scenes {
	struct scene *scene;
	int n;
};

static void scenes_free(struct scenes *scenes)
{
	for (int k = 0; k < scenes->n; k++) {
		ocs_moe_demand_destroy(scenes->scene[k].demand);
		ocs_moe_demand_destroy(scenes->scene[k].achieved);
		ocs_moe_circuits_destroy(scenes->scene[k].circuits);
		free(scenes->scene[k].caption);
	}
	free(scenes->scene);
}

/* Those of --keep or of the file, else the best ones. */
static struct ocs_moe_circuits *circuits_find(const struct ocs_ctl_args *args,
					      struct json_object *json,
					      const struct ocs_moe_demand *demand,
					      struct ocs_error *err)
{
	struct ocs_moe_region *region =
		ocs_moe_region_create(demand->n, args->alpha >= 0 ? (int)args->alpha : ALPHA,
				      args->beta ? (int)args->beta : BETA);
	struct ocs_moe_circuits *circuits = NULL;

	if (json && args->alpha < 0) {
		/* They stand, so that they fit. */
		for (int i = 0; i < demand->n; i++)
			region->ports[i] = PORTS_MAX;
	}
	if (json)
		circuits = ocs_moe_circuits_from_json(json, region, err);
	else
		circuits = ocs_moe_allocate(&(struct ocs_moe_request){
			.demand = demand, .region = region, .policy = OCS_MOE_BEST });
	ocs_moe_region_destroy(region);
	return circuits;
}

/* Adds what JSON says: a matrix, or an object with tokens, circuits, achieved and step. */
static int scene_add(const struct ocs_ctl_args *args, struct json_object *json,
		     struct json_object *kept, char *caption, struct scenes *scenes,
		     struct ocs_error *err)
{
	struct scene *scene;
	struct json_object *part;

	scenes->scene = ocs_realloc(scenes->scene, ((size_t)scenes->n + 1) * sizeof(*scene));
	scene = &scenes->scene[scenes->n++];
	*scene = (struct scene){ .caption = caption };
	scene->demand = ocs_moe_demand_from_json(json, (int)args->servers, err);
	if (!scene->demand)
		return -1;
	if (!kept && json_object_is_type(json, json_type_object))
		json_object_object_get_ex(json, "circuits", &kept);
	scene->circuits = circuits_find(args, kept, scene->demand, err);
	if (!scene->circuits)
		return -1;
	if (!json_object_is_type(json, json_type_object))
		return 0;
	if (json_object_object_get_ex(json, "step", &part) && !caption)
		scene->caption = ocs_strdup(json_object_get_string(part));
	if (!json_object_object_get_ex(json, "achieved", &part))
		return 0;
	scene->achieved = ocs_moe_demand_from_json(part, 0, err);
	if (scene->achieved && scene->achieved->n != scene->demand->n)
		return ocs_error_set(err, OCS_USAGE, "achieved: %d servers, but %d send tokens",
				     scene->achieved->n, scene->demand->n);
	return scene->achieved ? 0 : ocs_error_prefix(err, "achieved");
}

/* The layers of the last pass of a record. */
static int record_add(const struct ocs_ctl_args *args, struct json_object *json,
		      struct json_object *kept, struct scenes *scenes, struct ocs_error *err)
{
	struct json_object *passes = json, *last;
	size_t count, layers;

	if (json_object_is_type(json, json_type_object))
		json_object_object_get_ex(json, "passes", &passes);
	count = json_object_is_type(passes, json_type_array) ? json_object_array_length(passes) : 0;
	last = count ? json_object_array_get_idx(passes, count - 1) : NULL;
	layers = json_object_is_type(last, json_type_array) ? json_object_array_length(last) : 0;
	if (!layers || layers > PICTURES_MAX)
		return ocs_error_set(err, OCS_USAGE,
				     "trace: a list of passes is wanted, each a list of layers (at "
				     "most %d), each a matrix of tokens",
				     PICTURES_MAX);
	for (size_t l = 0; l < layers; l++) {
		if (scene_add(args, json_object_array_get_idx(last, l), kept,
			      ocs_asprintf("pass %zu, layer %zu", count - 1, l), scenes, err))
			return ocs_error_prefix(err, "layer %zu of pass %zu", l, count - 1);
	}
	return 0;
}

static int scenes_read(const struct ocs_ctl_args *args, struct scenes *scenes,
		       struct ocs_error *err)
{
	const char *path = args->trace ? args->trace : args->matrix;
	struct json_object *json = ocs_ctl_read_json(path, err), *kept = NULL;
	int rc = -1;

	if (!json)
		return -1;
	if (args->keep)
		kept = ocs_ctl_read_json(args->keep, err);
	if (!args->keep || kept)
		rc = args->trace ? record_add(args, json, kept, scenes, err) :
				   scene_add(args, json, kept, NULL, scenes, err);
	json_object_put(json);
	json_object_put(kept);
	return rc ? ocs_error_prefix(err, "region show: %s", path) : 0;
}

static int scenes_svg(const struct ocs_ctl_args *args, const struct ocs_region_picture *pictures,
		      int n, struct ocs_error *err)
{
	char *svg = ocs_region_picture_svg(pictures, n);
	int rc = ocs_file_write(args->svg, svg, strlen(svg), 0644, err);

	free(svg);
	return rc ? ocs_error_prefix(err, "region show") : 0;
}

static int region_draw(void *arg, FILE *out, struct ocs_error *err)
{
	const struct ocs_ctl_args *args = arg;
	struct ocs_region_picture *pictures;
	struct scenes scenes = { 0 };
	int rc = scenes_read(args, &scenes, err);

	pictures = ocs_calloc((size_t)scenes.n + 1, sizeof(*pictures));
	for (int k = 0; !rc && k < scenes.n; k++)
		pictures[k] = (struct ocs_region_picture){ .caption = scenes.scene[k].caption,
							   .demand = scenes.scene[k].demand,
							   .circuits = scenes.scene[k].circuits,
							   .achieved = scenes.scene[k].achieved };
	if (!rc && args->svg)
		rc = scenes_svg(args, pictures, scenes.n, err);
	for (int k = 0; !rc && !args->svg && k < scenes.n; k++) {
		if (k)
			fputc('\n', out);
		ocs_region_picture_print(&pictures[k], ocs_region_picture_width(), ocs_ctl_colour(),
					 out);
	}
	free(pictures);
	scenes_free(&scenes);
	return rc;
}

int ocs_ctl_region_show(const struct ocs_ctl_args *args, struct ocs_error *err)
{
	if (!args->matrix == !args->trace)
		return ocs_error_set(err, OCS_USAGE,
				     "region show: --matrix FILE has a matrix or what a controller "
				     "wrote, --trace FILE a record of gates; one of them is "
				     "wanted");
	if (args->watch)
		return ocs_ctl_watch(region_draw, (void *)args, args->watch, !args->svg, err);
	return region_draw((void *)args, stdout, err);
}
