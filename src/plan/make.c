/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/plan/plan.h"

#include <math.h>
#include <stdlib.h>

#include "src/plan/internal.h"
#include "src/util/error.h"
#include "src/util/text.h"

/* How rings are chosen and what else is made. */
enum way {
	PAPER,	  /* steps of the geometric sequence */
	STEPS,	  /* steps by search */
	EXPANDER, /* the same, and an expander on what AllReduce does not need */
	KAUTZ,	  /* the same, and with the ring a Kautz graph: directed only */
	RINGS,	  /* steps by search, all interfaces for rings and none for pairs */
};

#define KAUTZ_SERVERS 256 /* beyond, its busiest links carry more than an expander's */
#define STEPS_SERVERS 64  /* with an expander, steps are searched up to here */

#define TREE_PORTS 4 /* interfaces of a double binary tree: a leaf's and a middle's */

/* Interfaces one ring takes at each of its members. */
static int ring_ports(const struct ocs_plan_group *group, bool directed)
{
	return directed || group->nmembers == 2 ? 1 : 2;
}

static int group_compare(const struct ocs_plan_group *a, const struct ocs_plan_group *b)
{
	/* bytes decide, then size; order of the file last */
	if (a->bytes != b->bytes)
		return a->bytes > b->bytes ? -1 : 1;
	return b->nmembers - a->nmembers;
}

/* Groups, most bytes first; FIRST (or -1) before all. */
static int *order_make(const struct ocs_plan *plan, int first)
{
	int *order = ocs_calloc(plan->ngroups, sizeof(int));

	for (int i = 0; i < plan->ngroups; i++) {
		int at = i;

		while (at > 0 && order[at - 1] != first &&
		       (i == first ||
			group_compare(&plan->groups[order[at - 1]], &plan->groups[i]) > 0)) {
			order[at] = order[at - 1];
			at--;
		}
		order[at] = i;
	}
	return order;
}

static bool group_fits(const struct ocs_plan_group *group, const int *spare, int ports)
{
	for (int i = 0; i < group->nmembers; i++)
		if (spare[group->members[i]] < ports)
			return false;
	return true;
}

static void ports_take(struct ocs_plan_group *group, int *spare, int ports)
{
	for (int i = 0; i < group->nmembers; i++)
		spare[group->members[i]] -= ports;
	group->nrings++;
}

/* Interfaces for AllReduce (Algorithm 1): its part of all bytes sent, rounded up,
 * then down to whole rings, but one.  A ring AllReduce of b bytes sends 2 b (k - 1) in all. */
static int ports_split(const struct ocs_plan *plan)
{
	double rings = 0, pairs = 0;
	int unit = 1, ports;

	if (!plan->mp)
		return plan->degree;
	for (int g = 0; g < plan->ngroups; g++) {
		const struct ocs_plan_group *group = &plan->groups[g];

		rings += 2.0 * (double)group->bytes * (group->nmembers - 1);
		if (ring_ports(group, plan->directed) > unit)
			unit = 2;
	}
	for (size_t i = 0; i < (size_t)plan->servers * plan->servers; i++)
		pairs += plan->mp[i];
	ports = (int)ceil(plan->degree * (rings / (rings + pairs)) - 1e-9);
	ports = ports / unit * unit;
	ports = ports < unit ? unit : ports;
	return ports < plan->degree ? ports : plan->degree;
}

/* Interfaces that AllReduce may have of a server. */
static int spare_count(int degree, uint64_t failed, int budget)
{
	uint64_t all = degree == 64 ? ~UINT64_C(0) : (UINT64_C(1) << degree) - 1;
	int working = __builtin_popcountll(all & ~failed);

	return working < budget ? working : budget;
}

/* How many rings each group gets: in proportion to its share of the bytes at its
 * busiest member, at least one where ports allow, the rest to the heaviest.  ONE:
 * no more than one each. */
static void rings_share(struct ocs_plan *plan, const int *order, int first, const uint64_t *failed,
			bool one, int budget, int trees)
{
	int most = plan->degree - TREE_PORTS * trees;
	bool one_more = false;
	int *spare = ocs_calloc(plan->servers, sizeof(int));
	double *bytes = ocs_calloc(plan->servers, sizeof(double));

	/* rings of odd length close on one interface more than they take */
	for (int g = 0; g < plan->ngroups; g++)
		one_more |=
			trees && !plan->directed && !plan->any_port && plan->groups[g].nmembers % 2;
	most = most - one_more > 2 ? most - one_more : most;
	budget = budget < most ? budget : most;
	for (int i = 0; i < plan->servers; i++)
		spare[i] = spare_count(plan->degree, failed ? failed[i] : 0, budget);
	for (int g = 0; g < plan->ngroups; g++)
		for (int i = 0; i < plan->groups[g].nmembers; i++)
			bytes[plan->groups[g].members[i]] += plan->groups[g].bytes;
	for (int pass = 0; pass < (one ? 1 : 3); pass++) {
		for (int g = 0; g < plan->ngroups; g++) {
			struct ocs_plan_group *group = &plan->groups[order[g]];
			int ports = ring_ports(group, plan->directed), wish = 1;
			double busiest = 0;

			for (int i = 0; i < group->nmembers; i++)
				if (bytes[group->members[i]] > busiest)
					busiest = bytes[group->members[i]];
			if (pass == 1 && busiest > 0)
				wish = (int)(budget * (group->bytes / busiest) / ports + 0.5);
			if (pass == 2 && order[g] != first)
				wish = plan->degree;
			while (group->nmembers > 1 && group->nrings < wish &&
			       group_fits(group, spare, ports))
				ports_take(group, spare, ports);
		}
	}
	free(bytes);
	free(spare);
}

static int parent_root(int *parent, int i)
{
	while (parent[i] != i)
		i = parent[i] = parent[parent[i]];
	return i;
}

/* Would a ring in every group reach from every server to every other? */
static bool rings_connect(const struct ocs_plan *plan)
{
	int *parent = ocs_calloc(plan->servers, sizeof(int));
	int parts = plan->servers;

	for (int i = 0; i < plan->servers; i++)
		parent[i] = i;
	for (int g = 0; g < plan->ngroups; g++) {
		const struct ocs_plan_group *group = &plan->groups[g];

		for (int i = 1; i < group->nmembers && group->nrings; i++) {
			int a = parent_root(parent, group->members[0]);
			int b = parent_root(parent, group->members[i]);

			if (a != b)
				parts--;
			parent[a] = b;
		}
	}
	free(parent);
	return parts == 1;
}

/* Plans with the groups already in place. */
static int plan_build(struct ocs_plan *plan, const struct ocs_plan_request *request, int first,
		      int trees, enum way way)
{
	int *order = order_make(plan, first);

	for (int g = 0; g < plan->ngroups; g++) {
		plan->groups[g].nrings = 0;
		ocs_plan_trees_free(&plan->groups[g]);
	}
	/* without a demand nobody knows what AllReduce needs: one ring, which is the
	 * one that stock NCCL uses */
	rings_share(plan, order, first, request->failed, way >= EXPANDER && !request->demand,
		    way == RINGS ? plan->degree : ports_split(plan), trees);
	for (int g = 0; g < plan->ngroups; g++) {
		struct ocs_plan_group *group = &plan->groups[g];

		group->steps = ocs_realloc(group->steps, (group->nrings + 1) * sizeof(int));
		if (request->stock)
			for (int r = 0; r < group->nrings; r++)
				group->steps[r] = 1;
		else if (way == PAPER)
			ocs_plan_steps_paper(group->nmembers, group->nrings, plan->directed,
					     group->steps);
		else
			ocs_plan_steps_best(group->nmembers, group->nrings, plan->directed,
					    group->steps);
	}
	ocs_plan_assign(plan, order, way == RINGS ? NULL : plan->mp, request->failed, way != PAPER,
			trees,
			way == KAUTZ	? OCS_PLAN_KAUTZ :
			way == EXPANDER ? OCS_PLAN_RANDOM :
					  OCS_PLAN_NOTHING);
	free(order);
	return ocs_plan_measure(plan, request->routes, request->best);
}

static struct ocs_plan *plan_new(const struct ocs_plan_request *request, int *trees,
				 struct ocs_error *err)
{
	struct ocs_plan *plan = ocs_calloc(1, sizeof(*plan));

	plan->servers = request->servers;
	plan->degree = request->degree;
	plan->directed = request->directed;
	plan->any_port = request->any_port;
	plan->revision = 1;
	if (request->demand) {
		if (ocs_plan_demand_parse(request->demand, plan->servers, &plan->groups,
					  &plan->ngroups, &plan->mp, trees, err) < 0) {
			ocs_plan_destroy(plan);
			return NULL;
		}
	} else {
		plan->groups = ocs_calloc(1, sizeof(*plan->groups));
		plan->ngroups = 1;
		ocs_plan_group_all(plan->groups, plan->servers);
	}
	if (request->nodes) {
		plan->nodes = ocs_calloc(plan->servers, sizeof(char *));
		for (int i = 0; i < plan->servers; i++)
			plan->nodes[i] = ocs_strdup(request->nodes[i]);
	}
	return plan;
}

/* One way of planning: FIRST adds a ring over all servers before anything else. */
static struct ocs_plan *plan_attempt(const struct ocs_plan_request *request, bool everyone,
				     enum way way, struct ocs_error *err)
{
	int first = -1, trees = 0;
	struct ocs_plan *plan = plan_new(request, &trees, err);

	if (!plan)
		return NULL;
	trees = request->trees ? request->trees : trees;
	if (trees && (request->directed ? 1 : 2) + TREE_PORTS * trees > request->degree) {
		ocs_plan_destroy(plan);
		ocs_error_set(err, OCS_NEVER,
			      "a ring and %d double binary trees take %d interfaces, "
			      "servers have %d",
			      trees, (request->directed ? 1 : 2) + TREE_PORTS * trees,
			      request->degree);
		return NULL;
	}
	if (everyone) {
		first = plan->ngroups++;
		plan->groups = ocs_realloc(plan->groups, plan->ngroups * sizeof(*plan->groups));
		ocs_plan_group_all(&plan->groups[first], plan->servers);
	}
	/* pairs' circuits may hold the groups together as well */
	if (plan_build(plan, request, first, trees, way) == 0 &&
	    (plan->servers < 2 || plan->mp || rings_connect(plan)))
		return plan;
	ocs_plan_destroy(plan);
	if (!request->directed && request->servers > 2 && request->degree < 2)
		ocs_error_set(err, OCS_NEVER,
			      "%d servers with one interface each cannot form a ring: a duplex "
			      "ring takes two interfaces of every server",
			      request->servers);
	else if (request->failed && request->servers == 2)
		ocs_error_set(err, OCS_NEVER,
			      "the interfaces of the two servers that have not "
			      "failed have no switch in common");
	else if (request->failed)
		ocs_error_set(err, OCS_NEVER,
			      "%d servers cannot form a ring on the interfaces that have not "
			      "failed: a duplex ring takes two of every server, on the switches of "
			      "its neighbours",
			      request->servers);
	else
		ocs_error_set(
			err, OCS_NEVER,
			"%d servers cannot form a ring on %d switches: a switch joins "
			"servers in pairs, so a ring of odd length takes three; ask for an "
			"even number of servers, or use switches that join any two interfaces",
			request->servers, request->degree);
	return NULL;
}

#define SLACK 1e-9

/* Is A to be preferred to B?  Traffic between pairs decides where it is known. */
static bool plan_better(const struct ocs_plan *a, const struct ocs_plan *b)
{
	if (a->mp && fabs(a->bandwidth_tax - b->bandwidth_tax) > SLACK)
		return a->bandwidth_tax < b->bandwidth_tax;
	if (fabs(a->average_hops - b->average_hops) > SLACK)
		return a->average_hops < b->average_hops;
	return a->max_link_load < b->max_link_load;
}

static int trees_count(const struct ocs_plan *plan)
{
	int count = 0;

	for (int g = 0; g < plan->ngroups; g++)
		count += plan->groups[g].ntrees;
	return count;
}

/* Is A nowhere worse than B? */
static bool no_worse(const struct ocs_plan *a, const struct ocs_plan *b)
{
	return a->bandwidth_tax <= b->bandwidth_tax + SLACK &&
	       a->average_hops <= b->average_hops + SLACK &&
	       a->max_link_load <= b->max_link_load + SLACK;
}

/* Groups alone if they hold the network together, else with a ring over all. */
static struct ocs_plan *way_plan(const struct ocs_plan_request *request, enum way way,
				 struct ocs_error *err)
{
	struct ocs_plan *plan = NULL;

	if (request->demand) {
		struct ocs_error first = { 0 };

		plan = plan_attempt(request, false, way, &first);
		if (!plan && first.code == OCS_USAGE) {
			if (err)
				*err = first;
			return NULL;
		}
		/* rings alone are those of the groups that were asked for */
		return plan || way == RINGS ? plan : plan_attempt(request, true, way, err);
	}
	return plan_attempt(request, false, way, err);
}

/* Is OTHER, which is made by WAY, to be taken for BEST?  Rings alone are, where their busiest
 * circuit carries less; others where they are better and nowhere worse than the paper's plan. */
static bool way_wins(enum way way, const struct ocs_plan *other, const struct ocs_plan *best,
		     const struct ocs_plan *paper)
{
	if (way == RINGS)
		return other->busiest_bytes < best->busiest_bytes * (1 - SLACK);
	/* a Kautz graph always has short ways, but not always even loads */
	return no_worse(other, way == KAUTZ ? best : paper) && plan_better(other, best);
}

/* The best of what is nowhere worse than the paper's plan, and on its busiest circuit never worse than rings
 * alone. */
static struct ocs_plan *plan_choose(const struct ocs_plan_request *request, struct ocs_plan *paper)
{
	struct ocs_plan *best = paper;

	for (enum way way = STEPS; way <= RINGS; way++) {
		struct ocs_plan *other;

		if (way == STEPS && !request->demand && request->servers > STEPS_SERVERS)
			continue;
		if (way == KAUTZ && (!request->directed || request->servers > KAUTZ_SERVERS))
			continue;
		if (way == RINGS && !paper->mp)
			continue;
		other = way_plan(request, way, NULL);
		/* before all, the trees that were asked for */
		if (other && trees_count(other) >= trees_count(best) &&
		    (trees_count(other) > trees_count(best) || way_wins(way, other, best, paper))) {
			if (best != paper)
				ocs_plan_destroy(best);
			best = other;
		} else {
			ocs_plan_destroy(other);
		}
	}
	if (best != paper)
		ocs_plan_destroy(paper);
	return best;
}

struct ocs_plan *ocs_plan_make(const struct ocs_plan_request *asked, struct ocs_error *err)
{
	struct ocs_plan_request copy = *asked, *request = &copy;
	int rings = ocs_plan_demand_rings(asked->demand);
	struct ocs_plan *plan;

	if (rings >= 0)
		request->stock = rings;
	if (ocs_plan_demand_bare(request->demand))
		request->demand = NULL;
	if (request->servers < 1 || request->servers > OCS_PLAN_SERVERS_MAX) {
		ocs_error_set(err, OCS_USAGE, "%d servers: a plan is for 1 to %d", request->servers,
			      OCS_PLAN_SERVERS_MAX);
		return NULL;
	}
	if (request->degree < 1 || request->degree > OCS_PLAN_DEGREE_MAX) {
		ocs_error_set(err, OCS_USAGE, "degree %d: servers have 1 to %d interfaces",
			      request->degree, OCS_PLAN_DEGREE_MAX);
		return NULL;
	}
	if (request->routes && request->servers > OCS_PLAN_ROUTES_MAX) {
		ocs_error_set(err, OCS_USAGE, "routes are listed for at most %d servers, not %d",
			      OCS_PLAN_ROUTES_MAX, request->servers);
		return NULL;
	}
	if (request->trees < 0 || request->trees > OCS_PLAN_TREES_MAX) {
		ocs_error_set(err, OCS_USAGE, "%d double binary trees: a group has 0 to %d",
			      request->trees, OCS_PLAN_TREES_MAX);
		return NULL;
	}
	if (request->paths < 0 || request->paths > OCS_PLAN_PATHS_MAX) {
		ocs_error_set(err, OCS_USAGE, "%d paths: a pair has 1 to %d", request->paths,
			      OCS_PLAN_PATHS_MAX);
		return NULL;
	}
	plan = way_plan(request, PAPER, err);
	/* circuits on shorter ways would be missing in the ring that NCCL uses */
	if (plan && request->best && !request->stock)
		plan = plan_choose(request, plan);
	if (plan)
		ocs_plan_paths(plan, request->paths);
	return plan;
}
