/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_NETSIM_FABRIC_MAKE_H
#define OCS_NETSIM_FABRIC_MAKE_H

#include "src/netsim/fabric.h"

#define OCS_NETSIM_FABRIC_MAX 8192
#define OCS_NETSIM_PATHS_MAX 4 /* shortest paths that a pair uses */

/* Random circuits, spec.degree of each server.  0, or -1 with ERR. */
int ocs_netsim_expander_make(struct ocs_netsim_fabric *fabric, uint64_t seed,
			     struct ocs_error *err);
/* The circuits of a plan for what GRAPHS send.  0, or -1 with ERR. */
int ocs_netsim_topoopt_make(struct ocs_netsim_fabric *fabric,
			    const struct ocs_netsim_graph *const *graphs, int *const *places, int n,
			    struct ocs_error *err);
/* A link of no rate between any two servers: circuits come and go.  0, or -1 with ERR. */
int ocs_netsim_circuits_make(struct ocs_netsim_fabric *fabric, struct ocs_error *err);

#endif
