/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Which jobs there are, and what the judge asks about them. */

#include <string.h>

#include "tests/unit/rails/interleave_world.h"

struct interleave_world interleave_world;

int pick(int n)
{
	if (w.data || w.left) {
		uint8_t byte = w.left ? *w.data : 0;

		w.data += w.left > 0;
		w.left -= w.left > 0;
		return byte % n;
	}
	w.random ^= w.random << 13;
	w.random ^= w.random >> 7;
	w.random ^= w.random << 17;
	return (int)((w.random >> 11) % (uint64_t)n);
}

void violation_set(const char *what)
{
	if (!w.result.violation)
		w.result.violation = what;
}

static int node_stride(int dim)
{
	int stride = 1;

	for (int d = dim + 1; d < w.ndim; d++)
		stride *= w.extents[d];
	return stride;
}

int node_at(int node, int dim)
{
	return node / node_stride(dim) % w.extents[dim];
}

/* The next node of NODE along DIM, around the end. */
int node_next(int node, int dim)
{
	int at = node_at(node, dim);

	return node + ((at + 1) % w.extents[dim] - at) * node_stride(dim);
}

/* Whether A and B are neighbours in the operations of GROUP. */
bool group_joins(const struct peer_group *group, int a, int b)
{
	return group->kind == 1 && (node_next(a, group->dim) == b || node_next(b, group->dim) == a);
}

bool group_has_node(const struct peer_group *group, int node)
{
	for (int i = 0; i < group->count; i++)
		if (w.node_of[group->ranks[i]] == node)
			return true;
	return false;
}

/* The place of RANK among the members of GROUP, or -1. */
int member_of(const struct peer_group *group, int rank)
{
	for (int i = 0; i < group->count; i++)
		if (group->ranks[i] == rank)
			return i;
	return -1;
}

bool work_open(const struct work *work)
{
	const struct peer_group *group = &w.groups[work->group];
	bool granted = false;

	for (int i = 0; i < group->count; i++) {
		int rank = group->ranks[i];

		if (w.dead[rank])
			continue;
		if (work->at[rank].granted && !work->at[rank].ended && !work->at[rank].failed)
			granted = true;
	}
	return granted;
}

static void group_make(int kind, int dim, const bool *nodes)
{
	struct peer_group *group = &w.groups[w.ngroups];
	uint64_t rails = 1 + pick((1 << w.rails) - 1);

	if (w.ngroups == GROUPS)
		return;
	*group = (struct peer_group){ .id = 100 + 17 * w.ngroups, .kind = kind, .dim = dim };
	for (int rank = 0; rank < w.ranks; rank++)
		if (nodes[w.node_of[rank]])
			group->ranks[group->count++] = rank;
	if (ocs_coordinator_group(w.coordinator, group->id, group->ranks, group->count, rails,
				  NULL) < 0)
		violation_set("a group is refused");
	if (kind == 1)
		/* what follows the first of the phase is the rest of it */
		ocs_coordinator_phase(w.coordinator, group->id, 0, 5, NULL);
	w.ngroups++;
}

static void groups_make(void)
{
	for (int dim = 0; dim < w.ndim; dim++) {
		for (int node = 0; node < w.nodes; node++) {
			bool members[NODES] = { false };
			int next = node_next(node, dim);

			/* along the pipeline pairs, along the others whole rings */
			if (w.extents[dim] < 2 || (dim && node_at(node, dim)))
				continue;
			if (dim == 0 && next < node)
				continue;
			members[node] = members[next] = true;
			for (int k = next; dim && k != node; k = node_next(k, dim))
				members[k] = true;
			group_make(1, dim, members);
		}
	}
	if (pick(2)) {
		bool members[NODES];

		memset(members, true, sizeof(members));
		if (w.nodes > 3 && (w.extents[0] > 1) + (w.ndim > 1 && w.extents[1] > 1) +
						   (w.ndim > 2 && w.extents[2] > 1) >
					   1)
			group_make(2, 0, members);
	}
	if (pick(4) == 0) {
		bool members[NODES] = { true };

		group_make(0, 0, members);
	}
}

static void program_make(void)
{
	uint64_t idx[GROUPS] = { 0 };

	w.nprogram = w.ngroups ? 3 + pick(PROGRAM - 2) : 0;
	/* the same few again and again, so that there is something to learn */
	for (int i = 0; i < w.nprogram; i++) {
		int group = pick(4) && i > 3 ? w.program[i - 3].group : pick(w.ngroups);

		w.program[i].group = group;
		w.program[i].idx = idx[group]++;
	}
}

bool world_make(void)
{
	struct ocs_coordinator_options options = { 0 };

	w.ndim = 2 + pick(2);
	w.extents[0] = 1 + pick(3);
	w.extents[1] = 1 + pick(3);
	w.extents[2] = w.ndim > 2 ? 1 + pick(2) : 1;
	w.nodes = w.extents[0] * w.extents[1] * w.extents[2];
	if (w.nodes > NODES)
		w.extents[0] = 1, w.nodes = w.extents[1] * w.extents[2];
	/* one port makes pairs only */
	w.ports = w.extents[0] < 3 && w.extents[1] < 3 && pick(3) == 0 ? 1 : 2;
	w.ranks = w.nodes * (1 + (pick(4) == 0));
	if (w.ranks > RANKS)
		w.ranks = w.nodes;
	for (int rank = 0; rank < w.ranks; rank++)
		w.node_of[rank] = rank * w.nodes / w.ranks;
	w.rails = 1 + pick(RAILS);
	w.streams = 1 + pick(STREAMS);
	w.shared = pick(4) != 0;
	w.faults = pick(2) ? 0 : pick(8);
	w.deaths = pick(8) == 0;
	w.wishes = pick(4);
	w.reboots = pick(3) == 0 ? 1 + pick(2) : 0;
	w.revokes = pick(32) == 0;
	options.layout =
		(struct ocs_rails_layout){ .ndim = w.ndim, .asymmetric = 0, .ports = w.ports };
	memcpy(options.layout.extent, w.extents, sizeof(w.extents));
	options.rails = w.rails;
	options.ranks = w.ranks;
	options.nodes = w.node_of;
	options.epoch = EPOCH;
	options.provisioned = pick(2);
	options.shared = w.shared;
	options.timeout = 100;
	options.tries = 1 + pick(4);
	options.drain = 1000000;
	w.coordinator = ocs_coordinator_create(&options, 0, NULL);
	if (!w.coordinator)
		return false;
	for (int rail = 0; rail < w.rails; rail++) {
		/* what it does after a fault is not known before */
		memset(w.optics[rail].topology, '?', w.extents[0]);
		w.optics[rail].stuck = w.faults && pick(16) == 0;
	}
	groups_make();
	program_make();
	return true;
}
