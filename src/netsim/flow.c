/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/netsim/flow.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "src/netsim/flow_internal.h"
#include "src/util/text.h"

#define CACHE_LINE 64
#define LARGE_PAGE ((size_t)2 << 20)

void *ocs_flow_room(void *array, int count, int *size, size_t width)
{
	if (count <= *size)
		return array;
	*size = count > 2 * *size ? count : 2 * *size;
	return ocs_realloc(array, (size_t)*size * width);
}

struct ocs_flownet *ocs_flownet_create(double tolerance)
{
	struct ocs_flownet *net = ocs_calloc(1, sizeof(*net));

	net->tolerance = tolerance;
	net->free_flow = net->free_region = -1;
	return net;
}

void ocs_flownet_destroy(struct ocs_flownet *net)
{
	if (!net)
		return;
	for (int k = 0; k < net->nlinks; k++)
		free(net->links[k].paths);
	for (int k = 0; k < net->npaths; k++)
		free(net->members[k].heap);
	for (int k = 0; k < net->nregions; k++) {
		free(net->regions[k].paths);
		free(net->regions[k].links);
		free(net->regions[k].due);
	}
	free(net->links);
	free(net->fills);
	free(net->paths);
	free(net->members);
	free(net->fixed);
	free(net->links_of);
	free(net->place_in);
	free(net->hash);
	free(net->flows);
	free(net->regions);
	ocs_queue_free(&net->queue);
	free(net->dirty);
	free(net->ended);
	free(net->share_keys);
	free(net->share_links);
	free(net);
}

int ocs_flownet_link_add(struct ocs_flownet *net, double rate)
{
	int size = net->links_size;

	net->links =
		ocs_flow_room(net->links, net->nlinks + 1, &net->links_size, sizeof(*net->links));
	net->fills = ocs_flow_room(net->fills, net->nlinks + 1, &size, sizeof(*net->fills));
	net->links[net->nlinks] =
		(struct flow_link){ .rate = rate, .region = -1, .updated = net->now };
	return net->nlinks++;
}

void ocs_flownet_link_change(struct ocs_flownet *net, int link, double rate)
{
	if (net->links[link].rate == rate)
		return;
	net->links[link].rate = rate;
	if (net->links[link].region >= 0)
		ocs_flow_region_dirty(net, net->links[link].region);
}

int ocs_flownet_links(const struct ocs_flownet *net)
{
	return net->nlinks;
}

double ocs_flownet_link_rate(const struct ocs_flownet *net, int link)
{
	return net->links[link].rate;
}

double ocs_flownet_link_carried(const struct ocs_flownet *net, int link)
{
	const struct flow_link *it = &net->links[link];

	return it->carried + it->used * (net->now - it->updated);
}

static unsigned links_hash(const int *links, int n)
{
	unsigned hash = 2166136261u;

	for (int k = 0; k < n; k++)
		hash = (hash ^ (unsigned)links[k]) * 16777619u + (hash >> 15);
	return hash;
}

static void hash_grow(struct ocs_flownet *net)
{
	int size = net->hash_size ? 4 * net->hash_size : 1024;

	net->hash = ocs_realloc(net->hash, (size_t)size * sizeof(int));
	net->hash_size = size;
	for (int k = 0; k < size; k++)
		net->hash[k] = -1;
	for (int k = 0; k < net->npaths; k++) {
		struct flow_path *path = &net->paths[k];
		unsigned at = links_hash(net->links_of + path->first, path->nlinks) &
			      (unsigned)(size - 1);

		net->members[k].next = net->hash[at];
		net->hash[at] = k;
	}
}

/* Room for one more path, on lines of the cache and, where there are many, on large pages. */
static void paths_grow(struct ocs_flownet *net)
{
	int size = net->paths_size ? 2 * net->paths_size : 64;
	size_t bytes = (size_t)size * sizeof(*net->paths);
	size_t align = bytes < LARGE_PAGE ? CACHE_LINE : LARGE_PAGE;
	void *paths = NULL;

	if (net->npaths < net->paths_size)
		return;
	bytes = (bytes + align - 1) / align * align;
	paths = aligned_alloc(align, bytes);
	if (!paths)
		abort();
	if (align == LARGE_PAGE)
		madvise(paths, bytes, MADV_HUGEPAGE);
	if (net->npaths)
		memcpy(paths, net->paths, (size_t)net->npaths * sizeof(*net->paths));
	free(net->paths);
	net->paths = paths;
	net->paths_size = size;
	net->fixed = ocs_realloc(net->fixed, (size_t)size * sizeof(*net->fixed));
	net->members = ocs_realloc(net->members, (size_t)size * sizeof(*net->members));
}

static int path_add(struct ocs_flownet *net, const int *links, int n)
{
	int places = net->links_of_size;
	struct flow_path *path;

	paths_grow(net);
	net->links_of =
		ocs_flow_room(net->links_of, net->nlinks_of + n, &net->links_of_size, sizeof(int));
	net->place_in = ocs_flow_room(net->place_in, net->nlinks_of + n, &places, sizeof(int));
	path = &net->paths[net->npaths];
	*path = (struct flow_path){ .first = net->nlinks_of, .nlinks = n, .finish = INFINITY };
	for (int k = 0; k < n && k < 2; k++)
		path->near[k] = links[k];
	net->members[net->npaths] = (struct flow_members){ .region = -1 };
	net->fixed[net->npaths] = 0;
	memcpy(net->links_of + net->nlinks_of, links, (size_t)n * sizeof(int));
	net->nlinks_of += n;
	return net->npaths++;
}

/* The path over N LINKS, added if it is new. */
static int path_find(struct ocs_flownet *net, const int *links, int n)
{
	unsigned hash = links_hash(links, n);
	int found;

	if (net->npaths >= net->hash_size)
		hash_grow(net);
	hash &= (unsigned)(net->hash_size - 1);
	for (found = net->hash[hash]; found >= 0; found = net->members[found].next) {
		if (net->paths[found].nlinks == n &&
		    !memcmp(net->links_of + net->paths[found].first, links,
			    (size_t)n * sizeof(int)))
			return found;
	}
	found = path_add(net, links, n);
	net->members[found].next = net->hash[hash];
	net->hash[hash] = found;
	return found;
}

static void heap_put(struct ocs_flownet *net, struct flow_members *path, int at, int flow)
{
	path->heap[at] = flow;
	net->flows[flow].place = at;
}

/* Moves the flow at AT of the path's heap to where it belongs. */
static void heap_sift(struct ocs_flownet *net, struct flow_members *path, int at)
{
	int flow = path->heap[at];
	double threshold = net->flows[flow].threshold;

	while (at > 0 && threshold < net->flows[path->heap[(at - 1) / 2]].threshold) {
		heap_put(net, path, at, path->heap[(at - 1) / 2]);
		at = (at - 1) / 2;
	}
	for (int child = 2 * at + 1; child < path->nheap; child = 2 * at + 1) {
		if (child + 1 < path->nheap && net->flows[path->heap[child + 1]].threshold <
						       net->flows[path->heap[child]].threshold)
			child++;
		if (net->flows[path->heap[child]].threshold >= threshold)
			break;
		heap_put(net, path, at, path->heap[child]);
		at = child;
	}
	heap_put(net, path, at, flow);
}

/* The first flow of path NUMBER may be another one. */
static void path_first(struct ocs_flownet *net, int number)
{
	const struct flow *first = &net->flows[net->members[number].heap[0]];

	net->paths[number].threshold = first->threshold;
	net->paths[number].start = first->start;
}

/* Puts FLOW with BYTES to go onto PATH. */
static void flow_enter(struct ocs_flownet *net, int flow, int number, double bytes)
{
	struct flow_path *path = &net->paths[number];
	struct flow_members *members = &net->members[number];
	struct flow *it = &net->flows[flow];

	if (!path->weight) {
		path->service = path->rate = 0;
		path->updated = net->now;
		ocs_flow_path_activate(net, number);
	}
	flow_path_touch(net, path);
	it->path = number;
	it->threshold = path->service + bytes;
	it->state = FLOW_RUNS;
	path->weight += it->count;
	for (int k = 0; k < path->nlinks; k++)
		net->links[net->links_of[path->first + k]].weight += it->count;
	members->heap =
		ocs_flow_room(members->heap, members->nheap + 1, &members->heap_size, sizeof(int));
	heap_put(net, members, members->nheap++, flow);
	heap_sift(net, members, members->nheap - 1);
	path_first(net, number);
	ocs_flow_region_dirty(net, members->region);
}

int ocs_flownet_start(struct ocs_flownet *net, const int *links, int n, double bytes, int count,
		      int tag)
{
	int flow = net->free_flow;

	if (flow >= 0) {
		net->free_flow = net->flows[flow].path;
	} else {
		net->flows = ocs_flow_room(net->flows, net->nflows + 1, &net->flows_size,
					   sizeof(*net->flows));
		flow = net->nflows++;
	}
	net->flows[flow] = (struct flow){ .start = net->now, .count = count, .tag = tag };
	flow_enter(net, flow, path_find(net, links, n), bytes);
	return flow;
}

void ocs_flow_remove(struct ocs_flownet *net, int flow)
{
	struct flow *it = &net->flows[flow];
	struct flow_path *path = &net->paths[it->path];
	struct flow_members *members = &net->members[it->path];
	const int *links = flow_path_links(net, path);
	int last = members->heap[--members->nheap];

	if (last != flow) {
		int place = it->place;

		heap_put(net, members, place, last);
		heap_sift(net, members, place);
	}
	path->weight -= it->count;
	for (int k = 0; k < path->nlinks; k++) {
		struct flow_link *link = &net->links[links[k]];

		flow_link_touch(net, link);
		link->used -= path->rate * it->count;
		link->weight -= it->count;
	}
	if (members->nheap)
		path_first(net, it->path);
	else
		ocs_flow_path_deactivate(net, it->path);
}

double ocs_flownet_left(const struct ocs_flownet *net, int flow)
{
	const struct flow *it = &net->flows[flow];
	const struct flow_path *path = &net->paths[it->path];
	double left;

	if (it->state == FLOW_PAUSED)
		return it->threshold;
	left = it->threshold - path->service - path->rate * (net->now - path->updated);
	return left > 0 ? left : 0;
}

double ocs_flownet_flow_rate(const struct ocs_flownet *net, int flow)
{
	return net->flows[flow].state == FLOW_RUNS ? net->paths[net->flows[flow].path].rate : 0;
}

void ocs_flownet_pause(struct ocs_flownet *net, int flow)
{
	double left = ocs_flownet_left(net, flow);

	if (net->flows[flow].state != FLOW_RUNS)
		return;
	/* First, while it has one: what it leaves is shared out in its region. */
	ocs_flow_region_dirty(net, net->members[net->flows[flow].path].region);
	ocs_flow_remove(net, flow);
	net->flows[flow].state = FLOW_PAUSED;
	net->flows[flow].threshold = left;
}

void ocs_flownet_resume(struct ocs_flownet *net, int flow)
{
	if (net->flows[flow].state == FLOW_PAUSED)
		flow_enter(net, flow, net->flows[flow].path, net->flows[flow].threshold);
}

void ocs_flownet_reroute(struct ocs_flownet *net, int flow, const int *links, int n)
{
	bool runs = net->flows[flow].state == FLOW_RUNS;

	ocs_flownet_pause(net, flow);
	net->flows[flow].path = path_find(net, links, n);
	if (runs)
		ocs_flownet_resume(net, flow);
}

double ocs_flownet_now(const struct ocs_flownet *net)
{
	return net->now;
}

double ocs_flownet_next(struct ocs_flownet *net)
{
	ocs_flow_settle(net);
	return ocs_queue_next(&net->queue);
}

void ocs_flownet_advance(struct ocs_flownet *net, double time)
{
	double next;

	ocs_flow_settle(net);
	while ((next = ocs_queue_next(&net->queue)) <= time) {
		if (next > net->now)
			net->now = next;
		ocs_flow_region_event(net, ocs_queue_first(&net->queue));
	}
	if (time > net->now)
		net->now = time;
}

const struct ocs_flow_end *ocs_flownet_ended(struct ocs_flownet *net, int *count)
{
	if (net->ended_taken)
		net->nended = 0;
	net->ended_taken = true;
	*count = net->nended;
	return net->ended;
}

void ocs_flownet_effort(const struct ocs_flownet *net, long *solves, double *paths)
{
	*solves = net->solves;
	*paths = net->solved_paths;
}
