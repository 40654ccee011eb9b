/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_OCSD_SWITCHES_SCHEDULER_H
#define OCS_OCSD_SWITCHES_SCHEDULER_H

/* Switches from one state to the next. */

#include "src/ocsd/state/ocsd.h"

/* Decides what SW does next, if it is idle, and prepares it: nothing is sent. */
void ocsd_switch_pick(struct ocsd *d, struct ocsd_switch *sw, int64_t now_ns);

/* Sends what was prepared for SW; only once it is durable. */
void ocsd_switch_hand_over(struct ocsd *d, struct ocsd_switch *sw);

/* The worker of SW has done what it was handed. */
void ocsd_switch_result(struct ocsd *d, struct ocsd_switch *sw, int result,
			const struct ocs_table *table, const struct ocs_error *err);

#endif
