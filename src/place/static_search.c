/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Static tori: all offsets along z at once, as bits of a row. */

#include <stdlib.h>
#include <string.h>

#include "src/place/box_search.h"

#define E OCS_EDGE_MAX

struct scan {
	const struct ocs_section *s;
	uint32_t row[E][E];	   /* free XPUs of (x, y), bit z */
	uint32_t run[E + 1][E][E]; /* bit z: free from z on, so many layers */
	bool have[E + 1];
	long compared; /* rows */
};

static uint32_t row_turn(uint32_t row, int by, int edge)
{
	return (row >> by | row << (edge - by)) & ((1u << edge) - 1);
}

static void rows_load(struct scan *scan, const uint64_t *words)
{
	const struct ocs_section *s = scan->s;
	int x, y, z, bit = 0;

	memset(scan->row, 0, sizeof(scan->row));
	memset(scan->have, 0, sizeof(scan->have));
	for (x = 0; x < s->edge[0]; x++) {
		for (y = 0; y < s->edge[1]; y++) {
			for (z = 0; z < s->edge[2]; z++, bit++)
				scan->row[x][y] |= (uint32_t)(words[bit / 64] >> bit % 64 & 1) << z;
		}
	}
}

static void runs_make(struct scan *scan, int length)
{
	int x, y, i;

	if (scan->have[length])
		return;
	scan->have[length] = true;
	for (x = 0; x < scan->s->edge[0]; x++) {
		for (y = 0; y < scan->s->edge[1]; y++) {
			uint32_t run = scan->row[x][y];

			for (i = 1; i < length && run; i++)
				run &= row_turn(scan->row[x][y], i, scan->s->edge[2]);
			scan->run[length][x][y] = run;
		}
	}
}

/* Offsets along z at which the whole box is free. */
static uint32_t box_at(struct scan *scan, const struct ocs_folding *f, int x, int y, uint32_t acc)
{
	const struct ocs_section *s = scan->s;
	int i, j;

	for (i = 0; i < f->box[0] && acc; i++) {
		const uint32_t *line = scan->run[f->box[2]][(x + i) % s->edge[0]];

		for (j = 0; j < f->box[1] && acc; j++)
			acc &= line[(y + j) % s->edge[1]];
		scan->compared += j;
	}
	return acc;
}

/* The same for a box with gaps, XPUS being box coordinates. */
static uint32_t xpus_at(struct scan *scan, const struct ocs_xpu *xpus, long n, int x, int y,
			uint32_t acc)
{
	const struct ocs_section *s = scan->s;
	long i;

	for (i = 0; i < n && acc; i++)
		acc &= row_turn(scan->row[(x + xpus[i].at[0]) % s->edge[0]]
					 [(y + xpus[i].at[1]) % s->edge[1]],
				xpus[i].at[2], s->edge[2]);
	scan->compared += i;
	return acc;
}

static bool candidate_scan(struct scan *scan, const struct ocs_catalogue *cat,
			   const struct ocs_candidate *c, struct ocs_xpu *xpus,
			   struct ocs_box_layout *lay)
{
	const struct ocs_folding *f = &cat->foldings[c->folding];
	const struct ocs_section *s = scan->s;
	int step[OCS_AXES], a, x, y, z;
	uint32_t allowed = 0, acc;

	for (a = 0; a < OCS_AXES; a++)
		step[a] = f->box[a] == s->edge[a] ? s->edge[a] : s->tile[a];
	for (z = c->lay.offset[2]; z < s->edge[2]; z += step[2])
		allowed |= 1u << z;
	*lay = c->lay;
	if (f->filled) {
		runs_make(scan, f->box[2]);
	} else {
		memset(lay->offset, 0, sizeof(lay->offset));
		ocs_box_layout_xpus(s, &cat->tables[c->folding], lay, xpus);
	}
	for (x = c->lay.offset[0]; x < s->edge[0]; x += step[0]) {
		for (y = c->lay.offset[1]; y < s->edge[1]; y += step[1]) {
			acc = f->filled ? box_at(scan, f, x, y, allowed) :
					  xpus_at(scan, xpus, cat->shape.xpus, x, y, allowed);
			if (!acc)
				continue;
			lay->offset[0] = x;
			lay->offset[1] = y;
			lay->offset[2] = __builtin_ctz(acc);
			return true;
		}
	}
	return false;
}

static bool scan_all(struct ocs_box_search *fit, struct scan *scan, const struct ocs_catalogue *cat,
		     struct ocs_xpu *xpus)
{
	int i;

	for (i = 0; i < cat->ncandidates; i++) {
		fit->candidates_seen++;
		if (candidate_scan(scan, cat, &cat->candidates[i], xpus, &fit->lay)) {
			fit->candidate = i;
			fit->piece_cube[0] = 0;
			return true;
		}
	}
	return false;
}

/* Frees only the nodes of the answer. */
static void nodes_only(const struct ocs_section *s, const struct ocs_xpu *xpus, long n,
		       uint64_t *words)
{
	int tile = s->tile[0] * s->tile[1] * s->tile[2], at[OCS_AXES], j, bit;
	long i;

	memset(words, 0, (size_t)s->words * sizeof(*words));
	for (i = 0; i < n; i++) {
		for (j = 0; j < tile; j++) {
			at[2] = xpus[i].at[2] / s->tile[2] * s->tile[2] + j % s->tile[2];
			at[1] = xpus[i].at[1] / s->tile[1] * s->tile[1] +
				j / s->tile[2] % s->tile[1];
			at[0] = xpus[i].at[0] / s->tile[0] * s->tile[0] +
				j / s->tile[2] / s->tile[1];
			bit = ocs_section_bit(s, at);
			words[bit / 64] |= 1ULL << bit % 64;
		}
	}
}

bool ocs_static_search(struct ocs_box_search *fit, const struct ocs_catalogue *cat,
		       const struct ocs_occupancy *occupancy)
{
	const struct ocs_section *s = fit->section;
	struct ocs_xpu *xpus = fit->scan_xpus;
	struct scan *scan = fit->scan;
	bool again;

	scan->s = s;
	scan->compared = 0;
	rows_load(scan, occupancy->free);
	if (!scan_all(fit, scan, cat, xpus)) {
		fit->words_compared += scan->compared;
		return false;
	}
	/* Once more on its own nodes: the answer depends on them alone. */
	ocs_box_layout_xpus(s, &cat->tables[cat->candidates[fit->candidate].folding], &fit->lay,
			    xpus);
	nodes_only(s, xpus, cat->shape.xpus, fit->narrowed);
	rows_load(scan, fit->narrowed);
	again = scan_all(fit, scan, cat, xpus);
	fit->words_compared += scan->compared;
	return again;
}

size_t ocs_static_search_size(void)
{
	return sizeof(struct scan);
}
