/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_OCSD_STATE_SWITCH_STATE_H
#define OCS_OCSD_STATE_SWITCH_STATE_H

/* Whether a switch is up, failed or drained, in words. */

#include "src/ocsd/state/ocsd.h"

/* "up", "failed" or "drained". */
const char *ocsd_switch_state_name(const struct ocsd_switch *sw);

/* Posts event `switch`: state and reason as they are now. */
void ocsd_switch_event(struct ocsd *d, struct ocsd_switch *sw);

#endif
