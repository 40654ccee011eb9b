/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_OCSD_OPS_QUEUE_H
#define OCS_OCSD_OPS_QUEUE_H

#include "src/ocsd/state/ocsd.h"

/* Forgets what slurmctld said of waiting jobs. */
void ocsd_pending_clear(struct ocsd *d);

#endif
