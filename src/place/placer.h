/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_PLACE_PLACER_H
#define OCS_PLACE_PLACER_H

/* Inside of the engine. */

#include "src/place/box_search.h"
#include "src/place/catalogue_cache.h"
#include "src/place/catalogue_scratch.h"
#include "src/place/place.h"
#include "src/place/ring.h"

struct ocs_placer {
	const struct ocs_fabric *fabric;
	const struct ocs_section *section;
	struct ocs_box_search *fit;
	struct ocs_ring_builder *ring; /* NULL in a static section */
	struct ocs_catalogue_cache *catalogues;
	struct ocs_catalogue_scratch scratch;
	struct ocs_place_work work; /* of the last ocs_place */
	unsigned char *mark;	    /* one zeroed byte per node of the section */
};

/* OCS_USAGE unless the section has cubes.  Returns 0 or -1. */
int ocs_placer_check(const struct ocs_placer *placer, struct ocs_error *err);

/* The catalogue of SHAPE on NODE_COUNT nodes (0: the fewest), which is the one used last then. */
struct ocs_catalogue *ocs_placer_catalogue(struct ocs_placer *placer, const struct ocs_shape *shape,
					   int node_count);

#endif
