/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_MOE_WIRES_H
#define OCS_MOE_WIRES_H

#include "src/moe/circuits.h"

/* Which optical NICs a circuit joins. */
struct ocs_moe_wire {
	int a, a_port; /* server and its optical NIC, both from 0; a < b */
	int b, b_port;
};

/* The NUMA node of each optical NIC of a region's servers. */
struct ocs_moe_numa {
	int ports; /* entries of a row */
	int *node; /* [servers x ports]; -1: broken, or no such NIC */
};

/* NICs for CIRCUITS: parallel circuits of a pair go to NICs on as many NUMA nodes as there are, at
 * both ends, so that what they bring does not meet in one memory.  Of the NKEEP wires KEEP, those
 * that CIRCUITS still has stay on their NICs.  WIRES has room for all circuits; ordered by a, b,
 * a_port.  Returns how many, or -1 with ERR (OCS_USAGE): more circuits than NICs at a server, or
 * KEEP has two wires on one NIC or one on a broken NIC. */
int ocs_moe_wires_make(const struct ocs_moe_circuits *circuits, const struct ocs_moe_numa *numa,
		       const struct ocs_moe_wire *keep, int nkeep, struct ocs_moe_wire *wires,
		       struct ocs_error *err);

#endif
