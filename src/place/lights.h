/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_PLACE_LIGHTS_H
#define OCS_PLACE_LIGHTS_H

/* Inside of a catalogue that is being made: foldings at offsets before they are laid out. */

#include "src/place/candidate_masks.h"

/* Boxes with gaps on so many more cubes than the fewest that hold the shape are not tried. */
#define OCS_GAPS_MORE 2

/* A folding at an offset, before it is laid out. */
struct ocs_light {
	int folding;
	struct ocs_box_layout lay;
	int cubes; /* of the grid */
	int nodes; /* 0: not known yet */
};

/* Where something is in an array, by what it holds. */
struct ocs_place_index {
	struct ocs_place_slot {
		unsigned int hash;
		unsigned int item; /* its place in the array, + 1; 0: none */
	} * slots;
	unsigned int size, count;
};

/* The pieces of a folding at an offset. */
struct ocs_laid_pieces {
	int turn;  /* of the folding for which they are noted */
	int first; /* of them */
	int circuits;
};

/* Of one folding, as laid out at all its offsets, for those that mirror it. */
struct ocs_piece_mirrors {
	int folding;			  /* which; -1: none */
	int turn;			  /* how many there were; 0: none */
	struct ocs_laid_pieces *laid;	  /* by the XPU of a cube at the offset */
	int *pieces, npieces, piece_room; /* their classes, as in ocs_catalogue.pieces */
	/* by class and mirrored axes: its mirror, + 1; 0: not known yet */
	int (*class)[1 << OCS_AXES], nclasses, room;
	uint64_t *words; /* one piece */
};

struct ocs_catalogue_rest {
	const struct ocs_section *section;
	struct ocs_lattice host;
	struct ocs_catalogue *cat;
	struct ocs_light *lights;
	int nlights, next; /* the next to be made a candidate */
	/* per folding: the one that it mirrors, or itself; and, of such a one with gaps, its nodes,
	 * the same at all offsets (its tiles are the fabric's); 0: not counted yet */
	int *mirror_of, *gap_nodes;
	int counted; /* from here on lights whose nodes are not known are too many */
	int gate_room, light_room, folding_room, candidate_room, use_room, class_room, word_room,
		piece_room;
	int batch;	 /* of the candidates that are being made */
	long work;	 /* vertices laid, or as if */
	bool gaps;	 /* boxes with gaps are among the lights, or not wanted */
	int least_cubes; /* over all foldings */
	int cubes_limit;
	int want;			   /* nodes; 0: as few as possible */
	int least_nodes;		   /* that hold so many XPUs */
	int best_cubes;			   /* over those with the smallest node count */
	int gap_cubes;			   /* over boxes with gaps; 0: none yet */
	struct ocs_candidate_masks pieces; /* while candidates are being made; it is large */
	struct ocs_place_index class_index, use_index; /* of classes and candidates */
	struct ocs_piece_mirrors mirrors;	       /* likewise */
};

#define OCS_GROW(array, count, room)                                                       \
	do {                                                                               \
		if ((count) == (room)) {                                                   \
			(room) = (room) ? 2 * (room) : 64;                                 \
			(array) = ocs_realloc((array), (size_t)(room) * sizeof(*(array))); \
		}                                                                          \
	} while (0)

/* One long dimension, perhaps two abreast: it has so many boxes, and goes through so much
 * that is none, that boxes on many cubes are left to ocs_ring_lay. */
bool ocs_lone_ring(const struct ocs_shape *shape);
/* Adds the foldings that fill their box, or (GAPS) those that do not, at all offsets. */
void ocs_lights_all(struct ocs_catalogue_rest *rest, bool gaps);
/* Keeps the fewest nodes, and on how many cubes, of lights whose nodes are known. */
void ocs_lights_note(struct ocs_catalogue_rest *rest, const struct ocs_light *light);
/* The nodes of LIGHT, which has gaps; lays its folding out where they are not known yet. */
int ocs_lights_nodes(struct ocs_catalogue_rest *rest, const struct ocs_light *light);
/* Puts those that are not laid out yet in order: fewest cubes first. */
void ocs_lights_sort(struct ocs_catalogue_rest *rest);

#endif
