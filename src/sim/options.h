/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_SIM_OPTIONS_H
#define OCS_SIM_OPTIONS_H

#include "src/sim/run.h"

struct ocs_sim_args {
	const char *policy, *fabric, *partition;
	const char *trace, *workload;
	const char *durations, *arrivals, *sizes;
	const char *jobs, *write_trace, *svg;
	const char *produce_policy, *produce_fabric;
	double produce_hours, hours, warmup_hours, gap_scale;
	double switch_ms, circuit_ms;
	double day; /* hour at which the day to be drawn begins; below 0: the last one */
	double communication, slowdown_limit, restart_minutes;
	long moves, budget;
	long seed, runs, threads, queue_limit; /* threads 0: one per core */
	enum ocs_sim_order order;
	bool saturated, easy, lenient, no_verify, parallel_switches, json, quiet, possible;
	bool hours_set, simulated;
};

/* Returns 0; 1 when --help or --version was printed; -1 with ERR (OCS_USAGE). */
int ocs_sim_args_parse(int argc, char **argv, struct ocs_sim_args *args, struct ocs_error *err);

#endif
