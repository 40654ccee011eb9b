/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_FOLD_WALK_H
#define OCS_FOLD_WALK_H

/* Cycles and lines inside boxes of up to six axes. */

#include <stdbool.h>

#define OCS_FACTORS 6

/* The grid of the first two axes carries the walk, each further axis extends it, so
 * the order of the axes matters: an even one among the first two lets a cycle fill
 * the grid. */

enum ocs_walk_kind {
	OCS_WALK_LINE,
	OCS_WALK_CYCLE, /* an even number of steps, at least 4 */
	OCS_WALK_SNUG,	/* the same, leaving out one point of an odd grid at most */
	OCS_WALK_ROUND, /* an odd number: a cycle that goes once round the first
				 * axis, which is closed and odd */
};

/* Whether ocs_walk can lay STEPS vertices on the grid LENGTH[0..N) (each at least
 * 2, N at least 2) so that every axis is used.  Of a grid whose first two sides are odd
 * a plain cycle leaves out a row; a snug one, and one that goes round, a point. */
bool ocs_walk_fits(const int *length, int n, int steps, enum ocs_walk_kind kind);

/* Lays it: consecutive vertices (and those of a cycle's ends) differ by one on exactly
 * one axis, and no grid point is used twice.  Where the grid is not filled, points of
 * the same tile (TILE[j] long on axis j) are preferred to points of new tiles.  AT has
 * room for STEPS vertices.  Returns 0, or -1 if ocs_walk_fits says no. */
int ocs_walk(const int *length, const int *tile, int n, int steps, enum ocs_walk_kind kind,
	     int (*at)[OCS_FACTORS]);

#endif
