/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_PLACE_BOX_LAYOUT_H
#define OCS_PLACE_BOX_LAYOUT_H

/* Lays the box of a folding over a grid of cubes ("pieces"), at an offset.  On
 * each axis the grid is a ring of COUNT cubes; a box that runs over its end goes
 * on at its start, through circuits (static: through the fixed wrap). */

#include "src/fold/fold.h"
#include "src/place/place.h"

struct ocs_box_layout {
	int offset[OCS_AXES]; /* of the box in the first cube */
	int count[OCS_AXES];  /* cubes along the axis; 1 in a static torus */
};

void ocs_lattice_of(const struct ocs_section *section, struct ocs_lattice *host);

/* Whether the box of TABLE fits LAY and closed axes lie on whole rings. */
bool ocs_box_layout_valid(const struct ocs_section *section, const struct ocs_folding *folding,
			  const struct ocs_box_layout *lay);

/* The XPU of every vertex in rank order; XPUS[].cube is the piece, row-major in
 * the grid.  XPUS has room for the product of the extents. */
void ocs_box_layout_xpus(const struct ocs_section *section, const struct ocs_fold_table *table,
			 const struct ocs_box_layout *lay, struct ocs_xpu *xpus);

/* The circuits that the job's edges need, FROM and TO being pieces.  XPUS as made
 * by ocs_box_layout_xpus.  CIRCUITS has room for OCS_AXES per XPU, or is NULL: count
 * only.  Returns the number. */
int ocs_box_layout_circuits(const struct ocs_section *section, const struct ocs_shape *shape,
			    const struct ocs_fold_table *table, const struct ocs_box_layout *lay,
			    const struct ocs_xpu *xpus, struct ocs_circuit *circuits);

#endif
