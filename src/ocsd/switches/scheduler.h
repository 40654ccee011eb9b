/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_OCSD_SWITCHES_SCHEDULER_H
#define OCS_OCSD_SWITCHES_SCHEDULER_H

/* Switches from one state to the next. */

#include "src/ocsd/state/ocsd.h"

void ocsd_settle(struct ocsd *d);
void ocsd_switch_result(struct ocsd *d, struct ocsd_switch *sw, int result,
			const struct ocs_table *table, const struct ocs_error *err);

#endif
