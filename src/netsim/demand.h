/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_NETSIM_DEMAND_H
#define OCS_NETSIM_DEMAND_H

#include "src/netsim/graph.h"

/* What N GRAPHS send, as the demand (JSON text) that a plan is made for: AllReduce bytes by group,
 * a reduce-scatter and an all-gather as half of one each, and bytes between pairs.  PLACES[k][s] is
 * where server s of graph k is among SERVERS; NULL: at s.  If they send nothing: one byte among all.
 * The caller frees. */
char *ocs_netsim_demand(const struct ocs_netsim_graph *const *graphs, int *const *places, int n,
			int servers);

/* Adds the bytes that pairs of GRAPH send each other, without AllReduce and its halves, to the
 * SERVERS x SERVERS of PAIRS. */
void ocs_netsim_demand_pairs(const struct ocs_netsim_graph *graph, const int *place, int servers,
			     double *pairs);

#endif
