/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_SIM_STATE_H
#define OCS_SIM_STATE_H

/* Inside of a simulation. */

#include "src/advice/fragmentation.h"
#include "src/sim/run.h"
#include "src/sim/slowdown.h"

struct ocs_sim_running {
	double end;
	double since; /* where it is now */
	long job;     /* index into result->jobs */
	struct ocs_placement *placement;
};

struct ocs_sim {
	const struct ocs_sim_options *options;
	struct ocs_policy *policy;
	struct ocs_sim_result *result;
	double time;
	double total;	    /* XPUs */
	double moment_step; /* seconds between pictures of the cubes */
	int node_xpus;
	double busy, allocated, useful; /* XPUs */
	struct ocs_occupancy *occupancy;
	struct ocs_occupancy *shadow; /* for backfill */
	struct ocs_fragmentation *room;
	double fragmentation;		 /* of the occupancy; below zero: to be found */
	struct ocs_sim_running *running; /* a heap, the first to end on top */
	long nrunning, running_room;
	long *queue; /* indexes into result->jobs, in the order to try */
	long nqueue, queue_room;
	bool changed;		 /* XPUs came free since the head was tried */
	long blocked;		 /* the head that found no room; -1: none */
	struct ocs_sim_job next; /* arrives next */
	double next_arrival;
	long cursor;	     /* in the trace */
	double *switch_free; /* per switch: when it is idle again */
	int *batch;	     /* per switch, zero between calls */
	int face_edge;
	struct ocs_sim_ratios ratios;
	double told; /* share of the time that progress was called with */
};

static inline int ocs_sim_switch(const struct ocs_sim *sim, const struct ocs_circuit *c)
{
	return (c->dim * sim->face_edge + c->pos[0]) * sim->face_edge + c->pos[1];
}

/* Decides and times it; routes, if any, are left with the policy. */
struct ocs_placement *ocs_sim_place(struct ocs_sim *sim, const struct ocs_occupancy *occupancy,
				    const struct ocs_shape *shape, struct ocs_error *err);
/* Takes (or gives back) the nodes of P in OCCUPANCY. */
void ocs_sim_hold(struct ocs_sim *sim, struct ocs_occupancy *occupancy,
		  const struct ocs_placement *p, bool hold);
/* How much longer a job that asked for ASKED takes on P with ROUTES (NULL: with links of its own). */
double ocs_sim_slowdown(struct ocs_sim *sim, const struct ocs_shape *asked,
			const struct ocs_placement *p, const struct ocs_routes *routes);
/* Starts job INDEX, which is no longer in the queue; P and ROUTES (or NULL) are handed
 * over. */
int ocs_sim_start(struct ocs_sim *sim, long index, struct ocs_placement *p,
		  struct ocs_routes *routes, struct ocs_error *err);
/* Seconds until the switches of P have made (or broken) its circuits. */
double ocs_sim_switching(struct ocs_sim *sim, const struct ocs_placement *p);
/* Restarts running jobs elsewhere if that makes room for SHAPE.  Returns where SHAPE then
 * goes, or NULL. */
#define OCS_SIM_ADVICE_WORK 300 /* placements tried for one head of the queue */
struct ocs_placement *ocs_sim_defragment(struct ocs_sim *sim, const struct ocs_shape *shape);
/* EASY: starts jobs behind the head that leave it room at the moment it would start. */
int ocs_sim_backfill(struct ocs_sim *sim, struct ocs_error *err);

/* Keeps where RUN was until now, if the day asked for saw it. */
void ocs_sim_span_keep(struct ocs_sim *sim, const struct ocs_sim_running *run);
void ocs_sim_running_add(struct ocs_sim *sim, long job, struct ocs_placement *p);
/* Puts them right after ends were changed. */
void ocs_sim_running_sort(struct ocs_sim *sim);
struct ocs_sim_running ocs_sim_running_pop(struct ocs_sim *sim);
void ocs_sim_queue_add(struct ocs_sim *sim, const struct ocs_sim_job *job);
void ocs_sim_queue_remove(struct ocs_sim *sim, long at);

#endif
