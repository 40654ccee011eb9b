/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/fabric/fabric.h"

#include <stdio.h>
#include <string.h>

#include "src/util/hash.h"

static void mix_text(uint64_t *hash, const char *text)
{
	*hash = ocs_hash(*hash, text, strlen(text) + 1);
}

static void mix_number(uint64_t *hash, int number)
{
	uint32_t value = (uint32_t)number;
	unsigned char bytes[4] = { (unsigned char)value, (unsigned char)(value >> 8),
				   (unsigned char)(value >> 16), (unsigned char)(value >> 24) };

	*hash = ocs_hash(*hash, bytes, sizeof(bytes));
}

static void mix_port(uint64_t *hash, int rc, const struct ocs_port *port)
{
	mix_number(hash, rc ? -1 : port->sw);
	mix_number(hash, rc ? -1 : port->port);
}

/* All face ports of the first cube, and those of the first position of the others. */
static void mix_cube(uint64_t *hash, const struct ocs_fabric *fabric,
		     const struct ocs_section *section, int cube)
{
	for (int dim = 0; dim < OCS_AXES; dim++) {
		int first = section->edge[dim == 0 ? 1 : 0],
		    second = section->edge[dim == 2 ? 1 : 2];

		for (int a = 0; a < (cube ? 1 : first); a++)
			for (int b = 0; b < (cube ? 1 : second); b++)
				for (int sign = 0; sign < 2; sign++) {
					struct ocs_port port = { 0 };
					int rc = ocs_section_torus_port(fabric, section, cube, dim,
									a, b, sign, &port);

					mix_port(hash, rc, &port);
				}
	}
	mix_text(hash, section->cube_names[cube]);
}

static void mix_section(uint64_t *hash, const struct ocs_fabric *fabric,
			const struct ocs_section *section)
{
	bool cubes = section->kind == OCS_TORUS || section->kind == OCS_STATIC;

	mix_text(hash, section->name);
	mix_number(hash, section->kind);
	mix_number(hash, section->degree);
	mix_number(hash, section->directed);
	if (section->nic_ports > 1) /* without, what it was before there were any */
		mix_number(hash, section->nic_ports);
	if (section->nregions > 1)
		mix_number(hash, section->region_servers);
	for (int a = 0; a < OCS_AXES && cubes; a++) {
		mix_number(hash, section->edge[a]);
		mix_number(hash, section->tile[a]);
	}
	for (int cube = 0; cubes && cube < section->ncubes; cube++)
		mix_cube(hash, fabric, section, cube);
	for (int server = 0; !cubes && server < section->nservers; server++)
		for (int i = 0; i < ocs_section_devices(section); i++) {
			struct ocs_port port = { 0 };
			int rc = ocs_section_nic_port(section, server, i / section->nic_ports,
						      i % section->nic_ports, &port);

			mix_port(hash, rc, &port);
		}
	for (int n = section->first_node; n < section->first_node + section->nnodes; n++)
		mix_text(hash, fabric->nodes[n].name);
}

void ocs_fabric_digest(const struct ocs_fabric *fabric, char text[OCS_DIGEST_TEXT])
{
	uint64_t hash = OCS_HASH_START;

	for (int i = 0; i < fabric->nswitches; i++) {
		mix_text(&hash, fabric->switches[i].name);
		mix_number(&hash, fabric->switches[i].size);
		mix_number(&hash, fabric->switches[i].bidi);
	}
	for (int i = 0; i < fabric->nsections; i++)
		mix_section(&hash, fabric, &fabric->sections[i]);
	snprintf(text, OCS_DIGEST_TEXT, "%016llx", (unsigned long long)hash);
}
