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

/* Whether ocs_walk can lay STEPS vertices on the grid LENGTH[0..N) (each at least
 * 2, N at least 2) so that every axis is used.  CLOSED: a cycle (STEPS even, at
 * least 4), else a line. */
bool ocs_walk_fits(const int *length, int n, int steps, bool closed);

/* Lays it: consecutive vertices (and, when CLOSED, the last and the first) differ
 * by one on exactly one axis, and no grid point is used twice.  Where the grid is
 * not filled, points of the same tile (TILE[j] long on axis j) are preferred to
 * points of new tiles.  AT has room for STEPS vertices.  Returns 0, or -1 if
 * ocs_walk_fits says no. */
int ocs_walk(const int *length, const int *tile, int n, int steps, bool closed,
	     int (*at)[OCS_FACTORS]);

#endif
