/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/netsim/collective.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/netsim/fabric.h"
#include "src/netsim/graph.h"
#include "src/netsim/torus.h"
#include "src/plan/plan.h"
#include "src/util/text.h"

/* A collective under way: who sends for whom. */
struct call {
	const struct ocs_netsim_fabric *fabric;
	const int *members; /* servers of the fabric */
	int count;
	double bytes;
	enum ocs_netsim_kind kind;
	ocs_netsim_send *send;
	void *context;
};

static const char *const algorithm_names[OCS_NETSIM_ALGORITHMS] = {
	[OCS_NETSIM_AUTO] = "auto",
	[OCS_NETSIM_RING] = "ring",
	[OCS_NETSIM_MULTI_RING] = "multi-ring",
	[OCS_NETSIM_HIERARCHICAL] = "hierarchical",
	[OCS_NETSIM_DOUBLE_TREE] = "double-tree",
};

const char *ocs_netsim_algorithm_name(enum ocs_netsim_algorithm algorithm)
{
	return algorithm < OCS_NETSIM_ALGORITHMS ? algorithm_names[algorithm] : "unknown";
}

/* How often a member passes 1/k of the bytes on: an AllReduce twice as often as its halves. */
static int ring_rounds(enum ocs_netsim_kind kind, int k)
{
	return kind == OCS_NETSIM_ALLREDUCE ? 2 * (k - 1) : k - 1;
}

/* PART of the bytes on a ring of this STEP; with DIRECT over circuits of the plan, both ways if
 * BOTH.  Returns the hops in a row. */
static int ring_send(const struct call *call, const int *members, int k, int step, double part,
		     bool direct, bool both)
{
	int rounds = ring_rounds(call->kind, k);
	double bytes = call->bytes * part * rounds / k / (both ? 2 : 1);

	for (int i = 0; k > 1 && i < k; i++) {
		int next = members[(i + step) % k];

		call->send(call->context, members[i], next, bytes, direct);
		if (both)
			call->send(call->context, next, members[i], bytes, direct);
	}
	return rounds;
}

static int shard_server(const struct ocs_netsim_shard *shard, int server)
{
	return shard->servers ? shard->servers[server] : server;
}

static bool members_equal(const struct ocs_netsim_shard *shard, const struct ocs_plan_group *group,
			  const struct call *call)
{
	if (group->nmembers != call->count)
		return false;
	for (int i = 0; i < call->count; i++) {
		bool found = false;

		for (int j = 0; !found && j < call->count; j++)
			found = shard_server(shard, group->members[i]) == call->members[j];
		if (!found)
			return false;
	}
	return true;
}

/* The rings that the plan of SHARD has for these members.  Returns the hops in a row, 0: none. */
static int shard_send(const struct call *call, const struct ocs_netsim_shard *shard)
{
	const struct ocs_plan *plan = shard->plan;
	int hops = 0;

	for (int g = 0; g < plan->ngroups && !hops; g++) {
		const struct ocs_plan_group *group = &plan->groups[g];
		int *members;

		if (!group->nrings || !members_equal(shard, group, call))
			continue;
		members = ocs_calloc((size_t)call->count, sizeof(int));
		for (int i = 0; i < call->count; i++)
			members[i] = shard_server(shard, group->members[i]);
		for (int r = 0; r < group->nrings; r++)
			hops = ring_send(call, members, call->count, group->steps[r],
					 1.0 / group->nrings, true,
					 !plan->directed && call->count > 2);
		free(members);
	}
	return hops;
}

static int planned_send(const struct call *call)
{
	int hops = 0;

	for (int k = 0; k < call->fabric->nshards && !hops; k++)
		hops = shard_send(call, &call->fabric->shards[k]);
	return hops;
}

static int common_divisor(int a, int b)
{
	return b ? common_divisor(b, a % b) : a;
}

static int multi_ring_send(const struct call *call)
{
	int most = call->fabric->spec.degree, steps[64], count = 0, hops = 0;

	for (int p = 1; (p == 1 || p <= call->count / 2) && count < most; p++) {
		if (common_divisor(p, call->count) == 1)
			steps[count++] = p;
	}
	for (int k = 0; k < count; k++)
		hops = ring_send(call, call->members, call->count, steps[k], 1.0 / count, false,
				 false);
	return hops;
}

/* The parent of member AT in a binary tree over 0..K-1 in which the odd numbers are leaves: its
 * lowest bit moves up, or goes where that leads out of the tree.  -1: the root. */
static int tree_parent(int at, int k)
{
	int bit = at & -at, parent = (at ^ bit) | bit << 1;

	if (!at)
		return -1;
	return parent < k ? parent : at ^ bit;
}

/* Up the one tree and down again with half of the bytes, and the same in another one, in which
 * the leaves of the first are inside: its mirror image, or all shifted by one. */
static int tree_send(const struct call *call)
{
	double bytes = call->bytes / 2;
	int k = call->count;

	for (int side = 0; side < 2; side++) {
		for (int at = 0; at < k; at++) {
			int parent = tree_parent(at, k), me = at;

			if (parent < 0)
				continue;
			if (side) {
				me = k % 2 ? (at + 1) % k : k - 1 - at;
				parent = k % 2 ? (parent + 1) % k : k - 1 - parent;
			}
			call->send(call->context, call->members[me], call->members[parent], bytes,
				   false);
			call->send(call->context, call->members[parent], call->members[me], bytes,
				   false);
		}
	}
	return 2 * (int)ceil(log2(k));
}

/* Members by leaf: a ring in each leaf, then one between leaves for each place in a leaf, then the
 * ring in each leaf again.  Leaves with different numbers of members: one ring.  Returns the hops
 * in a row, -1: no such phase. */
static int hierarchical_send(const struct call *call, int phase)
{
	int leaf = call->fabric->spec.leaf, inner = 0, outer, hops = 0;
	int *across = ocs_calloc((size_t)call->count, sizeof(int));
	struct call part = *call;

	while (inner < call->count && call->members[inner] / leaf == call->members[0] / leaf)
		inner++;
	outer = call->count / inner;
	for (int i = 0; i < call->count; i++) {
		if (call->members[i] / leaf != call->members[i / inner * inner] / leaf)
			inner = 0;
		if (!inner)
			break;
	}
	if (!inner || call->count % inner || outer < 2 || inner < 2) {
		hops = phase ? -1 : ring_send(call, call->members, call->count, 1, 1, false, false);
	} else if (phase == 0 || phase == 2) {
		part.kind = phase ? OCS_NETSIM_ALLGATHER : OCS_NETSIM_REDUCE_SCATTER;
		for (int g = 0; g < outer; g++)
			hops = ring_send(&part, call->members + g * inner, inner, 1, 1, false,
					 false);
	} else if (phase == 1) {
		for (int at = 0; at < inner; at++) {
			for (int g = 0; g < outer; g++)
				across[g] = call->members[g * inner + at];
			hops = ring_send(call, across, outer, 1, 1.0 / inner, false, false);
		}
	} else {
		hops = -1;
	}
	free(across);
	return hops;
}

/* PHASE on a torus, whose ranks are the members: the bytes are divided by the dimensions; part q is
 * reduced and scattered along dimension q first, then along the next ones, and gathered in the
 * reverse order.  So every phase uses all links, both ways.  Returns the hops in a row, -1: there is
 * no such phase. */
static int torus_send(const struct call *call, const struct ocs_shape *shape, int phase)
{
	int dims[OCS_SHAPE_DIMS], strides[OCS_SHAPE_DIMS], n = 0, stride = 1, hops = 0;

	for (int d = shape->ndim - 1; d >= 0; stride *= shape->extent[d--]) {
		if (shape->extent[d] < 2)
			continue;
		dims[n] = shape->extent[d];
		strides[n++] = stride;
	}
	if (phase >= (call->kind == OCS_NETSIM_ALLREDUCE ? 2 * n : n))
		return -1;
	if (call->kind == OCS_NETSIM_ALLGATHER)
		phase = n - 1 - phase;
	else if (phase >= n)
		phase = 2 * n - 1 - phase;
	for (int q = 0; q < n; q++) {
		int at = (q + phase) % n, e = dims[at];
		double bytes = call->bytes / n;

		for (int p = 0; p < phase; p++)
			bytes /= dims[(q + p) % n];
		bytes *= (e - 1.0) / e / (e > 2 ? 2 : 1);
		hops = e - 1 > hops ? e - 1 : hops;
		for (int r = 0; r < call->count; r++) {
			int c = r / strides[at] % e;
			int next = r + ((c + 1) % e - c) * strides[at];

			call->send(call->context, call->members[r], call->members[next], bytes,
				   false);
			if (e > 2)
				call->send(call->context, call->members[next], call->members[r],
					   bytes, false);
		}
	}
	return hops;
}

static void alltoall_send(const struct call *call, const double *matrix)
{
	for (int i = 0; i < call->count; i++) {
		for (int j = 0; j < call->count; j++) {
			double bytes =
				matrix ? matrix[i * call->count + j] : call->bytes / call->count;

			if (i != j && bytes > 0)
				call->send(call->context, call->members[i], call->members[j], bytes,
					   false);
		}
	}
}

/* The hops in a row of PHASE; -1: there is no such phase. */
static int phase_send(const struct call *call, enum ocs_netsim_algorithm algorithm, int phase,
		      const double *matrix)
{
	const struct ocs_netsim_torus *torus =
		algorithm == OCS_NETSIM_AUTO && call->kind != OCS_NETSIM_ALLTOALL ?
			ocs_netsim_torus_of(call->fabric, call->members, call->count) :
			NULL;
	int hops = 0;

	if (call->count < 2)
		return phase ? -1 : 0;
	if (torus)
		return torus_send(call, &torus->shape, phase);
	if (call->kind == OCS_NETSIM_ALLREDUCE && algorithm == OCS_NETSIM_HIERARCHICAL)
		return hierarchical_send(call, phase);
	if (phase)
		return -1;
	if (call->kind == OCS_NETSIM_ALLTOALL) {
		alltoall_send(call, matrix);
		return 1;
	}
	if (call->kind == OCS_NETSIM_ALLREDUCE && algorithm == OCS_NETSIM_DOUBLE_TREE)
		return tree_send(call);
	if (algorithm == OCS_NETSIM_MULTI_RING && !call->fabric->nshards)
		return multi_ring_send(call);
	if (algorithm == OCS_NETSIM_AUTO || algorithm == OCS_NETSIM_MULTI_RING)
		hops = planned_send(call);
	return hops ? hops : ring_send(call, call->members, call->count, 1, 1, false, false);
}

bool ocs_netsim_collective_phase(const struct ocs_netsim_graph *graph,
				 const struct ocs_netsim_task *task, const int *place,
				 const struct ocs_netsim_fabric *fabric,
				 enum ocs_netsim_algorithm algorithm, int phase,
				 ocs_netsim_send *send, void *context, int *hops)
{
	const struct ocs_netsim_group *group = &graph->groups[task->group];
	int *members = ocs_calloc((size_t)group->count, sizeof(int));
	struct call call = { .fabric = fabric,
			     .members = members,
			     .count = group->count,
			     .bytes = task->bytes,
			     .kind = task->kind,
			     .send = send,
			     .context = context };

	for (int k = 0; k < group->count; k++)
		members[k] = place ? place[group->members[k]] : group->members[k];
	*hops = phase_send(&call, algorithm, phase,
			   task->matrix >= 0 ? graph->matrices[task->matrix] : NULL);
	free(members);
	return *hops >= 0;
}
