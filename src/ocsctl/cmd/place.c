/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "src/advice/nearest_shape.h"
#include "src/advice/reason.h"
#include "src/protocol/client.h"
#include "src/ocsctl/cmd/place_rails.h"
#include "src/ocsctl/cmd/place_region.h"
#include "src/ocsctl/ocsctl.h"
#include "src/ocsctl/slurm/state.h"
#include "src/ocsctl/what_if.h"
#include "src/layout/diagram.h"
#include "src/plan/plan.h"
#include "src/util/hostlist.h"
#include "src/util/text.h"

int ocs_ctl_columns(void)
{
	struct winsize size;

	if (!ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) && size.ws_col >= 20)
		return size.ws_col;
	return 80;
}

bool ocs_ctl_colour(void)
{
	const char *no = getenv("NO_COLOR"), *term = getenv("TERM");

	return isatty(STDOUT_FILENO) && !(no && *no) && !(term && !strcmp(term, "dumb"));
}

int ocs_ctl_where_open(const struct ocs_ctl_args *args, struct ocs_ctl_where *where,
		       struct ocs_error *err)
{
	memset(where, 0, sizeof(*where));
	where->when = "now";
	if (ocs_shape_parse(args->operands[0], args->conn, &where->shape, err))
		return -1;
	where->shape.no_rotate |= args->no_rotate;
	where->shape.no_fold |= args->no_fold;
	where->config = ocs_ctl_config_open(args, err);
	if (!where->config)
		return -1;
	where->fabric = where->config->fabric;
	where->section = ocs_ctl_section(where->fabric, args, err);
	if (!where->section)
		return -1;
	where->placer = ocs_placer_create(where->fabric, where->section);
	where->occupancy = ocs_occupancy_create(where->section);
	return 0;
}

void ocs_ctl_where_close(struct ocs_ctl_where *where)
{
	ocs_placement_destroy(where->placement);
	free(where->reserved);
	ocs_occupancy_destroy(where->occupancy);
	ocs_placer_destroy(where->placer);
	ocs_config_destroy(where->config);
}

int ocs_ctl_where_place(struct ocs_ctl_where *where, struct ocs_error *err)
{
	struct ocs_error proof = { 0 };

	where->placement = ocs_reason_place(where->placer, where->occupancy, &where->shape, 0, err);
	if (!where->placement && err->code == OCS_NOT_NOW) {
		char *before = ocs_asprintf("; would fit %s: ", where->when);
		char *near = ocs_nearest_shapes_text(where->placer, where->occupancy, &where->shape,
						     before);
		struct ocs_error reason = *err;

		ocs_error_set(err, reason.code, "%s%s", reason.text, near);
		free(near);
		free(before);
	}
	if (!where->placement)
		return -1;
	ocs_shape_names_copy(&where->shape, &where->placement->shape);
	/* Never hand out what the independent check would not sign. */
	if (!ocs_placement_verify(where->fabric, where->occupancy, where->placement, &proof))
		return 0;
	return ocs_error_set(err, OCS_ERROR,
			     "the placement found is not valid (%s); please report"
			     " this",
			     proof.text);
}

char *ocs_ctl_node_list(const struct ocs_fabric *fabric, const struct ocs_placement *placement)
{
	char **names = ocs_calloc(placement->nnodes ? placement->nnodes : 1, sizeof(*names));
	char *list;

	for (int i = 0; i < placement->nnodes; i++)
		names[i] = fabric->nodes[placement->nodes[i]].name;
	list = ocs_hostlist_compress(names, placement->nnodes);
	free(names);
	return list;
}

char *ocs_ctl_cube_list(const struct ocs_placement *placement)
{
	char **names = ocs_calloc(placement->ncubes ? placement->ncubes : 1, sizeof(*names));
	char *list;

	for (int i = 0; i < placement->ncubes; i++)
		names[i] = placement->section->cube_names[placement->cubes[i]];
	list = ocs_hostlist_compress(names, placement->ncubes);
	free(names);
	return list;
}

void ocs_ctl_where_summary(const struct ocs_ctl_where *where)
{
	const struct ocs_placement *placement = where->placement;
	char shape[OCS_SHAPE_TEXT], conn[OCS_SHAPE_TEXT];
	char *nodes = ocs_ctl_node_list(where->fabric, placement);
	char *cubes = ocs_ctl_cube_list(placement);
	long xpus =
		(long)placement->nnodes * where->section->cube_xpus / where->section->cube_nodes;

	printf("%s (%s): %ld XPUs on %d node%s in %d cube%s, %d circuit%s\n",
	       ocs_shape_named_format(&where->shape, shape),
	       ocs_shape_conn_format(&where->shape, conn), where->shape.xpus, placement->nnodes,
	       placement->nnodes == 1 ? "" : "s", placement->ncubes,
	       placement->ncubes == 1 ? "" : "s", placement->ncircuits,
	       placement->ncircuits == 1 ? "" : "s");
	if (xpus > where->shape.xpus)
		printf("idle:  %ld XPUs of these nodes\n", xpus - where->shape.xpus);
	printf("cubes: %s\nnodes: %s\n", cubes, nodes);
	free(cubes);
	free(nodes);
}

void ocs_ctl_where_json(const struct ocs_ctl_where *where, bool orders)
{
	struct json_object *json = ocs_placement_to_json(where->fabric, where->placement);

	if (orders)
		ocs_placement_orders_add(json, where->placement);
	ocs_ctl_print_json(json);
	json_object_put(json);
}

/* Nodes that are taken, by any job: place answers "where", map says whose and shows
 * the cubes that have nothing to do with it. */
static char *picture_print(const struct ocs_ctl_where *where, bool svg)
{
	const struct ocs_section *section = where->section;
	int *taken = ocs_calloc(section->nnodes, sizeof(*taken)), ntaken = 0, n = 0;
	int *reserved = ocs_calloc(section->nnodes, sizeof(*reserved)), nreserved = 0;
	struct ocs_picture_item items[3];
	char shape[OCS_SHAPE_TEXT];
	char *text;

	for (int i = 0; i < section->nnodes; i++) {
		const struct ocs_node *node = &where->fabric->nodes[section->first_node + i];

		if (where->reserved && where->reserved[i])
			reserved[nreserved++] = section->first_node + i;
		else if (!ocs_occupancy_xpu_free(where->occupancy, node->cube, node->origin))
			taken[ntaken++] = section->first_node + i;
	}
	if (ntaken)
		items[n++] = (struct ocs_picture_item){
			.label = "in use or down", .sign = '*', .nodes = taken, .nnodes = ntaken
		};
	if (nreserved)
		items[n++] = (struct ocs_picture_item){ .label = OCS_CTL_RESERVED,
							.sign = '=',
							.nodes = reserved,
							.nnodes = nreserved };
	items[n] = (struct ocs_picture_item){ .label = ocs_shape_format(&where->shape, shape),
					      .sign = 'A',
					      .placement = where->placement };
	text = svg ? ocs_picture_svg(where->fabric, section, items, n + 1, NULL) :
		     ocs_picture(where->fabric, section, items, n + 1, n, ocs_ctl_columns(),
				 ocs_ctl_colour());
	free(reserved);
	free(taken);
	return text;
}

/* Which nodes of the section no job has, but not every user may have. */
static bool *reserved_nodes(const struct ocs_ctl_where *where, const struct ocs_ctl_state *state)
{
	bool *reserved = ocs_calloc(where->section->nnodes + 1, sizeof(*reserved));

	for (int i = 0; i < where->section->nnodes; i++) {
		const char *name = where->fabric->nodes[where->section->first_node + i].name;

		reserved[i] = !strcmp(ocs_ctl_state_node(state, name), "reserved");
	}
	return reserved;
}

/* Writes the picture to PATH.  0, or -1 with ERR. */
static int write_svg(const struct ocs_ctl_where *where, const char *path, struct ocs_error *err)
{
	char *svg = picture_print(where, true);
	int rc = ocs_file_write(path, svg, strlen(svg), 0644, err);

	free(svg);
	return rc;
}

/* What is free: --busy, all of a fabric that only --fabric knows, or what ocsd
 * says of the site's. */
static int busy_occupy(const struct ocs_ctl_args *args, struct ocs_ctl_where *where,
		       struct ocs_error *err)
{
	struct ocs_ctl_state state;
	struct ocs_client *client;
	int rc;

	if (args->busy)
		return ocs_occupancy_read_busy(where->occupancy, where->fabric, args->busy, err);
	if (args->fabric && !args->ocsd)
		return 0;
	client = ocs_ctl_connect(args, where->config, err);
	if (!client) {
		char *why = ocs_strdup(err->text);

		ocs_error_set(err, err->code, "%s; with --fabric or --busy no daemon is asked",
			      why);
		free(why);
		return -1;
	}
	rc = ocs_ctl_state_read(client, &state, err);
	ocs_client_close(client);
	if (rc)
		return -1;
	rc = ocs_ctl_state_occupy(&state, where->fabric, where->placer, where->occupancy, err);
	if (!rc) {
		where->reserved = reserved_nodes(where, &state);
		ocs_ctl_state_notes(&state, "ocsctl: ", stderr);
	}
	ocs_ctl_state_free(&state);
	return rc;
}

int ocs_ctl_place(const struct ocs_ctl_args *args, struct ocs_error *err)
{
	struct ocs_ctl_where where;
	int rc = -1;

	if (args->json + args->nodes + args->compact > 1)
		return ocs_error_set(err, OCS_USAGE,
				     "place: give one of --json, --nodes and"
				     " --compact");
	if (ocs_ctl_where_open(args, &where, err)) {
		const struct ocs_section *rails =
			where.config ? ocs_ctl_rails_section(where.fabric, args) : NULL;

		const struct ocs_section *region =
			where.config ? ocs_ctl_region_section(where.fabric, args) : NULL;

		if (rails)
			rc = ocs_ctl_place_rails(args, rails, &where.shape, err);
		else if (region)
			rc = ocs_ctl_place_region(args, where.config, region, &where.shape, err);
		goto out;
	}
	if (busy_occupy(args, &where, err) || ocs_ctl_where_place(&where, err))
		goto out;
	if (args->svg && write_svg(&where, args->svg, err))
		goto out;
	rc = 0;
	if (args->json) {
		ocs_ctl_where_json(&where, args->orders);
	} else if (args->nodes) {
		char *nodes = ocs_ctl_node_list(where.fabric, where.placement);

		puts(nodes);
		free(nodes);
	} else if (args->compact) {
		puts(where.placement->compact);
	} else {
		char *text = picture_print(&where, false);

		ocs_ctl_where_summary(&where);
		printf("\n%s", text);
		free(text);
	}
out:
	ocs_ctl_where_close(&where);
	return rc;
}

static int verify_plan(struct json_object *json, struct ocs_error *err)
{
	struct ocs_plan *plan = ocs_plan_from_json(json, err);
	int rc = plan ? ocs_plan_verify(plan, err) : -1;

	ocs_plan_destroy(plan);
	return rc;
}

static int verify_placement(const struct ocs_ctl_args *args, struct json_object *json,
			    struct ocs_error *err)
{
	struct ocs_fabric *fabric = ocs_ctl_fabric_open(args, err);
	struct ocs_placement *placement = NULL;
	struct ocs_occupancy *occupancy = NULL;
	int rc = -1;

	if (fabric)
		placement = ocs_placement_from_json(fabric, json, err);
	if (!placement)
		goto out;
	if (args->busy) {
		occupancy = ocs_occupancy_create(placement->section);
		if (ocs_occupancy_read_busy(occupancy, fabric, args->busy, err))
			goto out;
	}
	rc = ocs_placement_verify(fabric, occupancy, placement, err);
	if (rc) {
		err->code = OCS_ERROR;
		ocs_error_prefix(err, "not valid");
	}
out:
	ocs_occupancy_destroy(occupancy);
	ocs_placement_destroy(placement);
	ocs_fabric_destroy(fabric);
	return rc;
}

int ocs_ctl_verify(const struct ocs_ctl_args *args, struct ocs_error *err)
{
	struct json_object *json = ocs_ctl_read_json(args->operands[0], err);
	int rc;

	if (!json)
		return -1;
	if (!json_object_object_get_ex(json, "servers", NULL) &&
	    !json_object_object_get_ex(json, "xpus", NULL)) {
		rc = ocs_error_set(err, OCS_USAGE,
				   "%s holds neither a placement (no \"xpus\") nor"
				   " a plan (no \"servers\")",
				   args->operands[0]);
	} else if (json_object_object_get_ex(json, "servers", NULL)) {
		rc = verify_plan(json, err);
		if (rc) {
			err->code = OCS_ERROR;
			ocs_error_prefix(err, "not valid");
		}
	} else {
		rc = verify_placement(args, json, err);
	}
	json_object_put(json);
	if (!rc)
		puts(args->json ? "{\"valid\":true}" : "valid");
	return rc;
}
