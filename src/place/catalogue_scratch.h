/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_PLACE_CATALOGUE_SCRATCH_H
#define OCS_PLACE_CATALOGUE_SCRATCH_H

/* The memory in which catalogues are made, one after the other: arrays that have grown for one are
 * there for the next, and what stays of a catalogue is copied at its exact size.  Otherwise a third
 * to a half of the time that a catalogue takes goes into pages that are asked of the kernel
 * and given back.  Zero-initialise; one per placer, for its catalogues only while they are made. */

#include "src/place/lights.h"

struct ocs_spare {
	void *memory;
	size_t bytes;
};

struct ocs_catalogue_scratch {
	struct ocs_spare lights, foldings, tables, mirror_of, gap_nodes;
	struct ocs_spare candidates, gates, uses, pieces, classes, words, mirrors;
};

void ocs_catalogue_scratch_free(struct ocs_catalogue_scratch *scratch);

/* Lends REST's arrays of lights and foldings the room that is spare, and takes it back. */
void ocs_catalogue_scratch_lights_lend(struct ocs_catalogue_scratch *scratch,
				       struct ocs_catalogue_rest *rest);
void ocs_catalogue_scratch_lights_return(struct ocs_catalogue_scratch *scratch,
					 struct ocs_catalogue_rest *rest);
/* The same for candidates and what they are made of. */
void ocs_catalogue_scratch_batch_lend(struct ocs_catalogue_scratch *scratch,
				      struct ocs_catalogue_rest *rest);
void ocs_catalogue_scratch_batch_return(struct ocs_catalogue_scratch *scratch,
					struct ocs_catalogue_rest *rest);

#endif
