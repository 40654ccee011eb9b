/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_NETSIM_FLOW_INTERNAL_H
#define OCS_NETSIM_FLOW_INTERNAL_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>

#include "src/netsim/flow.h"
#include "src/netsim/queue.h"

/* Flows over the same links always have the same rate.  A path counts the bytes that each flow
 * of it has had ("service"); a flow ends when the service reaches what it was at its start plus
 * its bytes.  So a change of rate costs one step per path, not one per flow. */

/* What ends within this part of the time from 0 on ends at once: below what doubles tell apart
 * after some hundred additions. */
#define FLOW_TIE 1e-12

struct flow_link {
	double rate;
	double carried; /* until `updated` */
	double updated;
	double used; /* the sum of the rates of its flows */
	int weight;  /* flows */
	int region;  /* -1: none */
	int mark;
	int *paths; /* active ones */
	int npaths, paths_size;
};

/* Of a link, while rates are shared out. */
struct flow_fill {
	double taken; /* rates given to its flows */
	int open;     /* flows without a rate yet */
};

/* What sharing rates out needs of a path, one line of the processor's cache. */
struct flow_path {
	double service, updated; /* bytes each flow of it has had, at which time */
	double rate;		 /* of each flow */
	double threshold;	 /* service at which the first of its flows ends */
	double finish;		 /* the time of it; INFINITY: never */
	float start;		 /* when that flow started */
	int weight;		 /* flows; 0: not active */
	int near[2];		 /* its links where they are two or one */
	int first;		 /* all of them, in links_of and place_in */
	int nlinks;
};

/* And the rest of it. */
struct flow_members {
	int region, place; /* -1: none; its place in the region's list */
	int *heap;	   /* flows by threshold */
	int nheap, heap_size;
	int next; /* path of the same hash; -1 */
};

enum flow_state {
	FLOW_FREE,
	FLOW_RUNS,
	FLOW_PAUSED,
};

struct flow {
	double threshold; /* runs: of the path's service; paused: bytes left */
	double start;
	int path, place; /* place in the heap of the path */
	int count, tag;
	enum flow_state state;
};

/* Links and paths that are joined by flows: what a change of one rate can change.  Holds all
 * paths that share a link with one of its own. */
struct flow_region {
	int *paths;
	int npaths, paths_size;
	int *links;
	int nlinks, links_size;
	int gone;	 /* paths that ended since it was last split */
	bool dirty;	 /* rates are to be shared out now */
	double deadline; /* or then at the latest */
	double lives;	 /* sum of the durations of the first flows of its paths */
	int finite;	 /* ... that will end, of so many */
	double window;	 /* ... this long after the first flow ends */
	double guess;	 /* the longest that window may be */
	double first;	 /* when the first flow ends */
	int *due;	 /* paths whose first flow ends before the deadline, a heap by finish */
	int ndue, due_size;
	int next_free;
};

struct ocs_flownet {
	double tolerance, now;
	struct flow_link *links;
	struct flow_fill *fills; /* of each link */
	int nlinks, links_size;
	struct flow_path *paths;
	struct flow_members *members; /* of each path */
	int npaths, paths_size;
	unsigned char *fixed; /* per path: epoch in which it got its rate */
	unsigned char epoch;
	int *links_of; /* links of all paths, one after the other */
	int *place_in; /* place of the path in the list of that link */
	int nlinks_of, links_of_size;
	int *hash; /* first path of each value */
	int hash_size;
	struct flow *flows;
	int nflows, flows_size, free_flow; /* -1: none */
	struct flow_region *regions;
	int nregions, regions_size, free_region;
	struct ocs_queue queue; /* regions, by their next event */
	int *dirty;
	int ndirty, dirty_size;
	struct ocs_flow_end *ended;
	int nended, ended_size;
	bool ended_taken;
	int mark;
	double *share_keys; /* heap of links by share, while rates are shared out */
	int *share_links;
	int share_size;
	long solves;
	double solved_paths;
};

/* ARRAY, of *SIZE elements of WIDTH bytes, with room for COUNT. */
void *ocs_flow_room(void *array, int count, int *size, size_t width);

static inline const int *flow_path_links(const struct ocs_flownet *net,
					 const struct flow_path *path)
{
	return path->nlinks <= 2 ? path->near : net->links_of + path->first;
}

/* Brings the bytes carried by LINK, the service of PATH, to now. */
static inline void flow_link_touch(struct ocs_flownet *net, struct flow_link *link)
{
	link->carried += link->used * (net->now - link->updated);
	link->updated = net->now;
}

static inline void flow_path_touch(struct ocs_flownet *net, struct flow_path *path)
{
	path->service += path->rate * (net->now - path->updated);
	path->updated = net->now;
}

/* flow_region.c */
void ocs_flow_region_dirty(struct ocs_flownet *net, int region);
/* PATH gets its first flow, or loses its last. */
void ocs_flow_path_activate(struct ocs_flownet *net, int path);
void ocs_flow_path_deactivate(struct ocs_flownet *net, int path);
/* Shares out the rates of all dirty regions. */
void ocs_flow_settle(struct ocs_flownet *net);
/* Puts REGION into the queue at the time of its next event. */
void ocs_flow_region_queue(struct ocs_flownet *net, int region);

/* flow_solve.c: progressive filling of the links of REGION. */
void ocs_flow_solve(struct ocs_flownet *net, struct flow_region *region);

/* flow_end.c: keeps of the due paths of REGION those that end up to UNTIL, as a heap. */
void ocs_flow_due_sort(const struct ocs_flownet *net, struct flow_region *region, double until);
/* The first event of REGION is now. */
void ocs_flow_region_event(struct ocs_flownet *net, int region);

/* Sets when the path's first flow ends. */
static inline void flow_path_finish(const struct ocs_flownet *net, struct flow_path *path)
{
	double left = path->threshold - path->service;

	if (left <= 0)
		path->finish = net->now;
	else
		path->finish = path->rate > 0 ? net->now + left / path->rate : INFINITY;
}

/* flow.c: takes a flow out of its path; the path may become inactive. */
void ocs_flow_remove(struct ocs_flownet *net, int flow);

#endif
