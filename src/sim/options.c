/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/sim/options.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ocs_config.h"
#include "src/util/error.h"
#include "src/util/options.h"
#include "src/util/text.h"

enum {
	TRACE = 256,
	WORKLOAD,
	DURATIONS,
	ARRIVALS,
	SIZES,
	JOBS,
	WRITE_TRACE,
	SVG,
	PRODUCE_POLICY,
	PRODUCE_FABRIC,
	PRODUCE_HOURS,
	HOURS,
	WARMUP,
	SWITCH_MS,
	CIRCUIT_MS,
	RUNS,
	QUEUE,
	ORDER,
	SATURATED,
	EASY,
	LENIENT,
	NO_VERIFY,
	PARALLEL,
	POSSIBLE,
	GAP_SCALE,
	SECTION,
	COMMUNICATION,
	SLOWDOWN_LIMIT,
	SLOWDOWN,
	THREADS,
	DEFRAGMENT,
	RESTART,
	BUDGET,
	DAY,
};

static const struct option options[] = {
	{ "policy", required_argument, NULL, 'p' },
	{ "fabric", required_argument, NULL, 'f' },
	{ "section", required_argument, NULL, SECTION },
	{ "trace", required_argument, NULL, TRACE },
	{ "workload", required_argument, NULL, WORKLOAD },
	{ "durations", required_argument, NULL, DURATIONS },
	{ "arrivals", required_argument, NULL, ARRIVALS },
	{ "sizes", required_argument, NULL, SIZES },
	{ "seed", required_argument, NULL, 's' },
	{ "runs", required_argument, NULL, RUNS },
	{ "threads", required_argument, NULL, THREADS },
	{ "hours", required_argument, NULL, HOURS },
	{ "warmup", required_argument, NULL, WARMUP },
	{ "saturated", no_argument, NULL, SATURATED },
	{ "queue-limit", required_argument, NULL, QUEUE },
	{ "gap-scale", required_argument, NULL, GAP_SCALE },
	{ "produce-policy", required_argument, NULL, PRODUCE_POLICY },
	{ "produce-fabric", required_argument, NULL, PRODUCE_FABRIC },
	{ "produce-hours", required_argument, NULL, PRODUCE_HOURS },
	{ "lenient", no_argument, NULL, LENIENT },
	{ "communication", required_argument, NULL, COMMUNICATION },
	{ "slowdown-limit", required_argument, NULL, SLOWDOWN_LIMIT },
	{ "slowdown", required_argument, NULL, SLOWDOWN },
	{ "defragment", required_argument, NULL, DEFRAGMENT },
	{ "restart-minutes", required_argument, NULL, RESTART },
	{ "budget", required_argument, NULL, BUDGET },
	{ "backfill", no_argument, NULL, EASY },
	{ "order", required_argument, NULL, ORDER },
	{ "switch-ms", required_argument, NULL, SWITCH_MS },
	{ "circuit-ms", required_argument, NULL, CIRCUIT_MS },
	{ "parallel-switches", no_argument, NULL, PARALLEL },
	{ "no-verify", no_argument, NULL, NO_VERIFY },
	{ "possible", no_argument, NULL, POSSIBLE },
	{ "json", no_argument, NULL, 'j' },
	{ "jobs", required_argument, NULL, JOBS },
	{ "write-trace", required_argument, NULL, WRITE_TRACE },
	{ "svg", required_argument, NULL, SVG },
	{ "day", required_argument, NULL, DAY },
	{ "quiet", no_argument, NULL, 'q' },
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, 'V' },
	{ NULL, 0, NULL, 0 }
};

static const char usage[] =
	"Usage: ocs-sim --policy P --fabric F --trace FILE | --workload NAME [OPTION...]\n\n"
	"Simulates a cluster of cubes or a static torus under a placement policy.\n\n"
	"  -p, --policy P        best, best-effort, firstfit, folding, reconfig, rfold,\n"
	"                        published-reconfig, scratch, unconstrained\n"
	"  -f, --fabric F        an ocs.yaml or a line such as\n"
	"                        'torus cubes:4x4x4 cube:4x4x4 tile:1x1x1'\n"
	"      --section NAME    of the ocs.yaml, where it has several\n"
	"      --lenient         where rings cannot close, lines will do\n"
	"      --budget N        accepted, without effect: of a search that is no more\n"
	"      --slowdown-limit X  best-effort: a job may take up to X times as long (2)\n"
	"      --communication X   if it would send X (0 to 1) of its time alone (1)\n"
	"      --slowdown WHAT   of that share: load (default), the edges on the busiest link,\n"
	"                        or netsim, an AllReduce in the network simulator\n\n"
	"Jobs\n"
	"      --trace FILE      replay a trace\n"
	"      --workload NAME   rfold-2025, rfold-2025b or tpu-v4\n"
	"      --durations FILE  draw durations from this trace\n"
	"      --arrivals FILE   draw gaps from lines 'seconds,probability'\n"
	"      --sizes FILE      tpu-v4: another mix of slices\n"
	"      --gap-scale X     multiply all gaps\n"
	"  -s, --seed N          1; the same seed gives the same jobs\n"
	"      --runs N          seeds N, N+1, ...; figures are means over the runs\n"
	"      --threads N       runs at a time (as many as the machine has cores)\n"
	"      --hours H         stop after H simulated hours (5000; a trace: at its end)\n"
	"      --warmup H        leave the first H hours out of the utilisation\n"
	"      --saturated       closed loop: jobs come as fast as the policy takes them\n"
	"      --queue-limit N   a job that finds more than N waiting is lost (10)\n"
	"      --produce-policy P, --produce-fabric F, --produce-hours H\n"
	"                        who makes the jobs of a workload that is replayed\n"
	"                        (published-reconfig on 64 cubes of 4x4x4, 10000)\n\n"
	"Queue and switches\n"
	"      --order O         fifo, priority, smallest, largest, shortest\n"
	"      --backfill        EASY backfill\n"
	"      --defragment N    up to N running jobs may be restarted elsewhere when that\n"
	"                        lets the head of the queue in\n"
	"      --restart-minutes M  a restarted job stands still so long (10)\n"
	"      --switch-ms T     a switch needs T ms for a batch of circuits\n"
	"      --circuit-ms T    and T ms for each circuit, one after the other\n"
	"      --parallel-switches  or for all circuits of a batch at once\n\n"
	"Output\n"
	"  -j, --json            one JSON object\n"
	"      --jobs FILE       one line of JSON per job\n"
	"      --write-trace FILE  the jobs as a trace\n"
	"      --svg PREFIX      PREFIX-*.svg: pictures of the run\n"
	"      --day H           the day for PREFIX-day.svg begins at hour H (the last day)\n"
	"      --possible        only count which shapes of the workload fit\n"
	"      --no-verify       do not prove each placement right\n"
	"  -q, --quiet           no progress and no notes\n"
	"  -h, --help            this text\n"
	"  -V, --version         the version\n";

static int real_read(const char *name, const char *text, double least, double *value,
		     struct ocs_error *err)
{
	char *end;

	*value = strtod(text, &end);
	if (end == text || *end || !isfinite(*value) || *value < least || *value > 1e9)
		return ocs_error_set(err, OCS_USAGE, "--%s %s: a number from %g on is needed", name,
				     text, least);
	return 0;
}

static int whole_read(const char *name, const char *text, long least, long *value,
		      struct ocs_error *err)
{
	if (ocs_number_parse(text, least, 1000000000, value))
		return ocs_error_set(err, OCS_USAGE,
				     "--%s %s: a whole number from %ld on is needed", name, text,
				     least);
	return 0;
}

static int order_parse(const char *text, enum ocs_sim_order *order, struct ocs_error *err)
{
	static const char *const names[] = { "fifo", "priority", "smallest", "largest",
					     "shortest" };
	int i;

	for (i = 0; i < 5; i++) {
		if (!strcmp(names[i], text)) {
			*order = (enum ocs_sim_order)i;
			return 0;
		}
	}
	return ocs_error_set(err, OCS_USAGE,
			     "--order %s: use fifo, priority, smallest, largest or "
			     "shortest",
			     text);
}

static int option_take(int c, struct ocs_sim_args *a, struct ocs_error *err)
{
	switch (c) {
	case 'p':
		a->policy = optarg;
		return 0;
	case 'f':
		a->fabric = optarg;
		return 0;
	case SECTION:
		a->partition = optarg;
		return 0;
	case TRACE:
		a->trace = optarg;
		return 0;
	case WORKLOAD:
		a->workload = optarg;
		return 0;
	case DURATIONS:
		a->durations = optarg;
		return 0;
	case ARRIVALS:
		a->arrivals = optarg;
		return 0;
	case SIZES:
		a->sizes = optarg;
		return 0;
	case JOBS:
		a->jobs = optarg;
		return 0;
	case WRITE_TRACE:
		a->write_trace = optarg;
		return 0;
	case SVG:
		a->svg = optarg;
		return 0;
	case PRODUCE_POLICY:
		a->produce_policy = optarg;
		return 0;
	case PRODUCE_FABRIC:
		a->produce_fabric = optarg;
		return 0;
	case PRODUCE_HOURS:
		return real_read("produce-hours", optarg, 1, &a->produce_hours, err);
	case DAY:
		return real_read("day", optarg, 0, &a->day, err);
	case HOURS:
		a->hours_set = true;
		return real_read("hours", optarg, 0.01, &a->hours, err);
	case WARMUP:
		return real_read("warmup", optarg, 0, &a->warmup_hours, err);
	case GAP_SCALE:
		return real_read("gap-scale", optarg, 0.001, &a->gap_scale, err);
	case SWITCH_MS:
		return real_read("switch-ms", optarg, 0, &a->switch_ms, err);
	case CIRCUIT_MS:
		return real_read("circuit-ms", optarg, 0, &a->circuit_ms, err);
	case COMMUNICATION:
		return real_read("communication", optarg, 0, &a->communication, err);
	case SLOWDOWN_LIMIT:
		return real_read("slowdown-limit", optarg, 1, &a->slowdown_limit, err);
	case SLOWDOWN:
		a->simulated = !strcmp(optarg, "netsim");
		if (a->simulated || !strcmp(optarg, "load"))
			return 0;
		return ocs_error_set(err, OCS_USAGE, "--slowdown %.40s: use load or netsim",
				     optarg);
	case 's':
		return whole_read("seed", optarg, 0, &a->seed, err);
	case RUNS:
		return whole_read("runs", optarg, 1, &a->runs, err);
	case DEFRAGMENT:
		return whole_read("defragment", optarg, 1, &a->moves, err);
	case RESTART:
		return real_read("restart-minutes", optarg, 0, &a->restart_minutes, err);
	case BUDGET:
		return whole_read("budget", optarg, 0, &a->budget, err);
	case THREADS:
		return whole_read("threads", optarg, 1, &a->threads, err);
	case QUEUE:
		return whole_read("queue-limit", optarg, 1, &a->queue_limit, err);
	case ORDER:
		return order_parse(optarg, &a->order, err);
	case SATURATED:
		a->saturated = true;
		return 0;
	case EASY:
		a->easy = true;
		return 0;
	case LENIENT:
		a->lenient = true;
		return 0;
	case NO_VERIFY:
		a->no_verify = true;
		return 0;
	case PARALLEL:
		a->parallel_switches = true;
		return 0;
	case POSSIBLE:
		a->possible = true;
		return 0;
	case 'j':
		a->json = true;
		return 0;
	default:
		a->quiet = true;
		return 0;
	}
}

static int options_check(const struct ocs_sim_args *a, struct ocs_error *err)
{
	if (!a->policy || !a->fabric)
		return ocs_error_set(err, OCS_USAGE,
				     "--policy and --fabric are needed; 'ocs-sim "
				     "--help' shows what they may be");
	if (!a->trace == !a->workload)
		return ocs_error_set(err, OCS_USAGE, "give either --trace FILE or --workload NAME");
	if (a->communication > 1)
		return ocs_error_set(err, OCS_USAGE,
				     "--communication %g: a share of the time, from 0 "
				     "to 1, is needed",
				     a->communication);
	if (a->moves && strcmp(a->policy, "best") != 0)
		return ocs_error_set(err, OCS_USAGE,
				     "--defragment needs --policy best: only its "
				     "placements are made anew");
	if (a->easy && !strcmp(a->policy, "scratch"))
		return ocs_error_set(err, OCS_USAGE,
				     "--policy scratch lays anew what runs now, and "
				     "--backfill asks about later; leave one of them out");
	if (a->warmup_hours >= a->hours && (a->hours_set || a->workload))
		return ocs_error_set(err, OCS_USAGE, "--warmup %g leaves nothing of %g hours",
				     a->warmup_hours, a->hours);
	if (a->day >= 0 && !a->svg)
		return ocs_error_set(err, OCS_USAGE,
				     "--day chooses what --svg draws; give --svg too");
	if (a->trace &&
	    (a->saturated || a->durations || a->arrivals || a->sizes || a->possible || a->runs > 1))
		return ocs_error_set(err, OCS_USAGE,
				     "--saturated, --durations, --arrivals, --sizes, "
				     "--possible and --runs belong to --workload, not to --trace");
	if (a->runs > 1 && (a->jobs || a->write_trace || a->svg))
		return ocs_error_set(err, OCS_USAGE,
				     "--jobs, --write-trace and --svg show one run; "
				     "leave --runs out");
	return 0;
}

int ocs_sim_args_parse(int argc, char **argv, struct ocs_sim_args *a, struct ocs_error *err)
{
	static const struct ocs_options line = { "ocs-sim", "p:f:s:jq", options, usage };
	int c;

	memset(a, 0, sizeof(*a));
	a->seed = a->runs = 1;
	a->queue_limit = 10;
	a->hours = 5000;
	a->produce_hours = 10000;
	a->gap_scale = 1;
	a->day = -1;
	a->communication = 1;
	a->slowdown_limit = 2;
	a->restart_minutes = 10;
	a->produce_policy = "published-reconfig";
	a->produce_fabric = "torus cubes:4x4x4 cube:4x4x4 tile:1x1x1";
	while ((c = ocs_options_next(&line, argc, argv, err)) > 0)
		if (option_take(c, a, err))
			return -1;
	if (c)
		return c == OCS_OPTIONS_SAID ? 1 : -1;
	if (optind < argc)
		return ocs_error_set(err, OCS_USAGE,
				     "'%s' is no option; 'ocs-sim --help' lists them",
				     argv[optind]);
	return options_check(a, err);
}
