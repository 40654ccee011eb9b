/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include <strings.h>

#include "src/switch/netconf/netconf.h"

static const struct ocs_netconf_word polatis_words[] = {
	{ "ENABLED", OCS_PORT_TUNED },
	{ "PORT_ENABLED", OCS_PORT_TUNED },
	{ "DISABLED", OCS_PORT_BLOCKED },
	{ "PORT_DISABLED", OCS_PORT_BLOCKED },
	{ "FAILED", OCS_PORT_FAILED },
	{ "PORT_FAILED", OCS_PORT_FAILED },
	{ 0 },
};

static const struct ocs_netconf_word ocp_words[] = {
	{ "TUNED", OCS_PORT_TUNED },	 { "TUNING", OCS_PORT_TUNING },
	{ "BLOCKED", OCS_PORT_BLOCKED }, { "FAILED", OCS_PORT_FAILED },
	{ "UNKNOWN", OCS_PORT_UNKNOWN }, { 0 },
};

/* Another model is another entry: no code knows the name of an element. */
static const struct ocs_netconf_dialect dialects[] = {
	{
		/* HUBER+SUHNER Polatis 6000 and 7000, port 830 */
		.name = "polatis",
		.ns = "http://www.polatis.com/yang/optical-switch",
		.patches = { "cross-connects", "pair", "ingress", "egress", NULL },
		.status = { "port-config", "port", "port-id", "status", NULL },
		.power = { "opm-power", "port", "port-id", "power", NULL },
		.words = polatis_words,
	},
	{
		/* After the words of the OCP optical-circuit-switch model, whose
		 * paths are not fixed yet. */
		.name = "ocp",
		.ns = "urn:ocp:yang:optical-circuit-switch",
		.patches = { "connections", "connection", "ingress-port", "egress-port", "status" },
		.status = { "ports", "port", "port-id", "status", NULL },
		.power = { "ports", "port", "port-id", "power", NULL },
		.words = ocp_words,
	},
};

const struct ocs_netconf_dialect *ocs_netconf_dialect_find(const char *name)
{
	if (!name)
		return &dialects[0];
	for (size_t i = 0; i < sizeof(dialects) / sizeof(dialects[0]); i++)
		if (!strcasecmp(name, dialects[i].name))
			return &dialects[i];
	return NULL;
}
