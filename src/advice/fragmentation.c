/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/advice/fragmentation.h"

#include <stdlib.h>
#include <string.h>

#include "src/place/candidates.h"
#include "src/util/error.h"
#include "src/util/text.h"

#define STRETCH 4    /* an extent is at most so many times the next */
#define SIZES_MAX 16 /* 16x16x16 is halved twelve times */

/* All boxes of one size that lie in one direction. */
struct boxes {
	int side[OCS_AXES];
	int n;
	uint64_t *masks; /* words of the section each */
};

struct ocs_fragmentation {
	const struct ocs_section *section;
	int nsizes;
	struct boxes boxes[SIZES_MAX][6];
	int ndirections[SIZES_MAX];
};

static void box_mask(const struct ocs_section *s, const int *low, const int *side, uint64_t *mask)
{
	int at[OCS_AXES];

	for (at[0] = low[0]; at[0] < low[0] + side[0]; at[0]++) {
		for (at[1] = low[1]; at[1] < low[1] + side[1]; at[1]++) {
			for (at[2] = low[2]; at[2] < low[2] + side[2]; at[2]++) {
				int bit = ocs_section_bit(s, at);

				mask[bit / 64] |= UINT64_C(1) << bit % 64;
			}
		}
	}
}

static void boxes_make(const struct ocs_section *s, struct boxes *b)
{
	int low[OCS_AXES], count = 1, a;

	for (a = 0; a < OCS_AXES; a++)
		count *= s->edge[a] / b->side[a];
	b->masks = ocs_calloc((size_t)count * (size_t)s->words, sizeof(uint64_t));
	for (low[0] = 0; low[0] + b->side[0] <= s->edge[0]; low[0] += b->side[0])
		for (low[1] = 0; low[1] + b->side[1] <= s->edge[1]; low[1] += b->side[1])
			for (low[2] = 0; low[2] + b->side[2] <= s->edge[2]; low[2] += b->side[2])
				box_mask(s, low, b->side,
					 b->masks + (size_t)b->n++ * (size_t)s->words);
}

/* The box SIDE in every direction in which a cube holds one. */
static void size_add(struct ocs_fragmentation *room, const int *side)
{
	static const int order[6][OCS_AXES] = {
		{ 0, 1, 2 }, { 0, 2, 1 }, { 1, 0, 2 }, { 1, 2, 0 }, { 2, 0, 1 }, { 2, 1, 0 },
	};
	struct boxes *b = room->boxes[room->nsizes];
	int i, j, a, n = 0;

	for (i = 0; i < 6; i++) {
		bool fits = true;

		for (a = 0; a < OCS_AXES; a++) {
			b[n].side[a] = side[order[i][a]];
			fits &= b[n].side[a] <= room->section->edge[a];
		}
		for (j = 0; j < n && fits; j++)
			fits = memcmp(b[j].side, b[n].side, sizeof(b[n].side)) != 0;
		if (fits)
			boxes_make(room->section, &b[n++]);
	}
	room->ndirections[room->nsizes++] = n;
}

struct ocs_fragmentation *ocs_fragmentation_create(const struct ocs_section *section)
{
	struct ocs_fragmentation *room = ocs_calloc(1, sizeof(*room));
	int side[OCS_AXES], a, longest;

	room->section = section;
	memcpy(side, section->edge, sizeof(side));
	for (;;) {
		for (a = 1, longest = 0; a < OCS_AXES; a++)
			longest = side[a] > side[longest] ? a : longest;
		if (side[longest] < 2)
			return room;
		size_add(room, side);
		side[longest] /= 2;
	}
}

void ocs_fragmentation_destroy(struct ocs_fragmentation *room)
{
	int i, j;

	if (!room)
		return;
	for (i = 0; i < room->nsizes; i++)
		for (j = 0; j < room->ndirections[i]; j++)
			free(room->boxes[i][j].masks);
	free(room);
}

/* How many of the boxes are wholly free. */
static int boxes_free(const struct boxes *b, const uint64_t *words, int nwords)
{
	int i, w, n = 0;

	for (i = 0; i < b->n; i++) {
		const uint64_t *mask = b->masks + (size_t)i * (size_t)nwords;

		for (w = 0; w < nwords && !(mask[w] & ~words[w]); w++)
			;
		n += w == nwords;
	}
	return n;
}

double ocs_fragmentation_measure(const struct ocs_fragmentation *room,
				 const struct ocs_occupancy *occupancy)
{
	const struct ocs_section *s = room->section;
	long all = 0, useful = 0;
	int cube, i, j;

	for (cube = 0; cube < s->ncubes; cube++) {
		const uint64_t *words = occupancy->free + (size_t)cube * (size_t)s->words;
		int n = ocs_occupancy_cube_free(occupancy, cube);

		all += n;
		if (n == s->cube_xpus)
			useful += (long)n * room->nsizes;
		for (i = 0; i < room->nsizes && n < s->cube_xpus && n; i++) {
			int most = 0;

			for (j = 0; j < room->ndirections[i]; j++) {
				const struct boxes *b = &room->boxes[i][j];
				int here = boxes_free(b, words, s->words) * b->side[0] *
					   b->side[1] * b->side[2];

				most = here > most ? here : most;
			}
			useful += most;
		}
	}
	return all && room->nsizes ? 1 - (double)useful / (double)all / room->nsizes : 0;
}

long ocs_fragmentation_free_xpus(const struct ocs_occupancy *occupancy)
{
	long n = 0;
	int cube;

	for (cube = 0; cube < occupancy->section->ncubes; cube++)
		n += ocs_occupancy_cube_free(occupancy, cube);
	return n;
}

int ocs_fragmentation_whole_cubes(const struct ocs_occupancy *occupancy)
{
	int n = 0, cube;

	for (cube = 0; cube < occupancy->section->ncubes; cube++)
		n += ocs_occupancy_cube_free(occupancy, cube) == occupancy->section->cube_xpus;
	return n;
}

struct list {
	struct ocs_shape *shapes;
	int n, room;
};

static void list_add(struct list *list, int ndim, const int *extent)
{
	struct ocs_shape *s;
	int d;

	if (list->n == list->room) {
		list->room = list->room ? 2 * list->room : 256;
		list->shapes =
			ocs_realloc(list->shapes, (size_t)list->room * sizeof(*list->shapes));
	}
	s = &list->shapes[list->n++];
	memset(s, 0, sizeof(*s));
	s->ndim = ndim;
	s->xpus = 1;
	for (d = 0; d < ndim; d++) {
		s->extent[d] = extent[d];
		s->xpus *= extent[d];
	}
}

static int extent_sum(const struct ocs_shape *s)
{
	int d, n = 0;

	for (d = 0; d < s->ndim; d++)
		n += s->extent[d];
	return n;
}

static int shape_larger(const void *a, const void *b)
{
	const struct ocs_shape *p = a, *q = b;

	if (p->xpus != q->xpus)
		return p->xpus < q->xpus ? 1 : -1;
	return extent_sum(p) - extent_sum(q);
}

/* Powers of two and multiples of the edge: extents that fit often. */
static bool extent_common(const struct ocs_section *s, int extent)
{
	return !(extent & (extent - 1)) || extent % s->edge[0] == 0;
}

static void list_fill(struct list *list, const struct ocs_section *s, int ndim, long most)
{
	int e[OCS_AXES];

	if (ndim == 1) {
		for (e[0] = (int)most; e[0] >= 2; e[0]--) {
			if (e[0] % 2 == 0)
				list_add(list, 1, e);
		}
		return;
	}
	for (e[1] = 2; (long)e[1] * e[1] <= most; e[1]++) {
		for (e[0] = e[1]; (long)e[0] * e[1] <= most && e[0] <= STRETCH * e[1]; e[0]++) {
			if (!extent_common(s, e[0]) || !extent_common(s, e[1]))
				continue;
			if (ndim == 2)
				list_add(list, 2, e);
			for (e[2] = (e[1] + STRETCH - 1) / STRETCH;
			     ndim == 3 && e[2] <= e[1] && (long)e[0] * e[1] * e[2] <= most;
			     e[2]++) {
				if (e[2] > 1 && extent_common(s, e[2]))
					list_add(list, 3, e);
			}
		}
	}
}

bool ocs_fragmentation_largest(struct ocs_placer *placer, const struct ocs_occupancy *occupancy,
			       int ndim, struct ocs_shape *shape)
{
	struct list list = { 0 };
	long next = ocs_fragmentation_free_xpus(occupancy);
	struct ocs_error err;
	bool found = false;
	int i;

	list_fill(&list, occupancy->section, ndim, next);
	if (list.n)
		qsort(list.shapes, (size_t)list.n, sizeof(*list.shapes), shape_larger);
	for (i = 0; i < list.n && !found; i++) {
		struct ocs_placement *p;

		if (list.shapes[i].xpus > next ||
		    !ocs_catalogue_possible(occupancy->section, &list.shapes[i]))
			continue;
		p = ocs_place(placer, occupancy, &list.shapes[i], 0, &err);
		found = p != NULL;
		if (found)
			*shape = list.shapes[i];
		next = list.shapes[i].xpus - 1 - list.shapes[i].xpus / 8;
		ocs_placement_destroy(p);
	}
	free(list.shapes);
	return found;
}
