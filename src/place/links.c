/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/place/links.h"

#include <stdlib.h>

#include "src/util/text.h"

/* Ranks by place: those of the XPUs of the placement's cubes. */
struct ranks {
	const struct ocs_section *section;
	int *slot;  /* of each cube of the section, or -1 */
	long *rank; /* [slot * cube_xpus + bit], or -1 */
};

static struct ranks ranks_by_place(const struct ocs_placement *p)
{
	const struct ocs_section *s = p->section;
	struct ranks ranks = { .section = s };
	size_t places = (size_t)p->ncubes * (size_t)s->cube_xpus;

	ranks.slot = ocs_calloc((size_t)s->ncubes, sizeof(int));
	ranks.rank = ocs_calloc(places + 1, sizeof(long));
	for (int c = 0; c < s->ncubes; c++)
		ranks.slot[c] = -1;
	for (int i = 0; i < p->ncubes; i++)
		ranks.slot[p->cubes[i]] = i;
	for (size_t i = 0; i < places; i++)
		ranks.rank[i] = -1;
	for (long r = 0; r < p->shape.xpus; r++) {
		const struct ocs_xpu *x = &p->xpus[r];

		ranks.rank[(long)ranks.slot[x->cube] * s->cube_xpus + ocs_section_bit(s, x->at)] =
			r;
	}
	return ranks;
}

static long rank_at(const struct ranks *ranks, int cube, const int at[OCS_AXES])
{
	int slot = ranks->slot[cube];

	return slot < 0 ? -1 :
			  ranks->rank[(long)slot * ranks->section->cube_xpus +
				      ocs_section_bit(ranks->section, at)];
}

static void link_add(struct ocs_links *links, long from, long to, int axis)
{
	if (from < 0 || to < 0)
		return;
	links->peer[from * OCS_LINKS + axis * 2 + OCS_PLUS] = to;
	links->peer[to * OCS_LINKS + axis * 2 + OCS_MINUS] = from;
}

static void fixed_add(struct ocs_links *links, const struct ranks *ranks)
{
	const struct ocs_placement *p = links->placement;
	const struct ocs_section *s = p->section;

	for (long r = 0; r < p->shape.xpus; r++)
		for (int axis = 0; axis < OCS_AXES; axis++) {
			int at[OCS_AXES] = { p->xpus[r].at[0], p->xpus[r].at[1], p->xpus[r].at[2] };

			if (++at[axis] == s->edge[axis]) {
				if (s->kind != OCS_STATIC || s->edge[axis] == 1)
					continue;
				at[axis] = 0;
			}
			link_add(links, r, rank_at(ranks, p->xpus[r].cube, at), axis);
		}
}

static void circuits_add(struct ocs_links *links, const struct ranks *ranks)
{
	const struct ocs_placement *p = links->placement;

	for (int i = 0; i < p->ncircuits; i++) {
		const struct ocs_circuit *c = &p->circuits[i];
		int at[OCS_AXES], other = 0;
		long from;

		for (int axis = 0; axis < OCS_AXES; axis++)
			at[axis] = axis == c->dim ? p->section->edge[axis] - 1 : c->pos[other++];
		from = rank_at(ranks, c->from, at);
		at[c->dim] = 0;
		link_add(links, from, rank_at(ranks, c->to, at), c->dim);
	}
}

struct ocs_links *ocs_links_of(const struct ocs_placement *placement)
{
	struct ranks ranks = ranks_by_place(placement);
	struct ocs_links *links = ocs_calloc(1, sizeof(*links));
	size_t ends = (size_t)placement->shape.xpus * OCS_LINKS;

	links->placement = placement;
	links->peer = ocs_calloc(ends + 1, sizeof(long));
	for (size_t i = 0; i < ends; i++)
		links->peer[i] = -1;
	fixed_add(links, &ranks);
	circuits_add(links, &ranks);
	free(ranks.slot);
	free(ranks.rank);
	return links;
}

void ocs_links_destroy(struct ocs_links *links)
{
	if (!links)
		return;
	free(links->peer);
	free(links);
}

long ocs_links_peer(const struct ocs_links *links, long rank, int axis, int sign)
{
	return links->peer[rank * OCS_LINKS + axis * 2 + sign];
}
