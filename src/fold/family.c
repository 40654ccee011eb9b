/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Lists foldings: shares the axes (whole, or as two bits) out to the dimensions
 * in every way and, where a dimension runs around several axes, tries every box
 * that is not needlessly long.  An odd ring that does so goes once round an axis that is
 * closed and odd. */

#include "src/fold/fold.h"

#define POOL (2 * OCS_FOLD_AXES)

struct family {
	const struct ocs_shape *shape;
	const struct ocs_lattice *host;
	bool partial;
	bool (*visit)(const struct ocs_folding *folding, void *arg);
	void *arg;
	int count;
	bool stop;
	struct ocs_folding now;
	bool dim_partial[OCS_SHAPE_DIMS];
	int twin[OCS_SHAPE_DIMS];	  /* the dimension before that is alike; -1: none */
	unsigned int set[OCS_SHAPE_DIMS]; /* of the pool, what each dimension has */
	struct ocs_factor pool[POOL];	  /* what the axes offer */
	int npool;
};

static void next_dim(struct family *f, int dim, unsigned int used);

static bool is_bit(const struct ocs_factor *factor)
{
	return factor->kind >= OCS_FACTOR_BIT0;
}

/* All dimensions have their factors: fill in the box and hand it out, mirrored in
 * every way that makes a difference. */
static void family_complete(struct family *f)
{
	struct ocs_folding *now = &f->now;
	unsigned int mirror = 0, flip;
	long cubes = 1;
	int d, j, a;

	now->filled = true;
	for (a = 0; a < OCS_FOLD_AXES; a++) {
		now->box[a] = 1;
		now->closed[a] = false;
	}
	for (d = 0; d < now->ndim; d++) {
		now->filled &= !f->dim_partial[d];
		for (j = 0; j < now->dim[d].n; j++) {
			const struct ocs_factor *factor = &now->dim[d].factor[j];

			now->box[factor->axis] = is_bit(factor) ? 4 : factor->length;
			now->closed[factor->axis] = factor->kind != OCS_FACTOR_PATH;
			if (f->dim_partial[d] && factor->kind == OCS_FACTOR_PATH)
				mirror |= 1u << factor->axis;
		}
	}
	if (now->filled == f->partial || !ocs_fold_twist_fits(now, f->shape, f->host))
		return;
	for (a = 0; a < OCS_FOLD_AXES && !f->host->fixed; a++)
		cubes *= (now->box[a] + f->host->edge[a] - 1) / f->host->edge[a];
	if (cubes > f->host->ncubes)
		return;
	for (flip = 0; flip < 1u << OCS_FOLD_AXES && !f->stop; flip++) {
		if (flip & ~mirror)
			continue;
		now->flip = flip;
		f->count++;
		f->stop = !f->visit(now, f->arg);
	}
	now->flip = 0;
}

static int longest_axis(const struct family *f, int axis)
{
	return f->host->fixed ? f->host->edge[axis] : f->host->edge[axis] * f->host->ncubes;
}

/* One axis or bit carries the dimension straight. */
static void dimension_straight(struct family *f, int dim, unsigned int used,
			       struct ocs_factor factor)
{
	int extent = f->shape->extent[dim], edge = f->host->edge[factor.axis];
	bool ring = f->shape->twisted || (extent > 2 && !f->shape->mesh[dim]);

	if (is_bit(&factor)) {
		if (extent != 2)
			return;
	} else {
		if (extent > longest_axis(f, factor.axis))
			return;
		if (ring && (f->host->fixed ? extent != edge : extent % edge))
			return;
		factor.kind = ring ? OCS_FACTOR_RING : OCS_FACTOR_PATH;
		factor.length = extent;
	}
	f->now.dim[dim].n = 1;
	f->now.dim[dim].factor[0] = factor;
	f->dim_partial[dim] = false;
	next_dim(f, dim + 1, used);
}

/* The lengths are chosen: try the orders of the factors.  For a filled box one
 * order that works is as good as another; otherwise the last factor decides where
 * the gaps are. */
static void factor_orders(struct family *f, int dim, unsigned int used,
			  const struct ocs_factor *chosen, int n)
{
	int extent = f->shape->extent[dim], length[OCS_FACTORS], last, j, k;
	enum ocs_walk_kind kind = ocs_fold_walk_kind(f->shape, dim, f->host);
	int first = kind == OCS_WALK_ROUND; /* stays where it is */
	long all = 1;

	for (j = 0; j < n; j++)
		all *= chosen[j].length;
	f->dim_partial[dim] = all != extent;
	for (last = n - 1; last >= first && !f->stop; last--) {
		struct ocs_factor *to = f->now.dim[dim].factor;

		for (j = 0, k = 0; j < n; j++) {
			if (j != last)
				to[k++] = chosen[j];
		}
		to[k] = chosen[last];
		for (j = 0; j < n; j++)
			length[j] = to[j].length;
		if (!ocs_walk_fits(length, n, extent, kind))
			continue;
		f->now.dim[dim].n = n;
		next_dim(f, dim + 1, used);
		if (all == extent)
			return;
	}
}

/* A box is needlessly long if the extent still fits after an axis gives up one
 * layer, or one layer of tiles where it ends on a tile border. */
static bool factors_needless(const struct family *f, const struct ocs_factor *chosen, int n,
			     int extent)
{
	long behind[OCS_FACTORS + 1], before = 1; /* layers across the factors behind, and before */
	int j;

	for (j = n, behind[n] = 1; j > 0; j--)
		behind[j - 1] = behind[j] * chosen[j - 1].length;
	for (j = 0; j < n; before *= chosen[j++].length) {
		int tile = f->host->tile[chosen[j].axis], length = chosen[j].length, less;

		if (chosen[j].kind == OCS_FACTOR_RING)
			continue;
		less = is_bit(&chosen[j]) || tile == 1 || length % tile ? length - 1 :
									  length - tile;
		if (before * behind[j + 1] * less >= extent)
			return true;
	}
	return false;
}

/* What the dimensions before DIM and the factors of CHOSEN whose length is known before J leave of the
 * cubes that there are. */
struct room {
	long cubes; /* along what is known, at the least */
	long layer; /* XPUs of a cube across the paths from J + 1 on */
};

static struct room room_left(const struct family *f, int dim, const struct ocs_factor *chosen,
			     int n, int j)
{
	struct room room = { 1, 1 };
	int d, k;

	for (d = 0; d < dim; d++) {
		for (k = 0; k < f->now.dim[d].n; k++) {
			const struct ocs_factor *factor = &f->now.dim[d].factor[k];
			int edge = f->host->edge[factor->axis];

			if (!is_bit(factor))
				room.cubes *= (factor->length + edge - 1) / edge;
		}
	}
	for (k = 0; k < n; k++) {
		int edge = f->host->edge[chosen[k].axis];

		if (is_bit(&chosen[k]) || k == j)
			continue;
		if (k < j || chosen[k].kind == OCS_FACTOR_RING)
			room.cubes *= (chosen[k].length + edge - 1) / edge;
		else
			room.layer *= edge;
	}
	return room;
}

/* Whether a path at J along CUBES cubes, and whatever lengths the paths behind it get, NEED together at
 * the least, leave the box within the cubes that there are. */
static bool room_enough(const struct family *f, const struct room *room, int cubes, int need)
{
	int layer = (int)room->layer;

	return room->cubes * cubes * (layer == 1 ? need : (need + layer - 1) / layer) <=
	       f->host->ncubes;
}

/* How many paths among CHOSEN from index J on a length will be given to. */
static int paths_count(const struct ocs_factor *chosen, int n, int j)
{
	int paths = 0;

	for (; j < n; j++)
		paths += !is_bit(&chosen[j]) && chosen[j].kind != OCS_FACTOR_RING;
	return paths;
}

/* Gives lengths to the paths among CHOSEN from index J on.  Thousands of cubes have so many
 * boxes that those which cannot become one are left out as early as may be; and so many are looked at that
 * a division counts. */
static void factor_lengths(struct family *f, int dim, unsigned int used, struct ocs_factor *chosen,
			   int n, int j, long so_far)
{
	int extent = f->shape->extent[dim], most, tile, edge, length, later, cubes, need, least;
	struct room room;

	while (j < n && (is_bit(&chosen[j]) || chosen[j].kind == OCS_FACTOR_RING))
		j++;
	if (j == n) {
		if (so_far >= extent && !factors_needless(f, chosen, n, extent))
			factor_orders(f, dim, used, chosen, n);
		return;
	}
	tile = f->host->tile[chosen[j].axis];
	edge = f->host->edge[chosen[j].axis];
	room = room_left(f, dim, chosen, n, j);
	need = so_far < extent ? (int)((extent + so_far - 1) / so_far) : 1;
	most = longest_axis(f, chosen[j].axis);
	later = paths_count(chosen, n, j + 1);
	/* a layer of tiles more than with the others at their least would be needless */
	least = (need + (1 << later) - 1) >> later;
	if (least + tile - 1 < most)
		most = least + tile - 1;
	chosen[j].kind = OCS_FACTOR_PATH;
	/* the last of them has to reach the extent */
	length = need > 2 && !later ? (need <= most ? need : most + 1) : 2;
	cubes = (length + edge - 1) / edge;
	for (; length <= most && !f->stop; length++) {
		cubes += length > cubes * edge;
		chosen[j].length = length;
		if (f->host->fixed ||
		    room_enough(f, &room, cubes, later ? (need + length - 1) / length : 1))
			factor_lengths(f, dim, used, chosen, n, j + 1, so_far * length);
	}
}

/* An odd ring: each axis in turn is the one it goes round. */
static void ring_rounds(struct family *f, int dim, unsigned int used,
			const struct ocs_factor *chosen, int n, long so_far)
{
	int extent = f->shape->extent[dim], i, j, k;
	struct ocs_factor to[OCS_FACTORS];

	for (i = 0; i < n; i++) {
		int axis = chosen[i].axis, edge = f->host->edge[axis], length;

		if (is_bit(&chosen[i]) || !(edge & 1))
			continue;
		for (j = 0, k = 1; j < n; j++) {
			if (j != i)
				to[k++] = chosen[j];
		}
		to[0] = chosen[i];
		to[0].kind = OCS_FACTOR_RING;
		for (length = edge; length < extent && length <= longest_axis(f, axis) && !f->stop;
		     length += 2 * edge) {
			to[0].length = length;
			if (length > 1)
				factor_lengths(f, dim, used, to, n, 0, so_far * length);
			if (f->host->fixed)
				break;
		}
	}
}

/* SET of the pool carries the dimension. */
static void pool_share(struct family *f, int dim, unsigned int used, unsigned int set)
{
	int extent = f->shape->extent[dim], n = 0, i, axes = 0;
	struct ocs_factor chosen[OCS_FACTORS];
	bool own = false;
	long bits = 1;

	/* bits first: so_far is then exact when the paths get their lengths */
	for (i = 0; i < f->npool; i++) {
		if (!(set & 1u << i) || !is_bit(&f->pool[i]))
			continue;
		if (axes & 1 << f->pool[i].axis)
			return; /* both bits for one dimension: a path does the same */
		axes |= 1 << f->pool[i].axis;
		bits *= 2;
		chosen[n++] = f->pool[i];
	}
	for (i = 0; i < f->npool; i++) {
		if (set & 1u << i && !is_bit(&f->pool[i]))
			chosen[n++] = f->pool[i];
		own |= set & 1u << i && f->pool[i].axis == dim;
	}
	if (f->shape->no_rotate && !own)
		return;
	used |= set;
	if (n == 1) {
		dimension_straight(f, dim, used, chosen[0]);
		return;
	}
	if (f->shape->no_fold || f->shape->twisted || extent < 3)
		return;
	if (extent & 1 && !f->shape->mesh[dim])
		ring_rounds(f, dim, used, chosen, n, bits);
	else
		factor_lengths(f, dim, used, chosen, n, 0, bits);
}

static void next_dim(struct family *f, int dim, unsigned int used)
{
	unsigned int all = (1u << f->npool) - 1, left = all & ~used, first, set;
	int i;

	while (dim < f->shape->ndim && f->shape->extent[dim] == 1)
		f->now.dim[dim++].n = 0;
	if (dim == f->shape->ndim) {
		for (i = 0; i < f->npool; i++) {
			if (is_bit(&f->pool[i]) && left & 1u << i)
				return; /* half an axis in use: a path of two */
		}
		family_complete(f);
		return;
	}
	/* dimensions that are alike could change places, which gives the same folding again */
	first = f->twin[dim] < 0 ? 1 : f->set[f->twin[dim]];
	/* all sets of what is LEFT, in ascending order */
	for (set = -left & left; set && !f->stop; set = (set - left) & left) {
		if (set < first)
			continue;
		f->set[dim] = set;
		pool_share(f, dim, used, set);
	}
}

static int dimension_twin(const struct ocs_shape *shape, int dim)
{
	int d = dim - 1;

	while (d >= 0 &&
	       (shape->extent[d] != shape->extent[dim] || shape->mesh[d] != shape->mesh[dim]))
		d--;
	return shape->twisted || shape->no_rotate ? -1 : d;
}

int ocs_fold_family(const struct ocs_shape *shape, const struct ocs_lattice *host, bool partial,
		    bool (*visit)(const struct ocs_folding *folding, void *arg), void *arg)
{
	struct family f = {
		.shape = shape, .host = host, .partial = partial, .visit = visit, .arg = arg
	};
	unsigned int split;
	int a, d;

	f.now.ndim = shape->ndim;
	for (d = 0; d < shape->ndim; d++)
		f.twin[d] = dimension_twin(shape, d);
	for (split = 0; split < 1u << OCS_FOLD_AXES && !f.stop; split++) {
		bool possible = true;

		f.npool = 0;
		for (a = 0; a < OCS_FOLD_AXES; a++) {
			struct ocs_factor factor = { .axis = a, .length = 0 };

			if (!(split & 1u << a)) {
				f.pool[f.npool++] = factor;
				continue;
			}
			possible &= host->edge[a] == 4 ||
				    (host->edge[a] == 2 && !host->fixed && host->ncubes > 1);
			factor.length = 2;
			factor.kind = OCS_FACTOR_BIT0;
			f.pool[f.npool++] = factor;
			factor.kind = OCS_FACTOR_BIT1;
			f.pool[f.npool++] = factor;
		}
		if (possible)
			next_dim(&f, 0, 0);
	}
	return f.count;
}
