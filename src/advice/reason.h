/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_ADVICE_REASON_H
#define OCS_ADVICE_REASON_H

/* Why a shape is refused, in one sentence for the user who asked for it. */

#include "src/place/place.h"

/* As ocs_place, with the reason in ERR: what is missing for OCS_NOT_NOW ("needs 4 cubes with
 * a free 4x4x2 slab; 2 are free, 1 is drained"), as ocs_reason_node_count for OCS_NEVER.
 * Nothing is computed when a placement is found. */
struct ocs_placement *ocs_reason_place(struct ocs_placer *placer,
				       const struct ocs_occupancy *occupancy,
				       const struct ocs_shape *shape, int node_count,
				       struct ocs_error *err);

/* As ocs_place_node_count, with the reason in ERR (larger than the machine; which ring cannot
 * close) and the nearest shapes that fit. */
int ocs_reason_node_count(struct ocs_placer *placer, const struct ocs_shape *shape,
			  struct ocs_error *err);

/* Links that an XPU in the middle of SHAPE needs, and those it has. */
int ocs_reason_links(const struct ocs_shape *shape);
#define OCS_REASON_PORTS 6

/* How many of the three axes of a static torus SHAPE takes at least: a dimension longer than
 * every side takes two or, if need be, three.  0: not known. */
int ocs_reason_axes(const struct ocs_section *section, const struct ocs_shape *shape);

#endif
