/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/ocsctl/cmd/training_step.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "src/netsim/graph.h"
#include "src/rails/phase_table.h"
#include "src/util/error.h"
#include "src/util/text.h"

#define HEAD 64 /* bytes that tell what a file is */

static bool folder_is(const char *path)
{
	struct stat file;

	return !stat(path, &file) && S_ISDIR(file.st_mode);
}

bool ocs_ctl_step_recorded(const char *spec)
{
	char head[HEAD];
	FILE *file;
	size_t n;

	/* the name of a model, whatever lies in this folder */
	if (!strpbrk(spec, "/."))
		return false;
	if (folder_is(spec))
		return true;
	file = fopen(spec, "rb");
	if (!file)
		return false;
	n = fread(head, 1, HEAD, file);
	fclose(file);
	return ocs_netsim_graph_format(head, n) != OCS_NETSIM_NO_GRAPH;
}

/* The tasks of operations that were begun, by group and number. */
struct operations {
	struct ocs_netsim_graph *graph;
	const struct ocs_phase_tables *tables;
	const struct ocs_ctl_trace_guess *guess;
	struct operation {
		int group, begin, end;
		uint64_t idx;
	} * list;
	size_t count;
	int *groups; /* of the graph, by group of the tables */
};

static int operation_compare(const void *left, const void *right)
{
	const struct operation *a = left, *b = right;

	if (a->group != b->group)
		return a->group < b->group ? -1 : 1;
	return a->idx < b->idx ? -1 : a->idx > b->idx;
}

static struct operation *operation_find(const struct operations *all, int group, uint64_t idx)
{
	struct operation key = { .group = group, .idx = idx };

	return bsearch(&key, all->list, all->count, sizeof(key), operation_compare);
}

/* Every operation of the tables once. */
static void operations_list(struct operations *all)
{
	const struct ocs_phase_tables *tables = all->tables;
	size_t total = 0, kept = 0;

	for (int k = 0; k < tables->nodes * tables->rails; k++)
		total += tables->ranks[k].count;
	all->list = ocs_calloc(total + 1, sizeof(*all->list));
	for (int k = 0; k < tables->nodes * tables->rails; k++)
		for (size_t i = 0; i < tables->ranks[k].count; i++) {
			const struct ocs_phase_operation *op = &tables->ranks[k].operations[i];

			all->list[all->count++] =
				(struct operation){ .group = op->group, .idx = op->idx };
		}
	qsort(all->list, all->count, sizeof(*all->list), operation_compare);
	for (size_t i = 0; i < all->count; i++)
		if (!i || operation_compare(&all->list[i], &all->list[kept - 1]))
			all->list[kept++] = all->list[i];
	all->count = kept;
}

static void operation_add(struct operations *all, struct operation *operation)
{
	const struct ocs_phase_group *group = &all->tables->groups[operation->group];
	struct ocs_netsim_graph *graph = all->graph;
	int label = ocs_netsim_label(graph, group->pipeline ? "pp" : "dp"), task;

	operation->begin = ocs_netsim_barrier_add(graph);
	operation->end = ocs_netsim_barrier_add(graph);
	for (int i = 0; group->pipeline && i + 1 < group->count; i++) {
		task = ocs_netsim_transfer_add(graph, group->ranks[i] / all->tables->rails,
					       group->ranks[i + 1] / all->tables->rails,
					       all->guess->bytes);
		graph->tasks[task].label = (short)label;
		ocs_netsim_depend(graph, operation->begin, task);
		ocs_netsim_depend(graph, task, operation->end);
	}
	if (group->pipeline)
		return;
	task = ocs_netsim_collective_add(graph, OCS_NETSIM_ALLREDUCE, all->groups[operation->group],
					 all->guess->bytes);
	graph->tasks[task].label = (short)label;
	ocs_netsim_depend(graph, operation->begin, task);
	ocs_netsim_depend(graph, task, operation->end);
}

static void groups_add(struct operations *all)
{
	all->groups = ocs_calloc((size_t)all->tables->ngroups + 1, sizeof(int));
	for (int g = 0; g < all->tables->ngroups; g++) {
		const struct ocs_phase_group *group = &all->tables->groups[g];
		int *members = ocs_calloc((size_t)group->count + 1, sizeof(int));

		for (int i = 0; i < group->count; i++)
			members[i] = group->ranks[i] / all->tables->rails;
		all->groups[g] = ocs_netsim_group_add(all->graph, members, group->count);
		free(members);
	}
}

/* A rank takes its operations one after the other, and computes where a phase begins. */
static void rank_add(struct operations *all, int k)
{
	const struct ocs_phase_rank *rank = &all->tables->ranks[k];
	int before = -1, phase = -1;

	for (size_t i = 0; i < rank->count; i++) {
		const struct ocs_phase_operation *op = &rank->operations[i];
		const struct operation *operation = operation_find(all, op->group, op->idx);

		if ((!i || (op->phase != phase && op->phase >= 0)) && all->guess->compute_ms > 0) {
			int task = ocs_netsim_compute_add(all->graph, k / all->tables->rails,
							  k % all->tables->rails,
							  all->guess->compute_ms);

			if (before >= 0)
				ocs_netsim_depend(all->graph, before, task);
			before = task;
		}
		phase = op->phase >= 0 ? op->phase : phase;
		if (before >= 0)
			ocs_netsim_depend(all->graph, before, operation->begin);
		before = operation->end;
	}
}

static struct ocs_netsim_graph *tables_graph(const struct ocs_phase_tables *tables,
					     const struct ocs_ctl_trace_guess *guess,
					     struct ocs_error *err)
{
	struct operations all = { .tables = tables, .guess = guess };

	all.graph = ocs_netsim_graph_create(tables->nodes, tables->rails);
	operations_list(&all);
	groups_add(&all);
	for (size_t i = 0; i < all.count; i++)
		operation_add(&all, &all.list[i]);
	for (int k = 0; k < tables->nodes * tables->rails; k++)
		rank_add(&all, k);
	free(all.groups);
	free(all.list);
	if (!ocs_netsim_graph_check(all.graph, err))
		return all.graph;
	ocs_netsim_graph_destroy(all.graph);
	return NULL;
}

struct ocs_netsim_graph *ocs_ctl_step_read(const char *path,
					   const struct ocs_ctl_trace_guess *guess, bool *tables,
					   struct ocs_error *err)
{
	struct ocs_netsim_graph *graph = NULL;
	struct ocs_phase_tables *phases;

	*tables = folder_is(path);
	if (*tables) {
		phases = ocs_phase_tables_read(path, 0, err);
		if (phases)
			graph = tables_graph(phases, guess, err);
		ocs_phase_tables_free(phases);
		return graph;
	}
	return ocs_netsim_graph_read(path, err);
}
