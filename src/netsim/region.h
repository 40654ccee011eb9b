/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_NETSIM_REGION_H
#define OCS_NETSIM_REGION_H

#include "src/netsim/fabric.h"

/* The links of a region fabric: each server out to and in from the packet network, and after all of
 * these, region by region, one from each server of it to each (its circuits: no rate at first). */
#define OCS_NETSIM_REGION_OUT(server) (2 * (server))
#define OCS_NETSIM_REGION_IN(server) (2 * (server) + 1)

static inline int ocs_netsim_region_circuit(const struct ocs_netsim_fabric *fabric, int src,
					    int dst)
{
	int side = fabric->spec.region;

	return 2 * fabric->servers + src / side * side * side + src % side * side + dst % side;
}

/* The rate of an interface on the packet network. */
static inline double ocs_netsim_region_packets(const struct ocs_netsim_spec *spec)
{
	return spec->packets > 0 ? spec->packets : spec->rate;
}

/* Makes them; fabric->spec.region, where it is 0, becomes the size of the largest group of an
 * all-to-all of GRAPHS.  0, or -1 with ERR (OCS_USAGE). */
int ocs_netsim_region_make(struct ocs_netsim_fabric *fabric,
			   const struct ocs_netsim_graph *const *graphs, int n,
			   struct ocs_error *err);

#endif
