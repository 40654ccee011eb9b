/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* The interfaces of servers as their operating system knows them. */

#include <stdio.h>
#include <stdlib.h>

#include "src/fabric/builder.h"

void ocs_interfaces_destroy(struct ocs_section *section)
{
	for (int i = 0; section->interfaces && i < section->ninterfaces; i++) {
		free(section->interfaces[i].name);
		free(section->interfaces[i].rdma);
		free(section->interfaces[i].forward);
		free(section->interfaces[i].address);
	}
	free(section->interfaces);
	free(section->addresses);
	free(section->hosts);
	free(section->management);
}

const char *ocs_section_interface_name(const struct ocs_section *section, int interface)
{
	return section->interfaces ? section->interfaces[interface].name : NULL;
}

bool ocs_section_link_leaves(const struct ocs_section *section, int device, int axis, int sign)
{
	const int *tile = section->tile;
	int at[OCS_AXES] = { device / (tile[1] * tile[2]), device / tile[2] % tile[1],
			     device % tile[2] };

	return at[axis] == (sign == OCS_PLUS ? tile[axis] - 1 : 0);
}

int ocs_section_tile_links(const struct ocs_section *section)
{
	const int *tile = section->tile;

	return 2 * (tile[0] * tile[1] + tile[1] * tile[2] + tile[0] * tile[2]);
}

int ocs_section_link_interface(const struct ocs_section *section, int device, int axis, int sign)
{
	for (int i = 0; i < section->ninterfaces; i++) {
		const struct ocs_interface *one = &section->interfaces[i];

		if (one->device == device && one->axis == axis && one->sign == sign)
			return i;
	}
	return -1;
}

const char *ocs_section_interface_forward(const struct ocs_section *section, int interface)
{
	if (!section->interfaces)
		return NULL;
	return section->interfaces[interface].forward ? section->interfaces[interface].forward :
							section->interfaces[interface].name;
}

static void address_print(uint32_t address, char text[OCS_ADDRESS_TEXT])
{
	snprintf(text, OCS_ADDRESS_TEXT, "%u.%u.%u.%u", address >> 24, address >> 16 & 0xff,
		 address >> 8 & 0xff, address & 0xff);
}

int ocs_section_interface_address(const struct ocs_section *section, int server, int interface,
				  char text[OCS_ADDRESS_TEXT])
{
	if (!section->addresses || !section->interfaces[interface].prefix)
		return -1;
	address_print(section->addresses[(size_t)server * ocs_section_devices(section) + interface],
		      text);
	return section->interfaces[interface].prefix;
}

int ocs_section_host_address(const struct ocs_section *section, int server,
			     char text[OCS_ADDRESS_TEXT])
{
	if (!section->hosts)
		return -1;
	address_print(section->hosts[server], text);
	return 0;
}

const char *ocs_forwarding_name(enum ocs_forwarding forwarding)
{
	static const char *const names[] = { "none", "auto", "flower", "bpf", "routes" };

	return names[forwarding];
}
