/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include <string.h>

#include "src/switch/driver.h"

#define ENTRY(name) &ocs_##name##_driver,
#define NAME(name) ", " #name

static const struct ocs_switch_driver *const drivers[] = { OCS_SWITCH_DRIVERS(ENTRY) };

const struct ocs_switch_driver *ocs_switch_driver_find(const char *name)
{
	for (size_t i = 0; name && i < sizeof(drivers) / sizeof(drivers[0]); i++)
		if (!strcmp(drivers[i]->name, name) && drivers[i]->abi == OCS_DRIVER_ABI)
			return drivers[i];
	return NULL;
}

const char *ocs_switch_driver_names(void)
{
	static const char names[] = OCS_SWITCH_DRIVERS(NAME);

	return names + 2;
}
