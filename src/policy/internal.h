/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_POLICY_INTERNAL_H
#define OCS_POLICY_INTERNAL_H

#include "src/fold/fold.h"
#include "src/place/candidates.h"
#include "src/policy/policy.h"
#include "src/util/error.h"

/* A published folding of one shape, in one rotation. */
struct ocs_policy_box {
	struct ocs_fold_table table; /* where vertices lie in the box */
	struct ocs_shape shape;	     /* with the lines that it leaves */
	int cubes;		     /* pieces of the grid */
};

/* What is known about one shape. */
struct ocs_policy_shape {
	struct ocs_shape shape; /* as asked */
	struct ocs_shape use;	/* best: as placed (lines where lenient) */
	bool known, possible;
	struct ocs_policy_box *boxes; /* fewest cubes first */
	int nboxes;
	/* best effort: whether its rings close on an empty section, and sets of dimensions
	 * (bits) that may be lines there, fewest first */
	bool closes;
	unsigned char lines[1 << OCS_SHAPE_DIMS];
	int nlines;
};

enum ocs_policy_kind {
	OCS_POLICY_BEST,
	OCS_POLICY_FIRSTFIT,
	OCS_POLICY_FOLDING,
	OCS_POLICY_RECONFIG,
	OCS_POLICY_RFOLD,
	OCS_POLICY_PUBLISHED_RECONFIG,
	OCS_POLICY_UNCONSTRAINED,
	OCS_POLICY_SCRATCH,
	OCS_POLICY_BEST_EFFORT,
};

struct ocs_policy {
	enum ocs_policy_kind kind;
	const struct ocs_fabric *fabric;
	const struct ocs_section *section;
	bool lenient;
	struct ocs_placer *placer;
	struct ocs_policy_shape *shapes; /* hash table, open addressing */
	int nshapes, room;
	struct ocs_occupancy *scratch;
	struct ocs_place_work work;		 /* best: of the last decision */
	int load;				 /* best effort: edges that a link may carry */
	struct ocs_policy_scratch *scratch_jobs; /* scratch: all that runs */
	struct ocs_routes *routes;		 /* of the last answer, until somebody takes them */
};

/* The dimensions of SHAPE that are longer than 1, in their order.  Returns how many. */
int ocs_policy_dims(const struct ocs_shape *shape, int dims[OCS_SHAPE_DIMS]);
/* The boxes of SHAPE by the published rules (folding.c). */
void ocs_policy_boxes(struct ocs_policy *policy, struct ocs_policy_shape *entry);
void ocs_policy_boxes_free(struct ocs_policy_shape *entry);
/* First fit of the boxes (box.c).  NULL: none fits now. */
struct ocs_placement *ocs_policy_box_place(struct ocs_policy *policy,
					   const struct ocs_policy_shape *entry,
					   const struct ocs_occupancy *occupancy);
/* Pieces anywhere, as the published program takes them (count.c). */
struct ocs_placement *ocs_policy_loose_place(struct ocs_policy *policy,
					     const struct ocs_shape *shape,
					     const struct ocs_occupancy *occupancy);
/* Any XPUs, in the order of their nodes. */
struct ocs_placement *ocs_policy_any_place(struct ocs_policy *policy, const struct ocs_shape *shape,
					   const struct ocs_occupancy *occupancy);
/* Best effort (best_effort.c): what the empty section takes, and a placement that may
 * leave routes in POLICY. */
void ocs_policy_effort_learn(struct ocs_policy *policy, struct ocs_policy_shape *entry);
struct ocs_placement *ocs_policy_effort_place(struct ocs_policy *policy,
					      const struct ocs_policy_shape *entry,
					      const struct ocs_occupancy *occupancy);
/* Any XPUs, where best finds room once all that it was asked for before and that still runs
 * is laid anew (scratch.c). */
struct ocs_policy_scratch;
struct ocs_placement *ocs_policy_scratch_place(struct ocs_policy *policy,
					       const struct ocs_policy_shape *entry,
					       const struct ocs_occupancy *occupancy);
void ocs_policy_scratch_destroy(struct ocs_policy_scratch *jobs);
/* A placement whose XPUs are filled in by the caller; cubes, nodes and circuits follow
 * from them with ocs_policy_finish. */
struct ocs_placement *ocs_policy_start(const struct ocs_policy *policy,
				       const struct ocs_shape *shape);
/* CIRCUITS: also find the circuits that the edges of the shape need. */
void ocs_policy_finish(const struct ocs_policy *policy, struct ocs_placement *placement,
		       bool circuits);

#endif
