/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* The loaded cubes in order, and as sets: those where an XPU is free, and those with room for a
 * piece.  The latter are found by a look at each cube, or as what the sets of the piece's nodes
 * have in common, whichever takes less. */

#include "src/place/bits.h"
#include "src/place/box_search.h"

#include <string.h>

#define BLOCK 64
/* Words that a block of 64 cubes by 64 XPUs takes when it is turned, and that a free node
 * takes when it is added to its set: as many as one looks at in that time. */
#define BLOCK_WORK 300
#define NODE_WORK 1

/* What it takes to know where each XPU is free, and how. */
static void free_in_weigh(struct ocs_box_search *fit)
{
	long turned = (long)fit->live * fit->section->words * BLOCK_WORK;
	long added = fit->xpus / fit->tile_xpus * NODE_WORK + (long)fit->n * fit->section->words;

	fit->free_in_turned = turned < added;
	fit->free_in_work = fit->free_in_turned ? turned : added;
}

/* Puts cubes with free XPUs in order: fullest first, then by index. */
static void cubes_order(struct ocs_box_search *fit, const uint64_t *words, const int *cubes, int n)
{
	const struct ocs_section *s = fit->section;
	int *start = fit->with, *count = fit->owner, *from = fit->by_cube, i, w, at, m = 0;

	fit->xpus = 0;
	memset(start, 0, sizeof(int) * ((size_t)s->cube_xpus + 2));
	for (i = 0; i < n; i++) {
		int sum = 0;

		for (w = 0; w < s->words; w++) {
			if (words[i * s->words + w])
				sum += ocs_bits_count(words[i * s->words + w]);
		}
		if (!sum)
			continue; /* cubes without a free XPU are left out */
		count[m] = sum;
		from[m++] = i;
		fit->xpus += sum;
		start[sum + 1]++;
	}
	for (i = 1; i <= s->cube_xpus; i++)
		start[i + 1] += start[i];
	for (i = 0; i < m; i++) {
		at = start[count[i]]++;
		fit->cube[at] = cubes ? cubes[from[i]] : from[i];
		fit->count[at] = count[i];
		for (w = 0; w < s->words; w++)
			fit->words[at * s->words + w] = words[from[i] * s->words + w];
	}
	/* each has moved on to where the next one began */
	memmove(start + 1, start, ((size_t)s->cube_xpus + 1) * sizeof(int));
	start[0] = 0;
	fit->n = m;
	fit->live = (m + 63) / 64;
	fit->sets_of = NULL;
	fit->free_in_filled = false;
	free_in_weigh(fit);
	fit->scanned = 0;
}

void ocs_cube_sets_load_cubes(struct ocs_box_search *fit, const uint64_t *words, const int *cubes,
			      int n)
{
	cubes_order(fit, words, cubes, n);
}

void ocs_cube_sets_load(struct ocs_box_search *fit, const struct ocs_occupancy *occupancy)
{
	fit->blocked = occupancy->any_blocked ? occupancy : NULL;
	cubes_order(fit, occupancy->free, NULL, fit->section->ncubes);
}

/* Turns 64 words of 64 bits: bit J of word I becomes bit I of word J. */
static void block_turn(uint64_t block[BLOCK])
{
	uint64_t mask = 0xffffffffULL, swap;
	int by, i;

	for (by = BLOCK / 2; by; by >>= 1, mask ^= mask << by) {
		for (i = 0; i < BLOCK; i = (i + by + 1) & ~by) {
			swap = (block[i] >> by ^ block[i + by]) & mask;
			block[i] ^= swap << by;
			block[i + by] ^= swap;
		}
	}
}

static void free_in_turn(struct ocs_box_search *fit)
{
	int words = fit->section->words, w, b, i;
	uint64_t block[BLOCK];

	for (b = 0; b < fit->live; b++) {
		int rows = fit->n - b * BLOCK < BLOCK ? fit->n - b * BLOCK : BLOCK;

		for (w = 0; w < words; w++) {
			for (i = 0; i < BLOCK; i++)
				block[i] = i < rows ? fit->words[(b * BLOCK + i) * words + w] : 0;
			block_turn(block);
			for (i = 0; i < BLOCK && w * BLOCK + i < fit->section->cube_xpus; i++)
				fit->free_in[(w * BLOCK + i) * fit->set_words + b] = block[i];
		}
	}
}

/* One by one: less, where few are free. */
static void free_in_add(struct ocs_box_search *fit)
{
	int words = fit->section->words, i, w;

	for (i = 0; i < fit->section->cube_xpus; i++) {
		for (w = 0; w < fit->live; w++)
			fit->free_in[i * fit->set_words + w] = 0;
	}
	for (i = 0; i < fit->n; i++) {
		for (w = 0; w < words; w++) {
			uint64_t left = fit->words[i * words + w] & fit->firsts[w];

			for (; left; left &= left - 1)
				ocs_bits_add(fit->free_in + (w * 64 + __builtin_ctzll(left)) *
								    fit->set_words,
					     i);
		}
	}
}

const uint64_t *ocs_cube_sets_free_in(struct ocs_box_search *fit)
{
	if (fit->free_in_filled)
		return fit->free_in;
	if (fit->free_in_turned)
		free_in_turn(fit);
	else
		free_in_add(fit);
	fit->free_in_filled = true;
	return fit->free_in;
}

/* Those of the 64 cubes from W * 64 on, not before FROM, that have all of NEED. */
static uint64_t block_scan(const struct ocs_box_search *fit, uint64_t need, int w, int from)
{
	int end = fit->n < w * 64 + 64 ? fit->n : w * 64 + 64, i;
	uint64_t bits = 0;

	from = from > w * 64 ? from : w * 64;
	for (i = end; i > from; i--)
		bits = bits + bits + !(~fit->words[i - 1] & need);
	return bits << (from - w * 64);
}

static void set_scan(struct ocs_box_search *fit, const uint64_t *need, int words, int from,
		     uint64_t *set)
{
	int i, w;

	for (w = from / 64; words == 1 && w < fit->live; w++)
		set[w] = block_scan(fit, *need, w, from);
	for (i = from; words > 1 && i < fit->n; i++) {
		const uint64_t *have = fit->words + i * words;

		for (w = 0; w < words && (have[w] & need[w]) == need[w]; w++)
			;
		set[i / 64] |= (uint64_t)(w == words) << i % 64;
	}
}

/* What the sets of the nodes have in common; returns the words that it took. */
static long set_join(struct ocs_box_search *fit, const uint64_t *need, int words, int from,
		     uint64_t *set)
{
	int w, b, n = fit->live - from / 64;
	long looked = 0;

	for (b = from / 64; b < fit->live; b++)
		set[b] = ~0ULL;
	set[from / 64] <<= from % 64;
	for (w = 0; w < words; w++) {
		uint64_t left = need[w] & fit->firsts[w];

		for (; left; left &= left - 1) {
			const uint64_t *in =
				fit->free_in + (w * 64 + __builtin_ctzll(left)) * fit->set_words;
			uint64_t any = 0;

			for (b = from / 64; b < fit->live; b++)
				any |= set[b] &= in[b];
			looked += n;
			if (!any)
				return looked;
		}
	}
	return looked;
}

/* The same for up to 64 cubes of up to 64 XPUs, which most machines have. */
static uint64_t word_join(struct ocs_box_search *fit, uint64_t need, int from)
{
	uint64_t set = ~0ULL << from, left = need & fit->firsts[0];

	for (; left && set; left &= left - 1, fit->words_compared++)
		set &= fit->free_in[__builtin_ctzll(left) * fit->set_words];
	return set;
}

static bool ports_free(struct ocs_box_search *fit, const struct ocs_catalogue *cat,
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

/* Whether the sets of the nodes tell sooner than the cubes, WORK words of which a look takes.
 * To have the sets pays after some such looks. */
static bool join_pays(struct ocs_box_search *fit, long work, int xpus)
{
	if (work * fit->tile_xpus <= (long)xpus * fit->live)
		return false;
	if (fit->free_in_filled)
		return true;
	fit->scanned += work;
	if (fit->scanned <= fit->free_in_work)
		return false;
	ocs_cube_sets_free_in(fit);
	return true;
}

/* Takes those out of SET whose ports of CLASS are blocked. */
static void blocked_drop(struct ocs_box_search *fit, const struct ocs_catalogue *cat, int class,
			 uint64_t *set)
{
	const uint64_t *ports = cat->words + cat->classes[class].first + cat->mask_words;
	int w;

	for (w = 0; w < fit->live; w++) {
		uint64_t left = set[w];

		for (; left; left &= left - 1) {
			int i = w * 64 + __builtin_ctzll(left);

			if (!ports_free(fit, cat, ports, fit->cube[i]))
				ocs_bits_drop(set, i);
		}
	}
}

/* The same as a set of one word. */
static uint64_t word_fill(struct ocs_box_search *fit, uint64_t need, int xpus)
{
	int from = ocs_cube_sets_first_with(fit, xpus), work = fit->n - from;

	if (!work)
		return 0;
	if (join_pays(fit, work, xpus))
		return word_join(fit, need, from);
	fit->words_compared += work;
	return block_scan(fit, need, 0, from);
}

static void set_fill(struct ocs_box_search *fit, const uint64_t *need, int words, int xpus,
		     uint64_t *set)
{
	int from = ocs_cube_sets_first_with(fit, xpus), w;
	long work = (long)(fit->n - from) * words;

	for (w = 0; w < fit->live; w++)
		set[w] = 0;
	if (from < fit->n && join_pays(fit, work, xpus)) {
		fit->words_compared += set_join(fit, need, words, from, set);
	} else {
		fit->words_compared += work;
		set_scan(fit, need, words, from, set);
	}
}

int ocs_cube_sets_fill(struct ocs_box_search *fit, const struct ocs_catalogue *cat, int class)
{
	const uint64_t *need = cat->words + cat->classes[class].first;
	uint64_t *set = fit->sets + (size_t) class * (size_t)fit->set_words;
	int xpus = cat->classes[class].xpus, n = 0, w;

	if (fit->live == 1 && cat->mask_words == 1)
		*set = word_fill(fit, *need, xpus);
	else
		set_fill(fit, need, cat->mask_words, xpus, set);
	if (fit->blocked)
		blocked_drop(fit, cat, class, set);
	for (w = 0; w < fit->live; w++)
		n += ocs_bits_count(set[w]);
	fit->set_count[class] = n;
	return n;
}

void ocs_cube_sets_reset(struct ocs_box_search *fit, const struct ocs_catalogue *cat)
{
	if (fit->sets_of == cat)
		return;
	memset(fit->set_count, -1, (size_t)cat->nclasses * sizeof(*fit->set_count));
	memset(fit->gates, -1, (size_t)cat->ngates);
	fit->sets_of = cat;
}
