/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/ocsctl/cmd/place_rails.h"

#include <json-c/json.h>
#include <stdio.h>
#include <string.h>

#include "src/fabric/fabric.h"
#include "src/ocsctl/ocsctl.h"
#include "src/protocol/names.h"
#include "src/rails/layout.h"
#include "src/util/text.h"

/* Of one rail. */
struct outcome {
	const struct ocs_section *section;
	const struct ocs_shape *shape;
	struct ocs_rails_layout layout;
	int nodes, node_xpus;
	int over; /* dimensions over nodes; the others are inside */
	char first[OCS_RAILS_TOPOLOGY], stays[OCS_RAILS_TOPOLOGY];
	size_t first_circuits, stays_circuits, menu_circuits;
};

const struct ocs_section *ocs_ctl_rails_section(const struct ocs_fabric *fabric,
						const struct ocs_ctl_args *args)
{
	const struct ocs_section *found = NULL;

	if (args->section) {
		found = ocs_fabric_section_named(fabric, args->section);
		return found && found->kind == OCS_RAILS ? found : NULL;
	}
	for (int i = 0; i < fabric->nsections; i++) {
		const struct ocs_section *section = &fabric->sections[i];

		if (section->ncubes || (section->kind == OCS_RAILS && found))
			return NULL;
		if (section->kind == OCS_RAILS)
			found = section;
	}
	return found;
}

static int circuits_count(const struct ocs_rails_layout *layout, const char *topology,
			  size_t *count, struct ocs_error *err)
{
	struct ocs_rails_pairs pairs;

	if ((topology ? ocs_rails_topology_pairs(layout, topology, &pairs, err) :
			ocs_rails_menu_pairs(layout, &pairs, err)) < 0)
		return -1;
	*count = pairs.count;
	ocs_rails_pairs_free(&pairs);
	return 0;
}

static int outcome_find(struct outcome *outcome, struct ocs_error *err)
{
	const struct ocs_section *section = outcome->section;
	struct ocs_rails_layout *layout = &outcome->layout;
	char text[OCS_SHAPE_TEXT];

	if (ocs_rails_layout_make(outcome->shape, section->server_xpus, section->nic_ports, layout,
				  err) < 0)
		return -1;
	outcome->nodes = ocs_rails_layout_nodes(layout);
	if (outcome->nodes > section->nservers)
		return ocs_error_set(err, OCS_NEVER, "shape %s takes %d servers; section %s has %d",
				     ocs_shape_named_format(outcome->shape, text), outcome->nodes,
				     section->name, section->nservers);
	outcome->node_xpus = (int)(outcome->shape->xpus / outcome->nodes);
	outcome->over = outcome->nodes > 1 ? layout->ndim : 0;
	ocs_rails_layout_first(layout, true, outcome->first);
	ocs_rails_layout_first(layout, false, outcome->stays);
	return circuits_count(layout, outcome->first, &outcome->first_circuits, err) < 0 ||
			       circuits_count(layout, outcome->stays, &outcome->stays_circuits,
					      err) < 0 ||
			       circuits_count(layout, NULL, &outcome->menu_circuits, err) < 0 ?
		       -1 :
		       0;
}

/* "dp:2", or "2" without names. */
static void dimension_add(struct ocs_text *text, const struct ocs_shape *shape, int dim)
{
	ocs_text_add(text, "%s%s%s%d", text->length ? ", " : "", shape->name[dim],
		     shape->name[dim][0] ? ":" : "", shape->extent[dim]);
}

static void outcome_print(const struct outcome *outcome)
{
	const struct ocs_section *section = outcome->section;
	const struct ocs_shape *shape = outcome->shape;
	struct ocs_text over = { 0 }, inside = { 0 };
	char text[OCS_SHAPE_TEXT];

	for (int d = 0; d < shape->ndim; d++) {
		dimension_add(d < outcome->over ? &over : &inside, shape, d);
		if (d < outcome->over)
			ocs_text_add(&over, " (%sdigit %d)",
				     d == outcome->layout.asymmetric ? "stages, " : "",
				     ocs_rails_layout_digit(&outcome->layout, d));
	}
	printf("%s on %s: %ld XPUs on %d node%s, %d rail%s\n", ocs_shape_named_format(shape, text),
	       section->name, shape->xpus, outcome->nodes, outcome->nodes == 1 ? "" : "s",
	       section->degree, section->degree == 1 ? "" : "s");
	if (outcome->node_xpus < section->server_xpus)
		printf("idle:       %d of the %d XPUs of each node\n",
		       section->server_xpus - outcome->node_xpus, section->server_xpus);
	printf("over nodes: %s\n", over.length ? over.data : "none");
	printf("in a node:  %s\n", inside.length ? inside.data : "none");
	printf("circuits:   per rail %zu (topology %s), with --ocs-phases at first %zu (topology %s) of %zu in all\n",
	       outcome->stays_circuits, outcome->stays, outcome->first_circuits, outcome->first,
	       outcome->menu_circuits);
	ocs_text_free(&over);
	ocs_text_free(&inside);
}

static struct json_object *topology_json(const char *topology, size_t circuits)
{
	struct json_object *json = json_object_new_object();

	json_object_object_add(json, "topology", json_object_new_string(topology));
	json_object_object_add(json, "circuits", json_object_new_int64((int64_t)circuits));
	return json;
}

static void outcome_json(const struct outcome *outcome)
{
	struct json_object *json = json_object_new_object(), *list = json_object_new_array();
	const struct ocs_shape *shape = outcome->shape;
	char text[OCS_SHAPE_TEXT];

	json_object_object_add(json, "shape",
			       json_object_new_string(ocs_shape_named_format(shape, text)));
	json_object_object_add(json, "section", json_object_new_string(outcome->section->name));
	json_object_object_add(json, "xpus", json_object_new_int64(shape->xpus));
	json_object_object_add(json, "nodes", json_object_new_int(outcome->nodes));
	json_object_object_add(json, "node_xpus", json_object_new_int(outcome->node_xpus));
	json_object_object_add(json, "rails", json_object_new_int(outcome->section->degree));
	for (int d = 0; d < shape->ndim; d++) {
		struct json_object *one = json_object_new_object();

		if (shape->name[d][0])
			json_object_object_add(one, "name", json_object_new_string(shape->name[d]));
		json_object_object_add(one, "extent", json_object_new_int(shape->extent[d]));
		if (d < outcome->over)
			json_object_object_add(
				one, "digit",
				json_object_new_int(ocs_rails_layout_digit(&outcome->layout, d)));
		json_object_array_add(list, one);
	}
	json_object_object_add(json, "dimensions", list);
	json_object_object_add(json, "stays",
			       topology_json(outcome->stays, outcome->stays_circuits));
	json_object_object_add(json, "first",
			       topology_json(outcome->first, outcome->first_circuits));
	json_object_object_add(json, "menu_circuits",
			       json_object_new_int64((int64_t)outcome->menu_circuits));
	ocs_ctl_print_json(json);
	json_object_put(json);
}

int ocs_ctl_place_rails(const struct ocs_ctl_args *args, const struct ocs_section *section,
			const struct ocs_shape *shape, struct ocs_error *err)
{
	struct outcome outcome = { .section = section, .shape = shape };

	if (args->nodes || args->compact || args->svg)
		return ocs_error_set(
			err, OCS_USAGE,
			"place: on rails a shape takes any nodes that are free; leave --nodes, --compact and --svg out");
	if (outcome_find(&outcome, err) < 0)
		return -1;
	if (args->json)
		outcome_json(&outcome);
	else
		outcome_print(&outcome);
	return 0;
}
