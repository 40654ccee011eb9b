/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include <string.h>

#include "src/ocsctl/cmd/region.h"
#include "src/ocsctl/ocsctl.h"

int ocs_ctl_region(const struct ocs_ctl_args *args, struct ocs_error *err)
{
	if (!strcmp(args->operands[0], "plan"))
		return ocs_ctl_region_plan(args, err);
	if (!strcmp(args->operands[0], "check"))
		return ocs_ctl_region_check(args, err);
	if (!strcmp(args->operands[0], "predict"))
		return ocs_ctl_region_predict(args, err);
	if (!strcmp(args->operands[0], "replay"))
		return ocs_ctl_region_replay(args, err);
	if (!strcmp(args->operands[0], "show"))
		return ocs_ctl_region_show(args, err);
	return ocs_error_set(err, OCS_USAGE,
			     "region: '%s' is none of check, plan, predict, replay and show",
			     args->operands[0]);
}
