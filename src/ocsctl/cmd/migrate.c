/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* From topology.conf to a first ocs.yaml: a block, or a leaf switch of a tree, whose nodes
 * make up a cube becomes one.  The node order is taken over: it must be the order of the
 * tiles, which only the people who laid the cables know. */

#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

#include "src/config/config.h"
#include "src/fabric/fabric.h"
#include "src/ocsctl/ocsctl.h"
#include "src/ocsctl/slurm/slurm_conf.h"
#include "src/util/hostlist.h"
#include "src/util/text.h"

#define NODES_MAX (1 << 20)

/* One cube to be. */
struct group {
	const struct ocs_slurm_line *line;
	const char *name;
	char **nodes;
	int count;
};

struct migration {
	int edge, tile[OCS_AXES];
	struct group *groups;
	size_t count;
};

/* "AxBxC" into three numbers of 1 to 16. */
static int extents_parse(const char *option, const char *text, int values[OCS_AXES],
			 struct ocs_error *err)
{
	char *copy = ocs_strdup(text), *save = NULL, *word = strtok_r(copy, "x", &save);
	int n = 0;

	for (; word; word = strtok_r(NULL, "x", &save), n++) {
		long value;

		if (n == OCS_AXES || ocs_number_parse(word, 1, OCS_EDGE_MAX, &value)) {
			n = -1;
			break;
		}
		values[n] = value;
	}
	free(copy);
	if (n == OCS_AXES)
		return 0;
	return ocs_error_set(err, OCS_USAGE, "migrate: --%s %s is not three numbers such as 4x4x4",
			     option, text);
}

static int sizes_read(const struct ocs_ctl_args *args, struct migration *to, struct ocs_error *err)
{
	int edge[OCS_AXES];

	if (!args->cube)
		return ocs_error_set(err, OCS_USAGE,
				     "migrate: say how many XPUs a cube has:"
				     " --cube 4x4x4");
	if (extents_parse("cube", args->cube, edge, err) ||
	    extents_parse("tile", args->tile ? args->tile : "1x1x1", to->tile, err))
		return -1;
	if (edge[0] != edge[1] || edge[1] != edge[2])
		return ocs_error_set(err, OCS_USAGE,
				     "migrate: --cube %s has three different edges;"
				     " the edges of a cube are equal",
				     args->cube);
	to->edge = edge[0];
	for (int i = 0; i < OCS_AXES; i++)
		if (to->edge % to->tile[i])
			return ocs_error_set(err, OCS_USAGE,
					     "migrate: tiles of %s do not fill a"
					     " cube of %s",
					     args->tile, args->cube);
	return 0;
}

static int add_group(struct migration *to, const struct ocs_slurm_line *line, const char *name,
		     struct ocs_error *err)
{
	int wanted = to->edge * to->edge * to->edge / (to->tile[0] * to->tile[1] * to->tile[2]);
	struct group group = { .line = line, .name = name };

	group.count = ocs_hostlist_expand(ocs_slurm_line_value(line, "Nodes"), NODES_MAX,
					  &group.nodes, err);
	if (group.count < 0)
		return ocs_error_prefix(err, "%s:%d", line->file, line->number);
	if (group.count != wanted) {
		ocs_names_free(group.nodes, group.count);
		return ocs_error_set(err, OCS_USAGE,
				     "%s:%d: %s has %d nodes; a cube of %d has %d of"
				     " %dx%dx%d XPUs: give --cube and --tile as they are, or move"
				     " these nodes out of the file",
				     line->file, line->number, name, group.count,
				     to->edge * to->edge * to->edge, wanted, to->tile[0],
				     to->tile[1], to->tile[2]);
	}
	to->groups = ocs_realloc(to->groups, (to->count + 1) * sizeof(group));
	to->groups[to->count++] = group;
	return 0;
}

static int nodes_gather(const struct ocs_slurm_conf *conf, struct migration *to,
			struct ocs_error *err)
{
	for (size_t i = 0; i < conf->count; i++) {
		const struct ocs_slurm_line *line = &conf->lines[i];
		const char *name = ocs_slurm_line_value(line, "BlockName");

		if (!name)
			name = ocs_slurm_line_value(line, "SwitchName");
		if (name && ocs_slurm_line_value(line, "Nodes") && add_group(to, line, name, err))
			return -1;
	}
	if (!to->count)
		return ocs_error_set(err, OCS_USAGE,
				     "%s names no nodes: wanted lines such as"
				     " BlockName=b0 Nodes=n[0-15] or SwitchName=s0 Nodes=n[0-15]",
				     conf->path);
	return 0;
}

static char *ocs_yaml(const struct ocs_slurm_conf *conf, const struct migration *to)
{
	struct ocs_text text = { 0 };
	int last = to->edge - 1, size = 16;

	while (size < (int)(2 * to->count))
		size *= 2;
	ocs_text_add(&text,
		     "# Made from %s by 'ocsctl migrate'.  What to look at before it is used:\n"
		     "#  - the nodes of a cube must stand in the order of its tiles, z fastest;\n"
		     "#  - ocsd: nodes on other machines need listen and address;\n"
		     "#  - addresses, dialect, credentials and size of the switches;\n"
		     "#  - the port rule: which port of which switch a face position leads to.\n"
		     "# Then: ocsctl check FILE, and ocs.yaml(5).\n\n"
		     "version: 1\n\n"
		     "ocsd:\n"
		     "  socket: unix:/run/ocsd/ocsd.sock\n"
		     "  state: /var/lib/ocsd\n"
		     "  admins: [slurm]\n\n"
		     "switches:\n"
		     "  - name: ocs-[x,y,z]-[0-%d]-[0-%d]\n"
		     "    driver: tl1\n"
		     "    dialect: polatis\n"
		     "    address: \"{name}:3082\"\n"
		     "    credentials: /etc/slurm/ocs.cred\n"
		     "    size: %d\n"
		     "    ports: duplex\n\n"
		     "fabrics:\n"
		     "  - name: pod\n"
		     "    kind: torus\n"
		     "    cube: %dx%dx%d\n"
		     "    tile: %dx%dx%d\n"
		     "    cubes:\n",
		     conf->path, last, last, size, to->edge, to->edge, to->edge, to->tile[0],
		     to->tile[1], to->tile[2]);
	for (size_t i = 0; i < to->count; i++) {
		char *list = ocs_hostlist_compress(to->groups[i].nodes, to->groups[i].count);

		ocs_text_add(&text, "      - {name: %s, nodes: \"%s\"}\n", to->groups[i].name,
			     list);
		free(list);
	}
	ocs_text_add(&text, "    ports:\n"
			    "      switch: ocs-{dim}-{a}-{b}\n"
			    "      port: 2*cube + sign + 1\n");
	return ocs_text_take(&text);
}

/* What is printed is a file that ocs.yaml's own reader takes, or nothing. */
static int yaml_print(const struct ocs_ctl_args *args, const char *yaml, struct ocs_error *err)
{
	struct ocs_config *config = ocs_config_parse(yaml, strlen(yaml), "ocs.yaml", err);

	if (!config)
		return ocs_error_prefix(err, "what would be written is refused");
	ocs_config_destroy(config);
	if (args->json) {
		struct json_object *json = json_object_new_object();

		json_object_object_add(json, "ocs.yaml", json_object_new_string(yaml));
		ocs_ctl_print_json(json);
		json_object_put(json);
	} else {
		fputs(yaml, stdout);
	}
	return 0;
}

int ocs_ctl_migrate(const struct ocs_ctl_args *args, struct ocs_error *err)
{
	struct migration to = { 0 };
	struct ocs_slurm_conf *conf;
	int rc;

	if (sizes_read(args, &to, err))
		return -1;
	conf = ocs_slurm_conf_read(args->operands[0], err);
	if (!conf)
		return -1;
	rc = nodes_gather(conf, &to, err);
	if (!rc) {
		char *yaml = ocs_yaml(conf, &to);

		rc = yaml_print(args, yaml, err);
		free(yaml);
	}
	for (size_t i = 0; i < to.count; i++)
		ocs_names_free(to.groups[i].nodes, to.groups[i].count);
	free(to.groups);
	ocs_slurm_conf_destroy(conf);
	return rc;
}
