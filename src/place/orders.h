/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_PLACE_ORDERS_H
#define OCS_PLACE_ORDERS_H

/* The orders of ranks along a dimension of a shape, one for each ring or line of it: a link joins
 * each rank to the next, and in a ring the last to the first. */

#include "src/fold/shape.h"

struct ocs_orders {
	int dim;
	bool ring;
	int count, length; /* rings or lines, and the ranks of each */
	long *ranks;	   /* [number * length + place]; the first of each ascend */
};

/* Of dimension DIM; none where its extent is 1.  A wrap that shifts other dimensions (a twisted
 * shape) leads to another line, with which it makes a longer ring.  Free with ocs_orders_free. */
void ocs_orders_find(const struct ocs_shape *shape, int dim, struct ocs_orders *orders);
void ocs_orders_free(struct ocs_orders *orders);

#endif
