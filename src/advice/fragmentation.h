/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_ADVICE_FRAGMENTATION_H
#define OCS_ADVICE_FRAGMENTATION_H

/* How much room the free XPUs of a torus or static section are. */

#include "src/place/place.h"

/* The boxes that a section's cubes are halved into: the whole cube, then the longest
 * side halved again and again down to two XPUs. */
struct ocs_fragmentation;
struct ocs_fragmentation *ocs_fragmentation_create(const struct ocs_section *section);
void ocs_fragmentation_destroy(struct ocs_fragmentation *room);

/* The share (0..1) of the free XPUs that are of no use to larger jobs: for each size of
 * box, the free XPUs that lie in no wholly free box of that size, on average over the
 * sizes.  A box lies at a multiple of its sides; per cube the direction counts in which
 * most are free.  Whole cubes are of use at every size.  0: all free XPUs are in whole cubes, or none is free; nearly 1: each
 * is alone. */
double ocs_fragmentation_measure(const struct ocs_fragmentation *room,
				 const struct ocs_occupancy *occupancy);

/* Free XPUs, and cubes that are wholly free. */
long ocs_fragmentation_free_xpus(const struct ocs_occupancy *occupancy);
int ocs_fragmentation_whole_cubes(const struct ocs_occupancy *occupancy);

/* A large shape of NDIM (1..3) dimensions, all rings, that ocs_place puts onto what is free
 * now: the first that fits of a list that descends by steps of an eighth at least.  A
 * ring is even; in more dimensions extents are powers of two or multiples of the edge,
 * each at most four times the next, and of one size the most compact is tried.  False:
 * not even the smallest fits. */
bool ocs_fragmentation_largest(struct ocs_placer *placer, const struct ocs_occupancy *occupancy,
			       int ndim, struct ocs_shape *shape);

#endif
