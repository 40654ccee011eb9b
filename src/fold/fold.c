/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/fold/fold.h"

#include <stdlib.h>
#include <string.h>

#include "src/util/error.h"
#include "src/util/text.h"

static const char axis_name[] = "xyz";

/* One factor alone carries a dimension. */
static int factor_straight(const struct ocs_factor *factor, int extent, bool mesh, int dim,
			   struct ocs_error *err)
{
	if (factor->length != extent)
		return ocs_error_set(err, OCS_ERROR,
				     "folding: dimension %d has extent %d but lies "
				     "on %d XPUs",
				     dim + 1, extent, factor->length);
	if (factor->kind == OCS_FACTOR_PATH && extent > 2 && !mesh)
		return ocs_error_set(err, OCS_ERROR,
				     "folding: the ring of dimension %d lies on an "
				     "open axis",
				     dim + 1);
	return 0;
}

enum ocs_walk_kind ocs_fold_walk_kind(const struct ocs_shape *shape, int dim,
				      const struct ocs_lattice *host)
{
	int a;

	if (shape->mesh[dim])
		return OCS_WALK_LINE;
	if (shape->extent[dim] & 1)
		return OCS_WALK_ROUND;
	for (a = 0; a < OCS_FOLD_AXES; a++) {
		if (host->edge[a] & 1 && host->edge[a] > 1)
			return OCS_WALK_SNUG;
	}
	return OCS_WALK_CYCLE;
}

static int dim_make(const struct ocs_folding *folding, const struct ocs_shape *shape, int dim,
		    const struct ocs_lattice *host, struct ocs_fold_entry *entries,
		    struct ocs_error *err)
{
	int n = folding->dim[dim].n, length[OCS_FACTORS], tile[OCS_FACTORS], i, j;
	const struct ocs_factor *factor = folding->dim[dim].factor;
	enum ocs_walk_kind kind = ocs_fold_walk_kind(shape, dim, host);
	int extent = shape->extent[dim];
	int(*at)[OCS_FACTORS];

	if (!n) {
		if (extent != 1)
			return ocs_error_set(err, OCS_ERROR,
					     "folding: dimension %d has extent %d "
					     "but no axis",
					     dim + 1, extent);
		return 0;
	}
	at = ocs_realloc(NULL, (size_t)extent * sizeof(*at));
	for (j = 0; j < n; j++) {
		bool bit = factor[j].kind >= OCS_FACTOR_BIT0;

		length[j] = factor[j].length;
		tile[j] = bit ? 1 : host->tile[factor[j].axis];
	}
	if (n == 1) {
		if (factor_straight(factor, extent, shape->mesh[dim], dim, err))
			goto bad;
		for (i = 0; i < extent; i++)
			at[i][0] = i;
	} else if ((factor->kind == OCS_FACTOR_RING) != (kind == OCS_WALK_ROUND) ||
		   ocs_walk(length, tile, n, extent, kind, at)) {
		ocs_error_set(err, OCS_ERROR,
			      "folding: extent %d of dimension %d does not run "
			      "around its axes",
			      extent, dim + 1);
		goto bad;
	}
	for (i = 0; i < extent; i++) {
		for (j = 0; j < n; j++) {
			if (factor[j].kind == OCS_FACTOR_BIT0)
				entries[i].bits[factor[j].axis] |= (unsigned char)at[i][j];
			else if (factor[j].kind == OCS_FACTOR_BIT1)
				entries[i].bits[factor[j].axis] |= (unsigned char)(at[i][j] << 1);
			else
				entries[i].at[factor[j].axis] += at[i][j];
		}
	}
	free(at);
	return 0;
bad:
	free(at);
	return -1;
}

/* Every axis belongs to one path or ring, or to two bits, of the right length. */
static int axes_check(const struct ocs_folding *folding, const struct ocs_shape *shape,
		      const struct ocs_lattice *host, struct ocs_fold_table *table,
		      struct ocs_error *err)
{
	int used[OCS_FOLD_AXES] = { 0 }, d, j, a;

	for (d = 0; d < folding->ndim; d++) {
		for (j = 0; j < folding->dim[d].n; j++) {
			const struct ocs_factor *f = &folding->dim[d].factor[j];
			int mark = f->kind == OCS_FACTOR_BIT0 ? 1 :
				   f->kind == OCS_FACTOR_BIT1 ? 2 :
								3;

			if (f->length < 2 || used[f->axis] & mark)
				return ocs_error_set(err, OCS_ERROR,
						     "folding: axis %c is used "
						     "twice or too short",
						     axis_name[f->axis]);
			used[f->axis] |= mark;
			if (mark != 3)
				table->bits[f->axis] = true;
			if (mark == 3 ? f->length != folding->box[f->axis] :
					f->length != 2 || folding->box[f->axis] != 4)
				return ocs_error_set(err, OCS_ERROR,
						     "folding: axis %c is not as "
						     "long as what lies on it",
						     axis_name[f->axis]);
			if (folding->closed[f->axis] != (f->kind != OCS_FACTOR_PATH) ||
			    (f->kind == OCS_FACTOR_RING && j))
				return ocs_error_set(err, OCS_ERROR,
						     "folding: axis %c is not closed "
						     "as its ring needs",
						     axis_name[f->axis]);
		}
	}
	for (a = 0; a < OCS_FOLD_AXES; a++) {
		int edge = host->edge[a], box = folding->box[a];

		if (!used[a] && (box != 1 || folding->closed[a]))
			return ocs_error_set(err, OCS_ERROR, "folding: nothing lies on axis %c",
					     axis_name[a]);
		if (host->fixed ? box > edge : box > (long)edge * host->ncubes)
			return ocs_error_set(err, OCS_ERROR,
					     "folding: the box is larger than the "
					     "machine on axis %c",
					     axis_name[a]);
		if (folding->closed[a] && (host->fixed ? box != edge : box % edge))
			return ocs_error_set(err, OCS_ERROR,
					     "folding: a ring of %d cannot close on "
					     "axis %c",
					     box, axis_name[a]);
		if (folding->closed[a] && ((box < 3 && !shape->twisted) || folding->flip & 1u << a))
			return ocs_error_set(err, OCS_ERROR,
					     "folding: axis %c is closed but has "
					     "%d layers or is mirrored",
					     axis_name[a], box);
	}
	return 0;
}

bool ocs_fold_twist_fits(const struct ocs_folding *folding, const struct ocs_shape *shape,
			 const struct ocs_lattice *host)
{
	int d, e;

	if (!shape->twisted)
		return true;
	if (host->fixed)
		return false;
	for (d = 0; d < shape->ndim; d++) {
		if (folding->dim[d].n != 1 || folding->dim[d].factor[0].kind != OCS_FACTOR_RING)
			return false;
		for (e = 0; e < shape->ndim; e++) {
			if (ocs_shape_shift(shape, e, d) %
			    host->edge[folding->dim[d].factor[0].axis])
				return false;
		}
	}
	return true;
}

int ocs_fold_table_make(const struct ocs_folding *folding, const struct ocs_shape *shape,
			const struct ocs_lattice *host, struct ocs_fold_table *table,
			struct ocs_error *err)
{
	struct ocs_fold_entry *entries;
	size_t total = 0;
	int d;

	memset(table, 0, sizeof(*table));
	if (folding->ndim != shape->ndim)
		return ocs_error_set(err, OCS_ERROR, "folding: %d dimensions for a shape of %d",
				     folding->ndim, shape->ndim);
	if (axes_check(folding, shape, host, table, err))
		return -1;
	if (!ocs_fold_twist_fits(folding, shape, host))
		return ocs_error_set(err, OCS_ERROR,
				     "folding: a twisted torus lies on whole cubes, "
				     "straight and closed");
	memcpy(table->box, folding->box, sizeof(table->box));
	table->flip = folding->flip;
	table->ndim = shape->ndim;
	for (d = 0; d < shape->ndim; d++)
		total += (size_t)shape->extent[d];
	entries = ocs_calloc(total, sizeof(*entries));
	for (d = 0; d < shape->ndim; d++) {
		table->extent[d] = shape->extent[d];
		table->dim[d] = entries;
		if (dim_make(folding, shape, d, host, entries, err)) {
			ocs_fold_table_free(table);
			return -1;
		}
		entries += shape->extent[d];
	}
	return 0;
}

/* Layers of tiles on an axis of the box, and of ENTRY which it is in.  The lower of two bits is within
 * tiles of two layers, both within those of four. */
static int tile_layers(const struct ocs_fold_table *table, int axis, int tile)
{
	return table->bits[axis] ? 4 : (table->box[axis] - 1) / tile + 1;
}

static int tile_layer(const struct ocs_fold_table *table, int axis, int tile,
		      const struct ocs_fold_entry *entry)
{
	return table->bits[axis] ? entry->bits[axis] & ~(tile - 1) : entry->at[axis] / tile;
}

long ocs_fold_table_nodes(const struct ocs_fold_table *table, const struct ocs_lattice *host)
{
	const int *tile = host->tile;
	int layers[OCS_FOLD_AXES], d, c, a;
	long nodes = 1;
	bool *seen;

	for (a = 0; a < OCS_FOLD_AXES; a++)
		layers[a] = tile_layers(table, a, tile[a]);
	seen = ocs_calloc((size_t)layers[0] * (size_t)layers[1] * (size_t)layers[2], sizeof(*seen));
	/* each dimension has axes of its own */
	for (d = 0; d < table->ndim; d++) {
		long count = 0;

		memset(seen, 0, (size_t)layers[0] * (size_t)layers[1] * (size_t)layers[2]);
		for (c = 0; c < table->extent[d]; c++) {
			const struct ocs_fold_entry *entry = &table->dim[d][c];
			int at = 0;

			for (a = 0; a < OCS_FOLD_AXES; a++)
				at = at * layers[a] + tile_layer(table, a, tile[a], entry);
			count += !seen[at];
			seen[at] = true;
		}
		nodes *= count;
	}
	free(seen);
	return nodes;
}

void ocs_fold_table_mirror(const struct ocs_fold_table *table, unsigned int flip,
			   struct ocs_fold_table *to)
{
	size_t total = 0;
	int d;

	*to = *table;
	to->flip = flip;
	for (d = 0; d < table->ndim; d++)
		total += (size_t)table->extent[d];
	to->dim[0] = ocs_calloc(total, sizeof(*to->dim[0]));
	memcpy(to->dim[0], table->dim[0], total * sizeof(*to->dim[0]));
	for (d = 1; d < table->ndim; d++)
		to->dim[d] = to->dim[d - 1] + table->extent[d - 1];
}

void ocs_fold_table_free(struct ocs_fold_table *table)
{
	free(table->dim[0]);
	memset(table, 0, sizeof(*table));
}
