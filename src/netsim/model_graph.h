/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_NETSIM_MODEL_GRAPH_H
#define OCS_NETSIM_MODEL_GRAPH_H

/* One training step of a model as a graph of tasks. */

struct ocs_error;
struct ocs_model;
struct ocs_model_machine;
struct ocs_model_strategy;
struct ocs_netsim_graph;

/* The step of MODEL on MACHINE under STRATEGY.  By operators: each runs forward and backward on
 * its servers; gradients are reduced as soon as they are there.  By dimensions: micro-batches
 * go through the stages one forward, one backward; what layers of a stage exchange in a
 * micro-batch is one collective in the middle of it; gradients are reduced at the end.
 * Labels: forward, backward, and the dimensions dp, tp, cp, ep, pp, mp.  The caller destroys
 * the graph.  NULL with ERR (OCS_NEVER: the strategy does not fit; OCS_USAGE: too many tasks). */
struct ocs_netsim_graph *ocs_netsim_model_graph(const struct ocs_model *model,
						const struct ocs_model_machine *machine,
						const struct ocs_model_strategy *strategy,
						struct ocs_error *err);

#endif
