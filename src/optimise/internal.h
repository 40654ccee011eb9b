/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_OPTIMISE_INTERNAL_H
#define OCS_OPTIMISE_INTERNAL_H

#include "src/optimise/optimise.h"

/* Circuits and routes of a plan, ready for many estimates. */
struct ocs_optimise_network;

/* PLAN may be NULL: an ideal switch.  PLAN must outlive it; the caller destroys it. */
struct ocs_optimise_network *ocs_optimise_network_create(const struct ocs_optimise_request *request,
							 const struct ocs_plan *plan);
void ocs_optimise_network_destroy(struct ocs_optimise_network *network);
void ocs_optimise_network_estimate(struct ocs_optimise_network *network,
				   const struct ocs_model_strategy *strategy,
				   struct ocs_optimise_time *time);
/* Milliseconds per byte of uniform traffic of all servers, for exact solutions of chains. */
struct ocs_optimise_rates {
	double allreduce, allgather;
	double alltoall; /* per byte of all servers together, forward and backward */
};
void ocs_optimise_network_rates(struct ocs_optimise_network *network,
				struct ocs_optimise_rates *rates);

/* One search: what it has found, and what it has used. */
struct ocs_optimise_search {
	const struct ocs_optimise_request *request;
	struct ocs_plan *plan; /* that of network, or NULL */
	struct ocs_optimise_network *network;
	struct ocs_model_strategy *best;
	double best_cost;
	long evaluations, budget;
	unsigned seed;
};

/* The time of a step in ms; if STRATEGY does not fit the memory more than any that does.
 * Counts as one evaluation. */
double ocs_optimise_cost(struct ocs_optimise_search *search,
			 const struct ocs_model_strategy *strategy);
/* Keeps a copy of STRATEGY if it is the best so far; returns whether it is. */
bool ocs_optimise_keep(struct ocs_optimise_search *search,
		       const struct ocs_model_strategy *strategy, double cost);
/* Makes a topology for STRATEGY and lets the search use it.  Returns 0, or -1 with ERR. */
int ocs_optimise_topology(struct ocs_optimise_search *search,
			  const struct ocs_model_strategy *strategy, struct ocs_error *err);
#define OCS_OPTIMISE_OVERFULL 1e9 /* ms: the least cost of what does not fit */

/* The starts: data parallelism, and the same with embeddings on servers of their own, dealt out
 * evenly.  The caller destroys the strategy. */
struct ocs_model_strategy *ocs_optimise_start(const struct ocs_optimise_request *request,
					      bool tables_placed);

/* Methods for strategies by operators; each keeps the best it finds. */
void ocs_optimise_descend(struct ocs_optimise_search *search);
int ocs_optimise_walk(struct ocs_optimise_search *search, struct ocs_error *err);
int ocs_optimise_enumerate(struct ocs_optimise_search *search, struct ocs_error *err);
/* By dimensions: every way to divide the GPUs, on the network of the search. */
void ocs_optimise_dimensions(struct ocs_optimise_search *search);

/* The best layout of every operator that STRATEGY does not place, exactly, by dynamic
 * programming along the branches; the time of uniform traffic is a sum.  Changes STRATEGY. */
void ocs_optimise_chain(struct ocs_optimise_search *search, struct ocs_model_strategy *strategy);

unsigned ocs_optimise_random(unsigned *seed, unsigned below);

#endif
