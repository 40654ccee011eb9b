/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_ADVICE_NEAREST_SHAPE_H
#define OCS_ADVICE_NEAREST_SHAPE_H

/* Shapes near one that is refused. */

#include "src/place/place.h"

/* Up to MAX shapes near SHAPE in size and form (same number of dimensions, connections
 * and options; no two alike but for the order of dimensions) that an empty section
 * accepts, nearest first; used in refusals.  Returns the count. */
int ocs_nearest_shapes(struct ocs_placer *placer, const struct ocs_shape *shape,
		       struct ocs_shape *near, int max);
/* The same, no larger than SHAPE, that ocs_place lays on OCCUPANCY now.  A few dozen
 * placements are tried: not for the scheduling path. */
int ocs_nearest_shapes_now(struct ocs_placer *placer, const struct ocs_occupancy *occupancy,
			   const struct ocs_shape *shape, struct ocs_shape *near, int max);
/* BEFORE and these ("; would fit now: " and "4x4, 8x2") for the end of a reason, or "" if
 * nothing near fits.  The caller frees it. */
char *ocs_nearest_shapes_text(struct ocs_placer *placer, const struct ocs_occupancy *occupancy,
			      const struct ocs_shape *shape, const char *before);

/* Whether a shape that is nothing but dimension DIM of SHAPE, of this EXTENT, fits. */
bool ocs_reason_alone(const struct ocs_section *section, const struct ocs_shape *shape, int dim,
		      int extent);

#endif
