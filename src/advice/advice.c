/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/advice/advice.h"

#include <stdlib.h>
#include <string.h>

#include "src/util/error.h"
#include "src/util/text.h"

#define ORDERS_MAX 3 /* jobs moved at once of which every order is tried */

struct search {
	const struct ocs_advice_request *r;
	int *cheap; /* the jobs, the cheapest first */
	int most_moves;
	long work, most;

	/* a set being tried: items are its jobs and, last, the waiting shape */
	struct ocs_occupancy *occupancy;
	int *set, nset;
	struct ocs_placement **placed; /* per item */
	int *order;		       /* per item: placed after so many others */

	/* the best one so far */
	int *best, nbest; /* -1: none */
	double best_cost;
	struct ocs_placement **best_placed;
	int *best_order;
};

static void xpus_hold(const struct search *b, const struct ocs_placement *p, bool held)
{
	int i;

	for (i = 0; i < p->nnodes; i++)
		ocs_occupancy_node_set(b->occupancy, b->r->fabric, p->nodes[i], !held);
}

/* Nodes that are down stay so, whoever leaves them. */
static bool node_free(const struct search *b, const struct ocs_occupancy *o, int node)
{
	return ocs_occupancy_xpu_free(o, b->r->fabric->nodes[node].cube,
				      b->r->fabric->nodes[node].origin);
}

static void job_release(const struct search *b, int job)
{
	const struct ocs_placement *p = b->r->jobs[job].placement;
	int i;

	for (i = 0; i < p->nnodes; i++) {
		if (node_free(b, b->r->base, p->nodes[i]))
			ocs_occupancy_node_set(b->occupancy, b->r->fabric, p->nodes[i], true);
	}
}

/* The machine as it is, without the jobs of the set. */
static void machine_occupy(struct search *b)
{
	int i;

	ocs_occupancy_copy(b->occupancy, b->r->base);
	for (i = 0; i < b->r->njobs; i++)
		xpus_hold(b, b->r->jobs[i].placement, true);
	for (i = 0; i < b->nset; i++)
		job_release(b, b->set[i]);
}

static const struct ocs_shape *item_shape(const struct search *b, int item)
{
	return item == b->nset ? b->r->shape : &b->r->jobs[b->set[item]].placement->shape;
}

static struct ocs_placement *item_place(struct search *b, int item)
{
	const int nodes = item == b->nset ? 0 : b->r->jobs[b->set[item]].placement->nnodes;
	struct ocs_placement *placement;
	struct ocs_error why;

	b->work++;
	placement = b->r->place(b->r->arg, b->occupancy, item_shape(b, item), nodes, &why);
	/* cppcheck-suppress returnDanglingLifetime ; WHY is filled, not kept */
	return placement;
}

/* Places the items that are left, in every order.  One that finds no room before the
 * others were placed finds none after them. */
static bool orders_try(struct search *b, int left)
{
	int item;

	if (!left)
		return true;
	for (item = b->nset; item >= 0 && b->work < b->most; item--) {
		if (b->placed[item])
			continue;
		b->placed[item] = item_place(b, item);
		if (!b->placed[item])
			return false;
		b->order[item] = b->nset + 1 - left;
		xpus_hold(b, b->placed[item], true);
		if (orders_try(b, left - 1))
			return true;
		xpus_hold(b, b->placed[item], false);
		ocs_placement_destroy(b->placed[item]);
		b->placed[item] = NULL;
	}
	return false;
}

static void placements_drop(struct search *b)
{
	int item;

	for (item = 0; item <= b->nset; item++) {
		ocs_placement_destroy(b->placed[item]);
		b->placed[item] = NULL;
	}
}

/* The largest first; FIRST (or -1) before all others. */
static bool largest_first(struct search *b, int first)
{
	int left;

	machine_occupy(b);
	for (left = b->nset + 1; left; left--) {
		int item, next = -1;

		for (item = 0; item <= b->nset; item++) {
			if (!b->placed[item] &&
			    (next < 0 || item_shape(b, item)->xpus > item_shape(b, next)->xpus))
				next = item;
		}
		if (first >= 0 && left == b->nset + 1)
			next = first;
		b->placed[next] = item_place(b, next);
		if (!b->placed[next]) {
			placements_drop(b);
			return false;
		}
		b->order[next] = b->nset + 1 - left;
		xpus_hold(b, b->placed[next], true);
	}
	return true;
}

/* Whether the set makes room.  The placements are left in b->placed then. */
static bool set_feasible(struct search *b)
{
	if (b->nset <= ORDERS_MAX) {
		machine_occupy(b);
		return orders_try(b, b->nset + 1);
	}
	return largest_first(b, b->nset) || largest_first(b, -1);
}

static double set_cost(const struct search *b)
{
	double cost = 0;
	int i;

	for (i = 0; i < b->nset; i++)
		cost += b->r->jobs[b->set[i]].cost;
	return cost;
}

static bool set_better(const struct search *b)
{
	return b->nbest < 0 || b->nset < b->nbest ||
	       (b->nset == b->nbest && set_cost(b) < b->best_cost);
}

/* Keeps the set, of which set_feasible() was true. */
static void set_keep(struct search *b)
{
	int i;

	for (i = 0; i <= b->nbest; i++)
		ocs_placement_destroy(b->best_placed[i]);
	for (i = 0; i <= b->nset; i++) {
		b->best_placed[i] = b->placed[i];
		b->best_order[i] = b->order[i];
		b->placed[i] = NULL;
	}
	memcpy(b->best, b->set, (size_t)b->nset * sizeof(int));
	b->nbest = b->nset;
	b->best_cost = set_cost(b);
}

static void set_remove(struct search *b, int at)
{
	memmove(b->set + at, b->set + at + 1, (size_t)(--b->nset - at) * sizeof(int));
}

/* Leaves out of a feasible set what it does not need, the dearest first. */
static void set_thin(struct search *b)
{
	int tried = 0;

	while (tried < b->nset && b->work < b->most) {
		int at = b->nset - 1 - tried, job = b->set[at];

		set_remove(b, at);
		if (b->nset && set_feasible(b)) {
			if (set_better(b))
				set_keep(b);
			placements_drop(b);
			continue;
		}
		memmove(b->set + at + 1, b->set + at, (size_t)(b->nset++ - at) * sizeof(int));
		b->set[at] = job;
		tried++;
	}
}

static bool placements_overlap(const struct ocs_placement *p, const struct ocs_placement *q)
{
	int i, j;

	for (i = j = 0; i < p->nnodes && j < q->nnodes;) {
		if (p->nodes[i] == q->nodes[j])
			return true;
		if (p->nodes[i] < q->nodes[j])
			i++;
		else
			j++;
	}
	return false;
}

/* With the N cheapest jobs gone, those that the shape would lie on. */
static void set_guess(struct search *b, int n)
{
	struct ocs_placement *p;
	int i;

	memcpy(b->set, b->cheap, (size_t)n * sizeof(int));
	b->nset = n;
	machine_occupy(b);
	p = item_place(b, n);
	if (!p)
		return;
	for (i = b->nset = 0; i < n; i++) {
		if (placements_overlap(p, b->r->jobs[b->cheap[i]].placement))
			b->set[b->nset++] = b->cheap[i];
	}
	ocs_placement_destroy(p);
	if (b->nset > b->most_moves || !set_better(b) || !set_feasible(b))
		return;
	set_keep(b);
	set_thin(b);
}

/* All sets of COUNT jobs, of which CHOSEN are chosen and the others come from FROM on.
 * False: the work is done. */
static bool sets_try(struct search *b, int count, int chosen, int from)
{
	int i, k;

	if (chosen == count) {
		b->nset = count;
		if (set_feasible(b))
			set_keep(b);
		return b->work < b->most;
	}
	for (i = from; i + count - chosen <= b->r->njobs; i++) {
		double least = 0;

		for (k = 0; k < chosen; k++)
			least += b->r->jobs[b->set[k]].cost;
		/* jobs come by cost: nothing cheaper follows */
		least += b->r->jobs[b->cheap[i]].cost * (count - chosen);
		if (b->nbest == count && least >= b->best_cost)
			return true;
		b->set[chosen] = b->cheap[i];
		if (!sets_try(b, count, chosen + 1, i + 1))
			return false;
	}
	return true;
}

/* Fills the best set.  Returns whether all that could be better were tried. */
static bool best_search(struct search *b)
{
	bool complete = true;
	int n;

	/* a bound first, so that the full search knows when to stop */
	for (n = 1; n <= b->r->njobs && b->work < b->most / 2; n++)
		set_guess(b, n);
	for (n = 1; n <= b->most_moves && (b->nbest < 0 || n <= b->nbest) && complete; n++)
		complete = sets_try(b, n, 0, 0);
	/* of larger sets not every order is tried */
	return complete && b->nbest <= ORDERS_MAX;
}

static int nodes_free(const struct search *b)
{
	const struct ocs_section *s = b->r->base->section;
	int i, n = 0;

	for (i = 0; i < s->nnodes; i++)
		n += node_free(b, b->occupancy, s->first_node + i);
	return n;
}

/* Cheap reasons why no set of jobs would do.  0 or -1. */
static int need_hopeless(struct search *b, struct ocs_error *err)
{
	struct ocs_placement *p = b->r->place(b->r->arg, b->r->base, b->r->shape, 0, err);
	int have = nodes_free(b), need;
	char text[OCS_SHAPE_TEXT];

	if (!p)
		return err->code == OCS_NOT_NOW ?
			       ocs_error_prefix(err, "not even with all shaped jobs gone") :
			       -1;
	need = p->nnodes;
	ocs_placement_destroy(p);
	if (have >= need)
		return 0;
	return ocs_error_set(err, OCS_NOT_NOW,
			     "%s needs %d nodes and %d are free: restarting jobs "
			     "elsewhere makes no more of them",
			     ocs_shape_format(b->r->shape, text), need, have);
}

static int by_cost(const struct search *b, int i, int j)
{
	double d = b->r->jobs[i].cost - b->r->jobs[j].cost;

	return d < 0 ? -1 : d > 0 ? 1 : i - j;
}

static void jobs_sort(struct search *b)
{
	int i, j;

	for (i = 0; i < b->r->njobs; i++) {
		for (j = i; j && by_cost(b, b->cheap[j - 1], i) > 0; j--)
			b->cheap[j] = b->cheap[j - 1];
		b->cheap[j] = i;
	}
}

/* Proves the best set: the waiting shape and the moved jobs side by side, on what is
 * free without those jobs. */
static int answer_prove(struct search *b, struct ocs_error *err)
{
	int item;

	b->nset = b->nbest;
	memcpy(b->set, b->best, (size_t)b->nset * sizeof(int));
	machine_occupy(b);
	for (item = b->nbest; item >= 0; item--) {
		if (ocs_placement_verify(b->r->fabric, b->occupancy, b->best_placed[item], err))
			return ocs_error_prefix(err, "a placement found is not valid");
		xpus_hold(b, b->best_placed[item], true);
	}
	return 0;
}

static struct ocs_advice *answer_make(struct search *b, bool complete)
{
	struct ocs_advice *a = ocs_calloc(1, sizeof(*a));
	int i, j;

	a->moves = ocs_calloc((size_t)b->nbest + 1, sizeof(*a->moves));
	for (i = 0; i < b->nbest; i++) {
		for (j = i; j && a->moves[j - 1].order > b->best_order[i]; j--)
			a->moves[j] = a->moves[j - 1];
		a->moves[j] =
			(struct ocs_advice_move){ b->best[i], b->best_order[i], b->best_placed[i] };
	}
	a->placement = b->best_placed[b->nbest];
	a->order = b->best_order[b->nbest];
	a->nmoves = b->nbest;
	a->cost = b->best_cost;
	a->complete = complete;
	a->work = b->work;
	b->nbest = -1;
	return a;
}

struct ocs_placement *ocs_advice_place(void *arg, const struct ocs_occupancy *occupancy,
				       const struct ocs_shape *shape, int node_count,
				       struct ocs_error *err)
{
	return ocs_place(arg, occupancy, shape, node_count, err);
}

struct ocs_advice *ocs_advise(const struct ocs_advice_request *r, struct ocs_error *err)
{
	size_t room = (size_t)r->njobs + 1;
	struct search b = {
		.r = r,
		.most = r->work ? r->work : OCS_ADVICE_WORK,
		.nbest = -1,
		.most_moves = r->most_moves && r->most_moves < r->njobs ? r->most_moves : r->njobs,
	};
	struct ocs_advice *advice = NULL;
	char text[OCS_SHAPE_TEXT];
	bool complete = true;
	int i;

	b.cheap = ocs_calloc(room, sizeof(int));
	b.set = ocs_calloc(room, sizeof(int));
	b.best = ocs_calloc(room, sizeof(int));
	b.order = ocs_calloc(room, sizeof(int));
	b.best_order = ocs_calloc(room, sizeof(int));
	b.placed = ocs_calloc(room, sizeof(struct ocs_placement *));
	b.best_placed = ocs_calloc(room, sizeof(struct ocs_placement *));
	b.occupancy = ocs_occupancy_create(r->base->section);
	jobs_sort(&b);
	machine_occupy(&b);
	if (set_feasible(&b))
		set_keep(&b);
	else if (need_hopeless(&b, err))
		goto out;
	else
		complete = best_search(&b);
	if (b.nbest < 0)
		ocs_error_set(err, OCS_NOT_NOW,
			      "%s: no jobs were found that, restarted elsewhere, would "
			      "let it in (%ld placements tried)",
			      ocs_shape_format(r->shape, text), b.work);
	else if (!answer_prove(&b, err))
		advice = answer_make(&b, complete);
out:
	placements_drop(&b);
	for (i = 0; i <= b.nbest; i++)
		ocs_placement_destroy(b.best_placed[i]);
	ocs_occupancy_destroy(b.occupancy);
	free(b.cheap);
	free(b.set);
	free(b.best);
	free(b.order);
	free(b.best_order);
	free(b.placed);
	free(b.best_placed);
	return advice;
}

void ocs_advice_destroy(struct ocs_advice *advice)
{
	int i;

	if (!advice)
		return;
	for (i = 0; i < advice->nmoves; i++)
		ocs_placement_destroy(advice->moves[i].placement);
	free(advice->moves);
	ocs_placement_destroy(advice->placement);
	free(advice);
}
