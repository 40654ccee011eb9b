/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Whatever stands in an ocs.yaml: it is refused with a line, or the fabric it
 * makes keeps its promises.  Start with examples/ as corpus and -dict=fabric.dict. */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "src/config/config.h"
#include "src/fabric/occupancy.h"
#include "src/util/error.h"

#define CHECK(condition)          \
	do {                      \
		if (!(condition)) \
			abort();  \
	} while (0)

static void check_nodes(const struct ocs_fabric *fabric)
{
	int next = 0;

	for (int i = 0; i < fabric->nsections; i++) {
		CHECK(fabric->sections[i].first_node == next);
		next += fabric->sections[i].nnodes;
	}
	CHECK(next == fabric->nnodes);
	for (int i = 0; i < fabric->nnodes; i++) {
		const struct ocs_node *node = &fabric->nodes[i];
		const struct ocs_section *section = &fabric->sections[node->section];

		CHECK(ocs_fabric_node(fabric, node->name) == node);
		if (section->ncubes)
			CHECK(ocs_section_node_at(section, node->cube, node->origin) == i);
		else
			CHECK(section->first_node + node->server == i);
	}
}

/* Each port leads back to what it is plugged into. */
static void check_ports(const struct ocs_fabric *fabric)
{
	for (int sw = 0; sw < fabric->nswitches; sw++) {
		CHECK(ocs_fabric_switch(fabric, fabric->switches[sw].name) == sw);
		for (int p = 1; p <= ocs_switch_ports(&fabric->switches[sw]) && p < 64; p++)
			free(ocs_fabric_port_label(fabric, (struct ocs_port){ sw, p }));
	}
}

static void check_pairs(const struct ocs_fabric *fabric, const struct ocs_section *section)
{
	struct ocs_patch patches[2];
	struct ocs_port plus, minus;

	if (section->kind != OCS_TORUS)
		return;
	for (int dim = 0; dim < OCS_AXES; dim++) {
		CHECK(ocs_section_torus_port(fabric, section, 0, dim, 0, 0, OCS_PLUS, &plus) == 0);
		CHECK(ocs_section_torus_port(fabric, section, section->ncubes - 1, dim, 0, 0,
					     OCS_MINUS, &minus) == 0);
		CHECK(plus.sw == minus.sw);
		CHECK(ocs_switch_patches(&fabric->switches[plus.sw], plus.port, minus.port, patches,
					 NULL) > 0);
	}
}

static void check_occupancy(const struct ocs_fabric *fabric, const struct ocs_section *section)
{
	struct ocs_occupancy *occupancy;

	if (!section->ncubes)
		return;
	occupancy = ocs_occupancy_create(section);
	for (int i = 0; i < section->nnodes; i++)
		ocs_occupancy_node_set(occupancy, fabric, section->first_node + i, false);
	for (int i = 0; i < section->ncubes; i++)
		CHECK(ocs_occupancy_cube_free(occupancy, i) == 0);
	for (int i = 0; i < fabric->nswitches; i++)
		ocs_occupancy_switch_block(occupancy, fabric, i, 0);
	ocs_occupancy_destroy(occupancy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length)
{
	struct ocs_error err = { 0 };
	struct ocs_config *config = ocs_config_parse((const char *)data, length, "f", &err);
	const struct ocs_fabric *fabric;

	if (!config) {
		CHECK(err.code == OCS_USAGE);
		CHECK(strncmp(err.text, "f:", 2) == 0 && err.text[2] >= '1' && err.text[2] <= '9');
		return 0;
	}
	fabric = config->fabric;
	check_nodes(fabric);
	check_ports(fabric);
	for (int i = 0; i < fabric->nsections; i++) {
		check_pairs(fabric, &fabric->sections[i]);
		check_occupancy(fabric, &fabric->sections[i]);
	}
	free(ocs_config_describe(config));
	ocs_config_destroy(config);
	return 0;
}
