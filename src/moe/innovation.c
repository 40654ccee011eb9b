/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include <stdlib.h>

#include "src/moe/predict_fit.h"
#include "src/util/text.h"

#define FORGET 0.99    /* weight of a pass against the next one */
#define DOUBT 10.0     /* how little is known at first, in passes' worth of loads squared */
#define DOUBT_MOST 1e6 /* what was not seen for long is not forgotten without end */

/* Recursive least squares: y = matrix x.  All rows share the inverse of what was seen of X. */
struct ocs_moe_innovation {
	int n;
	double *matrix;	 /* [n x n] */
	double *inverse; /* [n x n], symmetric */
	double *gain;	 /* [n] */
};

struct ocs_moe_innovation *ocs_moe_innovation_create(int experts)
{
	struct ocs_moe_innovation *innovation = ocs_calloc(1, sizeof(*innovation));
	size_t n = (size_t)experts;

	innovation->n = experts;
	innovation->matrix = ocs_calloc(n * n, sizeof(double));
	innovation->inverse = ocs_calloc(n * n, sizeof(double));
	innovation->gain = ocs_calloc(n, sizeof(double));
	for (size_t i = 0; i < n; i++)
		innovation->inverse[i * n + i] = DOUBT * experts;
	return innovation;
}

void ocs_moe_innovation_destroy(struct ocs_moe_innovation *innovation)
{
	if (!innovation)
		return;
	free(innovation->matrix);
	free(innovation->inverse);
	free(innovation->gain);
	free(innovation);
}

void ocs_moe_innovation_apply(const struct ocs_moe_innovation *innovation, const double *x,
			      double *y)
{
	int n = innovation->n;

	for (int i = 0; i < n; i++)
		for (int j = 0; j < n; j++)
			y[i] += innovation->matrix[i * n + j] * x[j];
}

/* Sets GAIN to inverse x; returns x inverse x. */
static double gain_set(struct ocs_moe_innovation *innovation, const double *x)
{
	int n = innovation->n;
	double seen = 0;

	for (int i = 0; i < n; i++) {
		innovation->gain[i] = 0;
		for (int j = 0; j < n; j++)
			innovation->gain[i] += innovation->inverse[i * n + j] * x[j];
		seen += innovation->gain[i] * x[i];
	}
	return seen;
}

void ocs_moe_innovation_learn(struct ocs_moe_innovation *innovation, const double *x,
			      const double *y)
{
	int n = innovation->n;
	double seen = gain_set(innovation, x), most = 0;

	for (int i = 0; i < n; i++) {
		double off = y[i];

		for (int j = 0; j < n; j++)
			off -= innovation->matrix[i * n + j] * x[j];
		for (int j = 0; j < n; j++)
			innovation->matrix[i * n + j] +=
				off * innovation->gain[j] / (FORGET + seen);
	}
	for (int i = 0; i < n; i++)
		for (int j = 0; j < n; j++)
			innovation->inverse[i * n + j] -=
				innovation->gain[i] * innovation->gain[j] / (FORGET + seen);
	for (int i = 0; i < n; i++)
		if (innovation->inverse[i * n + i] > most)
			most = innovation->inverse[i * n + i];
	for (int k = 0; most / FORGET < DOUBT_MOST * n && k < n * n; k++)
		innovation->inverse[k] /= FORGET;
}
