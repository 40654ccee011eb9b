/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/ocsctl/cmd/place_region.h"

#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/config/config.h"
#include "src/fold/shape.h"
#include "src/ocsctl/ocsctl.h"
#include "src/ocsctl/slurm/state.h"
#include "src/place/region_groups.h"
#include "src/protocol/client.h"
#include "src/util/hostlist.h"
#include "src/util/text.h"

#define BUSY_MAX (16 << 20)

const struct ocs_section *ocs_ctl_region_section(const struct ocs_fabric *fabric,
						 const struct ocs_ctl_args *args)
{
	const struct ocs_section *found = NULL;

	if (args->section) {
		found = ocs_fabric_section_named(fabric, args->section);
		return found && found->kind == OCS_REGION ? found : NULL;
	}
	for (int i = 0; i < fabric->nsections; i++) {
		if (fabric->sections[i].ncubes || (fabric->sections[i].kind == OCS_REGION && found))
			return NULL;
		if (fabric->sections[i].kind == OCS_REGION)
			found = &fabric->sections[i];
	}
	return found;
}

/* The nodes of a line of --busy are not idle. */
static int line_take(const struct ocs_fabric *fabric, const struct ocs_section *section,
		     const char *line, bool *idle, struct ocs_error *err)
{
	char **names;
	int count, rc = 0;

	if (!line[strspn(line, " \t\r")])
		return 0;
	count = ocs_hostlist_expand(line, (size_t)section->nservers, &names, err);
	if (count < 0)
		return -1;
	for (int i = 0; i < count && rc == 0; i++) {
		const struct ocs_node *node = ocs_fabric_node(fabric, names[i]);

		if (!node || node->section != section->index)
			rc = ocs_error_set(err, OCS_USAGE, "section %s has no node %s",
					   section->name, names[i]);
		else
			idle[node->server] = false;
	}
	ocs_names_free(names, (size_t)count);
	return rc;
}

static int busy_read(const struct ocs_fabric *fabric, const struct ocs_section *section,
		     const char *path, bool *idle, struct ocs_error *err)
{
	char *text = ocs_file_read(path, BUSY_MAX, NULL, err), *save = NULL;
	int rc = text ? 0 : -1;

	for (char *line = text ? strtok_r(text, "\n", &save) : NULL; line && rc == 0;
	     line = strtok_r(NULL, "\n", &save)) {
		line[strcspn(line, "#")] = '\0';
		rc = line_take(fabric, section, line, idle, err);
	}
	if (text && rc < 0)
		ocs_error_prefix(err, "%s", path);
	free(text);
	return rc;
}

/* What ocsd and Slurm say of the nodes. */
static int idle_ask(const struct ocs_ctl_args *args, const struct ocs_config *config,
		    const struct ocs_section *section, bool *idle, struct ocs_error *err)
{
	struct ocs_client *client = ocs_ctl_connect(args, config, err);
	struct ocs_ctl_state state;
	int rc;

	if (!client)
		return -1;
	rc = ocs_ctl_state_read(client, &state, err);
	ocs_client_close(client);
	if (rc < 0)
		return -1;
	for (int s = 0; s < section->nservers; s++) {
		const char *name = config->fabric->nodes[section->first_node + s].name;

		idle[s] = strcmp(ocs_ctl_state_node(&state, name), "idle") == 0 &&
			  !ocs_ctl_state_job(&state, name) &&
			  !ocs_ctl_state_drained(&state, config->fabric, section->first_node + s);
	}
	ocs_ctl_state_notes(&state, "ocsctl: ", stderr);
	ocs_ctl_state_free(&state);
	return 0;
}

static int idle_find(const struct ocs_ctl_args *args, const struct ocs_config *config,
		     const struct ocs_section *section, bool *idle, struct ocs_error *err)
{
	for (int s = 0; s < section->nservers; s++)
		idle[s] = true;
	if (args->busy)
		return busy_read(config->fabric, section, args->busy, idle, err);
	if (args->fabric && !args->ocsd)
		return 0;
	return idle_ask(args, config, section, idle, err);
}

/* The host list of COUNT SERVERS; the caller frees it. */
static char *servers_list(const struct ocs_fabric *fabric, const struct ocs_section *section,
			  const int *servers, int count)
{
	char **names = ocs_calloc((size_t)count + 1, sizeof(*names)), *list;

	for (int i = 0; i < count; i++)
		names[i] = fabric->nodes[section->first_node + servers[i]].name;
	list = ocs_hostlist_compress(names, (size_t)count);
	free(names);
	return list;
}

static void groups_print(const struct ocs_fabric *fabric, const struct ocs_section *section,
			 const struct ocs_shape *shape, const struct ocs_region_layout *layout,
			 const int *servers)
{
	int size = layout->servers;
	char text[OCS_SHAPE_TEXT];

	printf("%s on %s: %ld XPUs on %d nodes, %d group%s of %d, %d optical and %d packet NICs each\n",
	       ocs_shape_named_format(shape, text), section->name, shape->xpus,
	       layout->groups * size, layout->groups, layout->groups == 1 ? "" : "s", size,
	       section->degree, section->packet_nics);
	for (int g = 0; g < layout->groups; g++) {
		char *list = servers_list(fabric, section, servers + g * size, size);

		printf("group %d: %s (%s)\n", g, list,
		       ocs_fabric_node_unit(fabric, section->first_node + servers[g * size]));
		free(list);
	}
}

static void groups_json(const struct ocs_fabric *fabric, const struct ocs_section *section,
			const struct ocs_shape *shape, const struct ocs_region_layout *layout,
			const int *servers)
{
	struct json_object *json = json_object_new_object(), *groups = json_object_new_array();
	char text[OCS_SHAPE_TEXT];

	json_object_object_add(json, "shape",
			       json_object_new_string(ocs_shape_named_format(shape, text)));
	json_object_object_add(json, "section", json_object_new_string(section->name));
	json_object_object_add(json, "xpus", json_object_new_int64(shape->xpus));
	json_object_object_add(json, "nodes",
			       json_object_new_int(layout->groups * layout->servers));
	for (int g = 0; g < layout->groups; g++) {
		struct json_object *group = json_object_new_object();
		struct json_object *list = json_object_new_array();
		const int *first = servers + g * layout->servers;

		json_object_object_add(group, "region",
				       json_object_new_int(ocs_section_region(section, *first)));
		for (int i = 0; i < layout->servers; i++) {
			int node = section->first_node + first[i];

			json_object_array_add(list,
					      json_object_new_string(fabric->nodes[node].name));
		}
		json_object_object_add(group, "nodes", list);
		json_object_array_add(groups, group);
	}
	json_object_object_add(json, "groups", groups);
	ocs_ctl_print_json(json);
	json_object_put(json);
}

int ocs_ctl_place_region(const struct ocs_ctl_args *args, const struct ocs_config *config,
			 const struct ocs_section *section, const struct ocs_shape *shape,
			 struct ocs_error *err)
{
	int *servers = ocs_calloc((size_t)section->nservers + 1, sizeof(*servers)), count = -1;
	bool *idle = ocs_calloc((size_t)section->nservers + 1, sizeof(*idle));
	struct ocs_region_layout layout;

	if (args->compact || args->svg)
		ocs_error_set(
			err, OCS_USAGE,
			"place: groups in regions have no picture and no compact form; leave --compact and --svg out");
	else if (ocs_region_layout_make(section, shape, &layout, err) == 0 &&
		 idle_find(args, config, section, idle, err) == 0)
		count = ocs_region_place(section, &layout, idle, NULL, servers, err);
	if (count > 0 && args->json) {
		groups_json(config->fabric, section, shape, &layout, servers);
	} else if (count > 0 && args->nodes) {
		char *list = servers_list(config->fabric, section, servers, count);

		puts(list);
		free(list);
	} else if (count > 0) {
		groups_print(config->fabric, section, shape, &layout, servers);
	}
	free(servers);
	free(idle);
	return count < 0 ? -1 : 0;
}
