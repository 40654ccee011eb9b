/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_PLACE_RING_GROW_H
#define OCS_PLACE_RING_GROW_H

/* Inside of rings: one while it grows. */

#include "src/place/ring_search.h"

#define DIRS (2 * OCS_AXES)

/* One search: the way, and the ring so far. */
struct ocs_grow {
	struct ocs_thread *t;
	const struct ocs_way *way;
	struct ocs_fit *fit;
	int target, length, head;
	int cells, cells_max; /* nodes of a sheet's cross-section */
};

static inline int ocs_grow_stride(const struct ocs_section *s, int axis)
{
	return axis == 2 ? 1 : axis == 1 ? s->edge[2] : s->edge[1] * s->edge[2];
}

static inline int ocs_grow_coord(const struct ocs_section *s, int unit, int axis)
{
	return unit / ocs_grow_stride(s, axis) % s->edge[axis];
}

static inline int ocs_grow_id_of(const struct ocs_thread *t, int sheet, int unit)
{
	return sheet * t->units + unit;
}

/* Nodes of one cross-section of WAY. */
int ocs_grow_cell_nodes(const struct ocs_section *section, const struct ocs_way *way);
/* Units of loaded cube CUBE that are free in all layers of the way. */
void ocs_grow_units(const struct ocs_grow *g, int cube, uint64_t *mask);
/* Puts N loaded cubes from FIRST on that are free at the same places together (t->stacks; the
 * first mask of each, in t->mask, is what they have in common). */
void ocs_grow_stacks(struct ocs_grow *g, int first, int n);
/* Whether the circuits that leave UNIT of SHEET through the face DIR are sound. */
bool ocs_grow_sound(const struct ocs_grow *g, int sheet, int unit, int dir);
/* Copies the ring out; sheets are numbered as they are met. */
void ocs_grow_answer(struct ocs_grow *g);

#endif
