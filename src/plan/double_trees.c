/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Double binary trees (TopoOpt, appendix A): AllReduce sends half of its bytes over
 * either of two binary trees over all members, such that who is a leaf in one passes
 * data on in the other.  Numbering the members by a co-prime step gives another such
 * pair, as it gives another ring. */

#include <stdlib.h>

#include "src/plan/internal.h"
#include "src/util/text.h"

#define WIDTH 4	   /* interfaces of a member, at most: a leaf's and a middle's */
#define TRIALS 100 /* orders of edges in which interfaces are looked for */

/* A full binary tree over the positions LOW..HIGH, an odd number of them: every
 * second one, from LOW on, is a leaf. */
static void tree_span(int low, int high, int parent, int *parents)
{
	int root = low + ((high - low + 1) / 2 | 1);

	if (low == high) {
		parents[low] = parent;
		return;
	}
	parents[root] = parent;
	tree_span(low, root - 1, root, parents);
	tree_span(root + 1, high, root, parents);
}

/* Parents (-1: the root) of the positions 0..K-1 in both trees: leaves of the first
 * are the even ones, of the second the odd ones. */
static void tree_pair(int k, int *first, int *second)
{
	if (k % 2) {
		tree_span(0, k - 1, -1, first);
		second[k - 1] = -1;
		second[0] = k - 1;
		tree_span(1, k - 2, 0, second);
		return;
	}
	first[k - 1] = -1;
	tree_span(0, k - 2, k - 1, first);
	for (int i = 0; i < k; i++)
		second[k - 1 - i] = first[i] < 0 ? -1 : k - 1 - first[i];
}

void ocs_plan_tree_make(const struct ocs_plan_group *group, int step, struct ocs_plan_tree *tree)
{
	int k = group->nmembers, *position = ocs_calloc(2 * (size_t)k, sizeof(int));

	tree->step = step;
	tree_pair(k, position, position + k);
	for (int t = 0; t < 2; t++) {
		tree->parents[t] = ocs_calloc(k, sizeof(int));
		for (int i = 0; i < k; i++) {
			int parent = position[t * k + i];

			tree->parents[t][(long)i * step % k] =
				parent < 0 ? -1 : group->members[(long)parent * step % k];
		}
	}
	free(position);
}

void ocs_plan_trees_free(struct ocs_plan_group *group)
{
	for (int t = 0; t < group->ntrees; t++) {
		free(group->trees[t].parents[0]);
		free(group->trees[t].parents[1]);
	}
	free(group->trees);
	group->trees = NULL;
	group->ntrees = 0;
}

/* ---- interfaces for the edges ---- */

/* An edge; with directed circuits its ends are a transmitter and a receiver. */
struct edge {
	int a, b;  /* vertices: a server, or servers + its receiver */
	int plane; /* -1: none yet */
};

struct colour {
	struct ocs_plan_ports *ports;
	int servers;
	struct edge *edges;
	int count;
	uint64_t *spare; /* per vertex: interfaces not used */
	int *at;	 /* [vertex * degree + plane]: edge, or -1 */
	uint64_t random;
};

static int number_draw(struct colour *c, int below)
{
	c->random ^= c->random << 13;
	c->random ^= c->random >> 7;
	c->random ^= c->random << 17;
	return (int)((c->random >> 32) % (uint32_t)below);
}

static int *edge_slot(struct colour *c, int vertex, int plane)
{
	return &c->at[(size_t)vertex * c->ports->plan->degree + plane];
}

static void edge_paint(struct colour *c, int e, int plane)
{
	struct edge *edge = &c->edges[e];

	edge->plane = plane;
	*edge_slot(c, edge->a, plane) = *edge_slot(c, edge->b, plane) = e;
	c->spare[edge->a] &= ~(UINT64_C(1) << plane);
	c->spare[edge->b] &= ~(UINT64_C(1) << plane);
}

static void edge_unpaint(struct colour *c, int e)
{
	struct edge *edge = &c->edges[e];

	*edge_slot(c, edge->a, edge->plane) = *edge_slot(c, edge->b, edge->plane) = -1;
	c->spare[edge->a] |= UINT64_C(1) << edge->plane;
	c->spare[edge->b] |= UINT64_C(1) << edge->plane;
	edge->plane = -1;
}

/* From VERTEX, along edges on FROM and TO in turn: they change places, so that FROM is
 * spare there.  False, and nothing done, if something else is in the way or the
 * chain ends at STOP. */
static bool chain_flip(struct colour *c, int vertex, int from, int to, int stop)
{
	int *chain = ocs_calloc(c->count + 1, sizeof(int));
	int length = 0, plane = from;
	bool open = true;

	while (open) {
		int e = *edge_slot(c, vertex, plane);

		if (e < 0) {
			/* a circuit that is no edge of ours */
			open = false;
			if (!(c->spare[vertex] >> plane & 1) || vertex == stop)
				length = -1;
			break;
		}
		chain[length++] = e;
		vertex = c->edges[e].a == vertex ? c->edges[e].b : c->edges[e].a;
		plane = plane == from ? to : from;
	}
	for (int i = 0; i < length; i++) {
		int old = c->edges[chain[i]].plane;

		edge_unpaint(c, chain[i]);
		c->edges[chain[i]].plane = -2 - (old == from ? to : from);
	}
	for (int i = 0; i < length; i++)
		edge_paint(c, chain[i], -2 - c->edges[chain[i]].plane);
	free(chain);
	return length > 0;
}

static bool edge_place(struct colour *c, int e)
{
	int a = c->edges[e].a, b = c->edges[e].b;
	uint64_t common = c->spare[a] & c->spare[b];

	if (common) {
		edge_paint(c, e, __builtin_ctzll(common));
		return true;
	}
	for (uint64_t mine = c->spare[a]; mine; mine &= mine - 1)
		for (uint64_t its = c->spare[b]; its; its &= its - 1) {
			int p = __builtin_ctzll(mine), q = __builtin_ctzll(its);

			if (*edge_slot(c, b, p) >= 0 && chain_flip(c, b, p, q, a)) {
				edge_paint(c, e, p);
				return true;
			}
		}
	return false;
}

/* Every edge gets an interface that is free at both ends. */
static bool colour_all(struct colour *c)
{
	for (int trial = 0; trial < TRIALS; trial++) {
		int placed = 0;

		for (int i = c->count - 1; i > 0 && trial; i--) {
			int j = number_draw(c, i + 1);
			struct edge keep = c->edges[i];

			c->edges[i] = c->edges[j];
			c->edges[j] = keep;
		}
		while (placed < c->count && edge_place(c, placed))
			placed++;
		if (placed == c->count)
			return true;
		while (placed-- > 0)
			edge_unpaint(c, placed);
	}
	return false;
}

static void edges_fill(struct colour *c, const struct ocs_plan_group *group,
		       const struct ocs_plan_tree *tree)
{
	bool directed = c->ports->plan->directed;

	for (int t = 0; t < 2; t++)
		for (int i = 0; i < group->nmembers; i++) {
			int child = group->members[i], parent = tree->parents[t][i];

			if (parent < 0)
				continue;
			c->edges[c->count++] =
				(struct edge){ child, directed ? c->servers + parent : parent, -1 };
			/* up to reduce, down to broadcast */
			if (directed)
				c->edges[c->count++] =
					(struct edge){ parent, c->servers + child, -1 };
		}
}

/* One switch joins any two interfaces. */
static bool place_any(struct colour *c)
{
	struct ocs_plan_ports *ports = c->ports;
	int *need = ocs_calloc(2 * (size_t)c->servers, sizeof(int));
	bool fits = true;

	for (int e = 0; e < c->count; e++) {
		need[c->edges[e].a]++;
		need[c->edges[e].b]++;
	}
	for (int v = 0; v < 2 * c->servers; v++)
		fits &= need[v] <= __builtin_popcountll(v < c->servers ? ports->tx[v] :
									 ports->rx[v - c->servers]);
	free(need);
	for (int e = 0; e < c->count && fits; e++) {
		int a = c->edges[e].a, b = c->edges[e].b % c->servers;

		ocs_plan_circuit_add(ports, a, __builtin_ctzll(ports->tx[a]), b,
				     __builtin_ctzll(ports->rx[b]), -1);
	}
	return fits;
}

/* On the planes of MASK only. */
static bool colour_within(struct colour *c, uint64_t mask)
{
	size_t slots = 2 * (size_t)c->servers * c->ports->plan->degree;

	for (int i = 0; i < c->servers; i++) {
		c->spare[i] = c->ports->tx[i] & mask;
		c->spare[c->servers + i] = c->ports->rx[i] & mask;
	}
	for (size_t i = 0; i < slots; i++)
		c->at[i] = -1;
	return colour_all(c);
}

static bool place_planes(struct colour *c, const struct ocs_plan_group *group)
{
	struct ocs_plan_ports *ports = c->ports;
	uint64_t common = ~UINT64_C(0), mask = 0;
	bool fits = false;

	c->spare = ocs_calloc(2 * (size_t)c->servers, sizeof(*c->spare));
	c->at = ocs_calloc(2 * (size_t)c->servers * ports->plan->degree, sizeof(int));
	for (int i = 0; i < group->nmembers; i++)
		common &= ports->tx[group->members[i]] & ports->rx[group->members[i]];
	/* as few planes as will do, so that what is left is the same everywhere */
	for (int width = 1; common && !fits; common &= common - 1, width++) {
		mask |= common & -common;
		fits = width >= WIDTH && colour_within(c, mask);
	}
	if (!fits)
		fits = colour_within(c, ~UINT64_C(0));
	for (int e = 0; e < c->count && fits; e++)
		ocs_plan_circuit_add(ports, c->edges[e].a, c->edges[e].plane,
				     c->edges[e].b % c->servers, c->edges[e].plane, -1);
	free(c->spare);
	free(c->at);
	return fits;
}

void ocs_plan_trees(struct ocs_plan_ports *ports, struct ocs_plan_group *group, int count)
{
	struct ocs_plan *plan = ports->plan;
	int *steps;

	/* a ring over all servers that only holds the groups together needs none */
	if (group->nmembers < 3 || count < 1 || (plan->ngroups > 1 && !group->bytes))
		return;
	steps = ocs_calloc(count, sizeof(int));
	ocs_plan_steps_paper(group->nmembers, count, plan->directed, steps);
	group->trees = ocs_calloc(count, sizeof(*group->trees));
	for (int t = 0; t < count; t++) {
		struct colour c = { .ports = ports,
				    .servers = plan->servers,
				    .random = 88172645463325252u };
		struct ocs_plan_tree *tree = &group->trees[group->ntrees];
		bool fits;

		ocs_plan_tree_make(group, steps[t], tree);
		c.edges = ocs_calloc(4 * (size_t)group->nmembers, sizeof(*c.edges));
		edges_fill(&c, group, tree);
		fits = plan->any_port ? place_any(&c) : place_planes(&c, group);
		if (fits) {
			group->ntrees++;
			ports->trees += c.count;
		} else {
			free(tree->parents[0]);
			free(tree->parents[1]);
			ports->treeless++;
		}
		free(c.edges);
	}
	free(steps);
}
