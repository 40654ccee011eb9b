/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* A plan as an object: what a program needs that reads plans and makes none. */

#include "src/plan/plan.h"

#include <stdlib.h>
#include <string.h>

#include "src/plan/internal.h"
#include "src/util/error.h"
#include "src/util/text.h"

void ocs_plan_group_all(struct ocs_plan_group *group, int servers)
{
	memset(group, 0, sizeof(*group));
	group->nmembers = servers;
	group->members = ocs_calloc(servers, sizeof(int));
	for (int i = 0; i < servers; i++)
		group->members[i] = i;
}

void ocs_plan_groups_free(struct ocs_plan_group *groups, int ngroups)
{
	for (int i = 0; i < ngroups; i++) {
		free(groups[i].members);
		free(groups[i].steps);
		ocs_plan_trees_free(&groups[i]);
	}
	free(groups);
}

int ocs_plan_demand_set(struct ocs_plan *plan, const char *demand, struct ocs_error *err)
{
	struct ocs_plan_group *groups;
	double *mp;
	int ngroups, trees;

	if (ocs_plan_demand_parse(demand, plan->servers, &groups, &ngroups, &mp, &trees, err) < 0)
		return -1;
	/* the groups are in the plan */
	ocs_plan_groups_free(groups, ngroups);
	free(plan->mp);
	plan->mp = mp;
	return 0;
}

void ocs_plan_destroy(struct ocs_plan *plan)
{
	if (!plan)
		return;
	for (int i = 0; plan->nodes && i < plan->servers; i++)
		free(plan->nodes[i]);
	free(plan->nodes);
	ocs_plan_groups_free(plan->groups, plan->ngroups);
	free(plan->mp);
	free(plan->circuits);
	for (int i = 0; i < plan->nroutes; i++) {
		for (int p = 0; p < plan->routes[i].npaths; p++)
			free(plan->routes[i].paths[p]);
		free(plan->routes[i].paths);
		free(plan->routes[i].lengths);
		free(plan->routes[i].weights);
	}
	free(plan->routes);
	free(plan->assignment);
	free(plan);
}

int ocs_plan_route(struct ocs_plan *plan, struct ocs_error *err)
{
	if (plan->routes || plan->servers < 2)
		return 0;
	if (plan->servers > OCS_PLAN_ROUTES_MAX)
		return ocs_error_set(err, OCS_USAGE,
				     "routes are made for at most %d servers, not %d",
				     OCS_PLAN_ROUTES_MAX, plan->servers);
	if (ocs_plan_measure(plan, true, true) < 0)
		return ocs_error_set(err, OCS_NEVER,
				     "the circuits of the plan do not join all servers");
	return 0;
}
