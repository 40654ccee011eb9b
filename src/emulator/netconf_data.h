/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_EMULATOR_NETCONF_DATA_H
#define OCS_EMULATOR_NETCONF_DATA_H

struct ocs_emu_switch;
struct ocs_text;

/* Appends the element `data` that answers OPERATION, an xmlNode get or get-config
 * with or without a subtree filter: patches, and for get the ports. */
void ocs_emu_netconf_data(struct ocs_text *text, const struct ocs_emu_switch *sw,
			  const void *operation);

#endif
