/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_PLACE_RING_DRAFT_H
#define OCS_PLACE_RING_DRAFT_H

/* Inside of rings: one while it grows. */

#include "src/place/ring.h"

#define DIRS (2 * OCS_AXES)

/* One search: the way, and the ring so far. */
struct ocs_ring_draft {
	struct ocs_ring_builder *t;
	const struct ocs_ring_way *way;
	struct ocs_box_search *fit;
	int target, length, head;
	int cells, cells_max; /* nodes of a sheet's cross-section */
};

static inline int ocs_ring_stride(const struct ocs_section *s, int axis)
{
	return axis == 2 ? 1 : axis == 1 ? s->edge[2] : s->edge[1] * s->edge[2];
}

static inline int ocs_ring_coord(const struct ocs_section *s, int unit, int axis)
{
	return unit / ocs_ring_stride(s, axis) % s->edge[axis];
}

static inline int ocs_ring_place_id(const struct ocs_ring_builder *t, int sheet, int unit)
{
	return sheet * t->units + unit;
}

/* Nodes of one cross-section of WAY. */
int ocs_ring_cell_nodes(const struct ocs_section *section, const struct ocs_ring_way *way);
/* Units of loaded cube CUBE that are free in all layers of the way. */
void ocs_ring_units(const struct ocs_ring_draft *g, int cube, uint64_t *mask);
/* Puts N loaded cubes from FIRST on that are free at the same places together (t->stacks; the
 * first mask of each, in t->mask, is what they have in common). */
void ocs_ring_stacks(struct ocs_ring_draft *g, int first, int n);
/* Whether the circuits that leave UNIT of SHEET through the face DIR are sound. */
bool ocs_ring_sound(const struct ocs_ring_draft *g, int sheet, int unit, int dir);
/* Copies the ring out; sheets are numbered as they are met. */
void ocs_ring_answer(struct ocs_ring_draft *g);

#endif
