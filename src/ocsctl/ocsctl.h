/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_OCSCTL_OCSCTL_H
#define OCS_OCSCTL_OCSCTL_H

/* What the subcommands of ocsctl share. */

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "src/util/error.h"

struct json_object;
struct ocs_config;
struct ocs_fabric;
struct ocs_section;
struct ocs_client;
struct ocs_ctl_command;

/* A command line, parsed.  Strings point into argv. */
struct ocs_ctl_args {
	const struct ocs_ctl_command *command;
	bool json;
	bool no_rotate, no_fold, nodes, compact;
	bool directed, routes;
	long watch; /* seconds between pictures, 0: draw once */
	const char *fabric, *ocsd;
	const char *busy, *section, *conn;
	const char *map, *elapsed;
	const char *svg, *html, *demand, *strategy, *rings;
	bool private, orders;
	const char *repair;
	long paths; /* 0: not given */
	long trees;
	const char *node, *reason;
	const char *slurm_conf;
	const char *cube, *tile;
	const char *hosts, *backend, *failed;
	long cubes; /* 0: not given */
	const char *cube_names, *switch_names;
	const char *start, *duration, *users, *accounts, *flags, *name;
	bool dry_run, remove;
	long servers, degree; /* 0: not given */
	long epoch;	      /* 0: not given */
	long last;	      /* events, 0: not given */
	long after;	      /* revision, 0: not given */
	long expect;	      /* revision of ocsd's database, -1: not given */
	const char *transaction;
	long wait; /* seconds, 0: not given */
	const char *matrix, *trace, *keep, *policy, *switching;
	long alpha, change; /* -1: not given */
	long beta, remaining, window;
	bool relay;
	const char *rate, *tflops, *memory, *method, *write;
	const char *costs, *budget, *graph, *steps, *measured, *operation, *between;
	long gpus, evaluations, seed; /* 0: not given */
	int count;		      /* operands */
	char **operands;
};

/* One subcommand. */
struct ocs_ctl_command {
	const char *name;
	const char *operands; /* as in the usage line: "SHAPE", "[FILE]", "" */
	int min, max;	      /* how many operands */
	const char *options;  /* their keys, see the table in args.c */
	const char *summary;  /* one line of the list of commands */
	const char *help;     /* paragraphs below the usage, or NULL */
	/* Prints its result to stdout and returns 0, or returns -1 with ERR: main
	 * prints the sentence, err->code is the exit status. */
	int (*run)(const struct ocs_ctl_args *args, struct ocs_error *err);
};

extern const struct ocs_ctl_command ocs_ctl_commands[];

/* args.c */
/* Parses what follows the command's name (ARGV[0]).  Returns 0, 1 if --help was
 * given (and printed), or -1 with ERR (OCS_USAGE). */
int ocs_ctl_args_parse(const struct ocs_ctl_command *command, int argc, char **argv,
		       struct ocs_ctl_args *args, struct ocs_error *err);
void ocs_ctl_help(const struct ocs_ctl_command *command, FILE *out);
/* A whole job number; -1 with ERR tells how to find it. */
int ocs_ctl_job_parse(const char *text, long *job, struct ocs_error *err);

/* config.c */
/* What --fabric names, else the site's ocs.yaml.  NULL with ERR. */
struct ocs_config *ocs_ctl_config_open(const struct ocs_ctl_args *args, struct ocs_error *err);
/* The fabric of it alone. */
struct ocs_fabric *ocs_ctl_fabric_open(const struct ocs_ctl_args *args, struct ocs_error *err);
/* The path of the site's ocs.yaml (the caller frees it), or NULL with ERR listing
 * the places that were looked at. */
char *ocs_ctl_config_path(struct ocs_error *err);
/* Says in ERR that FABRIC has not what --section names; returns -1. */
int ocs_ctl_no_section(const struct ocs_fabric *fabric, const struct ocs_ctl_args *args,
		       struct ocs_error *err);
/* The torus or static section that --section names, or the only one. */
const struct ocs_section *ocs_ctl_section(const struct ocs_fabric *fabric,
					  const struct ocs_ctl_args *args, struct ocs_error *err);
/* Where ocsd answers: --ocsd, else the socket of CONFIG if it exists here, else
 * its address.  CONFIG may be NULL with --ocsd. */
const char *ocs_ctl_address(const struct ocs_ctl_args *args, const struct ocs_config *config);
/* Connects there.  When CONFIG is NULL and --ocsd is not given the site's ocs.yaml
 * is read for the address.  NULL with ERR. */
struct ocs_client *ocs_ctl_connect(const struct ocs_ctl_args *args, const struct ocs_config *config,
				   struct ocs_error *err);
/* Reads a file, or standard input when PATH is "-".  The caller frees the text. */
char *ocs_ctl_read(const char *path, struct ocs_error *err);
/* The same, as JSON (put it). */
struct json_object *ocs_ctl_read_json(const char *path, struct ocs_error *err);

/* Adds --expect and --transaction to REQUEST.  What expects a revision gets an id of its
 * own, so that it can be repeated over a new connection.  Returns 0, or -1 with ERR. */
int ocs_ctl_transaction(const struct ocs_ctl_args *args, struct json_object *request,
			struct ocs_error *err);

/* Every wait for an answer of ocsd that is not a wait for circuits. */
#define OCS_CTL_CONNECT_MS 5000
#define OCS_CTL_CALL_MS 20000

/* json.c: a member of any type as it is printed; a missing or null member reads as the default */
const char *ocs_ctl_string(struct json_object *object, const char *name, const char *otherwise);
size_t ocs_ctl_length(struct json_object *array); /* 0 for NULL */
/* One line on stdout. */
void ocs_ctl_print_json(struct json_object *object);
/* The same without "id" and "ok", which belong to the protocol. */
void ocs_ctl_print_reply(struct json_object *reply);

/* plan_svg.c: a picture of a plan; the caller frees it. */
struct ocs_plan;
char *ocs_ctl_plan_svg(const struct ocs_plan *plan);

/* The subcommands */
int ocs_ctl_check(const struct ocs_ctl_args *args, struct ocs_error *err);
int ocs_ctl_migrate(const struct ocs_ctl_args *args, struct ocs_error *err);
int ocs_ctl_show(const struct ocs_ctl_args *args, struct ocs_error *err);
int ocs_ctl_map(const struct ocs_ctl_args *args, struct ocs_error *err);
int ocs_ctl_report(const struct ocs_ctl_args *args, struct ocs_error *err);
int ocs_ctl_place(const struct ocs_ctl_args *args, struct ocs_error *err);
int ocs_ctl_verify(const struct ocs_ctl_args *args, struct ocs_error *err);
int ocs_ctl_fold(const struct ocs_ctl_args *args, struct ocs_error *err);
int ocs_ctl_plan(const struct ocs_ctl_args *args, struct ocs_error *err);
int ocs_ctl_forward(const struct ocs_ctl_args *args, struct ocs_error *err);
int ocs_ctl_nccl_check(const struct ocs_ctl_args *args, struct ocs_error *err);
int ocs_ctl_rails(const struct ocs_ctl_args *args, struct ocs_error *err);
int ocs_ctl_region(const struct ocs_ctl_args *args, struct ocs_error *err);
int ocs_ctl_optimise(const struct ocs_ctl_args *args, struct ocs_error *err);
int ocs_ctl_advise(const struct ocs_ctl_args *args, struct ocs_error *err);
int ocs_ctl_reserve(const struct ocs_ctl_args *args, struct ocs_error *err);
int ocs_ctl_explain(const struct ocs_ctl_args *args, struct ocs_error *err);
int ocs_ctl_apply(const struct ocs_ctl_args *args, struct ocs_error *err);
int ocs_ctl_prepare(const struct ocs_ctl_args *args, struct ocs_error *err);
int ocs_ctl_release(const struct ocs_ctl_args *args, struct ocs_error *err);
int ocs_ctl_drain(const struct ocs_ctl_args *args, struct ocs_error *err);
int ocs_ctl_reconcile(const struct ocs_ctl_args *args, struct ocs_error *err);
int ocs_ctl_version(const struct ocs_ctl_args *args, struct ocs_error *err);

#endif
