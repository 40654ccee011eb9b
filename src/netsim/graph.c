/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/netsim/graph.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/util/error.h"
#include "src/util/text.h"

static const char *const kind_names[OCS_NETSIM_KINDS] = {
	[OCS_NETSIM_COMPUTE] = "compute",     [OCS_NETSIM_TRANSFER] = "transfer",
	[OCS_NETSIM_ALLREDUCE] = "allreduce", [OCS_NETSIM_REDUCE_SCATTER] = "reduce-scatter",
	[OCS_NETSIM_ALLGATHER] = "allgather", [OCS_NETSIM_ALLTOALL] = "alltoall",
	[OCS_NETSIM_BARRIER] = "barrier",
};

const char *ocs_netsim_kind_name(enum ocs_netsim_kind kind)
{
	return kind < OCS_NETSIM_KINDS ? kind_names[kind] : "unknown";
}

bool ocs_netsim_kind_collective(enum ocs_netsim_kind kind)
{
	return kind >= OCS_NETSIM_ALLREDUCE && kind <= OCS_NETSIM_ALLTOALL;
}

struct ocs_netsim_graph *ocs_netsim_graph_create(int servers, int devices)
{
	struct ocs_netsim_graph *graph = ocs_calloc(1, sizeof(*graph));

	graph->servers = servers;
	graph->devices = devices;
	return graph;
}

void ocs_netsim_graph_destroy(struct ocs_netsim_graph *graph)
{
	if (!graph)
		return;
	for (int k = 0; k < graph->ngroups; k++)
		free(graph->groups[k].members);
	for (int k = 0; k < graph->nmatrices; k++)
		free(graph->matrices[k]);
	for (int k = 0; k < graph->nlabels; k++)
		free(graph->labels[k]);
	free(graph->groups);
	free(graph->matrices);
	free(graph->matrix_sides);
	free(graph->labels);
	free(graph->edges);
	free(graph->tasks);
	free(graph);
}

/* ARRAY, of *SIZE elements of WIDTH bytes, with room for one after COUNT. */
static void *array_room(void *array, int count, int *size, size_t width)
{
	if (count < *size)
		return array;
	*size = *size ? 2 * *size : 16;
	return ocs_realloc(array, (size_t)*size * width);
}

static int task_add(struct ocs_netsim_graph *graph, struct ocs_netsim_task task)
{
	graph->tasks = array_room(graph->tasks, graph->ntasks, &graph->tasks_size, sizeof(task));
	graph->tasks[graph->ntasks] = task;
	return graph->ntasks++;
}

int ocs_netsim_compute_add(struct ocs_netsim_graph *graph, int server, int device, double ms)
{
	return task_add(graph, (struct ocs_netsim_task){ .kind = OCS_NETSIM_COMPUTE,
							 .label = -1,
							 .server = server,
							 .device = device,
							 .matrix = -1,
							 .ms = ms });
}

int ocs_netsim_transfer_add(struct ocs_netsim_graph *graph, int src, int dst, double bytes)
{
	return task_add(graph, (struct ocs_netsim_task){ .kind = OCS_NETSIM_TRANSFER,
							 .label = -1,
							 .server = src,
							 .peer = dst,
							 .matrix = -1,
							 .bytes = bytes });
}

int ocs_netsim_barrier_add(struct ocs_netsim_graph *graph)
{
	return task_add(graph, (struct ocs_netsim_task){ .kind = OCS_NETSIM_BARRIER,
							 .label = -1,
							 .server = -1,
							 .group = -1,
							 .matrix = -1 });
}

int ocs_netsim_group_add(struct ocs_netsim_graph *graph, const int *members, int count)
{
	struct ocs_netsim_group group = { .count = count };

	group.members = ocs_calloc(count > 0 ? (size_t)count : 1, sizeof(int));
	if (count > 0)
		memcpy(group.members, members, (size_t)count * sizeof(int));
	graph->groups =
		array_room(graph->groups, graph->ngroups, &graph->groups_size, sizeof(group));
	graph->groups[graph->ngroups] = group;
	return graph->ngroups++;
}

int ocs_netsim_collective_add(struct ocs_netsim_graph *graph, enum ocs_netsim_kind kind, int group,
			      double bytes)
{
	return task_add(graph, (struct ocs_netsim_task){ .kind = (unsigned char)kind,
							 .label = -1,
							 .server = -1,
							 .group = group,
							 .matrix = -1,
							 .bytes = bytes });
}

int ocs_netsim_alltoall_add(struct ocs_netsim_graph *graph, int group, const double *matrix)
{
	int task = ocs_netsim_collective_add(graph, OCS_NETSIM_ALLTOALL, group, 0);
	int side = group >= 0 && group < graph->ngroups ? graph->groups[group].count : 0;
	size_t count = side > 0 ? (size_t)side * side : 0;
	int size = graph->matrices_size;

	graph->matrices = array_room(graph->matrices, graph->nmatrices, &graph->matrices_size,
				     sizeof(*graph->matrices));
	graph->matrix_sides = array_room(graph->matrix_sides, graph->nmatrices, &size,
					 sizeof(*graph->matrix_sides));
	graph->matrix_sides[graph->nmatrices] = side;
	graph->matrices[graph->nmatrices] = ocs_calloc(count + 1, sizeof(double));
	for (size_t k = 0; k < count; k++) {
		graph->matrices[graph->nmatrices][k] = matrix[k];
		graph->tasks[task].bytes += matrix[k];
	}
	graph->tasks[task].matrix = graph->nmatrices++;
	return task;
}

void ocs_netsim_depend(struct ocs_netsim_graph *graph, int before, int after)
{
	graph->edges =
		array_room(graph->edges, graph->nedges, &graph->edges_size, sizeof(*graph->edges));
	graph->edges[graph->nedges++] =
		(struct ocs_netsim_edge){ .before = before, .after = after };
}

int ocs_netsim_label(struct ocs_netsim_graph *graph, const char *name)
{
	for (int k = 0; k < graph->nlabels; k++) {
		if (!strcmp(graph->labels[k], name))
			return k;
	}
	graph->labels = array_room(graph->labels, graph->nlabels, &graph->labels_size,
				   sizeof(*graph->labels));
	graph->labels[graph->nlabels] = ocs_strdup(name);
	return graph->nlabels++;
}

static int group_check(const struct ocs_netsim_graph *graph, int number, int *seen,
		       struct ocs_error *err)
{
	const struct ocs_netsim_group *group = &graph->groups[number];

	if (group->count < 1 || group->count > graph->servers)
		return ocs_error_set(err, OCS_USAGE,
				     "group %d has %d members, 1 to %d are possible", number,
				     group->count, graph->servers);
	for (int k = 0; k < group->count; k++) {
		int server = group->members[k];

		if (server < 0 || server >= graph->servers)
			return ocs_error_set(err, OCS_USAGE,
					     "group %d has server %d, there are 0 to %d", number,
					     server, graph->servers - 1);
		if (seen[server] == number + 1)
			return ocs_error_set(err, OCS_USAGE, "group %d has server %d twice", number,
					     server);
		seen[server] = number + 1;
	}
	return 0;
}

static int matrix_check(const struct ocs_netsim_graph *graph, int number, struct ocs_error *err)
{
	const struct ocs_netsim_task *task = &graph->tasks[number];
	int side = graph->groups[task->group].count;

	if (task->kind != OCS_NETSIM_ALLTOALL || task->matrix >= graph->nmatrices ||
	    graph->matrix_sides[task->matrix] != side)
		return ocs_error_set(err, OCS_USAGE,
				     "task %d (%s of %d servers) has a matrix that does not fit",
				     number, ocs_netsim_kind_name(task->kind), side);
	for (int k = 0; k < side * side; k++) {
		double bytes = graph->matrices[task->matrix][k];

		if (!(bytes >= 0 && bytes <= OCS_NETSIM_BYTES_MAX))
			return ocs_error_set(
				err, OCS_USAGE,
				"task %d: row %d, column %d of the matrix is not 0 to %g", number,
				k / side, k % side, OCS_NETSIM_BYTES_MAX);
	}
	return 0;
}

static int server_check(const struct ocs_netsim_graph *graph, int number, int server,
			struct ocs_error *err)
{
	if (server >= 0 && server < graph->servers)
		return 0;
	return ocs_error_set(err, OCS_USAGE, "task %d names server %d, there are 0 to %d", number,
			     server, graph->servers - 1);
}

static int task_check(const struct ocs_netsim_graph *graph, int number, struct ocs_error *err)
{
	const struct ocs_netsim_task *task = &graph->tasks[number];

	if (task->kind >= OCS_NETSIM_KINDS)
		return ocs_error_set(err, OCS_USAGE, "task %d is of no known kind", number);
	if (!(task->ms >= 0 && task->ms <= OCS_NETSIM_MS_MAX))
		return ocs_error_set(err, OCS_USAGE, "task %d takes %g ms, 0 to %g are possible",
				     number, task->ms, OCS_NETSIM_MS_MAX);
	if (!(task->bytes >= 0 && task->bytes <= OCS_NETSIM_BYTES_MAX))
		return ocs_error_set(err, OCS_USAGE, "task %d moves %g bytes, 0 to %g are possible",
				     number, task->bytes, OCS_NETSIM_BYTES_MAX);
	if (task->label < -1 || task->label >= graph->nlabels)
		return ocs_error_set(err, OCS_USAGE, "task %d has label %d, there are %d", number,
				     task->label, graph->nlabels);
	if (task->kind == OCS_NETSIM_COMPUTE &&
	    (task->device < 0 || task->device >= graph->devices))
		return ocs_error_set(err, OCS_USAGE, "task %d names device %d, there are 0 to %d",
				     number, task->device, graph->devices - 1);
	if (task->kind <= OCS_NETSIM_TRANSFER && server_check(graph, number, task->server, err))
		return -1;
	if (task->kind == OCS_NETSIM_TRANSFER && server_check(graph, number, task->peer, err))
		return -1;
	if (!ocs_netsim_kind_collective(task->kind))
		return 0;
	if (task->group < 0 || task->group >= graph->ngroups)
		return ocs_error_set(err, OCS_USAGE, "task %d names group %d, there are %d", number,
				     task->group, graph->ngroups);
	return task->matrix >= 0 ? matrix_check(graph, number, err) : 0;
}

static int edges_check(const struct ocs_netsim_graph *graph, struct ocs_error *err)
{
	for (int k = 0; k < graph->nedges; k++) {
		const struct ocs_netsim_edge *edge = &graph->edges[k];

		if (edge->before < 0 || edge->before >= graph->ntasks || edge->after < 0 ||
		    edge->after >= graph->ntasks)
			return ocs_error_set(err, OCS_USAGE,
					     "task %d waits for task %d, there are 0 to %d",
					     edge->after, edge->before, graph->ntasks - 1);
	}
	return 0;
}

/* Puts the tasks into ORDER, each after those it waits for.  Returns how many there are: fewer than
 * all where dependencies run in a circle. */
static int order_fill(const struct ocs_netsim_graph *graph, int *order)
{
	size_t n = (size_t)graph->ntasks;
	int *waits = ocs_calloc(n + 1, sizeof(int)), *first = ocs_calloc(n + 2, sizeof(int));
	int *next = ocs_calloc((size_t)graph->nedges + 1, sizeof(int));
	int done = 0, ready = 0;

	for (int k = 0; k < graph->nedges; k++) {
		waits[graph->edges[k].after]++;
		first[graph->edges[k].before + 2]++;
	}
	for (size_t k = 2; k < n + 2; k++)
		first[k] += first[k - 1];
	for (int k = 0; k < graph->nedges; k++)
		next[first[graph->edges[k].before + 1]++] = graph->edges[k].after;
	/* First all that wait for nothing, by number; then what each of them sets free. */
	for (size_t k = 0; k < n; k++) {
		if (!waits[k])
			order[ready++] = (int)k;
	}
	for (; done < ready; done++) {
		int task = order[done];

		for (int k = first[task]; k < first[task + 1]; k++) {
			if (!--waits[next[k]])
				order[ready++] = next[k];
		}
	}
	free(waits);
	free(first);
	free(next);
	return done;
}

/* A task of a circle: from a task that is never ready back along what it waits for. */
static int circle_find(const struct ocs_netsim_graph *graph, const int *order, int done)
{
	size_t n = (size_t)graph->ntasks;
	char *free_of = ocs_calloc(n, 1), *seen = ocs_calloc(n, 1);
	int *before = ocs_calloc(n, sizeof(int)), at = 0;

	for (int k = 0; k < done; k++)
		free_of[order[k]] = 1;
	for (int k = 0; k < graph->nedges; k++) {
		if (!free_of[graph->edges[k].before])
			before[graph->edges[k].after] = graph->edges[k].before;
	}
	while (free_of[at])
		at++;
	for (; !seen[at]; at = before[at])
		seen[at] = 1;
	free(free_of);
	free(seen);
	free(before);
	return at;
}

static int circle_check(const struct ocs_netsim_graph *graph, struct ocs_error *err)
{
	int *order = ocs_calloc((size_t)graph->ntasks + 1, sizeof(int));
	int done = order_fill(graph, order), rc = 0;

	if (done < graph->ntasks)
		rc = ocs_error_set(err, OCS_USAGE, "task %d waits for itself in a circle",
				   circle_find(graph, order, done));
	free(order);
	return rc;
}

int ocs_netsim_graph_check(const struct ocs_netsim_graph *graph, struct ocs_error *err)
{
	int rc = 0, *seen;

	if (graph->servers < 1 || graph->servers > OCS_NETSIM_SERVERS_MAX)
		return ocs_error_set(err, OCS_USAGE, "%d servers, 1 to %d are possible",
				     graph->servers, OCS_NETSIM_SERVERS_MAX);
	if (graph->devices < 1 || graph->devices > OCS_NETSIM_DEVICES_MAX)
		return ocs_error_set(err, OCS_USAGE, "%d devices a server, 1 to %d are possible",
				     graph->devices, OCS_NETSIM_DEVICES_MAX);
	if (graph->ntasks > OCS_NETSIM_TASKS_MAX || graph->nedges > OCS_NETSIM_EDGES_MAX)
		return ocs_error_set(
			err, OCS_USAGE, "%d tasks with %d dependencies, at most %d with %d are run",
			graph->ntasks, graph->nedges, OCS_NETSIM_TASKS_MAX, OCS_NETSIM_EDGES_MAX);
	seen = ocs_calloc((size_t)graph->servers, sizeof(int));
	for (int k = 0; !rc && k < graph->ngroups; k++)
		rc = group_check(graph, k, seen, err);
	free(seen);
	for (int k = 0; !rc && k < graph->ntasks; k++)
		rc = task_check(graph, k, err);
	if (!rc)
		rc = edges_check(graph, err);
	return rc ? rc : circle_check(graph, err);
}

int *ocs_netsim_graph_order(const struct ocs_netsim_graph *graph)
{
	int *order = ocs_calloc((size_t)graph->ntasks + 1, sizeof(int));

	order_fill(graph, order);
	return order;
}
