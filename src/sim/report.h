/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_SIM_REPORT_H
#define OCS_SIM_REPORT_H

#include "src/sim/run.h"

struct json_object;

/* The figures of one run.  Percentages are 0..100, times in the unit of their name. */
struct ocs_sim_figures {
	double jobs, decided, never, lost, done, running, waiting;
	double jcr;			/* completed or running of the decided jobs */
	double jct[4];			/* hours: p50, p90, p99, mean; of completed jobs */
	double wait[3];			/* hours: p50, p90, p99; of started jobs */
	double slowdown;		/* mean of completion over duration */
	double utilisation;		/* time-weighted share of XPUs in use */
	double allocated;		/* the same with what whole nodes waste */
	double fragmentation;		/* time-weighted (ocs_fragmentation_measure) */
	double useful;			/* utilisation divided by each job's predicted slowdown */
	double decision[3], decision90; /* microseconds: p50, p99, max; p90; the first of each
					 * shape left out */
	double decision_mean;
	double cold[3];			/* p50, p99, max of first decisions of a shape */
	double verification[3];		/* microseconds to prove a placement right: p50, p99, max */
	double candidates[4], words[4]; /* a decision looked at: p50, p99, max, total */
	double searched, bounded;	/* of all decisions (struct ocs_sim_result) */
	double decisions, first, verified, relaxed, backfilled;
	double restarts;	/* of jobs, elsewhere */
	double shared;		/* placements whose edges share links */
	double predicted[2];	/* their predicted slowdown: mean, max */
	double cubes, circuits; /* mean of started jobs */
	double switched;	/* mean seconds waited for switches */
};
#define OCS_SIM_FIGURES (sizeof(struct ocs_sim_figures) / sizeof(double))

/* Sorts the decisions of RESULT. */
void ocs_sim_figures(struct ocs_sim_result *result, const struct ocs_section *section,
		     struct ocs_sim_figures *figures);
struct json_object *ocs_sim_figures_json(const struct ocs_sim_figures *figures);
/* VALUE rounded to DIGITS behind the point, zeros at its end left out; 0: a whole number. */
void ocs_sim_json_add(struct json_object *object, const char *name, double value, int digits);
/* As lines of text. */
void ocs_sim_figures_print(const struct ocs_sim_figures *figures);
/* One JSON object per line and job.  Returns 0, or -1 with ERR. */
int ocs_sim_jobs_write(const struct ocs_sim_result *result, const char *path,
		       struct ocs_error *err);

/* The value at share Q (0..1) of N sorted values, between neighbours in proportion;
 * 0 if there is none. */
double ocs_sim_quantile(const double *sorted, long n, double q);
int ocs_sim_ascending(const void *a, const void *b);

#endif
