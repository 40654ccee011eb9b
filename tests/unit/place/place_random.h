/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef TESTS_UNIT_PLACE_RANDOM_H
#define TESTS_UNIT_PLACE_RANDOM_H

/* Repeatable random fabrics, occupancies and shapes. */

#include <stdint.h>
#include <string.h>

#include "src/place/place.h"

static uint64_t random_state = 1;

static inline uint32_t random_next(uint32_t below)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return (uint32_t)((random_state * 0x2545f4914f6cdd1dULL) >> 33) % below;
}

static inline void random_shape(struct ocs_shape *shape, int dims, int most)
{
	int d;

	memset(shape, 0, sizeof(*shape));
	shape->ndim = 1 + (int)random_next((uint32_t)dims);
	shape->xpus = 1;
	for (d = 0; d < shape->ndim; d++) {
		shape->extent[d] = 1 + (int)random_next((uint32_t)most);
		if (random_next(3)) /* mostly even, so that most shapes fit */
			shape->extent[d] = (shape->extent[d] + 1) & ~1;
		shape->mesh[d] = !random_next(5);
		shape->xpus *= shape->extent[d];
	}
	shape->no_rotate = !random_next(8);
	shape->no_fold = !random_next(8);
}

/* Some nodes busy, now and then a cube drained or a face port blocked. */
static inline void random_occupancy(struct ocs_occupancy *occupancy,
				    const struct ocs_fabric *fabric)
{
	const struct ocs_section *s = occupancy->section;
	uint32_t busy = random_next(100);
	int node, cube, i;

	ocs_occupancy_reset(occupancy);
	for (cube = 0; cube < s->ncubes; cube++) {
		bool whole = !random_next(4); /* some cubes stay whole */

		for (node = 0; node < s->cube_nodes; node++) {
			if (!whole && random_next(100) < busy)
				ocs_occupancy_node_set(occupancy, fabric,
						       s->first_node + cube * s->cube_nodes + node,
						       false);
		}
		if (!random_next(8) && s->kind == OCS_TORUS)
			ocs_occupancy_cube_drain(occupancy, cube);
	}
	for (i = random_next(3) ? 0 : (int)random_next(20); i > 0 && s->kind == OCS_TORUS; i--) {
		int dim = (int)random_next(3), sign = (int)random_next(2);
		uint32_t bit = random_next((uint32_t)(dim == 2 ? s->edge[0] * s->edge[1] :
						      dim == 1 ? s->edge[0] * s->edge[2] :
								 s->edge[1] * s->edge[2]));
		uint64_t *words = (uint64_t *)(uintptr_t)ocs_occupancy_blocked(
			occupancy, (int)random_next((uint32_t)s->ncubes), dim, sign);

		words[bit / 64] |= 1ULL << bit % 64;
		occupancy->any_blocked = true;
	}
}

#endif
