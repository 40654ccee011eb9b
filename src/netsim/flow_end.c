/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Flows end; and what must hold at any time. */

#include <math.h>

#include "src/netsim/flow_internal.h"
#include "src/util/error.h"

static void due_put(const struct ocs_flownet *net, struct flow_region *region, int at, int path)
{
	double finish = net->paths[path].finish;

	for (; at > 0 && finish < net->paths[region->due[(at - 1) / 2]].finish; at = (at - 1) / 2)
		region->due[at] = region->due[(at - 1) / 2];
	region->due[at] = path;
}

static void due_add(struct ocs_flownet *net, struct flow_region *region, int path)
{
	region->due = ocs_flow_room(region->due, region->ndue + 1, &region->due_size, sizeof(int));
	due_put(net, region, region->ndue++, path);
}

static int due_pop(struct ocs_flownet *net, struct flow_region *region)
{
	int first = region->due[0], last = region->due[--region->ndue], at = 0;

	for (int child = 1; child < region->ndue; child = 2 * at + 1) {
		if (child + 1 < region->ndue && net->paths[region->due[child + 1]].finish <
							net->paths[region->due[child]].finish)
			child++;
		region->due[at] = region->due[child];
		at = child;
	}
	if (region->ndue)
		due_put(net, region, at, last);
	return first;
}

void ocs_flow_due_sort(const struct ocs_flownet *net, struct flow_region *region, double until)
{
	int count = region->ndue;

	region->ndue = 0;
	for (int k = 0; k < count; k++) {
		if (net->paths[region->due[k]].finish <= until)
			due_put(net, region, region->ndue++, region->due[k]);
	}
}

static void path_end(struct ocs_flownet *net, int number)
{
	struct flow_path *path = &net->paths[number];
	int flow = net->members[number].heap[0];

	if (net->ended_taken) {
		net->nended = 0;
		net->ended_taken = false;
	}
	net->ended =
		ocs_flow_room(net->ended, net->nended + 1, &net->ended_size, sizeof(*net->ended));
	net->ended[net->nended++] = (struct ocs_flow_end){ .flow = flow,
							   .tag = net->flows[flow].tag,
							   .time = net->now };
	flow_path_touch(net, path);
	ocs_flow_remove(net, flow);
	net->flows[flow].state = FLOW_FREE;
	net->flows[flow].path = net->free_flow;
	net->free_flow = flow;
}

void ocs_flow_region_event(struct ocs_flownet *net, int number)
{
	struct flow_region *region = &net->regions[number];
	double tie;

	if (isinf(region->deadline))
		region->deadline = net->now * (1 + FLOW_TIE) + region->window;
	tie = net->now * (1 + FLOW_TIE);
	while (region->ndue && net->paths[region->due[0]].finish <= tie) {
		int path = due_pop(net, region);

		path_end(net, path);
		if (!net->paths[path].weight)
			continue;
		flow_path_finish(net, &net->paths[path]);
		if (net->paths[path].finish <= region->deadline)
			due_add(net, region, path);
	}
	if (!region->npaths || region->deadline <= tie) {
		ocs_queue_remove(&net->queue, number);
		ocs_flow_region_dirty(net, number);
	} else {
		ocs_flow_region_queue(net, number);
	}
}

/* Whether PATH has a full link on which none is faster. */
static bool path_fair(const struct ocs_flownet *net, const struct flow_path *path)
{
	for (int k = 0; k < path->nlinks; k++) {
		const struct flow_link *link = &net->links[net->links_of[path->first + k]];
		double fastest = 0;

		for (int i = 0; i < link->npaths; i++)
			fastest = fmax(fastest, net->paths[link->paths[i]].rate);
		if (link->used >= link->rate * (1 - 1e-9) && path->rate >= fastest * (1 - 1e-9))
			return true;
	}
	return false;
}

int ocs_flownet_check(const struct ocs_flownet *net, bool fair, struct ocs_error *err)
{
	for (int k = 0; k < net->nlinks; k++) {
		const struct flow_link *link = &net->links[k];
		double sum = 0;
		int weight = 0;

		for (int i = 0; i < link->npaths; i++) {
			const struct flow_path *path = &net->paths[link->paths[i]];

			sum += path->rate * path->weight;
			weight += path->weight;
		}
		if (sum > link->rate * (1 + 1e-9) || weight != link->weight)
			return ocs_error_set(err, OCS_ERROR,
					     "link %d of rate %g carries %g in %d flows, counted "
					     "are %d",
					     k, link->rate, sum, weight, link->weight);
		if (fabs(sum - link->used) > link->rate * 1e-9)
			return ocs_error_set(err, OCS_ERROR, "link %d carries %g, counted is %g", k,
					     sum, link->used);
	}
	for (int k = 0; fair && k < net->npaths; k++) {
		if (net->paths[k].weight && !path_fair(net, &net->paths[k]))
			return ocs_error_set(err, OCS_ERROR, "path %d has no full link", k);
	}
	return 0;
}
