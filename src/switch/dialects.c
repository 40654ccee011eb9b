/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include <strings.h>

#include "src/switch/tl1.h"

/* Another make is another entry: no code knows a verb. */
static const struct ocs_tl1_dialect dialects[] = {
	{
		/* HUBER+SUHNER Polatis 6000 and 7000, port 3082 */
		.name = "polatis",
		.login = "ACT-USER::%u:%t::%p;",
		.logout = "CANC-USER::%u:%t:;",
		.size = "RTRV-EQPT::SYSTEM:%t:::PARAMETER=SIZE;",
		.size_key = "SIZE=",
		.read = "RTRV-PATCH:::%t:;",
		.remove = "DLT-PATCH::%i:%t:;",
		.add = "ENT-PATCH::%i,%e:%t:;",
		.list = "&",
		.line = 4096,
		.ingress_first = 1,
		.between = ",",
	},
};

const struct ocs_tl1_dialect *ocs_tl1_dialect_find(const char *name)
{
	if (!name)
		return &dialects[0];
	for (size_t i = 0; i < sizeof(dialects) / sizeof(dialects[0]); i++)
		if (!strcasecmp(name, dialects[i].name))
			return &dialects[i];
	return NULL;
}
