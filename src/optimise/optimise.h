/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_OPTIMISE_OPTIMISE_H
#define OCS_OPTIMISE_OPTIMISE_H

/* The strategy of parallelisation and the topology for it, found together.  doc/models.md says
 * how a step is estimated and what each method does. */

#include <stdbool.h>

#include "src/model/strategy.h"

struct ocs_error;
struct ocs_plan;

enum ocs_optimise_method {
	OCS_OPTIMISE_DESCENT,	 /* coordinate descent with restarts, chains solved exactly */
	OCS_OPTIMISE_MCMC,	 /* the published random walk */
	OCS_OPTIMISE_EXHAUSTIVE, /* all strategies; for small models */
};

struct ocs_optimise_request {
	const struct ocs_model *model;
	struct ocs_model_machine machine;
	int degree;  /* optical interfaces of a server */
	double rate; /* bytes per second of each */
	enum ocs_optimise_method method;
	long budget;   /* evaluations of a step at most; 0: 400 of descent, 4000 of MCMC */
	unsigned seed; /* same request, same result */
	bool switched; /* no planned circuits: an ideal switch of the same rate */
};

struct ocs_optimise_time {
	double compute, network; /* ms; network: of all dimensions */
	double dimensions[OCS_MODEL_DIMENSIONS];
	double total;
};

struct ocs_optimise_result {
	struct ocs_model_strategy *strategy;
	struct ocs_plan *plan; /* NULL for an ideal switch */
	struct ocs_optimise_time time;
	double memory;	 /* bytes of the fullest GPU */
	double start_ms; /* data parallelism alone, whether it fits or not */
	bool start_fits;
	/* the strategy that is best on an ideal switch, on a topology made for it afterwards */
	double sequential_ms;
	long evaluations; /* of a step */
	int rounds;	  /* of strategy and topology in turn */
};

/* 0, and the caller frees what RESULT has (ocs_optimise_result_free); or -1 with ERR: OCS_NEVER
 * (nothing fits the memory, or no plan can be made), OCS_USAGE (exhaustive: too many). */
int ocs_optimise(const struct ocs_optimise_request *request, struct ocs_optimise_result *result,
		 struct ocs_error *err);
void ocs_optimise_result_free(struct ocs_optimise_result *result);

/* The time of a step with STRATEGY on PLAN, which has routes, or on an ideal switch (NULL). */
void ocs_optimise_estimate(const struct ocs_optimise_request *request,
			   const struct ocs_model_strategy *strategy, const struct ocs_plan *plan,
			   struct ocs_optimise_time *time);
/* A plan with routes for the traffic of STRATEGY.  NULL with ERR. */
struct ocs_plan *ocs_optimise_plan(const struct ocs_optimise_request *request,
				   const struct ocs_model_strategy *strategy,
				   struct ocs_error *err);

/* "pp:4,dp:16,cp:1,tp:8" without the ones, as --shape takes it; the caller frees it. */
char *ocs_optimise_shape(const struct ocs_optimise_request *request,
			 const struct ocs_model_strategy *strategy);

#endif
