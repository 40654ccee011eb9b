/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* What the descent is measured against: the published random walk, and all strategies. */

#include <math.h>
#include <stdlib.h>

#include "src/optimise/internal.h"
#include "src/util/error.h"

#define ENUMERATE_MAX 4e6 /* strategies */

/* One operator in another way. */
static void operator_change(struct ocs_optimise_search *search, struct ocs_model_strategy *strategy)
{
	unsigned servers = (unsigned)search->request->machine.servers;
	int op = (int)ocs_optimise_random(&search->seed,
					  (unsigned)search->request->model->noperators);
	/* every server is a way of its own, as in the published search */
	unsigned way = ocs_optimise_random(&search->seed, OCS_MODEL_PLACED + servers);

	strategy->layout[op] =
		(unsigned char)(way < OCS_MODEL_PLACED ? way : (unsigned)OCS_MODEL_PLACED);
	strategy->server[op] = way < OCS_MODEL_PLACED ? 0 : (int)(way - OCS_MODEL_PLACED);
}

int ocs_optimise_walk(struct ocs_optimise_search *search, struct ocs_error *err)
{
	const struct ocs_model *model = search->request->model;
	struct ocs_model_strategy *now = ocs_optimise_start(search->request, false), *next;
	double cost = ocs_optimise_cost(search, now), other;
	long back = search->budget / 100 > 0 ? search->budget / 100 : 1, fruitless = 0;

	ocs_optimise_keep(search, now, cost);
	for (long i = 1; search->evaluations < search->budget; i++) {
		next = ocs_model_strategy_copy(model, now);
		operator_change(search, next);
		other = ocs_optimise_cost(search, next);
		fruitless++;
		/* a difference in ms, alpha 1, as published */
		if (other < cost ||
		    ocs_optimise_random(&search->seed, 1u << 20) < exp(cost - other) * (1 << 20)) {
			ocs_model_strategy_destroy(now);
			now = next;
			cost = other;
			if (ocs_optimise_keep(search, now, cost))
				fruitless = 0;
		} else {
			ocs_model_strategy_destroy(next);
		}
		if (i % back)
			continue;
		/* back to the best, on a topology of its own if one helped or none did for long */
		ocs_model_strategy_destroy(now);
		now = ocs_model_strategy_copy(model, search->best);
		if (!search->request->switched && (fruitless < back || fruitless > 10 * back) &&
		    ocs_optimise_topology(search, now, err)) {
			ocs_model_strategy_destroy(now);
			return -1;
		}
		cost = ocs_optimise_cost(search, now);
	}
	ocs_model_strategy_destroy(now);
	return 0;
}

int ocs_optimise_enumerate(struct ocs_optimise_search *search, struct ocs_error *err)
{
	const struct ocs_model *model = search->request->model;
	int ways = OCS_MODEL_PLACED + search->request->machine.servers, op = 0;
	struct ocs_model_strategy *strategy = ocs_model_strategy_create(model, true);

	if (pow(ways, model->noperators) > ENUMERATE_MAX) {
		ocs_model_strategy_destroy(strategy);
		return ocs_error_set(err, OCS_USAGE,
				     "optimise: %d operators in %d ways each are too many to try "
				     "all; --method descent takes them",
				     model->noperators, ways);
	}
	while (op < model->noperators) {
		ocs_optimise_keep(search, strategy, ocs_optimise_cost(search, strategy));
		/* the next one, counted like a number with a digit per operator */
		for (op = 0; op < model->noperators; op++) {
			int way = strategy->layout[op] < OCS_MODEL_PLACED ?
					  strategy->layout[op] :
					  OCS_MODEL_PLACED + strategy->server[op];

			way = (way + 1) % ways;
			strategy->layout[op] =
				(unsigned char)(way < OCS_MODEL_PLACED ? way :
									 (int)OCS_MODEL_PLACED);
			strategy->server[op] =
				way < OCS_MODEL_PLACED ? 0 : way - (int)OCS_MODEL_PLACED;
			if (way)
				break;
		}
	}
	ocs_model_strategy_destroy(strategy);
	return 0;
}
