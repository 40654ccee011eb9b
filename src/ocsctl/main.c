/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include <stdio.h>
#include <string.h>

#include "ocs_config.h"
#include "src/ocsctl/ocsctl.h"
#include "src/util/nearest.h"

#define OFFLINE "f"	   /* commands that read ocs.yaml only */
#define ONLINE "fo"	   /* commands that also talk to ocsd */
#define CHANGE "xI" ONLINE /* ... and have it change something */
#define SHAPE "csrd"	   /* commands that lay a shape on a section */

const struct ocs_ctl_command ocs_ctl_commands[] = {
	{ "check", "[FILE]", 0, 1, "jC" ONLINE,
	  "read ocs.yaml, report its first fault or describe what it says",
	  "FILE is an ocs.yaml or a synthetic line such as\n"
	  "'torus cubes:4x4x4 cube:4x4x4 tile:2x2x1'.  Without it the site's ocs.yaml is read and\n"
	  "compared with slurm.conf, plugstack.conf, the running ocsd and slurmctld.",
	  ocs_ctl_check },
	{ "migrate", "TOPOLOGY.CONF", 1, 1, "jqi",
	  "a first ocs.yaml from the blocks or leaf switches of a topology.conf",
	  "Every block, or leaf switch of a tree, must hold the nodes of one cube.  Printed to\n"
	  "standard output; switches, ports and the order of nodes are for you to correct.",
	  ocs_ctl_migrate },
	{ "show", "fabric|cube|port|switch|job|circuit|phases|region [NAME]", 1, 2, "jLgw" ONLINE,
	  "tables of what ocsd knows",
	  "A switch that is named comes with its ports and its history.  --svg and --watch are\n"
	  "for region: heat maps of what servers send, their circuits, and what they achieve.",
	  ocs_ctl_show },
	{ "map", "", 0, 0, "jsgw" ONLINE, "a picture of every section with the jobs on it", NULL,
	  ocs_ctl_map },
	{ "report", "", 0, 0, "%!w" ONLINE, "the state of the fabric as a page for a browser",
	  "Cubes and servers with their jobs, what waits and why, switches and their last\n"
	  "events, in one file that needs no other.  Jobs are left out where PrivateData of\n"
	  "slurm.conf has \"jobs\".  With --watch the file is written again and again, whole each\n"
	  "time, and the page loads itself anew.",
	  ocs_ctl_report },
	{ "place", "SHAPE", 1, 1, "jbnk#g" SHAPE ONLINE,
	  "where a shape would lie now, or on a fabric you describe",
	  "Without --busy and --fabric ocsd is asked what is free at this moment.", ocs_ctl_place },
	{ "verify", "FILE", 1, 1, "jb" OFFLINE,
	  "prove a placement or a plan right, or name its first fault",
	  "FILE holds what 'place --json' or 'plan --json' printed; - is standard input.",
	  ocs_ctl_verify },
	{ "fold", "SHAPE", 1, 1, "jg" SHAPE OFFLINE,
	  "where each coordinate of a shape lies on an empty fabric", NULL, ocs_ctl_fold },
	{ "plan", "", 0, 0, "jNDMSGuRPtFAsg" OFFLINE,
	  "rings, circuits and routes for servers of a direct fabric",
	  "--servers and --degree are taken from the direct section of the fabric when\n"
	  "--fabric is given.",
	  ocs_ctl_plan },
	{ "forward", "PLAN", 1, 1, "j0OBFYXf", "routes and filters of a plan, on this host",
	  "PLAN holds what 'plan --json' printed; - is standard input.  --node says which\n"
	  "of its servers this is.  Idempotent.  --json prints the path of every pair.",
	  ocs_ctl_forward },
	{ "region", "check|plan|predict|replay|show", 1, 1, "jQGNazplKvyUJgRw" ONLINE,
	  "circuits for what the servers of a region send each other",
	  "For an all-to-all of a mixture of experts.  The servers are --servers runs of ranks\n"
	  "(default: one rank each).  Times are in tokens per NIC rate.  Every answer is\n"
	  "verified, and printed with bounds that no answer can beat.\n"
	  "check: in a job of its own, how long a change of circuits takes, and the links after it.\n"
	  "predict: how well the loads of experts in a recorded --trace could be foretold.\n"
	  "replay: how long a recorded training takes with packets alone, with circuits that\n"
	  "stay, and with circuits that follow its gates.\n"
	  "show: heat maps of what servers send, of their circuits, and of what they achieve.",
	  ocs_ctl_region },
	{ "rails", "check", 1, 1, "j" ONLINE,
	  "how long a change of circuits takes on each rail, and the link after it",
	  "To be run in a job of its own, which holds idle ports; the error without one names the\n"
	  "command.  Changes every rail of the job ten times, and prints what the figures mean for\n"
	  "--ocs-phases.  'ocsctl show phases' tells of jobs that run.",
	  ocs_ctl_rails },
	{ "optimise", "MODEL", 1, 1, "jND^@*=~+<>_",
	  "how to spread a model over servers, and what it then sends",
	  "MODEL is a file or the name of one that comes with this program ('ocsctl optimise ?'\n"
	  "lists them).  Strategy and circuits are found together; the demand goes to\n"
	  "'ocsctl plan --demand', the shape to 'sbatch --shape'.",
	  ocs_ctl_optimise },
	{ "nccl-check", "FILE...", 1, 64, "j",
	  "would NCCL read these topology and graph files as they are written",
	  "FILE is one for NCCL_TOPO_FILE or NCCL_GRAPH_FILE; - is standard input.  One line\n"
	  "a fault.  Notes do not change the exit status, errors make it 1.",
	  ocs_ctl_nccl_check },
	{ "advise", "SHAPE|fabric [MODEL]|costs", 1, 2, "jmeNDg^@*=+<)(%&$_{}" SHAPE ONLINE,
	  "which jobs should move for a shape; which fabric to buy for a model",
	  "SHAPE: the fewest jobs that, restarted elsewhere, would let it in, and of those the\n"
	  "cheapest: by XPUs, or with --elapsed by the XPU hours that are lost.\n"
	  "fabric: MODEL, or a recorded step: a task graph, a folder of phase tables.  Step time, cost, power and performance per dollar of every fabric that --costs\n"
	  "has prices for, and whether circuits pay.  costs: the prices alone.",
	  ocs_ctl_advise },
	{ "reserve", "[SHAPE]", 0, 1, "j123456789Y" SHAPE OFFLINE,
	  "a reservation of Slurm for a shape, for cubes or for the nodes of a switch",
	  "One of SHAPE, --cubes, --cube and --switch; with --duration, and --users, --accounts\n"
	  "or --flags=maint.  The nodes are those of a verified placement on what will be free\n"
	  "from --start on.  --dry-run prints it and the command of Slurm, and makes nothing.",
	  ocs_ctl_reserve },
	{ "explain", "JOBID", 1, 1, "j" ONLINE, "why a job waits, or where it runs", NULL,
	  ocs_ctl_explain },
	{ "apply", "JOBID", 1, 1, "jEWHV" CHANGE,
	  "wait until a job's circuits exist and were read back", "Idempotent; for prolog scripts.",
	  ocs_ctl_apply },
	{ "prepare", "JOBID NODES", 2, 2, "jsM" CHANGE,
	  "make the circuits of the job that comes next on NODES (look-ahead)",
	  "NODES is a host list in rank order, such as squeue -O SchedNodes shows.  Undone by\n"
	  "'ocsctl release JOBID', and by a job that gets one of the nodes before.",
	  ocs_ctl_prepare },
	{ "release", "JOBID", 1, 1, "jEWH" CHANGE, "give a job's circuits back",
	  "Idempotent; for epilog scripts.  Without --node the whole job is released.",
	  ocs_ctl_release },
	{ "drain", "cube|node|port|switch|xpu NAME", 2, 2, "jT" CHANGE,
	  "keep new jobs off a cube, a port (SWITCH:PORT), switch or XPU (CUBE:X,Y,Z)", NULL,
	  ocs_ctl_drain },
	{ "fail", "port NAME", 2, 2, "jT" CHANGE,
	  "drain a port (SWITCH:PORT) that went dark and move running jobs off it",
	  "Circuits of a running job on a direct fabric change places; few of them, and\n"
	  "never those of another job.",
	  ocs_ctl_drain },
	{ "resume", "cube|port|switch|xpu NAME", 2, 2, "jT" CHANGE, "undo drain and fail", NULL,
	  ocs_ctl_drain },
	{ "reconcile", "", 0, 0, "j" CHANGE,
	  "read every switch now, restore what is missing, report what differed", NULL,
	  ocs_ctl_reconcile },
	{ "version", "", 0, 0, "j", "print the version", NULL, ocs_ctl_version },
	{ .name = NULL }
};

int ocs_ctl_version(const struct ocs_ctl_args *args, struct ocs_error *err)
{
	(void)err;
	if (args->json)
		printf("{\"version\":\"%s\"}\n", PACKAGE_VERSION);
	else
		puts(PACKAGE_STRING);
	return 0;
}

static void usage_print(FILE *out)
{
	fputs("Usage: ocsctl COMMAND [OPTION...] [OPERAND...]\n\n"
	      "Looks at and steers the optical circuit switches of a Slurm cluster.\n\n"
	      "Commands:\n",
	      out);
	for (const struct ocs_ctl_command *c = ocs_ctl_commands; c->name; c++)
		fprintf(out, "  %-10s %s\n", c->name, c->summary);
	fputs("  help       this list, or the help of one: 'help COMMAND'\n\n"
	      "Options without a command:\n"
	      "  -h, --help     this text\n"
	      "  -V, --version  the version\n\n"
	      "'ocsctl COMMAND --help' lists a command's options; ocsctl(1) has all of it.\n"
	      "Exit status: 0 done, 1 error, 2 usage, 3 can never fit, 4 does not fit now,\n"
	      "5 ocsd cannot be reached.\n",
	      out);
}

static const struct ocs_ctl_command *command_find(const char *name, struct ocs_error *err)
{
	const char *names[32], *near;
	size_t n = 0;

	for (const struct ocs_ctl_command *c = ocs_ctl_commands; c->name; c++) {
		if (!strcmp(c->name, name))
			return c;
		names[n++] = c->name;
	}
	names[n++] = "help";
	near = ocs_nearest(name, names, n);
	if (near)
		ocs_error_set(err, OCS_USAGE, "there is no command '%s'; did you mean '%s'?", name,
			      near);
	else
		ocs_error_set(err, OCS_USAGE, "there is no command '%s'; 'ocsctl help' lists them",
			      name);
	return NULL;
}

static int help_run(int argc, char **argv, struct ocs_error *err)
{
	const struct ocs_ctl_command *command;

	if (argc > 2)
		return ocs_error_set(err, OCS_USAGE,
				     "help: '%s' is too much; usage: ocsctl help"
				     " [COMMAND]",
				     argv[2]);
	if (argc < 2 || !strcmp(argv[1], "help")) {
		usage_print(stdout);
		return 0;
	}
	command = command_find(argv[1], err);
	if (!command)
		return -1;
	ocs_ctl_help(command, stdout);
	return 0;
}

static int command_run(int argc, char **argv, struct ocs_error *err)
{
	static char version[] = "version";
	const struct ocs_ctl_command *command;
	struct ocs_ctl_args args;
	int rc;

	if (argc < 2)
		return ocs_error_set(err, OCS_USAGE, "which command? 'ocsctl help' lists them");
	if (!strcmp(argv[1], "help") || !strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))
		return help_run(argc - 1, argv + 1, err);
	if (!strcmp(argv[1], "--version") || !strcmp(argv[1], "-V"))
		argv[1] = version;
	if (argv[1][0] == '-')
		return ocs_error_set(err, OCS_USAGE,
				     "options come after the command: 'ocsctl COMMAND %s'",
				     argv[1]);
	command = command_find(argv[1], err);
	if (!command)
		return -1;
	rc = ocs_ctl_args_parse(command, argc - 1, argv + 1, &args, err);
	if (rc)
		return rc < 0 ? -1 : 0;
	return command->run(&args, err);
}

int main(int argc, char **argv)
{
	struct ocs_error err = { 0 };

	if (command_run(argc, argv, &err)) {
		fflush(stdout);
		fprintf(stderr, "ocsctl: %s\n", err.text);
		return err.code > 0 ? err.code : OCS_ERROR;
	}
	/* A full disk or a closed pipe must not look like success. */
	if (fflush(stdout) || ferror(stdout)) {
		fprintf(stderr, "ocsctl: cannot write to standard output\n");
		return OCS_ERROR;
	}
	return 0;
}
