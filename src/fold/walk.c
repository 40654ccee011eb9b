/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/fold/walk.h"

#include <stdlib.h>
#include <string.h>

#include "src/util/text.h"

/* A comb on ROW x DEEP points: the back runs along ROW, a tooth of two columns is
 * 1 to DEEP-1 deep, so the back is even and 2 * back <= steps <= back * deep.  With EXTRA
 * the last tooth, at its full depth, also takes pairs of points from the column behind
 * it.  Returns the length of the back, or 0. */
static int comb_back(int row, int deep, int steps, bool extra)
{
	int back = row < steps / 2 ? row : steps / 2;
	long most;

	back &= ~1;
	most = (long)back * deep + (extra && back < row ? deep & ~1 : 0);
	return back >= 2 && steps <= most ? back : 0;
}

/* The longest cycle on the first N axes, at most LIMIT. */
static int cycle_longest(const int *length, int n, int limit, enum ocs_walk_kind kind)
{
	long all = length[0];
	int j;

	for (j = 1; j < n && all <= limit; j++) {
		all *= length[j];
		if (j == 1 && kind == OCS_WALK_CYCLE && all & 1)
			all -= length[0] < length[1] ? length[0] : length[1];
	}
	all = kind == OCS_WALK_ROUND ? (all - 1) | 1 : all & ~1;
	return all < limit ? (int)all : limit;
}

bool ocs_walk_fits(const int *length, int n, int steps, enum ocs_walk_kind kind)
{
	long all = 1;
	int j;

	for (j = 0; j < n; j++)
		all *= length[j];
	if (n < 2)
		return false;
	if (kind == OCS_WALK_LINE)
		return steps <= all && steps > all / length[0];
	if (kind == OCS_WALK_ROUND ? !(steps & 1) || !(length[0] & 1) || length[0] < 3 :
				     steps < 4 || steps & 1)
		return false;
	if (n == 2 && kind != OCS_WALK_ROUND)
		return comb_back(length[0], length[1], steps, kind == OCS_WALK_SNUG) ||
		       comb_back(length[1], length[0], steps, kind == OCS_WALK_SNUG);
	return cycle_longest(length, n - 1, steps, kind) < steps &&
	       steps <= cycle_longest(length, n, steps + 1, kind);
}

static void comb_walk(int row_axis, int deep_axis, int back, int deep, int steps,
		      int (*at)[OCS_FACTORS])
{
	int rest = (steps - back) / 2, teeth = back / 2, extra = rest - teeth * (deep - 1);
	int i = 0, c, d;

	if (extra > 0)
		rest -= extra;
	for (c = 0; c < back; c++, i++) {
		at[i][row_axis] = c;
		at[i][deep_axis] = 0;
	}
	for (c = back - 1; c > 0; c -= 2, teeth--) {
		int depth = rest - (teeth - 1) < deep - 1 ? rest - (teeth - 1) : deep - 1;

		rest -= depth;
		for (d = 0; d <= depth; d++) {
			if (d) {
				at[i][row_axis] = c;
				at[i++][deep_axis] = d;
			}
			if (c == back - 1 && d % 2 == 0 && d / 2 < extra) {
				at[i][row_axis] = back;
				at[i++][deep_axis] = d;
				at[i][row_axis] = back;
				at[i++][deep_axis] = d + 1;
			}
		}
		for (d = depth; d >= 1; d--, i++) {
			at[i][row_axis] = c - 1;
			at[i][deep_axis] = d;
		}
	}
}

/* Tile of a vertex: tiles of the first N axes are numbered in row-major order. */
static int tile_of(const int *at, const int *length, const int *tile, int n)
{
	int t = 0, j;

	for (j = 0; j < n; j++)
		t = t * ((length[j] - 1) / tile[j] + 1) + at[j] / tile[j];
	return t;
}

/* Makes in TO the order of FROM by KEY, which is below KEYS; items with the same one stay as they are.
 * START[k] is then how many have at most key k. */
static void items_sort(const int *key, int keys, const int *from, int *to, int count, int *start)
{
	int i;

	memset(start, 0, ((size_t)keys + 1) * sizeof(*start));
	for (i = 0; i < count; i++)
		start[key[i] + 1]++;
	for (i = 1; i < keys; i++)
		start[i] += start[i - 1];
	for (i = 0; i < count; i++)
		to[start[key[from[i]]]++] = from[i];
}

/* The pairs of neighbours of a cycle, two vertices and two from PARITY on. */
struct pairs {
	int (*base)[OCS_FACTORS];
	int vertices, count;
	const int *length, *tile;
	int n, tiles; /* axes, and tiles on them */
	int *place;   /* per pair: its tile; TILES more than the lower one if it crosses a border */
	int *rank;    /* by how many pairs of its tile there are */
	int *by_place, *start;
};

static void pairs_create(struct pairs *p)
{
	int j, keys;

	p->count = p->vertices / 2;
	for (p->tiles = 1, j = 0; j < p->n; j++)
		p->tiles *= (p->length[j] - 1) / p->tile[j] + 1;
	keys = 2 * p->tiles > p->count ? 2 * p->tiles : p->count + 1;
	p->place = ocs_calloc(3 * (size_t)p->count + (size_t)keys + 1, sizeof(int));
	p->rank = p->place + p->count;
	p->by_place = p->rank + p->count;
	p->start = p->by_place + p->count;
}

/* Orders the pairs so that those of a tile come together, tiles with many pairs first, those that
 * cross a tile border last; returns how many tiles (a crossing pair counts two) the first REST of
 * them touch. */
static int pairs_order(struct pairs *p, int parity, int rest, int *order)
{
	int tiles = 0, i;

	for (i = 0; i < p->count; i++) {
		const int *from = p->base[2 * i + parity];
		const int *to = p->base[(2 * i + parity + 1) % p->vertices];
		int a = tile_of(from, p->length, p->tile, p->n);
		int b = tile_of(to, p->length, p->tile, p->n);

		p->place[i] = a == b ? a : p->tiles + (a < b ? a : b);
		p->rank[i] = i;
	}
	items_sort(p->place, 2 * p->tiles, p->rank, p->by_place, p->count, p->start);
	for (i = 0; i < p->count; i++) {
		int place = p->place[i];
		int like = p->start[place] - (place ? p->start[place - 1] : 0);

		p->rank[i] = place < p->tiles ? p->count - like : p->count;
	}
	items_sort(p->rank, p->count + 1, p->by_place, order, p->count, p->start);
	for (i = 0; i < rest; i++) {
		if (p->place[order[i]] >= p->tiles)
			tiles += 2;
		else if (!i || p->place[order[i]] != p->place[order[i - 1]])
			tiles++;
	}
	return tiles;
}

/* Fills ORDER with the pairs of BASE, a cycle of COUNT vertices on the first N axes, those first that
 * are to reach out further than others; returns the parity: that with which REST of them touch fewer
 * tiles. */
static int pairs_choose(int (*base)[OCS_FACTORS], int count, const int *length, const int *tile,
			int n, int rest, int *order)
{
	struct pairs pairs = {
		.base = base, .vertices = count, .length = length, .tile = tile, .n = n
	};
	int parity, odd;

	pairs_create(&pairs);
	odd = pairs_order(&pairs, 1, rest, order);
	parity = odd < pairs_order(&pairs, 0, rest, order);
	if (parity)
		pairs_order(&pairs, parity, rest, order);
	free(pairs.place);
	return parity;
}

/* A point beside a full pair takes two of its layers at a time, from the layers of the
 * pair's member HOST (an index of the base). */
struct side {
	int host;
	int at[OCS_FACTORS];
	int first; /* lowest layer that is free */
	int twos;
};

/* The point of the first N axes that BASE leaves out, if there is one. */
static bool left_out(int (*base)[OCS_FACTORS], int count, const int *length, int n, int *at)
{
	long all = 1, index, i;
	bool *seen;
	int j;

	for (j = 0; j < n; j++)
		all *= length[j];
	seen = ocs_calloc((size_t)all, sizeof(*seen));
	for (i = 0; i < count; i++) {
		for (j = 0, index = 0; j < n; j++)
			index = index * length[j] + base[i][j];
		seen[index] = true;
	}
	for (index = 0; index < all && seen[index]; index++)
		;
	free(seen);
	if (index == all)
		return false;
	for (j = n - 1; j >= 0; index /= length[j--])
		at[j] = (int)(index % length[j]);
	return true;
}

static int vertex_distance(const int *a, const int *b, int n)
{
	int sum = 0, j;

	for (j = 0; j < n; j++)
		sum += abs(a[j] - b[j]);
	return sum;
}

/* All pairs are full and TWOS more steps of two are wanted: the vertex without a pair
 * (index SINGLE, or -1) and the point left out give them.  Returns how many sides. */
static int sides_make(int (*base)[OCS_FACTORS], int count, const int *length, int n, int single,
		      int twos, struct side side[2])
{
	int last = length[n], sides = 0, i;

	if (single >= 0 && twos > 0) {
		/* its neighbour in the cycle, which is there even through a wrap */
		side->host = single ? single - 1 : 1;
		memcpy(side->at, base[single], sizeof(side->at));
		side->first = 1;
		side->twos = twos < (last - 1) / 2 ? twos : (last - 1) / 2;
		twos -= side++->twos;
		sides++;
	}
	memset(side->at, 0, sizeof(side->at));
	if (twos <= 0 || !left_out(base, count, length, n, side->at))
		return sides;
	for (i = 0; i == single || vertex_distance(base[i], side->at, n) != 1; i++)
		;
	side->host = i;
	side->first = 0;
	side->twos = twos;
	return sides + 1;
}

static int vertex_visit(int (*at)[OCS_FACTORS], int i, const int *from, int axis, int layer)
{
	memcpy(at[i], from, sizeof(at[i]));
	at[i][axis] = layer;
	return i + 1;
}

/* One vertex of the base and the layers above it, up or DOWN, with what its sides take. */
static int column_visit(int (*at)[OCS_FACTORS], int i, const int *from, int host, int axis,
			int depth, bool down, const struct side *side, int sides)
{
	int d, k;

	for (d = down ? depth : 0; down ? d >= 0 : d <= depth; d += down ? -1 : 1) {
		int low = down ? d - 1 : d;

		i = vertex_visit(at, i, from, axis, d);
		for (k = 0; k < sides; k++) {
			if (side[k].host != host || low < side[k].first ||
			    (low - side[k].first) % 2 || (low - side[k].first) / 2 >= side[k].twos)
				continue;
			i = vertex_visit(at, i, side[k].at, axis, d);
			i = vertex_visit(at, i, side[k].at, axis, down ? d - 1 : d + 1);
		}
	}
	return i;
}

/* A cycle on the first N-1 axes, from which pairs of neighbours reach out along
 * the last axis: each detour is 2 * depth longer. */
static void cycle_walk(const int *length, const int *tile, int n, int steps,
		       enum ocs_walk_kind kind, int (*at)[OCS_FACTORS])
{
	int axis = n - 1, inner, full, rest, parity = 0, single = -1, sides = 0, i, j;
	int(*base)[OCS_FACTORS];
	struct side side[2];
	int *order, *depth;

	if (n == 1) {
		for (i = 0; i < steps; i++)
			at[i][0] = i;
		return;
	}
	if (n == 2 && kind != OCS_WALK_ROUND) {
		bool extra = !comb_back(length[0], length[1], steps, false) &&
			     !comb_back(length[1], length[0], steps, false);
		int back = comb_back(length[0], length[1], steps, extra);

		if (back)
			comb_walk(0, 1, back, length[1], steps, at);
		else
			comb_walk(1, 0, comb_back(length[1], length[0], steps, extra), length[0],
				  steps, at);
		return;
	}
	inner = cycle_longest(length, n - 1, steps, kind);
	base = ocs_calloc((size_t)inner, sizeof(*base));
	order = ocs_calloc((size_t)inner / 2, sizeof(*order));
	depth = ocs_calloc((size_t)inner, sizeof(*depth));
	cycle_walk(length, tile, n - 1, inner, kind, base);
	/* whole layers first, what is left in as few tiles as possible */
	full = (steps - inner) / 2 / (inner / 2);
	rest = (steps - inner) / 2 % (inner / 2);
	if (full >= length[axis] - 1) {
		rest = (steps - inner) / 2 - (length[axis] - 1) * (inner / 2);
		full = length[axis] - 1;
	}
	if (full < length[axis] - 1 && rest)
		parity = pairs_choose(base, inner, length, tile, n - 1, rest, order);
	if (inner & 1)
		single = parity ? 0 : inner - 1;
	if (full == length[axis] - 1) {
		sides = sides_make(base, inner, length, n - 1, single, rest, side);
		rest = 0;
	}
	for (i = 0; i < inner / 2; i++)
		depth[2 * i + parity] = full;
	for (i = 0; i < rest; i++)
		depth[2 * order[i] + parity]++;
	for (i = 0, j = 0; j + 1 < inner; j += 2) {
		int from = j + parity, to = (j + parity + 1) % inner;

		i = column_visit(at, i, base[from], from, axis, depth[from], false, side, sides);
		i = column_visit(at, i, base[to], to, axis, depth[from], true, side, sides);
	}
	if (single >= 0)
		vertex_visit(at, i, base[single], axis, 0);
	free(depth);
	free(order);
	free(base);
}

int ocs_walk(const int *length, const int *tile, int n, int steps, enum ocs_walk_kind kind,
	     int (*at)[OCS_FACTORS])
{
	int i, j;

	if (!ocs_walk_fits(length, n, steps, kind))
		return -1;
	memset(at, 0, sizeof(*at) * (size_t)steps);
	if (kind != OCS_WALK_LINE) {
		cycle_walk(length, tile, n, steps, kind, at);
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
