/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/netsim/options.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ocs_config.h"
#include "src/util/error.h"
#include "src/util/options.h"
#include "src/util/text.h"

static const struct option options[] = {
	{ "graph", required_argument, NULL, 'g' },
	{ "model", required_argument, NULL, 'm' },
	{ "fabric", required_argument, NULL, 'f' },
	{ "collective", required_argument, NULL, 'c' },
	{ "tolerance", required_argument, NULL, 't' },
	{ "steps", required_argument, NULL, 'n' },
	{ "placement", required_argument, NULL, 'p' },
	{ "speed", required_argument, NULL, 'x' },
	{ "seed", required_argument, NULL, 's' },
	{ "svg", required_argument, NULL, 'o' },
	{ "write-graph", required_argument, NULL, 'w' },
	{ "json", no_argument, NULL, 'j' },
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, 'V' },
	{ NULL, 0, NULL, 0 },
};

static const char help[] =
	"Usage: ocs-netsim --graph FILE [--graph FILE ...] --fabric LINE [OPTION ...]\n"
	"\n"
	"Runs training steps, given as task graphs, over a fabric whose links are shared fairly,\n"
	"and prints how long a step takes and what each link carries.\n"
	"\n"
	"  --graph FILE       a task graph: JSON, or a FlatBuffer of TopoOpt's FlexFlow; each FILE\n"
	"                     is a job of its own, on servers of its own\n"
	"  --model FILE       the same from a model, a file or a name (ocsctl optimise lists them), as\n"
	"                     its file says that it is trained, on the servers of the fabric\n"
	"  --fabric LINE      \"KIND WORD:VALUE ...\"; KIND is ideal, fat-tree, oversubscribed, rail,\n"
	"                     expander, topoopt, ocs-reconfig, sip-ml, opus, region or torus; WORD is\n"
	"                     servers, degree, rate (100G), latency (1us), leaf, oversub, strategy,\n"
	"                     plan, paths, interval, pause, forward, estimate, change, phases, shape,\n"
	"                     frontend, optical, region, policy, when, relays, packets, cube, links;\n"
	"                     ocs-netsim(1) says which KIND has which\n"
	"  --collective NAME  auto, ring, multi-ring, hierarchical or double-tree [auto]\n"
	"  --steps N          training steps in a row; the mean is printed [1]\n"
	"  --placement HOW    packed: jobs take servers in order; scattered: at random [packed]\n"
	"  --speed X          computation is X times as fast as the graph says [1]\n"
	"  --tolerance T      rates are shared out T times the mean duration of flows late [0]\n"
	"  --seed N           of all that is drawn at random [1]\n"
	"  --svg PREFIX       writes PREFIX-timeline.svg and PREFIX-links.svg\n"
	"  --write-graph FILE writes the first graph as JSON; --fabric may be left out then\n"
	"  --json             prints one JSON object\n"
	"  -h, --help         this text\n"
	"  -V, --version      the version\n";

static int number_read(const char *name, const char *text, double least, double most, double *value,
		       struct ocs_error *err)
{
	char *end;

	*value = strtod(text, &end);
	if (end == text || *end || !(*value >= least && *value <= most))
		return ocs_error_set(err, OCS_USAGE, "--%s: \"%.40s\" is not a number of %g to %g",
				     name, text, least, most);
	return 0;
}

static int algorithm_read(const char *text, struct ocs_netsim_args *args, struct ocs_error *err)
{
	for (int k = 0; k < OCS_NETSIM_ALGORITHMS; k++) {
		args->algorithm = (enum ocs_netsim_algorithm)k;
		if (!strcmp(text, ocs_netsim_algorithm_name(args->algorithm)))
			return 0;
	}
	return ocs_error_set(err, OCS_USAGE,
			     "--collective: \"%.40s\" is none of auto, ring, multi-ring, "
			     "hierarchical, double-tree",
			     text);
}

static int option_read(int option, struct ocs_netsim_args *args, struct ocs_error *err)
{
	long number = 0;

	switch (option) {
	case 'm':
	case 'g':
		if (args->ngraphs == OCS_NETSIM_JOBS_MAX)
			return ocs_error_set(err, OCS_USAGE, "more than %d graphs",
					     OCS_NETSIM_JOBS_MAX);
		args->models[args->ngraphs] = option == 'm';
		args->graphs[args->ngraphs++] = optarg;
		return 0;
	case 'f':
		args->fabric = optarg;
		return 0;
	case 'c':
		return algorithm_read(optarg, args, err);
	case 't':
		return number_read("tolerance", optarg, 0, 1, &args->tolerance, err);
	case 'x':
		return number_read("speed", optarg, 1e-6, 1e6, &args->speed, err);
	case 'n':
		if (ocs_number_parse(optarg, 1, 1000000, &number))
			return ocs_error_set(err, OCS_USAGE,
					     "--steps: \"%.40s\" is not a number of 1 to 1000000",
					     optarg);
		args->steps = (int)number;
		return 0;
	case 's':
		if (ocs_number_parse(optarg, 0, LONG_MAX, &number))
			return ocs_error_set(err, OCS_USAGE, "--seed: \"%.40s\" is not a number",
					     optarg);
		args->seed = (uint64_t)number;
		return 0;
	case 'p':
		args->scatter = !strcmp(optarg, "scattered");
		if (!args->scatter && strcmp(optarg, "packed") != 0)
			return ocs_error_set(err, OCS_USAGE,
					     "--placement: \"%.40s\" is neither packed nor "
					     "scattered",
					     optarg);
		return 0;
	case 'o':
		args->svg = optarg;
		return 0;
	case 'w':
		args->write_graph = optarg;
		return 0;
	default:
		args->json = true;
		return 0;
	}
}

int ocs_netsim_args_parse(int argc, char **argv, struct ocs_netsim_args *args,
			  struct ocs_error *err)
{
	static const struct ocs_options line = { "ocs-netsim", "", options, help };
	int option;

	*args = (struct ocs_netsim_args){ .speed = 1, .seed = 1, .steps = 1 };
	while ((option = ocs_options_next(&line, argc, argv, err)) > 0)
		if (option_read(option, args, err))
			return -1;
	if (option)
		return option == OCS_OPTIONS_SAID ? 1 : -1;
	if (optind < argc)
		return ocs_error_set(err, OCS_USAGE, "\"%.60s\" is no option", argv[optind]);
	if (!args->ngraphs || (!args->fabric && !args->write_graph))
		return ocs_error_set(err, OCS_USAGE, "--%s is missing; see ocs-netsim --help",
				     args->ngraphs ? "fabric" : "graph");
	return 0;
}
