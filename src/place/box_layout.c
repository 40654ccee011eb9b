/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/place/box_layout.h"

#include <string.h>

void ocs_lattice_of(const struct ocs_section *section, struct ocs_lattice *host)
{
	memcpy(host->edge, section->edge, sizeof(host->edge));
	memcpy(host->tile, section->tile, sizeof(host->tile));
	host->fixed = section->kind == OCS_STATIC;
	host->ncubes = section->ncubes;
}

bool ocs_box_layout_valid(const struct ocs_section *section, const struct ocs_folding *folding,
			  const struct ocs_box_layout *lay)
{
	bool fixed = section->kind == OCS_STATIC;
	long cubes = 1;
	int a;

	for (a = 0; a < OCS_AXES; a++) {
		if (lay->count[a] < 1 || lay->count[a] > section->ncubes ||
		    (fixed && lay->count[a] != 1))
			return false;
		if (lay->offset[a] < 0 || lay->offset[a] >= section->edge[a])
			return false;
		if (folding->box[a] > (long)lay->count[a] * section->edge[a])
			return false;
		if (folding->closed[a] &&
		    (lay->offset[a] || folding->box[a] != lay->count[a] * section->edge[a]))
			return false;
		cubes *= lay->count[a];
	}
	return cubes <= section->ncubes;
}

/* One vertex: SUM is the sum of its entries. */
static inline void place_one(const struct ocs_section *section, const struct ocs_fold_table *table,
			     const struct ocs_box_layout *lay, const struct ocs_fold_entry *sum,
			     struct ocs_xpu *xpu)
{
	int at[OCS_AXES], a;

	ocs_fold_at(table, sum, at);
	xpu->cube = 0;
	for (a = 0; a < OCS_AXES; a++) {
		int edge = section->edge[a], g = lay->offset[a] + at[a], piece = 0;

		if (g >= edge) { /* divisions are dear, most boxes are small */
			piece = g / edge;
			g -= piece * edge;
			if (piece >= lay->count[a])
				piece -= lay->count[a];
		}
		xpu->at[a] = g;
		xpu->cube = xpu->cube * lay->count[a] + piece;
	}
}

void ocs_box_layout_xpus(const struct ocs_section *section, const struct ocs_fold_table *table,
			 const struct ocs_box_layout *lay, struct ocs_xpu *xpus)
{
	int coord[OCS_SHAPE_DIMS] = { 0 }, last = table->ndim - 1, d, c;

	while (true) {
		struct ocs_fold_entry base = { { 0 }, { 0 } }, sum;

		for (d = 0; d < last; d++)
			ocs_fold_add(&base, &table->dim[d][coord[d]]);
		for (c = 0; c < table->extent[last]; c++) {
			sum = base;
			ocs_fold_add(&sum, &table->dim[last][c]);
			place_one(section, table, lay, &sum, xpus++);
		}
		for (d = last - 1; d >= 0 && ++coord[d] == table->extent[d]; d--)
			coord[d] = 0;
		if (d < 0)
			return;
	}
}

/* The axis along which a step moves. */
static int step_axis(const struct ocs_fold_entry *from, const struct ocs_fold_entry *to)
{
	int a;

	for (a = 0; a < OCS_AXES - 1; a++) {
		if (from->at[a] != to->at[a] || from->bits[a] != to->bits[a])
			break;
	}
	return a;
}

static void circuit_set(struct ocs_circuit *circuit, int axis, const struct ocs_xpu *low,
			const struct ocs_xpu *high)
{
	circuit->dim = axis;
	circuit->pos[0] = low->at[axis ? 0 : 1];
	circuit->pos[1] = low->at[axis == 2 ? 1 : 2];
	circuit->from = low->cube;
	circuit->to = high->cube;
}

/* A step of an axis that is a path or ring: returns 1 if it crosses a cube border
 * upwards, -1 downwards, 0 if it stays inside. */
static int step_crosses(const struct ocs_section *section, const struct ocs_fold_table *table,
			const struct ocs_box_layout *lay, int axis, int from, int to)
{
	int box = table->box[axis], edge = section->edge[axis], low, up;

	if (table->flip & 1u << axis) {
		from = box - 1 - from;
		to = box - 1 - to;
	}
	up = to == from + 1 || (box > 2 && to == 0 && from == box - 1) ? 1 : -1;
	low = up > 0 ? from : to;
	return (lay->offset[axis] + low) % edge == edge - 1 ? up : 0;
}

/* The wraps of dimension D that shift others: each leaves the last layer of its axis
 * and enters the first one whole cubes further along the shifted axes. */
static int twist_circuits(const struct ocs_shape *shape, const struct ocs_fold_table *table, int d,
			  const struct ocs_xpu *xpus, struct ocs_circuit *circuits)
{
	int coord[OCS_SHAPE_DIMS], count = 0, e;
	int axis = step_axis(&table->dim[d][0], &table->dim[d][1]);
	long r;

	for (r = 0; r < shape->xpus; r++) {
		ocs_shape_coord(shape, r, coord);
		if (coord[d] != shape->extent[d] - 1)
			continue;
		coord[d] = 0;
		for (e = 0; e < shape->ndim; e++)
			coord[e] = (coord[e] + ocs_shape_shift(shape, d, e)) % shape->extent[e];
		if (circuits)
			circuit_set(&circuits[count], axis, &xpus[r],
				    &xpus[ocs_shape_rank(shape, coord)]);
		count++;
	}
	return count;
}

int ocs_box_layout_circuits(const struct ocs_section *section, const struct ocs_shape *shape,
			    const struct ocs_fold_table *table, const struct ocs_box_layout *lay,
			    const struct ocs_xpu *xpus, struct ocs_circuit *circuits)
{
	long stride = 1, outer, inner;
	int count = 0, d, c;

	if (section->kind == OCS_STATIC)
		return 0;
	for (d = shape->ndim - 1; d >= 0; stride *= shape->extent[d], d--) {
		int extent = shape->extent[d];
		int steps = extent < 3 || shape->mesh[d] ? extent - 1 : extent;

		if (ocs_shape_shifts(shape, d)) {
			count += twist_circuits(shape, table, d, xpus,
						circuits ? circuits + count : NULL);
			steps = extent - 1;
		}
		for (c = 0; c < steps; c++) {
			int next = c + 1 == extent ? 0 : c + 1, crosses = 0;
			const struct ocs_fold_entry *from = &table->dim[d][c];
			const struct ocs_fold_entry *to = &table->dim[d][next];
			int axis = step_axis(from, to), last = section->edge[axis] - 1;

			if (!table->bits[axis]) {
				crosses = step_crosses(section, table, lay, axis, from->at[axis],
						       to->at[axis]);
				if (!crosses)
					continue;
			}
			for (outer = 0; outer < shape->xpus; outer += stride * extent) {
				const struct ocs_xpu *u = xpus + outer + c * stride;
				const struct ocs_xpu *v = xpus + outer + next * stride;

				for (inner = 0; inner < stride; inner++, u++, v++) {
					int up = crosses;

					/* bits: of one cube's four XPUs 3 and 0 meet outside, of
					 * two cubes' two each all that are not in one cube */
					if (!up && (section->edge[axis] == 4 || u->cube != v->cube))
						up = (u->at[axis] == last && v->at[axis] == 0) -
						     (u->at[axis] == 0 && v->at[axis] == last);
					if (!up)
						continue;
					if (circuits)
						circuit_set(&circuits[count], axis, up > 0 ? u : v,
							    up > 0 ? v : u);
					count++;
				}
			}
		}
	}
	return count;
}
