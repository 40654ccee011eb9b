/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_OCSCTL_CMD_SWITCH_NODES_H
#define OCS_OCSCTL_CMD_SWITCH_NODES_H

#include <stdbool.h>

#include "src/fabric/fabric.h"

/* Sets MARKED, one for each node of FABRIC, for the nodes with a port on the switch SW: those of
 * cubes whose face ports go there, and servers with an interface there, in either port set or by
 * way of a 1x2 switch.  False if there is none. */
bool ocs_ctl_switch_nodes(const struct ocs_fabric *fabric, int sw, bool *marked);

#endif
