/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_SIM_FILES_H
#define OCS_SIM_FILES_H

/* Reads the files a workload may come from.  Names ending in .gz are gunzipped. */

#include "src/sim/workload.h"

/* The durations (last column, seconds) of a trace; zeros are left out. */
int ocs_sim_durations_read(struct ocs_sim_values *values, const char *path, struct ocs_error *err);
/* Lines "gap in seconds,probability". */
int ocs_sim_gaps_read(struct ocs_sim_values *values, const char *path, struct ocs_error *err);
/* Lines "slice id,topology,shape,size,duration,probability" into shapes and mix. */
int ocs_sim_mix_read(struct ocs_sim_workload *workload, const char *path, struct ocs_error *err);

#endif
