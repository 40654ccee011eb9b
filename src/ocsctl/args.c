/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include <getopt.h>
#include <limits.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "src/ocsctl/ocsctl.h"
#include "src/util/nearest.h"
#include "src/util/text.h"

/* Every option of every command; commands name those they take by key. */
enum kind {
	FLAG,
	TEXT,
	NUMBER,
	CHOICE, /* a number after =, or none, which is CHOICE_NONE */
};

struct option_spec {
	char key;
	const char *name;
	enum kind kind;
	size_t offset; /* into struct ocs_ctl_args */
	long min, max;
	const char *argument;
	const char *help;
};

#define CHOICE_NONE 2 /* seconds of --watch */
#define AT(field) offsetof(struct ocs_ctl_args, field)

static const struct option_spec specs[] = {
	{ 'c', "conn-type", TEXT, AT(conn), 0, 0, "C",
	  "torus or mesh, or one per dimension (torus,torus,mesh)" },
	{ 'b', "busy", TEXT, AT(busy), 0, 0, "FILE",
	  "lines 'cube x y z' of XPUs in use; the rest is free" },
	{ 'm', "map", TEXT, AT(map), 0, 0, "FILE",
	  "what 'map --json' printed, instead of asking ocsd; - is standard input" },
	{ 'e', "elapsed", TEXT, AT(elapsed), 0, 0, "FILE",
	  "lines 'JOBID ELAPSED' (squeue -h -t R -o '%A %M'): count XPU hours lost" },
	{ 's', "section", TEXT, AT(section), 0, 0, "NAME",
	  "the section of ocs.yaml, where there are several" },
	{ 'r', "no-rotate", FLAG, AT(no_rotate), 0, 0, NULL,
	  "dimension i of the shape lies on axis i" },
	{ 'd', "no-fold", FLAG, AT(no_fold), 0, 0, NULL,
	  "every dimension straight along one axis" },
	{ 'n', "nodes", FLAG, AT(nodes), 0, 0, NULL,
	  "print only the node list, as sbatch --nodelist takes it" },
	{ '#', "orders", FLAG, AT(orders), 0, 0, NULL,
	  "with --json: the ranks along each dimension as well" },
	{ 'k', "compact", FLAG, AT(compact), 0, 0, NULL,
	  "print only the compact form that travels with the job" },
	{ 'N', "servers", NUMBER, AT(servers), 1, 1 << 20, "N", "number of servers" },
	{ 'D', "degree", NUMBER, AT(degree), 1, 1024, "D", "optical interfaces of a server" },
	{ 'M', "demand", TEXT, AT(demand), 0, 0, "FILE",
	  "traffic: {\"allreduce\":[{\"members\":[...],\"bytes\":b}],\"mp\":[[...]]}" },
	{ 'S', "strategy", TEXT, AT(strategy), 0, 0, "paper|best",
	  "the published algorithm, or shorter paths and even loads (default)" },
	{ 'G', "rings", TEXT, AT(rings), 0, 0, "stock|permuted",
	  "parallel rings for one communicator, or a communicator a ring (default)" },
	{ 'u', "directed", FLAG, AT(directed), 0, 0, NULL,
	  "transmitters and receivers are joined apart" },
	{ 'R', "routes", FLAG, AT(routes), 0, 0, NULL,
	  "list routes: plan above 128 servers too, region plan" },
	{ 'P', "paths", NUMBER, AT(paths), 1, 16, "K",
	  "paths of a pair with traffic of its own (default 1)" },
	{ 't', "trees", NUMBER, AT(trees), 1, 15, "N",
	  "double binary trees for each AllReduce group, besides a ring" },
	{ 'A', "repair", TEXT, AT(repair), 0, 0, "PLAN",
	  "change few circuits of the plan in this file, without the failed interfaces" },
	{ 'g', "svg", TEXT, AT(svg), 0, 0, "FILE", "write the picture as SVG" },
	{ '%', "html", TEXT, AT(html), 0, 0, "FILE", "write the report as one page of HTML" },
	{ '!', "private", FLAG, AT(private), 0, 0, NULL,
	  "with all that you may see, in a file that only you may read" },
	{ 'w', "watch", CHOICE, AT(watch), 1, 86400, "SECONDS",
	  "draw again and again (every 2 seconds)" },
	{ 'E', "epoch", NUMBER, AT(epoch), 1, LONG_MAX, "N",
	  "the allocation's epoch (SPANK_OCS_EPOCH; default: the newest)" },
	{ 'V', "after", NUMBER, AT(after), 1, INT_MAX, "N",
	  "wait for a revision of the plan later than N (repaired since)" },
	{ 'L', "last", NUMBER, AT(last), 1, 1000, "N",
	  "so many events of the history (default 20)" },
	{ 'x', "expect", NUMBER, AT(expect), 0, LONG_MAX, "REVISION",
	  "refuse if ocsd has changed since 'show --json' said this revision" },
	{ 'I', "transaction", TEXT, AT(transaction), 0, 0, "ID",
	  "repeated with the same ID, it is done once and answers the same" },
	{ 'H', "node", TEXT, AT(node), 0, 0, "NAME", "the node of the job that asks" },
	{ '0', "node", TEXT, AT(node), 0, 0, "NAME",
	  "which of the plan's servers this is, by name or number" },
	{ 'W', "wait", NUMBER, AT(wait), 1, 86400, "SECONDS",
	  "how long to keep trying while ocsd cannot be reached" },
	{ 'O', "hosts", TEXT, AT(hosts), 0, 0, "FILE",
	  "addresses and interfaces of the hosts (default: 10.192.0.1..., ocs0...)" },
	{ 'B', "backend", TEXT, AT(backend), 0, 0, "NAME",
	  "flower, bpf, routes or auto (default): what this kernel has" },
	{ 'F', "failed", TEXT, AT(failed), 0, 0, "N:P,...",
	  "what has failed: server and port (of dark circuits: of either end)" },
	{ 'Y', "dry-run", FLAG, AT(dry_run), 0, 0, NULL, "print the commands, do nothing" },
	{ 'X', "remove", FLAG, AT(remove), 0, 0, NULL, "take everything away again" },
	{ 'T', "reason", TEXT, AT(reason), 0, 0, "TEXT",
	  "why; shown to all users (default: your name)" },
	{ 'q', "cube", TEXT, AT(cube), 0, 0, "NxNxN", "XPUs of a cube" },
	{ 'i', "tile", TEXT, AT(tile), 0, 0, "AxBxC", "XPUs of a node (default 1x1x1)" },
	{ '1', "cubes", NUMBER, AT(cubes), 1, 1 << 20, "N", "so many whole cubes" },
	{ '2', "cube", TEXT, AT(cube_names), 0, 0, "NAME,...", "these cubes" },
	{ '3', "switch", TEXT, AT(switch_names), 0, 0, "NAME,...",
	  "the nodes with a port on these switches" },
	{ '4', "start", TEXT, AT(start), 0, 0, "TIME",
	  "now (default), now+2hours, 16:30, 2026-12-01T16:30" },
	{ '5', "duration", TEXT, AT(duration), 0, 0, "TIME",
	  "minutes, 1:30:00, 2-12 (days and hours), unlimited" },
	{ '6', "users", TEXT, AT(users), 0, 0, "NAME,...", "who may run jobs there" },
	{ '7', "accounts", TEXT, AT(accounts), 0, 0, "NAME,...", "whose jobs may run there" },
	{ '8', "flags", TEXT, AT(flags), 0, 0, "F,...",
	  "Slurm's: maint, ignore_jobs, flex, daily ..." },
	{ '9', "name", TEXT, AT(name), 0, 0, "NAME", "of the reservation (default: Slurm's)" },
	{ 'Q', "matrix", TEXT, AT(matrix), 0, 0, "FILE",
	  "tokens that each rank sends each other one: [[0,5],[7,0]]; - is standard input" },
	{ 'G', "trace", TEXT, AT(trace), 0, 0, "FILE",
	  "tokens per expert, [pass][layer][expert]; - is standard input" },
	{ 'a', "alpha", NUMBER, AT(alpha), 0, 64, "A", "optical NICs of a server (default 6)" },
	{ 'z', "beta", NUMBER, AT(beta), 1, 64, "B", "packet NICs of a server (default 2)" },
	{ 'p', "policy", TEXT, AT(policy), 0, 0, "paper|greedy|best",
	  "the published algorithm, the same mended, or a local search (default)" },
	{ 'l', "relay", FLAG, AT(relay), 0, 0, NULL, "tokens may take two hops" },
	{ 'K', "keep", TEXT, AT(keep), 0, 0, "CIRCUITS",
	  "a file with the circuits that exist: [[i,j,count],...]" },
	{ 'v', "change", NUMBER, AT(change), 0, 1 << 20, "K", "cut at most K of these" },
	{ 'y', "switching", TEXT, AT(switching), 0, 0, "FIRST[,EACH]",
	  "cut as many as pays: time for one circuit, and for every further one" },
	{ 'U', "remaining", NUMBER, AT(remaining), 1, 1 << 30, "N",
	  "all-to-alls with this matrix that are still to come (default 1)" },
	{ 'J', "window", NUMBER, AT(window), 1, LONG_MAX, "TIME",
	  "of the switching so much is hidden behind computation" },
	{ '^', "gpus", NUMBER, AT(gpus), 1, 1024, "N",
	  "GPUs of a server (default 4 in FP32, else 8)" },
	{ '@', "rate", TEXT, AT(rate), 0, 0, "R",
	  "of an interface, in bits per second: 100G (default), 1.6T" },
	{ '*', "tflops", TEXT, AT(tflops), 0, 0, "X",
	  "what a GPU reaches in the model's precision (default 17.6 in FP32, 200 in BF16)" },
	{ '=', "memory", TEXT, AT(memory), 0, 0, "GB", "of a GPU (default 40 in FP32, else 80)" },
	{ '~', "method", TEXT, AT(method), 0, 0, "NAME",
	  "descent (default), mcmc as published, or exhaustive for small models" },
	{ '+', "evaluations", NUMBER, AT(evaluations), 10, 100000000, "N",
	  "of a step at most (default 400 of descent, 4000 of mcmc)" },
	{ '<', "seed", NUMBER, AT(seed), 1, INT_MAX, "N", "of the search (default 1)" },
	{ '>', "write", TEXT, AT(write), 0, 0, "FILE",
	  "write the traffic as a demand, which a plan takes" },
	{ ')', "costs", TEXT, AT(costs), 0, 0, "TABLE",
	  "prices: a file, or topoopt (default), mfabric, opus-h200, opus-gb200" },
	{ '(', "budget", TEXT, AT(budget), 0, 0, "DOLLARS", "what the fabric may cost" },
	{ '&', "graph", TEXT, AT(graph), 0, 0, "FILE",
	  "a task graph (JSON or FlatBuffer) or phase tables instead of a model" },
	{ '_', "measured", TEXT, AT(measured), 0, 0, "FILE",
	  "measured times of operators (JSON) instead of estimates" },
	{ '{', "operation", TEXT, AT(operation), 0, 0, "BYTES",
	  "of an operation of phase tables, which do not say (default 64M)" },
	{ '}', "between", TEXT, AT(between), 0, 0, "MS",
	  "that a rank computes between two phases of phase tables (default 10)" },
	{ '$', "step-times", TEXT, AT(steps), 0, 0, "NAME=T,...",
	  "measured times of a step, for performance per dollar" },
	{ 'C', "slurm-conf", TEXT, AT(slurm_conf), 0, 0, "FILE",
	  "compare with this slurm.conf (default: the site's, where FILE is not given)" },
	{ 'f', "fabric", TEXT, AT(fabric), 0, 0, "F",
	  "an ocs.yaml or a synthetic line (default: the site's)" },
	{ 'o', "ocsd", TEXT, AT(ocsd), 0, 0, "ADDR",
	  "where ocsd answers: unix:/path or host:port" },
	{ 'j', "json", FLAG, AT(json), 0, 0, NULL, "machine-readable output" },
};
#define NSPECS (sizeof(specs) / sizeof(specs[0]))

static bool command_takes(const struct ocs_ctl_command *command, const struct option_spec *spec)
{
	return strchr(command->options, spec->key) != NULL;
}

void ocs_ctl_help(const struct ocs_ctl_command *command, FILE *out)
{
	char left[40];

	fprintf(out, "Usage: ocsctl %s [OPTION...]%s%s\n\n", command->name,
		*command->operands ? " " : "", command->operands);
	fprintf(out, "%c%s.\n", command->summary[0] - 'a' + 'A', command->summary + 1);
	if (command->help)
		fprintf(out, "%s\n", command->help);
	fputs("\nOptions:\n", out);
	for (size_t i = 0; i < NSPECS; i++) {
		if (!command_takes(command, &specs[i]))
			continue;
		snprintf(left, sizeof(left), "--%s%s%s%s", specs[i].name,
			 specs[i].kind == CHOICE ? "[=" :
			 specs[i].argument	 ? " " :
						   "",
			 specs[i].argument ? specs[i].argument : "",
			 specs[i].kind == CHOICE ? "]" :
			 specs[i].key == 'j'	 ? ", -j" :
						   "");
		fprintf(out, "  %-22s %s\n", left, specs[i].help);
	}
	fprintf(out, "  %-22s this text\n", "--help, -h");
}

int ocs_ctl_job_parse(const char *text, long *job, struct ocs_error *err)
{
	if (!ocs_number_parse(text, 1, UINT32_MAX, job))
		return 0;
	return ocs_error_set(err, OCS_USAGE,
			     "'%s' is not a job number; squeue -o '%%A %%i' shows the number of"
			     " an array task or a part of a heterogeneous job",
			     text);
}

static int option_unknown(const struct ocs_ctl_command *command, const char *typed,
			  struct ocs_error *err)
{
	const char *names[NSPECS + 1];
	const char *near = NULL;
	char word[64];
	size_t n = 0;

	for (size_t i = 0; i < NSPECS; i++)
		if (command_takes(command, &specs[i]))
			names[n++] = specs[i].name;
	names[n++] = "help";
	if (!strncmp(typed, "--", 2)) {
		snprintf(word, sizeof(word), "%.*s", (int)strcspn(typed + 2, "="), typed + 2);
		near = ocs_nearest(word, names, n);
	}
	if (near)
		return ocs_error_set(err, OCS_USAGE,
				     "%s: there is no option %s; did you mean"
				     " --%s?",
				     command->name, typed, near);
	return ocs_error_set(err, OCS_USAGE,
			     "%s: there is no option %s; 'ocsctl %s --help'"
			     " lists them",
			     command->name, typed, command->name);
}

static int option_take(const struct ocs_ctl_command *command, const struct option_spec *spec,
		       char *value, struct ocs_ctl_args *args, struct ocs_error *err)
{
	char *field = (char *)args + spec->offset;

	switch (spec->kind) {
	case FLAG:
		*(bool *)field = true;
		return 0;
	case TEXT:
		*(const char **)field = value;
		return 0;
	case CHOICE:
		if (!value) {
			*(long *)field = CHOICE_NONE;
			return 0;
		}
		/* fall through */
	case NUMBER:
		if (!ocs_number_parse(value, spec->min, spec->max, (long *)field))
			return 0;
		break;
	}
	if (spec->max == LONG_MAX)
		return ocs_error_set(err, OCS_USAGE,
				     "%s: --%s=%s is not a whole number of %ld or"
				     " more",
				     command->name, spec->name, value, spec->min);
	return ocs_error_set(err, OCS_USAGE, "%s: --%s=%s is not a whole number from %ld to %ld",
			     command->name, spec->name, value, spec->min, spec->max);
}

static int operands_check(const struct ocs_ctl_command *command, const struct ocs_ctl_args *args,
			  struct ocs_error *err)
{
	if (args->count > command->max)
		return ocs_error_set(err, OCS_USAGE, "%s: '%s' is too much; usage: ocsctl %s%s%s",
				     command->name, args->operands[command->max], command->name,
				     *command->operands ? " " : "", command->operands);
	if (args->count < command->min)
		return ocs_error_set(err, OCS_USAGE,
				     "%s: something is missing; usage: ocsctl %s %s", command->name,
				     command->name, command->operands);
	return 0;
}

int ocs_ctl_args_parse(const struct ocs_ctl_command *command, int argc, char **argv,
		       struct ocs_ctl_args *args, struct ocs_error *err)
{
	struct option options[NSPECS + 2] = { 0 };
	int n = 0, c;

	memset(args, 0, sizeof(*args));
	args->command = command;
	args->expect = args->alpha = args->change = -1;
	for (size_t i = 0; i < NSPECS; i++) {
		if (!command_takes(command, &specs[i]))
			continue;
		options[n].name = specs[i].name;
		options[n].has_arg = specs[i].kind == FLAG   ? no_argument :
				     specs[i].kind == CHOICE ? optional_argument :
							       required_argument;
		options[n++].val = 256 + i;
	}
	options[n].name = "help";
	options[n].val = 'h';
	opterr = 0;
	optind = 1;
	for (;;) {
		/* In the middle of a word of short options optind has not moved yet. */
		int at = optind;

		c = getopt_long(argc, argv, ":hj", options, NULL);
		if (c == -1)
			break;
		if (c == 'h') {
			ocs_ctl_help(command, stdout);
			return 1;
		}
		if (c == 'j') {
			args->json = true;
			continue;
		}
		if (c == ':')
			return ocs_error_set(err, OCS_USAGE, "%s: %s needs a value", command->name,
					     argv[optind - 1]);
		if (c == '?') {
			/* With operands permuted the culprit is the last one looked at. */
			const char *typed = optind > at ? argv[optind - 1] : argv[optind];

			if (optopt >= 256 || optopt == 'h')
				return ocs_error_set(err, OCS_USAGE, "%s: %s takes no value",
						     command->name, typed);
			return option_unknown(command, typed, err);
		}
		if (option_take(command, &specs[c - 256], optarg, args, err))
			return -1;
	}
	args->count = argc - optind;
	args->operands = argv + optind;
	return operands_check(command, args, err);
}
