/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/ocsctl/cmd/phases.h"

#include <json-c/json.h>
#include <stdio.h>
#include <string.h>

#include "src/fold/shape.h"
#include "src/ocsctl/ocsctl.h"
#include "src/ocsctl/output/table.h"
#include "src/protocol/fields.h"
#include "src/protocol/names.h"
#include "src/util/text.h"

static double rate_get(struct json_object *one)
{
	struct json_object *rate = ocs_field(one, OCS_FIELD_RATE);

	return rate ? json_object_get_double(rate) : 0;
}

/* What stands on a rail: "11", or why that is not known. */
static const char *rail_topology(struct json_object *rail)
{
	return ocs_ctl_string(rail, OCS_FIELD_STANDS, "in change");
}

/* "rails 0-1 on 11, rail 2 in change": runs of rails that are alike. */
static void rails_describe(struct json_object *rails, struct ocs_text *text)
{
	size_t count = ocs_ctl_length(rails);

	for (size_t i = 0, run; i < count; i += run) {
		const char *topology = rail_topology(json_object_array_get_idx(rails, i));

		for (run = 1; i + run < count; run++)
			if (strcmp(rail_topology(json_object_array_get_idx(rails, i + run)),
				   topology) != 0)
				break;
		ocs_text_add(text, run > 1 ? "%srails %zu-%zu" : "%srail %zu", i ? ", " : "", i,
			     i + run - 1);
		ocs_text_add(text, strcmp(topology, "in change") ? " on %s" : " %s", topology);
	}
}

/* "2 x 3 nodes, stages along dimension 1". */
static void layout_describe(struct json_object *one, struct ocs_text *text)
{
	struct json_object *extents = ocs_field_array(one, OCS_FIELD_EXTENTS, NULL);
	int64_t stages = ocs_field_number(one, OCS_FIELD_ASYMMETRIC, -1);

	for (size_t i = 0; i < ocs_ctl_length(extents); i++)
		ocs_text_add(text, "%s%s", i ? " x " : "",
			     json_object_get_string(json_object_array_get_idx(extents, i)));
	ocs_text_add(text, " nodes");
	if (stages >= 0)
		ocs_text_add(text, ", stages along dimension %d", (int)stages + 1);
}

static const char *mode_describe(struct json_object *one)
{
	const char *mode = ocs_ctl_string(one, OCS_FIELD_MODE, "?");

	return strcmp(mode, ocs_phases_name(OCS_PHASES_OFF)) ? mode :
							       "off, circuits stay as they are";
}

static void counts_print(struct json_object *one, const char *before)
{
	printf("%s%s changes of rails (%.1f a second), %s circuits cut and made, %s failed, %s refused; waited %.3f s, %s times for one rank; %s changes provisioned, %s of them wrong\n",
	       before, ocs_ctl_string(one, OCS_FIELD_CHANGES, "0"), rate_get(one),
	       ocs_ctl_string(one, OCS_FIELD_CIRCUITS, "0"),
	       ocs_ctl_string(one, OCS_FIELD_FAILED, "0"),
	       ocs_ctl_string(one, OCS_FIELD_REFUSED, "0"),
	       (double)ocs_field_number(one, OCS_FIELD_WAITED_MS, 0) / 1000,
	       ocs_ctl_string(one, OCS_FIELD_LAST_ARRIVALS, "0"),
	       ocs_ctl_string(one, OCS_FIELD_PROVISIONED, "0"),
	       ocs_ctl_string(one, OCS_FIELD_MISPREDICTED, "0"));
}

static void rails_print(struct json_object *rails)
{
	struct ocs_text_table *table =
		ocs_text_table_create(">RAIL|SWITCH|STANDS|ASKED|>REQUEST|STAGE|ERROR");

	for (size_t i = 0; i < ocs_ctl_length(rails); i++) {
		struct json_object *rail = json_object_array_get_idx(rails, i);

		ocs_text_table_add(table, ocs_ctl_string(rail, OCS_FIELD_RAIL, NULL));
		ocs_text_table_add(table, ocs_ctl_string(rail, OCS_FIELD_SWITCH, NULL));
		ocs_text_table_add(table, rail_topology(rail));
		ocs_text_table_add(table, ocs_ctl_string(rail, OCS_FIELD_TOPO, NULL));
		ocs_text_table_add(table, ocs_ctl_string(rail, OCS_FIELD_SEQ, NULL));
		ocs_text_table_add(table, ocs_ctl_string(rail, OCS_FIELD_STAGE, NULL));
		ocs_text_table_add(table, ocs_ctl_string(rail, OCS_FIELD_ERROR, NULL));
	}
	ocs_text_table_print(table, stdout);
	ocs_text_table_destroy(table);
}

void ocs_ctl_phases_print(struct json_object *list)
{
	for (size_t i = 0; i < ocs_ctl_length(list); i++) {
		struct json_object *one = json_object_array_get_idx(list, i);
		struct ocs_text text = { 0 };

		layout_describe(one, &text);
		printf("%sjob %s: phases %s; %s\n", i ? "\n" : "",
		       ocs_ctl_string(one, OCS_FIELD_JOB, "?"), mode_describe(one), text.data);
		counts_print(one, "");
		rails_print(ocs_field_array(one, OCS_FIELD_RAILS, NULL));
		ocs_text_free(&text);
	}
}

void ocs_ctl_phases_summary(struct json_object *one)
{
	struct ocs_text text = { 0 };

	if (!one)
		return;
	rails_describe(ocs_field_array(one, OCS_FIELD_RAILS, NULL), &text);
	printf("phases:   %s; %s\n", mode_describe(one), text.length ? text.data : "no rails");
	if (ocs_field_number(one, OCS_FIELD_CHANGES, 0))
		counts_print(one, "          ");
	ocs_text_free(&text);
}
