/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_PLACE_PIECE_CLASSES_H
#define OCS_PLACE_PIECE_CLASSES_H

/* While a catalogue is made: its classes of pieces, found by what they hold, and which of them
 * mirror each other.  Foldings that mirror another one are most of all; their pieces are never laid
 * out, but are the mirrors of the other's, at offsets that are mirrored in the grid. */

#include "src/place/lights.h"

/* Of whole words of 64 bits. */
unsigned int ocs_words_hash(const void *data, size_t size);
/* Makes room for one more, so that half of the slots stay empty; their number is a power of two. */
void ocs_place_index_grow(struct ocs_place_index *index);

/* The class of the piece in WORDS (as ocs_candidate_masks_piece has it); -1 if it holds nothing. */
int ocs_piece_class_get(struct ocs_catalogue_rest *rest, const uint64_t *words);

/* Appends to the catalogue's pieces the classes of LIGHT's, whose folding has gaps and mirrors one that
 * ocs_piece_mirrors_note knows at the mirrored offset, and tells the CIRCUITS.  Returns false
 * if there is none: then it has to be laid out. */
bool ocs_piece_mirrors_add(struct ocs_catalogue_rest *rest, const struct ocs_light *light,
			   int *circuits);
/* LIGHT, which has gaps, was laid out: the catalogue's pieces from FIRST on are its own. */
void ocs_piece_mirrors_note(struct ocs_catalogue_rest *rest, const struct ocs_light *light,
			    int first, int circuits);
void ocs_piece_mirrors_create(struct ocs_piece_mirrors *mirrors);
void ocs_piece_mirrors_free(struct ocs_piece_mirrors *mirrors);

#endif
