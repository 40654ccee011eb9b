/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/place/bits.h"
#include "src/place/box_search.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "src/util/text.h"

/* Candidates of equal rank whose unlike pieces are assigned in full before the
 * best of them is taken. */
#define UNLIKE_TRIES 32

/* The first XPU of each node. */
static void firsts_mark(const struct ocs_section *s, uint64_t *firsts)
{
	int at[OCS_AXES];

	for (at[0] = 0; at[0] < s->edge[0]; at[0] += s->tile[0]) {
		for (at[1] = 0; at[1] < s->edge[1]; at[1] += s->tile[1]) {
			for (at[2] = 0; at[2] < s->edge[2]; at[2] += s->tile[2])
				ocs_bits_add(firsts, ocs_section_bit(s, at));
		}
	}
}

struct ocs_box_search *ocs_box_search_create(const struct ocs_section *section)
{
	struct ocs_box_search *fit = ocs_calloc(1, sizeof(*fit));
	size_t cubes = (size_t)section->ncubes;

	fit->section = section;
	fit->tile_xpus = section->tile[0] * section->tile[1] * section->tile[2];
	fit->cube = ocs_calloc(cubes, sizeof(int));
	fit->count = ocs_calloc(cubes, sizeof(int));
	fit->with = ocs_calloc((size_t)section->cube_xpus + 2, sizeof(int));
	fit->words = ocs_calloc(cubes * (size_t)section->words, sizeof(uint64_t));
	fit->set_words = (section->ncubes + 63) / 64;
	if (section->kind == OCS_STATIC) {
		fit->scan = ocs_calloc(1, ocs_static_search_size());
		fit->scan_xpus = ocs_calloc((size_t)section->cube_xpus, sizeof(struct ocs_xpu));
	}
	fit->free_in =
		ocs_calloc((size_t)section->cube_xpus * (size_t)fit->set_words, sizeof(uint64_t));
	fit->firsts = ocs_calloc((size_t)section->words, sizeof(uint64_t));
	firsts_mark(section, fit->firsts);
	fit->members = ocs_calloc((size_t)fit->set_words, sizeof(uint64_t));
	fit->owner = ocs_calloc(cubes, sizeof(int));
	fit->seated = ocs_calloc(cubes, sizeof(int));
	fit->by_cube = ocs_calloc(cubes, sizeof(int));
	fit->narrowed = ocs_calloc(cubes * (size_t)section->words, sizeof(uint64_t));
	return fit;
}

void ocs_box_search_destroy(struct ocs_box_search *fit)
{
	if (!fit)
		return;
	free(fit->cube);
	free(fit->count);
	free(fit->with);
	free(fit->words);
	free(fit->free_in);
	free(fit->firsts);
	free(fit->gates);
	free(fit->sets);
	free(fit->set_count);
	free(fit->piece_cube);
	free(fit->owner);
	free(fit->seated);
	free(fit->tally);
	free(fit->own);
	free(fit->members);
	free(fit->by_cube);
	free(fit->narrowed);
	free(fit->scan);
	free(fit->scan_xpus);
	free(fit);
}

void ocs_box_search_prepare(struct ocs_box_search *fit, const struct ocs_catalogue *cat)
{
	int i, uses = 0, pieces = 1;

	fit->sets_of = NULL;
	if (cat->nclasses > fit->class_room) {
		fit->class_room = cat->nclasses;
		fit->sets =
			ocs_realloc(fit->sets, (size_t)fit->class_room * (size_t)fit->set_words *
						       sizeof(*fit->sets));
		fit->set_count = ocs_realloc(fit->set_count,
					     (size_t)fit->class_room * sizeof(*fit->set_count));
	}
	if (cat->ngates > fit->gate_room) {
		fit->gate_room = cat->ngates;
		fit->gates = ocs_realloc(fit->gates, (size_t)fit->gate_room);
	}
	for (i = 0; i < cat->ncandidates; i++) {
		const struct ocs_candidate *c = &cat->candidates[i];
		int grid = c->lay.count[0] * c->lay.count[1] * c->lay.count[2];

		uses = c->nuses > uses ? c->nuses : uses;
		pieces = grid > pieces ? grid : pieces;
	}
	if (pieces > fit->piece_room) {
		fit->piece_room = pieces;
		fit->piece_cube = ocs_realloc(fit->piece_cube, (size_t)pieces * sizeof(int));
	}
	if (uses > fit->use_room) {
		fit->use_room = uses;
		fit->tally = ocs_realloc(fit->tally, 5 * (size_t)uses * sizeof(int));
		fit->own = ocs_realloc(fit->own,
				       (size_t)uses * (size_t)fit->set_words * sizeof(*fit->own));
	}
}

void ocs_box_search_narrow(struct ocs_box_search *fit, const struct ocs_catalogue *cat)
{
	const struct ocs_candidate *c = &cat->candidates[fit->candidate];
	int grid = c->lay.count[0] * c->lay.count[1] * c->lay.count[2], words = cat->mask_words;
	int i, w, n = 0;

	/* by index of the cube: only the set of nodes matters, not who got which */
	memset(fit->members, 0, (size_t)fit->set_words * sizeof(*fit->members));
	for (i = 0; i < grid; i++) {
		if (fit->piece_cube[i] < 0)
			continue;
		fit->by_cube[fit->piece_cube[i]] = i;
		ocs_bits_add(fit->members, fit->piece_cube[i]);
	}
	for (w = 0; w < fit->set_words; w++) {
		uint64_t left = fit->members[w];

		for (; left; left &= left - 1) {
			int cube = w * 64 + __builtin_ctzll(left);
			int class = cat->pieces[c->first_piece + fit->by_cube[cube]];

			memcpy(fit->narrowed + (size_t)n * (size_t)words,
			       cat->words + cat->classes[class].first,
			       (size_t)words * sizeof(uint64_t));
			fit->seated[n++] = cube;
		}
	}
	ocs_cube_sets_load_cubes(fit, fit->narrowed, fit->seated, n);
}

/* Like pieces: the fullest cubes.  Returns the sum of their free XPUs. */
static long like_cost(const struct ocs_box_search *fit, const struct ocs_class_use *use)
{
	const uint64_t *set = ocs_cube_sets_class(fit, use->class);
	int left = use->count, w;
	long cost = 0;

	for (w = 0; left; w++) {
		uint64_t bits = set[w];

		for (; bits && left; bits &= bits - 1, left--)
			cost += fit->count[w * 64 + __builtin_ctzll(bits)];
	}
	return cost;
}

int ocs_box_search_seats(struct ocs_box_search *fit, const struct ocs_catalogue *cat, int candidate,
			 int than)
{
	const struct ocs_candidate *c = &cat->candidates[candidate];
	const struct ocs_class_use *uses = cat->uses + c->first_use;
	int most = 0, u;

	ocs_cube_sets_reset(fit, cat);
	for (u = 0; u < c->nuses; u++) {
		int have = ocs_cube_sets_class_count(fit, cat, uses[u].class);

		most += have < uses[u].count ? have : uses[u].count;
	}
	if (c->nuses == 1 || most <= than)
		return most;
	ocs_seats_cost(fit, c, uses, LONG_MAX);
	return fit->nseated;
}

/* Seats like pieces in the fullest cubes. */
static void like_assign(struct ocs_box_search *fit, const struct ocs_class_use *use)
{
	const uint64_t *set = ocs_cube_sets_class(fit, use->class);
	int i, w;

	fit->nseated = 0;
	for (w = 0; fit->nseated < use->count; w++) {
		uint64_t bits = set[w];

		for (; bits && fit->nseated < use->count; bits &= bits - 1) {
			i = w * 64 + __builtin_ctzll(bits);
			fit->owner[i] = 0;
			fit->seated[fit->nseated++] = i;
		}
	}
}

/* Fills piece_cube: pieces of a class get its cubes by ascending index. */
static void pieces_give(struct ocs_box_search *fit, const struct ocs_catalogue *cat,
			const struct ocs_candidate *c)
{
	const struct ocs_class_use *uses = cat->uses + c->first_use;
	int grid = c->lay.count[0] * c->lay.count[1] * c->lay.count[2], *next = fit->tally, i, w;
	const int *pieces = cat->pieces + c->first_piece;

	for (i = 0; i < grid; i++)
		fit->piece_cube[i] = -1;
	memset(next, 0, (size_t)c->nuses * sizeof(*next));
	memset(fit->members, 0, (size_t)fit->set_words * sizeof(*fit->members));
	for (i = 0; i < fit->nseated; i++) {
		int cube = fit->cube[fit->seated[i]];

		fit->by_cube[cube] = fit->owner[fit->seated[i]];
		ocs_bits_add(fit->members, cube);
	}
	for (w = 0; w < fit->set_words; w++) {
		uint64_t left = fit->members[w];

		for (; left; left &= left - 1) {
			int cube = w * 64 + __builtin_ctzll(left), use = fit->by_cube[cube];

			while (pieces[next[use]] != uses[use].class)
				next[use]++;
			fit->piece_cube[next[use]++] = cube;
		}
	}
}

static void answer_take(struct ocs_box_search *fit, const struct ocs_catalogue *cat, int candidate)
{
	const struct ocs_candidate *c = &cat->candidates[candidate];
	const struct ocs_class_use *uses = cat->uses + c->first_use;

	fit->candidate = candidate;
	fit->lay = c->lay;
	if (c->nuses == 1)
		like_assign(fit, uses);
	else
		ocs_seats_assign(fit, c, uses);
	pieces_give(fit, cat, c);
}

/* Whether COUNT cubes have room for a piece of CLASS. */
static bool class_has(struct ocs_box_search *fit, const struct ocs_catalogue *cat, int class,
		      int count)
{
	return fit->n - ocs_cube_sets_first_with(fit, cat->classes[class].xpus) >= count &&
	       ocs_cube_sets_class_count(fit, cat, class) >= count;
}

static bool gate_open(struct ocs_box_search *fit, const struct ocs_catalogue *cat, int gate)
{
	const struct ocs_gate *g = &cat->gates[gate];

	if (fit->gates[gate] < 0)
		fit->gates[gate] = class_has(fit, cat, g->class, g->count);
	return fit->gates[gate];
}

int ocs_box_search_cubes_holding(const struct ocs_box_search *fit, long xpus)
{
	int i;

	for (i = fit->n; i > 0 && xpus > 0; i--)
		xpus -= fit->count[i - 1];
	return xpus > 0 ? fit->n + 1 : fit->n - i;
}

/* The cost of a candidate, or -1: it does not fit, or its cost is LIMIT or more.  TRIES: of
 * unlike pieces since one was found, NULL: none was. */
static long candidate_cost(struct ocs_box_search *fit, const struct ocs_catalogue *cat,
			   const struct ocs_candidate *c, long limit, int *tries)
{
	const struct ocs_class_use *uses = cat->uses + c->first_use;
	int u;

	fit->candidates_seen++;
	for (u = 0; u < c->nuses; u++) {
		if (!class_has(fit, cat, uses[u].class, uses[u].count))
			return -1;
	}
	if (c->nuses == 1)
		return like_cost(fit, uses);
	if (tries && ++*tries > UNLIKE_TRIES) {
		fit->bounded = true;
		return -1;
	}
	return ocs_seats_cost(fit, c, uses, limit);
}

bool ocs_box_search_best(struct ocs_box_search *fit, const struct ocs_catalogue *cat, int from)
{
	const int *tile = fit->section->tile;
	int best = -1, tries = 0, least, i;
	long best_cost = LONG_MAX - 1;

	least = ocs_box_search_cubes_holding(fit, (long)cat->nodes * tile[0] * tile[1] * tile[2]);
	ocs_cube_sets_reset(fit, cat);
	for (i = from; i < cat->ncandidates; i++) {
		const struct ocs_candidate *c = &cat->candidates[i];
		long cost;

		if (best < 0 && !fit->gates[cat->gate_of[i]])
			continue;
		if (best >= 0 && (c->batch != cat->candidates[best].batch ||
				  c->cubes != cat->candidates[best].cubes ||
				  c->circuits != cat->candidates[best].circuits))
			break;
		/* a later batch may need fewer cubes again */
		if (c->cubes < least || c->cubes > fit->n)
			continue;
		if (best < 0 && !gate_open(fit, cat, cat->gate_of[i]))
			continue;
		cost = candidate_cost(fit, cat, c, best_cost, best < 0 ? NULL : &tries);
		if (cost >= 0 && cost < best_cost) {
			fit->first = best < 0 ? i : fit->first;
			best = i;
			best_cost = cost;
		}
	}
	if (best < 0)
		return false;
	answer_take(fit, cat, best);
	return true;
}
