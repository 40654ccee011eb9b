/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_OCSD_SWITCHES_STATUS_H
#define OCS_OCSD_SWITCHES_STATUS_H

/* A switch comes up, or fails. */

#include "src/ocsd/state/ocsd.h"

/* SW answers, and all that was due there is done. */
void ocsd_switch_up(struct ocsd *d, struct ocsd_switch *sw);

/* SW did not do what it should, says REASON (the name of the switch before it is taken off);
 * it is tried again later.  Jobs that wait for it fail, those that run learn of it.  Another
 * reason than last time is an event, too, at most every five seconds. */
void ocsd_switch_failed(struct ocsd *d, struct ocsd_switch *sw, const char *reason);

#endif
