/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/fold/walk.h"

#include <stdlib.h>
#include <string.h>

#include "src/util/text.h"

/* A comb on ROW x DEEP points: the back runs along ROW, a tooth of two columns is
 * 1 to DEEP-1 deep, so the back is even and 2 * back <= steps <= back * deep.
 * Returns the length of the back, or 0. */
static int comb_back(int row, int deep, int steps)
{
	int back = row < steps / 2 ? row : steps / 2;

	back &= ~1;
	return back >= 2 && steps <= (long)back * deep ? back : 0;
}

/* The longest cycle that this file can make on the first N axes, at most LIMIT. */
static int longest(const int *length, int n, int limit)
{
	long all;
	int j;

	all = (long)length[0] * length[1];
	if (all & 1)	/* both odd: leave out a row or a column */
		all -= length[0] < length[1] ? length[0] : length[1];
	for (j = 2; j < n && all < limit; j++)
		all *= length[j];
	return all < limit ? (int)all : limit;
}

bool ocs_walk_fits(const int *length, int n, int steps, bool closed)
{
	long all = 1, inner;
	int j;

	for (j = 0; j < n; j++)
		all *= length[j];
	if (!closed)
		return n >= 2 && steps <= all && steps > all / length[0];
	if (n < 2 || steps < 4 || steps % 2)
		return false;
	if (n == 2)
		return comb_back(length[0], length[1], steps) ||
		       comb_back(length[1], length[0], steps);
	inner = longest(length, n - 1, steps);
	return inner < steps && steps <= inner * length[n - 1];
}

static void comb(int row_axis, int deep_axis, int back, int deep, int steps,
		 int (*at)[OCS_FACTORS])
{
	int rest = (steps - back) / 2, teeth = back / 2, i = 0, c, d;

	for (c = 0; c < back; c++, i++) {
		at[i][row_axis] = c;
		at[i][deep_axis] = 0;
	}
	for (c = back - 1; c > 0; c -= 2, teeth--) {
		int depth = rest - (teeth - 1) < deep - 1 ? rest - (teeth - 1) : deep - 1;

		rest -= depth;
		for (d = 1; d <= depth; d++, i++) {
			at[i][row_axis] = c;
			at[i][deep_axis] = d;
		}
		for (d = depth; d >= 1; d--, i++) {
			at[i][row_axis] = c - 1;
			at[i][deep_axis] = d;
		}
	}
}

/* Tile of a vertex, as one number. */
static long tile_of(const int *at, const int *length, const int *tile, int n)
{
	long t = 0;
	int j;

	for (j = 0; j < n; j++)
		t = t * (length[j] + 1) + at[j] / tile[j];
	return t;
}

struct pair {
	long key;
	int first;	/* its two vertices: first and first + 1 */
	int like;	/* pairs of its tile */
};

static int pair_compare(const void *a, const void *b)
{
	const struct pair *p = a, *q = b;

	if (p->like != q->like)
		return q->like - p->like;
	if (p->key != q->key)
		return p->key < q->key ? -1 : 1;
	return p->first - q->first;
}

/* Orders the pairs that start at PARITY so that those of a tile come together,
 * tiles with many pairs first, those that cross a tile border last; returns how many tiles (a crossing
 * pair counts two) the first REST of them touch. */
static int pairs_order(int (*base)[OCS_FACTORS], int count, int parity, int rest,
		       const int *length, const int *tile, int n, struct pair *pairs)
{
	int i, j, k, tiles = 0;

	for (i = 0; i < count / 2; i++) {
		int first = 2 * i + parity;
		long a = tile_of(base[first], length, tile, n);
		long b = tile_of(base[(first + 1) % count], length, tile, n);

		pairs[i].key = a == b ? a : (1L << 40) + (a < b ? a : b);
		pairs[i].first = first;
		pairs[i].like = 0;
	}
	qsort(pairs, (size_t)(count / 2), sizeof(*pairs), pair_compare);
	for (i = 0; i < count / 2; i = j) {
		for (j = i + 1; j < count / 2 && pairs[j].key == pairs[i].key; j++)
			;
		for (k = i; k < j && pairs[k].key < 1L << 40; k++)
			pairs[k].like = j - i;
	}
	qsort(pairs, (size_t)(count / 2), sizeof(*pairs), pair_compare);
	for (i = 0; i < rest; i++) {
		if (pairs[i].key >= 1L << 40)
			tiles += 2;
		else if (!i || pairs[i].key != pairs[i - 1].key)
			tiles++;
	}
	return tiles;
}

/* A cycle on the first N-1 axes, from which pairs of neighbours reach out along
 * the last axis: each detour is 2 * depth longer. */
static void cycle(const int *length, const int *tile, int n, int steps,
		  int (*at)[OCS_FACTORS])
{
	int axis = n - 1, inner, full, rest, parity, i, j, d;
	int (*base)[OCS_FACTORS];
	struct pair *pairs;
	int *depth;

	if (n == 2) {
		int back = comb_back(length[0], length[1], steps);

		if (back)
			comb(0, 1, back, length[1], steps, at);
		else
			comb(1, 0, comb_back(length[1], length[0], steps), length[0], steps, at);
		return;
	}
	inner = longest(length, n - 1, steps);
	base = ocs_calloc((size_t)inner, sizeof(*base));
	pairs = ocs_calloc((size_t)inner / 2, sizeof(*pairs));
	depth = ocs_calloc((size_t)inner, sizeof(*depth));
	cycle(length, tile, n - 1, inner, base);
	/* whole layers first, what is left in as few tiles as possible */
	full = (steps - inner) / 2 / (inner / 2);
	rest = (steps - inner) / 2 % (inner / 2);
	parity = pairs_order(base, inner, 1, rest, length, tile, n - 1, pairs) <
		 pairs_order(base, inner, 0, rest, length, tile, n - 1, pairs);
	pairs_order(base, inner, parity, rest, length, tile, n - 1, pairs);
	for (i = 0; i < inner / 2; i++)
		depth[pairs[i].first] = full + (i < rest);
	for (i = 0, j = 0; j < inner; j += 2) {
		int *from = base[j + parity], *to = base[(j + parity + 1) % inner];

		for (d = 0; d <= depth[j + parity]; d++, i++) {
			memcpy(at[i], from, sizeof(at[i]));
			at[i][axis] = d;
		}
		for (d = depth[j + parity]; d >= 0; d--, i++) {
			memcpy(at[i], to, sizeof(at[i]));
			at[i][axis] = d;
		}
	}
	free(depth);
	free(pairs);
	free(base);
}

int ocs_walk(const int *length, const int *tile, int n, int steps, bool closed,
	     int (*at)[OCS_FACTORS])
{
	int i, j;

	if (!ocs_walk_fits(length, n, steps, closed))
		return -1;
	memset(at, 0, sizeof(*at) * (size_t)steps);
	if (closed) {
		cycle(length, tile, n, steps, at);
		return 0;
	}
	/* Boustrophedon: each axis turns round whenever a slower one moves. */
	for (i = 0; i < steps; i++) {
		int rest = i;

		for (j = n - 1; j >= 0; j--) {
			int digit = rest % length[j];

			rest /= length[j];
			at[i][j] = rest & 1 ? length[j] - 1 - digit : digit;
		}
	}
	return 0;
}
