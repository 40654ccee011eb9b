/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_NETSIM_MODEL_INTERNAL_H
#define OCS_NETSIM_MODEL_INTERNAL_H

#include "src/netsim/model_graph.h"

/* Adds the tasks of a strategy by dimensions, which fits, to the empty GRAPH. */
void ocs_netsim_model_stages(struct ocs_netsim_graph *graph, const struct ocs_model *model,
			     const struct ocs_model_machine *machine,
			     const struct ocs_model_strategy *strategy);
/* The same for a strategy by operators. */
void ocs_netsim_model_operators(struct ocs_netsim_graph *graph, const struct ocs_model *model,
				const struct ocs_model_machine *machine,
				const struct ocs_model_strategy *strategy);

#endif
