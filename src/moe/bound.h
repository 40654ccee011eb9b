/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_MOE_BOUND_H
#define OCS_MOE_BOUND_H

#include "src/moe/circuits.h"

/* Times below which no circuits whatever bring an all-to-all, in tokens per NIC rate. */

/* What one server sends or receives over all of its ports and NICs.  Relays cannot beat it
 * either. */
double ocs_moe_bound_ports(const struct ocs_moe_demand *demand,
			   const struct ocs_moe_region *region);

/* The same where a circuit carries only what its two servers send each other: the best whole
 * circuits for each server alone.  At least ocs_moe_bound_ports; not for relays. */
double ocs_moe_bound_server(const struct ocs_moe_demand *demand,
			    const struct ocs_moe_region *region);

/* Circuits that may be split at will, all servers together: a linear program, 0.2 s at 64 servers.
 * Not for relays.  0 if it could not be solved. */
double ocs_moe_bound_linear(const struct ocs_moe_demand *demand,
			    const struct ocs_moe_region *region);

#endif
