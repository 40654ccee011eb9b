/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* First fit of boxes, on a static torus at any offset, on cubes in pieces whose face
 * positions match. */

#include <stdlib.h>
#include <string.h>

#include "src/policy/internal.h"
#include "src/util/text.h"

/* Calls nothing: fills P's XPUs from the table; box coordinate 0 lies at OFFSET of the
 * first piece, CUBE names the cube of each piece of the grid. */
static void box_lay(const struct ocs_policy *policy, const struct ocs_policy_box *box,
		    const int *offset, const int *grid, const int *cube, struct ocs_placement *p)
{
	const int *edge = policy->section->edge;
	int coord[OCS_SHAPE_DIMS], at[OCS_FOLD_AXES], d, a;
	long r;

	for (r = 0; r < box->shape.xpus; r++) {
		struct ocs_fold_entry sum = { 0 };
		int piece = 0;

		ocs_shape_coord(&box->shape, r, coord);
		for (d = 0; d < box->shape.ndim; d++)
			ocs_fold_add(&sum, &box->table.dim[d][coord[d]]);
		ocs_fold_at(&box->table, &sum, at);
		for (a = 0; a < OCS_FOLD_AXES; a++) {
			int g = at[a] + offset[a];

			p->xpus[r].at[a] = g % edge[a];
			piece = piece * grid[a] +
				(policy->section->kind == OCS_STATIC ? 0 : g / edge[a]);
		}
		p->xpus[r].cube = cube[piece];
	}
}

static struct ocs_placement *box_finish(struct ocs_policy *policy, const struct ocs_policy_box *box,
					const int *offset, const int *grid, const int *cube)
{
	struct ocs_placement *p = ocs_policy_start(policy, &box->shape);

	box_lay(policy, box, offset, grid, cube, p);
	ocs_policy_finish(policy, p, true);
	return p;
}

static bool box_free(const struct ocs_policy *policy, const struct ocs_occupancy *occupancy,
		     const int *box, const int *offset)
{
	const int *edge = policy->section->edge;
	int x, y, z;

	for (x = 0; x < box[0]; x++) {
		for (y = 0; y < box[1]; y++) {
			for (z = 0; z < box[2]; z++) {
				int at[OCS_AXES] = { (offset[0] + x) % edge[0],
						     (offset[1] + y) % edge[1],
						     (offset[2] + z) % edge[2] };

				if (!ocs_occupancy_xpu_free(occupancy, 0, at))
					return false;
			}
		}
	}
	return true;
}

static struct ocs_placement *static_place(struct ocs_policy *policy,
					  const struct ocs_policy_box *box,
					  const struct ocs_occupancy *occupancy)
{
	static const int one[OCS_AXES] = { 1, 1, 1 }, cube[1] = { 0 };
	const int *edge = policy->section->edge;
	int o[OCS_AXES];

	for (o[0] = 0; o[0] < edge[0]; o[0]++)
		for (o[1] = 0; o[1] < edge[1]; o[1]++)
			for (o[2] = 0; o[2] < edge[2]; o[2]++)
				if (box_free(policy, occupancy, box->table.box, o))
					return box_finish(policy, box, o, one, cube);
	return NULL;
}

/* The XPUs of one piece, as a mask of the section's words. */
static int piece_mask(const struct ocs_section *s, const int *low, const int *high, uint64_t *mask)
{
	int at[OCS_AXES], n = 0;

	memset(mask, 0, (size_t)s->words * sizeof(*mask));
	for (at[0] = low[0]; at[0] < high[0]; at[0]++) {
		for (at[1] = low[1]; at[1] < high[1]; at[1]++) {
			for (at[2] = low[2]; at[2] < high[2]; at[2]++, n++) {
				int bit = ocs_section_bit(s, at);

				mask[bit / 64] |= UINT64_C(1) << (bit % 64);
			}
		}
	}
	return n;
}

/* The first cube that has MASK free and no piece yet, or -1. */
static int cube_find(const struct ocs_section *s, const struct ocs_occupancy *occupancy,
		     const uint64_t *mask, const bool *chosen)
{
	int cube, w;

	for (cube = 0; cube < s->ncubes; cube++) {
		const uint64_t *word = occupancy->free + (size_t)cube * (size_t)s->words;

		if (chosen[cube])
			continue;
		for (w = 0; w < s->words && !(mask[w] & ~word[w]); w++)
			;
		if (w == s->words)
			return cube;
	}
	return -1;
}

struct piece {
	int index, xpus;
	int low[OCS_AXES], high[OCS_AXES];
};

static int box_larger(const void *a, const void *b)
{
	const struct piece *p = a, *q = b;

	return p->xpus != q->xpus ? q->xpus - p->xpus : p->index - q->index;
}

/* The grid's pieces, the largest first. */
static void pieces_make(const struct ocs_section *s, const int *box, const int *offset,
			const int *grid, struct piece *pieces)
{
	int n = grid[0] * grid[1] * grid[2], i, a;

	for (i = 0; i < n; i++) {
		int g[OCS_AXES] = { i / (grid[1] * grid[2]), i / grid[2] % grid[1], i % grid[2] };

		pieces[i].index = i;
		pieces[i].xpus = 1;
		for (a = 0; a < OCS_AXES; a++) {
			int end = offset[a] + box[a] - g[a] * s->edge[a];

			pieces[i].low[a] = g[a] ? 0 : offset[a];
			pieces[i].high[a] = end < s->edge[a] ? end : s->edge[a];
			pieces[i].xpus *= pieces[i].high[a] - pieces[i].low[a];
		}
	}
	qsort(pieces, (size_t)n, sizeof(*pieces), box_larger);
}

/* Room for what one decision needs. */
struct rooms {
	struct piece *pieces;
	uint64_t *mask;
	int *cube;
	bool *chosen;
};

static bool cubes_choose(struct ocs_policy *policy, const struct ocs_policy_box *box,
			 const struct ocs_occupancy *occupancy, const int *offset, const int *grid,
			 struct rooms *r)
{
	const struct ocs_section *s = policy->section;
	int n = grid[0] * grid[1] * grid[2], i;

	pieces_make(s, box->table.box, offset, grid, r->pieces);
	memset(r->chosen, 0, (size_t)s->ncubes * sizeof(bool));
	for (i = 0; i < n; i++) {
		const struct piece *p = &r->pieces[i];
		int cube;

		if (!i || p->xpus != p[-1].xpus || memcmp(p->low, p[-1].low, sizeof(p->low)) ||
		    memcmp(p->high, p[-1].high, sizeof(p->high)))
			piece_mask(s, p->low, p->high, r->mask);
		cube = cube_find(s, occupancy, r->mask, r->chosen);
		if (cube < 0)
			return false;
		r->chosen[cube] = true;
		r->cube[p->index] = cube;
	}
	return true;
}

/* Offset number I of a box that is LENGTH long on an axis of EDGE, or -1: anywhere
 * inside one cube; with several, from the first layer or to the last. */
static int offset_of(int edge, int length, int i)
{
	int rest = length % edge;

	if (length <= edge)
		return i <= edge - length ? i : -1;
	return !i ? 0 : i == 1 && rest ? edge - rest : -1;
}

static struct ocs_placement *torus_place(struct ocs_policy *policy,
					 const struct ocs_policy_box *box,
					 const struct ocs_occupancy *occupancy, struct rooms *r)
{
	const int *edge = policy->section->edge, *b = box->table.box;
	int grid[OCS_AXES], o[OCS_AXES], a, i, j, k;

	for (a = 0; a < OCS_AXES; a++)
		grid[a] = (b[a] + edge[a] - 1) / edge[a];
	for (i = 0; (o[0] = offset_of(edge[0], b[0], i)) >= 0; i++)
		for (j = 0; (o[1] = offset_of(edge[1], b[1], j)) >= 0; j++)
			for (k = 0; (o[2] = offset_of(edge[2], b[2], k)) >= 0; k++)
				if (cubes_choose(policy, box, occupancy, o, grid, r))
					return box_finish(policy, box, o, grid, r->cube);
	return NULL;
}

struct ocs_placement *ocs_policy_box_place(struct ocs_policy *policy,
					   const struct ocs_policy_shape *entry,
					   const struct ocs_occupancy *occupancy)
{
	const struct ocs_section *s = policy->section;
	size_t cubes = (size_t)s->ncubes;
	struct ocs_placement *p = NULL;
	struct rooms r;
	int i;

	r.pieces = ocs_calloc(cubes, sizeof(*r.pieces));
	r.mask = ocs_calloc((size_t)s->words, sizeof(*r.mask));
	r.cube = ocs_calloc(cubes, sizeof(*r.cube));
	r.chosen = ocs_calloc(cubes, sizeof(*r.chosen));
	for (i = 0; i < entry->nboxes && !p; i++)
		p = s->kind == OCS_STATIC ? static_place(policy, &entry->boxes[i], occupancy) :
					    torus_place(policy, &entry->boxes[i], occupancy, &r);
	free(r.pieces);
	free(r.mask);
	free(r.cube);
	free(r.chosen);
	return p;
}
