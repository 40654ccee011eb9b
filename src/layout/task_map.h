/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_LAYOUT_TASK_MAP_H
#define OCS_LAYOUT_TASK_MAP_H

/* Which task owns which XPUs (spank_ocs(8)).  The XPUs of a node, sorted by
 * row-major rank, are split among its tasks in contiguous equal shares (the
 * first ones get one more if it does not divide); tasks are ordered by the
 * first coordinate of their share.  Knows nodes by name, so that it serves
 * clients without an ocs.yaml. */

#include "src/place/place.h"

struct ocs_ranks {
	struct ocs_shape shape;
	char **nodes; /* names, in the order of their first XPU's rank */
	int nnodes;
	int nxpus;   /* shape.xpus */
	int *node;   /* index into nodes of XPU r (row-major rank) */
	int *device; /* its local device index within the node */
};

struct ocs_ranks *ocs_ranks_from_placement(const struct ocs_fabric *fabric,
					   const struct ocs_placement *placement);
/* A direct or rail job: each of NODES has as many XPUs, that of rank r is on node r / their number.
 * NULL if NNODES does not divide the XPUs of SHAPE. */
struct ocs_ranks *ocs_ranks_from_nodes(const struct ocs_shape *shape, char *const *nodes,
				       int nnodes);
void ocs_ranks_destroy(struct ocs_ranks *ranks);

/* Text form, the file `ranks` of SLURM_OCS_DIR: "shape 4x8x2 conn
 * torus,torus,torus", then one line "NODE DEVICE" per XPU in rank order. */
char *ocs_ranks_format(const struct ocs_ranks *ranks);
struct ocs_ranks *ocs_ranks_parse(const char *text, struct ocs_error *err);

/* Host (index into ranks->nodes) of each of TASKS tasks in rank order: one per
 * XPU if TASKS == nxpus, else TASKS / nnodes on each node.  The caller frees the
 * array.  NULL with ERR (OCS_USAGE) when TASKS is neither nxpus nor a multiple of
 * nnodes that leaves no task without an XPU. */
int *ocs_ranks_hosts(const struct ocs_ranks *ranks, int tasks, struct ocs_error *err);

/* The share of local task LOCAL of NTASKS on node NAME: row-major ranks ascending
 * (*SHARE, caller frees).  Returns the count (0: more tasks than XPUs), or -1 with
 * ERR (node not in the job). */
int ocs_ranks_share(const struct ocs_ranks *ranks, const char *name, int local, int ntasks,
		    int **share, struct ocs_error *err);

/* Rank of that task when every node of the job runs NTASKS tasks (when NTASKS *
 * nnodes >= nxpus with one XPU a task: its XPU's row-major rank).  -1 with ERR. */
int ocs_ranks_rank(const struct ocs_ranks *ranks, const char *name, int local, int ntasks,
		   struct ocs_error *err);

#endif
