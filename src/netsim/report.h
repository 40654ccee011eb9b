/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_NETSIM_REPORT_H
#define OCS_NETSIM_REPORT_H

#include "src/netsim/options.h"
#include "src/netsim/step.h"

/* A run, as text for people or as one JSON object, on stdout. */
void ocs_netsim_report(const struct ocs_netsim_args *args, const struct ocs_netsim_request *request,
		       const struct ocs_netsim_result *result);

#endif
