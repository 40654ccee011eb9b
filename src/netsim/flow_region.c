/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Regions: which paths are joined by links that they share.  A region grows when a flow joins
 * two, and is split when many of its paths have ended. */

#include <math.h>
#include <stdlib.h>

#include "src/netsim/flow_internal.h"
#include "src/util/text.h"

/* So small a region is split whenever a path has ended. */
#define SPLIT_ALWAYS 32

static int region_create(struct ocs_flownet *net)
{
	int number = net->free_region;

	if (number >= 0) {
		net->free_region = net->regions[number].next_free;
	} else {
		net->regions = ocs_flow_room(net->regions, net->nregions + 1, &net->regions_size,
					     sizeof(*net->regions));
		number = net->nregions++;
		net->regions[number] = (struct flow_region){ 0 };
	}
	net->regions[number].npaths = net->regions[number].nlinks = 0;
	net->regions[number].ndue = net->regions[number].gone = 0;
	net->regions[number].dirty = false;
	net->regions[number].deadline = INFINITY;
	net->regions[number].guess = net->tolerance > 0 ? INFINITY : 0;
	return number;
}

/* A region of no paths: its links have none. */
static void region_free(struct ocs_flownet *net, int number)
{
	struct flow_region *region = &net->regions[number];

	for (int k = 0; k < region->nlinks; k++) {
		if (net->links[region->links[k]].region == number)
			net->links[region->links[k]].region = -1;
	}
	region->npaths = region->nlinks = region->ndue = 0;
	ocs_queue_remove(&net->queue, number);
	region->next_free = net->free_region;
	net->free_region = number;
}

void ocs_flow_region_dirty(struct ocs_flownet *net, int number)
{
	if (net->regions[number].dirty)
		return;
	net->regions[number].dirty = true;
	net->dirty = ocs_flow_room(net->dirty, net->ndirty + 1, &net->dirty_size, sizeof(int));
	net->dirty[net->ndirty++] = number;
}

static void region_path_add(struct ocs_flownet *net, int number, int path)
{
	struct flow_region *region = &net->regions[number];

	region->paths =
		ocs_flow_room(region->paths, region->npaths + 1, &region->paths_size, sizeof(int));
	net->members[path].region = number;
	net->members[path].place = region->npaths;
	region->paths[region->npaths++] = path;
}

static void region_link_add(struct ocs_flownet *net, int number, int link)
{
	struct flow_region *region = &net->regions[number];

	region->links =
		ocs_flow_room(region->links, region->nlinks + 1, &region->links_size, sizeof(int));
	net->links[link].region = number;
	region->links[region->nlinks++] = link;
}

/* Joins two regions into the larger one, which it returns.  The other stays on the list of dirty
 * ones, if it is there, until that list is worked off. */
static int region_join(struct ocs_flownet *net, int a, int b)
{
	int into = net->regions[a].npaths >= net->regions[b].npaths ? a : b;
	int from = into == a ? b : a;

	for (int k = 0; k < net->regions[from].npaths; k++)
		region_path_add(net, into, net->regions[from].paths[k]);
	for (int k = 0; k < net->regions[from].nlinks; k++) {
		if (net->links[net->regions[from].links[k]].region == from)
			region_link_add(net, into, net->regions[from].links[k]);
	}
	net->regions[into].gone += net->regions[from].gone;
	net->regions[from].npaths = net->regions[from].nlinks = net->regions[from].ndue = 0;
	ocs_queue_remove(&net->queue, from);
	ocs_flow_region_dirty(net, from);
	ocs_flow_region_dirty(net, into);
	return into;
}

void ocs_flow_path_activate(struct ocs_flownet *net, int number)
{
	struct flow_path *path = &net->paths[number];
	const int *links = flow_path_links(net, path);
	int region = -1;

	for (int k = 0; k < path->nlinks; k++) {
		int other = net->links[links[k]].region;

		if (other >= 0 && other != region)
			region = region < 0 ? other : region_join(net, region, other);
	}
	if (region < 0)
		region = region_create(net);
	region_path_add(net, region, number);
	for (int k = 0; k < path->nlinks; k++) {
		struct flow_link *link = &net->links[links[k]];

		if (link->region != region)
			region_link_add(net, region, links[k]);
		link->paths = ocs_flow_room(link->paths, link->npaths + 1, &link->paths_size,
					    sizeof(int));
		net->place_in[path->first + k] = link->npaths;
		link->paths[link->npaths++] = number;
	}
}

/* Takes the entry at PLACE out of the list of LINK, and tells the path that is moved there. */
static void link_path_remove(struct ocs_flownet *net, int number, int place)
{
	struct flow_link *link = &net->links[number];
	int moved = link->paths[--link->npaths];
	const struct flow_path *path = &net->paths[moved];

	link->paths[place] = moved;
	for (int k = 0; k < path->nlinks; k++) {
		if (net->links_of[path->first + k] == number)
			net->place_in[path->first + k] = place;
	}
	if (!link->npaths)
		link->used = 0; /* what rounding left */
}

void ocs_flow_path_deactivate(struct ocs_flownet *net, int number)
{
	struct flow_path *path = &net->paths[number];
	struct flow_region *region = &net->regions[net->members[number].region];
	int moved = region->paths[--region->npaths], place = net->members[number].place;

	region->paths[place] = moved;
	net->members[moved].place = place;
	region->gone++;
	for (int k = 0; k < path->nlinks; k++)
		link_path_remove(net, net->links_of[path->first + k],
				 net->place_in[path->first + k]);
	net->members[number].region = -1;
	path->finish = INFINITY;
	path->weight = 0;
}

void ocs_flow_region_queue(struct ocs_flownet *net, int number)
{
	const struct flow_region *region = &net->regions[number];
	double next = region->deadline;

	if (region->ndue && net->paths[region->due[0]].finish < next)
		next = net->paths[region->due[0]].finish;
	if (isfinite(next))
		ocs_queue_set(&net->queue, number, next);
	else
		ocs_queue_remove(&net->queue, number);
}

/* Shares out, and waits for the first flow to end. */
static void region_solve(struct ocs_flownet *net, int number)
{
	struct flow_region *region = &net->regions[number];

	ocs_flow_solve(net, region);
	region->deadline = INFINITY;
	region->window = region->finite ? 2 * net->tolerance * region->lives / region->finite : 0;
	/* What is short and late may have a duration below 0: a start is less exact. */
	region->window = fmax(fmin(region->window, region->guess), 0);
	region->guess = 2 * region->window;
	ocs_flow_due_sort(net, region, region->first * (1 + FLOW_TIE) + region->window);
	ocs_flow_region_queue(net, number);
}

/* Moves what is joined to LINK, all of region FROM, into a new region. */
static int piece_make(struct ocs_flownet *net, int from, int link)
{
	int piece = region_create(net);

	region_link_add(net, piece, link);
	for (int k = 0; k < net->regions[piece].nlinks; k++) {
		const struct flow_link *at = &net->links[net->regions[piece].links[k]];

		for (int i = 0; i < at->npaths; i++) {
			const struct flow_path *path = &net->paths[at->paths[i]];

			if (net->members[at->paths[i]].region != from)
				continue;
			region_path_add(net, piece, at->paths[i]);
			for (int m = 0; m < path->nlinks; m++) {
				int other = net->links_of[path->first + m];

				if (net->links[other].region == from)
					region_link_add(net, piece, other);
			}
		}
	}
	net->regions[piece].gone = 0;
	return piece;
}

static void region_split(struct ocs_flownet *net, int number)
{
	for (int k = 0; k < net->regions[number].nlinks; k++) {
		int link = net->regions[number].links[k];

		if (net->links[link].region == number && net->links[link].npaths)
			region_solve(net, piece_make(net, number, link));
	}
	net->regions[number].npaths = 0;
	region_free(net, number);
}

void ocs_flow_settle(struct ocs_flownet *net)
{
	for (int k = 0; k < net->ndirty; k++) {
		int number = net->dirty[k];
		struct flow_region *region = &net->regions[number];

		region->dirty = false;
		if (!region->npaths)
			region_free(net, number);
		else if (region->gone &&
			 (region->npaths <= SPLIT_ALWAYS || region->gone >= region->npaths))
			region_split(net, number);
		else
			region_solve(net, number);
	}
	net->ndirty = 0;
}
