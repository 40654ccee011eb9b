/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef TESTS_UNIT_PLACE_EXHAUSTIVE_SEARCH_H
#define TESTS_UNIT_PLACE_EXHAUSTIVE_SEARCH_H

/* An exhaustive search: any way at all to lay a shape on the free XPUs, each line of a
 * face leading to whatever cube it likes.  Constraint propagation over the XPUs that
 * each vertex may still take, with backtracking; complete where its budget lets it
 * end.  An oracle for the engine: small jobs only.  Not for twisted shapes, --no-fold,
 * --no-rotate, cubes with a side of one XPU (two of them can be joined in more than one way) and jobs above
 * EXHAUSTIVE_XPUS. */

#include "src/place/box_search.h"

#define EXHAUSTIVE_XPUS 512

struct exhaustive {
	const struct ocs_section *section;
	const struct ocs_box_search *fit;
	const struct ocs_shape *shape;
	long work, budget; /* XPUs of vertices looked at, more on large machines;
				 * budget below 0: no bound */
	bool spent;	   /* the last search ended because it had used its budget */
	int nodes;	   /* that the job takes */

	/* of the machine: XPU i of loaded cube h is h * cube_xpus + i */
	int cubes, words;
	int *near;		    /* per XPU of a cube and direction, see ocs_ring_near */
	int *cell_of;		    /* its node in the cube */
	uint64_t *usable;	    /* free, with neighbours enough */
	uint64_t *column;	    /* per XPU of a cube and direction: the same place of all
				 * cubes where that port is sound */
	int *node_used, *cube_used; /* XPUs taken, per loaded node and cube */
	int nused;		    /* nodes taken */

	/* of the job */
	int vertices;
	int *adjacent; /* six per vertex, -1: none */
	int *degree;
	bool *like_first; /* an automorphism takes it to the first vertex */

	/* of the search */
	uint64_t *domain; /* per level and vertex */
	int *count;
	int *at; /* XPU of each vertex or -1 */
	int *queue;
	bool *queued;
	int head, pending;
	uint64_t *ball;
	size_t domain_room, column_room;
	int vertex_room;

	struct ocs_xpu *xpus; /* the answer, in row-major order */
};

struct exhaustive *exhaustive_create(const struct ocs_section *section);
void exhaustive_destroy(struct exhaustive *search);

/* Fills the answer from the cubes loaded into FIT with exactly NODES nodes, with
 * BUDGET work at most (below 0: no bound).  False: there is none, or none was
 * found within the budget. */
bool exhaustive_search(struct exhaustive *search, const struct ocs_shape *shape, int nodes,
		       const struct ocs_box_search *fit, long budget);
/* The placement with SHAPE on XPUS; MARK and COMPACT as for ocs_placement_make.  An edge
 * whose XPUs are no neighbours gets no circuit: verify what was not searched. */
struct ocs_placement *exhaustive_placement(const struct ocs_section *section,
					   const struct ocs_shape *shape,
					   const struct ocs_xpu *xpus, unsigned char *mark,
					   char *compact);

/* Neighbours of VERTEX (row-major rank) in the job, at most 2 * OCS_SHAPE_DIMS; returns
 * how many.  Not for twisted shapes. */
int exhaustive_neighbours(const struct ocs_shape *shape, int vertex, int list[2 * OCS_SHAPE_DIMS]);

#endif
