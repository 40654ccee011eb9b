/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/moe/predict.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/moe/predict_fit.h"
#include "src/util/text.h"

#define HALF 0.5  /* of the average that the newest pass is */
#define LATE 0.95 /* weight of an error against the next one, where a method is chosen */

/* How well a method did. */
struct score {
	struct ocs_moe_error sum; /* over PASSES */
	long passes;
	double late; /* the differences of late; the first ones count as well */
};

struct layer {
	double *last, *average; /* [experts]; of the passes seen */
	long passes;
	struct ocs_moe_copilot *copilot;
	struct ocs_moe_innovation *innovation;
	struct score score[OCS_MOE_METHODS + 1];
};

struct ocs_moe_predictor {
	int experts, layers;
	struct layer *layer;
	double *loads, *said; /* [experts] */
	/* Of the pass that is under way: by how much each layer was off its average before it. */
	double *innovation; /* [layers x experts] */
};

const char *ocs_moe_method_name(enum ocs_moe_method method)
{
	static const char *const names[] = {
		[OCS_MOE_UNIFORM] = "uniform", [OCS_MOE_PREVIOUS] = "previous",
		[OCS_MOE_LAST] = "last",       [OCS_MOE_AVERAGE] = "average",
		[OCS_MOE_COPILOT] = "copilot", [OCS_MOE_INNOVATION] = "innovation",
		[OCS_MOE_CHOSEN] = "chosen",
	};

	return names[method];
}

struct ocs_moe_predictor *ocs_moe_predictor_create(int experts, int layers)
{
	struct ocs_moe_predictor *p = ocs_calloc(1, sizeof(*p));
	size_t n = (size_t)experts;

	p->experts = experts;
	p->layers = layers;
	p->layer = ocs_calloc((size_t)layers, sizeof(*p->layer));
	p->loads = ocs_calloc(n, sizeof(double));
	p->said = ocs_calloc(n, sizeof(double));
	p->innovation = ocs_calloc(n * (size_t)layers, sizeof(double));
	for (int l = 0; l < layers; l++) {
		p->layer[l].last = ocs_calloc(n, sizeof(double));
		p->layer[l].average = ocs_calloc(n, sizeof(double));
		/* The first layer of a pass has none before it. */
		p->layer[l].copilot = l ? ocs_moe_copilot_create(experts) : NULL;
		p->layer[l].innovation = l ? ocs_moe_innovation_create(experts) : NULL;
		for (int e = 0; e < experts; e++)
			p->layer[l].last[e] = p->layer[l].average[e] = 1.0 / experts;
	}
	return p;
}

void ocs_moe_predictor_destroy(struct ocs_moe_predictor *predictor)
{
	if (!predictor)
		return;
	for (int l = 0; l < predictor->layers; l++) {
		free(predictor->layer[l].last);
		free(predictor->layer[l].average);
		ocs_moe_copilot_destroy(predictor->layer[l].copilot);
		ocs_moe_innovation_destroy(predictor->layer[l].innovation);
	}
	free(predictor->layer);
	free(predictor->loads);
	free(predictor->said);
	free(predictor->innovation);
	free(predictor);
}

/* Makes LOADS shares; all alike if there is nothing. */
static void loads_normalise(double *loads, int n)
{
	double sum = 0;

	for (int e = 0; e < n; e++) {
		if (!(loads[e] > 0))
			loads[e] = 0;
		sum += loads[e];
	}
	for (int e = 0; e < n; e++)
		loads[e] = sum > 0 ? loads[e] / sum : 1.0 / n;
}

static enum ocs_moe_method method_choose(const struct layer *layer)
{
	enum ocs_moe_method best = OCS_MOE_LAST;

	for (int m = 0; m < OCS_MOE_METHODS; m++)
		if (layer->score[m].late < layer->score[best].late)
			best = (enum ocs_moe_method)m;
	return best;
}

enum ocs_moe_method ocs_moe_predict_method(const struct ocs_moe_predictor *predictor, int layer)
{
	return method_choose(&predictor->layer[layer]);
}

void ocs_moe_predict(const struct ocs_moe_predictor *p, int l, enum ocs_moe_method method,
		     double *loads)
{
	const struct layer *layer = &p->layer[l], *before = l ? &p->layer[l - 1] : NULL;
	size_t size = (size_t)p->experts * sizeof(*loads);

	if (method == OCS_MOE_CHOSEN)
		method = method_choose(layer);
	if (method == OCS_MOE_UNIFORM) {
		for (int e = 0; e < p->experts; e++)
			loads[e] = 1.0 / p->experts;
	} else if (method == OCS_MOE_PREVIOUS && before) {
		memcpy(loads, before->last, size);
	} else if (method == OCS_MOE_COPILOT && before) {
		ocs_moe_copilot_apply(layer->copilot, before->last, loads);
	} else if (method == OCS_MOE_LAST || method == OCS_MOE_PREVIOUS) {
		memcpy(loads, layer->last, size);
	} else {
		memcpy(loads, layer->average, size);
		if (method == OCS_MOE_INNOVATION && before)
			ocs_moe_innovation_apply(layer->innovation,
						 p->innovation + (size_t)(l - 1) * p->experts,
						 loads);
	}
	loads_normalise(loads, p->experts);
}

/* The OCS_MOE_TOP largest of LOADS, the largest first; of equals the first.  Returns how many there are. */
static int largest_find(const double *loads, int n, int *largest)
{
	int found = 0;

	for (int e = 0; e < n; e++) {
		int at = found;

		while (at && loads[e] > loads[largest[at - 1]])
			at--;
		if (at == OCS_MOE_TOP)
			continue;
		if (found < OCS_MOE_TOP)
			found++;
		memmove(&largest[at + 1], &largest[at],
			(size_t)(found - 1 - at) * sizeof(*largest));
		largest[at] = e;
	}
	return found;
}

/* TOP[k - 1] grows by the share of the K first of REAL, COUNT experts, that are among the K first of SAID. */
static void top_add(const int *said, const int *real, int count, double *top)
{
	for (int k = 1; k <= OCS_MOE_TOP; k++) {
		int most = k < count ? k : count, right = 0;

		for (int i = 0; i < most; i++)
			for (int j = 0; j < most; j++)
				right += said[i] == real[j];
		top[k - 1] += (double)right / most;
	}
}

/* Compares what every method says of layer L with p->loads. */
static void scores_add(struct ocs_moe_predictor *p, int l)
{
	struct layer *layer = &p->layer[l];
	int said[OCS_MOE_TOP], real[OCS_MOE_TOP];

	largest_find(p->loads, p->experts, real);
	for (int m = OCS_MOE_METHODS; m >= 0; m--) {
		struct score *score = &layer->score[m];
		double difference = 0;

		ocs_moe_predict(p, l, (enum ocs_moe_method)m, p->said);
		for (int e = 0; e < p->experts; e++)
			difference += fabs(p->said[e] - p->loads[e]);
		score->late = LATE * score->late + (1 - LATE) * difference;
		if (layer->passes < OCS_MOE_WARM)
			continue;
		score->passes++;
		score->sum.difference += difference;
		top_add(said, real, largest_find(p->said, p->experts, said), score->sum.top);
	}
}

void ocs_moe_observe(struct ocs_moe_predictor *p, int l, const double *loads)
{
	struct layer *layer = &p->layer[l];
	double *innovation = p->innovation + (size_t)l * p->experts;

	memcpy(p->loads, loads, (size_t)p->experts * sizeof(*loads));
	loads_normalise(p->loads, p->experts);
	scores_add(p, l);
	for (int e = 0; e < p->experts; e++)
		innovation[e] = layer->passes ? p->loads[e] - layer->average[e] : 0;
	if (l) {
		ocs_moe_copilot_learn(layer->copilot, p->layer[l - 1].last, p->loads);
		if (layer->passes)
			ocs_moe_innovation_learn(layer->innovation, innovation - p->experts,
						 innovation);
	}
	for (int e = 0; e < p->experts; e++)
		layer->average[e] += (layer->passes ? HALF : 1) * (p->loads[e] - layer->average[e]);
	memcpy(layer->last, p->loads, (size_t)p->experts * sizeof(*loads));
	layer->passes++;
}

long ocs_moe_predict_error(const struct ocs_moe_predictor *predictor, int layer,
			   enum ocs_moe_method method, struct ocs_moe_error *error)
{
	const struct score *score = &predictor->layer[layer].score[method];
	double passes = score->passes ? (double)score->passes : 1;

	error->difference = score->sum.difference / passes;
	for (int k = 0; k < OCS_MOE_TOP; k++)
		error->top[k] = score->sum.top[k] / passes;
	return score->passes;
}

void ocs_moe_error_add(struct ocs_moe_error *mean, const struct ocs_moe_error *error, int count)
{
	mean->difference += error->difference / count;
	for (int k = 0; k < OCS_MOE_TOP; k++)
		mean->top[k] += error->top[k] / count;
}
