/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_PLACE_RING_H
#define OCS_PLACE_RING_H

/* Rings through parts of cubes where no box fits, or only one with more cubes.  One dimension
 * of the job is the ring, of even extent; another, if there is one, lies straight along an
 * axis.  The ring is not searched: see ring_spine.c.  The work is bounded and counted. */

#include "src/place/box_search.h"

/* How the dimensions lie. */
struct ocs_ring_way {
	int ring;   /* dimension that is the ring */
	int axis;   /* of the straight one; -1: there is none */
	int layers; /* of a cube that the straight one takes, from OFFSET */
	int offset;
	int stack; /* cubes it runs through: circuits close it if it is a ring */
	bool closed;
};

/* One place of the ring.  A sheet is a stack of cubes of which the same places are
 * free. */
struct ocs_ring_step {
	int sheet; /* in the order of their first visit */
	int unit;  /* bit of the place in its cube, at layer OFFSET */
	int dir;   /* of the step to the next one: 2 * axis + (1: towards -) */
};

/* Two places that a ring took beside itself: after AT, and which of them began a node. */
struct ocs_ring_ear {
	int at;
	bool one, two;
};

#define OCS_SHEET_WORDS 4 /* of a set of sheets at most */

/* A column of a cube: from its first unit along an axis. */
struct ocs_ring_column {
	int axis, base;
};

struct ocs_ring_builder {
	const struct ocs_section *section;
	int units; /* places of a cube */
	int sheets_max, nsheets;
	int set_words;	    /* of a set of sheets */
	int *near;	    /* per unit and direction: 2 * unit + (1: through a face) */
	int *cell_of;	    /* per unit: its node in the cube */
	uint64_t *tile;	    /* per unit: XPUs of its node */
	uint64_t *layer;    /* per axis and coordinate: units there */
	uint64_t *mask;	    /* per loaded cube: its free units */
	int *stacks;	    /* cubes of the sheets */
	int *next;	    /* per sheet and unit: the place after it in the ring */
	unsigned char *dir; /* of the step to it */
	int *scratch;	    /* per sheet and unit */
	int *first_of;	    /* per unit: the first one of its node */
	uint64_t *units_all;
	bool *seen;	   /* per unit: its column is free somewhere */
	int free_words;	   /* of a set of the cubes that may be taken */
	uint64_t *free_at; /* per place: where it is free */
	uint64_t *all;	   /* cubes that have a column */
	struct ocs_ring_column *columns;
	uint64_t *sound;     /* per sheet: its places, */
	uint64_t *avail;     /* those not taken yet, */
	uint64_t *begun;     /* and the units of its nodes that are in use */
	int *order, *places; /* scratch; places of each sheet */
	int *tally;
	int *reach;	  /* places of each sheet that a ring can take at most */
	uint64_t dark;	  /* cubes of one word: units of one colour of a chessboard */
	uint64_t *column; /* the sheets of a column */
	struct ocs_ring_ear *ears;
	long work;  /* edges looked at for the last ring */
	bool spent; /* that were too many */

	/* the answer */
	struct ocs_ring_way way;
	struct ocs_ring_step *ring;
	int extent;
	int *cubes; /* of the sheets in use, way.stack each */
	int nused;
	struct ocs_ring_column spine; /* of ocs_ring_lay: its column */
	bool direct;		      /* made at the first attempt on it, nothing taken back */
};

struct ocs_ring_builder *ocs_ring_create(const struct ocs_section *section);
void ocs_ring_destroy(struct ocs_ring_builder *builder);

/* Fills the answer from the cubes loaded into FIT with exactly NODES nodes, on fewer than MOST +
 * 1 cubes and as few as it finds: rings through a column of cubes and what is free beside it.
 * Wholly free cubes are left alone unless the section has `threading`. */
bool ocs_ring_lay(struct ocs_ring_builder *builder, const struct ocs_shape *shape, int nodes,
		  struct ocs_box_search *fit, int most);
/* Whether the answer of ocs_ring_lay certainly is what it gives, too, where only the nodes of
 * the answer are free; false says nothing. */
bool ocs_ring_settled(const struct ocs_ring_builder *builder);
/* Leaves only the nodes of the answer free in FIT. */
void ocs_ring_narrow(const struct ocs_ring_builder *builder, struct ocs_box_search *fit);

/* The n-th way to lay SHAPE; false: there are no more. */
bool ocs_ring_way_get(const struct ocs_section *section, const struct ocs_shape *shape, int n,
		      struct ocs_ring_way *way);

/* Compact text of the answer; the caller frees it.  NULL with ERR if it would be
 * longer than OCS_COMPACT_MAX. */
char *ocs_ring_encode(const struct ocs_ring_builder *builder, const struct ocs_shape *shape,
		      struct ocs_error *err);

/* The placement of a ring; arguments as for ocs_placement_make. */
struct ocs_placement *ocs_ring_placement(const struct ocs_section *section,
					 const struct ocs_shape *shape,
					 const struct ocs_ring_way *way,
					 const struct ocs_ring_step *ring, const int *cubes,
					 unsigned char *mark, char *compact);

/* Where a step in direction DIR (as in ocs_ring_step) leads: 2 * unit + (1: through a
 * face). */
int ocs_ring_near(const struct ocs_section *section, int unit, int dir);

#endif
