/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_PLACE_GROW_H
#define OCS_PLACE_GROW_H

/* Inside of threading: a ring while it grows. */

#include "src/place/thread.h"

#define DIRS (2 * OCS_AXES)

/* One search: the way, and the ring so far. */
struct ocs_grow {
	struct ocs_thread *t;
	const struct ocs_way *way;
	const struct ocs_fit *fit;
	bool emptiest;		/* of more cubes than the sheets may be, not the fullest */
	int first;		/* loaded cube */
	int target, length, head;
	int cells, cells_max;	/* nodes of a sheet's cross-section */
};

static inline int ocs_grow_stride(const struct ocs_section *s, int axis)
{
	return axis == 2 ? 1 : axis == 1 ? s->edge[2] : s->edge[1] * s->edge[2];
}

static inline int ocs_grow_coord(const struct ocs_section *s, int unit, int axis)
{
	return unit / ocs_grow_stride(s, axis) % s->edge[axis];
}

static inline bool ocs_grow_has(const struct ocs_thread *t, int unit, int sheet)
{
	return t->has[unit * t->set_words + sheet / 64] >> sheet % 64 & 1;
}

static inline int ocs_grow_id_of(const struct ocs_thread *t, int sheet, int unit)
{
	return sheet * t->units + unit;
}

/* Whether UNIT of SHEET would begin a node. */
static inline bool ocs_grow_fresh(const struct ocs_grow *g, int sheet, int unit)
{
	return !g->t->touched[ocs_grow_id_of(g->t, sheet, g->t->cell_of[unit])];
}

/* Nodes of one cross-section of WAY. */
int ocs_grow_cell_nodes(const struct ocs_section *section, const struct ocs_way *way);
/* Makes the sheets of the way; returns the places they have. */
int ocs_grow_sheets(struct ocs_grow *g);
/* Back to no ring, all places of the sheets free. */
void ocs_grow_reset(struct ocs_grow *g);
/* Whether the circuits that leave UNIT of SHEET through the face DIR are sound. */
bool ocs_grow_sound(const struct ocs_grow *g, int sheet, int unit, int dir);
/* Appends UNIT of SHEET after place AFTER (-1: it is the first), reached by DIR; returns its
 * place. */
int ocs_grow_append(struct ocs_grow *g, int after, int dir, int sheet, int unit);
/* Copies the ring out; sheets are numbered as they are met. */
void ocs_grow_answer(struct ocs_grow *g);

#endif
