/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_EMULATOR_NETCONF_DATA_H
#define OCS_EMULATOR_NETCONF_DATA_H

#include <libxml/tree.h>
#include <stdbool.h>

struct ocs_emu_switch;
struct ocs_text;

/* Whether NODE (NULL: no) is the element NAME of the namespace NS. */
bool ocs_emu_netconf_is(const xmlNode *node, const char *ns, const char *name);
/* The first element in NODE (or NULL) with that name (NULL: with any), or NULL. */
xmlNode *ocs_emu_netconf_child(const xmlNode *node, const char *ns, const char *name);

/* Appends the element `data` that answers OPERATION, an xmlNode get or get-config
 * with or without a subtree filter: patches, and for get the ports. */
void ocs_emu_netconf_data(struct ocs_text *text, const struct ocs_emu_switch *sw,
			  const void *operation);

#endif
