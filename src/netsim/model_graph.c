/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/netsim/model_graph.h"

#include "src/model/strategy.h"
#include "src/netsim/graph.h"
#include "src/netsim/model_internal.h"
#include "src/util/error.h"

#define PASSES_MAX 2e6 /* of micro-batches through servers */

/* Stages fill whole servers, or servers hold whole stages; and there are not too many tasks. */
static int stages_check(const struct ocs_model *model, const struct ocs_model_machine *machine,
			const struct ocs_model_strategy *strategy, struct ocs_error *err)
{
	int ranks = strategy->dp * strategy->cp * strategy->tp;
	int micro;

	if (ocs_model_strategy_check(model, machine, strategy, err))
		return -1;
	if (ranks % machine->gpus && machine->gpus % ranks)
		return ocs_error_set(err, OCS_NEVER,
				     "%s: a stage of %d GPUs fills no whole servers of %d",
				     model->name, ranks, machine->gpus);
	micro = ocs_model_microbatches(model, machine, strategy);
	if (2.0 * micro * machine->servers * (machine->gpus > ranks ? machine->gpus / ranks : 1) >
	    PASSES_MAX)
		return ocs_error_set(err, OCS_USAGE,
				     "%s: %d micro-batches on %d servers are more than a step that "
				     "can be simulated; make the micro-batch larger",
				     model->name, micro, machine->servers);
	return 0;
}

struct ocs_netsim_graph *ocs_netsim_model_graph(const struct ocs_model *model,
						const struct ocs_model_machine *machine,
						const struct ocs_model_strategy *strategy,
						struct ocs_error *err)
{
	struct ocs_netsim_graph *graph;
	int ranks = strategy->dp * strategy->cp * strategy->tp;

	if (!strategy->layout && stages_check(model, machine, strategy, err))
		return NULL;
	graph = ocs_netsim_graph_create(
		machine->servers,
		!strategy->layout && ranks < machine->gpus ? machine->gpus / ranks : 1);
	if (strategy->layout)
		ocs_netsim_model_operators(graph, model, machine, strategy);
	else
		ocs_netsim_model_stages(graph, model, machine, strategy);
	if (!ocs_netsim_graph_check(graph, err))
		return graph;
	ocs_netsim_graph_destroy(graph);
	return NULL;
}
