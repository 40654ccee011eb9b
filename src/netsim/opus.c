/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/netsim/opus.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/util/error.h"
#include "src/util/text.h"

/* Candidates for a dimension: COUNT servers STRIDE apart. */
struct step_set {
	struct step {
		int stride, count;
		double bytes;
	} * items;
	int n, size;
};

static void step_note(struct step_set *set, int stride, int count, double bytes)
{
	for (int k = 0; k < set->n; k++) {
		if (set->items[k].stride == stride && set->items[k].count == count) {
			set->items[k].bytes += bytes;
			return;
		}
	}
	if (set->n == set->size) {
		set->size = set->size ? 2 * set->size : 16;
		set->items = ocs_realloc(set->items, (size_t)set->size * sizeof(*set->items));
	}
	set->items[set->n++] = (struct step){ stride, count, bytes };
}

static int step_compare(const void *left, const void *right)
{
	const struct step *a = left, *b = right;

	if (a->bytes != b->bytes)
		return a->bytes < b->bytes ? 1 : -1;
	return a->stride != b->stride ? a->stride - b->stride : a->count - b->count;
}

/* The step between the members of GROUP; 0: they are not in equal steps. */
static int group_stride(const struct ocs_netsim_group *group)
{
	int stride = group->count > 1 ? group->members[1] - group->members[0] : 0;

	for (int k = 2; k < group->count; k++)
		stride = group->members[k] - group->members[k - 1] == stride ? stride : 0;
	return stride > 0 ? stride : 0;
}

/* What goes over the network because of TASK, all members together. */
static double task_bytes(const struct ocs_netsim_graph *graph, const struct ocs_netsim_task *task)
{
	int k;

	if (task->kind == OCS_NETSIM_TRANSFER)
		return task->server == task->peer ? 0 : task->bytes;
	if (!ocs_netsim_kind_collective((enum ocs_netsim_kind)task->kind))
		return 0;
	k = graph->groups[task->group].count;
	return task->bytes * (k - 1) * (task->kind == OCS_NETSIM_ALLREDUCE ? 2 : 1);
}

/* The edge of WIDTH below which dimensions lie, as far as each divides the next. */
static bool edges_take(int *edges, int *count, const struct step *step)
{
	int at = 0, inner = step->stride, outer = step->stride * step->count;

	if (*count + 2 > OCS_RAILS_DIMS)
		return false;
	while (at < *count && edges[at] < inner)
		at++;
	if (at == *count || outer > edges[*count - 1] || (at && inner % edges[at - 1]))
		return false;
	if (edges[at] != inner) { /* lies between edges */
		if (outer > edges[at] || edges[at] % outer)
			return false;
		memmove(edges + at + 1, edges + at, (size_t)(*count - at) * sizeof(int));
		edges[at] = inner;
		++*count;
	}
	if (edges[at + 1] == outer)
		return true;
	if (edges[at + 1] < outer || edges[at + 1] % outer)
		return false;
	memmove(edges + at + 2, edges + at + 1, (size_t)(*count - at - 1) * sizeof(int));
	edges[at + 1] = outer;
	++*count;
	return true;
}

/* Pipeline stages: servers / the step of most transfers, if that goes. */
static int stages_find(const struct ocs_netsim_graph *graph)
{
	struct step_set set = { 0 };
	int stages = 1;

	for (int k = 0; k < graph->ntasks; k++) {
		const struct ocs_netsim_task *task = &graph->tasks[k];

		if (task->kind == OCS_NETSIM_TRANSFER && task->server != task->peer)
			step_note(&set, abs(task->peer - task->server), 2, task->bytes);
	}
	if (set.n) {
		qsort(set.items, (size_t)set.n, sizeof(*set.items), step_compare);
		if (graph->servers % set.items[0].stride == 0)
			stages = graph->servers / set.items[0].stride;
	}
	free(set.items);
	return stages <= OCS_RAILS_STAGES ? stages : 1;
}

static void layout_guess(const struct ocs_netsim_graph *graph, struct ocs_rails_layout *layout)
{
	int stages = stages_find(graph), width = graph->servers / stages;
	int edges[OCS_RAILS_DIMS + 2] = { 1, width }, count = width > 1 ? 2 : 1;
	struct step_set set = { 0 };

	for (int k = 0; k < graph->ntasks; k++) {
		const struct ocs_netsim_task *task = &graph->tasks[k];
		int stride = ocs_netsim_kind_collective((enum ocs_netsim_kind)task->kind) ?
				     group_stride(&graph->groups[task->group]) :
				     0;

		if (stride && stride * graph->groups[task->group].count <= width)
			step_note(&set, stride, graph->groups[task->group].count,
				  task_bytes(graph, task));
	}
	if (set.n)
		qsort(set.items, (size_t)set.n, sizeof(*set.items), step_compare);
	for (int k = 0; k < set.n; k++)
		edges_take(edges, &count, &set.items[k]);
	free(set.items);
	layout->asymmetric = stages > 1 ? 0 : -1;
	if (stages > 1)
		layout->extent[layout->ndim++] = stages;
	for (int k = count - 1; k > 0; k--)
		layout->extent[layout->ndim++] = edges[k] / edges[k - 1];
	if (!layout->ndim)
		layout->extent[layout->ndim++] = 1;
}

static int layout_read(const struct ocs_netsim_graph *graph, const struct ocs_netsim_spec *spec,
		       struct ocs_rails_layout *layout, struct ocs_error *err)
{
	int nodes = 1;

	for (int k = 0; k < spec->ndim; k++) {
		layout->extent[k] = spec->extent[k];
		nodes *= spec->extent[k];
	}
	layout->ndim = spec->ndim;
	layout->asymmetric = spec->extent[0] > 1 ? 0 : -1;
	if (nodes != graph->servers)
		return ocs_error_set(err, OCS_USAGE,
				     "opus: the shape has %d servers, the graph %d; write the "
				     "pipeline stages first, as in shape:%dx%d",
				     nodes, graph->servers, graph->servers > 1 ? 2 : 1,
				     graph->servers > 1 ? graph->servers / 2 : 1);
	return 0;
}

struct ocs_rails_need ocs_netsim_opus_need(const struct ocs_netsim_graph *graph,
					   const struct ocs_netsim_task *task,
					   const struct ocs_netsim_opus *opus, int **members,
					   int *count)
{
	if (task->kind == OCS_NETSIM_TRANSFER) {
		*count = task->server == task->peer ? 1 : 2;
		*members = ocs_calloc(2, sizeof(int));
		(*members)[0] = task->server;
		(*members)[1] = task->peer;
	} else {
		const struct ocs_netsim_group *group = &graph->groups[task->group];

		*count = group->count;
		*members = ocs_calloc((size_t)group->count, sizeof(int));
		memcpy(*members, group->members, (size_t)group->count * sizeof(int));
	}
	return ocs_rails_group_need(&opus->layout, *members, *count);
}

static void bytes_sum(const struct ocs_netsim_graph *graph, struct ocs_netsim_opus *opus)
{
	for (int k = 0; k < graph->ntasks; k++) {
		const struct ocs_netsim_task *task = &graph->tasks[k];
		double bytes = task_bytes(graph, task);
		struct ocs_rails_need need;
		int *members, count, dim = -1;

		if (!(bytes > 0))
			continue;
		need = ocs_netsim_opus_need(graph, task, opus, &members, &count);
		if (need.kind == OCS_RAILS_STAGE)
			dim = ocs_rails_layout_dim(&opus->layout, need.digit);
		else if (need.kind == OCS_RAILS_LINE)
			dim = opus->layout.asymmetric;
		if (dim >= 0)
			opus->bytes[dim] += bytes;
		free(members);
	}
}

int ocs_netsim_opus_layout(const struct ocs_netsim_graph *graph, const struct ocs_netsim_spec *spec,
			   struct ocs_netsim_opus *opus, struct ocs_error *err)
{
	*opus = (struct ocs_netsim_opus){ .layout = { .ports = 2 } };
	if (spec->ndim) {
		if (layout_read(graph, spec, &opus->layout, err))
			return -1;
	} else {
		layout_guess(graph, &opus->layout);
	}
	if (ocs_rails_layout_check(&opus->layout, err))
		return ocs_error_prefix(err, "opus");
	bytes_sum(graph, opus);
	return 0;
}

int ocs_netsim_opus_hubs(const struct ocs_netsim_spec *spec)
{
	return spec->phases == OCS_NETSIM_ONE_SHOT ? OCS_RAILS_DIMS : 1;
}

/* What of the rate each dimension gets for good: in proportion to the root of what it sends, which
 * makes the sum of the times as short as it can be. */
static void shares_find(const struct ocs_netsim_opus *opus, double *shares)
{
	double sum = 0;

	for (int d = 0; d < OCS_RAILS_DIMS; d++)
		sum += sqrt(opus->bytes[d]);
	for (int d = 0; d < OCS_RAILS_DIMS; d++)
		shares[d] = sum > 0 ? sqrt(opus->bytes[d]) / sum : 0;
}

int ocs_netsim_opus_make(struct ocs_netsim_fabric *fabric,
			 const struct ocs_netsim_graph *const *graphs, int *const *places, int n,
			 struct ocs_error *err)
{
	int hubs = ocs_netsim_opus_hubs(&fabric->spec);
	double all = fabric->spec.rate * fabric->spec.degree;

	for (int h = 0; h <= hubs; h++) {
		double rate = h == hubs ? fabric->spec.frontend : h ? 0 : all;

		for (int k = 0; k < fabric->servers; k++) {
			ocs_netsim_fabric_link(fabric, k, fabric->vertices, rate);
			ocs_netsim_fabric_link(fabric, fabric->vertices, k, rate);
		}
		fabric->vertices++;
	}
	for (int g = 0; g < n; g++) {
		double shares[OCS_RAILS_DIMS];
		struct ocs_netsim_opus opus;

		if (ocs_netsim_opus_layout(graphs[g], &fabric->spec, &opus, err))
			return -1;
		shares_find(&opus, shares);
		for (int h = 0; hubs > 1 && h < hubs; h++) {
			for (int k = 0; k < graphs[g]->servers; k++) {
				int at = places && places[g] ? places[g][k] : k;
				int link = OCS_NETSIM_OPUS_OUT(fabric, h, at);

				fabric->links[link].rate = shares[h] * all;
				fabric->links[link + 1].rate = shares[h] * all;
			}
		}
	}
	return 0;
}
