/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Regions: servers in a row whose optical NICs are all on one switch. */

#include <stdlib.h>

#include "src/fabric/builder.h"
#include "src/util/text.h"

int ocs_section_region(const struct ocs_section *section, int server)
{
	return server / section->region_servers;
}

int ocs_section_region_first(const struct ocs_section *section, int region)
{
	return region * section->region_servers;
}

int ocs_section_region_size(const struct ocs_section *section, int region)
{
	int left = section->nservers - ocs_section_region_first(section, region);

	return left < section->region_servers ? left : section->region_servers;
}

void ocs_section_regions_set(struct ocs_section *section)
{
	section->nregions =
		(section->nservers + section->region_servers - 1) / section->region_servers;
	if (section->nregions == 1)
		return;
	section->region_names = ocs_calloc((size_t)section->nregions, sizeof(char *));
	for (int i = 0; i < section->nregions; i++)
		section->region_names[i] = ocs_asprintf("%s.%d", section->name, i);
}
