/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_PLACE_FOLDING_BITS_H
#define OCS_PLACE_FOLDING_BITS_H

/* A folding as sets of bits in its box, made once and cut up for each offset: the XPUs that it uses,
 * and between two neighbouring layers the edges of the job that lead from one to the other.
 *
 * A set across AXIS has a row per layer of the first other axis, row_words[AXIS] words long, with a
 * bit per layer of the second other one: rows y with bits z, rows x with bits z, rows x with bits y. */

#include <stddef.h>
#include <stdint.h>

#include "src/fold/fold.h"

struct ocs_folding_step {
	int dim, from; /* from that coordinate to the next, or from the last to 0 */
	int next;      /* of the same layer; -1: none */
};

struct ocs_folding_bits {
	const struct ocs_shape *shape;
	const struct ocs_fold_table *table;
	int layers; /* room on an axis */
	int row_words[OCS_FOLD_AXES];
	size_t set_words[OCS_FOLD_AXES];
	int (*box)[OCS_FOLD_AXES]; /* of all vertices, in rank order, */
	bool boxed;		   /* once they are made */
	struct ocs_folding_step *steps;
	int nsteps, step_room;
	int *first[OCS_FOLD_AXES]; /* per layer: its first step upwards or from above; -1: none */
	int bit_steps[OCS_FOLD_AXES]; /* of an axis of bits: the first of all */
	long *made[OCS_FOLD_AXES];    /* per layer: its set in the pool; -1: not made */
	uint64_t *pool;
	size_t used, room;
	long cells; /* in the pool; -1: not made */
};

/* For foldings of SHAPE, with at most LAYERS along an axis. */
void ocs_folding_bits_create(struct ocs_folding_bits *bits, const struct ocs_shape *shape,
			     int layers);
void ocs_folding_bits_free(struct ocs_folding_bits *bits);

/* From now on it is the folding of TABLE, which stays while it is asked for. */
void ocs_folding_bits_load(struct ocs_folding_bits *bits, const struct ocs_fold_table *table);

/* The XPUs used: box[0] sets across axis 0, one after the other.  Valid until the next call. */
const uint64_t *ocs_folding_bits_cells(struct ocs_folding_bits *bits);

/* The edges between LAYER of AXIS and the next one, or the first after the last, as a set across
 * AXIS; NULL: there are none.  Valid until the next call. */
const uint64_t *ocs_folding_bits_edges(struct ocs_folding_bits *bits, int axis, int layer);

#endif
