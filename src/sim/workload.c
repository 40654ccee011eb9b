/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/sim/workload.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/sim/files.h"
#include "src/util/error.h"
#include "src/util/text.h"

#define EDGE 4 /* the published program counts cubes of 4x4x4 */
#define CUBES 64
#define LONGEST (EDGE * CUBES)
#define LONGEST_RING 256
#define SKEW 4.0

/* What the published program calls the probability of one, two or three dimensions. */
static const double class_weight[3][3] = {
	{ 0.8, 0.2, 0.0 }, /* up to 256 XPUs */
	{ 0.0, 0.8, 0.2 }, /* up to 1024 */
	{ 0.0, 0.2, 0.8 },
};

/* Quantiles of the durations of the Philly trace (zeros left out), in seconds; between
 * them the logarithm is taken as linear. */
static const double duration_quantile[][2] = {
	{ 0, 1 },	   { .001, 3 },	      { .01, 13 },    { .05, 35 },     { .1, 56 },
	{ .2, 76 },	   { .3, 265 },	      { .4, 699 },    { .5, 1322 },    { .6, 2130 },
	{ .7, 3540 },	   { .8, 8439 },      { .9, 33480 },  { .95, 123935 }, { .99, 756454 },
	{ .995, 1427973 }, { .999, 3061072 }, { 1, 5196151 },
};
#define GAP_MEAN 718.0

/* Slices of TPU v4 pods and their share in per cent, as published. */
static const struct {
	const char *shape;
	double share;
} tpu_mix[] = {
	{ "1x1x1", 2.1 },	   { "1x1x2", .4 },	      { "1x2x2", 6.7 },
	{ "2x2x2", 4.7 },	   { "2x2x4", 6.4 },	      { "2x4x4", 8.9 },
	{ "4x4x4", 13.9 },	   { "4x4x8_twisted", 16.0 }, { "4x4x8", 1.5 },
	{ "4x4x12", .7 },	   { "4x8x8_twisted", 9.2 },  { "4x8x8", 1.5 },
	{ "4x4x16", 1.0 },	   { "4x8x12", .1 },	      { "8x8x8", 9.6 },
	{ "4x8x16", 1.7 },	   { "4x4x32", .6 },	      { "8x8x12", .7 },
	{ "8x8x16_twisted", 1.8 }, { "8x8x16", 1.4 },	      { "4x16x16", .3 },
	{ "4x4x64", .1 },	   { "4x8x32", .1 },	      { "8x12x16", .1 },
	{ "4x4x96", .1 },	   { "8x8x24", .1 },	      { "8x16x16_twisted", 1.4 },
	{ "8x16x16", .3 },	   { "12x16x16", 5.7 },	      { "4x4x192", .4 },
};

static void shape_add(struct ocs_sim_workload *w, int n, int a, int b, int c)
{
	struct ocs_shape *shape;

	if (w->nshapes % 256 == 0)
		w->shapes = ocs_realloc(w->shapes, (size_t)(w->nshapes + 256) * sizeof(*w->shapes));
	shape = &w->shapes[w->nshapes++];
	memset(shape, 0, sizeof(*shape));
	shape->ndim = n;
	shape->extent[0] = a;
	shape->extent[1] = b;
	shape->extent[2] = c;
	shape->xpus = (long)a * (n > 1 ? b : 1) * (n > 2 ? c : 1);
}

static int cube_span(int extent)
{
	return (extent + EDGE - 1) / EDGE;
}

/* The shapes of one size: dimensions ascending, each even, within CUBES cubes. */
static void size_shapes(struct ocs_sim_workload *w, int xpus, struct ocs_sim_size *size)
{
	int a, b;

	size->xpus = xpus;
	size->first[0] = w->nshapes;
	if (xpus <= LONGEST_RING)
		shape_add(w, 1, xpus, 0, 0);
	size->first[1] = w->nshapes;
	for (a = 2; a * a <= xpus; a += 2) {
		b = xpus / a;
		if (xpus % a || b % 2 || b > LONGEST || cube_span(a) * cube_span(b) > CUBES)
			continue;
		shape_add(w, 2, a, b, 0);
	}
	size->first[2] = w->nshapes;
	for (a = 2; a * a * a <= xpus; a += 2) {
		for (b = a; xpus % a == 0 && a * b * b <= xpus; b += 2) {
			int c = xpus / a / b;

			if (xpus / a % b || c % 2 || c > LONGEST ||
			    cube_span(a) * cube_span(b) * cube_span(c) > CUBES)
				continue;
			shape_add(w, 3, a, b, c);
		}
	}
	size->first[3] = w->nshapes;
}

static void size_add(struct ocs_sim_workload *w, int xpus)
{
	struct ocs_sim_size size;

	size_shapes(w, xpus, &size);
	if (size.first[3] == size.first[0])
		return;
	w->sizes = ocs_realloc(w->sizes, (size_t)(w->nsizes + 1) * sizeof(*w->sizes));
	w->sizes[w->nsizes++] = size;
}

static void sizes_make(struct ocs_sim_workload *w)
{
	int i;

	size_add(w, 1);
	size_add(w, 2);
	if (w->kind == OCS_SIM_RFOLD_2025) {
		for (i = 4; i <= 2048; i += 4)
			size_add(w, i);
	} else {
		for (i = 4; i <= CUBES * EDGE * EDGE * EDGE; i += 2)
			size_add(w, i);
	}
}

static void mix_make(struct ocs_sim_workload *w)
{
	size_t i;

	w->shapes = ocs_calloc(sizeof(tpu_mix) / sizeof(tpu_mix[0]), sizeof(*w->shapes));
	for (i = 0; i < sizeof(tpu_mix) / sizeof(tpu_mix[0]); i++) {
		/* cannot fail: the shapes are written above, and a test draws them all */
		if (ocs_shape_parse(tpu_mix[i].shape, NULL, &w->shapes[w->nshapes], NULL))
			continue;
		ocs_sim_values_add(&w->mix, w->nshapes++, tpu_mix[i].share);
	}
}

int ocs_sim_workload_open(struct ocs_sim_workload *w, const char *name, const char *durations,
			  const char *gaps, const char *sizes, struct ocs_error *err)
{
	memset(w, 0, sizeof(*w));
	if (!strcmp(name, "rfold-2025"))
		w->kind = OCS_SIM_RFOLD_2025;
	else if (!strcmp(name, "rfold-2025b"))
		w->kind = OCS_SIM_RFOLD_2025B;
	else if (!strcmp(name, "tpu-v4"))
		w->kind = OCS_SIM_TPU_V4;
	else
		return ocs_error_set(err, OCS_USAGE,
				     "there is no workload '%s'; use rfold-2025, "
				     "rfold-2025b or tpu-v4",
				     name);
	if (sizes && w->kind != OCS_SIM_TPU_V4)
		return ocs_error_set(err, OCS_USAGE,
				     "a file of sizes belongs to the workload "
				     "tpu-v4, not to %s",
				     name);
	w->fitted_durations = !durations;
	w->fitted_gaps = !gaps;
	w->gap_mean = GAP_MEAN;
	if (durations && ocs_sim_durations_read(&w->durations, durations, err))
		return -1;
	if (gaps && ocs_sim_gaps_read(&w->gaps, gaps, err))
		return -1;
	if (sizes)
		return ocs_sim_mix_read(w, sizes, err);
	if (w->kind == OCS_SIM_TPU_V4)
		mix_make(w);
	else
		sizes_make(w);
	return 0;
}

void ocs_sim_workload_free(struct ocs_sim_workload *w)
{
	free(w->sizes);
	free(w->shapes);
	ocs_sim_values_free(&w->mix);
	ocs_sim_values_free(&w->durations);
	ocs_sim_values_free(&w->gaps);
	memset(w, 0, sizeof(*w));
}

static double fitted_duration(struct ocs_random *random)
{
	double u = ocs_random_unit(random);
	size_t i = 1;

	while (duration_quantile[i][0] <= u)
		i++;
	u = (u - duration_quantile[i - 1][0]) /
	    (duration_quantile[i][0] - duration_quantile[i - 1][0]);
	return ceil(
		exp(log(duration_quantile[i - 1][1]) * (1 - u) + log(duration_quantile[i][1]) * u));
}

/* The weights of the classes a size has; they sum up to one. */
static void class_weights(const struct ocs_sim_size *size, double weight[3])
{
	const double *w = class_weight[size->xpus <= 256 ? 0 : size->xpus <= 1024 ? 1 : 2];
	double sum = 0;
	int c;

	for (c = 0; c < 3; c++) {
		weight[c] = size->first[c + 1] > size->first[c] ? w[c] : 0;
		sum += weight[c];
	}
	for (c = 0; c < 3; c++)
		weight[c] /= sum;
}

/* The share of sizes below rank K: an exponential of scale n/4, cut off at n. */
static double rank_share(const struct ocs_sim_workload *w, double k)
{
	return -expm1(-SKEW * k / w->nsizes) / -expm1(-SKEW);
}

static int shape_draw(const struct ocs_sim_workload *w, struct ocs_random *random)
{
	const struct ocs_sim_size *size;
	double weight[3], u;
	int k, c = 0;

	if (w->kind == OCS_SIM_TPU_V4)
		return ocs_sim_values_pick(&w->mix, random);
	k = (int)(-log1p(ocs_random_unit(random) * expm1(-SKEW)) * w->nsizes / SKEW);
	size = &w->sizes[k < w->nsizes ? k : w->nsizes - 1];
	class_weights(size, weight);
	for (u = ocs_random_unit(random); c < 2 && u >= weight[c]; c++)
		u -= weight[c];
	/* rounding may leave a class that has no shapes */
	while (size->first[c + 1] == size->first[c])
		c--;
	return size->first[c] + ocs_random_below(random, size->first[c + 1] - size->first[c]);
}

double ocs_sim_workload_probability(const struct ocs_sim_workload *w, int index)
{
	const struct ocs_sim_size *size;
	double weight[3];
	int k, c = 0;

	if (w->kind == OCS_SIM_TPU_V4)
		return (w->mix.sum[index] - (index ? w->mix.sum[index - 1] : 0)) /
		       w->mix.sum[w->mix.n - 1];
	for (k = 0; w->sizes[k].first[3] <= index; k++)
		;
	size = &w->sizes[k];
	while (size->first[c + 1] <= index)
		c++;
	class_weights(size, weight);
	return (rank_share(w, k + 1) - rank_share(w, k)) * weight[c] /
	       (size->first[c + 1] - size->first[c]);
}

double ocs_sim_workload_draw(const struct ocs_sim_workload *w, struct ocs_random *random,
			     struct ocs_sim_job *job)
{
	job->shape = w->shapes[shape_draw(w, random)];
	job->priority = 0;
	job->duration = w->fitted_durations ?
				fitted_duration(random) :
				w->durations.value[ocs_sim_values_pick(&w->durations, random)];
	if (w->fitted_gaps)
		return ceil(-log1p(-ocs_random_unit(random)) * w->gap_mean);
	return w->gaps.value[ocs_sim_values_pick(&w->gaps, random)];
}
