/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_PLACE_CANDIDATES_H
#define OCS_PLACE_CANDIDATES_H

/* Every way to lay one shape on a section, made when it is needed and kept: candidates
 * sorted by the pieces of their grid, then cubes, then circuits.  Most decisions are made among those with the fewest
 * pieces; these are there from the start, and ocs_catalogue_more makes the next.  A candidate's pieces are counted by class (the nodes
 * and face ports a cube must have free), so that a decision is a few ANDs per
 * class and cube. */

#include "src/place/box_layout.h"

struct ocs_piece_class {
	int first; /* of its words in ocs_catalogue.words: the XPUs of its
				 * nodes, then ports per dim, sign */
	int xpus;  /* XPUs of its nodes */
	int gate;  /* the last one made for it; -1: none */
};

/* What many candidates need most: COUNT cubes for pieces of one class. */
struct ocs_gate {
	int class, count;
	int next; /* the one before of that class; -1: none */
};

struct ocs_class_use {
	int class;
	int count; /* pieces of that class */
};

struct ocs_candidate {
	int folding; /* index into foldings and tables */
	struct ocs_box_layout lay;
	int grid;  /* its pieces; gaps may leave some without an XPU */
	int batch; /* those made together; an earlier one is tried first */
	int cubes; /* pieces that hold an XPU */
	int circuits;
	int first_use;
	int nuses;
	int first_piece; /* in ocs_catalogue.pieces: one per piece of the grid */
};

struct ocs_catalogue {
	const struct ocs_section *section;
	struct ocs_shape shape;
	int nodes;     /* each candidate needs exactly these many */
	int min_nodes; /* the smallest count of any candidate; 0: no candidate
				 * exists at all */

	struct ocs_folding *foldings;
	struct ocs_fold_table *tables; /* ndim 0: not made yet */
	int nfoldings;
	struct ocs_candidate *candidates;
	int ncandidates;
	int *gate_of; /* of each candidate; none in a static section */
	struct ocs_gate *gates;
	int ngates;

	/* empty for static sections, where every offset is tried */
	struct ocs_class_use *uses;
	int nuses;
	int *pieces; /* class of each piece of the grid, -1: holds no XPU */
	int npieces;
	struct ocs_piece_class *classes;
	int nclasses;
	uint64_t *words;
	int mask_words;			 /* of the XPU mask */
	int face_words;			 /* of one face's port mask */
	size_t bytes;			 /* that it takes, but for a few */
	struct ocs_catalogue_rest *rest; /* what further candidates are made of; NULL:
						 * all are there */
};

struct ocs_catalogue_scratch;

/* NODES 0: the smallest count.  SCRATCH is used meanwhile, and kept by the caller for the next
 * catalogue.  Never NULL; ncandidates is 0 if there is no candidate at all. */
struct ocs_catalogue *ocs_catalogue_create(const struct ocs_section *section,
					   const struct ocs_shape *shape, int nodes,
					   struct ocs_catalogue_scratch *scratch);
/* Adds the candidates whose grid has the next more pieces behind those that are there
 * (their indexes stay; those of foldings may change).  Returns false when there are no
 * more. */
bool ocs_catalogue_more(struct ocs_catalogue *catalogue, struct ocs_catalogue_scratch *scratch);
/* The table of FOLDING (an index), made when first asked for. */
const struct ocs_fold_table *ocs_catalogue_table(struct ocs_catalogue *catalogue, int folding);
void ocs_catalogue_destroy(struct ocs_catalogue *catalogue);

/* Whether any folding of SHAPE fits the empty section (cheap). */
bool ocs_catalogue_possible(const struct ocs_section *section, const struct ocs_shape *shape);

#endif
