/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_PLACE_CATALOGUE_CACHE_H
#define OCS_PLACE_CATALOGUE_CACHE_H

/* The catalogues of the shapes that were asked for last: at most OCS_CATALOGUES, which together take
 * at most LIMIT bytes, unless the one used last takes more by itself. */

#include "src/place/candidates.h"

#define OCS_CATALOGUES 2048
#define OCS_CATALOGUE_SLOTS (2 * OCS_CATALOGUES)

struct ocs_cached_catalogue {
	struct ocs_catalogue *catalogue;
	int nodes; /* for which it was asked; 0: the fewest */
	unsigned int hash;
	unsigned long used; /* the cache's clock when it was asked for last */
};

struct ocs_catalogue_cache {
	struct ocs_cached_catalogue entries[OCS_CATALOGUES];
	int count;
	int last; /* the entry used last */
	size_t bytes, limit;
	unsigned long clock;
	short slots[OCS_CATALOGUE_SLOTS]; /* by hash: entry + 1; 0: none */
};

struct ocs_catalogue_cache *ocs_catalogue_cache_create(size_t limit);
void ocs_catalogue_cache_destroy(struct ocs_catalogue_cache *cache);

/* The catalogue of SHAPE on NODES nodes, the one used last from now on, or NULL. */
struct ocs_catalogue *ocs_catalogue_cache_get(struct ocs_catalogue_cache *cache,
					      const struct ocs_shape *shape, int nodes);
/* Keeps CATALOGUE, which was asked for NODES nodes and is not there yet, as the one used last. */
void ocs_catalogue_cache_add(struct ocs_catalogue_cache *cache, struct ocs_catalogue *catalogue,
			     int nodes);
/* The catalogue used last has grown from BEFORE bytes. */
void ocs_catalogue_cache_grown(struct ocs_catalogue_cache *cache, size_t before);

#endif
