/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_PLACE_CANDIDATE_MASKS_H
#define OCS_PLACE_CANDIDATE_MASKS_H

/* While a catalogue is made: one folding at a time, laid out at one offset after the
 * other, as masks of XPUs and ports of its pieces. */

#include "src/place/candidates.h"
#include "src/place/folding_bits.h"

/* Layers of the box that follow each other in one cube. */
struct ocs_masks_run {
	int from, count;
};

struct ocs_candidate_masks {
	const struct ocs_section *section;
	struct ocs_lattice host;
	struct ocs_catalogue *cat;
	int table_of; /* the folding that is laid out, -1: none, as bits of its box */
	const struct ocs_fold_table *table;
	struct ocs_folding_bits bits;
	/* as laid out, per layer of the box: what it adds to PIECE * 4096 + bit */
	struct ocs_box_layout lay;
	int *axis_place[OCS_AXES];
	bool *axis_last[OCS_AXES];	      /* whether it is the last one of its cube */
	struct ocs_masks_run *runs[OCS_AXES]; /* of layers in one cube */
	int nruns[OCS_AXES];
	int *port_bit[OCS_AXES]; /* per XPU: its position in the face */
	struct ocs_xpu *xpus;	 /* twisted shapes */
	struct ocs_circuit *circuits;
	uint64_t *tile_mask;	   /* per XPU: its node's XPUs */
	uint64_t *layer[OCS_AXES]; /* per layer: the XPUs of all nodes in it */
	uint64_t *slabs[OCS_AXES]; /* per piece along the axis: XPUs of its layers */
	/* one piece: section->words of XPUs, then 6 * face_words of ports */
	int piece_words;
	uint64_t *masks;
	int room;
};

/* CAT has its shape, sizes of masks and foldings; where its arrays of foldings and tables
 * grow, table_of has to be forgotten.  CAT's tables are made when they are needed. */
void ocs_candidate_masks_create(struct ocs_candidate_masks *p, const struct ocs_section *section,
				struct ocs_catalogue *cat);
void ocs_candidate_masks_free(struct ocs_candidate_masks *p);

/* Lays FOLDING (an index) out at LAY and fills the XPU masks of all pieces of the grid: the
 * XPUs of all nodes that its vertices touch. */
void ocs_candidate_masks_fill(struct ocs_candidate_masks *p, int folding,
			      const struct ocs_box_layout *lay);
/* Adds the ports of all circuits; returns how many circuits. */
int ocs_candidate_masks_ports(struct ocs_candidate_masks *p);

static inline uint64_t *ocs_candidate_masks_piece(struct ocs_candidate_masks *p, int piece)
{
	return p->masks + (size_t)piece * (size_t)p->piece_words;
}

#endif
