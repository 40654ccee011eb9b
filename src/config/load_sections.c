/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* The list `fabrics` of ocs.yaml. */

#include <stdlib.h>
#include <string.h>

#include "src/config/load.h"
#include "src/util/hostlist.h"
#include "src/util/text.h"

#define PARTITIONS_MAX 1000
#define NAME_LENGTH_MAX 63
#define CHANGE_MS_MAX 3600000
#define CHANGE_LIMIT_DEFAULT_MS 1000

enum {
	NAME,
	KIND,
	PARTITIONS,
	CUBE,
	TILE,
	CUBES,
	EXTENTS,
	NODES,
	RAILS,
	NIC_PORTS,
	DEGREE,
	PACKET_NICS,
	REGION_SERVERS,
	CHANGE_MS,
	CHANGE_LIMIT_MS,
	XPUS,
	DIRECTED,
	THREADING,
	TPU,
	PORTS,
	INTERFACES,
	FORWARDING,
	SUBNETS,
	TCP,
	LOOK_AHEAD,
	KEYS
};

#define BIT(kind) (1u << (kind))
#define ALL (BIT(OCS_TORUS) | BIT(OCS_STATIC) | SERVERS)
#define SERVERS (BIT(OCS_RAILS) | BIT(OCS_DIRECT) | BIT(OCS_REGION))

/* Which kinds have a key, and which cannot do without. */
static const struct {
	const char *name;
	unsigned int kinds, required;
} keys[KEYS] = {
	[NAME] = { "name", ALL, ALL },
	[KIND] = { "kind", ALL, ALL },
	[PARTITIONS] = { "partitions", ALL, 0 },
	[CUBE] = { "cube", BIT(OCS_TORUS), BIT(OCS_TORUS) },
	[TILE] = { "tile", BIT(OCS_TORUS) | BIT(OCS_STATIC), 0 },
	[CUBES] = { "cubes", BIT(OCS_TORUS), BIT(OCS_TORUS) },
	[EXTENTS] = { "extents", BIT(OCS_STATIC), BIT(OCS_STATIC) },
	[NODES] = { "nodes", SERVERS | BIT(OCS_STATIC), SERVERS | BIT(OCS_STATIC) },
	[RAILS] = { "rails", BIT(OCS_RAILS), BIT(OCS_RAILS) },
	[NIC_PORTS] = { "ports_per_nic", BIT(OCS_RAILS), 0 },
	[DEGREE] = { "degree", BIT(OCS_DIRECT) | BIT(OCS_REGION),
		     BIT(OCS_DIRECT) | BIT(OCS_REGION) },
	[PACKET_NICS] = { "packet_nics", BIT(OCS_REGION), 0 },
	[CHANGE_MS] = { "change_ms", BIT(OCS_REGION), 0 },
	[CHANGE_LIMIT_MS] = { "change_limit_ms", BIT(OCS_REGION), 0 },
	[REGION_SERVERS] = { "region_servers", BIT(OCS_REGION), 0 },
	[XPUS] = { "xpus", SERVERS, 0 },
	[DIRECTED] = { "directed", BIT(OCS_DIRECT), 0 },
	[THREADING] = { "threading", BIT(OCS_TORUS), 0 },
	[TPU] = { "tpu_environment", BIT(OCS_TORUS) | BIT(OCS_STATIC), 0 },
	[INTERFACES] = { "interfaces", ALL, 0 },
	[FORWARDING] = { "forwarding", BIT(OCS_DIRECT), 0 },
	[SUBNETS] = { "subnets", BIT(OCS_DIRECT) | BIT(OCS_TORUS) | BIT(OCS_STATIC), 0 },
	[TCP] = { "tcp", BIT(OCS_RAILS) | BIT(OCS_REGION), 0 },
	[LOOK_AHEAD] = { "look_ahead", BIT(OCS_DIRECT), 0 },
	[PORTS] = { "ports", BIT(OCS_TORUS) | SERVERS, BIT(OCS_TORUS) | SERVERS },
};

/* A section while it is read. */
struct draft {
	struct ocs_loader *loader;
	struct ocs_yaml *yaml;
	yaml_node_t *values[KEYS];
	int section;  /* index: the array moves */
	char **nodes; /* names so far, with their owner */
	size_t nnodes;
};

static struct ocs_section *section_of(const struct draft *draft)
{
	return &draft->loader->fabric->sections[draft->section];
}

/* The value of the key `kind`, before the other keys are judged. */
static int kind_find(struct ocs_loader *loader, yaml_node_t *node)
{
	static const char *const kinds[] = { "torus", "static", "rails", "direct", "region" };
	struct ocs_yaml *yaml = &loader->yaml;

	if (node->type != YAML_MAPPING_NODE)
		return ocs_yaml_fail(yaml, node, "a fabric must be a mapping of keys to values");
	for (yaml_node_pair_t *pair = node->data.mapping.pairs.start;
	     pair < node->data.mapping.pairs.top; pair++) {
		yaml_node_t *key = yaml_document_get_node(&yaml->document, pair->key);

		if (key->type == YAML_SCALAR_NODE &&
		    strcmp((char *)key->data.scalar.value, "kind") == 0)
			return ocs_yaml_choice(yaml,
					       yaml_document_get_node(&yaml->document, pair->value),
					       "kind", kinds, sizeof(kinds) / sizeof(kinds[0]));
	}
	return ocs_yaml_fail(
		yaml, node,
		"a fabric needs the key \"kind\": torus, static, rails, direct or region");
}

static int values_find(struct draft *draft, yaml_node_t *node, int kind)
{
	static const char *const what[] = { "a torus fabric", "a static fabric", "a rails fabric",
					    "a direct fabric", "a region fabric" };
	struct ocs_field fields[KEYS] = { 0 };
	int key[KEYS];
	size_t count = 0;

	for (int i = 0; i < KEYS; i++) {
		if (!(keys[i].kinds & BIT(kind)))
			continue;
		fields[count].name = keys[i].name;
		fields[count].required = keys[i].required & BIT(kind);
		key[count++] = i;
	}
	if (ocs_yaml_fields(draft->yaml, node, what[kind], fields, count) < 0)
		return -1;
	for (size_t i = 0; i < count; i++)
		draft->values[key[i]] = fields[i].node;
	return 0;
}

/* A single name, not longer than tables of people can bear. */
static char *single_name(struct ocs_yaml *yaml, const yaml_node_t *node, const char *key)
{
	char **names, *name;
	int count;

	if (node->type != YAML_SCALAR_NODE) {
		ocs_yaml_fail(yaml, node, "%s must be a single name", key);
		return NULL;
	}
	count = ocs_yaml_names(yaml, node, key, OCS_CUBES_MAX, &names);
	if (count < 0)
		return NULL;
	name = names[0];
	if (count > 1 || strlen(name) > NAME_LENGTH_MAX) {
		ocs_yaml_fail(yaml, node,
			      count > 1 ? "%s must be a single name" :
					  "%s is longer than 63 characters",
			      key);
		ocs_names_free(names, (size_t)count);
		return NULL;
	}
	free(names);
	return name;
}

static int extents_load(struct draft *draft, int key, int max, int extents[OCS_AXES])
{
	const yaml_node_t *node = draft->values[key];
	const char *text = ocs_yaml_text(draft->yaml, node, keys[key].name);

	if (!text)
		return -1;
	if (ocs_extents_parse(text, max, extents) < 0)
		return ocs_yaml_fail(
			draft->yaml, node,
			"%s must be three extents of 1 to %d, like 4x4x4, not \"%.40s\"",
			keys[key].name, max, text);
	return 0;
}

static int partitions_load(struct draft *draft)
{
	struct ocs_section *section = section_of(draft);
	struct ocs_fabric *fabric = draft->loader->fabric;
	const yaml_node_t *node = draft->values[PARTITIONS];
	int count;

	if (!node)
		return 0;
	count = ocs_yaml_names(draft->yaml, node, "partitions", PARTITIONS_MAX,
			       &section->partitions);
	if (count < 0)
		return -1;
	section->npartitions = (size_t)count;
	for (int i = 0; i < count; i++) {
		int other = ocs_names_add(draft->loader->partitions, section->partitions[i],
					  section->index);

		if (other == section->index)
			return ocs_yaml_fail(draft->yaml, node, "the partition %s stands twice",
					     section->partitions[i]);
		if (other >= 0)
			return ocs_yaml_fail(
				draft->yaml, node,
				"the partition %s belongs to the fabric %s already; one fabric serves a partition",
				section->partitions[i], fabric->sections[other].name);
	}
	return 0;
}

/* Where the node number INDEX (counted over the file) stands, for messages. */
static char *node_place(const struct draft *draft, int index)
{
	const struct ocs_fabric *fabric = draft->loader->fabric;
	const struct ocs_section *section = section_of(draft);
	int cube = -1;

	if (index < fabric->nnodes) {
		section = &fabric->sections[fabric->nodes[index].section];
		cube = fabric->nodes[index].cube;
	} else if (section->kind == OCS_TORUS) {
		cube = (index - fabric->nnodes) / section->cube_nodes;
	}
	if (cube < 0 || section->kind != OCS_TORUS)
		return ocs_asprintf("fabric %s", section->name);
	return ocs_asprintf("cube %s of fabric %s", section->cube_names[cube], section->name);
}

/* Adds the node list at NODE to the draft.  Returns the count, or -1. */
static int nodes_gather(struct draft *draft, const yaml_node_t *node)
{
	struct ocs_fabric *fabric = draft->loader->fabric;
	size_t room = (size_t)(OCS_NODES_MAX - fabric->nnodes) - draft->nnodes;
	char **names;
	int count = ocs_yaml_names(draft->yaml, node, "nodes", room, &names);

	if (count < 0)
		return -1;
	draft->nodes = ocs_realloc(draft->nodes, (draft->nnodes + (size_t)count) * sizeof(char *));
	memcpy(draft->nodes + draft->nnodes, names, (size_t)count * sizeof(char *));
	free(names);
	names = draft->nodes + draft->nnodes;
	draft->nnodes += (size_t)count;
	return count;
}

/* Enters the nodes from FIRST on into the index: each name once. */
static int nodes_enter(struct draft *draft, const yaml_node_t *node, size_t first)
{
	struct ocs_fabric *fabric = draft->loader->fabric;

	for (size_t i = first; i < draft->nnodes; i++) {
		int other = ocs_names_add(fabric->index->nodes, draft->nodes[i],
					  fabric->nnodes + (int)i);
		char *place;

		if (other < 0)
			continue;
		place = node_place(draft, other);
		ocs_yaml_fail(draft->yaml, node,
			      "the node %.120s stands twice; it is in %s already", draft->nodes[i],
			      place);
		free(place);
		return -1;
	}
	return 0;
}

static int cube_add(struct draft *draft, char *name, const yaml_node_t *node)
{
	struct ocs_section *section = section_of(draft);
	struct ocs_fabric *fabric = draft->loader->fabric;
	int other;

	if (strlen(name) > NAME_LENGTH_MAX)
		return ocs_yaml_fail(draft->yaml, node,
				     "the name %.80s is longer than %d characters", name,
				     NAME_LENGTH_MAX);
	other = ocs_names_add(draft->loader->cubes, name, section->index);
	if (other >= 0)
		return ocs_yaml_fail(draft->yaml, node,
				     "the cube %.80s stands twice; the fabric %s has it already",
				     name, fabric->sections[other].name);
	section->cube_names =
		ocs_realloc(section->cube_names, (size_t)(section->ncubes + 1) * sizeof(char *));
	section->cube_names[section->ncubes++] = name;
	return 0;
}

static int cubes_count_fail(struct draft *draft, const yaml_node_t *node, int cubes, int nodes)
{
	const struct ocs_section *section = section_of(draft);
	const int *edge = section->edge, *tile = section->tile;

	if (cubes > 1)
		return ocs_yaml_fail(draft->yaml, node,
				     "%d cubes of %d nodes each need %d nodes, but %d are listed",
				     cubes, section->cube_nodes, cubes * section->cube_nodes,
				     nodes);
	return ocs_yaml_fail(
		draft->yaml, node,
		"the cube %.80s has %d nodes, but %dx%dx%d XPUs in tiles of %dx%dx%d need %d",
		section->cube_names[section->ncubes - 1], nodes, edge[0], edge[1], edge[2], tile[0],
		tile[1], tile[2], section->cube_nodes);
}

/* One entry of cubes: {name, nodes}, or {names, nodes} for many at once. */
static int cubes_entry(struct draft *draft, yaml_node_t *node)
{
	struct ocs_field fields[] = { { .name = "name" },
				      { .name = "names" },
				      { .name = "nodes", .required = true } };
	struct ocs_yaml *yaml = draft->yaml;
	size_t first = draft->nnodes;
	char **names = NULL;
	int count = 1, nodes, i, rc = 0, tiles = section_of(draft)->cube_nodes;

	if (ocs_yaml_fields(yaml, node, "a cube", fields, 3) < 0)
		return -1;
	if (!fields[0].node == !fields[1].node)
		return ocs_yaml_fail(yaml, node, "a cube needs either \"name\" or \"names\"");
	if (fields[1].node) {
		count = ocs_yaml_names(yaml, fields[1].node, "names",
				       (size_t)(OCS_CUBES_MAX - section_of(draft)->ncubes), &names);
		if (count < 0)
			return -1;
	} else {
		names = ocs_calloc(1, sizeof(char *));
		names[0] = single_name(yaml, fields[0].node, "name");
		rc = names[0] ? 0 : -1;
	}
	for (i = 0; i < count && rc == 0; i++) {
		rc = cube_add(draft, names[i], fields[1].node ? fields[1].node : fields[0].node);
		if (rc == 0)
			names[i] = NULL; /* the section's now */
	}
	nodes = rc == 0 ? nodes_gather(draft, fields[2].node) : -1;
	if (nodes >= 0 && nodes != count * tiles)
		nodes = cubes_count_fail(draft, fields[2].node, count, nodes);
	ocs_names_free(names, (size_t)count);
	return nodes < 0 ? -1 : nodes_enter(draft, fields[2].node, first);
}

static int cubes_load(struct draft *draft)
{
	yaml_node_t *node = draft->values[CUBES];
	struct ocs_section *section = section_of(draft);
	int count;

	if (node->type == YAML_MAPPING_NODE) {
		if (cubes_entry(draft, node) < 0)
			return -1;
	} else {
		count = ocs_yaml_length(draft->yaml, node, "cubes");
		if (count < 0)
			return -1;
		for (int i = 0; i < count; i++)
			if (cubes_entry(draft, ocs_yaml_item(draft->yaml, node, i)) < 0)
				return -1;
	}
	if (!section->ncubes)
		return ocs_yaml_fail(draft->yaml, node, "cubes is an empty list");
	if (section->ncubes > OCS_CUBES_MAX)
		return ocs_yaml_fail(draft->yaml, node, "more than %d cubes", OCS_CUBES_MAX);
	return 0;
}

/* edge, tile and cubes of torus and static. */
static int torus_load(struct draft *draft)
{
	struct ocs_section *section = section_of(draft);
	bool fixed = section->kind == OCS_STATIC;
	int key = fixed ? EXTENTS : CUBE, *edge = section->edge, *tile = section->tile;

	if (extents_load(draft, key, fixed ? OCS_EDGE_MAX : OCS_CUBE_EDGE_MAX, edge) < 0)
		return -1;
	if (!fixed && (edge[0] != edge[1] || edge[1] != edge[2]))
		return ocs_yaml_fail(draft->yaml, draft->values[key],
				     "cube %dx%dx%d is not a cube: its three extents must be equal",
				     edge[0], edge[1], edge[2]);
	for (int i = 0; i < OCS_AXES; i++)
		tile[i] = 1;
	if (draft->values[TILE] && extents_load(draft, TILE, OCS_EDGE_MAX, tile) < 0)
		return -1;
	if (!ocs_section_tile_divides(section))
		return ocs_yaml_fail(draft->yaml, draft->values[TILE],
				     "the tile %dx%dx%d does not divide the edges %dx%dx%d",
				     tile[0], tile[1], tile[2], edge[0], edge[1], edge[2]);
	ocs_section_geometry(section);
	if (draft->values[THREADING] && ocs_yaml_bool(draft->yaml, draft->values[THREADING],
						      "threading", &section->threading) < 0)
		return -1;
	if (draft->values[TPU] &&
	    ocs_yaml_bool(draft->yaml, draft->values[TPU], "tpu_environment", &section->tpu) < 0)
		return -1;
	if (!fixed)
		return cubes_load(draft);
	section->cube_names = ocs_calloc(1, sizeof(char *));
	section->cube_names[0] = ocs_strdup("c0");
	section->ncubes = 1;
	if (nodes_gather(draft, draft->values[NODES]) < 0)
		return -1;
	if (draft->nnodes != (size_t)section->cube_nodes)
		return ocs_yaml_fail(
			draft->yaml, draft->values[NODES],
			"%zu nodes are listed, but %dx%dx%d XPUs in tiles of %dx%dx%d need %d",
			draft->nnodes, edge[0], edge[1], edge[2], tile[0], tile[1], tile[2],
			section->cube_nodes);
	return nodes_enter(draft, draft->values[NODES], 0);
}

/* How the servers of a section of regions are divided, and what they have besides optical NICs. */
static int regions_load(struct draft *draft)
{
	struct ocs_section *section = section_of(draft);
	struct ocs_yaml *yaml = draft->yaml;
	int rest = section->server_xpus - section->degree;

	section->packet_nics = rest > 0 ? rest : 1;
	section->region_servers = section->nservers;
	section->change_limit_ms = CHANGE_LIMIT_DEFAULT_MS;
	if ((draft->values[PACKET_NICS] &&
	     ocs_yaml_number(yaml, draft->values[PACKET_NICS], "packet_nics", 1, OCS_DEGREE_MAX,
			     &section->packet_nics) < 0) ||
	    (draft->values[CHANGE_MS] &&
	     ocs_yaml_number(yaml, draft->values[CHANGE_MS], "change_ms", 0, CHANGE_MS_MAX,
			     &section->change_ms) < 0) ||
	    (draft->values[CHANGE_LIMIT_MS] &&
	     ocs_yaml_number(yaml, draft->values[CHANGE_LIMIT_MS], "change_limit_ms", 1,
			     CHANGE_MS_MAX, &section->change_limit_ms) < 0) ||
	    (draft->values[REGION_SERVERS] &&
	     ocs_yaml_number(yaml, draft->values[REGION_SERVERS], "region_servers", 1,
			     section->nservers, &section->region_servers) < 0))
		return -1;
	ocs_section_regions_set(section);
	return 0;
}

static int servers_load(struct draft *draft)
{
	struct ocs_section *section = section_of(draft);
	int key = section->kind == OCS_RAILS ? RAILS : DEGREE;
	struct ocs_yaml *yaml = draft->yaml;

	if (ocs_yaml_number(yaml, draft->values[key], keys[key].name, 1, OCS_DEGREE_MAX,
			    &section->degree) < 0)
		return -1;
	if (draft->values[NIC_PORTS] &&
	    ocs_yaml_number(yaml, draft->values[NIC_PORTS], keys[NIC_PORTS].name, 1,
			    OCS_NIC_PORTS_MAX, &section->nic_ports) < 0)
		return -1;
	if (draft->values[XPUS] && ocs_yaml_number(yaml, draft->values[XPUS], "xpus", 1,
						   OCS_XPUS_MAX, &section->server_xpus) < 0)
		return -1;
	if (draft->values[DIRECTED] &&
	    ocs_yaml_bool(yaml, draft->values[DIRECTED], "directed", &section->directed) < 0)
		return -1;
	section->nservers = nodes_gather(draft, draft->values[NODES]);
	if (section->nservers < 0 || (section->kind == OCS_REGION && regions_load(draft) < 0))
		return -1;
	return nodes_enter(draft, draft->values[NODES], 0);
}

static void cubes_index(struct ocs_section *section)
{
	section->cube_index = ocs_names_create((size_t)section->ncubes);
	for (int i = 0; i < section->ncubes; i++)
		ocs_names_add(section->cube_index, section->cube_names[i], i);
}

static int section_fill(struct draft *draft)
{
	struct ocs_fabric *fabric = draft->loader->fabric;
	struct ocs_section *section = section_of(draft);
	bool cubes = section->kind == OCS_TORUS || section->kind == OCS_STATIC;

	if (partitions_load(draft) < 0 || (cubes ? torus_load(draft) : servers_load(draft)) < 0)
		return -1;
	ocs_fabric_nodes_add(fabric, section, draft->nodes, (int)draft->nnodes);
	draft->nnodes = 0; /* the names are the fabric's now */
	if (cubes)
		cubes_index(section);
	if (draft->values[PORTS] &&
	    ocs_load_ports(draft->loader, draft->section, draft->values[PORTS]) < 0)
		return -1;
	if (draft->values[LOOK_AHEAD] &&
	    ocs_load_look_ahead(draft->loader, draft->section, draft->values[LOOK_AHEAD]) < 0)
		return -1;
	return ocs_load_interfaces(draft->loader, draft->section, draft->values[INTERFACES],
				   draft->values[FORWARDING], draft->values[SUBNETS],
				   draft->values[TCP]);
}

static int section_load(struct ocs_loader *loader, yaml_node_t *node)
{
	struct draft draft = { .loader = loader, .yaml = &loader->yaml };
	int kind = kind_find(loader, node), rc;
	char *name;

	if (kind < 0 || values_find(&draft, node, kind) < 0)
		return -1;
	name = single_name(&loader->yaml, draft.values[NAME], "name");
	if (!name)
		return -1;
	if (ocs_fabric_section_named(loader->fabric, name)) {
		ocs_yaml_fail(&loader->yaml, draft.values[NAME], "the fabric %s is described twice",
			      name);
		free(name);
		return -1;
	}
	ocs_fabric_section_add(loader->fabric, name, (enum ocs_section_kind)kind);
	free(name);
	draft.section = loader->fabric->nsections - 1;
	rc = section_fill(&draft);
	ocs_names_free(draft.nodes, draft.nnodes);
	return rc;
}

/* Every partition must lead to one fabric. */
static int partitions_check(struct ocs_loader *loader, const yaml_node_t *node)
{
	const struct ocs_fabric *fabric = loader->fabric;
	const struct ocs_section *others = NULL;

	for (int i = 0; i < fabric->nsections; i++) {
		if (fabric->sections[i].npartitions)
			continue;
		if (others)
			return ocs_yaml_fail(
				&loader->yaml, ocs_yaml_item(&loader->yaml, node, i),
				"the fabrics %s and %s both lack \"partitions\"; with several fabrics only one may serve all other partitions",
				others->name, fabric->sections[i].name);
		others = &fabric->sections[i];
	}
	return 0;
}

int ocs_load_sections(struct ocs_loader *loader, yaml_node_t *node)
{
	int count = ocs_yaml_length(&loader->yaml, node, "fabrics");

	if (count < 0)
		return -1;
	if (count < 1 || count > OCS_SECTIONS_MAX)
		return ocs_yaml_fail(&loader->yaml, node, "fabrics must list 1 to %d fabrics",
				     OCS_SECTIONS_MAX);
	for (int i = 0; i < count; i++)
		if (section_load(loader, ocs_yaml_item(&loader->yaml, node, i)) < 0)
			return -1;
	return partitions_check(loader, node);
}
