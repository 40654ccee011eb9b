/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "src/moe/predict_fit.h"
#include "src/util/text.h"

#define WINDOW 10   /* passes */
#define FADE 0.9    /* weight of a pass against the next one */
#define ANCHOR 0.02 /* weight of the fit before, against that of the newest pass */
#define DESCENTS 30 /* steps of a fit, which starts from the one before */

struct ocs_moe_copilot {
	int n;
	double *matrix; /* [n x n], row-major: y = matrix x; columns on the simplex */
	double *before; /* [n x n] the fit before */
	double *slope;	/* [n x n] */
	double *x, *y;	/* [WINDOW x n] a ring, at % WINDOW is next */
	double *rest;	/* [n] */
	double *sorted; /* [n] */
	long at;
};

struct ocs_moe_copilot *ocs_moe_copilot_create(int experts)
{
	struct ocs_moe_copilot *copilot = ocs_calloc(1, sizeof(*copilot));
	size_t n = (size_t)experts;

	copilot->n = experts;
	copilot->matrix = ocs_calloc(n * n, sizeof(double));
	copilot->before = ocs_calloc(n * n, sizeof(double));
	copilot->slope = ocs_calloc(n * n, sizeof(double));
	copilot->x = ocs_calloc(WINDOW * n, sizeof(double));
	copilot->y = ocs_calloc(WINDOW * n, sizeof(double));
	copilot->rest = ocs_calloc(n, sizeof(double));
	copilot->sorted = ocs_calloc(n, sizeof(double));
	for (size_t k = 0; k < n * n; k++)
		copilot->matrix[k] = 1.0 / experts;
	return copilot;
}

void ocs_moe_copilot_destroy(struct ocs_moe_copilot *copilot)
{
	if (!copilot)
		return;
	free(copilot->matrix);
	free(copilot->before);
	free(copilot->slope);
	free(copilot->x);
	free(copilot->y);
	free(copilot->rest);
	free(copilot->sorted);
	free(copilot);
}

void ocs_moe_copilot_apply(const struct ocs_moe_copilot *copilot, const double *x, double *y)
{
	for (int i = 0; i < copilot->n; i++) {
		double sum = 0;

		for (int j = 0; j < copilot->n; j++)
			sum += copilot->matrix[i * copilot->n + j] * x[j];
		y[i] = sum;
	}
}

static int number_compare_falling(const void *left, const void *right)
{
	double a = *(const double *)left, b = *(const double *)right;

	return a > b ? -1 : a < b;
}

/* Moves column J to the nearest point of the simplex: what is above a level, less that level. */
static void column_project(struct ocs_moe_copilot *copilot, int j)
{
	int n = copilot->n;
	double sum = 0, level = 0;

	for (int i = 0; i < n; i++)
		copilot->sorted[i] = copilot->matrix[i * n + j];
	qsort(copilot->sorted, (size_t)n, sizeof(double), number_compare_falling);
	for (int i = 0; i < n; i++) {
		sum += copilot->sorted[i];
		if (copilot->sorted[i] > (sum - 1) / (i + 1))
			level = (sum - 1) / (i + 1);
	}
	for (int i = 0; i < n; i++) {
		double *cell = &copilot->matrix[i * n + j];

		*cell = *cell > level ? *cell - level : 0;
	}
}

/* Adds to SLOPE what the pass at W of the window, weighted, says; returns the weighted square of
 * its X, by which the steps are limited. */
static double pass_slope(struct ocs_moe_copilot *copilot, int w, double weight)
{
	const double *x = copilot->x + (size_t)w * copilot->n;
	const double *y = copilot->y + (size_t)w * copilot->n;
	int n = copilot->n;
	double square = 0;

	ocs_moe_copilot_apply(copilot, x, copilot->rest);
	for (int i = 0; i < n; i++) {
		double off = weight * (copilot->rest[i] - y[i]);

		for (int j = 0; j < n; j++)
			copilot->slope[i * n + j] += off * x[j];
		square += weight * x[i] * x[i];
	}
	return square;
}

/* One step of projected gradient descent. */
static void matrix_descend(struct ocs_moe_copilot *copilot)
{
	int n = copilot->n;
	long passes = copilot->at < WINDOW ? copilot->at : WINDOW;
	double limit = ANCHOR, weight = 1;

	for (int k = 0; k < n * n; k++)
		copilot->slope[k] = ANCHOR * (copilot->matrix[k] - copilot->before[k]);
	for (long p = 1; p <= passes; p++, weight *= FADE)
		limit += pass_slope(copilot, (int)((copilot->at - p) % WINDOW), weight);
	for (int k = 0; k < n * n; k++)
		copilot->matrix[k] -= copilot->slope[k] / limit;
	for (int j = 0; j < n; j++)
		column_project(copilot, j);
}

void ocs_moe_copilot_learn(struct ocs_moe_copilot *copilot, const double *x, const double *y)
{
	size_t n = (size_t)copilot->n, at = (size_t)(copilot->at++ % WINDOW);

	memcpy(copilot->x + at * n, x, n * sizeof(*x));
	memcpy(copilot->y + at * n, y, n * sizeof(*y));
	memcpy(copilot->before, copilot->matrix, n * n * sizeof(*x));
	for (int k = 0; k < DESCENTS; k++)
		matrix_descend(copilot);
}
