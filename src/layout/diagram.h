/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_LAYOUT_DIAGRAM_H
#define OCS_LAYOUT_DIAGRAM_H

/* Pictures of the cubes of a torus or static section and of who holds their
 * XPUs, for a terminal and as SVG. */

#include <stdio.h>

#include "src/place/place.h"

/* One thing to draw.  Later items are drawn over earlier ones. */
struct ocs_picture_item {
	/* Its name in the legend ("job 17, alice, 4x8x2"); not needed for down
	 * items. */
	const char *label;
	/* The sign drawn for each XPU; 0: letters A..Z, a..z, 0..9 are given out in
	 * the order of the items, '#' where DOWN is set.  Letters and digits have a
	 * colour each (ten in turn), other signs are grey. */
	char sign;
	bool down;			       /* drained or dead, not held by a job */
	const struct ocs_placement *placement; /* its XPUs; NULL: the nodes below */
	const int *nodes;		       /* indexes into fabric->nodes: all their XPUs */
	int nnodes;
};

/* The cubes as text: layers of z side by side, x downwards, y to the right; '.'
 * is a free XPU; as many cubes, or layers of one, in a row as fit into WIDTH columns
 * (0: 80); below them a legend with each item's label.  Of more than 64 cubes each is
 * one sign, and only those that several have, or that are free in part ('+'), are drawn.
 * With ONLY, of however many cubes, those with an XPU of that item (its index) are drawn,
 * and the others counted; -1: all.  COLOUR uses ANSI sequences.  Nodes of other sections are left out.  The caller frees
 * it. */
char *ocs_picture(const struct ocs_fabric *fabric, const struct ocs_section *section,
		  const struct ocs_picture_item *items, int nitems, int only, int width,
		  bool colour);

/* One SIGN of such a picture, in its colour. */
void ocs_picture_sign(char sign, bool colour, FILE *out);

/* The same as a complete SVG document, with TITLE above it if that is not NULL.  What is
 * down is hatched. */
char *ocs_picture_svg(const struct ocs_fabric *fabric, const struct ocs_section *section,
		      const struct ocs_picture_item *items, int nitems, const char *title);

#endif
