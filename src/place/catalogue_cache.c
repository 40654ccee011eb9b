/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/place/catalogue_cache.h"

#include <stdlib.h>
#include <string.h>

#include "src/util/text.h"

static unsigned int shape_hash(const struct ocs_shape *shape, int nodes)
{
	uint64_t h = (uint64_t)nodes * 2 + shape->twisted;
	int d;

	for (d = 0; d < shape->ndim; d++)
		h = (h ^ (uint64_t)(2 * shape->extent[d] + shape->mesh[d])) * 0x9e3779b97f4a7c15ULL;
	return (unsigned int)(h ^ h >> 32);
}

struct ocs_catalogue_cache *ocs_catalogue_cache_create(size_t limit)
{
	struct ocs_catalogue_cache *cache = ocs_calloc(1, sizeof(*cache));

	cache->limit = limit;
	return cache;
}

void ocs_catalogue_cache_destroy(struct ocs_catalogue_cache *cache)
{
	int i;

	if (!cache)
		return;
	for (i = 0; i < cache->count; i++)
		ocs_catalogue_destroy(cache->entries[i].catalogue);
	free(cache);
}

static void entry_link(struct ocs_catalogue_cache *cache, int entry)
{
	unsigned int slot = cache->entries[entry].hash % OCS_CATALOGUE_SLOTS;

	while (cache->slots[slot])
		slot = (slot + 1) % OCS_CATALOGUE_SLOTS;
	cache->slots[slot] = (short)(entry + 1);
}

/* Drops the entry that was not asked for longest; the last one of the array takes its place. */
static void oldest_drop(struct ocs_catalogue_cache *cache)
{
	int oldest = cache->last ? 0 : 1, i;

	for (i = oldest + 1; i < cache->count; i++) {
		if (cache->entries[i].used < cache->entries[oldest].used)
			oldest = i;
	}
	cache->bytes -= cache->entries[oldest].catalogue->bytes;
	ocs_catalogue_destroy(cache->entries[oldest].catalogue);
	cache->entries[oldest] = cache->entries[--cache->count];
	if (cache->last == cache->count)
		cache->last = oldest;
	memset(cache->slots, 0, sizeof(cache->slots));
	for (i = 0; i < cache->count; i++)
		entry_link(cache, i);
}

static void cache_limit(struct ocs_catalogue_cache *cache)
{
	while (cache->count > 1 && cache->bytes > cache->limit)
		oldest_drop(cache);
}

struct ocs_catalogue *ocs_catalogue_cache_get(struct ocs_catalogue_cache *cache,
					      const struct ocs_shape *shape, int nodes)
{
	unsigned int hash = shape_hash(shape, nodes), slot = hash % OCS_CATALOGUE_SLOTS;

	for (; cache->slots[slot]; slot = (slot + 1) % OCS_CATALOGUE_SLOTS) {
		struct ocs_cached_catalogue *entry = &cache->entries[cache->slots[slot] - 1];

		if (entry->hash != hash || entry->nodes != nodes ||
		    !ocs_shape_same(&entry->catalogue->shape, shape))
			continue;
		entry->used = ++cache->clock;
		cache->last = cache->slots[slot] - 1;
		return entry->catalogue;
	}
	return NULL;
}

void ocs_catalogue_cache_add(struct ocs_catalogue_cache *cache, struct ocs_catalogue *catalogue,
			     int nodes)
{
	if (cache->count == OCS_CATALOGUES)
		oldest_drop(cache);
	cache->last = cache->count++;
	cache->entries[cache->last] = (struct ocs_cached_catalogue){
		catalogue, nodes, shape_hash(&catalogue->shape, nodes), ++cache->clock
	};
	entry_link(cache, cache->last);
	cache->bytes += catalogue->bytes;
	cache_limit(cache);
}

void ocs_catalogue_cache_grown(struct ocs_catalogue_cache *cache, size_t before)
{
	cache->bytes += cache->entries[cache->last].catalogue->bytes - before;
	cache_limit(cache);
}
