/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_RAILS_INTERNAL_H
#define OCS_RAILS_INTERNAL_H

#include "src/rails/menu.h"

/* Of dimension DIM: how far apart two neighbours are in the order of the nodes. */
static inline int ocs_rails_stride(const struct ocs_rails_layout *layout, int dim)
{
	int stride = 1;

	for (int d = dim + 1; d < layout->ndim; d++)
		stride *= layout->extent[d];
	return stride;
}

static inline int ocs_rails_coordinate(const struct ocs_rails_layout *layout, int node, int dim)
{
	return node / ocs_rails_stride(layout, dim) % layout->extent[dim];
}

static inline int ocs_rails_stage(const struct ocs_rails_layout *layout, int node)
{
	return layout->asymmetric < 0 ? 0 : ocs_rails_coordinate(layout, node, layout->asymmetric);
}

/* The node after NODE along DIM, the first one after the last. */
static inline int ocs_rails_next(const struct ocs_rails_layout *layout, int node, int dim)
{
	int stride = ocs_rails_stride(layout, dim);
	int at = ocs_rails_coordinate(layout, node, dim);

	return node + (at + 1 < layout->extent[dim] ? stride : -at * stride);
}

#endif
