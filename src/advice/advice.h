/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_ADVICE_ADVICE_H
#define OCS_ADVICE_ADVICE_H

/* Defragmentation: which running jobs, restarted elsewhere, would let a waiting one in. */

#include "src/place/place.h"

/* A running job that may be restarted. */
struct ocs_advice_job {
	const struct ocs_placement *placement;
	double cost; /* of restarting it, above 0: XPUs, or XPU hours that are lost */
};

struct ocs_advice_move {
	int job;			 /* index into the jobs */
	int order;			 /* when it is placed again: 0 before all others */
	struct ocs_placement *placement; /* where it goes, on as many nodes as it has */
};

struct ocs_advice {
	struct ocs_placement *placement; /* of the waiting shape */
	int order; /* when that is placed: placing in this order, the engine makes
				 * these very placements */
	struct ocs_advice_move *moves; /* in the order of placing */
	int nmoves;		       /* 0: it fits as things are */
	double cost;		       /* of all moves */
	bool complete; /* no fewer and no cheaper jobs would do, as far as the engine
				 * sees; false: the work ended before all sets were tried */
	long work;     /* placements tried */
};

/* Placements tried at most, unless the caller says otherwise. */
#define OCS_ADVICE_WORK 100000

/* What is asked.  PLACE answers as ocs_place does (ARG is its first argument). */
struct ocs_advice_request {
	struct ocs_placement *(*place)(void *arg, const struct ocs_occupancy *occupancy,
				       const struct ocs_shape *shape, int node_count,
				       struct ocs_error *err);
	void *arg;
	const struct ocs_fabric *fabric;
	const struct ocs_occupancy *base; /* the section with all jobs gone */
	const struct ocs_shape *shape;	  /* that waits */
	const struct ocs_advice_job *jobs;
	int njobs;
	int most_moves; /* 0: any number */
	long work;	/* placements to try at most, 0: OCS_ADVICE_WORK */
};

/* PLACE for a placer as ARG. */
struct ocs_placement *ocs_advice_place(void *arg, const struct ocs_occupancy *occupancy,
				       const struct ocs_shape *shape, int node_count,
				       struct ocs_error *err);

/* Finds the fewest jobs, and among as few the cheapest, that must stop at once so that the
 * shape and then all of them, anew, find room.  Sets of up to three jobs are tried with
 * every order of placing, larger ones with the largest first.  Every placement was
 * verified, in the order in which they were made.
 * Returns the advice (ocs_advice_destroy), or NULL with ERR: OCS_NEVER as PLACE gives it,
 * OCS_NOT_NOW when no set was found, OCS_ERROR if a placement is not valid. */
struct ocs_advice *ocs_advise(const struct ocs_advice_request *request, struct ocs_error *err);
void ocs_advice_destroy(struct ocs_advice *advice);

#endif
