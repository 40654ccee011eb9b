/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* ocs.yaml, top level. */

#include "src/config/config.h"

#include <stdlib.h>
#include <string.h>

#include "src/config/load.h"
#include "src/util/error.h"
#include "src/util/text.h"

#define FILE_MAX (64u << 20)

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

enum { VERSION, OCSD, LIMITS, TIMEOUTS, POLICIES, NCCL, SWITCHES, FABRICS };

static int document_load(struct ocs_loader *loader, yaml_node_t *root)
{
	struct ocs_field fields[] = {
		[VERSION] = { .name = "version", .required = true },
		[OCSD] = { .name = "ocsd" },
		[LIMITS] = { .name = "limits" },
		[TIMEOUTS] = { .name = "timeouts" },
		[POLICIES] = { .name = "policies" },
		[NCCL] = { .name = "nccl" },
		[SWITCHES] = { .name = "switches" },
		[FABRICS] = { .name = "fabrics", .required = true },
	};
	/* Switches before fabrics: port rules name them. */
	static int (*const parts[])(struct ocs_loader *, yaml_node_t *) = {
		[OCSD] = ocs_load_ocsd,		[LIMITS] = ocs_load_limits,
		[TIMEOUTS] = ocs_load_timeouts, [POLICIES] = ocs_load_policies,
		[NCCL] = ocs_load_nccl,		[SWITCHES] = ocs_load_switches,
		[FABRICS] = ocs_load_sections,
	};
	int version;

	if (ocs_yaml_fields(&loader->yaml, root, "ocs.yaml", fields, COUNT(fields)) < 0 ||
	    ocs_yaml_number(&loader->yaml, fields[VERSION].node, "version", 1, 1, &version) < 0)
		return -1;
	for (size_t i = OCSD; i < COUNT(parts); i++)
		if (fields[i].node && parts[i](loader, fields[i].node) < 0)
			return -1;
	return 0;
}

struct ocs_config *ocs_config_parse(const char *text, size_t length, const char *source,
				    struct ocs_error *err)
{
	struct ocs_loader loader = { 0 };
	int rc;

	if (ocs_yaml_open(&loader.yaml, text, length, source, err) < 0)
		return NULL;
	loader.config = ocs_config_new(source);
	loader.config->text_digest =
		ocs_config_text_digest(text, ocs_config_text_length(text, length));
	loader.fabric = loader.config->fabric;
	loader.cubes = ocs_names_create(0);
	loader.partitions = ocs_names_create(0);
	loader.addresses = ocs_names_create(0);
	loader.fabric->index->nodes = ocs_names_create(0);
	loader.fabric->index->switches = ocs_names_create(0);
	rc = document_load(&loader, yaml_document_get_root_node(&loader.yaml.document));
	ocs_names_destroy(loader.cubes);
	ocs_names_destroy(loader.partitions);
	ocs_names_destroy(loader.addresses);
	ocs_yaml_close(&loader.yaml);
	if (rc == 0)
		return loader.config;
	ocs_config_destroy(loader.config);
	return NULL;
}

static bool is_path(const char *spec)
{
	size_t length = strlen(spec);

	return strchr(spec, '/') || (length > 5 && strcmp(spec + length - 5, ".yaml") == 0) ||
	       (length > 4 && strcmp(spec + length - 4, ".yml") == 0);
}

struct ocs_config *ocs_config_open(const char *spec, struct ocs_error *err)
{
	struct ocs_config *config;
	size_t length;
	char *text;

	if (!is_path(spec))
		return ocs_synthetic_open(spec, err);
	text = ocs_file_read(spec, FILE_MAX, &length, err);
	if (!text)
		return NULL;
	config = ocs_config_parse(text, length, spec, err);
	free(text);
	return config;
}
