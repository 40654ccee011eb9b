/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_PLACE_PLACER_H
#define OCS_PLACE_PLACER_H

/* Inside of the engine. */

#include "src/place/embed.h"
#include "src/place/fit.h"
#include "src/place/place.h"
#include "src/place/thread.h"

#define OCS_PLACER_CATALOGUES 128
#define OCS_PLACER_BYTES (64UL << 20)	/* of all catalogues, unless one takes more */

struct ocs_placer {
	const struct ocs_fabric *fabric;
	const struct ocs_section *section;
	struct ocs_fit *fit;
	struct ocs_thread *thread;	/* NULL unless the section has threading */
	struct ocs_embed *embed;
	long budget;		/* of its search, 0: it is not asked */
	struct ocs_catalogue *catalogues[OCS_PLACER_CATALOGUES];	/* last used first */
	int asked[OCS_PLACER_CATALOGUES];	/* node count they were made for */
	signed char embeds[OCS_PLACER_CATALOGUES];	/* a shape without a box: whether
				 * the empty section holds it, 0: not asked yet, -1: no */
	int ncatalogues;
	size_t bytes;
	struct ocs_place_work work;	/* of the last ocs_place */
	unsigned char *mark;	/* one zeroed byte per node of the section */
};

/* OCS_USAGE unless the section has cubes.  Returns 0 or -1. */
int ocs_placer_check(const struct ocs_placer *placer, struct ocs_error *err);

/* Links that an XPU in the middle of SHAPE needs, and those it has. */
int ocs_reason_links(const struct ocs_shape *shape);
#define OCS_REASON_PORTS 6

/* How many of the three axes of a static torus SHAPE takes at least: a dimension longer than
 * every side takes two or, if need be, three.  0: nobody knows. */
int ocs_reason_axes(const struct ocs_section *section, const struct ocs_shape *shape);

/* Whether a shape that is nothing but dimension DIM of SHAPE, of this EXTENT, fits. */
bool ocs_reason_alone(const struct ocs_section *section, const struct ocs_shape *shape, int dim,
		      int extent);

/* Say why SHAPE can never be placed, or why no candidate of CAT fits now.  Return
 * -1 always. */
int ocs_reason_never(struct ocs_placer *placer, const struct ocs_shape *shape,
		     struct ocs_error *err);
int ocs_reason_not_now(struct ocs_placer *placer, const struct ocs_catalogue *cat,
		       const struct ocs_occupancy *occupancy, struct ocs_error *err);

#endif
