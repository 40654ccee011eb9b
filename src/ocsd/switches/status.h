/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_OCSD_SWITCHES_STATUS_H
#define OCS_OCSD_SWITCHES_STATUS_H

/* Whether a switch is up, failed or drained, and who hears of it. */

#include "src/ocsd/state/ocsd.h"

/* "up", "failed" or "drained". */
const char *ocsd_switch_state_name(const struct ocsd_switch *sw);

/* Sends event `switch` to all subscribers: state and reason as they are now. */
void ocsd_switch_event(struct ocsd *d, struct ocsd_switch *sw);

/* SW answers, and all that was due there is done. */
void ocsd_switch_up(struct ocsd *d, struct ocsd_switch *sw);

/* SW did not do what it should, says REASON (the name of the switch before it is taken off);
 * it is tried again later.  Jobs that wait for it fail, those that run learn of it.  Another
 * reason than last time is an event, too, at most every five seconds. */
void ocsd_switch_failed(struct ocsd *d, struct ocsd_switch *sw, const char *reason);

#endif
