/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/place/orders.h"

#include <stdlib.h>

#include "src/util/text.h"

/* The rank after RANK along DIM, or -1 at the end of a line. */
static long rank_next(const struct ocs_shape *shape, int dim, long rank)
{
	int coord[OCS_SHAPE_DIMS];

	ocs_shape_coord(shape, rank, coord);
	if (++coord[dim] < shape->extent[dim])
		return ocs_shape_rank(shape, coord);
	if (shape->mesh[dim])
		return -1;
	coord[dim] = 0;
	for (int e = 0; e < shape->ndim; e++)
		if (e != dim)
			coord[e] = (coord[e] + ocs_shape_shift(shape, dim, e)) % shape->extent[e];
	return ocs_shape_rank(shape, coord);
}

void ocs_orders_find(const struct ocs_shape *shape, int dim, struct ocs_orders *orders)
{
	unsigned char *seen;
	int coord[OCS_SHAPE_DIMS];

	*orders = (struct ocs_orders){ .dim = dim, .ring = !shape->mesh[dim] };
	if (shape->extent[dim] < 2)
		return;
	seen = ocs_calloc((size_t)shape->xpus, 1);
	orders->ranks = ocs_calloc((size_t)shape->xpus, sizeof(long));
	/* all are as long as the first: they are moved copies of each other */
	for (long start = 0, filled = 0; start < shape->xpus; start++) {
		ocs_shape_coord(shape, start, coord);
		if (seen[start] || coord[dim])
			continue;
		for (long r = start; r >= 0 && !seen[r]; r = rank_next(shape, dim, r)) {
			seen[r] = 1;
			orders->ranks[filled++] = r;
		}
		orders->count++;
		if (!orders->length)
			orders->length = (int)filled;
	}
	free(seen);
}

void ocs_orders_free(struct ocs_orders *orders)
{
	free(orders->ranks);
	orders->ranks = NULL;
}
