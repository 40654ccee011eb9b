/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/netsim/demand.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "src/util/text.h"

static int place_of(const int *place, int server)
{
	return place ? place[server] : server;
}

static void alltoall_pairs(const struct ocs_netsim_graph *graph, const struct ocs_netsim_task *task,
			   const int *place, int servers, double *pairs)
{
	const struct ocs_netsim_group *group = &graph->groups[task->group];

	for (int i = 0; i < group->count; i++) {
		for (int j = 0; j < group->count; j++) {
			double bytes = task->matrix < 0 ?
					       task->bytes / group->count :
					       graph->matrices[task->matrix][i * group->count + j];

			if (i != j)
				pairs[place_of(place, group->members[i]) * servers +
				      place_of(place, group->members[j])] += bytes;
		}
	}
}

void ocs_netsim_demand_pairs(const struct ocs_netsim_graph *graph, const int *place, int servers,
			     double *pairs)
{
	for (int k = 0; k < graph->ntasks; k++) {
		const struct ocs_netsim_task *task = &graph->tasks[k];

		if (task->kind == OCS_NETSIM_ALLTOALL)
			alltoall_pairs(graph, task, place, servers, pairs);
		if (task->kind == OCS_NETSIM_TRANSFER && task->server != task->peer)
			pairs[place_of(place, task->server) * servers +
			      place_of(place, task->peer)] += task->bytes;
	}
}

static bool groups_equal(const struct ocs_netsim_group *a, const struct ocs_netsim_group *b)
{
	return a->count == b->count &&
	       !memcmp(a->members, b->members, (size_t)a->count * sizeof(int));
}

/* The first group with the members of group G; a plan is made for members, not for tasks. */
static int group_first(const struct ocs_netsim_graph *graph, int g)
{
	for (int k = 0; k < g; k++) {
		if (groups_equal(&graph->groups[k], &graph->groups[g]))
			return k;
	}
	return g;
}

/* Adds the groups of GRAPH that reduce; FIRST says whether none stands before. */
static bool groups_add(const struct ocs_netsim_graph *graph, const int *place, bool first,
		       struct ocs_text *text)
{
	double *bytes = ocs_calloc((size_t)graph->ngroups + 1, sizeof(double));

	for (int k = 0; k < graph->ntasks; k++) {
		const struct ocs_netsim_task *task = &graph->tasks[k];

		if (task->kind == OCS_NETSIM_ALLREDUCE)
			bytes[task->group] += task->bytes;
		if (task->kind == OCS_NETSIM_REDUCE_SCATTER || task->kind == OCS_NETSIM_ALLGATHER)
			bytes[task->group] += task->bytes / 2;
	}
	for (int g = 0; g < graph->ngroups; g++) {
		int same = group_first(graph, g);

		if (same != g) {
			bytes[same] += bytes[g];
			bytes[g] = 0;
		}
	}
	for (int g = 0; g < graph->ngroups; g++) {
		const struct ocs_netsim_group *group = &graph->groups[g];

		if (!(bytes[g] >= 1) || group->count < 2)
			continue;
		ocs_text_add(text, "%s{\"members\":[", first ? "" : ",");
		first = false;
		for (int k = 0; k < group->count; k++)
			ocs_text_add(text, "%s%d", k ? "," : "",
				     place_of(place, group->members[k]));
		ocs_text_add(text, "],\"bytes\":%.0f}", bytes[g]);
	}
	free(bytes);
	return first;
}

/* Where nothing is sent, rings of all: a fabric has circuits all the same. */
static void all_add(int servers, struct ocs_text *text)
{
	for (int k = 0; servers > 1 && k < servers; k++)
		ocs_text_add(text, "%s%d", k ? "," : "{\"members\":[", k);
	if (servers > 1)
		ocs_text_add(text, "],\"bytes\":1}");
}

char *ocs_netsim_demand(const struct ocs_netsim_graph *const *graphs, int *const *places, int n,
			int servers)
{
	double *pairs = ocs_calloc((size_t)servers * servers, sizeof(double));
	struct ocs_text text = { 0 };
	bool first = true, any = false;

	ocs_text_add(&text, "{\"allreduce\":[");
	for (int k = 0; k < n; k++) {
		first = groups_add(graphs[k], places ? places[k] : NULL, first, &text);
		ocs_netsim_demand_pairs(graphs[k], places ? places[k] : NULL, servers, pairs);
	}
	for (int k = 0; k < servers * servers; k++)
		any = any || pairs[k] >= 1;
	if (first && !any)
		all_add(servers, &text);
	ocs_text_add(&text, "]");
	for (int i = 0; any && i < servers; i++) {
		ocs_text_add(&text, i ? ",[" : ",\"mp\":[[");
		for (int j = 0; j < servers; j++)
			ocs_text_add(&text, "%s%.0f", j ? "," : "", pairs[i * servers + j]);
		ocs_text_add(&text, "]");
	}
	ocs_text_add(&text, any ? "]}" : "}");
	free(pairs);
	return ocs_text_take(&text);
}
