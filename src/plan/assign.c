/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Gives the edges of rings to interfaces.  Where interface i reaches switch i
 * only, every switch makes a matching (duplex) or a partial permutation
 * (directed), so this is an edge colouring.  A duplex ring of even length
 * alternates between two planes.  One of odd length cannot: it alternates along
 * all its edges but one, and that one closes on a third plane. */

#include <stdlib.h>
#include <string.h>

#include "src/plan/internal.h"
#include "src/util/text.h"

#define FILL_STARTS 64 /* places where an unclosed ring is tried to begin */

struct assign {
	struct ocs_plan_ports ports;
	struct ocs_plan *plan;
	uint64_t *tx, *rx; /* those of ports */
	int open_rings;	   /* rings made only in part */
	int open_edges;	   /* circuits of theirs */
	int closing;	   /* odd rings closed on a third plane */
	int mixed;	   /* rings on more switches than they need */
	int chords;	   /* circuits between opposite servers */
	int group;	   /* the one whose turn it is */
};

static int bit_lowest(uint64_t mask)
{
	return __builtin_ctzll(mask);
}

void ocs_plan_circuit_add(struct ocs_plan_ports *ports, int a, int a_port, int b, int b_port,
			  int group)
{
	struct ocs_plan *plan = ports->plan;

	if (plan->ncircuits == ports->capacity) {
		ports->capacity = ports->capacity ? 2 * ports->capacity : 64;
		plan->circuits =
			ocs_realloc(plan->circuits, ports->capacity * sizeof(*plan->circuits));
	}
	plan->circuits[plan->ncircuits++] = (struct ocs_plan_circuit){
		.a = a,
		.a_port = a_port,
		.b = b,
		.b_port = b_port,
		.ocs = plan->any_port ? 0 : a_port,
		.group = group,
	};
	ports->tx[a] &= ~(UINT64_C(1) << a_port);
	ports->rx[b] &= ~(UINT64_C(1) << b_port);
	ports->crossed += a_port != b_port;
}

static void circuit_add(struct assign *as, int a, int a_port, int b, int b_port)
{
	ocs_plan_circuit_add(&as->ports, a, a_port, b, b_port, as->group);
}

static int ring_at(const struct ocs_plan_group *group, int step, int i)
{
	return group->members[((long)i * step) % group->nmembers];
}

/* Interfaces free at every member. */
static uint64_t common_free(const struct assign *as, const struct ocs_plan_group *group)
{
	uint64_t mask = ~UINT64_C(0);

	for (int i = 0; i < group->nmembers; i++)
		mask &= as->tx[group->members[i]] & as->rx[group->members[i]];
	return mask;
}

/* Every edge on a switch of its own choice: transmitters and receivers are apart, so
 * edges beside each other are free to choose. */
static bool ring_directed_mixed(struct assign *as, const struct ocs_plan_group *group, int step)
{
	for (int i = 0; i < group->nmembers; i++)
		if (!(as->tx[ring_at(group, step, i)] & as->rx[ring_at(group, step, i + 1)]))
			return false;
	for (int i = 0; i < group->nmembers; i++) {
		int a = ring_at(group, step, i), b = ring_at(group, step, i + 1);
		int plane = bit_lowest(as->tx[a] & as->rx[b]);

		circuit_add(as, a, plane, b, plane);
	}
	as->mixed++;
	return true;
}

static bool ring_directed(struct assign *as, const struct ocs_plan_group *group, int step)
{
	uint64_t planes = common_free(as, group);

	if (planes) {
		for (int i = 0; i < group->nmembers; i++)
			circuit_add(as, ring_at(group, step, i), bit_lowest(planes),
				    ring_at(group, step, i + 1), bit_lowest(planes));
		return true;
	}
	if (!as->plan->any_port)
		return ring_directed_mixed(as, group, step);
	for (int i = 0; i < group->nmembers; i++)
		if (!as->tx[group->members[i]] || !as->rx[group->members[i]])
			return false;
	for (int i = 0; i < group->nmembers; i++) {
		int a = ring_at(group, step, i), b = ring_at(group, step, i + 1);

		circuit_add(as, a, bit_lowest(as->tx[a]), b, bit_lowest(as->rx[b]));
	}
	return true;
}

/* Two members: one circuit is the whole ring. */
static bool pair_duplex(struct assign *as, const struct ocs_plan_group *group)
{
	int a = group->members[0], b = group->members[1];
	uint64_t planes = as->tx[a] & as->tx[b];

	if (planes)
		circuit_add(as, a, bit_lowest(planes), b, bit_lowest(planes));
	else if (as->plan->any_port && as->tx[a] && as->tx[b])
		circuit_add(as, a, bit_lowest(as->tx[a]), b, bit_lowest(as->tx[b]));
	else
		return false;
	return true;
}

/* Where a ring of odd length may close: the edge CUT, CUT + 1 and a plane outside
 * PLANES that is free at both ends; the last plane, to keep the first ones whole. */
static int closing_find(const struct assign *as, const struct ocs_plan_group *group, int step,
			uint64_t planes, int *cut)
{
	for (*cut = 0; *cut < group->nmembers; (*cut)++) {
		int a = ring_at(group, step, *cut), b = ring_at(group, step, *cut + 1);
		uint64_t spare = as->tx[a] & as->tx[b] & ~planes;

		if (spare)
			return 63 - __builtin_clzll(spare);
	}
	return -1;
}

static bool ring_any_port(struct assign *as, const struct ocs_plan_group *group, int step)
{
	for (int i = 0; i < group->nmembers; i++)
		if (__builtin_popcountll(as->tx[group->members[i]]) < 2)
			return false;
	for (int i = 0; i < group->nmembers; i++) {
		int a = ring_at(group, step, i), b = ring_at(group, step, i + 1);

		circuit_add(as, a, bit_lowest(as->tx[a]), b, bit_lowest(as->tx[b]));
	}
	return true;
}

/* Planes for the edges of a ring, of which those beside each other differ, where
 * servers have different interfaces free (some failed).  LEFT[i]: what edge i can
 * have when edge 0 has FIRST and the edges between choose well. */
static bool colours_find(const struct assign *as, const struct ocs_plan_group *group, int step,
			 uint64_t first, uint64_t *left)
{
	int k = group->nmembers;

	left[0] = first;
	for (int i = 1; i < k; i++) {
		uint64_t before = left[i - 1];

		left[i] = as->tx[ring_at(group, step, i)] & as->tx[ring_at(group, step, i + 1)];
		if (!(before & (before - 1))) /* only one: not that */
			left[i] &= ~before;
		if (i == k - 1)
			left[i] &= ~first;
		if (!left[i])
			return false;
	}
	return true;
}

static bool ring_mixed(struct assign *as, const struct ocs_plan_group *group, int step)
{
	int k = group->nmembers;
	uint64_t *left = ocs_calloc(k, sizeof(*left));
	uint64_t firsts = as->tx[ring_at(group, step, 0)] & as->tx[ring_at(group, step, 1)];
	bool found = false;

	for (; firsts && !found; firsts &= firsts - 1)
		found = colours_find(as, group, step, firsts & -firsts, left);
	/* backwards, so that every edge leaves its follower what that chose */
	for (int i = k - 1; found && i >= 0; i--) {
		int a = ring_at(group, step, i), b = ring_at(group, step, i + 1);
		int plane = bit_lowest(left[i]);

		if (i > 0)
			left[i - 1] &= ~(UINT64_C(1) << plane);
		circuit_add(as, a, plane, b, plane);
	}
	as->mixed += found;
	free(left);
	return found;
}

static bool ring_duplex(struct assign *as, const struct ocs_plan_group *group, int step)
{
	uint64_t planes = common_free(as, group);
	int k = group->nmembers, first, second, third = -1, cut = k - 1;

	if (k == 2)
		return pair_duplex(as, group);
	if (__builtin_popcountll(planes) >= 2) {
		first = bit_lowest(planes);
		planes &= planes - 1;
		second = bit_lowest(planes);
		planes = UINT64_C(1) << first | UINT64_C(1) << second;
		if (k % 2 == 0)
			third = second;
		else
			third = closing_find(as, group, step, planes, &cut);
	}
	if (third < 0)
		return as->plan->any_port ? ring_any_port(as, group, step) :
					    ring_mixed(as, group, step);
	/* from the far end of the closing edge round to its near end */
	for (int i = 0; i < k - 1; i++)
		circuit_add(as, ring_at(group, step, cut + 1 + i), i % 2 ? second : first,
			    ring_at(group, step, cut + 2 + i), i % 2 ? second : first);
	circuit_add(as, ring_at(group, step, cut), third, ring_at(group, step, cut + 1), third);
	as->closing += third != second;
	return true;
}

/* Walks ring STEP from edge START and takes every edge that still has a common
 * plane.  DRY: only counts. */
static int fill_from(struct assign *as, const struct ocs_plan_group *group, int step, int start,
		     bool dry)
{
	uint64_t *keep = NULL;
	int made = 0, n = as->plan->servers;

	if (dry) {
		keep = ocs_calloc(n, sizeof(*keep));
		memcpy(keep, as->tx, n * sizeof(*keep));
	}
	for (int i = 0; i < group->nmembers; i++) {
		int a = ring_at(group, step, start + i), b = ring_at(group, step, start + i + 1);
		uint64_t spare = as->tx[a] & as->tx[b];

		if (!spare)
			continue;
		made++;
		if (dry) {
			as->tx[a] &= ~(spare & -spare);
			as->tx[b] &= ~(spare & -spare);
		} else {
			circuit_add(as, a, bit_lowest(spare), b, bit_lowest(spare));
		}
	}
	if (dry) {
		memcpy(as->tx, keep, n * sizeof(*keep));
		free(keep);
	}
	return made;
}

/* A ring that cannot close still shortens paths: make as much of it as fits. */
static void ring_open(struct assign *as, const struct ocs_plan_group *group, int step)
{
	int starts = group->nmembers < FILL_STARTS ? group->nmembers : FILL_STARTS;
	int best = 0, best_made = -1;

	for (int start = 0; start < starts; start++) {
		int made = fill_from(as, group, step, start, true);

		if (made > best_made) {
			best_made = made;
			best = start;
		}
	}
	as->open_edges += fill_from(as, group, step, best, false);
	as->open_rings++;
}

/* One interface left at every server of an even group: join opposite servers. */
static void chords_join(struct assign *as, const struct ocs_plan_group *group)
{
	int half = group->nmembers / 2;

	if (group->nmembers < 4 || group->nmembers % 2 || as->plan->directed)
		return;
	if (!common_free(as, group))
		return;
	for (int i = 0; i < half; i++) {
		uint64_t spare = as->tx[group->members[i]] & as->tx[group->members[i + half]];

		circuit_add(as, group->members[i], bit_lowest(spare), group->members[i + half],
			    bit_lowest(spare));
		as->chords++;
	}
}

static void assignment_say(struct assign *as, int unused)
{
	struct ocs_text text = { 0 };
	struct ocs_plan *plan = as->plan;

	if (plan->any_port)
		ocs_text_add(&text, "one switch joins any two interfaces");
	else if (plan->directed)
		ocs_text_add(&text,
			     "interface i on switch i, transmitters and receivers joined apart");
	else
		ocs_text_add(&text, "interface i on switch i");
	if (as->ports.crossed)
		ocs_text_add(&text, "; %d circuits join different interfaces", as->ports.crossed);
	if (as->closing)
		ocs_text_add(&text,
			     "; a ring of odd length alternates between two switches and "
			     "closes on a third (%d rings)",
			     as->closing);
	if (as->mixed)
		ocs_text_add(&text,
			     "; %d rings change switches on the way, since not all servers "
			     "have the same interfaces free",
			     as->mixed);
	if (as->open_rings)
		ocs_text_add(&text,
			     "; %d more circuits form %d rings that cannot close, since a "
			     "switch joins servers in pairs",
			     as->open_edges, as->open_rings);
	if (as->ports.trees)
		ocs_text_add(&text, "; %d circuits form double binary trees", as->ports.trees);
	if (as->ports.treeless)
		ocs_text_add(&text, "; %d double binary trees found no interfaces",
			     as->ports.treeless);
	if (as->ports.mp)
		ocs_text_add(&text, "; %d circuits join pairs with much traffic", as->ports.mp);
	if (as->ports.expander)
		ocs_text_add(&text, "; %d circuits form %s", as->ports.expander,
			     as->ports.kautz ? "with the first ring a generalized Kautz graph" :
					       "an expander");
	if (as->chords)
		ocs_text_add(&text, "; %d circuits join opposite servers", as->chords);
	if (unused)
		ocs_text_add(&text, "; %d interfaces are unused", unused);
	plan->assignment = ocs_text_take(&text);
}

void ocs_plan_assign(struct ocs_plan *plan, const int *order, const double *mp,
		     const uint64_t *failed, bool best, int trees, enum ocs_plan_rest rest)
{
	struct assign as = { .plan = plan, .ports = { .plan = plan } };
	uint64_t all = plan->degree == 64 ? ~UINT64_C(0) : (UINT64_C(1) << plan->degree) - 1;
	int unused = 0;

	as.tx = ocs_calloc(plan->servers, sizeof(*as.tx));
	as.rx = plan->directed ? ocs_calloc(plan->servers, sizeof(*as.rx)) : as.tx;
	as.ports.tx = as.tx;
	as.ports.rx = as.rx;
	for (int i = 0; i < plan->servers; i++)
		as.tx[i] = as.rx[i] = all & ~(failed ? failed[i] : 0);
	for (int g = 0; g < plan->ngroups; g++) {
		struct ocs_plan_group *group = &plan->groups[order[g]];
		int made = 0;

		as.group = order[g];
		while (made < group->nrings &&
		       (plan->directed ? ring_directed(&as, group, group->steps[made]) :
					 ring_duplex(&as, group, group->steps[made])))
			made++;
		as.group = -1;
		if (made && made < group->nrings && !plan->directed)
			ring_open(&as, group, group->steps[made]);
		group->nrings = made;
	}
	/* after the rings of all groups, which need these interfaces more */
	for (int g = 0; g < plan->ngroups; g++)
		if (best && rest == OCS_PLAN_NOTHING && !mp)
			chords_join(&as, &plan->groups[order[g]]);
	for (int g = 0; g < plan->ngroups; g++)
		ocs_plan_trees(&as.ports, &plan->groups[order[g]], trees);
	if (mp)
		ocs_plan_mp(&as.ports, mp);
	if (rest != OCS_PLAN_NOTHING)
		ocs_plan_expand(&as.ports, rest);
	for (int i = 0; i < plan->servers; i++)
		unused += __builtin_popcountll(as.tx[i]);
	assignment_say(&as, plan->servers > 1 ? unused : 0);
	if (plan->directed)
		free(as.rx);
	free(as.tx);
}
