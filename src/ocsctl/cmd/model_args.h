/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_OCSCTL_CMD_MODEL_ARGS_H
#define OCS_OCSCTL_CMD_MODEL_ARGS_H

#include "src/optimise/measured.h"
#include "src/optimise/optimise.h"

struct json_object;
struct ocs_ctl_args;

/* "100G" or "1.6T" into bytes per second; 0, or -1 with ERR (OCS_USAGE). */
int ocs_ctl_rate_parse(const char *text, double *rate, struct ocs_error *err);
/* REQUEST for MODEL from the options, with the defaults of its precision.  0, and MEASURED, which REQUEST
 * uses, is the caller's to free; or -1 with ERR. */
int ocs_ctl_optimise_request(const struct ocs_ctl_args *args, const struct ocs_model *model,
			     struct ocs_optimise_request *request,
			     struct ocs_optimise_measured *measured, struct ocs_error *err);
/* The positive number of --NAME=TEXT times UNIT, if TEXT is not NULL.  0, or -1 with ERR. */
int ocs_ctl_real_take(const char *name, const char *text, double unit, double *value,
		      struct ocs_error *err);
/* What was assumed about servers: an object, and a sentence (the caller frees it). */
struct json_object *ocs_ctl_machine_json(const struct ocs_optimise_request *request);
char *ocs_ctl_machine_text(const struct ocs_optimise_request *request);

#endif
