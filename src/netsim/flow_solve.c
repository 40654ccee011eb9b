/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Progressive filling: the link with the smallest share for each of its flows fills first; its
 * flows get this rate, which leaves the other links the rest.  Shares only grow meanwhile, so a
 * heap with old shares is good enough: what comes out is looked at again. */

#include <math.h>
#include <string.h>

#include "src/netsim/flow_internal.h"

/* How many paths ahead are fetched into the cache. */
#define AHEAD 32

struct share_heap {
	double *keys;
	int *links;
	int count;
};

static void heap_sift(struct share_heap *heap, int at)
{
	double key = heap->keys[at];
	int link = heap->links[at];

	for (int child = 2 * at + 1; child < heap->count; child = 2 * at + 1) {
		if (child + 1 < heap->count && heap->keys[child + 1] < heap->keys[child])
			child++;
		if (heap->keys[child] >= key)
			break;
		heap->keys[at] = heap->keys[child];
		heap->links[at] = heap->links[child];
		at = child;
	}
	heap->keys[at] = key;
	heap->links[at] = link;
}

static void heap_pop(struct share_heap *heap)
{
	heap->count--;
	heap->keys[0] = heap->keys[heap->count];
	heap->links[0] = heap->links[heap->count];
	if (heap->count)
		heap_sift(heap, 0);
}

static double link_share(const struct ocs_flownet *net, int link)
{
	double left = net->links[link].rate - net->fills[link].taken;

	return left > 0 ? left / net->fills[link].open : 0;
}

static struct share_heap heap_make(struct ocs_flownet *net, const struct flow_region *region)
{
	struct share_heap heap;
	int size = net->share_size;

	net->share_keys =
		ocs_flow_room(net->share_keys, region->nlinks, &net->share_size, sizeof(double));
	net->share_links = ocs_flow_room(net->share_links, region->nlinks, &size, sizeof(int));
	heap = (struct share_heap){ .keys = net->share_keys, .links = net->share_links };
	for (int k = 0; k < region->nlinks; k++) {
		struct flow_link *link = &net->links[region->links[k]];

		flow_link_touch(net, link);
		net->fills[region->links[k]] = (struct flow_fill){ .open = link->weight };
		if (!link->weight)
			continue;
		heap.keys[heap.count] = link_share(net, region->links[k]);
		heap.links[heap.count++] = region->links[k];
	}
	for (int k = heap.count / 2; k-- > 0;)
		heap_sift(&heap, k);
	return heap;
}

/* What may end in the region's next window becomes due; when that begins is known at the end. */
static inline void region_note(struct flow_region *region, const struct flow_path *path, int number)
{
	if (path->finish == INFINITY)
		return;
	region->lives += path->finish - path->start;
	region->finite++;
	if (path->finish > region->first * (1 + FLOW_TIE) + region->guess)
		return;
	if (path->finish < region->first)
		region->first = path->finish;
	region->due = ocs_flow_room(region->due, region->ndue + 1, &region->due_size, sizeof(int));
	region->due[region->ndue++] = number;
}

/* The flows of LINK without a rate get SHARE. */
static void link_fill(struct ocs_flownet *net, struct flow_region *region,
		      const struct flow_link *link, double share)
{
	for (int k = 0; k < link->npaths; k++) {
		int number = link->paths[k];
		struct flow_path *path = &net->paths[number];
		const int *links;

		if (k + AHEAD < link->npaths && net->fixed[link->paths[k + AHEAD]] != net->epoch)
			__builtin_prefetch(&net->paths[link->paths[k + AHEAD]], 1);
		if (net->fixed[number] == net->epoch)
			continue;
		net->fixed[number] = net->epoch;
		flow_path_touch(net, path);
		path->rate = share;
		flow_path_finish(net, path);
		region_note(region, path, number);
		links = flow_path_links(net, path);
		for (int m = 0; m < path->nlinks; m++) {
			net->fills[links[m]].taken += share * path->weight;
			net->fills[links[m]].open -= path->weight;
		}
	}
}

void ocs_flow_solve(struct ocs_flownet *net, struct flow_region *region)
{
	struct share_heap heap = heap_make(net, region);

	net->solves++;
	region->ndue = region->finite = 0;
	region->lives = 0;
	region->first = INFINITY;
	net->solved_paths += region->npaths;
	if (!++net->epoch) {
		memset(net->fixed, 0, (size_t)net->npaths);
		net->epoch = 1;
	}
	while (heap.count) {
		int link = heap.links[0];
		double share;

		if (!net->fills[link].open) {
			heap_pop(&heap);
			continue;
		}
		share = link_share(net, link);
		if (share > heap.keys[0] * (1 + FLOW_TIE)) {
			heap.keys[0] = share;
			heap_sift(&heap, 0);
			continue;
		}
		heap_pop(&heap);
		link_fill(net, region, &net->links[link], share);
	}
	for (int k = 0; k < region->nlinks; k++) {
		struct flow_link *link = &net->links[region->links[k]];

		/* Rounding may take a link some 1e-16 over its rate. */
		link->used = fmin(net->fills[region->links[k]].taken, link->rate);
	}
}
