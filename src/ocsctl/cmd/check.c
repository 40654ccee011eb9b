/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/config/config.h"
#include "src/ocsctl/ocsctl.h"
#include "src/ocsctl/cmd/config_check.h"
#include "src/util/hostlist.h"
#include "src/util/text.h"

static struct json_object *extents_text(const int *values)
{
	struct json_object *array = json_object_new_array();

	for (int i = 0; i < OCS_AXES; i++)
		json_object_array_add(array, json_object_new_int(values[i]));
	return array;
}

static void add_text(struct json_object *object, const char *name, const char *text)
{
	json_object_object_add(object, name, text ? json_object_new_string(text) : NULL);
}

static void add_list(struct json_object *object, const char *name, char *const *names, int n)
{
	char *list = ocs_hostlist_compress(names, (size_t)n);

	add_text(object, name, list);
	free(list);
}

static void add_nodes(struct json_object *object, const struct ocs_fabric *fabric,
		      const struct ocs_section *section)
{
	char **names = ocs_calloc((size_t)section->nnodes + 1, sizeof(*names));

	for (int i = 0; i < section->nnodes; i++)
		names[i] = fabric->nodes[section->first_node + i].name;
	add_list(object, "node_list", names, section->nnodes);
	free(names);
}

static struct json_object *section_json(const struct ocs_fabric *fabric,
					const struct ocs_section *section)
{
	struct json_object *out = json_object_new_object();
	struct json_object *partitions = json_object_new_array(), *ports;
	const char *switch_text, *port_text;

	json_object_object_add(out, "name", json_object_new_string(section->name));
	json_object_object_add(out, "kind",
			       json_object_new_string(ocs_section_kind_name(section->kind)));
	for (size_t i = 0; i < section->npartitions; i++)
		json_object_array_add(partitions, json_object_new_string(section->partitions[i]));
	json_object_object_add(out, "partitions", partitions);
	json_object_object_add(out, "nodes", json_object_new_int(section->nnodes));
	add_nodes(out, fabric, section);
	if (section->kind == OCS_TORUS || section->kind == OCS_STATIC) {
		json_object_object_add(out, "cubes", json_object_new_int(section->ncubes));
		add_list(out, "cube_list", section->cube_names, section->ncubes);
		json_object_object_add(
			out, "xpus",
			json_object_new_int64((int64_t)section->ncubes * section->cube_xpus));
		json_object_object_add(out, "edge", extents_text(section->edge));
		json_object_object_add(out, "tile", extents_text(section->tile));
	} else {
		json_object_object_add(out, "servers", json_object_new_int(section->nservers));
		json_object_object_add(out, "degree", json_object_new_int(section->degree));
		if (section->kind == OCS_RAILS)
			json_object_object_add(out, "ports_per_nic",
					       json_object_new_int(section->nic_ports));
	}
	if (section->kind == OCS_REGION) {
		json_object_object_add(out, "packet_nics",
				       json_object_new_int(section->packet_nics));
		json_object_object_add(out, "region_servers",
				       json_object_new_int(section->region_servers));
	}
	ocs_section_rule(section, &switch_text, &port_text);
	if (switch_text) {
		ports = json_object_new_object();
		add_text(ports, "switch", switch_text);
		add_text(ports, "port", port_text);
		json_object_object_add(out, "ports", ports);
	}
	return out;
}

static struct json_object *config_json(const struct ocs_config *config)
{
	const struct ocs_fabric *fabric = config->fabric;
	struct json_object *out = json_object_new_object();
	struct json_object *sections = json_object_new_array();
	struct json_object *switches = json_object_new_array();

	json_object_object_add(out, "valid", json_object_new_boolean(true));
	json_object_object_add(out, "source", json_object_new_string(fabric->source));
	for (int i = 0; i < fabric->nsections; i++)
		json_object_array_add(sections, section_json(fabric, &fabric->sections[i]));
	json_object_object_add(out, "sections", sections);
	for (int i = 0; i < fabric->nswitches; i++) {
		const struct ocs_switch *sw = &fabric->switches[i];
		struct json_object *one = json_object_new_object();

		add_text(one, "name", sw->name);
		add_text(one, "driver", sw->driver);
		add_text(one, "dialect", sw->dialect);
		add_text(one, "address", sw->address);
		json_object_object_add(one, "size", json_object_new_int(sw->size));
		json_object_object_add(one, "ports",
				       json_object_new_string(sw->bidi ? "bidi" : "duplex"));
		json_object_object_add(one, "used",
				       json_object_new_int(ocs_switch_used(fabric, i)));
		json_object_array_add(switches, one);
	}
	json_object_object_add(out, "switches", switches);
	if (fabric->nswitches) {
		struct json_object *ocsd = json_object_new_object();

		add_text(ocsd, "socket", config->ocsd.socket);
		add_text(ocsd, "listen", config->ocsd.listen);
		add_text(ocsd, "address", config->ocsd.address);
		add_text(ocsd, "state", config->ocsd.state);
		json_object_object_add(out, "ocsd", ocsd);
	}
	return out;
}

/* The slurm.conf to compare with: --slurm-conf, SLURM_CONF, or the one beside the site's
 * ocs.yaml.  The caller frees it; NULL where there is none. */
static char *slurm_conf_path(const struct ocs_ctl_args *args)
{
	const char *env = getenv("SLURM_CONF");
	char *yaml, *path = NULL;
	struct ocs_error ignored;

	if (args->slurm_conf)
		return ocs_strdup(args->slurm_conf);
	if (args->count || args->fabric)
		return NULL;
	if (env && *env)
		return ocs_strdup(env);
	yaml = ocs_ctl_config_path(&ignored);
	if (yaml) {
		const char *slash = strrchr(yaml, '/');

		path = ocs_asprintf("%.*sslurm.conf", slash ? (int)(slash - yaml + 1) : 0, yaml);
	}
	free(yaml);
	if (path && access(path, F_OK)) {
		free(path);
		path = NULL;
	}
	return path;
}

static void print_config(const struct ocs_ctl_args *args, const struct ocs_config *config,
			 const struct ocs_site *site)
{
	if (args->json) {
		struct json_object *json = config_json(config);

		if (site)
			json_object_object_add(json, "site", ocs_site_json(site));
		ocs_ctl_print_json(json);
		json_object_put(json);
	} else {
		char *text = ocs_config_describe(config);

		fputs(text, stdout);
		free(text);
		if (site)
			ocs_site_print(site, stdout);
	}
}

int ocs_ctl_check(const struct ocs_ctl_args *args, struct ocs_error *err)
{
	struct ocs_ctl_args local = *args;
	struct ocs_site *site = NULL;
	struct ocs_config *config;
	int errors = 0, rc = 0;
	char *path;

	if (args->count && args->fabric)
		return ocs_error_set(err, OCS_USAGE, "check: give FILE or --fabric, not both");
	if (args->count)
		local.fabric = args->operands[0];
	config = ocs_ctl_config_open(&local, err);
	if (!config) {
		char *running = local.fabric ? NULL : ocs_site_running();

		if (running)
			fprintf(stderr, "ocsctl: %s\n", running);
		free(running);
		return -1;
	}
	path = slurm_conf_path(args);
	/* A file that is not the site's says nothing about what runs there. */
	if (path || (!local.fabric && !args->slurm_conf))
		site = ocs_site_create(config);
	if (path)
		rc = ocs_site_compare(site, path, err);
	if (site && !rc && !local.fabric)
		ocs_site_ask_live(site, args);
	if (!rc)
		print_config(args, config, site);
	errors = site ? ocs_site_errors(site) : 0;
	if (!rc && errors)
		rc = ocs_error_set(err, OCS_ERROR, "%d thing%s contradict%s %s", errors,
				   errors == 1 ? "" : "s", errors == 1 ? "s" : "",
				   config->fabric->source);
	ocs_site_destroy(site);
	ocs_config_destroy(config);
	free(path);
	return rc;
}
