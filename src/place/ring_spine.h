/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_PLACE_RING_SPINE_H
#define OCS_PLACE_RING_SPINE_H

/* Inside of ocs_ring_lay: a ring through a column of sheets, and what it takes beside it. */

#include "src/place/bits.h"
#include "src/place/ring_draft.h"

struct ocs_ring_spine {
	struct ocs_ring_draft g;
	int axis, by, edge;  /* of the column */
	int base;	     /* its first unit */
	int cells;	     /* nodes that it touches in a sheet */
	int direction[DIRS]; /* in which it is made longer, in this order */
	int most;	     /* sheets */
	int least;	     /* cubes that have XPUs enough */
	int first, end;	     /* loaded cubes that may be taken */
	long work_max;
	int reach;	 /* places that the column's sheets can give at most */
	int sheets;	 /* in the ring */
	int left;	 /* places free in the sheet at hand */
	int cell_places; /* of a node's cross-section */
	int tail;	 /* last place of the spine */
	int ears;	 /* taken: g.t->ears */
	bool dropped;	 /* an ear was taken back */
};

/* Takes what is free beside the spine in SHEET. */
void ocs_ring_ears_take(struct ocs_ring_spine *s, int sheet);
/* Takes the last ear back. */
void ocs_ring_ear_drop(struct ocs_ring_spine *s);
/* Appends UNIT of SHEET after place AFTER (-1: it is the first), reached by DIR; returns its
 * place. */
int ocs_ring_spine_append(struct ocs_ring_spine *s, int after, int dir, int sheet, int unit);

#endif
