/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/plugins/select/select_ocs.h"

static int *fabric_of; /* by Slurm's index */
static int fabric_of_count;
static int *slurm_of; /* by the fabric's index */

void ocs_select_nodes_map(void)
{
	const struct ocs_fabric *fabric = ocs_controller_fabric();
	node_record_t *record;

	xfree(fabric_of);
	xfree(slurm_of);
	fabric_of_count = 0;
	if (!fabric)
		return;
	fabric_of_count = node_record_count;
	fabric_of = xcalloc(node_record_count + 1, sizeof(*fabric_of));
	slurm_of = xcalloc(fabric->nnodes + 1, sizeof(*slurm_of));
	for (int i = 0; i < node_record_count; i++)
		fabric_of[i] = -1;
	for (int i = 0; i < fabric->nnodes; i++)
		slurm_of[i] = -1;
	for (int i = 0; (record = next_node(&i)); i++) {
		int node = ocs_controller_node(record->name);

		if (node < 0)
			continue;
		fabric_of[record->index] = node;
		slurm_of[node] = (int)record->index;
	}
}

int ocs_select_node_fabric(int index)
{
	return index >= 0 && index < fabric_of_count ? fabric_of[index] : -1;
}

int ocs_select_node_slurm(int node)
{
	const struct ocs_fabric *fabric = ocs_controller_fabric();

	return slurm_of && fabric && node >= 0 && node < fabric->nnodes ? slurm_of[node] : -1;
}

int ocs_select_node_xpus(int node)
{
	const struct ocs_fabric *fabric = ocs_controller_fabric();
	const struct ocs_section *section = &fabric->sections[fabric->nodes[node].section];

	if (section->kind == OCS_TORUS || section->kind == OCS_STATIC)
		return section->tile[0] * section->tile[1] * section->tile[2];
	return section->server_xpus ? section->server_xpus : 1;
}

int ocs_select_nodes_of(bitstr_t *bitmap, int **nodes, int *outside)
{
	int count = 0, others = 0;

	*nodes = NULL;
	if (bitmap) {
		*nodes = xcalloc(bit_set_count(bitmap) + 1, sizeof(**nodes));
		for (int i = 0; next_node_bitmap(bitmap, &i); i++) {
			int node = ocs_select_node_fabric(i);

			if (node >= 0)
				(*nodes)[count++] = node;
			else
				others++;
		}
	}
	if (outside)
		*outside = others;
	return count;
}
