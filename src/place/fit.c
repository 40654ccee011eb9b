/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/place/fit.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "src/util/text.h"

/* Candidates of equal rank whose unlike pieces are assigned in full before the
 * best of them is taken. */
#define UNLIKE_TRIES 32

struct ocs_fit *ocs_fit_create(const struct ocs_section *section)
{
	struct ocs_fit *fit = ocs_calloc(1, sizeof(*fit));
	size_t cubes = (size_t)section->ncubes;

	fit->section = section;
	fit->cube = ocs_calloc(cubes, sizeof(int));
	fit->count = ocs_calloc(cubes, sizeof(int));
	fit->words = ocs_calloc(cubes * (size_t)section->words, sizeof(uint64_t));
	fit->set_words = (section->ncubes + 63) / 64;
	if (section->kind == OCS_STATIC) {
		fit->scan = ocs_calloc(1, ocs_fit_scan_size());
		fit->scan_xpus = ocs_calloc((size_t)section->cube_xpus, sizeof(struct ocs_xpu));
	}
	while (section->ncubes >> fit->plane_room)
		fit->plane_room++;
	fit->planes = ocs_calloc((size_t)(fit->plane_room * section->words), sizeof(uint64_t));
	fit->often = ocs_calloc((cubes + 1) * (size_t)section->words, sizeof(uint64_t));
	fit->often_filled = ocs_calloc(cubes + 1, sizeof(bool));
	fit->members = ocs_calloc((size_t)fit->set_words, sizeof(uint64_t));
	fit->owner = ocs_calloc(cubes, sizeof(int));
	fit->seated = ocs_calloc(cubes, sizeof(int));
	fit->by_cube = ocs_calloc(cubes, sizeof(int));
	fit->narrowed = ocs_calloc(cubes * (size_t)section->words, sizeof(uint64_t));
	return fit;
}

void ocs_fit_destroy(struct ocs_fit *fit)
{
	if (!fit)
		return;
	free(fit->cube);
	free(fit->count);
	free(fit->words);
	free(fit->planes);
	free(fit->often);
	free(fit->often_filled);
	free(fit->gates);
	free(fit->sets);
	free(fit->set_count);
	free(fit->piece_cube);
	free(fit->owner);
	free(fit->seated);
	free(fit->tally);
	free(fit->members);
	free(fit->by_cube);
	free(fit->narrowed);
	free(fit->scan);
	free(fit->scan_xpus);
	free(fit);
}

void ocs_fit_prepare(struct ocs_fit *fit, const struct ocs_catalogue *cat)
{
	int i, uses = 0, pieces = 1;

	fit->sets_of = NULL;
	if (cat->nclasses > fit->class_room) {
		fit->class_room = cat->nclasses;
		fit->sets = ocs_realloc(fit->sets, (size_t)fit->class_room *
					(size_t)fit->set_words * sizeof(*fit->sets));
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
	if (3 * uses > fit->tally_room) {	/* need, have, visited per use */
		fit->tally_room = 3 * uses;
		fit->tally = ocs_realloc(fit->tally, (size_t)fit->tally_room * sizeof(int));
	}
}

/* Puts cubes with free XPUs in order: fullest first, then by index. */
static void order(struct ocs_fit *fit, const uint64_t *words, const int *cubes, int n)
{
	const struct ocs_section *s = fit->section;
	int start[OCS_EDGE_MAX * OCS_EDGE_MAX * OCS_EDGE_MAX + 2];
	int i, w, at;

	fit->xpus = 0;
	memset(start, 0, sizeof(int) * ((size_t)s->cube_xpus + 2));
	for (i = 0; i < n; i++) {
		int count = 0;

		for (w = 0; w < s->words; w++)
			count += __builtin_popcountll(words[i * s->words + w]);
		fit->owner[i] = count;
		fit->xpus += count;
		start[count + 1]++;
	}
	fit->n = n - start[1];
	start[1] = 0;	/* cubes without a free XPU are left out */
	for (i = 1; i <= s->cube_xpus; i++)
		start[i + 1] += start[i];
	for (i = 0; i < n; i++) {
		if (!fit->owner[i])
			continue;
		at = start[fit->owner[i]]++;
		fit->cube[at] = cubes ? cubes[i] : i;
		fit->count[at] = fit->owner[i];
		for (w = 0; w < s->words; w++)
			fit->words[at * s->words + w] = words[i * s->words + w];
	}
	fit->sets_of = NULL;
	fit->planes_filled = false;
}

void ocs_fit_load_cubes(struct ocs_fit *fit, const uint64_t *words, const int *cubes, int n)
{
	order(fit, words, cubes, n);
}

void ocs_fit_load(struct ocs_fit *fit, const struct ocs_occupancy *occupancy)
{
	fit->blocked = occupancy->any_blocked ? occupancy : NULL;
	order(fit, occupancy->free, NULL, fit->section->ncubes);
}

void ocs_fit_narrow(struct ocs_fit *fit, const struct ocs_catalogue *cat)
{
	const struct ocs_candidate *c = &cat->candidates[fit->candidate];
	int grid = c->lay.count[0] * c->lay.count[1] * c->lay.count[2], words = cat->mask_words;
	int i, n = 0;

	/* by index of the cube: only the set of nodes matters, not who got which */
	for (i = 0; i < fit->section->ncubes; i++)
		fit->by_cube[i] = -1;
	for (i = 0; i < grid; i++) {
		if (fit->piece_cube[i] >= 0)
			fit->by_cube[fit->piece_cube[i]] = i;
	}
	for (i = 0; i < fit->section->ncubes; i++) {
		int piece = fit->by_cube[i];

		if (piece < 0)
			continue;
		memcpy(fit->narrowed + (size_t)n * (size_t)words,
		       cat->words + cat->classes[cat->pieces[c->first_piece + piece]].first,
		       (size_t)words * sizeof(uint64_t));
		fit->seated[n++] = i;
	}
	order(fit, fit->narrowed, fit->seated, n);
}

static bool ports_free(struct ocs_fit *fit, const struct ocs_catalogue *cat,
		       const uint64_t *ports, int cube)
{
	const uint64_t *blocked = ocs_occupancy_blocked(fit->blocked, cube, 0, OCS_PLUS);
	int w;

	fit->words_compared += 6 * cat->face_words;
	for (w = 0; w < 6 * cat->face_words; w++) {
		if (ports[w] & blocked[w])
			return false;
	}
	return true;
}

/* First loaded cube with at least XPUS free. */
static int first_with(const struct ocs_fit *fit, int xpus)
{
	int low = 0, high = fit->n;

	while (low < high) {
		int middle = (low + high) / 2;

		if (fit->count[middle] < xpus)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static void set_fill(struct ocs_fit *fit, const struct ocs_catalogue *cat, int class)
{
	const uint64_t *need = cat->words + cat->classes[class].first;
	uint64_t *set = fit->sets + (size_t)class * (size_t)fit->set_words;
	int words = cat->mask_words, n = 0, i, w;

	memset(set, 0, (size_t)fit->set_words * sizeof(*set));
	i = first_with(fit, cat->classes[class].xpus);
	fit->words_compared += (long)(fit->n - i) * words;
	if (words == 1) {
		uint64_t mask = need[0], bits = 0;

		for (; i < fit->n; i++) {
			bits |= (uint64_t)!(~fit->words[i] & mask) << i % 64;
			if (i % 64 == 63 || i + 1 == fit->n) {
				set[i / 64] = bits;
				bits = 0;
			}
		}
	} else {
		for (; i < fit->n; i++) {
			const uint64_t *have = fit->words + i * words;

			for (w = 0; w < words && (have[w] & need[w]) == need[w]; w++)
				;
			set[i / 64] |= (uint64_t)(w == words) << i % 64;
		}
	}
	for (w = 0; w < fit->set_words; w++) {
		uint64_t left = fit->blocked ? set[w] : 0;

		for (; left; left &= left - 1) {
			i = w * 64 + __builtin_ctzll(left);
			if (!ports_free(fit, cat, need + words, fit->cube[i]))
				set[w] &= ~(1ULL << i % 64);
		}
		n += __builtin_popcountll(set[w]);
	}
	fit->set_count[class] = n;
}

static void sets_reset(struct ocs_fit *fit, const struct ocs_catalogue *cat)
{
	if (fit->sets_of == cat)
		return;
	memset(fit->set_count, -1, (size_t)cat->nclasses * sizeof(*fit->set_count));
	memset(fit->gates, -1, (size_t)cat->ngates);
	fit->sets_of = cat;
}

int ocs_fit_class_count(struct ocs_fit *fit, const struct ocs_catalogue *cat, int class)
{
	sets_reset(fit, cat);
	if (fit->set_count[class] < 0)
		set_fill(fit, cat, class);
	return fit->set_count[class];
}

const uint64_t *ocs_fit_class_set(const struct ocs_fit *fit, int class)
{
	return fit->sets + (size_t)class * (size_t)fit->set_words;
}

/* Like pieces: the fullest cubes.  Returns the sum of their free XPUs. */
static long like_cost(const struct ocs_fit *fit, const struct ocs_class_use *use)
{
	const uint64_t *set = ocs_fit_class_set(fit, use->class);
	int left = use->count, w;
	long cost = 0;

	for (w = 0; left; w++) {
		uint64_t bits = set[w];

		for (; bits && left; bits &= bits - 1, left--)
			cost += fit->count[w * 64 + __builtin_ctzll(bits)];
	}
	return cost;
}

static bool in_set(const struct ocs_fit *fit, int class, int i)
{
	return ocs_fit_class_set(fit, class)[i / 64] >> i % 64 & 1;
}

/* Gives loaded cube I to one of the uses, moving others if it must (augmenting
 * paths). */
static bool seat(struct ocs_fit *fit, const struct ocs_class_use *uses, int nuses, int i)
{
	int *need = fit->tally, *have = need + nuses, *visited = have + nuses, u, j;

	for (u = 0; u < nuses; u++) {
		if (visited[u] || !in_set(fit, uses[u].class, i))
			continue;
		visited[u] = 1;
		if (have[u] < need[u]) {
			have[u]++;
			fit->owner[i] = u;
			return true;
		}
		for (j = 0; j < fit->nseated; j++) {
			int other = fit->seated[j];

			if (fit->owner[other] == u && seat(fit, uses, nuses, other)) {
				fit->owner[i] = u;
				return true;
			}
		}
	}
	return false;
}

/* Whether the fullest COUNT of the members have fewer free XPUs than LIMIT; false, too, if
 * there are not so many. */
static bool members_below(const struct ocs_fit *fit, int count, long limit)
{
	int w;

	for (w = 0; w < fit->set_words && count; w++) {
		uint64_t bits = fit->members[w];

		for (; bits && count; bits &= bits - 1, count--)
			limit -= fit->count[w * 64 + __builtin_ctzll(bits)];
	}
	return !count && limit > 0;
}

/* Unlike pieces: the fullest cubes that can be told apart.  Taking cubes in order
 * and keeping those that can be seated gives the cheapest set (a transversal
 * matroid).  Returns its cost, or -1: there is none below LIMIT; owner[] holds the
 * assignment, with LIMIT LONG_MAX as far as it goes. */
static long unlike_cost(struct ocs_fit *fit, const struct ocs_candidate *c,
			const struct ocs_class_use *uses, long limit)
{
	int *need = fit->tally, *have = need + c->nuses, *visited = have + c->nuses;
	int u, w, left;
	long cost = 0;

	memset(fit->members, 0, (size_t)fit->set_words * sizeof(*fit->members));
	for (u = 0; u < c->nuses; u++) {
		const uint64_t *set = ocs_fit_class_set(fit, uses[u].class);

		need[u] = uses[u].count;
		have[u] = 0;
		/* more cubes than there are pieces never help a class */
		for (w = 0, left = c->cubes; w < fit->set_words && left > 0; w++) {
			fit->members[w] |= set[w];
			left -= __builtin_popcountll(set[w]);
		}
	}
	fit->nseated = 0;
	if (limit < LONG_MAX && !members_below(fit, c->cubes, limit))
		return -1;
	for (w = 0; w < fit->set_words && fit->nseated < c->cubes; w++) {
		uint64_t bits = fit->members[w];

		for (; bits && fit->nseated < c->cubes; bits &= bits - 1) {
			int i = w * 64 + __builtin_ctzll(bits);

			memset(visited, 0, (size_t)c->nuses * sizeof(int));
			if (!seat(fit, uses, c->nuses, i))
				continue;
			fit->seated[fit->nseated++] = i;
			cost += fit->count[i];
		}
	}
	return fit->nseated == c->cubes ? cost : -1;
}

int ocs_fit_seats(struct ocs_fit *fit, const struct ocs_catalogue *cat, int candidate, int than)
{
	const struct ocs_candidate *c = &cat->candidates[candidate];
	const struct ocs_class_use *uses = cat->uses + c->first_use;
	int most = 0, u;

	for (u = 0; u < c->nuses; u++) {
		int have = ocs_fit_class_count(fit, cat, uses[u].class);

		most += have < uses[u].count ? have : uses[u].count;
	}
	if (c->nuses == 1 || most <= than)
		return most;
	unlike_cost(fit, c, uses, LONG_MAX);
	return fit->nseated;
}

/* Fills piece_cube: pieces of a class get its cubes by ascending index. */
static void answer(struct ocs_fit *fit, const struct ocs_catalogue *cat, int candidate)
{
	const struct ocs_candidate *c = &cat->candidates[candidate];
	const struct ocs_class_use *uses = cat->uses + c->first_use;
	int grid = c->lay.count[0] * c->lay.count[1] * c->lay.count[2], u, i, piece, w;

	fit->candidate = candidate;
	fit->lay = c->lay;
	if (c->nuses == 1) {
		const uint64_t *set = ocs_fit_class_set(fit, uses->class);

		fit->nseated = 0;
		for (w = 0; fit->nseated < c->cubes; w++) {
			uint64_t bits = set[w];

			for (; bits && fit->nseated < c->cubes; bits &= bits - 1) {
				i = w * 64 + __builtin_ctzll(bits);
				fit->owner[i] = 0;
				fit->seated[fit->nseated++] = i;
			}
		}
	} else {
		unlike_cost(fit, c, uses, LONG_MAX);
	}
	for (i = 0; i < grid; i++)
		fit->piece_cube[i] = -1;
	for (i = 0; i < fit->section->ncubes; i++)
		fit->by_cube[i] = -1;
	for (i = 0; i < fit->nseated; i++)
		fit->by_cube[fit->cube[fit->seated[i]]] = fit->owner[fit->seated[i]];
	for (u = 0; u < c->nuses; u++) {
		const int *pieces = cat->pieces + c->first_piece;

		for (i = 0, piece = 0; i < fit->section->ncubes; i++) {
			if (fit->by_cube[i] != u)
				continue;
			while (pieces[piece] != uses[u].class)
				piece++;
			fit->piece_cube[piece++] = i;
		}
	}
}

static void planes_fill(struct ocs_fit *fit)
{
	int words = fit->section->words, i, w, p;

	memset(fit->planes, 0, (size_t)(fit->plane_room * words) * sizeof(*fit->planes));
	for (i = 0; i < fit->n; i++) {
		for (w = 0; w < words; w++) {
			uint64_t carry = fit->words[i * words + w];

			for (p = 0; carry; p++) {
				uint64_t *plane = &fit->planes[p * words + w], now = *plane;

				*plane = now ^ carry;
				carry &= now;
			}
		}
	}
	for (fit->nplanes = 0; fit->n >> fit->nplanes; fit->nplanes++)
		;
	memset(fit->often_filled, 0, (size_t)(fit->n + 1) * sizeof(*fit->often_filled));
	fit->planes_filled = true;
}

/* The XPUs that are free in COUNT loaded cubes or more. */
static const uint64_t *often(struct ocs_fit *fit, int count)
{
	int words = fit->section->words, w, p;
	uint64_t *set = fit->often + (size_t)count * (size_t)words;

	for (w = 0; w < words && !fit->often_filled[count]; w++) {
		uint64_t more = 0, equal = ~0ULL;

		for (p = fit->nplanes - 1; p >= 0 && equal; p--) {
			uint64_t plane = fit->planes[p * words + w];

			if (count >> p & 1) {
				equal &= plane;
			} else {
				more |= equal & plane;
				equal &= ~plane;
			}
		}
		set[w] = more | equal;
	}
	fit->often_filled[count] = true;
	return set;
}

/* False if some XPU of CLASS is free in fewer than COUNT cubes; a look at a few words, where
 * to count the cubes takes one at each of them. */
static bool may_have(struct ocs_fit *fit, const struct ocs_catalogue *cat, int class, int count)
{
	const uint64_t *need = cat->words + cat->classes[class].first, *have;
	int w;

	if (fit->set_count[class] >= 0)
		return fit->set_count[class] >= count;
	if (count > fit->n)
		return false;
	have = often(fit, count);
	for (w = 0; w < cat->mask_words; w++) {
		if (need[w] & ~have[w])
			return false;
	}
	return true;
}

static bool gate_open(struct ocs_fit *fit, const struct ocs_catalogue *cat, int gate)
{
	const struct ocs_gate *g = &cat->gates[gate];

	if (fit->gates[gate] < 0)
		fit->gates[gate] = may_have(fit, cat, g->class, g->count) &&
				   ocs_fit_class_count(fit, cat, g->class) >= g->count;
	return fit->gates[gate];
}

int ocs_fit_cubes_holding(const struct ocs_fit *fit, long xpus)
{
	int i;

	for (i = fit->n; i > 0 && xpus > 0; i--)
		xpus -= fit->count[i - 1];
	return xpus > 0 ? fit->n + 1 : fit->n - i;
}

bool ocs_fit_search(struct ocs_fit *fit, const struct ocs_catalogue *cat, int from)
{
	const int *tile = fit->section->tile;
	long best_cost = LONG_MAX - 1;
	int best = -1, tries = 0, least, i, u;

	least = ocs_fit_cubes_holding(fit, (long)cat->nodes * tile[0] * tile[1] * tile[2]);
	if (!fit->planes_filled)
		planes_fill(fit);
	sets_reset(fit, cat);
	for (i = from; i < cat->ncandidates; i++) {
		const struct ocs_candidate *c = &cat->candidates[i];
		const struct ocs_class_use *uses = cat->uses + c->first_use;
		long cost;

		if (best >= 0 && (c->batch != cat->candidates[best].batch ||
				  c->cubes != cat->candidates[best].cubes ||
				  c->circuits != cat->candidates[best].circuits))
			break;
		/* a later batch may need fewer cubes again */
		if (c->cubes < least || c->cubes > fit->n)
			continue;
		if (best < 0 && !gate_open(fit, cat, cat->gate_of[i]))
			continue;
		fit->candidates_seen++;
		for (u = 0; u < c->nuses; u++) {
			if (ocs_fit_class_count(fit, cat, uses[u].class) < uses[u].count)
				break;
		}
		if (u < c->nuses)
			continue;
		if (c->nuses == 1) {
			cost = like_cost(fit, uses);
		} else {
			if (best >= 0 && ++tries > UNLIKE_TRIES) {
				fit->bounded = true;
				continue;
			}
			cost = unlike_cost(fit, c, uses, best_cost);
		}
		if (cost >= 0 && cost < best_cost) {
			best = i;
			best_cost = cost;
		}
	}
	if (best < 0)
		return false;
	answer(fit, cat, best);
	return true;
}
