/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/ocsctl/cmd/switch_nodes.h"

/* Nodes of cubes whose face ports go to SW. */
static bool mark_torus(const struct ocs_fabric *fabric, const struct ocs_section *section, int sw,
		       bool *marked)
{
	bool found = false;

	for (int cube = 0; cube < section->ncubes; cube++) {
		for (int dim = 0; dim < OCS_AXES; dim++) {
			int first = dim == 0, second = dim == 2 ? 1 : 2;
			int rows = section->edge[first], columns = section->edge[second];

			for (int i = 0; i < rows * columns * 2; i++) {
				int at[OCS_AXES], a = i / 2 / columns, b = i / 2 % columns;
				struct ocs_port port;

				if (ocs_section_torus_port(fabric, section, cube, dim, a, b, i % 2,
							   &port) ||
				    port.sw != sw)
					continue;
				at[first] = a;
				at[second] = b;
				at[dim] = i % 2 == OCS_PLUS ? section->edge[dim] - 1 : 0;
				marked[ocs_section_node_at(section, cube, at)] = found = true;
			}
		}
	}
	return found;
}

/* Servers with an interface on SW, in either port set or by way of a 1x2 switch. */
static bool mark_servers(const struct ocs_fabric *fabric, const struct ocs_section *section, int sw,
			 bool *marked)
{
	bool found = false;

	for (int server = 0; server < section->nservers; server++) {
		for (int i = 0; i < section->degree; i++) {
			struct ocs_port port;
			bool here = !ocs_section_server_port(fabric, section, server, i, &port) &&
				    port.sw == sw;

			here |= section->ahead &&
				!ocs_section_set_port(section, 1, server, i, &port) &&
				port.sw == sw;
			here |= section->select &&
				!ocs_section_select_port(section, server, i, &port) &&
				port.sw == sw;
			if (here)
				marked[section->first_node + server] = found = true;
		}
	}
	return found;
}

bool ocs_ctl_switch_nodes(const struct ocs_fabric *fabric, int sw, bool *marked)
{
	bool found = false;

	for (int s = 0; s < fabric->nsections; s++) {
		const struct ocs_section *section = &fabric->sections[s];

		if (section->kind == OCS_TORUS)
			found |= mark_torus(fabric, section, sw, marked);
		else if (section->nservers)
			found |= mark_servers(fabric, section, sw, marked);
	}
	return found;
}
