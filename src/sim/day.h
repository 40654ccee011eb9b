/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_SIM_DAY_H
#define OCS_SIM_DAY_H

#include "src/sim/run.h"

/* Writes PATH, an animated SVG (SMIL, no script needed): the XPUs of every cube, coloured
 * by the job that holds them, through the day that was kept in RESULT; below them the share
 * of XPUs in use with a line that moves along.  A program that does not animate shows the
 * middle of the day.  TITLE goes above it.  The day must not be empty.  Returns 0, or -1 with ERR. */
int ocs_sim_day_plot(const struct ocs_sim_result *result, const struct ocs_section *section,
		     const char *title, const char *path, struct ocs_error *err);

#endif
