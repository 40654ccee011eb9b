/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* One-line fabrics for tests and what-if questions. */

#include <stdlib.h>
#include <string.h>

#include "src/config/load.h"
#include "src/util/error.h"
#include "src/util/text.h"

#define FORMS                                                                   \
	"torus cubes:4x4x4 cube:4x4x4 tile:2x2x1, static:16x16x16 tile:1x1x1, " \
	"direct servers:12 degree:4, rails servers:16 rails:8 ports:2 or "      \
	"region servers:16 degree:6 packets:2 xpus:8 region:8"

/* The words of a line, and which of them were used. */
struct line {
	char *text;
	char *key[8];
	char *value[8]; /* "" where the word has no colon */
	bool used[8];
	int count;
	struct ocs_error *err;
};

static int line_split(struct line *line, const char *spec)
{
	char *rest = NULL;

	line->text = ocs_strdup(spec);
	for (char *word = strtok_r(line->text, " \t", &rest); word;
	     word = strtok_r(NULL, " \t", &rest)) {
		char *colon = strchr(word, ':');

		if (line->count == 8)
			return ocs_error_set(line->err, OCS_USAGE,
					     "the fabric \"%.200s\" has too many words; write %s",
					     spec, FORMS);
		line->key[line->count] = word;
		line->value[line->count] = colon ? colon + 1 : word + strlen(word);
		if (colon)
			*colon = '\0';
		/* The kind may be a key as well: "rails servers:16 rails:8". */
		for (int i = 1; i < line->count; i++)
			if (strcmp(line->key[i], word) == 0)
				return ocs_error_set(
					line->err, OCS_USAGE,
					"\"%.100s\" stands twice in the fabric \"%.200s\"", word,
					spec);
		line->count++;
	}
	if (!line->count)
		return ocs_error_set(line->err, OCS_USAGE,
				     "the description of the fabric is empty; write %s", FORMS);
	line->used[0] = true;
	return 0;
}

static const char *line_get(struct line *line, const char *key)
{
	for (int i = 1; i < line->count; i++) {
		if (strcmp(line->key[i], key) == 0) {
			line->used[i] = true;
			return line->value[i];
		}
	}
	return NULL;
}

static int line_all_used(const struct line *line)
{
	for (int i = 0; i < line->count; i++)
		if (!line->used[i])
			return ocs_error_set(line->err, OCS_USAGE,
					     "\"%.100s\" is not a word of a %s fabric; write %s",
					     line->key[i], line->key[0], FORMS);
	return 0;
}

int ocs_extents_parse(const char *text, int max, int extents[OCS_AXES])
{
	char *copy = ocs_strdup(text), *at = copy;
	int rc = 0;

	for (int i = 0; i < OCS_AXES && rc == 0; i++) {
		char *end = strchr(at, 'x');
		long value;

		if (!end != (i == OCS_AXES - 1)) {
			rc = -1;
			break;
		}
		if (end)
			*end = '\0';
		rc = ocs_number_parse(at, 1, max, &value);
		extents[i] = rc == 0 ? (int)value : 0;
		at = end ? end + 1 : at;
	}
	free(copy);
	return rc;
}

/* Reads three extents of at most MAX, or FALLBACK where the word is missing. */
static int line_extents(struct line *line, const char *key, const char *fallback, int max,
			int extents[OCS_AXES])
{
	const char *text = line_get(line, key);

	if (!text)
		text = fallback;
	if (!text)
		return ocs_error_set(line->err, OCS_USAGE, "the fabric lacks %s:AxBxC; write %s",
				     key, FORMS);
	if (ocs_extents_parse(text, max, extents) < 0)
		return ocs_error_set(
			line->err, OCS_USAGE,
			"%s:%.60s is wrong: three extents of 1 to %d are needed, like %s:4x4x4",
			key, text, max, key);
	return 0;
}

static int line_number(struct line *line, const char *key, int max, int fallback, int *number)
{
	const char *text = line_get(line, key);
	long value = fallback;

	if (!text && fallback < 0)
		return ocs_error_set(line->err, OCS_USAGE, "the fabric lacks %s:N; write %s", key,
				     FORMS);
	if (text && ocs_number_parse(text, 1, max, &value) < 0)
		return ocs_error_set(line->err, OCS_USAGE,
				     "%s:%.60s is wrong: a number of 1 to %d is needed", key, text,
				     max);
	*number = (int)value;
	return 0;
}

/* Nodes n0, n1 ... and cubes c0, c1 ... of the last section. */
static int names_fill(struct ocs_fabric *fabric, int count, struct ocs_error *err)
{
	struct ocs_section *section = &fabric->sections[0];
	char **names;

	if (count > OCS_NODES_MAX)
		return ocs_error_set(err, OCS_USAGE,
				     "the fabric has %d nodes; at most %d are supported", count,
				     OCS_NODES_MAX);
	names = ocs_calloc((size_t)count, sizeof(*names));
	for (int i = 0; i < count; i++)
		names[i] = ocs_asprintf("n%d", i);
	ocs_fabric_nodes_add(fabric, section, names, count);
	free(names);
	ocs_fabric_nodes_index(fabric);
	if (!section->ncubes)
		return 0;
	section->cube_names = ocs_calloc((size_t)section->ncubes, sizeof(char *));
	section->cube_index = ocs_names_create((size_t)section->ncubes);
	for (int i = 0; i < section->ncubes; i++) {
		section->cube_names[i] = ocs_asprintf("c%d", i);
		ocs_names_add(section->cube_index, section->cube_names[i], i);
	}
	return 0;
}

/* The count of cubes: "cubes:64" or an arrangement "cubes:4x4x4". */
static int line_cubes(struct line *line, int *count)
{
	const char *text = line_get(line, "cubes");
	int extents[OCS_AXES];
	long cubes;

	if (!text)
		return ocs_error_set(line->err, OCS_USAGE, "the fabric lacks cubes:AxBxC; write %s",
				     FORMS);
	if (ocs_number_parse(text, 1, OCS_CUBES_MAX, &cubes) < 0) {
		if (ocs_extents_parse(text, OCS_CUBES_MAX, extents) < 0)
			return ocs_error_set(
				line->err, OCS_USAGE,
				"cubes:%.60s is wrong: write a count of 1 to %d or an arrangement like 4x4x4",
				text, OCS_CUBES_MAX);
		cubes = (long)extents[0] * extents[1];
		cubes = cubes > OCS_CUBES_MAX ? cubes : cubes * extents[2];
		if (cubes > OCS_CUBES_MAX)
			return ocs_error_set(
				line->err, OCS_USAGE,
				"cubes:%.60s are more than the %d cubes that are supported", text,
				OCS_CUBES_MAX);
	}
	*count = (int)cubes;
	return 0;
}

static int torus_build(struct ocs_fabric *fabric, struct line *line)
{
	bool fixed = strcmp(line->key[0], "static") == 0;
	const char *threading = fixed ? NULL : line_get(line, "threading");
	struct ocs_section *section =
		ocs_fabric_section_add(fabric, line->key[0], fixed ? OCS_STATIC : OCS_TORUS);
	int *edge = section->edge;

	section->ncubes = 1;
	if (fixed) {
		if (ocs_extents_parse(line->value[0], OCS_EDGE_MAX, edge) < 0)
			return ocs_error_set(
				line->err, OCS_USAGE,
				"static:%.60s is wrong: three extents of 1 to %d are needed, like static:16x16x16",
				line->value[0], OCS_EDGE_MAX);
	} else if (line_cubes(line, &section->ncubes) < 0 ||
		   line_extents(line, "cube", "4x4x4", OCS_CUBE_EDGE_MAX, edge) < 0) {
		return -1;
	}
	if (line_extents(line, "tile", "1x1x1", OCS_EDGE_MAX, section->tile) < 0 ||
	    line_all_used(line) < 0)
		return -1;
	if (threading && *threading)
		return ocs_error_set(line->err, OCS_USAGE, "\"threading\" takes no value");
	section->threading = threading != NULL;
	if (!fixed && (edge[0] != edge[1] || edge[1] != edge[2]))
		return ocs_error_set(line->err, OCS_USAGE,
				     "cube:%dx%dx%d is not a cube: the three extents must be equal",
				     edge[0], edge[1], edge[2]);
	if (!ocs_section_tile_divides(section))
		return ocs_error_set(line->err, OCS_USAGE,
				     "the tile %dx%dx%d does not divide %dx%dx%d", section->tile[0],
				     section->tile[1], section->tile[2], edge[0], edge[1], edge[2]);
	ocs_section_geometry(section);
	return names_fill(fabric, section->ncubes * section->cube_nodes, line->err);
}

static int servers_build(struct ocs_fabric *fabric, struct line *line)
{
	bool rails = strcmp(line->key[0], "rails") == 0;
	struct ocs_section *section =
		ocs_fabric_section_add(fabric, line->key[0], rails ? OCS_RAILS : OCS_DIRECT);
	const char *directed = rails ? NULL : line_get(line, "directed");

	if (line_number(line, "servers", OCS_NODES_MAX, -1, &section->nservers) < 0 ||
	    line_number(line, rails ? "rails" : "degree", OCS_DEGREE_MAX, -1, &section->degree) <
		    0 ||
	    line_number(line, "xpus", OCS_XPUS_MAX, 0, &section->server_xpus) < 0 ||
	    (rails && line_number(line, "ports", OCS_NIC_PORTS_MAX, 1, &section->nic_ports) < 0) ||
	    line_all_used(line) < 0)
		return -1;
	if (directed && *directed)
		return ocs_error_set(line->err, OCS_USAGE, "\"directed\" takes no value");
	section->directed = directed != NULL;
	return names_fill(fabric, section->nservers, line->err);
}

static int regions_build(struct ocs_fabric *fabric, struct line *line)
{
	struct ocs_section *section = ocs_fabric_section_add(fabric, line->key[0], OCS_REGION);
	int rest;

	if (line_number(line, "servers", OCS_NODES_MAX, -1, &section->nservers) < 0 ||
	    line_number(line, "degree", OCS_DEGREE_MAX, -1, &section->degree) < 0 ||
	    line_number(line, "xpus", OCS_XPUS_MAX, 0, &section->server_xpus) < 0)
		return -1;
	rest = section->server_xpus - section->degree;
	if (line_number(line, "packets", OCS_DEGREE_MAX, rest > 0 ? rest : 1,
			&section->packet_nics) < 0 ||
	    line_number(line, "region", section->nservers, section->nservers,
			&section->region_servers) < 0 ||
	    line_all_used(line) < 0)
		return -1;
	ocs_section_regions_set(section);
	return names_fill(fabric, section->nservers, line->err);
}

struct ocs_config *ocs_synthetic_open(const char *spec, struct ocs_error *err)
{
	struct ocs_config *config = ocs_config_new(spec);
	struct ocs_fabric *fabric = config->fabric;
	struct line line = { .err = err };
	int rc = line_split(&line, spec);

	if (rc == 0) {
		const char *kind = line.key[0];

		if (strcmp(kind, "static") == 0 || (strcmp(kind, "torus") == 0 && !*line.value[0]))
			rc = torus_build(fabric, &line);
		else if ((strcmp(kind, "direct") == 0 || strcmp(kind, "rails") == 0) &&
			 !*line.value[0])
			rc = servers_build(fabric, &line);
		else if (strcmp(kind, "region") == 0 && !*line.value[0])
			rc = regions_build(fabric, &line);
		else
			rc = ocs_error_set(
				err, OCS_USAGE,
				"\"%.200s\" is not a fabric; give the path of an ocs.yaml (with a '/' or ending in .yaml), or write %s",
				spec, FORMS);
	}
	free(line.text);
	if (rc == 0)
		return config;
	ocs_config_destroy(config);
	return NULL;
}
