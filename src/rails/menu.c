/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include <stdlib.h>
#include <string.h>

#include "src/rails/internal.h"
#include "src/util/error.h"

int ocs_rails_layout_nodes(const struct ocs_rails_layout *layout)
{
	int nodes = 1;

	for (int d = 0; d < layout->ndim; d++)
		nodes *= layout->extent[d];
	return nodes;
}

int ocs_rails_layout_stages(const struct ocs_rails_layout *layout)
{
	return layout->asymmetric < 0 ? 1 : layout->extent[layout->asymmetric];
}

int ocs_rails_layout_digit(const struct ocs_rails_layout *layout, int dim)
{
	if (dim == layout->asymmetric)
		return 0;
	return dim + (layout->asymmetric < 0 || dim < layout->asymmetric);
}

int ocs_rails_layout_dim(const struct ocs_rails_layout *layout, int digit)
{
	int dim;

	if (!digit)
		return layout->asymmetric;
	dim = digit - (layout->asymmetric < 0 || digit - 1 < layout->asymmetric);
	return dim < layout->ndim ? dim : -1;
}

int ocs_rails_layout_check(const struct ocs_rails_layout *layout, struct ocs_error *err)
{
	int symmetric = layout->ndim - (layout->asymmetric >= 0);

	if (layout->ndim > OCS_RAILS_DIMS || symmetric > OCS_RAILS_DIMS - 1)
		return ocs_error_set(
			err, OCS_NEVER,
			"rails serve at most %d symmetric dimensions over nodes and one asymmetric one, and this shape has %d; join some of them",
			OCS_RAILS_DIMS - 1, symmetric);
	if (ocs_rails_layout_stages(layout) > OCS_RAILS_STAGES)
		return ocs_error_set(
			err, OCS_NEVER,
			"rails serve at most %d stages of the asymmetric dimension, and this shape has %d; ask for fewer",
			OCS_RAILS_STAGES, ocs_rails_layout_stages(layout));
	for (int d = 0; layout->ports < 2 && d < layout->ndim; d++)
		if (layout->extent[d] > 2)
			return ocs_error_set(
				err, OCS_NEVER,
				"with one port per NIC rails join nodes in pairs only, and dimension %d has %d nodes; make it 2, keep it inside a node, or ask the administrator for two ports per NIC",
				d + 1, layout->extent[d]);
	return 0;
}

/* Whether stage S is joined to the one after it, by both their digits. */
static bool stages_joined(const struct ocs_rails_layout *layout, const char *topology, int s)
{
	int stages = ocs_rails_layout_stages(layout), next = (s + 1) % stages;

	return stages > 1 && topology[s] == '0' && topology[next] == '0';
}

/* From NODE to the one after it along DIM, unless there is none or it is the other end's to add. */
static void pair_add(const struct ocs_rails_layout *layout, struct ocs_rails_pairs *pairs, int node,
		     int next)
{
	if (next == node || (layout->ports < 2 && next < node))
		return;
	pairs->items[pairs->count++] = (struct ocs_rails_pair){
		.a = node,
		.a_port = layout->ports - 1,
		.b = next,
		.b_port = 0,
	};
}

static void ring_add(const struct ocs_rails_layout *layout, struct ocs_rails_pairs *pairs)
{
	int nodes = ocs_rails_layout_nodes(layout);

	for (int node = 0; node < nodes; node++)
		pair_add(layout, pairs, node, (node + 1) % nodes);
}

/* Room for TIMES circuits of every node. */
static int pairs_create(const struct ocs_rails_layout *layout, int times,
			struct ocs_rails_pairs *pairs, struct ocs_error *err)
{
	pairs->count = 0;
	pairs->items = calloc((size_t)ocs_rails_layout_nodes(layout) * (size_t)times,
			      sizeof(*pairs->items));
	return pairs->items ? 0 : ocs_error_set(err, OCS_ERROR, "out of memory");
}

static int pair_compare(const void *x, const void *y)
{
	const struct ocs_rails_pair *a = x, *b = y;

	if (a->a != b->a)
		return a->a < b->a ? -1 : 1;
	if (a->a_port != b->a_port)
		return a->a_port < b->a_port ? -1 : 1;
	if (a->b != b->b)
		return a->b < b->b ? -1 : 1;
	return a->b_port - b->b_port;
}

void ocs_rails_topology_first(const struct ocs_rails_layout *layout, char *topology)
{
	int digit = 0, stages = ocs_rails_layout_stages(layout);

	for (int d = 0; d < layout->ndim; d++)
		if (d != layout->asymmetric && layout->extent[d] > 1)
			digit = ocs_rails_layout_digit(layout, d);
	if (!digit && layout->asymmetric < 0 && layout->ndim)
		digit = 1;
	memset(topology, '0' + digit, (size_t)stages);
	topology[stages] = '\0';
}

static int digit_check(const struct ocs_rails_layout *layout, const char *text, int stage,
		       struct ocs_error *err)
{
	int symmetric = layout->ndim - (layout->asymmetric >= 0);
	int least = layout->asymmetric >= 0 || !symmetric ? 0 : 1;

	if (text[stage] >= '0' + least && text[stage] <= '0' + symmetric)
		return 0;
	return ocs_error_set(
		err, OCS_USAGE,
		"topology \"%.80s\": stage %d is not a digit from %d to %d; the digits of this job are %d to %d, or the whole is \"ring\"",
		text, stage + 1, least, symmetric, least, symmetric);
}

int ocs_rails_topology_check(const struct ocs_rails_layout *layout, const char *text,
			     struct ocs_error *err)
{
	size_t stages = (size_t)ocs_rails_layout_stages(layout);

	if (strcmp(text, OCS_RAILS_RING) == 0) {
		if (layout->ports < 2 && ocs_rails_layout_nodes(layout) > 2)
			return ocs_error_set(
				err, OCS_USAGE,
				"topology \"ring\": %d nodes make no ring with one port per NIC; give a digit for each of the %zu stages",
				ocs_rails_layout_nodes(layout), stages);
		return 0;
	}
	if (strlen(text) != stages)
		return ocs_error_set(
			err, OCS_USAGE,
			"topology \"%.80s\" has %zu characters and the job %zu stages; give one digit for each, or \"ring\"",
			text, strlen(text), stages);
	for (int s = 0; s < (int)stages; s++)
		if (digit_check(layout, text, s, err) < 0)
			return -1;
	return 0;
}

int ocs_rails_topology_pairs(const struct ocs_rails_layout *layout, const char *topology,
			     struct ocs_rails_pairs *pairs, struct ocs_error *err)
{
	int nodes = ocs_rails_layout_nodes(layout);

	*pairs = (struct ocs_rails_pairs){ 0 };
	if (ocs_rails_topology_check(layout, topology, err) < 0 ||
	    pairs_create(layout, 1, pairs, err) < 0)
		return -1;
	if (strcmp(topology, OCS_RAILS_RING) == 0) {
		ring_add(layout, pairs);
		return 0;
	}
	for (int node = 0; node < nodes; node++) {
		int stage = ocs_rails_stage(layout, node);
		int dim = ocs_rails_layout_dim(layout, topology[stage] - '0');

		if (dim >= 0 &&
		    (dim != layout->asymmetric || stages_joined(layout, topology, stage)))
			pair_add(layout, pairs, node, ocs_rails_next(layout, node, dim));
	}
	return 0;
}

int ocs_rails_menu_pairs(const struct ocs_rails_layout *layout, struct ocs_rails_pairs *pairs,
			 struct ocs_error *err)
{
	int nodes = ocs_rails_layout_nodes(layout);
	size_t kept = 0;

	*pairs = (struct ocs_rails_pairs){ 0 };
	if (pairs_create(layout, layout->ndim + 1, pairs, err) < 0)
		return -1;
	for (int node = 0; node < nodes; node++)
		for (int d = 0; d < layout->ndim; d++)
			pair_add(layout, pairs, node, ocs_rails_next(layout, node, d));
	if (ocs_rails_topology_check(layout, OCS_RAILS_RING, NULL) == 0)
		ring_add(layout, pairs);
	qsort(pairs->items, pairs->count, sizeof(*pairs->items), pair_compare);
	for (size_t i = 0; i < pairs->count; i++)
		if (!i || pair_compare(&pairs->items[kept - 1], &pairs->items[i]) != 0)
			pairs->items[kept++] = pairs->items[i];
	pairs->count = kept;
	return 0;
}

/* Keeps of A, in its place, what B has not. */
static void pairs_subtract(struct ocs_rails_pairs *a, const struct ocs_rails_pairs *b)
{
	size_t kept = 0;

	for (size_t i = 0, k = 0; i < a->count; i++) {
		while (k < b->count && pair_compare(&b->items[k], &a->items[i]) < 0)
			k++;
		if (k == b->count || pair_compare(&b->items[k], &a->items[i]) != 0)
			a->items[kept++] = a->items[i];
	}
	a->count = kept;
}

int ocs_rails_change(const struct ocs_rails_layout *layout, const char *from, const char *to,
		     struct ocs_rails_pairs *cut, struct ocs_rails_pairs *make,
		     struct ocs_error *err)
{
	struct ocs_rails_pairs before;

	*cut = *make = (struct ocs_rails_pairs){ 0 };
	if (ocs_rails_topology_pairs(layout, from, cut, err) < 0)
		return -1;
	if (ocs_rails_topology_pairs(layout, to, make, err) < 0 ||
	    ocs_rails_topology_pairs(layout, from, &before, err) < 0) {
		ocs_rails_pairs_free(cut);
		ocs_rails_pairs_free(make);
		return -1;
	}
	pairs_subtract(cut, make);
	pairs_subtract(make, &before);
	ocs_rails_pairs_free(&before);
	return 0;
}

void ocs_rails_pairs_free(struct ocs_rails_pairs *pairs)
{
	free(pairs->items);
	*pairs = (struct ocs_rails_pairs){ 0 };
}
