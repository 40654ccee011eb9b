/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* 'ocsctl show region': the circuits that stand in the groups of jobs with experts. */

#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/ocsctl/cmd/region.h"
#include "src/ocsctl/ocsctl.h"
#include "src/ocsctl/output/region_picture.h"
#include "src/ocsctl/output/table.h"
#include "src/ocsctl/output/watch.h"
#include "src/ocsctl/slurm/state.h"
#include "src/ocsctl/what_if.h"
#include "src/protocol/fields.h"
#include "src/protocol/client.h"
#include "src/protocol/names.h"
#include "src/util/text.h"

#define TOPS 3 /* columns: of the largest, of two and of four */

static double number_of(struct json_object *one, const char *name)
{
	return json_object_get_double(ocs_field(one, name));
}

/* The circuits of GROUP, [server, NIC, server, NIC] each; the caller destroys them. */
static struct ocs_moe_circuits *group_circuits(struct json_object *group, int servers)
{
	struct ocs_moe_circuits *circuits = ocs_moe_circuits_create(servers);
	struct json_object *list = ocs_field_array(group, OCS_FIELD_CIRCUITS, NULL);

	for (size_t k = 0; k < ocs_ctl_length(list); k++) {
		struct json_object *one = json_object_array_get_idx(list, k);
		int a, b;

		if (ocs_ctl_length(one) != 4)
			continue;
		a = json_object_get_int(json_object_array_get_idx(one, 0));
		b = json_object_get_int(json_object_array_get_idx(one, 2));
		if (a >= 0 && a < servers && b >= 0 && b < servers && a != b)
			ocs_moe_circuits_add(circuits, a, b, 1);
	}
	return circuits;
}

/* What the job's controller has seen of GROUP last, or NULL; the caller destroys it. */
static struct ocs_moe_demand *group_demand(struct json_object *group, int servers)
{
	struct json_object *seen = ocs_field(group, OCS_FIELD_SEEN);
	struct ocs_error ignored;
	struct ocs_moe_demand *demand = seen ? ocs_moe_demand_from_json(seen, 0, &ignored) : NULL;

	if (!demand || demand->n == servers)
		return demand;
	ocs_moe_demand_destroy(demand);
	return NULL;
}

/* Rates at which DEMAND was sent, of a NIC's; NULL: it is not known how long that took. */
static struct ocs_moe_demand *group_achieved(struct json_object *group,
					     const struct ocs_moe_demand *demand)
{
	struct json_object *seen = ocs_field(group, OCS_FIELD_SEEN);
	double all = number_of(seen, OCS_FIELD_TOOK_MS) / 1e3 * number_of(seen, OCS_FIELD_RATE);
	struct ocs_moe_demand *achieved;

	if (!demand || !(all > 0))
		return NULL;
	achieved = ocs_moe_demand_create(demand->n);
	for (int k = 0; k < demand->n * demand->n; k++)
		achieved->tokens[k] = demand->tokens[k] / all;
	return achieved;
}

/* "layer 3 of microbatch 12, second all-to-all forward, took 4.1 ms"; the caller frees it. */
static char *group_caption(struct json_object *group)
{
	struct json_object *seen = ocs_field(group, OCS_FIELD_SEEN);
	char *caption = ocs_asprintf("last seen: layer %s of microbatch %s, %s all-to-all %s",
				     ocs_ctl_string(seen, OCS_FIELD_LAYER, "?"),
				     ocs_ctl_string(seen, OCS_FIELD_MICROBATCH, "?"),
				     ocs_field_true(seen, OCS_FIELD_SECOND) ? "second" : "first",
				     ocs_field_true(seen, OCS_FIELD_BACKWARD) ? "backward" :
										"forward"),
	     *whole;

	if (!ocs_field(seen, OCS_FIELD_TOOK_MS))
		return caption;
	whole = ocs_asprintf("%s, took %.1f ms", caption, number_of(seen, OCS_FIELD_TOOK_MS));
	free(caption);
	return whole;
}

/* How well gates were foretold, layer by layer. */
static void foretold_print(struct json_object *group, FILE *out)
{
	struct json_object *layers =
		ocs_field_array(ocs_field(group, OCS_FIELD_SEEN), OCS_FIELD_LAYERS, NULL);
	struct ocs_text_table *table;

	if (!ocs_ctl_length(layers))
		return;
	fputs("\nhow well gates were foretold:\n", out);
	table = ocs_text_table_create(">LAYER|METHOD NOW|>L1|>TOP 1|>TOP 2|>TOP 4");
	for (size_t l = 0; l < ocs_ctl_length(layers); l++) {
		struct json_object *layer = json_object_array_get_idx(layers, l);
		struct json_object *top = ocs_field_array(layer, OCS_FIELD_TOP, NULL);

		ocs_text_table_add(table, ocs_ctl_string(layer, OCS_FIELD_LAYER, "?"));
		ocs_text_table_add(table, ocs_ctl_string(layer, OCS_FIELD_METHOD, "?"));
		ocs_text_table_format(table, "%.3f", number_of(layer, OCS_FIELD_DIFFERENCE));
		for (size_t k = 1; k < 1 << TOPS; k *= 2)
			ocs_text_table_format(table, "%.0f %%",
					      100 * json_object_get_double(
							    json_object_array_get_idx(top, k - 1)));
	}
	ocs_text_table_print(table, out);
	ocs_text_table_destroy(table);
}

static void group_head(struct json_object *group, FILE *out)
{
	struct json_object *nodes = ocs_field_array(group, OCS_FIELD_NODES, NULL);

	fprintf(out, "group %s on %s, %s", ocs_ctl_string(group, OCS_FIELD_GROUP, "?"),
		ocs_ctl_string(group, OCS_FIELD_SWITCH, "no switch"),
		ocs_ctl_string(group, OCS_FIELD_STAGE, "?"));
	if (ocs_field_text(group, OCS_FIELD_ERROR, NULL))
		fprintf(out, ": %s", ocs_field_text(group, OCS_FIELD_ERROR, NULL));
	fputs("; servers", out);
	for (size_t k = 0; k < ocs_ctl_length(nodes); k++)
		fprintf(out, " %zu %s%s", k,
			json_object_get_string(json_object_array_get_idx(nodes, k)),
			k + 1 < ocs_ctl_length(nodes) ? "," : "");
	fputc('\n', out);
}

/* The picture of GROUP; what it points to is freed by picture_free. */
static struct ocs_region_picture picture_make(struct json_object *group, int servers)
{
	struct ocs_moe_demand *demand = group_demand(group, servers);

	return (struct ocs_region_picture){
		.caption = demand ? group_caption(group) : NULL,
		.demand = demand,
		.circuits = group_circuits(group, servers),
		.achieved = group_achieved(group, demand),
	};
}

static void picture_free(struct ocs_region_picture *picture)
{
	free((char *)picture->caption);
	ocs_moe_demand_destroy((struct ocs_moe_demand *)picture->demand);
	ocs_moe_demand_destroy((struct ocs_moe_demand *)picture->achieved);
	ocs_moe_circuits_destroy((struct ocs_moe_circuits *)picture->circuits);
}

static void group_print(struct json_object *group, int servers, FILE *out)
{
	struct ocs_region_picture picture = picture_make(group, servers);

	group_head(group, out);
	ocs_region_picture_print(&picture, ocs_region_picture_width(), ocs_ctl_colour(), out);
	foretold_print(group, out);
	picture_free(&picture);
}

/* What its changes have been. */
static void changes_print(struct json_object *one, FILE *out)
{
	fprintf(out, "%s changes (%.1f a second now), %s failed, %s refused",
		ocs_ctl_string(one, OCS_FIELD_CHANGES, "0"), number_of(one, OCS_FIELD_RATE),
		ocs_ctl_string(one, OCS_FIELD_FAILED, "0"),
		ocs_ctl_string(one, OCS_FIELD_REFUSED, "0"));
	if (number_of(one, OCS_FIELD_CHANGES) > 0)
		fprintf(out, "; circuits cut or made %s, kept %s",
			ocs_ctl_string(one, OCS_FIELD_CIRCUITS, "0"),
			ocs_ctl_string(one, OCS_FIELD_KEPT, "0"));
	if (json_object_is_type(ocs_field(one, OCS_FIELD_CHANGE_MS), json_type_double))
		fprintf(out, "; a change takes %.1f ms", number_of(one, OCS_FIELD_CHANGE_MS));
	if (number_of(one, OCS_FIELD_PROVISIONED) > 0)
		fprintf(out, "; %s on predictions, %s of them wrong",
			ocs_ctl_string(one, OCS_FIELD_PROVISIONED, "0"),
			ocs_ctl_string(one, OCS_FIELD_MISPREDICTED, "0"));
	fputc('\n', out);
}

/* Servers of a group of ONE, 0 if it says none that makes sense. */
static int servers_of(struct json_object *one)
{
	int64_t servers = ocs_field_number(one, OCS_FIELD_SERVERS, 0);

	return servers > 0 && servers <= OCS_MOE_SERVERS_MAX ? (int)servers : 0;
}

static void list_print(struct json_object *list, FILE *out)
{
	for (size_t k = 0; k < ocs_ctl_length(list); k++) {
		struct json_object *one = json_object_array_get_idx(list, k);
		struct json_object *groups = ocs_field_array(one, OCS_FIELD_GROUPS, NULL);
		int servers = servers_of(one);

		fprintf(out, "%sjob %s, %s, %s: %s servers of %s optical NICs in each group\n",
			k ? "\n" : "", ocs_ctl_string(one, OCS_FIELD_JOB, "?"),
			ocs_ctl_string(one, OCS_FIELD_SHAPE, "no shape"),
			ocs_ctl_string(one, OCS_FIELD_MODE, "?"),
			ocs_ctl_string(one, OCS_FIELD_SERVERS, "?"),
			ocs_ctl_string(one, OCS_FIELD_NICS, "?"));
		changes_print(one, out);
		for (size_t g = 0; servers && g < ocs_ctl_length(groups); g++)
			group_print(json_object_array_get_idx(groups, g), servers, out);
	}
	if (!ocs_ctl_length(list))
		fputs("no job in a region\n", out);
}

/* A picture for each group of each job, below each other, in FILE. */
static int list_svg(struct json_object *list, const char *file, struct ocs_error *err)
{
	struct ocs_region_picture *pictures = NULL;
	int n = 0, rc;
	char *svg;

	for (size_t k = 0; k < ocs_ctl_length(list); k++) {
		struct json_object *one = json_object_array_get_idx(list, k);
		struct json_object *groups = ocs_field_array(one, OCS_FIELD_GROUPS, NULL);
		int servers = servers_of(one);

		for (size_t g = 0; servers && g < ocs_ctl_length(groups); g++) {
			pictures = ocs_realloc(pictures, ((size_t)n + 1) * sizeof(*pictures));
			pictures[n++] = picture_make(json_object_array_get_idx(groups, g), servers);
		}
	}
	svg = ocs_region_picture_svg(pictures, n);
	rc = ocs_file_write(file, svg, strlen(svg), 0644, err);
	free(svg);
	for (int k = 0; k < n; k++)
		picture_free(&pictures[k]);
	free(pictures);
	return rc ? ocs_error_prefix(err, "show region") : 0;
}

static int region_draw(void *arg, FILE *out, struct ocs_error *err)
{
	const struct ocs_ctl_args *args = arg;
	const char *name = args->count > 1 ? args->operands[1] : NULL;
	struct ocs_client *client = ocs_ctl_connect(args, NULL, err);
	struct json_object *reply, *list;
	int rc = 0;

	if (!client)
		return -1;
	reply = ocs_ctl_ask(client, OCS_SHOW_REGION, name, err);
	ocs_client_close(client);
	if (!reply)
		return -1;
	list = ocs_field_array(reply, OCS_FIELD_REGION, NULL);
	if (name && !ocs_ctl_length(list))
		rc = ocs_error_set(err, OCS_ERROR,
				   "show: ocsd knows no job %s with experts in a region, or it is "
				   "not yours to see",
				   name);
	else if (args->json)
		ocs_ctl_print_reply(reply);
	else if (args->svg)
		rc = list_svg(list, args->svg, err);
	else
		list_print(list, out);
	json_object_put(reply);
	return rc;
}

int ocs_ctl_show_region(const struct ocs_ctl_args *args, struct ocs_error *err)
{
	if (args->watch)
		return ocs_ctl_watch(region_draw, (void *)args, args->watch, !args->svg, err);
	return region_draw((void *)args, stdout, err);
}
