/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include <errno.h>
#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/protocol/client.h"
#include "src/config/config.h"
#include "src/fabric/fabric.h"
#include "src/ocsctl/ocsctl.h"
#include "src/protocol/fields.h"
#include "src/protocol/names.h"
#include "src/util/net.h"
#include "src/util/secret.h"
#include "src/util/text.h"

#define READ_LIMIT (256u << 20)

char *ocs_ctl_config_path(struct ocs_error *err)
{
	const char *env = getenv("OCS_CONF"), *conf = getenv("SLURM_CONF");
	struct ocs_text tried = { 0 };
	char *places[3] = { NULL };
	char *found = NULL;

	if (env && *env)
		return ocs_strdup(env);
	if (conf && strrchr(conf, '/'))
		places[0] = ocs_asprintf("%.*s/ocs.yaml", (int)(strrchr(conf, '/') - conf), conf);
	places[1] = ocs_strdup(OCS_SYSCONFDIR "/slurm/ocs.yaml");
	if (strcmp(places[1], "/etc/slurm/ocs.yaml") != 0)
		places[2] = ocs_strdup("/etc/slurm/ocs.yaml");
	for (size_t i = 0; i < 3; i++) {
		if (!places[i])
			continue;
		if (!found && !access(places[i], F_OK))
			found = ocs_strdup(places[i]);
		ocs_text_add(&tried, "%s%s", tried.length ? ", " : "", places[i]);
		free(places[i]);
	}
	if (!found)
		ocs_error_set(err, OCS_USAGE,
			      "found no ocs.yaml (looked for %s); give --fabric or"
			      " set OCS_CONF",
			      tried.data);
	ocs_text_free(&tried);
	return found;
}

struct ocs_config *ocs_ctl_config_open(const struct ocs_ctl_args *args, struct ocs_error *err)
{
	struct ocs_config *config;
	char *path, *relative = NULL;

	if (args->fabric)
		return ocs_config_open(args->fabric, err);
	path = ocs_ctl_config_path(err);
	if (!path)
		return NULL;
	/* What the site's files are called is not ours to judge: a name without a
	 * slash must not be taken for a synthetic line. */
	if (!strchr(path, '/'))
		relative = ocs_asprintf("./%s", path);
	config = ocs_config_open(relative ? relative : path, err);
	free(relative);
	free(path);
	return config;
}

struct ocs_fabric *ocs_ctl_fabric_open(const struct ocs_ctl_args *args, struct ocs_error *err)
{
	return ocs_config_take_fabric(ocs_ctl_config_open(args, err));
}

static bool on_cubes(const struct ocs_section *section)
{
	return section->kind == OCS_TORUS || section->kind == OCS_STATIC;
}

int ocs_ctl_no_section(const struct ocs_fabric *fabric, const struct ocs_ctl_args *args,
		       struct ocs_error *err)
{
	char *names = ocs_fabric_section_names(fabric);

	ocs_error_set(err, OCS_USAGE, "%s has no section '%s'; it has: %s", fabric->source,
		      args->section, names);
	free(names);
	return -1;
}

const struct ocs_section *ocs_ctl_section(const struct ocs_fabric *fabric,
					  const struct ocs_ctl_args *args, struct ocs_error *err)
{
	const struct ocs_section *found = NULL;
	struct ocs_text names = { 0 };
	int count = 0;

	if (args->section) {
		found = ocs_fabric_section_named(fabric, args->section);
		if (found && on_cubes(found))
			return found;
		if (found)
			ocs_error_set(err, OCS_USAGE,
				      "section %s of %s has no cubes: a shape is"
				      " placed on a torus or static section",
				      args->section, fabric->source);
		else
			ocs_ctl_no_section(fabric, args, err);
		return NULL;
	}
	for (int i = 0; i < fabric->nsections; i++) {
		if (!on_cubes(&fabric->sections[i]))
			continue;
		found = &fabric->sections[i];
		ocs_text_add(&names, "%s%s", count++ ? ", " : "", found->name);
	}
	if (count > 1) {
		ocs_error_set(err, OCS_USAGE,
			      "%s has several sections with cubes; choose one with"
			      " --section: %s",
			      fabric->source, names.data);
		found = NULL;
	} else if (!count) {
		ocs_error_set(err, OCS_USAGE,
			      "%s has no torus or static section to place a shape"
			      " on",
			      fabric->source);
	}
	ocs_text_free(&names);
	return found;
}

const char *ocs_ctl_address(const struct ocs_ctl_args *args, const struct ocs_config *config)
{
	if (args->ocsd)
		return args->ocsd;
	if (config->ocsd.socket) {
		const char *path = config->ocsd.socket;

		if (!strncmp(path, "unix:", 5))
			path += 5;
		if (!access(path, F_OK))
			return config->ocsd.socket;
	}
	return config->ocsd.address;
}

struct ocs_client *ocs_ctl_connect(const struct ocs_ctl_args *args, const struct ocs_config *config,
				   struct ocs_error *err)
{
	struct ocs_config *opened = NULL;
	struct ocs_client *client = NULL;
	struct ocs_error ignored;
	const char *address;

	if (!config && !args->ocsd) {
		config = opened = ocs_ctl_config_open(args, err);
		if (!config)
			return NULL;
	}
	address = ocs_ctl_address(args, config);
	/* ocs.yaml says where the key to a remote ocsd is, and which account any ocsd has. */
	if (!config)
		config = opened = ocs_ctl_config_open(args, &ignored);
	if (!address)
		ocs_error_set(err, OCS_USAGE, "%s does not say where ocsd answers; give --ocsd",
			      config->fabric->source);
	else if (!ocs_net_address_check(address, err))
		client =
			ocs_client_open(address, config ? config->ocsd.key : NULL,
					config ? config->ocsd.user : NULL, OCS_CTL_CONNECT_MS, err);
	ocs_config_destroy(opened);
	return client;
}

static char *read_stdin(struct ocs_error *err)
{
	char *data = NULL;
	size_t used = 0, size = 0;

	for (;;) {
		size_t n;

		if (size - used < 2) {
			size = size ? 2 * size : 65536;
			data = ocs_realloc(data, size);
		}
		n = fread(data + used, 1, size - used - 1, stdin);
		used += n;
		if (!n)
			break;
		if (used > READ_LIMIT)
			break;
	}
	data[used] = '\0';
	if (ferror(stdin) || used > READ_LIMIT) {
		ocs_error_set(err, OCS_ERROR, "standard input: %s",
			      ferror(stdin) ? strerror(errno) : "larger than 256 MiB");
		free(data);
		return NULL;
	}
	return data;
}

char *ocs_ctl_read(const char *path, struct ocs_error *err)
{
	if (!strcmp(path, "-"))
		return read_stdin(err);
	return ocs_file_read(path, READ_LIMIT, NULL, err);
}

struct json_object *ocs_ctl_read_json(const char *path, struct ocs_error *err)
{
	const char *name = strcmp(path, "-") ? path : "standard input";
	char *text = ocs_ctl_read(path, err);
	enum json_tokener_error fault;
	struct json_object *json;
	struct json_tokener *tokener;

	if (!text)
		return NULL;
	tokener = json_tokener_new();
	json_tokener_set_flags(tokener, JSON_TOKENER_STRICT);
	json = json_tokener_parse_ex(tokener, text, strlen(text) + 1);
	fault = json_tokener_get_error(tokener);
	if (fault != json_tokener_success || !json) {
		ocs_error_set(err, OCS_USAGE, "%s is not JSON: %s at byte %zu", name,
			      fault == json_tokener_continue ? "it ends too early" :
							       json_tokener_error_desc(fault),
			      json_tokener_get_parse_end(tokener));
		json_object_put(json);
		json = NULL;
	}
	json_tokener_free(tokener);
	free(text);
	return json;
}

#define ID_BYTES 16

int ocs_ctl_transaction(const struct ocs_ctl_args *args, struct json_object *request,
			struct ocs_error *err)
{
	char id[2 * ID_BYTES + 1];

	if (args->expect >= 0)
		ocs_field_add_number(request, OCS_FIELD_EXPECT, args->expect);
	if (args->expect >= 0 && !args->transaction && ocs_random_hex(id, ID_BYTES, err))
		return -1;
	if (args->expect >= 0 || args->transaction)
		ocs_field_add_text(request, OCS_FIELD_TRANSACTION,
				   args->transaction ? args->transaction : id);
	return 0;
}
