/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_NETSIM_FLEXFLOW_H
#define OCS_NETSIM_FLEXFLOW_H

#include <stddef.h>

struct ocs_error;
struct ocs_netsim_graph;

/* The task graph in LENGTH BYTES of a FlatBuffer as TopoOpt's FlexFlow writes it (taskgraph.fbs):
 * forward and backward tasks, transfers between servers, AllReduces of groups of servers.  Reads
 * nothing outside BYTES, whatever they are.  The caller destroys it.  NULL with ERR (OCS_USAGE). */
struct ocs_netsim_graph *ocs_netsim_flexflow_read(const void *bytes, size_t length,
						  struct ocs_error *err);

#endif
