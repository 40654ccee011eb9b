/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/optimise/internal.h"

#define MICROBATCH_MAX 64

/* tp within a server, ep as the experts allow; a pipeline of whole servers or whole stages. */
static bool dimensions_allowed(const struct ocs_optimise_request *request,
			       const struct ocs_model_strategy *s)
{
	int ranks = s->dp * s->cp * s->tp, gpus = request->machine.gpus;

	if (ranks % gpus && gpus % ranks)
		return false;
	return !ocs_model_strategy_check(request->model, &request->machine, s, NULL);
}

static void strategy_try(struct ocs_optimise_search *search, struct ocs_model_strategy *s)
{
	const struct ocs_optimise_request *request = search->request;

	for (s->microbatch = 1; s->microbatch <= MICROBATCH_MAX; s->microbatch *= 2)
		if (search->evaluations < search->budget && dimensions_allowed(request, s))
			ocs_optimise_keep(search, s, ocs_optimise_cost(search, s));
}

/* The most experts of an operator. */
static int experts_most(const struct ocs_model *model)
{
	int most = 1;

	for (int i = 0; i < model->noperators; i++) {
		const struct ocs_model_operator *op = &model->operators[i];

		if (op->kind == OCS_MODEL_EXPERTS && op->experts > most)
			most = op->experts;
	}
	return most;
}

void ocs_optimise_dimensions(struct ocs_optimise_search *search)
{
	const struct ocs_optimise_request *request = search->request;
	struct ocs_model_strategy *s = ocs_model_strategy_create(request->model, false);
	int gpus = request->machine.servers * request->machine.gpus;
	int experts = experts_most(request->model);

	for (int tp = 1; tp <= request->machine.gpus; tp++)
		for (int cp = 1; gpus % tp == 0 && cp <= gpus / tp && cp <= 16; cp *= 2)
			for (int pp = 1; gpus / tp % cp == 0 && pp <= gpus / tp / cp; pp++)
				for (int ep = 1; gpus / tp / cp % pp == 0 && ep <= experts; ep++) {
					if (experts % ep)
						continue;
					s->tp = tp;
					s->cp = cp;
					s->pp = pp;
					s->ep = ep;
					s->dp = gpus / tp / cp / pp;
					strategy_try(search, s);
				}
	ocs_model_strategy_destroy(s);
}
