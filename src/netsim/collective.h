/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_NETSIM_COLLECTIVE_H
#define OCS_NETSIM_COLLECTIVE_H

/* Collectives as what servers send each other.  A phase of a collective is a stream: its pieces
 * overlap, so that all transfers of a phase run at once and only the last piece waits for each
 * hop. */

#include <stdbool.h>

struct ocs_netsim_graph;
struct ocs_netsim_fabric;
struct ocs_netsim_task;

enum ocs_netsim_algorithm {
	OCS_NETSIM_AUTO,	 /* the rings of the fabric's plan, else one ring */
	OCS_NETSIM_RING,	 /* one, in the order of the group */
	OCS_NETSIM_MULTI_RING,	 /* as many as interfaces, of co-prime steps */
	OCS_NETSIM_HIERARCHICAL, /* within leaves, between leaves, within leaves */
	OCS_NETSIM_DOUBLE_TREE,	 /* two binary trees, each with half of the bytes */
	OCS_NETSIM_ALGORITHMS,
};

const char *ocs_netsim_algorithm_name(enum ocs_netsim_algorithm algorithm);

/* DIRECT: over the circuit of their own, where they have one, and not as the fabric routes pairs. */
typedef void ocs_netsim_send(void *context, int src, int dst, double bytes, bool direct);

/* Calls SEND for each transfer of PHASE (from 0 on) of TASK, a collective of GRAPH whose server s is
 * at PLACE[s] (NULL: at s).  *HOPS: how many hops in a row the last piece takes.  Returns whether
 * there is such a phase. */
bool ocs_netsim_collective_phase(const struct ocs_netsim_graph *graph,
				 const struct ocs_netsim_task *task, const int *place,
				 const struct ocs_netsim_fabric *fabric,
				 enum ocs_netsim_algorithm algorithm, int phase,
				 ocs_netsim_send *send, void *context, int *hops);

#endif
