/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Interfaces of a running job failed: a new plan that leaves them out and changes
 * few circuits.  A ring's edge that lost its circuit takes two free interfaces, or
 * those of circuits that no ring needs (the paper: swap ports, borrow a link of
 * other traffic), whose far ends are then joined to each other.  Where only rings
 * are left, the last ring of the lightest group gives up its circuits. */

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include <json-c/json.h>

#include "src/plan/internal.h"
#include "src/util/error.h"
#include "src/util/text.h"

enum { UNUSED = -1, DEAD = -2 };

struct need {
	uint64_t key;
	int a, b, group;
	bool met;
};

struct end {
	int server, port;
};

struct repair {
	struct ocs_plan *plan;
	int *tx, *rx;			 /* [server * degree + port]: circuit, UNUSED or DEAD; the
				 * same array for duplex */
	struct end *loose_tx, *loose_rx; /* freed by this repair */
	int nloose_tx, nloose_rx;
	int capacity, made, given_up, trees_given_up;
};

static uint64_t key_of(const struct ocs_plan *plan, int a, int b)
{
	if (!plan->directed && a > b)
		return (uint64_t)b << 32 | (uint32_t)a;
	return (uint64_t)a << 32 | (uint32_t)b;
}

static int need_compare(const void *x, const void *y)
{
	const struct need *a = x, *b = y;

	if (a->key != b->key)
		return a->key > b->key ? 1 : -1;
	return a->group - b->group;
}

/* Every edge of every ring, sorted. */
static struct need *needs_make(const struct ocs_plan *plan, size_t *count)
{
	struct need *needs;
	size_t n = 0;

	for (int g = 0; g < plan->ngroups; g++)
		n += (size_t)plan->groups[g].nrings * plan->groups[g].nmembers;
	needs = ocs_calloc(n + 1, sizeof(*needs));
	n = 0;
	for (int g = 0; g < plan->ngroups; g++) {
		const struct ocs_plan_group *group = &plan->groups[g];
		int edges = group->nmembers == 2 && !plan->directed ? 1 : group->nmembers;

		for (int r = 0; r < group->nrings; r++)
			for (int i = 0; i < edges; i++) {
				int a = group->members[(long)i * group->steps[r] % group->nmembers];
				int b = group->members[(long)(i + 1) * group->steps[r] %
						       group->nmembers];

				needs[n++] = (struct need){ key_of(plan, a, b), a, b, g, false };
			}
	}
	qsort(needs, n, sizeof(*needs), need_compare);
	*count = n;
	return needs;
}

/* Says of every circuit whose ring it serves. */
static void circuits_claim(struct ocs_plan *plan, struct need *needs, size_t count)
{
	for (int i = 0; i < plan->ncircuits; i++) {
		struct ocs_plan_circuit *c = &plan->circuits[i];
		uint64_t key;
		size_t low = 0, high = count;

		if (c->a < 0)
			continue;
		key = key_of(plan, c->a, c->b);
		while (low < high) {
			size_t middle = (low + high) / 2;

			if (needs[middle].key < key)
				low = middle + 1;
			else
				high = middle;
		}
		while (low < count && needs[low].key == key && needs[low].met)
			low++;
		c->group = -1;
		if (low < count && needs[low].key == key) {
			needs[low].met = true;
			c->group = needs[low].group;
		}
	}
}

static int *port_at(const struct repair *r, int *ports, int server, int port)
{
	return &ports[(size_t)server * r->plan->degree + port];
}

static void loose_add(struct end *list, int *count, int server, int port)
{
	list[(*count)++] = (struct end){ server, port };
}

/* Takes a circuit out; living ends become loose. */
static void circuit_remove(struct repair *r, int i)
{
	struct ocs_plan_circuit *c = &r->plan->circuits[i];
	int *tx = port_at(r, r->tx, c->a, c->a_port), *rx = port_at(r, r->rx, c->b, c->b_port);

	if (*tx != DEAD) {
		*tx = UNUSED;
		loose_add(r->loose_tx, &r->nloose_tx, c->a, c->a_port);
	}
	if (*rx != DEAD) {
		*rx = UNUSED;
		/* duplex ends are all alike */
		if (r->rx == r->tx)
			loose_add(r->loose_tx, &r->nloose_tx, c->b, c->b_port);
		else
			loose_add(r->loose_rx, &r->nloose_rx, c->b, c->b_port);
	}
	c->a = -1;
}

static void circuit_make(struct repair *r, int a, int a_port, int b, int b_port, int group)
{
	struct ocs_plan *plan = r->plan;

	if (plan->ncircuits == r->capacity) {
		r->capacity = 2 * r->capacity + 16;
		plan->circuits = ocs_realloc(plan->circuits, r->capacity * sizeof(*plan->circuits));
	}
	*port_at(r, r->tx, a, a_port) = *port_at(r, r->rx, b, b_port) = plan->ncircuits;
	plan->circuits[plan->ncircuits++] = (struct ocs_plan_circuit){
		a, a_port, b, b_port, plan->any_port ? 0 : a_port, group
	};
	r->made++;
}

/* What it costs to use a port: circuits to break, or more than any if it cannot be. */
static int port_cost(const struct repair *r, int state)
{
	if (state == UNUSED)
		return 0;
	if (state == DEAD || r->plan->circuits[state].group >= 0)
		return INT_MAX;
	return 1;
}

/* A circuit for a ring's edge at the least cost; false if there is none. */
static bool edge_place(struct repair *r, int a, int b, int group)
{
	int degree = r->plan->degree, best = INT_MAX, a_best = 0, b_best = 0;

	for (int p = 0; p < degree; p++) {
		int a_cost = port_cost(r, *port_at(r, r->tx, a, p));

		for (int q = r->plan->any_port ? 0 : p; a_cost != INT_MAX && q < degree; q++) {
			int b_cost = port_cost(r, *port_at(r, r->rx, b, q));

			if (b_cost != INT_MAX && a_cost + b_cost < best) {
				best = a_cost + b_cost;
				a_best = p;
				b_best = q;
			}
			if (!r->plan->any_port)
				break;
		}
	}
	if (best == INT_MAX)
		return false;
	if (*port_at(r, r->tx, a, a_best) >= 0)
		circuit_remove(r, *port_at(r, r->tx, a, a_best));
	if (*port_at(r, r->rx, b, b_best) >= 0)
		circuit_remove(r, *port_at(r, r->rx, b, b_best));
	circuit_make(r, a, a_best, b, b_best, group);
	return true;
}

/* The lightest group that has a ring past server A or B gives up its last one. */
static bool ring_give_up(struct repair *r, int a, int b)
{
	struct ocs_plan_group *least = NULL;

	for (int g = 0; g < r->plan->ngroups; g++) {
		struct ocs_plan_group *group = &r->plan->groups[g];
		bool here = false;

		for (int i = 0; i < group->nmembers; i++)
			here |= group->members[i] == a || group->members[i] == b;
		if (!here || !group->nrings)
			continue;
		/* one of several rings rather than an only one */
		if (!least || (group->nrings > 1) > (least->nrings > 1) ||
		    ((group->nrings > 1) == (least->nrings > 1) && group->bytes < least->bytes))
			least = group;
	}
	if (!least)
		return false;
	least->nrings--;
	r->given_up++;
	return true;
}

/* Gives every ring's edge a circuit, or gives up rings until all that remain have. */
static void rings_mend(struct repair *r)
{
	bool again = true;

	while (again) {
		size_t count;
		struct need *needs = needs_make(r->plan, &count);

		again = false;
		circuits_claim(r->plan, needs, count);
		for (size_t i = 0; i < count && !again; i++)
			if (!needs[i].met && !edge_place(r, needs[i].a, needs[i].b, needs[i].group))
				again = ring_give_up(r, needs[i].a, needs[i].b);
		free(needs);
	}
}

/* Joins what came loose: another use of the same switch. */
static void loose_join(struct repair *r)
{
	bool duplex = r->rx == r->tx;
	struct end *others = duplex ? r->loose_tx : r->loose_rx;
	int nothers = duplex ? r->nloose_tx : r->nloose_rx;

	for (int i = 0; i < r->nloose_tx; i++)
		for (int j = duplex ? i + 1 : 0; j < nothers; j++) {
			struct end a = r->loose_tx[i], b = others[j];

			if (a.server == b.server || (!r->plan->any_port && a.port != b.port) ||
			    *port_at(r, r->tx, a.server, a.port) != UNUSED ||
			    *port_at(r, r->rx, b.server, b.port) != UNUSED)
				continue;
			circuit_make(r, a.server, a.port, b.server, b.port, -1);
			break;
		}
}

/* A copy of PLAN without routes. */
static struct ocs_plan *plan_copy(const struct ocs_plan *plan, struct ocs_error *err)
{
	struct ocs_plan bare = *plan, *made;
	struct json_object *json;

	bare.routes = NULL;
	bare.nroutes = 0;
	json = ocs_plan_to_json(&bare);
	made = ocs_plan_from_json(json, err);
	json_object_put(json);
	if (made && plan->mp) {
		size_t count = (size_t)plan->servers * plan->servers;

		made->mp = ocs_calloc(count, sizeof(*made->mp));
		memcpy(made->mp, plan->mp, count * sizeof(*made->mp));
	}
	return made;
}

static void ports_fill(struct repair *r, const struct ocs_plan_fault *faults, int nfaults)
{
	struct ocs_plan *plan = r->plan;
	size_t count = (size_t)plan->servers * plan->degree;

	for (size_t i = 0; i < count; i++)
		r->tx[i] = r->rx[i] = UNUSED;
	for (int i = 0; i < plan->ncircuits; i++) {
		*port_at(r, r->tx, plan->circuits[i].a, plan->circuits[i].a_port) = i;
		*port_at(r, r->rx, plan->circuits[i].b, plan->circuits[i].b_port) = i;
	}
	for (int f = 0; f < nfaults; f++) {
		int *tx = port_at(r, r->tx, faults[f].server, faults[f].port);
		int *rx = port_at(r, r->rx, faults[f].server, faults[f].port);
		int first = *tx, second = r->rx == r->tx ? UNUSED : *rx;

		*tx = *rx = DEAD;
		if (first >= 0)
			circuit_remove(r, first);
		if (second >= 0 && plan->circuits[second].a >= 0)
			circuit_remove(r, second);
	}
}

static int key_compare(const void *x, const void *y)
{
	uint64_t a = *(const uint64_t *)x, b = *(const uint64_t *)y;

	return (a > b) - (a < b);
}

/* Whether TREE has circuits of its own among those no ring and no tree before it
 * needs: HAVE, sorted; those it takes become 0. */
static bool tree_take(const struct ocs_plan *plan, const struct ocs_plan_group *group,
		      const struct ocs_plan_tree *tree, uint64_t *have, size_t count)
{
	uint64_t *taken = ocs_calloc(count + 1, sizeof(*taken));
	bool whole = true;

	memcpy(taken, have, count * sizeof(*taken));
	for (int i = 0; i < 4 * group->nmembers && whole; i++) {
		int child = group->members[i / 4], parent = tree->parents[i / 2 % 2][i / 4];
		uint64_t key;
		size_t at = 0, high = count;

		if (parent < 0 || (i % 2 && !plan->directed))
			continue;
		key = i % 2 ? key_of(plan, parent, child) : key_of(plan, child, parent);
		while (at < high) {
			size_t middle = (at + high) / 2;

			if (have[middle] < key)
				at = middle + 1;
			else
				high = middle;
		}
		while (at < count && have[at] == key && !taken[at])
			at++;
		whole = at < count && have[at] == key;
		if (whole)
			taken[at] = 0;
	}
	if (whole) {
		size_t kept = 0;

		for (size_t i = 0; i < count; i++)
			if (taken[i])
				have[kept++] = have[i];
		memset(have + kept, 0xff, (count - kept) * sizeof(*have));
	}
	free(taken);
	return whole;
}

/* Trees that lost a circuit are given up; what they have left stays. */
static void trees_prune(struct repair *r)
{
	struct ocs_plan *plan = r->plan;
	uint64_t *have = ocs_calloc(plan->ncircuits + 1, sizeof(*have));
	size_t count = 0;

	for (int i = 0; i < plan->ncircuits; i++)
		if (plan->circuits[i].group < 0)
			have[count++] = key_of(plan, plan->circuits[i].a, plan->circuits[i].b);
	qsort(have, count, sizeof(*have), key_compare);
	for (int g = 0; g < plan->ngroups; g++) {
		struct ocs_plan_group *group = &plan->groups[g];
		int kept = 0;

		for (int t = 0; t < group->ntrees; t++) {
			if (tree_take(plan, group, &group->trees[t], have, count)) {
				group->trees[kept++] = group->trees[t];
				continue;
			}
			free(group->trees[t].parents[0]);
			free(group->trees[t].parents[1]);
			r->trees_given_up++;
		}
		group->ntrees = kept;
	}
	free(have);
}

static void circuits_compact(struct ocs_plan *plan)
{
	int kept = 0;

	for (int i = 0; i < plan->ncircuits; i++)
		if (plan->circuits[i].a >= 0)
			plan->circuits[kept++] = plan->circuits[i];
	plan->ncircuits = kept;
}

static void repair_say(const struct repair *r, int broken)
{
	struct ocs_text text = { 0 };

	ocs_text_add(&text, "%s; repaired: %d circuits broken, %d made",
		     r->plan->assignment ? r->plan->assignment : "", broken, r->made);
	if (r->given_up)
		ocs_text_add(&text, ", %d rings given up", r->given_up);
	if (r->trees_given_up)
		ocs_text_add(&text, ", %d double binary trees given up", r->trees_given_up);
	free(r->plan->assignment);
	r->plan->assignment = ocs_text_take(&text);
}

static void plan_mend(struct ocs_plan *plan, const struct ocs_plan_fault *faults, int nfaults)
{
	size_t ports = (size_t)plan->servers * plan->degree;
	struct repair r = { .plan = plan, .capacity = plan->ncircuits };
	int before = plan->ncircuits;

	r.tx = ocs_calloc(ports, sizeof(int));
	r.rx = plan->directed ? ocs_calloc(ports, sizeof(int)) : r.tx;
	/* an end comes loose when its circuit is removed, and no circuit twice */
	r.loose_tx = ocs_calloc(4 * ports + 4, sizeof(*r.loose_tx));
	r.loose_rx = ocs_calloc(4 * ports + 4, sizeof(*r.loose_rx));
	ports_fill(&r, faults, nfaults);
	rings_mend(&r);
	loose_join(&r);
	circuits_compact(plan);
	trees_prune(&r);
	repair_say(&r, before + r.made - plan->ncircuits);
	free(r.loose_rx);
	free(r.loose_tx);
	if (plan->directed)
		free(r.rx);
	free(r.tx);
}

struct ocs_plan *ocs_plan_repair(const struct ocs_plan *plan, const struct ocs_plan_fault *faults,
				 int nfaults, struct ocs_error *err)
{
	struct ocs_plan *made;

	for (int f = 0; f < nfaults; f++)
		if (faults[f].server < 0 || faults[f].server >= plan->servers ||
		    faults[f].port < 0 || faults[f].port >= plan->degree) {
			ocs_error_set(err, OCS_USAGE, "interface %d of server %d does not exist",
				      faults[f].port, faults[f].server);
			return NULL;
		}
	made = plan_copy(plan, err);
	if (!made)
		return NULL;
	made->revision++;
	plan_mend(made, faults, nfaults);
	if (made->servers > 1 && ocs_plan_measure(made, plan->routes != NULL, true) < 0) {
		ocs_plan_destroy(made);
		ocs_error_set(err, OCS_NEVER,
			      "without %d failed interfaces no few changes keep all "
			      "%d servers joined: make a new plan",
			      nfaults, plan->servers);
		return NULL;
	}
	return made;
}
