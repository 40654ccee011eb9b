/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_SIM_SERIES_H
#define OCS_SIM_SERIES_H

/* Several runs that differ in their seeds, side by side on the cores of the machine.
 * What a run gives does not depend on how many there are nor on the threads, its decision
 * times aside. */

#include "src/sim/options.h"
#include "src/sim/report.h"

struct ocs_sim_series {
	const struct ocs_sim_args *args;
	const struct ocs_fabric *fabric;
	const struct ocs_section *section;
	const struct ocs_sim_workload *workload; /* NULL: args->trace */

	/* the answer */
	struct ocs_sim_figures *runs; /* args->runs */
	struct ocs_sim_figures mean;  /* over the runs */
	double *jct;		      /* hours to completion of the jobs of all runs, ascending */
	long njct;
	long left_out; /* jobs of the trace that take no time */
};

/* A policy as ARGS ask for it.  NULL with ERR. */
struct ocs_policy *ocs_sim_policy(const struct ocs_sim_args *args, const struct ocs_fabric *fabric,
				  const struct ocs_section *section, struct ocs_error *err);

/* A line of progress goes to standard error if that is a terminal and nobody wants quiet,
 * at most so often. */
#define OCS_SIM_PROGRESS_EVERY 0.5 /* seconds */
bool ocs_sim_progress_wanted(const struct ocs_sim_args *args);
/* Seconds of a clock that only runs forward. */
double ocs_sim_clock(void);

/* Fills the answer.  A line of progress goes to standard error if that is a terminal.
 * Returns 0, or -1 with ERR of the first run that failed.  Free with
 * ocs_sim_series_free, also after a failure. */
int ocs_sim_series_run(struct ocs_sim_series *series, struct ocs_error *err);
void ocs_sim_series_free(struct ocs_sim_series *series);

#endif
