/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include <strings.h>

#include "src/switch/tl1/tl1.h"

/* Another make is another entry: no code knows a verb.  doc/switches.md goes
 * through the fields; load_switches.c of src/fabric names the entries too. */
static const struct ocs_tl1_dialect dialects[] = {
	{
		/* HUBER+SUHNER Polatis 6000 and 7000, port 3082 */
		.name = "polatis",
		.login = "ACT-USER::%u:%t::%p;",
		.logout = "CANC-USER::%u:%t:;",
		.size = "RTRV-EQPT::SYSTEM:%t:::PARAMETER=SIZE;",
		.size_key = "SIZE=",
		.read = "RTRV-PATCH:::%t:;",
		.remove = { "DLT-PATCH::%i:%t:;" },
		.add = { "ENT-PATCH::%i,%e:%t:;" },
		.list = "&",
		.line = 4096,
		.ingress_first = 1,
		.between = ",",
		.status = "RTRV-PORT-SHUTTER::1&&%x:%t:;",
		.words = { { "OPEN", OCS_PORT_TUNED }, { "CLOSED", OCS_PORT_BLOCKED } },
		.power = "RTRV-PORT-POWER::1&&%x:%t:;",
	},
	{
		/* Calient S series.  A cross-connect is entered and then activated, one
		 * in a command, in a group of our own: those of other groups cannot be
		 * named by mistake.  A port has one name for both its fibres. */
		.name = "calient",
		.login = "ACT-USER::%u:%t::%p;",
		.logout = "CANC-USER::%u:%t:;",
		.read = "RTRV-CRS:::%t::ALL;",
		.remove = { "CANC-CRS::%i,%e:%t::,OCS,%n;", "DLT-CRS::%i,%e:%t::,OCS,%n;" },
		.add = { "ENT-CRS::%i,%e:%t::OCS,1WAY;", "ACT-CRS::%i,%e:%t::%n,OCS;" },
		.undo = "DLT-CRS::%i,%e:%t::,OCS,%n;",
		.ours = ",GRPNAME=OCS,",
		.list = "&",
		.batch = 1,
		.line = 4096,
		.ingress_first = 1,
		.egress_first = 1,
		.radix = { 8, 8 },
		.between = ">",
		.both = "-",
		.status = "RTRV-CRS:::%t::ALL;",
		.status_key = ",OC=",
		.words = { { "OK", OCS_PORT_TUNED },
			   { "INIT", OCS_PORT_TUNING },
			   { "FAIL", OCS_PORT_FAILED } },
		.power = "RTRV-PORT-SUM::0:%t:;",
		.in_power_key = ",INPWR=",
		.out_power_key = ",OUTPWR=",
	},
	{
		/* Glimmerglass System 100 to 600 */
		.name = "glimmerglass",
		.login = "ACT-USER::%u:%t::%p;",
		.logout = "CANC-USER::%u:%t:;",
		.size = "RTRV-SYSTEM-INFO:::%t:;",
		.size_key = "LicensedPortMatrix=",
		.read = "RTRV-CRS-FIBER::ALL:%t:;",
		.remove = { "DLT-CRS-FIBER::%i,%e:%t:;" },
		.add = { "ENT-CRS-FIBER::%i,%e:%t:;" },
		.list = "&",
		.line = 4096,
		.ingress_first = 10001,
		.egress_first = 20001,
		.in_key = "IPORTID=",
		.out_key = ",OPORTID=",
		.power = "RTRV-CRS-FIBER::ALL:%t:;",
		.in_power_key = ",INPWR=",
		.out_power_key = ",OUTPWR=",
	},
};

#define COUNT (sizeof(dialects) / sizeof(dialects[0]))

const struct ocs_tl1_dialect *ocs_tl1_dialect(size_t index)
{
	return index < COUNT ? &dialects[index] : NULL;
}

const struct ocs_tl1_dialect *ocs_tl1_dialect_find(const char *name)
{
	if (!name)
		return &dialects[0];
	for (size_t i = 0; i < COUNT; i++)
		if (!strcasecmp(name, dialects[i].name))
			return &dialects[i];
	return NULL;
}
