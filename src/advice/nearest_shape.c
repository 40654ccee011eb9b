/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Shapes near another one: those of the same size and number of dimensions first, then by
 * size and form.  The distance is the sum of squares of the logarithms by which each extent
 * and the number of XPUs change.  So 8x8x4 is the nearest of 256 XPUs to 16x16x16, and
 * 4x4x8 is nearer to 5x5x5 than 4x4x4.  A dimension that is lost or made up counts for more:
 * 4x2x2 is nearer to 16x2x2 than 16x1x1. */

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "src/advice/nearest_shape.h"
#include "src/advice/reason.h"
#include "src/place/placer.h"
#include "src/util/text.h"

#define SCAN_MAX 4096	  /* extents looked at on the way to near ones that work */
#define EMPTY_CHECKS 400  /* shapes tried on an empty section */
#define NOW_CHECKS 24	  /* shapes tried on a busy one */
#define SAME_CHECKS 100	  /* of them, of the same size: on an empty section */
#define SAME_NOW_CHECKS 8 /* and on a busy one */
#define SAME_MAX 4096	  /* ways to write a size that are looked at */
#define VALUES_MAX 96
#define LOST (3LL << 20) /* added for such a dimension: thrice that of half an extent */
#define TWIST_MAX 256	 /* k of kxkx2k */

/* Extents tried per dimension, by the number of dimensions. */
static const int values_of[OCS_SHAPE_DIMS + 1] = { 0, VALUES_MAX, 40, 20, 10, 6, 6 };

struct near {
	struct ocs_shape shape;
	bool same; /* as many XPUs and dimensions as wanted */
	long long distance;
};

struct nearby {
	struct near *all;
	int n, room;
};

/* log2 in 1024ths, with nothing of libm that could differ between machines. */
static int log_of(long value)
{
	int whole = 63 - __builtin_clzl((unsigned long)value), i, result = whole;
	uint64_t x = (uint64_t)value << (62 - whole) >> 31; /* [1, 2) in 31 bits */

	for (i = 0; i < 10; i++) {
		x = x * x >> 31;
		result = 2 * result + (x >> 32 ? 1 : 0);
		x >>= x >> 32 ? 1 : 0;
	}
	return result;
}

static long long sizes_apart(long a, long b)
{
	long long d = log_of(a) - log_of(b);

	return d * d;
}

static long long extents_apart(int a, int b)
{
	return sizes_apart(a, b) + ((a > 1) != (b > 1) ? LOST : 0);
}

static long long shape_distance(const struct ocs_shape *a, const struct ocs_shape *b)
{
	long long sum = sizes_apart(a->xpus, b->xpus);
	int i;

	for (i = 0; i < a->ndim; i++)
		sum += extents_apart(a->extent[i], b->extent[i]);
	return sum;
}

static int near_compare(const void *left, const void *right)
{
	const struct near *p = left, *q = right;
	int i;

	if (p->same != q->same)
		return p->same ? -1 : 1;
	if (p->distance != q->distance)
		return p->distance < q->distance ? -1 : 1;
	if (p->shape.xpus != q->shape.xpus)
		return p->shape.xpus > q->shape.xpus ? -1 : 1; /* rather more XPUs */
	for (i = 0; i < p->shape.ndim; i++) {
		if (p->shape.extent[i] != q->shape.extent[i])
			return p->shape.extent[i] > q->shape.extent[i] ? -1 : 1;
	}
	return 0;
}

/* Dimensions longer than 1. */
static int long_dims(const struct ocs_shape *shape)
{
	int n = 0, i;

	for (i = 0; i < shape->ndim; i++)
		n += shape->extent[i] > 1;
	return n;
}

static void nearby_add(struct nearby *nearby, const struct ocs_shape *shape,
		       const struct ocs_shape *wanted)
{
	if (nearby->n == nearby->room) {
		nearby->room = nearby->room ? 2 * nearby->room : 256;
		nearby->all = ocs_realloc(nearby->all, (size_t)nearby->room * sizeof(*nearby->all));
	}
	nearby->all[nearby->n].shape = *shape;
	nearby->all[nearby->n].same =
		shape->xpus == wanted->xpus && long_dims(shape) == long_dims(wanted);
	nearby->all[nearby->n++].distance = shape_distance(shape, wanted);
}

bool ocs_reason_alone(const struct ocs_section *section, const struct ocs_shape *shape, int dim,
		      int extent)
{
	struct ocs_shape one = *shape;
	int i;

	for (i = 0; i < one.ndim; i++)
		one.extent[i] = 1;
	one.twisted = false;
	one.extent[dim] = extent;
	one.xpus = extent;
	return ocs_catalogue_possible(section, &one);
}

static int value_add(const struct ocs_section *section, const struct ocs_shape *shape, int dim,
		     long extent, int *values, int n)
{
	int i;

	if (extent < 1 || extent > (long)section->ncubes * section->cube_xpus)
		return n;
	for (i = 0; i < n; i++) {
		if (values[i] == extent)
			return n;
	}
	if (ocs_reason_alone(section, shape, dim, (int)extent))
		values[n++] = (int)extent;
	return n;
}

/* Extents of dimension DIM worth trying: the nearest, then powers of two and these
 * multiples of the edges.  Where dimensions are many, most of them must be short. */
static int values_find(const struct ocs_section *section, const struct ocs_shape *shape, int dim,
		       int *values)
{
	long exist = (long)section->ncubes * section->cube_xpus, power;
	int want = shape->extent[dim], most = values_of[shape->ndim], by, n = 0, a;

	if (want > exist)
		want = (int)exist;
	for (by = 0; by < SCAN_MAX && n < (most + 1) / 2; by++) {
		if (by >= want && want + by > exist)
			break;
		n = value_add(section, shape, dim, want - by, values, n);
		if (n < (most + 1) / 2 && want + by <= 4L * want + 8)
			n = value_add(section, shape, dim, want + by, values, n);
	}
	for (power = 1; power <= 4 && shape->ndim > OCS_AXES; power *= 2)
		n = value_add(section, shape, dim, power, values, n);
	for (power = 1; power <= exist; power *= 2)
		;
	for (; power && n < most; power /= 2) {
		if (power > 2L * want)
			continue;
		n = value_add(section, shape, dim, power, values, n);
		for (a = 0; a < OCS_AXES && n < most; a++)
			n = value_add(section, shape, dim, section->edge[a] * power, values, n);
	}
	return n;
}

/* All combinations of near extents, at most LIMIT XPUs. */
static void plain_find(const struct ocs_section *section, const struct ocs_shape *shape, long limit,
		       struct nearby *nearby)
{
	int values[OCS_SHAPE_DIMS][VALUES_MAX], count[OCS_SHAPE_DIMS] = { 0 };
	int at[OCS_SHAPE_DIMS] = { 0 }, i;

	for (i = 0; i < shape->ndim; i++)
		count[i] = values_find(section, shape, i, values[i]);
	while (true) {
		struct ocs_shape now = *shape;

		now.twisted = false;
		now.xpus = 1;
		for (i = 0; i < shape->ndim && now.xpus <= limit; i++) {
			now.extent[i] = values[i][at[i]];
			now.xpus *= now.extent[i];
		}
		if (now.xpus <= limit && ocs_reason_links(&now) <= OCS_REASON_PORTS)
			nearby_add(nearby, &now, shape);
		for (i = shape->ndim - 1; i >= 0 && ++at[i] == count[i]; i--)
			at[i] = 0;
		if (i < 0)
			return;
	}
}

/* The dimensions of SHAPE, the shortest first. */
static void dims_sort(const struct ocs_shape *shape, int order[OCS_SHAPE_DIMS])
{
	int i, j;

	for (i = 0; i < shape->ndim; i++) {
		for (j = i; j > 0 && shape->extent[order[j - 1]] > shape->extent[i]; j--)
			order[j] = order[j - 1];
		order[j] = i;
	}
}

/* Shapes of as many XPUs: the shortest extent to the dimension that is the shortest, and
 * so on, which is the nearest of all orders.  DONE dimensions have theirs, REST is for the
 * others, none shorter than LOW. */
static void same_find(const struct ocs_shape *shape, const int *order, int done, long rest,
		      long low, struct ocs_shape *now, struct nearby *nearby)
{
	long extent;

	if (done == shape->ndim - 1) {
		now->extent[order[done]] = (int)rest;
		if (ocs_reason_links(now) <= OCS_REASON_PORTS)
			nearby_add(nearby, now, shape);
		return;
	}
	for (extent = low; extent * extent <= rest && nearby->n < SAME_MAX; extent++) {
		if (rest % extent)
			continue;
		now->extent[order[done]] = (int)extent;
		same_find(shape, order, done + 1, rest / extent, extent, now, nearby);
	}
}

/* kxkx2k and kx2kx2k in every order. */
static void twisted_find(const struct ocs_section *section, const struct ocs_shape *shape,
			 long limit, struct nearby *nearby)
{
	int k, longer, i;

	for (k = section->edge[0]; k <= TWIST_MAX; k += section->edge[0]) {
		for (longer = 1; longer < 7; longer++) {
			struct ocs_shape now = *shape;

			now.xpus = 1;
			for (i = 0; i < 3; i++) {
				now.extent[i] = longer & 1 << i ? 2 * k : k;
				now.xpus *= now.extent[i];
			}
			if (now.xpus <= limit)
				nearby_add(nearby, &now, shape);
		}
	}
}

static void pairs_sort(const struct ocs_shape *shape, int key[OCS_SHAPE_DIMS])
{
	int i, j, keep;

	for (i = 0; i < shape->ndim; i++) {
		keep = 2 * shape->extent[i] + (shape->mesh[i] && shape->extent[i] > 2);
		for (j = i; j > 0 && key[j - 1] > keep; j--)
			key[j] = key[j - 1];
		key[j] = keep;
	}
}

/* The same but for the order of the dimensions, which only no_rotate minds. */
static bool shapes_alike(const struct ocs_shape *a, const struct ocs_shape *b)
{
	int p[OCS_SHAPE_DIMS], q[OCS_SHAPE_DIMS];

	pairs_sort(a, p);
	pairs_sort(b, q);
	if (a->no_rotate)
		return !memcmp(a->extent, b->extent, (size_t)a->ndim * sizeof(a->extent[0]));
	return !memcmp(p, q, (size_t)a->ndim * sizeof(p[0]));
}

static bool shape_known(const struct ocs_shape *shape, const struct ocs_shape *wanted,
			const struct ocs_shape *near, int found)
{
	int i;

	if (shapes_alike(shape, wanted))
		return true;
	for (i = 0; i < found; i++) {
		if (shapes_alike(shape, &near[i]))
			return true;
	}
	return false;
}

/* Whether number AT is the one before it once more. */
static bool shape_again(const struct nearby *nearby, int at)
{
	return at && !near_compare(&nearby->all[at - 1], &nearby->all[at]);
}

/* Nearest first. */
static void nearby_find(const struct ocs_section *section, const struct ocs_shape *shape,
			long limit, struct nearby *nearby)
{
	long exist = (long)section->ncubes * section->cube_xpus;
	struct ocs_shape now = *shape;
	int order[OCS_SHAPE_DIMS];

	limit = limit < exist ? limit : exist;
	if (!shape->twisted && shape->xpus <= limit) {
		dims_sort(shape, order);
		same_find(shape, order, 0, shape->xpus, 1, &now, nearby);
	}
	if (shape->twisted)
		twisted_find(section, shape, limit, nearby);
	else
		plain_find(section, shape, limit, nearby);
	if (nearby->n)
		qsort(nearby->all, (size_t)nearby->n, sizeof(*nearby->all), near_compare);
}

int ocs_nearest_shapes(struct ocs_placer *placer, const struct ocs_shape *shape,
		       struct ocs_shape *near, int max)
{
	struct nearby nearby = { 0 };
	int found = 0, checks = 0, i;

	if (ocs_placer_check(placer, NULL))
		return 0;
	nearby_find(placer->section, shape, LONG_MAX, &nearby);
	for (i = 0; i < nearby.n && checks < EMPTY_CHECKS && found < max; i++) {
		const struct ocs_shape *now = &nearby.all[i].shape;

		if (shape_again(&nearby, i) || (nearby.all[i].same && checks >= SAME_CHECKS) ||
		    ocs_reason_axes(placer->section, now) > OCS_AXES ||
		    shape_known(now, shape, near, found))
			continue;
		checks++;
		if (ocs_catalogue_possible(placer->section, now))
			near[found++] = *now;
	}
	free(nearby.all);
	return found;
}

int ocs_nearest_shapes_now(struct ocs_placer *placer, const struct ocs_occupancy *occupancy,
			   const struct ocs_shape *shape, struct ocs_shape *near, int max)
{
	int found = 0, checks = 0, failures = 0, same = 0, cube, i;
	struct nearby nearby = { 0 };
	long limit = 0;

	if (ocs_placer_check(placer, NULL))
		return 0;
	for (cube = 0; cube < placer->section->ncubes; cube++)
		limit += ocs_occupancy_cube_free(occupancy, cube);
	limit = limit < shape->xpus ? limit : shape->xpus;
	nearby_find(placer->section, shape, limit, &nearby);
	for (i = 0; i < nearby.n && checks < NOW_CHECKS && found < max; i++) {
		const struct ocs_shape *now = &nearby.all[i].shape;
		struct ocs_placement *placement;

		if (now->xpus > limit || shape_again(&nearby, i) ||
		    shape_known(now, shape, near, found) ||
		    !ocs_catalogue_possible(placer->section, now))
			continue;
		checks++;
		placement = ocs_place(placer, occupancy, now, 0, NULL);
		if (placement) {
			near[found++] = *now;
			ocs_placement_destroy(placement);
		} else if (nearby.all[i].same ? ++same == SAME_NOW_CHECKS : ++failures % 3 == 0) {
			/* all of this size fail: smaller ones are worth more */
			limit = now->xpus * 2 / 3 < limit ? now->xpus * 2 / 3 : limit;
		}
	}
	free(nearby.all);
	if (!found && shape->twisted) {
		struct ocs_shape plain = *shape;

		plain.twisted = false;
		return ocs_nearest_shapes_now(placer, occupancy, &plain, near, max);
	}
	return found;
}
