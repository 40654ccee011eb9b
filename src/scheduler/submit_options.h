/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_SCHEDULER_SUBMIT_OPTIONS_H
#define OCS_SCHEDULER_SUBMIT_OPTIONS_H

/* What a submission says about its shape, and in which environment variables
 * it travels.  Shared by spank_ocs, job_submit/ocs and cli_filter/ocs; no Slurm
 * header is needed. */

#include <stdbool.h>
#include <stddef.h>

#include "src/fold/shape.h"

struct ocs_error;

enum ocs_option {
	OCS_OPTION_SHAPE,
	OCS_OPTION_CONN,
	OCS_OPTION_NO_ROTATE,
	OCS_OPTION_NO_FOLD,
	OCS_OPTION_DEMAND,
	OCS_OPTION_PHASES,
	OCS_OPTION_MOE,
	OCS_OPTION_RINGS,
	OCS_OPTION_MODEL, /* becomes shape or demand before anything is sent */
	OCS_OPTIONS
};

/* Name of OPTION as typed after the two dashes. */
const char *ocs_option_name(enum ocs_option option);

/* Slurm passes the option --no-rotate of spank_ocs as _SLURM_SPANK_OPTION_
 * spank_ocs_no_rotate in the job's SPANK environment, and salloc and sbatch leave
 * the same name behind SLURM_SPANK_ in the environment of what they start. */
#define OCS_OPTION_PREFIX "_SLURM_SPANK_OPTION_spank_ocs_"
#define OCS_OPTION_INHERITED "SLURM_SPANK_" OCS_OPTION_PREFIX
/* The variable of OPTION behind one of these prefixes; a static string for
 * OCS_OPTION_PREFIX and OCS_OPTION_INHERITED. */
const char *ocs_option_variable(enum ocs_option option, bool inherited);

/* Variables of the job environment. */
#define OCS_ENV_PREFIX "SLURM_OCS_"
#define OCS_ENV_DIR "SLURM_OCS_DIR"
#define OCS_ENV_MOE_SOCKETS "SLURM_OCS_MOE_SOCKETS"
#define OCS_ENV_MOE_SERVERS "SLURM_OCS_MOE_SERVERS"
#define OCS_ENV_MOE_ADDRESS "SLURM_OCS_MOE_ADDRESS"
#define OCS_ENV_EXPORTED "SLURM_OCS_EXPORTED"
#define OCS_ENV_SHAPE "OCS_SHAPE"
#define OCS_ENV_CONN "OCS_CONN_TYPE"
#define OCS_ENV_PHASES "OCS_PHASES"
#define OCS_ENV_MOE "OCS_MOE"
/* Inside one client process only: spank_ocs tells cli_filter/ocs the shape. */
#define OCS_ENV_ASKED "SLURM_OCS_ASKED"
/* The same for --ocs-model: cli_filter/ocs, which knows the nodes, is told the model, and answers
 * with a shape or a demand (base64) before spank_ocs sends the options. */
#define OCS_ENV_MODEL "SLURM_OCS_MODEL"
#define OCS_ENV_MODEL_SHAPE "SLURM_OCS_MODEL_SHAPE"
#define OCS_ENV_MODEL_DEMAND "SLURM_OCS_MODEL_DEMAND"
/* In the environment that a job is submitted with: how the model is spread, "pp:2,dp:4,tp:8". */
#define OCS_ENV_STRATEGY "OCS_STRATEGY"
/* The same under a name that --export=NONE lets pass, for the job's batch script and each of its steps. */
#define OCS_ENV_STRATEGY_KEPT "SLURM_OCS_STRATEGY"

/* The request of one job; strings are NULL if not given. */
struct ocs_request {
	char *value[OCS_OPTIONS];
};
void ocs_request_free(struct ocs_request *request);

/* Collects the options from ENV (COUNT "NAME=VALUE" strings), where Slurm may
 * have put SPANK_ before the names. */
void ocs_request_read(char *const *env, size_t count, struct ocs_request *request);

/* True for "OCS_EPOCH=..." and its like, which only slurmctld may write into a
 * job's SPANK environment: the prolog believes them. */
bool ocs_request_reserved(const char *entry);

/* Checks the options and turns them into SHAPE.  1; 0 if there is no --shape; -1
 * with ERR, one line (also for options that need a shape). */
int ocs_request_shape(const struct ocs_request *request, struct ocs_shape *shape,
		      struct ocs_error *err);

/* Reads and checks (ocs_plan_demand_check) the demand file PATH, at most OCS_DEMAND_MAX
 * bytes.  Returns it in base64 (base64.h; caller frees), or NULL with ERR. */
#define OCS_DEMAND_MAX (48 * 1024)
char *ocs_demand_load(const char *path, struct ocs_error *err);
/* Whether CODED is what that returns, for the program that gets it from others, and a demand for
 * NODES servers (0: not known).  0, or -1 with ERR. */
int ocs_demand_check(const char *coded, int nodes, struct ocs_error *err);

/* Whether VALUE is one of --ocs-rings, stock or permuted.  0, or -1 with ERR. */
int ocs_rings_check(const char *value, struct ocs_error *err);

/* Removes from this process's environment what a job submitted from inside
 * another must not inherit: both forms of the options, OCS_SHAPE,
 * OCS_CONN_TYPE, OCS_PHASES, OCS_MOE and, if ALL, OCS_STRATEGY, SLURM_OCS_* and what they name as
 * exported. */
void ocs_inherited_drop(bool all);

/* The list in SLURM_OCS_EXPORTED: NAME=VALUE, joined by ';' ('%' and ';' in values
 * as %25 and %3B).  add appends to LIST (may be NULL) and returns the new list;
 * next takes one entry off *LIST (both strings caller frees), false at the end. */
char *ocs_exported_add(char *list, const char *name, const char *value);
bool ocs_exported_next(const char **list, char **name, char **value);

#endif
