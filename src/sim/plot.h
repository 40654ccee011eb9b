/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_SIM_PLOT_H
#define OCS_SIM_PLOT_H

#include "src/sim/run.h"

/* Writes PREFIX-utilisation.svg (the share of XPUs in use over time and how long it
 * was at most so large), PREFIX-jct.svg (completion times of small, middle and large
 * jobs), PREFIX-jcr.svg (a table of completion rates) and, if moments were kept,
 * PREFIX-cubes.svg (how full each cube was, over time).  Returns 0, or -1 with ERR. */
#define OCS_SIM_PLOT_MOMENTS 640
int ocs_sim_plot(const struct ocs_sim_result *result, const char *title, const char *prefix,
		 struct ocs_error *err);

#endif
