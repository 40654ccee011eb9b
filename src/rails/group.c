/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include <string.h>

#include "src/rails/internal.h"

static const struct ocs_rails_need outside = { .kind = OCS_RAILS_OUTSIDE };

/* The one dimension along which MEMBERS differ; -1: there are more, or one is no node. */
static int members_dim(const struct ocs_rails_layout *layout, const int *members, int count)
{
	int dim = -1, nodes = ocs_rails_layout_nodes(layout);

	for (int i = 0; i < count; i++) {
		if (members[i] < 0 || members[i] >= nodes)
			return -1;
		for (int d = 0; d < layout->ndim; d++) {
			if (ocs_rails_coordinate(layout, members[i], d) ==
			    ocs_rails_coordinate(layout, members[0], d))
				continue;
			if (dim >= 0 && dim != d)
				return -1;
			dim = d;
		}
	}
	return dim;
}

/* The first of MEMBERS when they follow each other along DIM, over the end too; else -1. */
static int members_first(const struct ocs_rails_layout *layout, const int *members, int count,
			 int dim)
{
	int first = -1, starts = 0;

	for (int i = 0; i < count; i++) {
		bool follows = false;

		for (int k = 0; k < count && !follows; k++) {
			if (k != i && members[k] == members[i])
				return -1;
			follows = ocs_rails_next(layout, members[k], dim) == members[i];
		}
		if (!follows) {
			first = ocs_rails_coordinate(layout, members[i], dim);
			starts++;
		}
	}
	/* All of them are a ring, which begins anywhere. */
	if (!starts)
		return count == layout->extent[dim] ? 0 : -1;
	return starts == 1 ? first : -1;
}

struct ocs_rails_need ocs_rails_group_need(const struct ocs_rails_layout *layout,
					   const int *members, int count)
{
	struct ocs_rails_need need = { .kind = OCS_RAILS_NOTHING };
	int dim, first;

	if (count < 1 || members[0] < 0 || members[0] >= ocs_rails_layout_nodes(layout))
		return outside;
	if (count == 1)
		return need;
	dim = members_dim(layout, members, count);
	if (dim < 0)
		return outside;
	first = members_first(layout, members, count, dim);
	if (first < 0)
		return outside;
	if (dim == layout->asymmetric) {
		need.kind = OCS_RAILS_LINE;
		need.first = first;
		need.last = (first + count - 1) % layout->extent[dim];
		return need;
	}
	if (count > 2 && count < layout->extent[dim])
		return outside;
	need.kind = OCS_RAILS_STAGE;
	need.digit = ocs_rails_layout_digit(layout, dim);
	need.first = need.last = ocs_rails_stage(layout, members[0]);
	return need;
}

bool ocs_rails_need_met(const struct ocs_rails_need *need, const char *topology)
{
	int stages = (int)strlen(topology);

	switch (need->kind) {
	case OCS_RAILS_NOTHING:
		return true;
	case OCS_RAILS_STAGE:
		return topology[0] != OCS_RAILS_RING[0] &&
		       topology[need->first] == '0' + need->digit;
	case OCS_RAILS_LINE:
		if (topology[0] == OCS_RAILS_RING[0])
			return false;
		for (int s = need->first;; s = (s + 1) % stages) {
			if (topology[s] != '0')
				return false;
			if (s == need->last)
				return true;
		}
	case OCS_RAILS_OUTSIDE:
		break;
	}
	return false;
}

/* STAGE, which has left 0 for DIGIT, was joined to NEIGHBOUR: without another neighbour that one has
 * no circuit left, and what its nodes need next is most likely the same. */
static void neighbour_follow(const struct ocs_rails_layout *layout, char *topology, int neighbour,
			     int digit)
{
	int stages = ocs_rails_layout_stages(layout);
	int before = (neighbour + stages - 1) % stages, after = (neighbour + 1) % stages;

	if (topology[neighbour] == '0' && topology[before] != '0' && topology[after] != '0')
		topology[neighbour] = (char)('0' + digit);
}

void ocs_rails_topology_meet(const struct ocs_rails_layout *layout, const char *from,
			     const struct ocs_rails_need *need, char *to)
{
	int stages = ocs_rails_layout_stages(layout), s = need->first;

	if (strcmp(from, OCS_RAILS_RING) == 0)
		ocs_rails_topology_first(layout, to);
	else
		memmove(to, from, (size_t)stages + 1);
	if (need->kind == OCS_RAILS_STAGE && to[s] != '0' + need->digit) {
		bool joined = to[s] == '0';

		to[s] = (char)('0' + need->digit);
		if (joined && stages > 1) {
			neighbour_follow(layout, to, (s + stages - 1) % stages, need->digit);
			neighbour_follow(layout, to, (s + 1) % stages, need->digit);
		}
	} else if (need->kind == OCS_RAILS_LINE) {
		for (;; s = (s + 1) % stages) {
			to[s] = '0';
			if (s == need->last)
				break;
		}
	}
}
