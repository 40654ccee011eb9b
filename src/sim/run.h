/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_SIM_RUN_H
#define OCS_SIM_RUN_H

/* One simulation: jobs arrive, wait in a queue, are placed by a policy, run and go. */

#include "src/policy/policy.h"
#include "src/sim/workload.h"

enum ocs_sim_order {
	OCS_SIM_FIFO,	  /* by arrival */
	OCS_SIM_PRIORITY, /* by priority, then arrival */
	OCS_SIM_SMALLEST, /* by XPUs, then arrival */
	OCS_SIM_LARGEST,
	OCS_SIM_SHORTEST, /* by duration, then arrival */
};

struct ocs_sim_options {
	const struct ocs_fabric *fabric;
	const struct ocs_section *section;
	/* Jobs: of TRACE, or drawn from WORKLOAD with RANDOM (and appended to TRACE, if
	 * set, as far as they are accepted). */
	struct ocs_sim_trace *trace;
	const struct ocs_sim_workload *workload;
	struct ocs_random *random;
	long queue_limit; /* WORKLOAD: a job that finds more waiting is lost; 0: none is */
	double horizon;	  /* seconds of simulated time; 0: until all jobs are done */
	double warmup;	  /* seconds left out of the utilisation */
	enum ocs_sim_order order;
	bool easy;		/* EASY backfill behind the first job that waits */
	int moves;		/* running jobs that may be restarted elsewhere so that the head of
				 * the queue can start; 0: none (policy best only) */
	double restart;		/* seconds that a restarted job stands still */
	bool verify;		/* ocs_placement_verify (or ocs_routes_verify) on each placement */
	double communication;	/* share (0..1) of its time that a job would spend sending if
				 * every edge had a link of its own; where edges share links
				 * that part takes longer (ocs_routes_slowdown) */
	bool simulated;		/* that part takes as long as an AllReduce in the network
				 * simulator, on lines instead of rings, too (slowdown.h) */
	double switch_delay;	/* seconds a switch takes for one batch of circuits */
	double circuit_delay;	/* and for each circuit in it */
	bool switches_parallel; /* a switch works on the circuits of a batch at once */
	/* called with the share (0..1) of the simulated time that is over, about every
	 * hundredth of it; or NULL */
	void (*progress)(void *arg, double share);
	void *progress_arg;
	int moments; /* pictures of the cubes to keep, evenly over the time; 0: none */
	/* keep who held which XPUs for a day from this second on; below zero: the last day */
	bool keep_day;
	double day;
};

enum ocs_sim_state { OCS_SIM_WAITING, OCS_SIM_NEVER, OCS_SIM_RUNNING, OCS_SIM_DONE };

/* What became of a job. */
struct ocs_sim_outcome {
	struct ocs_sim_job job;
	enum ocs_sim_state state;
	double start, end; /* seconds; valid from RUNNING on */
	double switched;   /* seconds waited for switches */
	int cubes, nodes, circuits;
	int restarts; /* elsewhere, to let others in */
	bool backfilled;
	bool relaxed;	 /* placed with lines that the shape has not */
	int load;	 /* edges on its busiest link; 1: all have links of their own */
	double slowdown; /* predicted from that: DURATION takes so many times longer */
};

/* Numbers that are kept to be sorted. */
struct ocs_sim_numbers {
	double *value;
	long n, room;
};

/* A stretch of time in which a job held XPUs. */
struct ocs_sim_span {
	long job;	 /* index into result->jobs */
	double from, to; /* seconds */
	int n, *xpus;	 /* cube * cube_xpus + ocs_section_bit */
};
#define OCS_SIM_DAY (24 * 3600.0)

#define OCS_SIM_BINS 100
struct ocs_sim_sample {
	double time;
	float busy; /* share of the XPUs */
	int waiting;
};

struct ocs_sim_result {
	struct ocs_sim_outcome *jobs; /* in the order of their arrival */
	long njobs, room;
	long lost;		       /* found the queue full */
	double time;		       /* simulated seconds */
	double busy;		       /* XPU seconds in use after the warm-up */
	double allocated;	       /* the same with the XPUs that whole nodes waste */
	double useful;		       /* the same as busy, divided by each job's slowdown */
	double fragmented;	       /* seconds after the warm-up times fragmentation (0..1) */
	double measured;	       /* seconds after the warm-up */
	double bins[OCS_SIM_BINS + 1]; /* seconds at each per cent of busy XPUs */
	float *cubes;		       /* moments * ncubes: share of XPUs in use */
	int moments, ncubes;
	double day_from, day_to;    /* the day that was kept, in seconds */
	struct ocs_sim_span *spans; /* that overlap it */
	long nspans, span_room;
	struct ocs_sim_sample *samples;
	long nsamples, sample_room;
	/* processor seconds of each decision alone, and of those that made some of the
	 * catalogue of their shape; of proving a placement right */
	struct ocs_sim_numbers decisions, cold, verifications;
	/* what each decision looked at (struct ocs_place_work), policy best */
	struct ocs_sim_numbers candidates, words;
	long searched; /* in all decisions, where no box fitted */
	long bounded;  /* decisions that a bound on the work cut short */
	long verified;
	long relaxed;  /* placements with lines the shape has not */
	long restarts; /* jobs restarted elsewhere */
	long shared;   /* placements whose edges share links */
};

/* Runs to the horizon.  Returns 0, or -1 with ERR: a placement that is none (what a
 * policy did wrong, and for which job).  Free with ocs_sim_result_free. */
int ocs_sim_run(const struct ocs_sim_options *options, struct ocs_policy *policy,
		struct ocs_sim_result *result, struct ocs_error *err);
void ocs_sim_result_free(struct ocs_sim_result *result);

#endif
