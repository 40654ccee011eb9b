/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_OCSD_STORE_CLOCK_H
#define OCS_OCSD_STORE_CLOCK_H

/* The wall clock, which somebody may set. */

#include "src/ocsd/state/ocsd.h"

/* For what is shown; nothing waits by it. */
double ocsd_wall_clock(void);

/* Says in the log, and in the audit log, that the wall clock was set. */
void ocsd_clock_watch(struct ocsd *d);

#endif
