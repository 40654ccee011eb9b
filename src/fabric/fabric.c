/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/fabric/fabric.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/fabric/builder.h"
#include "src/util/error.h"
#include "src/util/hostlist.h"
#include "src/util/text.h"

struct ocs_fabric *ocs_fabric_new(const char *source)
{
	struct ocs_fabric *fabric = ocs_calloc(1, sizeof(*fabric));

	fabric->source = ocs_strdup(source);
	fabric->index = ocs_calloc(1, sizeof(*fabric->index));
	return fabric;
}

static void section_clear(struct ocs_section *section)
{
	free(section->name);
	ocs_interfaces_destroy(section);
	ocs_names_free(section->partitions, section->npartitions);
	if (section->region_names)
		ocs_names_free(section->region_names, (size_t)section->nregions);
	if (section->cube_names)
		ocs_names_free(section->cube_names, (size_t)section->ncubes);
	ocs_port_rule_destroy(section->ports);
	ocs_port_rule_destroy(section->ahead);
	ocs_port_rule_destroy(section->select);
	ocs_names_destroy(section->cube_index);
}

static void switch_clear(struct ocs_switch *sw)
{
	free(sw->name);
	free(sw->driver);
	free(sw->dialect);
	free(sw->address);
	free(sw->credentials);
	free(sw->host_key);
	free(sw->known_hosts);
	free(sw->loop_ports);
}

static void index_destroy(struct ocs_fabric_index *index, int nswitches)
{
	ocs_names_destroy(index->nodes);
	ocs_names_destroy(index->switches);
	for (int i = 0; index->uses && i < nswitches; i++)
		free(index->uses[i]);
	free(index->uses);
	free(index);
}

void ocs_fabric_destroy(struct ocs_fabric *fabric)
{
	if (!fabric)
		return;
	index_destroy(fabric->index, fabric->nswitches);
	for (int i = 0; i < fabric->nsections; i++)
		section_clear(&fabric->sections[i]);
	for (int i = 0; i < fabric->nnodes; i++)
		free(fabric->nodes[i].name);
	for (int i = 0; i < fabric->nswitches; i++)
		switch_clear(&fabric->switches[i]);
	free(fabric->sections);
	free(fabric->nodes);
	free(fabric->switches);
	free(fabric->source);
	free(fabric);
}

struct ocs_section *ocs_fabric_section_add(struct ocs_fabric *fabric, const char *name,
					   enum ocs_section_kind kind)
{
	struct ocs_section *section;

	fabric->sections = ocs_realloc(fabric->sections,
				       (size_t)(fabric->nsections + 1) * sizeof(*fabric->sections));
	section = &fabric->sections[fabric->nsections];
	memset(section, 0, sizeof(*section));
	section->name = ocs_strdup(name);
	section->kind = kind;
	section->nic_ports = 1;
	section->index = fabric->nsections++;
	return section;
}

bool ocs_section_tile_divides(const struct ocs_section *section)
{
	for (int i = 0; i < OCS_AXES; i++)
		if (section->edge[i] % section->tile[i] != 0)
			return false;
	return true;
}

void ocs_section_geometry(struct ocs_section *section)
{
	section->cube_xpus = section->edge[0] * section->edge[1] * section->edge[2];
	section->cube_nodes =
		section->cube_xpus / (section->tile[0] * section->tile[1] * section->tile[2]);
	section->words = (section->cube_xpus + 63) / 64;
}

void ocs_fabric_nodes_add(struct ocs_fabric *fabric, struct ocs_section *section,
			  char *const *names, int count)
{
	fabric->nodes = ocs_realloc(fabric->nodes,
				    (size_t)(fabric->nnodes + count) * sizeof(*fabric->nodes));
	section->first_node = fabric->nnodes;
	section->nnodes = count;
	for (int i = 0; i < count; i++) {
		struct ocs_node *node = &fabric->nodes[fabric->nnodes++];
		int tile = 0;

		memset(node, 0, sizeof(*node));
		node->name = names[i];
		node->section = section->index;
		node->cube = node->server = -1;
		if (!section->ncubes) {
			node->server = i;
			continue;
		}
		node->cube = i / section->cube_nodes;
		tile = i % section->cube_nodes;
		for (int axis = OCS_AXES - 1; axis >= 0; axis--) {
			int tiles = section->edge[axis] / section->tile[axis];

			node->origin[axis] = tile % tiles * section->tile[axis];
			tile /= tiles;
		}
	}
}

int ocs_fabric_nodes_index(struct ocs_fabric *fabric)
{
	struct ocs_names *names = ocs_names_create((size_t)fabric->nnodes);

	ocs_names_destroy(fabric->index->nodes);
	fabric->index->nodes = names;
	for (int i = 0; i < fabric->nnodes; i++)
		if (ocs_names_add(names, fabric->nodes[i].name, i) >= 0)
			return i;
	return -1;
}

const struct ocs_node *ocs_fabric_node(const struct ocs_fabric *fabric, const char *name)
{
	int i = ocs_names_find(fabric->index->nodes, name);

	return i < 0 ? NULL : &fabric->nodes[i];
}

int ocs_fabric_switch(const struct ocs_fabric *fabric, const char *name)
{
	return ocs_names_find(fabric->index->switches, name);
}

const struct ocs_section *ocs_fabric_section(const struct ocs_fabric *fabric, const char *partition)
{
	const struct ocs_section *others = NULL;

	if (!partition)
		return fabric->nsections == 1 ? &fabric->sections[0] : NULL;
	for (int i = 0; i < fabric->nsections; i++) {
		const struct ocs_section *section = &fabric->sections[i];

		if (!section->npartitions)
			others = section;
		for (size_t j = 0; j < section->npartitions; j++)
			if (strcmp(section->partitions[j], partition) == 0)
				return section;
	}
	return others;
}

const struct ocs_section *ocs_fabric_section_named(const struct ocs_fabric *fabric,
						   const char *name)
{
	for (int i = 0; i < fabric->nsections; i++)
		if (strcmp(fabric->sections[i].name, name) == 0)
			return &fabric->sections[i];
	return NULL;
}

char *ocs_fabric_section_names(const struct ocs_fabric *fabric)
{
	struct ocs_text text = { 0 };

	for (int i = 0; i < fabric->nsections; i++)
		ocs_text_add(&text, "%s%s", i ? ", " : "", fabric->sections[i].name);
	return ocs_text_take(&text);
}

int ocs_section_node_at(const struct ocs_section *section, int cube, const int at[OCS_AXES])
{
	int tile = 0;

	for (int axis = 0; axis < OCS_AXES; axis++)
		tile = tile * (section->edge[axis] / section->tile[axis]) +
		       at[axis] / section->tile[axis];
	return section->first_node + cube * section->cube_nodes + tile;
}

static bool in_cube(const struct ocs_section *section, const int at[OCS_AXES])
{
	for (int axis = 0; axis < OCS_AXES; axis++)
		if (at[axis] < 0 || at[axis] >= section->edge[axis])
			return false;
	return true;
}

int ocs_fabric_xpu_node(const struct ocs_fabric *fabric, const char *name)
{
	const char *colon = strrchr(name, ':');
	int at[OCS_AXES], end = 0, found = -1;
	char *cube_name;

	if (!colon || sscanf(colon + 1, "%d,%d,%d%n", &at[0], &at[1], &at[2], &end) != OCS_AXES ||
	    colon[1 + end])
		return -1;
	cube_name = ocs_strdup(name);
	cube_name[colon - name] = '\0';
	for (int i = 0; i < fabric->nsections && found < 0; i++) {
		const struct ocs_section *section = &fabric->sections[i];
		int cube = ocs_section_cube(section, cube_name);

		if (cube >= 0 && in_cube(section, at))
			found = ocs_section_node_at(section, cube, at);
	}
	free(cube_name);
	return found;
}

int ocs_section_cube(const struct ocs_section *section, const char *name)
{
	return ocs_names_find(section->cube_index, name);
}

int ocs_section_bit(const struct ocs_section *section, const int at[OCS_AXES])
{
	return (at[0] * section->edge[1] + at[1]) * section->edge[2] + at[2];
}

int ocs_section_device(const struct ocs_section *section, const int at[OCS_AXES])
{
	int device = 0;

	for (int axis = 0; axis < OCS_AXES; axis++)
		device = device * section->tile[axis] + at[axis] % section->tile[axis];
	return device;
}

const char *ocs_section_kind_name(enum ocs_section_kind kind)
{
	static const char *const names[] = { "torus", "static", "rails", "direct", "region" };

	return names[kind];
}

const char *ocs_fabric_node_unit(const struct ocs_fabric *fabric, int node)
{
	const struct ocs_section *section = &fabric->sections[fabric->nodes[node].section];
	int cube = fabric->nodes[node].cube;

	if (section->region_names)
		return section
			->region_names[ocs_section_region(section, fabric->nodes[node].server)];
	return cube >= 0 ? section->cube_names[cube] : section->name;
}

bool ocs_fabric_unit_agrees(const struct ocs_fabric *fabric, int node, const char *topology)
{
	static const char ours[] = "default:"; /* of the one topology that TopologyPlugin makes */
	const char *unit = ocs_fabric_node_unit(fabric, node);

	while (topology && *topology) {
		size_t length = strcspn(topology, ",");
		const char *last = topology + length;

		while (last > topology && last[-1] != ':')
			last--;
		if (!strncmp(topology, ours, sizeof(ours) - 1) && last < topology + length &&
		    (strlen(unit) != (size_t)(topology + length - last) ||
		     strncmp(last, unit, strlen(unit)) != 0))
			return false;
		topology += length + (topology[length] == ',');
	}
	return true;
}
