/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Regions of a mixture of experts (mFabric): some interfaces of each server are on a circuit switch of
 * its region, the others on a packet network.  Before an all-to-all inside a region its circuits may
 * change, by the allocation of src/moe; its bytes take circuits and packets as that one's routes
 * say, and all other traffic takes packets.  While an all-to-all is under way in a region its circuits
 * stay. */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/moe/allocate.h"
#include "src/moe/change.h"
#include "src/moe/routes.h"
#include "src/netsim/region.h"
#include "src/netsim/step_internal.h"
#include "src/util/error.h"
#include "src/util/text.h"

struct region {
	int first, n; /* servers */
	struct ocs_moe_region *ports;
	struct ocs_moe_circuits *circuits; /* NULL: before the first all-to-all */
	int busy;			   /* all-to-alls under way */
	double idle;			   /* since when none is */
	int job, group, matrix;		   /* for which the circuits were chosen */
};

/* How the bytes of an all-to-all go. */
struct region_ways {
	struct ocs_moe_demand *demand;
	struct ocs_moe_routes *routes;
	int *first; /* of each pair in routes->route */
};

struct step_region {
	struct region *regions;
	int nregions;
	struct region_ways *ways; /* of each task while it runs */
	int ntasks;
	int *same; /* of each task: how many of its step, it included, send the same later */
};

static struct region *region_of(const struct step_run *run, int task)
{
	const struct step_job *job = &run->jobs[run->job_of[task]];
	const struct ocs_netsim_graph *graph = job->job->graph;
	const struct ocs_netsim_task *it = &graph->tasks[task - job->tasks];
	const struct ocs_netsim_group *group;
	int number = -1;

	if (it->kind != OCS_NETSIM_ALLTOALL || !(it->bytes > 0))
		return NULL;
	group = &graph->groups[it->group];
	for (int k = 0; k < group->count; k++) {
		int at = group->members[k];

		at = (job->job->place ? job->job->place[at] : at) / run->fabric->spec.region;
		if (number >= 0 && at != number)
			return NULL;
		number = at;
	}
	return group->count > 1 ? &run->region->regions[number] : NULL;
}

struct same_key {
	int group, matrix, task;
};

static int same_compare(const void *left, const void *right)
{
	const struct same_key *a = left, *b = right;

	if (a->group != b->group)
		return a->group - b->group;
	return a->matrix != b->matrix ? a->matrix - b->matrix : a->task - b->task;
}

static void same_count(const struct step_job *job, int *same)
{
	const struct ocs_netsim_graph *graph = job->job->graph;
	struct same_key *keys = ocs_calloc((size_t)graph->ntasks + 1, sizeof(*keys));
	int n = 0;

	for (int k = 0; k < graph->ntasks; k++) {
		if (graph->tasks[k].kind == OCS_NETSIM_ALLTOALL)
			keys[n++] = (struct same_key){ graph->tasks[k].group,
						       graph->tasks[k].matrix, k };
	}
	qsort(keys, (size_t)n, sizeof(*keys), same_compare);
	for (int k = n - 1; k >= 0; k--) {
		bool more = k + 1 < n && keys[k].group == keys[k + 1].group &&
			    keys[k].matrix == keys[k + 1].matrix;

		same[job->tasks + keys[k].task] =
			more ? same[job->tasks + keys[k + 1].task] + 1 : 1;
	}
	free(keys);
}

struct step_region *ocs_step_region_create(struct step_run *run)
{
	const struct ocs_netsim_spec *spec = &run->fabric->spec;
	struct step_region *all;

	if (spec->kind != OCS_NETSIM_REGION)
		return NULL;
	all = ocs_calloc(1, sizeof(*all));
	all->nregions = (run->fabric->servers + spec->region - 1) / spec->region;
	all->regions = ocs_calloc((size_t)all->nregions, sizeof(*all->regions));
	for (int k = 0; k < all->nregions; k++) {
		struct region *region = &all->regions[k];

		region->first = k * spec->region;
		region->n = run->fabric->servers - region->first;
		region->n = region->n < spec->region ? region->n : spec->region;
		region->ports =
			ocs_moe_region_create(region->n, spec->optical,
					      (spec->degree - spec->optical) *
						      ocs_netsim_region_packets(spec) / spec->rate);
	}
	all->ntasks = run->ntasks;
	all->ways = ocs_calloc((size_t)run->ntasks + 1, sizeof(*all->ways));
	all->same = ocs_calloc((size_t)run->ntasks + 1, sizeof(int));
	for (int k = 0; k < run->request->njobs; k++)
		same_count(&run->jobs[k], all->same);
	/* what an earlier run has left */
	for (int k = 2 * run->fabric->servers; k < run->fabric->nlinks; k++) {
		run->fabric->links[k].rate = 0;
		ocs_flownet_link_change(run->net, k, 0);
	}
	return all;
}

static void ways_free(struct region_ways *ways)
{
	ocs_moe_demand_destroy(ways->demand);
	ocs_moe_routes_destroy(ways->routes);
	free(ways->first);
	*ways = (struct region_ways){ 0 };
}

void ocs_step_region_destroy(struct step_region *all)
{
	if (!all)
		return;
	for (int k = 0; k < all->nregions; k++) {
		ocs_moe_region_destroy(all->regions[k].ports);
		ocs_moe_circuits_destroy(all->regions[k].circuits);
	}
	for (int k = 0; k < all->ntasks; k++)
		ways_free(&all->ways[k]);
	free(all->regions);
	free(all->ways);
	free(all->same);
	free(all);
}

/* What TASK sends in REGION, in ms of one interface. */
static struct ocs_moe_demand *demand_make(const struct step_run *run, int task,
					  const struct region *region)
{
	const struct step_job *job = &run->jobs[run->job_of[task]];
	const struct ocs_netsim_graph *graph = job->job->graph;
	const struct ocs_netsim_task *it = &graph->tasks[task - job->tasks];
	const struct ocs_netsim_group *group = &graph->groups[it->group];
	const double *matrix = it->matrix >= 0 ? graph->matrices[it->matrix] : NULL;
	struct ocs_moe_demand *demand = ocs_moe_demand_create(region->n);
	const int *place = job->job->place;

	for (int i = 0; i < group->count; i++) {
		int from = (place ? place[group->members[i]] : group->members[i]) - region->first;

		for (int j = 0; j < group->count; j++) {
			int to = (place ? place[group->members[j]] : group->members[j]) -
				 region->first;
			double bytes =
				matrix ? matrix[i * group->count + j] : it->bytes / group->count;

			if (i != j)
				demand->tokens[from * region->n + to] +=
					bytes / run->fabric->spec.rate;
		}
	}
	return demand;
}

/* The circuits for DEMAND; the caller destroys them. */
static struct ocs_moe_circuits *circuits_choose(const struct step_run *run,
						const struct region *region,
						const struct ocs_moe_demand *demand, int remaining,
						double window)
{
	const struct ocs_netsim_spec *spec = &run->fabric->spec;
	struct ocs_moe_request request = { .demand = demand,
					   .region = region->ports,
					   .policy = (enum ocs_moe_policy)spec->policy };
	struct ocs_moe_change change = { .remaining = remaining,
					 .first = spec->change,
					 .window = window };

	if (spec->always || !region->circuits)
		return ocs_moe_allocate(&request);
	request.keep = region->circuits;
	return ocs_moe_change_choose(&request, &change);
}

/* REGION has CIRCUITS, which it keeps.  Returns whether any changed. */
static bool circuits_set(struct step_run *run, struct region *region,
			 struct ocs_moe_circuits *circuits)
{
	struct ocs_netsim_fabric *fabric = run->fabric;
	bool changed = region->circuits && memcmp(region->circuits->count, circuits->count,
						  (size_t)region->n * region->n * sizeof(int)) != 0;

	ocs_moe_circuits_destroy(region->circuits);
	region->circuits = circuits;
	for (int i = 0; i < region->n; i++) {
		for (int j = 0; j < region->n; j++) {
			int link = ocs_netsim_region_circuit(fabric, region->first + i,
							     region->first + j);
			double rate = circuits->count[i * region->n + j] * fabric->spec.rate;

			if (rate == fabric->links[link].rate)
				continue;
			fabric->links[link].rate = rate;
			ocs_flownet_link_change(run->net, link, rate);
		}
	}
	run->result->changes += changed;
	return changed;
}

/* As the paper's program has it: circuits alone where a pair has one, else packets alone. */
static struct ocs_moe_routes *routes_paper(const struct ocs_moe_demand *demand,
					   const struct region *region)
{
	struct ocs_moe_routes *routes = ocs_calloc(1, sizeof(*routes));
	int pairs = region->n * region->n;

	routes->route = ocs_calloc((size_t)pairs, sizeof(*routes->route));
	for (int pair = 0; pair < pairs; pair++) {
		if (demand->tokens[pair] > 0)
			routes->route[routes->n++] =
				(struct ocs_moe_route){ .from = pair / region->n,
							.to = pair % region->n,
							.relay = -1,
							.way = region->circuits->count[pair] ?
								       OCS_MOE_CIRCUIT :
								       OCS_MOE_PACKETS,
							.tokens = demand->tokens[pair] };
	}
	return routes;
}

static void ways_make(struct region_ways *ways, const struct step_run *run,
		      const struct region *region)
{
	int pairs = region->n * region->n, at = 0;

	if (run->fabric->spec.policy == OCS_MOE_PAPER)
		ways->routes = routes_paper(ways->demand, region);
	else if (run->fabric->spec.relays)
		ways->routes = ocs_moe_routes_relay(ways->demand, region->ports, region->circuits,
						    OCS_MOE_ROUNDS);
	else
		ways->routes = ocs_moe_routes_direct(ways->demand, region->ports, region->circuits);
	ways->first = ocs_calloc((size_t)pairs + 1, sizeof(int));
	for (int pair = 0; pair <= pairs; pair++) {
		while (at < ways->routes->n &&
		       ways->routes->route[at].from * region->n + ways->routes->route[at].to < pair)
			at++;
		ways->first[pair] = at;
	}
}

double ocs_step_region_arrive(struct step_run *run, int task)
{
	const struct ocs_netsim_spec *spec = &run->fabric->spec;
	struct region *region = region_of(run, task);
	const struct step_job *job = &run->jobs[run->job_of[task]];
	const struct ocs_netsim_task *it = &job->job->graph->tasks[task - job->tasks];
	double now = ocs_flownet_now(run->net), wait = 0;
	struct region_ways *ways = &run->region->ways[task];

	if (!region)
		return 0;
	ways_free(ways);
	ways->demand = demand_make(run, task, region);
	if (!region->circuits ||
	    (!region->busy && (region->job != run->job_of[task] || region->group != it->group ||
			       region->matrix != it->matrix))) {
		/* known ahead: the change began when the last all-to-all had ended */
		double window = spec->ahead ? now - region->idle : 0;

		if (circuits_set(run, region,
				 circuits_choose(run, region, ways->demand, run->region->same[task],
						 window)))
			wait = fmax(0, spec->change - window);
		region->job = run->job_of[task];
		region->group = it->group;
		region->matrix = it->matrix;
	}
	region->busy++;
	ways_make(ways, run, region);
	return wait;
}

void ocs_step_region_end(struct step_run *run, int task)
{
	struct region *region = region_of(run, task);

	if (!region)
		return;
	ways_free(&run->region->ways[task]);
	region->busy--;
	region->idle = ocs_flownet_now(run->net);
}

static void route_links(const struct step_run *run, const struct region *region,
			const struct ocs_moe_route *route, struct ocs_netsim_path *path)
{
	int from = region->first + route->from, to = region->first + route->to;
	int relay = region->first + route->relay, *link = path->links;

	if (route->way == OCS_MOE_CIRCUIT || route->way == OCS_MOE_CIRCUIT_CIRCUIT ||
	    route->way == OCS_MOE_CIRCUIT_PACKETS) {
		*link++ =
			ocs_netsim_region_circuit(run->fabric, from, route->relay < 0 ? to : relay);
	} else {
		*link++ = OCS_NETSIM_REGION_OUT(from);
		*link++ = OCS_NETSIM_REGION_IN(route->relay < 0 ? to : relay);
	}
	if (route->way == OCS_MOE_CIRCUIT_CIRCUIT || route->way == OCS_MOE_PACKETS_CIRCUIT) {
		*link++ = ocs_netsim_region_circuit(run->fabric, relay, to);
	} else if (route->way == OCS_MOE_CIRCUIT_PACKETS) {
		*link++ = OCS_NETSIM_REGION_OUT(relay);
		*link++ = OCS_NETSIM_REGION_IN(to);
	}
	path->n = (int)(link - path->links);
}

void ocs_step_region_send(struct step_run *run, int task, int src, int dst, double bytes)
{
	const struct region_ways *ways = &run->region->ways[task];
	const struct region *region =
		ways->demand ? &run->region->regions[src / run->fabric->spec.region] : NULL;
	struct ocs_netsim_path path = { .weight = 1 };
	double all = 0;
	int pair, end;

	if (!region) {
		path.links[path.n++] = OCS_NETSIM_REGION_OUT(src);
		path.links[path.n++] = OCS_NETSIM_REGION_IN(dst);
		ocs_step_path_send(run, task, src, dst, &path, bytes);
		return;
	}
	pair = (src - region->first) * region->n + dst - region->first;
	end = ways->first[pair + 1];
	for (int k = ways->first[pair]; k < end; k++)
		all += ways->routes->route[k].tokens;
	for (int k = ways->first[pair]; k < end; k++) {
		route_links(run, region, &ways->routes->route[k], &path);
		ocs_step_path_send(run, task, src, dst, &path,
				   bytes * ways->routes->route[k].tokens / all);
	}
}

int ocs_netsim_region_make(struct ocs_netsim_fabric *fabric,
			   const struct ocs_netsim_graph *const *graphs, int n,
			   struct ocs_error *err)
{
	struct ocs_netsim_spec *spec = &fabric->spec;
	double rate = ocs_netsim_region_packets(spec) * (spec->degree - spec->optical);
	bool unknown = !spec->region;

	if (spec->optical >= spec->degree)
		return ocs_error_set(
			err, OCS_USAGE,
			"region: %d of %d interfaces are optical, and at least one has "
			"to be on the packet network; write optical:%d",
			spec->optical, spec->degree, spec->degree - 1);
	for (int g = 0; g < n && unknown; g++) {
		for (int k = 0; k < graphs[g]->ntasks; k++) {
			const struct ocs_netsim_task *task = &graphs[g]->tasks[k];

			if (task->kind == OCS_NETSIM_ALLTOALL &&
			    graphs[g]->groups[task->group].count > spec->region)
				spec->region = graphs[g]->groups[task->group].count;
		}
	}
	spec->region = spec->region ? spec->region : 1;
	if (spec->region > OCS_MOE_SERVERS_MAX)
		return ocs_error_set(err, OCS_USAGE,
				     "region: %d servers in a region, it has at most %d",
				     spec->region, OCS_MOE_SERVERS_MAX);
	for (int k = 0; k < fabric->servers; k++) {
		ocs_netsim_fabric_link(fabric, k, fabric->vertices, rate);
		ocs_netsim_fabric_link(fabric, fabric->vertices, k, rate);
	}
	fabric->vertices++;
	for (int at = 0; at < fabric->servers; at += spec->region) {
		for (int i = 0; i < spec->region; i++) {
			for (int j = 0; j < spec->region; j++)
				ocs_netsim_fabric_link(fabric,
						       at + i < fabric->servers ? at + i : at,
						       at + j < fabric->servers ? at + j : at, 0);
		}
	}
	return 0;
}
