/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/place/fit.h"

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
		uint64_t mask = need[0];

		for (; i < fit->n; i++)
			set[i / 64] |= (uint64_t)((fit->words[i] & mask) == mask) << i % 64;
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

int ocs_fit_class_count(struct ocs_fit *fit, const struct ocs_catalogue *cat, int class)
{
	int i;

	if (fit->sets_of != cat) {
		for (i = 0; i < cat->nclasses; i++)
			fit->set_count[i] = -1;
		fit->sets_of = cat;
	}
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

/* Unlike pieces: the fullest cubes that can be told apart.  Taking cubes in order
 * and keeping those that can be seated gives the cheapest set (a transversal
 * matroid).  Returns its cost, or -1; owner[] holds the assignment. */
static long unlike_cost(struct ocs_fit *fit, const struct ocs_candidate *c,
			const struct ocs_class_use *uses)
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
		unlike_cost(fit, c, uses);
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

bool ocs_fit_search(struct ocs_fit *fit, const struct ocs_catalogue *cat, int from)
{
	long best_cost = -1;
	int best = -1, tries = 0, i, u;

	for (i = from; i < cat->ncandidates; i++) {
		const struct ocs_candidate *c = &cat->candidates[i];
		const struct ocs_class_use *uses = cat->uses + c->first_use;
		long cost;

		if (best >= 0 && (c->grid != cat->candidates[best].grid ||
				  c->cubes != cat->candidates[best].cubes ||
				  c->circuits != cat->candidates[best].circuits))
			break;
		if (c->cubes > fit->n)
			break;
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
			cost = unlike_cost(fit, c, uses);
		}
		if (cost >= 0 && (best < 0 || cost < best_cost)) {
			best = i;
			best_cost = cost;
		}
	}
	if (best < 0)
		return false;
	answer(fit, cat, best);
	return true;
}
