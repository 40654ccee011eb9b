/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_OCSD_LOOP_H
#define OCS_OCSD_LOOP_H

/* Switches from one state to the next. */

#include "src/ocsd/ocsd.h"

void ocsd_settle(struct ocsd *d);
void ocsd_switch_result(struct ocsd *d, struct ocsd_switch *sw, int result,
			const struct ocs_table *table, const struct ocs_error *err);

#endif
