/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_PLACE_PLACEMENT_ENCODING_H
#define OCS_PLACE_PLACEMENT_ENCODING_H

/* The compact form of a placement: how it was made, not each XPU.
 *   p1:4x8x2:ttt:xr4,yb.zp2.yc,-:0:0.1,0.1,0.1:0
 * version, shape, rings and lines (t or m per dimension, then r: no rotation, f: no
 * folding), factors of each dimension (axis, p path or r ring and its length, b or
 * c bit), mirrored axes, offset and cubes per axis, cubes of the grid's pieces.
 * A ring through what was free:
 *   t1:12x4:tt:0z0:2.00:21.aacc...
 * version, shape, rings and lines, dimension of the ring, axis (- for none) and offset of
 * the straight one, sheets and their cubes, first place and the steps from there, a to
 * f for +x -x +y -y +z -z, each followed by the sheet where it goes through a face.
 * Any other arrangement of XPUs:
 *   e1:4x3:tt:5.0aace2...
 * version, shape, rings and lines, then for each vertex in row-major order the step that
 * leads to it from its neighbour one back along its last dimension that is not at 0, and
 * the cube where the step goes through a face; the first vertex is its place in its cube
 * and that cube. */

#include "src/place/box_layout.h"

/* PIECE_CUBE: cube of each piece of the grid, -1 where it holds no XPU.  The caller
 * frees the text.  NULL with ERR if it would be longer than OCS_COMPACT_MAX. */
char *ocs_placement_encode(const struct ocs_shape *shape, const struct ocs_folding *folding,
			   const struct ocs_box_layout *lay, const int *piece_cube,
			   struct ocs_error *err);

/* Makes the placement that folding, offsets and cubes describe.  TABLE is of FOLDING.
 * NCIRCUITS is their number if known, or -1.  MARK has a zeroed byte per node of the
 * section and is zeroed again.  COMPACT is handed over. */
struct ocs_placement *ocs_placement_make(const struct ocs_section *section,
					 const struct ocs_shape *shape,
					 const struct ocs_fold_table *table,
					 const struct ocs_box_layout *lay, const int *piece_cube,
					 int ncircuits, unsigned char *mark, char *compact);

/* Fills the lists of nodes and cubes from the XPUs.  MARK as above. */
void ocs_placement_lists(struct ocs_placement *placement, unsigned char *mark);

#endif
