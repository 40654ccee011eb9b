/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* From shares between servers to ways between ranks. */

#include <stdlib.h>

#include "src/moe/job/ocs_moe.h"

#define PUBLIC __attribute__((visibility("default")))

struct ways {
	struct ocs_moe_way *way;
	int n, size;
	int rank, each, failed;
	const struct ocs_moe_link *links;
	int nlinks;
};

/* How many circuits join the servers X and Y, and the K-th of them. */
static int circuits_between(const struct ways *w, int x, int y, int k,
			    const struct ocs_moe_link **which)
{
	int found = 0;

	for (int l = 0; l < w->nlinks; l++) {
		int a = w->links[l].a / w->each, b = w->links[l].b / w->each;

		if (!((a == x && b == y) || (a == y && b == x)))
			continue;
		if (found++ == k)
			*which = &w->links[l];
	}
	return found;
}

static void hop_add(struct ocs_moe_way *way, int *at, int rank, uint32_t link)
{
	if (*at == rank && link == OCS_MOE_LINK_PACKETS)
		return; /* it is there already */
	way->hop[way->hops++] = (struct ocs_moe_hop){ rank, link };
	*at = rank;
}

/* From rank *AT to server Y, by the circuit LINK or, if that is NULL, by packets to rank MEET of it. */
static void leg_add(const struct ways *w, struct ocs_moe_way *way, int *at, int y,
		    const struct ocs_moe_link *link, int meet)
{
	int near, far;

	if (!link) {
		hop_add(way, at, meet, OCS_MOE_LINK_PACKETS);
		return;
	}
	near = link->a / w->each == y ? link->b : link->a;
	far = link->a / w->each == y ? link->a : link->b;
	hop_add(way, at, near, OCS_MOE_LINK_PACKETS);
	hop_add(way, at, far, link->id);
}

static struct ocs_moe_way *way_add(struct ways *w, int to, double share)
{
	if (w->n == w->size) {
		int size = w->size ? 2 * w->size : 64;
		void *more = realloc(w->way, (size_t)size * sizeof(*w->way));

		if (!more) {
			w->failed = 1;
			return NULL;
		}
		w->way = more;
		w->size = size;
	}
	w->way[w->n] = (struct ocs_moe_way){ .to = to, .share = share };
	return &w->way[w->n++];
}

/* The ways of one share to rank TO: one for each circuit, or pair of circuits over the relay. */
static void share_spread(struct ways *w, const struct ocs_moe_share *s, int to)
{
	const struct ocs_moe_link *first = NULL, *second = NULL;
	int middle = s->relay < 0 ? s->to : s->relay;
	int one = s->first ? circuits_between(w, s->from, middle, -1, &first) : 1;
	int two = s->relay < 0 ? 1 :
		  s->second    ? circuits_between(w, s->relay, s->to, -1, &second) :
				 1;
	int most = one > two ? one : two;

	if (!one || !two)
		return; /* no such circuit: packets */
	for (int k = 0; k < most; k++) {
		struct ocs_moe_way *way = way_add(w, to, s->share / most);
		int at = w->rank, meet;

		if (!way)
			return;
		if (s->first)
			circuits_between(w, s->from, middle, k % one, &first);
		if (s->relay >= 0 && s->second)
			circuits_between(w, s->relay, s->to, k % two, &second);
		/* The relay's rank that is met by packets: one that goes on by the circuit. */
		meet = s->relay < 0 ? to : s->relay * w->each + to % w->each;
		if (s->relay >= 0 && second)
			meet = second->a / w->each == s->relay ? second->a : second->b;
		leg_add(w, way, &at, middle, first, meet);
		if (s->relay >= 0)
			leg_add(w, way, &at, s->to, second, to);
		hop_add(way, &at, to, OCS_MOE_LINK_PACKETS);
	}
}

PUBLIC struct ocs_moe_way *ocs_moe_ways_make(int rank, int ranks, int each,
					     const struct ocs_moe_share *shares, int n,
					     const struct ocs_moe_link *links, int nlinks,
					     int *count)
{
	struct ways w = { .rank = rank, .each = each, .links = links, .nlinks = nlinks };

	for (int k = 0; k < n; k++) {
		if (shares[k].from != rank / each || shares[k].to == shares[k].from ||
		    (shares[k].relay < 0 && !shares[k].first) || shares[k].to < 0)
			continue;
		for (int r = 0; r < each && shares[k].to * each + r < ranks; r++)
			share_spread(&w, &shares[k], shares[k].to * each + r);
	}
	if (w.failed) {
		free(w.way);
		return NULL;
	}
	*count = w.n;
	return w.way ? w.way : calloc(1, sizeof(*w.way));
}
