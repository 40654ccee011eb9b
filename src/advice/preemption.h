/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_ADVICE_PREEMPTION_H
#define OCS_ADVICE_PREEMPTION_H

/* Preemption: which running jobs have to go so that another one fits. */

#include <stdbool.h>

/* A job that may be preempted. */
struct ocs_preemption_job {
	int rank;    /* how much it matters: one of a higher rank goes only if no set as
			 * small as the one that is found does without it */
	double cost; /* what is lost with it, XPU seconds; not below 0 */
	long nodes;  /* that it is on */
};

struct ocs_preemption_request {
	const struct ocs_preemption_job *jobs;
	int njobs;
	long need; /* nodes that the victims must be on, together, at least; 0: unknown */
	/* Whether the waiting job fits once SET, COUNT indexes into the jobs, is gone.  More
	 * jobs gone never do harm. */
	bool (*fits)(void *arg, const int *set, int count);
	void *arg;
	long work; /* calls of FITS at most, 0: OCS_PREEMPTION_WORK */
};

#define OCS_PREEMPTION_WORK 2000

/* Finds the fewest jobs; among sets as small that whose highest rank is lowest; among those
 * the cheapest.  None of them can be left out, whether or not all sets could be tried:
 * *COMPLETE (may be NULL) says that they were.
 * Sets SET (room for njobs, ascending) and returns the count: 0 if it fits as things are, -1
 * if it does not fit though all of them go. */
int ocs_preemption_find(const struct ocs_preemption_request *request, int *set, bool *complete);

#endif
