/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/ocsctl/slurm/blockers.h"

#include <stdlib.h>
#include <string.h>

#include "src/place/place.h"
#include "src/util/hostlist.h"
#include "src/util/net.h"
#include "src/util/text.h"

#define NAMES_MAX 1000000
#define TESTS_MAX 20000		     /* of one question, */
#define SPEND_NS INT64_C(2000000000) /* and as long at most */

/* ---- what stands in the way ---- */

/* Nodes of the section in a host list, in ocs_fabric.nodes; the caller frees them. */
static int nodes_of(const struct ocs_ctl_obstacles *all, const char *text, int **nodes)
{
	char **names = NULL;
	int count = text && *text ? ocs_hostlist_expand(text, NAMES_MAX, &names, NULL) : 0, n = 0;

	*nodes = ocs_calloc((size_t)(count > 0 ? count : 0) + 1, sizeof(**nodes));
	for (int i = 0; i < count; i++) {
		const struct ocs_node *node = ocs_fabric_node(all->fabric, names[i]);

		if (node && node->section == all->section->index)
			(*nodes)[n++] = (int)(node - all->fabric->nodes);
	}
	if (count > 0)
		ocs_names_free(names, (size_t)count);
	return n;
}

struct ocs_ctl_obstacle *ocs_ctl_obstacle_add(struct ocs_ctl_obstacles *all,
					      enum ocs_ctl_obstacle_kind kind, const char *text)
{
	struct ocs_ctl_obstacle *one;
	int *nodes, n = nodes_of(all, text, &nodes);

	if (!n && kind != OCS_BY_SWITCH) {
		free(nodes);
		return NULL;
	}
	all->list = ocs_realloc(all->list, ((size_t)all->count + 1) * sizeof(*all->list));
	one = &all->list[all->count++];
	memset(one, 0, sizeof(*one));
	one->kind = kind;
	one->nodes = nodes;
	one->nnodes = n;
	one->sw = -1;
	return one;
}

static void eligible_need(struct ocs_ctl_obstacles *all)
{
	if (all->eligible)
		return;
	all->eligible = ocs_calloc((size_t)all->section->nnodes + 1, sizeof(bool));
	for (int i = 0; i < all->section->nnodes; i++)
		all->eligible[i] = true;
}

void ocs_ctl_obstacles_without(struct ocs_ctl_obstacles *all, const char *text)
{
	int *nodes, n = nodes_of(all, text, &nodes);

	eligible_need(all);
	for (int i = 0; i < n; i++)
		all->eligible[nodes[i] - all->section->first_node] = false;
	free(nodes);
}

void ocs_ctl_obstacles_only(struct ocs_ctl_obstacles *all, const char *text)
{
	int *nodes, n = nodes_of(all, text, &nodes);
	bool *named = ocs_calloc((size_t)all->section->nnodes + 1, sizeof(bool));

	eligible_need(all);
	for (int i = 0; i < n; i++)
		named[nodes[i] - all->section->first_node] = true;
	for (int i = 0; i < all->section->nnodes; i++)
		all->eligible[i] &= named[i];
	free(named);
	free(nodes);
}

void ocs_ctl_obstacles_occupy(const struct ocs_ctl_obstacles *all, struct ocs_occupancy *occupancy)
{
	for (int i = 0; i < all->count; i++) {
		for (int n = 0; n < all->list[i].nnodes; n++)
			ocs_occupancy_node_set(occupancy, all->fabric, all->list[i].nodes[n],
					       false);
		if (all->list[i].kind == OCS_BY_CUBE)
			ocs_occupancy_cube_drain(occupancy,
						 all->fabric->nodes[all->list[i].nodes[0]].cube);
		if (all->list[i].sw >= 0)
			ocs_occupancy_switch_block(occupancy, all->fabric, all->list[i].sw, 0);
	}
}

char *ocs_ctl_obstacle_nodes(const struct ocs_ctl_obstacles *all,
			     const struct ocs_ctl_obstacle *one)
{
	char **names = ocs_calloc((size_t)one->nnodes + 1, sizeof(*names));
	char *list;

	for (int i = 0; i < one->nnodes; i++)
		names[i] = all->fabric->nodes[one->nodes[i]].name;
	list = ocs_hostlist_compress(names, (size_t)one->nnodes);
	free(names);
	return list;
}

void ocs_ctl_obstacles_free(struct ocs_ctl_obstacles *all)
{
	for (int i = 0; i < all->count; i++) {
		free(all->list[i].name);
		free(all->list[i].why);
		free(all->list[i].nodes);
	}
	free(all->list);
	free(all->eligible);
	all->list = NULL;
	all->eligible = NULL;
	all->count = 0;
}

/* ---- the search ---- */

struct search {
	struct ocs_ctl_obstacles *all;
	struct ocs_occupancy *occupancy; /* NULL: a section without cubes */
	struct ocs_placer *placer;
	int need;    /* nodes at least */
	bool *there; /* by obstacle: it stands in the way now */
	int *held;   /* by node of the section: how many hold it */
	int free;    /* eligible nodes that no obstacle holds */
	long tests;
	int64_t began;
};

static bool ends_by_itself(const struct ocs_ctl_obstacle *one)
{
	return one->kind <= OCS_BY_RESERVATION;
}

static void node_hold(struct search *s, int node, int by)
{
	int at = node - s->all->section->first_node, before = s->held[at];

	if (s->all->eligible && !s->all->eligible[at])
		return;
	s->held[at] += by;
	if (!before == !s->held[at])
		return;
	s->free += s->held[at] ? -1 : 1;
	if (s->occupancy)
		ocs_occupancy_node_set(s->occupancy, s->all->fabric, node, !s->held[at]);
}

/* Obstacle INDEX goes, or comes back.  Switches count from the next rebuild on. */
static void node_put(struct search *s, int index, bool there)
{
	const struct ocs_ctl_obstacle *one = &s->all->list[index];

	if (s->there[index] == there)
		return;
	s->there[index] = there;
	for (int i = 0; i < one->nnodes; i++)
		node_hold(s, one->nodes[i], there ? 1 : -1);
}

/* Everything anew, from what is there. */
static void occupancy_rebuild(struct search *s)
{
	const struct ocs_section *section = s->all->section;

	s->free = 0;
	if (s->occupancy)
		ocs_occupancy_reset(s->occupancy);
	for (int i = 0; i < section->nnodes; i++) {
		bool may = !s->all->eligible || s->all->eligible[i];

		s->held[i] = 0;
		s->free += may;
		if (s->occupancy && !may)
			ocs_occupancy_node_set(s->occupancy, s->all->fabric,
					       section->first_node + i, false);
	}
	for (int i = 0; i < s->all->count; i++) {
		const struct ocs_ctl_obstacle *one = &s->all->list[i];

		for (int n = 0; s->there[i] && n < one->nnodes; n++)
			node_hold(s, one->nodes[n], 1);
		if (s->there[i] && one->sw >= 0 && s->occupancy)
			ocs_occupancy_switch_block(s->occupancy, s->all->fabric, one->sw, 0);
	}
}

static bool shape_fits(struct search *s)
{
	struct ocs_placement *placement;

	if (s->free < s->need)
		return false;
	if (!s->occupancy)
		return true;
	s->tests++;
	placement = ocs_place(s->placer, s->occupancy, &s->all->shape, 0, NULL);
	ocs_placement_destroy(placement);
	return placement;
}

static bool time_spent(const struct search *s)
{
	return s->tests > TESTS_MAX || ocs_now_ns() - s->began > SPEND_NS;
}

/* By end; what never ends comes last, and the larger of two first. */
static int by_end(const void *left, const void *right, void *list)
{
	const struct ocs_ctl_obstacle *a = (struct ocs_ctl_obstacle *)list + *(const int *)left;
	const struct ocs_ctl_obstacle *b = (struct ocs_ctl_obstacle *)list + *(const int *)right;

	if (a->end != b->end && (!a->end || !b->end))
		return a->end ? -1 : 1;
	if (a->end != b->end)
		return a->end < b->end ? -1 : 1;
	return b->nnodes - a->nnodes;
}

/* Whether there is room without the K of ORDER that CHOSEN names. */
static bool obstacles_without(struct search *s, const int *order, const int *chosen, int k)
{
	bool fit;

	for (int i = 0; i < k; i++)
		node_put(s, order[chosen[i]], false);
	fit = shape_fits(s);
	for (int i = 0; i < k; i++)
		node_put(s, order[chosen[i]], true);
	return fit;
}

/* Nodes that any K of the first LIMIT of ORDER can free at most. */
static long obstacles_most(const struct search *s, const int *order, int limit, int k)
{
	long best[64] = { 0 }, sum = 0;

	for (int i = 0; i < limit; i++) {
		long n = s->all->list[order[i]].nnodes;

		for (int j = 0; j < k; j++) {
			if (n > best[j]) {
				long t = best[j];

				best[j] = n;
				n = t;
			}
		}
	}
	for (int j = 0; j < k; j++)
		sum += best[j];
	return sum;
}

/* Sets of K whose last member is ORDER[LAST], in lexical order.  True if one is enough; it
 * is in CHOSEN then. */
static bool try_last(struct search *s, const int *order, int last, int k, int *chosen)
{
	int free = k - 1;

	if (last < free)
		return false;
	for (int i = 0; i < free; i++)
		chosen[i] = i;
	chosen[free] = last;
	for (;;) {
		int at = free - 1;

		if (obstacles_without(s, order, chosen, k))
			return true;
		if (time_spent(s))
			return false;
		while (at >= 0 && chosen[at] == last - (free - at))
			at--;
		if (at < 0)
			return false;
		chosen[at]++;
		for (int i = at + 1; i < free; i++)
			chosen[i] = chosen[i - 1] + 1;
	}
}

/* Whether fewer than MAX of the N in ORDER are enough: how many, in CHOSEN, 0 if not.  All
 * of them stand in the way before and after. */
static int obstacles_fewer(struct search *s, const int *order, int n, int max, int *chosen,
			   bool *complete)
{
	*complete = true;
	for (int k = 1; k < max && k <= 63; k++) {
		if (s->free + obstacles_most(s, order, n, k) < s->need)
			continue;
		for (int last = k - 1; last < n; last++) {
			if (try_last(s, order, last, k, chosen))
				return k;
			if (time_spent(s)) {
				*complete = false;
				return 0;
			}
		}
	}
	*complete = max <= 64;
	return 0;
}

/* Those that end by themselves and are needed: the earliest by which there is room, less
 * those that need not have ended; then fewer if fewer will do. */
static void choose_ends(struct search *s, struct ocs_ctl_answer *answer)
{
	int *order = ocs_calloc((size_t)s->all->count + 1, sizeof(*order));
	int *chosen = ocs_calloc((size_t)s->all->count + 65, sizeof(*chosen));
	int n = 0, low = 0, high, k;

	for (int i = 0; i < s->all->count; i++) {
		if (ends_by_itself(&s->all->list[i]))
			order[n++] = i;
	}
	qsort_r(order, (size_t)n, sizeof(*order), by_end, s->all->list);
	high = n;
	while (low < high) { /* fits when the first HIGH have ended */
		int middle = (low + high) / 2;

		for (int i = 0; i < n; i++)
			node_put(s, order[i], i >= middle);
		if (shape_fits(s))
			high = middle;
		else
			low = middle + 1;
	}
	for (int i = 0; i < n; i++)
		node_put(s, order[i], i >= high);
	for (int i = high - 1; i >= 0; i--) {
		node_put(s, order[i], true);
		if (!shape_fits(s))
			node_put(s, order[i], false);
	}
	answer->ends = ocs_calloc((size_t)n + 1, sizeof(*answer->ends));
	for (int i = 0; i < n; i++) {
		if (!s->there[order[i]])
			answer->ends[answer->nends++] = order[i];
		node_put(s, order[i], true);
	}
	k = obstacles_fewer(s, order, n, answer->nends, chosen, &answer->complete);
	if (k) {
		for (int i = 0; i < k; i++)
			answer->ends[i] = order[chosen[i]];
		answer->nends = k;
	}
	free(order);
	free(chosen);
}

/* The lasting ones that there must not be (with those that end by themselves there, or
 * not), none of which can be spared.  Leaves all of them in place.  The count, -1 if there
 * is no room even without all of them. */
static int choose_lasting(struct search *s, int *chosen)
{
	int n = 0;

	for (int i = 0; i < s->all->count; i++)
		s->there[i] &= ends_by_itself(&s->all->list[i]);
	occupancy_rebuild(s);
	if (!shape_fits(s)) {
		n = -1;
	} else {
		for (int i = 0; i < s->all->count; i++) {
			if (ends_by_itself(&s->all->list[i]))
				continue;
			s->there[i] = true;
			occupancy_rebuild(s);
			if (shape_fits(s))
				continue;
			s->there[i] = false;
			chosen[n++] = i;
		}
	}
	for (int i = 0; i < s->all->count; i++)
		s->there[i] |= !ends_by_itself(&s->all->list[i]);
	occupancy_rebuild(s);
	return n;
}

static void ends_there(struct search *s, bool there)
{
	for (int i = 0; i < s->all->count; i++) {
		if (ends_by_itself(&s->all->list[i]))
			s->there[i] = there;
	}
	occupancy_rebuild(s);
}

static void search_ask(struct search *s, struct ocs_ctl_answer *answer)
{
	size_t size = (size_t)s->all->count + 1;
	int n;

	answer->lasting = ocs_calloc(size, sizeof(int));
	answer->instead = ocs_calloc(size, sizeof(int));
	ends_there(s, false);
	answer->possible = shape_fits(s);
	if (!answer->possible) {
		answer->nlasting = choose_lasting(s, answer->lasting);
		answer->possible = answer->nlasting >= 0;
		if (!answer->possible)
			answer->nlasting = 0;
	}
	ends_there(s, true);
	answer->now = shape_fits(s);
	if (answer->now || !answer->possible)
		return;
	n = choose_lasting(s, answer->instead);
	answer->ninstead = n > 0 ? n : 0;
	for (int i = 0; i < answer->nlasting; i++)
		s->there[answer->lasting[i]] = false;
	occupancy_rebuild(s);
	choose_ends(s, answer);
}

void ocs_ctl_obstacles_ask(struct ocs_ctl_obstacles *all, struct ocs_ctl_answer *answer)
{
	struct search s = { .all = all, .need = all->servers, .began = ocs_now_ns() };
	bool cubes = all->shaped && all->section->ncubes > 0;

	memset(answer, 0, sizeof(*answer));
	if (cubes) {
		s.placer = ocs_placer_create(all->fabric, all->section);
		s.occupancy = ocs_occupancy_create(all->section);
		s.need = ocs_place_node_count(s.placer, &all->shape, NULL);
	}
	s.there = ocs_calloc((size_t)all->count + 1, sizeof(bool));
	s.held = ocs_calloc((size_t)all->section->nnodes + 1, sizeof(int));
	for (int i = 0; i < all->count; i++)
		s.there[i] = true;
	if (s.need >= 0)
		search_ask(&s, answer);
	free(s.there);
	free(s.held);
	ocs_occupancy_destroy(s.occupancy);
	ocs_placer_destroy(s.placer);
}

void ocs_ctl_answer_free(struct ocs_ctl_answer *answer)
{
	free(answer->ends);
	free(answer->lasting);
	free(answer->instead);
	memset(answer, 0, sizeof(*answer));
}
