/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_FOLD_FOLD_H
#define OCS_FOLD_FOLD_H

/* Foldings: ways to lay a shape on a box of XPUs that keep every ring.  A box
 * axis is a path, a ring (closed by wraps or circuits) or, where a ring of four
 * is closed, two bits (a 4-cycle is a 2x2) that serve two dimensions.  Each
 * dimension gets factors of its own: one straight axis, or several axes and bits
 * around which its cycle (or, for a mesh, its line) runs. */

#include "src/fold/shape.h"
#include "src/fold/walk.h"

#define OCS_FOLD_AXES 3

enum ocs_factor_kind {
	OCS_FACTOR_PATH,
	OCS_FACTOR_RING, /* the whole axis, closed; first of several: an odd ring
				 * goes once round it */
	OCS_FACTOR_BIT0, /* of a closed axis of four: 0 1 2 3 are 00 01 11 10 */
	OCS_FACTOR_BIT1,
};

/* In a word: catalogues keep foldings by the thousand. */
struct ocs_factor {
	signed int axis : 4;
	enum ocs_factor_kind kind : 4;
	signed int length : 24; /* 2 for bits */
};

struct ocs_folding {
	int ndim; /* dimensions of the shape */
	struct {
		int n; /* 0 for an extent of 1 */
		struct ocs_factor factor[OCS_FACTORS];
	} dim[OCS_SHAPE_DIMS];
	int box[OCS_FOLD_AXES];	    /* XPUs along each axis */
	bool closed[OCS_FOLD_AXES]; /* its last layer must meet its first */
	bool filled;		    /* every XPU of the box is used */
	unsigned int flip;	    /* bit a: axis a is mirrored */
};

/* The XPUs a folding may use. */
struct ocs_lattice {
	int edge[OCS_FOLD_AXES]; /* of a cube, or of a static torus */
	int tile[OCS_FOLD_AXES]; /* of a node */
	bool fixed;		 /* one static torus with fixed wraps */
	int ncubes;
};

/* Where a folding puts vertices, dimension by dimension. */
struct ocs_fold_entry {
	int at[OCS_FOLD_AXES];		   /* sum over dimensions */
	unsigned char bits[OCS_FOLD_AXES]; /* or over dimensions */
};
struct ocs_fold_table {
	int box[OCS_FOLD_AXES];
	bool bits[OCS_FOLD_AXES]; /* that axis is two bits */
	unsigned int flip;
	int ndim;
	int extent[OCS_SHAPE_DIMS];
	struct ocs_fold_entry *dim[OCS_SHAPE_DIMS]; /* extent entries each */
};

/* A twisted shape uses all six ports of each XPU, so it fills whole cubes: every
 * dimension straight and closed, and the layers it shifts by whole cubes too.  False
 * if FOLDING is not that; true for plain shapes. */
bool ocs_fold_twist_fits(const struct ocs_folding *folding, const struct ocs_shape *shape,
			 const struct ocs_lattice *host);

/* Makes the table of FOLDING for SHAPE.  Returns 0, or -1 if the folding is not
 * one of the shape: factors missing or shared, too long, or a ring that they do
 * not close; ERR says which.  Free with ocs_fold_table_free. */
int ocs_fold_table_make(const struct ocs_folding *folding, const struct ocs_shape *shape,
			const struct ocs_lattice *host, struct ocs_fold_table *table,
			struct ocs_error *err);
/* The nodes that the folding of TABLE touches where its box begins at the border of one on each axis. */
long ocs_fold_table_nodes(const struct ocs_fold_table *table, const struct ocs_lattice *host);
/* Makes in TO the table of the folding of TABLE with the axes of FLIP mirrored instead of its own. */
void ocs_fold_table_mirror(const struct ocs_fold_table *table, unsigned int flip,
			   struct ocs_fold_table *to);
void ocs_fold_table_free(struct ocs_fold_table *table);

/* Box coordinate of what SUM (entries of all dimensions added up) stands for. */
static inline void ocs_fold_at(const struct ocs_fold_table *table, const struct ocs_fold_entry *sum,
			       int at[OCS_FOLD_AXES])
{
	int a;

	for (a = 0; a < OCS_FOLD_AXES; a++) {
		at[a] = sum->at[a];
		if (table->bits[a])
			at[a] = sum->bits[a] & 2 ? 3 - (sum->bits[a] & 1) : sum->bits[a] & 1;
		if (table->flip & 1u << a)
			at[a] = table->box[a] - 1 - at[a];
	}
}

static inline void ocs_fold_add(struct ocs_fold_entry *sum, const struct ocs_fold_entry *more)
{
	int a;

	for (a = 0; a < OCS_FOLD_AXES; a++) {
		sum->at[a] += more->at[a];
		sum->bits[a] |= more->bits[a];
	}
}

/* How a dimension runs around several axes of HOST.  Even rings are snug only where a
 * side is odd: elsewhere they fit without, and odd boxes spoil more than they save. */
enum ocs_walk_kind ocs_fold_walk_kind(const struct ocs_shape *shape, int dim,
				      const struct ocs_lattice *host);

/* Calls VISIT with each folding of SHAPE on HOST whose box needs no more cubes
 * than there are: those that fill their box, or (PARTIAL) those that do not.  VISIT
 * returns false to stop.  The order is fixed.  Returns how many were visited. */
int ocs_fold_family(const struct ocs_shape *shape, const struct ocs_lattice *host, bool partial,
		    bool (*visit)(const struct ocs_folding *folding, void *arg), void *arg);

#endif
