/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_OCSD_PORTS_SIGNAL_LOSS_H
#define OCS_OCSD_PORTS_SIGNAL_LOSS_H

/* Ports that go dark under running jobs of direct sections. */

#include "src/ocsd/state/ocsd.h"

/* What a poll told (empty: nothing). */
void ocsd_health_look(struct ocsd *d, struct ocsd_switch *sw, const struct ocs_health *health);

#endif
