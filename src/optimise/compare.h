/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_OPTIMISE_COMPARE_H
#define OCS_OPTIMISE_COMPARE_H

/* Fabrics for one job: how long a step takes on each, by simulation, what each costs, and
 * whether planned circuits pay.  doc/buying.md is a tutorial. */

#include <stdbool.h>

#include "src/optimise/cost.h"
#include "src/optimise/optimise.h"

struct ocs_netsim_graph;

struct ocs_compare_row {
	char name[32];
	bool circuits;
	bool affordable;
	char simulated
		[64];	/* what ocs-netsim was asked for, without servers, degree and rate; "" */
	double rate;	/* bytes per second of an interface */
	double step_ms; /* -1: not simulated */
	/* of circuits that change for the job: how many times as long a step takes on a fat-tree that
	 * costs as much; -1 */
	double gain;
	double dollars;
	double watts; /* -1: not known */
	double value; /* steps per time and dollar, that of the ideal switch being 1; -1 */
};

/* Circuits against packets of equal cost, at one rate or under one change. */
struct ocs_compare_point {
	char what[48];
	double factor;
	double circuits_ms, packets_ms;
	bool pays;
};

#define OCS_COMPARE_ROWS_MAX 16
#define OCS_COMPARE_POINTS_MAX 32

struct ocs_compare {
	struct ocs_compare_row rows[OCS_COMPARE_ROWS_MAX];
	int nrows;
	struct ocs_compare_point rates[OCS_COMPARE_POINTS_MAX]; /* factor: Gb/s */
	int nrates;
	struct ocs_compare_point changes[OCS_COMPARE_POINTS_MAX];
	int nchanges;
	double break_even; /* Gb/s: the highest of these rates at which circuits pay, 0: none */
	bool pays;
	char verdict[256];
	char at_rates[128]; /* at which of the rates circuits pay: a line */
	char turns
		[256]; /* the changes under which planned circuits pay and otherwise do not, or the
			     * other way round; "": none */
	double tolerance; /* of the simulation */
};

/* Compares fabrics for the MODEL of REQUEST with the prices of TABLE, which has REQUEST's rate.
 * GRAPH: the task graph of a step instead of the model, or NULL; its times are changed for a while.  BUDGET in $, 0: none.  Circuits
 * pay where a step on one of the fabrics of circuits (an expander has none that change) is at least 1 % faster than
 * on a fat-tree that costs as much.  0, or -1 with
 * ERR. */
int ocs_compare_make(const struct ocs_optimise_request *request, struct ocs_netsim_graph *graph,
		     const struct ocs_cost_table *table, double budget, struct ocs_compare *compare,
		     struct ocs_error *err);

#endif
